//! The exported ops of these tests.

use autograd_core::host::{Arg, DynOp, Kept};
use autograd_core::prelude::*;

/// Hyperbolic tangent.
#[py_layer(export)]
impl CusTanh {
    type Saved = Tensor<f32>;
    pub(crate) fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f32>) -> Tensor<f32> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f32>) -> Tensor<f32> {
        dy * (1.0 - ctx.saved_tensor().square())
    }
}

/// The square of `by` times the rows of `x` at `rows`.
#[py_layer(export, shapes(x: [n, m], rows: [k] -> [k, m]))]
impl Gate {
    type Saved = (Tensor<f32>, Tensor<f32>, Tensor<i64>);
    type Attrs = f64;
    pub(crate) fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f32>,
        #[stop_gradient] rows: &Tensor<i64>,
        #[default(2.0)] by: f64,
    ) -> Result<Tensor<f32>, String> {
        if by <= 0.0 {
            return Err(format!("`by` must be positive, found {by}"));
        }
        let double = x.index_select(0, rows) * by;
        ctx.save_for_backward((x, &double, rows));
        ctx.set_attrs(by);
        Ok(double.square())
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f32>) -> Tensor<f32> {
        let (x, double, rows) = ctx.saved_tensor();
        let taken = dy * double * (2.0 * *ctx.attrs());
        Tensor::zeros_like(x).index_add(0, rows, &taken)
    }
}

/// `x * a + x^3`, for any float type.
#[py_layer(elementwise, export)]
impl Cubic {
    pub(crate) fn forward(
        x: Real,
        a: Real,
        #[stop_gradient] on: Mask,
        #[default(1.0)] c: f64,
    ) -> Real {
        on.select(x * a + c * x * x * x, x)
    }
}

/// `x` times `by`.
#[py_layer(export(f32, f64))]
impl<T: Float> Scale<T> {
    type Saved = (Tensor<T>, Tensor<T>);
    pub(crate) fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<T>,
        by: Option<&Tensor<T>>,
    ) -> Tensor<T> {
        let by = by.cloned().unwrap_or_else(|| Tensor::ones_like(x));
        ctx.save_for_backward((x, &by));
        x * by
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> (Tensor<T>, Option<Tensor<T>>) {
        let (x, by) = ctx.saved_tensor();
        (dy * by, ctx.needs_input_grad().by.then(|| dy * x))
    }
}

/// The sum of a list, and its first tensor doubled.
#[py_layer(export)]
impl Total {
    type Saved = Tensor<f64>;
    pub(crate) fn forward(
        ctx: &mut ForwardContext<Self>,
        xs: &[&Tensor<f64>],
    ) -> (Tensor<f64>, Tensor<f64>) {
        ctx.save_for_backward(xs[0]);
        let sum = xs.iter().skip(1).fold(xs[0].clone(), |sum, x| sum + *x);
        (sum, xs[0] * 2.0)
    }
    fn backward(
        ctx: &BackwardContext<Self>,
        dsum: Option<&Tensor<f64>>,
        dtwice: Option<&Tensor<f64>>,
    ) -> Vec<Option<Tensor<f64>>> {
        let zeros = Tensor::zeros_like(ctx.saved_tensor());
        let dsum = dsum.unwrap_or(&zeros);
        let first = dsum + dtwice.unwrap_or(&zeros) * 2.0;
        let rest = ctx.needs_input_grad().xs.len() - 1;
        std::iter::once(Some(first)).chain(vec![Some(dsum.clone()); rest]).collect()
    }
}

/// Panics, in forward below zero, in backward above.
#[py_layer(export)]
impl Panics {
    pub(crate) fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f32>) -> Tensor<f32> {
        assert!(x.to_vec().iter().all(|x| *x >= 0.0), "a negative number");
        x + 1.0
    }
    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f32>) -> Tensor<f32> {
        assert!(dy.len() > 100, "too few elements");
        dy.clone()
    }
}

/// Its backward is not to be differentiated.
#[py_layer(export, once_differentiable)]
impl Once {
    type Saved = Tensor<f64>;
    pub(crate) fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.square()
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor() * 2.0
    }
}

/// Counts the numbers above a limit.
#[py_layer(export, no_grad)]
impl Above {
    pub(crate) fn forward(
        _: &mut ForwardContext<Self>,
        x: &Tensor<f32>,
        limit: f32,
        strict: bool,
        name: &str,
    ) -> (Tensor<f32>, Tensor<i64>) {
        let above = if strict { x.gt_scalar(limit) } else { x.ge_scalar(limit) };
        let above = above.cast::<f32>() * name.len() as f32;
        (above.clone(), above.cast::<i64>())
    }
}

pub(crate) fn tensor<T: Element>(tensor: Tensor<T>) -> Arg {
    Arg::One(tensor.into())
}

pub(crate) type Given<'a> = &'a [Option<AnyTensor>];

/// The text of the error of a call.
#[track_caller]
pub(crate) fn refusal<R>(result: autograd_core::Result<R>) -> String {
    match result {
        Ok(_) => panic!("the call was accepted"),
        Err(error) => autograd_core::host::words(&error),
    }
}

pub(crate) fn numbers(tensor: &AnyTensor) -> Vec<f64> {
    match tensor {
        AnyTensor::Float32(t) => t.to_vec().into_iter().map(f64::from).collect(),
        AnyTensor::Float64(t) => t.to_vec(),
        other => panic!("no floats: {other:?}"),
    }
}

pub(crate) fn forward(op: &dyn DynOp, args: &[Arg]) -> (Vec<AnyTensor>, Kept) {
    op.forward(args, &[]).expect("the call fits")
}
