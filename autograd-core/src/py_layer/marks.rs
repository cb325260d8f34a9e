//! Tensors that forward marks by its context.

use super::tuples::each_tuple;
use crate::graph::{AnyTensor, Element, Tensor};

/// Tensors that a context call marks: a tensor, or a tuple, slice or array of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be marked",
    label = "not a reference to a tensor, nor a tuple of such",
    note = "give `&y`, or `(&a, &b)` for several at once"
)]
pub trait Outputs {
    #[doc(hidden)]
    fn collect(self, into: &mut dyn FnMut(AnyTensor));
}

pub(super) fn marked(tensors: impl Outputs) -> Vec<AnyTensor> {
    let mut marked = Vec::new();
    tensors.collect(&mut |tensor| marked.push(tensor));
    marked
}

#[diagnostic::do_not_recommend]
impl<T: Element> Outputs for &Tensor<T> {
    fn collect(self, into: &mut dyn FnMut(AnyTensor)) {
        into(T::wrap(self.clone()));
    }
}

#[diagnostic::do_not_recommend]
impl<O: Outputs> Outputs for Option<O> {
    fn collect(self, into: &mut dyn FnMut(AnyTensor)) {
        self.into_iter().for_each(|outputs| outputs.collect(into));
    }
}

macro_rules! outputs_lists {
    ($([$($generics:tt)*] $list:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Element, $($generics)*> Outputs for $list {
            fn collect(self, into: &mut dyn FnMut(AnyTensor)) {
                self.iter().for_each(|tensor| into(T::wrap(Tensor::clone(tensor))));
            }
        }
    )*};
}

outputs_lists! {
    [] &[Tensor<T>];
    [] &[&Tensor<T>];
    [] &Vec<Tensor<T>>;
    [const N: usize] &[Tensor<T>; N];
    [const N: usize] [&Tensor<T>; N];
}

macro_rules! outputs_tuple {
    () => {};
    ($(($name:ident $other:ident $position:tt))*) => {
        #[diagnostic::do_not_recommend]
        impl<$($name: Outputs),*> Outputs for ($($name,)*) {
            fn collect(self, into: &mut dyn FnMut(AnyTensor)) {
                $(self.$position.collect(into);)*
            }
        }
    };
}

each_tuple! { outputs_tuple }
