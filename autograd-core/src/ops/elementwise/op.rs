//! What an elementwise op is made of.

use std::borrow::Cow;

use crate::formula::{Dual, Formula, Lane, Program, Real, Traced, Written, trace};

/// What is the same in every call of an op.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Info {
    /// The op's name.
    pub name: &'static str,
    /// The inputs that are numbers.
    pub reals: Cow<'static, [&'static str]>,
    /// Which of them have a gradient.
    pub differentiable: Cow<'static, [bool]>,
    /// The inputs that are masks.
    pub masks: Cow<'static, [&'static str]>,
    /// How many outputs there are.
    pub outputs: usize,
    /// What backward gets: inputs, masks, outputs and gradients of outputs, by position, in this
    /// order.
    pub keeps_reals: Cow<'static, [usize]>,
    /// See `keeps_reals`.
    pub keeps_masks: Cow<'static, [usize]>,
    /// See `keeps_reals`.
    pub keeps_outputs: Cow<'static, [usize]>,
    /// See `keeps_reals`.
    pub gradients: Cow<'static, [usize]>,
    /// What is made of each output.
    pub reduction: Reduction,
}

/// What is made of an output.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum Reduction {
    /// Nothing.
    None,
    /// It is added up along these axes, along all if there are none.
    Sum(Cow<'static, [isize]>),
    /// The same, divided by how many are added up.
    Mean(Cow<'static, [isize]>),
}

/// An elementwise op of an element type.
#[doc(hidden)]
pub trait Op<T>: Send + Sync {
    /// What is the same in every call.
    fn info(&self) -> &Info;
    /// From the numbers and masks: the outputs.
    fn forward(&self) -> &dyn Formula<T>;
    /// From what [`Info`] says: the gradients of the differentiable inputs. Those that are not
    /// wanted may be anything.
    fn backward(&self, wanted: &[bool]) -> Cow<'_, Program>;
    /// The compiled form of [`backward`](Self::backward), where there is one.
    fn compiled_backward(&self) -> Option<&dyn Formula<T>>;
    /// The derivative of forward, where backward was written by hand.
    fn derived(&self) -> Option<Program>;
}

/// An op whose formulas are compiled.
#[doc(hidden)]
pub struct Pair<F, B, D> {
    /// See [`Info`].
    pub info: &'static Info,
    /// Forward.
    pub forward: F,
    /// Backward.
    pub backward: B,
    /// The derivative of forward, where backward was written by hand.
    pub derived: Option<D>,
}

impl<T, F: Formula<T>, B: Formula<T>, D: Written + Send + Sync> Op<T> for Pair<F, B, D> {
    fn info(&self) -> &Info {
        self.info
    }

    fn forward(&self) -> &dyn Formula<T> {
        &self.forward
    }

    fn backward(&self, _: &[bool]) -> Cow<'_, Program> {
        Cow::Owned(self.backward.program())
    }

    fn compiled_backward(&self) -> Option<&dyn Formula<T>> {
        Some(&self.backward)
    }

    fn derived(&self) -> Option<Program> {
        self.derived.as_ref().map(Written::program)
    }
}

/// An op whose formula is a program, and whose backward is derived when it is asked for.
pub(super) struct Traceable {
    info: Info,
    program: Program,
}

impl Traceable {
    /// From a program of `reals` numbers and `masks` masks with `outputs` results.
    pub(super) fn new(
        name: &'static str,
        program: Program,
        [reals, masks, outputs]: [usize; 3],
    ) -> Self {
        let info = Info {
            name,
            reals: Cow::Borrowed(&[]),
            differentiable: vec![true; reals].into(),
            masks: Cow::Borrowed(&[]),
            outputs,
            keeps_reals: (0..reals).collect(),
            keeps_masks: (0..masks).collect(),
            keeps_outputs: Cow::Borrowed(&[]),
            gradients: (0..outputs).collect(),
            reduction: Reduction::None,
        };
        Self { info, program }
    }
}

impl<T> Op<T> for Traceable
where
    Program: Formula<T>,
{
    fn info(&self) -> &Info {
        &self.info
    }

    fn forward(&self) -> &dyn Formula<T> {
        &self.program
    }

    fn backward(&self, wanted: &[bool]) -> Cow<'_, Program> {
        let [n, masks] = [self.info.keeps_reals.len(), self.info.keeps_masks.len()];
        Cow::Owned(trace(n + self.info.outputs, masks, |reals, masks| {
            let (reals, grads) = reals.split_at(n);
            let along = |i: usize| {
                let moved: Vec<_> = (0..n)
                    .map(|k| match k == i {
                        true => Real::moving(reals[k], 1.0),
                        false => Real::constant(reals[k]),
                    })
                    .collect();
                let masks: Vec<_> = masks.iter().map(|mask| mask.for_duals()).collect();
                pulled(&self.program.eval::<Dual<Traced>>(&moved, &masks), grads)
            };
            (0..n).map(|i| if wanted[i] { along(i) } else { Real::from(0.0) }).collect()
        }))
    }

    fn compiled_backward(&self) -> Option<&dyn Formula<T>> {
        None
    }

    fn derived(&self) -> Option<Program> {
        None
    }
}

/// The gradient of an input: the outputs' slopes along it, weighted by their gradients.
#[inline(always)]
pub fn pulled<L: Lane>(outputs: &[Real<Dual<L>>], grads: &[Real<L>]) -> Real<L> {
    let mut sum = None;
    let mut k = 0;
    while k < outputs.len() {
        if let Some(slope) = outputs[k].slope() {
            let part = slope * grads[k];
            sum = match sum {
                Some(sum) => Some(sum + part),
                None => Some(part),
            };
        }
        k += 1;
    }
    match sum {
        Some(sum) => sum,
        None => Real::from(0.0),
    }
}
