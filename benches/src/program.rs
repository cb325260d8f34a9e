//! The document's net, 4 -> 4 x (200, user's tanh) -> 10, batch 10, as a program and eagerly.

use autograd_core::DType;
use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Feed, Program, Sgd, Variable};
use ndarray::{Array2, ArrayD, ArrayView2, ArrayViewD};

use crate::{Candidate, input};

const BATCH: usize = 10;
const RATE: f64 = 1e-6;

/// Over tensors: what NumPy's tanh is to Python.
fn tanh(x: &Tensor<f32>) -> Tensor<f32> {
    x.tanh()
}

fn tanh_grad(y: &Tensor<f32>, dy: &Tensor<f32>) -> Tensor<f32> {
    dy * (1.0 - y.square())
}

/// Over arrays, with the standard library's tanh.
fn tanh_of_array(x: ArrayViewD<f32>) -> ArrayD<f32> {
    x.mapv(f32::tanh)
}

fn tanh_of_array_grad(y: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
    &dy * (1.0 - &y * &y)
}

#[py_layer]
impl EagerTanh {
    type Saved = Tensor<f32>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f32>) -> Tensor<f32> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f32>) -> Tensor<f32> {
        tanh_grad(ctx.saved_tensor(), dy)
    }
}

/// Which function the layers have.
#[derive(Clone, Copy, PartialEq)]
pub enum By {
    Tensors,
    Arrays,
    BuiltIn,
}

fn build(by: By) -> (Program, Variable) {
    let program = Program::new();
    let x = program.data("x", [-1, 4], DType::Float32).expect("a new name");
    let y = program.data("y", [-1], DType::Int64).expect("a new name");
    let mut hidden = x;
    for i in 0..4 {
        hidden = program.fc(&hidden, 200).expect("a matrix");
        let block = program.current_block();
        let out = block.create_var(&format!("h{i}"), hidden.dtype(), hidden.shape());
        let out = out.expect("a new name");
        hidden = match by {
            By::Tensors => {
                let call = program.py_func(tanh).x(&hidden).out(&out).backward_func(tanh_grad);
                call.skip_vars_in_backward_input([&hidden]).call()
            }
            By::Arrays => {
                let call = program.py_func(tanh_of_array).x(&hidden).out(&out);
                let call = call.backward_func(tanh_of_array_grad);
                call.skip_vars_in_backward_input([&hidden]).call()
            }
            By::BuiltIn => hidden.tanh(),
        }
        .expect("it fits");
    }
    let loss = program.fc(&hidden, 10).and_then(|logits| logits.cross_entropy(&y));
    (program, loss.expect("it fits"))
}

fn numbers(n: usize, scale: f64) -> Vec<f32> {
    input(n).into_iter().map(|v| (v * scale) as f32).collect()
}

/// Every candidate starts with the same weights.
fn weights() -> Vec<[Tensor<f32>; 2]> {
    let sizes = [(4, 200), (200, 200), (200, 200), (200, 200), (200, 10)];
    sizes
        .iter()
        .map(|&(rows, columns)| {
            let weight = Tensor::from(numbers(rows * columns, 0.05)).reshape([rows, columns]);
            [weight, Tensor::zeros([columns])]
        })
        .collect()
}

fn feed() -> (Tensor<f32>, Tensor<i64>) {
    let x = Tensor::from(numbers(BATCH * 4, 1.0)).reshape([BATCH, 4]);
    (x, Tensor::from((0..BATCH as i64).collect::<Vec<_>>()))
}

pub fn by_program(name: &'static str, by: By, train: bool) -> Candidate {
    let (program, loss) = build(by);
    let executor = Executor::new();
    if train {
        Sgd::new(RATE).minimize(&loss).expect("the loss is a scalar");
    }
    executor.run(&program.startup(), &[], &[]).expect("it sets parameters");
    for (i, parameters) in weights().iter().enumerate() {
        executor.set_parameter(&format!("fc_{i}.weight"), &parameters[0]);
        executor.set_parameter(&format!("fc_{i}.bias"), &parameters[1]);
    }
    let (x, y) = feed();
    let work = move || {
        let feed: [(&str, &dyn Feed); 2] = [("x", &x), ("y", &y)];
        executor.run(&program, &feed, &[&loss]).expect("it runs").remove(0)
    };
    let answer = work().downcast_ref::<f32>().map_or(0.0, |loss| f64::from(loss.item()));
    Candidate::new(name, work, vec![answer])
}

pub fn eagerly(name: &'static str, by: By, train: bool) -> Candidate {
    let parameters = weights();
    for parameter in parameters.iter().flatten() {
        parameter.set_stop_gradient(!train);
    }
    let (x, y) = feed();
    let work = move || {
        let mut hidden = x.clone();
        for (i, [weight, bias]) in parameters.iter().enumerate() {
            hidden = hidden.matmul(weight) + bias;
            hidden = match by {
                _ if i == 4 => hidden,
                By::BuiltIn => hidden.tanh(),
                _ => EagerTanh::apply(&hidden),
            };
        }
        let loss = hidden.cross_entropy(&y);
        if train {
            loss.backward().expect("the graph is new");
            let _off = no_grad();
            for parameter in parameters.iter().flatten() {
                let grad = parameter.grad().expect("it wants a gradient");
                let next = &grad * -RATE + parameter;
                parameter.copy_from(&next).expect("of its shape");
                parameter.clear_grad();
            }
        }
        loss.detach()
    };
    let answer = vec![f64::from(work().item())];
    Candidate::new(name, work, answer)
}

fn add(x: ArrayView2<i32>, y: ArrayView2<i32>) -> Array2<i32> {
    &x + &y
}

pub fn integers() -> Candidate {
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
    let answer = work()
        .downcast_ref::<i32>()
        .map_or(Vec::new(), |sum| sum.to_vec().into_iter().map(f64::from).collect());
    Candidate::new("a program", work, answer)
}
