// The compiler proves the types that the macro cannot see.
use autograd_core::prelude::*;

type Single = Tensor<f32>;
type Maybe<'a> = Option<&'a Tensor<f32>>;

#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Single, dx: Maybe<'_>) -> Single {
        let _ = dx;
        Tensor::from(1.0f32)
    }
}

fn main() {
    Double::apply(&Tensor::from(1.0));
}
