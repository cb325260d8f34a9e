// The ops as this library writes them. A mistake is a line `// name: piece -> other`, for the op above it.
use autograd_core::prelude::*;

fn called(y: Tensor<f64>) {
    y.sum().backward().unwrap();
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
