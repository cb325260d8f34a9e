//! `Value`: shape, strides and data of a tensor, without any autograd.

use std::borrow::Cow;
use std::sync;

use ndarray::{ArcArray, ArrayD, ArrayViewD, IxDyn, ShapeBuilder, s};
use triomphe::Arc;

use super::Storable;
use super::buffer::Buffer;
use super::deferred::{Defer, Deferred, Step, Write, pays};
use super::math::Math;
use super::pool::with_capacity;
use super::rows::{Walk, merged};
use super::shape::{
    Shape, assign, broadcast_strides, copied, count, is_row_major, offset, row_major, same,
};
use super::transpose::{MIN_TILED, contiguous_axis, copy_tiles};

/// Where the elements are stored. Inline data is row-major, so it never has strides.
enum Storage<T: Storable> {
    Inline(T::Inline),
    Heap {
        buffer: Arc<Buffer<T>>,
        offset: usize,
    },
    /// Row-major, like a buffer: computed when the elements are requested.
    Deferred(sync::Arc<dyn Defer<T>>),
}

// Not derived: small ops would take 5 % longer.
impl<T: Storable> Clone for Storage<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Inline(data) => Self::Inline(*data),
            Self::Heap { buffer, offset } => {
                Self::Heap { buffer: Arc::clone(buffer), offset: *offset }
            }
            Self::Deferred(deferred) => Self::Deferred(sync::Arc::clone(deferred)),
        }
    }
}

/// An n-dimensional array with value semantics: clones share their buffer, and a buffer is written only while
/// a single value holds it.
pub struct Value<T: Storable> {
    shape: Shape,
    /// `None` if the data is row-major and contiguous.
    strides: Option<Box<Shape>>,
    storage: Storage<T>,
}

impl<T: Storable> Clone for Value<T> {
    fn clone(&self) -> Self {
        Self {
            shape: copied(&self.shape),
            strides: self.strides.clone(),
            storage: self.storage.clone(),
        }
    }
}

#[inline(always)]
pub fn fits_inline<T: Storable>(len: usize) -> bool {
    len * size_of::<T>() <= super::INLINE_BYTES
}

impl<T: Storable> Value<T> {
    pub fn from_vec(shape: Shape, data: Vec<T>) -> Self {
        debug_assert_eq!(count(&shape), data.len());
        if fits_inline::<T>(data.len()) {
            return Self::from_slice(shape, &data);
        }
        Self::of_buffer(shape, data.into())
    }

    fn of_buffer(shape: Shape, buffer: Buffer<T>) -> Self {
        debug_assert_eq!(count(&shape), buffer.len());
        let storage = Storage::Heap { buffer: Arc::new(buffer), offset: 0 };
        Self { shape, strides: None, storage }
    }

    /// A value over foreign memory, which is only read. Data that is small, not aligned or has a negative stride is
    /// copied, and the owner dropped.
    ///
    /// # Safety
    ///
    /// The element with index `i` is at `data` plus the sum of `i[axis] * strides[axis]` elements, of one allocation
    /// and initialized; `data` need not be aligned. The elements do not change before `owner` is dropped, which may
    /// happen on any thread.
    pub unsafe fn foreign(
        shape: Shape,
        strides: &[isize],
        data: *const T,
        owner: Box<dyn Send + Sync>,
    ) -> Self {
        let len = count(&shape);
        let steps =
            strides.iter().map(|&step| usize::try_from(step).ok()).collect::<Option<Shape>>();
        let Some(steps) = steps.filter(|_| data.is_aligned() && !fits_inline::<T>(len)) else {
            // SAFETY: as of this function.
            return unsafe { Self::copied_from(shape, strides, data) };
        };
        let last: usize = shape.iter().zip(&steps).map(|(n, step)| (n - 1) * step).sum();
        // SAFETY: elements between those of the value belong to the same allocation; they are not read by a stride.
        let buffer = unsafe { Buffer::foreign(data, last + 1, owner) };
        let strides = (!is_row_major(&shape, &steps)).then(|| Box::new(steps));
        Self { shape, strides, storage: Storage::Heap { buffer: Arc::new(buffer), offset: 0 } }
    }

