//! The greatest elements of windows against plain loops.

use autograd_core::{Float, PoolOptions, Tensor, with_num_threads};

/// The greatest element of each window in plain loops, and the sum of the gradients of each element:
/// the first NaN is greater than all else, and of equal elements the first counts.
fn maxima(
    x: &[f64],
    shape: [usize; 4],
    [kernel, stride, padding]: [[usize; 2]; 3],
) -> [Vec<f64>; 2] {
    let [height, width] = [shape[2], shape[3]];
    let lines = (height + 2 * padding[0] - kernel[0]) / stride[0] + 1;
    let windows = (width + 2 * padding[1] - kernel[1]) / stride[1] + 1;
    let (mut y, mut dx) = (Vec::new(), vec![0.0; x.len()]);
    for channel in 0..shape[0] * shape[1] {
        for window in 0..lines * windows {
            let mut best = None;
            for tap in 0..kernel[0] * kernel[1] {
                let row = window / windows * stride[0] + tap / kernel[1];
                let column = window % windows * stride[1] + tap % kernel[1];
                let (row, column) = (row.wrapping_sub(padding[0]), column.wrapping_sub(padding[1]));
                if row < height && column < width {
                    let place = (channel * height + row) * width + column;
                    let new = x[place];
                    let more = |old: usize| new > x[old] || new.is_nan() && !x[old].is_nan();
                    if best.is_none_or(more) {
                        best = Some(place);
                    }
                }
            }
            let best = best.expect("every window has an element");
            dx[best] += (y.len() % 7) as f64 - 3.0;
            y.push(x[best]);
        }
    }
    [y, dx]
}

#[test]
fn maxima_and_their_gradients_are_those_of_plain_loops() {
    let cases = [
        ([2, 3, 9, 11], [[3, 2], [1, 2], [1, 1]]),
        ([3, 2, 5, 40], [[3, 3], [3, 3], [1, 1]]),
        ([2, 2, 5, 17], [[2, 2], [2, 3], [0, 0]]),
        ([1, 2, 4, 5], [[8, 8], [8, 8], [4, 4]]),
        ([1, 1, 1, 1], [[2, 3], [1, 1], [1, 1]]),
        ([0, 2, 4, 4], [[2, 2], [2, 2], [0, 0]]),
        ([2, 0, 4, 4], [[2, 2], [2, 2], [0, 0]]),
        // Several parts, the last of them smaller.
        ([5, 7, 64, 65], [[3, 3], [2, 1], [0, 0]]),
    ];
    for (shape, parts @ [kernel, stride, padding]) in cases {
        let options = PoolOptions::new(kernel).stride(stride).padding(padding);
        let n = shape.iter().product();
        // Many equal numbers, some infinities, and in some windows NaN.
        let number = |i: usize| match i * 7919 % 53 {
            // Neighbours, so that some windows have two.
            0 | 22 => f64::NAN,
            1..6 => f64::NEG_INFINITY,
            6 => f64::INFINITY,
            k => (k % 6) as f64 - 2.0,
        };
        let numbers: Vec<f64> = (0..n).map(number).collect();
        let [y, dx] = maxima(&numbers, shape, parts);
        let same = |found: &[f64], expected: &[f64]| {
            found.iter().zip(expected).all(|(a, b)| a == b || a.is_nan() && b.is_nan())
        };
        fn check<T: Float>(
            x: Tensor<T>,
            options: PoolOptions,
            is: impl Fn(&[f64], &[f64]) -> bool,
        ) -> bool {
            x.set_stop_gradient(false);
            let y = x.max_pool2d(options);
            let dy = (0..y.len()).map(|i| T::from_f64((i % 7) as f64 - 3.0)).collect();
            y.backward_with(&Tensor::from_vec(y.shape().to_vec(), dy).unwrap()).unwrap();
            let wide = |t: Tensor<T>| t.to_vec().into_iter().map(T::into_f64).collect::<Vec<_>>();
            is(&wide(y), &wide(x.grad().unwrap()))
        }
        let is = |found: &[f64], grad: &[f64]| same(found, &y) && same(grad, &dx);
        let x = Tensor::from_vec(shape, numbers).unwrap();
        for threads in [1, 3] {
            let done = with_num_threads(threads, || {
                let transposed = x.transpose().contiguous().transpose();
                [
                    check(x.detach(), options, is),
                    check(transposed, options, is),
                    check(x.cast::<f32>(), options, is),
                ]
            });
            assert_eq!(done, [true; 3], "{shape:?} {options:?} {threads}");
        }
    }
}
