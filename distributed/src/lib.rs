//! Data-parallel training for [`autograd_core`] over MPI.
//!
//! Each process of a job, a rank, has a copy of the model and differentiates the loss of its part of each batch;
//! [`DataParallel`] makes the gradients those of the whole batch. See there for a whole program, and
//! `docs/distributed.md` for settings and pitfalls.
//!
//! | to | see |
//! |---|---|
//! | start, and end all ranks after an error on one | [`World::init`], [`World::run`] |
//! | train | [`DataParallel::step`], or [`DataParallel::backward`] and [`DataParallel::accumulate`] |
//! | get the same bits on any number of ranks | [`DataParallel::reproducible`] |
//! | divide the rows of an epoch | [`Shards`], [`DataParallel::epoch`] |
//! | compute metrics over all ranks | [`World::mean`], [`World::sum`], [`World::all_gather`] |
//! | let one rank write, and all know if that failed | [`World::on_root`], [`World::agree`] |
//! | find a rank that went astray | [`World::check_calls`], [`World::timeout`], [`DataParallel::check_in_step`] |

#![forbid(unsafe_code)]

mod buckets;
mod call;
mod error;
mod exact;
mod exact_step;
mod parallel;
mod reducer;
mod shards;
mod step;
mod world;

pub use call::Call;
pub use error::{Error, Result};
pub use parallel::{DataParallel, Report};
pub use shards::Shards;
pub use world::World;
