//! Data in batches, for training.
//!
//! A [`DataLoader`] makes batches from a [`Dataset`]: a tensor along its first axis, a `Vec`, a tuple of
//! these, or a type of yours that reads files.
//!
//! ```
//! use autograd_core::Tensor;
//! use autograd_core::data::DataLoader;
//!
//! let (x, y) = (Tensor::<f32>::rand([10, 3]), Tensor::<i64>::arange(10));
//! let loader = DataLoader::new((x, y), 4).shuffle(7).in_background();
//! for epoch in 0..2 {
//!     for batch in loader.epoch(epoch) {
//!         let (x, y) = batch?;
//!         assert_eq!(x.shape(), [y.len(), 3]);
//!     }
//! }
//! # Ok::<(), autograd_core::Error>(())
//! ```

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::error::{Error, Result};
use crate::graph::{Element, Tensor};
use crate::ops::table::values::panic_message;
use crate::random::{self, Generator};

/// Data that can be read by position.
///
/// ```
/// use autograd_core::data::{DataLoader, Dataset};
/// use autograd_core::{Result, Tensor};
///
/// /// Numbers and their squares, computed on demand.
/// struct Squares(usize);
///
/// impl Dataset for Squares {
///     type Batch = (Tensor<f64>, Tensor<f64>);
///
///     fn len(&self) -> usize {
///         self.0
///     }
///
///     fn get(&self, items: &[usize]) -> Result<Self::Batch> {
///         let x = Tensor::from(items.iter().map(|&i| i as f64).collect::<Vec<_>>());
///         Ok((x.clone(), x.square()))
///     }
/// }
///
/// let batches: Vec<_> = DataLoader::new(Squares(5), 2).epoch(0).collect::<Result<_>>()?;
/// assert_eq!(batches.len(), 3);
/// assert_eq!(batches[1].1.to_vec(), [4.0, 9.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub trait Dataset {
    /// Several items together.
    type Batch;

    /// The number of items.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::data::Dataset;
    ///
    /// assert_eq!(Dataset::len(&Tensor::<f32>::zeros([10, 3])), 10);
    /// ```
    ///
    /// # Panics
    ///
    /// For a tensor without axes, and for a tuple whose parts have different lengths.
    fn len(&self) -> usize;

    /// Whether there are no items.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::data::Dataset;
    ///
    /// assert!(Dataset::is_empty(&Tensor::<f32>::zeros([0, 3])));
    /// assert!(!Dataset::is_empty(&Tensor::<f32>::zeros([3, 0])));
    /// ```
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the items at these positions, in their order.
    ///
    /// The random numbers that this draws, to augment pictures for example, are those of a generator made of the
    /// seed of [`DataLoader::shuffle`], the epoch and the position of the batch: they are the same on every
    /// thread. Without that seed, the state of the process-wide generator at the call of
    /// [`DataLoader::epoch`] stands for it. The program's own numbers do not change.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::data::Dataset;
    ///
    /// let (x, names) = (Tensor::from([1.0, 2.0, 3.0]), ["a", "b", "c"]).get(&[2, 0])?;
    /// assert_eq!((x.to_vec(), names), (vec![3.0, 1.0], vec!["c", "a"]));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the items cannot be read. The [`DataLoader`] returns the error in place of the batch.
    fn get(&self, items: &[usize]) -> Result<Self::Batch>;
}

impl<T: Element> Dataset for Tensor<T> {
    type Batch = Tensor<T>;

    #[track_caller]
    fn len(&self) -> usize {
        let Some(&len) = self.shape().first() else {
            panic!("DataLoader: a tensor without axes has no items");
        };
        len
    }

    fn get(&self, items: &[usize]) -> Result<Tensor<T>> {
        let index: Vec<i64> = items.iter().map(|&item| item as i64).collect();
        self.try_index_select(0, &Tensor::from(index))
    }
}

impl<T: Clone> Dataset for [T] {
    type Batch = Vec<T>;

