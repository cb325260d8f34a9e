//! The crates that a user compiles: only these, each with its reason in ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Third-party crates of every build, with and without default features.
const ALWAYS: &[&str] = &[
    "matrixmultiply",
    "ndarray",
    "num-complex",
    "num-integer",
    "num-traits",
    "proc-macro2",
    "quote",
    "rand_mt",
    "rawpointer",
    "smallvec",
    "strsim",
    "syn",
    "triomphe",
    "unicode-ident",
];

/// The crates that the feature `safetensors` adds.
const SAFETENSORS: &[&str] = &[
    "allocator-api2",
    "equivalent",
    "foldhash",
    "hashbrown",
    "itoa",
    "memchr",
    "safetensors",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_json",
    "zmij",
];

/// The crates that the feature `linalg` adds.
const LINALG: &[&str] =
    &["approx", "bytemuck", "nalgebra", "num-rational", "safe_arch", "simba", "typenum", "wide"];

/// The crates that the feature `npy` adds.
const NPY: &[&str] = &[
    "byteorder",
    "cfg-if",
    "crc32fast",
    "equivalent",
    "flate2",
    "hashbrown",
    "indexmap",
    "libc",
    "memchr",
    "ndarray-npy",
    "num-bigint",
    "pest",
    "pest_derive",
    "pest_generator",
    "pest_meta",
    "pest_stack_guard",
    "psm",
    "py_literal",
    "stacker",
    "ucd-trie",
    "zip",
    "zlib-rs",
];

/// The third-party crates that a build with these arguments compiles.
fn crates(features: &[&str]) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cargo = std::env::var_os("CARGO").expect("run by cargo");
    let output = Command::new(cargo)
        .args(["tree", "-p", "autograd-core", "-e", "normal", "--prefix", "none", "--no-dedupe"])
        // One list for all platforms.
        .args(["--offline", "--locked", "--target", "x86_64-unknown-linux-gnu"])
        .args(features)
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.filter(|name| !name.starts_with("autograd-")).map(str::to_owned).collect()
}

#[test]
fn each_build_needs_few_crates() {
    let expected = |lists: &[&[&str]]| -> BTreeSet<String> {
        lists.concat().into_iter().map(str::to_owned).collect()
    };
    let always = expected(&[ALWAYS]);
    assert_eq!(crates(&[]), always);
    assert_eq!(crates(&["--no-default-features"]), always);
    assert_eq!(crates(&["--all-features"]), expected(&[ALWAYS, LINALG, NPY, SAFETENSORS]));
}

#[test]
fn each_crate_has_its_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let reasons = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    // For `npy`, only the two crates that the library names; the others are their dependencies.
    for name in ALWAYS.iter().chain(LINALG).chain(SAFETENSORS).chain(&["ndarray-npy", "zip"]) {
        assert!(reasons.contains(&format!("`{name}`")), "no word on `{name}`");
    }
}
