// a reference, a number and a tensor of another element type in `Grads { .. }`
use autograd_core::prelude::*;

#[py_layer]
impl Borrowed {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        x + w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy, w: dy.clone() }
    }
}

#[py_layer]
impl Number {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        x + w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy.clone(), w: 0.0 }
    }
}

#[py_layer]
impl<T: Float> Generic<T> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>, w: &Tensor<T>) -> Tensor<T> {
        x + w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Grads {
        Grads { x: dy.clone(), w: dy.cast::<f32>() }
    }
}

#[py_layer]
impl Fallible {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        x + w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> autograd_core::Result<Grads> {
        let x = dy;
        Ok(Grads { x, w: dy.clone() })
    }
}

fn main() {}
