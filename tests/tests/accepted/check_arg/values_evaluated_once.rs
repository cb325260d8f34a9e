// values of a check that a second evaluation would not give again, and that use the user's `T`
use std::cell::RefCell;

use autograd_core::prelude::*;

thread_local! {
    static INPUT: RefCell<Option<Tensor<f64>>> = RefCell::new(Some(Tensor::from(vec![1.0])));
}

fn input() -> Tensor<f64> {
    INPUT.with(|input| input.borrow_mut().take().unwrap())
}

#[py_layer(check(x = input()))]
impl Doubled {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[derive(Clone, Copy, PartialEq)]
enum T {
    Hard,
    Soft,
}

fn weight(kind: T) -> f64 {
    if kind == T::Hard { 1.0 } else { 0.5 }
}

#[py_layer(elementwise, check(x = [2, 3], k = weight(T::Soft)))]
impl Weighted {
    fn forward(x: Real, k: f64) -> Real {
        x * x * k
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![2.0]);
    assert_eq!(Doubled::apply(&Weighted::apply(&x, weight(T::Hard))).to_vec(), [8.0]);
}
