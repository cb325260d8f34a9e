//! Forward mode: `fn jvp` in a block, and ops without one.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use autograd_core::nn::LayerNorm;
use autograd_core::prelude::*;
use autograd_core::{
    BackwardOptions, Error, Generator, GradOptions, checkpoint, fuse, grad, grad_with, gradcheck,
    jvp, vjp,
};

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn counted<R>(f: impl FnOnce() -> R) -> (R, usize) {
    CALLS.set(0);
    let result = f();
    (result, CALLS.get())
}

#[track_caller]
fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{found:?} {expected:?}");
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= tolerance * (1.0 + e.abs()), "{found:?} {expected:?}");
    }
}

/// `(f(x + h d) - f(x - h d)) / 2h`.
fn differences(
    f: impl Fn(&[Tensor<f64>]) -> Tensor<f64>,
    at: &[Tensor<f64>],
    along: &[Tensor<f64>],
) -> Vec<f64> {
    const H: f64 = 1e-5;
    let moved = |h: f64| {
        let at: Vec<_> = at.iter().zip(along).map(|(x, d)| x + d * h).collect();
        f(&at).to_vec()
    };
    let (after, before) = (moved(H), moved(-H));
    after.iter().zip(before).map(|(a, b)| (a - b) / (2.0 * H)).collect()
}

/// Saved values, attributes, an optional tangent and a required one.
#[py_layer]
impl ScaledTanh {
    type Saved = (Tensor<f64>, Tensor<f64>);
    type Attrs = f64;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        by: f64,
    ) -> Tensor<f64> {
        let y = x.tanh();
        ctx.save_for_backward((x, w));
        ctx.set_attrs(by);
        &y * w * by
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let by = *ctx.attrs();
        let y = x.tanh();
        Grads { x: dy * w * (1.0 - y.square()) * by, w: dy * y * by }
    }

    fn jvp(
        ctx: &JvpContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        dx: &Tensor<f64>,
        dw: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        CALLS.set(CALLS.get() + 1);
        assert_eq!(ctx.saved_tensor().0.detach().to_vec(), x.detach().to_vec());
        let (y, by) = (x.tanh(), *ctx.attrs());
        let along_x = dx * w * (1.0 - y.square()) * by;
        match dw {
            Some(dw) => along_x + dw * y * by,
            None => along_x,
        }
    }
}

fn point() -> ([Tensor<f64>; 2], [Tensor<f64>; 2]) {
    (
        [Tensor::from([0.3, -0.8, 1.1]), Tensor::from([1.5, 0.25, -2.0])],
        [Tensor::from([1.0, 0.5, -0.25]), Tensor::from([-0.5, 2.0, 0.75])],
    )
}

fn composite(t: &[Tensor<f64>]) -> Tensor<f64> {
    let y = ScaledTanh::apply(&t[0].sin(), &t[1], 1.5);
    ScaledTanh::apply(&y, &(&t[0] * &t[1]), -0.5) + y.square()
}

#[test]
fn the_users_jvp_is_called_and_right() {
    let (at, along) = point();
    let ((y, dy), calls) = counted(|| jvp(composite, &at, &along).unwrap());
    assert_eq!(calls, 2);
    assert_eq!(y.to_vec(), composite(&at).to_vec());
    close(&dy.to_vec(), &differences(composite, &at, &along), 1e-8);
    assert!(y.stop_gradient() && dy.stop_gradient());
    // The dot-product identity with backward.
    let u = Tensor::from([0.7, -1.0, 2.0]);
    let (_, grads) = vjp(composite, &at, &u).unwrap();
    let back: f64 = grads.iter().zip(&along).map(|(g, d)| (g * d).sum().item()).sum();
    close(&[(u * dy).sum().item()], &[back], 1e-13);
}

