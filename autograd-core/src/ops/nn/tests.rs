//! Values of these ops against slow loops that are plain to see; their gradients are checked by
//! finite differences in the package `tests`.

use crate::{Conv2dOptions, PoolOptions, Tensor};

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

/// The element of a picture at a place counted with its padding; none in the padding.
fn at(x: &Tensor<f64>, n: usize, c: usize, place: [usize; 2], padding: [usize; 2]) -> Option<f64> {
    let y = place[0].checked_sub(padding[0])?;
    let z = place[1].checked_sub(padding[1])?;
    (y < x.shape()[2] && z < x.shape()[3]).then(|| x.at(&[n, c, y, z]))
}

#[test]
fn convolution_is_the_sum_over_windows() {
    let cases = [
        // (input, outputs, kernel, stride, padding, dilation, groups)
        ([2, 3, 5, 6], 4, [3, 2], [1, 1], [0, 0], [1, 1], 1),
        ([1, 4, 7, 5], 6, [3, 3], [2, 1], [1, 2], [1, 1], 2),
        ([2, 2, 8, 9], 2, [2, 3], [3, 2], [1, 1], [2, 3], 2),
        ([3, 1, 1, 1], 2, [1, 1], [1, 1], [3, 0], [1, 1], 1),
        ([1, 2, 3, 3], 2, [5, 5], [4, 4], [4, 4], [1, 1], 1),
        ([0, 2, 3, 3], 2, [2, 2], [1, 1], [0, 0], [1, 1], 1),
        // Pictures of padding only, and no channels.
        ([2, 1, 0, 3], 2, [2, 2], [1, 1], [1, 1], [1, 1], 1),
        ([2, 0, 3, 3], 2, [2, 2], [1, 1], [1, 1], [1, 1], 1),
    ];
    for (input, outputs, kernel, stride, padding, dilation, groups) in cases {
        let x = ramp(&input);
        let inputs = input[1] / groups;
        let w = ramp(&[outputs, inputs, kernel[0], kernel[1]]);
        let b = ramp(&[outputs]);
        let options =
            Conv2dOptions::new().stride(stride).padding(padding).dilation(dilation).groups(groups);
        let y = x.conv2d(&w, Some(&b), options);
        let mut expected = Vec::new();
        for n in 0..input[0] {
            for o in 0..outputs {
                for i in 0..y.shape()[2] {
                    for j in 0..y.shape()[3] {
                        let mut sum = b.at(&[o]);
                        for c in 0..inputs {
                            for k in 0..kernel[0] {
                                for l in 0..kernel[1] {
                                    let place = [
                                        i * stride[0] + k * dilation[0],
                                        j * stride[1] + l * dilation[1],
                                    ];
                                    let channel = o / (outputs / groups) * inputs + c;
                                    let x = at(&x, n, channel, place, padding).unwrap_or(0.0);
                                    sum += x * w.at(&[o, c, k, l]);
                                }
                            }
                        }
                        expected.push(sum);
                    }
                }
            }
        }
        assert_close(&y, &expected);
        // The same numbers seen through other strides.
        let turned = x.transpose().contiguous().transpose();
        assert_close(&turned.conv2d(&w, Some(&b), options), &expected);
    }
}

