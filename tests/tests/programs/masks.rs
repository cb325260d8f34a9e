//! Chains of elementwise operators with elements of several types: masks, selection, conversions,
//! integers, and gradients of operands declared smaller. They are one pass over memory, with the
//! same results as eager mode.

use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Feed, Program, Variable, gradients, gradients_with};
use autograd_core::{DType, with_num_threads};
use support::leaf_like;
use support::programs::{floats, run, wanting, wave};

fn numbers(shape: &[usize], by: i64) -> Tensor<i64> {
    let n: usize = shape.iter().product();
    Tensor::from((0..n as i64).map(|i| i * by % 23 - 11).collect::<Vec<_>>()).reshape(shape)
}

#[test]
fn a_masked_loss_and_its_gradient_are_those_of_eager_mode() {
    let program = Program::new();
    let x = wanting(&program, "x", &[-1, 8]);
    let target = program.data("target", [-1, 8], DType::Float32).unwrap();
    let counts = program.data("counts", [-1, 8], DType::Bool).unwrap();
    let zero = program.data("zero", [0_i64; 0], DType::Float32).unwrap();
    let off = x.relu().unwrap().try_sub(&target).unwrap();
    let far = off.greater(&target).unwrap();
    let loss = far.where_else(&(&off * 3.0), off.square().unwrap()).unwrap();
    let kept = counts.where_else(&loss, &zero).unwrap();
    let weighted =
        far.cast(DType::Float32).unwrap().try_mul(&kept).unwrap().try_add(&kept).unwrap();
    let dx = gradients(&[&weighted], &[&x]).unwrap().remove(0).unwrap();
    let fetch = [&weighted, &far, &dx];
    for rows in [0, 1, 3, 5000] {
        let (fed, to) = (wave(&[rows, 8], 0.37), wave(&[8, rows], 0.71).transpose());
        let mask = wave(&[rows, 8], 0.9).gt_scalar(-0.5);
        let none = Tensor::from(0.0_f32);
        let feed: [(&str, &dyn Feed); 4] =
            [("x", &fed), ("target", &to), ("counts", &mask), ("zero", &none)];
        let found = run(&program, &feed, &fetch);
        assert_eq!(
            with_num_threads(3, || floats(&run(&program, &feed, &fetch)[2])),
            floats(&found[2])
        );
        let x = leaf_like(&fed);
        let off = x.relu() - &to;
        let far = off.greater(&to);
        let loss = far.where_else(&(&off * 3.0), off.square());
        let kept = mask.where_else(&loss, &none);
        let weighted = far.cast::<f32>() * &kept + &kept;
        weighted.sum().backward().unwrap();
        assert_eq!(floats(&found[0]), weighted.to_vec());
        assert_eq!(found[1].downcast_ref::<bool>().unwrap().to_vec(), far.to_vec());
        assert_eq!(floats(&found[2]), x.grad().unwrap().to_vec(), "{rows}");
    }
}

#[test]
fn integers_masks_and_floats_are_those_of_eager_mode() {
    let program = Program::new();
    let [a, b] = ["a", "b"].map(|name| program.data(name, [-1, 5], DType::Int64).unwrap());
    let row = program.data("row", [5], DType::Int64).unwrap();
    let sum = ((&a + &b) * 3.0).try_sub(&row).unwrap().maximum(&a).unwrap();
    let odd = sum.not_equal(&b).unwrap();
    let bytes = sum.cast(DType::UInt8).unwrap();
    let small = bytes.try_mul(&bytes).unwrap().cast(DType::Int32).unwrap();
    let scaled = sum.cast(DType::Float32).unwrap().tanh().unwrap() * 0.5;
    let chosen = odd.where_else(&scaled, small.cast(DType::Float32).unwrap()).unwrap();
    let fetch = [&sum, &odd, &bytes, &small, &chosen];
    for rows in [1, 4, 9000] {
        let fed = [numbers(&[rows, 5], 7), numbers(&[rows, 5], 13), numbers(&[5], 3)];
        let feed: [(&str, &dyn Feed); 3] = [("a", &fed[0]), ("b", &fed[1]), ("row", &fed[2])];
        let found = run(&program, &feed, &fetch);
        let [a, b, row] = fed;
        let sum = ((&a + &b) * 3 - &row).maximum(&a);
        let odd = sum.not_equal(&b);
        let bytes = sum.cast::<u8>();
        let small = (&bytes * &bytes).cast::<i32>();
        let chosen = odd.where_else(&(sum.cast::<f32>().tanh() * 0.5), small.cast::<f32>());
        assert_eq!(found[0].downcast_ref::<i64>().unwrap().to_vec(), sum.to_vec());
        assert_eq!(found[1].downcast_ref::<bool>().unwrap().to_vec(), odd.to_vec());
        assert_eq!(found[2].downcast_ref::<u8>().unwrap().to_vec(), bytes.to_vec());
        assert_eq!(found[3].downcast_ref::<i32>().unwrap().to_vec(), small.to_vec());
        assert_eq!(floats(&found[4]), chosen.to_vec());
    }
}

