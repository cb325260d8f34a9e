// several ops with wrong heads: each is reported, and each can be called
use autograd_core::prelude::*;

#[py_layer]
impl<T: Float> Unused {
    type Saved = Tensor<T>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        ctx.save_for_backward(x);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * ctx.saved_tensor()
    }
}

#[py_layer]
impl module::Far {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[default(2.0)] by: f64,
    ) -> Tensor<f64> {
        x * by
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * 2.0 }
    }
}

#[py_layer]
impl Several<3, 'a, Vec<u8>> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer]
impl Default for OfTrait {
    fn default() -> Self {
        OfTrait
    }
}

#[py_layer]
struct Struct;

#[py_layer]
impl Bodiless;

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _: Tensor<f64> = Unused::<f64>::with().x(&x).apply();
    let _: Tensor<f64> = Far::with().x(&x).apply();
    let _: Tensor<f64> = Several::<3, f64>::apply(&x);
    let (a, b) = OfTrait::apply(&x, 2);
    let _ = Struct::with().x(&x).y(a).apply() * b;
}
