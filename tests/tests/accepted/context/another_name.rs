// the context under another name
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(context: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        context.save_for_backward(x);
        x * 2.0
    }

    fn backward(saved: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * saved.saved_tensor()
    }
}

compiles_and_runs!(|[x]| Op::apply(x), [3.0] => [3.0]);
