//! Convolutions and their gradients against plain loops.

use autograd_core::{Conv2dOptions, Float, Tensor, with_num_threads};

/// Stride, padding and dilation, and the number of groups.
type Windows = ([[usize; 2]; 3], usize);

fn options(([stride, padding, dilation], groups): Windows) -> Conv2dOptions {
    Conv2dOptions::new().stride(stride).padding(padding).dilation(dilation).groups(groups)
}

/// A convolution and its gradients in plain loops over small whole numbers: all sums are exact.
struct Loops {
    x: [usize; 4],
    w: [usize; 4],
    windows: Windows,
}

impl Loops {
    fn numbers(shape: &[usize], seed: usize) -> Vec<i32> {
        let n: usize = shape.iter().product();
        (0..n).map(|i| ((i + seed) * 7919 % 13) as i32 - 6).collect()
    }

    /// Returns `y`, `dx` and `dw`, for a `y` of this shape.
    fn sums(&self, y: &[usize]) -> [Vec<i32>; 3] {
        let ([stride, padding, dilation], groups) = self.windows;
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
        let shape = x.conv2d(&w, None, options(self.windows)).shape().to_vec();
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
            for threads in [1, 3] {
                let product = with_num_threads(threads, || {
                    let product = x.conv2d(&w, None, options(self.windows));
                    product.backward_with(&dy).unwrap();
                    product
                });
                let case = (self.x, self.w, self.windows, threads);
                assert!(product.to_vec() == y, "y of {case:?}");
                assert!(x.grad().unwrap().to_vec() == dx, "dx of {case:?}");
                assert!(w.grad().unwrap().to_vec() == dw, "dw of {case:?}");
                x.clear_grad();
                w.clear_grad();
            }
        }
    }
}

#[test]
fn convolutions_and_their_gradients_are_those_of_plain_loops() {
    let one = [1, 1];
    let plain = ([one, [0, 0], one], 1);
    let padded = ([one, one, one], 1);
    let cases = [
        ([2, 3, 9, 11], [5, 3, 3, 2], ([one, [1, 0], one], 1)),
        ([2, 3, 9, 11], [5, 3, 3, 2], ([one, [3, 1], [2, 3]], 1)),
        ([2, 3, 9, 11], [9, 3, 4, 5], ([[3, 2], [0, 2], one], 1)),
        // More padding than image.
        ([2, 2, 1, 3], [3, 2, 2, 3], ([one, [4, 5], one], 1)),
        // Images that are their own columns, and others.
        ([3, 5, 4, 5], [7, 5, 1, 1], plain),
        ([3, 5, 4, 5], [7, 5, 1, 1], padded),
        ([3, 6, 4, 5], [8, 3, 1, 1], ([one, [0, 0], one], 2)),
        // Groups, down to one channel each.
        ([2, 6, 5, 6], [8, 3, 3, 3], ([one, one, one], 2)),
        ([5, 4, 6, 6], [8, 1, 3, 3], ([[2, 2], [0, 0], one], 4)),
        // Several blocks of rows of windows, the last one smaller.
        ([1, 24, 39, 70], [3, 24, 3, 3], padded),
        // Several parts of the work, and sums over several images.
        ([35, 16, 12, 12], [16, 16, 3, 3], padded),
        ([0, 2, 3, 3], [2, 2, 2, 2], plain),
        ([2, 0, 3, 3], [2, 0, 2, 2], plain),
        ([2, 1, 0, 3], [2, 1, 2, 2], padded),
        ([2, 1, 3, 0], [2, 1, 2, 2], padded),
        ([2, 2, 3, 3], [0, 2, 2, 2], plain),
    ];
    for (x, w, windows) in cases {
        let loops = Loops { x, w, windows };
        loops.check::<f32>(|i| i as f32);
        loops.check::<f64>(f64::from);
    }
}
