//! The kernels' random numbers, and the process-wide generator.

pub use autograd_kernels::random::Generator;
pub(crate) use autograd_kernels::random::*;

use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Tensor};

/// Restarts the process-wide generator: the numbers that follow `seed(7)` are always those that follow
/// `paddle.seed(7)`. Only `seed` modulo 2³² counts. Without a seed, each run draws other numbers.
///
/// Threads of a program that draw at once get numbers in no fixed order; if that matters, give each its own
/// [`Generator`]. User code that runs on threads of this library draws from generators of its own.
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
///
/// The state can be converted to a tensor, for a file, and back. The feature `safetensors` adds the module
/// `safetensors`, which shows a training that is stopped and resumed exactly.
///
/// ```standalone_crate
/// use autograd_core::{Generator, Tensor, rng_state, set_rng_state};
///
/// let saved = Tensor::<i64>::from(&rng_state());
/// let first = Tensor::<f64>::randn([5]);
/// set_rng_state(&Generator::try_from(&saved)?);
/// assert_eq!(Tensor::<f64>::randn([5]).to_vec(), first.to_vec());
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[doc(alias = "get_rng_state")]
#[must_use]
pub fn rng_state() -> Generator {
    autograd_kernels::random::rng_state()
}

/// Sets the state of the process-wide generator, as of [`rng_state`] in this process or in another.
///
/// ```standalone_crate
/// use autograd_core::{Generator, Tensor, set_rng_state};
///
/// autograd_core::seed(7);
/// let numbers = Tensor::<f64>::rand([5]);
/// set_rng_state(&Generator::new(7));
/// assert_eq!(Tensor::<f64>::rand([5]).to_vec(), numbers.to_vec());
/// ```
pub fn set_rng_state(state: &Generator) {
    autograd_kernels::random::set_rng_state(state);
}

/// The state of the generator, as its next 312 numbers.
impl From<&Generator> for Tensor<i64> {
    fn from(generator: &Generator) -> Self {
        Self::from(generator.state().map(|word| word as i64))
    }
}

/// The state of the generator, as a tensor of its next 312 numbers.
impl From<Generator> for AnyTensor {
    fn from(generator: Generator) -> Self {
        Tensor::from(&generator).into()
    }
}

/// The generator that was converted to this tensor. [`Error::Unsupported`] for any other tensor.
impl TryFrom<&Tensor<i64>> for Generator {
    type Error = Error;

    fn try_from(state: &Tensor<i64>) -> Result<Self> {
        let words: Vec<u64> = state.to_vec().into_iter().map(|word| word as u64).collect();
        let generator = words.as_slice().try_into().ok().and_then(Self::from_state);
        generator.ok_or_else(|| {
            let found = match words.len() {
                Self::STATE => "other numbers".into(),
                _ => format!("a tensor of shape {:?}", state.shape()),
            };
            let why = format!(
                "`state` must be the {} numbers that a generator was converted to, found {found}",
                Self::STATE
            );
            Error::Unsupported { op: "Generator::try_from", why }
        })
    }
}
