//! Training a net for weights of 3 bits: rounding has the gradient of a straight line, and the step of the
//! quantizer is learned (S. K. Esser and others, 2020).

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::nn::{Linear, Module, parameter};
use autograd_core::optim::{Adam, Optimizer};
use autograd_core::prelude::*;
use autograd_core::{assert_close, grad};

/// The nearest of the multiples `-most ..= most` of `step`. Within that range, backward takes rounding for the
/// identity; beyond, the value depends on the step alone.
#[py_layer(elementwise, surrogate)]
impl FakeQuantize {
    fn forward(x: Real, step: Real, #[default(3.0)] most: f64) -> Real {
        (x / step).round().clamp(-most, most) * step
    }

    fn backward(x: Real, step: Real, most: f64, dy: Real) -> Grads {
        let scaled = x / step;
        let inside = scaled.abs().le(most);
        let slope = inside.select(scaled.round() - scaled, scaled.clamp(-most, most));
        Grads { x: inside.select(dy, 0.0), step: dy * slope }
    }
}

#[derive(Module)]
struct Net {
    layers: [Linear<f64>; 2],
    /// The steps of both layers' weights.
    steps: [Tensor<f64>; 2],
    #[module(skip)]
    quantized: bool,
}

impl Net {
    fn new(quantized: bool) -> Self {
        let layers = [Linear::new(1, 24), Linear::new(24, 1)];
        // The start that the paper proposes.
        let steps = [0, 1].map(|i: usize| {
            let size = layers[i].weight.abs().mean().item();
            parameter(Tensor::from(2.0 * size / 3.0_f64.sqrt()))
        });
        Self { layers, steps, quantized }
    }

    fn weight(&self, i: usize) -> Tensor<f64> {
        let weight = &self.layers[i].weight;
        match self.quantized {
            true => FakeQuantize::with().x(weight).step(&self.steps[i]).apply(),
            false => weight.clone(),
        }
    }

    fn forward(&self, x: &Tensor<f64>) -> Tensor<f64> {
        let bias = |i: usize| self.layers[i].bias.as_ref();
        x.linear(&self.weight(0), bias(0)).tanh().linear(&self.weight(1), bias(1))
    }

    fn train(&self, x: &Tensor<f64>, target: &Tensor<f64>) -> autograd_core::Result<()> {
        let mut adam = Optimizer::new(self, Adam::new(0.01));
        for _ in 0..300 {
            self.forward(x).mse_loss(target).backward()?;
            adam.step()?;
            adam.clear_grad();
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The gradients of the paper's formula, by hand.
    let (x, step) = (Tensor::from([-2.0, -0.7, 0.1, 0.9, 1.4]), Tensor::from(0.4));
    for t in [&x, &step] {
        t.set_stop_gradient(false);
    }
    let y = FakeQuantize::with().x(&x).step(&step).apply();
    println!("{:.1?} becomes {:.1?}", x.to_vec(), y.to_vec());
    let grads = grad(&[&y.sum()], &[&x, &step])?;
    assert_close!(grads[0], Tensor::from([0.0, 1.0, 1.0, 1.0, 0.0]), rtol = 0.0, atol = 0.0);
    let parts = [-3.0, -2.0 + 1.75, 0.0 - 0.25, 2.0 - 2.25, 3.0];
    assert_close!(grads[1], Tensor::from(parts.iter().sum::<f64>()), rtol = 1e-12, atol = 1e-12);
    println!("the gradients are those of the paper");

    let x = Tensor::<f64>::linspace(-1.0, 1.0, 48).unsqueeze(1);
    let target = (&x * 4.0).sin();
    let error = |net: &Net| net.forward(&x).mse_loss(&target).item();

    autograd_core::seed(3);
    let mut rounded = Net::new(false);
    rounded.train(&x, &target)?;
    let exact = error(&rounded);
    // Rounded afterwards, with the steps that cover each layer's range.
    rounded.quantized = true;
    for (layer, step) in rounded.layers.iter().zip(&mut rounded.steps) {
        *step = layer.weight.abs().max().detach() / 3.0;
    }
    autograd_core::seed(3);
    let trained = Net::new(true);
    trained.train(&x, &target)?;

    let values = trained.weight(0) / &trained.steps[0];
    let distinct = values.detach().flatten().unique().0.len();
    println!("weights have at most 7 values: {}", distinct <= 7);
    let errors = [exact, error(&rounded), error(&trained)];
    println!("64 bits fit below 0.01: {}", errors[0] < 0.01);
    println!(
        "trained for 3 bits, the error is at most a third of that of rounding: {}",
        errors[2] * 3.0 < errors[1]
    );
    let curve = |y: Tensor<f64>| x.to_vec().into_iter().zip(y.to_vec()).collect::<Vec<_>>();
    examples::draw_curves(
        "A sine by weights of 3 bits",
        &[
            ("target", curve(target.clone())),
            ("rounded after training", curve(rounded.forward(&x))),
            ("trained for 3 bits", curve(trained.forward(&x))),
        ],
    )
}
