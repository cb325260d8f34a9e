//! Calls of the engine in any order.

#![no_main]

#[path = "../../tests/tests/fuzz/choices.rs"]
mod choices;
#[path = "../../tests/tests/fuzz/engine.rs"]
mod engine;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // Deliberate panics are part of the work; libFuzzer would report each.
    static QUIET: std::sync::Once = std::sync::Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    if std::panic::catch_unwind(|| engine::run(bytes)).is_err() {
        std::process::abort();
    }
});
