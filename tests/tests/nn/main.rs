//! Modules, optimizers, and files of tensors.

mod layers;
mod modules;
mod npy;
mod optim;
mod safetensors;
mod training;

use std::fs;
use std::path::{Path, PathBuf};

/// The lines of numbers under this name in `golden/optim.txt`.
fn golden(name: &str) -> Vec<Vec<f64>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/optim.txt");
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| line.split(' ')).filter_map(|mut words| {
        (words.next() == Some(name)).then(|| words.skip(1).map(|x| x.parse().unwrap()).collect())
    });
    lines.collect()
}

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
