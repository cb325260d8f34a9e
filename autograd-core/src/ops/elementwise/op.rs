//! Elementwise ops: description, formulas, cached programs, and the handle that calls and nodes hold.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::array::Storable;
use crate::formula::{
    Dual, Formula, Lane, Program, Real, SingleStep, Traced, Written, record_given, trace,
};
use crate::graph::{self, Tensor};

/// The properties of an op that are the same in every call.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Info {
    pub name: &'static str,
    pub reals: Cow<'static, [&'static str]>,
    pub differentiable: Cow<'static, [bool]>,
    pub masks: Cow<'static, [&'static str]>,
    pub outputs: usize,
    /// By position, the inputs of backward in order: numbers, masks, outputs, gradients of outputs.
    pub keeps_reals: Cow<'static, [usize]>,
    pub keeps_masks: Cow<'static, [usize]>,
    pub keeps_outputs: Cow<'static, [usize]>,
    pub gradients: Cow<'static, [usize]>,
    pub reduction: Reduction,
}

impl Info {
    /// Describes an op of numbers with one output. Backward reads the kept tensors and the gradient.
    pub(in crate::ops) const fn new(
        name: &'static str,
        reals: &'static [&'static str],
        differentiable: &'static [bool],
        [keeps_reals, keeps_outputs]: [&'static [usize]; 2],
        reduction: Reduction,
    ) -> Self {
        Self {
            name,
            reals: Cow::Borrowed(reals),
            differentiable: Cow::Borrowed(differentiable),
            masks: Cow::Borrowed(&[]),
            outputs: 1,
            keeps_reals: Cow::Borrowed(keeps_reals),
            keeps_masks: Cow::Borrowed(&[]),
            keeps_outputs: Cow::Borrowed(keeps_outputs),
            gradients: Cow::Borrowed(&[0]),
            reduction,
        }
    }

    /// Whether each number of the only result is computed of numbers alone.
    pub(super) fn has_one_result(&self) -> bool {
        self.outputs == 1 && self.masks.is_empty() && matches!(self.reduction, Reduction::None)
    }
}

/// Defines formula types: formulas of numbers, some with one more number stored in the type.
macro_rules! formulas {
    ($($name:ident $(($number:ident))? |$($x:ident),*| [$($y:expr),*] $(, $cheap:expr)?;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $name $(($crate::ops::elementwise::formulas!(@type $number)))?;

        impl $crate::formula::Lanewise<
            { [$(stringify!($x)),*].len() },
            0,
            { [$(stringify!($y)),*].len() },
        > for $name {
            $(const CHEAP: Option<$crate::array::Cheap> = $cheap;)?

            #[inline(always)]
            fn call<L: Lane>(
                &self,
                [$($x),*]: [Real<L>; [$(stringify!($x)),*].len()],
                _: [$crate::formula::Mask<L>; 0],
            ) -> [Real<L>; [$(stringify!($y)),*].len()] {
                $(
                    #[allow(unused_variables, reason = "a rule may not read it")]
                    let $number = Real::<L>::from(self.0);
                )?
                [$($y),*]
            }
        }
    )*};
    (@type $number:ident) => { f64 };
}
pub(in crate::ops) use formulas;

/// Whether an op has one number input, one result of the same shape, and keeps at most one of the two.
pub(in crate::ops) fn is_single(info: &Info) -> bool {
    has_one_gradient(info)
        && info.differentiable.len() == 1
        && info.keeps_reals.len() + info.keeps_outputs.len() < 2
}

/// Whether an op's only gradient is that of its first input, beside which may be a number, and its only result has
/// the shape of the input.
pub(super) fn has_one_gradient(info: &Info) -> bool {
    let first = matches!(info.differentiable[..], [true] | [true, false]);
    first && info.has_one_result() && info.gradients[..] == [0]
}

