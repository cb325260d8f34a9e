//! The compiler's output for fixtures that trybuild cannot compare: tables of cases, and messages that name
//! the library's files. Every fixture in `tests/compiler/fixtures` must fail with the messages of its
//! `.stderr` file, each once. `UPDATE_EXPECTED=1` writes these files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::rustc::{Message, check, check_text, each, files, root};

/// The number of types that rustc lists, without `--verbose`, as implementing a trait.
const MAX_LISTED: usize = 8;

/// A message without the lines of the library's files, and without all but the first types that have a trait.
fn shown(message: &Message) -> String {
    let (mut lines, mut in_library, mut listed) = (Vec::new(), false, 0);
    for line in message.rendered.trim_end().lines() {
        let text = line.trim_start();
        if text.starts_with("--> ") || text.starts_with("::: ") {
            let krate = ["autograd-core", "autograd-kernels"];
            let krate = krate.into_iter().find(|krate| text.contains(&format!("{krate}/src/")));
            in_library = krate.is_some();
            if let Some(krate) = krate {
                if text.starts_with("--> ") {
                    lines.push(format!("{}--> {krate}", &line[..line.len() - text.len()]));
                }
                continue;
            }
        }
        if in_library && text.starts_with(|c: char| c == '|' || c == '.' || c.is_ascii_digit()) {
            continue;
        }
        in_library = false;
        listed = match text.contains("types implement trait") {
            true => 1,
            // The types are indented under the heading of the list.
            false if listed > 0 && line.starts_with("          ") => listed + 1,
            false => 0,
        };
        if listed <= 1 + MAX_LISTED {
            lines.push(without_modules(line));
        }
    }
    unindented(&lines)
}

/// Without the modules in `autograd_core::ops::indexing::<impl ..>`, which are those of private files.
fn without_modules(line: &str) -> String {
    let mut parts = line.split("::<impl ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_of_path = |c: char| c.is_ascii_lowercase() || matches!(c, '_' | ':');
        let path = text.rfind(|c| !is_of_path(c)).map_or(0, |at| at + 1);
        if text[path..].starts_with("autograd_core::") {
            text.truncate(path + "autograd_core".len());
        }
        text.push_str("::<impl ");
        text.push_str(part);
    }
    text
}

/// Without the indentation that only longer line numbers of the library needed.
fn unindented(lines: &[String]) -> String {
    let spaces = |line: &str| line.len() - line.trim_start().len();
    let numbered =
        lines.iter().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    let excess = numbered.map(|line| spaces(line)).min().unwrap_or(0);
    lines.iter().map(|line| format!("{}\n", &line[excess.min(spaces(line))..])).collect()
}

/// Without the indentation: continued lines of a text have another one than numbered lines.
fn flush(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_start())).collect()
}

/// The errors, with the place of each, that rustc reports more than once. It merges these itself, but not
/// in incremental builds, which `cargo check` and every editor use.
fn repeated(messages: &[Message]) -> String {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for message in messages {
        // The derives report a type once for saving and once for reading.
        *counts.entry((&message.text, message.place)).or_default() += 1;
    }
    counts.retain(|_, count| *count > 1);
    if counts.is_empty() { String::new() } else { format!("repeated: {counts:#?}\n") }
}

/// The programs of a fixture, each with the heading of its messages. A fixture may be a table: a program
/// with the word `CASE`, then cases, each with a line `//= its sentence` and the text for that word.
fn programs(text: &str) -> Vec<(String, String)> {
    let mut parts = text.split("\n//= ");
    let program = parts.next().unwrap_or_default();
    let case = |part: &str| {
        let (sentence, code) = part.split_once('\n').unwrap_or((part, ""));
        assert!(program.contains("CASE") && !code.trim().is_empty(), "no case: {part}");
        (format!("//= {sentence}\n"), program.replace("CASE", code.trim_end()) + "\n")
    };
    let cases: Vec<_> = parts.map(case).collect();
    if cases.is_empty() { vec![(String::new(), text.to_owned())] } else { cases }
}

