//! Functions of two tensors, with broadcasting.

use autograd_core::{Tensor, with_num_threads};
use proptest::prelude::*;

use super::{check, check_layouts, layouts, sample};

type Unary = fn(&Tensor<f64>) -> Tensor<f64>;
type Binary = fn(&Tensor<f64>, &Tensor<f64>) -> Tensor<f64>;

const FUNCTIONS: &[(&str, Binary)] = &[
    ("add", |a, b| a + b),
    ("sub", |a, b| a - b),
    ("mul", |a, b| a * b),
    ("div", |a, b| a / b),
    ("pow", |a, b| a.pow(b)),
    ("maximum", |a, b| a.maximum(b)),
    ("minimum", |a, b| a.minimum(b)),
    ("where_else", |a, b| a.less(b).where_else(a, b)),
    ("a temporary on the left", |a, b| (a * 2.0) * b),
    ("a temporary on the right", |a, b| a / (b * 2.0)),
    ("two temporaries", |a, b| (a + 1.0) / (b + 1.0)),
];

const SHAPES: &[(&[usize], &[usize])] = &[
    (&[3, 4], &[3, 4]),
    (&[2, 3], &[3]),
    (&[3], &[2, 3]),
    (&[2, 1], &[1, 3]),
    (&[4, 1, 3], &[2, 1]),
    (&[], &[2, 3]),
    (&[2, 3, 4], &[]),
    (&[], &[]),
    (&[1], &[]),
    (&[1, 1], &[5]),
    (&[1], &[1]),
    (&[0, 3], &[3]),
    (&[0, 3], &[1, 1]),
    (&[2, 0], &[]),
    (&[0], &[1]),
];

#[test]
fn every_function_on_every_pair_of_shapes() {
    for &(name, f) in FUNCTIONS {
        for &(left, right) in SHAPES {
            // Different numbers, so that no extreme is tied.
            let (a, b) = (sample(left, 0.5, 1.4), sample(right, 1.6, 2.5));
            check(name, |t| f(&t[0], &t[1]), &[a.clone(), b.clone()]);
            check(name, |t| f(&t[1], &t[0]), &[a, b]);
        }
    }
}

#[test]
fn every_function_on_every_pair_of_layouts() {
    for &(name, f) in FUNCTIONS {
        for (layout, a) in layouts(0.5, 1.4) {
            let b = sample(a.shape(), 1.6, 2.5);
            check(&format!("{name}, {layout} left"), |t| f(&t[0], &t[1]), &[a.clone(), b.clone()]);
            check(&format!("{name}, {layout} right"), |t| f(&t[1], &t[0]), &[a, b]);
        }
    }
    let seen = |low, high| {
        let layouts = layouts(low, high);
        layouts.into_iter().filter(|(_, t)| t.shape() == [3, 4]).collect::<Vec<_>>()
    };
    for (_, a) in seen(0.5, 1.4) {
        for (_, b) in seen(1.6, 2.5) {
            check("mul", |t| &t[0] * &t[1], &[a.clone(), b.clone()]);
            check("div", |t| &t[0] / &t[1], &[a.clone(), b]);
        }
    }
}

#[test]
fn one_tensor_on_both_sides() {
    check_layouts("x + x", |x| x + x, 0.5, 2.0);
    check_layouts("x - x", |x| x - x, 0.5, 2.0);
    check_layouts("x * x", |x| x * x, 0.5, 2.0);
    check_layouts("x / x", |x| x / x, 0.5, 2.0);
    check_layouts("x ^ x", |x| x.pow(x), 0.5, 2.0);
}

#[test]
fn a_scalar_on_either_side() {
    let functions: &[(&str, Unary)] = &[
        ("x + s", |x| x + 0.7),
        ("s + x", |x| 0.7 + x),
        ("x - s", |x| x - 0.7),
        ("s - x", |x| 0.7 - x),
        ("x * s", |x| x * 0.7),
        ("s * x", |x| 0.7 * x),
        ("x / s", |x| x / 0.7),
        ("s / x", |x| 0.7 / x),
        ("s / temporary", |x| 0.7 / (x * 2.0)),
        ("x ^ 0", |x| x.pow(0.0)),
        ("x ^ 1", |x| x.pow(1.0)),
        ("x ^ 2", |x| x.pow(2.0)),
        ("x ^ 3.5", |x| x.pow(3.5)),
        ("x ^ -1.5", |x| x.pow(-1.5)),
        ("max(x, s)", |x| x.maximum(1.0)),
        ("min(x, s)", |x| x.minimum(1.0)),
        ("clamp", |x| x.clamp(0.8, 1.7)),
    ];
    for &(name, f) in functions {
        check_layouts(name, f, 0.51, 2.0);
    }
}

