//! Ops compiled in the library, once for each element type.
//!
//! A release build shares no generic function between crates: whoever calls one compiles it anew,
//! with all that it calls. So the methods of [`Tensor`] are short, and what they do stands behind a
//! method of one of these traits, which is not generic.

use ndarray::{ArrayD, CowArray, IxDyn};

use super::inplace::{copy_from, fill, replace};
#[cfg(feature = "nn")]
use super::nn::batch_norm;
use super::nn::{
    Conv2dOptions, PoolOptions, Softmax, Weights, avg_pool2d, binary_cross_entropy, conv2d,
    cross_entropy, deviation, dropout, elu, leaky_relu, linear, logsumexp, max_pool2d, norm,
    normalize, smooth_l1_loss, softmax, var,
};
use super::{Caller, Float, Numeric, compare, create, index, shape};
use crate::array::{DType, Shape};
use crate::error::Result;
use crate::graph::{AnyTensor, OfElements, Tensor};

/// Traits, and for each type an implementation that calls generic functions; or the implementation alone. Its methods stay calls:
/// inlined, they would be compiled again elsewhere after all.
macro_rules! instances {
    (impl $trait:ident for $($t:ident)*; $methods:tt) => {
        $(instances!(@implement $trait $t $methods);)*
    };
    ($($(#[$doc:meta])* trait $trait:ident for $bound:ident: $($t:ident)*; $methods:tt)*) => {$(
        instances!(@declare [$(#[$doc])*] $trait $bound $methods);
        $(instances!(@implement $trait $t $methods);)*
    )*};
    (@declare [$($doc:tt)*] $trait:ident $bound:ident {
        $($(#[$cfg:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $function:path;)*
    }) => {
        $($doc)*
        pub(crate) trait $trait: Sized {
            $($(#[$cfg])* fn $name($($arg: $ty),*) $(-> $ret)? where Self: $bound;)*
        }
    };
    (@implement $trait:ident $t:ident {
        $($(#[$cfg:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $function:path;)*
    }) => {
        impl $trait for $t {
            $(
                $(#[$cfg])*
                #[inline(never)]
                fn $name($($arg: $ty),*) $(-> $ret)? {
                    $function($($arg),*)
                }
            )*
        }
    };
}

pub(crate) use instances;

instances! {
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

instances! {
    /// Ops on numbers.
    trait OfNumbers for Numeric: f32 f64 i32 i64 u8; {
        fn broadcast_to(x: &Tensor<Self>, shape: Shape, at: Caller) -> Result<Tensor<Self>>
            = shape::broadcast_to;
        fn triangle(x: &Tensor<Self>, part: shape::Triangle, at: Caller) -> Result<Tensor<Self>>
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

    /// Ops on floats.
    trait OfFloats for Float: f32 f64; {
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
