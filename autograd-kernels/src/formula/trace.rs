//! Formulas as programs: a trace records the computation step by step.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::functions::{binaries, conditions, functions};
use super::lane::{Compute, Condition, Lane};
use super::program::{Binary, Compare, Function, Program, Step};
use super::real::{Mask, Real};

#[derive(Clone, Copy, Debug)]
pub struct Traced {
    step: u32,
    program: u32,
}

struct Recorder {
    program: u32,
    steps: Vec<Step>,
    /// The index of each step, so that none is computed twice; empty while a search is faster.
    known: HashMap<Step, u32>,
}

/// Up to this many steps, a linear search is faster than a table.
const MAX_SCANNED: usize = 32;

impl Recorder {
    /// The index of a step, which is appended if it is new.
    fn place(&mut self, step: Step) -> u32 {
        let next = self.steps.len();
        let found = match next <= MAX_SCANNED {
            true => self.steps.iter().rposition(|known| *known == step).map(|at| at as u32),
            false => self.known.get(&step).copied(),
        };
        found.unwrap_or_else(|| {
            self.steps.push(step);
            if next == MAX_SCANNED {
                let all = self.steps.iter().enumerate();
                self.known = all.map(|(at, step)| (*step, at as u32)).collect();
            } else if next > MAX_SCANNED {
                self.known.insert(step, next as u32);
            }
            next as u32
        })
    }
}

/// A recorded formula, before unused steps are dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedFormula {
    steps: Vec<Step>,
    outputs: Vec<u32>,
}

impl RecordedFormula {
    pub fn program(&self) -> Program {
        Program::new(self.steps.clone(), self.outputs.clone())
    }
}

thread_local! {
    /// The innermost recorder is last: a formula may run another one.
    static RECORDERS: RefCell<Vec<Recorder>> = const { RefCell::new(Vec::new()) };
    static PROGRAMS: Cell<u32> = const { Cell::new(0) };
}

type Formula<'a> = &'a mut dyn FnMut(&[Real<Traced>], &[Mask<Traced>]) -> Vec<Real<Traced>>;

pub fn trace(reals: usize, masks: usize, formula: Formula<'_>) -> Program {
    record(reals, masks, formula).program()
}

pub fn record(reals: usize, masks: usize, formula: Formula<'_>) -> RecordedFormula {
    record_given(reals, masks, |reals, masks| (formula(reals, masks), Vec::new()))
}

/// As [`record`]; `formula` also returns given numbers, each with the input that replaces it.
pub fn record_given(
    reals: usize,
    masks: usize,
    formula: impl FnOnce(
        &[Real<Traced>],
        &[Mask<Traced>],
    ) -> (Vec<Real<Traced>>, Vec<(Real<Traced>, usize)>),
) -> RecordedFormula {
    let recording = Recording::start();
    let (reals, masks) = inputs(reals, masks);
    let (outputs, given) = formula(&reals, &masks);
    let of = |x: Real<Traced>| x.0.of(recording.program);
    let outputs = outputs.into_iter().map(of).collect();
    let given: Vec<_> = given.into_iter().map(|(x, input)| (of(x), input)).collect();
    let mut steps = recording.steps();
    for (step, input) in given {
        let step = &mut steps[step as usize];
        if !matches!(step, Step::Real(_) | Step::Lit(_)) {
            *step = Step::Real(input as u32);
        }
    }
    RecordedFormula { steps, outputs }
}

fn inputs(reals: usize, masks: usize) -> (Vec<Real<Traced>>, Vec<Mask<Traced>>) {
    let reals = (0..reals as u32).map(|i| Real(Traced::step(Step::Real(i))));
    let masks = (0..masks as u32).map(|i| Mask(Traced::step(Step::Mask(i))));
    (reals.collect(), masks.collect())
}

/// Runs a closure with the program that is being recorded; panics without one.
fn recorder<R>(run: impl FnOnce(&mut Recorder) -> R) -> R {
    RECORDERS.with_borrow_mut(|recorders| match recorders.last_mut() {
        Some(recorder) => run(recorder),
        None => panic_outside_formula(),
    })
}

