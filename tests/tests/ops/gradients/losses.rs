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

/// A loss with a reduction, of predictions and a target.
type Reduced = fn(&[Tensor<f64>], LossReduction) -> Tensor<f64>;

#[test]
fn losses_are_reduced_as_asked() {
    use LossReduction::{BatchMean, Mean, None, Sum};
    let losses: [(&str, Reduced, fn(&[Tensor<f64>]) -> Tensor<f64>); 8] = [
        ("mse", |t, how| t[0].mse_loss_with(&t[1], how), |t| t[0].mse_loss(&t[1])),
        ("l1", |t, how| t[0].l1_loss_with(&t[1], how), |t| t[0].l1_loss(&t[1])),
        (
            "smooth_l1",
            |t, how| t[0].smooth_l1_loss_with(&t[1], how),
            |t| t[0].smooth_l1_loss(&t[1]),
        ),
        ("huber", |t, how| t[0].huber_loss_with(&t[1], 0.2, how), |t| t[0].huber_loss(&t[1], 0.2)),
        ("kl_div", |t, how| t[0].kl_div_with(&t[1], how), |t| t[0].kl_div(&t[1])),
        (
            "probabilities",
            |t, how| t[0].binary_cross_entropy_with(&t[1], how),
            |t| t[0].binary_cross_entropy(&t[1]),
        ),
        (
            "logits",
            |t, how| t[0].binary_cross_entropy_with_logits_with(&t[1], how),
            |t| t[0].binary_cross_entropy_with_logits(&t[1]),
        ),
        (
            "nll",
            |t, how| {
                let options = CrossEntropyOptions::new().reduction(how);
                t[0].nll_loss_with(&Tensor::from([2, 0, 1]), &options) + t[1].sum() * 0.0
            },
            |t| t[0].nll_loss(&Tensor::from([2, 0, 1])) + t[1].sum() * 0.0,
        ),
    ];
    let inputs = [sample(&[3, 4], 0.2, 0.8), sample(&[3, 4], 0.1, 0.9)];
    for (name, loss, own) in losses {
        let each = loss(&inputs, None);
        assert_eq!(each.shape(), if name == "nll" { &[3][..] } else { &[3, 4] }, "{name}");
        let n = each.len() as f64;
        let close = |found: Tensor<f64>, expected: f64| {
            assert!((found.item() - expected).abs() < 1e-12, "{name}: {}", found.item());
        };
        let sum = each.sum().item();
        close(loss(&inputs, Sum), sum);
        close(loss(&inputs, Mean), sum / n);
        close(loss(&inputs, BatchMean), sum / 3.0);
        close(own(&inputs), if name == "kl_div" { sum / 3.0 } else { sum / n });
        for how in [None, Sum, BatchMean] {
            check(name, |t| loss(t, how), &inputs);
        }
    }
    // As in PyTorch, elements whose target is 0 add nothing, but count in the mean.
    let (p, q) = (Tensor::from([[0.5, 0.5]]), Tensor::from([[1.0, 0.0]]));
    assert_eq!(p.ln().kl_div_with(&q, Mean).item(), 2_f64.ln() / 2.0);
}

#[test]
fn negated_log_probabilities_with_every_option() {
    let logits = sample(&[2, 3, 2], -1.0, 1.0);
    let targets = Tensor::from([2, 1, 0, -1]).reshape([2, 2]);
    for reduction in [LossReduction::Mean, LossReduction::Sum, LossReduction::None] {
        let options = CrossEntropyOptions::new().ignore_index(-1).label_smoothing(0.2);
        let options = options.weight(&Tensor::from([0.5, 1.0, 2.0])).reduction(reduction);
        let expected = logits.cross_entropy_with(&targets, &options);
        let found = logits.log_softmax(1).nll_loss_with(&targets, &options);
        assert!(found.allclose(&expected, 1e-14, 0.0), "{found} {expected}");
        check("nll_loss_with", |t| t[0].nll_loss_with(&targets, &options), &[logits.clone()]);
    }
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
