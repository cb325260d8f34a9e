//! Lazy evaluation: cheap functions of the elements of a large value, computed when the value is read.
//!
//! What would be one pass over memory for each function is one pass for all: in the op that reads the
//! result, block by block, or when the elements are asked for as a slice.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use smallvec::SmallVec;
use triomphe::Arc;

use super::Storable;
use super::buffer::Buffer;
use super::math::Math;
use super::simd::{Kernel, Level, dispatch, level};
use super::threads::each_grain;

/// Deferring a smaller value costs more than it saves: the first cache holds it.
const MIN_BYTES: usize = 32 << 10;

/// Whether functions of so many elements are deferred.
pub const fn pays<T>(len: usize) -> bool {
    len * size_of::<T>() >= MIN_BYTES
}

/// At most so many functions are deferred in a row: whoever reads the result twice computes them twice.
const MAX_STEPS: usize = 8;

/// A value is computed anew for so many readers; then it is materialized.
const MAX_READS: u8 = 2;

/// A cheap function of an element `x`.
#[derive(Clone, Copy)]
pub enum Step<T> {
    /// `x + s`
    Add(T),
    /// `x - s`
    Sub(T),
    /// `s - x`
    SubFrom(T),
    /// `x * s`
    Mul(T),
    /// `x / s`
    Div(T),
    /// `s / x`
    DivInto(T),
    /// The greater of `x` and `s`; NaN if either is.
    Max(T),
    /// The lesser of `x` and `s`; NaN if either is.
    Min(T),
    /// `-x`
    Neg,
    /// `x * x`
    Square,
    /// `x`, or 0 where it is less.
    Relu,
    /// The gradient of a square, from its input and its gradient.
    SquareGrad(T),
    /// The gradient of `relu`, from its output and its gradient.
    ReluGrad(T),
}

/// Functions in the order in which they are computed.
#[derive(Clone)]
pub struct Steps<T> {
    list: SmallVec<[Step<T>; 4]>,
    run: Run<T>,
}

/// Computes steps of the block `x`, if there is one, or else of the last one, which is written over. A
/// pointer, because values are also of elements that have no such functions.
type Run<T> = fn(&[Step<T>], Option<&[T]>, &mut [T]);

impl<T: Storable + Math> From<Step<T>> for Steps<T> {
    fn from(step: Step<T>) -> Self {
        Self { list: SmallVec::from_iter([step]), run }
    }
}

impl<T: Storable> Steps<T> {
    pub fn none() -> Self {
        let run: Run<T> = |_, x, block| {
            if let Some(x) = x {
                block.copy_from_slice(x);
            }
        };
        Self { list: SmallVec::new(), run }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Computes them over a block.
    pub fn run_over(&self, block: &mut [T]) {
        if !self.is_empty() {
            (self.run)(&self.list, None, block);
        }
    }

    /// Computes them of `x`.
    fn run_onto(&self, x: &[T], block: &mut [T]) {
        (self.run)(&self.list, Some(x), block);
    }
}

fn run<T: Storable + Math>(steps: &[Step<T>], x: Option<&[T]>, block: &mut [T]) {
    match level() {
        Level::Avx512 => run_tiles::<T, 128>(steps, x, block),
        _ if const { size_of::<T>() > 4 } => run_tiles::<T, 48>(steps, x, block),
        _ => run_tiles::<T, 96>(steps, x, block),
    }
}

/// Computes them tile by tile: the elements of a tile stay in registers from the first step to the last.
#[inline(always)]
fn run_tiles<T: Storable + Math, const TILE: usize>(
    steps: &[Step<T>],
    x: Option<&[T]>,
    block: &mut [T],
) {
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

/// Elements that are computed at once for who reads them next: they stay in the first cache.
pub const PIECE: usize = 1024;

/// Steps of whole tiles: of `x`, if there is one, or else of `out`.
struct Tiles<'a, T, const TILE: usize> {
    steps: &'a [Step<T>],
    x: Option<&'a [[T; TILE]]>,
    out: &'a mut [[T; TILE]],
}

impl<T: Storable + Math, const TILE: usize> Kernel for Tiles<'_, T, TILE> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (i, out) in self.out.iter_mut().enumerate() {
            let tile = *self.x.map_or(&*out, |x| &x[i]);
            *out = computed_tile::<T, FMA, TILE>(self.steps, tile);
        }
    }
}

