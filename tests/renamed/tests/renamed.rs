//! The library under another name, and through another crate's module: every form is told where it is.

use ag::nn::{Linear, Module};
use ag::prelude::*;
use ag::static_graph::{Program, py_func};
use ndarray::{ArrayD, ArrayViewD};

/// The library through another crate's module.
mod vendor {
    pub(crate) use ag as tensors;
}

#[derive(Saved)]
#[saved(crate = crate::vendor::tensors)]
struct Kept {
    x: Tensor<f64>,
}

#[derive(Module)]
#[module(crate = ag)]
struct Net {
    layer: Linear<f64>,
    #[module(skip)]
    width: usize,
}

#[py_layer(crate = crate::vendor::tensors)]
impl Said {
    type Saved = Kept;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(Kept { x: x.clone() });
        x.square()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * &ctx.saved_tensor().x * 2.0 }
    }
}

#[py_layer(crate = ag)]
impl SaidByName {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 6.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 6.0
    }
}

#[py_layer(elementwise, crate = ag)]
impl Formula {
    fn forward(x: Real) -> Real {
        x * 6.0
    }
}

ag::scalar_op!(Line: y = x * 6.0, dx = dy * 6.0, crate = crate::vendor::tensors);

#[py_func(crate = ag)]
impl Doubled {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        &x * 2.0
    }
}

#[test]
fn ops_run() {
    let ops: [fn(&Tensor<f64>) -> Tensor<f64>; 4] =
        [Said::apply, SaidByName::apply, Formula::apply, Line::apply];
    for op in ops {
        let x = Tensor::from(vec![3.0]);
        x.set_stop_gradient(false);
        op(&x).sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), [6.0]);
    }
    let x = Tensor::from(vec![3.0]);
    assert_eq!(Said::with().x(&x).apply().to_vec(), [9.0]);
    assert_eq!(Line::with().x(&x).apply().to_vec(), [18.0]);
}

#[test]
fn modules_and_operators_exist() {
    let net = Net { layer: Linear::new(2, 3), width: 3 };
    assert_eq!(net.parameters().len(), 2);
    assert_eq!(net.width, 3);
    let _ = (Doubled::call, Program::new());
}
