//! `#[py_layer(check(..))]`: the generated tests run here; each tests the op with the attribute.
//! `a_wrong_rule_is_found` checks that a wrong rule makes such a test fail.

use std::process::Command;

use autograd_core::prelude::*;

use crate::wrong_rules::WRONG;

#[py_layer(check(x = [2, 3], w = [3, 4]))]
impl MatMul {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x.matmul(w)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let needs = ctx.needs_input_grad();
        Grads {
            x: needs.x.then(|| dy.matmul(&w.transpose())),
            w: needs.w.then(|| x.transpose().matmul(dy)),
        }
    }
}

/// Both float types, an empty tensor, a scalar, numbers away from the kink, and a tensor given by
/// an expression.
#[py_layer(
    check(x = [2, 3] in 0.5..2.0, slope = 0.1),
    check(x = [0, 3], slope = 0.1),
    check(x = [] in -2.0..-0.5, slope = 0.25),
    check(x = Tensor::from([-1.0, 0.5, 2.0]), slope = 0.1),
)]
impl<T: Float> LeakyRelu<T> {
    type Saved = Tensor<T>;
    type Attrs = f64;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>, slope: f64) -> Tensor<T> {
        ctx.save_for_backward(x);
        ctx.set_attrs(slope);
        x.relu() - (-x).relu() * slope
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let x = ctx.saved_tensor();
        let positive = x.greater(&Tensor::zeros_like(x));
        positive.where_else(dy, &(dy * *ctx.attrs()))
    }
}

/// As in the manual.
#[py_layer(
    check(x = [4, 3], by = 2.0, bias = None),
    check(x = [0, 3], by = 2.0, bias = [0, 3]),
    check(x = [3] in 0.5..2.0, by = -1.0, bias = Tensor::from([0.25, 1.0, 2.0])),
)]
impl Affine {
    type Attrs = (f64, bool);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        by: f64,
        bias: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        ctx.set_attrs((by, bias.is_some()));
        bias.map_or_else(|| x * by, |bias| x * by + bias)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (by, has_bias) = *ctx.attrs();
        Grads { x: dy * by, bias: has_bias.then(|| dy.clone()) }
    }
}

/// `f32`, every form of input, an omitted default, several outputs, one of them plain, one without
/// a gradient.
#[py_layer(
    check(x = [3], b = [3], xs = [[3], [1]], ys = [[3]], zs = [[3], [3]], index = [3] in 0..3, keep = [3]),
    check(
        x = [2, 3],
        b = None,
        xs = [],
        ys = [Tensor::from([1.0, 2.0, 3.0]), Tensor::ones([1])],
        zs = vec![Tensor::zeros([3]), Tensor::ones([3])],
        index = Tensor::from([2_i64, 0, 2]),
        keep = Tensor::from([true, false, true]),
        by = -1.5,
    ),
)]
impl Everything {
    type Saved = (Tensor<i64>, Tensor<bool>);
    type Attrs = (f64, bool, usize, Vec<Vec<usize>>);

