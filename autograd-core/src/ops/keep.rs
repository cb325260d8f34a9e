//! Reductions that keep their axes with length 1, made of those that remove them.

use super::shape::signed;
use super::{Float, Numeric, expect};
use crate::array::IntoAxes;
use crate::array::shape::axes as check_axes;
use crate::graph::{Element, Tensor};

/// The result of a reduction of a tensor of this rank with its axes put back.
#[track_caller]
fn kept<T: Element>(reduced: Tensor<T>, axes: &[isize], rank: usize) -> Tensor<T> {
    let positions = expect(check_axes("reshape", axes, rank));
    reduced.unsqueeze_axes(&signed(&positions))
}

macro_rules! keep_forms {
    ($([$($of:tt)*] $element:ty: $(
        $name:ident $reduce:ident $of_what:literal ($($argument:ident: $type:ty)?);
    )*)*) => {$(
        /// # Reductions that keep their axes
        impl$($of)* Tensor<$element> {
            $(
                #[doc = concat!($of_what, " along `axes`, which stay with length 1: see [`Tensor::", stringify!($reduce), "`].")]
                ///
                /// # Panics
                ///
                #[doc = concat!("As [`Tensor::", stringify!($reduce), "`].")]
                #[track_caller]
                pub fn $name(&self, axes: impl IntoAxes $(, $argument: $type)?) -> Tensor<$element> {
                    let axes = axes.as_axes();
                    kept(self.$reduce(axes $(, $argument)?), axes, self.ndim())
                }
            )*
        }
    )*};
}

keep_forms! {
    [<T: Float>] T:
    logsumexp_keep logsumexp "The logarithm of the sum of `exp(x)`" ();
    var_axes_keep var_axes "The variance" (correction: usize);
    std_axes_keep std_axes "The standard deviation" (correction: usize);
    [<T: Numeric>] T:
    median_axes_keep median_axes "The median" ();
    [] bool:
    any_axes_keep any_axes "Whether any element is true" ();
    all_axes_keep all_axes "Whether all elements are true" ();
}
