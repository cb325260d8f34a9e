//! What is held in memory: counted by the allocator, of a test that runs alone.
//!
//! A binary of its own, because its allocator counts all threads.

mod deferred;
mod eager;
mod long_run;
mod measured;
mod programs;