/// It is no tangent of zero, which an infinity would turn into NaN.
#[test]
fn an_infinite_input_without_a_tangent_adds_nothing() {
    let at = [Tensor::from([f64::INFINITY, 2.0]), Tensor::from([3.0, f64::INFINITY])];
    let along = [Tensor::from([1.0, 1.0])];
    type Product = fn(&[Tensor<f64>]) -> Tensor<f64>;
    let (by_op, fused): (Product, Product) =
        (|t| &t[0] * &t[1], |t| fuse([&t[0], &t[1]], |[x, y]| x * y + 1.0));
    for product in [by_op, fused] {
        let first = |t: &[Tensor<f64>]| product(&[t[0].clone(), at[1].clone()]);
        assert_eq!(jvp(first, &at[..1], &along).unwrap().1.to_vec(), [3.0, f64::INFINITY]);
        let second = |t: &[Tensor<f64>]| product(&[at[0].clone(), t[0].clone()]);
        assert_eq!(jvp(second, &at[1..], &along).unwrap().1.to_vec(), [f64::INFINITY, 2.0]);
        // Both want a gradient, and one has a tangent.
        let wants = at[1].clone();
        wants.set_stop_gradient(false);
        let first = |t: &[Tensor<f64>]| product(&[t[0].clone(), &wants * 1.0]);
        assert_eq!(jvp(first, &at[..1], &along).unwrap().1.to_vec(), [3.0, f64::INFINITY]);
    }
}

#[test]
fn an_input_without_a_tangent() {
    let (at, along) = point();
    let w = at[1].clone();
    let f = |t: &[Tensor<f64>]| ScaledTanh::apply(&t[0], &w, 2.0);
    let ((_, dy), calls) = counted(|| jvp(f, &at[..1], &along[..1]).unwrap());
    assert_eq!(calls, 1);
    close(&dy.to_vec(), &differences(f, &at[..1], &along[..1]), 1e-8);
    // An absent tangent is zeros if the parameter is not an `Option`.
    let x = at[0].clone();
    let f = |t: &[Tensor<f64>]| ScaledTanh::apply(&x, &t[0], 2.0);
    let (_, dy) = jvp(f, &at[1..], &along[1..]).unwrap();
    close(&dy.to_vec(), &differences(f, &at[1..], &along[1..]), 1e-8);
    // An op that no tangent reaches is not called.
    let ((_, dy), calls) =
        counted(|| jvp(|t| &t[0] + ScaledTanh::apply(&x, &w, 1.0), &at[..1], &along[..1]).unwrap());
    assert_eq!((dy.to_vec(), calls), (along[0].to_vec(), 0));
}

/// Every form of input and output, in a generic op that may fail.
#[py_layer]
impl<T: Float> Forms<T> {
    type Saved = Tensor<T>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        xs: &[&Tensor<T>],
        #[stop_gradient] mask: &Tensor<T>,
        bias: Option<&Tensor<T>>,
        fail: bool,
    ) -> Result<(Vec<Tensor<T>>, usize, Tensor<T>), String> {
        if fail {
            return Err("asked to".into());
        }
        ctx.save_for_backward(mask);
        let mut sum = mask * 0.0;
        for x in xs {
            sum += *x * mask;
        }
        if let Some(bias) = bias {
            sum += bias;
        }
        Ok((xs.iter().map(|x| x.square()).collect(), xs.len(), sum))
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        squares: &[Option<Tensor<T>>],
        dsum: &Tensor<T>,
    ) -> Result<(Vec<Tensor<T>>, Option<Tensor<T>>), String> {
        let _ = ctx;
        Err(format!("backward is never run here ({} {})", squares.len(), dsum.len()))
    }

    fn jvp(
        ctx: &JvpContext<Self>,
        xs: &[Tensor<T>],
        bias: Option<&Tensor<T>>,
        dxs: &[Option<Tensor<T>>],
        dbias: Option<&Tensor<T>>,
    ) -> Result<(Vec<Option<Tensor<T>>>, Tensor<T>), String> {
        CALLS.set(CALLS.get() + 1);
        assert!(dbias.is_none() || bias.is_some());
        let mask = ctx.saved_tensor();
        let mut sum = mask * 0.0;
        for dx in dxs.iter().flatten() {
            sum += dx * mask;
        }
        if let Some(dbias) = dbias {
            sum += dbias;
        }
        if xs.iter().any(|x| x.to_vec()[0] > T::from(100.0).unwrap()) {
            return Err("too large".into());
        }
        let squares = xs.iter().zip(dxs).map(|(x, dx)| dx.as_ref().map(|dx| x * dx * 2.0));
        Ok((squares.collect(), sum))
    }
}

