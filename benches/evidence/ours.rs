// The ops as this library writes them. A mistake is a line `// name: piece -> other`, for the op above it.
use autograd_core::prelude::*;

fn called(y: Tensor<f64>) {
    (y.square() * y).sum().backward().unwrap();
}

fn leaf<const N: usize>(shape: [usize; N]) -> Tensor<f64> {
    let x = Tensor::randn(shape);
    x.set_stop_gradient(false);
    x
}

// == tanh
#[py_layer(shapes(x: [n..] -> [n..]), check(x = [2, 3]))]
impl Op {
    type Saved = Tensor<f64>;
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let y = ctx.saved_tensor();
        dy * (1.0 - y.square())
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3])));
}
// a sign: dy * (1.0 - -> -dy * (1.0 -
// a term dropped: 1.0 - y.square() -> 1.0 - y
// dy ignored: dy * (1.0 - y.square()) -> 1.0 - y.square()
// another tensor saved: save_for_backward(&y) -> save_for_backward(x)
// another element type: dy * (1.0 - y.square()) -> (dy * (1.0 - y.square())).cast::<f32>()

// == product
#[py_layer(shapes(x: [n..], w: [n..] -> [n..]), check(x = [2, 3], w = [2, 3]))]
impl Op {
    type Saved = (Tensor<f64>, Tensor<f64>);
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x * w
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (x, w) = ctx.saved_tensor();
        (dy * w, dy * x)
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3]), &leaf([2, 3])));
}
// two gradients exchanged: (dy * w, dy * x) -> (dy * x, dy * w)
// a sign: (dy * w, dy * x) -> (dy * w, -dy * x)
// dy ignored: (dy * w, dy * x) -> (w.clone(), dy * x)
// a gradient too few: (dy * w, dy * x) -> (dy * w)
// a gradient too many: (dy * w, dy * x) -> (dy * w, dy * x, dy * x)

// == linear
#[py_layer(shapes(x: [n, k], w: [k, m] -> [n, m]), check())]
impl Op {
    type Saved = (Tensor<f64>, Tensor<f64>);
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x.matmul(w)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (x, w) = ctx.saved_tensor();
        (dy.matmul(&w.t()), x.t().matmul(dy))
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3]), &leaf([3, 4])));
}
// two gradients exchanged: (dy.matmul(&w.t()), x.t().matmul(dy)) -> (x.t().matmul(dy), dy.matmul(&w.t()))
// a transposition missing: dy.matmul(&w.t()) -> dy.matmul(w)
// the wrong factor transposed: x.t().matmul(dy) -> dy.t().matmul(x)
// dy ignored: x.t().matmul(dy) -> x.t().matmul(&Tensor::ones_like(dy))
// a sign: x.t().matmul(dy) -> -x.t().matmul(dy)

// == bias
#[py_layer(shapes(x: [n, m], b: [m] -> [n, m]), check())]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        x + b
    }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy.clone(), dy.sum_axes(0))
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3]), &leaf([3])));
}
// a sum over a broadcast axis missing: dy.sum_axes(0) -> dy.clone()
// a sum over the wrong axis: dy.sum_axes(0) -> dy.sum_axes(1)
// a mean for a sum: dy.sum_axes(0) -> dy.mean_axes(0)
// two gradients exchanged: (dy.clone(), dy.sum_axes(0)) -> (dy.sum_axes(0), dy.clone())
// a sum that keeps the axis: dy.sum_axes(0) -> dy.sum_axes_keep(0)

// == scale
#[py_layer(shapes(x: [n..] -> [n..]), check(x = [2, 3], s = 3.0))]
impl Op {
    type Attrs = f64;
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, s: f64) -> Tensor<f64> {
        ctx.set_attrs(s);
        x * s
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let s = *ctx.attrs();
        dy * s
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3]), 3.0));
}
// a factor dropped: dy * s -> dy * 1.0
// dy ignored: dy * s -> Tensor::ones_like(dy) * s
// a gradient for a number too: dy * s -> (dy * s, dy.sum())
// a sign: dy * s -> dy * -s
// a factor twice: dy * s -> dy * s * s

