//! The second half of Paddle's guide to custom ops: `py_func` with a backward function that takes
//! all values, with one that skips the input, and as a `#[py_func]` block.
#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::DType;
use autograd_core::static_graph::{Executor, Program, Variable, gradients, py_func};
use ndarray::{Array3, ArrayD, ArrayViewD};

fn tanh(x: ArrayViewD<f32>) -> ArrayD<f32> {
    x.mapv(f32::tanh)
}

// By default: inputs, outputs, gradients of the outputs.
fn tanh_grad(_x: ArrayViewD<f32>, y: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
    &dy * (1.0 - &y * &y)
}

fn tanh_grad_without_x(y: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
    &dy * (1.0 - &y * &y)
}

/// The same, checked by the compiler: `x` is skipped because backward has no such parameter.
#[py_func]
impl Tanh {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.mapv(f32::tanh)
    }

    fn backward(y: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
        &dy * (1.0 - &y * &y)
    }
}

fn create_tmp_var(
    program: &Program,
    name: &str,
    like: &Variable,
) -> autograd_core::Result<Variable> {
    program.current_block().create_var(name, like.dtype(), like.shape())
}

fn main() -> autograd_core::Result<()> {
    let program = Program::new();
    let in_var = program.data("input", [-1, 28, 28], DType::Float32)?;
    in_var.set_stop_gradient(false);

    let out = create_tmp_var(&program, "output", &in_var)?;
    let with_x = program.py_func(tanh).x(&in_var).out(&out).backward_func(tanh_grad).call()?;

    let out = create_tmp_var(&program, "output_without_x", &in_var)?;
    let without_x = program
        .py_func(tanh)
        .x(&in_var)
        .out(&out)
        .backward_func(tanh_grad_without_x)
        .skip_vars_in_backward_input([&in_var])
        .call()?;

    let out = create_tmp_var(&program, "output_of_block", &in_var)?;
    let by_block = Tanh::call(&in_var, &out)?;

    let input = Array3::from_elem([2, 28, 28], 0.5_f32);
    for y in [with_x, without_x, by_block] {
        let dx = gradients(&[&y], &[&in_var])?.remove(0);
        let Some(dx) = dx else { continue };
        let run = Executor::new().run(&program, &[("input", &input)], &[&y, &dx])?;
        let first = |k: usize| run[k].downcast_ref::<f32>().map_or(f32::NAN, |t| t.at(&[1, 3, 5]));
        println!("{y}: {:.4}, gradient {:.4}", first(0), first(1));
    }
    println!("\n{program}");
    Ok(())
}
