//! Ops of another crate ([`example_ops`]), used as the library's own: in a model, by name, for both
//! element types, with their errors.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::nn::{Linear, Module, parameter};
use autograd_core::optim::{Adam, Optimizer};
use autograd_core::{Float, Tensor, gradcheck, hessian};
use example_ops::{Mish, NotSquare, ScaledTanh, Trace};

#[derive(Module)]
struct Net<T: Float> {
    hidden: Linear<T>,
    scale: Tensor<T>,
    out: Linear<T>,
}

impl<T: Float> Net<T> {
    fn new() -> Self {
        Self {
            hidden: Linear::new(1, 16),
            scale: parameter(Tensor::ones([16])),
            out: Linear::new(16, 1),
        }
    }

    fn forward(&self, x: &Tensor<T>) -> Tensor<T> {
        let h = ScaledTanh::with().x(&self.hidden.forward(x)).scale(&self.scale).apply();
        self.out.forward(&Mish::apply(&h))
    }
}

/// Fits a parabola; returns the last loss.
fn train<T: Float>() -> autograd_core::Result<f64> {
    autograd_core::seed(5);
    let net = Net::<T>::new();
    let x = Tensor::<T>::linspace(-1.0, 1.0, 32).unsqueeze(1);
    let target = x.square();
    let mut adam = Optimizer::new(&net, Adam::new(0.02));
    let mut last = 0.0;
    for _ in 0..200 {
        let loss = net.forward(&x).mse_loss(&target);
        loss.backward()?;
        adam.step()?;
        adam.clear_grad();
        last = loss.item().into_f64();
    }
    Ok(last)
}

fn main() -> autograd_core::Result<()> {
    println!("loss with f32 below 0.001: {}", train::<f32>()? < 1e-3);
    println!("loss with f64 below 0.001: {}", train::<f64>()? < 1e-3);

    // The crate's own tests check the gradients. A user can do it again, composed with other ops.
    let (x, scale) = (Tensor::<f64>::randn([4, 3]), Tensor::<f64>::randn([3]));
    gradcheck(|t| Mish::apply(&ScaledTanh::apply(&t[0].sin(), &t[1])), &[x, scale])?;
    println!("gradcheck passes");

    // Closed form: the Hessian of tr(X X) has a 2 where the indices are exchanged.
    let square = |x: &Tensor<f64>| Trace::apply(&x.matmul(x)).expect("a square matrix");
    let second = hessian(square, &Tensor::<f64>::randn([2, 2]))?.reshape([4, 4]);
    println!("{:?}", second.to_vec().chunks(4).collect::<Vec<_>>());

    // An op's own error keeps its type, misuse of the call is the library's error.
    assert_eq!(Trace::apply(&Tensor::<f64>::ones([2, 3])).unwrap_err(), NotSquare(vec![2, 3]));
    let error =
        ScaledTanh::try_apply(&Tensor::<f32>::ones([2, 3]), &Tensor::ones([2])).unwrap_err();
    println!("{error}");
    Ok(())
}
