//! The error type: what was expected and found, and on which rank.

use std::fmt;

use crate::call::Call;

/// An error of this crate. The tensors of every rank are usable after it, and no gradient is half written.
#[derive(Clone)]
#[non_exhaustive]
pub enum Error {
    /// MPI cannot be used.
    Mpi {
        /// Why not.
        why: String,
    },
    /// An argument that its function cannot take.
    Argument {
        /** The function. */
        op: &'static str,
        /** The argument. */
        parameter: &'static str,
        /** What the function takes. */
        expected: String,
        /** What was given. */
        found: String,
    },
    /// Something failed on another rank, which stopped all of them.
    Rank {
        /** The function that all ranks called. */
        op: &'static str,
        /** The rank; of several the lowest. */
        rank: usize,
        /** Its error. */
        why: String,
    },
    /// A tensor that differs from that of rank 0.
    Differs {
        /** The function. */
        op: &'static str,
        /** The name of the tensor, and what it is. */
        what: String,
        /** What rank 0 has. */
        expected: String,
        /** What this rank has. */
        found: String,
    },
    /// The ranks do not make the same calls; found by [`check_calls`](crate::World::check_calls).
    Calls {
        /** The call of rank 0. */
        expected: Call,
        /** The first rank that makes another call. */
        rank: usize,
        /** Its call. */
        found: Call,
    },
    /// An error of the backward, a hook, or an op.
    Core(autograd_core::Error),
}

/// The result of a fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mpi { why } => write!(f, "MPI: {why}"),
            Self::Argument { op, parameter, expected, found } => {
                write!(f, "{op}: `{parameter}` must be {expected}, found {found}")
            }
            Self::Rank { op, rank, why } => write!(f, "{op}: rank {rank} failed: {why}"),
            Self::Differs { op, what, expected, found } => {
                write!(f, "{op}: {what} must be as on rank 0, {expected}, found {found}")
            }
            Self::Calls { expected, rank, found } => {
                write!(f, "the ranks make different calls: rank 0 {expected}, rank {rank} {found}")
            }
            Self::Core(error) => error.fmt(f),
        }
    }
}

// As in the core: a `main` that returns an error shows its text.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Core(error) => error.source(),
            _ => None,
        }
    }
}

/// So that `?` converts it in a function that returns [`autograd_core::Result`].
impl autograd_core::CustomError for Error {}

impl From<autograd_core::Error> for Error {
    fn from(error: autograd_core::Error) -> Self {
        Self::Core(error)
    }
}
