//! Sums of squares, variances and exponentials over the whole range of their type, if the result is
//! representable: scaled inputs must give the scaled result.

use autograd_core::nn::{
    BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm, Module, RmsNorm, parameter,
};
use autograd_core::optim::clip_grad_norm;
use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Program, gradients};
use autograd_core::{DType, Float, GradOptions, grad_with};

/// A function of `scale * x`: its value is multiplied by `scale` to this power, its gradient by
/// `scale` to that power minus one.
struct Case<T: Float> {
    name: &'static str,
    f: fn(&Tensor<T>) -> Tensor<T>,
    degree: i32,
}

fn cases<T: Float>() -> Vec<Case<T>> {
    vec![
        Case { name: "norm", f: |x| x.norm(), degree: 1 },
        Case { name: "std", f: |x| x.std_axes([1], 1), degree: 1 },
        Case { name: "std of all", f: |x| x.std_axes([], 0), degree: 1 },
        Case { name: "norm of order 2", f: |x| x.norm_axes([1], 2.0), degree: 1 },
        Case { name: "norm of order 3", f: |x| x.norm_axes([0], 3.0), degree: 1 },
        Case { name: "norm of order 1.5", f: |x| x.norm_axes([1], 1.5), degree: 1 },
        Case { name: "norm of order -2", f: |x| x.norm_axes([1], -2.0), degree: 1 },
        Case {
            name: "cosine similarity",
            f: |x| {
                let unit = x / x.norm_axes_keep([1], 2.0);
                (&unit * unit.roll(1, 0)).sum_axes([1])
            },
            degree: 0,
        },
        Case {
            name: "RmsNorm",
            f: |x| RmsNorm::new(4).eps(0.0).forward(x) * weights(x),
            degree: 0,
        },
        Case {
            name: "LayerNorm",
            f: |x| LayerNorm::new(4).eps(0.0).forward(x) * weights(x),
            degree: 0,
        },
        Case {
            name: "GroupNorm",
            f: |x| GroupNorm::new(2, 4).eps(0.0).forward(x) * weights(x),
            degree: 0,
        },
        Case {
            name: "BatchNorm",
            f: |x| BatchNorm1d::new(4).eps(0.0).forward(x) * weights(x),
            degree: 0,
        },
        Case { name: "normalize", f: |x| x.normalize([1], 0.0) * weights(x), degree: 0 },
        Case {
            name: "normalize, other axis",
            f: |x| x.normalize([0], 0.0) * weights(x),
            degree: 0,
        },
    ]
}

/// Different weights for each element, so that gradients are not zero.
fn weights<T: Float>(x: &Tensor<T>) -> Tensor<T> {
    let n = x.len();
    let weights = (0..n).map(|i| T::from_f64((i as f64 * 0.7).sin())).collect::<Vec<_>>();
    Tensor::from(weights).reshape(x.shape())
}

fn numbers<T: Float>(scale: f64) -> Tensor<T> {
    let x = [[3.0, -4.0, 1.5, 0.5], [1.0, 2.0, -0.25, 8.0], [0.5, -0.5, 2.5, 1.0]];
    let x: Vec<T> = x.iter().flatten().map(|&x| T::from_f64(x * scale)).collect();
    Tensor::from(x).reshape([3, 4])
}

/// Value and gradient, with and without a recorded backward.
fn found<T: Float>(f: fn(&Tensor<T>) -> Tensor<T>, x: &Tensor<T>) -> Vec<Vec<f64>> {
    x.set_stop_gradient(false);
    let mut all = vec![f(x).to_vec()];
    for create_graph in [false, true] {
        let options = GradOptions::new().create_graph(create_graph);
        let dx = grad_with(&[&f(x).sum()], &[x], options).unwrap().remove(0).unwrap();
        all.push(dx.to_vec());
    }
    let (_, tangent) = autograd_core::jvp(|x| f(&x[0]), &[x.detach()], &[x.detach()]).unwrap();
    all.push(tangent.to_vec());
    all.into_iter().map(|v| v.into_iter().map(Float::into_f64).collect()).collect()
}

