//! What the tests of several binaries share.

pub mod programs;

use autograd_core::prelude::*;

/// A leaf of these numbers that wants a gradient.
pub fn leaf(data: &[f64]) -> Tensor<f64> {
    wanting(Tensor::from(data))
}

/// A leaf of the same numbers that wants a gradient.
pub fn leaf_like<T: Float>(x: &Tensor<T>) -> Tensor<T> {
    wanting(x.detach())
}

/// The tensor, which now wants a gradient.
pub fn wanting<T: Float>(x: Tensor<T>) -> Tensor<T> {
    x.set_stop_gradient(false);
    x
}

/// The numbers of a leaf's gradient.
pub fn gradient<T: Float>(x: &Tensor<T>) -> Vec<T> {
    x.grad().expect("a gradient").to_vec()
}

/// The gradients of the sum of `f` at leaves of one number each.
pub fn gradients<const N: usize>(
    f: impl Fn(&[Tensor<f64>; N]) -> Tensor<f64>,
    at: [f64; N],
) -> [f64; N] {
    let leaves = at.map(|number| leaf(&[number]));
    f(&leaves).sum().backward().unwrap();
    leaves.map(|x| gradient(&x)[0])
}

/// Returns its input; the gradient is tripled, to show that backward ran.
#[py_layer]
impl Identity {
    pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.clone()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 3.0
    }
}
