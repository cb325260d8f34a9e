// The ops as burn writes them: an extension of its backends, with a backward of its own.
#![allow(unused_imports, unused_macros, dead_code)]
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, binary, unary};
use burn::backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, Dispatch, Flex, Shape, Slice, TensorMetadata, backend_extension};
use burn::tensor::{Bool, DType, Device, FloatDType, IndexingUpdateOp, Int, Tensor, TensorData};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What is the same in every op: the trait, and its forward on each backend.
macro_rules! extension {
    ([$($x:ident),*] $($plain:ident: [$($of:tt)*]),*) => {
        #[backend_extension(Flex, Autodiff)]
        pub trait Extension: Backend {
            fn op($($x: FloatTensor<Self>,)* $($plain: $($of)*),*) -> FloatTensor<Self> {
                forward::<Self>($($x,)* $($plain),*).0
            }
        }
        impl Extension for Flex {}
        impl<B: Extension, C: CheckpointStrategy> Extension for Autodiff<B, C> {
            fn op($($x: FloatTensor<Self>,)* $($plain: $($of)*),*) -> FloatTensor<Self> {
                match Rule.prepare::<C>([$($x.node()),*]).compute_bound().stateful() {
                    OpsKind::Tracked(prep) => {
                        let (y, state) = forward::<B>($($x.into_primitive(),)* $($plain),*);
                        prep.finish(state, y)
                    }
                    OpsKind::UnTracked(prep) => prep.finish(B::op($($x.into_primitive(),)* $($plain),*)),
                }
            }
        }
        #[derive(Debug)]
        struct Rule;
    };
}

macro_rules! apply {
    ($rank:literal, $($x:ident),* $(; $plain:expr)?) => {
        called(Tensor::<$rank>::from_dispatch(Dispatch::op($($x.clone().into_dispatch(),)* $($plain)?)))
    };
}

fn device() -> Device {
    Device::flex().autodiff()
}

fn leaf<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    static COUNT: AtomicUsize = AtomicUsize::new(1);
    let data = (0..shape.iter().product()).map(|_| (COUNT.fetch_add(1, Relaxed) as f64 * 1.7).sin());
    Tensor::from_data(TensorData::new(data.collect::<Vec<f64>>(), shape), (&device(), DType::F64)).require_grad()
}

fn called<const D: usize>(y: Tensor<D>) -> burn::tensor::Gradients {
    let grads = (y.clone() * y.clone() * y).sum().backward();
    print!("gradients");
    grads
}

/// An optimizer's step, where a gradient of another shape may be an error.
fn step<const D: usize>(x: Tensor<D>, grads: &burn::tensor::Gradients) {
    let dx = x.grad(grads).expect("a gradient");
    (x.inner() - dx.clone() * 0.1).into_data();
    let dx = dx.into_data();
    for n in dx.shape().iter() {
        print!(" {n}");
    }
    for n in dx.iter::<f64>() {
        print!(" {n}");
    }
}

// == tanh
extension! { [x] }
fn forward<B: Backend>(x: FloatTensor<B>) -> (FloatTensor<B>, FloatTensor<B>) {
    let y = B::float_tanh(x.clone());
    (y.clone(), y)
}
impl<B: Backend> Backward<B, 1> for Rule {
    type State = FloatTensor<B>;
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let y = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |dy| {
            let square = B::float_mul(y.clone(), y);
            let slope = B::float_add_scalar(B::float_neg(square), 1.0.into());
            B::float_mul(dy, slope)
        });
    }
}
fn main() {
    let x = leaf([2, 3]);
    step(x.clone(), &apply!(2, x));
}
// a sign: B::float_mul(dy, slope) -> B::float_neg(B::float_mul(dy, slope))
// a term dropped: B::float_mul(y.clone(), y) -> y
// dy ignored: B::float_mul(dy, slope) -> slope
// another tensor saved: let y = B::float_tanh(x.clone()); (y.clone(), y) -> let y = B::float_tanh(x.clone()); (y, x)
// another element type: B::float_mul(dy, slope) -> B::float_cast(B::float_mul(dy, slope), FloatDType::F32)

