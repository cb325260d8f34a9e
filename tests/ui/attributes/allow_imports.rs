// has no warning `never_a_gradient`
// Imports that only the op uses are not called unused beside the error.
use autograd_core::{BackwardContext, ForwardContext, Tensor, py_layer};

#[py_layer(allow(never_a_gradient))]
impl Twice {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {
    println!("{}", Twice::apply(&Tensor::from(1.0)));
}
