// blocks of one, two and no output, with values skipped, named and missing
use autograd_core::static_graph::{Executor, Program, gradients, py_func};
use autograd_core::{DType, Tensor};
use ndarray::{ArrayD, ArrayViewD, arr1};

#[py_func(sum, difference)]
impl SumAndDifference {
    fn forward(x: ArrayViewD<f64>, w: ArrayViewD<f64>) -> (ArrayD<f64>, ArrayD<f64>) {
        (&x + &w, &x - &w)
    }

    fn backward(
        dsum: ArrayViewD<f64>,
        ddifference: Option<ArrayViewD<f64>>,
    ) -> Result<(ArrayD<f64>, Option<ArrayD<f64>>), String> {
        assert!(ddifference.is_none());
        Ok((dsum.to_owned(), Some(dsum.to_owned())))
    }
}

/// Over tensors, with docs of parameters.
#[py_func]
impl Square {
    pub fn forward(
        /// A number for each point.
        x: &Tensor<f64>,
    ) -> Tensor<f64> {
        Self::twice(x) * x * 0.5
    }

    fn backward(
        /// That of forward.
        x: &Tensor<f64>,
        _y: &Tensor<f64>,
        dy: &Tensor<f64>,
    ) -> Tensor<f64> {
        Self::twice(x) * dy
    }

    fn twice(x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[py_func]
impl Look {
    fn forward(x: ArrayViewD<f64>) {
        assert_eq!(x.len(), 2);
    }
}

#[test]
fn compiles_and_runs() {
    let program = Program::new();
    let x = program.data("x", [-1], DType::Float64).unwrap();
    x.set_stop_gradient(false);
    let var = |name: &str| program.current_block().create_var(name, x.dtype(), x.shape()).unwrap();
    let [sum, _] = SumAndDifference::call(&x, &x, &var("sum"), &var("difference")).unwrap();
    let y = Square::call(&sum, &var("y")).unwrap();
    Look::call(&y).unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    let run = Executor::new().run(&program, &[("x", &arr1(&[1.0, 2.0]))], &[&y, &dx]).unwrap();
    assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [4.0, 16.0]);
    assert_eq!(run[1].downcast_ref::<f64>().unwrap().to_vec(), [8.0, 16.0]);
}
