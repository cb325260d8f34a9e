//! Cheap functions of each element, put off until somebody reads the result.
//!
//! What would be a pass over memory each is computed at once, while a few elements are in registers: in
//! the pass of the op that reads the result, block by block, or in one pass for all.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use smallvec::SmallVec;
use triomphe::Arc;

use super::Storable;
use super::buffer::Buffer;
use super::math::Math;
use super::simd::{Kernel, Level, dispatch, level};
use super::threads::each_stretch;

/// Bytes from which on it pays, more than the first cache has: what is put off is an allocation too.
const LEAST: usize = 32 << 10;

/// Whether functions of so many elements are put off.
pub(crate) const fn pays<T>(len: usize) -> bool {
    len * size_of::<T>() >= LEAST
}

/// So many functions in a row are put off: who reads the result twice computes them twice.
const MOST: usize = 8;

/// So often it is computed for one reader; the next one waits until it stands in memory.
const LOOKS: u8 = 2;

/// What is computed from so many tensors beside, and held by two, who will read it both, is computed at once:
/// to read those again would take longer than to write it.
const DEAR: usize = 2;

/// So many of them read another tensor: who reads the result reads those too.
const MOST_OPERANDS: usize = 4;

/// A cheap function of an element `x`, or of `x` and another number `s`.
#[derive(Clone, Copy)]
pub(crate) enum Step<T> {
    /// `x + s`
    Plus(With<T>),
    /// `x - s`
    Minus(With<T>),
    /// `s - x`
    From(With<T>),
    /// `x * s`
    Times(With<T>),
    /// `x / s`
    Over(With<T>),
    /// `s / x`
    Under(With<T>),
    /// The greater one; NaN if either is.
    Greater(With<T>),
    /// The lesser one; NaN if either is.
    Lesser(With<T>),
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

/// The other number of a step.
#[derive(Clone, Copy)]
pub(crate) enum With<T> {
    /// The same for all elements.
    Number(T),
    /// The element of a tensor at the same place: that of the next one in [`Steps`].
    Tensor,
}

/// As many elements as those of which a step is computed, row-major from the offset on.
#[derive(Clone)]
pub(crate) struct Operand<T: Storable> {
    pub(crate) buffer: Arc<Buffer<T>>,
    pub(crate) offset: usize,
}

/// A step, and the tensor that it reads beside.
pub(crate) struct Late<T: Storable> {
    step: Step<T>,
    operand: Option<Operand<T>>,
}

impl<T: Storable> Late<T> {
    pub(crate) fn with(step: Step<T>, operand: Operand<T>) -> Self {
        Self { step, operand: Some(operand) }
    }
}

impl<T: Storable> From<Step<T>> for Late<T> {
    fn from(step: Step<T>) -> Self {
        Self { step, operand: None }
    }
}

/// Functions in the order in which they are computed.
pub(crate) struct Steps<T: Storable> {
    list: SmallVec<[Step<T>; 4]>,
    /// In the order of the steps that read them.
    operands: SmallVec<[Operand<T>; 1]>,
    run: Run<T>,
}

/// Computes steps of the block `x`, if there is one, or else of the last one, which is written over; between
/// them the blocks of the operands. A pointer, because values are also of elements that have no such
/// functions.
type Run<T> = fn(&[Step<T>], Option<&[T]>, &[&[T]], &mut [T]);

impl<T: Storable> Clone for Steps<T> {
    fn clone(&self) -> Self {
        let (list, operands) = (self.list.iter().copied().collect(), self.operands.clone());
        Self { list, operands, run: self.run }
    }
}

impl<T: Storable + Math> From<Late<T>> for Steps<T> {
    fn from(late: Late<T>) -> Self {
        let mut steps = Self { list: SmallVec::new(), operands: SmallVec::new(), run };
        steps.push(late);
        steps
    }
}

impl<T: Storable> Steps<T> {
    pub(crate) fn none() -> Self {
        let run: Run<T> = |_, x, _, block| {
            if let Some(x) = x {
                block.copy_from_slice(x);
            }
        };
        Self { list: SmallVec::new(), operands: SmallVec::new(), run }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn push(&mut self, late: Late<T>) {
        self.list.push(late.step);
        if let Some(operand) = late.operand {
            self.operands.push(operand);
        }
    }

    /// Whether there may be one more.
    fn takes(&self, late: &Late<T>) -> bool {
        self.list.len() < MOST && (late.operand.is_none() || self.operands.len() < MOST_OPERANDS)
    }

    /// Computes them over a block, which begins with the element `start`.
    pub(crate) fn run_over(&self, start: usize, block: &mut [T]) {
        if !self.is_empty() {
            self.run(start, None, block);
        }
    }

    /// Computes them of `x`.
    fn run_onto(&self, start: usize, x: &[T], block: &mut [T]) {
        self.run(start, Some(x), block);
    }

    fn run(&self, start: usize, x: Option<&[T]>, block: &mut [T]) {
        let mut blocks: [&[T]; MOST_OPERANDS] = [&[]; MOST_OPERANDS];
        for (place, operand) in blocks.iter_mut().zip(&self.operands) {
            *place = &operand.buffer[operand.offset + start..][..block.len()];
        }
        (self.run)(&self.list, x, &blocks[..self.operands.len()], block);
    }
}

fn run<T: Storable + Math>(steps: &[Step<T>], x: Option<&[T]>, operands: &[&[T]], block: &mut [T]) {
    match level() {
        Level::Avx512 => run_tiles::<T, 128>(steps, x, operands, block),
        _ if const { size_of::<T>() > 4 } => run_tiles::<T, 48>(steps, x, operands, block),
        _ => run_tiles::<T, 96>(steps, x, operands, block),
    }
}

/// Computes them tile by tile. The elements of a tile stay in registers from the first step to the last: in
/// twelve of 16 with 256 bits, since those of a second operand and the numbers of a step need some too; in eight
/// of `f32`, or 16 of `f64`, of 32 with 512 bits, as longer tiles of what lies in memory wait longer for it.
#[inline(always)]
fn run_tiles<T: Storable + Math, const TILE: usize>(
    steps: &[Step<T>],
    x: Option<&[T]>,
    operands: &[&[T]],
    block: &mut [T],
) {
    let (out, last) = block.as_chunks_mut::<TILE>();
    dispatch(Tiles { steps, x: x.map(|x| x.as_chunks().0), operands, out });
    if !last.is_empty() {
        run_last::<T, TILE>(steps, x, operands, last);
    }
}

/// What is left after the last whole tile, as a tile that is filled up.
#[inline(never)]
fn run_last<T: Storable + Math, const TILE: usize>(
    steps: &[Step<T>],
    x: Option<&[T]>,
    operands: &[&[T]],
    last: &mut [T],
) {
    let filled_up = |data: &[T]| {
        let mut tile = [T::ZERO; TILE];
        let rest = data.as_chunks::<TILE>().1;
        tile[..rest.len()].copy_from_slice(rest);
        tile
    };
    let mut tails = [[T::ZERO; TILE]; MOST_OPERANDS];
    for (tail, operand) in tails.iter_mut().zip(operands) {
        *tail = filled_up(operand);
    }
    let tails = tails.each_ref().map(|tail| &tail[..]);
    let mut tile = filled_up(x.unwrap_or(last));
    run(steps, None, &tails[..operands.len()], &mut tile);
    last.copy_from_slice(&tile[..last.len()]);
}

/// Elements that are computed in one go for who reads them next: with those that they are computed from they
/// stay in the first cache.
pub(crate) const PIECE: usize = 1024;

/// Steps of whole tiles: of `x`, if there is one, or else of `out`.
struct Tiles<'a, T, const TILE: usize> {
    steps: &'a [Step<T>],
    x: Option<&'a [[T; TILE]]>,
    operands: &'a [&'a [T]],
    out: &'a mut [[T; TILE]],
}

