//! Every known way to misuse an op is a program here: a fixture that must not compile, or a
//! function that returns the error. `docs/misuse.md` is generated from them:
//! `UPDATE_EXPECTED=1 cargo test -p tests --test misuse` writes it.

mod bad_input;
mod counts;
mod impossible_shapes;
mod requests;
mod run;
mod user_code;
mod values;
mod ways;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::panic::catch_unwind;
use std::path::Path;

use ways::{Proof, WAYS, Way};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The output of `golden/misuse.py`: frameworks, and the result of each way there.
fn peers() -> (Vec<String>, BTreeMap<String, Vec<String>>) {
    let text = std::fs::read_to_string(root().join("tests/golden/misuse.txt")).unwrap();
    let mut lines = text.lines().map(|line| line.split('|').map(|cell| cell.trim().to_owned()));
    let names = lines.next().unwrap().skip(1).collect();
    let rows = lines.map(|mut cells| (cells.next().unwrap(), cells.collect())).collect();
    (names, rows)
}

#[test]
fn every_way_is_noticed_or_harmless() {
    let mut wrong = Vec::new();
    for Way { proof, .. } in WAYS {
        match proof {
            Proof::Compiler(fixture) => {
                let (file, case) = fixture.split_once('#').unwrap_or((fixture, ""));
                let path = |extension| root().join(format!("tests/{file}.{extension}"));
                let text = std::fs::read_to_string(path("stderr")).unwrap_or_default();
                let begins = if case.is_empty() {
                    text.starts_with("error")
                } else {
                    text.contains(&format!("//= {case}\nerror"))
                };
                if !path("rs").exists() || !begins {
                    wrong.push(format!("{fixture}: {text}"));
                }
            }
            Proof::Debug(..) if !cfg!(debug_assertions) => {}
            Proof::Error(name, misuse, words)
            | Proof::Debug(name, misuse, words)
            | Proof::Backward(name, misuse, words)
            | Proof::Read(name, misuse, words)
            | Proof::Check(name, misuse, words)
            | Proof::Verified(name, misuse, words) => {
                let text = catch_unwind(misuse).unwrap_or_else(|_| "it failed".to_owned());
                if words.is_empty() || !text.contains(words) {
                    wrong.push(format!("{name}: {text}"));
                }
            }
            Proof::Right(name, misuse) => {
                if catch_unwind(misuse).is_err() {
                    wrong.push(format!("{name}: it failed"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_way_stands_once() {
    let (_, mut peers) = peers();
    let names: BTreeSet<String> = peers.keys().cloned().collect();
    let mut seen = BTreeMap::new();
    for Way { way, peer, proof } in WAYS {
        assert!(seen.insert(proof.name(), way).is_none(), "{}", proof.name());
        assert!(peer.is_empty() || names.contains(*peer), "{peer} is not in misuse.txt");
        peers.remove(*peer);
    }
    assert!(peers.is_empty(), "nothing here corresponds to {peers:?}");
    assert!(WAYS.len() >= 34 + 10, "{}", WAYS.len());
}

impl Proof {
    fn name(&self) -> &'static str {
        match self {
            Self::Compiler(name)
            | Self::Error(name, ..)
            | Self::Debug(name, ..)
            | Self::Backward(name, ..)
            | Self::Read(name, ..)
            | Self::Check(name, ..)
            | Self::Verified(name, ..)
            | Self::Right(name, _) => name,
        }
    }

    /// The table cell, with a link to the program that proves it, and the name of its function.
    fn cell(&self) -> String {
        let text = match self {
            Self::Compiler(_) => "compile error",
            Self::Error(..) => "error",
            Self::Debug(..) => "error, with debug assertions",
            Self::Backward(..) => "error in backward",
            Self::Read(..) => "error of `try_grad`",
            Self::Check(..) => "found by its check",
            Self::Verified(..) => "error with `AUTOGRAD_VERIFY=1`, or by its check",
            Self::Right(..) => "right",
        };
        let program = match self.name().split_once("::") {
            Some((module, function)) => format!("tests/misuse/{module}.rs \"{function}\""),
            None => match self.name().split_once('#') {
                Some((table, case)) => format!("{table}.stderr \"{case}\""),
                None => format!("{}.stderr", self.name()),
            },
        };
        format!("[{text}](../tests/{program})")
    }
}

fn page() -> String {
    let (frameworks, peers) = peers();
    let count = |kind: fn(&Proof) -> bool| WAYS.iter().filter(|way| kind(&way.proof)).count();
    let mut out = format!(
        "# {} ways to misuse an op\n\n\
         Each row links to the program that proves it. {} do not compile. {} are an error when the op \
         is\napplied or earlier, {} an error in backward, {} an error of `try_grad`, and {} are harmless. \
         Types\ncannot show the last {}: the check that comes with the library finds them in a test, and \
         {} of them\nare errors of the call itself with the feature `verify` and `AUTOGRAD_VERIFY=1`.\n\n\
         To read a row: \"`save_for_backward` twice\" does not compile here, and the link leads to the \
         compiler's output;\nthe other columns say what the same mistake does there. A seed is the gradient that a backward starts from.\n\n\
         'Silent': no error, and a wrong gradient or an unnoticed mistake. 'Right': it works as \
         meant. '–':\nit cannot be written there, or was not tried. \
         [misuse.py](../tests/golden/misuse.py) tried the others.\n\
         A panic of user code leaves the call as that panic; tensors stay usable, as after an error.\n\
         `UPDATE_EXPECTED=1 cargo test -p tests --test misuse` writes this page.\n\n",
        WAYS.len(),
        count(|proof| matches!(proof, Proof::Compiler(_))),
        count(|proof| matches!(proof, Proof::Error(..) | Proof::Debug(..))),
        count(|proof| matches!(proof, Proof::Backward(..))),
        count(|proof| matches!(proof, Proof::Read(..))),
        count(|proof| matches!(proof, Proof::Right(..))),
        count(|proof| matches!(proof, Proof::Check(..) | Proof::Verified(..))),
        count(|proof| matches!(proof, Proof::Verified(..))),
    );
    writeln!(out, "|way|here|{}|", frameworks.join("|")).unwrap();
    writeln!(out, "|---|---|{}", "---|".repeat(frameworks.len())).unwrap();
    for Way { way, peer, proof } in WAYS {
        let elsewhere = match peers.get(*peer) {
            Some(cells) => cells.join("|"),
            None => vec!["–"; frameworks.len()].join("|"),
        };
        writeln!(out, "|{way}|{}|{elsewhere}|", proof.cell()).unwrap();
    }
    out
}

/// `docs/misuse.md` agrees with the results above.
#[test]
fn the_page_has_this_table() {
    let path = root().join("docs/misuse.md");
    let page = page();
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(path, page).unwrap();
    } else {
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(found, page, "`UPDATE_EXPECTED=1 cargo test -p tests --test misuse`");
    }
}
