//! Cheap functions of each element, put off until somebody reads the result.
//!
//! What would be a pass over memory each is then computed block by block, while a block is in the
//! first cache: in the pass of the op that reads the result, or in one pass for all.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;
use triomphe::Arc;

use super::Storable;
use super::buffer::Buffer;
use super::elementwise::{ZipScalar, each_block};

/// Bytes from which on it pays, more than the first cache has: what is put off is an allocation too.
const LEAST: usize = 64 << 10;

/// Whether functions of so many elements are put off.
pub(crate) const fn pays<T>(len: usize) -> bool {
    len * size_of::<T>() >= LEAST
}

/// So many functions in a row are put off: who reads the result twice computes them twice.
const MOST: usize = 8;

/// So often it is computed for one reader; the next one waits until it stands in memory.
const LOOKS: u8 = 2;

/// A cheap function of an element and a number.
pub(crate) struct Step<T: 'static> {
    pub(crate) f: &'static (dyn ZipScalar<T> + Sync),
    pub(crate) scalar: T,
}

impl<T: Copy> Clone for Step<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Copy> Copy for Step<T> {}

/// In the order in which they are computed.
pub(crate) type Steps<T> = SmallVec<[Step<T>; 4]>;

/// Computes steps over a block.
pub(crate) fn run_over<T: Copy>(steps: &[Step<T>], block: &mut [T]) {
    steps.iter().for_each(|step| step.f.run_scalar(block, step.scalar));
}

/// Elements that are not computed, or were since.
pub(crate) struct Deferred<T: Storable> {
    steps: Steps<T>,
    /// What they are computed from, whole; nothing once they are.
    source: Mutex<Option<Arc<Buffer<T>>>>,
    looks: AtomicU8,
    made: OnceLock<Arc<Buffer<T>>>,
}

impl<T: Storable> Deferred<T> {
    pub(crate) fn new(source: Arc<Buffer<T>>, step: Step<T>) -> Self {
        Self::of(source, SmallVec::from_iter([step]))
    }

    fn of(source: Arc<Buffer<T>>, steps: Steps<T>) -> Self {
        let source = Mutex::new(Some(source));
        Self { steps, source, looks: AtomicU8::new(0), made: OnceLock::new() }
    }

    /// The elements in memory; who asks first computes them.
    pub(crate) fn made(&self) -> &Arc<Buffer<T>> {
        self.made.get_or_init(|| {
            let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).take();
            computed(source, &self.steps)
        })
    }

    /// [`made`](Self::made), by the only one who can.
    pub(crate) fn take_made(&mut self) -> Arc<Buffer<T>> {
        let source = self.source.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.made.take().unwrap_or_else(|| computed(source, &self.steps))
    }

    /// One more function; `None` where there are many already, or where the elements are in memory.
    pub(crate) fn extended(this: &mut Arc<Self>, step: Step<T>) -> Option<Arc<Self>> {
        if this.steps.len() == MOST || this.made.get().is_some() {
            return None;
        }
        if let Some(alone) = Arc::get_mut(this) {
            alone.steps.push(step);
            return Some(Arc::clone(this));
        }
        let source = this.source.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let steps = this.steps.iter().copied().chain([step]).collect();
        this.looked_at();
        Some(Arc::new(Self::of(source, steps)))
    }

    /// Somebody is about to read it block by block.
    pub(crate) fn looked_at(&self) {
        if self.looks.fetch_add(1, Ordering::Relaxed) >= LOOKS {
            self.looks.store(LOOKS, Ordering::Relaxed);
            self.made();
        }
    }

    /// The elements block by block.
    pub(crate) fn elements(&self) -> Elements<'_, T> {
        if self.made.get().is_none() {
            let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(source) = source {
                return Elements::Deferred(source, &self.steps);
            }
        }
        Elements::Slice(self.made())
    }

    /// A buffer that nobody else holds, and the steps that are to be computed over it, if there is one.
    pub(crate) fn sole_buffer(&mut self) -> Option<(Arc<Buffer<T>>, Steps<T>)> {
        if let Some(made) = self.made.get_mut() {
            Arc::get_mut(made)?;
            return Some((self.made.take()?, Steps::new()));
        }
        let source = self.source.get_mut().unwrap_or_else(PoisonError::into_inner);
        source.as_mut().and_then(Arc::get_mut)?;
        Some((source.take()?, std::mem::take(&mut self.steps)))
    }
}