    fn len(&self) -> usize {
        <[T]>::len(self)
    }

    fn get(&self, items: &[usize]) -> Result<Vec<T>> {
        Ok(items.iter().map(|&item| self[item].clone()).collect())
    }
}

macro_rules! through {
    ($([$($generic:tt)*] $type:ty => $target:ty;)*) => {$(
        impl<$($generic)*> Dataset for $type {
            type Batch = <$target as Dataset>::Batch;

            #[track_caller]
            fn len(&self) -> usize {
                <$target as Dataset>::len(self)
            }

            fn get(&self, items: &[usize]) -> Result<Self::Batch> {
                <$target as Dataset>::get(self, items)
            }
        }
    )*};
}

through! {
    [T: Clone] Vec<T> => [T];
    [T: Clone, const N: usize] [T; N] => [T];
    [D: Dataset + ?Sized] &D => D;
    [D: Dataset + ?Sized] Box<D> => D;
    [D: Dataset + ?Sized] Arc<D> => D;
}

macro_rules! tuples {
    ($(($first:ident $at:tt $($part:ident $position:tt)+))*) => {$(
        impl<$first: Dataset, $($part: Dataset),+> Dataset for ($first, $($part),+) {
            type Batch = ($first::Batch, $($part::Batch),+);

            #[track_caller]
            fn len(&self) -> usize {
                let len = self.$at.len();
                $(
                    let found = self.$position.len();
                    assert!(
                        len == found,
                        "DataLoader: the parts of the data must have as many items as each other, \
                         found {len} and {found}"
                    );
                )+
                len
            }

            fn get(&self, items: &[usize]) -> Result<Self::Batch> {
                Ok((self.$at.get(items)?, $(self.$position.get(items)?),+))
            }
        }
    )*};
}

tuples! {
    (A 0 B 1)
    (A 0 B 1 C 2)
    (A 0 B 1 C 2 D 3)
}

/// Starts a thread that makes batches; a pointer, as only [`DataLoader::in_background`] needs `Send` data.
type Start<D> = fn(Arc<D>, Order) -> Receiver<Result<<D as Dataset>::Batch>>;

/// Makes batches of a [`Dataset`]; see the [module](self).
///
/// ```
/// use autograd_core::Result;
/// use autograd_core::data::DataLoader;
///
/// let loader = DataLoader::new(vec![1, 2, 3, 4, 5], 2).drop_last();
/// let batches: Vec<_> = loader.epoch(0).collect::<Result<_>>()?;
/// assert_eq!(batches, [[1, 2], [3, 4]]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub struct DataLoader<D: Dataset> {
    data: Arc<D>,
    batch: usize,
    seed: Option<u64>,
    drop_last: bool,
    background: Option<Start<D>>,
}

impl<D: Dataset> DataLoader<D> {
    /// Creates a loader of batches of `batch_size` items in the order of the data. The last may be smaller.
    ///
    /// ```
    /// use autograd_core::data::DataLoader;
    ///
    /// let loader = DataLoader::new(vec![1, 2, 3, 4, 5], 2);
    /// assert_eq!(loader.epoch(0).next().unwrap()?, [1, 2]);
    /// assert_eq!(loader.epoch(0).last().unwrap()?, [5]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `batch_size` is 0, or [`Dataset::len`] panics.
    #[track_caller]
    pub fn new(data: D, batch_size: usize) -> Self {
        assert!(batch_size > 0, "DataLoader: `batch_size` must be at least 1, found 0");
        // A panic of `len` is reported here, not on another thread.
        data.len();
        let data = Arc::new(data);
        Self { data, batch: batch_size, seed: None, drop_last: false, background: None }
    }

