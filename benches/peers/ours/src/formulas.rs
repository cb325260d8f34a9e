//! Elementwise ops: a custom op that is a formula.

use autograd_core::prelude::*;
use kit::{ABC, ELEMENTWISE, Work, input_f32};

use crate::ops::{chain_of, leaf, numbers, take};

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

#[py_layer(elementwise)]
impl ScaledRelu {
    fn forward<L: Lane>(x: Real<L>, a: f64, b: f64, c: f64) -> Real<L> {
        (x * a + b).relu() * c
    }
}

pub fn chain(backward: bool) -> Option<Work> {
    chain_of(|x| CusTanh::apply(x), backward)
}

/// An op of one tensor, forward and backward.
fn both(n: usize, op: impl Fn(&Tensor<f32>) -> Tensor<f32> + 'static) -> Option<Work> {
    let x = leaf(input_f32(n), &[n]);
    let seed = Tensor::<f32>::ones([n]);
    let work = move || {
        op(&x).backward_with(&seed).expect("the graph is new");
        take(&x)
    };
    Work::new(work, numbers)
}

pub fn tanh(n: usize) -> Option<Work> {
    both(n, |x| CusTanh::apply(x))
}

pub fn gelu() -> Option<Work> {
    both(1_000_000, |x| Gelu::apply(x))
}

pub fn scalars() -> Option<Work> {
    let x = leaf(input_f32(ELEMENTWISE), &[ELEMENTWISE]);
    let [a, b, c] = ABC.map(f64::from);
    let work = move || {
        ScaledRelu::apply(&x, a, b, c).sum().backward().expect("the graph is new");
        take(&x)
    };
    Work::new(work, numbers)
}
