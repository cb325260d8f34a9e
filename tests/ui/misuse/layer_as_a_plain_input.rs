// layers of a network as plain inputs: their parameters would lose their gradients
use autograd_core::nn::{Linear, Module};
use autograd_core::prelude::*;

#[derive(Module)]
struct Net {
    out: Linear<f64>,
}

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        layer: &Linear<f64>,
        nets: Vec<Net>,
    ) -> Tensor<f64> {
        nets[0].out.forward(&layer.forward(x))
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
