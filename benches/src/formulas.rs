//! Elementwise ops: the formula of a custom op beside built-in ops, closures and peers.

use autograd_core::prelude::*;
use autograd_core::{Traced, fuse};
use candle_core::{Device, Var};

use crate::{Candidate, input};

#[py_layer(elementwise)]
impl CusTanh {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x.tanh()
    }

    fn backward<L: Lane>(y: Real<L>, dy: Real<L>) -> Real<L> {
        dy * (1.0 - y * y)
    }
}

#[inline(always)]
fn gelu<L: Lane>(x: Real<L>) -> Real<L> {
    0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x)).tanh())
}

#[py_layer(elementwise)]
impl Gelu {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        gelu(x)
    }
}

/// An op of one tensor, forward and backward.
fn both(
    name: &'static str,
    n: usize,
    op: impl Fn(&Tensor<f32>) -> Tensor<f32> + 'static,
) -> Candidate {
    let x = Tensor::from(input(n).into_iter().map(|v| v as f32).collect::<Vec<f32>>());
    x.set_stop_gradient(false);
    let seed = Tensor::<f32>::ones([n]);
    let work = move || {
        op(&x).backward_with(&seed).expect("the graph is new");
        let grad = x.grad().expect("x wants a gradient");
        x.clear_grad();
        grad
    };
    let answer = work().to_vec().into_iter().map(f64::from).collect();
    Candidate::new(name, work, answer)
}

pub fn tanh(n: usize) -> Vec<Candidate> {
    vec![
        both("autograd-core, elementwise op", n, |x| CusTanh::apply(x)),
        both("autograd-core, built-in tanh", n, Tensor::tanh),
        both("autograd-core, fuse", n, |x| fuse([x], |[x]: [Real<Traced>; 1]| x.tanh())),
    ]
}

pub fn gelus(n: usize) -> Vec<Candidate> {
    vec![
        both("autograd-core, elementwise op, derived", n, |x| Gelu::apply(x)),
        both("autograd-core, fuse", n, |x| fuse([x], |[x]| gelu(x))),
        candle_gelu(n),
    ]
}

/// candle's built-in gelu, which is of the same form.
fn candle_gelu(n: usize) -> Candidate {
    let data: Vec<f32> = input(n).into_iter().map(|v| v as f32).collect();
    let x = Var::from_vec(data, n, &Device::Cpu).expect("a variable");
    let work = move || {
        let grads = x.gelu().and_then(|y| y.backward()).expect("candle computes it");
        grads.get(&x).expect("x wants a gradient").clone()
    };
    let answer: Vec<f32> = work().to_vec1().expect("numbers");
    Candidate::new("candle 0.11, built-in gelu", work, answer.into_iter().map(f64::from).collect())
}
