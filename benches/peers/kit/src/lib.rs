//! The code that all peers' processes share: the inputs of the rows, the clock, and the protocol
//! with the runner.
//!
//! A peer reads one request a line and answers with one line:
//!
//! | request | answer |
//! |---|---|
//! | `answer ROW` | `numbers ..`, up to 64 of the numbers that the row's work computes, or `none` |
//! | `turn ROW SECONDS` | `seconds S`: of one repetition, over a turn of about that length |
//! | `repeat ROW N` | `done`, after N repetitions, for a count of instructions |
//! | `peak ROW` | `bytes B`: the rise of peak memory when the work runs once, without file pages |

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Instant;

/// Ops in the chain of small tensors, W1 and W2.
pub const CHAIN: usize = 100;
/// The constants of W2.
pub const AB: [f32; 2] = [1.02, 0.001];
/// Uses of the one leaf of W9.
pub const USES: usize = 10_000;
/// Elements of a tensor of W8, and ops in its chain.
pub const MEMORY: (usize, usize) = (1 << 20, 50);
/// Elements of a batch that becomes a tensor.
pub const BATCH_ELEMENTS: usize = 10_000;
/// Elements of W4.
pub const ELEMENTWISE: usize = 4_000_000;
/// The scalars of W4.
pub const ABC: [f32; 3] = [1.5, -0.25, 0.75];
/// The scalars of W7: what the chain multiplies by and adds, in turn.
pub const SCALARS: [f64; 2] = [0.999_5, 0.000_25];
/// The net of W6: its widths, its batch, and the learning rate.
pub const WIDTHS: [usize; 4] = [64, 256, 256, 10];
pub const BATCH: usize = 128;
pub const RATE: f64 = 0.01;
/// Shapes of a convolution: input, kernels, and output, which is also the input of the pooling.
pub const PICTURES: [usize; 4] = [32, 16, 32, 32];
pub const KERNELS: [usize; 4] = [32, 16, 3, 3];
pub const MAPS: [usize; 4] = [32, 32, 32, 32];

/// A peer's implementation of a row.
pub struct Work {
    run: Box<dyn FnMut()>,
    numbers: Vec<f64>,
    repeats: usize,
    /// The rise of peak memory during the work, in bytes.
    peak: Option<usize>,
}

impl Work {
    /// Runs `work` once, for its numbers.
    pub fn new<R>(
        mut work: impl FnMut() -> R + 'static,
        numbers: impl FnOnce(R) -> Vec<f64>,
    ) -> Option<Self> {
        let before = forget_peak();
        let result = work();
        let peak = own("VmHWM:").zip(before).map(|(after, before)| after.saturating_sub(before));
        let numbers = sample(&numbers(result));
        Some(Self { run: Box::new(move || drop(black_box(work()))), numbers, repeats: 0, peak })
    }

    fn turn(&mut self, seconds: f64) -> f64 {
        if self.repeats == 0 {
            self.repeats = 1;
            while self.time() < seconds / 2.0 {
                self.repeats *= 2;
            }
            self.repeats = (self.repeats as f64 * seconds / self.time()).ceil() as usize;
        }
        self.time() / self.repeats as f64
    }

    fn time(&mut self) -> f64 {
        let start = Instant::now();
        for _ in 0..self.repeats {
            (self.run)();
        }
        start.elapsed().as_secs_f64()
    }
}

/// At most 64 numbers, evenly spread, including the last.
fn sample(all: &[f64]) -> Vec<f64> {
    let n = all.len().min(64);
    (1..=n).map(|i| all[i * all.len() / n - 1]).collect()
}

/// Answers requests until the input ends. `rows` creates the work of a row, if the peer has it. Only the
/// work of the last row is kept.
pub fn serve(rows: impl Fn(&str) -> Option<Work>) {
    let mut last: Option<(String, Option<Work>)> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("the runner writes lines");
        let words: Vec<&str> = line.split_whitespace().collect();
        let row = words[1];
        if last.as_ref().is_none_or(|(name, _)| name != row) {
            drop(last.take());
            last = Some((row.to_owned(), rows(row)));
        }
        match (words[0], last.as_mut().and_then(|(_, work)| work.as_mut())) {
            (_, None) => say("none"),
            ("answer", Some(work)) => {
                let numbers: Vec<String> = work.numbers.iter().map(|v| format!("{v:e}")).collect();
                say(&format!("numbers {}", numbers.join(" ")));
            }
            ("peak", Some(work)) => match work.peak {
                Some(bytes) => say(&format!("bytes {bytes}")),
                None => say("none"),
            },
            ("turn", Some(work)) => {
                let seconds = words[2].parse().expect("the runner says how long");
                say(&format!("seconds {:e}", work.turn(seconds)));
            }
            ("repeat", Some(work)) => {
                let times: usize = words[2].parse().expect("the runner says how often");
                (0..times).for_each(|_| (work.run)());
                say("done");
            }
            (other, _) => panic!("no request is called {other}"),
        }
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the runner listens");
}

/// Resets the peak of memory to the current use, and returns it. `None` on other systems than Linux.
fn forget_peak() -> Option<usize> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    own("VmRSS:")
}

/// A line of `/proc/self/status` without file pages: a program's code is loaded as it runs.
fn own(name: &str) -> Option<usize> {
    Some(memory(name)?.saturating_sub(memory("RssFile:")?))
}

/// A line of `/proc/self/status`, in bytes; `None` on other systems than Linux.
fn memory(name: &str) -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kib| kib * 1024)
}

/// The size at the end of a row's name: 1000 for `W7-1000`.
pub fn size(row: &str) -> usize {
    row.rsplit('-').next().and_then(|n| n.parse().ok()).expect("the row's name ends in a size")
}

/// The numbers that every peer starts with.
pub fn input(n: usize) -> Vec<f64> {
    scaled(n, 1.0)
}

pub fn input_f32(n: usize) -> Vec<f32> {
    scaled_f32(n, 1.0)
}

pub fn scaled(n: usize, scale: f64) -> Vec<f64> {
    (0..n).map(|i| ((i * 37 % 101) as f64 - 50.0) / 25.0 * scale).collect()
}

pub fn scaled_f32(n: usize, scale: f64) -> Vec<f32> {
    scaled(n, scale).into_iter().map(|v| v as f32).collect()
}

/// Weight and bias of each layer of a net, row by row, with inputs as rows.
pub fn weights(widths: &[usize]) -> Vec<(Vec<f32>, Vec<f32>)> {
    let layers = widths.windows(2);
    layers.map(|w| (scaled_f32(w[0] * w[1], 0.05), scaled_f32(w[1], 0.05))).collect()
}

/// The sides of a matrix whose elements are moved.
pub const SIDE: usize = 1000;

/// `n` indices on an axis of [`SIDE`] elements.
pub fn places(n: usize) -> Vec<i64> {
    (0..n).map(|i| (i * 7919 % SIDE) as i64).collect()
}

/// The class of each example of a batch.
pub fn classes(batch: usize, classes: usize) -> Vec<usize> {
    (0..batch).map(|i| i * 7 % classes).collect()
}

pub fn widened(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| f64::from(v)).collect()
}
