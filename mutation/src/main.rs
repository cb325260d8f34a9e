//! Mutation testing with one build. `mutation LIST FOLDER TEST..` reads the output of `cargo mutants --list
//! --json`, writes all mutants into the sources in `FOLDER` (a copy), each behind a switch, and builds
//! once. It runs the tests of the first `TEST` for each mutant, and the other tests for the mutants that
//! survive.
//!
//! A `TEST` has the arguments of `cargo test` in one word: `-p autograd-macros --lib`. Arguments of the test
//! program, such as tests to skip, follow `--`: `-p tests --test memory -- --skip long`.

mod rewrite;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A mutant of the list.
#[derive(Clone, Debug)]
pub struct Mutant {
    id: usize,
    file: String,
    name: String,
    genre: String,
    replacement: String,
    /// Line and column, counted from one.
    start: (usize, usize),
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [list, folder, tests @ ..] = args.as_slice() else {
        panic!("mutation LIST FOLDER TEST..");
    };
    let folder = Path::new(folder);
    let mutants = read(&std::fs::read_to_string(list).expect("the list"));
    let originals: BTreeSet<&str> = mutants.iter().map(|m| m.file.as_str()).collect();
    let originals: Vec<(&str, String)> = originals
        .into_iter()
        .map(|file| (file, std::fs::read_to_string(folder.join(file)).expect("a source")))
        .collect();
    rewrite::add_switch(folder, &originals);
    let mut unviable = BTreeSet::new();
    let programs = loop {
        let mut placed = BTreeSet::new();
        for (file, source) in &originals {
            let of_file: Vec<_> = mutants
                .iter()
                .filter(|m| m.file == *file && !unviable.contains(&m.id))
                .cloned()
                .collect();
            let text = rewrite::file(source, &of_file, &mut placed);
            std::fs::write(folder.join(file), text).expect("a source");
        }
        match build(folder, tests) {
            Ok(programs) => {
                unviable.extend(mutants.iter().map(|m| m.id).filter(|id| !placed.contains(id)));
                break programs;
            }
            Err(broken) => {
                println!("{} mutants do not compile", broken.len());
                unviable.extend(broken);
            }
        }
    };
    for mutant in mutants.iter().filter(|m| unviable.contains(&m.id)) {
        println!("not tried: {}", mutant.name);
    }
    let [quick, slow] = programs;
    let mut tried: Vec<_> = mutants.iter().filter(|m| !unviable.contains(&m.id)).collect();
    // In an order that is independent of the sources, so that an interrupted run has tested a random
    // sample.
    tried.sort_by_key(|m| (m.id as u32).wrapping_mul(2_654_435_761));
    let count = tried.len();
    let mut left = try_all(tried, &quick);
    if !slow.is_empty() {
        println!("{} are left for the other tests", left.len());
        left = try_all(left, &slow);
    }
    for mutant in &left {
        println!("SURVIVES: {}", mutant.name);
    }
    println!(
        "{} mutants: {} tried, {} caught, {} survive; {} do not compile or cannot be switched",
        mutants.len(),
        count,
        count - left.len(),
        left.len(),
        unviable.len()
    );
}

/// The mutants that survive the tests.
fn try_all<'a>(mutants: Vec<&'a Mutant>, programs: &[Program]) -> Vec<&'a Mutant> {
    let start = Instant::now();
    assert!(passes(programs, 0, Duration::MAX), "the tests fail without a mutant");
    let limit = start.elapsed() * 5 + Duration::from_secs(10);
    let count = mutants.len();
    let mut left = Vec::new();
    for (n, mutant) in mutants.into_iter().enumerate() {
        let survives = passes(programs, mutant.id, limit);
        let what = if survives { "passes" } else { "caught" };
        println!("{} of {count}: {what}: {}", n + 1, mutant.name);
        left.extend(survives.then_some(mutant));
    }
    left
}

