//! Code that draws from the process-wide generator and must draw the same numbers again: seeds, its state,
//! checkpoints, programs.
//!
//! A separate binary: a test of another file that drew at the same time would change the numbers.

mod checkpoint;
mod programs;
mod resume;
mod seeds;
mod state;
mod threads;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by each test that draws.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seeded(seed: u64) -> MutexGuard<'static, ()> {
    let turn = turn();
    autograd_core::seed(seed);
    turn
}
