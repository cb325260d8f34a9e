//! Attention in blocks of queries and keys, with a causal mask (T. Dao and others, 2022): the matrix of all
//! scores never exists, neither in forward nor in backward.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::prelude::*;
use autograd_core::{assert_close, grad, gradcheck};

#[derive(Saved)]
struct Kept<T: Float> {
    q: Tensor<T>,
    k: Tensor<T>,
    v: Tensor<T>,
    out: Tensor<T>,
    /// The logarithm of the sum of a query's exponentials: all that backward needs of the scores.
    log_sum: Tensor<T>,
}

/// `softmax(q kᵀ / sqrt(d)) v`; with `causal`, a query sees only keys up to its own position.
#[py_layer(once_differentiable, shapes(q: [b.., n, d], k: [b.., m, d], v: [b.., m, e] -> [b.., n, e]))]
impl<T: Float> FlashAttention<T> {
    type Saved = Kept<T>;
    type Attrs = (usize, bool);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        q: &Tensor<T>,
        k: &Tensor<T>,
        v: &Tensor<T>,
        #[default(16)] block: usize,
        #[default(false)] causal: bool,
    ) -> Tensor<T> {
        let (mut outs, mut log_sums) = (Vec::new(), Vec::new());
        for (i, rows) in blocks(q.dim(-2), block) {
            let query = q.narrow(-2, i, rows);
            // The running maximum, sum of exponentials and weighted sum of values.
            let mut top = Tensor::full_like(&query.narrow(-1, 0, 1), f64::NEG_INFINITY);
            let mut sum = Tensor::zeros_like(&top);
            let mut out = Tensor::zeros([1]);
            for (j, columns) in blocks(k.dim(-2), block) {
                if causal && j >= i + rows {
                    break;
                }
                let scores = scores(&query, &k.narrow(-2, j, columns), i, j, causal);
                let new_top = top.maximum(scores.max_axes_keep(-1));
                let weights = (scores - &new_top).exp();
                let shrink = (top - &new_top).exp();
                sum = sum * &shrink + weights.sum_axes_keep(-1);
                out = out * shrink + weights.matmul(&v.narrow(-2, j, columns));
                top = new_top;
            }
            outs.push(out / &sum);
            log_sums.push(top + sum.ln());
        }
        let (out, log_sum) = (Tensor::concat(&outs, -2), Tensor::concat(&log_sums, -2));
        let [q, k, v] = [q, k, v].map(Tensor::clone);
        ctx.save_for_backward(Kept { q, k, v, out: out.clone(), log_sum });
        ctx.set_attrs((block, causal));
        out
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Grads {
        let (Kept { q, k, v, out, log_sum }, &(block, causal)) = (ctx.saved_tensor(), ctx.attrs());
        let scale = 1.0 / (q.dim(-1) as f64).sqrt();
        let dot = (dy * out).sum_axes_keep(-1);
        let queries = blocks(q.dim(-2), block);
        let mut dq: Vec<_> =
            queries.iter().map(|&(i, n)| Tensor::zeros_like(&q.narrow(-2, i, n))).collect();
        let (mut dk, mut dv) = (Vec::new(), Vec::new());
        for (j, columns) in blocks(k.dim(-2), block) {
            let (key, value) = (k.narrow(-2, j, columns), v.narrow(-2, j, columns));
            let (mut dkey, mut dvalue) = (Tensor::zeros_like(&key), Tensor::zeros_like(&value));
            for (&(i, rows), dquery) in queries.iter().zip(&mut dq) {
                if causal && j >= i + rows {
                    continue;
                }
                let (query, dy) = (q.narrow(-2, i, rows), dy.narrow(-2, i, rows));
                let scores = scores(&query, &key, i, j, causal);
                let weights = (scores - log_sum.narrow(-2, i, rows)).exp();
                dvalue += weights.t().matmul(&dy);
                let dweights = dy.matmul(&value.t()) - dot.narrow(-2, i, rows);
                let dscores = weights * dweights * scale;
                dkey += dscores.t().matmul(&query);
                *dquery += dscores.matmul(&key);
            }
            dk.push(dkey);
            dv.push(dvalue);
        }
        let [q, k, v] = [dq, dk, dv].map(|parts| Tensor::concat(&parts, -2));
        Grads { q, k, v }
    }
}

/// Start and length of each block.
fn blocks(n: usize, block: usize) -> Vec<(usize, usize)> {
    (0..n).step_by(block).map(|i| (i, block.min(n - i))).collect()
}

fn scores<T: Float>(
    query: &Tensor<T>,
    key: &Tensor<T>,
    i: usize,
    j: usize,
    causal: bool,
) -> Tensor<T> {
    let scores = query.matmul(&key.t()) / (query.dim(-1) as f64).sqrt();
    if !causal {
        return scores;
    }
    let all = Tensor::<bool>::ones([query.dim(-2), key.dim(-2)]);
    scores.masked_fill(&all.triu(i as isize - j as isize + 1), f64::NEG_INFINITY)
}

fn in_one_piece(q: &Tensor<f64>, k: &Tensor<f64>, v: &Tensor<f64>, causal: bool) -> Tensor<f64> {
    scores(q, k, 0, 0, causal).softmax(-1).matmul(v)
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(1);
    let [q, k, v] = [(); 3].map(|()| Tensor::<f64>::randn([2, 3, 10, 4]));
    for x in [&q, &k, &v] {
        x.set_stop_gradient(false);
    }
    let dy = Tensor::<f64>::randn([2, 3, 10, 4]);
    for causal in [false, true] {
        for block in [3, 4, 16] {
            let y = FlashAttention::with().q(&q).k(&k).v(&v).block(block).causal(causal).apply();
            let expected = in_one_piece(&q, &k, &v, causal);
            assert_close!(y, expected, rtol = 1e-12, atol = 1e-12);
            let ours = grad(&[&(y * &dy).sum()], &[&q, &k, &v])?;
            let theirs = grad(&[&(expected * &dy).sum()], &[&q, &k, &v])?;
            for (ours, theirs) in ours.iter().zip(&theirs) {
                assert_close!(ours, theirs, rtol = 1e-10, atol = 1e-12);
            }
            println!("blocks of {block}, causal {causal}: as in one piece, with all gradients");
        }
    }
    let small = [&q, &k, &v].map(|x| x.detach().narrow(0, 0, 1).narrow(1, 0, 1));
    gradcheck(|x| FlashAttention::apply(&x[0], &x[1], &x[2], 4, true), &small)?;
    println!("gradcheck passes");
    let error = FlashAttention::try_apply(&q, &k, &v.t(), 4, true).unwrap_err();
    println!("{error}");
    Ok(())
}
