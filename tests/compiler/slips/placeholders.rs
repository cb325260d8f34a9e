// says: the placeholder `_` is not allowed
use autograd_core::prelude::*;
#[py_layer]
impl Op {
    type Attrs = Option<_>;
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, k: Option<_>) -> Result<Tensor<f64>, str> {
        ctx.set_attrs(k);
        todo!()
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let _ = ctx.attrs();
        dy * 2.0
    }
}
fn main() {}
//- plain
struct Tensor<T>(T);
struct Op;
trait Keeps { type Attrs; }
impl Keeps for Op { type Attrs = Option<_>; }
impl Op {
    fn forward(x: &Tensor<f64>, k: Option<_>) -> Result<Tensor<f64>, str> { todo!() }
    fn backward(dy: &Tensor<f64>) -> Tensor<f64> { todo!() }
}
fn main() {}
