// gradients and outputs whose shape is not the line's
use autograd_core::prelude::*;

// 1: swapped gradients
#[py_layer(shapes(x: [b, n], w: [n, m] -> [b, m]))]
impl Swapped {
    type Saved = (Tensor<f64>, Tensor<f64>);
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x.matmul(w)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (x, w) = ctx.saved_tensor();
        (x.t().matmul(dy), dy.matmul(&w.t()))
    }
}

// 2: the bias's gradient is not summed
#[py_layer(shapes(x: [b.., n], w: [n, m], bias: [m] -> [b.., m]))]
impl Unsummed {
    type Saved = (Tensor<f64>, Tensor<f64>);
    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        bias: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x.matmul(w) + bias
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let n = w.shape()[0] as isize;
        let m = w.shape()[1] as isize;
        Grads {
            x: dy.matmul(&w.t()),
            w: x.reshape([-1, n]).t().matmul(&dy.reshape([-1, m])),
            bias: dy.clone(),
        }
    }
}

// 3: a transpose is missing
#[py_layer(shapes(x: [b, n], w: [n, m] -> [b, m]))]
impl NotTransposed {
    type Saved = (Tensor<f64>, Tensor<f64>);
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x.matmul(w)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        Grads { x: dy.matmul(w), w: x.t().matmul(dy) }
    }
}

// 4: the gradient is transposed
#[py_layer(shapes(x: [b, n], w: [n, m] -> [b, m]))]
impl Turned {
    type Saved = (Tensor<f64>, Tensor<f64>);
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x.matmul(w)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        Grads { x: dy.matmul(&w.t()), w: dy.t().matmul(x) }
    }
}

// 5: layer norm, scale's gradient summed over the wrong axis
#[py_layer(shapes(x: [b, n], scale: [n] -> [b, n]))]
impl LayerNorm {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);
    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        scale: &Tensor<f64>,
    ) -> Tensor<f64> {
        let c = x - x.mean_axes_keep(&[-1]);
        let r = (c.square().mean_axes_keep(&[-1]) + 1e-5).sqrt().recip();
        let h = &c * &r;
        ctx.save_for_backward((scale, &h, &r));
        &h * scale
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (scale, h, r) = ctx.saved_tensor();
        let dh = dy * scale;
        let dx = r * (&dh - dh.mean_axes_keep(&[-1]) - h * (&dh * h).mean_axes_keep(&[-1]));
        Grads { x: dx, scale: (dy * h).sum_axes(&[1]) }
    }
}

// 6: layer norm, an axis is not kept
#[py_layer(shapes(x: [b, n], scale: [n] -> [b, n]))]
impl NotKept {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);
    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        scale: &Tensor<f64>,
    ) -> Tensor<f64> {
        let c = x - x.mean_axes_keep(&[-1]);
        let r = (c.square().mean_axes_keep(&[-1]) + 1e-5).sqrt().recip();
        let h = &c * &r;
        ctx.save_for_backward((scale, &h, &r));
        &h * scale
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (scale, h, r) = ctx.saved_tensor();
        let dh = dy * scale;
        let dx = r * (&dh - dh.mean_axes(&[-1]) - h * (&dh * h).mean_axes_keep(&[-1]));
        Grads { x: dx, scale: (dy * h).sum_axes(&[0]) }
    }
}

// 7: attention, the gradients of q and k swapped
#[py_layer(shapes(q: [b.., s, d], k: [b.., t, d], v: [b.., t, e] -> [b.., s, e]))]
impl AttentionSwapped {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>);
    fn forward(
        ctx: &mut ForwardContext<Self>,
        q: &Tensor<f64>,
        k: &Tensor<f64>,
        v: &Tensor<f64>,
    ) -> Tensor<f64> {
        let p = q.matmul(&k.t()).softmax(-1);
        ctx.save_for_backward((q, k, v, &p));
        p.matmul(v)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (q, k, v, p) = ctx.saved_tensor();
        let dp = dy.matmul(&v.t());
        let ds = p * (&dp - (&dp * p).sum_axes_keep(&[-1]));
        Grads { k: ds.matmul(k), q: ds.t().matmul(q), v: p.t().matmul(dy) }
    }
}

// 8: attention, p where p.t() is meant
#[py_layer(shapes(q: [b.., s, d], k: [b.., t, d], v: [b.., t, e] -> [b.., s, e]))]
impl AttentionTurned {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>);
    fn forward(
        ctx: &mut ForwardContext<Self>,
        q: &Tensor<f64>,
        k: &Tensor<f64>,
        v: &Tensor<f64>,
    ) -> Tensor<f64> {
        let p = q.matmul(&k.t()).softmax(-1);
        ctx.save_for_backward((q, k, v, &p));
        p.matmul(v)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (q, k, v, p) = ctx.saved_tensor();
        let dp = dy.matmul(&v.t());
        let ds = p * (&dp - (&dp * p).sum_axes_keep(&[-1]));
        Grads { q: ds.matmul(k), k: ds.t().matmul(q), v: p.matmul(dy) }
    }
}

// 9: embedding, the gradient of the rows in place of the table
#[py_layer(shapes(table: [v, d], index: [l] -> [l, d]))]
impl Embedding {
    type Saved = Tensor<i64>;
    fn forward(
        ctx: &mut ForwardContext<Self>,
        table: &Tensor<f64>,
        #[stop_gradient] index: &Tensor<i64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward(index);
        table.index_select(0, index)
    }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.clone()
    }
}

// 10: outer product, both gradients swapped
#[py_layer(shapes(a: [n], b: [m] -> [n, m]))]
impl Outer {
    type Saved = (Tensor<f64>, Tensor<f64>);
    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((a, b));
        a.outer(b)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (a, b) = ctx.saved_tensor();
        Grads { a: (dy * a.unsqueeze(1)).sum_axes(&[0]), b: (dy * b).sum_axes(&[1]) }
    }
}

// 11: the output is not what the line says
#[py_layer(shapes(x: [n, m] -> [n]))]
impl OtherOutput {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.sum_axes(&[0])
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.unsqueeze(1) * 2.0
    }
}

fn main() {}
