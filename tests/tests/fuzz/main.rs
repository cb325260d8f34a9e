//! Unlikely input from seeded random bytes: a few seconds here, longer with
//! `FUZZ=100 cargo test --release -p tests --test fuzz`, which multiplies the rounds, and
//! under libFuzzer in `fuzz/`, which runs the same functions.

mod choices;
mod engine;
mod files;
#[path = "../memory/measured.rs"]
mod measured;
mod programs;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use autograd_core::empty_buffer_pool;
use choices::Choices;
use measured::{MEMORY, alone, peak};

/// Runs `f` on random bytes, `count` times the number in `FUZZ`; names the round that fails.
fn rounds(count: u64, length: usize, mut f: impl FnMut(&[u8])) {
    let times = std::env::var("FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    for round in 0..count * times {
        let mut state = round ^ 0x9e37_79b9_7f4a_7c15;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(length)
        .collect();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| f(&bytes))) {
            eprintln!("in round {round}");
            resume_unwind(panic);
        }
    }
}

/// The memory that reading a file of `len` bytes may use: its header as text and as a list of names
/// and offsets, and its tensors; a small tensor is larger than its line.
fn justified(len: usize) -> usize {
    32 * len + (256 << 10)
}

#[test]
fn files_are_read_or_refused() {
    alone!();
    rounds(10_000, 200, |bytes| {
        let file = files::nearly_right(&mut Choices::new(bytes));
        empty_buffer_pool();
        let held = peak(|| drop(autograd_core::safetensors::SafeTensors::from_bytes(&file)));
        assert!(held <= justified(file.len()), "{held} bytes held for a file of {}", file.len());
        files::read(&file);
    });
}

/// The files with the greatest demand for each byte: many small tensors, many axes, long names.
#[test]
fn memory_is_asked_for_as_the_file_justifies() {
    alone!();
    let many: Vec<String> = (0..20_000)
        .map(|i| {
            format!("\"{i}\":{{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[{i},{}]}}", i + 1)
        })
        .collect();
    let axes = "1,".repeat(500_000);
    let long = "x".repeat(1_000_000);
    let entry = |name: &str, shape: &str| {
        format!("{{\"{name}\":{{\"dtype\":\"U8\",\"shape\":[{shape}],\"data_offsets\":[0,1]}}}}")
    };
    for (header, data) in [
        (format!("{{{}}}", many.join(",")), 20_000),
        (entry("a", &format!("{axes}1")), 1),
        (entry(&long, "1"), 1),
        ("{\"a\":".repeat(200_000), 0),
        (entry("a", "1099511627776"), 1),
    ] {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header.as_bytes());
        file.resize(file.len() + data, 0);
        empty_buffer_pool();
        let held = peak(|| drop(autograd_core::safetensors::SafeTensors::from_bytes(&file)));
        let per_byte = held as f64 / file.len() as f64;
        assert!(held <= justified(file.len()), "{per_byte:.1} bytes held for each of the file's");
    }
}

/// Calls of the engine in any order; none of them leaks.
#[test]
fn calls_in_any_order_break_nothing() {
    alone!();
    std::panic::set_hook(Box::new(|_| {}));
    // Enough for a hundred times the rounds: a list that grows would be measured too.
    let mut after = Vec::with_capacity(1 << 18);
    rounds(2_000, 160, |bytes| {
        engine::run(bytes);
        empty_buffer_pool();
        after.push(MEMORY.current_usage());
    });
    let _ = std::panic::take_hook();
    let (first, last) = (after[after.len() / 2], after[after.len() - 1]);
    assert!(last <= first + (64 << 10), "{first} bytes held half way, {last} at the end");
}

#[test]
fn programs_are_loaded_or_refused() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("fuzzed-program-{}", std::process::id()));
    rounds(1_500, 64, |bytes| {
        let file = programs::nearly_right(&mut Choices::new(bytes)).to_bytes().unwrap();
        std::fs::write(&path, &file).unwrap();
        programs::load_and_run(&path);
    });
    let _ = std::fs::remove_file(path);
}

/// `fuzz/`, which no test builds, lists the modules of the macros again.
#[test]
fn the_fuzzer_of_the_macros_knows_their_modules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let source = std::fs::read_to_string(root.join("autograd-macros/src/lib.rs")).unwrap();
    let target = std::fs::read_to_string(root.join("fuzz/fuzz_targets/macros.rs")).unwrap();
    let modules = source.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    let mut count = 0;
    for module in modules.filter(|module| *module != "tests") {
        let line = target.lines().find(|line| line.ends_with(&format!("\" {module}")));
        let path = line.and_then(|line| line.split('"').nth(1)).unwrap_or("not there");
        let is_file = root.join("fuzz/fuzz_targets").join(path).is_file();
        assert!(is_file, "fuzz/fuzz_targets/macros.rs: `{module}`: {path}");
        count += 1;
    }
    assert!(count > 20, "only {count} modules");
}
