//! `World`: the processes of a job, and what they do together.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use autograd_core::{AnyTensor, Element, Float, Tensor, no_grad};
use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator;

use crate::call::{Call, Calls, Kind, Number};
use crate::error::{Error, Result};

/// All processes of a job, the ranks. Each creates it once, and all make the same calls in the same order.
///
/// When it is dropped, it waits for all ranks and ends MPI. When it is dropped while the thread panics, it ends the
/// processes of all ranks, as does [`run`](World::run) after an error: no rank waits for one that is gone.
pub struct World {
    // Dropped in `Drop`, after the last call.
    universe: Option<Universe>,
    calls: Arc<Calls>,
    local: (usize, usize),
    /// Whether gradients are being summed, perhaps on another thread.
    busy: AtomicBool,
}

impl World {
    /// Starts MPI. Without `mpirun` there is one rank.
    ///
    /// ```
    /// use autograd_mpi::{Error, World};
    ///
    /// let world = World::init()?;
    /// assert_eq!((world.rank(), world.size()), (0, 1)); // without `mpirun`
    /// assert!(matches!(World::init(), Err(Error::Mpi { .. })));
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Mpi`] if MPI was started before in this process, or cannot be called from several threads in turn.
    pub fn init() -> Result<Self> {
        let failed = |why: &str| Err(Error::Mpi { why: why.into() });
        let Some((universe, level)) = mpi::initialize_with_threading(Threading::Serialized) else {
            return failed("it was started before in this process, which is possible once");
        };
        if level < Threading::Serialized {
            return failed(
                "the library allows calls from one thread only (MPI_THREAD_SERIALIZED is needed)",
            );
        }
        let node = SimpleCommunicator::world().split_shared(0);
        let local = (node.rank() as usize, node.size() as usize);
        drop(node);
        let calls = Calls::start();
        Ok(Self { universe: Some(universe), calls, local, busy: AtomicBool::new(false) })
    }

    /// Runs a program. If it returns an error on one rank, this prints it and ends the processes of all ranks, which
    /// would otherwise wait for that one.
    ///
    /// ```
    /// use autograd_mpi::{Result, World};
    ///
    /// fn train(world: &World) -> Result<()> {
    ///     println!("rank {} of {}", world.rank(), world.size());
    ///     world.barrier()
    /// }
    ///
    /// fn main() -> Result<()> {
    ///     World::init()?.run(train)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// None of the program: after one of these it does not return.
    pub fn run<E: fmt::Display>(self, f: impl FnOnce(&World) -> Result<(), E>) -> Result<()> {
        match f(&self) {
            Ok(()) => Ok(()),
            Err(error) => self.abort(&error.to_string()),
        }
    }

    /// The number of this process, from 0.
    ///
    /// ```
    /// use autograd_mpi::World;
    ///
    /// let world = World::init()?;
    /// assert!(world.rank() < world.size());
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    pub fn rank(&self) -> usize {
        self.calls.rank
    }

    /// The number of processes.
    ///
    /// ```
    /// use autograd_mpi::World;
    ///
    /// let world = World::init()?;
    /// assert_eq!(world.sum(&[1.0])?, [world.size() as f64]);
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    pub fn size(&self) -> usize {
        self.calls.size
    }

    /// The number of this process among those on its machine.
    ///
    /// ```
    /// use autograd_mpi::World;
    ///
    /// let world = World::init()?;
    /// assert!(world.local_rank() < world.local_size());
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    pub fn local_rank(&self) -> usize {
        self.local.0
    }

    /// The number of processes on this machine, by which its cores are divided.
    ///
    /// ```
    /// use autograd_mpi::World;
    ///
    /// let world = World::init()?;
    /// autograd_core::set_num_threads(8 / world.local_size()); // of eight cores
    /// assert_eq!(autograd_core::num_threads() * world.local_size(), 8);
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    pub fn local_size(&self) -> usize {
        self.local.1
    }

    /// Limits the time that a call waits for the other ranks; half an hour unless set. Then the process prints
    /// what it waited for and ends, and the launcher ends the others.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use autograd_mpi::World;
    ///
    /// let world = World::init()?.timeout(Duration::from_secs(60));
    /// world.barrier()?; // ends the process if a rank is a minute late
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Self {
        self.calls.set_timeout(limit);
        self
    }

