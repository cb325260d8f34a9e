//! Modules, optimizers, and files of tensors.

mod layers;
mod modules;
mod npy;
mod optim;
mod safetensors;
mod training;

use std::fs;
use std::path::{Path, PathBuf};

/// A folder of one test in one process, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("{name}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
