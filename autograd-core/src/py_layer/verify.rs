//! Backwards held against finite differences while a program runs, at the points of its own calls.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use super::Layer;
use super::environment;
use super::inputs::{Facts, Info, TensorInput, tensors};
use super::outputs::{Visitor, stand_in};
use crate::error::{Error, Result};
use crate::gradcheck::{self, Subject};
use crate::graph::{AnyTensor, Element, Tensor, is_grad_enabled, is_watched};
use crate::ops::trace::is_noting;
use crate::random::{self, Rewound};

/// Calls whose inputs have more elements than this are let be.
const MOST: usize = 1 << 16;

thread_local! {
    /// How many scopes of this thread ask for it.
    static SCOPES: Cell<u32> = const { Cell::new(0) };
    /// How often each op was called at each place.
    static CALLS: RefCell<HashMap<(Facts, &'static Location<'static>), u64>> =
        RefCell::default();
    /// The outputs of the call that is made again, while it is.
    static AGAIN: RefCell<Option<Vec<AnyTensor>>> = const { RefCell::new(None) };
}

/// While it lives, the calls of custom ops on this thread are verified. Made by [`verify_layers`].
#[must_use = "nothing is verified after the scope is dropped: `let scope = verify_layers();`"]
#[derive(Debug)]
pub struct VerifyScope {
    // The scope belongs to one thread.
    _not_send: PhantomData<*const ()>,
}

/// Holds the backward of each [`py_layer`](macro@crate::py_layer) op that is called on this thread
/// against finite differences of its own forward, until the scope is dropped. With `AUTOGRAD_VERIFY=1`
/// in the environment a whole program is verified so, on all threads, without a change.
///
/// So a formula that is wrong, or gradients that were swapped where no name and no shape shows it,
/// are reported in a training run, by the call: `apply` panics, `try_apply` is the error, and nothing is
/// recorded. The 1st, 2nd, 4th, 8th .. call at each line is verified, at the inputs that it has, where
/// one of them wants a gradient and they have no more than 65,536 elements together: up to 16
/// elements of each input are moved one by one, and all of them along the gradient. What is reported is
/// wrong beyond doubt, by 0.1 % or more, 2 % with elements of `f32`, and not for a kink; to find less
/// than that, and second derivatives, is what [`gradcheck`](fn@crate::gradcheck) is for.
///
/// Forward is called some fifty times for each input then, and must bear it: what it draws from the
/// process-wide generator is drawn again, and the run's numbers stay as they are; a forward that counts its
/// calls counts them all. Not verified are calls with a plain argument that is no `Clone` (most
/// closures), under [`checkpoint`](crate::checkpoint), [`detect_anomaly`](crate::detect_anomaly) and
/// the like, inside another op, ops that say `surrogate` (their backward is meant to be another),
/// and elementwise ops, which have a check of their own.
///
/// All of this is there with the feature `verify` of autograd-core only, in builds for release too; ops
/// cost more to compile with it. Without the feature, `AUTOGRAD_VERIFY=1` is an error of the
/// first call that would be verified.
///
/// ```
/// use autograd_core::prelude::*;
/// use autograd_core::verify_layers;
///
/// #[py_layer]
/// impl Product {
///     type Saved = (Tensor<f64>, Tensor<f64>);
///
///     fn forward(
///         ctx: &mut ForwardContext<Self>,
///         a: &Tensor<f64>,
///         b: &Tensor<f64>,
///     ) -> Tensor<f64> {
///         ctx.save_for_backward((a, b));
///         a * b
///     }
///
///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
///         let (a, b) = ctx.saved_tensor();
///         (dy * a, dy * b) // the other way round
///     }
/// }
///
/// let (a, b) = (Tensor::from([2.0, 1.0]), Tensor::from([5.0, 1.0]));
/// a.set_stop_gradient(false);
/// let _scope = verify_layers();
/// let error = Product::try_apply(&a, &b);
/// assert!(error.unwrap_err().to_string().starts_with("Product: `a`, element [0]: the slope is"));
/// ```
pub fn verify_layers() -> VerifyScope {
    SCOPES.set(SCOPES.get() + 1);
    CALLS.take();
    VerifyScope { _not_send: PhantomData }
}

impl Drop for VerifyScope {
    fn drop(&mut self) {
        SCOPES.set(SCOPES.get() - 1);
    }
}

#[doc(hidden)]
#[inline]
#[must_use]
pub fn verifying() -> bool {
    SCOPES.get() > 0 || environment::asks()
}

/// The tensors that a call is made with again, input by input.
#[doc(hidden)]
pub struct Again(Vec<Vec<AnyTensor>>);

/// Takes a tensor input for one call more: the inherent methods are there for tensors, those of
/// [`NotTaken`] for all else.
#[doc(hidden)]
pub struct Taken<T: ?Sized>(PhantomData<fn() -> *const T>);

