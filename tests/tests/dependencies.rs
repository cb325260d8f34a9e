//! The crates that a user compiles for the default build: these, each with its reason in
//! ARCHITECTURE.md, and no other.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Crates of others, by what brings them.
const EXPECTED: &[&str] = &[
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

#[test]
fn the_default_build_needs_few_crates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cargo = std::env::var_os("CARGO").expect("run by cargo");
    let output = Command::new(cargo)
        .args(["tree", "-p", "autograd-core", "-e", "normal", "--prefix", "none", "--no-dedupe"])
        .args(["--offline", "--locked"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    let others: Vec<&str> =
        names.into_iter().filter(|name| !name.starts_with("autograd-")).collect();
    assert_eq!(others, EXPECTED);
    let reasons = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    for name in EXPECTED {
        assert!(reasons.contains(&format!("`{name}`")), "no word on `{name}`");
    }
}