    #[allow(clippy::too_many_arguments)]
    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor,
        b: Option<&Tensor>,
        xs: &[Tensor],
        ys: &[&Tensor],
        zs: [&Tensor; 2],
        #[stop_gradient] index: &Tensor<i64>,
        #[stop_gradient] keep: &Tensor<bool>,
        #[default(2.0)] by: f64,
    ) -> Result<(Tensor, usize, [Tensor; 2], Tensor), String> {
        let last = x.shape().len() as isize - 1;
        let mut sum = x.index_select(last, index) * by;
        for t in b.into_iter().chain(xs).chain(ys.iter().copied()) {
            sum += t;
        }
        let kept = keep.where_else(&sum, 0.0);
        let signs = sum.floor();
        let mut shapes = vec![x.shape().to_vec()];
        shapes.extend(xs.iter().map(|t| t.shape().to_vec()));
        shapes.extend(ys.iter().map(|t| t.shape().to_vec()));
        ctx.save_for_backward((index, keep));
        ctx.set_attrs((by, b.is_some(), xs.len(), shapes));
        ctx.mark_non_differentiable(&signs);
        Ok((kept, sum.len(), [zs[0] * 2.0, zs[1] * 3.0], signs))
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dkept: Option<&Tensor>,
        dzs: &[Option<Tensor>],
        _dsigns: Option<&Tensor>,
    ) -> Grads {
        let (index, keep) = ctx.saved_tensor();
        let (by, has_b, xs, shapes) = ctx.attrs();
        let dsum = dkept.map(|dy| keep.where_else(dy, 0.0));
        let summed = |shape: &[usize]| {
            let zeros = Tensor::zeros(shape);
            let Some(dsum) = &dsum else { return zeros };
            let mut part = dsum.clone();
            while part.shape().len() > shape.len() {
                part = part.sum_axes([0]);
            }
            if shape == [1] { part.sum().reshape([1]) } else { part }
        };
        let last = shapes[0].len() as isize - 1;
        let picked = summed(&shapes[0]) * *by;
        let n = shapes[0][last as usize];
        // The transpose of selecting columns is a product with the selection matrix.
        let picks = Tensor::<f32>::eye(n).index_select(0, index);
        let dx = match last {
            0 => picked.reshape([1, n]).matmul(&picks).reshape([n]),
            _ => picked.matmul(&picks),
        };
        let lists: Vec<_> = shapes[1..].iter().map(|shape| summed(shape)).collect();
        let dzs = dzs.iter().zip([2.0, 3.0]).map(|(dz, by)| dz.as_ref().map(|dz| dz * by));
        Grads {
            x: dx,
            b: has_b.then(|| summed(&[3])),
            xs: lists[..*xs].to_vec(),
            ys: lists[*xs..].to_vec(),
            zs: dzs.map(|dz| dz.unwrap_or_else(|| Tensor::zeros([3]))).collect::<Vec<_>>(),
        }
    }
}

