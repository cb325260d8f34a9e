//! Ratios of the times of two threads and of one, for ops and sizes; a table for `docs/benchmarks.md`.
//!
//! One and two threads take turns, so that a slow moment of the machine affects both. In the first table
//! the second thread sleeps when a turn begins. In the second it is awake after a large product, as in a
//! training step. In the third it is kept awake. The program also prints the latency between the two
//! cores: on a virtual machine it may change by the minute.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use autograd_core::optim::{Adam, Optimizer};
use autograd_core::{Tensor, set_num_threads, with_threads_awake};

/// The approximate seconds of a turn, and the number of turns.
const TURN: f64 = 0.004;
const TURNS: usize = 25;

fn numbers(n: usize) -> Tensor<f32> {
    Tensor::from((0..n).map(|i| ((i * 37 % 101) as f32 - 50.0) / 25.0).collect::<Vec<_>>())
}

/// A square matrix of at most `n` elements.
fn matrix(n: usize) -> Tensor<f32> {
    let side = (n as f64).sqrt() as usize;
    numbers(side * side).reshape([side, side])
}

fn work(op: &str, n: usize) -> Box<dyn FnMut()> {
    match op {
        "`x + y`" => {
            let (x, y) = (numbers(n), numbers(n));
            Box::new(move || drop(black_box(&x + &y)))
        }
        "`x.tanh()`" => {
            let x = numbers(n);
            Box::new(move || drop(black_box(x.tanh())))
        }
        "`x.tanh()`, backward" => {
            let (x, seed) = (numbers(n), Tensor::ones([n]));
            x.set_stop_gradient(false);
            Box::new(move || {
                x.tanh().backward_with(&seed).expect("the graph is new");
                x.clear_grad();
            })
        }
        "`x.sum()`" => {
            let x = numbers(n);
            Box::new(move || drop(black_box(x.sum())))
        }
        "`x.sum_axes(&[0])`" => {
            let x = matrix(n);
            Box::new(move || drop(black_box(x.sum_axes(&[0]))))
        }
        "`x.sum_axes(&[1])`" => {
            let x = matrix(n);
            Box::new(move || drop(black_box(x.sum_axes(&[1]))))
        }
        "`x + row`" => {
            let x = matrix(n);
            let row = numbers(x.shape()[1]);
            Box::new(move || drop(black_box(&x + &row)))
        }
        "`x.softmax(1)`" => {
            let x = matrix(n);
            Box::new(move || drop(black_box(x.softmax(1))))
        }
        "`x.matmul(&y)`" => {
            let (x, y) = (matrix(n), matrix(n));
            Box::new(move || drop(black_box(x.matmul(&y))))
        }
        "a step of Adam" => {
            let p = numbers(n);
            p.set_stop_gradient(false);
            (&p * &p).sum().backward().expect("the graph is new");
            let mut adam = Optimizer::new(&p, Adam::new(1e-3));
            Box::new(move || adam.step().expect("gradients fit"))
        }
        other => unreachable!("no work is called {other}"),
    }
}

fn seconds(repeats: usize, work: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    (0..repeats).for_each(|_| work());
    start.elapsed().as_secs_f64() / repeats as f64
}

/// The median of the ratios of the pairs of turns.
fn ratio(mut work: Box<dyn FnMut()>, before: &dyn Fn()) -> f64 {
    let mut repeats = 1;
    while seconds(repeats, &mut work) * (repeats as f64) < TURN {
        repeats *= 2;
    }
    let mut ratios: Vec<f64> = (0..TURNS)
        .map(|_| {
            let [one, two] = [1, 2].map(|threads| {
                set_num_threads(threads);
                before();
                seconds(repeats, &mut work)
            });
            two / one
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[TURNS / 2]
}

/// The time for a write of one core to reach the other and be answered.
fn round_trip() -> Duration {
    const TRIPS: usize = 100_000;
    let turn = AtomicUsize::new(0);
    let wait = |count| {
        while turn.load(Ordering::Acquire) != count {
            std::hint::spin_loop();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for trip in 0..TRIPS {
                wait(2 * trip + 1);
                turn.store(2 * trip + 2, Ordering::Release);
            }
        });
        let start = Instant::now();
        for trip in 0..TRIPS {
            turn.store(2 * trip + 1, Ordering::Release);
            wait(2 * trip + 2);
        }
        start.elapsed() / TRIPS as u32
    })
}

fn main() {
    table("alone", &|| {});
    let large = matrix(360_000);
    table("after a large product", &|| drop(black_box(large.matmul(&large))));
    with_threads_awake(|| table("in `with_threads_awake`", &|| {}));
}

fn table(title: &str, before: &dyn Fn()) {
    println!("A number goes to the other core and back in {:?}.\n", round_trip());
    let sizes = [100, 1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000];
    let ops = [
        "`x + y`",
        "`x + row`",
        "`x.tanh()`",
        "`x.tanh()`, backward",
        "`x.sum()`",
        "`x.sum_axes(&[0])`",
        "`x.sum_axes(&[1])`",
        "`x.softmax(1)`",
        "`x.matmul(&y)`",
        "a step of Adam",
    ];
    print!("| f32, {title} |");
    sizes.iter().for_each(|n| print!(" {n} |"));
    print!("\n|---|");
    sizes.iter().for_each(|_| print!("---:|"));
    println!();
    for op in ops {
        print!("| {op} |");
        sizes.iter().for_each(|&n| print!(" {:.2} |", ratio(work(op, n), before)));
        println!();
    }
    println!();
}
