//! Lazy evaluation: cheap functions of the elements of a large value, computed when the value is read.
//!
//! A pass over memory for each function becomes one for all of them: in the op that reads the result, block
//! by block, or when the elements are asked for as a slice.

use std::sync::{Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;
use triomphe::Arc;

use super::Storable;
use super::buffer::Buffer;
use super::math::Math;
use super::simd::{Kernel, dispatch};
use super::threads::each_grain;

/// Smaller values are computed at once: the first cache holds them.
const MIN_BYTES: usize = 32 << 10;

/// Whether functions of so many elements are deferred.
pub(super) const fn pays<T>(len: usize) -> bool {
    len * size_of::<T>() >= MIN_BYTES
}

/// Each reader computes the steps again, so their number is limited.
const MAX_STEPS: usize = 8;

/// A function of one or two operands that is as cheap as reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cheap {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
    Neg,
    Square,
    Relu,
    SquareGrad,
    ReluGrad,
}

impl Cheap {
    /// Whether it is one of the four operators.
    pub const fn is_operator(self) -> bool {
        matches!(self, Self::Add | Self::Sub | Self::Mul | Self::Div)
    }
}

/// A cheap function of an element `x`, mostly with a number on its right.
#[derive(Clone, Copy)]
pub enum Step<T> {
    Add(T),
    Sub(T),
    /// `s - x`
    SubFrom(T),
    Mul(T),
    Div(T),
    /// `s / x`
    DivInto(T),
    /// The greater of `x` and `s`; NaN if either is.
    Max(T),
    /// The lesser of `x` and `s`; NaN if either is.
    Min(T),
    Neg,
    Square,
    /// `x`, or 0 where it is less.
    Relu,
    /// The gradient of a square, from its input and its gradient.
    SquareGrad(T),
    /// The gradient of `relu`, from its output and its gradient.
    ReluGrad(T),
}

impl<T> Step<T> {
    /// The function where `x` is operand `at` and the other one, if there is one, the number `s`.
    pub fn new(function: Cheap, at: usize, s: T) -> Option<Self> {
        Some(match (function, at) {
            (Cheap::Add, _) => Self::Add(s),
            (Cheap::Sub, 0) => Self::Sub(s),
            (Cheap::Sub, _) => Self::SubFrom(s),
            (Cheap::Mul, _) => Self::Mul(s),
            (Cheap::Div, 0) => Self::Div(s),
            (Cheap::Div, _) => Self::DivInto(s),
            // Of two zeros the right one is the greater, and the lesser.
            (Cheap::Max, 0) => Self::Max(s),
            (Cheap::Min, 0) => Self::Min(s),
            (Cheap::Neg, _) => Self::Neg,
            (Cheap::Square, _) => Self::Square,
            (Cheap::Relu, _) => Self::Relu,
            (Cheap::SquareGrad, 0) => Self::SquareGrad(s),
            (Cheap::ReluGrad, 0) => Self::ReluGrad(s),
            (Cheap::Max | Cheap::Min | Cheap::SquareGrad | Cheap::ReluGrad, _) => return None,
        })
    }
}

/// Steps of the elements of a whole buffer.
#[derive(Clone)]
pub struct Source<T: Storable> {
    buffer: Arc<Buffer<T>>,
    steps: SmallVec<[Step<T>; 4]>,
    run: Run<T>,
}

/// Computes steps of the block `x`, if there is one, or else of the last one, which is written over. A
/// pointer, because values are also of elements that have no such functions.
type Run<T> = fn(&[Step<T>], Option<&[T]>, &mut [T]);

impl<T: Storable> Source<T> {
    /// Computes the elements from `start` on.
    pub fn write(&self, start: usize, out: &mut [T]) {
        (self.run)(&self.steps, Some(&self.buffer[start..][..out.len()]), out);
    }

    /// All elements, in the buffer itself where nobody else holds it.
    fn computed(&mut self) -> Arc<Buffer<T>> {
        if let Some(data) = Arc::get_mut(&mut self.buffer) {
            each_grain(data, &|_, part| (self.run)(&self.steps, None, part));
            return Arc::clone(&self.buffer);
        }
        let mut out = Buffer::any(self.buffer.len());
        each_grain(&mut out, &|start, part| self.write(start, part));
        Arc::new(out)
    }
}

/// Elements of a tile, which stay in registers from the first step to the last.
const TILE: usize = 128;