#[track_caller]
fn close(what: &str, found: &[f64], right: &[f64], by: f64, precision: f64) {
    assert_eq!(found.len(), right.len(), "{what}");
    let size = right.iter().fold(0.0_f64, |m, x| m.max(x.abs())).max(0.5);
    for (found, right) in found.iter().zip(right) {
        let found = found / by;
        assert!((found - right).abs() <= precision * size, "{what}: {found}, not {right}");
    }
}

fn over_the_range<T: Float>(scales: &[f64], precision: f64) {
    for case in cases::<T>() {
        let right = found(case.f, &numbers(1.0));
        for &scale in scales {
            let what = format!("{} of {scale:e}", case.name);
            let found = found(case.f, &numbers(scale));
            let by = |degree: i32| scale.powi(degree);
            close(&what, &found[0], &right[0], by(case.degree), precision);
            close(&what, &found[1], &right[1], by(case.degree - 1), precision);
            close(&what, &found[2], &right[2], by(case.degree - 1), precision);
            // Along `x` itself: the tangent scales as the value does.
            close(&what, &found[3], &right[3], by(case.degree), precision);
        }
    }
}

#[test]
fn functions_of_scaled_numbers() {
    over_the_range::<f32>(&[1e30, 1e37, 1e20, 1e-15, 1e-20, 1e-25, 1e-30], 2e-6);
    over_the_range::<f64>(&[1e160, 1e200, 1e300, 1e-120, 1e-160, 1e-200, 1e-290], 1e-14);
}

#[test]
fn a_norm_beyond_the_range_of_its_squares() {
    for (x, norm) in [([3e20, 4e20], 5e20), ([3e-25, 4e-25], 5e-25)] {
        let x = Tensor::from(x.map(|x: f32| x));
        x.set_stop_gradient(false);
        let y = x.norm();
        assert!((y.item() / norm - 1.0).abs() < 1e-6);
        y.backward().unwrap();
        let dx = x.grad().unwrap().to_vec();
        assert!((dx[0] - 0.6).abs() < 1e-6 && (dx[1] - 0.8).abs() < 1e-6, "{dx:?}");
    }
    assert_eq!(Tensor::from([f32::INFINITY, 1.0]).norm().item(), f32::INFINITY);
    assert!(Tensor::from([f32::NAN, 1.0]).norm().item().is_nan());
    assert_eq!(Tensor::<f32>::zeros([0]).norm().item(), 0.0);
}

#[test]
fn a_variance_whose_sum_of_squares_is_not_representable() {
    // 40 squares of 1e38 overflow f32; their mean does not.
    let x: Vec<f32> = (0..40).map(|i| if i % 2 == 0 { 1e19 } else { -1e19 }).collect();
    let x = Tensor::from(x);
    x.set_stop_gradient(false);
    let var = x.var_axes([], 0);
    assert!((var.item() / 1e38 - 1.0).abs() < 1e-6, "{}", var.item());
    var.backward().unwrap();
    let dx = x.grad().unwrap().to_vec();
    assert!((dx[0] / 5e17 - 1.0).abs() < 1e-5 && dx[1] == -dx[0], "{dx:?}");
}

#[test]
fn layers_that_normalise() {
    fn check<T: Float>(scale: f64, precision: f64) {
        let layer = LayerNorm::<T>::new(4);
        let found = layer.forward(&numbers(scale));
        let right = numbers::<T>(1.0).normalize([1], 0.0);
        let values = |t: &Tensor<T>| t.to_vec().into_iter().map(T::into_f64).collect::<Vec<_>>();
        close("LayerNorm", &values(&found), &values(&right), 1.0, precision);

        let layer = BatchNorm2d::<T>::new(3);
        let x = |scale| numbers::<T>(scale).reshape([1, 3, 2, 2]);
        let found = layer.forward(&x(scale));
        let right = x(1.0).normalize([0, 2, 3], 0.0);
        close("BatchNorm2d", &values(&found), &values(&right), 1.0, precision);
        // A value that overflows the type does not stay in the statistics.
        let running = layer.running_var.to_vec();
        assert!(running.iter().all(|var| var.is_finite()), "{running:?}");
        assert!(layer.running_mean.to_vec().iter().all(|mean| mean.is_finite()));
        layer.eval();
        assert!(layer.forward(&x(1.0)).to_vec().iter().all(|y| y.is_finite()));
    }
    check::<f32>(1e30, 1e-6);
    check::<f32>(3e37, 1e-6);
    check::<f64>(1e200, 1e-14);
}

