// Results of another library or of no type that can be one.
use autograd_core::prelude::*;

enum Result<T, E> {
    Ok(T),
    Err(E),
}

#[py_layer]
impl Op {
CASE
}

fn main() {}

//= another type that is called `Result`
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
    ) -> Result<Tensor<f64>, String> {
        Result::Ok(x * 2.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

//= another type that is called `Result`, around several outputs
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
    ) -> Result<(Tensor<f64>, usize), String> {
        Result::Ok((x * 2.0, 1))
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

//= another type that is called `Result`, returned by backward
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> Result<Tensor<f64>, String> {
        Result::Ok(dy * 2.0)
    }