    /// # Safety
    ///
    /// As of [`foreign`](Self::foreign).
    unsafe fn copied_from(shape: Shape, strides: &[isize], data: *const T) -> Self {
        let (lengths, mut place) = (shape.clone(), vec![0_usize; shape.len()]);
        Self::written(shape, &mut |out| {
            for element in out {
                let steps = place.iter().zip(strides);
                let at: isize = steps.map(|(&i, &step)| i as isize * step).sum();
                // SAFETY: the element at these strides, as the caller has promised.
                *element = unsafe { data.offset(at).read_unaligned() };
                for axis in (0..place.len()).rev() {
                    place[axis] += 1;
                    if place[axis] < lengths[axis] {
                        break;
                    }
                    place[axis] = 0;
                }
            }
        })
    }

    pub fn from_slice(shape: Shape, data: &[T]) -> Self {
        debug_assert_eq!(count(&shape), data.len());
        Self::written(shape, &mut |out| out.copy_from_slice(data))
    }

    pub fn full(shape: Shape, element: T) -> Self {
        Self::written(shape, &mut |out| out.fill(element))
    }

    /// Creates a value whose row-major data is written by `fill`, over a slice with unspecified content.
    pub fn written(shape: Shape, fill: &mut dyn FnMut(&mut [T])) -> Self {
        let mut value = Self::any(shape);
        fill(value.make_mut());
        value
    }

    /// Creates a row-major value with unspecified elements.
    pub fn any(shape: Shape) -> Self {
        let len = count(&shape);
        match fits_inline::<T>(len) {
            true => Self::of_inline(shape, T::INLINE),
            false => Self::of_buffer(shape, Buffer::any(len)),
        }
    }

    /// Creates a value from inline data; elements beyond the shape's are ignored.
    pub fn of_inline(shape: Shape, data: T::Inline) -> Self {
        Self { shape, strides: None, storage: Storage::Inline(data) }
    }

    pub fn scalar(element: T) -> Self {
        let mut inline = T::INLINE;
        inline.as_mut()[0] = element;
        Self { shape: Shape::new(), strides: None, storage: Storage::Inline(inline) }
    }

    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    #[inline]
    pub fn len(&self) -> usize {
        count(&self.shape)
    }

    /// The common value of all elements, if the layout implies it: one element, or broadcast.
    pub fn uniform(&self) -> Option<T> {
        let mut axes = self.shape.iter().enumerate();
        let step = |axis: usize| self.strides.as_ref().map_or(1, |strides| strides[axis]);
        if axes.all(|(axis, &n)| n == 1 || step(axis) == 0) { self.first() } else { None }
    }

    pub fn is_row_major(&self) -> bool {
        self.strides.is_none()
    }

    pub fn strides(&self) -> Shape {
        match &self.strides {
            Some(strides) => copied(strides),
            None => row_major(&self.shape),
        }
    }

    /// The elements in row-major order; `None` if the data is strided.
    pub fn as_slice(&self) -> Option<&[T]> {
        match (&self.storage, &self.strides) {
            (Storage::Inline(data), _) => Some(&data.as_ref()[..self.len()]),
            (Storage::Heap { buffer, offset }, None) => Some(&buffer[*offset..][..self.len()]),
            (Storage::Deferred(deferred), _) => Some(deferred.made()),
            _ => None,
        }
    }

