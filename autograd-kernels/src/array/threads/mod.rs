//! Threads for large pieces of work. Sums cut work into parts whose bounds depend on the work
//! alone; other results do not depend on the bounds ([`each_grain`]). So numbers do not depend on
//! the number of threads. Threads start with the first piece of work that is large enough, sleep
//! while there is none, and take parts one by one. The owner takes parts too, so work finishes even
//! if no thread is free.

mod count;
mod job;
mod sync;
mod workers;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub use count::{num_threads, set_num_threads, with_num_threads};
use job::Job;
use sync::{AtomicUsize, Condvar, Mutex, locked};
use workers::{CachePadded, Jobs, Workers};

/// The remaining work must take this long for another thread to be woken: waking takes 10 to 50 µs.
const MIN_TIME: Duration = Duration::from_micros(80);
/// The same limit if a thread is awake.
const MIN_TIME_AWAKE: Duration = Duration::from_nanos(1500);
/// This many elements are worth sharing with a thread that is awake, whatever is done to them.
const MIN_SHARED: usize = 20 * 1024;
/// The least and the most elements that a thread takes at once of a pass over memory.
const GRAIN: [usize; 2] = [2 * 1024, 64 * 1024];

/// Runs a closure during which worker threads do not sleep.
pub fn with_threads_awake<R>(f: impl FnOnce() -> R) -> R {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            WORKERS.change(0, |jobs| jobs.scopes -= 1);
        }
    }
    let others = num_threads() - 1;
    let _end = (others > 0).then(|| {
        start(others);
        WORKERS.change(others, |jobs| jobs.scopes += 1);
        End
    });
    f()
}

/// Does `work` for each part, on more threads if the parts after the first one take long enough, or from
/// the start if all parts together have enough `elements`.
pub fn each_of(elements: usize, parts: usize, work: &(dyn Fn(usize) + Sync)) {
    if parts > 1 && enough(elements) && num_threads() > 1 {
        return share(parts, work);
    }
    let start = (parts > 2).then(Instant::now);
    for part in 0..parts {
        work(part);
        // The first part predicts how long the others take.
        if let (0, Some(start)) = (part, start)
            && worth(start.elapsed() * (parts - 1) as u32)
        {
            return share(parts - 1, &|part| work(part + 1));
        }
    }
}

/// Whether work that takes `left` on one thread is worth a second one.
pub fn worth(left: Duration) -> bool {
    // A small program does not query the number of threads, which takes longer than its work.
    (left >= MIN_TIME || left >= MIN_TIME_AWAKE && WORKERS.are_awake()) && num_threads() > 1
}

fn enough(elements: usize) -> bool {
    elements >= MIN_SHARED && WORKERS.are_awake()
}

/// Does `work` for each part of a slice, of `size` elements, on as many threads as pay.
pub fn each_chunk<T: Send>(data: &mut [T], size: usize, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
    each_chunk_of(0, data, size, work);
}

/// [`each_chunk`] that reads so many `elements` in total, as in [`each_of`].
pub fn each_chunk_of<T: Send>(
    elements: usize,
    data: &mut [T],
    size: usize,
    work: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    chunks_of(elements, [data], size, &|chunk, [part]| work(chunk, part));
}

/// As [`each_chunk_of`], for several slices of one length.
fn chunks_of<T: Send, const N: usize>(
    elements: usize,
    mut slices: [&mut [T]; N],
    size: usize,
    work: &(dyn Fn(usize, [&mut [T]; N]) + Sync),
) {
    match slices[0].len() {
        0 => {}
        len if len <= size => work(0, slices),
        len => {
            let mut parts = Vec::new();
            for _ in 0..len.div_ceil(size) {
                let mut part: [&mut [T]; N] = std::array::from_fn(|_| Default::default());
                for (part, rest) in part.iter_mut().zip(&mut slices) {
                    *part = rest.split_off_mut(..size.min(rest.len())).unwrap_or_default();
                }
                parts.push(Mutex::new(Some(part)));
            }
            each_of(elements, parts.len(), &|at| {
                if let Some(part) = locked(&parts[at]).take() {
                    work(at, part);
                }
            });
        }
    }
}

/// How many of `elements` a thread should take at once, if the work on `light` elements takes as long as
/// a pass over one: all, if another thread does not pay.
pub fn grain(elements: usize, light: usize) -> usize {
    let [least, most] = GRAIN;
    if elements <= least {
        // Never divided, whatever the number of threads, so a small program need not query it.
        return most;
    }
    match num_threads() {
        1 => elements,
        threads if enough(elements / light) => {
            (elements / (2 * threads)).next_multiple_of(64).clamp(least, most)
        }
        _ => most,
    }
}

/// Does `work` for each grain of a slice, on as many threads as pay; the closure gets the start of the
/// grain. The length of a grain varies, so what is written must not depend on where one begins.
pub fn each_grain<T: Send>(data: &mut [T], work: &(dyn Fn(usize, &mut [T]) + Sync)) {
    each_grain_of([data], &|start, [part]| work(start, part));
}

/// [`each_grain`] of several slices of one length.
pub fn each_grain_of<T: Send, const N: usize>(
    slices: [&mut [T]; N],
    work: &(dyn Fn(usize, [&mut [T]; N]) + Sync),
) {
    let len = slices[0].len();
    let size = grain(len, 1);
    chunks_of(len, slices, size, &|part, slices| work(part * size, slices));
}

