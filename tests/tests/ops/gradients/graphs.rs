//! Random graphs, with fan-out, diamonds, detached and unrecorded parts, against dual numbers:
//! each value has a slope along a direction, which a detached part sets to 0.

use autograd_core::{Tensor, jvp, no_grad};
use proptest::prelude::*;

/// The numbers in each value.
const N: usize = 3;

/// One step of a program; operands count from the newest value back.
#[derive(Clone, Debug)]
enum Step {
    Add(usize, usize),
    Sub(usize, usize),
    Mul(usize, usize),
    Div(usize, usize),
    Sin(usize),
    Tanh(usize),
    Scale(usize, f64),
    /// The sum of all numbers, at each position.
    Spread(usize),
    /// Halves swapped: a view of a part, joined with the rest.
    Turn(usize),
    Detach(usize),
    Unrecorded(usize),
    InPlace(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || 0_usize..8;
    let step = prop_oneof![
        3 => (place(), place()).prop_map(|(a, b)| Step::Add(a, b)),
        2 => (place(), place()).prop_map(|(a, b)| Step::Sub(a, b)),
        3 => (place(), place()).prop_map(|(a, b)| Step::Mul(a, b)),
        1 => (place(), place()).prop_map(|(a, b)| Step::Div(a, b)),
        2 => place().prop_map(Step::Sin),
        2 => place().prop_map(Step::Tanh),
        1 => (place(), -2.0..2.0).prop_map(|(a, s)| Step::Scale(a, s)),
        1 => place().prop_map(Step::Spread),
        1 => place().prop_map(Step::Turn),
        1 => place().prop_map(Step::Detach),
        1 => place().prop_map(Step::Unrecorded),
        1 => (place(), place()).prop_map(|(a, b)| Step::InPlace(a, b)),
    ];
    proptest::collection::vec(step, 1..60)
}

fn on_tensors(steps: &[Step], leaves: &[Tensor<f64>]) -> Tensor<f64> {
    let mut values = leaves.to_vec();
    for step in steps {
        let at = |i: usize| &values[values.len() - 1 - i % values.len()];
        let next = match *step {
            Step::Add(a, b) => at(a) + at(b),
            Step::Sub(a, b) => at(a) - at(b),
            Step::Mul(a, b) => (at(a) * at(b)).tanh(),
            Step::Div(a, b) => at(a) / (at(b).square() + 1.0),
            Step::Sin(a) => at(a).sin(),
            Step::Tanh(a) => at(a).tanh(),
            Step::Scale(a, s) => at(a) * s,
            Step::Spread(a) => at(a).sum().broadcast_to([N]),
            Step::Turn(a) => {
                Tensor::concat(&[&at(a).narrow(0, 1, N - 1), &at(a).narrow(0, 0, 1)], 0)
            }
            Step::Detach(a) => at(a).detach(),
            Step::Unrecorded(a) => no_grad().run(|| at(a).sin()),
            Step::InPlace(a, b) => {
                let mut y = at(a) * 2.0;
                y += at(b);
                y
            }
        };
        values.push(next);
    }
    values.iter().rev().take(4).fold(Tensor::from(0.0), |sum, v| sum + v.sin().sum())
}

/// A value and its slope.
type Number = (f64, f64);
type Dual = [Number; N];

fn on_duals(steps: &[Step], leaves: &[Dual]) -> (f64, f64) {
    let mut values = leaves.to_vec();
    for step in steps {
        let at = |i: usize| values[values.len() - 1 - i % values.len()];
        let each = |a: usize, f: fn(Number) -> Number| at(a).map(f);
        let pair = |a: usize, b: usize, f: fn(Number, Number) -> Number| {
            std::array::from_fn(|i| f(at(a)[i], at(b)[i]))
        };
        let tanh = |(x, d): Number| (x.tanh(), d * (1.0 - x.tanh().powi(2)));
        let next: Dual = match *step {
            Step::Add(a, b) => pair(a, b, |x, y| (x.0 + y.0, x.1 + y.1)),
            Step::Sub(a, b) => pair(a, b, |x, y| (x.0 - y.0, x.1 - y.1)),
            Step::Mul(a, b) => pair(a, b, |x, y| (x.0 * y.0, x.1 * y.0 + x.0 * y.1)).map(tanh),
            Step::Div(a, b) => pair(a, b, |x, y| {
                let below = y.0 * y.0 + 1.0;
                (x.0 / below, x.1 / below - x.0 * 2.0 * y.0 * y.1 / (below * below))
            }),
            Step::Sin(a) => each(a, |(x, d)| (x.sin(), d * x.cos())),
            Step::Tanh(a) => at(a).map(tanh),
            Step::Scale(a, s) => at(a).map(|(x, d)| (x * s, d * s)),
            Step::Spread(a) => [at(a).iter().fold((0.0, 0.0), |(x, d), v| (x + v.0, d + v.1)); N],
            Step::Turn(a) => std::array::from_fn(|i| at(a)[(i + 1) % N]),
            Step::Detach(a) => each(a, |(x, _)| (x, 0.0)),
            Step::Unrecorded(a) => each(a, |(x, _)| (x.sin(), 0.0)),
            Step::InPlace(a, b) => pair(a, b, |x, y| (2.0 * x.0 + y.0, 2.0 * x.1 + y.1)),
        };
        values.push(next);
    }
    let last = values.iter().rev().take(4).flatten();
    last.fold((0.0, 0.0), |(x, d), v| (x + v.0.sin(), d + v.1 * v.0.cos()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn random_graphs_have_the_slopes_of_dual_numbers(
        steps in steps(),
        leaves in proptest::collection::vec(proptest::array::uniform3(-1.5..1.5), 1..4),
        direction in proptest::array::uniform12(-1.0..1.0),
    ) {
        let tensors: Vec<Tensor<f64>> = leaves.iter().map(|&leaf| Tensor::from(leaf)).collect();
        tensors.iter().for_each(|t| t.set_stop_gradient(false));
        let duals: Vec<Dual> = leaves
            .iter()
            .enumerate()
            .map(|(k, leaf)| std::array::from_fn(|i| (leaf[i], direction[k * N + i])))
            .collect();
        let y = on_tensors(&steps, &tensors);
        let (value, slope) = on_duals(&steps, &duals);
        prop_assert!((y.item() - value).abs() <= 1e-9 * value.abs().max(1.0));
        y.backward().unwrap();
        let mut found = 0.0;
        let mut scale = 1.0;
        for (k, t) in tensors.iter().enumerate() {
            let Some(grad) = t.grad() else { continue };
            for (i, g) in grad.to_vec().into_iter().enumerate() {
                found += g * direction[k * N + i];
                scale += (g * direction[k * N + i]).abs();
            }
        }
        prop_assert!((found - slope).abs() <= 1e-9 * scale, "{} by backward, {} by duals", found, slope);
        let tangents: Vec<Tensor<f64>> = (0..leaves.len())
            .map(|k| Tensor::from(&direction[k * N..(k + 1) * N]))
            .collect();
        let (_, pushed) = jvp(|t| on_tensors(&steps, t), &tensors, &tangents).unwrap();
        let pushed = pushed.item();
        prop_assert!((pushed - slope).abs() <= 1e-9 * scale, "{} by jvp, {} by duals", pushed, slope);
    }
}

/// More waiting branches than a linear search handles, on several levels.
#[test]
fn many_branches_of_several_depths_wait_for_each_other() -> autograd_core::Result<()> {
    let x = Tensor::from(0.5);
    x.set_stop_gradient(false);
    let branch = |i: usize| (0..i % 7).fold(&x * 1.0, |y, _| y * 2.0 + &x);
    let sum = (1..60).fold(branch(0), |sum, i| sum + branch(i));
    sum.backward()?;
    let expected: f64 = (0..60).map(|i| 2.0 * 2.0_f64.powi(i % 7) - 1.0).sum();
    assert_eq!(x.grad().map(|grad| grad.item()), Some(expected));
    Ok(())
}