// == product
extension! { [x, w] }
fn forward<B: Backend>(
    x: FloatTensor<B>,
    w: FloatTensor<B>,
) -> (FloatTensor<B>, (FloatTensor<B>, FloatTensor<B>)) {
    (B::float_mul(x.clone(), w.clone()), (x, w))
}
impl<B: Backend> Backward<B, 2> for Rule {
    type State = (FloatTensor<B>, FloatTensor<B>);
    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (x, w) = ops.state;
        binary::<B, _, _>(ops.parents, ops.node, grads, |dy| B::float_mul(dy, w), |dy| B::float_mul(dy, x));
    }
}
fn main() {
    let (x, w) = (leaf([2, 3]), leaf([2, 3]));
    let grads = apply!(2, x, w);
    step(x, &grads);
    step(w, &grads);
}
// two gradients exchanged: |dy| B::float_mul(dy, w), |dy| B::float_mul(dy, x) -> |dy| B::float_mul(dy, x), |dy| B::float_mul(dy, w)
// a sign: B::float_mul(dy, x) -> B::float_neg(B::float_mul(dy, x))
// dy ignored: |dy| B::float_mul(dy, w) -> |_| w
// a gradient too few: , |dy| B::float_mul(dy, x)) -> )
// a gradient too many: |dy| B::float_mul(dy, x)) -> |dy| B::float_mul(dy, x), |dy| dy)

// == linear
extension! { [x, w] }
fn forward<B: Backend>(
    x: FloatTensor<B>,
    w: FloatTensor<B>,
) -> (FloatTensor<B>, (FloatTensor<B>, FloatTensor<B>)) {
    (B::float_matmul(x.clone(), w.clone()), (x, w))
}
impl<B: Backend> Backward<B, 2> for Rule {
    type State = (FloatTensor<B>, FloatTensor<B>);
    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (x, w) = ops.state;
        binary::<B, _, _>(
            ops.parents,
            ops.node,
            grads,
            |dy| B::float_matmul(dy, B::float_transpose(w)),
            |dy| B::float_matmul(B::float_transpose(x), dy),
        );
    }
}
fn main() {
    let (x, w) = (leaf([2, 3]), leaf([3, 4]));
    let grads = apply!(2, x, w);
    step(x, &grads);
    step(w, &grads);
}
// two gradients exchanged: |dy| B::float_matmul(dy, B::float_transpose(w)), |dy| B::float_matmul(B::float_transpose(x), dy) -> |dy| B::float_matmul(B::float_transpose(x), dy), |dy| B::float_matmul(dy, B::float_transpose(w))
// a transposition missing: B::float_matmul(dy, B::float_transpose(w)) -> B::float_matmul(dy, w)
// the wrong factor transposed: B::float_matmul(B::float_transpose(x), dy) -> B::float_matmul(B::float_transpose(dy), x)
// dy ignored: B::float_transpose(x), dy) -> B::float_transpose(x), B::float_ones(dy.shape(), &dy.device(), FloatDType::F64))
// a sign: B::float_transpose(x), dy) -> B::float_transpose(x), B::float_neg(dy))

// == bias
extension! { [x, b] }
fn forward<B: Backend>(x: FloatTensor<B>, b: FloatTensor<B>) -> (FloatTensor<B>, Shape) {
    let shape = b.shape();
    let row = B::float_reshape(b, Shape::from([1, shape[0]]));
    (B::float_add(x, row), shape)
}
impl<B: Backend> Backward<B, 2> for Rule {
    type State = Shape;
    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let shape = ops.state;
        binary::<B, _, _>(
            ops.parents,
            ops.node,
            grads,
            |dy| dy,
            |dy| B::float_reshape(B::float_sum_dim(dy, 0), shape),
        );
    }
}
fn main() {
    let (x, b) = (leaf([2, 3]), leaf([3]));
    let grads = apply!(2, x, b);
    step(x, &grads);
    step(b, &grads);
}
// a sum over a broadcast axis missing: B::float_reshape(B::float_sum_dim(dy, 0), shape) -> dy
// a sum over the wrong axis: B::float_sum_dim(dy, 0) -> B::float_sum_dim(dy, 1)
// a mean for a sum: B::float_sum_dim(dy, 0) -> B::float_mean_dim(dy, 0)
// two gradients exchanged: |dy| dy, |dy| B::float_reshape(B::float_sum_dim(dy, 0), shape) -> |dy| B::float_reshape(B::float_sum_dim(dy, 0), shape), |dy| dy
// a sum that keeps the axis: B::float_reshape(B::float_sum_dim(dy, 0), shape) -> B::float_sum_dim(dy, 0)

