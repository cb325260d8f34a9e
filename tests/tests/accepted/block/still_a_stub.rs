// `todo!()` in the bodies while the op is being written
use autograd_core::prelude::*;

#[py_layer]
#[allow(dead_code)]
impl Op {
    type Saved = (Tensor<f64>, Vec<Tensor<f64>>);
    type Attrs = f64;

    fn forward(
        _ct_x: &mut ForwardContext<Self>,
        _x: &Tensor<f64>,
    ) -> (Tensor<f64>, Vec<Tensor<f64>>) {
        todo!()
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        _da: &Tensor<f64>,
        _ds: &[Tensor<f64>],
    ) -> Tensor<f64> {
        todo!()
    }
}

#[test]
fn compiles_and_runs() {}
