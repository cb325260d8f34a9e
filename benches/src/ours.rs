//! The op as the README writes it.

use autograd_core::prelude::*;

use crate::{CHAIN, Candidate, input};

#[py_layer]
impl<T: Float> CusTanh<T> {
    type Saved = Tensor<T>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let y = ctx.saved_tensor();
        dy * (1.0 - y.square())
    }
}

pub fn small(backward: bool) -> Candidate {
    let x = Tensor::from(input(6)).reshape([2, 3]);
    x.set_stop_gradient(false);
    let work = move || {
        let mut y = CusTanh::apply(&x);
        for _ in 1..CHAIN {
            y = CusTanh::apply(&y);
        }
        if !backward {
            return y.detach();
        }
        y.mean().backward().expect("the graph is new");
        let grad = x.grad().expect("x wants a gradient");
        x.clear_grad();
        grad
    };
    let answer = work().to_vec();
    Candidate::new("autograd-core", work, answer)
}

pub fn large(backward: bool) -> Candidate {
    let data: Vec<f32> = input(1_000_000).into_iter().map(|v| v as f32).collect();
    let x = Tensor::from(data);
    x.set_stop_gradient(false);
    let seed = Tensor::<f32>::ones([1_000_000]);
    let work = move || {
        let y = CusTanh::apply(&x);
        if !backward {
            return y;
        }
        y.backward_with(&seed).expect("the graph is new");
        let grad = x.grad().expect("x wants a gradient");
        x.clear_grad();
        grad
    };
    let answer = work().to_vec().into_iter().map(f64::from).collect();
    Candidate::new("autograd-core", work, answer)
}
