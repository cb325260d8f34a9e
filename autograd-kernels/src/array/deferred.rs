//! Lazy evaluation of cheap functions of the elements of a large value: one pass over memory
//! computes several, block by block in the op that reads the result, or when it is requested as a
//! slice.

use std::sync::{self, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;
use triomphe::Arc;

use super::Storable;
use super::buffer::Buffer;
use super::math::{Cheap, Math};
use super::simd::{Kernel, dispatch};
use super::threads::each_grain;

/// Smaller values are computed at once: they fit the L1 cache.
const MIN_BYTES: usize = 32 << 10;

pub(super) const fn pays<T>(len: usize) -> bool {
    len * size_of::<T>() >= MIN_BYTES
}

/// Every reader computes the steps again, so their number is limited.
const MAX_STEPS: usize = 8;

/// A cheap function of an element, which is operand number `at`; a second operand is a number.
#[derive(Clone, Copy)]
pub struct Step<T> {
    pub function: Cheap,
    pub at: u8,
    pub number: T,
}

#[derive(Clone)]
struct Source<T: Storable> {
    buffer: Arc<Buffer<T>>,
    steps: SmallVec<[Step<T>; 4]>,
    /// [`run`], or in tests a function that panics.
    run: Run<T>,
}

/// Applies steps to the block `x`, or in place if `x` is `None`.
type Run<T> = fn(&[Step<T>], Option<&[T]>, &mut [T]);

impl<T: Storable> Source<T> {
    fn write(&self, start: usize, out: &mut [T]) {
        (self.run)(&self.steps, Some(&self.buffer[start..][..out.len()]), out);
    }

    /// Computes all elements, in the buffer itself if it is not shared.
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

/// Elements per tile; a tile stays in registers from the first step to the last.
const TILE: usize = 128;

fn run<T: Storable + Math>(steps: &[Step<T>], x: Option<&[T]>, block: &mut [T]) {
    let (out, last) = block.as_chunks_mut::<TILE>();
    let read = x.map(|x| x.as_chunks::<TILE>());
    dispatch(Tiles { steps, x: read.map(|(tiles, _)| tiles), out });
    if last.is_empty() {
        return;
    }
    // The rest, padded to a tile.
    let mut tile = [T::ZERO; TILE];
    let n = last.len();
    tile[..n].copy_from_slice(read.map_or(&*last, |(_, rest)| rest));
    dispatch(Tiles { steps, x: None, out: std::slice::from_mut(&mut tile) });
    last.copy_from_slice(&tile[..n]);
}

/// Applies steps to whole tiles: of `x`, or of `out` if `x` is `None`.
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
            for &Step { function, at, number } in self.steps {
                macro_rules! each {
                    (|$a:ident, $b:ident| $y:expr) => {
                        match at {
                            0 => tile.iter_mut().for_each(|x| *x = (|$a: T, $b: T| $y)(*x, number)),
                            _ => tile.iter_mut().for_each(|x| *x = (|$a: T, $b: T| $y)(number, *x)),
                        }
                    };
                }
                // The same bits as from separate ops.
                match function {
                    Cheap::Add => each!(|a, b| a + b),
                    Cheap::Sub => each!(|a, b| a - b),
                    Cheap::Mul => each!(|a, b| a * b),
                    Cheap::Div => each!(|a, b| a / b),
                    Cheap::Max => each!(|a, b| a.v_max::<FMA>(b)),
                    Cheap::Min => each!(|a, b| a.v_min::<FMA>(b)),
                    Cheap::Neg => each!(|a, _b| -a),
                    Cheap::Square => each!(|a, _b| a * a),
                    Cheap::Relu => each!(|a, _b| if a < T::ZERO { T::ZERO } else { a }),
                    Cheap::SquareGrad => each!(|x, dy| dy * x * (T::ONE + T::ONE)),
                    Cheap::ReluGrad => each!(|y, dy| if y <= T::ZERO { T::ZERO } else { dy }),
                }
            }
            *out = tile;
        }
    }
}

/// Computes elements, from a given one on.
pub(super) type Write<T> = dyn Fn(usize, &mut [T]);

/// Elements that are computed when they are read. A trait object: values of all types may hold one, but it is
/// compiled only for floats, which have functions to defer.
pub(super) trait Defer<T: Storable>: Send + Sync {
    /// What computes the elements block by block; `None` if they are in memory.
    fn source(&self) -> Option<Box<Write<T>>>;
    fn is_made(&self) -> bool;
    /// The elements in memory; the first caller computes them. If that panics, the source is kept.
    fn made(&self) -> &Arc<Buffer<T>>;
    /// With one more step. If there are too many, starts from the elements in memory.
    fn extended(&self, step: Step<T>) -> sync::Arc<dyn Defer<T>>;
}