fn run<T: Storable + Math>(steps: &[Step<T>], x: Option<&[T]>, block: &mut [T]) {
    let (out, last) = block.as_chunks_mut::<TILE>();
    let read = x.map(|x| x.as_chunks::<TILE>());
    dispatch(Tiles { steps, x: read.map(|(tiles, _)| tiles), out });
    if last.is_empty() {
        return;
    }
    // The rest, as a tile that is filled up.
    let mut tile = [T::ZERO; TILE];
    let n = last.len();
    tile[..n].copy_from_slice(read.map_or(&*last, |(_, rest)| rest));
    dispatch(Tiles { steps, x: None, out: std::slice::from_mut(&mut tile) });
    last.copy_from_slice(&tile[..n]);
}

/// Steps of whole tiles: of `x`, if there is one, or else of `out`.
struct Tiles<'a, T> {
    steps: &'a [Step<T>],
    x: Option<&'a [[T; TILE]]>,
    out: &'a mut [[T; TILE]],
}

impl<T: Storable + Math> Kernel for Tiles<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (i, out) in self.out.iter_mut().enumerate() {
            let mut tile = *self.x.map_or(&*out, |x| &x[i]);
            macro_rules! each {
                (|$x:ident| $y:expr) => {
                    for element in &mut tile {
                        let $x = *element;
                        *element = $y;
                    }
                };
            }
            // The same bits as the ops give one by one.
            for step in self.steps {
                match *step {
                    Step::Add(s) => each!(|x| x + s),
                    Step::Sub(s) => each!(|x| x - s),
                    Step::SubFrom(s) => each!(|x| s - x),
                    Step::Mul(s) => each!(|x| x * s),
                    Step::Div(s) => each!(|x| x / s),
                    Step::DivInto(s) => each!(|x| s / x),
                    Step::Max(s) => each!(|x| x.v_max::<FMA>(s)),
                    Step::Min(s) => each!(|x| x.v_min::<FMA>(s)),
                    Step::Neg => each!(|x| -x),
                    Step::Square => each!(|x| x * x),
                    Step::Relu => each!(|x| if x < T::ZERO { T::ZERO } else { x }),
                    Step::SquareGrad(dy) => each!(|x| dy * x * (T::ONE + T::ONE)),
                    Step::ReluGrad(dy) => each!(|y| if y <= T::ZERO { T::ZERO } else { dy }),
                }
            }
            *out = tile;
        }
    }
}

/// Elements that are computed at most once as a whole.
pub(super) struct Deferred<T: Storable> {
    /// Nothing once they are computed.
    source: Mutex<Option<Source<T>>>,
    made: OnceLock<Arc<Buffer<T>>>,
}

impl<T: Storable + Math> Deferred<T> {
    pub(super) fn new(buffer: Arc<Buffer<T>>, step: Step<T>) -> Self {
        Self::of(Source { buffer, steps: SmallVec::from_iter([step]), run })
    }
}

impl<T: Storable> Deferred<T> {
    fn of(source: Source<T>) -> Self {
        Self { source: Mutex::new(Some(source)), made: OnceLock::new() }
    }

    /// So many elements whose computation panics, as where there is no memory.
    #[cfg(feature = "testing")]
    pub(super) fn failing(len: usize) -> Self {
        let run: Run<T> = |_, _, _| panic!("out of memory");
        Self::of(Source { buffer: Arc::new(Buffer::any(len)), steps: SmallVec::new(), run })
    }

    /// What they are computed from, block by block; nothing if they are in memory.
    pub(super) fn source(&self) -> Option<Source<T>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// With one step more; `None` if there are too many, or if the elements are in memory.
    pub(super) fn extended(&self, step: Step<T>) -> Option<Self> {
        let mut source = self.source().filter(|source| source.steps.len() < MAX_STEPS)?;
        source.steps.push(step);
        Some(Self::of(source))
    }

