//! Whether it is an editor that asks, not the compiler.

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

/// rust-analyzer expands a block twice, as it stands and with a name where the cursor is, and looks
/// for one place in both. So what is said of a body, which moves and replaces tokens, is left to the
/// compiler, which the editor asks too.
pub(crate) fn asks() -> bool {
    static ASKS: OnceLock<bool> = OnceLock::new();
    *ASKS.get_or_init(|| is_editor(std::env::args_os()))
}

/// Whether a process that was started so is rust-analyzer or its server for macros: by the name of
/// the program, or of the first argument, where a loader starts it.
fn is_editor(arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.take(2).any(|argument| {
        let name = Path::new(&argument).file_stem().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("rust-analyzer"))
    })
}

#[cfg(test)]
mod tests {
    use super::is_editor;

    fn started(arguments: &[&str]) -> bool {
        is_editor(arguments.iter().map(Into::into))
    }

    #[test]
    fn editors_are_known_by_what_was_started() {
        assert!(started(&["/home/me/.cargo/bin/rust-analyzer"]));
        assert!(started(&["/toolchain/libexec/rust-analyzer-proc-macro-srv", "--version", "1"]));
        assert!(started(&["rust-analyzer-x86_64-unknown-linux-gnu", "lsp-server"]));
        assert!(started(&["/lib64/ld-linux-x86-64.so.2", "/opt/rust-analyzer"]));
    }

    #[test]
    fn the_compiler_is_none_whatever_it_compiles() {
        assert!(!started(&["/toolchain/bin/rustc", "--crate-name", "rust-analyzer"]));
        assert!(!started(&["rustc", "/home/me/rust-analyzer/src/main.rs"]));
        assert!(!started(&["clippy-driver", "rustc"]));
        assert!(!started(&[]));
        assert!(!super::asks());
    }
}
