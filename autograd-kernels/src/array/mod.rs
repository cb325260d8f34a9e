//! Arrays: element types, shapes, buffers, and the kernels that run over them.

pub mod buffer;
mod deferred;
pub mod elementwise;
pub mod feed;
pub mod gemm;
pub mod integer;
pub mod math;
pub mod matmul;
pub mod pick;
pub mod pool;
pub mod reduce;
pub mod rows;
pub mod shape;
pub mod simd;
pub mod threads;
mod transpose;
mod value;

pub use deferred::Step;
pub use math::Cheap;
pub use pool::{INLINE_BYTES, Storable};
pub use shape::Shape;
pub use value::{Value, fits_inline};
