//! W6: one step of training.

use autograd_core::optim::{Optimizer, Sgd};
use autograd_core::prelude::*;
use kit::{BATCH, RATE, WIDTHS, Work, classes, input_f32, weights};

use crate::ops::{CusTanh, leaf};

pub fn step() -> Option<Work> {
    let parameters: Vec<Tensor<f32>> = (weights(&WIDTHS).into_iter().zip(WIDTHS.windows(2)))
        .flat_map(|((w, b), widths)| [leaf(w, widths), leaf(b, &widths[1..])])
        .collect();
    let mut sgd = Optimizer::new(&parameters, Sgd::new(RATE));
    let x = Tensor::from(input_f32(BATCH * WIDTHS[0])).reshape([BATCH, WIDTHS[0]]);
    let y: Vec<i64> = classes(BATCH, WIDTHS[3]).into_iter().map(|c| c as i64).collect();
    let y = Tensor::from(y);
    let work = move || {
        let [w1, b1, w2, b2, w3, b3] = &parameters[..] else { unreachable!("three layers") };
        let hidden = CusTanh::apply(&(x.matmul(w1) + b1));
        let hidden = CusTanh::apply(&(hidden.matmul(w2) + b2));
        let loss = (hidden.matmul(w3) + b3).cross_entropy(&y);
        loss.backward().expect("the graph is new");
        sgd.step().expect("gradients fit");
        sgd.clear_grad();
        f64::from(loss.item())
    };
    three_steps(work)
}

/// A training step whose answer is the losses of the first three steps.
fn three_steps(mut step: impl FnMut() -> f64 + 'static) -> Option<Work> {
    let first = [step(), step()];
    Work::new(step, move |third| vec![first[0], first[1], third])
}
