//! `#[py_layer(elementwise)]` and `scalar_op!`: both orders, layouts, broadcasting, masks, parameters,
//! several outputs, reductions, and the tensors that backward saves.

#![allow(
    clippy::cloned_ref_to_slice_refs,
    reason = "a list of one tensor reads like a list of two; a clone of a tensor costs nothing"
)]

use autograd_core::prelude::*;
use autograd_core::{Error, grad, gradcheck, gradgradcheck, jvp};

/// Numbers between `low` and `high`, the same in every run.
fn sample(shape: &[usize], low: f64, high: f64) -> Tensor<f64> {
    let n: usize = shape.iter().product();
    let unit = |i: usize| ((i * 7919 + 13) % 1009) as f64 / 1009.0;
    Tensor::from_vec(shape, (0..n).map(|i| low + (high - low) * unit(i)).collect()).unwrap()
}

#[track_caller]
fn check(f: impl Fn(&[Tensor<f64>]) -> Tensor<f64>, inputs: &[Tensor<f64>]) {
    gradcheck(&f, inputs).unwrap();
    gradgradcheck(&f, inputs).unwrap();
}

#[track_caller]
fn near(a: &Tensor<f64>, b: &Tensor<f64>) {
    assert_eq!(a.shape(), b.shape());
    for (a, b) in a.to_vec().iter().zip(b.to_vec()) {
        assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a} {b}");
    }
}

const SCALE: f64 = 0.797_884_560_802_865_4;

/// Gaussian error linear unit, tanh form, with a derived backward.
#[py_layer(elementwise)]
impl Gelu {
    pub(crate) fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        0.5 * x * (1.0 + Self::inner(x).tanh())
    }

    fn inner<L: Lane>(x: Real<L>) -> Real<L> {
        SCALE * (x + 0.044_715 * x * x * x)
    }
}

/// The same with a hand-written backward.
#[py_layer(elementwise)]
impl GeluByHand {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        0.5 * x * (1.0 + (SCALE * (x + 0.044_715 * x * x * x)).tanh())
    }

    fn backward<L: Lane>(dy: Real<L>, x: Real<L>) -> Real<L> {
        let t = (SCALE * (x + 0.044_715 * x * x * x)).tanh();
        let slope = SCALE * (1.0 + 3.0 * 0.044_715 * x * x) * (1.0 - t * t);
        dy * 0.5 * (1.0 + t + x * slope)
    }
}

/// Without a named lane; saves its output only.
#[py_layer(elementwise)]
impl CusTanh {
    fn forward(x: Real) -> Real {
        let y: Real = x.tanh();
        y
    }

    fn backward(y: Real, dy: Real) -> Real {
        dy * (1.0 - y * y)
    }
}

/// With a learned slope.
#[py_layer(elementwise)]
impl Swish {
    fn forward<L: Lane>(x: Real<L>, beta: Real<L>) -> Real<L> {
        x * (beta * x).sigmoid()
    }
}

#[py_layer(elementwise)]
impl SwishByHand {
    fn forward<L: Lane>(x: Real<L>, beta: Real<L>) -> Real<L> {
        x * (beta * x).sigmoid()
    }

    fn backward<L: Lane>(x: Real<L>, beta: Real<L>, y: Real<L>, dy: Real<L>) -> (Real<L>, Real<L>) {
        let s = (beta * x).sigmoid();
        (dy * (s + beta * y * (1.0 - s)), dy * y * (1.0 - s) * x)
    }
}

/// A plain parameter, a mask, and an input without a gradient.
#[py_layer(elementwise)]
impl Gate {
    fn forward<L: Lane>(
        x: Real<L>,
        #[stop_gradient] keep: Mask<L>,
        #[default(0.1)] slope: f64,
        #[stop_gradient] scale: Real<L>,
    ) -> Real<L> {
        keep.select(x * scale, slope * x * x)
    }

    fn backward<L: Lane>(
        dy: Real<L>,
        slope: f64,
        scale: Real<L>,
        x: Real<L>,
        keep: Mask<L>,
    ) -> Real<L> {
        dy * keep.select(scale, 2.0 * slope * x)
    }
}

