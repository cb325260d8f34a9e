// the name of an op, mentioned in bounds and blocks of another one
use autograd_core::prelude::*;

pub trait Related<X> {
    fn factor() -> f64 {
        2.0
    }
}

impl Related<Second> for f64 {}

#[py_layer]
impl<T: Float + Related<Second>> First<T> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        x * T::factor()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * T::factor()
    }
}

#[py_layer]
impl Second {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * Second::FACTOR
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * Second::FACTOR
    }
}

impl Second {
    pub const FACTOR: f64 = 3.0;
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![1.0]);
    assert_eq!(Second::apply(&First::apply(&x)).to_vec(), [6.0]);
}