#[test]
fn every_form_of_input_and_output() {
    fn run<T: Float>() {
        let tensor = |data: &[f64]| Tensor::<f64>::from(data).cast::<T>();
        let (a, b, c) = (tensor(&[1.0, 2.0]), tensor(&[3.0, 4.0]), tensor(&[0.5, 0.5]));
        let mask = tensor(&[1.0, 10.0]);
        let f = |t: &[Tensor<T>]| {
            let (squares, n, sum) = Forms::apply(&[&t[0], &c], &mask, Some(&t[1]), false).unwrap();
            assert_eq!(n, 2);
            Tensor::concat(&[&squares[0], &squares[1], &sum], 0)
        };
        let tangents = [tensor(&[1.0, -1.0]), tensor(&[0.25, 0.5])];
        let (_, dy) = jvp(f, &[a.clone(), b], &tangents).unwrap();
        assert_eq!(dy.cast::<f64>().to_vec(), [2.0, -4.0, 0.0, 0.0, 1.25, -9.5]);
        let f = |t: &[Tensor<T>]| Forms::apply(&[&t[0]], &mask, None, false).unwrap().2;
        let (_, dy) = jvp(f, &[a], &tangents[..1]).unwrap();
        assert_eq!(dy.cast::<f64>().to_vec(), [1.0, -10.0]);
    }
    let ((), calls) = counted(run::<f64>);
    assert_eq!(calls, 2);
    run::<f32>();
}

#[test]
fn an_error_of_the_user_is_reported_and_nothing_breaks() {
    let mask = Tensor::<f64>::ones([1]);
    let f = |t: &[Tensor<f64>]| Forms::apply(&[&t[0]], &mask, None, false).unwrap().2;
    let (x, dx) = (Tensor::from([200.0]), Tensor::from([1.0]));
    let error = jvp(f, std::slice::from_ref(&x), std::slice::from_ref(&dx)).unwrap_err();
    assert!(matches!(&error, Error::User { op: "Forms", function: "jvp", .. }), "{error}");
    assert!(error.to_string().ends_with("jvp failed: too large"), "{error}");
    assert!(error.to_string().contains("forward_mode.rs:"), "{error}");
    let (_, dy) = jvp(f, &[Tensor::from([2.0])], &[dx]).unwrap();
    assert_eq!(dy.to_vec(), [1.0]);
}

#[py_layer]
impl Panics {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, _dx: &Tensor<f64>) -> Tensor<f64> {
        panic!("in jvp")
    }
}

#[test]
fn a_panic_passes_and_modes_are_as_before() {
    let x = Tensor::from([1.0]);
    let caught = std::panic::catch_unwind(|| {
        let x = Tensor::from([1.0]);
        jvp(|t| Panics::apply(&t[0]), std::slice::from_ref(&x), std::slice::from_ref(&x))
    });
    assert!(caught.is_err());
    assert!(autograd_core::is_grad_enabled());
    let (at, along) = point();
    let ((_, dy), calls) = counted(|| jvp(composite, &at, &along).unwrap());
    assert_eq!(calls, 2);
    close(&dy.to_vec(), &differences(composite, &at, &along), 1e-8);
    x.set_stop_gradient(false);
    Panics::apply(&x).backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0]);
}

#[py_layer]
impl WrongShape {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
    ) -> (Tensor<f64>, Vec<Tensor<f64>>) {
        (x * 2.0, vec![x * 1.0, x * 2.0])
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
        _dys: &[Tensor<f64>],
    ) -> Tensor<f64> {
        dy * 2.0
    }

    fn jvp(
        _ctx: &JvpContext<Self>,
        x: &Tensor<f64>,
        dx: &Tensor<f64>,
    ) -> (Tensor<f64>, Vec<Tensor<f64>>) {
        match x.to_vec()[0] as usize {
            0 => (dx.sum(), vec![dx.clone(), dx.clone()]),
            1 => (dx.clone(), vec![dx.clone()]),
            _ => (dx.clone(), vec![dx.clone(), dx.sum()]),
        }
    }
}