// == select
#[py_layer(shapes(x: [n, m], i: [k] -> [k, m]), check(x = [4, 3], i = Tensor::from([0_i64, 2, 2])))]
impl Op {
    type Saved = (Tensor<f64>, Tensor<i64>);
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, #[stop_gradient] i: &Tensor<i64>) -> Tensor<f64> {
        ctx.save_for_backward((x, i));
        x.index_select(0, i)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (x, i) = ctx.saved_tensor();
        let zeros = Tensor::zeros_like(x);
        zeros.index_add(0, i, dy)
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([4, 3]), &Tensor::from([0_i64, 2, 2])));
}
// written, not added: zeros.index_add(0, i, dy) -> zeros.scatter(0, &i.unsqueeze(1).broadcast_to([3, 3]), dy)
// an integer input given a gradient: zeros.index_add(0, i, dy) -> (zeros.index_add(0, i, dy), zeros)
// zeros returned: zeros.index_add(0, i, dy) -> zeros
// the output's shape returned: zeros.index_add(0, i, dy) -> dy.clone()
// a sign: zeros.index_add(0, i, dy) -> zeros.index_add(0, i, &-dy)

// == softmax
#[py_layer(shapes(x: [n, m] -> [n, m]), check())]
impl Op {
    type Saved = Tensor<f64>;
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.softmax(1);
        ctx.save_for_backward(&y);
        y
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let y = ctx.saved_tensor();
        y * (dy - (dy * y).sum_axes_keep(1))
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3])));
}
// a sum over the wrong axis: sum_axes_keep(1) -> sum_axes_keep(0)
// a term dropped: dy - (dy * y).sum_axes_keep(1) -> dy
// a sum over all axes: sum_axes_keep(1) -> sum()
// dy ignored: (dy * y).sum_axes_keep(1) -> y.sum_axes_keep(1)
// another tensor saved: save_for_backward(&y) -> save_for_backward(x)

// == unit
#[py_layer(shapes(x: [n, m] -> [n, m]), check())]
impl Op {
    type Saved = Tensor<f64>;
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x / x.square().sum_axes_keep(1).sqrt()
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let x = ctx.saved_tensor();
        let n = x.square().sum_axes_keep(1).sqrt();
        let y = x / &n;
        (dy - &y * (dy * &y).sum_axes_keep(1)) / n
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3])));
}
// a term dropped: dy - &y * (dy * &y).sum_axes_keep(1) -> dy
// a factor dropped: ) / n -> )
// an axis lost by a sum: (dy * &y).sum_axes_keep(1) -> (dy * &y).sum_axes(1)
// a sign: dy - &y -> dy + &y
// a factor twice: ) / n -> ) / n.square()

// == rms_norm
#[py_layer(once_differentiable, shapes(x: [n, m], g: [m] -> [n, m]), check())]
impl Op {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, g: &Tensor<f64>) -> Tensor<f64> {
        let scale = x.square().mean_axes_keep(1).rsqrt();
        ctx.save_for_backward((x, g, &scale));
        x * scale * g
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (x, g, scale) = ctx.saved_tensor();
        let (unit, dunit) = (x * scale, dy * g);
        let mean = (&dunit * &unit).mean_axes_keep(1);
        ((dunit - &unit * mean) * scale, (dy * unit).sum_axes(0))
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3]), &leaf([3])));
}
// a sum over a broadcast axis missing: (dy * unit).sum_axes(0) -> dy * unit
// a term dropped: dunit - &unit * mean -> dunit
// a factor dropped: dy * g) -> dy.clone())
// a sum for a mean: .mean_axes_keep(1) -> .sum_axes_keep(1)
// a sum over the wrong axis: .sum_axes(0) -> .sum_axes(1)

// == cross_entropy
#[py_layer(once_differentiable, shapes(z: [n, 4], t: [n] -> [n]), check(t = Tensor::from([0_i64, 3])))]
impl Op {
    type Saved = (Tensor<f64>, Tensor<i64>);
    fn forward(ctx: &mut ForwardContext<Self>, z: &Tensor<f64>, #[stop_gradient] t: &Tensor<i64>) -> Tensor<f64> {
        ctx.save_for_backward((&z.softmax(1), t));
        -z.log_softmax(1).gather(1, &t.unsqueeze(1)).squeeze(1)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (p, t) = ctx.saved_tensor();
        let target = t.one_hot::<f64>(4);
        (p - target) * dy.unsqueeze(1)
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 4]), &Tensor::from([0_i64, 3])));
}
// dy ignored: (p - target) * dy.unsqueeze(1) -> p - target
// a term dropped: (p - target) -> p
// a sign: (p - target) -> (p + target)
// an integer input given a gradient: (p - target) * dy.unsqueeze(1) -> ((p - target) * dy.unsqueeze(1), dy.clone())
// an axis not added: dy.unsqueeze(1) -> dy

