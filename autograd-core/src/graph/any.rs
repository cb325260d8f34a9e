//! Element types, and tensors with an erased one: edges, gradients and custom ops' saved tensors hold these.

use std::fmt::{self, Formatter};

use ndarray::ArrayD;
use triomphe::UniqueArc;

use super::context::{Place, Protected, Protector};
use super::lost_gradients::Lost;
use super::memory_cache::MemoryCache;
use super::node::NodeRef;
use super::node_parts::{Edge, Role, Saved, SavedState, SavedTensor};
use super::tensor::{Inner, Tensor};
use super::view::View;
use crate::array::shape::copied;
use crate::array::{DType, Shape, Storable, Value};
use crate::error::Result;
use crate::print::{Item, PrintOptions, print_options, render_tensor};

/// An element type of a tensor: `f32`, `f64`, `i32`, `i64`, `u8` or `bool`.
///
/// ```
/// use autograd_core::{Element, Tensor};
///
/// fn first<T: Element>(x: &Tensor<T>) -> T {
///     x.i(0).item()
/// }
/// assert!(first(&Tensor::from([true, false])) && first(&Tensor::from([7_u8])) == 7);
/// ```
#[diagnostic::on_unimplemented(
    message = "a tensor cannot hold elements of type `{Self}`",
    label = "not an element type",
    note = "element types are f32, f64, i32, i64, u8 and bool"
)]
#[allow(
    private_bounds,
    private_interfaces,
    reason = "how an element is recorded is no part of the public interface"
)]
pub trait Element: Storable + OfElements + Scalar<Self> + ElementFunctions {}

/// What an element type adds for the library. Not in scope where [`Element`] is: the compiler would take these
/// functions for methods of tensors that the user meant.
#[doc(hidden)]
#[allow(private_interfaces, reason = "nodes are no part of the public interface")]
pub trait ElementFunctions<T: Element = Self> {
    const DTYPE: DType;
    fn wrap(tensor: Tensor<T>) -> AnyTensor;
    fn unwrap(tensor: AnyTensor) -> Option<Tensor<T>>;
    fn peek(tensor: &AnyTensor) -> Option<&Tensor<T>>;
    fn peek_mut(tensor: &mut AnyTensor) -> Option<&mut Tensor<T>>;
    fn take_cached() -> Option<UniqueArc<Inner<T>>>;
    fn release(inner: UniqueArc<Inner<T>>);

