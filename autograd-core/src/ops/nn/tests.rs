//! Values of these ops against plain loops; the package `tests` checks their gradients.

use crate::array::simd::{levels, with_level};
use crate::{Conv2dOptions, Float, Tensor, with_num_threads};

fn ramp(shape: &[usize]) -> Tensor<f64> {
    let n: usize = shape.iter().product();
    let data = (0..n).map(|i| ((i * 37 + 11) % 23) as f64 / 8.0 - 1.2).collect();
    Tensor::from_vec(shape, data).unwrap()
}

#[track_caller]
fn assert_close(found: &Tensor<f64>, expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (i, (a, b)) in found.to_vec().iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "element {i}: {a}, expected {b}");
    }
}

/// A convolution and its gradients in plain loops over small whole numbers: all sums are exact.
struct Loops {
    x: [usize; 4],
    w: [usize; 4],
    options: Conv2dOptions,
}

impl Loops {
    fn numbers(shape: &[usize], seed: usize) -> Vec<i32> {
        let n: usize = shape.iter().product();
        (0..n).map(|i| ((i + seed) * 7919 % 13) as i32 - 6).collect()
    }

    /// Returns `y`, `dx` and `dw`, for a `y` of this shape.
    fn sums(&self, y: &[usize]) -> [Vec<i32>; 3] {
        let [stride, padding, dilation, [groups, _]] = self.options.parts();
        let [x, w] = [&self.x, &self.w];
        let (a, b) = (Self::numbers(x, 1), Self::numbers(w, 2));
        let dy = Self::numbers(y, 3);
        let mut sums = [vec![0; dy.len()], vec![0; a.len()], vec![0; b.len()]];
        for (at, dy) in dy.into_iter().enumerate() {
            let [j, i] = [at % y[3], at / y[3] % y[2]];
            let [o, n] = [at / (y[2] * y[3]) % y[1], at / (y[1] * y[2] * y[3])];
            for tap in 0..w[1] * w[2] * w[3] {
                let [l, k, c] = [tap % w[3], tap / w[3] % w[2], tap / (w[2] * w[3])];
                let row = (i * stride[0] + k * dilation[0]).wrapping_sub(padding[0]);
                let column = (j * stride[1] + l * dilation[1]).wrapping_sub(padding[1]);
                if row < x[2] && column < x[3] {
                    let channel = o / (w[0] / groups) * w[1] + c;
                    let on = ((n * x[1] + channel) * x[2] + row) * x[3] + column;
                    let of = o * (w[1] * w[2] * w[3]) + tap;
                    sums[0][at] += a[on] * b[of];
                    sums[1][on] += dy * b[of];
                    sums[2][of] += dy * a[on];
                }
            }
        }
        sums
    }

    fn check<T: Float>(&self, from: fn(i32) -> T) {
        let tensor = |shape: &[usize], seed| {
            let data = Self::numbers(shape, seed).into_iter().map(from).collect();
            Tensor::from_vec(shape.to_vec(), data).unwrap()
        };
        let of_all = |sums: &[i32]| sums.iter().copied().map(from).collect::<Vec<T>>();
        let (x, w) = (tensor(&self.x, 1), tensor(&self.w, 2));
        let shape = x.conv2d(&w, None, self.options).shape().to_vec();
        let [y, dx, dw] = self.sums(&shape).map(|sums| of_all(&sums));
        let dy = tensor(&shape, 3);
        let transposed = |t: &Tensor<T>| t.transpose().contiguous().transpose();
        for (x, w, dy) in [
            (x.detach(), w.detach(), dy.clone()),
            (transposed(&x), transposed(&w), transposed(&dy)),
        ] {
            for input in [&x, &w] {
                input.set_stop_gradient(false);
            }
            for level in levels() {
                for threads in [1, 3] {
                    let product = with_level(level, || {
                        with_num_threads(threads, || {
                            let product = x.conv2d(&w, None, self.options);
                            product.backward_with(&dy).unwrap();
                            product
                        })
                    });
                    let case = (self.x, self.w, self.options, level, threads);
                    assert!(product.to_vec() == y, "y of {case:?}");
                    assert!(x.grad().unwrap().to_vec() == dx, "dx of {case:?}");
                    assert!(w.grad().unwrap().to_vec() == dw, "dw of {case:?}");
                    x.clear_grad();
                    w.clear_grad();
                }
            }
        }
    }
}

