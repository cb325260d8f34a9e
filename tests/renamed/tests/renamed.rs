//! The library under the name that Cargo.toml gives it: found by the macros, and said to them.

use ag::prelude::*;

/// The library through another crate's module.
mod vendor {
    pub(crate) use ag as tensors;
}

#[derive(Saved)]
struct Kept {
    x: Tensor<f64>,
}

/// The macro finds the name in Cargo.toml.
#[py_layer]
impl Found {
    type Saved = Kept;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(Kept { x: x.clone() });
        x.square()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * &ctx.saved_tensor().x * 2.0 }
    }
}

#[derive(Saved)]
#[saved(crate = crate::vendor::tensors)]
struct Named {
    x: Tensor<f64>,
}

/// The macro is told the path.
#[py_layer(crate = crate::vendor::tensors)]
impl Said {
    type Saved = Named;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(Named { x: x.clone() });
        x.square()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * &ctx.saved_tensor().x * 2.0
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

#[test]
fn ops_run() {
    for op in [Found::apply, Said::apply, SaidByName::apply] {
        let x = Tensor::from(vec![3.0]);
        x.set_stop_gradient(false);
        op(&x).sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), [6.0]);
    }
    let x = Tensor::from(vec![3.0]);
    assert_eq!(Found::with().x(&x).apply().to_vec(), [9.0]);
}
