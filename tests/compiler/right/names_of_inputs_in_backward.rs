// Backward may bind the names of forward's inputs, and use fields, methods, functions and closures of these names.
#![deny(warnings)]
use autograd_core::prelude::*;

fn scale(x: &Tensor<f64>) -> Tensor<f64> {
    x * 2.0
}

struct Both {
    x: f64,
    rate: f64,
}

mod rate {
    pub fn of() -> f64 {
        1.0
    }
}

#[py_layer]
impl Op {
    type Attrs = (f64, f64);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        rate: f64,
        scale: f64,
        rule: fn(&Tensor<f64>) -> Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.set_attrs((rate, scale));
        rule(x) * rate * scale
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let both = Both { x: ctx.attrs().0, rate: rate::of() };
        let sum: f64 = [1.0, 2.0].iter().map(|x| x * both.rate).sum();
        let grad = scale(dy) * both.x * sum;
        if let Some(rate) = Some(2.0) { grad * rate } else { grad }
    }
}

fn main() {
    let _ = Op::apply(&Tensor::from([1.0]), 1.0, 2.0, scale);
}
