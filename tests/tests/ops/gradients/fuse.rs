//! Fused formulas: both orders, every layout, every function.

use autograd_core::{
    GradOptions, Real, Tensor, Traced, fuse, grad, grad_with, gradcheck, gradgradcheck, no_grad,
};

use super::{check, check_layouts, distinct, sample};

type Number = Real<Traced>;
type Formula = fn(Number) -> Number;

const FORMULAS: &[(&str, Formula, f64, f64)] = &[
    ("neg", |x| -x, -2.0, 2.0),
    ("arithmetic", |x| (1.0 - x) / (x * x + 2.0) - x * 0.5, -2.0, 2.0),
    ("exp", Real::exp, -2.0, 2.0),
    ("exp_m1", Real::exp_m1, -2.0, 2.0),
    ("ln", Real::ln, 0.2, 3.0),
    ("ln_1p", Real::ln_1p, -0.5, 3.0),
    ("log2", Real::log2, 0.2, 3.0),
    ("log10", Real::log10, 0.2, 3.0),
    ("tanh", Real::tanh, -2.0, 2.0),
    ("sigmoid", Real::sigmoid, -4.0, 4.0),
    ("softplus", Real::softplus, -4.0, 4.0),
    ("erf", Real::erf, -2.0, 2.0),
    ("erfinv", Real::erfinv, -0.8, 0.8),
    ("digamma", Real::digamma, 0.4, 3.0),
    ("lgamma", Real::lgamma, 0.4, 3.0),
    ("lgamma below 0", Real::lgamma, -2.7, -2.3),
    ("sin", Real::sin, -4.0, 4.0),
    ("cos", Real::cos, -4.0, 4.0),
    ("tan", Real::tan, -1.2, 1.2),
    ("asin", Real::asin, -0.8, 0.8),
    ("acos", Real::acos, -0.8, 0.8),
    ("atan", Real::atan, -3.0, 3.0),
    ("sinh", Real::sinh, -2.0, 2.0),
    ("cosh", Real::cosh, -2.0, 2.0),
    ("sqrt", Real::sqrt, 0.2, 3.0),
    ("rsqrt", Real::rsqrt, 0.3, 3.0),
    ("recip", Real::recip, 0.5, 3.0),
    ("abs", Real::abs, 0.1, 2.0),
    ("abs below 0", Real::abs, -2.0, -0.1),
    ("signum", |x| x * x.signum(), 0.1, 2.0),
    ("floor", |x| x * x.floor(), 1.1, 1.9),
    ("ceil", |x| x * x.ceil(), 1.1, 1.9),
    ("round", |x| x * x.round(), 1.6, 2.4),
    ("trunc", |x| x * x.trunc(), 1.1, 1.9),
    ("square", Real::square, -2.0, 2.0),
    ("powi", |x| x.powi(3) + x.powi(-2) + x.powi(0), 0.5, 2.0),
    ("powf", |x| x.powf(1.7), 0.3, 2.0),
    ("power of itself", |x| x.powf(x), 0.3, 2.0),
    ("relu", Real::relu, 0.1, 2.0),
    ("step", |x| x * x.step(), 0.1, 2.0),
    ("mul_add", |x| x.mul_add(x, x.exp()), -1.0, 1.0),
    ("clamp", |x| x.square().clamp(0.5, 30.0), 1.0, 2.0),
    ("select", |x| x.gt(0.0).select(x.square(), -x), 0.1, 2.0),
    ("select below 0", |x| x.gt(0.0).select(x.square(), x.powi(3)), -2.0, -0.1),
];

#[test]
fn every_formula_in_every_layout() {
    for &(name, f, low, high) in FORMULAS {
        check_layouts(name, |x| fuse([x], |[x]| f(x)), low, high);
    }
}

#[test]
fn more_elements_than_one_block() {
    for &(name, f, low, high) in FORMULAS {
        check(name, |t| fuse([&t[0]], |[x]| f(x)), &[sample(&[2100], low, high)]);
    }
}

