// a list of tensors in each form, of the same two tensors
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Slice {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[Tensor<f64>]) -> Tensor<f64> {
        &xs[0] * &xs[1]
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy * 2.0, dy * 5.0]
    }
}

#[py_layer]
impl References {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[&Tensor<f64>]) -> Tensor<f64> {
        xs[0] * xs[1]
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy * 2.0, dy * 5.0]
    }
}

#[py_layer]
impl ReferenceToVec {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &Vec<Tensor<f64>>) -> Tensor<f64> {
        &xs[0] * &xs[1]
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy * 2.0, dy * 5.0]
    }
}

#[py_layer]
impl ReferenceToArray {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[Tensor<f64>; 2]) -> Tensor<f64> {
        &xs[0] * &xs[1]
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy * 2.0, dy * 5.0]
    }
}

#[test]
fn compiles_and_runs() {
    let ops: [fn(&Tensor<f64>, &Tensor<f64>) -> Tensor<f64>; 4] = [
        |x, w| Slice::apply(&[x.clone(), w.clone()]),
        |x, w| References::apply(&[x, w]),
        |x, w| ReferenceToVec::apply(&vec![x.clone(), w.clone()]),
        |x, w| ReferenceToArray::apply(&[x.clone(), w.clone()]),
    ];
    for op in ops {
        let (x, w) = (leaf(&[3.0]), leaf(&[4.0]));
        op(&x, &w).sum().backward().unwrap();
        assert_eq!((gradient(&x), gradient(&w)), (vec![2.0], vec![5.0]));
    }
}