// == scale
extension! { [x] s: [f64] }
fn forward<B: Backend>(x: FloatTensor<B>, s: f64) -> (FloatTensor<B>, f64) {
    (B::float_mul_scalar(x, s.into()), s)
}
impl<B: Backend> Backward<B, 1> for Rule {
    type State = f64;
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let s = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |dy| B::float_mul_scalar(dy, s.into()));
    }
}
fn main() {
    let x = leaf([2, 3]);
    step(x.clone(), &apply!(2, x; 3.0));
}
// a factor dropped: B::float_mul_scalar(dy, s.into()) -> dy
// dy ignored: B::float_mul_scalar(dy, s.into()) -> B::float_full(dy.shape(), s.into(), &dy.device(), FloatDType::F64)
// a gradient for a number too: unary::<B, _>(ops.parents, ops.node, grads, |dy| B::float_mul_scalar(dy, s.into())) -> binary::<B, _, _>(ops.parents, ops.node, grads, |dy| B::float_mul_scalar(dy, s.into()), |dy| B::float_sum(dy))
// a sign: B::float_mul_scalar(dy, s.into()) -> B::float_mul_scalar(dy, (-s).into())
// a factor twice: B::float_mul_scalar(dy, s.into()) -> B::float_mul_scalar(dy, (s * s).into())

// == select
extension! { [x] i: [IntTensor<Self>] }
fn forward<B: Backend>(x: FloatTensor<B>, i: IntTensor<B>) -> (FloatTensor<B>, (Shape, IntTensor<B>)) {
    let shape = x.shape();
    (B::float_select(x, 0, i.clone()), (shape, i))
}
impl<B: Backend> Backward<B, 1> for Rule {
    type State = (Shape, IntTensor<B>);
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (shape, i) = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |dy| {
            let zeros = B::float_zeros(shape, &dy.device(), FloatDType::F64);
            B::float_select_assign(zeros, 0, i, dy, IndexingUpdateOp::Add)
        });
    }
}
fn main() {
    let x = leaf([4, 3]);
    let i = Tensor::<1, Int>::from_data([0, 2, 2], &device());
    step(x.clone(), &apply!(2, x; i.into_dispatch()));
}
// written, not added: IndexingUpdateOp::Add -> IndexingUpdateOp::Assign
// an integer input given a gradient: unary::<B, _>(ops.parents, ops.node, grads, -> binary::<B, _, _>(ops.parents, ops.node, grads, |dy| dy,
// zeros returned: B::float_select_assign(zeros, 0, i, dy, IndexingUpdateOp::Add) -> zeros
// the output's shape returned: B::float_select_assign(zeros, 0, i, dy, IndexingUpdateOp::Add) -> dy
// a sign: 0, i, dy, -> 0, i, B::float_neg(dy),

// == softmax
extension! { [x] }
fn forward<B: Backend>(x: FloatTensor<B>) -> (FloatTensor<B>, FloatTensor<B>) {
    let y = B::softmax(x.clone(), 1);
    (y.clone(), y)
}
impl<B: Backend> Backward<B, 1> for Rule {
    type State = FloatTensor<B>;
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let y = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |dy| {
            let sum = B::float_sum_dim(B::float_mul(dy.clone(), y.clone()), 1);
            B::float_mul(y, B::float_sub(dy, sum))
        });
    }
}
fn main() {
    let x = leaf([2, 3]);
    step(x.clone(), &apply!(2, x));
}
// a sum over the wrong axis: y.clone()), 1) -> y.clone()), 0)
// a term dropped: B::float_sub(dy, sum) -> dy
// a sum over all axes: B::float_sum_dim(B::float_mul(dy.clone(), y.clone()), 1) -> B::float_reshape(B::float_sum(B::float_mul(dy.clone(), y.clone())), Shape::from([1, 1]))
// dy ignored: B::float_mul(dy.clone(), y.clone()) -> y.clone()
// another tensor saved: (y.clone(), y) -> (y, x)

