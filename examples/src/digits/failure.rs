//! The errors that end the program early, and their exit codes.

use std::process::ExitCode;
use std::{fmt, io};

/// An error that ends the program early.
#[derive(Debug)]
pub enum Failure {
    /// The command line is invalid. Exit code 2.
    Usage(String),
    /// The data file is missing or malformed. Exit code 1.
    Data(String),
    /// An op failed. Exit code 1.
    Op(autograd_core::Error),
    /// The results could not be written. Exit code 1.
    Write(io::Error),
}

impl Failure {
    /// Prints one line on stderr and returns the exit code.
    pub fn report(&self) -> ExitCode {
        match self {
            // The reader has closed the pipe, as in `digits | head`.
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
