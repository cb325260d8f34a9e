//! The elements of a tensor as an ndarray array, without a copy.

use std::fmt;
use std::ops::Deref;

use ndarray::{ArcArray, ArrayBase, ArrayRef, ArrayViewD, Data, IxDyn, iter::Iter};

/// The elements of a tensor for reading, as [`Tensor::view`](crate::Tensor::view) returns them. It has the
/// methods of an ndarray array, and `view.view()` is an [`ArrayViewD`].
pub struct View<'a, T>(Elements<'a, T>);

enum Elements<'a, T> {
    /// Those of a tensor that was never changed in place.
    Borrowed(ArrayViewD<'a, T>),
    /// Those in a buffer that is copied when the tensor is changed in place.
    Held(ArcArray<T, IxDyn>),
}

impl<'a, T> View<'a, T> {
    pub(super) fn borrowed(view: ArrayViewD<'a, T>) -> Self {
        Self(Elements::Borrowed(view))
    }

    pub(super) fn held(array: ArcArray<T, IxDyn>) -> Self {
        Self(Elements::Held(array))
    }
}

impl<T> Deref for View<'_, T> {
    type Target = ArrayRef<T, IxDyn>;

    fn deref(&self) -> &ArrayRef<T, IxDyn> {
        match &self.0 {
            Elements::Borrowed(view) => view,
            Elements::Held(array) => array,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl<T: PartialEq, S: Data<Elem = T>> PartialEq<ArrayBase<S, IxDyn>> for View<'_, T> {
    fn eq(&self, other: &ArrayBase<S, IxDyn>) -> bool {
        self.view() == *other
    }
}

impl<'a, T> IntoIterator for &'a View<'_, T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T, IxDyn>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
