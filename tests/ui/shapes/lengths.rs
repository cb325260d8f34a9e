// lengths that nothing determines, or that are none
use autograd_core::prelude::*;

#[py_layer(no_grad, shapes(x: [n, channels] -> [n, chanels, p]))]
impl Unknown {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[py_layer(no_grad, shapes(x: [batch.., n] -> [batches.., n, other..]))]
impl TwoGroups {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[py_layer(no_grad, shapes(x: [batch.., n] -> [batches.., n]))]
impl UnknownGroup {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[py_layer(no_grad, shapes(x: [n], bias: [b.., m] -> [b.., m]))]
impl OnlyOptional {
    fn forward(
        _: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        bias: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        bias.map_or_else(|| x.clone(), |bias| x + bias)
    }
}

#[py_layer(no_grad, shapes(x: [n * m, k / 2, _ + 1, h / 0, scale] -> [n, k]))]
impl NotDetermined {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, scale: f64) -> Tensor<f64> {
        x * scale
    }
}

#[py_layer(no_grad, shapes(x: [b.., n] -> [other.., n]))]
impl NoGroup {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[py_layer(no_grad, shapes(x: [n, 2 ^ n], y: [n, "three"], z: [n +, , k] -> [n]))]
impl NoLengths {
    fn forward(
        _: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        y: &Tensor<f64>,
        z: &Tensor<f64>,
    ) -> Tensor<f64> {
        x + y + z
    }
}

#[py_layer(no_grad, shapes(x: [.., n] -> [n]))]
impl NoLength {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[py_layer(no_grad, shapes(x: [b.., n], y: [b] -> [n]))]
impl GroupAndLength {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {
        x + y
    }
}

fn main() {}