/// Several outputs.
#[py_layer(elementwise)]
impl Polar {
    fn forward<L: Lane>(x: Real<L>, y_: Real<L>) -> (Real<L>, Real<L>) {
        let r = (x * x + y_ * y_).sqrt();
        (r, (y_ / x).atan())
    }
}

#[py_layer(elementwise)]
impl PolarByHand {
    fn forward<L: Lane>(a: Real<L>, b: Real<L>) -> (Real<L>, Real<L>) {
        ((a * a + b * b).sqrt(), (b / a).atan())
    }

    fn backward<L: Lane>(
        a: Real<L>,
        b: Real<L>,
        y0: Real<L>,
        dy1: Real<L>,
        dy0: Real<L>,
    ) -> (Real<L>, Real<L>) {
        let square = y0 * y0;
        (dy0 * a / y0 - dy1 * b / square, dy0 * b / y0 + dy1 * a / square)
    }
}

/// Huber's loss, averaged.
#[py_layer(elementwise, reduce = mean)]
impl Huber {
    fn forward<L: Lane>(x: Real<L>, target: Real<L>, delta: f64) -> Real<L> {
        let error = x - target;
        let far = delta * (error.abs() - 0.5 * delta);
        error.abs().le(delta).select(0.5 * error * error, far)
    }
}

#[py_layer(elementwise, reduce = sum(-1))]
impl SquaresOfRows {
    fn forward<L: Lane>(x: Real<L>, w: Real<L>) -> Real<L> {
        w * x * x
    }

    fn backward<L: Lane>(x: Real<L>, w: Real<L>, dy: Real<L>) -> (Real<L>, Real<L>) {
        (2.0 * w * x * dy, x * x * dy)
    }
}

/// A gradient equal to that of the output need not be computed.
#[py_layer(elementwise)]
impl Plus {
    fn forward<L: Lane>(a: Real<L>, b: Real<L>) -> Real<L> {
        a + b
    }
}

/// One gradient equals that of an output, the other does not.
#[py_layer(elementwise)]
impl PlusAndTimes {
    fn forward<L: Lane>(a: Real<L>, b: Real<L>) -> (Real<L>, Real<L>) {
        (a + b * b, 2.0 * b)
    }

    fn backward<L: Lane>(b: Real<L>, dy0: Real<L>, dy1: Real<L>) -> (Real<L>, Real<L>) {
        (dy0, 2.0 * (b * dy0 + dy1))
    }
}

#[py_layer(elementwise, reduce = sum(0))]
impl SumOfBoth {
    fn forward<L: Lane>(a: Real<L>, b: Real<L>) -> Real<L> {
        a + 2.0 * b
    }
}

/// Rounds in forward, and passes the gradient unchanged.
#[py_layer(elementwise, surrogate)]
impl StraightThrough {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x.round()
    }

    fn backward<L: Lane>(dy: Real<L>) -> Real<L> {
        dy
    }
}

scalar_op!(Softplus: y = (1.0 + x.exp()).ln(), dx = dy / (1.0 + (-x).exp()));

scalar_op! {
    /// Saves its output only.
    pub Root: y = x.sqrt(), dx = 0.5 * dy / y
}

scalar_op!(Ratio: y = a / b, da = dy / b, db = -dy * y / b);

#[test]
fn derivatives_are_right_in_both_orders_and_every_layout() {
    let layouts = [
        sample(&[3, 4], -2.0, 2.0),
        sample(&[4, 3], -2.0, 2.0).transpose(),
        sample(&[9, 4], -2.0, 2.0).slice_axis(0, 1, 9, 3).transpose(),
        sample(&[3, 4], -2.0, 2.0).flip(1),
        sample(&[1, 4], -2.0, 2.0).broadcast_to([3, 4]),
        sample(&[], -2.0, 2.0),
        sample(&[0, 3], -2.0, 2.0),
        sample(&[2, 5, 7], -2.0, 2.0).permute(&[2, 0, 1]),
    ];
    for x in layouts {
        let one = std::slice::from_ref(&x);
        check(|t| Gelu::apply(&t[0]), one);
        check(|t| GeluByHand::apply(&t[0]), one);
        check(|t| CusTanh::apply(&t[0]), one);
        check(|t| Softplus::apply(&t[0]), one);
        check(|t| Root::apply(&(&t[0] + 3.0)), one);
        check(|t| Gelu::apply(&(&t[0] * 2.0)) * CusTanh::apply(&t[0]), one);
        near(&Gelu::apply(&x), &GeluByHand::apply(&x));
        near(&CusTanh::apply(&x), &x.tanh());
        near(&Softplus::apply(&x), &x.softplus());
    }
}