    /// The elements in memory; the first caller computes them. If that panics, the source is kept.
    pub(super) fn made(&self) -> &Arc<Buffer<T>> {
        self.made.get_or_init(|| {
            let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
            let made = source.as_mut().map(Source::computed);
            *source = None;
            made.unwrap_or_else(|| unreachable!("they are computed once"))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::array::simd::{levels, with_level};
    use crate::array::{Shape, Value};

    const LEN: usize = MIN_BYTES / size_of::<f64>() + 100;

    fn value() -> Value<f64> {
        Value::from_vec(Shape::from_slice(&[LEN]), (0..LEN).map(|i| i as f64).collect())
    }

    fn defer(x: &mut Value<f64>, step: Step<f64>) {
        assert!(x.try_defer(step));
    }

    #[test]
    fn each_step_is_its_function_at_every_level() {
        macro_rules! check {
            ($t:ty) => {{
                type Function = fn($t, $t) -> $t;
                const S: $t = 1.7;
                let all: [(Step<$t>, Function); 13] = [
                    (Step::Add(S), |x, s| x + s),
                    (Step::Sub(S), |x, s| x - s),
                    (Step::SubFrom(S), |x, s| s - x),
                    (Step::Mul(S), |x, s| x * s),
                    (Step::Div(S), |x, s| x / s),
                    (Step::DivInto(S), |x, s| s / x),
                    (Step::Max(S), |x, s| if x.is_nan() { x } else { x.max(s) }),
                    (Step::Min(S), |x, s| if x.is_nan() { x } else { x.min(s) }),
                    (Step::Neg, |x, _| -x),
                    (Step::Square, |x, _| x.powi(2)),
                    (Step::Relu, |x, _| if x.is_nan() || x == 0.0 { x } else { x.max(0.0) }),
                    (Step::SquareGrad(S), |x, s| 2.0 * (s * x)),
                    (Step::ReluGrad(S), |y, s| if y <= 0.0 { 0.0 } else { s }),
                ];
                let special = [<$t>::NAN, <$t>::INFINITY, -<$t>::INFINITY, 0.0, -0.0, 1e-40];
                let some = (0..400).map(|i| special.get(i % 11).copied().unwrap_or(9.7 - i as $t));
                let x: Vec<$t> = some.collect();
                let lengths = || [1, 127, 128, 255, 256, 257, 300].into_iter();
                for (level, len) in levels().flat_map(|level| lengths().map(move |n| (level, n))) {
                    for (step, plain) in all {
                        let (mut over, mut onto) = (x[..len].to_vec(), vec![5.0; len]);
                        with_level(level, || {
                            run(&[step], None, &mut over);
                            run(&[step], Some(&x[..len]), &mut onto);
                        });
                        for (i, found) in over.into_iter().chain(onto).enumerate() {
                            let exact = plain(x[i % len], S);
                            let same = found.to_bits() == exact.to_bits();
                            assert!(same || found.is_nan() && exact.is_nan(), "{found} {exact}");
                        }
                    }
                }
            }};
        }
        check!(f32);
        check!(f64);
    }

    #[test]
    fn a_panic_loses_nothing() {
        static FAILS: AtomicBool = AtomicBool::new(true);
        let run: Run<f64> = |steps, x, block| {
            assert!(!FAILS.swap(false, Ordering::Relaxed), "out of memory");
            run(steps, x, block);
        };
        let buffer = Arc::new(Buffer::filled(LEN, |out| out.resize(out.len() + LEN, 1.0)));
        let deferred =
            Deferred::of(Source { buffer, steps: SmallVec::from_iter([Step::Add(1.0)]), run });
        let made = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| deferred.made()[0]));
        assert!(made().is_err_and(|panic| panic.is::<&str>()));
        assert_eq!(made().ok(), Some(2.0));
    }

    #[test]
    fn small_and_strided_values_are_computed_at_once() {
        let mut small = Value::from_vec(Shape::from_slice(&[50]), vec![1.0; 50]);
        assert!(!small.try_defer(Step::Neg));
        let (x, half) = (value(), Shape::from_slice(&[LEN / 2]));
        assert!(!x.restrided(half, Shape::from_slice(&[2]), 0).can_defer());
    }

    #[test]
    fn steps_keep_their_order_and_the_source_its_elements() {
        let x = value();
        let mut y = x.clone();
        defer(&mut y, Step::Add(1.0));
        let fork = y.clone();
        defer(&mut y, Step::Mul(3.0));
        defer(&mut y, Step::Add(0.5));
        assert!(y.in_memory().is_none());
        for at in [0, 7, TILE, LEN - 1] {
            let plain = at as f64;
            assert_eq!((x.nth(at), fork.nth(at)), (plain, plain + 1.0));
            assert_eq!(y.nth(at), (plain + 1.0) * 3.0 + 0.5);
        }
        // What comes after starts from the elements in memory.
        defer(&mut y, Step::Add(1.0));
        assert_eq!(y.nth(1), 7.5);
    }
}
