//! The elements of a tensor as an ndarray array, without a copy.

use std::fmt;
use std::ops::Deref;

#[cfg(doc)]
use ndarray::ArrayViewD;
use ndarray::{ArrayBase, ArrayRef, Data, IxDyn, iter::Iter};

use super::any::{Element, Elements};
use super::tensor::Tensor;

/// The elements of a tensor for reading, as [`Tensor::view`] returns them. It has the methods of an ndarray
/// array, and `view.view()` is an [`ArrayViewD`].
pub struct View<'a, T: Element>(Elements<'a, T>);

impl<'a, T: Element> View<'a, T> {
    pub(crate) fn of(x: &'a Tensor<T>) -> Self {
        Self(T::view(x))
    }
}

/// [`OfElements::view`](super::OfElements::view) for each element type.
pub(crate) fn elements<T: Element>(x: &Tensor<T>) -> Elements<'_, T> {
    match x.fixed() {
        Some(value) => Elements::Borrowed(value.view()),
        None => Elements::Held(x.lend()),
    }
}

impl<T: Element> Deref for View<'_, T> {
    type Target = ArrayRef<T, IxDyn>;

    fn deref(&self) -> &ArrayRef<T, IxDyn> {
        match &self.0 {
            Elements::Borrowed(view) => view,
            Elements::Held(array) => array,
        }
    }
}

impl<T: Element> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl<T: Element, S: Data<Elem = T>> PartialEq<ArrayBase<S, IxDyn>> for View<'_, T> {
    fn eq(&self, other: &ArrayBase<S, IxDyn>) -> bool {
        self.view() == *other
    }
}

impl<'a, T: Element> IntoIterator for &'a View<'_, T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T, IxDyn>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
