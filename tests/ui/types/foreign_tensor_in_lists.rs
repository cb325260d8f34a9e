// another type that is called `Tensor`, in lists and by name
mod other {
    pub struct Tensor<T>(pub T);
}
use autograd_core::{BackwardContext, ForwardContext, py_layer};
use other::Tensor;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[Tensor<f64>], y: Option<&Tensor<f64>>) -> Vec<Tensor<f64>> {
        let _ = (xs, y);
        Vec::new()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &[Tensor<f64>]) -> (Vec<Tensor<f64>>, Option<Tensor<f64>>) {
        let _ = dy;
        (Vec::new(), Some(Tensor(1.0)))
    }
}

fn main() {}
