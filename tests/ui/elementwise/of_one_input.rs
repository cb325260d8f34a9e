// Formulas of one input.
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
CASE
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}

//= some input must have a gradient
    fn forward<L: Lane>(#[stop_gradient] x: Real<L>) -> Real<L> {
        x
    }

//= `elementwise` on an op of tensors
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x * x
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: ctx.saved_tensor() * dy * 2.0 }
    }

//= a formula cannot branch on a value: `select` is named
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        if x > 0.0 { x } else { 0.1 * x }
    }

//= a formula cannot branch on a mask
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        if x.gt(0.0) { x } else { 0.1 * x }
    }

//= a comparison of two numbers is no condition either
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        let y = x * x;
        if x == y { x } else { y }
    }

//= a formula has no context
    fn forward<L: Lane>(_ctx: &mut ForwardContext<Self>, x: Real<L>) -> Real<L> {
        x
    }

//= `backwards` is a slip of `backward`
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }

    fn backwards<L: Lane>(x: Real<L>, dy: Real<L>) -> Real<L> {
        2.0 * x * dy
    }

//= backward must take the gradient of the output
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }

    fn backward<L: Lane>(x: Real<L>) -> Real<L> {
        2.0 * x
    }

//= backward returns nothing
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }

    fn backward<L: Lane>(x: Real<L>, dy: Real<L>) {
        let _ = dy * x;
    }

//= a formula has no `self`
    fn forward<L: Lane>(&self, x: Real<L>) -> Real<L> {
        x
    }

//= backward returns a plain number
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }

    fn backward<L: Lane>(x: Real<L>, dy: Real<L>) -> f64 {
        let _ = dy * x;
        2.0
    }

//= forward returns a plain number
    fn forward<L: Lane>(x: Real<L>) -> f64 {
        let _ = x;
        1.0
    }

//= forward returns nothing
    fn forward<L: Lane>(x: Real<L>) {
        let _ = x;
    }

//= several outputs have `dy0` and `dy1`, not `dy`
    fn forward<L: Lane>(x: Real<L>) -> (Real<L>, Real<L>) {
        (x, x * x)
    }

    fn backward<L: Lane>(x: Real<L>, dy: Real<L>) -> Real<L> {
        dy * x
    }

//= a formula computes with numbers, not with tensors
    fn forward<L: Lane>(x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

//= a lane that nothing declares
    fn forward(x: Real<L>) -> Real<L> {
        x * x
    }
