//! Starts jobs and compares what they print.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::{faults, models, network, training, world};

/// Runs all tests whose names contain the argument, if there is one.
pub fn run_all() -> ExitCode {
    if Command::new("mpirun").arg("--version").output().is_err() {
        println!("skipped: there is no `mpirun`");
        return ExitCode::SUCCESS;
    }
    let filter = env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let tests = [training::TESTS, models::TESTS, world::TESTS, faults::TESTS, network::TESTS];
    let mut failed = 0;
    for (name, test) in tests.concat().into_iter().filter(|(name, _)| name.contains(&filter)) {
        let start = Instant::now();
        let outcome = match test() {
            Ok(()) => "ok".to_owned(),
            Err(why) if why.starts_with("skipped") => why,
            Err(why) => {
                failed += 1;
                format!("FAILED\n{why}")
            }
        };
        println!("{name} ... {outcome} ({:.1} s)", start.elapsed().as_secs_f64());
    }
    match failed {
        0 => ExitCode::SUCCESS,
        n => {
            println!("{n} failed");
            ExitCode::FAILURE
        }
    }
}

/// A test by its name; an error is the reason of a failure, or begins with `skipped`.
pub type Test = (&'static str, fn() -> Outcome);

pub type Outcome<T = ()> = Result<T, String>;

/// The number of seconds after which a job is ended from outside.
const LIMIT: u64 = 120;

/// A job: what each rank does, and on how many.
pub struct Job {
    ranks: usize,
    job: String,
    threads: usize,
}

/// What a job has printed, and how it ended.
pub struct Ended {
    pub success: bool,
    pub text: String,
    pub took: Duration,
}

impl Job {
    pub fn new(ranks: usize, job: impl Into<String>) -> Self {
        Self { ranks, job: job.into(), threads: 1 }
    }

    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    pub fn run(self) -> Ended {
        let start = Instant::now();
        let output = self.command().output();
        let Output { status, stdout, stderr } = output.unwrap_or_else(|e| panic!("timeout: {e}"));
        let text =
            [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        Ended { success: status.success(), text, took: start.elapsed() }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-k", "2", &LIMIT.to_string(), "mpirun"]).args(launch(self.ranks));
        command.arg(env::current_exe().unwrap_or_else(|e| panic!("{e}")));
        command.env("AUTOGRAD_MPI_JOB", &self.job);
        command.env("AUTOGRAD_MPI_THREADS", self.threads.to_string());
        command
    }

    /// The lines that the ranks have printed, if the job was successful.
    pub fn lines(self) -> Outcome<Vec<String>> {
        let (ranks, job) = (self.ranks, self.job.clone());
        let Ended { success, text, .. } = self.run();
        match success {
            true => Ok(text.lines().map(str::to_owned).collect()),
            false => Err(format!("`{job}` on {ranks} ranks failed:\n{text}")),
        }
    }
}

/// The arguments of `mpirun` before the program.
pub fn launch(ranks: usize) -> Vec<String> {
    let version = Command::new("mpirun").arg("--version").output();
    let is_open = version.is_ok_and(|v| String::from_utf8_lossy(&v.stdout).contains("Open MPI"));
    let mut arguments = vec!["-n".to_owned(), ranks.to_string()];
    if is_open {
        // As root, with more ranks than cores, and in containers that forbid reading another process's memory.
        let open = "--allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
                    --mca btl_vader_single_copy_mechanism none";
        arguments.extend(open.split_whitespace().map(str::to_owned));
    }
    arguments
}

/// What an example prints on so many ranks.
pub fn example(ranks: usize, name: &str, argument: &str) -> Outcome<String> {
    let own = env::current_exe().unwrap_or_else(|error| panic!("{error}"));
    let built = own.ancestors().nth(2).unwrap_or(&own).join("examples").join(name);
    let mut command = Command::new("timeout");
    command.args(["-k", "2", &LIMIT.to_string(), "mpirun"]).args(launch(ranks)).arg(built);
    let output = command.arg(argument).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    check(output.status.success(), || {
        format!("{name}: {text}{}", String::from_utf8_lossy(&output.stderr))
    })?;
    Ok(text)
}

/// The thread count of a rank.
pub fn set_threads() {
    let threads = env::var("AUTOGRAD_MPI_THREADS").ok().and_then(|n| n.parse().ok());
    autograd_core::set_num_threads(threads.unwrap_or(1));
}

/// An empty folder of this test.
pub fn folder(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("autograd-mpi-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    folder
}

/// The names in a folder.
pub fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

pub fn check(holds: bool, why: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(why()) }
}
