// A tuple behind another name has a tangent for each output too.
use autograd_core::prelude::*;

type Three = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (x * 2.0, x * 3.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, db: &Tensor<f64>) -> Tensor<f64> {
        da * 2.0 + db * 3.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Three {
        (dx * 2.0, dx * 3.0, dx * 4.0)
    }
}

fn main() {
    Double::apply(&Tensor::from(1.0));
}
