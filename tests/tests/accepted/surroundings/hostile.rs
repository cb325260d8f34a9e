// No prelude, shadowed names, macro-made ops, ops in functions, raw identifiers.
#![no_implicit_prelude]
#![allow(non_camel_case_types, dead_code)]
extern crate autograd_core;
extern crate std as real_std;
use ::std::convert::From as _;
use autograd_core::{BackwardContext, ForwardContext, Tensor, py_layer};

struct Option;
struct Result;
struct Some;
struct None;
struct Vec;
struct Box;
mod core {}
mod std {}
trait Fn {}
struct bool;

#[py_layer]
impl Plain {
    fn forward(_ctx: &mut ForwardContext<Self>, r#type: &Tensor<f64>, r#fn: f64) -> Tensor<f64> {
        r#type * r#fn
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { r#type: dy * 2.0 }
    }
}

macro_rules! make {
    ($name:ident, $t:ty, $by:expr) => {
        #[py_layer(allow(unread_saved))]
        impl $name {
            type Saved = $t;
            fn forward(ctx: &mut ForwardContext<Self>, x: &$t) -> $t {
                ctx.save_for_backward(x);
                x * $by
            }
            fn backward(_ctx: &BackwardContext<Self>, dy: &$t) -> $t {
                dy * $by
            }
        }
    };
}
make!(Twice, Tensor<f64>, 2.0);
make!(Thrice, Tensor, 3.0);

#[::core::prelude::v1::test]
fn compiles_and_runs() {
    #[py_layer]
    impl Local {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 5.0
        }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
            Grads { x: dy * 5.0 }
        }
    }
    let x = Tensor::<f64>::from(2.0);
    x.set_stop_gradient(false);
    real_std::assert!(Plain::with().r#fn(2.0).r#type(&x).apply().backward().is_ok());
    real_std::assert!(Twice::apply(&x).backward().is_ok());
    real_std::assert!(Local::apply(&x).backward().is_ok());
    real_std::assert_eq!(x.grad().unwrap().item(), 9.0);
    let _ = Thrice::apply(&Tensor::<f32>::from(1.0));
}