    // Not generic: these, and what only they call, are compiled once, in this crate.
    fn alias(tensor: &Tensor<T>) -> Tensor<T>;
    fn filled(shape: &[usize], element: T) -> Tensor<T>;
    /// The elements for writing; `None` if the buffer is shared or not contiguous.
    fn elements(tensor: &mut Tensor<T>) -> Option<&mut [T]>;
    fn grad(tensor: &Tensor<T>) -> Option<Tensor<T>>;
    fn show(tensor: &Tensor<T>, f: &mut Formatter<'_>, options: PrintOptions) -> fmt::Result;
    fn handle(tensor: &Tensor<T>) -> &dyn TensorHandle;
    fn handle_mut(tensor: &mut Tensor<T>) -> &mut dyn TensorHandle;
}

/// The most dropped tensors whose memory a thread caches, for each element type; 200 bytes each.
const MAX_CACHED_TENSORS: usize = 1024;

macro_rules! any_tensor {
    ($($variant:ident($t:ty) $item:ident $cache:ident,)*) => {
        /// A tensor whose element type is known only at run time.
        ///
        /// ```
        /// use autograd_core::{AnyTensor, DType, Tensor};
        ///
        /// let x = Tensor::from([3.0, 4.0]);
        /// let any = AnyTensor::from(x.clone());
        /// assert_eq!((any.dtype(), any.shape(), any.len()), (DType::Float64, &[2][..], 2));
        /// assert!(any.is_same(&x.clone().into()) && any.id() == x.id() && !any.is_empty());
        /// assert!(any.stop_gradient() && any.grad().is_none());
        /// assert_eq!(any.norm(), 5.0);
        /// any.clear_grad();
        /// assert!(any.downcast_ref::<f32>().is_none());
        /// assert_eq!(any.copy().downcast::<f64>().unwrap().to_vec(), [3.0, 4.0]);
        /// ```
        #[derive(Clone)]
        #[non_exhaustive]
        pub enum AnyTensor {
            $(#[doc = concat!("Elements of type `", stringify!($t), "`.")] $variant(Tensor<$t>),)*
        }

        pub(super) fn empty_tensors() {
            $($cache.with(MemoryCache::empty);)*
        }

        $(
            thread_local! {
                static $cache: MemoryCache<Inner<$t>> = const { MemoryCache::new() };
            }

            impl Element for $t {}

            #[allow(private_interfaces, reason = "nodes are no part of the public interface")]
            impl ElementFunctions for $t {
                const DTYPE: DType = DType::$variant;

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
                fn take_cached() -> Option<UniqueArc<Inner<Self>>> {
                    MemoryCache::take(&$cache)
                }
                fn release(mut inner: UniqueArc<Inner<Self>>) {
                    inner.empty();
                    MemoryCache::give(&$cache, inner, MAX_CACHED_TENSORS);
                }
                fn alias(tensor: &Tensor<Self>) -> Tensor<Self> {
                    let large = || Tensor::from_value(tensor.read().into_owned());
                    tensor.small_copy(|_| ()).unwrap_or_else(large).with_lost(tensor.lost())
                }
                #[inline(never)]
                fn filled(shape: &[usize], element: Self) -> Tensor<Self> {
                    Tensor::from_value(Value::full(copied(shape), element))
                }
                #[inline(never)]
                fn elements(tensor: &mut Tensor<Self>) -> Option<&mut [Self]> {
                    tensor.value_mut().as_mut_slice()
                }
                #[inline(never)]
                fn grad(tensor: &Tensor<Self>) -> Option<Tensor<Self>> {
                    tensor.grad_here()
                }
                fn show(
                    tensor: &Tensor<Self>,
                    f: &mut Formatter<'_>,
                    options: PrintOptions,
                ) -> fmt::Result {
                    let value = tensor.read();
                    let value = value.contiguous();
                    let data = value.as_slice().unwrap_or(&[]);
                    let head = (Self::DTYPE.name(), tensor.stop_gradient());
                    let item = |i| Item::$item(Into::into(data[i]));
                    render_tensor(f, tensor.shape(), head, &item, options)
                }
                #[inline(never)]
                fn handle(tensor: &Tensor<Self>) -> &dyn TensorHandle {
                    tensor
                }
                #[inline(never)]
                fn handle_mut(tensor: &mut Tensor<Self>) -> &mut dyn TensorHandle {
                    tensor
                }
            }
        )*
    };
}

/// Runs one expression for a tensor of any element type, or of a listed one, and another for any other tensor.
macro_rules! for_any {
    ([$($of:ident)*] $any:expr, $tensor:ident => $body:expr, $rest:pat => $other:expr) => {
        match $any {
            $($crate::graph::AnyTensor::$of($tensor) => $body,)*
            $rest => $other,
        }
    };
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

/// As [`for_any`], for floats.
macro_rules! for_float {
    ($($given:tt)*) => {
        $crate::graph::for_any!([Float32 Float64] $($given)*)
    };
}
pub(crate) use for_float;

any_tensor! {
    Float32(f32) Float CACHE_F32,
    Float64(f64) Float CACHE_F64,
    Int32(i32) Integer CACHE_I32,
    Int64(i64) Integer CACHE_I64,
    UInt8(u8) Integer CACHE_U8,
    Bool(bool) Bool CACHE_BOOL,
}

impl AnyTensor {
    /// The element type.
    ///
    /// ```
    /// use autograd_core::{AnyTensor, DType, Tensor};
    ///
    /// assert_eq!(AnyTensor::from(Tensor::from([1.0_f32])).dtype(), DType::Float32);
    /// ```
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
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// let x = AnyTensor::from(Tensor::from([[1.0_f32, 2.0, 3.0]]));
    /// assert_eq!(x.shape(), [1, 3]);
    /// ```
    #[inline]
    pub fn shape(&self) -> &[usize] {
        for_any!(self, t => t.shape())
    }

    /// Number of elements.
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// let x = AnyTensor::from(Tensor::from([[1.0_f32, 2.0, 3.0]]));
    /// assert_eq!(x.len(), 3);
    /// ```
    #[doc(alias = "numel")]
    pub fn len(&self) -> usize {
        for_any!(self, t => t.len())
    }

    /// Whether there are no elements (an axis has length 0).
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// assert!(AnyTensor::from(Tensor::<f64>::zeros([0, 3])).is_empty());
    /// assert!(!AnyTensor::from(Tensor::from(1.0)).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether gradients stop here.
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// let x = Tensor::from(1.0);
    /// x.set_stop_gradient(false);
    /// assert!(!AnyTensor::from(x).stop_gradient());
    /// assert!(AnyTensor::from(Tensor::from(1_i64)).stop_gradient());
    /// ```
    pub fn stop_gradient(&self) -> bool {
        for_any!(self, t => t.stop_gradient())
    }

    /// As [`Tensor::is_same`]; tensors of different element types are not the same.
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// let x = AnyTensor::from(Tensor::from([[1.0_f32, 2.0, 3.0]]));
    /// assert!(x.is_same(&x.clone()) && !x.is_same(&x.copy()));
    /// ```
    pub fn is_same(&self, other: &AnyTensor) -> bool {
        self.address() == other.address()
    }

    /// The tensor, if its elements are of type `T`; else `None`.
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// let x = AnyTensor::from(Tensor::from([[1.0_f32, 2.0, 3.0]]));
    /// assert_eq!(x.downcast_ref::<f32>().unwrap().to_vec(), [1.0, 2.0, 3.0]);
    /// assert!(x.downcast_ref::<f64>().is_none());
    /// ```
    pub fn downcast_ref<T: Element>(&self) -> Option<&Tensor<T>> {
        T::peek(self)
    }

    /// The tensor, if its elements are of type `T`.
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// let x = AnyTensor::from(Tensor::from([[1.0_f32, 2.0, 3.0]]));
    /// assert_eq!(x.clone().downcast::<f32>().unwrap().to_vec(), [1.0, 2.0, 3.0]);
    /// assert!(x.downcast::<f64>().is_none());
    /// ```
    pub fn downcast<T: Element>(self) -> Option<Tensor<T>> {
        T::unwrap(self)
    }

    /// As [`Tensor::copy`], of the same shape and element type.
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// let mut x = Tensor::from([1.0, 2.0]);
    /// let copy = AnyTensor::from(x.clone()).copy();
    /// x += 10.0;
    /// assert_eq!(x.to_vec(), [11.0, 12.0]);
    /// assert_eq!(copy.downcast::<f64>().unwrap().to_vec(), [1.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn copy(&self) -> AnyTensor {
        for_any!(self, t => t.copy().into())
    }

    /// As [`Tensor::id`].
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// let (x, y) = (Tensor::from(1.0), Tensor::from(1.0));
    /// assert_eq!(AnyTensor::from(x.clone()).id(), x.id());
    /// assert_ne!(AnyTensor::from(y).id(), x.id());
    /// ```
    pub fn id(&self) -> TensorId {
        TensorId(self.address().addr())
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

    #[inline]
    pub(crate) fn unshare(&mut self) {
        for_any!(self, t => t.unshare());
    }

    pub(crate) fn alias(&self) -> Self {
        for_any!(self, t => t.alias().into())
    }

    pub(crate) fn snapshot(&self) -> Self {
        for_any!(self, t => t.snapshot().into())
    }
}

/// Which tensor it is, as a key of a map; see [`Tensor::id`].
///
/// ```
/// use std::collections::HashSet;
///
/// use autograd_core::{Tensor, TensorId};
///
/// let w = Tensor::from([1.0]);
/// let list = [w.clone(), w.copy(), w];
/// assert_eq!(list.iter().map(Tensor::id).collect::<HashSet<TensorId>>().len(), 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorId(usize);

impl<T: Element> Tensor<T> {
    /// Returns a key that all clones of this tensor have, and no other tensor that exists at the same time. After the
    /// last clone is dropped, a new tensor may get the same key.
    ///
    /// ```
    /// use std::collections::HashMap;
    ///
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// let (w, b) = (Tensor::from(1.0), Tensor::from(2.0));
    /// let names = HashMap::from([(w.id(), "w"), (b.id(), "b")]);
    /// assert_eq!(names[&w.clone().id()], "w");
    /// assert_eq!(names[&AnyTensor::from(b.clone()).id()], "b");
    /// assert!(!names.contains_key(&w.copy().id()));
    /// ```
    pub fn id(&self) -> TensorId {
        TensorId(self.address().addr())
    }

    pub(crate) fn untyped(&self) -> AnyTensor {
        T::wrap(self.clone())
    }
}

impl<T: Element> From<Tensor<T>> for AnyTensor {
    fn from(tensor: Tensor<T>) -> Self {
        T::wrap(tensor)
    }
}

/// # Printing
impl<T: Element> Tensor<T> {
    /// Formats the tensor with its own options; see [`PrintOptions`].
    ///
    /// ```
    /// use autograd_core::{PrintOptions, Tensor};
    ///
    /// let x = Tensor::from([1.25, 0.123456789]);
    /// let text = x.display(PrintOptions::new().precision(2)).to_string();
    /// assert!(text.ends_with("[1.25, 0.12])"));
    /// ```
    pub fn display(&self, options: PrintOptions) -> impl fmt::Display + '_ {
        Shown(self, options)
    }
}

struct Shown<'a, T: Element>(&'a Tensor<T>, PrintOptions);

impl<T: Element> fmt::Display for Shown<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        T::show(self.0, f, self.1)
    }
}

