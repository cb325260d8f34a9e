//! The second program of Paddle's page on `py_func`: two int32 arrays, added by a user's function
//! that checks their shapes.
#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::DType;
use autograd_core::static_graph::{Executor, Program, Variable};
use ndarray::{Array2, ArrayView2, arr2};

fn element_wise_add(x: ArrayView2<i32>, y: ArrayView2<i32>) -> Result<Array2<i32>, String> {
    if x.shape() != y.shape() {
        return Err("the shape of inputs must be the same!".into());
    }
    let mut result = Array2::zeros(x.raw_dim());
    for i in 0..x.nrows() {
        for j in 0..x.ncols() {
            result[[i, j]] = x[[i, j]] + y[[i, j]];
        }
    }
    Ok(result)
}

fn py_func_demo(shape: [i64; 2]) -> autograd_core::Result<(Program, Variable)> {
    let program = Program::new();
    let x = program.data("x", [2, 3], DType::Int32)?;
    let y = program.data("y", [2, 3], DType::Int32)?;
    let output = program.current_block().create_var("output", DType::Int32, shape)?;
    let output = program.py_func(element_wise_add).x([&x, &y]).out(&output).call()?;
    Ok((program, output))
}

fn main() -> autograd_core::Result<()> {
    let input1 = arr2(&[[5, 9, 9], [7, 5, 2]]);
    let input2 = arr2(&[[7, 8, 4], [1, 3, 3]]);
    let exe = Executor::new();

    // The page declares [3, 1], but the function returns another shape.
    let (program, output) = py_func_demo([3, 1])?;
    let feed = exe.run(&program, &[("x", &input1), ("y", &input2)], &[&output]);
    if let Err(error) = feed {
        println!("{error}\n");
    }

    let (program, output) = py_func_demo([2, 3])?;
    let out = exe.run(&program, &[("x", &input1), ("y", &input2)], &[&output])?;
    println!("{input1} +\n{input2} =\n{}", out[0]);
    Ok(())
}
