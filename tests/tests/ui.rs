//! The compiler's output: every fixture in `ui` must fail with the expected messages. Code that must
//! compile is in `accepted`.

use std::path::PathBuf;

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    for folder in std::fs::read_dir("ui").unwrap() {
        cases.compile_fail(folder.unwrap().path().join("*.rs"));
    }
}

/// The chapter quotes the compiler's real output.
#[test]
fn the_chapter_is_true() {
    let chapter = std::fs::read_to_string("../docs/reading-the-compiler.md").unwrap();
    let mut quoted = 0;
    for part in chapter.split("<!-- ").skip(1) {
        let (path, rest) = part.split_once(" -->").unwrap();
        let block = rest.split_once("```text\n").unwrap().1;
        let block = block.split_once("\n```").unwrap().0;
        let text = std::fs::read_to_string(format!("../{path}")).unwrap();
        assert_eq!(block, text.trim_end(), "{path}");
        quoted += 1;
    }
    assert!(quoted >= 10, "{quoted}");
}

/// The first line of every fixture says what it shows, and fixtures that compile are compiled.
#[test]
fn every_fixture_has_its_sentence() {
    let (mut fail, mut accepted, mut listed) = (0, Vec::new(), String::new());
    let mut folders = vec![PathBuf::from("ui"), PathBuf::from("tests/accepted")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                if path.ends_with("main.rs") {
                    listed = text;
                    continue;
                }
                assert!(text.starts_with("// "), "{}", path.display());
                if path.starts_with("ui") { fail += 1 } else { accepted.push(path) }
            }
        }
    }
    assert!(fail >= 400 && accepted.len() >= 85, "{fail} that must fail, {accepted:?}");
    for path in accepted {
        let line = format!(" mod {};", path.file_stem().unwrap().display());
        assert!(listed.contains(&line), "tests/accepted/main.rs has no `{line}`");
    }
}
