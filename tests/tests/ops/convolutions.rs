//! Convolutions and their gradients against plain loops.

use autograd_core::{Conv2dOptions, Float, PoolOptions, Tensor, with_num_threads};

#[derive(Clone, Copy, Debug)]
struct Windows {
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
}

const PLAIN: Windows = Windows { stride: [1, 1], padding: [0, 0], dilation: [1, 1], groups: 1 };
const PADDED: Windows = Windows { padding: [1, 1], ..PLAIN };

impl Windows {
    fn options(self) -> Conv2dOptions {
        let Self { stride, padding, dilation, groups } = self;
        Conv2dOptions::new().stride(stride).padding(padding).dilation(dilation).groups(groups)
    }
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
        let Windows { stride, padding, dilation, groups } = self.windows;
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
        let shape = x.conv2d(&w, None, self.windows.options()).shape().to_vec();
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
                    let product = x.conv2d(&w, None, self.windows.options());
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
    let cases = [
        ([2, 3, 9, 11], [5, 3, 3, 2], Windows { padding: [1, 0], ..PLAIN }),
        ([2, 3, 9, 11], [5, 3, 3, 2], Windows { padding: [3, 1], dilation: [2, 3], ..PLAIN }),
        ([2, 3, 9, 11], [9, 3, 4, 5], Windows { stride: [3, 2], padding: [0, 2], ..PLAIN }),
        // More padding than image.
        ([2, 2, 1, 3], [3, 2, 2, 3], Windows { padding: [4, 5], ..PLAIN }),
        // Images that are their own columns, and others.
        ([3, 5, 4, 5], [7, 5, 1, 1], PLAIN),
        ([3, 5, 4, 5], [7, 5, 1, 1], PADDED),
        ([3, 6, 4, 5], [8, 3, 1, 1], Windows { groups: 2, ..PLAIN }),
        // Groups, down to one channel each.
        ([2, 6, 5, 6], [8, 3, 3, 3], Windows { groups: 2, ..PADDED }),
        ([5, 4, 6, 6], [8, 1, 3, 3], Windows { stride: [2, 2], groups: 4, ..PLAIN }),
        // Several blocks of rows of windows, the last one smaller.
        ([1, 24, 39, 70], [3, 24, 3, 3], PADDED),
        // Several parts of the work, and sums over several images.
        ([35, 16, 12, 12], [16, 16, 3, 3], PADDED),
        ([0, 2, 3, 3], [2, 2, 2, 2], PLAIN),
        ([2, 0, 3, 3], [2, 0, 2, 2], PLAIN),
        ([2, 1, 0, 3], [2, 1, 2, 2], PADDED),
        ([2, 1, 3, 0], [2, 1, 2, 2], PADDED),
        ([2, 2, 3, 3], [0, 2, 2, 2], PLAIN),
    ];
    for (x, w, windows) in cases {
        let loops = Loops { x, w, windows };
        loops.check::<f32>(|i| i as f32);
        loops.check::<f64>(f64::from);
    }
}

#[test]
fn the_largest_options_are_errors_or_right() {
    let (x, w) = (Tensor::from([[[[1.0, 2.0], [3.0, 4.0]]]]), Tensor::from([[[[2.0]]]]));
    x.set_stop_gradient(false);
    let large = [(1 << 62) - 1, 1 << 62, (1 << 63) - 2, (1 << 63) - 1, 1 << 63, usize::MAX];
    for padding in large {
        for stride in large {
            for across in [[padding, 0], [0, padding], [padding, padding]] {
                let options = Conv2dOptions::new().padding(across).stride(stride);
                let what = format!("padding {across:?}, stride {stride}");
                match x.try_conv2d(&w, None, options) {
                    // At most a window of the padding is beside those on the image.
                    Ok(y) => {
                        let step = |p: usize, i: usize| (i * stride).checked_sub(p);
                        let [height, width] = [y.shape()[2], y.shape()[3]];
                        let right = (0..height * width).map(|i| {
                            match (step(across[0], i / width), step(across[1], i % width)) {
                                (Some(row @ 0..2), Some(column @ 0..2)) => {
                                    2.0 * (1 + 2 * row + column) as f64
                                }
                                _ => 0.0,
                            }
                        });
                        assert_eq!(y.to_vec(), right.collect::<Vec<_>>(), "{what}");
                        y.sum().backward().unwrap();
                    }
                    Err(error) => {
                        let words = error.to_string();
                        assert!(words.starts_with("conv2d: `padding` must be"), "{what}: {words}");
                    }
                }
            }
        }
    }
    for stride in large {
        let y = x.conv2d(&w, None, Conv2dOptions::new().stride(stride));
        assert_eq!(y.to_vec(), [2.0]);
        assert_eq!(x.max_pool2d(PoolOptions::new(1).stride(stride)).to_vec(), [1.0]);
        assert_eq!(x.avg_pool2d(PoolOptions::new(1).stride(stride)).to_vec(), [1.0]);
    }
    for padding in large {
        let error = x.try_conv2d(&w, None, Conv2dOptions::new().padding(padding)).unwrap_err();
        assert!(error.to_string().starts_with("conv2d"), "{error}");
    }
}
