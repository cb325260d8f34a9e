//! The calls of MPI: one at a time, watched, and compared between the ranks where that is asked for.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Equivalence, Root};

use crate::error::{Error, Result};

/// What a collective call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    End,
    Barrier,
    Sum,
    Broadcast,
    AllGather,
    Outcome,
    Manifest,
    Bucket,
    Status,
    Scales,
    ExactSums,
    SpecialNumbers,
}

impl Kind {
    const ALL: [(Self, &'static str); 12] = [
        (Self::End, "ends"),
        (Self::Barrier, "calls barrier"),
        (Self::Sum, "calls sum"),
        (Self::Broadcast, "calls broadcast"),
        (Self::AllGather, "calls all_gather"),
        (Self::Outcome, "shares the outcome of a part of the program"),
        (Self::Manifest, "compares the names and shapes of a model"),
        (Self::Bucket, "sums gradients in backward"),
        (Self::Status, "ends a backward"),
        (Self::Scales, "compares the exponents of gradients in backward"),
        (Self::ExactSums, "sums gradients exactly in backward"),
        (Self::SpecialNumbers, "counts NaN and infinities in backward"),
    ];
}

/// A collective call: what for, of how many numbers, and the position among calls of its kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Call {
    kind: Kind,
    part: usize,
    len: usize,
}

impl Call {
    pub(crate) fn new(kind: Kind, len: usize) -> Self {
        Self { kind, part: 0, len }
    }

    pub(crate) fn part(self, part: usize) -> Self {
        Self { part, ..self }
    }

    fn to_numbers(self) -> [i64; 3] {
        let kind = Kind::ALL.iter().position(|&(kind, _)| kind == self.kind);
        [kind.map_or(-1, |at| at as i64), self.part as i64, self.len as i64]
    }

