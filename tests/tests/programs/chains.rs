//! Chains of elementwise functions and their gradients: programs give the same results as eager mode.

use autograd_core::prelude::*;
use autograd_core::static_graph::{
    Executor, Feed, Fetch, Init, Program, Sgd, Variable, gradients, gradients_with,
};
use autograd_core::{DType, with_num_threads};
use support::leaf_like;

fn wave(shape: &[usize], by: f64) -> Tensor<f64> {
    let n: usize = shape.iter().product();
    let x = Tensor::from((0..n).map(|i| (i as f64 * by).sin() + 1.25).collect::<Vec<_>>());
    x.reshape(shape)
}

fn wanting(program: &Program, name: &str, shape: &[i64], dtype: DType) -> Variable {
    let x = program.data(name, shape, dtype).unwrap();
    x.set_stop_gradient(false);
    x
}

fn asked<'a>(variables: &[&'a Variable]) -> Vec<&'a dyn Fetch> {
    variables.iter().map(|variable| *variable as &dyn Fetch).collect()
}

fn run(program: &Program, feed: &[(&str, &dyn Feed)], fetch: &[&Variable]) -> Vec<Tensor<f64>> {
    let run = Executor::new().run(program, feed, &asked(fetch)).unwrap();
    run.iter().map(|value| value.downcast_ref::<f64>().unwrap().clone()).collect()
}

type OfTwo<X> = fn(&X, &X) -> X;

/// The functions of two tensors, in a program and in eager mode.
const OF_TWO: [(&str, OfTwo<Variable>, OfTwo<Tensor<f64>>); 7] = [
    ("add", |x, y| x + y, |x, y| x + y),
    ("sub", |x, y| x - y, |x, y| x - y),
    ("mul", |x, y| x * y, |x, y| x * y),
    ("div", |x, y| x / y, |x, y| x / y),
    ("pow", |x, y| x.pow(y).unwrap(), |x, y| x.pow(y)),
    ("maximum", |x, y| x.maximum(y).unwrap(), |x, y| x.maximum(y)),
    ("minimum", |x, y| x.minimum(y).unwrap(), |x, y| x.minimum(y)),
];

#[test]
fn both_gradients_of_a_function_of_two_inputs_are_those_of_eager_mode() {
    for (name, of_variables, of_tensors) in OF_TWO {
        let program = Program::new();
        let [x, y] = ["x", "y"].map(|name| wanting(&program, name, &[-1, 5], DType::Float64));
        let dz = program.data("dz", [-1, 5], DType::Float64).unwrap();
        let z = of_variables(&x, &y);
        let found = gradients_with(&[&z], &[&x, &y], &[Some(&dz)]).unwrap();
        let [dx, dy] = [0, 1].map(|at| found[at].clone().unwrap());
        for (rows, other) in [(3, 3), (4000, 4000), (1, 3), (3, 1), (0, 0), (0, 1)] {
            let whole = if rows == 1 { other } else { rows };
            let dz = wave(&[whole, 5], 0.3);
            let fed = [wave(&[5, rows], 0.7).transpose(), wave(&[other, 5], 0.9)];
            let feed: [(&str, &dyn Feed); 3] = [("x", &fed[0]), ("y", &fed[1]), ("dz", &dz)];
            let found = run(&program, &feed, &[&z, &dx, &dy]);
            let [x, y] = [leaf_like(&fed[0]), leaf_like(&fed[1])];
            let z = of_tensors(&x, &y);
            (&z * &dz).sum().backward().unwrap();
            let expected = [z, x.grad().unwrap(), y.grad().unwrap()];
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.shape(), expected.shape(), "{name} {rows} {other}");
                assert_eq!(found.to_vec(), expected.to_vec(), "{name} {rows} {other}");
            }
        }
    }
}

