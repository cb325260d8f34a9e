//! The proof that what is not written as a tensor holds none.
//!
//! A macro sees names, not types: `type T64 = Tensor<f64>` hides a tensor from it, and a hidden
//! tensor would lose its gradient without a word. So each plain parameter and output is probed:
//! an inherent method, there for types that hold a tensor only, shadows the method of a trait.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use crate::graph::{AnyTensor, Tensor};
use crate::ops::Float;

/// Types that hold a tensor with a gradient.
#[doc(hidden)]
pub trait HoldsTensor {}

macro_rules! holds_tensor {
    ($([$($generics:tt)*] $t:ty;)*) => { $(impl<$($generics)*> HoldsTensor for $t {})* };
}

holds_tensor! {
    [T: Float] Tensor<T>;
    [] AnyTensor;
    [A: HoldsTensor + ?Sized] &A;
    [A: HoldsTensor + ?Sized] &mut A;
    [A: HoldsTensor + ?Sized] Box<A>;
    [A: HoldsTensor + ?Sized] Rc<A>;
    [A: HoldsTensor + ?Sized] Arc<A>;
    [A: HoldsTensor] Cell<A>;
    [A: HoldsTensor] RefCell<A>;
    [A: HoldsTensor] Mutex<A>;
    [A: HoldsTensor] Option<A>;
    [A: HoldsTensor] Vec<A>;
    [A: HoldsTensor] VecDeque<A>;
    [A: HoldsTensor] [A];
    [A: HoldsTensor, const N: usize] [A; N];
    [A: HoldsTensor, E] Result<A, E>;
    [K, A: HoldsTensor, S] HashMap<K, A, S>;
    [K, A: HoldsTensor] BTreeMap<K, A>;
    [A: HoldsTensor] (A,);
    [A: HoldsTensor, B] (A, B);
    [A: HoldsTensor, B, C] (A, B, C);
    [A: HoldsTensor, B, C, D] (A, B, C, D);
}

/// Asks a type whether it holds a tensor.
#[doc(hidden)]
pub struct Probe<T: ?Sized>(PhantomData<fn() -> *const T>);

impl<T: ?Sized> Probe<T> {
    /// For the type of a value.
    pub fn of(_: &T) -> Self {
        Self(PhantomData)
    }

    /// For a type.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: ?Sized> Default for Probe<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The answer 'yes', with the type.
#[doc(hidden)]
pub struct TensorSeen<T: ?Sized>(PhantomData<fn() -> *const T>);

/// The answer 'no'.
#[doc(hidden)]
pub struct NoTensorSeen;

impl<T: HoldsTensor + ?Sized> Probe<T> {
    /// Shadows the method of [`HoldsNoTensor`].
    pub fn __holds_tensor(&self) -> TensorSeen<T> {
        TensorSeen(PhantomData)
    }
}

/// All other types.
#[doc(hidden)]
pub trait HoldsNoTensor {
    /// No.
    fn __holds_tensor(&self) -> NoTensorSeen {
        NoTensorSeen
    }
}

impl<T: ?Sized> HoldsNoTensor for Probe<T> {}

/// What is plain: holds no tensor.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a tensor is hidden here behind another name or type, and its gradient would be lost",
    label = "holds a tensor, but is not written as one",
    note = "a tensor input is written `&Tensor<T>`, `Option<&Tensor<T>>`, `&[Tensor<T>]`, `&[&Tensor<T>]` or `[&Tensor<T>; N]`, an output `Tensor<T>`, `[Tensor<T>; N]` or `Vec<Tensor<T>>`: by the name `Tensor`, not by an alias and not inside another type"
)]
pub trait IsPlain {}

impl IsPlain for NoTensorSeen {}

/// Takes plain answers only.
pub fn plain(_: impl IsPlain) {}

/// Attributes of an op that hold no tensor.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`type Attrs` holds a tensor, and a tensor kept there has no gradient and may leak",
    label = "holds a tensor",
    note = "tensors are kept by `type Saved` and `ctx.save_for_backward(..)`; `type Attrs` is for everything else"
)]
pub trait IsPlainState {}

impl IsPlainState for NoTensorSeen {}

/// Takes plain answers only.
pub fn attrs(_: impl IsPlainState) {}