#[test]
fn several_inputs_of_several_shapes() {
    let shapes: &[[&[usize]; 3]] = &[
        [&[2, 3], &[3], &[]],
        [&[2, 1], &[1, 3], &[2, 3]],
        [&[], &[1], &[1, 1]],
        [&[4, 1, 2], &[3, 1], &[1]],
        [&[0, 3], &[3], &[1, 1]],
        [&[30, 5, 20], &[5, 1], &[30, 1, 20]],
    ];
    for shapes in shapes {
        let inputs: Vec<Tensor<f64>> = shapes.iter().map(|shape| sample(shape, 0.3, 2.0)).collect();
        let f = |t: &[Tensor<f64>]| {
            fuse([&t[0], &t[1], &t[2]], |[x, y, z]| {
                x * (y * z).tanh() / (1.0 + x.max(y) * z.min(x))
            })
        };
        if inputs[0].len() < 1000 {
            check("three inputs", f, &inputs);
        } else {
            gradcheck(f, &inputs).unwrap();
        }
    }
}

#[test]
fn a_third_order() {
    let x = sample(&[5], 0.5, 1.5);
    // d³/dx³ of x⁴ is 24 x, of sin x is -cos x.
    let third = |f: Formula| {
        let x = x.detach();
        x.set_stop_gradient(false);
        let mut y = fuse([&x], |[x]| f(x));
        for _ in 0..3 {
            let options = GradOptions::new().create_graph(true);
            let sum = y.sum();
            let grads = grad_with(&[&sum], &[&x], options).unwrap();
            y = grads[0].clone().unwrap();
        }
        y.to_vec()
    };
    for (x, y) in x.to_vec().iter().zip(third(|x| x.powi(4))) {
        assert!((y - 24.0 * x).abs() < 1e-12);
    }
    for (x, y) in x.to_vec().iter().zip(third(Real::sin)) {
        assert!((y + x.cos()).abs() < 1e-13);
    }
}

#[test]
fn ties_and_kinks_have_the_documented_slopes() {
    let slopes = |f: fn([Number; 2]) -> Number| {
        let (x, y) = (Tensor::from(0.0), Tensor::from(0.0));
        x.set_stop_gradient(false);
        y.set_stop_gradient(false);
        fuse([&x, &y], f).backward().unwrap();
        [x.grad().unwrap().item(), y.grad().unwrap().item()]
    };
    assert_eq!(slopes(|[x, y]| x.max(y)), [0.5, 0.5]);
    assert_eq!(slopes(|[x, y]| x.min(y)), [0.5, 0.5]);
    assert_eq!(slopes(|[x, _]| x.max(0.0)), [1.0, 0.0]);
    assert_eq!(slopes(|[x, y]| x.abs() + y.relu()), [0.0, 0.0]);
    assert_eq!(slopes(|[x, y]| x.clamp(0.0, 1.0) + y.clamp(-1.0, 0.0)), [1.0, 1.0]);
    assert_eq!(slopes(|[x, y]| x.powf(0.0) + y.powf(2.0)), [0.0, 0.0]);
    assert_eq!(slopes(|[x, y]| 1.0 + (x + 1.0).powf(y)), [0.0, 0.0]);
    // An operand that is not selected has no slope, even if its own is infinite.
    assert_eq!(slopes(|[x, y]| x.gt(0.0).select(x.ln(), y * 2.0)), [0.0, 2.0]);
}

#[test]
fn a_selected_branch_keeps_infinities_of_the_other_out_at_every_order() {
    let f = |t: &[Tensor<f64>]| fuse([&t[0]], |[x]| x.gt(1.0).select(x.ln(), x.square()));
    let x = Tensor::from(vec![0.0, 0.5, 2.0]);
    gradcheck(f, &[x.clone()]).unwrap();
    gradgradcheck(f, &[x]).unwrap();
}

