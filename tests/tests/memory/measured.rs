//! Memory in use, counted by the allocator, of a process that runs one test.

use std::any::type_name_of_val;
use std::env;
use std::process::Command;

use peak_alloc::PeakAlloc;

/// Counts all threads, so tests that read it run in processes of their own.
#[global_allocator]
pub(crate) static MEMORY: PeakAlloc = PeakAlloc;

/// Runs the rest of the test in a process of its own, where no other test allocates.
macro_rules! alone {
    () => {
        fn here() {}
        if $crate::measured::was_run_alone(&here) {
            return;
        }
    };
}
pub(crate) use alone;

/// Runs the test around `here` in another process; returns whether this is not that process.
pub(crate) fn was_run_alone<F>(here: &F) -> bool {
    const ALONE: &str = "MEASURED_ALONE";
    if env::var_os(ALONE).is_some() {
        return false;
    }
    // Without the name of the crate.
    let path = type_name_of_val(here).trim_end_matches("::here");
    let name = path.split_once("::").map_or(path, |(_, name)| name);
    let mut again = Command::new(env::current_exe().unwrap());
    again.args([name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]);
    let output = again.env(ALONE, "1").output().unwrap();
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "in its process: {text}");
    true
}

/// The peak of bytes held during `f`, in addition to those held before.
pub(crate) fn peak(f: impl FnOnce()) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    f();
    MEMORY.peak_usage() - before
}
