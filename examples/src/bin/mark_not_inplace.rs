//! An op that returns its input: the output is a new tensor, and the input
//! is unchanged in the graph.

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use autograd_core::prelude::*;

#[py_layer]
impl Exp {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor) -> Tensor {
        ctx.mark_not_inplace(x);
        x.clone()
    }

    fn backward(_ctx: &BackwardContext<Self>, grad_output: &Tensor) -> Tensor {
        grad_output.exp()
    }
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(2023);
    let x = Tensor::<f32>::randn([1, 1]);
    x.set_stop_gradient(false);
    for step in 0..2 {
        let mut a = x.clone();
        for _ in 0..2 {
            a = Exp::apply(&x);
        }
        a.backward()?;
        println!("step {step}: x is a leaf: {}, its gradient:", x.is_leaf());
        println!("{}", x.grad().unwrap());
    }
    Ok(())
}