    /// Shuffles the items in each epoch, by this seed and the number of the epoch alone.
    ///
    /// ```
    /// use autograd_core::data::DataLoader;
    ///
    /// let loader = DataLoader::new((0..100).collect::<Vec<_>>(), 100).shuffle(7);
    /// let [first, second] = [0, 1].map(|epoch| loader.epoch(epoch).next().unwrap());
    /// let first = first?;
    /// assert_ne!(first, second?);
    /// assert_eq!(first, loader.epoch(0).next().unwrap()?);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[must_use]
    pub fn shuffle(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Drops the last batch if it is smaller than the others.
    ///
    /// ```
    /// use autograd_core::data::DataLoader;
    ///
    /// let loader = DataLoader::new(vec![1, 2, 3, 4, 5], 2);
    /// assert_eq!(loader.len(), 3);
    /// assert_eq!(loader.drop_last().len(), 2);
    /// ```
    #[must_use]
    pub fn drop_last(self) -> Self {
        Self { drop_last: true, ..self }
    }

    /// Prepares the next batch on another thread. A panic of [`Dataset::get`] gives an [`Error::Panic`] in
    /// place of the batch.
    ///
    /// ```
    /// use std::thread::{self, ThreadId};
    ///
    /// use autograd_core::Result;
    /// use autograd_core::data::{DataLoader, Dataset};
    ///
    /// /// The thread that makes a batch.
    /// struct Maker;
    ///
    /// impl Dataset for Maker {
    ///     type Batch = ThreadId;
    ///
    ///     fn len(&self) -> usize {
    ///         1
    ///     }
    ///
    ///     fn get(&self, _items: &[usize]) -> Result<ThreadId> {
    ///         Ok(thread::current().id())
    ///     }
    /// }
    ///
    /// let here = thread::current().id();
    /// assert_eq!(DataLoader::new(Maker, 1).epoch(0).next().unwrap()?, here);
    /// assert_ne!(DataLoader::new(Maker, 1).in_background().epoch(0).next().unwrap()?, here);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[doc(alias = "num_workers")]
    #[must_use]
    pub fn in_background(self) -> Self
    where
        D: Send + Sync + 'static,
        D::Batch: Send + 'static,
    {
        Self { background: Some(prepare), ..self }
    }

    /// Returns the data.
    ///
    /// ```
    /// use autograd_core::data::DataLoader;
    ///
    /// assert_eq!(DataLoader::new(vec![1, 2, 3], 2).data()[2], 3);
    /// ```
    #[doc(alias = "dataset")]
    pub fn data(&self) -> &D {
        &self.data
    }

    /// The number of batches in an epoch.
    ///
    /// ```
    /// use autograd_core::data::DataLoader;
    ///
    /// assert_eq!(DataLoader::new(vec![1, 2, 3, 4, 5], 2).len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        let items = self.data.len();
        if self.drop_last { items / self.batch } else { items.div_ceil(self.batch) }
    }

    /// Whether there are no batches.
    ///
    /// ```
    /// use autograd_core::data::DataLoader;
    ///
    /// let loader = DataLoader::new(vec![1], 2);
    /// assert!(!loader.is_empty());
    /// assert!(loader.drop_last().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the batches of an epoch. They end after an error.
    ///
    /// To resume within an epoch, [`skip`](Iterator::skip) the batches that were used; they are not read. The module
    /// `safetensors` shows a training that is resumed exactly.
    ///
    /// ```
    /// use autograd_core::Result;
    /// use autograd_core::data::DataLoader;
    ///
    /// let loader = DataLoader::new(vec![1, 2, 3, 4, 5], 2);
    /// let rest: Vec<_> = loader.epoch(0).skip(1).collect::<Result<_>>()?;
    /// assert_eq!(rest, [vec![3, 4], vec![5]]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn epoch(&self, epoch: u64) -> Batches<D> {
        let items = self.data.len();
        let items = match self.seed {
            None => (0..items).collect::<Vec<_>>(),
            Some(seed) => {
                let seed = seed.wrapping_add(epoch.wrapping_mul(0x9e37_79b9));
                Generator::new(seed).randperm(items).into_iter().map(|item| item as usize).collect()
            }
        };
        let left = self.len();
        let parts = items.chunks(self.batch).take(left).map(<[usize]>::to_vec).collect::<Vec<_>>();
        // A copy, so that the program's own numbers do not change.
        let seed = self.seed.unwrap_or_else(|| random::rng_state().next_u64());
        let order = Order { seed, epoch, parts: parts.into_iter().enumerate() };
        let data = Arc::clone(&self.data);
        Batches { data, order, start: self.background, thread: None, left }
    }
}