// == unit
extension! { [x] }
fn forward<B: Backend>(x: FloatTensor<B>) -> (FloatTensor<B>, FloatTensor<B>) {
    let n = B::float_sqrt(B::float_sum_dim(B::float_mul(x.clone(), x.clone()), 1));
    (B::float_div(x.clone(), n), x)
}
impl<B: Backend> Backward<B, 1> for Rule {
    type State = FloatTensor<B>;
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let x = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |dy| {
            let n = B::float_sqrt(B::float_sum_dim(B::float_mul(x.clone(), x.clone()), 1));
            let y = B::float_div(x, n.clone());
            let along = B::float_sum_dim(B::float_mul(dy.clone(), y.clone()), 1);
            B::float_div(B::float_sub(dy, B::float_mul(y, along)), n)
        });
    }
}
fn main() {
    let x = leaf([2, 3]);
    step(x.clone(), &apply!(2, x));
}
// a term dropped: B::float_sub(dy, B::float_mul(y, along)) -> dy
// a factor dropped: B::float_div(B::float_sub(dy, B::float_mul(y, along)), n) -> B::float_sub(dy, B::float_mul(y, along))
// an axis lost by a sum: along = B::float_sum_dim(B::float_mul(dy.clone(), y.clone()), 1) -> along = B::float_reshape(B::float_sum_dim(B::float_mul(dy.clone(), y.clone()), 1), Shape::from([y.shape()[0]]))
// a sign: B::float_sub(dy, B::float_mul(y, along)) -> B::float_add(dy, B::float_mul(y, along))
// a factor twice: B::float_mul(y, along)), n) -> B::float_mul(y, along)), B::float_mul(n.clone(), n))

// == rms_norm
extension! { [x, g] }
fn forward<B: Backend>(
    x: FloatTensor<B>,
    g: FloatTensor<B>,
) -> (FloatTensor<B>, (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>)) {
    let mean = B::float_mean_dim(B::float_mul(x.clone(), x.clone()), 1);
    let scale = B::float_recip(B::float_sqrt(mean));
    let row = B::float_reshape(g.clone(), Shape::from([1, g.shape()[0]]));
    (B::float_mul(B::float_mul(x.clone(), scale.clone()), row), (x, g, scale))
}
impl<B: Backend> Backward<B, 2> for Rule {
    type State = (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>);
    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (x, g, scale) = ops.state;
        let unit = B::float_mul(x, scale.clone());
        let shape = g.shape();
        binary::<B, _, _>(
            ops.parents,
            ops.node,
            grads,
            |dy| {
                let dunit = B::float_mul(dy, B::float_reshape(g, Shape::from([1, shape[0]])));
                let mean = B::float_mean_dim(B::float_mul(dunit.clone(), unit.clone()), 1);
                B::float_mul(B::float_sub(dunit, B::float_mul(unit.clone(), mean)), scale)
            },
            |dy| B::float_reshape(B::float_sum_dim(B::float_mul(dy, unit.clone()), 0), shape.clone()),
        );
    }
}
fn main() {
    let (x, g) = (leaf([2, 3]), leaf([3]));
    let grads = apply!(2, x, g);
    step(x, &grads);
    step(g, &grads);
}
// a sum over a broadcast axis missing: B::float_reshape(B::float_sum_dim(B::float_mul(dy, unit.clone()), 0), shape.clone()) -> B::float_mul(dy, unit.clone())
// a term dropped: B::float_sub(dunit, B::float_mul(unit.clone(), mean)) -> dunit
// a factor dropped: B::float_mul(dy, B::float_reshape(g, Shape::from([1, shape[0]]))) -> dy
// a sum for a mean: B::float_mean_dim(B::float_mul(dunit -> B::float_sum_dim(B::float_mul(dunit
// a sum over the wrong axis: B::float_sum_dim(B::float_mul(dy, unit.clone()), 0) -> B::float_sum_dim(B::float_mul(dy, unit.clone()), 1)

// == cross_entropy
extension! { [z] t: [IntTensor<Self>] }
fn forward<B: Backend>(
    z: FloatTensor<B>,
    t: IntTensor<B>,
) -> (FloatTensor<B>, (FloatTensor<B>, IntTensor<B>)) {
    let n = z.shape()[0];
    let column = B::int_reshape(t.clone(), Shape::from([n, 1]));
    let y = B::float_gather(1, B::log_softmax(z.clone(), 1), column.clone());
    (B::float_neg(B::float_reshape(y, Shape::from([n]))), (B::softmax(z, 1), column))
}
impl<B: Backend> Backward<B, 1> for Rule {
    type State = (FloatTensor<B>, IntTensor<B>);
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (p, t) = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |dy| {
            let zeros = B::float_zeros(p.shape(), &p.device(), FloatDType::F64);
            let ones = B::float_ones(t.shape(), &p.device(), FloatDType::F64);
            let target = B::float_scatter(1, zeros, t, ones, IndexingUpdateOp::Add);
            let column = B::float_reshape(dy.clone(), Shape::from([dy.shape()[0], 1]));
            B::float_mul(B::float_sub(p, target), column)
        });
    }
}
fn main() {
    let z = leaf([2, 4]);
    let t = Tensor::<1, Int>::from_data([0, 3], &device());
    step(z.clone(), &apply!(1, z; t.into_dispatch()));
}
// dy ignored: B::float_mul(B::float_sub(p, target), column) -> B::float_sub(p, target)
// a term dropped: B::float_sub(p, target) -> p
// a sign: B::float_sub(p, target) -> B::float_add(p, target)
// an integer input given a gradient: unary::<B, _>(ops.parents, ops.node, grads, -> binary::<B, _, _>(ops.parents, ops.node, grads, |dy| dy,
// an axis not added: B::float_reshape(dy.clone(), Shape::from([dy.shape()[0], 1])) -> dy