#[test]
fn a_gradient_goes_through_conversions_of_floats() {
    let program = Program::new();
    let x = wanting(&program, "x", &[-1]);
    let wide = x.cast(DType::Float64).unwrap().sin().unwrap() * 3.0;
    let y = wide.cast(DType::Float32).unwrap().square().unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    let fed = wave(&[3000], 0.7);
    let found = run(&program, &[("x", &fed)], &[&y, &dx]);
    let x = leaf_like(&fed);
    let y = (x.cast::<f64>().sin() * 3.0).cast::<f32>().square();
    y.sum().backward().unwrap();
    assert_eq!(floats(&found[0]), y.to_vec());
    assert_eq!(floats(&found[1]), x.grad().unwrap().to_vec());
}

#[py_layer(elementwise)]
impl Gate {
    fn forward<L: Lane>(#[stop_gradient] open: Mask<L>, x: Real<L>, slope: Real<L>) -> Real<L> {
        open.select(x * x, x * slope)
    }
}

#[test]
fn a_users_op_with_a_mask_has_the_gradients_of_eager_mode() {
    let program = Program::new();
    let x = wanting(&program, "x", &[-1, 6]);
    let slope = wanting(&program, "slope", &[6]);
    let open = x.greater(&slope).unwrap();
    let gated = program.py_layer(Gate::apply::<f32, bool>).x([&open, &x, &slope]).call().unwrap();
    let y = gated.tanh().unwrap();
    let found = gradients(&[&y], &[&x, &slope]).unwrap();
    let [dx, dslope] = [0, 1].map(|at| found[at].clone().unwrap());
    for rows in [1, 7, 4000] {
        let fed = [wave(&[rows, 6], 0.3), wave(&[6], 0.5)];
        let feed: [(&str, &dyn Feed); 2] = [("x", &fed[0]), ("slope", &fed[1])];
        let found = run(&program, &feed, &[&y, &dx, &dslope]);
        let [x, slope] = fed.each_ref().map(leaf_like);
        let y = Gate::apply(&x.greater(&slope), &x, &slope).tanh();
        y.sum().backward().unwrap();
        let expected = [&y, &x.grad().unwrap(), &slope.grad().unwrap()].map(|x| x.to_vec());
        assert_eq!(found.iter().map(floats).collect::<Vec<_>>(), expected, "{rows}");
    }
}

type OfTwo<X> = fn(&X, &X) -> X;

/// Functions whose two gradients come from one formula.
const OF_TWO: [(&str, OfTwo<Variable>, OfTwo<Tensor<f32>>); 4] = [
    ("div", |x, y| x / y, |x, y| x / y),
    ("pow", |x, y| x.abs().unwrap().pow(y).unwrap(), |x, y| x.abs().pow(y)),
    ("maximum", |x, y| x.maximum(y).unwrap(), |x, y| x.maximum(y)),
    ("minimum", |x, y| x.minimum(y).unwrap(), |x, y| x.minimum(y)),
];