#[test]
fn changes_in_place_are_recorded() {
    let inputs = || [sample(&[3, 4], 0.5, 1.5), sample(&[4], 1.5, 2.0)];
    check(
        "+=",
        |t| {
            let mut y = t[0].exp();
            y += &t[1];
            y
        },
        &inputs(),
    );
    check(
        "-=",
        |t| {
            let mut y = t[0].exp();
            y -= &t[1];
            y
        },
        &inputs(),
    );
    check(
        "*=",
        |t| {
            let mut y = t[0].sin();
            y *= &t[1];
            y *= 3.0;
            y
        },
        &inputs(),
    );
    check(
        "/=",
        |t| {
            let mut y = &t[0] * 2.0;
            y /= &t[1];
            y
        },
        &inputs(),
    );
    check(
        "x *= x",
        |t| {
            let mut y = &t[0] * 2.0;
            let z = &y * 1.0;
            y *= &z;
            y
        },
        &inputs(),
    );
    check(
        "on a view",
        |t| {
            let mut y = t[0].transpose();
            y *= 2.0;
            y
        },
        &inputs(),
    );
    let set = |t: &[Tensor<f64>]| {
        let mut y = &t[0] * &t[1];
        y.set_item(&[1, 2], 7.0).unwrap();
        y.square()
    };
    check("set_item", set, &inputs());
}

#[test]
fn equal_extremes_share_the_gradient() {
    let (a, b) = (Tensor::from([1.0, 2.0, 3.0]), Tensor::from([2.0, 2.0, 2.0]));
    a.set_stop_gradient(false);
    b.set_stop_gradient(false);
    a.maximum(&b).sum().backward().unwrap();
    assert_eq!(a.grad().unwrap().to_vec(), [0.0, 0.5, 1.0]);
    assert_eq!(b.grad().unwrap().to_vec(), [1.0, 0.5, 0.0]);
}

/// Two shapes that broadcast, and their common one.
fn shapes() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    let axis = (0_usize..4, any::<[bool; 2]>());
    (proptest::collection::vec(axis, 0..5), 0_usize..3, any::<bool>()).prop_map(
        |(axes, cut, cut_left)| {
            let side = |k: usize| {
                axes.iter().map(|(n, ones)| if ones[k] { 1 } else { *n }).collect::<Vec<_>>()
            };
            let (mut left, mut right) = (side(0), side(1));
            let short = if cut_left { &mut left } else { &mut right };
            short.drain(..cut.min(short.len()));
            (left, right)
        },
    )
}

/// The element of `t` from which an element of the broadcast result is computed.
fn broadcast(t: &Tensor<f64>, position: &[usize]) -> f64 {
    let skipped = position.len() - t.ndim();
    let own: Vec<usize> = t
        .shape()
        .iter()
        .zip(&position[skipped..])
        .map(|(&n, &i)| if n == 1 { 0 } else { i })
        .collect();
    t.at(&own)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() })]

    #[test]
    fn random_shapes_broadcast_as_in_numpy((left, right) in shapes(), op in 0..FUNCTIONS.len()) {
        let (name, f) = FUNCTIONS[op];
        let (a, b) = (sample(&left, 0.5, 1.4), sample(&right, 1.6, 2.5));
        let y = f(&a, &b);
        let rank = left.len().max(right.len());
        prop_assert_eq!(y.ndim(), rank);
        // Element by element, as a slow reference.
        for flat in 0..y.len() {
            let mut rest = flat;
            let mut position = vec![0; rank];
            for axis in (0..rank).rev() {
                position[axis] = rest % y.shape()[axis];
                rest /= y.shape()[axis];
            }
            let [x, z] = [&a, &b].map(|t| Tensor::from(broadcast(t, &position)));
            prop_assert_eq!(y.at(&position), f(&x, &z).item(), "{} at {:?}", name, position);
        }
        if let Err(error) = autograd_core::gradcheck(|t| f(&t[0], &t[1]), &[a, b]) {
            prop_assert!(false, "{} on {:?} and {:?}: {}", name, left, right, error);
        }
    }
}