fn read(list: &str) -> Vec<Mutant> {
    let list: Value = serde_json::from_str(list).expect("JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_u64().unwrap_or_default() as usize;
    let mutants = list.as_array().expect("a list").iter().enumerate();
    mutants
        .map(|(i, m)| Mutant {
            id: i + 1,
            file: text(&m["file"]),
            name: text(&m["name"]),
            genre: text(&m["genre"]),
            replacement: text(&m["replacement"]),
            start: (number(&m["span"]["start"]["line"]), number(&m["span"]["start"]["column"])),
        })
        .collect()
}

/// A test program with its arguments and its working directory.
struct Program {
    path: String,
    arguments: Vec<String>,
    folder: String,
}

/// Builds the test programs: those of the first `TEST`, and the others. `Err`: the mutants at the lines
/// that do not compile.
fn build(folder: &Path, tests: &[String]) -> Result<[Vec<Program>; 2], BTreeSet<usize>> {
    let mut programs = [Vec::new(), Vec::new()];
    for (n, test) in tests.iter().enumerate() {
        let (test, arguments) = test.split_once(" -- ").unwrap_or((test, ""));
        let output = Command::new("cargo")
            .args(["test", "--no-run", "--message-format=json"])
            .args(test.split_whitespace())
            .current_dir(folder)
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo runs");
        let mut broken = BTreeSet::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
            if message["message"]["level"] == "error" {
                broken.extend(switches_near(folder, &message["message"]["spans"]));
                eprintln!("{}", message["message"]["rendered"].as_str().unwrap_or_default());
            }
            if let (Some(path), Some(true)) =
                (message["executable"].as_str(), message["profile"]["test"].as_bool())
            {
                let manifest = message["manifest_path"].as_str().unwrap_or_default();
                programs[n.min(1)].push(Program {
                    path: path.to_owned(),
                    arguments: arguments.split_whitespace().map(str::to_owned).collect(),
                    folder: manifest.trim_end_matches("Cargo.toml").to_owned(),
                });
            }
        }
        if !output.status.success() {
            assert!(!broken.is_empty(), "the build fails, and not for a mutant");
            return Err(broken);
        }
    }
    Ok(programs)
}

/// The mutants whose switches are at the places of an error, or just before.
fn switches_near(folder: &Path, spans: &Value) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for span in spans.as_array().into_iter().flatten().filter(|s| s["is_primary"] == true) {
        let file = span["file_name"].as_str().unwrap_or_default();
        let Ok(text) = std::fs::read_to_string(folder.join(file)) else { continue };
        let lines: Vec<&str> = text.lines().collect();
        let line = span["line_start"].as_u64().unwrap_or(1) as usize;
        let near = (line.saturating_sub(7)..line).rev().filter_map(|at| lines.get(at));
        let ids = near.map(|line| {
            let after = line.split("mutant::on(").skip(1);
            let digits = |rest: &str| rest.split("usize").next()?.parse().ok();
            after.filter_map(digits).collect::<Vec<usize>>()
        });
        found.extend(ids.into_iter().find(|ids| !ids.is_empty()).into_iter().flatten());
    }
    found
}

/// Whether all tests pass with this mutant, in time. The first test that fails is enough.
fn passes(programs: &[Program], mutant: usize, limit: Duration) -> bool {
    let end = Instant::now().checked_add(limit);
    programs.iter().all(|program| {
        let child = Command::new(&program.path)
            .args(&program.arguments)
            .current_dir(&program.folder)
            .env("MUTANT", mutant.to_string())
            .env("RUST_BACKTRACE", "0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.expect("the test program runs");
        let (told, tells) = mpsc::channel();
        let lines = BufReader::new(child.stdout.take().expect("the output")).lines();
        std::thread::spawn(move || {
            let failed = lines.map_while(Result::ok).any(|line| line.ends_with("... FAILED"));
            // After a timeout nobody receives the result.
            let _ = told.send(failed);
        });
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        if tells.recv_timeout(left).unwrap_or(true) {
            let _ = child.kill();
            let _ = child.wait();
            return false;
        }
        child.wait().expect("a child").success()
    })
}