// == mean
extension! { [x] }
fn forward<B: Backend>(x: FloatTensor<B>) -> (FloatTensor<B>, Shape) {
    let shape = x.shape();
    (B::float_reshape(B::float_mean_dim(x, 1), Shape::from([shape[0]])), shape)
}
impl<B: Backend> Backward<B, 1> for Rule {
    type State = Shape;
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let shape = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |dy| {
            let column = B::float_reshape(dy.clone(), Shape::from([dy.shape()[0], 1]));
            let count = shape[1];
            B::float_div_scalar(B::float_expand(column, shape), count.into())
        });
    }
}
fn main() {
    let x = leaf([2, 3]);
    step(x.clone(), &apply!(1, x));
}
// a factor dropped: B::float_div_scalar(B::float_expand(column, shape), count.into()) -> B::float_expand(column, shape)
// an axis not added: column = B::float_reshape(dy.clone(), Shape::from([dy.shape()[0], 1])) -> column = dy
// a broadcast missing: B::float_expand(column, shape) -> column
// the wrong axis counted: count = shape[1] -> count = shape[0]
// dy ignored: B::float_expand(column, shape) -> B::float_ones(shape, &column.device(), FloatDType::F64)

// == outer
extension! { [a, b] }
fn forward<B: Backend>(
    a: FloatTensor<B>,
    b: FloatTensor<B>,
) -> (FloatTensor<B>, (FloatTensor<B>, FloatTensor<B>)) {
    let a = B::float_reshape(a.clone(), Shape::from([a.shape()[0], 1]));
    let b = B::float_reshape(b.clone(), Shape::from([1, b.shape()[0]]));
    (B::float_mul(a.clone(), b.clone()), (a, b))
}
impl<B: Backend> Backward<B, 2> for Rule {
    type State = (FloatTensor<B>, FloatTensor<B>);
    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (a, b) = ops.state;
        let (n, m) = (a.shape()[0], b.shape()[1]);
        binary::<B, _, _>(
            ops.parents,
            ops.node,
            grads,
            |dy| B::float_reshape(B::float_matmul(dy, B::float_transpose(b)), Shape::from([n])),
            |dy| B::float_reshape(B::float_matmul(B::float_transpose(dy), a), Shape::from([m])),
        );
    }
}
fn main() {
    let (a, b) = (leaf([2]), leaf([3]));
    let grads = apply!(2, a, b);
    step(a, &grads);
    step(b, &grads);
}
// two gradients exchanged: |dy| B::float_reshape(B::float_matmul(dy, B::float_transpose(b)), Shape::from([n])), |dy| B::float_reshape(B::float_matmul(B::float_transpose(dy), a), Shape::from([m])) -> |dy| B::float_reshape(B::float_matmul(B::float_transpose(dy), a), Shape::from([m])), |dy| B::float_reshape(B::float_matmul(dy, B::float_transpose(b)), Shape::from([n]))
// a transposition missing: B::float_matmul(B::float_transpose(dy), a) -> B::float_matmul(dy, a)
// another element type: B::float_matmul(B::float_transpose(dy), a) -> B::float_cast(B::float_matmul(B::float_transpose(dy), a), FloatDType::F32)
// dy ignored: B::float_matmul(dy, B::float_transpose(b)) -> B::float_matmul(B::float_ones(dy.shape(), &dy.device(), FloatDType::F64), B::float_transpose(b))
// a sign: B::float_matmul(B::float_transpose(dy), a) -> B::float_neg(B::float_matmul(B::float_transpose(dy), a))

