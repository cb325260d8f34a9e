//! What families of ops give each element type: declared here, implemented where the ops are
//! ([`instances`](super::instances), [`kernels`](super::nn)).

use super::names::Caller;
use super::nn::window::{Convolution, Plan};
use crate::array::{Storable, Value};
use crate::error::Result;
use crate::graph::{Element, Tensor};

/// Ops on floats.
pub(crate) trait OfFloats: Element {
    fn leaky_relu(x: &Tensor<Self>, slope: f64, at: Caller) -> Tensor<Self>;
    fn elu(x: &Tensor<Self>, alpha: f64, at: Caller) -> Tensor<Self>;
    fn smooth_l1_loss(x: &Tensor<Self>, target: &Tensor<Self>, at: Caller) -> Result<Tensor<Self>>;
    fn linear(
        x: &Tensor<Self>,
        weight: &Tensor<Self>,
        bias: Option<&Tensor<Self>>,
        at: Caller,
    ) -> Result<Tensor<Self>>;
    fn binary_cross_entropy(
        logits: &Tensor<Self>,
        targets: &Tensor<Self>,
        at: Caller,
    ) -> Result<Tensor<Self>>;
    #[cfg(feature = "nn")]
    fn batch_norm(
        x: &Tensor<Self>,
        affine: [&Tensor<Self>; 2],
        eps: f64,
    ) -> (Tensor<Self>, [Tensor<Self>; 2]);
    #[cfg(feature = "nn")]
    fn batch_norm_by(
        x: &Tensor<Self>,
        affine: [&Tensor<Self>; 2],
        stats: [&Tensor<Self>; 2],
        eps: f64,
    ) -> Tensor<Self>;
    fn var(x: &Tensor<Self>, axes: &[isize], correction: usize) -> Result<Tensor<Self>>;
    fn std(x: &Tensor<Self>, axes: &[isize], correction: usize) -> Result<Tensor<Self>>;
}

/// Loops over rows of `n` elements, and over windows of pictures.
pub(crate) trait Kernels: Storable {
    fn softmax(rows: &mut [Self], from: &[Self], n: usize);
    fn log_softmax(rows: &mut [Self], from: &[Self], n: usize);
    fn softmax_pull(dy: &mut [Self], from: Option<&Value<Self>>, y: &[Self], n: usize);
    fn log_softmax_pull(dy: &mut [Self], from: Option<&Value<Self>>, y: &[Self], n: usize);
    fn log_sum_exp(rows: &[Self], n: usize, out: &mut [Self]);
    fn softmax_scaled(rows: &mut [Self], sums: &[Self], n: usize, scale: Self);
    fn normalize(x: &[Self], affine: [&[Self]; 2], eps: Self, results: [&mut [Self]; 2]);
    fn normalize_pull(
        dy: &mut [Self],
        from: Option<&Value<Self>>,
        kept: [&[Self]; 3],
    ) -> Value<Self>;
    fn keep_where_above(data: &mut [Self], limit: Self, scale: Self);
    fn convolve(of: &Convolution, x: &[Self], w: &[Self], y: &mut [Self]);
    fn convolve_back(of: &Convolution, w: &[Self], dy: &[Self], dx: &mut [Self]);
    fn convolve_weights(of: &Convolution, x: &[Self], dy: &[Self], dw: &mut [Self]);
    fn unfold(plan: &Plan, data: &[Self], out: &mut Vec<Self>);
    fn fold(plan: &Plan, columns: &[Self], out: &mut [Self]);
    fn maxima(plan: &Plan, x: &[Self], best: &mut [Self], places: &mut [i32]);
    fn put_back(plan: &Plan, places: &[i32], dy: &[Self], dx: &mut [Self]);
    fn pick(plan: &Plan, places: &[i32], x: &[Self], y: &mut [Self]);
}