#[test]
fn gradients_of_chains_are_finite_differences() {
    for (name, of_variables, _) in OF_TWO {
        let program = Program::new();
        let [x, y] = ["x", "y"].map(|name| wanting(&program, name, &[-1, 4], DType::Float64));
        let z = of_variables(&x.sin().unwrap(), &(&y * &x)).tanh().unwrap();
        let z = if name == "pow" { of_variables(&x, &y).tanh().unwrap() } else { z };
        let found = gradients(&[&z], &[&x, &y]).unwrap();
        let [dx, dy] = [0, 1].map(|at| found[at].clone().unwrap());
        let second = gradients(&[&dx, &dy], &[&x, &y]).unwrap();
        let (x, y) = (wave(&[3, 4], 0.7), wave(&[3, 4], 0.45));
        let (along_x, along_y) = (wave(&[3, 4], 2.1), wave(&[3, 4], 1.3));
        let at = |step: f64, fetch: &[&Variable]| {
            let (x, y) = (&x + &along_x * step, &y + &along_y * step);
            let found = run(&program, &[("x", &x), ("y", &y)], fetch);
            found.iter().map(|found| found.sum().item()).sum::<f64>()
        };
        let along = |fetch: [&Variable; 2]| {
            let found = run(&program, &[("x", &x), ("y", &y)], &fetch);
            (&found[0] * &along_x).sum().item() + (&found[1] * &along_y).sum().item()
        };
        const STEP: f64 = 1e-6;
        for (of, by) in [
            (vec![&z], [&dx, &dy]),
            (vec![&dx, &dy], [second[0].as_ref().unwrap(), second[1].as_ref().unwrap()]),
        ] {
            let slope = (at(STEP, &of) - at(-STEP, &of)) / (2.0 * STEP);
            let found = along(by);
            assert!((slope - found).abs() < 1e-6 * found.abs().max(1.0), "{name}: {slope} {found}");
        }
    }
}

#[test]
fn gradients_of_broadcast_operands_are_those_of_eager_mode() {
    let program = Program::new();
    let x = wanting(&program, "x", &[-1, 6], DType::Float64);
    let row = wanting(&program, "row", &[6], DType::Float64);
    let column = wanting(&program, "column", &[-1, 1], DType::Float64);
    let one = wanting(&program, "one", &[], DType::Float64);
    let y = ((&x * &row).try_sub(&column).unwrap() * &one).tanh().unwrap();
    let found = gradients(&[&y], &[&x, &row, &column, &one]).unwrap();
    let found: Vec<Variable> = found.into_iter().flatten().collect();
    let fetch = [&y, &found[0], &found[1], &found[2], &found[3]];
    for rows in [4, 1, 900] {
        let fed = [wave(&[rows, 6], 0.3), wave(&[6], 0.5), wave(&[rows, 1], 0.7), wave(&[], 0.9)];
        let feed: [(&str, &dyn Feed); 4] =
            [("x", &fed[0]), ("row", &fed[1]), ("column", &fed[2]), ("one", &fed[3])];
        let found = run(&program, &feed, &fetch);
        let fed = fed.map(|x| leaf_like(&x));
        let y = ((&fed[0] * &fed[1] - &fed[2]) * &fed[3]).tanh();
        y.sum().backward().unwrap();
        assert_eq!(found[0].to_vec(), y.to_vec());
        for (found, fed) in found[1..].iter().zip(&fed) {
            let expected = fed.grad().unwrap();
            assert_eq!(found.shape(), expected.shape());
            assert_eq!(found.to_vec(), expected.to_vec(), "{rows}");
        }
    }
}

#[py_layer(elementwise)]
impl Turn {
    fn forward<L: Lane>(a: Real<L>, b: Real<L>, angle: Real<L>) -> (Real<L>, Real<L>) {
        let (sin, cos) = (angle.sin(), angle.cos());
        (a * cos - b * sin, a * sin + b * cos)
    }
}

#[py_layer(elementwise)]
impl Product {
    fn forward<L: Lane>(a: Real<L>, b: Real<L>) -> Real<L> {
        a * b
    }

    fn backward<L: Lane>(a: Real<L>, b: Real<L>, dy: Real<L>) -> (Real<L>, Real<L>) {
        (dy * b, dy * a)
    }
}