// == concat
extension! { [a, b] }
fn forward<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> (FloatTensor<B>, ()) {
    (B::float_cat(vec![a, b], 1), ())
}
impl<B: Backend> Backward<B, 2> for Rule {
    type State = ();
    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        binary::<B, _, _>(
            ops.parents,
            ops.node,
            grads,
            |dy| B::float_slice(dy, &[Slice::from(..), Slice::from(0..2)]),
            |dy| B::float_slice(dy, &[Slice::from(..), Slice::from(2..5)]),
        );
    }
}
fn main() {
    let (a, b) = (leaf([4, 2]), leaf([4, 3]));
    let grads = apply!(2, a, b);
    step(a, &grads);
    step(b, &grads);
}
// two gradients exchanged: |dy| B::float_slice(dy, &[Slice::from(..), Slice::from(0..2)]), |dy| B::float_slice(dy, &[Slice::from(..), Slice::from(2..5)]) -> |dy| B::float_slice(dy, &[Slice::from(..), Slice::from(2..5)]), |dy| B::float_slice(dy, &[Slice::from(..), Slice::from(0..2)])
// the wrong start: Slice::from(2..5) -> Slice::from(1..4)
// cut along the wrong axis: [Slice::from(..), Slice::from(0..2)] -> [Slice::from(0..2), Slice::from(..)]
// the output's shape returned: B::float_slice(dy, &[Slice::from(..), Slice::from(2..5)]) -> dy
// a sign: B::float_slice(dy, &[Slice::from(..), Slice::from(2..5)]) -> B::float_neg(B::float_slice(dy, &[Slice::from(..), Slice::from(2..5)]))

// == columns
extension! { [x] }
fn forward<B: Backend>(x: FloatTensor<B>) -> (FloatTensor<B>, Shape) {
    let shape = x.shape();
    (B::float_slice(x, &[Slice::from(..), Slice::from(1..3)]), shape)
}
impl<B: Backend> Backward<B, 1> for Rule {
    type State = Shape;
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let shape = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |dy| {
            let zeros = B::float_zeros(shape, &dy.device(), FloatDType::F64);
            B::float_slice_assign(zeros, &[Slice::from(..), Slice::from(1..3)], dy)
        });
    }
}
fn main() {
    let x = leaf([2, 4]);
    step(x.clone(), &apply!(2, x));
}
// put at the wrong place: 1..3 -> 0..2
// put along the wrong axis: [Slice::from(..), Slice::from(1..3)] -> [Slice::from(0..2), Slice::from(..)]
// zeros returned: B::float_slice_assign(zeros, &[Slice::from(..), Slice::from(1..3)], dy) -> zeros
// the output's shape returned: B::float_slice_assign(zeros, &[Slice::from(..), Slice::from(1..3)], dy) -> dy
// dy ignored: Slice::from(1..3)], dy) -> Slice::from(1..3)], B::float_ones(dy.shape(), &dy.device(), FloatDType::F64))

// == where
extension! { [a, b] c: [BoolTensor<Self>] }
fn forward<B: Backend>(
    a: FloatTensor<B>,
    b: FloatTensor<B>,
    c: BoolTensor<B>,
) -> (FloatTensor<B>, BoolTensor<B>) {
    (B::float_mask_where(b, c.clone(), a), c)
}
impl<B: Backend> Backward<B, 2> for Rule {
    type State = BoolTensor<B>;
    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let c = ops.state;
        binary::<B, _, _>(
            ops.parents,
            ops.node,
            grads,
            |dy| B::float_mask_fill(dy, B::bool_not(c.clone()), 0.0.into()),
            |dy| B::float_mask_fill(dy, c.clone(), 0.0.into()),
        );
    }
}
fn main() {
    let c = Tensor::<2, Bool>::from_data([[true, false, true], [true, false, true]], &device());
    let (a, b) = (leaf([2, 3]), leaf([2, 3]));
    let grads = apply!(2, a, b; c.into_dispatch());
    step(a, &grads);
    step(b, &grads);
}
// two gradients exchanged: |dy| B::float_mask_fill(dy, B::bool_not(c.clone()), 0.0.into()), |dy| B::float_mask_fill(dy, c.clone(), 0.0.into()) -> |dy| B::float_mask_fill(dy, c.clone(), 0.0.into()), |dy| B::float_mask_fill(dy, B::bool_not(c.clone()), 0.0.into())
// the mask ignored: B::float_mask_fill(dy, c.clone(), 0.0.into()) -> dy
// dy ignored: B::float_mask_fill(dy, B::bool_not(c.clone()) -> B::float_mask_fill(B::float_ones(dy.shape(), &dy.device(), FloatDType::F64), B::bool_not(c.clone())
// an integer input given a gradient: |dy| B::float_mask_fill(dy, c.clone(), 0.0.into()), -> |dy| B::float_mask_fill(dy, c.clone(), 0.0.into()), |dy| dy,
// a sign: B::float_mask_fill(dy, c.clone(), 0.0.into()) -> B::float_neg(B::float_mask_fill(dy, c.clone(), 0.0.into()))

