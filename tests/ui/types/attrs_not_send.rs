// `type Attrs` goes to other threads
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Attrs = std::rc::Rc<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.set_attrs(std::rc::Rc::new(2.0));
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
