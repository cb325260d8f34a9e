//! The environment variable `AUTOGRAD_VERIFY`, which asks for verification.

use std::sync::OnceLock;

#[cfg(not(feature = "verify"))]
use crate::error::Error;

/// Whether the variable is set, and neither empty nor `0`. Read once.
#[inline]
pub(super) fn is_enabled() -> bool {
    static ENABLED: OnceLock<bool> = OnceLock::new();
    let is_set = || std::env::var_os("AUTOGRAD_VERIFY").is_some_and(|v| !v.is_empty() && v != "0");
    *ENABLED.get_or_init(is_set)
}

#[cfg(not(feature = "verify"))]
#[cold]
pub(super) fn refusal(op: &'static str) -> Error {
    Error::Unsupported {
        op,
        why:
            "AUTOGRAD_VERIFY is set, but this build cannot verify a backward; turn on the feature \
              `verify` of autograd-core (`autograd-core = { version = \"..\", features = \
              [\"verify\"] }` in Cargo.toml), or unset AUTOGRAD_VERIFY"
                .to_owned(),
    }
}
