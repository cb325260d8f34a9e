//! Sorting, cumulative products, and norms of any order along axes.

use autograd_core::{GradOptions, Tensor, grad_with};

use super::{check, distinct, layouts, sample};

type Along = fn(&Tensor<f64>, isize) -> Tensor<f64>;

const ALONG: &[(&str, Along)] = &[
    ("sort", |x, axis| x.sort(axis, false).0.exp()),
    ("sort down", |x, axis| x.sort(axis, true).0.exp()),
    ("topk", |x, axis| x.topk(1, axis).0.exp()),
    ("max_with_indices", |x, axis| x.max_with_indices(axis).0.exp()),
    ("min_with_indices", |x, axis| x.min_with_indices(axis).0.exp()),
    ("median", |x, axis| x.median_axes(axis).exp()),
    ("cumprod", |x, axis| x.cumprod(axis)),
];

#[test]
fn every_op_along_every_axis() {
    for shape in [&[3, 2, 4][..], &[5], &[1, 3]] {
        for axis in 0..shape.len() as isize {
            for &(name, f) in ALONG {
                let x = distinct(shape) * 0.3;
                check(&format!("{name} along {axis}"), |t| f(&t[0], axis), &[x.clone()]);
                let x = reversed(&x);
                check(&format!("{name} along {axis}"), |t| f(&t[0], axis), &[x]);
            }
        }
    }
}

/// The same elements with the axes in reverse order in memory.
fn reversed(x: &Tensor<f64>) -> Tensor<f64> {
    let order: Vec<isize> = (0..x.ndim() as isize).rev().collect();
    x.permute(&order).contiguous().permute(&order)
}

#[test]
fn running_products_with_zeros() {
    for data in
        [[2.0, 0.0, 3.0, 0.5], [0.0, 0.0, 3.0, 2.0], [0.0, 1.0, 0.0, 0.0], [1.5, 2.0, 3.0, 0.0]]
    {
        check("cumprod", |t| t[0].cumprod(0), &[Tensor::from(data)]);
        check("cumprod", |t| t[0].cumprod(0), &[Tensor::from(data).reshape([2, 2])]);
    }
    check("cumprod of nothing", |t| t[0].cumprod(1), &[Tensor::zeros([2, 0])]);
}

#[test]
fn norms_of_every_order() {
    for p in [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, f64::INFINITY, f64::NEG_INFINITY] {
        for axes in [&[0][..], &[-1], &[0, 2], &[]] {
            let x = distinct(&[3, 2, 4]) * 0.3;
            check(&format!("norm of order {p}"), |t| t[0].norm_axes(axes, p), &[x.clone()]);
            check(&format!("norm of order {p}"), |t| t[0].norm_axes_keep(axes, p), &[x]);
        }
        for (layout, x) in layouts(0.5, 2.0) {
            // Equal extremes are a kink; an empty tensor has no extreme.
            if p.is_infinite() && (layout.starts_with("broadcast") || x.is_empty()) {
                continue;
            }
            check(&format!("norm of order {p}, {layout}"), |t| t[0].norm_axes(.., p), &[x]);
        }
    }
    // A zero among other numbers is not a kink if the power is smooth.
    for p in [2.0, 4.0] {
        check("norm with a zero", |t| t[0].norm_axes(0, p), &[Tensor::from([0.0, 1.0, -2.0])]);
    }
}

#[test]
fn norms_where_there_is_no_derivative() {
    let create = || GradOptions::new().create_graph(true);
    for p in [0.5, 1.5, 2.0, 3.0] {
        let x = Tensor::<f64>::zeros([2, 3]);
        x.set_stop_gradient(false);
        let dx =
            grad_with(&[&x.norm_axes(1, p).sum()], &[&x], create()).unwrap().remove(0).unwrap();
        assert_eq!(dx.to_vec(), [0.0; 6], "{p}");
        let d2x = grad_with(&[&dx.sum()], &[&x], create()).unwrap().remove(0).unwrap();
        assert!(d2x.to_vec().iter().all(|d| d.is_nan()), "{p}: {d2x}");
    }
}

