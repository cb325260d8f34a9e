//! The Markdown of the repository: its links and its quotations.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().canonicalize().unwrap()
}

/// All Markdown files, except those that were built or downloaded.
fn documents() -> Vec<(PathBuf, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" && name != "node_modules" {
                    folders.push(path);
                }
            } else if name.ends_with(".md") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(found.len() >= 8, "{}", found.len());
    found
}

/// Relative links lead to existing files, and line numbers in links to existing lines.
#[test]
fn links_lead_somewhere() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (path, text) in documents() {
        // Its links are resolved by rustdoc.
        if path.ends_with("manual.md") {
            continue;
        }
        for link in text.split("](").skip(1) {
            let link = link.split([')', ' ']).next().unwrap();
            if link.contains("://") {
                continue;
            }
            seen += 1;
            let (file, line) = link.split_once("#L").unwrap_or((link, "1"));
            let file = path.parent().unwrap().join(file);
            let lines = match fs::read_to_string(&file) {
                Ok(text) => text.lines().count(),
                Err(_) if file.is_dir() => 1,
                Err(_) => 0,
            };
            if line.parse::<usize>().is_ok_and(|line| line > lines) {
                wrong.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(seen > 100, "{seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The error in the README is the compiler's output for the fixture.
#[test]
fn the_readme_quotes_the_compiler() {
    let root = root();
    let text = fs::read_to_string(root.join("tests/ui/arity/too_few_returned.stderr")).unwrap();
    let text = text.replace("ui/arity/too_few_returned.rs", "src/main.rs");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.contains(&format!("```text\n{}\n```", text.trim_end())), "{text}");
}

/// The code in CONTRIBUTING.md is that of the library.
#[test]
fn the_guide_quotes_the_code() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let guide = read("CONTRIBUTING.md");
    let quotes: Vec<&str> = guide.split("```text\n").skip(1).collect();
    let sources = [
        "autograd-core/src/ops/names.rs",
        "autograd-kernels/src/formula/functions.rs",
        "autograd-core/src/static_graph/table.rs",
    ];
    assert_eq!(quotes.len(), sources.len());
    for (quote, source) in quotes.into_iter().zip(sources) {
        let (quote, _) = quote.split_once("```").unwrap();
        let code = read(source);
        for line in quote.lines().map(|line| line.trim().trim_start_matches("LOGIT = ")) {
            assert!(code.contains(line), "{source} lacks `{line}`");
        }
    }
}

/// The README gives the number of ways of misuse that is in `docs/misuse.md`.
#[test]
fn the_readme_counts_the_ways() {
    let page = fs::read_to_string(root().join("docs/misuse.md")).unwrap();
    let title = page.lines().next().unwrap().trim_start_matches("# ");
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains(&format!("[{title}](docs/misuse.md)")), "{title}");
}

/// Every page in `docs/` is a chapter of the book, and the programs of every page are tested.
#[test]
fn the_book_has_every_page_and_tests_its_programs() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (summary, tested) = (read("docs/SUMMARY.md"), read("examples/src/lib.rs"));
    for (path, text) in documents() {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.parent() != Some(&root().join("docs")) || name == "SUMMARY.md" {
            continue;
        }
        assert!(summary.contains(&format!("]({name})")), "docs/SUMMARY.md lacks {name}");
        let has_programs = text.contains("```rust\n");
        assert_eq!(
            tested.contains(&format!("\"{name}\"")),
            has_programs,
            "examples/src/lib.rs: {name}"
        );
    }
}

/// README, ARCHITECTURE and the book can be read in an hour or two.
#[test]
fn the_book_is_short() {
    let is_counted = |path: &Path| {
        path.parent() == Some(&root().join("docs"))
            || [root().join("README.md"), root().join("ARCHITECTURE.md")].contains(&path.to_owned())
    };
    let texts = documents().into_iter().filter(|(path, _)| is_counted(path));
    let words: usize = texts.map(|(_, text)| text.split_whitespace().count()).sum();
    assert!(words <= 20_000, "{words}");
}
