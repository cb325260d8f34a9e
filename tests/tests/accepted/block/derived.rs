// Saved structs, private types of a public op, attributes on the block.
#![deny(warnings, missing_docs, unsafe_code)]
//! Documentation is demanded.
use autograd_core::prelude::*;
use support::gradient;

#[derive(Saved)]
struct Parts<T: Float> {
    y: Tensor<T>,
    all: Vec<Tensor<T>>,
    maybe: Option<Tensor<T>>,
}

struct Private(f64);

/// Public, with private types.
#[py_layer]
#[derive(Debug)]
#[allow(clippy::needless_pass_by_value)]
impl<T: Float> Public<T> {
    type Saved = Parts<T>;
    type Attrs = Private;

    /// Documented.
    #[must_use]
    pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        let y = x * Self::FACTOR;
        ctx.save_for_backward(Parts { y: y.clone(), all: vec![x.clone()], maybe: None });
        ctx.set_attrs(Private(Self::helper()));
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let Parts { y, all, maybe } = ctx.saved_tensor();
        assert!(maybe.is_none() && all.len() == 1 && y.len() == 1);
        dy * ctx.attrs().0
    }

    const FACTOR: f64 = 2.0;

    fn helper() -> f64 {
        Self::FACTOR
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f32>::from(vec![3.0]);
    x.set_stop_gradient(false);
    Public::apply(&x).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
    fn debug<D: std::fmt::Debug>() {}
    debug::<Public<f32>>();
}
