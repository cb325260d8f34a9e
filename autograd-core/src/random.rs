//! The kernels' random numbers, and the process-wide generator.

pub use autograd_kernels::random::Generator;
pub(crate) use autograd_kernels::random::*;

/// Restarts the process-wide generator: the numbers that follow `seed(7)` are always those that follow
/// `paddle.seed(7)`. Only `seed` modulo 2³² counts. Without a seed, each run draws other numbers.
///
/// Threads that draw at once get numbers in no fixed order; if that matters, give each its own [`Generator`].
///
/// ```standalone_crate
/// use autograd_core::prelude::*;
///
/// autograd_core::seed(2023);
/// let first = Tensor::<f64>::randn([2, 3]);
/// autograd_core::seed(2023);
/// let again = Tensor::<f64>::randn([2, 3]);
///
/// assert_eq!(first.to_vec(), again.to_vec());
/// assert_eq!(first.to_vec()[0], 0.06132208266916202);
/// ```
#[doc(alias = "manual_seed")]
pub fn seed(seed: u64) {
    autograd_kernels::random::seed(seed);
}

/// Returns a copy of the process-wide generator, from which programs and layers draw too. [`set_rng_state`]
/// restores it: a part of a program can draw its numbers again, or fewer or more without changing later ones.
///
/// ```standalone_crate
/// use autograd_core::{Tensor, rng_state, set_rng_state};
///
/// autograd_core::seed(7);
/// let noise = Tensor::<f32>::randn([3]);
/// let state = rng_state();
/// let first = Tensor::<f64>::rand([5]);
/// set_rng_state(&state);
/// let again = Tensor::<f64>::rand([5]);
/// assert_eq!(first.to_vec(), again.to_vec());
///
/// assert_eq!(noise.len(), 3);
/// ```
#[doc(alias = "get_rng_state")]
#[must_use]
pub fn rng_state() -> Generator {
    autograd_kernels::random::rng_state()
}

/// Sets the state of the process-wide generator; see [`rng_state`].
pub fn set_rng_state(state: &Generator) {
    autograd_kernels::random::set_rng_state(state);
}
