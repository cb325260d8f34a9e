//! Rules that are off by a thousandth, or wrong if only one gradient is wanted or present. Tests that
//! are generated for them fail. `check_arg.rs` runs this program again to check that; otherwise the
//! rules are correct.

use std::sync::LazyLock;

use autograd_core::is_grad_enabled;
use autograd_core::prelude::*;

/// The environment variable that makes the rules wrong.
pub(super) const WRONG: &str = "WRONG_RULES";

pub(super) fn wrong() -> bool {
    static WRONG_RULES: LazyLock<bool> = LazyLock::new(|| std::env::var_os(WRONG).is_some());
    *WRONG_RULES
}

/// The factor `by` if the rules are to be wrong.
fn times(by: f64) -> f64 {
    if wrong() { by } else { 1.0 }
}

#[py_layer(once_differentiable, check(x = [3]))]
impl WrongSine {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.sin()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor().cos() * times(1.001)
    }
}

/// The same in both precisions.
#[py_layer(once_differentiable, check(xs = [[2, 2], []]))]
impl<T: Float> WrongSines<T> {
    type Saved = Vec<Tensor<T>>;

    fn forward(ctx: &mut ForwardContext<Self>, xs: &[Tensor<T>]) -> Vec<Tensor<T>> {
        ctx.save_for_backward(xs);
        xs.iter().map(Tensor::sin).collect()
    }

    fn backward(ctx: &BackwardContext<Self>, dys: &[Tensor<T>]) -> Vec<Tensor<T>> {
        let factors = [1.0, times(0.999)];
        let xs = ctx.saved_tensor().iter().zip(factors);
        xs.zip(dys).map(|((x, factor), dy)| dy * x.cos() * factor).collect()
    }
}

/// Correct in the first order; in the second, as wrong as the ops of its backward.
#[py_layer(check(x = [3]))]
impl HalfRight {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        -x.cos()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        WrongSine::apply(ctx.saved_tensor()) * dy
    }
}

/// Correct if both gradients are wanted.
#[py_layer(once_differentiable, check(x = [2, 3], w = [3]))]
impl WrongAlone {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x * w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let by = if ctx.needs_input_grad().x { 1.0 } else { times(1.001) };
        Grads { x: dy * w, w: (dy * x * by).sum_axes([0]) }
    }
}

/// Correct if both gradients are present.
#[py_layer(once_differentiable, check(x = [3]))]
impl WrongAbsent {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (x * 2.0, x * 3.0)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        da: Option<&Tensor<f64>>,
        db: Option<&Tensor<f64>>,
    ) -> Option<Tensor<f64>> {
        match (da, db) {
            (None, Some(db)) if !wrong() => Some(db * 3.0),
            _ => Some(da? * 2.0 + db.map_or_else(|| da.unwrap() * 0.0, |db| db * 3.0)),
        }
    }
}

/// Takes numbers in the order of memory.
#[py_layer(once_differentiable, check(x = [3, 4]))]
impl WrongLayout {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        if !wrong() {
            return x * x;
        }
        let squares = x.view().as_slice_memory_order().unwrap().iter().map(|x| x * x).collect();
        Tensor::from_vec(x.shape(), squares).unwrap()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor() * 2.0
    }
}

/// With a wrong rule for forward mode, in single precision.
#[py_layer(once_differentiable, check(x = [2, 2]))]
impl WrongJvp {
    type Saved = Tensor;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor) -> Tensor {
        ctx.save_for_backward(x);
        x * x
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor) -> Tensor {
        dy * ctx.saved_tensor() * 2.0
    }

    fn jvp(_ctx: &JvpContext<Self>, x: &Tensor, dx: &Tensor) -> Tensor {
        dx * x * (2.0 * times(1.001) as f32)
    }
}

/// With a rule for forward mode that is not differentiable, but no other mistake.
#[py_layer(check(x = [3]))]
impl WrongJvpSlope {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.sin()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor().cos()
    }

    fn jvp(_ctx: &JvpContext<Self>, x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * if wrong() { x.detach() } else { x.clone() }.cos()
    }
}

/// Correct where it is not recorded, as by a fast loop.
#[py_layer(check(x = [3]))]
impl WrongRecorded {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.sin()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let by = if is_grad_enabled() { times(1.001) } else { 1.0 };
        dy * ctx.saved_tensor().cos() * by
    }
}

/// Not twice differentiable, but not declared so.
#[py_layer(check(x = [2]))]
impl KeepsAnother {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(if wrong() { x * 2.0 } else { x.clone() });
        x * x
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor() * if wrong() { 1.0 } else { 2.0 }
    }
}

#[py_layer(elementwise, check(x = [2], slope = 3.0))]
impl WrongFormula {
    fn forward(x: Real, slope: f64) -> Real {
        (slope * x).sin()
    }

    fn backward(x: Real, slope: f64, dy: Real) -> Real {
        dy * slope * times(0.999) * (slope * x).cos()
    }
}
