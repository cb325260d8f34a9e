// rustc: -Ddeprecated
// says: use of deprecated associated function `_::<impl Func>::call`
// says: use of deprecated associated function `_::_::<impl Line>::apply`
use autograd_core::scalar_op;
use autograd_core::prelude::Tensor;
use autograd_core::static_graph::{Variable, py_func};
use ndarray::{ArrayD, ArrayViewD};
scalar_op!(#[deprecated] Line: y = x * 2.0, dx = dy * 2.0);
#[py_func]
impl Func {
    #[deprecated]
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> { &x * 2.0 }
}
#[py_func]
#[deprecated]
impl Block {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> { &x * 2.0 }
}
fn main() {
    let _ = (Line::apply(&Tensor::<f64>::from(1.0)), |x: &Variable| Func::call(x, x));
}
//- plain
struct Line;
impl Line {
    #[deprecated]
    fn apply() {}
}
#[deprecated]
struct Block;
impl Block {}
fn main() {
    Line::apply();
}
