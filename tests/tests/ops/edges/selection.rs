//! Elements that an op does not select have a gradient of exactly zero, whatever the output's
//! gradient is; NaN counts as selected.

use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Program, gradients};
use autograd_core::{Float, GradOptions, LossReduction, fuse, grad_with, jvp};

#[py_layer(elementwise)]
impl Above {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x.gt(0.0).select(x, 0.0)
    }
}

/// A function that selects, and for each of these arguments whether it selects `x`.
struct Case {
    name: &'static str,
    f: fn(&Tensor<f64>) -> Tensor<f64>,
    single: fn(&Tensor<f32>) -> Tensor<f32>,
    x: [f64; 4],
    selected: [bool; 4],
    /// Whether programs support it.
    in_programs: bool,
}

/// One closure for both element types.
macro_rules! case {
    ($name:literal, |$x:ident| $y:expr, $in:expr, $selected:expr, $in_programs:literal) => {
        Case {
            name: $name,
            f: |$x| $y,
            single: |$x| $y,
            x: $in,
            selected: $selected.map(|selected: u8| selected == 1),
            in_programs: $in_programs,
        }
    };
}

fn replaced<T: Float>(x: &Tensor<T>) -> Tensor<T> {
    let mut y = x * 1.0;
    for i in (0..x.len()).step_by(4) {
        y.set_item(&[i], T::from_f64(0.25)).unwrap();
    }
    y
}

fn numbers<T: Float>(x: &Tensor<T>, number: f64) -> Tensor<T> {
    Tensor::full(x.shape(), T::from_f64(number))
}

fn cases() -> Vec<Case> {
    let nan = f64::NAN;
    vec![
        case!("relu", |x| x.relu(), [-1.0, 0.0, 4.0, nan], [0, 0, 1, 1], true),
        case!("leaky_relu(0)", |x| x.leaky_relu(0.0), [-1.0, -9.0, 4.0, nan], [0, 0, 1, 1], true),
        case!("elu(0)", |x| x.elu(0.0), [-1.0, -9.0, 4.0, nan], [0, 0, 1, 1], true),
        case!("clamp", |x| x.clamp(-1.0, 1.0), [-2.0, 0.5, 3.0, nan], [0, 1, 0, 1], true),
        case!("maximum, a number", |x| x.maximum(0.5), [0.0, 1.0, -3.0, nan], [0, 1, 0, 1], true),
        case!("minimum, a number", |x| x.minimum(0.5), [0.0, 1.0, -3.0, nan], [1, 0, 1, 1], true),
        case!(
            "maximum",
            |x| x.maximum(numbers(x, 0.5)),
            [0.0, 1.0, -3.0, nan],
            [0, 1, 0, 1],
            false
        ),
        case!(
            "maximum, on the right",
            |x| numbers(x, 0.5).maximum(x),
            [0.0, 1.0, -3.0, nan],
            [0, 1, 0, 1],
            false
        ),
        case!(
            "minimum",
            |x| x.minimum(numbers(x, 0.5)),
            [0.0, 1.0, -3.0, nan],
            [1, 0, 1, 1],
            false
        ),
        case!(
            "where_else",
            |x| x.gt_scalar(0.0).where_else(x, (x * 0.0).detach()),
            [-1.0, 0.0, 4.0, 5.0],
            [0, 0, 1, 1],
            false
        ),
        case!("set_item", |x| replaced(x), [-1.0, 0.0, 4.0, nan], [0, 1, 1, 1], false),
        case!("an elementwise op", |x| Above::apply(x), [-1.0, 0.0, 4.0, 5.0], [0, 0, 1, 1], true),
        case!(
            "fuse, select",
            |x| fuse([x], |[x]| x.gt(0.0).select(x, 0.0)),
            [-1.0, 0.0, 4.0, 5.0],
            [0, 0, 1, 1],
            true
        ),
        case!(
            "fuse, relu",
            |x| fuse([x], |[x]| x.relu()),
            [-1.0, 0.0, 4.0, nan],
            [0, 0, 1, 1],
            true
        ),
        case!(
            "fuse, clamp",
            |x| fuse([x], |[x]| x.clamp(-1.0, 1.0)),
            [-2.0, 0.5, 3.0, nan],
            [0, 1, 0, 1],
            true
        ),
        case!(
            "fuse, max",
            |x| fuse([x, &numbers(x, 0.5)], |[x, y]| x.max(y)),
            [0.0, 1.0, -3.0, nan],
            [0, 1, 0, 1],
            false
        ),
        case!(
            "fuse, min",
            |x| fuse([x], |[x]| x.min(0.5)),
            [0.0, 1.0, -3.0, nan],
            [1, 0, 1, 1],
            true
        ),
        case!("floor", |x| x.floor(), [-1.5, 0.0, 4.5, 7.0], [0, 0, 0, 0], true),
        case!("fuse, round", |x| fuse([x], |[x]| x.round()), [-1.5, 0.0, 4.5, 7.0], [0; 4], true),
    ]
}

