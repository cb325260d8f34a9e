//! Ops compiled in the library, once for each element type.
//!
//! A release build shares no generic function between crates: whoever calls one compiles it anew,
//! with all that it calls. So the methods of [`Tensor`] are short, and what they do stands behind a
//! method of one of these traits, which is not generic.

use ndarray::{ArrayD, CowArray, IxDyn};

use super::elementwise::{self, Handle, Op, Outputs};
use super::families::{OfFloats, OfNumbers, Weights};
use super::inplace::{copy_from, fill, replace};
use super::names::{Softmax, Triangle};
#[cfg(feature = "nn")]
use super::nn::batch_norm;
use super::nn::{
    Conv2dOptions, PoolOptions, avg_pool2d, binary_cross_entropy, conv2d, cross_entropy, deviation,
    dropout, elu, leaky_relu, linear, logsumexp, max_pool2d, norm, normalize, smooth_l1_loss,
    softmax, var,
};
use super::trace::Attr;
use super::{
    Binary, Caller, Float, Input, Numeric, Reduce, Unary, binary, compare, create, expect, index,
    instantiate, matmul, reduce, shape, trace,
};
use crate::array::{DType, Shape, Storable};
use crate::error::Result;
use crate::graph::{AnyTensor, OfElements, Tensor};

instantiate! {
    impl OfElements for f32 f64 i32 i64 u8 bool; {
        fn of_vec(shape: Shape, data: Vec<Self>) -> Result<Tensor<Self>> = create::of_vec;
        fn of_slice(shape: Shape, data: &[Self]) -> Tensor<Self> = create::of_slice;
        fn item(x: &Tensor<Self>) -> Result<Self> = create::item;
        fn to_vec(x: &Tensor<Self>) -> Vec<Self> = create::to_vec;
        fn to_ndarray(x: &Tensor<Self>) -> ArrayD<Self> = create::to_ndarray;
        fn view(x: &Tensor<Self>) -> CowArray<'_, Self, IxDyn> = create::view;
        #[cfg(feature = "nn")]
        fn own(x: &Tensor<Self>) -> Tensor<Self> = Tensor::own;
        fn detach(x: &Tensor<Self>, at: Caller) -> Tensor<Self> = Tensor::detached_at;
        fn copy(x: &Tensor<Self>, at: Caller) -> Tensor<Self> = shape::copy;
        fn contiguous(x: &Tensor<Self>, at: Caller) -> Tensor<Self> = shape::contiguous;
        fn reshape(x: &Tensor<Self>, shape: Shape, at: Caller) -> Result<Tensor<Self>>
            = shape::reshape;
        fn permute(x: &Tensor<Self>, order: &[isize], at: Caller) -> Result<Tensor<Self>>
            = shape::permute;
        fn slice(
            x: &Tensor<Self>,
            axis: isize,
            range: (usize, usize, usize),
            at: Caller,
        ) -> Result<Tensor<Self>> = shape::slice;
        fn split(
            x: &Tensor<Self>,
            parts: usize,
            axis: isize,
            at: Caller,
        ) -> Result<Vec<Tensor<Self>>> = shape::split;
        fn flip(x: &Tensor<Self>, axis: isize, at: Caller) -> Result<Tensor<Self>> = shape::flip;
        fn concat(tensors: &[&Tensor<Self>], axis: isize, at: Caller) -> Result<Tensor<Self>>
            = shape::concat;
        fn cast_to(x: &Tensor<Self>, dtype: DType, at: Caller) -> AnyTensor = compare::cast;
        fn copy_from(x: &Tensor<Self>, source: &Tensor<Self>, at: Caller) -> Result<()>
            = copy_from;
        fn fill(x: &Tensor<Self>, element: Self) -> Result<()> = fill;
        fn replace(
            x: &mut Tensor<Self>,
            name: &'static str,
            result: Tensor<Self>,
        ) -> Result<()> = replace;
    }
}

instantiate! {
    impl OfNumbers for f32 f64 i32 i64 u8; {
        fn broadcast_to(x: &Tensor<Self>, shape: Shape, at: Caller) -> Result<Tensor<Self>>
            = shape::broadcast_to;
        fn triangle(x: &Tensor<Self>, part: Triangle, at: Caller) -> Result<Tensor<Self>>
            = shape::triangle;
        fn gather(
            x: &Tensor<Self>,
            axis: isize,
            index: &Tensor<i64>,
            at: Caller,
        ) -> Result<Tensor<Self>> = index::gather;
        fn scatter_add(
            x: &Tensor<Self>,
            axis: isize,
            index: &Tensor<i64>,
            source: &Tensor<Self>,
            at: Caller,
        ) -> Result<Tensor<Self>> = index::scatter_add;
        fn index_select(
            x: &Tensor<Self>,
            axis: isize,
            index: &Tensor<i64>,
            at: Caller,
        ) -> Result<Tensor<Self>> = index::index_select;
        fn index_add(
            x: &Tensor<Self>,
            axis: isize,
            index: &Tensor<i64>,
            source: &Tensor<Self>,
            at: Caller,
        ) -> Result<Tensor<Self>> = index::index_add;
        fn argmax(x: &Tensor<Self>, axis: isize, at: Caller) -> Result<Tensor<i64>>
            = index::argmax;
        fn argmin(x: &Tensor<Self>, axis: isize, at: Caller) -> Result<Tensor<i64>>
            = index::argmin;
        fn cumsum(
            x: &Tensor<Self>,
            axis: isize,
            from_end: bool,
            at: Caller,
        ) -> Result<Tensor<Self>> = index::cumsum;
    }

}

