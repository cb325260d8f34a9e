//! Programs that must not compile, with the compiler's output: the fixtures in `ui`. Those that trybuild
//! cannot compare are in `compiler/fixtures`, and code that must compile is in `accepted`.

#[test]
fn ui() {
    trybuild::TestCases::new().compile_fail("ui/**/*.rs");
}
