//! Every way to misuse an op that we know of is a program of ours: a fixture of `ui` that must not
//! compile, or a function of `run` that is told what is wrong. The README's table is made of them:
//! `UPDATE_EXPECTED=1 cargo test -p tests --test misuse` writes it anew.

mod more;
mod run;
mod ways;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::panic::catch_unwind;
use std::path::Path;

use ways::{Proof, WAYS, Way};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// What `golden/misuse.py` saw: frameworks, and for each way what happens there.
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
                let path = |extension| root().join(format!("tests/ui/{fixture}.{extension}"));
                let said = std::fs::read_to_string(path("stderr")).unwrap_or_default();
                if !path("rs").exists() || !said.starts_with("error") {
                    wrong.push(format!("{fixture}: {said}"));
                }
            }
            Proof::Debug(..) if !cfg!(debug_assertions) => {}
            Proof::Error(name, misuse, words)
            | Proof::Debug(name, misuse, words)
            | Proof::Backward(name, misuse, words)
            | Proof::Check(name, misuse, words)
            | Proof::Verified(name, misuse, words) => {
                let said = catch_unwind(misuse).unwrap_or_else(|_| "it failed".to_owned());
                if words.is_empty() || !said.contains(words) {
                    wrong.push(format!("{name}: {said}"));
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
            | Self::Check(name, ..)
            | Self::Verified(name, ..)
            | Self::Right(name, _) => name,
        }
    }

    /// What the table says, with where it is proven.
    fn cell(&self) -> String {
        const RUN: &str = "tests/tests/misuse";
        match self {
            Self::Compiler(fixture) => format!("[compile error](tests/ui/{fixture}.stderr)"),
            Self::Error(..) => format!("[error]({RUN})"),
            Self::Debug(..) => format!("[error, with debug assertions]({RUN})"),
            Self::Backward(..) => format!("[error in backward]({RUN})"),
            Self::Check(..) => format!("[found by its check]({RUN})"),
            Self::Verified(..) => {
                format!("[error with `AUTOGRAD_VERIFY=1`, or by its check]({RUN})")
            }
            Self::Right(..) => format!("[right]({RUN})"),
        }
    }
}

fn table() -> String {
    let (frameworks, peers) = peers();
    let count = |kind: fn(&Proof) -> bool| WAYS.iter().filter(|way| kind(&way.proof)).count();
    let mut out = format!(
        "We know {} ways to misuse an op, and each is a program of ours that shows what becomes of \
         it: {} do\nnot compile, {} give an error when the op is applied or earlier, {} an error in \
         backward, and {} do no\nharm. The last {} no types can show: they are found where a test \
         calls the check that comes with the\nlibrary, and {} of them are errors of the call itself where \
         the feature `verify` is on and `AUTOGRAD_VERIFY=1` is set.",
        WAYS.len(),
        count(|proof| matches!(proof, Proof::Compiler(_))),
        count(|proof| matches!(proof, Proof::Error(..) | Proof::Debug(..))),
        count(|proof| matches!(proof, Proof::Backward(..))),
        count(|proof| matches!(proof, Proof::Right(..))),
        count(|proof| matches!(proof, Proof::Check(..) | Proof::Verified(..))),
        count(|proof| matches!(proof, Proof::Verified(..))),
    );
    out += "\n\n<details><summary>All of them, and what becomes of each elsewhere</summary>\n\n";
    out += "'Silent': no error, and a wrong gradient or a mistake unseen. 'Right': it works as meant. '–': \
            cannot be\nwritten there, or was not tried. ";
    out += "[misuse.py](tests/golden/misuse.py) tried the others.\n\n";
    writeln!(out, "| way | here | {} |", frameworks.join(" | ")).unwrap();
    writeln!(out, "|---|---|{}", "---|".repeat(frameworks.len())).unwrap();
    for Way { way, peer, proof } in WAYS {
        let elsewhere = match peers.get(*peer) {
            Some(cells) => cells.join(" | "),
            None => vec!["–"; frameworks.len()].join(" | "),
        };
        writeln!(out, "| {way} | {} | {elsewhere} |", proof.cell()).unwrap();
    }
    out + "\n</details>\n"
}

/// The README says what is proven above.
#[test]
fn the_readme_has_this_table() {
    let path = root().join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- misuse -->\n", "<!-- end of misuse -->");
    let (before, rest) = readme.split_once(begin).expect("README.md has the marker");
    let (found, after) = rest.split_once(end).expect("README.md has the end's marker");
    let table = table();
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(path, format!("{before}{begin}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(found, table, "`UPDATE_EXPECTED=1 cargo test -p tests --test misuse`");
    }
}
