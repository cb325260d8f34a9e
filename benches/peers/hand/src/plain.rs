//! ndarray, op by op, with the derivatives written by hand.

use kit::{ABC, CHAIN, ELEMENTWISE, Work, input, input_f32, widened};
use ndarray::{Array1, Array2, LinalgScalar, Zip};

pub fn chain(backward: bool) -> Option<Work> {
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
    Work::new(work, |dx| dx.into_raw_vec_and_offset().0)
}

pub fn tanh(n: usize, backward: bool) -> Option<Work> {
    let x = Array1::from(input_f32(n));
    let seed = Array1::<f32>::ones(n);
    let work = move || {
        let y = x.mapv(f32::tanh);
        if !backward {
            return y;
        }
        &seed * (1.0 - &(&y * &y))
    };
    Work::new(work, |dx| widened(&dx.to_vec()))
}

pub fn scalars() -> Option<Work> {
    let x = Array1::from(input_f32(ELEMENTWISE));
    let [a, b, c] = ABC;
    let work = move || {
        let mut relu = &x * a;
        relu += b;
        relu.mapv_inplace(|v| v.max(0.0));
        let sum = (&relu * c).sum();
        relu.mapv_inplace(|v| if v > 0.0 { c } else { 0.0 });
        relu *= a;
        (sum, relu)
    };
    Work::new(work, |(_, dx)| widened(&dx.to_vec()))
}

pub fn tensors() -> Option<Work> {
    let x = Array1::from(input_f32(ELEMENTWISE));
    let [a, b, c] = ABC.map(|v| Array1::from_elem(ELEMENTWISE, v));
    let work = move || {
        let mut relu = &x * &a;
        relu += &b;
        relu.mapv_inplace(|v| v.max(0.0));
        let sum = (&relu * &c).sum();
        let mut db = Array1::zeros(ELEMENTWISE);
        Zip::from(&mut db).and(&relu).and(&c).for_each(|db, &relu, &c| {
            *db = if relu > 0.0 { c } else { 0.0 };
        });
        // The gradient of c is the one that relu returned.
        (sum, &db * &a, &db * &x, db, relu)
    };
    Work::new(work, |(_, dx, da, ..)| widened(&(dx + da).to_vec()))
}

pub trait Number: LinalgScalar + Into<f64> {
    fn of(v: f64) -> Self;
}

impl Number for f32 {
    fn of(v: f64) -> Self {
        v as f32
    }
}

impl Number for f64 {
    fn of(v: f64) -> Self {
        v
    }
}

pub fn product<T: Number>(m: usize, k: usize, n: usize) -> Option<Work> {
    let matrix = |rows, columns| {
        let data = input(rows * columns).into_iter().map(T::of).collect();
        Array2::<T>::from_shape_vec((rows, columns), data).expect("as many numbers")
    };
    let (a, b, seed) = (matrix(m, k), matrix(k, n), Array2::<T>::ones((m, n)));
    let work = move || (a.dot(&b), seed.dot(&b.t()), a.t().dot(&seed));
    Work::new(work, |(_, da, db)| da.iter().chain(&db).map(|&v| v.into()).collect())
}