#[test]
fn more_elements_than_one_block() {
    let x = sample(&[2500], -2.0, 2.0);
    gradcheck(|t| Gelu::apply(&t[0]), &[x.clone()]).unwrap();
    gradcheck(|t| CusTanh::apply(&t[0]), &[x.clone()]).unwrap();
    let beta = Tensor::from(1.5);
    gradcheck(|t| Swish::apply(&t[0], &t[1]), &[x.clone(), beta.clone()]).unwrap();
    gradcheck(|t| SwishByHand::apply(&t[0], &t[1]), &[x, beta]).unwrap();
}

/// The result and the gradients of both inputs.
type All = [Vec<f64>; 3];

fn all(f: &Both, inputs: [&Tensor<f64>; 2], seed: &Tensor<f64>, changed: [bool; 2]) -> All {
    let leaf = |x: &Tensor<f64>, changed: bool| {
        let leaf =
            if changed { Tensor::zeros(x.shape().to_vec()) } else { Tensor::from(x.to_vec()) };
        if changed {
            leaf.copy_from(x).unwrap();
        }
        leaf.set_stop_gradient(false);
        leaf
    };
    let [a, b] = [leaf(inputs[0], changed[0]), leaf(inputs[1], changed[1])];
    let y = f(&a, &b);
    y.backward_with(seed).unwrap();
    let grad = |x: &Tensor<f64>| x.grad().map(|dx| dx.to_vec()).unwrap_or_default();
    [y.to_vec(), grad(&a), grad(&b)]
}

type Both = dyn Fn(&Tensor<f64>, &Tensor<f64>) -> Tensor<f64>;

#[test]
fn so_many_elements_at_once_change_no_bit() {
    // Without a pass, at most one block is computed: 2048 elements, or 512 with several results.
    let pieces = [1, 8, 9, 100, 511, 512, 513, 2047, 2048, 2049];
    let whole = pieces.iter().sum();
    let [a, b, seed] =
        [(-2.0, 2.0), (0.5, 1.5), (1.0, 3.0)].map(|(low, high)| sample(&[whole], low, high));
    let ops: [&Both; 12] = [
        &|a, b| a * b,
        &|a, b| a / b,
        &|a, b| a - b,
        &|a, b| a.maximum(b),
        &|a, b| b.pow(a),
        &|a, b| Swish::apply(a, b),
        &|a, b| SwishByHand::apply(a, b),
        &|a, b| Plus::apply(a, b),
        &|a, b| PlusAndTimes::apply(a, b).0,
        &|a, b| PolarByHand::apply(b, a).1,
        &|a, b| Gate::apply(a, &a.gt_scalar(0.0), 0.3, b),
        &|a, b| Ratio::apply(&(a * 2.0), b),
    ];
    for (i, f) in ops.into_iter().enumerate() {
        let expected = all(f, [&a, &b], &seed, [false, false]);
        for changed in [[false, false], [true, false], [true, true]] {
            let mut found = All::default();
            let mut start = 0;
            for len in pieces {
                let part = |x: &Tensor<f64>| x.narrow(0, start, len);
                let piece = all(f, [&part(&a), &part(&b)], &part(&seed), changed);
                found.iter_mut().zip(piece).for_each(|(all, piece)| all.extend(piece));
                start += len;
            }
            for (found, expected) in found.iter().zip(&expected) {
                let bits = |all: &Vec<f64>| all.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert!(bits(found) == bits(expected), "op {i}, {changed:?}");
            }
        }
    }
}

