// traits with the methods of the expansion, for every type
use autograd_core::prelude::*;

#[allow(dead_code)]
trait Everything {
    fn input(&self) {}
    fn output(&self) {}
    fn give(&self) {}
    fn gradient(&self) {}
    fn answer(&self) {}
    fn lend(&self) {}
    fn take(&self) {}
    fn saved(&self) {}
    fn context(&self) {}
    fn apply(&self) {}
}
impl<T: ?Sized> Everything for T {}

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, n: usize) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x * n as f64
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    Op::apply(&x, 2).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [3.0]);
}
