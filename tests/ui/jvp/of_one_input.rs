// A `jvp` that does not fit its op of one input.
use autograd_core::prelude::*;

#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

CASE
}

fn main() {
    Double::apply(&Tensor::from(1.0));
}

//= `jvp` takes each input and its tangent, and nothing else.
    fn jvp(
        _ctx: &JvpContext<Self>,
        _x: &Tensor<f64>,
        dx: &Tensor<f64>,
        _dy: &Tensor<f64>,
    ) -> Tensor<f64> {
        dx * 2.0
    }

//= `#[stop_gradient]` and `#[cfg]` do not belong to `jvp`.
    #[cfg(unix)]
    fn jvp(
        #[default(1)] _ctx: &JvpContext<Self>,
        _x: &Tensor<f64>,
        #[stop_gradient] dx: &Tensor<f64>,
    ) -> Tensor<f64> {
        dx * 2.0
    }

//= The context of `jvp` comes by reference.
    fn jvp(_ctx: JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }

//= `jvp` needs the context first.
    fn jvp(_x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }

//= `jvp` only reads its context.
    fn jvp(_ctx: &mut JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }

//= `jvp` has a context of its own.
    fn jvp(_ctx: &BackwardContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }

//= `jvp` has no parameters of its own, and no `impl Trait`.
    fn jvp<T: Float>(
        _ctx: &JvpContext<Self>,
        _x: &Tensor<f64>,
        _dx: impl Into<Tensor<f64>>,
    ) -> Tensor<f64> {
        Tensor::from(2.0)
    }

//= `Grads` names inputs; `jvp` returns tangents of outputs.
    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Grads {
        Grads { x: dx * 2.0 }
    }

//= An input has the element type that it has in `forward`.
    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f32>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }

//= `jvp` takes the input and its tangent, not nothing.
    fn jvp(_ctx: &JvpContext<Self>) -> Tensor<f64> {
        Tensor::from(2.0)
    }

//= Undeclared values cannot be read.
    fn jvp(ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        let (a, b) = ctx.saved_tensor();
        dx * a * b
    }

//= `jvp` takes the input and its tangent.
    fn jvp(_ctx: &JvpContext<Self>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }

//= `jvp` is a plain function.
    async unsafe fn jvp(
        _ctx: &JvpContext<Self>,
        _x: &Tensor<f64>,
        dx: &Tensor<f64>,
    ) -> Tensor<f64> {
        dx * 2.0
    }

//= A tangent is returned by value.
    fn jvp<'a>(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &'a Tensor<f64>) -> &'a Tensor<f64> {
        dx
    }

//= A returned tangent has the element type of its output.
    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f32> {
        dx.cast::<f32>()
    }

//= An op has no values, so `jvp` has no `self`.
    fn jvp(&self, _ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }

//= A tangent has the element type of its input.
    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f32>) -> Tensor<f64> {
        dx.cast::<f64>() * 2.0
    }

//= A single tangent is returned without a tuple.
    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> (Tensor<f64>,) {
        (dx * 2.0,)
    }

//= An op has one `jvp`.
    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }

//= One output has one tangent.
    fn jvp(
        _ctx: &JvpContext<Self>,
        _x: &Tensor<f64>,
        dx: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>) {
        (dx * 2.0, dx * 2.0)
    }

//= `jvp` has no where clause of its own.
    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64>
    where
        f64: Copy,
    {
        dx * 2.0
    }
