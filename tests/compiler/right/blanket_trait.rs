// rustc: --test
// a trait over all types has methods of the names that expansions call
#![deny(warnings)]
#![allow(dead_code)]
use autograd_core::nn::{Linear, Module};
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

macro_rules! methods {
    ($($name:ident)*) => {
        trait Everything: Sized {
            $(fn $name(self) {})*
        }
        impl<T> Everything for T {}
    };
}

methods! {
    add again apply as_ref backward_func call clone_from context each enter entries expect finish for_duals from_iter
    get give gradient input into_iter iter jvp keep lend len lent list map mark name next node one ok optional
    output outputs pack primal pull push run saved set show skip start take tangent try_apply unpack unwrap user
    visit with
}

#[py_layer(check(x = [2, 3], xs = [[2], [2]], ys = [[1], [1]], b = [2]))]
impl Op {
    type Saved = Tensor<f64>;
    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        xs: &[Tensor<f64>],
        ys: [&Tensor<f64>; 2],
        b: Option<&Tensor<f64>>,
        #[default(2.0)] k: f64,
    ) -> (Tensor<f64>, usize) {
        let _ = (xs, ys, b);
        ctx.save_for_backward(x);
        (x * k, 1)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let _ = ctx.saved_tensor();
        Grads { x: dy * 2.0, xs: Vec::<Option<Tensor<f64>>>::new(), ys: [None::<Tensor<f64>>, None], b: Some(dy.clone()) }
    }
    fn jvp(
        _ctx: &JvpContext<Self>,
        _x: &Tensor<f64>,
        _xs: &[Tensor<f64>],
        _ys: &[Tensor<f64>],
        _b: Option<&Tensor<f64>>,
        dx: &Tensor<f64>,
        _dxs: &[Tensor<f64>],
        _dys: &[Tensor<f64>],
        _db: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        dx * 2.0
    }
}

#[py_layer(elementwise)]
impl Chosen {
    fn forward(x: Real, #[stop_gradient] mask: Mask, k: f64) -> Real { mask.select(x, x * k) }
    fn backward(mask: Mask, k: f64, dy: Real) -> Real { mask.select(dy, dy * k) }
}

scalar_op!(pub Line: y = x * 2.0, dx = dy * 2.0);

#[py_func]
impl Doubled {
    fn forward(x: ArrayViewD<'_, f64>) -> ArrayD<f64> { &x * 2.0 }
    fn backward(dy: ArrayViewD<'_, f64>) -> ArrayD<f64> { &dy * 2.0 }
}

#[derive(Saved)]
struct Parts {
    x: Tensor<f64>,
}

#[derive(Module)]
struct Net {
    layer: Linear<f64>,
}

#[test]
fn calls() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::with().x(&x).xs(&[]).ys([&x, &x]).b(None).apply();
    let _ = Line::with().x(&x).apply();
}
