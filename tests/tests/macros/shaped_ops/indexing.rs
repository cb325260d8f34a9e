//! Inputs of integers: embeddings, gathering, scattering.

use autograd_core::prelude::*;

/// The sum of the rows of each bag.
#[py_layer(shapes(table: [v, d], index: [bags, l] -> [bags, d]), check(index = _ in 0..v))]
impl EmbeddingBag {
    type Saved = Tensor<i64>;
    type Attrs = usize;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        table: &Tensor<f64>,
        #[stop_gradient] index: &Tensor<i64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward(index);
        ctx.set_attrs(table.shape()[0]);
        let [bags, l] = *index.shape() else { unreachable!() };
        table.index_select(0, &index.flatten()).reshape([bags, l, table.shape()[1]]).sum_axes(1)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let index = ctx.saved_tensor();
        let &[_, l] = index.shape() else { unreachable!() };
        let each = dy.repeat_interleave(l, 0);
        Tensor::zeros([*ctx.attrs(), dy.shape()[1]]).index_add(0, &index.flatten(), &each)
    }
}

/// Elements of each row, by index.
#[py_layer(shapes(x: [b, n], index: [b, k] -> [b, k]), check(index = _ in 0..n))]
impl<T: Float> Gather<T> {
    type Saved = Tensor<i64>;
    type Attrs = [usize; 2];

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<T>,
        #[stop_gradient] index: &Tensor<i64>,
    ) -> Tensor<T> {
        ctx.save_for_backward(index);
        ctx.set_attrs([x.shape()[0], x.shape()[1]]);
        x.gather(1, index)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        Tensor::zeros(*ctx.attrs()).scatter_add(1, ctx.saved_tensor(), dy)
    }
}

/// Rows added at their places among `n`.
#[py_layer(shapes(rows: [l, d], index: [l] -> [n, d]), check(index = _ in 0..n), check(n = 3, index = _ in 0..n))]
impl ScatterRows {
    type Saved = Tensor<i64>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        rows: &Tensor<f64>,
        #[stop_gradient] index: &Tensor<i64>,
        n: usize,
    ) -> Tensor<f64> {
        ctx.save_for_backward(index);
        let out = Tensor::zeros([n, rows.shape()[1]]);
        out.index_add(0, index, rows)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.index_select(0, ctx.saved_tensor())
    }
}

/// Cross entropy with classes, by a one-hot matrix.
#[py_layer(shapes(logits: [b, classes], target: [b] -> []), check(target = _ in 0..classes))]
impl CrossEntropy {
    type Saved = (Tensor<f64>, Tensor<i64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        logits: &Tensor<f64>,
        #[stop_gradient] target: &Tensor<i64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((logits, target));
        let picked = logits.log_softmax(1).gather(1, &target.unsqueeze(1));
        -picked.mean()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (logits, target) = ctx.saved_tensor();
        let classes = logits.dim(1);
        let hot: Tensor<f64> = target.one_hot(classes);
        dy * (logits.softmax(1) - hot) / logits.shape()[0] as f64
    }
}

/// The mean of each segment.
#[py_layer(
    once_differentiable,
    shapes(x: [l, d], of: [l] -> [segments, d]),
    check(of = _ in 0..segments, segments = 2)
)]
impl SegmentMean {
    type Saved = (Tensor<i64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[stop_gradient] of: &Tensor<i64>,
        segments: usize,
    ) -> Tensor<f64> {
        let counts = of.bincount(segments).cast::<f64>().maximum(1.0).unsqueeze(1);
        ctx.save_for_backward((of, &counts));
        x.segment_sum(of, segments) / counts
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (of, counts) = ctx.saved_tensor();
        (dy / counts).index_select(0, of)
    }
}

/// The state of each sequence at its last position.
#[py_layer(once_differentiable, shapes(states: [b, s, d], last: [b] -> [b, d]), check(last = _ in 0..s))]
impl LastState {
    type Saved = Tensor<f64>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        states: &Tensor<f64>,
        #[stop_gradient] last: &Tensor<i64>,
    ) -> Tensor<f64> {
        let hot = last.one_hot::<f64>(states.shape()[1]);
        let y = (states * hot.unsqueeze(-1)).sum_axes([1]);
        ctx.save_for_backward(hot);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        ctx.saved_tensor().unsqueeze(2) * dy.unsqueeze(1)
    }
}

/// The largest elements of each row, and where they are.
#[py_layer(shapes(x: [b, n] -> ([b, k], [b, k])), check(k = 2, n = 5))]
impl TopK {
    type Saved = Tensor<i64>;
    type Attrs = Vec<usize>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        k: usize,
    ) -> (Tensor<f64>, Tensor<i64>) {
        let (values, index) = x.topk(k, -1);
        ctx.save_for_backward(&index);
        ctx.set_attrs(x.shape().to_vec());
        (values, index)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let zeros = Tensor::zeros(ctx.attrs());
        zeros.scatter_add(-1, ctx.saved_tensor(), dy)
    }
}

/// The two ends of each edge of a graph, side by side.
#[py_layer(shapes(nodes: [n, d], edges: [2, e] -> [e, 2 * d]), check(edges = _ in 0..n))]
impl EdgeFeatures {
    type Saved = (Tensor<f64>, Tensor<i64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        nodes: &Tensor<f64>,
        #[stop_gradient] edges: &Tensor<i64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((nodes, edges));
        let ends = [0, 1].map(|end| nodes.index_select(0, &edges.select(0, end)));
        Tensor::concat(&ends, 1)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (nodes, edges) = ctx.saved_tensor();
        let d = nodes.shape()[1];
        let mut sum = Tensor::zeros_like(nodes);
        for end in 0..2 {
            let part = dy.narrow(1, end * d, d);
            sum = sum.index_add(0, &edges.select(0, end), &part);
        }
        Grads { nodes: sum }
    }
}

/// A step of message passing: a sum over neighbours, then a weight.
#[py_layer(shapes(x: [n, d], w: [d, h], from: [e], to: [e] -> [n, h]), check(from = _ in 0..n, to = _ in 0..n))]
impl GraphConv {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<i64>, Tensor<i64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        #[stop_gradient] from: &Tensor<i64>,
        #[stop_gradient] to: &Tensor<i64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, w, from, to));
        let messages = x.index_select(0, from);
        Tensor::zeros(x.shape()).index_add(0, to, &messages).matmul(w)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w, from, to) = ctx.saved_tensor();
        let pass = |x: &Tensor<f64>, from: &Tensor<i64>, to: &Tensor<i64>| {
            Tensor::zeros_like(x).index_add(0, to, &x.index_select(0, from))
        };
        let dx = pass(&dy.matmul(&w.t()), to, from);
        Grads { x: dx, w: pass(x, from, to).t().matmul(dy) }
    }
}
