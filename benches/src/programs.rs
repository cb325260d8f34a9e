//! W10 and W12: small programs as users write them, with one custom op each. Measures the time to build
//! them, and the time from their start to the first gradient.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime};

use crate::figures::{self, Figure, Peers};
use crate::peers::{Peer, folder, on_cores, python, target};
use crate::rows::Row;

pub fn is(row: &str) -> bool {
    row.starts_with("W10") || row == "W12"
}

/// The peer's program: a package, or `None` for a script that does the work once.
fn package(peer: &Peer) -> Option<&'static str> {
    match peer.name {
        "ours" => Some("program-ours"),
        "candle" => Some("program-candle"),
        "burn-flex" => Some("program-burn"),
        "dfdx" => Some("program-dfdx"),
        _ => None,
    }
}

fn script(peer: &Peer) -> Option<&'static str> {
    match peer.name {
        "torch" => Some("torch_peer.py"),
        "paddle" => Some("paddle_peer.py"),
        "jax" => Some("jax_peer.py"),
        _ => None,
    }
}

pub fn row(row: &Row, peers: &[&Peer]) -> Peers {
    if row.name == "W12" {
        return starts(peers);
    }
    let figure = |peer: &Peer| match (package(peer), row.name) {
        (Some(package), "W10-cold") => Some(once(cold(package))),
        (Some(package), "W10-crates") => Some(once(crates(package))),
        (Some(package), "W10-again") => Some(again(package)),
        (Some(package), "W10-binary") => Some(once(size(package))),
        _ => None,
    };
    let all = peers.iter().filter_map(|peer| Some((peer.name.to_owned(), Some(figure(peer)?))));
    all.collect()
}

fn once(value: f64) -> Figure {
    figures::of(vec![value])
}

fn builds(package: &str) -> PathBuf {
    target().join("programs").join(package)
}

fn binary(package: &str) -> PathBuf {
    builds(package).join("release").join(package)
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder()).args(arguments);
    command
}

/// Builds the package; returns the seconds.
fn build(package: &str) -> f64 {
    let mut command = cargo(&["build", "--release", "--offline", "--package", package]);
    command.arg("--target-dir").arg(builds(package));
    let start = Instant::now();
    let output = command.output().expect("cargo runs");
    let seconds = start.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{package} does not compile:\n{text}");
    seconds
}

/// The number of packages that are compiled for the program, including itself.
fn crates(package: &str) -> f64 {
    let mut command = cargo(&["tree", "--offline", "--edges", "normal,build", "--prefix", "none"]);
    let output = command.args(["--package", package]).output().expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().map(|line| line.trim_end_matches(" (*)"));
    names.collect::<std::collections::BTreeSet<_>>().len() as f64
}

fn built(package: &str) {
    build(package);
}

fn cold(package: &str) -> f64 {
    // It does not exist before the first build.
    let _ = std::fs::remove_dir_all(builds(package));
    build(package)
}

fn again(package: &str) -> Figure {
    built(package);
    let name = package.trim_start_matches("program-");
    let source = folder().join("programs").join(name).join("src/main.rs");
    let times = (0..5).map(|_| {
        let file =
            std::fs::File::options().append(true).open(&source).expect("the program is there");
        file.set_modified(SystemTime::now()).expect("it is a file of ours");
        build(package)
    });
    figures::of(times.collect())
}

fn size(package: &str) -> f64 {
    built(package);
    std::fs::metadata(binary(package)).expect("it was built").len() as f64
}

/// Measures the time from the start of each program to its first gradient, in rounds over all programs.
fn starts(peers: &[&Peer]) -> Peers {
    let command = |peer: &Peer| match package(peer) {
        Some(package) => Some(on_cores(1, &binary(package))),
        None => script(peer).map(|script| {
            let mut command = on_cores(1, &python());
            command.arg(folder().join("peers").join(script)).arg("first");
            command
        }),
    };
    let peers = peers.iter().copied().filter(|peer| command(peer).is_some());
    let mut times: Vec<(&Peer, Vec<f64>)> = peers.map(|peer| (peer, Vec::new())).collect();
    times.iter().filter_map(|(peer, _)| package(peer)).for_each(built);
    // The first round is not counted: it reads files that are cached afterwards.
    for round in 0..=40 {
        for (peer, times) in &mut times {
            let Some(command) = command(peer) else { continue };
            // A start of a script takes seconds, so three are enough.
            if round <= 3 || package(peer).is_some() {
                let time = start(command);
                times.extend((round > 0).then_some(time));
            }
        }
    }
    times
        .into_iter()
        .map(|(peer, times)| (peer.name.to_owned(), Some(figures::of(times))))
        .collect()
}

/// Runs the command; returns the seconds until it has ended.
fn start(mut command: Command) -> f64 {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().expect("the program starts");
    assert!(status.success(), "the program fails");
    start.elapsed().as_secs_f64()
}
