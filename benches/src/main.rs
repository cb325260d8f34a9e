//! autograd-core beside its peers, in one run: `cargo run --release --manifest-path benches/Cargo.toml`.
//!
//! The candidates of a row take turns over several rounds, so that a slow moment of the machine
//! meets all of them; a figure is the median over the rounds, and what counts is the ratio. Before
//! anything is timed, the answers of all candidates are compared.

mod candle;
mod formulas;
mod hand;
mod limit;
mod ours;
mod program;

use std::hint::black_box;
use std::time::Instant;

/// Rounds in which every candidate has a turn.
const ROUNDS: usize = 15;
/// How long a turn lasts, at least.
const TURN_SECONDS: f64 = 0.04;
/// Ops in the chain of small tensors.
pub const CHAIN: usize = 100;

/// One way to do a row's work.
pub struct Candidate {
    name: &'static str,
    /// Does the work once.
    run: Box<dyn FnMut()>,
    /// What the work computes, to be compared.
    answer: Vec<f64>,
}

impl Candidate {
    pub fn new<R>(
        name: &'static str,
        mut work: impl FnMut() -> R + 'static,
        answer: Vec<f64>,
    ) -> Self {
        Self { name, run: Box::new(move || drop(black_box(work()))), answer }
    }
}

struct Row {
    title: &'static str,
    unit: &'static str,
    /// Seconds to the row's unit.
    scale: f64,
    candidates: Vec<Candidate>,
}

fn main() {
    let rows = [
        Row {
            title: "custom tanh op on [2, 3] f64, chain of 100, forward; an op",
            unit: "ns",
            scale: 1e9 / CHAIN as f64,
            candidates: vec![ours::small(false), candle::small(false), hand::small(false)],
        },
        Row {
            title: "the same, mean and backward too; an op",
            unit: "ns",
            scale: 1e9 / CHAIN as f64,
            candidates: vec![ours::small(true), candle::small(true), hand::small(true)],
        },
        Row {
            title: "custom tanh op on 1,000,000 f32, forward",
            unit: "us",
            scale: 1e6,
            candidates: vec![ours::large(false), candle::large(false), hand::large(false)],
        },
        Row {
            title: "the same, forward and backward",
            unit: "us",
            scale: 1e6,
            candidates: vec![ours::large(true), candle::large(true), hand::large(true)],
        },
        tanh_row("an elementwise op: tanh of 1,000,000 f32, forward and backward", 1_000_000),
        tanh_row("the same of 10,000 f32", 10_000),
        Row {
            title: "an elementwise op: gelu of 1,000,000 f32, forward and backward",
            unit: "us",
            scale: 1e6,
            candidates: formulas::gelus(1_000_000),
        },
        Row {
            title: "the document's net, four py_func tanh layers, batch 10, forward",
            unit: "us",
            scale: 1e6,
            candidates: nets(false),
        },
        Row { title: "the same, a training step", unit: "us", scale: 1e6, candidates: nets(true) },
        Row {
            title: "py_func int32 addition on [2, 3]",
            unit: "us",
            scale: 1e6,
            candidates: vec![program::integers()],
        },
    ];
    println!("| work | | time | against ours |\n|---|---|---:|---:|");
    for row in rows {
        report(row);
    }
}

fn tanh_row(title: &'static str, n: usize) -> Row {
    let mut candidates = formulas::tanh(n);
    candidates.extend([limit::tanh_both(n), candle::tanh(n, true), hand::tanh(n, true)]);
    Row { title, unit: "us", scale: 1e6, candidates }
}

fn nets(train: bool) -> Vec<Candidate> {
    use program::By;
    vec![
        program::by_program("a program, py_func over tensors", By::Tensors, train),
        program::by_program("a program, py_func over arrays", By::Arrays, train),
        program::by_program("a program, built-in tanh", By::BuiltIn, train),
        program::eagerly("eager, #[py_layer] tanh", By::Tensors, train),
        program::eagerly("eager, built-in tanh", By::BuiltIn, train),
    ]
}

fn report(mut row: Row) {
    check_answers(&row);
    let repeats: Vec<usize> = row.candidates.iter_mut().map(|c| calibrate(&mut c.run)).collect();
    let mut times = vec![Vec::with_capacity(ROUNDS); row.candidates.len()];
    for _ in 0..ROUNDS {
        for ((candidate, &n), times) in row.candidates.iter_mut().zip(&repeats).zip(&mut times) {
            times.push(time(&mut candidate.run, n));
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    for (i, (candidate, seconds)) in row.candidates.iter().zip(&medians).enumerate() {
        let title = if i == 0 { row.title } else { "" };
        println!(
            "| {title} | {} | {:.1} {} | {:.2} |",
            candidate.name,
            seconds * row.scale,
            row.unit,
            seconds / medians[0]
        );
    }
}

/// Seconds of one repetition.
fn time(run: &mut dyn FnMut(), repeats: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..repeats {
        run();
    }
    start.elapsed().as_secs_f64() / repeats as f64
}

/// How many repetitions a turn has.
fn calibrate(run: &mut dyn FnMut()) -> usize {
    let mut repeats = 1;
    loop {
        let seconds = time(run, repeats) * repeats as f64;
        if seconds > TURN_SECONDS / 2.0 {
            return (repeats as f64 * TURN_SECONDS / seconds).ceil() as usize;
        }
        repeats *= 2;
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn check_answers(row: &Row) {
    let expected = &row.candidates[0].answer;
    // Where terms cancel, what is left is as good as the largest of the numbers.
    let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    for candidate in &row.candidates[1..] {
        let same = candidate.answer.len() == expected.len()
            && candidate
                .answer
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() <= 2e-6 * b.abs().max(0.2 * largest));
        assert!(same, "{}: {} computes something else", row.title, candidate.name);
    }
}

/// The numbers every candidate starts with.
pub fn input(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 37 % 101) as f64 - 50.0) / 25.0).collect()
}
