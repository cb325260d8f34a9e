// the function of a py_func takes and returns arrays or tensors
use autograd_core::DType;
use autograd_core::static_graph::Program;
use ndarray::ArrayViewD;

fn main() -> autograd_core::Result<()> {
    let program = Program::new();
    let x = program.data("x", [Some(2)], DType::Float64)?;
    program.py_func(|_: Vec<f64>| {}).x([&x]).call()?;
    program.py_func(|_: ArrayViewD<f64>| 1.0).x([&x]).call()?;
    Ok(())
}