    fn from_numbers(numbers: &[i64]) -> Self {
        let kind = Kind::ALL[numbers[0] as usize].0;
        Self { kind, part: numbers[1] as usize, len: numbers[2] as usize }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Kind::ALL.iter().find(|(kind, _)| *kind == self.kind).map_or("", |&(_, n)| n);
        f.write_str(name)?;
        match self.kind {
            Kind::End | Kind::Barrier => Ok(()),
            Kind::Bucket => {
                write!(f, " (bucket {} of {} numbers)", self.part, self.len)
            }
            _ => write!(f, " ({} numbers)", self.len),
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The longest message, in bytes: longer ones are several calls. So counts fit the 31 bits of MPI, and the buffer
/// that receives a sum stays small.
const MAX_MESSAGE: usize = 32 << 20;

/// How long a call may take before the process ends, unless a program sets it.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Makes all calls of MPI, from any thread, one at a time.
pub(crate) struct Calls {
    pub(crate) rank: usize,
    pub(crate) size: usize,
    check: AtomicBool,
    one: Mutex<()>,
    watch: Mutex<Watch>,
}

struct Watch {
    limit: Duration,
    /// The call that is running, and since when.
    running: Option<(Call, Instant)>,
}

impl Calls {
    pub(crate) fn start() -> Arc<Self> {
        let world = SimpleCommunicator::world();
        let watch = Watch { limit: DEFAULT_TIMEOUT, running: None };
        let calls = Arc::new(Self {
            rank: world.rank() as usize,
            size: world.size() as usize,
            check: AtomicBool::new(false),
            one: Mutex::new(()),
            watch: Mutex::new(watch),
        });
        let watched = Arc::downgrade(&calls);
        thread::spawn(move || watch_over(&watched));
        calls
    }

    pub(crate) fn set_timeout(&self, limit: Duration) {
        self.watch().limit = limit;
    }

    pub(crate) fn set_check(&self, on: bool) {
        self.check.store(on, Ordering::Relaxed);
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call<R>(&self, call: Call, f: impl FnOnce(&SimpleCommunicator) -> R) -> Result<R> {
        let _one = self.one.lock().unwrap_or_else(PoisonError::into_inner);
        self.watch().running = Some((call, Instant::now()));
        let world = SimpleCommunicator::world();
        let checked = match self.check.load(Ordering::Relaxed) {
            true => self.compare(&world, call),
            false => Ok(()),
        };
        let result = checked.map(|()| f(&world));
        self.watch().running = None;
        result
    }

    fn compare(&self, world: &SimpleCommunicator, call: Call) -> Result<()> {
        let mut all = vec![0; 3 * self.size];
        world.all_gather_into(&call.to_numbers()[..], &mut all[..]);
        let mut all = all.chunks_exact(3).map(Call::from_numbers).enumerate();
        let Some((_, expected)) = all.next() else { return Ok(()) };
        match all.find(|(_, found)| *found != expected) {
            Some((rank, found)) => Err(Error::Calls { expected, rank, found }),
            None => Ok(()),
        }
    }

    pub(crate) fn barrier(&self, kind: Kind) -> Result<()> {
        self.call(Call::new(kind, 0), |world| world.barrier())
    }

    /// Replaces numbers by their sums over the ranks. `spare` is memory that may be used again.
    pub(crate) fn sum<T: Number>(
        &self,
        call: Call,
        numbers: &mut [T],
        spare: &mut Vec<T>,
    ) -> Result<()> {
        self.reduce(call, numbers, spare, SystemOperation::sum)
    }

    pub(crate) fn max(&self, call: Call, numbers: &mut [i64]) -> Result<()> {
        self.reduce(call, numbers, &mut Vec::new(), SystemOperation::max)
    }

    fn reduce<T: Number>(
        &self,
        call: Call,
        numbers: &mut [T],
        spare: &mut Vec<T>,
        operation: fn() -> SystemOperation,
    ) -> Result<()> {
        let most = MAX_MESSAGE / size_of::<T>();
        if self.size == 1 && !self.check.load(Ordering::Relaxed) {
            return Ok(());
        }
        spare.resize(most.min(numbers.len()), T::default());
        self.call(call, |world| {
            for part in numbers.chunks_mut(most) {
                let sums = &mut spare[..part.len()];
                world.all_reduce_into(&part[..], sums, operation());
                part.copy_from_slice(sums);
            }
        })
    }

    pub(crate) fn broadcast<T: Number>(
        &self,
        kind: Kind,
        numbers: &mut [T],
        root: usize,
    ) -> Result<()> {
        self.call(Call::new(kind, numbers.len()), |world| {
            let root = world.process_at_rank(root as i32);
            for part in numbers.chunks_mut(MAX_MESSAGE / size_of::<T>()) {
                root.broadcast_into(part);
            }
        })
    }

    /// Replaces a text by that of `root`.
    pub(crate) fn broadcast_text(&self, kind: Kind, text: &mut String, root: usize) -> Result<()> {
        let mut len = [text.len() as i64];
        self.broadcast(kind, &mut len, root)?;
        let mut bytes = std::mem::take(text).into_bytes();
        bytes.resize(len[0] as usize, 0);
        self.broadcast(kind, &mut bytes, root)?;
        *text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(())
    }

    /// The numbers of all ranks one after the other, of which rank `i` has `counts[i]`.
    pub(crate) fn all_gather<T: Number>(
        &self,
        kind: Kind,
        numbers: &[T],
        counts: &[usize],
    ) -> Result<Vec<T>> {
        let total: usize = counts.iter().sum();
        if i32::try_from(total).is_err() {
            return Err(Error::Argument {
                op: "all_gather",
                parameter: "rows",
                expected: "less than 2^31 elements on all ranks".into(),
                found: total.to_string(),
            });
        }
        let counts: Vec<i32> = counts.iter().map(|&count| count as i32).collect();
        let starts: Vec<i32> = counts
            .iter()
            .scan(0, |next, count| Some(std::mem::replace(next, *next + count)))
            .collect();
        self.call(Call::new(kind, total), |world| {
            let mut all = vec![T::default(); total];
            let mut parts = PartitionMut::new(&mut all[..], counts, starts);
            world.all_gather_varcount_into(numbers, &mut parts);
            all
        })
    }

    /// Prints a reason, and ends the processes of all ranks.
    pub(crate) fn abort(&self, why: &str) -> ! {
        eprintln!("autograd-mpi: rank {} of {}: {why}; the job ends", self.rank, self.size);
        // The launcher forwards the line before it hears of the end.
        thread::sleep(Duration::from_millis(100));
        for _ in 0..20 {
            match self.one.try_lock() {
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
                _ => SimpleCommunicator::world().abort(1),
            }
        }
        // Another thread is inside a call and will not come back: the launcher ends the other ranks.
        std::process::abort()
    }
}

/// Ends the process if a call takes longer than the limit.
fn watch_over(calls: &Weak<Calls>) {
    while let Some(calls) = calls.upgrade() {
        let Watch { limit, running } = *calls.watch();
        if let Some((call, since)) = running
            && since.elapsed() > limit
        {
            eprintln!(
                "autograd-mpi: rank {} of {}: no answer within {limit:?} where it {call}: another \
                 rank has ended, makes another call or takes longer, or the network is down; the \
                 job ends",
                calls.rank, calls.size
            );
            thread::sleep(Duration::from_millis(100));
            std::process::abort();
        }
        drop(calls);
        thread::sleep((limit / 8).clamp(Duration::from_millis(5), Duration::from_millis(250)));
    }
}

/// What MPI can send.
pub(crate) trait Number: Equivalence + Copy + Default {}

impl<T: Equivalence + Copy + Default> Number for T {}
