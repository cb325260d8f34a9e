//! Memory in use, counted by the allocator, of a process for each test.
//!
//! A separate binary, because of its allocator.

mod deferred;
mod eager;
mod long_run;
mod measured;
mod programs;
