// functions from the fragments of a macro: bodies, types, patterns, visibilities, lifetimes
use autograd_core::prelude::*;

macro_rules! op {
    ($vis:vis $name:ident, $t:ty, $pattern:pat, $default:expr, $forward:block, $backward:block) => {
        #[py_layer]
        impl $name {
            #[inline]
            $vis fn forward(
                _ctx: &mut ForwardContext<Self>,
                _x: &$t,
                #[default($default)] $pattern: (f64, f64),
            ) -> $t $forward

            fn backward(_ctx: &BackwardContext<Self>, _dy: &$t) -> $t $backward
        }
    };
}

macro_rules! with_names {
    ($name:ident, $x:ident, $dy:ident, $by:expr) => {
        #[py_layer]
        impl $name {
            fn forward<'a>(_ctx: &mut ForwardContext<Self>, $x: &'a Tensor<f64>) -> Tensor<f64> {
                $x * $by
            }

            fn backward(_ctx: &BackwardContext<Self>, $dy: &Tensor<f64>) -> Grads {
                Grads { $x: $dy * $by }
            }
        }
    };
}

op!(pub Constant, Tensor<f64>, (_, _), (1.0, 2.0), { Tensor::from(3.0) }, { Tensor::from(0.5) });
with_names!(Twice, x, dy, 2.0);
with_names!(Thrice, tensor, gradient, 1.0 + 2.0);

#[test]
fn compiles_and_runs() {
    let x = Tensor::from(1.0);
    x.set_stop_gradient(false);
    assert_eq!(Constant::apply(&x, (0.0, 0.0)).item(), 3.0);
    Thrice::apply(&Twice::apply(&x)).backward().unwrap();
    assert_eq!(x.grad().unwrap().item(), 6.0);
}