/// Does `work` for each part on all threads; a panic is propagated when no thread is in it.
pub fn share(parts: usize, work: &(dyn Fn(usize) + Sync)) {
    let threads = num_threads().min(parts);
    if threads < 2 {
        return (0..parts).for_each(work);
    }
    #[cfg(any(test, feature = "testing"))]
    let level = super::simd::forced_level();
    #[cfg(any(test, feature = "testing"))]
    let work: &(dyn Fn(usize) + Sync) = &|part| match level {
        // Uses the instruction set that the caller forces.
        Some(level) => super::simd::with_level(level, || work(part)),
        None => work(part),
    };
    start(threads - 1);
    WORKERS.run(&Job::new(parts, work), threads - 1);
}

static WORKERS: Workers = Workers {
    jobs: Mutex::new(Jobs { waiting: VecDeque::new(), scopes: 0, asleep: 0 }),
    waiting: CachePadded(AtomicUsize::new(0)),
    idle: CachePadded(AtomicUsize::new(0)),
    more: Condvar::new(),
};

/// Starts threads, which run forever, until there are `threads` or another one cannot be started: without
/// them the caller does all the work.
fn start(threads: usize) {
    static STARTED: Mutex<usize> = Mutex::new(0);
    // A part that itself has large work does it on its own thread.
    let work = || with_num_threads(1, || WORKERS.work());
    let mut started = locked(&STARTED);
    while *started < threads
        && std::thread::Builder::new().name("autograd".into()).spawn(work).is_ok()
    {
        *started += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::atomic::Ordering;

    use super::*;

    fn wake() {
        while !WORKERS.are_awake() {
            with_num_threads(2, || share(2, &|_| {}));
        }
    }

    /// Waits for other threads, however busy the machine is.
    fn wait_until(done: impl Fn() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(120), "other threads do nothing");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn sum_of(parts: usize, threads: usize) -> usize {
        let sum = AtomicUsize::new(0);
        with_num_threads(threads, || {
            share(parts, &|part| {
                sum.fetch_add(part + 1, Ordering::Relaxed);
            });
        });
        sum.into_inner()
    }

    #[test]
    fn grains_are_all_of_the_slices_once() {
        for threads in [1, 2, 3, 8] {
            for len in [0, 1, MIN_SHARED - 1, MIN_SHARED, 33_000, 100_003, 1_000_003].repeat(2) {
                if threads == 8 {
                    wake();
                }
                let (mut places, mut counts) = (vec![0; len], vec![0; len]);
                with_num_threads(threads, || {
                    each_grain_of([&mut places, &mut counts], &|start, [places, counts]| {
                        assert_eq!(places.len(), counts.len());
                        for (i, (place, count)) in places.iter_mut().zip(counts).enumerate() {
                            *place = start + i;
                            *count += 1;
                        }
                    });
                });
                assert!(places.into_iter().eq(0..len), "{len} on {threads}");
                assert!(counts.into_iter().all(|count| count == 1), "{len} on {threads}");
            }
        }
    }

    #[test]
    fn the_caller_has_the_first_parts_and_others_the_last_ones() {
        let caller = std::thread::current().id();
        let by = Mutex::new(vec![None; 40]);
        with_num_threads(3, || {
            share(40, &|part| {
                let is_caller = std::thread::current().id() == caller;
                // Others take no further part before the caller has taken one.
                wait_until(|| is_caller || locked(&by)[0].is_some());
                std::thread::sleep(Duration::from_millis(1));
                locked(&by)[part] = Some(is_caller);
            });
        });
        let by: Option<Vec<bool>> = locked(&by).iter().copied().collect();
        let by = by.expect("all parts are done");
        assert!(by.is_sorted_by(|before, after| before >= after), "{by:?}");
        assert!(by[0], "the caller waits until another has done all");
    }

    #[test]
    fn long_work_is_shared() {
        let on = Mutex::new(std::collections::HashSet::new());
        let note = || {
            locked(&on).insert(std::thread::current().id());
        };
        with_num_threads(4, || {
            each_of(0, 8, &|part| {
                std::thread::sleep(Duration::from_millis(5));
                note();
                // The first part, which shows how long the others take, is not shared.
                wait_until(|| part == 0 || locked(&on).len() > 1);
            });
        });
        assert!(locked(&on).len() > 1);
    }

    #[test]
    fn a_panic_is_carried_over_and_the_threads_go_on() {
        for _ in 0..20 {
            let outcome = catch_unwind(|| {
                with_num_threads(4, || share(100, &|part| assert!(part != 50, "part 50")));
            });
            let message = outcome.expect_err("a part panics");
            assert_eq!(message.downcast_ref::<&str>(), Some(&"part 50"));
            assert_eq!(sum_of(100, 4), 5050);
        }
    }

    #[test]
    fn threads_stay_awake_in_a_scope_and_sleep_behind_it() {
        let is_awake = |awake: bool| wait_until(|| WORKERS.are_awake() == awake);
        with_num_threads(2, || {
            with_threads_awake(|| {
                is_awake(true);
                with_threads_awake(|| ());
                std::thread::sleep(20 * sync::POLL_TIME);
                is_awake(true);
            });
            let outcome = catch_unwind(|| with_threads_awake(|| panic!("on purpose")));
            assert!(outcome.is_err());
        });
        assert_eq!(locked(&WORKERS.jobs).scopes, 0);
        with_num_threads(1, || {
            with_threads_awake(|| assert_eq!(locked(&WORKERS.jobs).scopes, 0));
        });
        is_awake(false);
    }

    #[test]
    fn work_inside_work_and_from_many_threads() {
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let sum = AtomicUsize::new(0);
                        with_num_threads(3, || {
                            share(10, &|_| {
                                sum.fetch_add(sum_of(20, 3), Ordering::Relaxed);
                            });
                        });
                        assert_eq!(sum.into_inner(), 10 * 210);
                    }
                });
            }
        });
    }
}
