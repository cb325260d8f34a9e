// a py_func block for any float type, with its own constant, and with a path to the library
use autograd_core::static_graph::{Executor, Program, gradients, py_func};
use autograd_core::{DType, Float, Tensor};
use ndarray::{ArrayD, ArrayViewD};

mod other {
    pub use autograd_core as library;
}

/// A power with an integer exponent.
#[py_func(z, crate = crate::py_func::generic::other::library)]
impl<T: Float, const N: i32> Power<T, N>
where
    T: std::fmt::Debug,
{
    pub fn forward(x: ArrayViewD<T>) -> ArrayD<T> {
        x.mapv(|x| num(x, N))
    }

    fn backward(x: ArrayViewD<T>, dz: ArrayViewD<T>) -> ArrayD<T> {
        let slope = x.mapv(|x| T::from_f64(f64::from(N)) * num(x, N - 1));
        &slope * &dz
    }
}

fn num<T: Float>(x: T, n: i32) -> T {
    T::from_f64(x.into_f64().powi(n))
}

fn run<T: Float>(dtype: DType) -> [Vec<T>; 2] {
    let program = Program::new();
    let x = program.data("x", [-1], dtype).unwrap();
    x.set_stop_gradient(false);
    let out = program.current_block().create_var("out", x.dtype(), x.shape()).unwrap();
    let y = Power::<T, 3>::call(&x, &out).unwrap();
    let operator = format!("py_func `Power<{}, 3>`(x)", std::any::type_name::<T>());
    assert!(program.to_string().contains(&operator), "{program}");
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    let fed = Tensor::from(vec![T::from_f64(2.0), T::from_f64(3.0)]);
    let run = Executor::new().run(&program, &[("x", &fed)], &[&y, &dx]).unwrap();
    [0, 1].map(|at| run[at].downcast_ref::<T>().unwrap().to_vec())
}

#[test]
fn compiles_and_runs() {
    assert_eq!(run::<f64>(DType::Float64), [[8.0, 27.0], [12.0, 27.0]]);
    assert_eq!(run::<f32>(DType::Float32), [[8.0, 27.0], [12.0, 27.0]]);
}
