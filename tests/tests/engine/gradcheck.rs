//! The gradient checker on rules that are right, and on rules that are off by a thousandth in the
//! first or in the second order, at inputs of every kind.

use autograd_core::prelude::*;
use autograd_core::{DType, Error, Result, gradcheck_any, gradgradcheck_any};

/// The cosine, with a rule that is off by a factor.
#[py_layer]
impl<T: Float> Cosine<T> {
    type Saved = Tensor<T>;
    type Attrs = f64;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>, off: f64) -> Tensor<T> {
        ctx.save_for_backward(x);
        ctx.set_attrs(off);
        x.cos()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        -dy * ctx.saved_tensor().sin() * *ctx.attrs()
    }
}

/// The sine, whose first derivative is off by a factor, and whose second one by another.
#[py_layer]
impl<T: Float> Sine<T> {
    type Saved = Tensor<T>;
    type Attrs = (f64, f64);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>, off: (f64, f64)) -> Tensor<T> {
        ctx.save_for_backward(x);
        ctx.set_attrs(off);
        x.sin()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let (first, second) = *ctx.attrs();
        dy * Cosine::apply(ctx.saved_tensor(), second) * first
    }
}

fn numbers<T: Float>(shape: &[usize]) -> Tensor<T> {
    let data =
        (0..shape.iter().product()).map(|i: usize| T::from_f64((i as f64 * 0.7 + 0.3).cos()));
    Tensor::from_vec(shape, data.collect()).unwrap()
}

/// Inputs of every layout, with their names.
fn inputs<T: Float>() -> Vec<(&'static str, Tensor<T>)> {
    vec![
        ("a scalar", numbers(&[])),
        ("one element", numbers(&[1])),
        ("a matrix", numbers(&[3, 4])),
        ("many elements", numbers(&[50, 40])),
        ("transposed", numbers::<T>(&[5, 3]).transpose()),
        ("every second row", numbers::<T>(&[8, 5]).slice_axis(0, 0, 8, 2)),
        ("broadcast", numbers::<T>(&[4, 1]).broadcast_to([4, 6])),
        ("broadcast from a scalar", numbers::<T>(&[]).broadcast_to([3, 7])),
    ]
}

/// Checks one order, of the sine beside an input that is not used.
fn check<T: Float>(order: usize, x: &Tensor<T>, off: (f64, f64)) -> Result<()> {
    let f = |t: &[AnyTensor]| -> AnyTensor {
        Sine::apply(t[1].downcast_ref::<T>().unwrap(), off).into()
    };
    let unused = Tensor::from([0.5, 0.25]);
    let given = [unused.into(), x.clone().into()];
    match order {
        1 => gradcheck_any(f, &given),
        _ => gradgradcheck_any(f, &given),
    }
}

fn right_passes_and_wrong_does_not<T: Float>() {
    for (name, x) in inputs::<T>() {
        let before = x.to_vec();
        for order in [1, 2] {
            if let Err(error) = check(order, &x, (1.0, 1.0)) {
                panic!("{name}, order {order}: {error}");
            }
            for off in [1.001, 0.999] {
                let factors = if order == 1 { (off, 1.0) } else { (1.0, off) };
                let error = check(order, &x, factors).unwrap_err();
                let Error::GradientWrong { op, direction, backward, differences, .. } = &error
                else {
                    panic!("{name}, order {order}: {error}");
                };
                let is_exact = T::DTYPE == DType::Float64;
                assert!(
                    !is_exact || (backward / differences - off).abs() < 1e-4,
                    "{name}: {error}"
                );
                assert_eq!(*op, if order == 1 { "gradcheck" } else { "gradgradcheck" });
                assert!(direction.starts_with("input 1"), "{name}, order {order}: {error}");
                assert!(matches!(error, Error::GradientWrong { not_differentiable: false, .. }));
            }
            // A rule that is wrong only in the second order passes in the first.
            if order == 1 {
                check(order, &x, (1.0, 1.001)).unwrap();
            }
        }
        assert!(x.to_vec() == before && x.stop_gradient(), "{name}");
    }
}

#[test]
fn wrong_by_a_thousandth_in_double_precision() {
    right_passes_and_wrong_does_not::<f64>();
}

#[test]
fn wrong_by_a_thousandth_in_single_precision() {
    right_passes_and_wrong_does_not::<f32>();
}

#[test]
fn empty_inputs_pass() {
    for shape in [&[0][..], &[0, 3], &[2, 0]] {
        for order in [1, 2] {
            check::<f64>(order, &numbers(shape), (1.0, 1.0)).unwrap();
            check::<f32>(order, &numbers(shape), (1.0, 1.0)).unwrap();
        }
    }
}

/// The maximum of many numbers changes little in some directions: by about its rounding.
#[test]
fn what_moves_little_raises_no_alarm() {
    for n in 2..200 {
        let x = Tensor::from((0..n).map(|i| f64::from(i) * 0.25 + 0.1).collect::<Vec<_>>());
        autograd_core::jvpcheck(|t| t[0].max(), &[x]).unwrap();
    }
}

#[test]
fn an_error_names_the_check_that_was_called() {
    let half = |t: &[Tensor<f64>]| t[0].detach() * &t[0];
    let x = [Tensor::from([1.5])];
    let error = autograd_core::jvpcheck(half, &x).unwrap_err().to_string();
    assert!(error.starts_with("jvpcheck: "), "{error}");
    let error = autograd_core::gradcheck(half, &x).unwrap_err().to_string();
    assert!(error.starts_with("gradcheck: "), "{error}");
}