#[test]
fn sums_of_a_million_are_as_good_as_their_parts() {
    let n = 1_000_003;
    let data: Vec<f32> = (0..n).map(|i| ((i * 37 % 101) as f32) * 0.01).collect();
    let exact: f64 = data.iter().map(|&x| f64::from(x)).sum();
    let (x, scale) = (Tensor::from(data), Tensor::from(1.0_f32));
    scale.set_stop_gradient(false);
    fuse([&x, &scale], |[x, scale]| x * scale).backward_with(&Tensor::ones([n])).unwrap();
    let found = f64::from(scale.grad().unwrap().item());
    assert!((found - exact).abs() <= 1e-7 * exact, "{found} {exact}");
}

#[test]
fn infinities_in_a_sum_stay() {
    let (x, scale) = (Tensor::from(vec![1.0, f64::INFINITY, 2.0]), Tensor::from(1.0));
    scale.set_stop_gradient(false);
    fuse([&x, &scale], |[x, scale]| x * scale).backward_with(&Tensor::ones([3])).unwrap();
    assert_eq!(scale.grad().unwrap().item(), f64::INFINITY);
}

#[test]
fn single_precision_and_no_recording() {
    let x = Tensor::<f32>::from(vec![-1.0, 0.0, 2.0]);
    x.set_stop_gradient(false);
    let y = fuse([&x], |[x]| 0.5 * x.square());
    y.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [-1.0, 0.0, 2.0]);
    let _off = no_grad();
    assert!(fuse([&x], |[x]| x + 1.0).stop_gradient());
}

#[test]
fn a_panic_in_a_formula_leaves_everything_usable() {
    let x = distinct(&[3]);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        fuse([&x], |[_]| panic!("on purpose"))
    }));
    assert!(outcome.is_err());
    check("afterwards", |t| fuse([&t[0]], |[x]| x.exp()), &[x]);
}

#[test]
fn a_formula_may_run_another() {
    let x = distinct(&[4]);
    let y = fuse([&x], |[x_]| {
        let mean = fuse([&x], |[x]| x * 0.5).sum().item();
        x_ - mean
    });
    let mean = x.sum().item() * 0.5;
    let expected: Vec<f64> = x.to_vec().iter().map(|x| x - mean).collect();
    assert_eq!(y.to_vec(), expected);
}

type Pair = [Tensor<f64>; 2];

/// The result and the gradients of two orders.
fn all(f: impl Fn(&Pair) -> Tensor<f64>, inputs: &Pair) -> Vec<Vec<u64>> {
    let [a, b] = inputs;
    let y = f(inputs);
    let recorded = GradOptions::new().create_graph(true);
    let first = grad_with(&[&y.square().sum()], &[a, b], recorded).unwrap();
    let first: Vec<_> = first.into_iter().flatten().collect();
    let squares = first[0].square().sum() + first[1].square().sum();
    let second = grad(&[&squares], &[a, b]).unwrap();
    let bits = |t: &Tensor<f64>| t.to_vec().into_iter().map(f64::to_bits).collect();
    [y].iter().chain(&first).chain(&second).map(bits).collect()
}

#[test]
fn rules_that_are_written_out_are_those_of_the_formulas() {
    let tensor = |shape: &[usize], from: f64| {
        let len = shape.iter().product();
        let numbers = (0..len).map(|i| (from + i as f64).sin()).collect();
        let tensor = Tensor::from_vec(shape, numbers).unwrap();
        tensor.set_stop_gradient(false);
        tensor
    };
    for shapes in [[&[2, 3][..], &[2, 3]], [&[40, 3], &[40, 3]], [&[4, 3], &[3]], [&[], &[5]]] {
        let inputs = [tensor(shapes[0], 0.3), tensor(shapes[1], 1.7)];
        let sum = all(|[a, b]| fuse([a, b], |[a, b]| a + b), &inputs);
        assert_eq!(all(|[a, b]| a + b, &inputs), sum, "{shapes:?}");
        let difference = all(|[a, b]| fuse([a, b], |[a, b]| a - b), &inputs);
        assert_eq!(all(|[a, b]| a - b, &inputs), difference, "{shapes:?}");
        let product = all(|[a, b]| fuse([a, b], |[a, b]| a * b), &inputs);
        assert_eq!(all(|[a, b]| a * b, &inputs), product, "{shapes:?}");
    }
}