#[test]
fn what_jvp_returns_is_held_against_the_outputs() {
    let error_at = |x: f64| {
        let inputs = [Tensor::from([x, 5.0])];
        jvp(|t| WrongShape::apply(&t[0]).0, &inputs, &inputs).unwrap_err()
    };
    let error = error_at(0.0);
    assert!(matches!(&error, Error::TangentShape { op: "WrongShape", .. }));
    assert!(
        error
            .to_string()
            .ends_with("jvp returned a tangent of shape [] for output 0, which has shape [2]"),
        "{error}"
    );
    let error = error_at(1.0);
    assert!(matches!(&error, Error::TangentCount { expected: 2, found: 1, .. }));
    assert!(
        error.to_string().ends_with("jvp returned 1 tangent for output 1, a list of 2 tensors"),
        "{error}"
    );
    let error = error_at(2.0);
    assert!(error.to_string().contains("for output 1[1], which has shape [2]"), "{error}");
}

#[py_layer]
impl WrongBehindPlain {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
    ) -> (Tensor<f64>, usize, Tensor<f64>) {
        (x * 2.0, x.len(), x * 3.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, db: &Tensor<f64>) -> Tensor<f64> {
        da * 2.0 + db * 3.0
    }

    fn jvp(
        _ctx: &JvpContext<Self>,
        _x: &Tensor<f64>,
        dx: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>) {
        (dx * 2.0, dx.sum())
    }
}

#[test]
fn the_number_of_an_output_is_that_of_its_tangent() {
    let inputs = [Tensor::from([1.0, 5.0])];
    let error = jvp(|t| WrongBehindPlain::apply(&t[0]).2, &inputs, &inputs).unwrap_err();
    assert!(
        matches!(&error, Error::TangentShape { output, .. } if output == "output 1"),
        "{error}"
    );
}

/// Saves a value that is neither input nor output, and is once differentiable.
#[py_layer(once_differentiable)]
impl Once {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let e = x.exp();
        ctx.save_for_backward(&e);
        e.sin()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let e = ctx.saved_tensor();
        Tensor::from_vec(dy.shape(), (dy * e * e.cos()).to_vec()).unwrap()
    }

    fn jvp(ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        CALLS.set(CALLS.get() + 1);
        let e = ctx.saved_tensor();
        dx * e * e.cos()
    }
}

#[test]
fn forward_mode_goes_where_backward_cannot_be_transposed() {
    let (at, along) = point();
    let f = |t: &[Tensor<f64>]| Once::apply(&t[0].square());
    let ((_, dy), calls) = counted(|| jvp(f, &at[..1], &along[..1]).unwrap());
    assert_eq!(calls, 1);
    close(&dy.to_vec(), &differences(f, &at[..1], &along[..1]), 1e-8);
    gradcheck(f, &at[..1]).unwrap();
    // Differentiating the tangent again is an error.
    let x = at[0].clone();
    x.set_stop_gradient(false);
    let (_, dy) = jvp(f, std::slice::from_ref(&x), &along[..1]).unwrap();
    close(&dy.to_vec(), &differences(f, &at[..1], &along[..1]), 1e-8);
    let error = dy.sum().backward().unwrap_err();
    assert!(
        error.to_string().starts_with("Once: its backward is `once_differentiable`"),
        "{error}"
    );
}

#[py_layer(once_differentiable)]
impl OnceWithout {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

/// Leaves the graph in backward.
#[py_layer]
impl Opaque {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.detach() * 2.0
    }
}

#[test]
fn where_there_is_no_way_forward_it_is_said() {
    let x = [Tensor::from([1.0])];
    let error = jvp(|t| OnceWithout::apply(&t[0]), &x, &x).unwrap_err();
    assert!(error.to_string().contains("write `fn jvp` in the op"), "{error}");
    let error = jvp(|t| Opaque::apply(&t[0]), &x, &x).unwrap_err();
    assert!(error.to_string().starts_with("Opaque: its backward does not compute"), "{error}");
    // Beside an op with a `jvp`, gradcheck accepts such an op.
    gradcheck(|t| OnceWithout::apply(&Once::apply(&t[0])), &x).unwrap();
}

/// Without `jvp`: for the transposed backward, a saved intermediate value is a constant.
#[py_layer]
impl Intermediate {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let e = x.exp();
        ctx.save_for_backward(&e);
        e.sin()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let e = ctx.saved_tensor();
        dy * e * e.cos()
    }
}

#[test]
fn an_op_without_jvp_needs_one_derivative_only() {
    let (at, along) = point();
    let f = |t: &[Tensor<f64>]| Intermediate::apply(&t[0]) * &t[1];
    let (_, dy) = jvp(f, &at, &along).unwrap();
    close(&dy.to_vec(), &differences(f, &at, &along), 1e-8);
}