#[test]
fn pooling_looks_at_each_window() {
    let cases = [
        ([2, 3, 6, 7], [2, 2], [2, 2], [0, 0]),
        ([1, 2, 5, 5], [3, 2], [1, 2], [1, 1]),
        ([1, 1, 4, 4], [3, 3], [5, 1], [1, 0]),
    ];
    for (input, kernel, stride, padding) in cases {
        let x = ramp(&input);
        let options = PoolOptions::new(kernel).stride(stride).padding(padding);
        let (max, mean) = (x.max_pool2d(options), x.avg_pool2d(options));
        let (mut maxima, mut means) = (Vec::new(), Vec::new());
        for n in 0..input[0] {
            for c in 0..input[1] {
                for i in 0..max.shape()[2] {
                    for j in 0..max.shape()[3] {
                        let window: Vec<f64> = (0..kernel[0] * kernel[1])
                            .map(|t| [i * stride[0] + t / kernel[1], j * stride[1] + t % kernel[1]])
                            .filter_map(|place| at(&x, n, c, place, padding))
                            .collect();
                        maxima.push(window.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                        means.push(window.iter().sum::<f64>() / window.len() as f64);
                    }
                }
            }
        }
        assert_close(&max, &maxima);
        assert_close(&mean, &means);
    }
}

#[test]
fn pooling_keeps_what_is_not_a_number() {
    let x = Tensor::from([1.0, f64::NAN, 3.0, f64::NEG_INFINITY]).reshape([1, 1, 2, 2]);
    assert!(x.max_pool2d(2).item().is_nan());
    let low = Tensor::full([1, 1, 2, 2], f64::NEG_INFINITY);
    low.set_stop_gradient(false);
    let y = low.max_pool2d(2);
    assert_eq!(y.item(), f64::NEG_INFINITY);
    y.backward().unwrap();
    assert_eq!(low.grad().unwrap().to_vec(), [1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn softmax_stays_finite_and_sums_to_one() {
    let x = Tensor::from([[1000.0, 1001.0, f64::NEG_INFINITY], [-1e300, 0.0, 3.0]]);
    let e = 1_f64.exp();
    let expected = [1.0 / (1.0 + e), e / (1.0 + e), 0.0];
    assert_close(&x.narrow(0, 0, 1).softmax(1), &expected);
    for axis in [0, 1] {
        assert_close(&x.softmax(axis).sum_axes(&[axis]), &vec![1.0; x.shape()[1 - axis as usize]]);
    }
    assert_close(&x.log_softmax(1).exp(), &x.softmax(1).to_vec());
    assert_close(&x.logsumexp(&[1]), &[1001.0 + (1.0 / e).ln_1p(), 3.0 + (-3_f64).exp().ln_1p()]);
    let wide = ramp(&[3, 1001]);
    assert_close(&wide.softmax(-1).sum_axes(&[1]), &[1.0; 3]);
    assert_close(&wide.transpose().softmax(0).sum_axes(&[0]), &[1.0; 3]);
}

#[test]
fn logsumexp_of_the_infinite_and_of_nothing() {
    let inf = f64::INFINITY;
    let x = Tensor::from([[inf, 0.0], [-inf, -inf], [f64::NAN, 0.0]]);
    let y = x.logsumexp(&[1]).to_vec();
    assert_eq!(y[..2], [inf, -inf]);
    assert!(y[2].is_nan());
    assert_eq!(Tensor::<f64>::zeros([2, 0]).logsumexp(&[1]).to_vec(), [-inf, -inf]);
    assert_eq!(Tensor::<f64>::zeros([0]).logsumexp(&[]).item(), -inf);
}

#[test]
fn the_ways_to_cross_entropy_agree() {
    let x = ramp(&[4, 7]);
    let targets = Tensor::from([6, 0, 3, 3]);
    let expected = x.log_softmax(1).nll_loss(&targets).item();
    assert_close(&x.cross_entropy(&targets), &[expected]);
    let picked = x.log_softmax(1) * targets.one_hot::<f64>(7);
    assert_close(&(picked.sum() / -4.0), &[expected]);
    assert!(Tensor::<f64>::zeros([0, 3]).cross_entropy(&Tensor::zeros([0])).item().is_nan());
}

#[test]
fn what_does_not_fit_is_named() {
    let x = Tensor::<f64>::zeros([1, 3, 4, 4]);
    let w = Tensor::<f64>::zeros([2, 3, 5, 5]);
    let options = Conv2dOptions::new();
    let message = |result: crate::Result<Tensor<f64>>| result.unwrap_err().to_string();
    assert_eq!(
        message(x.try_conv2d(&w, None, options)),
        "conv2d: `self` must be at least 5 high and 5 wide, for one window to fit, found shape \
         [1, 3, 4, 4]"
    );
    assert_eq!(
        message(x.try_conv2d(&w, None, options.groups(2))),
        "conv2d: `weight` must be for channels / groups = 3 / 2 channels, as `self` of shape \
         [1, 3, 4, 4] has, found shape [2, 3, 5, 5]"
    );
    assert_eq!(
        message(x.try_conv2d(&w, Some(&Tensor::zeros([3])), options.padding(1))),
        "conv2d: `bias` must be of shape [2], one for each output, found shape [3]"
    );
    assert_eq!(
        message(x.try_conv2d(&w, None, options.stride(0).padding(1))),
        "conv2d: `stride` must be at least 1, found [0, 0]"
    );
    assert!(message(x.try_conv2d(&w, None, options.padding(usize::MAX))).contains("too large"));
    assert!(message(x.try_conv2d(&w, None, options.dilation(usize::MAX))).contains("high"));
    assert_eq!(
        message(x.try_max_pool2d(PoolOptions::new(3).padding(2))),
        "max_pool2d: `padding` must be at most half the window [3, 3], found [2, 2]"
    );
    let scores = Tensor::<f64>::zeros([2, 3]);
    assert_eq!(
        message(scores.try_cross_entropy(&Tensor::from([0, 3]))),
        "cross_entropy: `targets[1]` is 3, outside an axis of length 3"
    );
    assert_eq!(
        message(scores.try_cross_entropy(&Tensor::from([0]))),
        "cross_entropy: `targets` must be of shape [2]: one class for each row of `self`, found \
         shape [1]"
    );
    assert_eq!(
        message(scores.try_mse_loss(&Tensor::zeros([3]))),
        "mse_loss: `target` must be of the shape [2, 3] of `self`, found shape [3]"
    );
    assert_eq!(
        message(scores.try_dropout(f64::NAN, true)),
        "dropout: `p` must be a probability, found NaN"
    );
}

#[test]
fn dropout_keeps_the_mean_and_its_mask() {
    let x = Tensor::<f64>::ones([100_000]);
    x.set_stop_gradient(false);
    let y = x.dropout(0.2, true);
    let mean = y.to_vec().iter().sum::<f64>() / 1e5;
    assert!((mean - 1.0).abs() < 0.01, "{mean}");
    y.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), y.to_vec());
    assert!(x.dropout(1.0, true).to_vec().iter().all(|&y| y == 0.0));
    assert_eq!(x.dropout(0.9, false).to_vec(), x.to_vec());
}
