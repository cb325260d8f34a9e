//! Attention and what belongs to it.

use autograd_core::prelude::*;

fn softmax_backward(p: &Tensor<f64>, dp: &Tensor<f64>) -> Tensor<f64> {
    p * (dp - (dp * p).sum_axes_keep(-1))
}

/// Attention of queries to keys and values, scaled.
#[py_layer(shapes(q: [b.., s, d], k: [b.., t, d], v: [b.., t, e] -> [b.., s, e]), check())]
impl Attention {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        q: &Tensor<f64>,
        k: &Tensor<f64>,
        v: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((q, k, v));
        let scale = 1.0 / (q.dim(-1) as f64).sqrt();
        (q.matmul(&k.t()) * scale).softmax(-1).matmul(v)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (q, k, v) = ctx.saved_tensor();
        let scale = 1.0 / (q.dim(-1) as f64).sqrt();
        let p = (q.matmul(&k.t()) * scale).softmax(-1);
        let dv = p.t().matmul(dy);
        let dp = dy.matmul(&v.t());
        let ds = &p * (&dp - (&dp * &p).sum_axes_keep(&[-1])) * scale;
        Grads { q: ds.matmul(k), k: ds.t().matmul(q), v: dv }
    }
}

/// Attention under a mask that all batches share.
#[py_layer(shapes(q: [b, s, d], k: [b, t, d], v: [b, t, d], mask: [s, t] -> [b, s, d]), check())]
impl MaskedAttention {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<bool>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        q: &Tensor<f64>,
        k: &Tensor<f64>,
        v: &Tensor<f64>,
        #[stop_gradient] mask: &Tensor<bool>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((q, k, v, mask));
        let scores = q.matmul(&k.swap_axes(-1, -2)).masked_fill(mask, -1e9);
        scores.softmax(-1).matmul(v)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (q, k, v, mask) = ctx.saved_tensor();
        let p = q.matmul(&k.t()).masked_fill(mask, -1e9).softmax(-1);
        let ds = softmax_backward(&p, &dy.matmul(&v.t())).masked_fill(mask, 0.0);
        Grads { q: ds.matmul(k), k: ds.t().matmul(q), v: p.t().matmul(dy) }
    }
}

/// Attention of each position to itself and what came before.
#[py_layer(shapes(q: [s, d], k: [s, d], v: [s, e] -> [s, e]), check())]
impl CausalAttention {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        q: &Tensor<f64>,
        k: &Tensor<f64>,
        v: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((q, k, v));
        Self::weights(q, k).matmul(v)
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>, Tensor<f64>) {
        let (q, k, v) = ctx.saved_tensor();
        let p = Self::weights(q, k);
        let ds = softmax_backward(&p, &dy.matmul(&v.t()));
        (ds.matmul(k), ds.t().matmul(q), p.t().matmul(dy))
    }

    fn weights(q: &Tensor<f64>, k: &Tensor<f64>) -> Tensor<f64> {
        let s = q.shape()[0];
        let later = Tensor::<f64>::ones([s, s]).triu(1).gt_scalar(0.5);
        q.matmul(&k.t()).masked_fill(&later, f64::NEG_INFINITY).softmax(-1)
    }
}

/// Self-attention in several heads, of projections that are one tensor.
#[py_layer(shapes(qkv: [b, s, 3 * heads * d] -> [b, s, heads * d]), check(heads = 2))]
impl MultiHead {
    type Saved = Tensor<f64>;
    type Attrs = usize;

    fn forward(ctx: &mut ForwardContext<Self>, qkv: &Tensor<f64>, heads: usize) -> Tensor<f64> {
        ctx.save_for_backward(qkv);
        ctx.set_attrs(heads);
        let [q, k, v] = Self::split(qkv, heads);
        Self::merge(&q.matmul(&k.t()).softmax(-1).matmul(&v))
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let heads = *ctx.attrs();
        let [q, k, v] = Self::split(ctx.saved_tensor(), heads);
        let [b, s, c] = *dy.shape() else { unreachable!() };
        let dy = dy.reshape([b, s, heads, c / heads]).permute(&[0, 2, 1, 3]);
        let p = q.matmul(&k.t()).softmax(-1);
        let ds = softmax_backward(&p, &dy.matmul(&v.t()));
        let parts = [ds.matmul(&k), ds.t().matmul(&q), p.t().matmul(&dy)];
        Tensor::concat(&parts.map(|part| Self::merge(&part)), -1)
    }

    fn split(qkv: &Tensor<f64>, heads: usize) -> [Tensor<f64>; 3] {
        let &[b, s, c] = qkv.shape() else { unreachable!() };
        let all = qkv.reshape([b, s, 3, heads, c / 3 / heads]).permute(&[2, 0, 3, 1, 4]);
        std::array::from_fn(|i| all.select(0, i))
    }