#[test]
fn normalising_in_programs() {
    let program = Program::new();
    let x = program.data("x", [-1, 4], DType::Float32).unwrap();
    x.set_stop_gradient(false);
    let y = program
        .trace(|x: &Tensor<f32>| x.normalize([-1], 1e-5) * Tensor::from([1.0_f32, 2.0, 3.0, 4.0]))
        .x(&x)
        .call()
        .unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    let batch = program.batch_norm(&x).unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    let run = |scale| {
        let fed = numbers::<f32>(scale);
        let fetch: [&dyn autograd_core::static_graph::Fetch; 4] =
            [&y, &dx, &batch, &"batch_norm_0.running_var"];
        let found = executor.run(&program, &[("x", &fed)], &fetch).unwrap();
        let values = |t: &AnyTensor| {
            t.downcast_ref::<f32>().unwrap().to_vec().into_iter().map(f64::from).collect::<Vec<_>>()
        };
        found.iter().map(values).collect::<Vec<_>>()
    };
    let (right, found) = (run(1.0), run(1e30));
    close("normalize", &found[0], &right[0], 1.0, 1e-4);
    close("its gradient", &found[1], &right[1], 1e-30, 1e-4);
    close("batch_norm", &found[2], &right[2], 1.0, 1e-4);
    assert!(found[3].iter().all(|var| var.is_finite()), "{:?}", found[3]);
}

#[test]
fn a_deviation_in_a_program() {
    let program = Program::new();
    let x = program.data("x", [-1, 4], DType::Float32).unwrap();
    x.set_stop_gradient(false);
    let y = program.trace(|x: &Tensor<f32>| x.std_axes([1], 0)).x(&x).call().unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    for scale in [1.0, 1e30, 1e-25] {
        let fed = numbers::<f32>(scale);
        let run = Executor::new().run(&program, &[("x", &fed)], &[&y, &dx]).unwrap();
        let right = found::<f32>(|x| x.std_axes([1], 0), &fed);
        for (run, right) in run.iter().zip(&right) {
            let run = run.downcast_ref::<f32>().unwrap().to_vec();
            let by = right.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
            for (run, right) in run.iter().zip(right) {
                assert!((f64::from(*run) - right).abs() <= 2e-6 * by, "{run}, not {right}");
            }
        }
    }
}

#[test]
fn the_norm_of_gradients() {
    let of = |grad: [f64; 2]| {
        let p = parameter(Tensor::from([0.0, 0.0]));
        p.set_grad(Some(&Tensor::from(grad))).unwrap();
        p
    };
    let p = of([3e200, 4e200]);
    assert!((clip_grad_norm(&p, 1.0).unwrap() / 5e200 - 1.0).abs() < 1e-15);
    let clipped = p.grad().unwrap().to_vec();
    assert!((clipped[0] - 0.6).abs() < 1e-15 && (clipped[1] - 0.8).abs() < 1e-15, "{clipped:?}");
    let p = of([3e-200, 4e-200]);
    assert!((clip_grad_norm(&p, 1.0).unwrap() / 5e-200 - 1.0).abs() < 1e-15);
    // An infinite limit only measures the norm.
    let p = of([3.0, 4.0]);
    assert_eq!(clip_grad_norm(&p, f64::INFINITY).unwrap(), 5.0);
    assert_eq!(p.grad().unwrap().to_vec(), [3.0, 4.0]);
    for wrong in [[f64::NAN, 1.0], [f64::INFINITY, 1.0]] {
        let p = of(wrong);
        let error = clip_grad_norm(&p, 1.0).unwrap_err().to_string();
        assert!(error.contains("finite"), "{error}");
        assert!(clip_grad_norm(&p, f64::NAN).unwrap_err().to_string().contains("max_norm"));
    }
}