    /// Compares the calls of all ranks, by kind and length, before each is made, so that a step that one rank skips
    /// is an [`Error::Calls`] on all, at the price of one more message a call. To be set alike on all ranks.
    ///
    /// ```
    /// use autograd_mpi::World;
    ///
    /// let world = World::init()?.check_calls(true);
    /// // An error on all ranks if one calls `barrier` here, or gives more numbers.
    /// assert_eq!(world.sum(&[1.0])?, [world.size() as f64]);
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    #[must_use]
    pub fn check_calls(self, on: bool) -> Self {
        self.calls.set_check(on);
        self
    }

    /// Waits until all ranks are here.
    ///
    /// ```
    /// use autograd_mpi::World;
    ///
    /// let world = World::init()?;
    /// let file = std::env::temp_dir().join("autograd-mpi-barrier.txt");
    /// world.on_root(|| std::fs::write(&file, "ready").unwrap());
    /// world.barrier()?;
    /// assert_eq!(std::fs::read_to_string(&file).unwrap(), "ready");
    /// # world.barrier()?;
    /// # world.on_root(|| std::fs::remove_file(&file).unwrap());
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As all functions in which ranks communicate: [`Error::Calls`], and [`Error::Argument`] within a backward.
    pub fn barrier(&self) -> Result<()> {
        self.free("barrier")?.barrier(Kind::Barrier)
    }

