//! Programs, and runs of them.

use autograd_core::optim::Adam;
use autograd_core::static_graph::{Executor, FcOptions, Feed, Fetch, Init, Program, Variable};
use autograd_core::{AnyTensor, DType, Tensor};
use ndarray::{Array1, Array2};

/// Numbers between -2 and 2.
pub fn wave(shape: &[usize], by: f32) -> Tensor<f32> {
    let n: usize = shape.iter().product();
    Tensor::from((0..n).map(|i| (i as f32 * by).sin() * 2.0).collect::<Vec<_>>()).reshape(shape)
}

/// Data of float32 that wants a gradient.
pub fn wanting(program: &Program, name: &str, shape: &[i64]) -> Variable {
    let x = program.data(name, shape, DType::Float32).unwrap();
    x.set_stop_gradient(false);
    x
}

/// The variables as what a run fetches.
pub fn asked<'a>(variables: &[&'a Variable]) -> Vec<&'a dyn Fetch> {
    variables.iter().map(|variable| *variable as &dyn Fetch).collect()
}

/// The fetched values of one run.
pub fn run(program: &Program, feed: &[(&str, &dyn Feed)], fetch: &[&Variable]) -> Vec<AnyTensor> {
    Executor::new().run(program, feed, &asked(fetch)).unwrap()
}

/// The numbers of a float32 value.
pub fn floats(value: &AnyTensor) -> Vec<f32> {
    value.downcast_ref::<f32>().unwrap().to_vec()
}

/// A training program of two branches with dropout, and its loss.
pub fn classifier() -> (Program, Variable) {
    let program = Program::new();
    let x = program.data("x", [-1, 64], DType::Float32).unwrap();
    let label = program.data("label", [-1], DType::Int64).unwrap();
    let branch = |name: &str| {
        let options = FcOptions::new().name(name).bias(Init::Constant(0.5));
        program.fc_with(&x, 256, &options).unwrap().tanh().unwrap()
    };
    let (left, right) = (branch("left"), branch("right"));
    let hidden = (&left * &right + 0.125).relu().unwrap().dropout(0.25).unwrap();
    let loss = program.fc(&hidden, 10).unwrap().cross_entropy(&label).unwrap();
    Adam::new(1e-3).minimize(&loss).unwrap();
    (program, loss)
}

/// The data and labels of `classifier`.
pub fn batch() -> (Array2<f32>, Array1<i64>) {
    let x = Array2::from_shape_fn([128, 64], |(i, j)| ((i * 13 + j * 5) % 23) as f32 / 23.0);
    (x, Array1::from_shape_fn([128], |i| (i % 10) as i64))
}

/// The losses of four steps.
pub fn train(executor: &Executor, program: &Program, loss: &Variable) -> Vec<f32> {
    let (x, label) = batch();
    let mut losses = Vec::new();
    for _ in 0..4 {
        let run = executor.run(program, &[("x", &x), ("label", &label)], &[loss]).unwrap();
        losses.push(run[0].downcast_ref::<f32>().unwrap().item());
    }
    losses
}