#[test]
fn means_of_large_numbers() {
    for x in [[3e38_f32, 3e38, 3e38], [-3e38, -3e38, -3e38]] {
        let mean = Tensor::from(x).mean().item();
        assert!((mean / x[0] - 1.0).abs() < 1e-6, "{mean}");
        assert!(Tensor::from(x).std_axes([], 0).item().is_finite());
    }
    assert_eq!(Tensor::from([f32::INFINITY, 1.0]).mean().item(), f32::INFINITY);
}

#[test]
fn a_model_of_large_numbers_trains() {
    let norm = LayerNorm::<f32>::new(4);
    let x = numbers::<f32>(1e30);
    norm.forward(&x).square().sum().backward().unwrap();
    for parameter in [&norm.weight, &norm.bias] {
        let grad = parameter.grad().unwrap().to_vec();
        assert!(grad.iter().all(|dx| dx.is_finite()), "{grad:?}");
    }
}

/// Values, and gradients for ones, with and without a recorded backward.
fn with_gradients<T: Float>(f: &dyn Fn(&Tensor<T>) -> Tensor<T>, x: &Tensor<T>) -> [Vec<f64>; 3] {
    let numbers = |t: &Tensor<T>| t.to_vec().into_iter().map(T::into_f64).collect::<Vec<_>>();
    let x = x.detach();
    x.set_stop_gradient(false);
    let gradient = |create_graph| {
        let options = GradOptions::new().create_graph(create_graph);
        let dx = grad_with(&[&f(&x).sum()], &[&x], options).unwrap().remove(0).unwrap();
        numbers(&dx)
    };
    [numbers(&f(&x)), gradient(false), gradient(true)]
}

#[track_caller]
fn alike(what: &str, found: &[f64], right: &[f64]) {
    assert_eq!(found.len(), right.len(), "{what}");
    for (a, b) in found.iter().zip(right) {
        let close =
            a == b || (a - b).abs() <= 1e-6 * b.abs().max(1e-312) || a.is_nan() && b.is_nan();
        assert!(close, "{what}: {found:?}, not {right:?}");
    }
}

