//! Elementwise ops: a custom op that is a formula.

use autograd_core::prelude::*;
use kit::{Work, input_f32};

use crate::ops::{leaf, numbers};

#[py_layer(elementwise)]
impl CusTanh {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x.tanh()
    }

    fn backward<L: Lane>(y: Real<L>, dy: Real<L>) -> Real<L> {
        dy * (1.0 - y * y)
    }
}

#[py_layer(elementwise)]
impl Gelu {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x)).tanh())
    }
}

/// An op of one tensor, forward and backward.
fn both(n: usize, op: impl Fn(&Tensor<f32>) -> Tensor<f32> + 'static) -> Option<Work> {
    let x = leaf(input_f32(n), &[n]);
    let seed = Tensor::<f32>::ones([n]);
    let work = move || {
        op(&x).backward_with(&seed).expect("the graph is new");
        let grad = x.grad().expect("x wants a gradient");
        x.clear_grad();
        grad
    };
    Work::new(work, numbers)
}

pub fn tanh(n: usize) -> Option<Work> {
    both(n, |x| CusTanh::apply(x))
}

pub fn gelu() -> Option<Work> {
    both(1_000_000, |x| Gelu::apply(x))
}