#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum Reduction {
    None,
    /// The sum over these axes; over all axes if empty.
    Sum(Cow<'static, [isize]>),
    /// The mean over these axes; over all axes if empty.
    Mean(Cow<'static, [isize]>),
}

/// The outputs of an op.
pub type Outputs<T> = SmallVec<[Tensor<T>; 1]>;

#[doc(hidden)]
pub trait ElementwiseOp<T>: Send + Sync {
    fn info(&self) -> &Info;
    /// The formula of the outputs, from the numbers and masks.
    fn forward(&self) -> &dyn Formula<T>;
    /// The program of the gradients, from the inputs in [`Info`]; unwanted gradients may have any value.
    fn backward(&self, wanted: &[bool]) -> Cow<'_, Program>;
    /// The compiled form of [`backward`](Self::backward), if the op has one.
    fn compiled_backward(&self) -> Option<&dyn Formula<T>>;
    /// The derivative of forward, if backward is hand-written.
    fn derived(&self) -> Option<Program>;
    fn found(&self) -> &Found;
}

/// What is made once for an op: rarely needed programs, and its nodes' op.
#[doc(hidden)]
#[derive(Default)]
pub struct Found {
    backward: OnceLock<Arc<Traceable>>,
    tangents: OnceLock<Arc<Traceable>>,
    dependents: OnceLock<SmallVec<[u64; 4]>>,
    steps: OnceLock<SmallVec<[Option<SingleStep>; 2]>>,
    /// The node forms of a static op, by float type, created when first recorded.
    pub(super) recorded: [OnceLock<Box<dyn graph::Op>>; 2],
}

impl Found {
    pub const fn new() -> Self {
        Self {
            backward: OnceLock::new(),
            tangents: OnceLock::new(),
            dependents: OnceLock::new(),
            steps: OnceLock::new(),
            recorded: [const { OnceLock::new() }; 2],
        }
    }
}

impl<T> dyn ElementwiseOp<T> {
    /// The number of tensors that backward reads, not counting masks.
    fn given(&self) -> usize {
        let info = self.info();
        info.keeps_reals.len() + info.keeps_outputs.len() + info.gradients.len()
    }

    fn gradients(&self) -> usize {
        self.info().differentiable.iter().filter(|wants| **wants).count()
    }

    /// Returns backward as an op that computes the wanted gradients only.
    pub(super) fn backward_op(&self, wanted: &[bool]) -> Arc<Traceable> {
        let make = || {
            let program = self.backward(wanted).with_outputs(wanted);
            let outputs = wanted.iter().filter(|wanted| **wanted).count();
            let counts = [self.given(), self.info().keeps_masks.len(), outputs];
            Arc::new(Traceable::new(self.info().name, program, counts))
        };
        match wanted.iter().all(|wanted| *wanted) {
            true => Arc::clone(self.found().backward.get_or_init(make)),
            false => make(),
        }
    }

    /// Returns the op that computes the outputs' tangents from the kept tensors and the tangents of the
    /// differentiable inputs that have one. The derivative is linear: the inputs' contributions are added.
    pub(super) fn tangents_op(&self, present: &[bool]) -> Arc<Traceable> {
        let make = || {
            let (info, masks) = (self.info(), self.info().keeps_masks.len());
            let backward = self.backward(&vec![true; present.len()]);
            let kept = self.given() - info.gradients.len();
            let inputs: Vec<usize> = (0..present.len()).filter(|&input| present[input]).collect();
            let program = trace(kept + inputs.len(), masks, &mut |reals, masks| {
                let (kept, slopes) = reals.split_at(kept);
                let along = |output: usize, (slope, input): (&Real<Traced>, &usize)| {
                    let grads = info.gradients.iter().map(|&k| match k == output {
                        true => *slope,
                        false => Real::from(0.0),
                    });
                    let given: Vec<_> = kept.iter().copied().chain(grads).collect();
                    backward.eval::<Traced>(&given, masks)[*input]
                };
                let slope = |output| {
                    let parts = slopes.iter().zip(&inputs).map(|part| along(output, part));
                    parts.reduce(|sum, part| sum + part).unwrap_or_else(|| Real::from(0.0))
                };
                (0..info.outputs).map(slope).collect()
            });
            let counts = [kept + inputs.len(), masks, info.outputs];
            Arc::new(Traceable::new(info.name, program, counts))
        };
        match present.iter().all(|present| *present) {
            true => Arc::clone(self.found().tangents.get_or_init(make)),
            false => make(),
        }
    }

    /// For each kept input and output: a bit set of the gradients that depend on it.
    pub(super) fn dependents(&self) -> &[u64] {
        self.found().dependents.get_or_init(|| {
            let gradients = self.gradients();
            let backward = self.backward(&vec![true; gradients]);
            let kept = self.given() - self.info().gradients.len();
            let mut dependents = SmallVec::from_elem(0, kept);
            for gradient in 0..gradients {
                let only: Vec<bool> = (0..gradients).map(|other| other == gradient).collect();
                let read = backward.with_outputs(&only).used_inputs();
                let read = read.into_iter().filter(|&at| (at as usize) < kept);
                read.for_each(|at| dependents[at as usize] |= bit(gradient));
            }
            dependents
        })
    }

    /// Whether a call of an op of two numbers keeps each of them, given which want a gradient.
    #[inline]
    pub(in crate::ops) fn keeps_pair(&self, [a, b]: [bool; 2]) -> [bool; 2] {
        let wanted = u64::from(a) | u64::from(b) << 1;
        let dependents = self.dependents();
        [0, 1].map(|at| dependents[at] & wanted != 0)
    }

    /// Returns a function that says whether a call keeps an input or output, by its position in
    /// backward: if a wanted gradient depends on it.
    pub(super) fn keep_filter(&self, wanted: impl Iterator<Item = bool>) -> impl Fn(usize) -> bool {
        let wanted = wanted.enumerate().filter(|(_, wanted)| *wanted);
        let wanted = wanted.fold(0, |all, (gradient, _)| all | bit(gradient));
        let dependents = self.dependents();
        move |at| dependents[at] & wanted != 0
    }
}

/// The bit of a gradient. The last bit stands for gradient 63 and all later ones.
fn bit(gradient: usize) -> u64 {
    1 << gradient.min(63)
}

#[doc(hidden)]
pub enum Handle<T: 'static> {
    Static(&'static dyn ElementwiseOp<T>),
    /// An op with its own parameters.
    Shared(Arc<dyn ElementwiseOp<T>>),
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Static(op) => Self::Static(*op),
            Self::Shared(op) => Self::Shared(Arc::clone(op)),
        }
    }
}