impl<T: Storable + Math, const TILE: usize> Kernel for Tiles<'_, T, TILE> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (i, out) in self.out.iter_mut().enumerate() {
            let tile = *self.x.map_or(&*out, |x| &x[i]);
            let mut operands = self.operands.iter().map(|x| &x.as_chunks().0[i]);
            *out = computed_tile::<T, FMA, TILE>(self.steps, &mut operands, tile);
        }
    }
}

#[inline(always)]
fn computed_tile<'a, T: Storable + Math, const FMA: bool, const TILE: usize>(
    steps: &[Step<T>],
    operands: &mut impl Iterator<Item = &'a [T; TILE]>,
    mut tile: [T; TILE],
) -> [T; TILE] {
    macro_rules! each {
        (|$x:ident| $y:expr) => {
            for element in &mut tile {
                let $x = *element;
                *element = $y;
            }
        };
        ($with:ident, |$x:ident, $s:ident| $y:expr) => {
            match $with {
                With::Number($s) => each!(|$x| $y),
                With::Tensor => {
                    let Some(operand) = operands.next() else { unreachable!("one a step") };
                    for (element, $s) in tile.iter_mut().zip(*operand) {
                        let $x = *element;
                        *element = $y;
                    }
                }
            }
        };
    }
    // To the last bit what the ops give one by one.
    for step in steps {
        match *step {
            Step::Plus(with) => each!(with, |x, s| x + s),
            Step::Minus(with) => each!(with, |x, s| x - s),
            Step::From(with) => each!(with, |x, s| s - x),
            Step::Times(with) => each!(with, |x, s| x * s),
            Step::Over(with) => each!(with, |x, s| x / s),
            Step::Under(with) => each!(with, |x, s| s / x),
            Step::Greater(with) => each!(with, |x, s| x.v_max::<FMA>(s)),
            Step::Lesser(with) => each!(with, |x, s| x.v_min::<FMA>(s)),
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
pub(crate) struct Deferred<T: Storable> {
    /// What they are computed from; nothing once they are.
    source: Mutex<Option<Source<T>>>,
    /// How many tensors it reads beside.
    operands: usize,
    looks: AtomicU8,
    made: OnceLock<Arc<Buffer<T>>>,
}

/// A whole buffer, and the steps that are to be computed of it.
#[derive(Clone)]
struct Source<T: Storable> {
    buffer: Arc<Buffer<T>>,
    steps: Steps<T>,
}

impl<T: Storable> Deferred<T> {
    pub(crate) fn new(buffer: Arc<Buffer<T>>, steps: Steps<T>) -> Self {
        let operands = steps.operands.len();
        let source = Mutex::new(Some(Source { buffer, steps }));
        Self { source, operands, looks: AtomicU8::new(0), made: OnceLock::new() }
    }

    fn source(&self) -> MutexGuard<'_, Option<Source<T>>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn source_mut(&mut self) -> &mut Option<Source<T>> {
        self.source.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The elements in memory; who asks first computes them.
    pub(crate) fn made(&self) -> &Arc<Buffer<T>> {
        self.made.get_or_init(|| computed(&mut self.source()))
    }

    /// The elements, if they are in memory.
    pub(crate) fn if_made(&self) -> Option<&[T]> {
        self.made.get().map(|buffer| &***buffer)
    }

    /// [`made`](Self::made), by the only one who can.
    pub(crate) fn take_made(&mut self) -> Arc<Buffer<T>> {
        self.made.take().unwrap_or_else(|| computed(self.source_mut()))
    }

    /// One more function; it comes back where there are many already, or where the elements are in memory.
    pub(crate) fn extended(this: &mut Arc<Self>, late: Late<T>) -> Result<Arc<Self>, Late<T>> {
        if let Some(alone) = Arc::get_mut(this) {
            let operands = match alone.source_mut() {
                Some(Source { steps, .. }) if steps.takes(&late) => {
                    steps.push(late);
                    steps.operands.len()
                }
                _ => return Err(late),
            };
            alone.operands = operands;
            *alone.looks.get_mut() = 0;
            return Ok(Arc::clone(this));
        }
        if !this.source().as_ref().is_some_and(|source| source.steps.takes(&late)) {
            return Err(late);
        }
        // The caller has one of the references.
        Self::looked_at(this, Arc::count(this) - 1);
        let Some(mut source) = this.source().clone() else { return Err(late) };
        source.steps.push(late);
        Ok(Arc::new(Self::new(source.buffer, source.steps)))
    }

    /// Whether other tensors are held for it, as long as it is not computed.
    pub(crate) fn reads_beside(&self) -> bool {
        self.operands > 0
    }

    /// Somebody is about to read it block by block, which so many hold.
    pub(crate) fn looked_at(this: &Arc<Self>, holders: usize) {
        let dear = holders > 1 && this.operands >= DEAR;
        if dear || this.looks.fetch_add(1, Ordering::Relaxed) >= LOOKS {
            this.looks.store(LOOKS, Ordering::Relaxed);
            this.made();
        }
    }

    /// The elements block by block.
    pub(crate) fn elements(&self) -> Elements<'_, T> {
        if self.made.get().is_none()
            && let Some(Source { buffer, steps }) = self.source().clone()
        {
            return Elements::Deferred(buffer, steps);
        }
        Elements::Slice(self.made())
    }

    /// A buffer that nobody else holds, and the steps that are to be computed over it, if there is one.
    pub(crate) fn sole_buffer(&mut self) -> Option<(Arc<Buffer<T>>, Steps<T>)> {
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
            each_stretch(data, &|start, part| steps.run_over(start, part));
            Arc::clone(buffer)
        }
        None => {
            let mut out = Buffer::any(buffer.len());
            each_stretch(&mut out, &|start, part| {
                steps.run_onto(start, &buffer[start..start + part.len()], part);
            });
            Arc::new(out)
        }
    });
    *source = None;
    made.unwrap_or_else(|| unreachable!("it goes when it is computed, which is once"))
}

