//! Why the program ends early, and with which exit code.

use std::process::ExitCode;
use std::{fmt, io};

/// Why the program ends early.
#[derive(Debug)]
pub enum Failure {
    /// What was asked for cannot be done. Exit code 2.
    Usage(String),
    /// The data file is missing or malformed. Exit code 1.
    Data(String),
    /// An op failed. Exit code 1.
    Op(autograd_core::Error),
    /// The results could not be written. Exit code 1.
    Write(io::Error),
}

impl Failure {
    /// One line on stderr, and the exit code.
    pub fn report(&self) -> ExitCode {
        match self {
            // Whoever reads our output has seen enough, as in `digits | head`.
            Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Self::Usage(_) => {
                eprintln!("digits: {self}; try --help");
                ExitCode::from(2)
            }
            _ => {
                eprintln!("digits: {self}");
                ExitCode::FAILURE
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Data(message) => f.write_str(message),
            Self::Op(error) => write!(f, "{error}"),
            Self::Write(error) => write!(f, "writing the results: {error}"),
        }
    }
}

impl From<autograd_core::Error> for Failure {
    fn from(error: autograd_core::Error) -> Self {
        Self::Op(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}