/// In the source's own buffer where nobody else holds it.
fn computed<T: Storable>(source: Option<Arc<Buffer<T>>>, steps: &[Step<T>]) -> Arc<Buffer<T>> {
    let mut source =
        source.unwrap_or_else(|| unreachable!("it is given away once, with the steps"));
    if let Some(data) = Arc::get_mut(&mut source) {
        each_block(data, |_, block| run_over(steps, block));
        return source;
    }
    let mut out = Buffer::any(source.len());
    let elements = Elements::Deferred(source, steps);
    each_block(&mut out, |start, block| elements.write(start, block));
    Arc::new(out)
}

/// Row-major elements, in memory or not.
pub(crate) enum Elements<'a, T: Storable> {
    Slice(&'a [T]),
    Deferred(Arc<Buffer<T>>, &'a [Step<T>]),
}

impl<T: Storable> Clone for Elements<'_, T> {
    fn clone(&self) -> Self {
        match self {
            Self::Slice(data) => Self::Slice(data),
            Self::Deferred(source, steps) => Self::Deferred(Arc::clone(source), steps),
        }
    }
}

impl<T: Storable> Elements<'_, T> {
    /// Those from `start` on, written to a block.
    pub(crate) fn write(&self, start: usize, block: &mut [T]) {
        let here = start..start + block.len();
        match self {
            Self::Slice(data) => block.copy_from_slice(&data[here]),
            Self::Deferred(source, steps) => {
                let Some((first, others)) = steps.split_first() else {
                    return block.copy_from_slice(&source[here]);
                };
                first.f.run_scalar_onto(block, &source[here], first.scalar);
                run_over(others, block);
            }
        }
    }

    /// Shows `n` of them from `start` on.
    pub(crate) fn with_block<R>(&self, start: usize, n: usize, show: impl FnOnce(&[T]) -> R) -> R {
        match self {
            Self::Slice(data) => show(&data[start..start + n]),
            Self::Deferred(..) => T::with_scratch(n, |room| {
                self.write(start, room);
                show(room)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::elementwise::Zip;
    use crate::array::{Shape, Value};

    #[derive(Clone, Copy)]
    struct Plus;

    impl Zip<f64> for Plus {
        fn call<const FMA: bool>(self, a: f64, b: f64) -> f64 {
            a + b
        }
    }

    #[derive(Clone, Copy)]
    struct Times;

    impl Zip<f64> for Times {
        fn call<const FMA: bool>(self, a: f64, b: f64) -> f64 {
            a * b
        }
    }

    const LEN: usize = LEAST / size_of::<f64>();

    fn value() -> Value<f64> {
        Value::from_vec(Shape::from_slice(&[LEN]), (0..LEN).map(|i| i as f64).collect())
    }

    fn plus(x: &mut Value<f64>, scalar: f64) {
        assert!(x.try_defer(Step { f: &Plus, scalar }));
    }

    #[test]
    fn few_numbers_are_computed_at_once() {
        let mut few = Value::from_vec(Shape::from_slice(&[LEN - 1]), vec![1.0; LEN - 1]);
        assert!(!few.try_defer(Step { f: &Plus, scalar: 1.0 }) && !few.is_deferred());
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
        assert!(y.try_defer(Step { f: &Times, scalar: 3.0 }));
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
        assert_eq!(y.take_steps().unwrap().len(), 1);
    }

    #[test]
    fn who_reads_often_has_it_computed() {
        let x = value();
        let mut y = x.clone();
        plus(&mut y, 1.0);
        for _ in 0..LOOKS {
            y.looked_at(&[LEN]);
            assert!(matches!(y.elements(), Some(Elements::Deferred(..))));
        }
        y.looked_at(&[LEN]);
        assert!(matches!(y.elements(), Some(Elements::Slice([1.0, 2.0, ..]))));
        // What comes after starts from there.
        plus(&mut y, 1.0);
        assert_eq!(y.nth(1), 3.0);
    }
}