/// Ops of several inputs and outputs, with some large angles.
macro_rules! ops_of_several {
    ($name:ident, $t:ty, $dtype:expr) => {
        #[test]
        fn $name() {
            let program = Program::new();
            let [x, y, angle] =
                ["x", "y", "angle"].map(|name| wanting(&program, name, &[-1, 300], $dtype));
            let turn = program.py_layer(Turn::apply::<$t>).x([&x, &y, &angle]);
            let [u, v] = turn.call().unwrap();
            let z = program.py_layer(Product::apply::<$t>).x([&u, &v]).call().unwrap();
            let z = z.sin().unwrap();
            let found = gradients(&[&z], &[&x, &y, &angle]).unwrap();
            let found: Vec<Variable> = found.into_iter().flatten().collect();
            let fetch = [&z, &found[0], &found[1], &found[2]];
            // Only one of two outputs is used.
            let du = gradients(&[&u], &[&x, &y, &angle]).unwrap();
            let du: Vec<Variable> = du.into_iter().flatten().collect();
            let alone = [&du[0], &du[1], &du[2]];
            for rows in [2, 500] {
                let [x, y, angle] = [0.3, 0.7, 0.9].map(|by| wave(&[rows, 300], by).to_vec());
                let great = angle.iter().enumerate();
                let great = great.map(|(i, x)| if i % 97 == 0 { x * 3e7 } else { *x }).collect();
                let fed =
                    [x, y, great].map(|data| Tensor::from(data).reshape([rows, 300]).cast::<$t>());
                let feed: [(&str, &dyn Feed); 3] =
                    [("x", &fed[0]), ("y", &fed[1]), ("angle", &fed[2])];
                let executor = Executor::new();
                let of = |fetch: &[&Variable]| {
                    let [one, three] = [1, 3].map(|threads| {
                        let run = || executor.run(&program, &feed, &asked(fetch)).unwrap();
                        let values = with_num_threads(threads, run);
                        let values =
                            values.iter().map(|x| x.downcast_ref::<$t>().unwrap().to_vec());
                        values.collect::<Vec<_>>()
                    });
                    assert_eq!(one, three);
                    one
                };
                let leaves = fed.each_ref().map(|x| {
                    let x = x.detach();
                    x.set_stop_gradient(false);
                    x
                });
                let grads = || leaves.iter().map(|leaf_like| leaf_like.grad().unwrap().to_vec());
                let (u, v) = Turn::apply(&leaves[0], &leaves[1], &leaves[2]);
                let z = Product::apply(&u, &v).sin();
                let mut expected = vec![z.to_vec()];
                z.sum().backward().unwrap();
                expected.extend(grads());
                assert_eq!(of(&fetch), expected);
                leaves.iter().for_each(|leaf_like| leaf_like.clear_grad());
                let (u, _) = Turn::apply(&leaves[0], &leaves[1], &leaves[2]);
                u.sum().backward().unwrap();
                assert_eq!(of(&alone), grads().collect::<Vec<_>>());
            }
        }
    };
}

ops_of_several! { users_ops_of_several_f32_have_the_gradients_of_eager_mode, f32, DType::Float32 }
ops_of_several! { users_ops_of_several_f64_have_the_gradients_of_eager_mode, f64, DType::Float64 }

/// Operators that no fetched variable depends on do not run; updates do.
#[test]
fn steps_are_the_operators_that_run_and_what_they_read() {
    let program = Program::new();
    let x = program.data("x", [-1, 8], DType::Float64).unwrap();
    let w = program.create_parameter("w", [8, 8], DType::Float64, Init::Xavier).unwrap();
    let hidden = x.matmul(&w).unwrap();
    let squares = &hidden * &hidden;
    let _unused = squares.exp().unwrap();
    let loss = squares.mean().unwrap();
    Sgd::new(0.1).minimize(&loss).unwrap();
    let steps = |fetch: &[&dyn Fetch]| Executor::new().steps(&program, fetch).unwrap();
    let expected = [
        "matmul_0 = matmul(x, w)",
        "mul_0 = mul(matmul_0)",
        "mean_0 = mean(mul_0)",
        "mean_0@GRAD = fill_like(mean_0)",
        "mul_0@GRAD = mean_grad(mean_0@GRAD)",
        "matmul_0@GRAD, matmul_0@GRAD_0 = mul_grad(mul_0@GRAD)",
        "matmul_0@GRAD_1 = add_n(matmul_0@GRAD, matmul_0@GRAD_0)",
        "w@GRAD = matmul_grad(matmul_0@GRAD_1)",
        "sgd(w, w@GRAD) -> w",
    ];
    assert_eq!(steps(&[]), expected);
    assert_eq!(steps(&[&loss, &"w"]), expected);
}

#[test]
fn what_fails_in_a_chain_is_reported_of_its_operator() {
    let program = Program::new();
    let x = program.data("x", [-1], DType::Float64).unwrap();
    let y = program.data("y", [-1], DType::Float64).unwrap();
    let z = (&(&x * 2.0).exp().unwrap() / &y).tanh().unwrap();
    let (three, four) = (wave(&[3], 1.0), wave(&[4], 1.0));
    let feed: [(&str, &dyn Feed); 2] = [("x", &three), ("y", &four)];
    let error = Executor::new().run(&program, &feed, &[&z]).unwrap_err().to_string();
    assert!(error.starts_with("div (built at tests/tests/programs/chains.rs:"), "{error}");
    assert!(error.contains("[3]") && error.contains("[4]"), "{error}");
}
