//! Jobs of several ranks. Without the variable `AUTOGRAD_MPI_JOB` this program is the test: it starts itself by
//! `mpirun`, each time under `timeout -k`, and looks at what the ranks print and how they end. With the variable it
//! is a rank that does what the variable says.

#![allow(unreachable_pub, reason = "in a program, `pub` is what a module offers to the others")]

mod driver;
mod faults;
#[path = "../hosts/mod.rs"]
mod hosts;
mod models;
mod network;
mod training;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::var("AUTOGRAD_MPI_JOB") {
        Err(_) => driver::run_all(),
        Ok(job) => {
            let job: Vec<&str> = job.split(' ').collect();
            let known = training::run(&job)
                .or_else(|| models::run(&job))
                .or_else(|| world::run(&job))
                .or_else(|| faults::run(&job));
            match known {
                Some(Ok(())) => ExitCode::SUCCESS,
                Some(Err(error)) => panic!("{error}"),
                None => panic!("no such job: {job:?}"),
            }
        }
    }
}
