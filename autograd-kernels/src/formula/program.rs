//! A formula as data: evaluated over any lane, which differentiates it, and run block by block.
//! Programs serve formulas without compiled code: closures (`fuse`), derivatives of derivatives,
//! forward mode, and angles beyond the straight-line reduction. A block of each step's result stays
//! in the L1 cache, so a program too needs one pass over memory.

use smallvec::SmallVec;

use super::functions::{binaries, conditions, functions};
use super::lane::{Condition, Lane};
use super::real::{Mask, Real};

macro_rules! function {
    ($($(#[$doc:meta])* $method:ident $variant:ident $kernel:ident $error:tt $slope:tt;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(super) enum Function {
            Neg,
            $($variant,)*
        }

        impl Function {
            fn of<L: Lane>(self, x: L) -> L {
                match self {
                    Self::Neg => x.neg(),
                    $(Self::$variant => x.$method(),)*
                }
            }
        }
    };
}

functions! { function }

macro_rules! two_numbers {
    ($(
        $(#[$doc:meta])*
        $number:ident $binary:ident $name:ident $error:tt |$a:ident, $b:ident| $value:expr, $rule:tt;
    )*) => {
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Binary {
            $($binary,)*
        }

        impl Binary {
            pub const ALL: &'static [Self] = &[$(Self::$binary),*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$binary => stringify!($name)),* }
            }

            fn of<L: Lane>(self, a: L, b: L) -> L {
                match self {
                    $(Self::$binary => a.$number(b),)*
                }
            }
        }
    };
}

binaries! { two_numbers }

macro_rules! comparisons {
    ($($condition:ident $compare:ident |$a:ident, $b:ident| $holds:expr;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(super) enum Compare {
            $($compare,)*
        }

        impl Compare {
            fn of<L: Lane>(self, a: L, b: L) -> L::Bool {
                match self {
                    $(Self::$compare => a.$condition(b),)*
                }
            }
        }
    };
}

conditions! { comparisons }

/// One step of a program; operands are earlier steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Real(u32),
    Mask(u32),
    /// The bits of an `f64`.
    Lit(u64),
    Known(bool),
    Function(Function, u32),
    Binary(Binary, u32, u32),
    MulAdd(u32, u32, u32),
    Compare(Compare, u32, u32),
    Not(u32),
    And(u32, u32),
    Or(u32, u32),
    Select(u32, u32, u32),
}

impl Step {
    fn each_operand(&mut self, mut each: impl FnMut(&mut u32)) {
        match self {
            Self::Real(_) | Self::Mask(_) | Self::Lit(_) | Self::Known(_) => {}
            Self::Function(_, a) | Self::Not(a) => each(a),
            Self::Binary(_, a, b) | Self::Compare(_, a, b) | Self::And(a, b) | Self::Or(a, b) => {
                [a, b].into_iter().for_each(each);
            }
            Self::MulAdd(a, b, c) | Self::Select(a, b, c) => [a, b, c].into_iter().for_each(each),
        }
    }

    fn operands(mut self) -> SmallVec<[u32; 4]> {
        let mut operands = SmallVec::new();
        self.each_operand(|operand| operands.push(*operand));
        operands
    }

    fn is_input(self) -> bool {
        matches!(self, Self::Real(_) | Self::Mask(_))
    }

    fn is_constant(self) -> bool {
        matches!(self, Self::Lit(_) | Self::Known(_))
    }

    fn is_computed(self) -> bool {
        !self.is_input() && !self.is_constant()
    }

    pub(super) fn is_number(self) -> bool {
        self.is_computed() && !self.is_mask()
    }

    fn is_mask(self) -> bool {
        matches!(
            self,
            Self::Mask(_)
                | Self::Known(_)
                | Self::Compare(..)
                | Self::Not(_)
                | Self::And(..)
                | Self::Or(..)
        )
    }
}

/// A number that follows from inputs by one function at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SingleStep {
    Input(usize),
    Negated(usize),
    Binary(Binary, [usize; 2]),
}

pub trait Written {
    fn program(&self) -> Program;
}

#[derive(Clone, Debug)]
pub struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) outputs: Vec<u32>,
    /// The buffer that holds each step's result; inputs have none.
    pub(super) places: Vec<u32>,
    /// The number of buffers for numbers and for masks.
    pub(super) buffers: [usize; 2],
}

impl Program {
    /// Drops steps that no output needs, and assigns a buffer to each step.
    pub(super) fn new(steps: Vec<Step>, outputs: Vec<u32>) -> Self {
        let mut needed = vec![false; steps.len()];
        outputs.iter().for_each(|&output| needed[output as usize] = true);
        for (i, step) in steps.iter().enumerate().rev() {
            if needed[i] {
                let operands = step.operands();
                operands.into_iter().for_each(|operand| needed[operand as usize] = true);
            }
        }
        let mut to = vec![0; steps.len()];
        let mut kept = Vec::new();
        for (i, mut step) in steps.into_iter().enumerate().filter(|(i, _)| needed[*i]) {
            to[i] = kept.len() as u32;
            step.each_operand(|operand| *operand = to[*operand as usize]);
            kept.push(step);
        }
        let outputs: Vec<u32> = outputs.iter().map(|&output| to[output as usize]).collect();
        let (places, buffers) = place(&kept, &outputs);
        Self { steps: kept, outputs, places, buffers }
    }