/// Ends the recording, even if the formula panics.
struct Recording {
    program: u32,
}

impl Recording {
    fn start() -> Self {
        let program = PROGRAMS.get().wrapping_add(1);
        PROGRAMS.set(program);
        RECORDERS.with_borrow_mut(|recorders| {
            recorders.push(Recorder { program, steps: Vec::new(), known: HashMap::new() });
        });
        Self { program }
    }

    fn steps(self) -> Vec<Step> {
        recorder(|recorder| std::mem::take(&mut recorder.steps))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        RECORDERS.with_borrow_mut(|recorders| recorders.retain(|r| r.program != self.program));
    }
}

impl Traced {
    fn step(step: Step) -> Self {
        recorder(|recorder| Self { step: recorder.place(step), program: recorder.program })
    }

    /// The index of the step, which must belong to this program.
    fn of(self, program: u32) -> u32 {
        if self.program == program { self.step } else { panic_outside_formula() }
    }

    fn at(self) -> u32 {
        self.of(recorder(|recorder| recorder.program))
    }

    fn literal(self) -> Option<f64> {
        recorder(|recorder| match recorder.steps.get(self.step as usize) {
            Some(Step::Lit(bits)) => Some(f64::from_bits(*bits)),
            _ => None,
        })
    }
}

#[cold]
fn panic_outside_formula() -> ! {
    panic!("a number of a formula was used outside of that formula")
}

macro_rules! one_number {
    ($($(#[$doc:meta])* $method:ident $variant:ident $kernel:ident $error:tt $slope:tt;)*) => {
        $(fn $method(self) -> Self {
            Self::step(Step::Function(Function::$variant, self.at()))
        })*
    };
}

macro_rules! two_numbers {
    ($(
        $(#[$doc:meta])*
        $number:ident $binary:ident $name:ident $error:tt |$a:ident, $b:ident| $value:expr, $rule:tt;
    )*) => {
        $(fn $number(self, other: Self) -> Self {
            // The slope of a variable is 1, and its negative -1.
            match (Binary::$binary, self.literal(), other.literal()) {
                (Binary::Mul, _, Some(1.0)) => self,
                (Binary::Mul, Some(1.0), _) => other,
                (Binary::Mul, _, Some(-1.0)) => self.neg(),
                (Binary::Mul, Some(-1.0), _) => other.neg(),
                (binary, ..) => Self::step(Step::Binary(binary, self.at(), other.at())),
            }
        })*
    };
}

macro_rules! comparisons {
    ($($condition:ident $compare:ident |$a:ident, $b:ident| $holds:expr;)*) => {
        $(fn $condition(self, other: Self) -> Self {
            Self::step(Step::Compare(Compare::$compare, self.at(), other.at()))
        })*
    };
}

impl Lane for Traced {}

impl Compute for Traced {
    type Bool = Self;

    fn lit(value: f64) -> Self {
        Self::step(Step::Lit(value.to_bits()))
    }

    fn neg(self) -> Self {
        match self.literal() {
            Some(value) => Self::lit(-value),
            None => Self::step(Step::Function(Function::Neg, self.at())),
        }
    }

    fn mul_add(self, a: Self, b: Self) -> Self {
        Self::step(Step::MulAdd(self.at(), a.at(), b.at()))
    }

    fn select(mask: Self, a: Self, b: Self) -> Self {
        Self::step(Step::Select(mask.at(), a.at(), b.at()))
    }

    functions! { one_number }
    binaries! { two_numbers }
    conditions! { comparisons }
}

impl Condition for Traced {
    fn known(holds: bool) -> Self {
        Self::step(Step::Known(holds))
    }

    fn not(self) -> Self {
        Self::step(Step::Not(self.at()))
    }

    fn and(self, other: Self) -> Self {
        Self::step(Step::And(self.at(), other.at()))
    }

    fn or(self, other: Self) -> Self {
        Self::step(Step::Or(self.at(), other.at()))
    }
}