    /// The elements for writing in place; `None` if they are strided or the buffer is shared.
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        let len = self.len();
        if let Storage::Deferred(deferred) = &self.storage {
            self.storage = Storage::Heap { buffer: Arc::clone(deferred.made()), offset: 0 };
        }
        match (&mut self.storage, &self.strides) {
            (Storage::Inline(data), _) => Some(&mut data.as_mut()[..len]),
            (Storage::Heap { buffer, offset }, None) => {
                Arc::get_mut(buffer).map(|buffer| &mut buffer[*offset..][..len])
            }
            _ => None,
        }
    }

    /// The elements for writing in place; copied first if they are strided or the buffer is shared.
    pub fn make_mut(&mut self) -> &mut [T] {
        if self.as_mut_slice().is_none() {
            let whole = self.contiguous();
            *self = Self::from_slice(self.shape.clone(), whole.as_slice().unwrap_or(&[]));
        }
        self.as_mut_slice().unwrap_or_else(|| unreachable!("nobody else has seen this copy"))
    }

    #[inline]
    pub fn is_inline(&self) -> bool {
        matches!(self.storage, Storage::Inline(_))
    }

    /// The whole inline array, including its unused elements; `None` if the data is not inline.
    #[inline]
    pub fn inline(&self) -> Option<&T::Inline> {
        match &self.storage {
            Storage::Inline(data) => Some(data),
            _ => None,
        }
    }

    #[inline]
    pub fn inline_mut(&mut self) -> Option<(&mut T::Inline, &[usize])> {
        match &mut self.storage {
            Storage::Inline(data) => Some((data, &self.shape)),
            _ => None,
        }
    }

    /// Gives this value, whose data is inline, another shape of a small value. Returns the data.
    #[inline]
    pub fn reshape_inline(&mut self, shape: &[usize]) -> &mut T::Inline {
        assign(&mut self.shape, shape);
        match &mut self.storage {
            Storage::Inline(data) => data,
            _ => unreachable!("the data is inline"),
        }
    }

    /// Releases the buffer. The shape and inline data stay.
    #[inline]
    pub fn empty(&mut self) {
        self.strides = None;
        if !self.is_inline() {
            self.storage = Storage::Inline(T::INLINE);
        }
    }

    /// Whether to defer cheap functions of the elements: they are many, and fill a whole buffer.
    pub fn can_defer(&self) -> bool {
        match &self.storage {
            Storage::Inline(_) => false,
            Storage::Heap { buffer, .. } => {
                let len = buffer.len();
                pays::<T>(len) && self.strides.is_none() && len == self.len()
            }
            Storage::Deferred(_) => true,
        }
    }

    pub fn is_deferred(&self) -> bool {
        matches!(&self.storage, Storage::Deferred(deferred) if !deferred.is_made())
    }

    /// What computes deferred elements block by block; `None` if they are in memory.
    pub fn source(&self) -> Option<Box<Write<T>>> {
        match &self.storage {
            Storage::Deferred(deferred) => deferred.source(),
            _ => None,
        }
    }

    pub fn materialize(&self) {
        self.raw();
    }

    /// The buffer's elements, from this value's first one on; to be read by strides.
    pub fn raw(&self) -> &[T] {
        match &self.storage {
            Storage::Inline(data) => data.as_ref(),
            Storage::Heap { buffer, offset } => &buffer[(*offset).min(buffer.len())..],
            Storage::Deferred(deferred) => deferred.made(),
        }
    }

    pub fn first(&self) -> Option<T> {
        if self.len() == 0 { None } else { self.raw().first().copied() }
    }

    /// The element at `place` in row-major order, which must exist.
    pub fn nth(&self, place: usize) -> T {
        self.raw()[offset(place, &self.shape, &self.strides())]
    }

    pub fn view(&self) -> ArrayViewD<'_, T> {
        let shape = IxDyn(&self.shape);
        // The strides of an empty array are never followed, and ndarray wants them all in bounds.
        let view = match (&self.strides, self.as_slice()) {
            (None, Some(slice)) => ArrayViewD::from_shape(shape, slice),
            _ if self.len() == 0 => ArrayViewD::from_shape(shape, &[]),
            _ => ArrayViewD::from_shape(shape.strides(IxDyn(&self.strides())), self.raw()),
        };
        view.unwrap_or_else(|_| unreachable!("a value's strides stay inside its buffer"))
    }

    /// The elements as an array that holds the buffer: a later write copies it if the array lives. Elements
    /// that are strided or in a shared buffer are copied first, into a buffer of this value.
    pub fn lend(&mut self) -> ArcArray<T, IxDyn> {
        let shape = IxDyn(&self.shape);
        if self.is_inline() {
            return self.to_ndarray().into_shared();
        }
        let (lent, start) = match (&mut self.storage, &self.strides) {
            (Storage::Heap { buffer, offset }, None) => {
                (Arc::get_mut(buffer).map(Buffer::lend).or_else(|| buffer.lent()), *offset)
            }
            _ => (None, 0),
        };
        let Some(lent) = lent else {
            *self = Self::of_buffer(copied(&self.shape), self.to_vec().into());
            return self.lend();
        };
        lent.slice_move(s![start..start + self.len()])
            .into_shape_with_order(shape)
            .unwrap_or_else(|_| unreachable!("a value has as many elements as its shape"))
    }

    pub fn to_vec(&self) -> Vec<T> {
        let mut elements = with_capacity(self.len());
        match self.as_slice() {
            Some(slice) => elements.extend_from_slice(slice),
            None => elements.extend(self.view().iter()),
        }
        elements
    }

    pub fn to_ndarray(&self) -> ArrayD<T> {
        ArrayD::from_shape_vec(IxDyn(&self.shape), self.to_vec())
            .unwrap_or_else(|_| unreachable!("a value has as many elements as its shape"))
    }

    /// The same elements in row-major order; copies only if they are strided.
    pub fn contiguous(&self) -> Cow<'_, Self> {
        if self.strides.is_none() { Cow::Borrowed(self) } else { Cow::Owned(self.gather()) }
    }

    pub fn into_contiguous(self) -> Self {
        if self.strides.is_none() { self } else { self.gather() }
    }

    fn gather(&self) -> Self {
        let axes = merged(&self.shape, [&self.strides()]);
        if self.len() >= MIN_TILED
            && let Some(along) = contiguous_axis::<T>(&axes)
        {
            let mut copy = |out: &mut [T]| copy_tiles(self.raw(), &axes, along, out);
            return Self::written(self.shape.clone(), &mut copy);
        }
        let mut walk = Walk::new(&self.shape, [&self.strides()], 0);
        Self::written(self.shape.clone(), &mut |out| walk.copy(self.raw(), out))
    }

    /// The elements under another shape of the same size; strided data is copied.
    pub fn reshaped(mut self, shape: Shape) -> Self {
        debug_assert_eq!(count(&shape), self.len());
        if self.strides.is_some() {
            self = self.gather();
        }
        self.shape = shape;
        self
    }

    /// A view of the same buffer: a transpose, a slice, a broadcast axis. `offset` counts from this value's
    /// first element.
    pub fn restrided(&self, shape: Shape, strides: Shape, offset: usize) -> Self {
        let len: usize = count(&shape);
        if fits_inline::<T>(len) {
            // A copy is cheaper and does not pin the buffer.
            let mut inline = T::INLINE;
            if len > 0 {
                let raw = &self.raw()[offset..];
                Walk::new(&shape, [&strides], 0).copy(raw, &mut inline.as_mut()[..len]);
            }
            return Self::of_inline(shape, inline);
        }
        let (buffer, start) = match &self.storage {
            Storage::Heap { buffer, offset } => (Arc::clone(buffer), *offset),
            Storage::Deferred(deferred) => (Arc::clone(deferred.made()), 0),
            Storage::Inline(data) => (Arc::new(Buffer::from(data.as_ref().to_vec())), 0),
        };
        let strides = (!is_row_major(&shape, &strides)).then(|| Box::new(strides));
        Self { shape, strides, storage: Storage::Heap { buffer, offset: start + offset } }
    }

    pub fn strides_as(&self, shape: &[usize]) -> Shape {
        broadcast_strides(&self.shape, &self.strides(), shape)
    }

    /// Broadcasts to `shape`, to which this value's shape must broadcast. Copies only inline data.
    pub fn broadcast_to(&self, shape: &[usize]) -> Self {
        if same(&self.shape, shape) {
            return self.clone();
        }
        self.restrided(Shape::from_slice(shape), self.strides_as(shape), 0)
    }
}

#[cfg(feature = "testing")]
impl<T: Storable + Math> Value<T> {
    /// Creates a value whose elements cannot be computed.
    pub fn out_of_memory(shape: &[usize]) -> Self {
        let deferred = Deferred::failing(count(shape));
        let storage = Storage::Deferred(sync::Arc::new(deferred));
        Self { shape: copied(shape), strides: None, storage }
    }
}

impl<T: Storable + Math> Value<T> {
    /// Applies a cheap function to each element when the result is read. Requires
    /// [`can_defer`](Self::can_defer).
    pub fn deferred(mut self, step: Step<T>) -> Self {
        let deferred: sync::Arc<dyn Defer<T>> = match &self.storage {
            Storage::Inline(_) => unreachable!("too few elements"),
            Storage::Heap { buffer, .. } => sync::Arc::new(Deferred::new(Arc::clone(buffer), step)),
            Storage::Deferred(deferred) => deferred.extended(step),
        };
        self.storage = Storage::Deferred(deferred);
        self
    }
}
