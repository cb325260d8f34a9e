//! Formulas as programs: what is computed is written down step by step.

use std::cell::RefCell;
use std::collections::HashMap;

use super::functions::functions;
use super::lane::{Lane, Sealed};
use super::program::{Binary, Compare, Function, Program, Step};
use super::real::{Mask, Real};

/// A step of the program that is being written on this thread.
///
/// [`fuse`](crate::fuse) gives its closure numbers of this kind.
#[derive(Clone, Copy, Debug)]
pub struct Traced {
    step: u32,
    program: u32,
}

/// The program that is being written.
struct Recorder {
    program: u32,
    steps: Vec<Step>,
    /// Where each step stands, so that none is computed twice.
    known: HashMap<Step, u32>,
}

thread_local! {
    /// The innermost is last: a formula may run another one.
    static RECORDERS: RefCell<Vec<Recorder>> = const { RefCell::new(Vec::new()) };
    static PROGRAMS: RefCell<u32> = const { RefCell::new(0) };
}

/// Writes down what `formula` computes from its inputs.
pub(crate) fn trace(
    reals: usize,
    masks: usize,
    formula: impl FnOnce(&[Real<Traced>], &[Mask<Traced>]) -> Vec<Real<Traced>>,
) -> Program {
    let recording = Recording::start();
    let reals: Vec<_> = (0..reals as u32).map(|i| Real(Traced::step(Step::Real(i)))).collect();
    let masks: Vec<_> = (0..masks as u32).map(|i| Mask(Traced::step(Step::Mask(i)))).collect();
    let outputs = formula(&reals, &masks);
    let outputs = outputs.into_iter().map(|output| output.0.of(recording.program)).collect();
    recording.finish(outputs)
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

    fn finish(self, outputs: Vec<u32>) -> Program {
        let steps = RECORDERS.with_borrow_mut(|recorders| {
            recorders.last_mut().map(|recorder| std::mem::take(&mut recorder.steps))
        });
        Program::new(steps.unwrap_or_default(), outputs)
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
            let steps = &mut recorder.steps;
            let place = *recorder.known.entry(step).or_insert_with(|| {
                steps.push(step);
                (steps.len() - 1) as u32
            });
            Self { step: place, program: recorder.program }
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
