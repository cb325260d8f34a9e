// a field of `Grads` for a parameter that is reported itself
use autograd_core::prelude::*;

#[py_layer]
impl ByValue {
    fn forward(_ctx: &mut ForwardContext<Self>, x: Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        x + w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy.clone(), w: dy.clone() }
    }
}

#[py_layer]
impl Optional {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: Option<Tensor<f64>>,
    ) -> Tensor<f64> {
        x + w.unwrap()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy.clone(), w: Some(dy.clone()) }
    }
}

#[py_layer]
impl Marked {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[stop_gradients] w: &Tensor<f64>,
    ) -> Tensor<f64> {
        x + w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy.clone(), w: dy.clone() }
    }
}

#[py_layer]
impl Integers {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<i32>, w: &Tensor<f64>) -> Tensor<f64> {
        x.cast::<f64>() + w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy.clone(), w: dy.clone() }
    }
}

fn main() {}