// == mean
#[py_layer(shapes(x: [n, m] -> [n]), check())]
impl Op {
    type Saved = Tensor<f64>;
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.mean_axes(1)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let x = ctx.saved_tensor();
        dy.unsqueeze(1).broadcast_to(x.shape()) / x.shape()[1] as f64
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3])));
}
// a factor dropped: / x.shape()[1] as f64 -> * 1.0
// an axis not added: dy.unsqueeze(1) -> dy
// a broadcast missing: dy.unsqueeze(1).broadcast_to(x.shape()) -> dy.unsqueeze(1)
// the wrong axis counted: x.shape()[1] -> x.shape()[0]
// dy ignored: dy.unsqueeze(1) -> Tensor::ones_like(&dy.unsqueeze(1))

// == outer
#[py_layer(shapes(a: [n], b: [m] -> [n, m]), check())]
impl Op {
    type Saved = (Tensor<f64>, Tensor<f64>);
    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((a, b));
        a.outer(b)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (a, b) = ctx.saved_tensor();
        (dy.matmul(b), dy.t().matmul(a))
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2]), &leaf([3])));
}
// two gradients exchanged: (dy.matmul(b), dy.t().matmul(a)) -> (dy.t().matmul(a), dy.matmul(b))
// a transposition missing: dy.t().matmul(a) -> dy.matmul(a)
// another element type: dy.t().matmul(a) -> dy.t().matmul(a).cast::<f32>()
// dy ignored: dy.matmul(b) -> Tensor::ones_like(dy).matmul(b)
// a sign: dy.t().matmul(a) -> -dy.t().matmul(a)

// == concat
#[py_layer(shapes(a: [n, 2], b: [n, 3] -> [n, 5]), check())]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        Tensor::concat(&[a, b], 1)
    }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy.narrow(1, 0, 2), dy.narrow(1, 2, 3))
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([4, 2]), &leaf([4, 3])));
}
// two gradients exchanged: (dy.narrow(1, 0, 2), dy.narrow(1, 2, 3)) -> (dy.narrow(1, 2, 3), dy.narrow(1, 0, 2))
// the wrong start: dy.narrow(1, 2, 3) -> dy.narrow(1, 1, 3)
// cut along the wrong axis: dy.narrow(1, 0, 2) -> dy.narrow(0, 0, 2)
// the output's shape returned: dy.narrow(1, 2, 3) -> dy.clone()
// a sign: dy.narrow(1, 2, 3)) -> -dy.narrow(1, 2, 3))

// == columns
#[py_layer(shapes(x: [n, 4] -> [n, 2]), check())]
impl Op {
    type Saved = Tensor<f64>;
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.narrow(1, 1, 2)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let zeros = Tensor::zeros_like(ctx.saved_tensor());
        zeros.slice_assign((.., 1..3), dy)
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 4])));
}
// put at the wrong place: 1..3 -> 0..2
// put along the wrong axis: (.., 1..3) -> (0..2, ..)
// zeros returned: zeros.slice_assign((.., 1..3), dy) -> zeros
// the output's shape returned: zeros.slice_assign((.., 1..3), dy) -> dy + zeros.sum()
// dy ignored: 1..3), dy) -> 1..3), 1.0)

// == where
#[py_layer(shapes(c: [n, m], a: [n, m], b: [n, m] -> [n, m]), check(c = Tensor::from([[true, false, true]; 2]), a = [2, 3], b = [2, 3]))]
impl Op {
    type Saved = Tensor<bool>;
    fn forward(
        ctx: &mut ForwardContext<Self>,
        #[stop_gradient] c: &Tensor<bool>,
        a: &Tensor<f64>,
        b: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward(c);
        c.where_else(a, b)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let c = ctx.saved_tensor();
        (c.where_else(dy, 0.0), c.where_else(0.0, dy))
    }
}
#[test]
fn call() {
    called(Op::apply(&Tensor::from([[true, false, true]; 2]), &leaf([2, 3]), &leaf([2, 3])));
}
// two gradients exchanged: (c.where_else(dy, 0.0), c.where_else(0.0, dy)) -> (c.where_else(0.0, dy), c.where_else(dy, 0.0))
// the mask ignored: c.where_else(0.0, dy) -> dy.clone()
// dy ignored: c.where_else(dy, 0.0) -> c.where_else(1.0, 0.0)
// an integer input given a gradient: (c.where_else(dy, 0.0), -> (Tensor::zeros_like(dy), c.where_else(dy, 0.0),
// a sign: c.where_else(0.0, dy) -> -c.where_else(0.0, dy)