#[test]
fn a_row_does_not_depend_on_other_rows() {
    type Rowwise = (&'static str, fn(&Tensor<f64>) -> Tensor<f64>);
    let weights = || Tensor::from([1.0, -3.0, 0.5, 1.0]);
    // Of each, a row of the result is a function of that row of `x`.
    let functions: [Rowwise; 12] = [
        ("mean", |x| x.mean_axes_keep(1)),
        ("normalize", |x| x.normalize(1, 1e-5)),
        ("normalize, other axis", |x| x.transpose().normalize(0, 1e-5).transpose()),
        ("LayerNorm", |x| LayerNorm::new(4).forward(x)),
        ("GroupNorm", |x| GroupNorm::new(1, 4).forward(x)),
        ("BatchNorm", |x| BatchNorm1d::new(x.shape()[0]).forward(&x.transpose()).transpose()),
        ("RmsNorm", |x| RmsNorm::new(4).forward(x)),
        ("var", |x| x.var_axes_keep(1, 1)),
        ("std", |x| x.std_axes_keep(1, 1)),
        ("norm of order 2", |x| x.norm_axes_keep(1, 2.0)),
        ("norm of order 3", |x| x.norm_axes_keep(1, 3.0)),
        ("norm of order -2", |x| x.norm_axes_keep(1, -2.0)),
    ];
    let rows = [
        [1.0, 2.0, 4.0, 3.0],
        [1e200; 4],
        [1e200, -1e200, 3e200, 2e200],
        [1e308, 1e308, 1.5e308, 1.2e308],
        [0.0; 4],
        [1e-200, 2e-200, -1e-200, 0.0],
        [1e-310; 4],
        [1e-310, 2e-310, -3e-310, 1e-310],
        [f64::NAN, 2.0, 1.0, 0.0],
        [f64::INFINITY, 2.0, 1.0, 0.0],
    ];
    for (name, f) in functions {
        let weighted = |x: &Tensor<f64>| f(x) * weights();
        let together = with_gradients(&weighted, &Tensor::from(rows));
        for (i, row) in rows.iter().enumerate() {
            let alone = with_gradients(&weighted, &Tensor::from([*row]));
            for (together, alone) in together.iter().zip(&alone) {
                alike(&format!("{name} of {row:?}"), &together[4 * i..][..4], alone);
            }
        }
        // No row but those that are not finite has NaN.
        for found in &together {
            assert!(found[..32].iter().all(|x| !x.is_nan()), "{name}: {found:?}");
        }
    }
}

#[test]
fn equal_large_numbers_are_normalized_to_zero() {
    let x = Tensor::from([[1e200, 1e200], [f64::NAN, 2.0]]);
    let weights = Tensor::from([1.0, -1.0]);
    let found = with_gradients(&|x| x.normalize(1, 1e-5) * &weights, &x);
    assert_eq!(found[0][..2], [0.0, 0.0]);
    // The slope is that of `(x - mean) / sqrt(eps)`.
    for dx in &found[1..] {
        alike("normalize", &dx[..2], &[1e-5_f64.sqrt().recip(), -1e-5_f64.sqrt().recip()]);
    }
    // The mean of three is not exact.
    for x in [1.1e200, 1.1e300, -1.3e307] {
        let x = Tensor::from([[x, x, x]]);
        let weights = Tensor::from([1.0, 0.0, -1.0]);
        for f in [
            |x: &Tensor<f64>| x.normalize(1, 1e-5),
            |x: &Tensor<f64>| BatchNorm1d::new(1).forward(&x.transpose()).transpose(),
        ] {
            let found = with_gradients(&|x| f(x) * &weights, &x);
            assert_eq!(found[0].iter().map(|y| y.abs()).collect::<Vec<_>>(), [0.0; 3]);
            let slope = 1e-5_f64.sqrt().recip();
            for dx in &found[1..] {
                alike("of three", &[dx[0], dx[2]], &[slope, -slope]);
            }
        }
    }
    let x = Tensor::from([[1e25_f32, 1e25], [0.0, 1e25]]);
    assert_eq!(LayerNorm::<f32>::new(2).forward(&x).to_vec(), [0.0, 0.0, -1.0, 1.0]);
    let y = BatchNorm1d::<f32>::new(2).forward(&x.transpose());
    assert_eq!(y.transpose().to_vec(), [0.0, 0.0, -1.0, 1.0]);
}

#[test]
fn gradients_of_variances_and_norms_of_the_smallest_numbers() {
    let check = |name: &str, f: &dyn Fn(&Tensor<f64>) -> Tensor<f64>, x: &[f64], dx: &[f64]| {
        let found = with_gradients(f, &Tensor::from(x.to_vec()));
        alike(name, &found[1], dx);
        alike(name, &found[2], dx);
    };
    let single = Tensor::from([1e-24_f32, 3e-24]);
    let found = with_gradients(&|x: &Tensor<f32>| x.var_axes(0, 1), &single);
    alike("var", &found[1], &[-2e-24, 2e-24]);
    alike("var", &found[2], &[-2e-24, 2e-24]);
    check("var", &|x| x.var_axes(0, 1), &[1e-200, 3e-200], &[-2e-200, 2e-200]);
    check("var", &|x| x.var_axes(0, 1), &[1e-310, 3e-310], &[-2e-310, 2e-310]);
    let half = 0.5_f64.sqrt();
    check("std", &|x| x.std_axes(0, 1), &[1e-310, 3e-310], &[-half, half]);
    check("norm", &|x| x.norm(), &[3e-310, 4e-310], &[0.6, 0.8]);
    check("norm of order 2", &|x| x.norm_axes(0, 2.0), &[3e-310, 4e-310], &[0.6, 0.8]);
    check("norm of order 4", &|x| x.norm_axes(0, 4.0), &[3e-310, 0.0], &[1.0, 0.0]);
    check("norm of order 3", &|x| x.norm_axes(0, 3.0), &[-3e-310, 0.0], &[-1.0, 0.0]);
    let equal = 2_f64.powf(-1.5);
    check("norm of order -2", &|x| x.norm_axes(0, -2.0), &[1e-310, -1e-310], &[equal, -equal]);
    let from = |x: &Tensor<f64>| x.reshape([1, 2]).cdist(&Tensor::from([[0.0, 0.0]]));
    check("cdist", &from, &[3e-310, 4e-310], &[0.6, 0.8]);
}
