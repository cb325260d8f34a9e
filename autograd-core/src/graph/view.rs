//! The elements of a tensor as an ndarray array, without a copy.

use std::fmt;
use std::ops::{Add, Deref, Div, Mul, Sub};

use ndarray::{ArcArray, ArrayBase, ArrayD, ArrayRef, ArrayViewD, Data, IxDyn, iter::Iter};

/// The elements of a tensor for reading, as [`Tensor::view`](crate::Tensor::view) returns them. It has the
/// methods of an ndarray array, and `view.view()` is an [`ArrayViewD`].
///
/// ```
/// use autograd_core::{Tensor, View};
/// use ndarray::ArrayViewD;
///
/// fn first_row(x: ArrayViewD<f64>) -> Vec<f64> {
///     x.outer_iter().next().unwrap().iter().copied().collect()
/// }
///
/// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
/// let view: View<f64> = x.view();
/// assert_eq!((view.ndim(), view.iter().sum::<f64>()), (2, 10.0));
/// assert_eq!(first_row(view.view()), [1.0, 2.0]);
/// ```
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

// No type implements it, so that the compiler shows this message.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a view of a tensor has no arithmetic: it only reads the elements",
    label = "compute with the tensor: `&x * 2.0`, not `x.view() * 2.0`",
    note = "`view.view()` is an array view of ndarray, whose arithmetic records no gradient"
)]
pub trait ViewOperand {}

macro_rules! no_arithmetic {
    ($($trait:ident $method:ident)*) => {
        no_arithmetic! { $($trait $method View<'_, T>, $trait $method &View<'_, T>,)* }
    };
    ($($trait:ident $method:ident $view:ty,)*) => {$(
        #[doc(hidden)]
        impl<T, R: ViewOperand> $trait<R> for $view {
            type Output = ArrayD<T>;

            fn $method(self, _: R) -> ArrayD<T> {
                unreachable!("nothing implements the bound")
            }
        }
    )*};
}

no_arithmetic! { Add add Sub sub Mul mul Div div }
