//! The proof that a parameter or output that is not written as a tensor holds none. A macro sees
//! names, not types: `type T64 = Tensor<f64>` hides a tensor from it, and a hidden tensor would
//! silently lose its gradient. So each plain parameter and output is probed: an inherent method,
//! which exists only for types that hold a tensor, shadows the method of a trait.

use std::any::type_name;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use super::tuples::each_tuple;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Tensor};
use crate::ops::Float;

#[doc(hidden)]
pub trait HoldsTensor {}

/// As [`HoldsTensor`], with the place `P` of the tensor, so that every element of a tuple is examined.
#[doc(hidden)]
pub trait HoldsTensorAt<P> {}

/// The place of a type that is a tensor itself.
#[doc(hidden)]
pub struct Here;

/// A place inside a type that holds one thing, or things of one type.
#[doc(hidden)]
pub struct Inside<P>(PhantomData<P>);

/// A place in the element of a tuple at this position.
#[doc(hidden)]
pub struct Position<const N: usize, P>(PhantomData<P>);

impl<T: Float> HoldsTensor for Tensor<T> {}
impl<T: Float> HoldsTensorAt<Here> for Tensor<T> {}
impl HoldsTensor for AnyTensor {}
impl HoldsTensorAt<Here> for AnyTensor {}

macro_rules! holders {
    ($([$($more:tt)*] [$($unsized:tt)*] $t:ty;)*) => {$(
        impl<$($more)* A: HoldsTensor $($unsized)*> HoldsTensor for $t {}
        impl<$($more)* P, A: HoldsTensorAt<P> $($unsized)*> HoldsTensorAt<Inside<P>> for $t {}
    )*};
}

macro_rules! holder_tuples {
    ($(($name:ident $position:tt))*) => {
        holder_tuples! { @each ($($name)*) $(($name $position))* }
    };
    (@each $all:tt $(($name:ident $position:tt))*) => {
        $(holder_tuples! { @one $all $name $position })*
    };
    (@one ($($all:ident)*) $name:ident $position:literal) => {
        impl<P, $($all,)*> HoldsTensorAt<Position<$position, P>> for ($($all,)*)
        where
            $name: HoldsTensorAt<P>,
        {
        }
    };
}

holders! {
    [] [+ ?Sized] &A;
    [] [+ ?Sized] &mut A;
    [] [+ ?Sized] Box<A>;
    [] [+ ?Sized] Rc<A>;
    [] [+ ?Sized] Arc<A>;
    [] [] Cell<A>;
    [] [] RefCell<A>;
    [] [] Mutex<A>;
    [] [] Option<A>;
    [] [] Vec<A>;
    [] [] VecDeque<A>;
    [] [] [A];
    [E,] [] Result<A, E>;
    [K, S,] [] HashMap<K, A, S>;
    [K,] [] BTreeMap<K, A>;
    [const N: usize,] [] [A; N];
}

impl<A: HoldsTensor> HoldsTensor for (A,) {}
impl<A: HoldsTensor, B> HoldsTensor for (A, B) {}
impl<A: HoldsTensor, B, C> HoldsTensor for (A, B, C) {}
impl<A: HoldsTensor, B, C, D> HoldsTensor for (A, B, C, D) {}

each_tuple! { holder_tuples [] (A 0) (B 1) (C 2) (D 3) (E 4) (F 5) }

#[doc(hidden)]
pub struct Probe<T: ?Sized>(PhantomData<fn() -> *const T>);

/// Creates the probe for the type of a value. A method, because for a method call on a value whose type has
/// an error the compiler reports nothing more.
#[doc(hidden)]
pub trait Probed {
    /// Returns a reference, so that there are two levels of methods besides the inherent one.
    fn __probe(&self) -> &Probe<Self> {
        &Probe(PhantomData)
    }
}

impl<T: ?Sized> Probed for T {}

impl<T: ?Sized> Probe<T> {
    #[must_use]
    pub const fn new<'a>() -> &'a Self {
        &Self(PhantomData)
    }
}

#[doc(hidden)]
pub struct TensorSeen<T: ?Sized>(PhantomData<fn() -> *const T>);

#[doc(hidden)]
pub struct NoTensorSeen;

impl<T: HoldsTensor + ?Sized> Probe<T> {
    /// Shadows the methods of [`HoldsTensorFurther`] and [`HoldsNoTensor`].
    pub fn __holds_tensor(&self) -> TensorSeen<T> {
        TensorSeen(PhantomData)
    }
}

/// Types that hold a tensor in another place than the first.
#[doc(hidden)]
pub trait HoldsTensorFurther<P> {
    type Holder: ?Sized;

    /// Shadows the method of [`HoldsNoTensor`].
    fn __holds_tensor(&self) -> TensorSeen<Self::Holder> {
        TensorSeen(PhantomData)
    }
}

impl<P, T: HoldsTensorAt<P> + ?Sized> HoldsTensorFurther<P> for Probe<T> {
    type Holder = T;
}