#[test]
fn norms_do_not_leave_the_range() {
    let positive = [(1e200, 2.0), (1e-200, 2.0), (1e300, 3.0), (1e-300, 7.0), (1e-300, 0.5)];
    for (size, p) in [&positive[..], &[(1e200, -2.0), (1e-200, -3.0), (1e300, -0.5)]].concat() {
        let x = Tensor::<f64>::from([3.0, 4.0]);
        let (scaled, plain) = ((&x * size).norm_axes(0, p).item(), x.norm_axes(0, p).item());
        assert!((scaled / size / plain - 1.0).abs() < 1e-12, "{size} {p}: {scaled}");
    }
    assert!(Tensor::from([f64::NAN, 1.0]).norm_axes(0, 2.0).item().is_nan());
    let norm = std::panic::catch_unwind(|| sample(&[3], 0.0, 1.0).norm_axes(0, f64::NAN));
    let words = *norm.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(words, "norm_axes: `p` must be a number, found NaN");
    let empty = std::panic::catch_unwind(|| sample(&[2, 0], 0.0, 1.0).norm_axes(1, -2.0));
    assert!(empty.is_err());
}

#[test]
fn axes_are_one_number_an_array_or_all() {
    let x = sample(&[2, 3, 4], 0.5, 2.0);
    assert_eq!(x.sum_axes(1).to_vec(), x.sum_axes([1]).to_vec());
    assert_eq!(x.mean_axes_keep(-1).to_vec(), x.mean_axes_keep([2]).to_vec());
    assert_eq!(x.max_axes([0, -1]).to_vec(), x.max_axes(vec![0, 2]).to_vec());
    assert_eq!(x.logsumexp(..).item(), x.logsumexp([0, 1, 2]).item());
    assert_eq!(x.var_axes_keep(.., 1).shape(), [1, 1, 1]);
    assert_eq!(x.median_axes_keep([0, 2]).shape(), [1, 3, 1]);
    assert_eq!(x.gt_scalar(1.0).all_axes_keep(-3).shape(), [1, 3, 4]);
    let error = x.try_sum(3, false).unwrap_err().to_string();
    assert_eq!(error, "sum: axis 3 does not exist (the tensor has 3 axes)");
}

#[test]
fn order_is_stable_and_nan_is_last() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let x = Tensor::from([2.0, nan, -0.0, inf, 0.0, nan, 2.0, -inf]);
    assert_eq!(x.argsort(0, false).to_vec(), [7, 2, 4, 0, 6, 3, 1, 5]);
    assert_eq!(x.argsort(-1, true).to_vec(), [3, 0, 6, 2, 4, 7, 1, 5]);
    let bytes = Tensor::from([[3_u8, 1], [0, 1], [255, 0]]);
    assert_eq!(bytes.argsort(0, true).to_vec(), [2, 0, 0, 1, 1, 2]);
    assert_eq!(Tensor::<f32>::zeros([2, 0]).argsort(1, false).shape(), [2, 0]);
}

#[test]
fn gradients_reach_what_was_chosen() {
    let x = Tensor::from([[1.0, 3.0, 3.0, f64::NAN], [2.0, 2.0, 1.0, 0.0]]);
    let chosen = |f: fn(&Tensor<f64>) -> Tensor<f64>| {
        x.clear_grad();
        x.set_stop_gradient(false);
        f(&x).sum().backward().unwrap();
        x.grad().unwrap().to_vec()
    };
    assert_eq!(
        chosen(|x| x.narrow(1, 0, 3).max_with_indices(1).0),
        [0., 1., 0., 0., 1., 0., 0., 0.]
    );
    assert_eq!(chosen(|x| x.min_with_indices(1).0), [0., 0., 0., 1., 0., 0., 0., 1.]);
    assert_eq!(chosen(|x| x.topk(2, 1).0), [0., 1., 1., 0., 1., 1., 0., 0.]);
    assert_eq!(chosen(|x| x.median_axes(1)), [0., 0., 0., 1., 0., 0., 1., 0.]);
    assert!(x.median().item().is_nan());
}

#[test]
fn errors_of_order_name_the_op() {
    let x = Tensor::<f64>::zeros([2, 0]);
    let words = |run: fn(&Tensor<f64>)| {
        let panic = std::panic::catch_unwind(|| run(&x)).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    };
    assert!(words(|x| drop(x.sort(2, false))).starts_with("sort: "));
    assert!(words(|x| drop(x.median())).starts_with("median: "));
    assert_eq!(x.median_axes(0).shape(), [0]);
}

#[test]
fn nan_is_the_extreme() {
    let x = Tensor::from([1.0, f64::NAN, 7.0, f64::NAN]);
    assert_eq!((x.argmax(0).item(), x.argmin(0).item()), (1, 1));
    assert!(Tensor::<f32>::zeros([2, 0]).try_argmax(1).is_err());
    assert_eq!(Tensor::<f32>::zeros([0, 2]).argmax(1).shape(), [0]);
}
