// lines whose outputs are not those of `forward`, and lines that are none
use autograd_core::prelude::*;

#[py_layer(no_grad, shapes(x: [n, k] -> [n]))]
impl TooFew {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, usize) {
        (x.clone(), 1)
    }
}

#[py_layer(no_grad, shapes(x: [n, k] -> ([n], [n])))]
impl Plain {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, usize) {
        (x.clone(), 1)
    }
}

#[py_layer(no_grad, shapes(x: [n, k] -> ([n], [[n]; k])))]
impl Lists {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Vec<Tensor<f64>>, Tensor<f64>) {
        (vec![x.clone()], x.clone())
    }
}

#[py_layer(no_grad, shapes(x: [n, k]))]
impl NoArrow {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[py_layer(no_grad, shapes)]
impl NoLine {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[py_layer(no_grad, shapes(x: [n] -> n))]
impl NoShape {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[py_layer(no_grad, shapes(x: [n] -> [n]), shapes(x: [n] -> [n]))]
impl Twice {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[py_layer(no_grad, shapes(x: [n] -> ))]
impl NoOutput {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[py_layer(elementwise, shapes(x: [n] -> [n]))]
impl Elementwise {
    fn forward(x: Real) -> Real {
        x * 2.0
    }
}

#[py_layer(no_grad, shapes(x: (n, k) -> [n]))]
impl InParentheses {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[py_layer(no_grad, shapes(x: [n] -> [n], [n]))]
impl WithoutParentheses {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (x * 2.0, x * 3.0)
    }
}

#[py_layer(no_grad, shapes(x: [n] -> [n], y: [n]))]
impl InputAfterArrow {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {
        x + y
    }
}

fn main() {}