/// The other forms of a list, and a raw name.
#[py_layer(check(r#as = [[2], [3]], bs = [[2], [1]], cs = [[2]], r#type = 2.0))]
impl Lists {
    type Attrs = f64;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        r#as: &[Tensor<f64>; 2],
        bs: &[&Tensor<f64>; 2],
        cs: &Vec<Tensor<f64>>,
        r#type: f64,
    ) -> Vec<Tensor<f64>> {
        ctx.set_attrs(r#type);
        r#as.iter().chain(bs.iter().copied()).chain(cs).map(|x| x * r#type).collect()
    }

    fn backward(ctx: &BackwardContext<Self>, dys: &[Tensor<f64>]) -> Grads {
        let mut grads = dys.iter().map(|dy| dy * *ctx.attrs());
        let mut some = |n| grads.by_ref().take(n).collect::<Vec<_>>();
        Grads { r#as: some(2), bs: some(2), cs: some(1) }
    }
}

/// Once differentiable, so there is no second order to check; a function as a value.
#[py_layer(once_differentiable, check(x = [4], f = Tensor::exp))]
impl Applied {
    type Saved = Tensor<f64>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        f: impl Fn(&Tensor<f64>) -> Tensor<f64>,
    ) -> Tensor<f64> {
        let y = f(x);
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

/// With a rule for forward mode, in single precision.
#[py_layer(check(x = [2, 2]))]
impl Squared {
    type Saved = Tensor;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor) -> Tensor {
        ctx.save_for_backward(x);
        x * x
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor) -> Tensor {
        dy * ctx.saved_tensor() * 2.0
    }

    fn jvp(_ctx: &JvpContext<Self>, x: &Tensor, dx: &Tensor) -> Tensor {
        dx * x * 2.0
    }
}

/// An elementwise op whose backward is also compared with the derivative.
#[py_layer(elementwise, check(x = [2, 3], t = [3], keep = [3], slope = 0.1))]
impl Leaky {
    fn forward(x: Real, t: Real, #[stop_gradient] keep: Mask, slope: f64) -> Real {
        keep.select(x * t, slope * x)
    }

    fn backward(x: Real, t: Real, keep: Mask, slope: f64, dy: Real) -> (Real, Real) {
        (dy * keep.select(t, slope), keep.select(dy * x, 0.0))
    }
}

/// An op with a derived backward, with several outputs, and one with a reduction.
#[py_layer(elementwise, check(x = [5], w = []))]
impl SinCos {
    fn forward(x: Real, w: Real) -> (Real, Real) {
        ((w * x).sin(), (w * x).cos())
    }
}

#[py_layer(elementwise, reduce = mean(-1), check(x = [2, 3], target = [3]))]
impl SquaredError {
    fn forward(x: Real, target: Real, #[default(1.0)] by: f64) -> Real {
        by * (x - target) * (x - target)
    }
}

/// The tests generated for the wrong rules in `wrong_rules.rs` fail, with the mistake and its
/// place; all other tests pass.
#[test]
fn a_wrong_rule_is_found() {
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["wrong_rules::", "--test-threads", "1"])
        .env(WRONG, "1")
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&run.stdout);
    let err = String::from_utf8_lossy(&run.stderr);
    let failures = [
        ("WrongSine_check_first", "check(x = [3]): WrongSine: `x`, element [0]: the slope is "),
        (
            "WrongSines_check_f32_first",
            "check(xs = [[2, 2], []]): WrongSines: `xs[1]`, element []: the slope is ",
        ),
        ("WrongSines_check_f64_first", "WrongSines: `xs[1]`, element []: the slope is "),
        ("HalfRight_check_second", "check(x = [3]), second order: HalfRight: `x`, element [0]"),
        (
            "WrongAlone_check_first",
            "check(x = [2, 3], w = [3]), where only `w` wants a gradient: WrongAlone: `w`",
        ),
        ("WrongAbsent_check_first", "check(x = [3]), with a gradient of tensor output 1 alone: "),
        ("WrongLayout_check_first", ", with inputs that are not contiguous: WrongLayout: `x`"),
        ("WrongJvp_check_first", "WrongJvp: `x`, element [0, 0]: the slope is "),
        ("WrongJvpSlope_check_second", "second order: WrongJvpSlope: jvp, `x`, element [0]: "),
        (
            "WrongRecorded_check_second",
            "second order: WrongRecorded: `x`, element [0]: the gradient is ",
        ),
        ("KeepsAnother_check_second", "second order: KeepsAnother"),
        ("WrongFormula_check_f32_first", "WrongFormula: the gradient of `x` at x = "),
        ("WrongFormula_check_f64_first", "by the derivative of forward"),
    ];
    for (test, message) in failures {
        assert!(
            out.contains(&format!("test wrong_rules::{test}_order ... FAILED")),
            "{test}\n{out}{err}"
        );
        assert!(out.contains(message), "no '{message}' in\n{out}{err}");
    }
    // A failure has the line of the `check(..)`.
    assert!(out.contains("wrong_rules.rs:23:33"), "{out}{err}");
    let rest = [
        "KeepsAnother_check_first",
        "HalfRight_check_first",
        "WrongJvpSlope_check_first",
        "WrongRecorded_check_first",
        // The first derivative is wrong, but its own derivative is consistent.
        "WrongFormula_check_f32_second",
        "WrongFormula_check_f64_second",
    ];
    for right in rest {
        assert!(
            out.contains(&format!("test wrong_rules::{right}_order ... ok")),
            "{right}\n{out}{err}"
        );
    }
    // So does the comparison that is generated without `check(..)`.
    let count = format!("{} passed; {} failed", rest.len(), failures.len() + 1);
    assert!(out.contains(&count), "{out}{err}");
}