    #[doc(hidden)]
    pub fn eval<L: Lane>(&self, reals: &[Real<L>], masks: &[Mask<L>]) -> Vec<Real<L>> {
        enum Found<L: Lane> {
            Real(L),
            Mask(L::Bool),
        }
        let mut found: Vec<Found<L>> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let real = |i: u32| match &found[i as usize] {
                Found::Real(x) => *x,
                Found::Mask(_) => unreachable!("programs are written by typed formulas"),
            };
            let mask = |i: u32| match &found[i as usize] {
                Found::Mask(m) => *m,
                Found::Real(_) => unreachable!("programs are written by typed formulas"),
            };
            let result = match *step {
                Step::Real(i) => Found::Real(reals[i as usize].0),
                Step::Mask(i) => Found::Mask(masks[i as usize].0),
                Step::Lit(bits) => Found::Real(L::lit(f64::from_bits(bits))),
                Step::Known(holds) => Found::Mask(L::Bool::known(holds)),
                Step::Function(f, a) => Found::Real(f.of(real(a))),
                Step::Binary(f, a, b) => Found::Real(f.of(real(a), real(b))),
                Step::MulAdd(a, b, c) => Found::Real(real(a).mul_add(real(b), real(c))),
                Step::Compare(f, a, b) => Found::Mask(f.of(real(a), real(b))),
                Step::Not(a) => Found::Mask(mask(a).not()),
                Step::And(a, b) => Found::Mask(mask(a).and(mask(b))),
                Step::Or(a, b) => Found::Mask(mask(a).or(mask(b))),
                Step::Select(m, a, b) => Found::Real(L::select(mask(m), real(a), real(b))),
            };
            found.push(result);
        }
        self.outputs
            .iter()
            .map(|&output| match &found[output as usize] {
                Found::Real(x) => Real(*x),
                Found::Mask(_) => unreachable!("outputs are numbers"),
            })
            .collect()
    }

    #[doc(hidden)]
    pub fn used_inputs(&self) -> Vec<u32> {
        let read = |step: &Step| match step {
            Step::Real(i) => Some(*i),
            _ => None,
        };
        self.steps.iter().filter_map(read).collect()
    }

    /// For each output, how it follows from the inputs by one function at most.
    #[doc(hidden)]
    pub fn single_steps(&self) -> impl Iterator<Item = Option<SingleStep>> {
        let input = |at: u32| match self.steps[at as usize] {
            Step::Real(i) => Some(i as usize),
            _ => None,
        };
        self.outputs.iter().map(move |&output| match self.steps[output as usize] {
            Step::Real(i) => Some(SingleStep::Input(i as usize)),
            Step::Function(Function::Neg, x) => input(x).map(SingleStep::Negated),
            Step::Binary(f, a, b) => Some(SingleStep::Binary(f, [input(a)?, input(b)?])),
            _ => None,
        })
    }

    #[doc(hidden)]
    pub fn with_outputs(&self, wanted: &[bool]) -> Self {
        let outputs = self.outputs.iter().zip(wanted).filter(|(_, wanted)| **wanted);
        Self::new(self.steps.clone(), outputs.map(|(&output, _)| output).collect())
    }
}

/// Assigns a buffer to each step, and returns how many there are: a buffer is reused after the last
/// read of its step. Constants keep their buffers, which are written once.
fn place(steps: &[Step], outputs: &[u32]) -> (Vec<u32>, [usize; 2]) {
    let mut last = vec![0; steps.len()];
    for (i, step) in steps.iter().enumerate() {
        step.operands().into_iter().for_each(|operand| last[operand as usize] = i);
    }
    outputs.iter().for_each(|&output| last[output as usize] = usize::MAX);
    let mut places = vec![u32::MAX; steps.len()];
    let mut free: [Vec<u32>; 2] = Default::default();
    let mut count = [0_usize; 2];
    for (i, step) in steps.iter().enumerate().filter(|(_, step)| !step.is_input()) {
        let kind = usize::from(step.is_mask());
        let reused = if step.is_constant() { None } else { free[kind].pop() };
        places[i] = reused.unwrap_or_else(|| {
            count[kind] += 1;
            (count[kind] - 1) as u32
        });
        let mut freed = step.operands();
        freed.sort_unstable();
        freed.dedup();
        for operand in freed {
            let of = steps[operand as usize];
            if of.is_computed() && last[operand as usize] == i {
                free[usize::from(of.is_mask())].push(places[operand as usize]);
            }
        }
    }
    (places, count)
}

impl Written for Program {
    fn program(&self) -> Program {
        self.clone()
    }
}