// == cumsum
extension! { [x] }
fn forward<B: Backend>(x: FloatTensor<B>) -> (FloatTensor<B>, ()) {
    (B::float_cumsum(x, 1), ())
}
impl<B: Backend> Backward<B, 1> for Rule {
    type State = ();
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        unary::<B, _>(ops.parents, ops.node, grads, |dy| B::float_flip(B::float_cumsum(B::float_flip(dy, &[1]), 1), &[1]));
    }
}
fn main() {
    let x = leaf([2, 3]);
    step(x.clone(), &apply!(2, x));
}
// not reversed: B::float_flip(B::float_cumsum(B::float_flip(dy, &[1]), 1), &[1]) -> B::float_cumsum(dy, 1)
// reversed once: B::float_flip(B::float_cumsum(B::float_flip(dy, &[1]), 1), &[1]) -> B::float_cumsum(B::float_flip(dy, &[1]), 1)
// a sum over the wrong axis: B::float_flip(dy, &[1]), 1) -> B::float_flip(dy, &[1]), 0)
// dy ignored: B::float_flip(dy, &[1]) -> B::float_ones(dy.shape(), &dy.device(), FloatDType::F64)
// a sum missing: B::float_cumsum(B::float_flip(dy, &[1]), 1) -> B::float_flip(dy, &[1])

// == gated
extension! { [a, b] }
fn forward<B: Backend>(
    a: FloatTensor<B>,
    b: FloatTensor<B>,
) -> (FloatTensor<B>, (FloatTensor<B>, FloatTensor<B>)) {
    let s = B::sigmoid(b.clone());
    (B::float_mul(a.clone(), s.clone()), (a, s))
}
impl<B: Backend> Backward<B, 2> for Rule {
    type State = (FloatTensor<B>, FloatTensor<B>);
    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (a, s) = ops.state;
        binary::<B, _, _>(
            ops.parents,
            ops.node,
            grads,
            |dy| B::float_mul(dy, s.clone()),
            |dy| {
                let rest = B::float_add_scalar(B::float_neg(s.clone()), 1.0.into());
                B::float_mul(B::float_mul(B::float_mul(dy, a), s.clone()), rest)
            },
        );
    }
}
fn main() {
    let (a, b) = (leaf([2, 3]), leaf([2, 3]));
    let grads = apply!(2, a, b);
    step(a, &grads);
    step(b, &grads);
}
// two gradients exchanged: |dy| B::float_mul(dy, s.clone()), |dy| { let rest = B::float_add_scalar(B::float_neg(s.clone()), 1.0.into()); B::float_mul(B::float_mul(B::float_mul(dy, a), s.clone()), rest) } -> |dy| { let rest = B::float_add_scalar(B::float_neg(s.clone()), 1.0.into()); B::float_mul(B::float_mul(B::float_mul(dy, a), s.clone()), rest) }, |dy| B::float_mul(dy, s.clone())
// a factor dropped: B::float_mul(B::float_mul(dy, a), s.clone()) -> B::float_mul(dy, a)
// dy ignored: B::float_mul(dy, a) -> a
// another tensor saved: (a, s)) -> (a, b))
// another element type: |dy| B::float_mul(dy, s.clone()) -> |dy| B::float_cast(B::float_mul(dy, s.clone()), FloatDType::F32)

