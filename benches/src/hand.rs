//! The same work with ndarray and no autograd at all: what a user would write by hand.

use ndarray::{Array1, Array2};

use crate::{CHAIN, Candidate, input};

pub fn small(backward: bool) -> Candidate {
    let x = Array2::from_shape_vec((2, 3), input(6)).expect("six numbers");
    let work = move || {
        let mut ys = Vec::with_capacity(CHAIN);
        let mut y = x.mapv(f64::tanh);
        for _ in 1..CHAIN {
            let next = y.mapv(f64::tanh);
            ys.push(std::mem::replace(&mut y, next));
        }
        if !backward {
            return y;
        }
        let mut dy = Array2::from_elem((2, 3), 1.0 / 6.0);
        ys.push(y);
        for y in ys.iter().rev() {
            dy *= &(1.0 - &(y * y));
        }
        dy
    };
    let answer = work().into_raw_vec_and_offset().0;
    Candidate::new("ndarray by hand", work, answer)
}

pub fn large(backward: bool) -> Candidate {
    tanh(1_000_000, backward)
}

pub fn tanh(n: usize, backward: bool) -> Candidate {
    let data: Array1<f32> = input(n).into_iter().map(|v| v as f32).collect();
    let work = move || {
        let y = data.mapv(f32::tanh);
        if !backward {
            return y;
        }
        let dy = Array1::<f32>::ones(n);
        dy * (1.0 - &(&y * &y))
    };
    let answer = work().iter().map(|&v| f64::from(v)).collect();
    Candidate::new("ndarray by hand", work, answer)
}
