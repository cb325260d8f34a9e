//! A formula as data: evaluated over any lane, which differentiates it, and run block by block.
//!
//! Programs serve what has no compiled form: closures (`fuse`), derivatives of
//! derivatives, forward mode, and angles beyond the straight-line reduction. A block of each step's
//! result stays in the first cache, so memory is passed over once here too.

use super::functions::functions;
use super::lane::Lane;
use super::real::{Mask, Real};

macro_rules! function {
    ($(
        $(#[$doc:meta])*
        $method:ident $variant:ident $kernel:ident [$e32:literal, $e64:literal] $slope:tt;
    )*) => {
        /// A function of one number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(super) enum Function {
            Neg,
            $($variant,)*
        }

        impl Function {
            pub(super) fn of<L: Lane>(self, x: L) -> L {
                match self {
                    Self::Neg => x.neg(),
                    $(Self::$variant => x.$method(),)*
                }
            }
        }
    };
}

functions! { function }

/// What two numbers are made into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
    Pow,
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Compare {
    Less,
    LessOrEqual,
    Equal,
}

/// One step of a program; operands are earlier steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// An input.
    Real(u32),
    /// An input that is a mask.
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
    fn operands(self) -> ([u32; 3], usize) {
        match self {
            Self::Real(_) | Self::Mask(_) | Self::Lit(_) | Self::Known(_) => ([0; 3], 0),
            Self::Function(_, a) | Self::Not(a) => ([a, 0, 0], 1),
            Self::Binary(_, a, b) | Self::Compare(_, a, b) | Self::And(a, b) | Self::Or(a, b) => {
                ([a, b, 0], 2)
            }
            Self::MulAdd(a, b, c) | Self::Select(a, b, c) => ([a, b, c], 3),
        }
    }

    fn renumbered(self, to: &[u32]) -> Self {
        let of = |step: u32| to[step as usize];
        match self {
            Self::Real(_) | Self::Mask(_) | Self::Lit(_) | Self::Known(_) => self,
            Self::Function(f, a) => Self::Function(f, of(a)),
            Self::Not(a) => Self::Not(of(a)),
            Self::Binary(f, a, b) => Self::Binary(f, of(a), of(b)),
            Self::Compare(f, a, b) => Self::Compare(f, of(a), of(b)),
            Self::And(a, b) => Self::And(of(a), of(b)),
            Self::Or(a, b) => Self::Or(of(a), of(b)),
            Self::MulAdd(a, b, c) => Self::MulAdd(of(a), of(b), of(c)),
            Self::Select(a, b, c) => Self::Select(of(a), of(b), of(c)),
        }
    }

    /// Whether it computes a number.
    pub(super) fn is_number(self) -> bool {
        matches!(self, Self::Function(..) | Self::Binary(..) | Self::MulAdd(..) | Self::Select(..))
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

/// What can be written down as a program.
pub trait Written {
    /// The program.
    fn program(&self) -> Program;
}

/// A formula written down.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) outputs: Vec<u32>,
    /// The buffer that holds each step's result; inputs have none.
    pub(super) places: Vec<u32>,
    /// How many buffers of numbers and of masks there are.
    pub(super) buffers: [usize; 2],
}