// == attention
extension! { [q, k, v] }
fn forward<B: Backend>(
    q: FloatTensor<B>,
    k: FloatTensor<B>,
    v: FloatTensor<B>,
) -> (FloatTensor<B>, (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, FloatTensor<B>)) {
    let s = B::float_matmul(q.clone(), B::float_transpose(k.clone()));
    let p = B::softmax(s.clone(), 1);
    (B::float_matmul(p.clone(), v.clone()), (q, k, v, p))
}
impl<B: Backend> Backward<B, 3> for Rule {
    type State = (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, FloatTensor<B>);
    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (q, k, v, p) = ops.state;
        let dy = grads.consume::<B>(&ops.node);
        let dp = B::float_matmul(dy.clone(), B::float_transpose(v));
        let along = B::float_sum_dim(B::float_mul(dp.clone(), p.clone()), 1);
        let ds = B::float_mul(p.clone(), B::float_sub(dp, along));
        let dq = B::float_matmul(ds.clone(), k);
        let dk = B::float_matmul(B::float_transpose(ds), q);
        let dv = B::float_matmul(B::float_transpose(p), dy);
        for (parent, grad) in ops.parents.into_iter().zip([dq, dk, dv]) {
            if let Some(parent) = parent {
                grads.register::<B>(parent.id, grad);
            }
        }
    }
}
fn main() {
    let (q, k, v) = (leaf([2, 3]), leaf([4, 3]), leaf([4, 3]));
    let grads = apply!(2, q, k, v);
    step(q, &grads);
    step(k, &grads);
    step(v, &grads);
}
// a term dropped: B::float_sub(dp, along) -> dp
// a transposition missing: B::float_transpose(ds) -> ds
// two gradients exchanged: [dq, dk, dv] -> [dq, dv, dk]
// dy ignored: B::float_transpose(p), dy) -> B::float_transpose(p), B::float_ones(dy.shape(), &dy.device(), FloatDType::F64))
// another tensor saved: (q, k, v, p)) -> (q, k, v, s))

// == distances
extension! { [a, b] }
fn forward<B: Backend>(
    a: FloatTensor<B>,
    b: FloatTensor<B>,
) -> (FloatTensor<B>, (FloatTensor<B>, FloatTensor<B>)) {
    let (n, m, d) = (a.shape()[0], b.shape()[0], a.shape()[1]);
    let left = B::float_reshape(a.clone(), Shape::from([n, 1, d]));
    let right = B::float_reshape(b.clone(), Shape::from([1, m, d]));
    let gap = B::float_sub(left, right);
    let sum = B::float_sum_dim(B::float_mul(gap.clone(), gap), 2);
    (B::float_reshape(sum, Shape::from([n, m])), (a, b))
}
impl<B: Backend> Backward<B, 2> for Rule {
    type State = (FloatTensor<B>, FloatTensor<B>);
    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (a, b) = ops.state;
        let rule = |x: FloatTensor<B>, other, dy: FloatTensor<B>| {
            let own = B::float_mul(x, B::float_sum_dim(dy.clone(), 1));
            B::float_mul_scalar(B::float_sub(own, B::float_matmul(dy, other)), 2.0.into())
        };
        let (x, y) = (a.clone(), b.clone());
        binary::<B, _, _>(
            ops.parents,
            ops.node,
            grads,
            |dy| rule(a, b, dy),
            |dy| rule(y, x, B::float_transpose(dy)),
        );
    }
}
fn main() {
    let (a, b) = (leaf([2, 3]), leaf([4, 3]));
    let grads = apply!(2, a, b);
    step(a, &grads);
    step(b, &grads);
}
// a factor dropped: B::float_mul_scalar(B::float_sub(own, B::float_matmul(dy, other)), 2.0.into()) -> B::float_sub(own, B::float_matmul(dy, other))
// a sign: B::float_sub(own -> B::float_add(own
// a sum over the wrong axis: B::float_sum_dim(dy.clone(), 1) -> B::float_sum_dim(dy.clone(), 0)
// two gradients exchanged: |dy| rule(a, b, dy), |dy| rule(y, x, B::float_transpose(dy)) -> |dy| rule(y, x, B::float_transpose(dy)), |dy| rule(a, b, dy)
// a term dropped: B::float_sub(own, B::float_matmul(dy, other)) -> own

// == shifted
extension! { [x] }
fn forward<B: Backend>(x: FloatTensor<B>) -> (FloatTensor<B>, FloatTensor<B>) {
    let before = B::float_mul_scalar(x.clone(), 2.0.into());
    let h = B::float_add_scalar(before.clone(), 1.0.into());
    (B::float_mul(h.clone(), h.clone()), h)
}
impl<B: Backend> Backward<B, 1> for Rule {
    type State = FloatTensor<B>;
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let h = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |dy| B::float_mul_scalar(B::float_mul(dy, h), 4.0.into()));
    }
}
fn main() {
    let x = leaf([2, 3]);
    step(x.clone(), &apply!(2, x));
}
// saved before a change: h.clone()), h) -> h.clone()), before)
// a factor dropped: 4.0 -> 2.0
// dy ignored: B::float_mul(dy, h) -> h
// a sign: 4.0.into() -> (-4.0).into()
// another tensor saved: h.clone()), h) -> h.clone()), x)
