//! Ops with `shapes(..)` in programs: the line says the forms of the outputs, free axes included.

use std::cell::Cell;

use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Program};
use autograd_core::{DType, Error};

thread_local! {
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

#[py_layer(no_grad, shapes(x: [b.., 2 * n], w: [n, m] -> ([b.., m], [n])))]
impl Halves {
    fn forward(
        _: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>) {
        RUNS.set(RUNS.get() + 1);
        let n = w.shape()[0];
        (x.narrow(-1, 0, n).matmul(w), w.sum_axes([1]))
    }
}

#[py_layer(no_grad, shapes(x: [n] -> [n * times]))]
impl Repeated {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, times: usize) -> Tensor<f64> {
        RUNS.set(RUNS.get() + 1);
        Tensor::concat(vec![x; times], 0)
    }
}

fn error<O: std::fmt::Debug>(called: Result<O, Error>) -> String {
    called.unwrap_err().to_string()
}

#[test]
fn the_line_says_the_forms_without_a_run() {
    let program = Program::new();
    let x = program.data("x", [-1, 6], DType::Float64).unwrap();
    let w = program.data("w", [-1, 4], DType::Float64).unwrap();
    let [y, z] = program.py_layer(Halves::apply).x([&x, &w]).call().unwrap();
    assert_eq!((y.shape(), z.shape()), (vec![None, Some(4)], vec![Some(3)]));
    // Exchanged and partly constant inputs.
    let weight = Tensor::<f64>::ones([3, 5]);
    let [y, _] =
        program.py_layer(move |x: &Tensor<f64>| Halves::apply(x, &weight)).x(&x).call().unwrap();
    assert_eq!(y.shape(), [None, Some(5)]);
    let [z, y] = program
        .py_layer(|w: &Tensor<f64>, x: &Tensor<f64>| {
            let (y, z) = Halves::apply(x, w);
            (z, y)
        })
        .x([&w, &x])
        .call()
        .unwrap();
    assert_eq!((y.shape(), z.shape()), (vec![None, Some(4)], vec![Some(3)]));
    let row = program.data("row", [5], DType::Float64).unwrap();
    let free = program.data("free", [-1], DType::Float64).unwrap();
    let three = |x: &Tensor<f64>| Repeated::apply(x, 3);
    assert_eq!(program.py_layer(three).x(&row).call().unwrap().shape(), [Some(15)]);
    assert_eq!(program.py_layer(three).x(&free).call().unwrap().shape(), [None]);
    assert_eq!(RUNS.get(), 0);

    let (x, w) = (Tensor::<f64>::ones([2, 6]), Tensor::<f64>::ones([3, 4]));
    let fetched = Executor::new().run(&program, &[("x", &x), ("w", &w)], &[&y]).unwrap();
    assert_eq!(fetched[0].downcast_ref::<f64>().unwrap().to_vec(), [3.0; 8]);
}

#[test]
fn inputs_and_outputs_that_disagree_are_refused_where_the_program_is_built() {
    let program = Program::new();
    let x = program.data("x", [-1, 6], DType::Float64).unwrap();
    let w = program.data("w", [4, 4], DType::Float64).unwrap();
    let called = error(program.py_layer(Halves::apply).x([&x, &w]).call().map(drop));
    assert!(called.contains("Halves: axis 1 of `x` is 6, must be 8 (2 * n)"), "{called}");
    let row = program.data("row", [5], DType::Float64).unwrap();
    let wrong = program.data("wrong", [14], DType::Float64).unwrap();
    let three = |x: &Tensor<f64>| Repeated::apply(x, 3);
    let called = error(program.py_layer(three).x(&row).out(&wrong).call().map(drop));
    assert!(
        called.contains("`out`: output 0 is float64 [14], the op's `shapes(..)` says float64 [15]"),
        "{called}"
    );
}

/// A closure that does more than the op is called on examples, as without a line.
#[test]
fn a_closure_around_the_op_is_called_on_examples() {
    let program = Program::new();
    let x = program.data("x", [-1], DType::Float64).unwrap();
    let around = |x: &Tensor<f64>| Repeated::apply(&x.reshape([-1]), 2).unsqueeze(0);
    let before = RUNS.get();
    assert_eq!(program.eager(around).x(&x).call().unwrap().shape(), [Some(1), None]);
    assert!(RUNS.get() > before);
}

/// A trace runs forward on examples, and each of them is checked.
#[test]
fn a_trace_refuses_an_op_that_disagrees_with_its_line() {
    #[py_layer(shapes(x: [n, m] -> [m, n]))]
    impl Turned {
        fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            let turn = |x: &Tensor<f64>| if x.shape()[0] > 2 { x.clone() } else { x.t() };
            turn(x)
        }

        fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy.t()
        }
    }
    let program = Program::new();
    let x = program.data("x", [-1, 3], DType::Float64).unwrap();
    let called = error(program.trace(|x: &Tensor<f64>| Turned::apply(x)).x(&x).call().map(drop));
    assert!(called.contains("Turned: the output of forward is"), "{called}");
}
