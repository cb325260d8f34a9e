//! The three products of a matrix product and its backward, by the fastest kernels in Rust: those of
//! the `gemm` crate with AVX-512, which users must enable.

use gemm::Parallelism;
use kit::{Work, input};

use crate::plain::Number;

/// A matrix in memory: its first element, and the steps to the next row and column.
#[derive(Clone, Copy)]
pub struct Strided<T> {
    pub data: *const T,
    pub row: isize,
    pub column: isize,
}

impl<T> Strided<T> {
    pub fn rows(data: &[T], columns: usize) -> Self {
        Self { data: data.as_ptr(), row: columns as isize, column: 1 }
    }

    pub fn t(self) -> Self {
        Self { data: self.data, row: self.column, column: self.row }
    }
}

fn parallelism() -> Parallelism {
    match std::env::var("RAYON_NUM_THREADS").ok().and_then(|n| n.parse().ok()) {
        Some(threads) if threads > 1 => Parallelism::Rayon(threads),
        _ => Parallelism::None,
    }
}

/// `out = a b`, of m x k and k x n.
pub fn multiply<T: Number + 'static>(
    (m, k, n): (usize, usize, usize),
    a: Strided<T>,
    b: Strided<T>,
    out: &mut [T],
) {
    assert_eq!(out.len(), m * n);
    let (zero, one) = (T::of(0.0), T::of(1.0));
    // SAFETY: the callers' matrices have these shapes, and `out` is not aliased.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            false,
            a.data,
            a.column,
            a.row,
            b.data,
            b.column,
            b.row,
            zero,
            one,
            false,
            false,
            false,
            parallelism(),
        );
    }
}

pub fn product<T: Number + 'static>(m: usize, k: usize, n: usize) -> Option<Work> {
    let data = |n: usize| input(n).into_iter().map(T::of).collect::<Vec<T>>();
    let (a, b, seed) = (data(m * k), data(k * n), vec![T::of(1.0); m * n]);
    let zeros = |n: usize| vec![T::of(0.0); n];
    let (mut c, mut da, mut db) = (zeros(m * n), zeros(m * k), zeros(k * n));
    let mut work = move |see: &mut dyn FnMut(&[T], &[T])| {
        let (a, b) = (Strided::rows(&a, k), Strided::rows(&b, n));
        let seed = Strided::rows(&seed, n);
        multiply((m, k, n), a, b, &mut c);
        multiply((m, n, k), seed, b.t(), &mut da);
        multiply((k, m, n), a.t(), seed, &mut db);
        see(&da, &db);
    };
    let mut first = Vec::new();
    work(&mut |da, db| first = da.iter().chain(db).map(|&v| v.into()).collect());
    Work::new(move || work(&mut |da, db| _ = std::hint::black_box((da, db))), |()| first)
}
