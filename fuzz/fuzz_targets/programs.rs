//! Programs in files, loaded and run.

#![no_main]

#[path = "../../tests/tests/fuzz/choices.rs"]
mod choices;
#[path = "../../tests/tests/fuzz/programs.rs"]
mod programs;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // A program's user code may panic, which the executor turns into an error.
    static QUIET: std::sync::Once = std::sync::Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let path = std::env::temp_dir().join(format!("fuzzed-{}", std::process::id()));
    let file = programs::nearly_right(&mut choices::Choices::new(bytes));
    let run = || {
        std::fs::write(&path, file.to_bytes().expect("bytes")).expect("a file");
        programs::load_and_run(&path);
    };
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
        std::process::abort();
    }
});
