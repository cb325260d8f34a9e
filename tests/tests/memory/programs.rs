//! Memory that runs of a program request: counted by the allocator, with the pool's free buffers.

use crate::measured::alone;
use autograd_core::static_graph::{
    Adam, Executor, Feed, Fetch, Init, Program, Sgd, Variable, gradients,
};
use autograd_core::{DType, Tensor, empty_buffer_pool};

/// Rows and columns of a matrix of 4 MiB.
const N: usize = 1024;
const MATRIX: usize = N * N * size_of::<f32>();

/// The peak memory in use during `f`, in matrices, in addition to the memory in use
/// before.
fn peak(f: impl FnOnce()) -> f64 {
    crate::measured::peak(f) as f64 / MATRIX as f64
}

fn matrix(program: &Program, name: &str) -> Variable {
    let shape = [N, N];
    program.create_parameter(name, shape, DType::Float32, Init::Uniform(-0.01, 0.01)).unwrap()
}

fn ready(program: &Program) -> Executor {
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    executor
}

#[test]
fn a_run_computes_in_the_buffers_of_the_run_before() {
    alone!();
    let program = Program::new();
    let x = program.data("x", [-1, N as i64], DType::Float32).unwrap();
    let (w, v) = (matrix(&program, "w"), matrix(&program, "v"));
    let hidden = x.matmul(&w).unwrap().tanh().unwrap().sigmoid().unwrap();
    let loss = hidden.matmul(&v).unwrap().softmax(-1).unwrap().square().unwrap();
    let loss = loss.mean().unwrap();
    Adam::new(1e-3).minimize(&loss).unwrap();
    let executor = ready(&program);
    let fed = Tensor::<f32>::full([N, N], 0.5);
    let run = || drop(executor.run(&program, &[("x", &fed)], &[&loss]).unwrap());
    let first = peak(run);
    assert!(first > 3.0, "{first}");
    run();
    let later = peak(run);
    assert!(later < 0.1, "{later}");
}

const SIDE: usize = 33;
const BUFFER: usize = SIDE * SIDE * size_of::<f32>();

/// A net that is trained, with buffers of `BUFFER` bytes.
struct Small {
    program: Program,
    hidden: Variable,
    loss: Variable,
    executor: Executor,
    fed: Tensor,
    right: Tensor<i64>,
}

impl Small {
    fn new() -> Self {
        let program = Program::new();
        let x = program.data("x", [-1, SIDE as i64], DType::Float32).unwrap();
        let classes = program.data("classes", [-1], DType::Int64).unwrap();
        let mut hidden = x;
        for _ in 0..6 {
            hidden = program.fc(&hidden, SIDE).unwrap().tanh().unwrap();
        }
        let loss = program.cross_entropy(&hidden, &classes).unwrap();
        Sgd::new(0.01).minimize(&loss).unwrap();
        let executor = ready(&program);
        let fed = Tensor::full([SIDE, SIDE], 0.5);
        let right = Tensor::from((0..SIDE as i64).collect::<Vec<_>>());
        Self { program, hidden, loss, executor, fed, right }
    }
}

/// Free buffers of this size stay with the thread, as many as a small net needs.
#[test]
fn a_run_after_the_first_asks_for_no_memory_but_for_what_it_fetches() {
    alone!();
    let Small { program, hidden, loss, executor, fed, right } = Small::new();
    let feed: [(&str, &dyn Feed); 2] = [("x", &fed), ("classes", &right)];
    let run = |fetch: &dyn Fetch| drop(executor.run(&program, &feed, &[fetch]).unwrap());
    let asked = |fetch: &dyn Fetch| {
        run(fetch);
        run(fetch);
        crate::measured::peak(|| run(fetch))
    };
    // None of more than thirty values; but a product copies strided operands.
    let few = asked(&loss);
    assert!(few < 3 * BUFFER, "{few} bytes");
    let whole = asked(&hidden);
    assert!(whole <= few + BUFFER + BUFFER / 2, "{whole} bytes");
}

#[test]
fn a_value_that_was_read_for_the_last_time_lends_its_buffer() {
    alone!();
    let program = Program::new();
    let w = matrix(&program, "w");
    let mut y = w.matmul(&w).unwrap();
    for _ in 0..20 {
        y = y.matmul(&w).unwrap().tanh().unwrap();
        y = (&y * 0.5).softmax(-1).unwrap();
    }
    let executor = ready(&program);
    empty_buffer_pool();
    // An operand and a result, and panels of a factor for each of two threads.
    let found = peak(|| drop(executor.run(&program, &[], &[&y]).unwrap()));
    assert!(found < 3.4, "{found}");
}

/// Gradients keep what the eager rules save, not all inputs and outputs.
#[test]
fn a_gradient_keeps_what_eager_mode_keeps() {
    const DEPTH: usize = 8;
    alone!();
    let program = Program::new();
    let x = program.data("x", [N as i64, N as i64], DType::Float32).unwrap();
    x.set_stop_gradient(false);
    let mut y = x.clone();
    for _ in 0..DEPTH {
        // Of these ops, only the last saves a tensor: its output.
        y = ((&y + &x) - 0.5).tanh().unwrap();
    }
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    let executor = ready(&program);
    let fed = Tensor::<f32>::full([N, N], 0.5);
    empty_buffer_pool();
    let found = peak(|| drop(executor.run(&program, &[("x", &fed)], &[&dx]).unwrap()));
    assert!(found < DEPTH as f64 + 4.5, "{found}");
}

#[test]
fn a_step_changes_parameters_where_they_stand() {
    alone!();
    let program = Program::new();
    let x = program.data("x", [-1, N as i64], DType::Float32).unwrap();
    let w = matrix(&program, "w");
    let loss = x.matmul(&w).unwrap().tanh().unwrap().mean().unwrap();
    Sgd::new(0.1).momentum(0.9).minimize(&loss).unwrap();
    let executor = ready(&program);
    let fed = Tensor::<f32>::full([4, N], 0.5);
    let run = || drop(executor.run(&program, &[("x", &fed)], &[&loss]).unwrap());
    run();
    empty_buffer_pool();
    // The gradient, and panels of a factor.
    let found = peak(run);
    assert!(found < 1.2, "{found}");
    // If the old parameter is held elsewhere, it is copied.
    let held = executor.parameter("w").unwrap();
    let before = held.to_string();
    assert!(peak(run) > 0.9);
    assert_eq!(held.to_string(), before);
    assert_ne!(executor.parameter("w").unwrap().to_string(), before);
}

/// With small buffers, as above.
#[test]
fn a_schedule_of_learning_rates_keeps_the_plan_and_its_buffers() {
    alone!();
    let Small { program, loss, executor, fed, right, .. } = Small::new();
    let feed: [(&str, &dyn Feed); 2] = [("x", &fed), ("classes", &right)];
    let step = |n: usize| {
        program.set_learning_rate(0.1 / n as f64).unwrap();
        drop(executor.run(&program, &feed, &[&loss]).unwrap());
    };
    (1..3).for_each(step);
    for n in 3..6 {
        let asked = crate::measured::peak(|| step(n));
        assert!(asked < 3 * BUFFER, "{asked} bytes");
    }
}
