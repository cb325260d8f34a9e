// says: consider introducing a named lifetime parameter
use autograd_core::prelude::*;
#[py_layer]
impl Summed {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, by: impl Iterator<Item = &f64>) -> Tensor<f64> {
        x * by.sum::<f64>()
    }
    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
}
fn main() {
    let x = Tensor::from([1.0]);
    let _ = Summed::apply(&x, [1.0].iter());
    let _ = Summed::with().x(&x).by([1.0].iter()).apply();
}
//- plain
struct Tensor<T>(T);
fn forward(x: &Tensor<f64>, by: impl Iterator<Item = &f64>) -> Tensor<f64> { todo!() }
fn main() {}