#[inline(always)]
fn computed_tile<T: Storable + Math, const FMA: bool, const TILE: usize>(
    steps: &[Step<T>],
    mut tile: [T; TILE],
) -> [T; TILE] {
    macro_rules! each {
        (|$x:ident| $y:expr) => {
            for element in &mut tile {
                let $x = *element;
                *element = $y;
            }
        };
    }
    // The same bits as the ops give one by one.
    for step in steps {
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
    tile
}

/// Elements that are not computed, or were since.
pub struct Deferred<T: Storable> {
    /// What they are computed from; nothing once they are.
    source: Mutex<Option<Source<T>>>,
    reads: AtomicU8,
    made: OnceLock<Arc<Buffer<T>>>,
}

/// A whole buffer, and the steps that are to be computed of it.
#[derive(Clone)]
struct Source<T: Storable> {
    buffer: Arc<Buffer<T>>,
    steps: Steps<T>,
}

impl<T: Storable> Deferred<T> {
    pub fn new(buffer: Arc<Buffer<T>>, steps: Steps<T>) -> Self {
        let source = Mutex::new(Some(Source { buffer, steps }));
        Self { source, reads: AtomicU8::new(0), made: OnceLock::new() }
    }

    /// Elements that cannot be computed: it is a panic, as where there is no memory.
    #[cfg(feature = "testing")]
    pub fn failing(len: usize) -> Self {
        let run: Run<T> = |_, _, _| panic!("out of memory");
        Self::new(Arc::new(Buffer::any(len)), Steps { list: SmallVec::from_iter([Step::Neg]), run })
    }

    fn source(&self) -> MutexGuard<'_, Option<Source<T>>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn source_mut(&mut self) -> &mut Option<Source<T>> {
        self.source.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The elements in memory; the first caller computes them.
    pub fn made(&self) -> &Arc<Buffer<T>> {
        self.made.get_or_init(|| computed(&mut self.source()))
    }

    /// The elements, if they are in memory.
    pub fn if_made(&self) -> Option<&[T]> {
        self.made.get().map(|buffer| &***buffer)
    }

    /// [`made`](Self::made), by the only owner.
    pub fn take_made(&mut self) -> Arc<Buffer<T>> {
        self.made.take().unwrap_or_else(|| computed(self.source_mut()))
    }

    /// With one function more; `None` where there are many already, or where the elements are in memory.
    pub fn extended(this: &mut Arc<Self>, step: Step<T>) -> Option<Arc<Self>> {
        if let Some(alone) = Arc::get_mut(this) {
            let steps = &mut alone.source_mut().as_mut()?.steps;
            if steps.list.len() >= MAX_STEPS {
                return None;
            }
            steps.list.push(step);
            *alone.reads.get_mut() = 0;
            return Some(Arc::clone(this));
        }
        this.read();
        let mut source = this.source().clone()?;
        if source.steps.list.len() >= MAX_STEPS {
            return None;
        }
        source.steps.list.push(step);
        Some(Arc::new(Self::new(source.buffer, source.steps)))
    }

    /// An op is about to read it block by block.
    pub fn read(&self) {
        if self.reads.fetch_add(1, Ordering::Relaxed) >= MAX_READS {
            self.reads.store(MAX_READS, Ordering::Relaxed);
            self.made();
        }
    }

    /// The elements block by block.
    pub fn elements(&self) -> Elements<'_, T> {
        if self.made.get().is_none()
            && let Some(Source { buffer, steps }) = self.source().clone()
        {
            return Elements::Deferred(buffer, steps);
        }
        Elements::Slice(self.made())
    }

    /// A buffer that nobody else holds, and the steps that are to be computed over it, if there is one.
    pub fn sole_buffer(&mut self) -> Option<(Arc<Buffer<T>>, Steps<T>)> {
        if let Some(made) = self.made.get_mut() {
            Arc::get_mut(made)?;
            return Some((self.made.take()?, Steps::none()));
        }
        let source = self.source_mut();
        Arc::get_mut(&mut source.as_mut()?.buffer)?;
        source.take().map(|source| (source.buffer, source.steps))
    }
}

/// In the source's own buffer where nobody else holds it. The source goes when all is done: there may be
/// no memory for another buffer.
fn computed<T: Storable>(source: &mut Option<Source<T>>) -> Arc<Buffer<T>> {
    let made = source.as_mut().map(|Source { buffer, steps }| match Arc::get_mut(buffer) {
        Some(data) => {
            each_grain(data, &|_, part| steps.run_over(part));
            Arc::clone(buffer)
        }
        None => {
            let mut out = Buffer::any(buffer.len());
            each_grain(&mut out, &|start, part| {
                steps.run_onto(&buffer[start..start + part.len()], part);
            });
            Arc::new(out)
        }
    });
    *source = None;
    made.unwrap_or_else(|| unreachable!("it goes when it is computed, which is once"))
}

/// Row-major elements, in memory or not.
pub enum Elements<'a, T: Storable> {
    Slice(&'a [T]),
    Deferred(Arc<Buffer<T>>, Steps<T>),
}