/// Repetitions of the arguments: few and many elements are computed in different ways.
const COPIES: [usize; 3] = [1, 10, 5_000];

fn check<T: Float>(what: &str, dx: &Tensor<T>, selected: [bool; 4], arrives: f64) {
    for (i, dx) in dx.to_vec().into_iter().map(Float::into_f64).enumerate() {
        match selected[i % 4] {
            true => assert!(
                dx.to_bits() == arrives.to_bits() || dx.is_nan() && arrives.is_nan(),
                "{what}: {dx} at {i}"
            ),
            false => assert!(dx == 0.0, "{what}: {dx} at {i}, where nothing was selected"),
        }
    }
}

fn eager<T: Float>(case: &Case, f: fn(&Tensor<T>) -> Tensor<T>) {
    // `set_item` sets elements one by one.
    let few = case.name == "set_item";
    for copies in COPIES.into_iter().filter(|&copies| !few || copies <= 10) {
        let x: Vec<T> = case.x.iter().map(|&x| T::from_f64(x)).collect();
        let x = Tensor::from(x.repeat(copies));
        for arrives in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 2.5] {
            let dy = numbers(&x, arrives);
            for create_graph in [false, true] {
                let what = format!("{} x {copies}, {arrives}, {create_graph}", case.name);
                x.set_stop_gradient(false);
                let options =
                    GradOptions::new().create_graph(create_graph).seeds(vec![Some(dy.clone())]);
                let dx = grad_with(&[&f(&x)], &[&x], options).unwrap().remove(0);
                check(&what, &dx.unwrap(), case.selected, arrives);
            }
            let (_, tangent) = jvp(|x| f(&x[0]), &[x.detach()], &[dy]).unwrap();
            check(&format!("{} x {copies}, forward", case.name), &tangent, case.selected, arrives);
        }
    }
}

#[test]
fn what_is_not_selected_gets_zero() {
    for case in cases() {
        eager::<f64>(&case, case.f);
        eager::<f32>(&case, case.single);
    }
}

#[test]
fn what_is_not_selected_gets_zero_in_programs() {
    for case in cases().into_iter().filter(|case| case.in_programs) {
        for copies in COPIES {
            let program = Program::new();
            let n = (4 * copies) as i64;
            let x = program.data("x", [n], autograd_core::DType::Float64).unwrap();
            x.set_stop_gradient(false);
            let f = case.f;
            let y = program.trace(move |x: &Tensor<f64>| f(x)).x(&x).call().unwrap();
            let by = program.data("by", [n], autograd_core::DType::Float64).unwrap();
            let product = &y * &by;
            let dx = gradients(&[&product], &[&x]).unwrap().remove(0).unwrap();
            let fed = Tensor::from(case.x.repeat(copies));
            for arrives in [f64::INFINITY, f64::NAN, 2.5] {
                let by = numbers(&fed, arrives);
                let feed: [(&str, &dyn autograd_core::static_graph::Feed); 2] =
                    [("x", &fed), ("by", &by)];
                let run = Executor::new().run(&program, &feed, &[&dx]).unwrap();
                let dx = run[0].downcast_ref::<f64>().unwrap();
                check(
                    &format!("{} x {copies} in a program", case.name),
                    dx,
                    case.selected,
                    arrives,
                );
            }
        }
    }
}