    fn merge(y: &Tensor<f64>) -> Tensor<f64> {
        let &[b, h, s, d] = y.shape() else { unreachable!() };
        y.permute(&[0, 2, 1, 3]).reshape([b, s, h * d])
    }
}

/// Scores of queries in more heads than the keys have.
#[py_layer(shapes(q: [b, groups * h, s, d], k: [b, groups, t, d] -> [b, groups * h, s, t]), check())]
impl GroupedQuery {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, q: &Tensor<f64>, k: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((q, k));
        let h = q.shape()[1] / k.shape()[1];
        q.matmul(&k.repeat_interleave(h, 1).t())
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (q, k) = ctx.saved_tensor();
        let &[b, g, t, d] = k.shape() else { unreachable!() };
        let h = q.shape()[1] / g;
        let dk = dy.t().matmul(q).reshape([b, g, h, t, d]).sum_axes(2);
        Grads { q: dy.matmul(&k.repeat_interleave(h, 1)), k: dk }
    }
}

/// Rotary embedding of positions.
#[py_layer(shapes(x: [b.., s, 2 * d], cos: [s, d], sin: [s, d] -> [b.., s, 2 * d]), check())]
impl Rotary {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[stop_gradient] cos: &Tensor<f64>,
        #[stop_gradient] sin: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((cos, sin));
        Self::rotate(x, cos, sin)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (cos, sin) = ctx.saved_tensor();
        Self::rotate(dy, cos, &-sin)
    }

    fn rotate(x: &Tensor<f64>, cos: &Tensor<f64>, sin: &Tensor<f64>) -> Tensor<f64> {
        let halves = x.split(2, -1);
        let (a, b) = (&halves[0], &halves[1]);
        Tensor::concat(&[a * cos - b * sin, a * sin + b * cos], -1)
    }
}

/// Linear biases (ALiBi): a slope of each head by the distance.
#[py_layer(shapes(scores: [b, h, s, t], slopes: [h] -> [b, h, s, t]), check())]
impl Alibi {
    fn forward(
        _: &mut ForwardContext<Self>,
        scores: &Tensor<f64>,
        slopes: &Tensor<f64>,
    ) -> Tensor<f64> {
        let (s, t) = (scores.shape()[2], scores.shape()[3]);
        scores + slopes.reshape([-1, 1, 1]) * Self::distances(s, t)
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let [.., s, t] = *dy.shape() else { unreachable!() };
        Grads { scores: dy.clone(), slopes: (dy * Self::distances(s, t)).sum_axes([0, 2, 3]) }
    }

    fn distances(s: usize, t: usize) -> Tensor<f64> {
        Tensor::arange(t).reshape([1, t]) - Tensor::arange(s).reshape([s, 1])
    }
}

/// Attention without a softmax, by positive features of queries and keys.
#[py_layer(shapes(q: [s, d], k: [t, d], v: [t, e] -> [s, e]), check())]
impl LinearAttention {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        q: &Tensor<f64>,
        k: &Tensor<f64>,
        v: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((q, k, v));
        let phi = |x: &Tensor<f64>| x.exp();
        let state = phi(k).t().matmul(v);
        phi(q).matmul(&state)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (q, k, v) = ctx.saved_tensor();
        let (fq, fk) = (q.exp(), k.exp());
        let state = fk.t().matmul(v);
        let dstate = fq.t().matmul(dy);
        Grads {
            v: fk.matmul(&dstate),
            k: v.matmul(&dstate.t()) * &fk,
            q: dy.matmul(&state.t()) * &fq,
        }
    }
}

/// A bias for each distance of two positions (T5).
#[py_layer(shapes(scores: [h, s, s], table: [h, 2 * s - 1] -> [h, s, s]), check())]
impl RelativeBias {
    type Attrs = usize;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        scores: &Tensor<f64>,
        table: &Tensor<f64>,
    ) -> Tensor<f64> {
        let s = scores.dim(-1);
        ctx.set_attrs(table.dim(1));
        let bias = table.index_select(1, &Self::places(s)).reshape([-1, s as isize, s as isize]);
        scores + bias
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let &[h, s, _] = dy.shape() else { panic!() };
        let table = Tensor::zeros([h, *ctx.attrs()]);
        let table = table.index_add(1, &Self::places(s), &dy.reshape([h, s * s]));
        Grads { scores: dy.clone(), table }
    }

    fn places(s: usize) -> Tensor<i64> {
        let at = |i: usize| (i / s + s - 1 - i % s) as i64;
        Tensor::from((0..s * s).map(at).collect::<Vec<_>>())
    }
}
