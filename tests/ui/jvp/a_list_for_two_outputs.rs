// The tangents of several outputs come in a tuple, not in a list.
use autograd_core::prelude::*;

#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (x * 2.0, x * 3.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, db: &Tensor<f64>) -> Tensor<f64> {
        da * 2.0 + db * 3.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dx * 2.0, dx * 3.0]
    }
}

fn main() {
    Double::apply(&Tensor::from(1.0));
}