#[test]
fn an_infinite_slope_behind_a_selection() {
    let x = Tensor::from([-1.0, 4.0]);
    x.set_stop_gradient(false);
    x.relu().sqrt().sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [0.0, 0.25]);
    x.clear_grad();
    fuse([&x], |[x]| x.relu().sqrt()).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [0.0, 0.25]);
}

#[test]
fn dropout_drops_what_is_infinite() {
    let n = 1000;
    let x = Tensor::<f64>::full([n], f64::INFINITY);
    x.set_stop_gradient(false);
    let y = x.dropout(0.5, true);
    let kept: Vec<bool> = y.to_vec().iter().map(|&y| y != 0.0).collect();
    assert!(y.to_vec().iter().all(|&y| y == 0.0 || y == f64::INFINITY));
    assert!(kept.contains(&true) && kept.contains(&false));
    y.backward_with(&numbers(&x, f64::NAN)).unwrap();
    for (dx, kept) in x.grad().unwrap().to_vec().into_iter().zip(kept) {
        assert!(if kept { dx.is_nan() } else { dx == 0.0 }, "{dx} {kept}");
    }
}

/// The greatest and the least element, by every method, and their gradients if each gets `arrives`.
#[test]
fn extremes_along_axes_select_nan_and_give_the_others_zero() {
    let nan = f64::NAN;
    type Extreme = fn(&Tensor<f64>) -> Tensor<f64>;
    let ways: [(&str, Extreme); 8] = [
        ("max", |x| x.max()),
        ("min", |x| x.min()),
        ("max_axes", |x| x.max_axes(0)),
        ("min_axes", |x| x.min_axes(0)),
        ("max_axes_keep", |x| x.max_axes_keep(0)),
        ("max_with_indices", |x| x.max_with_indices(0).0),
        ("min_with_indices", |x| x.min_with_indices(0).0),
        ("median", |x| x.median()),
    ];
    for (name, f) in ways {
        for arrives in [f64::INFINITY, nan, 2.5] {
            let x = Tensor::from([4.0, nan, 3.0]);
            x.set_stop_gradient(false);
            let y = f(&x);
            assert!(y.to_vec()[0].is_nan(), "{name}");
            y.backward_with(&Tensor::full_like(&y, arrives)).unwrap();
            let dx = x.grad().unwrap().to_vec();
            assert!([dx[0], dx[2]] == [0.0, 0.0], "{name}, {arrives}: {dx:?}");
            assert!(dx[1] == arrives || dx[1].is_nan() && arrives.is_nan(), "{name}: {dx:?}");
        }
    }
    let x = Tensor::from([[1.0, 5.0, 5.0], [nan, 2.0, nan]]);
    x.set_stop_gradient(false);
    x.max_axes(1).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [0.0, 0.5, 0.5, 0.5, 0.0, 0.5]);
}

#[test]
fn a_target_of_zero_counts_nothing() {
    let x = Tensor::from([f64::NEG_INFINITY, -1.0, f64::NAN]);
    let target = Tensor::from([0.0, 1.0, -0.0]);
    [&x, &target].iter().for_each(|t| t.set_stop_gradient(false));
    let loss = x.kl_div_with(&target, LossReduction::Sum);
    assert_eq!(loss.item(), 1.0);
    loss.backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [0.0, -1.0, 0.0]);
    assert_eq!(target.grad().unwrap().to_vec(), [0.0, 2.0, 0.0]);
}
