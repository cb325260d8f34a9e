// docs of a parameter are shown where it is given by name
use autograd_core::prelude::*;

/// An op.
#[py_layer]
impl Scale {
    /// Scales.
    pub fn forward(
        /// Not needed.
        _ctx: &mut ForwardContext<Self>,
        /// What is scaled.
        x: &Tensor<f64>,
        /// By how much.
        #[default(2.0)]
        by: f64,
    ) -> Tensor<f64> {
        x * by
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        /// The gradient.
        dy: &Tensor<f64>,
    ) -> Tensor<f64> {
        dy * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::from(vec![1.0, 2.0]);
    assert_eq!(Scale::with().x(&x).apply().to_vec(), [2.0, 4.0]);
}
