//! A file of a program written by an earlier version: `golden/program.safetensors`, which
//! `UPDATE_EXPECTED=1 cargo test -p tests --test programs files` writes if it does not exist.

use std::path::Path;

use autograd_core::prelude::*;
use autograd_core::static_graph::{
    Adam, Executor, Feed, Functions, Program, RmsProp, Sgd, Variable, gradients,
};
use autograd_core::{DType, Result};
use ndarray::{ArrayD, ArrayViewD};

#[py_layer]
impl Square {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let double = x * 2.0;
        ctx.save_for_backward((x, &double));
        (&double * x) * 0.5
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (_, double) = ctx.saved_tensor();
        dy * double
    }
}

#[py_layer(elementwise)]
impl Bent {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x.sigmoid()
    }
}

fn tanh(x: ArrayViewD<f64>) -> ArrayD<f64> {
    x.mapv(f64::tanh)
}

fn tanh_grad(y: ArrayViewD<f64>, dy: Option<ArrayViewD<f64>>) -> ArrayD<f64> {
    dy.map_or_else(|| ArrayD::zeros(y.raw_dim()), |dy| &dy * (1.0 - &y * &y))
}

fn cube(x: &Tensor<f64>) -> Tensor<f64> {
    x * x * x
}

/// Every kind of operator that a file can hold; a loss, a gradient, and a second derivative.
fn build() -> Result<(Program, [Variable; 3])> {
    let program = Program::new();
    let x = program.data("x", [-1, 4], DType::Float64)?;
    x.set_stop_gradient(false);
    let ids = program.data("ids", [-1], DType::Int64)?;
    let hidden = program.batch_norm(&program.fc(&x, 3)?)?;
    let out = program.current_block().create_var("out; \\", hidden.dtype(), hidden.shape())?;
    let call = program.py_func(tanh).x(&hidden).out(&out).backward_func(tanh_grad);
    let y = call.skip_vars_in_backward_input([&hidden]).call()?;
    let y = program.trace(|y: &Tensor<f64>| Bent::apply(&Square::apply(y)) + 0.25).x(&y).call()?;
    let y = program.py_layer(Bent::apply::<f64>).x(&program.eager(cube).x(&y).call()?).call()?;
    let y = &y + &program.embedding(&ids, 5, 3, DType::Float64)?;
    let y = y.greater(0.5)?.where_else(&y, 0.5)?.reshape([-1, 3])?.dropout(0.0)?;
    let y = program.concat(&[&y, &y.permute(&[0, 1])?], 1)?;
    let loss = y.cross_entropy(&ids)?;
    let dx = gradients(&[&y.mean()?], &[&x])?.remove(0).expect("x wants a gradient");
    let slope = gradients(&[&x.tanh()?.square()?], &[&x])?.remove(0).expect("x wants a gradient");
    let d2x = gradients(&[&slope], &[&x])?.remove(0).expect("x wants a gradient");
    let pairs = autograd_core::static_graph::append_backward(&loss)?;
    Sgd::new(0.1).apply_gradients(&pairs[..2])?;
    Adam::new(0.01).apply_gradients(&pairs[2..4])?;
    RmsProp::new(0.01).apply_gradients(&pairs[4..])?;
    Ok((program, [loss, dx, d2x]))
}

/// The fetched values of each of three steps, as text.
fn run(program: &Program, executor: &Executor, fetched: &[Variable; 3]) -> Result<Vec<String>> {
    let x = Tensor::from((0..12).map(|i| (i as f64).sin()).collect::<Vec<_>>()).reshape([3, 4]);
    let ids = Tensor::from(vec![1_i64, 0, 4]);
    let feed: [(&str, &dyn Feed); 2] = [("x", &x), ("ids", &ids)];
    let names = fetched.each_ref().map(Variable::name);
    let step = |_| executor.run(program, &feed, &[&names[0], &names[1], &names[2]]);
    let steps = (0..3).map(step).collect::<Result<Vec<_>>>()?;
    Ok(steps.iter().flatten().map(ToString::to_string).collect())
}

