//! Memory in use, counted by the allocator, for one test at a time.
//!
//! A separate binary, because its allocator counts all threads.

mod deferred;
mod eager;
mod long_run;
mod measured;
mod programs;