impl<T: Storable> Elements<'_, T> {
    /// Those from `start` on, written to a block.
    pub fn write(&self, start: usize, block: &mut [T]) {
        let here = start..start + block.len();
        match self {
            Self::Slice(data) => block.copy_from_slice(&data[here]),
            Self::Deferred(source, steps) => steps.run_onto(&source[here], block),
        }
    }

    /// Shows `n` of them from `start` on, in pieces.
    pub fn with_pieces(&self, start: usize, n: usize, mut show: impl FnMut(&[T])) {
        match self {
            Self::Slice(data) => show(&data[start..start + n]),
            Self::Deferred(..) => T::with_scratch(PIECE.min(n), |scratch| {
                for at in (0..n).step_by(PIECE) {
                    let piece = &mut scratch[..PIECE.min(n - at)];
                    self.write(start + at, piece);
                    show(piece);
                }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::simd::{levels, with_level};
    use crate::array::{Shape, Value};

    const LEN: usize = MIN_BYTES / size_of::<f64>();

    fn value() -> Value<f64> {
        Value::from_vec(Shape::from_slice(&[LEN]), (0..LEN).map(|i| i as f64).collect())
    }

    fn plus(x: &mut Value<f64>, scalar: f64) {
        assert!(x.try_defer(Step::Add(scalar)));
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
                let lengths = || [1, 47, 48, 95, 96, 97, 127, 128, 255, 256, 257, 300].into_iter();
                for (level, len) in levels().flat_map(|level| lengths().map(move |n| (level, n))) {
                    for (step, plain) in all {
                        let steps = Steps::from(step);
                        let (mut over, mut onto) = (x[..len].to_vec(), vec![5.0; len]);
                        with_level(level, || {
                            steps.run_over(&mut over);
                            steps.run_onto(&x[..len], &mut onto);
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
        static MEMORY: AtomicU8 = AtomicU8::new(0);
        fn fails(steps: &[Step<f64>], x: Option<&[f64]>, block: &mut [f64]) {
            assert!(MEMORY.load(Ordering::Relaxed) > 0, "out of memory");
            run(steps, x, block);
        }
        let source = Arc::new(Buffer::filled(LEN, |out| out.extend((0..LEN).map(|i| i as f64))));
        let list = SmallVec::from_iter([Step::Add(1.0)]);
        let steps = Steps { list, run: fails };
        let deferred = Deferred::new(Arc::clone(&source), steps);
        for _ in 0..2 {
            let outcome =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| deferred.made()));
            assert!(outcome.is_err_and(|panic| panic.is::<&str>()));
        }
        MEMORY.store(1, Ordering::Relaxed);
        assert_eq!(deferred.made()[..2], [1.0, 2.0]);
    }

    #[test]
    fn few_numbers_are_computed_at_once() {
        let mut small = Value::from_vec(Shape::from_slice(&[LEN - 1]), vec![1.0; LEN - 1]);
        assert!(!small.try_defer(Step::Neg) && !small.is_deferred());
        // And those that lie in another order, or are part of something larger.
        let (x, half) = (value(), Shape::from_slice(&[LEN / 2]));
        assert!(!x.restrided(half, Shape::from_slice(&[2]), 0).can_defer());
    }

    #[test]
    fn steps_keep_their_order_and_the_source_its_elements() {
        let x = value();
        let mut y = x.clone();
        plus(&mut y, 1.0);
        let fork = y.clone();
        assert!(y.try_defer(Step::Mul(3.0)));
        plus(&mut y, 0.5);
        assert_eq!((x.nth(7), fork.nth(7), y.nth(7)), (7.0, 8.0, 24.5));
        assert_eq!((x.nth(LEN - 1), y.nth(LEN - 1)), (LEN as f64 - 1.0, LEN as f64 * 3.0 + 0.5));
    }

    #[test]
    fn what_nobody_else_holds_is_written_over() {
        let mut y = value();
        let place = y.raw().as_ptr();
        (0..3 * MAX_STEPS).for_each(|_| plus(&mut y, 1.0));
        assert!(y.is_deferred());
        let data = y.as_mut_slice().unwrap();
        assert_eq!((data.as_ptr(), data[0]), (place, 3.0 * MAX_STEPS as f64));
        assert!(!y.is_deferred());
        plus(&mut y, 1.0);
        assert_eq!(y.take_steps().unwrap().list.len(), 1);
    }

    #[test]
    fn who_reads_often_has_it_computed() {
        let x = value();
        let mut y = x.clone();
        plus(&mut y, 1.0);
        let read = |y: &Value<f64>| {
            for _ in 0..MAX_READS {
                y.will_be_read(&[LEN]);
                assert!(matches!(y.elements(), Some(Elements::Deferred(..))));
            }
        };
        read(&y);
        // One step more is another result.
        plus(&mut y, 1.0);
        read(&y);
        y.will_be_read(&[LEN]);
        assert!(matches!(y.elements(), Some(Elements::Slice([2.0, 3.0, ..]))));
        // What comes after starts from there.
        plus(&mut y, 1.0);
        assert_eq!(y.nth(1), 4.0);
    }
}
