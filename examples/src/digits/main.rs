//! Learns to read handwritten digits with ops whose gradients are hand-written.
//!
//! `cargo run --release -p examples`, with `-- --help` for the options. Start reading at [`ops`]:
//! three ops written with `#[py_layer]`. [`model`] combines them, [`train`] runs them.

#![allow(unreachable_pub, reason = "in a program, `pub` is what a module offers to the others")]

mod args;
mod data;
mod failure;
mod model;
mod ops;
mod picture;
mod progress;
mod report;
mod train;

use std::io::{Write, stdout};
use std::process::ExitCode;

use args::{Args, Command};
use data::Digits;
use failure::Failure;
use model::Mlp;
use progress::Progress;

fn main() -> ExitCode {
    run().map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

fn run() -> Result<(), Failure> {
    match args::parse(std::env::args_os())? {
        Command::Help => Ok(stdout().write_all(args::HELP.as_bytes())?),
        Command::Learn(args) => learn(&args),
    }
}

fn learn(args: &Args) -> Result<(), Failure> {
    args::check_writable("picture", &args.out)?;
    if let Some(path) = &args.save {
        args::check_writable("model", path)?;
    }
    let digits = Digits::load(args.data.as_deref())?;
    let (lessons, exam) = digits.hold_back_every(5);

    autograd_core::seed(args.seed);
    let model = Mlp::new(&[data::PIXELS, 128, 128, data::CLASSES]);

    report::opening(&mut stdout(), args, &model, &lessons, &exam)?;
    let outcome = train::learn(&model, &lessons, &exam, args, &mut Progress::start(args)?)?;
    report::closing(&mut stdout(), &model, &outcome)?;

    picture::draw(&args.out, &exam, &outcome)?;
    if let Some(path) = &args.save {
        report::written(&mut stdout(), "model", path)?;
    }
    report::written(&mut stdout(), "picture", &args.out)
}