impl Program {
    /// Drops what no output needs, and finds a buffer for each step.
    pub(super) fn new(steps: Vec<Step>, outputs: Vec<u32>) -> Self {
        let mut needed = vec![false; steps.len()];
        outputs.iter().for_each(|&output| needed[output as usize] = true);
        for (i, step) in steps.iter().enumerate().rev() {
            if needed[i] {
                let (operands, n) = step.operands();
                operands[..n].iter().for_each(|&operand| needed[operand as usize] = true);
            }
        }
        let mut to = vec![0; steps.len()];
        let mut kept = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            if needed[i] {
                to[i] = kept.len() as u32;
                kept.push(step.renumbered(&to));
            }
        }
        let outputs: Vec<u32> = outputs.iter().map(|&output| to[output as usize]).collect();
        let (places, buffers) = place(&kept, &outputs);
        Self { steps: kept, outputs, places, buffers }
    }

    /// The program over numbers of any kind.
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
                Step::Known(holds) => Found::Mask(L::known(holds)),
                Step::Function(f, a) => Found::Real(f.of(real(a))),
                Step::Binary(f, a, b) => {
                    let (a, b) = (real(a), real(b));
                    Found::Real(match f {
                        Binary::Add => a.add(b),
                        Binary::Sub => a.sub(b),
                        Binary::Mul => a.mul(b),
                        Binary::Div => a.div(b),
                        Binary::Min => a.min(b),
                        Binary::Max => a.max(b),
                        Binary::Pow => a.pow(b),
                    })
                }
                Step::MulAdd(a, b, c) => Found::Real(real(a).mul_add(real(b), real(c))),
                Step::Compare(f, a, b) => {
                    let (a, b) = (real(a), real(b));
                    Found::Mask(match f {
                        Compare::Less => a.less(b),
                        Compare::LessOrEqual => a.less_or_equal(b),
                        Compare::Equal => a.equal(b),
                    })
                }
                Step::Not(a) => Found::Mask(L::not(mask(a))),
                Step::And(a, b) => Found::Mask(L::and(mask(a), mask(b))),
                Step::Or(a, b) => Found::Mask(L::or(mask(a), mask(b))),
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

    /// The inputs that its outputs depend on.
    #[doc(hidden)]
    pub fn reads(&self) -> Vec<u32> {
        let read = |step: &Step| match step {
            Step::Real(i) => Some(*i),
            _ => None,
        };
        self.steps.iter().filter_map(read).collect()
    }

    /// For each output: the input that it is, where it is one.
    #[doc(hidden)]
    pub fn handed(&self) -> impl Iterator<Item = Option<usize>> {
        self.outputs.iter().map(|&output| match self.steps[output as usize] {
            Step::Real(i) => Some(i as usize),
            _ => None,
        })
    }

    /// The same program with some of its outputs only.
    #[doc(hidden)]
    pub fn with_outputs(&self, wanted: &[bool]) -> Self {
        let outputs = self.outputs.iter().zip(wanted).filter(|(_, wanted)| **wanted);
        Self::new(self.steps.clone(), outputs.map(|(&output, _)| output).collect())
    }
}

/// Which buffer holds each step, and how many there are: a buffer serves again when its step was
/// read for the last time. Constants keep theirs, and are written once.
fn place(steps: &[Step], outputs: &[u32]) -> (Vec<u32>, [usize; 2]) {
    let mut last = vec![0; steps.len()];
    for (i, step) in steps.iter().enumerate() {
        let (operands, n) = step.operands();
        operands[..n].iter().for_each(|&operand| last[operand as usize] = i);
    }
    outputs.iter().for_each(|&output| last[output as usize] = usize::MAX);
    let mut places = vec![u32::MAX; steps.len()];
    let mut free: [Vec<u32>; 2] = Default::default();
    let mut count = [0_usize; 2];
    for (i, step) in steps.iter().enumerate() {
        if matches!(step, Step::Real(_) | Step::Mask(_)) {
            continue;
        }
        let kind = usize::from(step.is_mask());
        let constant = matches!(step, Step::Lit(_) | Step::Known(_));
        let reused = if constant { None } else { free[kind].pop() };
        places[i] = reused.unwrap_or_else(|| {
            count[kind] += 1;
            (count[kind] - 1) as u32
        });
        let (operands, n) = step.operands();
        let mut freed: Vec<u32> = operands[..n].to_vec();
        freed.sort_unstable();
        freed.dedup();
        for operand in freed {
            let of = steps[operand as usize];
            let held = !matches!(of, Step::Real(_) | Step::Mask(_) | Step::Lit(_) | Step::Known(_));
            if held && last[operand as usize] == i {
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
