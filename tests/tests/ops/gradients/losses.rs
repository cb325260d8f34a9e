//! Losses with options, of distances and of distributions.

use autograd_core::{CrossEntropyOptions, LossReduction, Tensor};

use super::{check, sample};

#[test]
fn cross_entropy_with_every_option_on_more_axes() {
    let weight = Tensor::from([0.5, 1.0, 2.0]);
    let plain = CrossEntropyOptions::new;
    let all = || plain().weight(&weight).label_smoothing(0.2).ignore_index(-1);
    let options = [plain(), plain().ignore_index(-1), plain().label_smoothing(1.0), all()];
    for reduction in [LossReduction::Mean, LossReduction::Sum, LossReduction::None] {
        for (at, options) in options.iter().enumerate() {
            let options = options.clone().reduction(reduction);
            let ignored = if at % 2 == 1 { -1 } else { 2 };
            let rows = Tensor::from([2, ignored, 0, 1]);
            let f = |t: &[Tensor<f64>]| t[0].cross_entropy_with(&rows, &options);
            check("cross_entropy_with", f, &[sample(&[4, 3], -1.0, 1.0)]);
            let places = Tensor::from([2, ignored, 0, 1]).reshape([2, 1, 2]);
            let f = |t: &[Tensor<f64>]| t[0].cross_entropy_with(&places, &options);
            check("cross_entropy_with", f, &[sample(&[2, 3, 1, 2], -1.0, 1.0)]);
        }
    }
    let targets = Tensor::from([2, 1, 0, 1]).reshape([2, 2]);
    check("cross_entropy", |t| t[0].cross_entropy(&targets), &[sample(&[2, 3, 2], -1.0, 1.0)]);
    let f = |t: &[Tensor<f64>]| t[0].cross_entropy_with(&targets, &plain().weight(&t[1]));
    check("weights", f, &[sample(&[2, 3, 2], -1.0, 1.0), sample(&[3], 0.5, 1.0)]);
}

#[test]
fn what_is_ignored_has_no_gradient_whatever_it_is() {
    let logits = Tensor::from([[1.0, f64::NAN], [f64::INFINITY, 0.0], [0.0, 0.0]]);
    logits.set_stop_gradient(false);
    let options = CrossEntropyOptions::new().ignore_index(7).label_smoothing(0.5);
    let loss = logits.cross_entropy_with(&Tensor::from([7, 7, 0]), &options);
    assert_eq!(loss.item(), 2_f64.ln());
    loss.backward().unwrap();
    assert_eq!(logits.grad().unwrap().to_vec(), [0.0, 0.0, 0.0, 0.0, -0.25, 0.25]);
}

#[test]
fn distances_and_distributions() {
    for shape in [&[3, 4][..], &[5], &[], &[2, 1, 3]] {
        let inputs = [sample(shape, 0.5, 1.0), sample(shape, 1.1, 2.0)];
        check("l1_loss", |t| t[0].l1_loss(&t[1]), &inputs);
        for delta in [0.01, 5.0] {
            check("huber_loss", |t| t[0].huber_loss(&t[1], delta), &inputs);
        }
        let inputs = [sample(shape, 0.2, 0.8), sample(shape, 0.1, 0.9)];
        check("kl_div", |t| t[0].kl_div(&t[1]), &inputs);
        check("binary_cross_entropy", |t| t[0].binary_cross_entropy(&t[1]), &inputs);
    }
    // Smooth where the difference is 0.
    check("huber_loss", |t| t[0].huber_loss(&Tensor::zeros([3]), 1.0), &[Tensor::zeros([3])]);
    let ends = Tensor::from([0.0, 1.0, 0.0]);
    let inputs = [sample(&[3], -1.0, 0.0)];
    check("kl_div", |t| t[0].kl_div(&ends), &inputs);
    let inputs = [sample(&[3], 0.2, 0.8)];
    check("binary_cross_entropy", |t| t[0].binary_cross_entropy(&ends), &inputs);
}

#[test]
fn errors_say_what_does_not_fit() {
    let logits = Tensor::<f64>::zeros([2, 3, 4]);
    let targets = |shape: &[usize]| Tensor::<i64>::zeros(shape);
    let plain = CrossEntropyOptions::new();
    let words = |found: autograd_core::Result<Tensor<f64>>| found.unwrap_err().to_string();
    assert_eq!(
        words(logits.try_cross_entropy(&targets(&[2, 3]))),
        "cross_entropy: `targets` must be of shape [2, 4], that of the logits without their axis 1, \
         found shape [2, 3]"
    );
    assert_eq!(
        words(logits.try_cross_entropy_with(&targets(&[2]), &plain)),
        "cross_entropy_with: `targets` must be of shape [2, 4], that of the logits without their \
         axis 1, found shape [2]"
    );
    assert_eq!(
        words(Tensor::zeros([3]).try_cross_entropy_with(&targets(&[]), &plain)),
        "cross_entropy_with: the tensor must be of shape [n, classes] or [n, classes, ..], found \
         shape [3]"
    );
    let weight = CrossEntropyOptions::new().weight(&Tensor::ones([2]));
    assert_eq!(
        words(logits.try_cross_entropy_with(&targets(&[2, 4]), &weight)),
        "cross_entropy_with: `weight` must be of shape [3], a number for each class, found shape [2]"
    );
    let smoothing = CrossEntropyOptions::new().label_smoothing(1.5);
    assert_eq!(
        words(logits.try_cross_entropy_with(&targets(&[2, 4]), &smoothing)),
        "cross_entropy_with: `label_smoothing` must be in [0, 1], found 1.5"
    );
    let error = logits.try_cross_entropy_with(&(targets(&[2, 4]) + 3_i64), &plain);
    assert_eq!(
        words(error),
        "cross_entropy_with: `targets[0, 0]` is 3, outside an axis of length 3"
    );
}
