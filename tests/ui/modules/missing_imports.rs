// names that the file does not import
use autograd_core::static_graph::py_func;
use autograd_core::{Tensor, py_layer};

#[py_layer]
impl Doubled {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer(elementwise)]
impl Halved {
    fn forward(x: Real) -> Real {
        x / 2.0
    }
}

#[py_func]
impl Same {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        x.to_owned()
    }
}

fn main() {
    let x = Tensor::from([1.0]);
    let _ = Doubled::apply(&x);
    let _ = Halved::with().x(&x).apply();
}
