//! What the compiler says: every fixture in `ui` must fail with the words beside it, except those
//! in `ui/pass`, which must compile and run.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    for folder in std::fs::read_dir("ui").unwrap() {
        let folder = folder.unwrap().path();
        if folder.ends_with("pass") {
            cases.pass(folder.join("*/*.rs"));
        } else if folder.is_dir() {
            cases.compile_fail(folder.join("*.rs"));
        }
    }
}

/// The chapter quotes what the compiler really says.
#[test]
fn the_chapter_is_true() {
    let chapter = std::fs::read_to_string("../docs/reading-the-compiler.md").unwrap();
    let mut quoted = 0;
    for part in chapter.split("<!-- ").skip(1) {
        let (path, rest) = part.split_once(" -->").unwrap();
        let block = rest.split_once("```text\n").unwrap().1;
        let block = block.split_once("\n```").unwrap().0;
        let said = std::fs::read_to_string(format!("../{path}")).unwrap();
        assert_eq!(block, said.trim_end(), "{path}");
        quoted += 1;
    }
    assert!(quoted >= 10, "{quoted}");
}

/// Every fixture says in its first line what it shows.
#[test]
fn every_fixture_has_its_sentence() {
    let (mut fail, mut pass) = (0, 0);
    let mut folders = vec![std::path::PathBuf::from("ui")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(text.starts_with("// "), "{}", path.display());
                if path.starts_with("ui/pass") { pass += 1 } else { fail += 1 }
            }
        }
    }
    assert!(fail >= 120 && pass >= 60, "{fail} that must fail, {pass} that must pass");
}