impl<T: Element> fmt::Display for Tensor<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        T::show(self, f, print_options())
    }
}

impl<T: Element> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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

/// A number as an operand beside a tensor of `T`: a `T`; beside float tensors also an `f64` or an
/// integer, as in `x.maximum(2)`. Operators, and all methods of a tensor and a number, accept it;
/// see [`Operand`](crate::Operand). Options of an op, such as probabilities and `eps`, are `f64`.
///
/// ```
/// use autograd_core::{Float, Tensor};
///
/// fn soft_threshold<T: Float>(x: &Tensor<T>, width: f64) -> Tensor<T> {
///     let outside = x.abs().gt_scalar(width).cast::<T>();
///     outside * (x - x.clamp(-width, width))
/// }
///
/// assert_eq!(soft_threshold(&Tensor::<f32>::from([-3.0, 0.5]), 1.0).to_vec(), [-2.0, 0.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be combined with a tensor of `{T}`",
    label = "write a `{T}`, or an `f64` beside floats",
    note = "`cast` changes the element type of a tensor"
)]
pub trait Scalar<T>: Sized {
    #[doc(hidden)]
    fn scalar(self) -> T;
}

pub(crate) trait OfElements<T: Element = Self> {
    fn of_vec(shape: Shape, data: Vec<T>) -> Result<Tensor<T>>;
    fn of_slice(shape: Shape, data: &[T]) -> Tensor<T>;
    fn item(x: &Tensor<T>) -> Result<T>;
    fn to_vec(x: &Tensor<T>) -> Vec<T>;
    fn to_ndarray(x: &Tensor<T>) -> ArrayD<T>;
    fn view(x: &Tensor<T>) -> View<'_, T>;
    #[cfg(feature = "nn")]
    fn own(x: &Tensor<T>) -> Tensor<T>;
    fn detach(x: &Tensor<T>, at: Place) -> Tensor<T>;
    fn copy(x: &Tensor<T>, at: Place) -> Tensor<T>;
    fn contiguous(x: &Tensor<T>, at: Place) -> Tensor<T>;
    fn split(x: &Tensor<T>, parts: usize, axis: isize, at: Place) -> Result<Vec<Tensor<T>>>;
    fn copy_from(x: &Tensor<T>, source: &Tensor<T>, at: Place) -> Result<()>;
    fn fill(x: &Tensor<T>, element: T) -> Result<()>;
    fn replace(x: &mut Tensor<T>, name: &'static str, result: Tensor<T>) -> Result<()>;
}

/// A borrowed tensor of any element type. A function of `&dyn TensorHandle` is compiled once, in the
/// library; one of `&Tensor<T>` in each crate that calls it, for each `T`.
pub(crate) trait TensorHandle {
    fn address(&self) -> *const ();
    fn shape(&self) -> &[usize];
    fn stop_gradient(&self) -> bool;
    fn has_producer(&self) -> bool;
    fn version(&self) -> u32;
    /// Protects this tensor if it wants a gradient; returns whether it does. The tensor is, or is part of,
    /// input `position` of a custom op whose forward is about to run.
    fn protect(
        &self,
        protected: &mut Vec<Protected>,
        protector: &'static dyn Protector,
        position: usize,
    ) -> bool;
    fn edge(&self) -> Edge;
    fn save(&self, into: &mut SavedState);
    /// The form in which a node keeps this output of it, which was saved in version `saved`.
    fn kept_output(&self, saved: u32) -> SavedTensor;
    fn lost(&self) -> Lost;
    /// Why the result of an unrecorded op on it is outside the graph. `derived`: the op has a derivative.
    fn lost_by(&self, op: &'static str, at: Place, derived: bool) -> Lost;
    fn any(&self) -> AnyTensor;
    fn store_lost(&self, lost: Lost);
    fn store_stop_gradient(&self, stop: bool, place: Place);
    /// Replaces this handle by a separate tensor with the same value, outside the graph.
    fn become_alias(&mut self);
    fn attach(&mut self, node: NodeRef, slot: u32);
}

impl<T: Element> TensorHandle for Tensor<T> {
    fn address(&self) -> *const () {
        Tensor::address(self)
    }

