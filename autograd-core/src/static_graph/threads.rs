//! Work that does not depend on each other, on threads.

use std::panic::resume_unwind;

use crate::graph::GradMode;

/// About as many multiplications as are worth a thread.
const HEAVY: usize = 1 << 20;

/// Does all of it, what is heavy on up to so many threads; results come in the order of the work.
/// `weigh` says about how many multiplications each takes.
pub(super) fn each<W: Send, R: Send>(
    work: Vec<W>,
    threads: usize,
    weigh: impl Fn(&W) -> usize,
    run: impl Fn(W) -> R + Sync,
) -> Vec<R> {
    let is_heavy = |work: &W| weigh(work) >= HEAVY;
    if threads < 2 || work.iter().filter(|work| is_heavy(work)).count() < 2 {
        return work.into_iter().map(run).collect();
    }
    let mut lots: Vec<Vec<(usize, W)>> = (0..threads).map(|_| Vec::new()).collect();
    let mut next = 0;
    for (at, work) in work.into_iter().enumerate() {
        // What is light, and user code, stays on this thread.
        let heavy = is_heavy(&work);
        lots[if heavy { next % threads } else { 0 }].push((at, work));
        next += usize::from(heavy);
    }
    let run = |lot: Vec<(usize, W)>| -> Vec<(usize, R)> {
        GradMode::of(false, || lot.into_iter().map(|(at, work)| (at, run(work))).collect())
    };
    let mut lots = lots.into_iter();
    let own = lots.next().unwrap_or_default();
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let run = &run;
        let others: Vec<_> = lots.map(|lot| scope.spawn(move || run(lot))).collect();
        let mut done = run(own);
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, done)| done).collect()
}
