//! The only room that knows ndarray and the number crunching: element types, shapes, buffers,
//! kernels. Nothing here knows of gradients.

pub(crate) mod buffer;
pub(crate) mod deferred;
pub(crate) mod element;
pub(crate) mod elementwise;
pub(crate) mod feed;
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "its kernels are run where there are named vectors: on x86-64")
)]
pub(crate) mod gemm;
pub(crate) mod integer;
pub(crate) mod math;
#[cfg_attr(
    not(feature = "static-graph"),
    allow(dead_code, reason = "programs add rows to products and ask for them in blocks")
)]
pub(crate) mod matmul;
pub(crate) mod pick;
pub(crate) mod pool;
pub(crate) mod reduce;
pub(crate) mod shape;
pub(crate) mod simd;
pub(crate) mod threads;
mod turned;
pub(crate) mod value;

pub use element::DType;
pub(crate) use element::{INLINE_BYTES, Storable};
pub use shape::IntoShape;
pub(crate) use shape::Shape;
pub(crate) use value::{Value, fits_inline};
