// saved in the arms of a `match`, and in a loop that ends
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        match x.len() {
            0 => panic!("empty"),
            1 => ctx.save_for_backward(x),
            _ => loop {
                ctx.save_for_backward(x);
                break;
            },
        }
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

compiles_and_runs!(|[x]| Op::apply(x), [3.0] => [3.0]);
