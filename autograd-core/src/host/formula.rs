//! A formula as functions of an array library of Python.

pub use autograd_kernels::formula::Library;
use autograd_kernels::formula::Program;

use super::Origin;
use crate::ops::elementwise::{ElementwiseOp, Info, Reduction};

/// A formula as Python: the functions `forward(..)` of its inputs and `backward(..)` of `reads`.
///
/// ```
/// use autograd_core::host::{Library, Origin};
/// use autograd_core::prelude::*;
///
/// #[py_layer(elementwise, export)]
/// impl Exp {
///     fn forward(x: Real) -> Real {
///         x.exp()
///     }
/// }
///
/// let formula = Exp::EXPORT.formula(&[], Library::Jax)?.expect("an op of elements");
/// assert_eq!((formula.reads, formula.grads), (vec![Origin::Input(0)], vec![0]));
/// // The input, and the gradient of the output.
/// assert!(formula.python.contains("def backward(a0, a1):"));
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FormulaText {
    /// The text, which names the library as `jnp` and `jax`, `torch`, or `paddle`. Both functions return a tuple.
    pub python: String,
    /// The arguments of `backward` before the gradients of the outputs: inputs and outputs.
    pub reads: Vec<Origin>,
    /// The outputs whose gradients `backward` takes.
    pub grads: Vec<usize>,
    /// The tensor inputs whose gradients it returns.
    pub differentiable: Vec<usize>,
}

/// The programs of a formula.
#[doc(hidden)]
#[derive(Debug)]
pub struct FormulaOp {
    forward: Program,
    backward: Program,
    info: Info,
}

impl FormulaOp {
    pub fn of(op: &dyn ElementwiseOp<f32>) -> Self {
        let info = op.info().clone();
        let wanted = vec![true; info.differentiable.iter().filter(|is| **is).count()];
        let backward = op.backward(&wanted).into_owned();
        Self { forward: op.forward().program(), backward, info }
    }

    /// `masks` says for each tensor input of the op whether it is a mask.
    pub(super) fn text(&self, masks: &[bool], library: Library) -> Option<FormulaText> {
        let info = &self.info;
        if !matches!(info.reduction, Reduction::None) {
            return None;
        }
        let of = |is_mask: bool| (0..masks.len()).filter(move |&at| masks[at] == is_mask);
        let (reals, bools): (Vec<usize>, Vec<usize>) = (of(false).collect(), of(true).collect());
        let names = |places: &[usize]| places.iter().map(|at| format!("a{at}")).collect::<Vec<_>>();
        let given = names(&(0..masks.len()).collect::<Vec<_>>());
        let read = [&names(&reals)[..], &names(&bools)];
        let mut python = library.helpers().to_owned();
        python += &self.forward.python("forward", &given, read, library);
        let inputs = |kept: &[usize], of: &[usize]| -> Vec<Origin> {
            kept.iter().map(|&at| Origin::Input(of[at])).collect()
        };
        let (numbers, kept_masks) =
            (inputs(&info.keeps_reals, &reals), inputs(&info.keeps_masks, &bools));
        let outputs = info.keeps_outputs.iter().map(|&at| Origin::Output(at));
        let [first, second] = [numbers.len(), numbers.len() + kept_masks.len()];
        let reads: Vec<Origin> = numbers.into_iter().chain(kept_masks).chain(outputs).collect();
        let all: Vec<usize> = (0..reads.len() + info.gradients.len()).collect();
        let read =
            [&names(&[&all[..first], &all[second..]].concat())[..], &names(&all[first..second])];
        python += &self.backward.python("backward", &names(&all), read, library);
        let differentiable = reals.iter().zip(info.differentiable.iter());
        let differentiable = differentiable.filter(|(_, is)| **is).map(|(at, _)| *at).collect();
        Some(FormulaText { python, reads, grads: info.gradients.to_vec(), differentiable })
    }
}