    fn shape(&self) -> &[usize] {
        Tensor::shape(self)
    }

    fn stop_gradient(&self) -> bool {
        Tensor::stop_gradient(self)
    }

    fn has_producer(&self) -> bool {
        self.producer().is_some()
    }

    fn version(&self) -> u32 {
        Tensor::version(self)
    }

    fn protect(
        &self,
        protected: &mut Vec<Protected>,
        protector: &'static dyn Protector,
        position: usize,
    ) -> bool {
        let wants = !self.stop_gradient();
        if wants {
            let ((version, data), position) = (self.shared_state(), position as u32);
            let tensor = self.address();
            protected.push(Protected { tensor, data, protector, version, position });
        }
        wants
    }

    #[inline(never)]
    fn edge(&self) -> Edge {
        Tensor::edge(self)
    }

    fn save(&self, into: &mut SavedState) {
        let (tensor, version) = (T::wrap(self.clone()), self.version());
        into.push(Saved::Tensor(SavedTensor { tensor, version, role: Role::Intermediate }));
    }

    fn kept_output(&self, saved: u32) -> SavedTensor {
        // Not zero if forward changed the output after saving it.
        let version = self.version().abs_diff(saved);
        SavedTensor { tensor: T::wrap(self.alias().wanting()), version, role: Role::Intermediate }
    }

    fn lost(&self) -> Lost {
        Tensor::lost(self)
    }

    fn lost_by(&self, op: &'static str, at: Place, derived: bool) -> Lost {
        match derived {
            true => Lost::of(op, at, self),
            false => Lost::without_derivative(op, at, self),
        }
    }

    fn any(&self) -> AnyTensor {
        T::wrap(self.clone())
    }

    fn store_lost(&self, lost: Lost) {
        Tensor::store_lost(self, lost);
    }

    fn store_stop_gradient(&self, stop: bool, place: Place) {
        Tensor::store_stop_gradient(self, stop, place);
    }

    fn become_alias(&mut self) {
        *self = self.alias();
    }

    fn attach(&mut self, node: NodeRef, slot: u32) {
        Tensor::attach(self, node, slot);
    }
}
