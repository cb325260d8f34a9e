//! W11: the document's net, 4 -> 4 x (200, user's tanh) -> 10, batch 10, and its integer addition.

use autograd_core::DType;
use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Feed, Program, Sgd, Variable};
use kit::{Work, input_f32, weights};
use ndarray::{Array2, ArrayView2};

use crate::ops::CusTanh;

const WIDTHS: [usize; 6] = [4, 200, 200, 200, 200, 10];
const BATCH: usize = 10;
const RATE: f64 = 1e-6;

fn tanh(x: &Tensor<f32>) -> Tensor<f32> {
    x.tanh()
}

fn tanh_grad(y: &Tensor<f32>, dy: &Tensor<f32>) -> Tensor<f32> {
    dy * (1.0 - y.square())
}

fn build() -> (Program, Variable) {
    let program = Program::new();
    let x = program.data("x", [-1, 4], DType::Float32).expect("a new name");
    let y = program.data("y", [-1], DType::Int64).expect("a new name");
    let mut hidden = x;
    for i in 0..4 {
        hidden = program.fc(&hidden, 200).expect("a matrix");
        let block = program.current_block();
        let out = block.create_var(&format!("h{i}"), hidden.dtype(), hidden.shape());
        let out = out.expect("a new name");
        let call = program.py_func(tanh).x(&hidden).out(&out).backward_func(tanh_grad);
        hidden = call.skip_vars_in_backward_input([&hidden]).call().expect("it fits");
    }
    let loss = program.fc(&hidden, 10).and_then(|logits| logits.cross_entropy(&y));
    (program, loss.expect("it fits"))
}

/// Weight and bias of each layer.
fn parameters() -> Vec<[Tensor<f32>; 2]> {
    let layers = weights(&WIDTHS).into_iter().zip(WIDTHS.windows(2));
    layers.map(|((w, b), widths)| [Tensor::from(w).reshape(widths), Tensor::from(b)]).collect()
}

fn feed() -> (Tensor<f32>, Tensor<i64>) {
    let x = Tensor::from(input_f32(BATCH * 4)).reshape([BATCH, 4]);
    (x, Tensor::from((0..BATCH as i64).collect::<Vec<_>>()))
}

pub fn net(train: bool) -> Option<Work> {
    let (program, loss) = build();
    let executor = Executor::new();
    if train {
        Sgd::new(RATE).minimize(&loss).expect("the loss is a scalar");
    }
    executor.run(&program.startup(), &[], &[]).expect("it sets parameters");
    for (i, [weight, bias]) in parameters().iter().enumerate() {
        executor.set_parameter(&format!("fc_{i}.weight"), weight);
        executor.set_parameter(&format!("fc_{i}.bias"), bias);
    }
    let (x, y) = feed();
    let work = move || {
        let feed: [(&str, &dyn Feed); 2] = [("x", &x), ("y", &y)];
        executor.run(&program, &feed, &[&loss]).expect("it runs").remove(0)
    };
    Work::new(work, |loss| {
        vec![loss.downcast_ref::<f32>().map_or(f64::NAN, |loss| f64::from(loss.item()))]
    })
}

/// The same step without a program.
pub fn eager() -> Option<Work> {
    let parameters = parameters();
    for parameter in parameters.iter().flatten() {
        parameter.set_stop_gradient(false);
    }
    let flat: Vec<_> = parameters.iter().flatten().cloned().collect();
    let rule = autograd_core::optim::Sgd::new(RATE);
    let mut sgd = autograd_core::optim::Optimizer::new(&flat, rule);
    let (x, y) = feed();
    let work = move || {
        let mut hidden = x.clone();
        for (i, [weight, bias]) in parameters.iter().enumerate() {
            hidden = hidden.matmul(weight) + bias;
            if i < 4 {
                hidden = CusTanh::apply(&hidden);
            }
        }
        let loss = hidden.cross_entropy(&y);
        loss.backward().expect("the graph is new");
        sgd.step().expect("gradients fit");
        sgd.clear_grad();
        f64::from(loss.item())
    };
    Work::new(work, |loss| vec![loss])
}

fn add(x: ArrayView2<i32>, y: ArrayView2<i32>) -> Array2<i32> {
    &x + &y
}

pub fn integers() -> Option<Work> {
    let program = Program::new();
    let x = program.data("x", [2, 3], DType::Int32).expect("a new name");
    let y = program.data("y", [2, 3], DType::Int32).expect("a new name");
    let out = program.current_block().create_var("sum", DType::Int32, [2, 3]).expect("a new name");
    let sum = program.py_func(add).x([&x, &y]).out(&out).call().expect("it fits");
    let executor = Executor::new();
    let (a, b) = (ndarray::arr2(&[[1, 2, 3], [4, 5, 6]]), ndarray::arr2(&[[7, 8, 9], [1, 2, 3]]));
    let work = move || {
        let feed: [(&str, &dyn Feed); 2] = [("x", &a), ("y", &b)];
        executor.run(&program, &feed, &[&sum]).expect("it runs").remove(0)
    };
    Work::new(work, |sum| {
        let sum = sum.downcast_ref::<i32>().map(Tensor::to_vec);
        sum.unwrap_or_default().into_iter().map(f64::from).collect()
    })
}
