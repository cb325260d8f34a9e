//! A net of neurons that spike (leaky integrate and fire), trained with a surrogate gradient over time, which
//! is cut into windows (E. O. Neftci and others, 2019).

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::assert_close;
use autograd_core::nn::{Linear, Module, parameter};
use autograd_core::optim::{Adam, Optimizer};
use autograd_core::prelude::*;

const DECAY: f64 = 0.9;
const SHARPNESS: f64 = 10.0;

/// 1 above the threshold, and 0 below. Backward takes the slope of a fast sigmoid for that of the jump.
#[py_layer(elementwise, surrogate)]
impl Spike {
    fn forward(v: Real) -> Real {
        v.gt(1.0).select(1.0, 0.0)
    }

    fn backward(v: Real, dy: Real) -> Real {
        let s = 1.0 + SHARPNESS * (v - 1.0).abs();
        dy / (s * s)
    }
}

/// The membranes and spikes of a layer.
type State = (Tensor<f64>, Tensor<f64>);

/// A neuron that spiked is reset by 1; `recurrent` connects spikes with the next membranes.
fn step((v, spikes): &State, current: &Tensor<f64>, recurrent: &Tensor<f64>) -> State {
    let v = v * DECAY + current + spikes.matmul(recurrent) - spikes;
    let spikes = Spike::apply(&v);
    (v, spikes)
}

/// One neuron by hand: the loss and its derivatives by both weights, with the gradient cut after each window.
fn by_hand(x: &[f64], w: f64, recurrent: f64, window: usize) -> [f64; 3] {
    let (mut v, mut s) = (vec![0.0], vec![0.0]);
    for t in 0..x.len() {
        v.push(v[t] * DECAY + x[t] * w + s[t] * recurrent - s[t]);
        s.push(if v[t + 1] > 1.0 { 1.0 } else { 0.0 });
    }
    let [mut loss, mut dw, mut drecurrent, mut dv, mut ds] = [0.0; 5];
    for t in (0..x.len()).rev() {
        if (t + 1) % window == 0 {
            (dv, ds) = (0.0, 0.0);
        }
        loss += (s[t + 1] - 0.3_f64).powi(2);
        ds += 2.0 * (s[t + 1] - 0.3);
        let d = dv + ds / (1.0 + SHARPNESS * (v[t + 1] - 1.0_f64).abs()).powi(2);
        dw += d * x[t];
        drecurrent += d * s[t];
        (dv, ds) = (d * DECAY, d * (recurrent - 1.0));
    }
    [loss, dw, drecurrent]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    autograd_core::seed(8);
    let x = Tensor::<f64>::rand([60]).to_vec();
    let (w, recurrent) = (parameter(Tensor::from(0.4)), parameter(Tensor::from([[-0.2]])));
    for window in [60, 20, 7] {
        let mut state = (Tensor::zeros([1, 1]), Tensor::zeros([1, 1]));
        let mut total = 0.0;
        for part in x.chunks(window) {
            // The state goes on, its gradient does not.
            state = (state.0.detach(), state.1.detach());
            let mut loss = Tensor::from(0.0);
            for &x in part {
                state = step(&state, &(&w * x), &recurrent);
                loss += (&state.1 - 0.3).square().sum();
            }
            loss.backward()?;
            total += loss.item();
        }
        let [loss, dw, drecurrent] = by_hand(&x, 0.4, -0.2, window);
        assert!((loss - total).abs() < 1e-12);
        assert_close!(w.try_grad()?, Tensor::from(dw), rtol = 1e-10, atol = 1e-12);
        assert_close!(
            recurrent.try_grad()?,
            Tensor::from([[drecurrent]]),
            rtol = 1e-10,
            atol = 1e-12
        );
        println!("windows of {window}: loss {loss:.3}, gradients {dw:.3} {drecurrent:.3}");
        w.clear_grad();
        recurrent.clear_grad();
    }

    // Tells a slow input from a fast one.
    let recurrent = parameter(Tensor::<f64>::randn([16, 16]) * 0.1);
    let net = (Linear::<f64>::new(1, 16), recurrent, Linear::<f64>::new(16, 2));
    let mut adam = Optimizer::new(&net, Adam::new(0.02));
    let (mut hits, mut raster) = (0.0, Vec::new());
    for round in 0..40 {
        let kind = Tensor::<i64>::randint([16], 0, 2);
        let speed = (kind.cast::<f64>() * 0.3 + 0.2).unsqueeze(1);
        let zeros = || Tensor::<f64>::zeros([16, 16]);
        let (mut state, mut count) = ((zeros(), zeros()), zeros());
        raster.clear();
        for t in 0..50 {
            let x = (&speed * f64::from(t)).sin() + 1.0;
            state = step(&state, &net.0.forward(&x), &net.1);
            count += &state.1;
            raster.push(state.1.select(0, 0));
        }
        let score = net.2.forward(&(count * 0.1));
        score.cross_entropy(&kind).backward()?;
        adam.step()?;
        adam.clear_grad();
        if round >= 30 {
            hits += score.argmax(1).equal(&kind).cast::<f64>().mean().item() / 10.0;
        }
    }
    println!("{} parameters, more than 90 % right: {}", net.parameter_count(), hits > 0.9);
    let raster = Tensor::stack(&raster, 1).detach();
    examples::draw_image(&[("spikes of 16 neurons over 50 steps", &raster)])
}
