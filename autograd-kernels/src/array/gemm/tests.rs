use super::*;
use crate::array::simd::{levels, with_level};
use crate::array::threads::with_num_threads;

/// Small integers: every sum is exact, so every path must give the same result.
fn number(i: usize) -> i32 {
    (i * 7919 % 23) as i32 - 11
}

struct Layout {
    rows: usize,
    columns: usize,
    len: usize,
}

fn layouts([m, n]: [usize; 2]) -> [Layout; 4] {
    let of = |rows, columns| Layout {
        rows,
        columns,
        len: (m.max(1) - 1) * rows + (n.max(1) - 1) * columns + 1,
    };
    // Row-major, transposed, strided, broadcast along the rows.
    [of(n, 1), of(1, m), of(3 * n + 2, 3), of(0, 1)]
}

fn check<T: FloatMultiply>(size: [usize; 3], from: impl Fn(i32) -> T) {
    let [m, k, n] = size;
    for a in layouts([m, k]) {
        for b in layouts([k, n]) {
            let x: Vec<i32> = (0..a.len).map(number).collect();
            let y: Vec<i32> = (0..b.len).map(|i| number(i + 5)).collect();
            let expected: Vec<T> = (0..m * n)
                .map(|at| {
                    let (i, j) = (at / n, at % n);
                    let term = |p| x[i * a.rows + p * a.columns] * y[p * b.rows + j * b.columns];
                    from((0..k).map(term).sum())
                })
                .collect();
            let (x, y): (Vec<T>, Vec<T>) =
                (x.into_iter().map(&from).collect(), y.into_iter().map(&from).collect());
            let left = Matrix { data: &x, rows: a.rows, columns: a.columns };
            let right = Matrix { data: &y, rows: b.rows, columns: b.columns };
            for level in levels() {
                // Rows that follow one another, and rows with gaps.
                for step in [n, n + 3] {
                    let mut c = vec![from(99); m * step];
                    with_num_threads(3, || {
                        with_level(level, || T::float_product(size, left, right, &mut c, step));
                    });
                    for (row, expected) in c.chunks_exact(step).zip(expected.chunks_exact(n)) {
                        let (row, gap) = row.split_at(n);
                        assert!(row == expected, "{size:?} at {level:?}, rows {step} apart");
                        assert!(gap.iter().all(|&c| c == from(99)), "a gap of {size:?}");
                    }
                }
                if (a.columns, b.rows) == (1, 1) {
                    let mut c: Vec<T> = vec![from(5); m * n];
                    with_level(level, || T::add_dots(size, left, right.transposed(), &mut c));
                    let sum = |(&c, &expected): (&T, &T)| c == from(5) + expected;
                    assert!(c.iter().zip(&expected).all(sum), "{size:?} at {level:?}");
                }
            }
        }
    }
}

#[test]
fn every_path_and_layout() {
    let sizes = [
        [1, 1, 1],
        [1, 70, 1],
        [2, 40, 9],
        [4, 37, 18],
        [5, 40, 18],
        [1, 129, 200],
        [200, 129, 1],
        [4, 3, 2],
        [5, 6, 7],
        [8, 8, 8],
        [9, 20, 31],
        [3, 300, 77],
        [8, 65, 40],
        [12, 256, 32],
        [10, 200, 33],
        [7, 77, 20],
        [3, 64, 5],
        [13, 257, 33],
        [40, 30, 10],
        [50, 300, 16],
        [25, 17, 100],
        [193, 40, 70],
        [70, 50, 10],
        [203, 129, 3],
        [17, 70, 10],
        [64, 64, 3],
        [67, 100, 12],
        [130, 1000, 11],
        // More than one block each way.
        [200, 520, 33],
        [259, 40, 130],
        // Several parts.
        [259, 300, 130],
        [14, 260, 2100],
    ];
    for size in sizes {
        check(size, |i| i as f32);
        check(size, f64::from);
    }
}

#[test]
fn products_of_a_stack() {
    let of = |size, count, threads| with_num_threads(threads, || at_once(size, count));
    assert_eq!(of([64, 64, 64], 1000, 1), 1000, "one thread");
    assert_eq!(of([64, 64, 64], 1, 2), 1, "one product");
    assert_eq!(of([4, 4, 4], 20, 2), 20, "too small");
    assert_eq!(of([512, 512, 512], 3, 2), 3, "parts of each are alike");
    assert_eq!(of([512, 512, 512], 8, 2), 1);
    assert_eq!(of([4, 4, 4], 1_000_000, 2), STACK_PART / 64);
    assert_eq!(of([40, 40, 40], 10_000, 4), STACK_PART / 64_000);
}

#[test]
fn parts_of_a_product() {
    let of = |size, threads| with_num_threads(threads, || grid(size));
    assert_eq!(of([512, 512, 512], 1), [1, 1]);
    assert_eq!(of([60, 10, 60], 2), [1, 1], "too small, whoever is awake");
    assert_eq!(of([1000, 300, 100], 2), [2, 1]);
    assert_eq!(of([100, 300, 1000], 2), [1, 2]);
    assert_eq!(of([1000, 300, 1000], 4), [2, 2]);
    assert_eq!(of([1000, 300, 60], 8), [8, 1]);
    assert_eq!(of([100, 3000, 100], 64), [2, 2], "parts of a size");
}

#[test]
fn sums_are_accurate() {
    let k = 1000;
    let x: Vec<f32> = (0..k * 40).map(|i| ((i * 37 % 1009) as f32 / 1009.0) - 0.3).collect();
    let left = Matrix { data: &x, rows: k, columns: 1 };
    let mut c = vec![0.0; 40 * 40];
    f32::float_product([40, k, 40], left, left.transposed(), &mut c, 40);
    for (at, &c) in c.iter().enumerate() {
        let [a, b] = [at / 40, at % 40].map(|row| &x[row * k..][..k]);
        let exact: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
        assert!((f64::from(c) - exact).abs() < 1e-5 * exact.abs().max(10.0), "{c} {exact}");
    }
}