#[test]
fn inputs_are_broadcast_and_their_gradients_summed() {
    let shapes: &[[&[usize]; 2]] =
        &[[&[3, 4], &[]], [&[3, 4], &[4]], [&[3, 1], &[1, 4]], [&[2], &[3, 1, 2]], [&[1], &[2, 2]]];
    for shapes in shapes {
        let inputs = shapes.map(|shape| sample(shape, 0.4, 1.7));
        check(|t| Swish::apply(&t[0], &t[1]), &inputs);
        check(|t| SwishByHand::apply(&t[0], &t[1]), &inputs);
        check(|t| Ratio::apply(&t[0], &t[1]), &inputs);
        check(|t| SquaresOfRows::apply(&t[0], &t[1]), &inputs);
        check(|t| Huber::apply(&t[0], &t[1], 0.3), &inputs);
        near(
            &Swish::apply(&inputs[0], &inputs[1]),
            &(&inputs[0] * (&inputs[1] * &inputs[0]).sigmoid()),
        );
    }
    let error = Swish::try_apply(&sample(&[3], 0.0, 1.0), &sample(&[4], 0.0, 1.0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Swish: `beta` must be of a shape that can be broadcast with [3], found shape [4]"
    );
}

#[test]
fn masks_parameters_and_inputs_without_a_gradient() {
    let x = sample(&[2, 3], -2.0, 2.0);
    let scale = sample(&[3], 1.0, 2.0);
    let bools = Tensor::from_vec([2, 3], vec![true, false, true, false, false, true]).unwrap();
    let bytes = bools.cast::<u8>();
    let row = Tensor::<i64>::from(vec![7, 0, -1]);
    check(|t| Gate::apply(&t[0], &bools, 0.3, &scale), &[x.clone()]);
    check(|t| Gate::apply(&t[0], &row, 0.3, &scale), &[x.clone()]);
    near(&Gate::apply(&x, &bools, 0.3, &scale), &Gate::apply(&x, &bytes, 0.3, &scale));
    // By name, without the default.
    let by_name = Gate::with().scale(&scale).keep(&bools).x(&x).apply();
    near(&by_name, &Gate::apply(&x, &bools, 0.1, &scale));
    scale.set_stop_gradient(false);
    x.set_stop_gradient(false);
    Gate::apply(&x, &bools, 0.3, &scale).sum().backward().unwrap();
    assert!(x.grad().is_some() && scale.grad().is_none());
}

#[test]
fn several_outputs() {
    let inputs = [sample(&[2, 3], 0.5, 1.5), sample(&[3], 0.5, 1.5)];
    let both = |(r, angle): (Tensor<f64>, Tensor<f64>)| r * angle.exp();
    check(|t| both(Polar::apply(&t[0], &t[1])), &inputs);
    check(|t| both(PolarByHand::apply(&t[0], &t[1])), &inputs);
    check(|t| Polar::apply(&t[0], &t[1]).1, &inputs);
    check(|t| PolarByHand::apply(&t[0], &t[1]).0, &inputs);
}

#[test]
fn gradients_that_are_handed_on() {
    let shapes: &[[&[usize]; 2]] =
        &[[&[2, 3], &[2, 3]], [&[20], &[20]], [&[3, 4], &[4]], [&[3, 1], &[1, 4]], [&[], &[9]]];
    for shapes in shapes {
        let inputs = shapes.map(|shape| sample(shape, 0.4, 1.7));
        // Squared, so that the gradients differ between elements.
        check(|t| Plus::apply(&t[0], &t[1]).square(), &inputs);
        check(|t| SumOfBoth::apply(&t[0], &t[1]).square(), &inputs);
        check(|t| PlusAndTimes::apply(&t[0], &t[1]).0.square(), &inputs);
        check(|t| PlusAndTimes::apply(&t[0], &t[1]).1.square(), &inputs);
        let both = |(sum, double): (Tensor<f64>, Tensor<f64>)| sum.square() * double;
        check(|t| both(PlusAndTimes::apply(&t[0], &t[1])), &inputs);
    }
    // One tensor as both inputs; and tensors that were passed on must not be changed.
    for n in [6, 60] {
        let x = sample(&[n], 0.5, 1.5);
        x.set_stop_gradient(false);
        let seed = sample(&[n], 1.0, 2.0);
        let before = seed.to_vec();
        Plus::apply(&x, &Plus::apply(&x, &x)).backward_with(&seed).unwrap();
        near(&x.grad().unwrap(), &(3.0 * &seed));
        assert_eq!(seed.to_vec(), before);
    }
}

#[test]
fn reductions() {
    let (x, w) = (sample(&[2, 3, 4], -1.0, 1.0), sample(&[4], 0.5, 1.0));
    near(&SquaresOfRows::apply(&x, &w), &(&w * x.square()).sum_axes([-1]));
    check(|t| SquaresOfRows::apply(&t[0], &t[1]), &[x.clone(), w]);
    let target = sample(&[3, 4], -0.2, 0.2);
    let loss = Huber::apply(&x, &target, 0.4);
    assert_eq!(loss.shape(), [0_usize; 0]);
    let error = (&x - &target).abs().to_vec();
    let each = error.iter().map(|e| if *e <= 0.4 { 0.5 * e * e } else { 0.4 * (e - 0.2) });
    let expected = each.sum::<f64>() / 24.0;
    assert!((loss.item() - expected).abs() < 1e-14);
    check(|t| Huber::apply(&t[0], &t[1], 0.4), &[x, target]);
}

#[test]
fn forward_mode() {
    let (x, t) = (sample(&[4], -1.0, 1.0), sample(&[4], 0.5, 1.0));
    let slope = |f: &dyn Fn(&Tensor<f64>) -> Tensor<f64>| {
        let (_, slopes) = jvp(|x| f(&x[0]), &[x.clone()], &[t.clone()]).unwrap();
        slopes
    };
    near(&slope(&|x| CusTanh::apply(x)), &(&t * (1.0 - x.tanh().square())));
    near(&slope(&|x| Gelu::apply(x)), &slope(&|x| GeluByHand::apply(x)));
}

#[test]
fn single_precision_from_the_same_formula() {
    let x = sample(&[50], -3.0, 3.0);
    let single = x.cast::<f32>();
    x.set_stop_gradient(false);
    single.set_stop_gradient(false);
    Gelu::apply(&x).sum().backward().unwrap();
    Gelu::apply(&single).sum().backward().unwrap();
    for (a, b) in single.grad().unwrap().to_vec().iter().zip(x.grad().unwrap().to_vec()) {
        assert!((f64::from(*a) - b).abs() < 1e-6);
    }
}

#[test]
fn nothing_but_what_backward_names_is_kept() {
    // A saved input could not be changed in place before backward.
    let x = sample(&[100], -1.0, 1.0);
    x.set_stop_gradient(false);
    let copy = &x * 1.0;
    let y = CusTanh::apply(&copy);
    copy.detach().fill(0.0).unwrap();
    y.sum().backward().unwrap();
    near(&x.grad().unwrap(), &(1.0 - x.tanh().square()));
    let copy = &x * 1.0;
    let y = GeluByHand::apply(&copy);
    copy.detach().fill(0.0).unwrap();
    let error = y.sum().backward().unwrap_err();
    assert!(matches!(error, Error::SavedTensorChanged { op: "GeluByHand", .. }), "{error}");
}

#[test]
fn a_surrogate_is_taken_at_its_word() {
    let x = Tensor::from(vec![0.2, 1.7]);
    x.set_stop_gradient(false);
    let y = StraightThrough::apply(&x);
    assert_eq!(y.to_vec(), [0.0, 2.0]);
    y.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [1.0, 1.0]);
    assert!(StraightThrough::check_backward().is_err());
}

