//! Jobs on two hosts, where root may make them.

use std::env::current_exe;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::driver::{Job, Outcome, Test, check};
use crate::hosts::Hosts;

pub const TESTS: &[Test] =
    &[("two hosts: equal bits", bits_are_equal), ("fault: a cut link", cut_link)];

const SKIPPED: &str = "skipped: network namespaces cannot be made here";

fn command(hosts: &Hosts, job: &str) -> Command {
    let program = current_exe().unwrap_or_else(|error| panic!("{error}"));
    let mut command = hosts.command(40, &program);
    command.env("AUTOGRAD_MPI_JOB", job).env("AUTOGRAD_MPI_THREADS", "1");
    command
}

fn bits_are_equal() -> Outcome {
    let hosts = Hosts::new().ok_or(SKIPPED)?;
    let output = command(&hosts, "models exact").output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found: Vec<&str> = text.lines().collect();
    let expected = Job::new(1, "models exact").lines()?;
    check(found == expected, || {
        format!(
            "{} and {} lines\n{}",
            found.len(),
            expected.len(),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

fn cut_link() -> Outcome {
    let hosts = Hosts::new().ok_or(SKIPPED)?;
    let mut command = command(&hosts, "fault cut");
    let job = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut job = job.map_err(|error| error.to_string())?;
    let mut lines = BufReader::new(job.stdout.take().ok_or("no output")?).lines();
    let started = lines.by_ref().map_while(Result::ok).any(|line| line.contains("step 2"));
    check(started, || "the job has not started".into())?;
    hosts.cut().ok_or("the link cannot be cut")?;
    let cut = Instant::now();
    // The rank has ended; `mpirun` may wait for the other host.
    let mut errors = job.stderr.take().ok_or("no errors")?;
    let reader = std::thread::spawn(move || {
        let (mut text, mut part) = (String::new(), [0; 1000]);
        while let Ok(n @ 1..) = errors.read(&mut part) {
            text += &String::from_utf8_lossy(&part[..n]);
            if text.contains("the job ends") {
                break;
            }
        }
        text
    });
    let text = reader.join().map_err(|_| "the reader panicked")?;
    let took = cut.elapsed();
    // `timeout` ends it, by force a second later.
    let ended = Command::new("kill").arg(job.id().to_string()).status();
    check(ended.is_ok_and(|status| status.success()), || "kill".into())?;
    let status = job.wait().map_err(|error| error.to_string())?;
    // A step has two calls, and the cut comes before either.
    let names = ["sums gradients in backward", "ends a backward"];
    let expected = names.map(|call| format!("rank 0 of 2: no answer within 2s where it {call}"));
    check(expected.iter().any(|line| text.contains(line)), || text.clone())?;
    check(took < Duration::from_secs(10), || format!("it took {took:?}"))?;
    check(!status.success(), || "the job was successful".into())
}
