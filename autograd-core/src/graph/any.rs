//! Where element types are erased: edges, gradients on their way, saved tensors of layers.

use std::fmt::{self, Formatter};

use triomphe::Arc;

use super::handle::Handle;
use super::node::{Absent, NodeRef};
use super::spare::Spare;
use super::tensor::{Inner, Tensor};
use crate::array::shape::copied;
use crate::array::{DType, Typed, Value};
use crate::ops::{Comparisons, OfElements, Scalar};
use crate::print::Printable;

mod sealed {
    pub trait Sealed {}
}

/// An element type of a tensor: `f32`, `f64`, `i32`, `i64`, `u8` or `bool`.
#[diagnostic::on_unimplemented(
    message = "a tensor cannot hold elements of type `{Self}`",
    label = "not an element type",
    note = "element types are f32, f64, i32, i64, u8 and bool"
)]
#[allow(
    private_bounds,
    private_interfaces,
    reason = "how an element is printed and recorded is no part of the public interface"
)]
pub trait Element:
    Typed + Printable + Comparisons + OfElements + Scalar<Self> + sealed::Sealed
{
    #[doc(hidden)]
    fn wrap(tensor: Tensor<Self>) -> AnyTensor;
    #[doc(hidden)]
    fn unwrap(tensor: AnyTensor) -> Option<Tensor<Self>>;
    #[doc(hidden)]
    fn peek(tensor: &AnyTensor) -> Option<&Tensor<Self>>;
    #[doc(hidden)]
    fn peek_mut(tensor: &mut AnyTensor) -> Option<&mut Tensor<Self>>;
    #[doc(hidden)]
    fn take_spare() -> Option<Arc<Inner<Self>>>;
    #[doc(hidden)]
    fn release(inner: Arc<Inner<Self>>);

    // In a release build each crate compiles for itself the generic functions that it reaches.
    // These are compiled here, and what only they reach is too.
    #[doc(hidden)]
    fn attach(tensor: &mut Tensor<Self>, node: NodeRef, slot: u32);
    #[doc(hidden)]
    fn alias(tensor: &Tensor<Self>) -> Tensor<Self>;
    #[doc(hidden)]
    fn absent(tensor: &Tensor<Self>) -> Absent;
    #[doc(hidden)]
    fn filled(shape: &[usize], element: Self) -> Tensor<Self>;
    /// The data, to write; `None` where its buffer is shared or lies in another order.
    #[doc(hidden)]
    fn elements(tensor: &mut Tensor<Self>) -> Option<&mut [Self]>;
    #[doc(hidden)]
    fn grad(tensor: &Tensor<Self>) -> Option<Tensor<Self>>;
    #[doc(hidden)]
    fn show(tensor: &Tensor<Self>, f: &mut Formatter<'_>) -> fmt::Result;
    #[doc(hidden)]
    fn handle(tensor: &Tensor<Self>) -> &dyn Handle;
    #[doc(hidden)]
    fn handle_mut(tensor: &mut Tensor<Self>) -> &mut dyn Handle;
}

macro_rules! any_tensor {
    ($($variant:ident($t:ty) $spares:ident,)*) => {
        /// A tensor whose element type is known when running only.
        #[derive(Clone)]
        #[non_exhaustive]
        pub enum AnyTensor {
            $(#[doc = concat!("Elements of type `", stringify!($t), "`.")] $variant(Tensor<$t>),)*
        }

        /// Gives back what this thread keeps of tensors that are gone.
        pub(super) fn empty_tensors() {
            $($spares.with(Spare::empty);)*
        }

        $(
            thread_local! {
                static $spares: Spare<$t> = const { Spare::new() };
            }

            impl sealed::Sealed for $t {}

            #[allow(private_interfaces, reason = "nodes are no part of the public interface")]
            impl Element for $t {
                fn wrap(tensor: Tensor<Self>) -> AnyTensor {
                    AnyTensor::$variant(tensor)
                }
                fn unwrap(tensor: AnyTensor) -> Option<Tensor<Self>> {
                    match tensor {
                        AnyTensor::$variant(tensor) => Some(tensor),
                        _ => None,
                    }
                }
                fn peek(tensor: &AnyTensor) -> Option<&Tensor<Self>> {
                    match tensor {
                        AnyTensor::$variant(tensor) => Some(tensor),
                        _ => None,
                    }
                }
                fn peek_mut(tensor: &mut AnyTensor) -> Option<&mut Tensor<Self>> {
                    match tensor {
                        AnyTensor::$variant(tensor) => Some(tensor),
                        _ => None,
                    }
                }
                fn take_spare() -> Option<Arc<Inner<Self>>> {
                    // A thread that is ending has no spares any more.
                    $spares.try_with(Spare::take).ok().flatten()
                }
                fn release(mut inner: Arc<Inner<Self>>) {
                    if Spare::empties(&mut inner) {
                        let _ = $spares.try_with(|spares| Spare::give(spares, inner));
                    }
                }
                fn attach(tensor: &mut Tensor<Self>, node: NodeRef, slot: u32) {
                    tensor.attach_here(node, slot);
                }
                fn alias(tensor: &Tensor<Self>) -> Tensor<Self> {
                    tensor.alias_here()
                }
                fn absent(tensor: &Tensor<Self>) -> Absent {
                    tensor.absent_here()
                }
                #[inline(never)]
                fn filled(shape: &[usize], element: Self) -> Tensor<Self> {
                    Tensor::new(Value::full(copied(shape), element))
                }
                #[inline(never)]
                fn elements(tensor: &mut Tensor<Self>) -> Option<&mut [Self]> {
                    tensor.value_mut().as_mut_slice()
                }
                #[inline(never)]
                fn grad(tensor: &Tensor<Self>) -> Option<Tensor<Self>> {
                    tensor.grad_here()
                }
                fn show(tensor: &Tensor<Self>, f: &mut Formatter<'_>) -> fmt::Result {
                    tensor.show_here(f)
                }
                #[inline(never)]
                fn handle(tensor: &Tensor<Self>) -> &dyn Handle {
                    tensor
                }
                #[inline(never)]
                fn handle_mut(tensor: &mut Tensor<Self>) -> &mut dyn Handle {
                    tensor
                }
            }
        )*
    };
}

/// Runs an expression for whichever tensor an [`AnyTensor`] holds.
macro_rules! for_any {
    ($any:expr, $tensor:ident => $body:expr) => {
        match $any {
            $crate::graph::AnyTensor::Float32($tensor) => $body,
            $crate::graph::AnyTensor::Float64($tensor) => $body,
            $crate::graph::AnyTensor::Int32($tensor) => $body,
            $crate::graph::AnyTensor::Int64($tensor) => $body,
            $crate::graph::AnyTensor::UInt8($tensor) => $body,
            $crate::graph::AnyTensor::Bool($tensor) => $body,
        }
    };
}
pub(crate) use for_any;

any_tensor! {
    Float32(f32) SPARES_F32,
    Float64(f64) SPARES_F64,
    Int32(i32) SPARES_I32,
    Int64(i64) SPARES_I64,
    UInt8(u8) SPARES_U8,
    Bool(bool) SPARES_BOOL,
}

impl AnyTensor {
    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            Self::Float32(_) => DType::Float32,
            Self::Float64(_) => DType::Float64,
            Self::Int32(_) => DType::Int32,
            Self::Int64(_) => DType::Int64,
            Self::UInt8(_) => DType::UInt8,
            Self::Bool(_) => DType::Bool,
        }
    }

    /// Lengths of the axes.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        for_any!(self, t => t.shape())
    }

    /// Whether gradients stop here.
    pub fn stop_gradient(&self) -> bool {
        for_any!(self, t => t.stop_gradient())
    }

    /// The tensor, if its elements are of type `T`.
    pub fn downcast_ref<T: Element>(&self) -> Option<&Tensor<T>> {
        T::peek(self)
    }

    /// The tensor, if its elements are of type `T`.
    pub fn downcast<T: Element>(self) -> Option<Tensor<T>> {
        T::unwrap(self)
    }

    /// As [`Tensor::copy`].
    #[track_caller]
    pub fn copy(&self) -> AnyTensor {
        for_any!(self, t => t.copy().into())
    }

    /// Identity: clones of one tensor have the same address.
    pub(crate) fn address(&self) -> *const () {
        for_any!(self, t => t.address())
    }

    pub(crate) fn version(&self) -> u32 {
        for_any!(self, t => t.version())
    }

    pub(crate) fn unshared(mut self) -> Self {
        self.unshare();
        self
    }

    /// As [`Tensor::unshare`].
    #[inline]
    pub(crate) fn unshare(&mut self) {
        for_any!(self, t => t.unshare());
    }

    /// As [`Tensor::lent`].
    pub(crate) fn lent(&self) -> Self {
        for_any!(self, t => Element::wrap(t.lent()))
    }

    /// As [`Tensor::kept_output`].
    pub(crate) fn kept_output(&self) -> Self {
        for_any!(self, t => Element::wrap(t.kept_output()))
    }

    /// The same value as a tensor of its own, outside the graph.
    pub(crate) fn alias(&self) -> Self {
        for_any!(self, t => Element::wrap(t.alias()))
    }
}

impl<T: Element> From<Tensor<T>> for AnyTensor {
    fn from(tensor: Tensor<T>) -> Self {
        T::wrap(tensor)
    }
}

impl fmt::Debug for AnyTensor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for_any!(self, t => fmt::Debug::fmt(t, f))
    }
}

impl fmt::Display for AnyTensor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for_any!(self, t => fmt::Display::fmt(t, f))
    }
}