#[test]
fn convolutions_and_their_gradients_are_those_of_plain_loops() {
    let options = Conv2dOptions::new();
    let cases = [
        ([2, 3, 9, 11], [5, 3, 3, 2], options.padding([1, 0])),
        ([2, 3, 9, 11], [5, 3, 3, 2], options.dilation([2, 3]).padding([3, 1])),
        ([2, 3, 9, 11], [9, 3, 4, 5], options.stride([3, 2]).padding([0, 2])),
        // More padding than image.
        ([2, 2, 1, 3], [3, 2, 2, 3], options.padding([4, 5])),
        // Images that are their own columns, and others.
        ([3, 5, 4, 5], [7, 5, 1, 1], options),
        ([3, 5, 4, 5], [7, 5, 1, 1], options.padding(1)),
        ([3, 6, 4, 5], [8, 3, 1, 1], options.groups(2)),
        // Groups, down to one channel each.
        ([2, 6, 5, 6], [8, 3, 3, 3], options.groups(2).padding(1)),
        ([5, 4, 6, 6], [8, 1, 3, 3], options.groups(4).stride(2)),
        // Several blocks of rows of windows, the last one smaller.
        ([1, 24, 39, 70], [3, 24, 3, 3], options.padding(1)),
        // Several parts of the work, and sums over several images.
        ([35, 16, 12, 12], [16, 16, 3, 3], options.padding(1)),
        ([0, 2, 3, 3], [2, 2, 2, 2], options),
        ([2, 0, 3, 3], [2, 0, 2, 2], options),
        ([2, 1, 0, 3], [2, 1, 2, 2], options.padding(1)),
        ([2, 1, 3, 0], [2, 1, 2, 2], options.padding(1)),
        ([2, 2, 3, 3], [0, 2, 2, 2], options),
    ];
    for (x, w, options) in cases {
        let loops = Loops { x, w, options };
        loops.check::<f32>(|i| i as f32);
        loops.check::<f64>(f64::from);
    }
}

#[test]
fn short_and_long_rows_are_those_of_plain_loops() {
    // Rows with and without whole vectors, in one block and in several.
    let shapes = [
        [1, 1],
        [300, 1],
        [257, 2],
        [100, 10],
        [2, 10],
        [3, 10],
        [7, 10],
        [8, 10],
        [17, 5],
        [9, 31],
        [9, 32],
        [70, 33],
    ];
    for (level, [rows, n]) in levels().flat_map(|level| shapes.map(|shape| (level, shape))) {
        with_level(level, || rows_are_those_of_plain_loops(rows, n));
    }
}

fn rows_are_those_of_plain_loops(rows: usize, n: usize) {
    let x = ramp(&[rows, n]);
    x.set_stop_gradient(false);
    let place = |i: usize| i * 7 % n;
    let targets = Tensor::from((0..rows).map(|i| place(i) as i64).collect::<Vec<_>>());
    let data = x.to_vec();
    let logs = data.chunks(n).map(|row| row.iter().map(|x| x.exp()).sum::<f64>().ln());
    let far: Vec<f64> =
        data.chunks(n).zip(logs).flat_map(|(row, log)| row.iter().map(move |x| x - log)).collect();
    let shares: Vec<f64> = far.iter().map(|x| x.exp()).collect();
    assert_close(&x.log_softmax(1), &far);
    assert_close(&x.softmax(1), &shares);
    let loss = x.cross_entropy(&targets);
    let sum: f64 = (0..rows).map(|i| far[i * n + place(i)]).sum();
    assert_close(&loss, &[-sum / rows as f64]);
    loss.backward().unwrap();
    let slope = |at: usize| shares[at] - f64::from(at % n == place(at / n));
    let slopes: Vec<f64> = (0..rows * n).map(|at| slope(at) / rows as f64).collect();
    assert_close(&x.grad().unwrap(), &slopes);

    let weights = ramp(&[rows, n]).flip(0).flip(1);
    let w = weights.to_vec();
    let of_row = |at: usize| at / n * n..(at / n + 1) * n;
    let gradient = |y: Tensor<f64>| {
        x.clear_grad();
        (y * &weights).sum().backward().unwrap();
        x.grad().unwrap()
    };
    let dot = |at: usize| of_row(at).map(|i| shares[i] * w[i]).sum::<f64>();
    let of_shares: Vec<f64> = (0..rows * n).map(|i| shares[i] * (w[i] - dot(i))).collect();
    assert_close(&gradient(x.softmax(1)), &of_shares);
    let total = |at: usize| w[of_row(at)].iter().sum::<f64>();
    let of_logs: Vec<f64> = (0..rows * n).map(|i| w[i] - shares[i] * total(i)).collect();
    assert_close(&gradient(x.log_softmax(1)), &of_logs);
}

#[test]
fn a_row_alone_is_the_same_as_among_others() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let special = [[nan, 0.0, 1.0], [inf, 0.0, 1.0], [-inf, -inf, -inf], [-inf, 0.5, 800.0]];
    let rows: Vec<f64> =
        (0..20).flat_map(|i| special.get(i % 7).copied().unwrap_or([1.0; 3])).collect();
    for level in levels() {
        with_level(level, || {
            let x = Tensor::from_vec([20, 3], rows.clone()).unwrap();
            for op in [Tensor::softmax, Tensor::log_softmax] as [fn(&Tensor<f64>, isize) -> _; 2] {
                let all: Vec<f64> = op(&x, 1).to_vec();
                let alone = (0..20).flat_map(|i| op(&x.narrow(0, i, 1), 1).to_vec());
                for (i, (found, expected)) in all.into_iter().zip(alone).enumerate() {
                    let same = found == expected || found.is_nan() && expected.is_nan();
                    assert!(same, "{level:?} {i}: {found}, alone {expected}");
                }
            }
            let targets = Tensor::zeros([20]);
            assert!(x.cross_entropy(&targets).item().is_nan());
            let plain = x.narrow(0, 4, 3);
            let plain = Tensor::concat(&[&plain, &plain], 0);
            assert_close(&plain.cross_entropy(&Tensor::zeros([6])), &[3_f64.ln()]);
        });
    }
}
