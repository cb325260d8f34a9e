//! Formulas as programs: what is computed is written down step by step.

use std::cell::RefCell;
use std::collections::HashMap;

use super::functions::functions;
use super::lane::{Lane, Sealed};
use super::program::{Binary, Compare, Function, Program, Step};
use super::real::{Mask, Real};

#[derive(Clone, Copy, Debug)]
pub struct Traced {
    step: u32,
    program: u32,
}

/// The program that is being written.
struct Recorder {
    program: u32,
    steps: Vec<Step>,
    /// Where each step stands, so that none is computed twice; empty while a linear search is faster.
    known: HashMap<Step, u32>,
}

/// Up to so many steps, looking at each is faster than a table.
const MAX_SCANNED: usize = 32;

impl Recorder {
    /// Where a step stands; at the end, if it is new.
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

/// A formula as it was written down, before anything is dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Formulated {
    steps: Vec<Step>,
    outputs: Vec<u32>,
}

impl Formulated {
    pub fn program(&self) -> Program {
        Program::new(self.steps.clone(), self.outputs.clone())
    }
}

thread_local! {
    /// The innermost is last: a formula may run another one.
    static RECORDERS: RefCell<Vec<Recorder>> = const { RefCell::new(Vec::new()) };
    static PROGRAMS: RefCell<u32> = const { RefCell::new(0) };
}

/// A formula as it is written down: called once.
type Formula<'a> = &'a mut dyn FnMut(&[Real<Traced>], &[Mask<Traced>]) -> Vec<Real<Traced>>;

/// Writes down what `formula` computes from its inputs.
pub fn trace(reals: usize, masks: usize, formula: Formula<'_>) -> Program {
    let Formulated { steps, outputs } = written(reals, masks, formula);
    Program::new(steps, outputs)
}

/// [`trace`], before the program is made.
pub fn written(reals: usize, masks: usize, formula: Formula<'_>) -> Formulated {
    let recording = Recording::start();
    let (reals, masks) = inputs(reals, masks);
    let outputs = formula(&reals, &masks);
    let outputs = outputs.into_iter().map(|output| output.0.of(recording.program)).collect();
    Formulated { steps: recording.steps(), outputs }
}

/// [`trace`] of a formula that computes what is also given: numbers, and the inputs that they are.
pub fn trace_given(
    reals: usize,
    masks: usize,
    formula: impl FnOnce(
        &[Real<Traced>],
        &[Mask<Traced>],
    ) -> (Vec<Real<Traced>>, Vec<(Real<Traced>, usize)>),
) -> Program {
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
    Program::new(steps, outputs)
}

fn inputs(reals: usize, masks: usize) -> (Vec<Real<Traced>>, Vec<Mask<Traced>>) {
    let reals = (0..reals as u32).map(|i| Real(Traced::step(Step::Real(i))));
    let masks = (0..masks as u32).map(|i| Mask(Traced::step(Step::Mask(i))));
    (reals.collect(), masks.collect())
}

/// Ends the program also where the formula panics.
struct Recording {
    program: u32,
}

impl Recording {
    fn start() -> Self {
        let program = PROGRAMS.with_borrow_mut(|next| {
            *next = next.wrapping_add(1);
            *next
        });
        RECORDERS.with_borrow_mut(|recorders| {
            recorders.push(Recorder { program, steps: Vec::new(), known: HashMap::new() });
        });
        Self { program }
    }

    fn steps(self) -> Vec<Step> {
        let steps = RECORDERS.with_borrow_mut(|recorders| {
            recorders.last_mut().map(|recorder| std::mem::take(&mut recorder.steps))
        });
        steps.unwrap_or_default()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        RECORDERS.with_borrow_mut(|recorders| recorders.retain(|r| r.program != self.program));
    }
}

impl Traced {
    fn step(step: Step) -> Self {
        RECORDERS.with_borrow_mut(|recorders| {
            let Some(recorder) = recorders.last_mut() else { stray() };
            Self { step: recorder.place(step), program: recorder.program }
        })
    }

    /// The step, which must be one of this program.
    fn of(self, program: u32) -> u32 {
        if self.program == program { self.step } else { stray() }
    }

    fn at(self) -> u32 {
        let program = RECORDERS.with_borrow(|r| r.last().map(|recorder| recorder.program));
        match program {
            Some(program) => self.of(program),
            None => stray(),
        }
    }

    fn is_lit(self, value: f64) -> bool {
        let bits = value.to_bits();
        RECORDERS.with_borrow(|recorders| {
            let steps = recorders.last().map(|recorder| &recorder.steps);
            steps.and_then(|steps| steps.get(self.step as usize)) == Some(&Step::Lit(bits))
        })
    }
}

#[cold]
fn stray() -> ! {
    panic!("a number of a formula was used outside of that formula")
}

impl Sealed for Traced {}

macro_rules! traced {
    ($(
        $(#[$doc:meta])*
        $method:ident $variant:ident $kernel:ident [$e32:literal, $e64:literal] $slope:tt;
    )*) => {
        impl Lane for Traced {
            type Bool = Self;

            fn lit(value: f64) -> Self {
                Self::step(Step::Lit(value.to_bits()))
            }

            fn add(self, other: Self) -> Self {
                Self::step(Step::Binary(Binary::Add, self.at(), other.at()))
            }

            fn sub(self, other: Self) -> Self {
                Self::step(Step::Binary(Binary::Sub, self.at(), other.at()))
            }

            fn mul(self, other: Self) -> Self {
                // The slope of what changes is 1.
                if other.is_lit(1.0) {
                    return self;
                }
                if self.is_lit(1.0) {
                    return other;
                }
                Self::step(Step::Binary(Binary::Mul, self.at(), other.at()))
            }

            fn div(self, other: Self) -> Self {
                Self::step(Step::Binary(Binary::Div, self.at(), other.at()))
            }

            fn neg(self) -> Self {
                Self::step(Step::Function(Function::Neg, self.at()))
            }

            fn mul_add(self, a: Self, b: Self) -> Self {
                Self::step(Step::MulAdd(self.at(), a.at(), b.at()))
            }

            fn min(self, other: Self) -> Self {
                Self::step(Step::Binary(Binary::Min, self.at(), other.at()))
            }

            fn max(self, other: Self) -> Self {
                Self::step(Step::Binary(Binary::Max, self.at(), other.at()))
            }

            fn pow(self, exponent: Self) -> Self {
                Self::step(Step::Binary(Binary::Pow, self.at(), exponent.at()))
            }

            $(
                fn $method(self) -> Self {
                    Self::step(Step::Function(Function::$variant, self.at()))
                }
            )*

            fn less(self, other: Self) -> Self {
                Self::step(Step::Compare(Compare::Less, self.at(), other.at()))
            }

            fn less_or_equal(self, other: Self) -> Self {
                Self::step(Step::Compare(Compare::LessOrEqual, self.at(), other.at()))
            }

            fn equal(self, other: Self) -> Self {
                Self::step(Step::Compare(Compare::Equal, self.at(), other.at()))
            }

            fn known(holds: bool) -> Self {
                Self::step(Step::Known(holds))
            }

            fn not(mask: Self) -> Self {
                Self::step(Step::Not(mask.at()))
            }

            fn and(a: Self, b: Self) -> Self {
                Self::step(Step::And(a.at(), b.at()))
            }

            fn or(a: Self, b: Self) -> Self {
                Self::step(Step::Or(a.at(), b.at()))
            }

            fn select(mask: Self, a: Self, b: Self) -> Self {
                Self::step(Step::Select(mask.at(), a.at(), b.at()))
            }
        }
    };
}

functions! { traced }