impl<D: Dataset> fmt::Debug for DataLoader<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut show = f.debug_struct("DataLoader");
        show.field("items", &self.data.len()).field("batch_size", &self.batch);
        show.field("seed", &self.seed).field("drop_last", &self.drop_last).finish_non_exhaustive()
    }
}

/// The items of the batches of an epoch.
#[derive(Default)]
struct Order {
    seed: u64,
    epoch: u64,
    parts: std::iter::Enumerate<std::vec::IntoIter<Vec<usize>>>,
}

impl Order {
    /// Makes the next batch. What the data draw does not depend on the thread and on what was drawn before.
    fn next<D: Dataset>(&mut self, data: &D) -> Option<Result<D::Batch>> {
        let (at, items) = self.parts.next()?;
        let mut generator = Generator::of_part(&[self.seed, self.epoch, at as u64]);
        Some(generator.run(|| data.get(&items)))
    }
}

/// Makes batches on a thread, which waits until each is received, and ends when the receiver is dropped.
fn prepare<D>(data: Arc<D>, mut order: Order) -> Receiver<Result<D::Batch>>
where
    D: Dataset + Send + Sync + 'static,
    D::Batch: Send + 'static,
{
    let (sender, receiver) = sync_channel(0);
    thread::spawn(move || {
        let mut next = || {
            catch_unwind(AssertUnwindSafe(|| order.next(&*data))).unwrap_or_else(|panic| {
                let why = format!("the data {}", panic_message(&*panic));
                Some(Err(Error::Panic { op: "DataLoader", why }))
            })
        };
        while let Some(batch) = next() {
            let failed = batch.is_err();
            if sender.send(batch).is_err() || failed {
                return;
            }
        }
    });
    receiver
}

/// The batches of an epoch, returned by [`DataLoader::epoch`].
///
/// ```
/// use autograd_core::Result;
/// use autograd_core::data::{Batches, DataLoader};
///
/// fn sums(batches: Batches<Vec<i32>>) -> Result<Vec<i32>> {
///     batches.map(|batch| Ok(batch?.iter().sum())).collect()
/// }
///
/// let loader = DataLoader::new(vec![1, 2, 3, 4, 5], 2);
/// assert_eq!(sums(loader.epoch(0))?, [3, 7, 5]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub struct Batches<D: Dataset> {
    data: Arc<D>,
    order: Order,
    start: Option<Start<D>>,
    thread: Option<Receiver<Result<D::Batch>>>,
    left: usize,
}

impl<D: Dataset> Iterator for Batches<D> {
    type Item = Result<D::Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.nth(0)
    }

    fn nth(&mut self, mut skipped: usize) -> Option<Self::Item> {
        let Some(left) = self.left.checked_sub(skipped).and_then(|left| left.checked_sub(1)) else {
            self.left = 0;
            return None;
        };
        self.left = left;
        if self.thread.is_none() {
            self.order.parts.by_ref().take(std::mem::take(&mut skipped)).for_each(drop);
            let start =
                |start: Start<D>| start(Arc::clone(&self.data), std::mem::take(&mut self.order));
            self.thread = self.start.map(start);
        }
        let batch = match &self.thread {
            Some(batches) => batches.iter().nth(skipped),
            None => self.order.next(&*self.data),
        };
        if !matches!(batch, Some(Ok(_))) {
            self.left = 0;
        }
        batch
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

impl<D: Dataset> fmt::Debug for Batches<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("left", &self.left).finish_non_exhaustive()
    }
}
