//! Common mistakes in programs, and their error messages: each is in `words.txt`, which
//! `UPDATE_EXPECTED=1 cargo test -p tests --test programs words` rewrites.

use std::fmt::Write;

use autograd_core::prelude::*;
use autograd_core::static_graph::{
    Adam, Executor, Feed, Fetch, Functions, Init, Program, Sgd, Variable, append_backward,
    gradients, gradients_with,
};
use autograd_core::{DType, Result};
use ndarray::{ArrayD, ArrayViewD, arr1, arr2};

fn double(x: ArrayViewD<f32>) -> ArrayD<f32> {
    2.0 * &x
}

fn pair(x: ArrayViewD<f32>) -> (ArrayD<f32>, ArrayD<f32>) {
    (x.to_owned(), x.to_owned())
}

fn one_gradient(dy: ArrayViewD<f32>) -> ArrayD<f32> {
    dy.to_owned()
}

fn add(x: ArrayViewD<f32>, y: ArrayViewD<f32>) -> ArrayD<f32> {
    &x + &y
}

fn first_row(x: ArrayViewD<f32>) -> ArrayD<f32> {
    x.outer_iter().next().map(|row| row.to_owned()).unwrap_or_default()
}

/// `x`, a matrix of two columns.
fn data(program: &Program) -> Result<Variable> {
    program.data("x", [-1, 2], DType::Float32)
}

fn out(program: &Program, like: &Variable) -> Result<Variable> {
    program.current_block().create_var("out", like.dtype(), like.shape())
}

/// Runs a program on a matrix of two rows.
fn run(program: &Program, fetch: &[&dyn Fetch]) -> Result<Vec<AnyTensor>> {
    Executor::new().run(program, &[("x", &arr2(&[[1.0_f32, 2.0], [3.0, 4.0]]))], fetch)
}

