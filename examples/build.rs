//! Writes the book's programs that have `check(..)` a second time, so that rustdoc runs their generated tests.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=../docs");
    let mut checks = String::new();
    let mut pages =
        fs::read_dir("../docs")?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    pages.sort();
    for page in pages.iter().filter(|page| page.extension().is_some_and(|of| of == "md")) {
        let text = fs::read_to_string(page)?;
        let programs = text.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next());
        for program in programs.filter(|program| has_check(program)) {
            checks += &format!("{}\n\n```rust,test_harness\n{program}```\n\n", page.display());
        }
    }
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("checks.md"), checks)
}

fn has_check(program: &str) -> bool {
    program.lines().any(|line| line.starts_with("#[py_layer(") && line.contains("check("))
}
