// aliases of `Result` and of the context, by their names
#![deny(warnings)]
use autograd_core::prelude::*;

type MyResult<T> = Result<T, String>;
type Ctx<'a> = ForwardContext<'a, Op>;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut Ctx<'_>, x: &Tensor<f64>) -> MyResult<Tensor<f64>> { Ok(x * 2.0) }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> MyResult<Tensor<f64>> { Ok(dy * 2.0) }
}

fn main() {
    let _ = Op::apply(&Tensor::<f64>::from(1.0));
}
