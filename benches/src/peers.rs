//! The libraries that are measured, and their processes.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

pub struct Peer {
    /// The name for `--peers`.
    pub name: &'static str,
    pub title: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A package, and the argument of its process.
    Rust(&'static str, Option<&'static str>),
    /// A script of `peers/`, its argument, and whether MKL is made to treat the processor as one of
    /// Intel.
    Python(&'static str, Option<&'static str>, bool),
}

use Kind::{Python, Rust};

/// The first is the reference for the others.
pub const PEERS: &[Peer] = &[
    Peer { name: "ours", title: "autograd-core", kind: Rust("ours", None) },
    Peer { name: "limit", title: "limit", kind: Rust("hand", Some("limit")) },
    Peer { name: "prototype", title: "prototype", kind: Rust("hand", Some("prototype")) },
    Peer { name: "ndarray", title: "ndarray by hand", kind: Rust("hand", Some("ndarray")) },
    Peer { name: "candle", title: "candle", kind: Rust("candle", None) },
    Peer { name: "dfdx", title: "dfdx", kind: Rust("dfdx", None) },
    Peer { name: "burn-flex", title: "burn flex", kind: Rust("burn", Some("flex")) },
    Peer { name: "burn-ndarray", title: "burn ndarray", kind: Rust("burn", Some("ndarray")) },
    Peer { name: "torch", title: "PyTorch", kind: Python("torch_peer.py", None, false) },
    Peer {
        name: "torch-intel",
        title: "PyTorch, MKL AVX-512",
        kind: Python("torch_peer.py", None, true),
    },
    Peer { name: "paddle", title: "Paddle", kind: Python("paddle_peer.py", None, false) },
    Peer {
        name: "paddle-static",
        title: "Paddle static",
        kind: Python("paddle_peer.py", Some("static"), false),
    },
    Peer { name: "jax", title: "jax jit", kind: Python("jax_peer.py", None, false) },
];

impl Peer {
    /// Whether the peer may have this row: the MKL setting matters only for matrix products.
    pub fn has(&self, row: &str) -> bool {
        match self.name {
            "torch-intel" => row.starts_with("W5") || row == "W6",
            "paddle" => !row.starts_with("W11"),
            "paddle-static" => row.starts_with("W11"),
            _ => true,
        }
    }

    /// Builds a Rust peer if wanted. Returns whether it is available on this machine.
    pub fn prepare(&self, wanted: bool) -> bool {
        match self.kind {
            Rust(package, _) if wanted => build(&format!("peer-{package}")),
            Rust(package, _) => binary(&format!("peer-{package}")).exists(),
            Python(_, _, intel) => python().exists() && (!intel || intel_library().is_some()),
        }
    }

    /// The program of a Rust peer, and its argument.
    pub fn program(&self) -> Option<(PathBuf, Option<&'static str>)> {
        match self.kind {
            Rust(package, argument) => Some((binary(&format!("peer-{package}")), argument)),
            Python(..) => None,
        }
    }

    /// The command that runs the peer's process with `threads` threads.
    fn command(&self, threads: usize) -> Command {
        let (program, script, argument) = match self.kind {
            Rust(package, argument) => (binary(&format!("peer-{package}")), None, argument),
            Python(script, argument, _) => {
                (python(), Some(folder().join("peers").join(script)), argument)
            }
        };
        let mut command = on_cores(threads, &program);
        command.args(script).args(argument);
        if matches!(self.kind, Python(_, _, true)) {
            command.env("LD_PRELOAD", intel_library().expect("it was prepared"));
        }
        command
    }
}

/// The limit of vector instructions that `--isa` sets.
pub static ISA: OnceLock<String> = OnceLock::new();

/// The variables by which a library is limited. Peers without one are not affected: candle, dfdx and burn use
/// AVX2 at most, `limit` uses AVX-512.
fn isa_variables() -> impl Iterator<Item = (&'static str, String)> {
    ISA.get().into_iter().flat_map(|isa| {
        [
            ("AUTOGRAD_ISA", isa.clone()),
            ("ATEN_CPU_CAPABILITY", isa.clone()),
            ("MKL_ENABLE_INSTRUCTIONS", isa.to_uppercase()),
            ("DNNL_MAX_CPU_ISA", isa.to_uppercase()),
            ("XLA_FLAGS", format!("--xla_cpu_max_isa={}", isa.to_uppercase())),
        ]
    })
}

/// A command bound to as many cores as it has threads, if the system supports that.
pub fn on_cores(threads: usize, program: &Path) -> Command {
    let mut command = if Command::new("taskset").arg("--version").output().is_ok() {
        let mut command = Command::new("taskset");
        command.arg("--cpu-list").arg(format!("0-{}", threads - 1)).arg(program);
        command
    } else {
        Command::new(program)
    };
    let variables = ["RAYON", "OMP", "MKL", "OPENBLAS", "AUTOGRAD"];
    for variable in variables {
        command.env(format!("{variable}_NUM_THREADS"), threads.to_string());
    }
    command.envs(isa_variables());
    command
}

pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder().join("target"), PathBuf::from)
}

fn binary(name: &str) -> PathBuf {
    target().join("release").join(name)
}

/// The interpreter of the virtual environment that `peers/install` makes.
pub fn python() -> PathBuf {
    let environment = std::env::var_os("BENCHES_VENV").map(PathBuf::from);
    environment.unwrap_or_else(|| folder().join(".venv")).join("bin/python")
}

fn build(package: &str) -> bool {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(folder()).args(["build", "--release", "--quiet", "--package", package]);
    command.status().is_ok_and(|status| status.success())
}

/// A library that makes MKL use all instructions of the processor, compiled on first use.
fn intel_library() -> Option<PathBuf> {
    let library = target().join("libmkl_intel.so");
    if !library.exists() {
        let source = folder().join("peers/mkl_intel.c");
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source);
        if !command.status().is_ok_and(|status| status.success()) {
            return None;
        }
    }
    Some(library)
}

/// A peer's process, which answers each request with one line.
pub struct Process {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    pub fn start(peer: &Peer, threads: usize) -> Option<Self> {
        let mut command = peer.command(threads);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let (requests, answers) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        Some(Self { child, requests, answers })
    }

    /// Returns the words of the answer; `None` if the process has ended. Then stops the process until the
    /// next request: threads of some libraries poll for work for up to a fifth of a second.
    pub fn ask(&mut self, request: &str) -> Option<Vec<String>> {
        self.signal("-CONT");
        let answer = self.answer(request);
        self.signal("-STOP");
        answer
    }

    /// Sends a signal, if the system has signals.
    fn signal(&self, signal: &str) {
        let mut kill = Command::new("kill");
        let _ = kill.arg(signal).arg(self.child.id().to_string()).stderr(Stdio::null()).status();
    }

    fn answer(&mut self, request: &str) -> Option<Vec<String>> {
        writeln!(self.requests, "{request}").ok()?;
        let mut line = String::new();
        // Libraries may print other lines.
        while !["numbers", "seconds", "bytes", "none"].iter().any(|word| line.starts_with(word)) {
            line.clear();
            if self.answers.read_line(&mut line).ok()? == 0 {
                return None;
            }
        }
        Some(line.split_whitespace().map(str::to_owned).collect())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
