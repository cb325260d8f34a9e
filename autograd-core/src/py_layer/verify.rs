//! Checks of backwards against finite differences while a program runs, at the inputs of its own calls.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use super::CustomOp;
use super::environment;
use super::inputs::{Again, Facts, Info, InputTensors, tensors};
use super::outputs::Visitor;
use crate::error::{Error, Result};
use crate::gradcheck::{self, Subject};
use crate::graph::{AnyTensor, Events, is_grad_enabled, is_noting, observes};
use crate::random::{self, ThreadGeneratorGuard};

/// While this exists, calls on this thread are not verified.
#[cfg(feature = "linalg")]
pub(crate) struct Unverified(Option<Vec<AnyTensor>>);

#[cfg(feature = "linalg")]
impl Unverified {
    pub(crate) fn start() -> Self {
        Self(REPEATED.replace(Some(Vec::new())))
    }
}

#[cfg(feature = "linalg")]
impl Drop for Unverified {
    fn drop(&mut self) {
        REPEATED.set(self.0.take());
    }
}

const MAX_VERIFIED_ELEMENTS: usize = 1 << 16;

thread_local! {
    static SCOPES: Cell<u32> = const { Cell::new(0) };
    static CALLS: RefCell<HashMap<(Facts, &'static Location<'static>), u64>> =
        RefCell::default();
    /// The outputs of the repeated call, while it runs.
    static REPEATED: RefCell<Option<Vec<AnyTensor>>> = const { RefCell::new(None) };
}

/// A scope in which calls of custom ops on this thread are verified. Created by [`verify_layers`].
///
/// ```
/// use autograd_core::prelude::*;
/// use autograd_core::verify_layers;
///
/// #[py_layer]
/// impl Double {
///     fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         x * 2.0
///     }
///     fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
///         dy * 3.0 // not 2
///     }
/// }
///
/// let x = Tensor::from([1.0]);
/// x.set_stop_gradient(false);
/// let scope = verify_layers();
/// assert!(Double::try_apply(&x).is_err());
/// drop(scope);
/// assert!(Double::try_apply(&x).is_ok());
/// ```
#[must_use = "nothing is verified after the scope is dropped: `let scope = verify_layers();`"]
#[derive(Debug)]
pub struct VerifyScope {
    _not_send: PhantomData<*const ()>,
}

/// Checks the backward of each [`py_layer`](macro@crate::py_layer) op that is called on this thread
/// against finite differences of its own forward, until the scope is dropped. `AUTOGRAD_VERIFY=1` in
/// the environment verifies a whole program, on all threads, without a change.
///
/// This reports a wrong formula, or gradients that were swapped where no name and no shape shows
/// it, at the call: `apply` panics, `try_apply` returns the error, and nothing is recorded. The
/// 1st, 2nd, 4th, 8th .. call at each line is verified, at its own inputs, if one of them wants a
/// gradient and they have at most 65,536 elements together: up to 16 elements of each input are
/// moved one by one, and all of them along the gradient. Every reported error is certain, is not
/// caused by a kink, and is 0.1 % or more, 2 % with elements of `f32`.
/// [`gradcheck`](fn@crate::gradcheck) finds smaller errors, and errors of second derivatives.
///
/// Forward is called about fifty times for each input, and must allow that; one that counts its
/// calls counts all of them. Numbers that it draws from the process-wide generator are drawn again,
/// and the program's own numbers do not change. Not verified are calls with a plain argument that
/// is not `Clone` (most closures), calls under [`checkpoint`](crate::checkpoint),
/// [`detect_anomaly`](crate::detect_anomaly) and the like, calls inside another op, `surrogate` ops
/// (their backward is not meant to be the derivative), and elementwise ops, which have a check of
/// their own.
///
/// This exists only with the feature `verify` of autograd-core, in release builds too. Without it,
/// `AUTOGRAD_VERIFY=1` makes the first call that would be verified an error.
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
    SCOPES.get() > 0 || environment::is_enabled()
}

/// A plain argument of a repeated call: the method is inherent with `Clone`, else [`NotReused`]'s.
#[doc(hidden)]
pub struct Reused<'a, V>(pub &'a V);

impl<V: Clone> Reused<'_, V> {
    #[must_use]
    pub fn again(&self) -> Option<V> {
        Some(self.0.clone())
    }
}

#[doc(hidden)]
pub trait NotReused<V> {
    fn again(&self) -> Option<V> {
        None
    }
}

impl<V> NotReused<V> for Reused<'_, V> {}

/// Verifies a call at this location before it is made with these inputs; `call` makes it with others.
pub fn verify<L: CustomOp<K>, K>(
    place: &'static Location<'static>,
    inputs: &[InputTensors<'_>],
    call: &dyn Fn(&Again) -> Option<()>,
) -> Result<()> {
    verify_call(L::INFO, place, inputs, call)
}

#[cold]
fn verify_call(
    facts: Facts,
    location: &'static Location<'static>,
    inputs: &[InputTensors<'_>],
    call: &dyn Fn(&Again) -> Option<()>,
) -> Result<()> {
    let nested = REPEATED.with_borrow(Option::is_some);
    if nested || !is_grad_enabled() || observes(Events::NODES.and(Events::OUTPUTS)) || is_noting() {
        return Ok(());
    }
    let info = Info::of(facts, None);
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
    // The 1st, 2nd, 4th, 8th .. call of the op at its location.
    let is_due = |calls: &mut HashMap<_, u64>| {
        let count = calls.entry((facts, location)).or_default();
        *count += 1;
        count.is_power_of_two()
    };
    if given.is_empty() || elements > MAX_VERIFIED_ELEMENTS || !CALLS.with_borrow_mut(is_due) {
        return Ok(());
    }
    let drawn = random::rng_state();
    let f = |given: &[AnyTensor]| {
        // Forward may write to an input that wants no gradient, so it gets separate tensors.
        let mut tensors: Vec<Vec<AnyTensor>> =
            groups.iter().map(|group| group.iter().map(AnyTensor::alias).collect()).collect();
        for (&(group, i), tensor) in places.iter().zip(given) {
            tensors[group][i] = tensor.clone();
        }
        let _drawn = ThreadGeneratorGuard::to(&drawn);
        REPEATED.set(Some(Vec::new()));
        // A user's assertion may hold for the inputs, but not for others near them.
        let done = catch_unwind(AssertUnwindSafe(|| call(&Again(tensors))));
        match (done, REPEATED.take().unwrap_or_default()) {
            (Ok(Some(())), outputs) if !outputs.is_empty() => Ok(outputs),
            _ => Err(Error::Unsupported { op: info.name, why: "it cannot be run again".into() }),
        }
    };
    gradcheck::verify(&Subject { op: info.name, names }, &f, &given)
}

/// Records the outputs of a call that has ended. The last call to end is the repeated one.
pub(super) fn note(outputs: &Visitor<'_>) {
    if REPEATED.with_borrow(Option::is_none) {
        return;
    }
    let mut outputs = outputs.to_tensors();
    outputs.retain(|output| !output.stop_gradient());
    REPEATED.set(Some(outputs));
}

pub(super) fn note_failure() {
    REPEATED.with_borrow_mut(|outputs| outputs.as_mut().map(Vec::clear));
}
