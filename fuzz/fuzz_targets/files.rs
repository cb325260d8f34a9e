//! Safetensors files: arbitrary bytes, and mutated valid files.

#![no_main]

#[path = "../../tests/tests/fuzz/choices.rs"]
mod choices;
#[path = "../../tests/tests/fuzz/files.rs"]
mod files;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    files::read(bytes);
    files::read(&files::nearly_right(&mut choices::Choices::new(bytes)));
});