/// Correct in backward, but off by a thousandth in forward mode.
#[py_layer]
impl SlightlyOff {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.002
    }
}

#[test]
fn gradcheck_finds_a_wrong_jvp() {
    let inputs = [Tensor::from([0.5, 0.25]), Tensor::from([1.0, 2.0])];
    let error = gradcheck(|t| &t[0] * SlightlyOff::apply(&t[1]), &inputs).unwrap_err();
    assert!(matches!(&error, Error::JvpWrong { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("gradcheck: input 1, element [0]: the slope is"), "{text}");
    assert!(text.contains("by jvp"), "{text}");
    gradcheck(composite, &point().0).unwrap();
}

#[test]
fn tangents_of_tangents() {
    // The second derivative along one direction, by differences of the first.
    let (at, along) = point();
    let first = |t: &[Tensor<f64>]| jvp(composite, t, &along).unwrap().1;
    let ((y, dy), calls) = counted(|| jvp(first, &at, &along).unwrap());
    assert_eq!(y.to_vec(), first(&at).to_vec());
    // The slope does not depend on the value of the second op.
    assert_eq!(calls, 2 + 1);
    close(&dy.to_vec(), &differences(first, &at, &along), 1e-7);
}

#[test]
fn forward_over_reverse_and_reverse_over_forward() {
    let (at, along) = point();
    // A Hessian times a direction, in both orders of modes.
    let gradient = |t: &[Tensor<f64>]| {
        let leaf = &t[0] * 1.0;
        let y = composite(&[leaf.clone(), at[1].clone()]).sum();
        let options = GradOptions::new().create_graph(true);
        grad_with(&[&y], &[&leaf], options).unwrap().remove(0).unwrap()
    };
    let (_, forward_over_reverse) = jvp(gradient, &at[..1], &along[..1]).unwrap();
    let plain = |t: &[Tensor<f64>]| {
        t[0].set_stop_gradient(false);
        grad(&[&composite(&[t[0].clone(), at[1].clone()]).sum()], &[&t[0]]).unwrap().remove(0)
    };
    let expected = differences(plain, &at[..1], &along[..1]);
    close(&forward_over_reverse.to_vec(), &expected, 1e-7);
    let x = at[0].clone();
    x.set_stop_gradient(false);
    let f = |t: &[Tensor<f64>]| composite(&[t[0].clone(), at[1].clone()]);
    let (_, slope) = jvp(f, std::slice::from_ref(&x), &along[..1]).unwrap();
    assert!(!slope.stop_gradient());
    slope.sum().backward_options(BackwardOptions::new()).unwrap();
    close(&x.grad().unwrap().to_vec(), &expected, 1e-7);
}

#[test]
fn a_tangent_is_differentiable() {
    let (at, along) = point();
    let (dx, u) = (along[0].clone(), Tensor::from([0.7, -1.0, 2.0]));
    dx.set_stop_gradient(false);
    let (_, slope) = jvp(composite, &at, &[dx.clone(), along[1].clone()]).unwrap();
    slope.backward_with(&u).unwrap();
    // The slope is linear in the tangent, and has the derivative that backward computes.
    let (_, grads) = vjp(composite, &at, &u).unwrap();
    close(&dx.grad().unwrap().to_vec(), &grads[0].to_vec(), 1e-13);
}

#[test]
fn through_a_checkpoint() {
    let (at, along) = point();
    let f = |t: &[Tensor<f64>]| {
        let (x, w) = (t[0].sin(), t[1].clone());
        let inside = checkpoint(move || ScaledTanh::apply(&x, &w, 1.5).square());
        inside * &t[1]
    };
    let ((_, dy), calls) = counted(|| jvp(f, &at, &along).unwrap());
    assert_eq!(calls, 1);
    close(&dy.to_vec(), &differences(f, &at, &along), 1e-8);
    let second = |t: &[Tensor<f64>]| jvp(f, t, &along).unwrap().1;
    let (_, ddy) = jvp(second, &at, &along).unwrap();
    close(&ddy.to_vec(), &differences(second, &at, &along), 1e-7);
}

#[test]
fn a_checkpoint_that_uses_another_tensor_when_it_is_run_again_is_reported() {
    let at = [Tensor::from(vec![2.0])];
    let other = Tensor::from(vec![3.0]);
    other.set_stop_gradient(false);
    let f = |t: &[Tensor<f64>]| {
        let (x, other, runs) = (t[0].sin(), other.sin(), AtomicUsize::new(0));
        checkpoint(move || match runs.fetch_add(1, Ordering::SeqCst) {
            0 => &x * 3.0,
            _ => &x * &other,
        })
    };
    let along = [Tensor::from(vec![1.0])];
    let error = jvp(f, &at, &along).unwrap_err().to_string();
    assert!(error.contains("must do the same in both runs"), "{error}");
    // The op that is used is recognized.
    let square = |t: &[Tensor<f64>]| {
        let x = t[0].sin();
        checkpoint(move || x.square())
    };
    let (_, dy) = jvp(square, &at, &along).unwrap();
    close(&dy.to_vec(), &[2.0 * at[0].sin().item() * at[0].cos().item()], 1e-14);
}

#[test]
fn an_input_changed_in_place_is_reported() {
    let (at, along) = point();
    let f = |t: &[Tensor<f64>]| {
        let mut x = &t[0] * 1.0;
        let y = ScaledTanh::apply(&x, &t[1], 1.0);
        x += 1.0;
        y + x
    };
    let error = jvp(f, &at, &along).unwrap_err();
    assert!(
        matches!(&error, Error::SavedTensorChanged { op: "ScaledTanh", parameter, .. } if parameter == "x"),
        "{error}"
    );
}

#[test]
fn changes_in_place_are_followed() {
    let (at, along) = point();
    let f = |t: &[Tensor<f64>]| {
        let mut x = &t[0] * 1.0;
        x += &t[1];
        x *= 2.0;
        ScaledTanh::apply(&x, &t[1], 1.0)
    };
    let (_, dy) = jvp(f, &at, &along).unwrap();
    close(&dy.to_vec(), &differences(f, &at, &along), 1e-8);
}

#[test]
fn what_another_thread_records_is_not_lost() {
    let (at, along) = point();
    let f = |t: &[Tensor<f64>]| {
        std::thread::scope(|scope| {
            let part = scope.spawn(|| ScaledTanh::apply(&t[0].sin(), &t[1], 1.5));
            let here = t[0].cos();
            part.join().unwrap() * here
        })
    };
    let (_, dy) = jvp(f, &at, &along).unwrap();
    close(&dy.to_vec(), &differences(f, &at, &along), 1e-8);
}

#[test]
fn where_recording_is_off_and_what_is_marked() {
    #[py_layer]
    impl Marked {
        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
            let top = x.floor();
            ctx.mark_non_differentiable(&top);
            (x * 3.0, top)
        }

        fn backward(
            _ctx: &BackwardContext<Self>,
            dy: &Tensor<f64>,
            _: Option<&Tensor<f64>>,
        ) -> Tensor<f64> {
            dy * 3.0
        }

        fn jvp(
            _ctx: &JvpContext<Self>,
            _x: &Tensor<f64>,
            dx: &Tensor<f64>,
        ) -> (Tensor<f64>, Option<Tensor<f64>>) {
            (dx * 3.0, None)
        }
    }
    let x = [Tensor::from([1.5])];
    let f = |t: &[Tensor<f64>]| {
        let (y, top) = Marked::apply(&t[0]);
        y * top
    };
    let (y, dy) = jvp(f, &x, &[Tensor::from([1.0])]).unwrap();
    assert_eq!((y.item(), dy.item()), (4.5, 3.0));
    let (_, dy) = no_grad().run(|| jvp(f, &x, &[Tensor::from([1.0])]).unwrap());
    assert_eq!(dy.item(), 3.0);
    let (_, dy) = jvp(|t| no_grad().run(|| f(t)), &x, &[Tensor::from([1.0])]).unwrap();
    assert_eq!(dy.item(), 0.0);
}

#[test]
fn a_long_chain_is_walked_in_linear_time() {
    let x = [Tensor::from([0.5])];
    let (_, dy) = jvp(
        |t| (0..30_000).fold(t[0].clone(), |y, _| &y * 0.9999 + &t[0] * 1e-9),
        &x,
        &[Tensor::from([1.0])],
    )
    .unwrap();
    assert!((dy.item() - 0.9999f64.powi(30_000)).abs() < 1e-4);
}

/// Forward mode by two backwards: the product of a cotangent with the derivatives is linear in the
/// cotangent, and its slope is the tangent.
fn two_backwards(
    f: impl Fn(&[Tensor<f64>]) -> Tensor<f64>,
    at: &[Tensor<f64>],
    along: &[Tensor<f64>],
) -> Vec<f64> {
    let leaf = |x: &Tensor<f64>| {
        let x = x * 1.0;
        x.set_stop_gradient(false);
        x
    };
    let inputs: Vec<_> = at.iter().map(leaf).collect();
    let y = f(&inputs);
    let cotangent = leaf(&Tensor::zeros_like(&y));
    let options = GradOptions::new().seeds(vec![Some(cotangent.clone())]).create_graph(true);
    let grads = grad_with(&[&y], &inputs.iter().collect::<Vec<_>>(), options).unwrap();
    let parts = grads.iter().zip(along).map(|(grad, d)| (grad.as_ref().unwrap() * d).sum());
    let product = parts.reduce(|a, b| a + b).unwrap();
    grad(&[&product], &[&cotangent]).unwrap()[0].to_vec()
}

fn layer_norm(t: &[Tensor<f64>]) -> Tensor<f64> {
    let mut norm = LayerNorm::new(t[1].shape()).eps(0.1);
    (norm.weight, norm.bias) = (t[1].clone(), t[2].clone());
    norm.forward(&t[0])
}

#[test]
fn the_ops_own_rules_are_right() {
    type Case = (&'static str, &'static [&'static [usize]], fn(&[Tensor<f64>]) -> Tensor<f64>);
    let cases: &[Case] = &[
        ("add", &[&[2, 3], &[3]], |t| &t[0] + &t[1]),
        ("sub", &[&[3], &[2, 3]], |t| &t[0] - &t[1]),
        ("mul", &[&[2, 1], &[1, 3]], |t| &t[0] * &t[1]),
        ("div", &[&[2, 3], &[2, 1]], |t| &t[0] / &t[1]),
        ("square by hand", &[&[2, 3]], |t| &t[0] * &t[0]),
        ("only the left one", &[&[3]], |t| &t[0] - Tensor::from([[1.0], [2.0]])),
        ("only the right one", &[&[3]], |t| Tensor::from([[1.0], [2.0]]) / &t[0]),
        ("scalars", &[&[2, 3]], |t| 2.0 / (t[0].maximum(0.1) * 3.0 - 1.0) + (&t[0] / 2.0)),
        ("matmul", &[&[2, 3], &[3, 4]], |t| t[0].matmul(&t[1])),
        ("matrix and vector", &[&[2, 3], &[3]], |t| t[0].matmul(&t[1])),
        ("vector and matrix", &[&[3], &[3, 2]], |t| t[0].matmul(&t[1])),
        ("vectors", &[&[3], &[3]], |t| t[0].matmul(&t[1])),
        ("stacks", &[&[4, 1, 2, 3], &[2, 3, 2]], |t| t[0].matmul(&t[1])),
        ("one factor", &[&[2, 3]], |t| t[0].matmul(&Tensor::ones([5, 3, 2]))),
        ("linear", &[&[2, 2, 3], &[4, 3], &[4]], |t| t[0].linear(&t[1], Some(&t[2]))),
        ("sum", &[&[2, 3]], |t| t[0].sum() * 2.0),
        ("sum of axes", &[&[2, 3, 2]], |t| t[0].sum_axes([0, 2])),
        ("mean, kept", &[&[2, 3, 2]], |t| t[0].mean_axes_keep([1])),
        ("sum of one", &[&[]], |t| t[0].sum()),
        ("reshape", &[&[2, 3]], |t| t[0].reshape([3, 2])),
        ("permute", &[&[2, 3, 4]], |t| t[0].permute(&[2, 0, 1])),
        ("broadcast_to", &[&[2, 1]], |t| t[0].broadcast_to([3, 2, 2])),
        ("slice", &[&[2, 7]], |t| t[0].slice_axis(1, 1, 6, 2)),
        ("an empty slice", &[&[2, 3]], |t| t[0].slice_axis(1, 3, 3, 1).sum() + t[0].sum()),
        ("concat", &[&[2, 3], &[2, 1]], |t| Tensor::concat(&[&t[0], &t[1], &t[0]], 1)),
        ("concat with a constant", &[&[2, 3]], |t| {
            Tensor::concat(&[&Tensor::ones([1, 3]), &t[0]], 0)
        }),
        ("where_else", &[&[3], &[2, 1]], |t| {
            Tensor::from([[true, false, true], [false, true, false]]).where_else(&t[0], &t[1])
        }),
        ("where_else, one side", &[&[1]], |t| {
            Tensor::from([true, false, true]).where_else(&t[0], Tensor::from([[1.0], [2.0]]))
        }),
        ("gather", &[&[2, 3]], |t| t[0].gather(1, &Tensor::from([[2, 2], [0, 1]]))),
        ("index_select", &[&[3, 2]], |t| t[0].index_select(0, &Tensor::from([2, 0, 2]))),
        ("cumsum", &[&[2, 3]], |t| t[0].cumsum(1)),
        ("flip", &[&[2, 3]], |t| t[0].flip(1)),
        ("split", &[&[2, 6]], |t| {
            let parts = t[0].split(3, 1);
            &parts[2] * &parts[0]
        }),
        ("normalize", &[&[2, 5]], |t| t[0].normalize([1], 0.1)),
        ("layer_norm", &[&[4, 3], &[3], &[3]], |t| layer_norm(t)),
        ("layer_norm of constants", &[&[3], &[3]], |t| {
            layer_norm(&[Tensor::from([[1.0, 2.0, 4.0]]), t[0].clone(), t[1].clone()])
        }),
        ("layer_norm, the shift alone", &[&[3]], |t| {
            layer_norm(&[Tensor::from([[1.0, 2.0, 4.0]]), Tensor::ones([3]), t[0].clone()])
        }),
        ("contiguous", &[&[2, 3]], |t| t[0].transpose().contiguous()),
        ("copy", &[&[2, 3]], |t| t[0].copy() * t[0].square().transpose().copy().transpose()),
        ("leaky_relu", &[&[2, 3]], |t| t[0].leaky_relu(0.1)),
        ("elu", &[&[2, 3]], |t| t[0].elu(0.5)),
        ("maximum", &[&[2, 3], &[2, 3]], |t| t[0].maximum(&t[1]) + t[0].pow(&t[1])),
        ("many", &[&[2, 3], &[3, 2]], |t| {
            let h = t[0].matmul(&t[1]) / (t[0].sum_axes_keep([1]) + 3.0);
            (h.transpose() - &h).reshape([4]) * t[1].mean()
        }),
    ];
    let mut generator = Generator::new(7);
    let mut number = || 0.5 + (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    for (name, shapes, f) in cases {
        let mut random = || -> Vec<Tensor<f64>> {
            let mut data =
                |shape: &[usize]| (0..shape.iter().product()).map(|_| number()).collect();
            shapes.iter().map(|&shape| Tensor::from_vec(shape, data(shape)).unwrap()).collect()
        };
        let (at, along) = (random(), random());
        let slope = |at: &[Tensor<f64>]| jvp(f, at, &along).unwrap().1;
        let found = slope(&at).to_vec();
        assert_eq!(slope(&at).shape(), f(&at).shape(), "{name}");
        close(&found, &two_backwards(f, &at, &along), 1e-13);
        close(&found, &differences(f, &at, &along), 1e-8);
        // Second order: the tangent of the tangent, and the gradient of the tangent.
        let second = jvp(slope, &at, &along).unwrap().1;
        close(&second.to_vec(), &differences(slope, &at, &along), 1e-7);
        let (leaves, sum) = (at.clone(), |at: &[Tensor<f64>]| slope(at).sum());
        leaves.iter().for_each(|leaf| leaf.set_stop_gradient(false));
        let inputs: Vec<_> = leaves.iter().collect();
        let total = sum(&leaves);
        if !total.stop_gradient() {
            let options = GradOptions::new().materialize_grads(true);
            let grads = grad_with(&[&total], &inputs, options).unwrap();
            let parts =
                grads.iter().zip(&along).map(|(grad, d)| (grad.as_ref().unwrap() * d).sum());
            let by_gradient = parts.map(|part| part.item()).sum::<f64>();
            close(&[by_gradient], &[second.sum().item()], 1e-12);
        }
    }
}
