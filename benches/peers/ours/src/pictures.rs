//! Windows on pictures.

use autograd_core::Conv2dOptions;
use autograd_core::prelude::*;
use kit::{KERNELS, MAPS, PICTURES, Work, scaled_f32};

use crate::ops::{leaf, numbers, take};

fn scaled(shape: [usize; 4], scale: f64) -> Tensor<f32> {
    leaf(scaled_f32(shape.iter().product(), scale), &shape)
}

pub fn conv() -> Option<Work> {
    let (x, w, seed) = (scaled(PICTURES, 1.0), scaled(KERNELS, 0.05), scaled(MAPS, 1.0).detach());
    let work = move || {
        let y = x.conv2d(&w, None, Conv2dOptions::new().padding(1));
        y.backward_with(&seed).expect("the graph is new");
        (take(&x), take(&w))
    };
    Work::new(work, |(dx, dw)| [numbers(dx), numbers(dw)].concat())
}

pub fn pool() -> Option<Work> {
    let x = scaled(MAPS, 1.0);
    let seed = x.max_pool2d(2).detach() * 0.25;
    let work = move || {
        x.max_pool2d(2).backward_with(&seed).expect("the graph is new");
        take(&x)
    };
    Work::new(work, numbers)
}
