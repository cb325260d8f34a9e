// Inputs behind an alias.
use autograd_core::prelude::*;

type T64 = Tensor<f64>;

#[py_layer]
impl Op {
CASE

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}

//= a tensor hidden in an alias, by value
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: T64) -> Tensor<f64> {
        x * w
    }

//= a tensor hidden in an alias inside a tuple
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: (f64, T64, T64)) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= a tensor hidden in an alias inside an `Option`
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: Option<&T64>) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= the only tensor input is hidden behind an alias
    fn forward(_ctx: &mut ForwardContext<Self>, x: &T64) -> Tensor<f64> {
        x * 2.0
    }
