//! Elements of a matrix moved, chosen and normalised along its rows.

use autograd_core::prelude::*;
use kit::{SIDE, Work, input_f32, places};

use crate::ops::{leaf, numbers, take};

type Op = Box<dyn Fn(&Tensor<f32>) -> Tensor<f32>>;

pub fn along_rows(row: &str) -> Option<Work> {
    let x = leaf(input_f32(SIDE * SIDE), &[SIDE, SIDE]);
    let (other, seed) = (x.detach() * 0.5, x.detach().square() * 0.25);
    let mask = other.gt_scalar(0.0);
    let columns = Tensor::from(places(SIDE));
    let index = Tensor::from(places(SIDE * SIDE)).reshape([SIDE, SIDE]);
    let op: Op = match row {
        "select" => Box::new(move |x| x.index_select(1, &columns)),
        "gather" => Box::new(move |x| x.gather(1, &index)),
        "flip" => Box::new(|x| x.flip(1)),
        "cumsum" => Box::new(|x| x.cumsum(1)),
        "where" => Box::new(move |x| mask.where_else(x, &other)),
        "softmax" => Box::new(|x| x.log_softmax(1)),
        "norm" => Box::new(|x| x.normalize(&[1], 1e-5)),
        _ => return None,
    };
    let work = move || {
        op(&x).backward_with(&seed).expect("the graph is new");
        take(&x)
    };
    Work::new(work, numbers)
}