#[doc(hidden)]
pub trait HoldsNoTensor {
    fn __holds_tensor(&self) -> NoTensorSeen {
        NoTensorSeen
    }
}

impl<T: ?Sized> HoldsNoTensor for &Probe<T> {}

#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a tensor is hidden here behind another name or type, and its gradient would be lost",
    label = "holds a tensor, but is not written as one",
    note = "a tensor input is written `&Tensor<T>`, `Option<&Tensor<T>>`, `&[Tensor<T>]`, `&[&Tensor<T>]` or `[&Tensor<T>; N]`, an output `Tensor<T>`, `[Tensor<T>; N]` or `Vec<Tensor<T>>`: by the name `Tensor`, not by an alias and not inside another type"
)]
pub trait IsPlain {}

impl IsPlain for NoTensorSeen {}

/// Accepts only the answer that a type is plain.
pub fn plain(_: impl IsPlain) {}

#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`type Attrs` holds a tensor, and a tensor kept there has no gradient and may leak",
    label = "holds a tensor",
    note = "tensors are kept by `type Saved` and `ctx.save_for_backward(..)`; `type Attrs` is for everything else"
)]
pub trait IsPlainState {}

impl IsPlainState for NoTensorSeen {}

/// Accepts only the answer that attributes hold no tensor.
pub fn attrs(_: impl IsPlainState) {}

/// Returns an error if a plain parameter of generic type is a tensor: its gradient would be lost.
pub fn check_plain<V: ?Sized>(op: &'static str, _: &V, parameter: &'static str) -> Result<()> {
    let held = type_name::<V>();
    if !holds_tensor(held) {
        return Ok(());
    }
    Err(Error::Unsupported {
        op,
        why: format!(
            "the plain parameter `{parameter}` was given a tensor (`{held}`), whose gradient would \
             be lost; a tensor input is declared as `&Tensor<T>`"
        ),
    })
}

/// Whether a type holds a tensor, by its name, which is all that is known of every type at run time.
fn holds_tensor(name: &str) -> bool {
    const HOLDERS: [&str; 12] = [
        "core::option::Option<",
        "core::result::Result<",
        "core::cell::Cell<",
        "core::cell::RefCell<",
        "core::slice::iter::Iter<",
        "alloc::vec::Vec<",
        "alloc::vec::into_iter::IntoIter<",
        "alloc::collections::vec_deque::VecDeque<",
        "alloc::boxed::Box<",
        "alloc::sync::Arc<",
        "alloc::rc::Rc<",
        "std::collections::hash::map::HashMap<",
    ];
    let name = name.trim_start();
    if let Some(inner) = ["&", "mut ", "["].iter().find_map(|outer| name.strip_prefix(outer)) {
        return holds_tensor(inner);
    }
    let holder = HOLDERS.iter().copied().chain(["("]);
    if let Some(inner) = holder.into_iter().find_map(|outer| name.strip_prefix(outer)) {
        return parts(inner).any(holds_tensor);
    }
    let tensor = type_name::<Tensor<f32>>();
    let tensor = tensor.split('<').next().unwrap_or(tensor);
    // The compiler writes `Tensor<f32>` without its element type, which is the default.
    name.strip_prefix(tensor).is_some_and(|rest| match rest.strip_prefix('<') {
        Some(element) => element.starts_with("f32>") || element.starts_with("f64>"),
        None => !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'),
    })
}

/// The comma-separated parts in the name of a type, up to the end of the type that encloses them.
fn parts(inner: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let mut before = ' ';
    inner.split(move |c| {
        match c {
            '<' | '(' | '[' => depth += 1,
            // Part of an arrow.
            '>' if before == '-' => {}
            '>' | ')' | ']' => depth -= 1,
            _ => {}
        }
        before = c;
        // The text after the end names no type.
        depth < 0 || depth == 0 && c == ','
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_seen_in_the_names_of_types() {
        fn holds<T: ?Sized>() -> bool {
            holds_tensor(type_name::<T>())
        }
        type T64 = Tensor<f64>;
        assert!(holds::<T64>() && holds::<&Tensor>() && holds::<&mut T64>());
        assert!(holds::<Option<&T64>>() && holds::<Vec<T64>>() && holds::<&[&T64]>());
        assert!(holds::<[T64; 2]>() && holds::<Box<[T64]>>());
        assert!(holds::<(f64, T64)>() && holds::<(f64, (Vec<u8>, &T64), u8)>());
        assert!(holds::<Option<(fn(f64) -> (u8, f64), T64)>>());
        assert!(holds::<std::vec::IntoIter<T64>>() && holds::<std::slice::Iter<'static, T64>>());
        assert!(holds::<HashMap<String, T64>>());
        assert!(!holds::<f64>() && !holds::<Tensor<i64>>() && !holds::<(f64, Vec<Tensor<bool>>)>());
        assert!(!holds::<fn(&T64) -> T64>() && !holds::<Box<dyn Fn(&T64) -> T64>>());
        assert!(!holds::<(f64, fn(&T64, T64) -> T64)>());
        assert!(!holds::<PhantomData<T64>>());
    }
}
