//! Fits a curve with an op whose gradient is written by hand, on all ranks.
//!
//! ```sh
//! mpirun -n 2 cargo run --release --example own_op
//! ```

use autograd_core::nn::{Module, parameter};
use autograd_core::optim::{Adam, Optimizer};
use autograd_core::prelude::*;
use autograd_mpi::{DataParallel, Result, Shards, World};

/// `amplitude * sin(frequency * x)`, elementwise.
#[py_layer]
impl Wave {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

    pub fn forward(
        ctx: &mut ForwardContext<Self>,
        #[stop_gradient] x: &Tensor<f64>,
        amplitude: &Tensor<f64>,
        frequency: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, amplitude, frequency));
        amplitude * (x * frequency).sin()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, amplitude, frequency) = ctx.saved_tensor();
        let angle = x * frequency;
        Grads {
            amplitude: (dy * angle.sin()).sum(),
            frequency: (dy * amplitude * angle.cos() * x).sum(),
        }
    }
}

#[derive(Module)]
struct Curve {
    amplitude: Tensor<f64>,
    frequency: Tensor<f64>,
}

fn fit(world: &World) -> Result<()> {
    autograd_core::seed(1);
    let x = Tensor::<f64>::linspace(0.0, 3.0, 300);
    let y = (&x * 2.0).sin() * 1.5;
    let curve =
        Curve { amplitude: parameter(Tensor::from(1.0)), frequency: parameter(Tensor::from(1.7)) };
    let mut adam = Optimizer::new(&curve, Adam::new(0.02));
    let mut parallel = DataParallel::new(world, &curve)?.reproducible(10);
    let shards = Shards { rows: x.len(), batch: 60, seed: 1 };
    for epoch in 0..100 {
        let mut loss = 0.0;
        for rows in parallel.epoch(&shards, epoch) {
            let report = parallel.step(&rows, |rows| {
                let x = x.index_select(0, rows);
                Wave::apply(&x, &curve.amplitude, &curve.frequency)
                    .try_mse_loss(&y.index_select(0, rows))
            })?;
            adam.step()?;
            adam.clear_grad();
            loss = report.loss;
        }
        if epoch % 20 == 0 {
            world.on_root(|| println!("epoch {epoch}: loss {loss:e}"));
        }
    }
    let (a, f) = (curve.amplitude.item(), curve.frequency.item());
    world.on_root(|| println!("{a} * sin({f} * x), on {} ranks", world.size()));
    Ok(())
}

fn main() -> Result<()> {
    World::init()?.run(fit)
}