    /// Returns the sums over the ranks. The last bits may depend on their number.
    ///
    /// ```
    /// use autograd_mpi::World;
    ///
    /// let world = World::init()?;
    /// let ranks = world.size() as f64;
    /// assert_eq!(world.sum(&[0.5, 2.0])?, [0.5 * ranks, 2.0 * ranks]);
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Differs`] and [`Error::Rank`] if the lengths differ; as [`barrier`](World::barrier).
    pub fn sum(&self, numbers: &[f64]) -> Result<Vec<f64>> {
        self.free("sum")?;
        self.same_as_root("sum", &[("the length of `numbers`".into(), numbers.len().to_string())])?;
        let mut sums = numbers.to_vec();
        let call = Call::new(Kind::Sum, sums.len());
        self.calls.sum(call, &mut sums, &mut Vec::new())?;
        Ok(sums)
    }

    /// Returns the mean of what is on all ranks, of which this one has `count` with this `sum`; NaN of nothing.
    ///
    /// ```
    /// use autograd_mpi::World;
    ///
    /// let world = World::init()?;
    /// let losses = [1.0, 2.0, 6.0];
    /// assert_eq!(world.mean(losses.iter().sum(), losses.len())?, 3.0);
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`barrier`](World::barrier).
    pub fn mean(&self, sum: f64, count: usize) -> Result<f64> {
        let sums = self.sum(&[sum, count as f64])?;
        Ok(sums[0] / sums[1])
    }

    /// Replaces the elements of a tensor, of the same shape on all ranks, by those on rank `root`.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_mpi::{Error, World};
    ///
    /// let world = World::init()?;
    /// let x = Tensor::from([world.rank() as f64, 0.5]);
    /// world.broadcast(&x, 0)?;
    /// assert_eq!(x.to_vec(), [0.0, 0.5]);
    /// assert!(matches!(world.broadcast(&x, world.size()), Err(Error::Argument { .. })));
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if there is no such rank, [`Error::Differs`] and [`Error::Rank`] if shapes or element
    /// types differ; as [`barrier`](World::barrier).
    pub fn broadcast<T: Float>(&self, tensor: &Tensor<T>, root: usize) -> Result<()> {
        let op = "broadcast";
        self.free(op)?;
        let has = format!("{:?} of {}", tensor.shape(), tensor.dtype());
        self.same_as_root(op, &[("`tensor`".into(), has)])?;
        self.broadcast_any(&tensor.clone().into(), root)
    }

    pub(crate) fn broadcast_any(&self, tensor: &AnyTensor, root: usize) -> Result<()> {
        let op = "broadcast";
        let calls = self.free(op)?;
        if root >= self.size() {
            let expected = format!("a rank below {}", self.size());
            return Err(Error::Argument {
                op,
                parameter: "root",
                expected,
                found: root.to_string(),
            });
        }
        fn of<T: Element + Number>(calls: &Calls, tensor: &Tensor<T>, root: usize) -> Result<()> {
            let mut numbers = tensor.to_vec();
            calls.broadcast(Kind::Broadcast, &mut numbers, root)?;
            let new = Tensor::from_vec(tensor.shape(), numbers)?;
            Ok(no_grad().run(|| tensor.copy_from(&new))?)
        }
        match tensor {
            AnyTensor::Float32(tensor) => of(calls, tensor, root),
            AnyTensor::Float64(tensor) => of(calls, tensor, root),
            AnyTensor::Int32(tensor) => of(calls, tensor, root),
            AnyTensor::Int64(tensor) => of(calls, tensor, root),
            AnyTensor::UInt8(tensor) => of(calls, tensor, root),
            AnyTensor::Bool(tensor) => of(calls, tensor, root),
            _ => Err(unknown_type(op, tensor)),
        }
    }

    /// Returns the rows of all ranks, in the order of the ranks: concatenated along the first axis, whose length may
    /// differ between them.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_mpi::World;
    ///
    /// let world = World::init()?;
    /// let all = world.all_gather(&Tensor::from([[world.rank() as i64, 7]]))?;
    /// assert_eq!(all.shape(), [world.size(), 2]);
    /// assert_eq!(all.i(-1).to_vec(), [world.size() as i64 - 1, 7]);
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for a tensor without axes, [`Error::Differs`] and [`Error::Rank`] if shapes of rows or
    /// element types differ; as [`barrier`](World::barrier).
    pub fn all_gather<T: Element>(&self, rows: &Tensor<T>) -> Result<Tensor<T>> {
        let op = "all_gather";
        let calls = self.free(op)?;
        let Some((&count, row)) = rows.shape().split_first() else {
            let (expected, found) = ("a tensor with axes".into(), "a scalar".into());
            return self
                .agree_on(op, Err(Error::Argument { op, parameter: "rows", expected, found }));
        };
        self.same_as_root(
            op,
            &[("a row of `rows`".into(), format!("{row:?} of {}", rows.dtype()))],
        )?;
        let counts = calls.all_gather(Kind::AllGather, &[count as i64], &vec![1; self.size()])?;
        let width: usize = row.iter().product();
        let lens: Vec<usize> = counts.iter().map(|&count| count as usize * width).collect();
        let mut shape = rows.shape().to_vec();
        shape[0] = counts.iter().sum::<i64>() as usize;
        fn of<T: Element + Number>(
            calls: &Calls,
            rows: &Tensor<T>,
            lens: &[usize],
            shape: Vec<usize>,
        ) -> Result<AnyTensor> {
            let all = calls.all_gather(Kind::AllGather, &rows.to_vec(), lens)?;
            Ok(Tensor::from_vec(shape, all)?.into())
        }
        let rows = AnyTensor::from(rows.clone());
        let all = match &rows {
            AnyTensor::Float32(rows) => of(calls, rows, &lens, shape),
            AnyTensor::Float64(rows) => of(calls, rows, &lens, shape),
            AnyTensor::Int32(rows) => of(calls, rows, &lens, shape),
            AnyTensor::Int64(rows) => of(calls, rows, &lens, shape),
            AnyTensor::UInt8(rows) => of(calls, rows, &lens, shape),
            AnyTensor::Bool(rows) => of(calls, rows, &lens, shape),
            _ => Err(unknown_type(op, &rows)),
        }?;
        all.downcast().ok_or_else(|| unknown_type(op, &rows))
    }

    /// Runs `f` on rank 0 only. What can fail, as writing a file, belongs in [`agree`](World::agree).
    ///
    /// ```
    /// use autograd_mpi::World;
    ///
    /// let world = World::init()?;
    /// let text = world.on_root(|| format!("{} ranks", world.size()));
    /// assert_eq!(text.is_some(), world.rank() == 0);
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    pub fn on_root<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        (self.rank() == 0).then(f)
    }

    /// Makes an error on one rank an error on all of them, for what only some ranks do.
    ///
    /// ```
    /// use autograd_mpi::{Error, World};
    ///
    /// let world = World::init()?;
    /// let written = world.on_root(|| std::fs::write("no/such/folder/model.txt", "")).unwrap_or(Ok(()));
    /// assert!(matches!(world.agree(written), Err(Error::Rank { rank: 0, .. })));
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] with the error's text, and as [`barrier`](World::barrier).
    pub fn agree<R, E: fmt::Display>(&self, result: Result<R, E>) -> Result<R> {
        self.free("agree")?;
        let (rank, op) = (self.rank(), "agree");
        let failed = |error: E| Error::Rank { op, rank, why: error.to_string() };
        self.agree_on(op, result.map_err(failed))
    }

    /// [`agree`](World::agree), where the rank that failed keeps its error.
    pub(crate) fn agree_on<R>(&self, op: &'static str, result: Result<R>) -> Result<R> {
        let failed = if result.is_err() { (self.size() - self.rank()) as i64 } else { 0 };
        let mut most = [failed];
        self.calls.max(Call::new(Kind::Outcome, 1), &mut most)?;
        if most[0] == 0 {
            return result;
        }
        let rank = self.size() - most[0] as usize;
        let mut why = match &result {
            Err(Error::Rank { why, .. }) => why.clone(),
            Err(error) => error.to_string(),
            Ok(_) => String::new(),
        };
        self.calls.broadcast_text(Kind::Outcome, &mut why, rank)?;
        match result {
            Err(error) => Err(error),
            Ok(_) => Err(Error::Rank { op, rank, why }),
        }
    }

    /// Checks that descriptions of things are the same on all ranks, in the same order.
    pub(crate) fn same_as_root(&self, op: &'static str, mine: &[(String, String)]) -> Result<()> {
        let lines = mine.iter().map(|(what, has)| format!("{what}\t{has}"));
        let mut text = lines.collect::<Vec<_>>().join("\n");
        self.calls.broadcast_text(Kind::Manifest, &mut text, 0)?;
        let mut roots = text.lines().filter_map(|line| line.split_once('\t'));
        let mut mine = mine.iter().map(|(what, has)| (what.as_str(), has.as_str()));
        let different = loop {
            match (roots.next(), mine.next()) {
                (None, None) => break Ok(()),
                (root, here) if root == here => {}
                (Some((what, expected)), Some((here, found))) if what == here => {
                    break Err((what.to_owned(), expected.into(), found.into()));
                }
                (Some((expected, _)), Some((found, _))) => {
                    break Err(("the next tensor".into(), expected.into(), found.into()));
                }
                (root, here) => {
                    let name = |part: Option<(&str, &str)>| {
                        part.map_or("none", |(what, _)| what).to_owned()
                    };
                    break Err(("the next tensor".into(), name(root), name(here)));
                }
            }
        };
        let different = different.map_err(|(what, expected, found)| Error::Differs {
            op,
            what,
            expected,
            found,
        });
        self.agree_on(op, different)
    }

    /// Prints a reason, and ends the processes of all ranks.
    ///
    /// ```
    /// use autograd_mpi::World;
    ///
    /// let world = World::init()?;
    /// let Ok(epochs) = "10".parse::<usize>() else { world.abort("the number of epochs is none") };
    /// assert_eq!(epochs, 10);
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    pub fn abort(&self, why: &str) -> ! {
        self.calls.abort(why)
    }

    pub(crate) fn calls(&self) -> &Arc<Calls> {
        &self.calls
    }

    /// The calls, if no backward is summing gradients at this time.
    fn free(&self, op: &'static str) -> Result<&Calls> {
        if self.busy.load(Ordering::Relaxed) {
            return Err(Error::Argument {
                op,
                parameter: "self",
                expected: "free; call it before or after the backward".into(),
                found: "a world whose gradients are being summed (in a hook, or on another thread)"
                    .into(),
            });
        }
        Ok(&self.calls)
    }

    /// Reserves the world for a backward.
    pub(crate) fn start_backward(&self, op: &'static str) -> Result<Busy<'_>> {
        self.free(op)?;
        self.busy.store(true, Ordering::Relaxed);
        Ok(Busy(self))
    }
}

fn unknown_type(op: &'static str, tensor: &AnyTensor) -> Error {
    let (expected, found) = ("of a known element type".into(), tensor.dtype().to_string());
    Error::Argument { op, parameter: "tensor", expected, found }
}

/// A backward in which ranks communicate. A panic in it ends the job, even if it is caught later: the other ranks
/// wait for gradients that never come.
pub(crate) struct Busy<'a>(&'a World);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.abort("it panicked in a backward");
        }
        self.0.busy.store(false, Ordering::Relaxed);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if thread::panicking() {
            self.abort("it panicked");
        }
        if let Err(error) = self.calls.barrier(Kind::End) {
            self.abort(&error.to_string());
        }
        self.universe.take();
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, size) = (self.rank(), self.size());
        f.debug_struct("World").field("rank", &rank).field("size", &size).finish_non_exhaustive()
    }
}
