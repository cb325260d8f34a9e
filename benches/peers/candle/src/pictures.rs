//! Windows on pictures. Of `max_pool2d` by 2 x 2 candle gives a quarter of the gradient: it has no row.

use candle_core::{Result, Tensor, Var};
use kit::{KERNELS, MAPS, PICTURES, Work, scaled_f32};

use crate::ops::{numbers, var};

fn scaled(shape: [usize; 4], scale: f64) -> Var {
    var(scaled_f32(shape.iter().product(), scale), &shape)
}

pub fn conv() -> Option<Work> {
    let (x, w, seed) = (scaled(PICTURES, 1.0), scaled(KERNELS, 0.05), scaled(MAPS, 1.0));
    let seed = seed.detach();
    let work = move || -> Result<[Tensor; 2]> {
        let y = x.conv2d(&w, 1, 1, 1, 1)?;
        let mut grads = (y * &seed)?.sum_all()?.backward()?;
        Ok([&x, &w].map(|leaf| grads.remove(leaf).expect("both want a gradient")))
    };
    let work = move || work().expect("candle computes it");
    Work::new(work, |[dx, dw]| [numbers(&dx), numbers(&dw)].concat())
}
