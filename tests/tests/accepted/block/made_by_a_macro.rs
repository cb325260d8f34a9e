// ops made by `macro_rules!`
use autograd_core::prelude::*;
use support::{gradient, leaf};

macro_rules! op {
    ($(#[$attr:meta])* $name:ident($x:ident: $t:ty) = $forward:expr, $d:ident => $backward:expr) => {
        $(#[$attr])*
        #[py_layer]
        impl $name {
            fn forward(_ctx: &mut ForwardContext<Self>, $x: &$t) -> $t {
                $forward
            }

            fn backward(_ctx: &BackwardContext<Self>, $d: &$t) -> Grads {
                Grads { $x: $backward }
            }
        }
    };
}

op!(Double(x: Tensor<f64>) = x * 2.0, dy => dy * 2.0);
op!(
    /// Documented.
    Triple(v: Tensor<f64>) = v * 3.0, d => d * 3.0
);

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    Triple::apply(&Double::apply(&x)).sum().backward().unwrap();
    assert_eq!(gradient(&x), [6.0]);
}
