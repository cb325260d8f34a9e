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