/// Off by a tenth of a percent in its second gradient.
#[py_layer(elementwise, surrogate)]
impl Wrong {
    fn forward<L: Lane>(x: Real<L>, w: Real<L>) -> Real<L> {
        x * w.exp()
    }

    fn backward<L: Lane>(w: Real<L>, y: Real<L>, dy: Real<L>) -> (Real<L>, Real<L>) {
        (dy * w.exp(), dy * y * 1.001)
    }
}

#[test]
fn a_wrong_backward_is_reported_with_the_input_and_the_point() {
    GeluByHand::check_backward().unwrap();
    Gate::check_backward(0.7).unwrap();
    SwishByHand::check_backward().unwrap();
    PolarByHand::check_backward().unwrap();
    let error = Wrong::check_backward().unwrap_err();
    let Error::BackwardDiffers { op, input, point, backward, derivative } = &error else {
        panic!("{error}");
    };
    assert_eq!((*op, *input), ("Wrong", "w"));
    assert!((backward / derivative - 1.001).abs() < 1e-9);
    assert!(point.starts_with("x = ") && point.contains(", w = ") && point.contains(", dy = "));
}

/// A wave of any size, with a backward that is off by a factor.
#[py_layer(elementwise, surrogate)]
impl Wave {
    fn forward<L: Lane>(x: Real<L>, size: f64, off: f64) -> Real<L> {
        size * x.sin() + 0.0 * off
    }

