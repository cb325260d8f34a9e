// a plain parameter and an output whose types the macro does not know
use autograd_core::prelude::*;
use std::time::Duration;

#[py_layer(export)]
impl Timed {
    fn forward(
        _: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        time: Duration,
    ) -> (Tensor<f64>, f64) {
        (x * time.as_secs_f64(), time.as_secs_f64())
    }
    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.clone()
    }
}

fn main() {}