type Case = (&'static str, fn(&Program) -> Result<()>);

const CASES: &[Case] = &[
    ("a feed of another name", |program| {
        let y = data(program)?.tanh()?;
        Executor::new().run(program, &[("X", &arr2(&[[1.0_f32, 2.0]]))], &[&y]).map(drop)
    }),
    ("no feed", |program| {
        let y = data(program)?.tanh()?;
        Executor::new().run(program, &[], &[&y]).map(drop)
    }),
    ("a feed twice", |program| {
        let y = data(program)?.tanh()?;
        let x = arr2(&[[1.0_f32, 2.0]]);
        Executor::new().run(program, &[("x", &x), ("x", &x)], &[&y]).map(drop)
    }),
    ("a feed of another shape", |program| {
        let y = data(program)?.tanh()?;
        Executor::new().run(program, &[("x", &arr1(&[1.0_f32, 2.0]))], &[&y]).map(drop)
    }),
    ("a feed of another element type", |program| {
        let y = data(program)?.tanh()?;
        Executor::new().run(program, &[("x", &arr2(&[[1.0, 2.0]]))], &[&y]).map(drop)
    }),
    ("a computed variable is fed", |program| {
        let y = data(program)?.tanh()?;
        let x = arr2(&[[1.0_f32, 2.0]]);
        Executor::new().run(program, &[(&y.name(), &x), ("x", &x)], &[&y]).map(drop)
    }),
    ("a fetch of an unknown name", |program| {
        data(program)?.tanh()?;
        run(program, &[&"tanh"]).map(drop)
    }),
    ("a fetch from another program", |program| {
        data(program)?.tanh()?;
        let other = Program::new();
        let y = data(&other)?.sigmoid()?;
        run(program, &[&y]).map(drop)
    }),
    ("a fetch of what nothing computes", |program| {
        let x = data(program)?;
        let y = out(program, &x)?;
        run(program, &[&y]).map(drop)
    }),
    ("a run before the startup program", |program| {
        let y = program.fc(&data(program)?, 3)?;
        run(program, &[&y]).map(drop)
    }),
    ("a variable of another program", |program| {
        let other = Program::new();
        data(program)?.try_add(&data(&other)?).map(drop)
    }),
    ("shapes that cannot agree", |program| {
        let b = program.create_parameter("b", [3], DType::Float32, Init::Constant(0.0))?;
        data(program)?.try_add(&b).map(drop)
    }),
    ("element types that cannot agree", |program| {
        let b = program.create_parameter("b", [2], DType::Float64, Init::Constant(0.0))?;
        data(program)?.try_add(&b).map(drop)
    }),
    ("matrices that do not fit", |program| {
        let w = program.create_parameter("w", [3, 4], DType::Float32, Init::Xavier)?;
        data(program)?.matmul(&w).map(drop)
    }),
    ("an axis that is not there", |program| data(program)?.sum_axes([2]).map(drop)),
    ("fc of a vector", |program| {
        let x = program.data("x", [4], DType::Float32)?;
        program.fc(&x, 3).map(drop)
    }),
    ("fc of integers", |program| {
        let x = program.data("x", [-1, 4], DType::Int64)?;
        program.fc(&x, 3).map(drop)
    }),
    ("fc of no columns", |program| program.fc(&data(program)?, 0).map(drop)),
    ("classes of floats", |program| {
        let x = data(program)?;
        program.cross_entropy(&x, &x).map(drop)
    }),
    ("a class outside", |program| {
        let classes = program.data("classes", [-1], DType::Int64)?;
        let loss = program.cross_entropy(&data(program)?, &classes)?;
        let (x, right) = (arr2(&[[1.0_f32, 2.0]]), arr1(&[2_i64]));
        let feed: [(&str, &dyn Feed); 2] = [("x", &x), ("classes", &right)];
        Executor::new().run(program, &feed, &[&loss]).map(drop)
    }),
    ("a name twice", |program| {
        data(program)?;
        program.data("x", [3], DType::Float32).map(drop)
    }),
    ("a length of nothing", |program| program.data("x", [-2, 3], DType::Float32).map(drop)),
    ("a parameter with a free axis", |program| {
        program.create_parameter("w", [-1, 3], DType::Float32, Init::Xavier).map(drop)
    }),
    ("a loss of many elements", |program| {
        let y = program.fc(&data(program)?, 3)?;
        Sgd::new(0.1).minimize(&y).map(drop)
    }),
    ("a loss without parameters", |program| {
        let loss = data(program)?.mean()?;
        Sgd::new(0.1).minimize(&loss).map(drop)
    }),
    ("minimize twice", |program| {
        let loss = program.fc(&data(program)?, 3)?.mean()?;
        Sgd::new(0.1).minimize(&loss)?;
        Adam::new(0.1).minimize(&loss).map(drop)
    }),
    ("a negative learning rate", |program| {
        let loss = program.fc(&data(program)?, 3)?.mean()?;
        Sgd::new(-0.1).minimize(&loss).map(drop)
    }),
    ("a loss of integers", |program| {
        let x = program.data("x", [1], DType::Int64)?;
        append_backward(&x).map(drop)
    }),
    ("a seed of another shape", |program| {
        let x = data(program)?;
        x.set_stop_gradient(false);
        let y = x.tanh()?;
        let seed = program.data("seed", [3], DType::Float32)?;
        gradients_with(&[&y], &[&x], &[Some(&seed)]).map(drop)
    }),
    ("an operator after the update", |program| {
        let loss = program.fc(&data(program)?, 3)?.mean()?;
        let pairs = Sgd::new(0.1).minimize(&loss)?;
        pairs[0].0.square().map(drop)
    }),
    ("a py_func without `x`", |program| {
        let x = data(program)?;
        program.py_func(double).out(&out(program, &x)?).call().map(drop)
    }),
    ("a py_func without `out`", |program| {
        program.py_func(double).x(&data(program)?).call().map(drop)
    }),
    ("a py_func of other elements", |program| {
        let x = program.data("x", [2], DType::Int32)?;
        program.py_func(double).x(&x).out(&out(program, &x)?).call().map(drop)
    }),
    ("a backward of other parameters", |program| {
        let x = data(program)?;
        let call = program.py_func(double).x(&x).out(&out(program, &x)?);
        call.backward_func(one_gradient).call().map(drop)
    }),
    ("a backward of other gradients", |program| {
        let x = data(program)?;
        let call = program.py_func(add).x([&x, &x]).out(&out(program, &x)?);
        call.backward_func(
            |x: ArrayViewD<f32>, _: ArrayViewD<f32>, _: ArrayViewD<f32>, _: ArrayViewD<f32>| {
                x.to_owned()
            },
        )
        .call()
        .map(drop)
    }),
    ("skipping a gradient", |program| {
        let x = data(program)?;
        x.set_stop_gradient(false);
        let dx = gradients(&[&x.tanh()?], &[&x])?.remove(0).unwrap();
        let call = program.py_func(double).x(&x).out(&out(program, &x)?);
        call.backward_func(add).skip_vars_in_backward_input([&dx]).call().map(drop)
    }),
    ("an output that is computed already", |program| {
        let x = data(program)?;
        let y = x.tanh()?;
        program.py_func(double).x(&x).out(&y).call().map(drop)
    }),
    ("an output that is its input", |program| {
        let x = data(program)?;
        program.py_func(double).x(&x).out(&x).call().map(drop)
    }),
    ("the same output twice", |program| {
        let x = data(program)?;
        let y = out(program, &x)?;
        program.py_func(pair).x(&x).out([&y, &y]).call().map(drop)
    }),
    ("a py_func that returns another shape", |program| {
        let x = data(program)?;
        let y = program.py_func(first_row).x(&x).out(&out(program, &x)?).call()?;
        run(program, &[&y]).map(drop)
    }),
    ("a py_func that panics", |program| {
        let x = data(program)?;
        let panics = |_: ArrayViewD<f32>| -> ArrayD<f32> { panic!("no such file") };
        let y = program.py_func(panics).x(&x).out(&out(program, &x)?).call()?;
        run(program, &[&y]).map(drop)
    }),
    ("saving a startup program", |program| {
        program.fc(&data(program)?, 3)?;
        let path = std::env::temp_dir().join("static-words");
        program.startup().save(path, &Executor::new())
    }),
    ("loading what is not there", |_| {
        Program::load("no/such/file", &Functions::new(), &Executor::new()).map(drop)
    }),
    ("a schedule without an update", |program| {
        data(program)?;
        program.set_learning_rate(0.1)
    }),
];

/// The text without line numbers of this file, which change.
fn without_lines(text: &str) -> String {
    let file = format!("{}:", file!());
    let mut parts = text.split(&file);
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
        assert!(rest.len() < part.len(), "{text}");
        result.push_str("LINE");
        result.push_str(rest);
    }
    result
}

#[test]
fn what_a_newcomer_gets_wrong_is_reported() {
    let mut found = String::new();
    for (what, case) in CASES {
        let program = Program::new();
        let error = case(&program).expect_err(what).to_string();
        writeln!(found, "{what}\n    {}", without_lines(&error)).unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/words.txt");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, expected, "UPDATE_EXPECTED=1 writes what is expected anew");
}