    fn backward<L: Lane>(x: Real<L>, dy: Real<L>, size: f64, off: f64) -> Real<L> {
        dy * size * off * x.cos()
    }
}

#[test]
fn wrong_backwards_of_any_size_are_reported() {
    for k in -30..=30 {
        let size = 10_f64.powi(k);
        Wave::check_backward(size, 1.0).unwrap();
        for off in [0.999, 1.1, 0.0] {
            let error = Wave::check_backward(size, off).unwrap_err();
            assert!(matches!(error, Error::BackwardDiffers { .. }), "1e{k}, {off}: {error}");
        }
    }
}

#[test]
fn a_third_order_and_a_graph_that_is_kept() {
    let x = sample(&[3], 0.5, 1.0);
    x.set_stop_gradient(false);
    let y = Root::apply(&x).sum();
    let options = autograd_core::GradOptions::new().create_graph(true);
    let first = autograd_core::grad_with(&[&y], &[&x], options).unwrap()[0].clone().unwrap();
    let options = autograd_core::GradOptions::new().create_graph(true);
    let second = autograd_core::grad_with(&[&first.sum()], &[&x], options).unwrap()[0].clone();
    let third = grad(&[&second.unwrap().sum()], &[&x]).unwrap();
    near(&third[0], &(0.375 * x.pow(-2.5)));
}

#[test]
fn values_at_the_edges() {
    let edges = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-310];
    let x = Tensor::from(edges.to_vec());
    let y = CusTanh::apply(&x).to_vec();
    assert_eq!(y[0].to_bits(), 0.0_f64.to_bits());
    assert_eq!(y[1].to_bits(), (-0.0_f64).to_bits());
    assert_eq!(y[2..4], [1.0, -1.0]);
    assert!(y[4].is_nan());
    assert_eq!(y[5], 1e-310);
}

/// Rules that are one function, but not of the gradient and one other number.
#[py_layer(elementwise, surrogate)]
impl Odd {
    fn forward<L: Lane>(a: Real<L>, b: Real<L>) -> Real<L> {
        a * b
    }

    fn backward<L: Lane>(a: Real<L>, b: Real<L>, dy: Real<L>) -> (Real<L>, Real<L>) {
        (a * b, dy * dy)
    }
}

#[test]
fn a_rule_is_computed_as_it_is_written() {
    for shape in [vec![3], vec![100, 100]] {
        let (a, b) = (sample(&shape, 0.5, 2.0), sample(&shape, 1.0, 3.0));
        [&a, &b].into_iter().for_each(|x| x.set_stop_gradient(false));
        (Odd::apply(&a, &b) * 5.0).sum().backward().unwrap();
        near(&a.grad().unwrap(), &(&a * &b).detach());
        near(&b.grad().unwrap(), &Tensor::full(shape, 25.0));
    }
}

/// Backward reads the constant alone, and is more than one function.
#[py_layer(elementwise)]
impl ScaledTwice {
    fn forward<L: Lane>(x: Real<L>, #[stop_gradient] scale: Real<L>) -> Real<L> {
        x * scale * 2.0
    }

    fn backward<L: Lane>(scale: Real<L>, dy: Real<L>) -> Real<L> {
        dy * scale * 2.0
    }
}

#[test]
fn a_constant_of_another_shape() {
    for (of_x, of_scale) in
        [([3, 1], [1, 2]), ([1, 2], [3, 2]), ([3, 2], [1, 1]), ([100, 1], [1, 100])]
    {
        let (x, scale) = (sample(&of_x, 0.5, 2.0), sample(&of_scale, 1.0, 3.0));
        check(|t| ScaledTwice::apply(&t[0], &scale).square(), &[x]);
    }
}
