//! Layers as users write them: the contract's programs, then the open cases B and C.

use autograd_core::prelude::*;

/// Hyperbolic tangent with a hand-written gradient.
#[py_layer]
impl CusTanh {
    type Saved = Tensor<f64>;

    pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let y = ctx.saved_tensor();
        dy * (1.0 - y.square())
    }
}

#[py_layer]
impl ScaledTanh {
    type Saved = (Tensor<f64>, Tensor<f64>);
    type Attrs = fn(&Tensor<f64>) -> Tensor<f64>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        scale: &Tensor<f64>,
        func1: impl Fn(&Tensor<f64>) -> Tensor<f64>,
        #[default(Tensor::square)] func2: fn(&Tensor<f64>) -> Tensor<f64>,
    ) -> (Tensor<f64>, Vec<usize>) {
        let y = func1(x);
        ctx.set_attrs(func2);
        ctx.save_for_backward((&y, scale));
        (&y * scale, y.shape().to_vec())
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (y, scale) = ctx.saved_tensor();
        let func2 = ctx.attrs();
        Grads { x: dy * scale * (1.0 - func2(y)), scale: dy * y }
    }
}

#[test]
fn the_contracts_first_program() {
    autograd_core::seed(2023);
    let data = Tensor::<f64>::randn([2, 3]);
    data.set_stop_gradient(false);
    let z = CusTanh::apply(&data);
    z.mean().backward().unwrap();
    let expected = "\
Tensor(shape=[2, 3], dtype=float64, stop_gradient=true,
[[0.16604150, 0.05858341, 0.14051214],
 [0.15677770, 0.01564609, 0.02991660]])";
    assert_eq!(data.grad().unwrap().to_string(), expected);
}

#[test]
fn the_contracts_second_program() {
    let x = Tensor::<f64>::from(vec![0.5, -1.0]);
    let scale = Tensor::<f64>::from(vec![2.0, 3.0]);
    x.set_stop_gradient(false);
    scale.set_stop_gradient(false);
    let (z, shape) = ScaledTanh::with().scale(&scale).x(&x).func1(Tensor::tanh).apply();
    assert_eq!(shape, [2]);
    z.sum().backward().unwrap();
    let y: Vec<f64> = [0.5f64, -1.0].iter().map(|x| x.tanh()).collect();
    let close = |a: &[f64], b: [f64; 2]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(close(&x.grad().unwrap().to_vec(), [2.0 * (1.0 - y[0] * y[0]), 3.0 * (1.0 - y[1] * y[1])]));
    assert!(close(&scale.grad().unwrap().to_vec(), [y[0], y[1]]));
}
