// all arguments and outputs are plain numbers
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, a: f64, b: f64) -> f64 {
        a + b
    }

    fn backward(_ctx: &BackwardContext<Self>) {}
}

fn main() {
    let _ = Op::apply(1.0, 2.0);
}
