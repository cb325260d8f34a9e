// element types and plain types of the user's own, in public ops
#![deny(warnings, missing_docs)]
//! Ops.
use autograd_core::prelude::*;

/// Money.
pub type Price = f64;

/// What is done with it.
#[derive(Clone, Copy)]
pub struct Config<const N: usize> {
    /// How often.
    pub times: [f64; N],
}

/// An op.
#[py_layer]
impl Op {
    /// Computes it.
    pub fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<Price>,
        list: &[Tensor<crate::Price>],
        config: Config<2>,
    ) -> Result<(Tensor<Price>, Vec<Tensor<Price>>, Config<2>), String> {
        Ok((x * config.times[0], list.to_vec(), config))
    }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<Price>, ds: &[Tensor<Price>]) -> Grads {
        Grads { x: dy * 2.0, list: ds.to_vec() }
    }
}

/// A formula.
#[py_layer(elementwise)]
impl Formula {
    /// Computes it.
    pub fn forward(x: Real, config: Config<1>) -> Real { x * config.times[0] }
    fn backward(dy: Real, config: Config<1>) -> Real { dy * config.times[0] }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, &[x.clone()], Config { times: [1.0; 2] });
    let _ = Op::with().config(Config { times: [1.0; 2] }).x(&x).list(&[x.clone()]).apply();
    let _ = Formula::with().config(Config { times: [1.0] }).x(&x).apply();
    assert!(Formula::check_backward(Config { times: [1.0] }).is_ok());
}