instantiate! {
    impl OfFloats for f32 f64; {
        fn where_else(
            mask: &Tensor<bool>,
            on: &Tensor<Self>,
            off: &Tensor<Self>,
            at: Caller,
        ) -> Result<Tensor<Self>> = compare::choose;
        fn leaky_relu(x: &Tensor<Self>, slope: f64, at: Caller) -> Tensor<Self> = leaky_relu;
        fn elu(x: &Tensor<Self>, alpha: f64, at: Caller) -> Tensor<Self> = elu;
        fn smooth_l1_loss(
            x: &Tensor<Self>,
            target: &Tensor<Self>,
            at: Caller,
        ) -> Result<Tensor<Self>> = smooth_l1_loss;
        fn dropout(
            x: &Tensor<Self>,
            p: f64,
            training: bool,
            at: Caller,
        ) -> Result<Tensor<Self>> = dropout;
        fn linear(
            x: &Tensor<Self>,
            weight: &Tensor<Self>,
            bias: Option<&Tensor<Self>>,
            at: Caller,
        ) -> Result<Tensor<Self>> = linear;
        fn conv2d(
            x: &Tensor<Self>,
            weight: &Tensor<Self>,
            bias: Option<&Tensor<Self>>,
            options: Conv2dOptions,
            at: Caller,
        ) -> Result<Tensor<Self>> = conv2d;
        fn max_pool2d(x: &Tensor<Self>, options: PoolOptions, at: Caller) -> Result<Tensor<Self>>
            = max_pool2d;
        fn avg_pool2d(x: &Tensor<Self>, options: PoolOptions, at: Caller) -> Result<Tensor<Self>>
            = avg_pool2d;
        fn softmax_along(
            op: Softmax,
            x: &Tensor<Self>,
            axis: isize,
            at: Caller,
        ) -> Result<Tensor<Self>> = softmax;
        fn logsumexp(x: &Tensor<Self>, axes: &[isize], at: Caller) -> Result<Tensor<Self>>
            = logsumexp;
        fn cross_entropy(
            logits: &Tensor<Self>,
            targets: &Tensor<i64>,
            at: Caller,
        ) -> Result<Tensor<Self>> = cross_entropy;
        fn binary_cross_entropy(
            logits: &Tensor<Self>,
            targets: &Tensor<Self>,
            at: Caller,
        ) -> Result<Tensor<Self>> = binary_cross_entropy;
        #[cfg(feature = "nn")]
        fn batch_norm(
            x: &Tensor<Self>,
            affine: [&Tensor<Self>; 2],
            eps: f64,
        ) -> (Tensor<Self>, [Tensor<Self>; 2]) = batch_norm::by_batch;
        #[cfg(feature = "nn")]
        fn batch_norm_by(
            x: &Tensor<Self>,
            affine: [&Tensor<Self>; 2],
            stats: [&Tensor<Self>; 2],
            eps: f64,
        ) -> Tensor<Self> = batch_norm::by_running;
        fn norm(x: &Tensor<Self>, at: Caller) -> Tensor<Self> = norm;
        fn layer_norm(
            x: &Tensor<Self>,
            weights: Weights<'_, Self>,
            axes: &[isize],
            eps: f64,
            at: Caller,
        ) -> Result<Tensor<Self>> = normalize;
        fn var(x: &Tensor<Self>, axes: &[isize], correction: usize) -> Result<Tensor<Self>> = var;
        fn std(x: &Tensor<Self>, axes: &[isize], correction: usize) -> Result<Tensor<Self>> = deviation;
    }
}

