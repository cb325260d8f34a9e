//! The first program of Paddle's page on `py_func`: a net of four fully connected layers, each
//! with a user's tanh over arrays and a user's function that inspects its output.
#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::DType;
use autograd_core::static_graph::{
    Executor, Variable, default_main_program, default_startup_program,
};
use ndarray::{Array1, Array2, ArrayD, ArrayViewD};

fn tanh(x: ArrayViewD<f32>) -> ArrayD<f32> {
    x.mapv(f32::tanh)
}

// Without the input `x`, which is skipped below.
fn tanh_grad(y: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
    &dy * (1.0 - &y * &y)
}

// No output: a function that only inspects, called in every run.
fn debug_func(x: ArrayViewD<f32>) {
    let inside = x.iter().all(|x| x.abs() < 1.0);
    println!("{:?}, all between -1 and 1: {inside}", x.shape());
}

fn create_tmp_var(name: &str, like: &Variable) -> autograd_core::Result<Variable> {
    default_main_program().current_block().create_var(name, like.dtype(), like.shape())
}

fn simple_net(img: &Variable, label: &Variable) -> autograd_core::Result<Variable> {
    let program = default_main_program();
    let mut hidden = img.clone();
    for idx in 0..4 {
        hidden = program.fc(&hidden, 200)?;
        let new_hidden = create_tmp_var(&format!("hidden_{idx}"), &hidden)?;

        hidden = program
            .py_func(tanh)
            .x(&hidden)
            .out(&new_hidden)
            .backward_func(tanh_grad)
            .skip_vars_in_backward_input([&hidden])
            .call()?;
        program.py_func(debug_func).x(&hidden).call()?;
    }
    let prediction = program.fc(&hidden, 10)?.softmax(-1)?;
    program.cross_entropy(&prediction, label)
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(2023);
    let x = default_main_program().data("x", [None, Some(4)], DType::Float32)?;
    let y = default_main_program().data("y", [10], DType::Int64)?;
    let res = simple_net(&x, &y)?;

    let exe = Executor::new();
    exe.run(&default_startup_program(), &[], &[])?;
    let input1 = Array2::from_shape_fn([10, 4], |(i, j)| (7 * i + 3 * j) as f32 % 10.0 / 10.0);
    let input2 = Array1::from_shape_fn([10], |i| 1 + i as i64 % 9);
    let out =
        exe.run(&default_main_program(), &[("x", &input1), ("y", &input2)], &[&res.name()])?;
    // Ten classes and untrained weights: about ln 10 = 2.3026.
    println!("loss {:.3}", out[0].downcast_ref::<f32>().map_or(f32::NAN, |loss| loss.item()));
    Ok(())
}
