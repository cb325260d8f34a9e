// Attributes of a type that they cannot have.
use autograd_core::prelude::*;

#[py_layer]
impl Op {
CASE

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}

//= `type Attrs` is a tensor
    type Attrs = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.set_attrs(x.clone());
        x * 2.0
    }

//= `type Attrs` goes to other threads
    type Attrs = std::rc::Rc<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.set_attrs(std::rc::Rc::new(2.0));
        x * 2.0
    }

//= one gradient for an output that is a list
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![x * 2.0]
    }