impl<T> Handle<T> {
    /// Whether the op serves several calls, or has its programs already. An op with parameters is
    /// created in each call: analysing what it reads would cost more than the call.
    pub(super) fn is_reused(&self) -> bool {
        matches!(self, Self::Static(_)) || self.compiled_backward().is_none()
    }

    /// For each gradient: how it follows by one function at most from what backward reads, so that no
    /// formula needs to run. Empty if there is none, or if the op serves one call only.
    pub(super) fn single_steps(&self) -> &[Option<SingleStep>] {
        let Self::Static(op) = self else { return &[] };
        op.found().steps.get_or_init(|| {
            let backward = op.backward(&vec![true; op.gradients()]);
            let steps: SmallVec<_> = backward.single_steps().collect();
            if steps.iter().any(Option::is_some) { steps } else { SmallVec::new() }
        })
    }
}

impl<T> Deref for Handle<T> {
    type Target = dyn ElementwiseOp<T>;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Static(op) => *op,
            Self::Shared(op) => &**op,
        }
    }
}

#[doc(hidden)]
pub struct Pair<F, B, D> {
    info: &'static Info,
    forward: F,
    backward: B,
    derived: Option<D>,
    found: Found,
}

impl<F, B, D> Pair<F, B, D> {
    /// Creates the op. `derived` is the derivative of forward, if backward is hand-written.
    pub const fn new(info: &'static Info, forward: F, backward: B, derived: Option<D>) -> Self {
        Self { info, forward, backward, derived, found: Found::new() }
    }
}

impl<T: Storable, F: Formula<T>, B: Formula<T>, D: Written + Send + Sync> ElementwiseOp<T>
    for Pair<F, B, D>
{
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

    fn found(&self) -> &Found {
        &self.found
    }
}

/// An op whose formula is a program; its backward is derived on demand.
pub(super) struct Traceable {
    info: Info,
    program: Program,
    found: Found,
}

impl Traceable {
    /// Creates the op from a program of `reals` numbers and `masks` masks with `outputs` results.
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
        Self { info, program, found: Found::new() }
    }

    /// Lets backward read the outputs, which are the program's results, as nothing is summed.
    pub(super) fn reading_outputs(mut self) -> Self {
        self.info.keeps_outputs = (0..self.info.outputs).collect();
        self
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }
}

impl<T: Storable> ElementwiseOp<T> for Traceable
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
        let kept = self.info.keeps_outputs.len();
        let formula = record_given(n + kept + self.info.outputs, masks, |all, masks| {
            let (reals, grads) = (&all[..n], &all[n + kept..]);
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
            let slopes: Vec<_> =
                (0..n).map(|i| if wanted[i] { along(i) } else { Real::from(0.0) }).collect();
            if kept == 0 {
                return (slopes, Vec::new());
            }
            // A value that is an output is not computed again.
            let again = self.program.eval::<Traced>(reals, masks);
            let given = again.into_iter().enumerate().map(|(k, output)| (output, n + k));
            (slopes, given.collect())
        });
        Cow::Owned(formula.program())
    }

    fn compiled_backward(&self) -> Option<&dyn Formula<T>> {
        None
    }

    fn derived(&self) -> Option<Program> {
        None
    }

    fn found(&self) -> &Found {
        &self.found
    }
}

/// The gradient of an input: the outputs' slopes along it, weighted by their gradients.
#[inline(always)]
pub fn pulled<L: Lane>(outputs: &[Real<Dual<L>>], grads: &[Real<L>]) -> Real<L> {
    let mut sum = None;
    let mut k = 0;
    while k < outputs.len() {
        if let Some(part) = outputs[k].slope_times(grads[k]) {
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
