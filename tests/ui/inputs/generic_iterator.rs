// tensors given by a parameter of `forward` that is an iterator
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward<I>(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, all: I) -> Tensor<f64>
    where
        I: IntoIterator<Item = Tensor<f64>>,
    {
        all.into_iter().fold(x.clone(), |sum, one| sum + one)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