// The doors: thin generic methods in a user's crate end here, so that the rules and kernels behind
// them are compiled once, in this crate.
macro_rules! doors {
    ($($t:ty => $binary:path, $scalar:path, $reduce:path, $matmul:path;)*) => {$(
        impl Numeric for $t {
            fn nearest(value: f64) -> Self {
                value as $t
            }
            fn binary(
                op: Binary,
                left: Input<'_, Self>,
                right: Input<'_, Self>,
                caller: Caller,
            ) -> Result<Tensor<Self>> {
                #[cold]
                fn noted(
                    op: Binary,
                    left: Input<'_, $t>,
                    right: Input<'_, $t>,
                    caller: Caller,
                ) -> Result<Tensor<$t>> {
                    let inputs = vec![trace::any(left.tensor()), trace::any(right.tensor())];
                    let run = || $binary(op, left, right, caller);
                    trace::op(|| trace::Call::of("binary", op.name(), []), || inputs, caller, run)
                }
                if trace::is_noting() {
                    return noted(op, left, right, caller);
                }
                $binary(op, left, right, caller)
            }
            fn binary_scalar(
                op: Binary,
                x: Input<'_, Self>,
                scalar: Self,
                swapped: bool,
                caller: Caller,
            ) -> Tensor<Self> {
                #[cold]
                fn noted(
                    op: Binary,
                    x: Input<'_, $t>,
                    scalar: $t,
                    swapped: bool,
                    caller: Caller,
                ) -> Tensor<$t> {
                    // A program has its numbers as `f64`, which may not hold an integer.
                    if !<$t>::ELEMENTS_ARE_FLOATS && (scalar as f64) as $t != scalar {
                        let number = Input::Own(Tensor::from(scalar));
                        let [a, b] = if swapped { [number, x] } else { [x, number] };
                        return expect(<$t as Numeric>::binary(op, a, b, caller));
                    }
                    let inputs = vec![trace::any(x.tensor())];
                    let call = || {
                        let attrs = [Attr::Number(scalar as f64), Attr::Flag(swapped)];
                        trace::Call::of("scalar", op.name(), attrs)
                    };
                    let run = || $scalar(op, x, scalar, swapped, caller);
                    trace::op(call, || inputs, caller, run)
                }
                if trace::is_noting() {
                    return noted(op, x, scalar, swapped, caller);
                }
                $scalar(op, x, scalar, swapped, caller)
            }
            fn reduce(
                op: Reduce,
                x: &Tensor<Self>,
                axes: &[isize],
                keep: bool,
                caller: Caller,
            ) -> Result<Tensor<Self>> {
                let call = || {
                    let attrs = [Attr::Ints(axes.to_vec()), Attr::Flag(keep)];
                    trace::Call::of("reduce", op.name(), attrs)
                };
                let run = || $reduce(op, x, axes, keep, caller);
                trace::op(call, || vec![trace::any(x)], caller, run)
            }
            fn matmul(
                left: &Tensor<Self>,
                right: &Tensor<Self>,
                caller: Caller,
            ) -> Result<Tensor<Self>> {
                let inputs = || vec![trace::any(left), trace::any(right)];
                let run = || $matmul(left, right, caller);
                trace::op(|| trace::Call::op("matmul", []), inputs, caller, run)
            }
        }
    )*};
}

doors! {
    f32 => binary::float, binary::float_scalar, reduce::float, matmul::float;
    f64 => binary::float, binary::float_scalar, reduce::float, matmul::float;
    i32 => binary::integer, binary::integer_scalar, reduce::integer, matmul::integer;
    i64 => binary::integer, binary::integer_scalar, reduce::integer, matmul::integer;
    u8 => binary::integer, binary::integer_scalar, reduce::integer, matmul::integer;
}

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Float for $t {
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            fn into_f64(self) -> f64 {
                f64::from(self)
            }
            fn unary(op: Unary, x: Input<'_, Self>, caller: Caller) -> Tensor<Self> {
                #[cold]
                fn noted(op: Unary, x: Input<'_, $t>, caller: Caller) -> Tensor<$t> {
                    let inputs = vec![trace::any(x.tensor())];
                    let run = || elementwise::run_single(op.handle(), x, caller);
                    trace::op(|| trace::Call::of("unary", op.name(), []), || inputs, caller, run)
                }
                if trace::is_noting() {
                    return noted(op, x, caller);
                }
                elementwise::run_single(op.handle(), x, caller)
            }
            fn formula(
                op: &'static dyn Op<Self>,
                x: &Tensor<Self>,
                caller: Caller,
            ) -> Result<Tensor<Self>> {
                if !trace::is_noting() && elementwise::is_single(op.info()) {
                    return Ok(elementwise::run_single(Handle::Static(op), Input::Ref(x), caller));
                }
                let op = Handle::Static(op);
                let [y] = Self::elementwise(op, &[x], &[], caller)?
                    .into_inner()
                    .unwrap_or_else(|_| unreachable!("the op has one result"));
                Ok(y)
            }
            fn elementwise(
                op: Handle<Self>,
                reals: &[&Tensor<Self>],
                masks: &[&Tensor<bool>],
                caller: Caller,
            ) -> Result<Outputs<Self>> {
                let inputs = || {
                    let reals = reals.iter().map(|x| trace::any(*x));
                    reals.chain(masks.iter().map(|mask| trace::any(*mask))).collect()
                };
                if trace::is_noting() {
                    let call = trace::formula(&op);
                    let run = || elementwise::run(op, reals, masks, caller);
                    return trace::op(|| call, inputs, caller, run);
                }
                elementwise::run(op, reals, masks, caller)
            }
        }
    )*};
}

floats! { f32 f64 }
