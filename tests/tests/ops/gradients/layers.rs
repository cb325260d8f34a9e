//! Softmax, losses, the affine map, convolution and pooling.

use autograd_core::{Conv2dOptions, Generator, PoolOptions, Result, Tensor};

use super::{check, check_layouts, distinct, sample};

#[test]
fn softmax_along_every_axis() {
    for axis in [-1, 0] {
        let softmax = |x: &Tensor<f64>| if x.ndim() == 0 { x.exp() } else { x.softmax(axis) };
        let logs = |x: &Tensor<f64>| if x.ndim() == 0 { x.exp() } else { x.log_softmax(axis) };
        check_layouts("softmax", softmax, -2.0, 2.0);
        check_layouts("log_softmax", logs, -2.0, 2.0);
    }
    check("softmax", |t| t[0].softmax(1), &[sample(&[2, 3, 4], -2.0, 2.0)]);
    check("log_softmax", |t| t[0].log_softmax(1), &[sample(&[2, 19], -2.0, 2.0)]);
    check("softmax of a temporary", |t| (&t[0] * 2.0).softmax(1), &[sample(&[2, 19], -2.0, 2.0)]);
}

#[test]
fn losses() {
    let targets = Tensor::from([4, 0, 2]);
    for logits in [sample(&[3, 5], -2.0, 2.0), sample(&[5, 3], -2.0, 2.0).transpose()] {
        check("cross_entropy", |t| t[0].cross_entropy(&targets), &[logits.clone()]);
        check("nll_loss", |t| t[0].log_softmax(1).nll_loss(&targets), &[logits]);
    }
    for shape in [&[3, 4][..], &[], &[5]] {
        let inputs = [sample(shape, -0.3, 0.4), sample(shape, 0.5, 0.9)];
        check("mse_loss", |t| t[0].mse_loss(&t[1]), &inputs);
        check("smooth_l1_loss near", |t| t[0].smooth_l1_loss(&t[1]), &inputs);
        let far = [sample(shape, -2.0, -1.0), sample(shape, 0.5, 2.0)];
        check("smooth_l1_loss far", |t| t[0].smooth_l1_loss(&t[1]), &far);
        let bce = |t: &[Tensor<f64>]| t[0].binary_cross_entropy_with_logits(&t[1]);
        check("binary_cross_entropy_with_logits", bce, &far);
        check("binary_cross_entropy_with_logits", bce, &[far[1].clone(), far[0].clone()]);
    }
}

#[test]
fn affine_maps() {
    let weight = sample(&[4, 3], -1.0, 1.0);
    let bias = sample(&[4], -1.0, 1.0);
    for shape in [&[5, 3][..], &[3], &[2, 3, 3], &[0, 3], &[2, 2, 1, 3]] {
        let inputs = [sample(shape, -1.0, 1.0), weight.clone(), bias.clone()];
        check("linear", |t| t[0].linear(&t[1], Some(&t[2])), &inputs);
        check("linear", |t| t[0].linear(&t[1], None).square(), &inputs[..2]);
    }
    let turned =
        [sample(&[3, 5, 2], -1.0, 1.0).permute(&[2, 1, 0]), sample(&[3, 4], -1.0, 1.0).transpose()];
    check("linear", |t| t[0].linear(&t[1], None).square(), &turned);
}

#[test]
fn convolutions() {
    let options = Conv2dOptions::new();
    let cases: [([usize; 4], [usize; 4], Conv2dOptions); 11] = [
        ([2, 2, 4, 5], [3, 2, 3, 2], options),
        ([1, 2, 5, 4], [2, 2, 2, 3], options.stride([2, 1]).padding([1, 2])),
        ([2, 4, 4, 4], [4, 2, 2, 2], options.groups(2)),
        ([1, 3, 4, 4], [3, 1, 3, 3], options.groups(3).padding(1)),
        ([1, 1, 7, 7], [2, 1, 3, 2], options.dilation([2, 3]).stride(2)),
        ([2, 3, 2, 2], [2, 3, 1, 1], options),
        ([3, 2, 3, 3], [4, 1, 1, 1], options.groups(2).stride(2)),
        ([2, 2, 3, 4], [3, 2, 3, 3], options.dilation([1, 2]).padding([2, 3])),
        ([17, 1, 3, 3], [9, 1, 2, 2], options),
        ([0, 2, 3, 3], [2, 2, 2, 2], options),
        ([2, 1, 0, 3], [2, 1, 2, 2], options.padding(1)),
    ];
    for (input, weight, options) in cases {
        let inputs = [
            sample(&input, -1.0, 1.0),
            sample(&weight, -1.0, 1.0),
            sample(&weight[..1], -1.0, 1.0),
        ];
        check("conv2d", |t| t[0].conv2d(&t[1], Some(&t[2]), options), &inputs);
        check("conv2d", |t| t[0].conv2d(&t[1], None, options).square(), &inputs[..2]);
    }
    let turned = [
        sample(&[2, 5, 4, 2], -1.0, 1.0).permute(&[0, 3, 2, 1]),
        sample(&[2, 3, 2, 2], -1.0, 1.0).transpose(),
    ];
    let w = |t: &Tensor<f64>| t.narrow(1, 0, 2);
    check("conv2d", |t| t[0].conv2d(&w(&t[1]), None, options), &turned);
}

#[test]
fn pooling() {
    let cases = [
        ([2, 2, 4, 5], PoolOptions::new(2)),
        ([1, 2, 5, 5], PoolOptions::new([3, 2]).stride([1, 2]).padding([1, 0])),
        ([1, 1, 4, 4], PoolOptions::new(3).stride(2).padding(1)),
        ([2, 1, 3, 3], PoolOptions::new(3)),
    ];
    for (shape, options) in cases {
        for x in [
            distinct(&shape),
            distinct(&[shape[1], shape[0], shape[2], shape[3]]).permute(&[1, 0, 2, 3]),
        ] {
            check("max_pool2d", |t| t[0].max_pool2d(options).square(), &[x.clone()]);
            check("avg_pool2d", |t| t[0].avg_pool2d(options).square(), &[x]);
        }
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let x = Tensor::<f64>::zeros([1, 3, 4, 4]);
    let w = Tensor::<f64>::zeros([2, 3, 5, 5]);
    let options = Conv2dOptions::new();
    let message = |result: Result<Tensor<f64>>| result.unwrap_err().to_string();
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
        message(scores.try_dropout(f64::NAN, true)),
        "dropout: `p` must be a probability, found NaN"
    );
}

#[test]
fn dropout_keeps_the_mean_and_its_mask() {
    let x = Tensor::<f64>::ones([100_000]);
    x.set_stop_gradient(false);
    let y = Generator::new(2).run(|| x.dropout(0.2, true));
    let mean = y.to_vec().iter().sum::<f64>() / 1e5;
    assert!((mean - 1.0).abs() < 0.01, "{mean}");
    y.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), y.to_vec());
    assert!(x.dropout(1.0, true).to_vec().iter().all(|&y| y == 0.0));
    assert_eq!(x.dropout(0.9, false).to_vec(), x.to_vec());
}