/// Row-major elements, in memory or not.
pub(crate) enum Elements<'a, T: Storable> {
    Slice(&'a [T]),
    Deferred(Arc<Buffer<T>>, Steps<T>),
}

impl<T: Storable> Elements<'_, T> {
    /// Those from `start` on, written to a block.
    pub(crate) fn write(&self, start: usize, block: &mut [T]) {
        let here = start..start + block.len();
        match self {
            Self::Slice(data) => block.copy_from_slice(&data[here]),
            Self::Deferred(source, steps) => steps.run_onto(start, &source[here], block),
        }
    }

    /// Shows `n` of them from `start` on, in pieces.
    pub(crate) fn with_pieces(&self, start: usize, n: usize, mut show: impl FnMut(&[T])) {
        match self {
            Self::Slice(data) => show(&data[start..start + n]),
            Self::Deferred(..) => T::with_scratch(PIECE.min(n), |room| {
                for at in (0..n).step_by(PIECE) {
                    let piece = &mut room[..PIECE.min(n - at)];
                    self.write(start + at, piece);
                    show(piece);
                }
            }),
        }
    }
}

/// Ones that cannot be computed: it is a panic, as where there is no memory.
#[cfg(test)]
pub(crate) fn out_of_memory(shape: &[usize]) -> super::Value<f64> {
    let shape = super::Shape::from_slice(shape);
    let source = Arc::new(Buffer::from(vec![0.0; shape.iter().product()]));
    let list = SmallVec::from_iter([Step::Neg]);
    let run: Run<f64> = |_, _, _, _| panic!("out of memory");
    let steps = Steps { list, operands: SmallVec::new(), run };
    super::Value::of_deferred(shape, Deferred::new(source, steps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::simd::{levels, with_level};
    use crate::array::{Shape, Value};

    const LEN: usize = LEAST / size_of::<f64>();

    fn value() -> Value<f64> {
        Value::from_vec(Shape::from_slice(&[LEN]), (0..LEN).map(|i| i as f64).collect())
    }

    fn plus(x: &mut Value<f64>, scalar: f64) {
        assert!(x.try_defer(Step::Plus(With::Number(scalar)).into()));
    }

    #[test]
    fn each_step_is_its_function_at_every_level() {
        macro_rules! check {
            ($t:ty) => {{
                type Function = fn($t, $t) -> $t;
                type Of = fn(With<$t>) -> Step<$t>;
                const S: $t = 1.7;
                let with: [(Of, Function); 8] = [
                    (Step::Plus, |x, s| x + s),
                    (Step::Minus, |x, s| x - s),
                    (Step::From, |x, s| s - x),
                    (Step::Times, |x, s| x * s),
                    (Step::Over, |x, s| x / s),
                    (Step::Under, |x, s| s / x),
                    (Step::Greater, |x, s| if x.is_nan() || s.is_nan() { x + s } else { x.max(s) }),
                    (Step::Lesser, |x, s| if x.is_nan() || s.is_nan() { x + s } else { x.min(s) }),
                ];
                let alone: [(Step<$t>, Function); 5] = [
                    (Step::Neg, |x, _| -x),
                    (Step::Square, |x, _| x.powi(2)),
                    (Step::Relu, |x, _| if x.is_nan() || x == 0.0 { x } else { x.max(0.0) }),
                    (Step::SquareGrad(S), |x, s| 2.0 * (s * x)),
                    (Step::ReluGrad(S), |y, s| if y <= 0.0 { 0.0 } else { s }),
                ];
                let special = [<$t>::NAN, <$t>::INFINITY, -<$t>::INFINITY, 0.0, -0.0, 1e-40];
                let some = (0..400).map(|i| special.get(i % 11).copied().unwrap_or(9.7 - i as $t));
                let x: Vec<$t> = some.collect();
                // The elements of another tensor, of which some are special where those of `x` are not.
                let others: Vec<$t> = x.iter().skip(3).chain(&x[..3]).copied().collect();
                let buffer = Arc::new(Buffer::from(others.clone()));
                let numbers = with.map(|(of, plain)| (of(With::Number(S)), plain, false));
                let tensors = with.map(|(of, plain)| (of(With::Tensor), plain, true));
                let alone = alone.map(|(step, plain)| (step, plain, false));
                let all = || numbers.into_iter().chain(tensors).chain(alone);
                let lengths = || [1, 47, 48, 95, 96, 97, 127, 128, 255, 256, 257, 300].into_iter();
                for (level, len) in levels().flat_map(|level| lengths().map(move |n| (level, n))) {
                    for ((step, plain, reads), offset) in all().flat_map(|s| [(s, 0), (s, 41)]) {
                        let operand = Operand { buffer: Arc::clone(&buffer), offset };
                        let late = match reads {
                            true => Late::with(step, operand),
                            false => step.into(),
                        };
                        let (steps, start) = (Steps::from(late), 7);
                        let (mut over, mut onto) = (x[..len].to_vec(), vec![5.0; len]);
                        with_level(level, || {
                            steps.run_over(start, &mut over);
                            steps.run_onto(start, &x[..len], &mut onto);
                        });
                        for (i, found) in over.into_iter().chain(onto).enumerate() {
                            let s = if reads { others[offset + start + i % len] } else { S };
                            let exact = plain(x[i % len], s);
                            let same = found.to_bits() == exact.to_bits();
                            // Of two zeros either may be the greater.
                            let zeros = found == 0.0 && exact == 0.0 && reads;
                            assert!(
                                same || zeros || found.is_nan() && exact.is_nan(),
                                "{found} {exact}"
                            );
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
        fn fails(steps: &[Step<f64>], x: Option<&[f64]>, operands: &[&[f64]], block: &mut [f64]) {
            assert!(MEMORY.load(Ordering::Relaxed) > 0, "out of memory");
            run(steps, x, operands, block);
        }
        let source = Arc::new(Buffer::filled(LEN, |out| out.extend((0..LEN).map(|i| i as f64))));
        let list = SmallVec::from_iter([Step::Plus(With::Number(1.0))]);
        let steps = Steps { list, operands: SmallVec::new(), run: fails };
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
        let mut few = Value::from_vec(Shape::from_slice(&[LEN - 1]), vec![1.0; LEN - 1]);
        assert!(!few.try_defer(Step::Neg.into()) && !few.is_deferred());
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
        assert!(y.try_defer(Step::Times(With::Number(3.0)).into()));
        plus(&mut y, 0.5);
        assert_eq!((x.nth(7), fork.nth(7), y.nth(7)), (7.0, 8.0, 24.5));
        assert_eq!((x.nth(LEN - 1), y.nth(LEN - 1)), (LEN as f64 - 1.0, LEN as f64 * 3.0 + 0.5));
    }

    #[test]
    fn what_nobody_else_holds_is_written_over() {
        let mut y = value();
        let place = y.raw().as_ptr();
        (0..3 * MOST).for_each(|_| plus(&mut y, 1.0));
        assert!(y.is_deferred());
        let data = y.as_mut_slice().unwrap();
        assert_eq!((data.as_ptr(), data[0]), (place, 3.0 * MOST as f64));
        assert!(!y.is_deferred());
        plus(&mut y, 1.0);
        assert_eq!(y.take_steps().unwrap().list.len(), 1);
    }

    #[test]
    fn who_reads_often_has_it_computed() {
        let x = value();
        let mut y = x.clone();
        plus(&mut y, 1.0);
        let look = |y: &Value<f64>| {
            for _ in 0..LOOKS {
                y.looked_at(&[LEN]);
                assert!(matches!(y.elements(), Some(Elements::Deferred(..))));
            }
        };
        look(&y);
        // One step more is another result.
        plus(&mut y, 1.0);
        look(&y);
        y.looked_at(&[LEN]);
        assert!(matches!(y.elements(), Some(Elements::Slice([2.0, 3.0, ..]))));
        // What comes after starts from there.
        plus(&mut y, 1.0);
        assert_eq!(y.nth(1), 4.0);
    }

    /// With another tensor, all of whose elements are 2.
    fn with(x: &mut Value<f64>, of: fn(With<f64>) -> Step<f64>) -> Arc<Buffer<f64>> {
        let operand = Value::full(Shape::from_slice(&[LEN]), 2.0).operand().unwrap();
        let buffer = Arc::clone(&operand.buffer);
        assert!(x.try_defer(Late::with(of(With::Tensor), operand)));
        buffer
    }

    #[test]
    fn who_reads_much_beside_has_it_computed_at_once_if_others_will_read_it_too() {
        let x = value();
        let deferred = |y: &Value<f64>| matches!(y.elements(), Some(Elements::Deferred(..)));
        for (operands, holders, at_once) in [(1, 2, false), (2, 1, false), (2, 2, true)] {
            let mut y = x.clone();
            let read: Vec<_> = (0..operands).map(|_| with(&mut y, Step::Times)).collect();
            let others: Vec<_> = (1..holders).map(|_| y.clone()).collect();
            y.looked_at(&[LEN]);
            assert_eq!(deferred(&y), !at_once, "{operands} {holders}");
            assert_eq!(y.nth(3), 3.0 * 2.0_f64.powi(operands));
            // What was read is let go of, though what it gave is still there.
            assert!(y.as_slice().is_some() && read.iter().all(Arc::is_unique));
            drop(others);
        }
    }

    #[test]
    fn many_tensors_are_not_read_at_once() {
        let mut y = value();
        let read: Vec<_> = (0..=MOST_OPERANDS).map(|_| with(&mut y, Step::Plus)).collect();
        // The last one begins anew, from what the others gave.
        assert!(read[..MOST_OPERANDS].iter().all(Arc::is_unique));
        assert!(!read[MOST_OPERANDS].is_unique());
        assert_eq!(y.nth(7), 7.0 + 2.0 * (MOST_OPERANDS + 1) as f64);
    }
}