impl<T: ?Sized> Taken<T> {
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: ?Sized> Default for Taken<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Element> Taken<Tensor<T>> {
    pub fn one(&self, again: &Again, group: usize) -> Tensor<T> {
        self.optional(again, group).unwrap_or_else(|| unreachable!("an input is a tensor"))
    }

    pub fn optional(&self, again: &Again, group: usize) -> Option<Tensor<T>> {
        self.list(again, group).pop()
    }

    pub fn list(&self, again: &Again, group: usize) -> Vec<Tensor<T>> {
        let tensors = again.0.get(group).into_iter().flatten();
        tensors.filter_map(AnyTensor::downcast_ref).cloned().collect()
    }
}

/// What is no tensor has been reported; it becomes whatever forward's parameter is.
#[doc(hidden)]
pub trait NotTaken {
    fn one<P>(&self, _: &Again, _: usize) -> P {
        stand_in()
    }
    fn optional<P>(&self, _: &Again, _: usize) -> Option<P> {
        stand_in()
    }
    fn list<P>(&self, _: &Again, _: usize) -> Vec<P> {
        stand_in()
    }
}

impl<T: ?Sized> NotTaken for Taken<T> {}

/// A plain argument, for one call more: the inherent method is there for what can be cloned, the one
/// of [`NotReused`] for all else.
#[doc(hidden)]
pub struct Reused<'a, V>(pub &'a V);

impl<V: Clone> Reused<'_, V> {
    /// Shadows the method of [`NotReused`].
    #[must_use]
    pub fn again(&self) -> Option<V> {
        Some(self.0.clone())
    }
}

/// All other types: the call cannot be made again.
#[doc(hidden)]
pub trait NotReused<V> {
    fn again(&self) -> Option<V> {
        None
    }
}

impl<V> NotReused<V> for Reused<'_, V> {}

/// Verifies a call at this place that is to be made with these inputs; `call` makes it with others.
pub fn verify<L: Layer<K>, K>(
    place: &'static Location<'static>,
    inputs: &[&dyn TensorInput],
    call: &dyn Fn(&Again) -> Option<()>,
) -> Result<()> {
    verify_call(L::INFO, place, inputs, call)
}

#[cold]
fn verify_call(
    facts: Facts,
    location: &'static Location<'static>,
    inputs: &[&dyn TensorInput],
    call: &dyn Fn(&Again) -> Option<()>,
) -> Result<()> {
    let nested = AGAIN.with_borrow(Option::is_some);
    if nested || !is_grad_enabled() || is_watched() || is_noting() {
        return Ok(());
    }
    let info = Info::of(facts);
    let groups: Vec<Vec<AnyTensor>> = inputs.iter().map(|input| tensors(*input)).collect();
    let (mut places, mut names, mut given) = (Vec::new(), Vec::new(), Vec::new());
    for (group, tensors) in groups.iter().enumerate() {
        let name = info.input_name(group).unwrap_or_default();
        for (i, tensor) in tensors.iter().enumerate() {
            if info.is_differentiable(group) && tensor.dtype().is_float() && !tensor.stop_gradient()
            {
                places.push((group, i));
                let several = tensors.len() > 1;
                names.push(if several { format!("`{name}[{i}]`") } else { format!("`{name}`") });
                given.push(tensor.clone());
            }
        }
    }
    let elements: usize = given.iter().map(|x| x.shape().iter().product::<usize>()).sum();
    // At the 1st, 2nd, 4th, 8th .. call of the op at its place.
    let is_due = |calls: &mut HashMap<_, u64>| {
        let count = calls.entry((facts, location)).or_default();
        *count += 1;
        count.is_power_of_two()
    };
    if given.is_empty() || elements > MOST || !CALLS.with_borrow_mut(is_due) {
        return Ok(());
    }
    let drawn = random::rng_state();
    let f = |given: &[AnyTensor]| {
        // Forward may write to an input that no gradient is wanted of: to one of its own.
        let mut tensors: Vec<Vec<AnyTensor>> =
            groups.iter().map(|group| group.iter().map(AnyTensor::alias).collect()).collect();
        for (&(group, i), tensor) in places.iter().zip(given) {
            tensors[group][i] = tensor.clone();
        }
        let _drawn = Rewound::to(&drawn);
        AGAIN.set(Some(Vec::new()));
        // A user's assertion may hold for the inputs, and not for others beside them.
        let done = catch_unwind(AssertUnwindSafe(|| call(&Again(tensors))));
        match (done, AGAIN.take().unwrap_or_default()) {
            (Ok(Some(())), outputs) if !outputs.is_empty() => Ok(outputs),
            _ => Err(Error::Unsupported { op: info.name, why: "it cannot be run again".into() }),
        }
    };
    gradcheck::verify(&Subject { op: info.name, names }, f, &given)
}

/// A call has ended, with these outputs: the last one to end is the one that is made again.
pub(super) fn note(outputs: &Visitor<'_>) {
    if AGAIN.with_borrow(Option::is_none) {
        return;
    }
    let mut outputs = outputs.kept();
    outputs.retain(|output| !output.stop_gradient());
    AGAIN.set(Some(outputs));
}

pub(super) fn note_failure() {
    AGAIN.with_borrow_mut(|outputs| outputs.as_mut().map(Vec::clear));
}