#[test]
fn products_that_are_added_up_are_those_of_broadcast_operands() {
    let shapes: [(&[usize], &[usize]); 6] = [
        (&[30, 40], &[40]),
        (&[30, 40], &[30, 1]),
        (&[30, 1], &[1, 40]),
        (&[30, 40], &[]),
        (&[5, 1, 7], &[6, 1]),
        (&[1, 40], &[30, 40]),
    ];
    for (left, right) in shapes {
        let inputs = [sample(left, -1.0, 1.0), sample(right, 0.5, 2.0)];
        let grads = |broadcast: bool| {
            let [a, b] = inputs.each_ref().map(Tensor::detach);
            [&a, &b].iter().for_each(|x| x.set_stop_gradient(false));
            let y = if broadcast {
                let shape = (&a * &b).shape().to_vec();
                a.broadcast_to(&shape[..]) * b.broadcast_to(&shape[..])
            } else {
                &a * &b
            };
            y.backward_with(&sample(y.shape(), -1.0, 1.0)).unwrap();
            [a, b].map(|x| x.grad().unwrap().to_vec())
        };
        for (found, right) in grads(false).iter().flatten().zip(grads(true).iter().flatten()) {
            assert!((found - right).abs() < 1e-12 * (1.0 + right.abs()), "{left:?} {right:?}");
        }
    }
}

/// A separate tensor with the same elements.
fn made(t: &Tensor<f64>, shape: &[usize]) -> Tensor<f64> {
    Tensor::from_vec(shape, t.broadcast_to(shape).to_vec()).unwrap()
}

/// Operands with short rows are computed many rows at once; the last shapes have long rows.
#[test]
fn many_short_rows_are_those_of_broadcast_copies() {
    let shapes: [(&[usize], &[usize]); 9] = [
        (&[700, 10], &[10]),
        (&[700, 10], &[700, 1]),
        (&[300, 1, 7], &[5, 1]),
        (&[1, 9], &[4000, 1]),
        (&[30_001, 7], &[7]),
        (&[90, 3, 5, 7], &[3, 1, 7]),
        (&[40, 512], &[512]),
        (&[40, 513], &[40, 513]),
        (&[2, 3], &[3]),
    ];
    for (left, right) in shapes {
        let [a, b] = [sample(left, 0.5, 1.4), sample(right, 1.6, 2.5)];
        // Columns as rows, so that rows are strided.
        let turned = |t: &Tensor<f64>| match t.ndim() {
            0 | 1 => t.clone(),
            _ => t.transpose().contiguous().transpose(),
        };
        for (a, b) in [(a.clone(), b.clone()), (turned(&a), b.clone()), (a, turned(&b))] {
            for &(name, f) in FUNCTIONS {
                let shape = (&a + &b).shape().to_vec();
                let [x, z] = [made(&a, &shape), made(&b, &shape)];
                for threads in [1, 3] {
                    with_num_threads(threads, || {
                        assert!(
                            f(&a, &b).to_vec() == f(&x, &z).to_vec(),
                            "{name} {left:?} {right:?}"
                        );
                        assert!(
                            f(&b, &a).to_vec() == f(&z, &x).to_vec(),
                            "{name} {left:?} {right:?}"
                        );
                    });
                }
            }
            // In the buffer of a temporary, which may be deferred.
            let all = (&a + &b).shape().to_vec();
            let (x, z) = (made(&a, &all), made(&b, &all));
            assert_eq!(((&a * 1.5) - &b).to_vec(), ((&x * 1.5) - &z).to_vec());
            assert_eq!((&a / (&b + 1.0)).to_vec(), (&x / (&z + 1.0)).to_vec());
        }
    }
}
