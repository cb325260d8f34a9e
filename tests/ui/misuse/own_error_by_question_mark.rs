// an error of another type is converted by `Error::custom` or a `From`
use autograd_core::prelude::*;

#[derive(Debug)]
struct NoTable;

fn table() -> Result<f64, NoTable> {
    Err(NoTable)
}

fn scaled(x: &Tensor<f64>) -> autograd_core::Result<Tensor<f64>> {
    Ok(x * table()?)
}

fn main() {
    let _ = scaled(&Tensor::from([1.0]));
}