fn mistakes(fixture: &Path) -> Option<String> {
    // As trybuild does.
    let options = ["-Adead_code".to_owned(), "--verbose".to_owned()];
    let name = fixture.strip_prefix(root().join("tests")).unwrap().display().to_string();
    let (mut wrong, mut found) = (String::new(), Vec::new());
    for (heading, program) in programs(&fs::read_to_string(fixture).unwrap()) {
        let messages = check_text(&program, &options);
        wrong += &repeated(&messages);
        if !messages.iter().any(Message::is_error) {
            wrong += &format!("{heading}it compiles\n");
        }
        let messages = messages.iter().map(shown).collect::<Vec<_>>().join("\n");
        found.push(heading + &messages.replace("program.rs", &name));
    }
    let (file, found) = (fixture.with_extension("stderr"), found.join("\n"));
    let expected = fs::read_to_string(&file).unwrap_or_default();
    if flush(&expected) != flush(&found) {
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            fs::write(&file, found).unwrap();
        } else {
            wrong += &format!("expected:\n{expected}\nfound:\n{found}");
        }
    }
    (!wrong.is_empty()).then(|| format!("{name}: {wrong}"))
}

fn fixtures() -> Vec<PathBuf> {
    files(&root().join("tests/compiler/fixtures"))
}

/// The fixtures that trybuild compares, in `tests/tests/ui.rs`.
fn ui() -> Vec<PathBuf> {
    files(&root().join("tests/ui"))
}

#[test]
fn fixtures_fail_with_the_expected_messages() {
    let wrong: Vec<String> =
        each(&fixtures(), |path| mistakes(path)).into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// trybuild does not compile incrementally.
#[test]
fn each_error_of_ui_is_reported_once() {
    let wrong = each(&ui(), |path| {
        let repeated = repeated(&check(path, &[]));
        (!repeated.is_empty()).then(|| format!("{}: {repeated}", path.display()))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// No expected output has lines of the library's files, and trybuild runs every fixture that it can.
#[test]
fn fixtures_are_in_the_folder_of_their_runner() {
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let (ui, fixtures) = (ui(), fixtures());
    for path in &ui {
        let output = read(&path.with_extension("stderr"));
        assert!(!output.contains("$WORKSPACE"), "{}", path.display());
        assert_eq!(programs(&read(path)).len(), 1, "{}", path.display());
    }
    let mut count = ui.len();
    for path in &fixtures {
        let (output, programs) = (read(&path.with_extension("stderr")), programs(&read(path)));
        let is_table = !programs[0].0.is_empty();
        assert!(is_table || output.contains("--> autograd-"), "{}", path.display());
        count += programs.len();
    }
    assert!(count >= 460, "{count}");
}

/// The chapter quotes the compiler's real output.
#[test]
fn the_chapter_is_true() {
    let chapter = fs::read_to_string(root().join("docs/reading-the-compiler.md")).unwrap();
    let mut quoted = 0;
    for part in chapter.split("<!-- ").skip(1) {
        let (path, rest) = part.split_once(" -->").unwrap();
        let block = rest.split_once("```text\n").unwrap().1;
        let block = block.split_once("\n```").unwrap().0;
        let text = fs::read_to_string(root().join(path)).unwrap();
        assert_eq!(block, text.trim_end(), "{path}");
        quoted += 1;
    }
    assert!(quoted >= 10, "{quoted}");
}

/// The first line of every fixture says what it shows, and fixtures that compile are compiled.
#[test]
fn every_fixture_has_its_sentence() {
    let listed = fs::read_to_string(root().join("tests/tests/accepted/main.rs")).unwrap();
    let accepted = files(&root().join("tests/tests/accepted"));
    assert!(accepted.len() > 85, "{}", accepted.len());
    for path in
        ui().iter().chain(&fixtures()).chain(&accepted).filter(|path| !path.ends_with("main.rs"))
    {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.starts_with("// "), "{}", path.display());
        let line = format!(" mod {};", path.file_stem().unwrap().display());
        let compiled = !accepted.contains(path) || listed.contains(&line);
        assert!(compiled, "tests/accepted/main.rs has no `{line}`");
    }
}