// == cumsum
#[py_layer(shapes(x: [n, m] -> [n, m]), check())]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.cumsum(1)
    }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.flip(1).cumsum(1).flip(1)
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3])));
}
// not reversed: dy.flip(1).cumsum(1).flip(1) -> dy.cumsum(1)
// reversed once: .cumsum(1).flip(1) -> .cumsum(1)
// a sum over the wrong axis: cumsum(1) -> cumsum(0)
// dy ignored: dy.flip(1) -> Tensor::ones_like(dy).flip(1)
// a sum missing: dy.flip(1).cumsum(1) -> dy.flip(1)

// == gated
#[py_layer(once_differentiable, shapes(a: [n..], b: [n..] -> [n..]), check(a = [2, 3], b = [2, 3]))]
impl Op {
    type Saved = (Tensor<f64>, Tensor<f64>);
    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        let s = b.sigmoid();
        ctx.save_for_backward((a, &s));
        a * s
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (a, s) = ctx.saved_tensor();
        (dy * s, dy * a * s * (1.0 - s))
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3]), &leaf([2, 3])));
}
// two gradients exchanged: (dy * s, dy * a * s * (1.0 - s)) -> (dy * a * s * (1.0 - s), dy * s)
// a factor dropped: * s * (1.0 - s) -> * (1.0 - s)
// dy ignored: dy * a * s -> a * s
// another tensor saved: (a, &s) -> (a, b)
// another element type: (dy * s, -> ((dy * s).cast::<f32>(),

// == attention
#[py_layer(once_differentiable, shapes(q: [n, d], k: [m, d], v: [m, d] -> [n, d]), check())]
impl Op {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>);
    fn forward(
        ctx: &mut ForwardContext<Self>,
        q: &Tensor<f64>,
        k: &Tensor<f64>,
        v: &Tensor<f64>,
    ) -> Tensor<f64> {
        let s = q.matmul(&k.t());
        let p = s.softmax(1);
        ctx.save_for_backward((q, k, v, &p));
        p.matmul(v)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>, Tensor<f64>) {
        let (q, k, v, p) = ctx.saved_tensor();
        let dp = dy.matmul(&v.t());
        let ds = p * (&dp - (&dp * p).sum_axes_keep(1));
        (ds.matmul(k), ds.t().matmul(q), p.t().matmul(dy))
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3]), &leaf([4, 3]), &leaf([4, 3])));
}
// a term dropped: (&dp - (&dp * p).sum_axes_keep(1)) -> &dp
// a transposition missing: ds.t().matmul(q) -> ds.matmul(q)
// two gradients exchanged: ds.t().matmul(q), p.t().matmul(dy) -> p.t().matmul(dy), ds.t().matmul(q)
// dy ignored: p.t().matmul(dy) -> p.t().matmul(&Tensor::ones_like(dy))
// another tensor saved: (q, k, v, &p) -> (q, k, v, &s)

// == distances
#[py_layer(shapes(a: [n, d], b: [m, d] -> [n, m]), check())]
impl Op {
    type Saved = (Tensor<f64>, Tensor<f64>);
    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((a, b));
        (a.unsqueeze(1) - b).square().sum_axes(2)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (a, b) = ctx.saved_tensor();
        let da = (a * dy.sum_axes_keep(1) - dy.matmul(b)) * 2.0;
        let db = (b * dy.t().sum_axes_keep(1) - dy.t().matmul(a)) * 2.0;
        (da, db)
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3]), &leaf([4, 3])));
}
// a factor dropped: - dy.matmul(b)) * 2.0 -> - dy.matmul(b))
// a sign: - dy.matmul(b) -> + dy.matmul(b)
// a sum over the wrong axis: dy.sum_axes_keep(1) -> dy.sum_axes_keep(0)
// two gradients exchanged: (da, db) -> (db, da)
// a term dropped: (b * dy.t().sum_axes_keep(1) - dy.t().matmul(a)) -> (b * dy.t().sum_axes_keep(1))

// == shifted
#[py_layer(once_differentiable, shapes(x: [n..] -> [n..]), check(x = [2, 3]))]
impl Op {
    type Saved = Tensor<f64>;
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let mut h = x * 2.0;
        h += 1.0;
        ctx.save_for_backward(&h);
        h.square()
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let h = ctx.saved_tensor();
        dy * h * 4.0
    }
}
#[test]
fn call() {
    called(Op::apply(&leaf([2, 3])));
}
// saved before a change: h += 1.0; ctx.save_for_backward(&h); -> ctx.save_for_backward(&h); h += 1.0;
// a factor dropped: * 4.0 -> * 2.0
// dy ignored: dy * h -> h
// a sign: dy * h -> -dy * h
// another tensor saved: save_for_backward(&h) -> save_for_backward(x)