/// Elements that are computed as a whole, at most once.
pub(super) struct Deferred<T: Storable> {
    /// `None` once the elements are computed.
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

    /// Elements whose computation panics, as when memory is exhausted.
    #[cfg(feature = "testing")]
    pub(super) fn failing(len: usize) -> Self {
        let run: Run<T> = |_, _, _| panic!("out of memory");
        Self::of(Source { buffer: Arc::new(Buffer::any(len)), steps: SmallVec::new(), run })
    }
}

impl<T: Storable + Math> Defer<T> for Deferred<T> {
    fn source(&self) -> Option<Box<Write<T>>> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(Box::new(move |start, out| source.write(start, out)))
    }

    fn is_made(&self) -> bool {
        self.made.get().is_some()
    }

    fn made(&self) -> &Arc<Buffer<T>> {
        self.made.get_or_init(|| {
            let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
            let made = source.as_mut().map(Source::computed);
            *source = None;
            made.unwrap_or_else(|| unreachable!("they are computed once"))
        })
    }

    fn extended(&self, step: Step<T>) -> sync::Arc<dyn Defer<T>> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).clone();
        sync::Arc::new(match source.filter(|source| source.steps.len() < MAX_STEPS) {
            Some(mut source) => {
                source.steps.push(step);
                Self::of(source)
            }
            None => Self::new(Arc::clone(self.made()), step),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::array::simd::{levels, with_level};

    const LEN: usize = MIN_BYTES / size_of::<f64>() + 100;

    fn with(function: Cheap, number: f64) -> Step<f64> {
        Step { function, at: 0, number }
    }

    #[test]
    fn each_step_is_its_function_at_every_level() {
        macro_rules! check {
            ($t:ty) => {{
                type Function = fn($t, $t) -> $t;
                const NUMBER: $t = 1.7;
                let all: [(Cheap, Function); 11] = [
                    (Cheap::Add, |a, b| a + b),
                    (Cheap::Sub, |a, b| a - b),
                    (Cheap::Mul, |a, b| a * b),
                    (Cheap::Div, |a, b| a / b),
                    (Cheap::Max, |a, b| if (a + b).is_nan() { a + b } else { a.max(b) }),
                    (Cheap::Min, |a, b| if (a + b).is_nan() { a + b } else { a.min(b) }),
                    (Cheap::Neg, |a, _| -a),
                    (Cheap::Square, |a, _| a.powi(2)),
                    (Cheap::Relu, |a, _| if a.is_nan() || a == 0.0 { a } else { a.max(0.0) }),
                    (Cheap::SquareGrad, |x, dy| 2.0 * (dy * x)),
                    (Cheap::ReluGrad, |y, dy| if y <= 0.0 { 0.0 } else { dy }),
                ];
                let special = [<$t>::NAN, <$t>::INFINITY, -<$t>::INFINITY, 0.0, -0.0, 1e-40];
                let some = (0..400).map(|i| special.get(i % 11).copied().unwrap_or(9.7 - i as $t));
                let x: Vec<$t> = some.collect();
                let lengths = || [1, 127, 128, 255, 256, 257, 300].into_iter();
                for (level, len) in levels().flat_map(|level| lengths().map(move |n| (level, n))) {
                    for ((function, plain), at) in all.into_iter().flat_map(|f| [(f, 0), (f, 1)]) {
                        let step = Step { function, at, number: NUMBER };
                        let (mut over, mut onto) = (x[..len].to_vec(), vec![5.0; len]);
                        with_level(level, || {
                            run(&[step], None, &mut over);
                            run(&[step], Some(&x[..len]), &mut onto);
                        });
                        for (i, found) in over.into_iter().chain(onto).enumerate() {
                            let x = x[i % len];
                            let exact = if at == 0 { plain(x, NUMBER) } else { plain(NUMBER, x) };
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
        let buffer = Arc::new(Buffer::from(vec![1.0; LEN]));
        let deferred = Deferred::of(Source {
            buffer,
            steps: SmallVec::from_iter([with(Cheap::Add, 1.0)]),
            run,
        });
        let made = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| deferred.made()[0]));
        assert!(made().is_err_and(|panic| panic.is::<&str>()));
        assert_eq!(made().ok(), Some(2.0));
    }
}
