//! What the ops of neural networks ask of an element type: declared here, implemented where the loops
//! are ([`kernels`](super::nn)).

use super::nn::window::{Convolution, Plan};
use crate::array::{Storable, Value};

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
