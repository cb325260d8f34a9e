// lines whose inputs are not those of `forward`
use autograd_core::prelude::*;

#[py_layer(no_grad, shapes(x: [n, k], wieght: [k] -> [n]))]
impl Misspelt {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, weight: &Tensor<f64>) -> Tensor<f64> {
        x.matmul(weight)
    }
}

#[py_layer(no_grad, shapes(x: [n, k] -> [n]))]
impl Missing {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        x.matmul(w)
    }
}

#[py_layer(no_grad, shapes(x: [n], x: [n], k: [n] -> [n]))]
impl TwiceAndPlain {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, k: f64) -> Tensor<f64> {
        x * k
    }
}

#[py_layer(no_grad, shapes(xs: [n], x: [[n]; 2] -> [n]))]
impl Lists {
    fn forward(_: &mut ForwardContext<Self>, xs: &[&Tensor<f64>], x: &Tensor<f64>) -> Tensor<f64> {
        x + xs[0]
    }
}

#[py_layer(no_grad, shapes(x = [n], y, z: [a.. & b..], [n] -> [n]))]
impl Malformed {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {
        x + y
    }
}

#[py_layer(no_grad, shapes(x: [a.. & b..], y: [b..] -> [b..]))]
impl BroadcastInput {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {
        x + y
    }
}

#[py_layer(no_grad, shapes(xs: [[n], [n]], , -> [n]))]
impl ListOfTwoShapes {
    fn forward(_: &mut ForwardContext<Self>, xs: &[&Tensor<f64>]) -> Tensor<f64> {
        xs[0] + xs[1]
    }
}

#[py_layer(check(x = _))]
impl CheckWithoutLine {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
