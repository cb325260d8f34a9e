//! Sums, means, products, extremes, norms and variances.

use autograd_core::Tensor;

use super::{check, check_layouts, distinct, layouts, sample};

type Reduction = fn(&Tensor<f64>, &[isize]) -> Tensor<f64>;

const REDUCTIONS: &[(&str, Reduction)] = &[
    ("sum", |x, axes| x.sum_axes(axes)),
    ("mean", |x, axes| x.mean_axes(axes)),
    ("prod", |x, axes| x.prod_axes(axes)),
    ("max", |x, axes| x.max_axes(axes)),
    ("min", |x, axes| x.min_axes(axes)),
    ("sum that keeps", |x, axes| x.sum_axes_keep(axes)),
    ("mean that keeps", |x, axes| x.mean_axes_keep(axes)),
    ("max that keeps", |x, axes| x.max_axes_keep(axes)),
    ("logsumexp", |x, axes| x.logsumexp(axes)),
    ("var", |x, axes| x.var_axes(axes, 0)),
    ("var of a sample", |x, axes| x.var_axes(axes, 1)),
    ("std", |x, axes| x.std_axes(axes, 0)),
    ("normalize", |x, axes| x.normalize(axes, 1e-2)),
];

#[test]
fn every_reduction_along_all_axes() {
    let axes: &[&[isize]] = &[&[0], &[1], &[2], &[-1], &[0, 1], &[2, 0], &[1, 2], &[0, 1, 2], &[]];
    for &(name, f) in REDUCTIONS {
        for &axes in axes {
            let x = distinct(&[3, 2, 4]) * 0.3;
            check(&format!("{name} along {axes:?}"), |t| f(&t[0], axes), &[x.clone()]);
            let permuted = distinct(&[4, 3, 2]).permute(&[1, 2, 0]) * 0.3;
            check(&format!("{name} along {axes:?}"), |t| f(&t[0], axes), &[permuted]);
        }
    }
}

#[test]
fn every_reduction_in_every_layout() {
    for &(name, f) in REDUCTIONS {
        let extreme = name.starts_with("max") || name.starts_with("min");
        let sum = name.starts_with("sum") || name == "prod";
        let spread = name == "std" || name == "var of a sample";
        for (layout, x) in layouts(0.5, 2.0) {
            let broadcast = layout.starts_with("broadcast");
            // Without elements there is no extreme, mean or logarithm; equal extremes are a kink.
            if (x.is_empty() && !sum) || (broadcast && extreme) {
                continue;
            }
            for axes in [&[][..], &[0]] {
                // Equal numbers, whose spread has no slope; a single number, which has no spread.
                let n = if axes.is_empty() { x.len() } else { x.shape().first().map_or(0, |&n| n) };
                if n == 0 && !sum || spread && (n == 1 || broadcast) {
                    continue;
                }
                if x.ndim() >= axes.len() {
                    check(&format!("{name}, {layout}"), |t| f(&t[0], axes), &[x.clone()]);
                }
            }
        }
    }
}

#[test]
fn long_sums_are_split() {
    check("sum", |t| t[0].sum(), &[sample(&[9000], -1.0, 1.0)]);
    check("mean", |t| t[0].mean_axes([1]), &[sample(&[2, 5000], -1.0, 1.0)]);
    check("max", |t| t[0].max_axes([0]), &[distinct(&[300, 3])]);
}

#[test]
fn products_with_zeros() {
    let one_zero = Tensor::from([[2.0, 0.0, 3.0], [1.0, 4.0, 5.0]]);
    let two_zeros = Tensor::from([[0.0, 0.0, 3.0], [0.0, 4.0, 0.0]]);
    for x in [one_zero, two_zeros] {
        check("prod", |t| t[0].prod(), &[x.clone()]);
        check("prod", |t| t[0].prod_axes([1]), &[x.clone()]);
        check("prod", |t| t[0].prod_axes([0]), &[x]);
    }
}

#[test]
fn norms() {
    check_layouts("norm", |x| if x.is_empty() { x.sum() } else { x.norm() }, 0.5, 2.0);
    check("norm", |t| t[0].norm(), &[sample(&[4, 5], -2.0, 2.0)]);
    let x = Tensor::<f64>::zeros([3]);
    x.set_stop_gradient(false);
    x.norm().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [0.0; 3]);
}

#[test]
fn equal_extremes_share_the_gradient() {
    let x = Tensor::from([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]);
    x.set_stop_gradient(false);
    x.max_axes([1]).sum().backward().unwrap();
    let third = 1.0 / 3.0;
    assert_eq!(x.grad().unwrap().to_vec(), [0.0, 0.5, 0.5, third, third, third]);
}