#[test]
fn a_file_of_an_earlier_version_is_the_program_built_anew() -> Result<()> {
    let (program, fetched) = build()?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/program.safetensors");
    if std::env::var_os("UPDATE_EXPECTED").is_some() && !path.exists() {
        let executor = Executor::new();
        executor.run(&program.startup(), &[], &[])?;
        program.save(&path, &executor)?;
    }
    let functions = Functions::new().with("tanh", tanh).with("tanh_grad", tanh_grad);
    let functions = functions.with("cube", cube).with("Bent", Bent::apply::<f64>);
    let (before, now) = (Executor::new(), Executor::new());
    let loaded = Program::load(&path, &functions, &before)?;
    // The old file did not mark the intermediate values that a custom op saves.
    let mut text = program.to_string();
    for mark in 0..2 {
        let line = format!("intermediate_{mark}: float64 [-1, 3] = intermediate(Square_1)\n");
        text = text.replace(&line, "").replace(&format!("intermediate_{mark})"), "Square_1)");
    }
    assert_eq!(loaded.to_string(), text);
    Program::load(&path, &functions, &now)?;
    assert_eq!(run(&loaded, &before, &fetched)?, run(&program, &now, &fetched)?);
    Ok(())
}

/// A file binds functions by name, so each name must be one function.
#[test]
fn two_functions_of_one_name_are_refused() -> Result<()> {
    let path = std::env::temp_dir().join(format!("two-names-{}", std::process::id()));
    let program = Program::new();
    let x = program.data("x", [2], DType::Float64)?;
    let doubled = program.eager(|x: &Tensor<f64>| x * 2.0).x(&x).call()?;
    program.eager(|x: &Tensor<f64>| x * 100.0).x(&doubled).call()?;
    let error = program.save(&path, &Executor::new()).unwrap_err().to_string();
    assert!(
        error.contains("two functions are called `two_functions_of_one_name_are_refused`"),
        "{error}"
    );
    assert!(error.contains("built at tests/tests/programs/files.rs:"), "{error}");

    let program = Program::new();
    let x = program.data("x", [2], DType::Float64)?;
    let y = program.eager(cube).x(&x).call()?;
    let y = program.eager(cube).x(&y).call()?;
    program.eager(|x: &Tensor<f64>| x * 2.0).x(&y).name("double").call()?;
    program.save(&path, &Executor::new())?;
    let functions = Functions::new().with("cube", cube).with("double", |x: &Tensor<f64>| x * 2.0);
    assert!(Program::load(&path, &functions, &Executor::new()).is_ok());
    let twice = functions.with("cube", |x: &Tensor<f64>| x * 3.0);
    let error = Program::load(&path, &twice, &Executor::new()).unwrap_err().to_string();
    std::fs::remove_file(&path).ok();
    assert!(error.contains("two functions were given as `cube`"), "{error}");
    Ok(())
}

/// A file binds functions by name, so one with other results may be given.
#[test]
fn a_function_with_another_number_of_results_is_refused_in_the_run() -> Result<()> {
    let path = std::env::temp_dir().join(format!("results-{}", std::process::id()));
    let program = Program::new();
    let x = program.data("x", [2], DType::Float64)?;
    let pair = |x: &Tensor<f64>| (x * 2.0, x * 3.0);
    let [y, z] = program.eager(pair).name("pair").x(&x).call()?;
    program.save(&path, &Executor::new())?;
    let run = |functions: Functions| {
        let executor = Executor::new();
        let loaded = Program::load(&path, &functions, &executor)?;
        let fed = Tensor::from([1.0, 2.0]);
        executor.run(&loaded, &[("x", &fed)], &[&y.name(), &z.name()])
    };
    assert_eq!(run(Functions::new().with("pair", pair))?.len(), 2);
    let one = Functions::new().with("pair", |x: &Tensor<f64>| x * 2.0);
    let three = |x: &Tensor<f64>| (x * 2.0, x * 3.0, x * 4.0);
    let three = Functions::new().with("pair", three);
    for (functions, found) in [(one, "1 value"), (three, "3 values")] {
        let error = run(functions).unwrap_err().to_string();
        assert!(error.ends_with(&format!("returned {found}, 2 are declared")), "{error}");
    }
    std::fs::remove_file(&path).ok();
    Ok(())
}
