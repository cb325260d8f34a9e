//! Every differentiable op against finite differences, first and second order, on tensors of many
//! shapes and layouts. A derivative is never checked against another derivation.

#![allow(
    clippy::cloned_ref_to_slice_refs,
    reason = "a list of one tensor reads like a list of two; a clone of a tensor costs nothing"
)]

mod binary;
mod einsum;
mod elementwise;
mod factors;
mod fuse;
mod graphs;
mod index;
mod layers;
mod linalg;
mod losses;
mod matmul;
mod order;
mod reduce;
mod shape;
mod single;

use autograd_core::{
    AnyTensor, Generator, GradOptions, Tensor, grad_with, gradgradcheck, jvpcheck,
    saved_tensors_hooks,
};

/// Random numbers between `low` and `high`, the same in every run.
pub(crate) fn sample(shape: &[usize], low: f64, high: f64) -> Tensor<f64> {
    let n: usize = shape.iter().product();
    let mut generator = Generator::new(n as u64 + 17 * shape.len() as u64);
    let mut unit = || (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let data = (0..n).map(|_| low + (high - low) * unit()).collect();
    Tensor::from_vec(shape, data).unwrap()
}

/// Numbers of both signs, each at least 0.2 away from 0 and from all others.
pub(crate) fn distinct(shape: &[usize]) -> Tensor<f64> {
    let n: usize = shape.iter().product();
    let order = Generator::new(5).randperm(n);
    let data = order.iter().map(|&i| (i as f64 - n as f64 / 2.0 + 0.3) * 0.5).collect();
    Tensor::from_vec(shape, data).unwrap()
}

/// Tensors in every layout that an op may get, and in shapes with few and with no elements.
pub(crate) fn layouts(low: f64, high: f64) -> Vec<(&'static str, Tensor<f64>)> {
    let sample = |shape: &[usize]| sample(shape, low, high);
    vec![
        ("plain", sample(&[3, 4])),
        ("small", sample(&[2, 2])),
        ("three axes", sample(&[2, 3, 4])),
        ("transposed", sample(&[4, 3]).transpose()),
        ("permuted", sample(&[4, 2, 3]).permute(&[1, 2, 0])),
        ("sliced", sample(&[7, 4]).slice_axis(0, 1, 7, 2)),
        ("sliced columns", sample(&[3, 9]).slice_axis(1, 0, 9, 2)),
        ("sliced and transposed", sample(&[9, 4]).slice_axis(0, 2, 9, 3).transpose()),
        ("flipped", sample(&[3, 4]).flip(1)),
        ("broadcast rows", sample(&[1, 4]).broadcast_to([3, 4])),
        ("broadcast columns", sample(&[3, 1]).broadcast_to([3, 4])),
        ("broadcast scalar", sample(&[]).broadcast_to([3, 4])),
        ("a row", sample(&[3, 11]).select(0, 1)),
        ("axes of one", sample(&[1, 5, 1])),
        ("one", sample(&[1])),
        ("scalar", sample(&[])),
        ("empty", sample(&[0, 3])),
        ("empty within", sample(&[2, 0, 3])),
    ]
}

/// Checks both orders and forward mode.
#[track_caller]
pub(crate) fn check(what: &str, f: impl Fn(&[Tensor<f64>]) -> Tensor<f64>, inputs: &[Tensor<f64>]) {
    let shapes: Vec<_> = inputs.iter().map(Tensor::shape).collect();
    // `jvpcheck` includes `gradcheck`.
    if let Err(error) = jvpcheck(&f, inputs) {
        panic!("{what} on {shapes:?}: {error}");
    }
    if let Err(error) = gradgradcheck(&f, inputs) {
        panic!("{what} on {shapes:?}: {error}");
    }
    check_packed(what, &f, inputs);
    // The layout of the inputs does not change the result.
    let plain: Vec<Tensor<f64>> =
        inputs.iter().map(|x| Tensor::from_vec(x.shape(), x.to_vec()).unwrap()).collect();
    let (seen, expected) = (f(inputs), f(&plain));
    assert_eq!(seen.shape(), expected.shape(), "{what} on {shapes:?}");
    for (a, b) in seen.to_vec().iter().zip(expected.to_vec()) {
        assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{what} on {shapes:?}: {a}, {b}");
    }
}

/// First and second derivatives in a random direction.
fn derivatives(f: &impl Fn(&[Tensor<f64>]) -> Tensor<f64>, inputs: &[Tensor<f64>]) -> Vec<f64> {
    let inputs: Vec<Tensor<f64>> = inputs.iter().map(|x| x * 1.0).collect();
    inputs.iter().for_each(|x| x.set_stop_gradient(false));
    let refs: Vec<&Tensor<f64>> = inputs.iter().collect();
    let weighted = |y: &Tensor<f64>| (y * sample(y.shape(), -1.0, 1.0)).sum();
    let mut y = weighted(&f(&inputs));
    let mut all = Vec::new();
    for _ in 0..2 {
        let options = GradOptions::new().create_graph(true).allow_unused(true);
        let grads: Vec<_> = grad_with(&[&y], &refs, options).unwrap();
        y = Tensor::from(0.0);
        for grad in grads.into_iter().flatten() {
            all.extend(grad.to_vec());
            y += weighted(&grad);
        }
    }
    all
}

/// Derivatives do not change if all saved tensors go through hooks.
#[track_caller]
fn check_packed(what: &str, f: impl Fn(&[Tensor<f64>]) -> Tensor<f64>, inputs: &[Tensor<f64>]) {
    let copy = |saved: &AnyTensor| match saved {
        AnyTensor::Float64(x) => Tensor::from_vec(x.shape(), x.to_vec()).unwrap().into(),
        AnyTensor::Int64(x) => Tensor::from_vec(x.shape(), x.to_vec()).unwrap().into(),
        AnyTensor::Bool(x) => Tensor::from_vec(x.shape(), x.to_vec()).unwrap().into(),
        other => panic!("no rule saves {}", other.dtype()),
    };
    let plain = derivatives(&f, inputs);
    let scope = saved_tensors_hooks(move |saved| Ok(copy(saved)), move |packed| Ok(copy(packed)));
    let packed = scope.run(|| derivatives(&f, inputs));
    assert_eq!(plain.len(), packed.len(), "{what}");
    for (a, b) in packed.into_iter().zip(plain) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{what}, packed: {a}, {b}");
    }
}

/// Checks both orders of a function of one tensor, in every layout.
#[track_caller]
pub(crate) fn check_layouts(
    what: &str,
    f: impl Fn(&Tensor<f64>) -> Tensor<f64>,
    low: f64,
    high: f64,
) {
    for (layout, x) in layouts(low, high) {
        check(&format!("{what}, {layout}"), |t| f(&t[0]), &[x]);
    }
}