#[test]
fn gradients_of_operands_declared_smaller_are_summed_as_in_eager_mode() {
    for (name, of_variables, of_tensors) in OF_TWO {
        for (dims, shape) in [
            (&[6_i64][..], &[6_usize][..]),
            (&[1, 6], &[1, 6]),
            (&[-1, 1], &[0, 1]),
            (&[], &[]),
            (&[1, 1], &[1, 1]),
        ] {
            let program = Program::new();
            let x = wanting(&program, "x", &[-1, 6]);
            let other = wanting(&program, "other", dims);
            let dz = program.data("dz", [-1, 6], DType::Float32).unwrap();
            // On both sides, so that each gradient is summed.
            let z = of_variables(&x.sin().unwrap(), &other);
            let z = of_variables(&other, &(&z + 3.0)).tanh().unwrap();
            let found = gradients_with(&[&z], &[&x, &other], &[Some(&dz)]).unwrap();
            let [dx, dother] = [0, 1].map(|at| found[at].clone().unwrap());
            // Also with more than one chunk, and with more sums than are interleaved.
            for rows in [1, 4, 900, 5000] {
                let shape: Vec<usize> =
                    shape.iter().map(|&n| if n == 0 { rows } else { n }).collect();
                let fed = [wave(&[rows, 6], 0.3), wave(&shape, 0.5) + 0.25, wave(&[rows, 6], 0.9)];
                let feed: [(&str, &dyn Feed); 3] =
                    [("x", &fed[0]), ("other", &fed[1]), ("dz", &fed[2])];
                let found = run(&program, &feed, &[&z, &dx, &dother]);
                let [x, other] = [leaf_like(&fed[0]), leaf_like(&fed[1])];
                let z = of_tensors(&x.sin(), &other);
                let z = of_tensors(&other, &(&z + 3.0)).tanh();
                (&z * &fed[2]).sum().backward().unwrap();
                let expected = [&z, &x.grad().unwrap(), &other.grad().unwrap()];
                for (found, expected) in found.iter().zip(expected) {
                    assert_eq!(found.shape(), expected.shape(), "{name} {dims:?} {rows}");
                    let bits = |x: Vec<f32>| x.into_iter().map(f32::to_bits).collect::<Vec<_>>();
                    assert_eq!(
                        bits(floats(found)),
                        bits(expected.to_vec()),
                        "{name} {dims:?} {rows}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_error_in_a_chain_is_reported_of_its_operator() {
    let program = Program::new();
    let [a, b] = ["a", "b"].map(|name| program.data(name, [-1], DType::Int64).unwrap());
    let c = (&(&a + 1.0) / &b).try_mul(&a).unwrap().maximum(&b).unwrap();
    let (three, zeros) = (numbers(&[3], 5), Tensor::<i64>::zeros([3]));
    let feed: [(&str, &dyn Feed); 2] = [("a", &three), ("b", &zeros)];
    let error = Executor::new().run(&program, &feed, &[&c]).unwrap_err().to_string();
    assert!(error.starts_with("div (built at tests/tests/programs/masks.rs:"), "{error}");
    assert!(error.contains("nonzero for integers"), "{error}");
    // The program is still usable.
    let feed: [(&str, &dyn Feed); 2] = [("a", &three), ("b", &three)];
    let found = run(&program, &feed, &[&c]);
    let expected = ((&three + 1) / &three * &three).maximum(&three);
    assert_eq!(found[0].downcast_ref::<i64>().unwrap().to_vec(), expected.to_vec());
}

#[py_layer(elementwise)]
impl Shifted {
    fn forward<L: Lane>(x: Real<L>, by: Real<L>) -> Real<L> {
        x.tanh() + by
    }
}

#[test]
fn a_gradient_that_is_the_outputs_own_is_summed_as_in_eager_mode() {
    let program = Program::new();
    let x = wanting(&program, "x", &[-1, 6]);
    let by = wanting(&program, "by", &[6]);
    let y = program.py_layer(Shifted::apply::<f32>).x([&x, &by]).call().unwrap();
    let z = y.square().unwrap();
    let found = gradients(&[&z], &[&x, &by]).unwrap();
    let [dx, dby] = [0, 1].map(|at| found[at].clone().unwrap());
    for rows in [1, 7, 4000] {
        let fed = [wave(&[rows, 6], 0.3), wave(&[6], 0.5)];
        let feed: [(&str, &dyn Feed); 2] = [("x", &fed[0]), ("by", &fed[1])];
        let found = run(&program, &feed, &[&z, &dx, &dby]);
        let [x, by] = fed.each_ref().map(leaf_like);
        let z = Shifted::apply(&x, &by).square();
        z.sum().backward().unwrap();
        let expected = [&z, &x.grad().unwrap(), &by.grad().unwrap()].map(|x| x.to_vec());
        assert_eq!(found.iter().map(floats).collect::<Vec<_>>(), expected, "{rows}");
    }
}
