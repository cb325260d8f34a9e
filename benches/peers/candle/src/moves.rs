//! Elements of a matrix moved and chosen along its rows.

use candle_core::{Device, Result, Tensor};
use kit::{SIDE, Work, input_f32, places};

use crate::ops::{new, numbers, var};

type Op = Box<dyn Fn(&Tensor) -> Result<Tensor>>;

pub fn along_rows(row: &str) -> Option<Work> {
    let x = var(input_f32(SIDE * SIDE), &[SIDE, SIDE]);
    let scaled = |x: Tensor, by: f64| (x * by).expect("candle computes it");
    let (other, square) = (scaled(x.detach(), 0.5), x.detach().sqr().expect("candle computes it"));
    let seed = scaled(square, 0.25);
    let mask = other.gt(0.0).expect("candle computes it");
    let index = |n: usize, shape: &[usize]| {
        Tensor::from_vec(places(n), shape, &Device::Cpu).expect("as many numbers")
    };
    let columns = index(SIDE, &[SIDE]);
    let all = index(SIDE * SIDE, &[SIDE, SIDE]);
    let op: Op = match row {
        "select" => Box::new(move |x| x.index_select(&columns, 1)),
        "gather" => Box::new(move |x| x.gather(&all, 1)),
        "flip" => Box::new(|x| x.flip(&[1])),
        "cumsum" => Box::new(|x| x.cumsum(1)),
        "where" => Box::new(move |x| mask.where_cond(x, &other)),
        "norm" => Box::new(|x| {
            let centered = x.broadcast_sub(&x.mean_keepdim(1)?)?;
            let variance = centered.sqr()?.mean_keepdim(1)?;
            centered.broadcast_div(&(variance + 1e-5)?.sqrt()?)
        }),
        _ => return None,
    };
    let work = move || {
        let loss = (op(x.as_tensor())? * &seed)?;
        Ok(loss.sum_all()?.backward()?.remove(&x).expect("x wants a gradient"))
    };
    new(work, numbers)
}
