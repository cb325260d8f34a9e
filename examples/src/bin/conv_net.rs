//! A small convolutional network with a custom op: parameters by name, training, a checkpoint on
//! disk, and a second run that continues from it.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use std::path::Path;

use autograd_core::nn::{BatchNorm2d, Conv2d, Dropout, Linear, Module};
use autograd_core::optim::{AdamW, Optimizer, clip_grad_norm};
use autograd_core::prelude::*;
use autograd_core::safetensors::SafeTensors;
use autograd_core::{Conv2dOptions, PoolOptions, Result};

/// `x sigmoid(x)`, with a hand-written gradient.
#[py_layer]
impl Silu {
    type Saved = Tensor;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor) -> Tensor {
        ctx.save_for_backward(x);
        x * x.sigmoid()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor) -> Tensor {
        let x = ctx.saved_tensor();
        let s = x.sigmoid();
        dy * &s * (1.0 + x * (1.0 - &s))
    }
}

/// A convolution with the layers that usually follow it.
#[derive(Module)]
struct Block {
    conv: Conv2d,
    norm: BatchNorm2d,
}

impl Block {
    fn new(channels: usize, outputs: usize) -> Self {
        let conv = Conv2d::new(channels, outputs, 3, Conv2dOptions::new().padding(1));
        Self { conv: conv.without_bias(), norm: BatchNorm2d::new(outputs) }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let x = Silu::apply(&self.norm.forward(&self.conv.forward(x)));
        x.max_pool2d(PoolOptions::new(2))
    }
}

#[derive(Module)]
struct Net {
    blocks: Vec<Block>,
    dropout: Dropout,
    head: Linear,
    #[module(skip)]
    flat: usize,
}

impl Net {
    fn new() -> Self {
        let blocks = vec![Block::new(1, 8), Block::new(8, 16)];
        let flat = 16 * 2 * 2;
        Self { blocks, dropout: Dropout::new(0.2), head: Linear::new(flat, 3), flat }
    }

    /// The scores of the three kinds, `[n, 3]`, for images `[n, 1, 8, 8]`.
    fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.blocks.iter().fold(x.clone(), |x, block| block.forward(&x));
        self.head.forward(&self.dropout.forward(&x.reshape([x.shape()[0], self.flat])))
    }
}

/// Noisy images of stripes in one of three directions, at a random position; and the directions.
fn pictures(n: usize) -> (Tensor, Tensor<i64>) {
    let kinds = Tensor::randint([n], 0, 3);
    let place = Tensor::randint([n], 0, 4);
    let ink = |(kind, place): (i64, i64)| {
        (0..64).map(move |at| {
            let (row, column) = (at / 8, at % 8);
            let along = [row, column, row + column][kind as usize] + place;
            if along % 4 < 2 { 1.0 } else { 0.0 }
        })
    };
    let each = kinds.to_vec().into_iter().zip(place.to_vec());
    let clean: Tensor = Tensor::from(each.flat_map(ink).collect::<Vec<f32>>());
    let noise = Tensor::normal([n, 1, 8, 8], 0.0, 0.3);
    (clean.reshape([n, 1, 8, 8]) + noise, kinds)
}

/// Trains and returns the last loss.
fn learn(net: &Net, adam: &mut Optimizer<AdamW>, steps: usize) -> Result<f32> {
    net.train();
    let mut last = f32::NAN;
    for _ in 0..steps {
        let (x, kinds) = pictures(32);
        let loss = net.forward(&x).cross_entropy(&kinds);
        loss.backward()?;
        clip_grad_norm(net, 1.0)?;
        adam.step()?;
        adam.clear_grad();
        last = loss.item();
    }
    Ok(last)
}

/// The share of new images that are classified correctly, in percent.
fn accuracy(net: &Net) -> f64 {
    net.eval();
    let (x, kinds) = pictures(200);
    let right = no_grad().run(|| net.forward(&x)).argmax(1).equal(&kinds);
    right.cast::<f64>().mean().item() * 100.0
}

fn optimizer(net: &Net) -> Optimizer<AdamW> {
    let rule = AdamW::new(0.01).weight_decay(0.05);
    // Scales and shifts have no weight decay.
    let plain = |name: &str| name.ends_with("bias") || name.contains("norm");
    Optimizer::new(net, rule).group(plain, rule.weight_decay(0.0))
}

fn save(path: &Path, net: &Net, adam: &Optimizer<AdamW>) -> Result<()> {
    let mut file = SafeTensors::new();
    file.insert_under("net", net.state_dict());
    file.insert_under("adam", adam.state_dict());
    file.save(path)
}

fn main() -> Result<()> {
    autograd_core::seed(2023);
    let net = Net::new();
    for (name, tensor) in net.named_parameters() {
        println!("{name:22} {:?}", tensor.shape());
    }
    println!("{} numbers are learned\n", net.parameter_count());

    let mut adam = optimizer(&net);
    println!("guessing: at most half are right: {}", accuracy(&net) <= 50.0);
    learn(&net, &mut adam, 40)?;
    let path = std::env::temp_dir().join(format!("conv_net-{}.safetensors", std::process::id()));
    save(&path, &net, &adam)?;
    autograd_core::seed(7);
    let loss = learn(&net, &mut adam, 20)?;
    println!("trained:  more than 95 % are right: {}", accuracy(&net) > 95.0);

    // A new network with other weights, until it has loaded the file.
    let again = Net::new();
    let mut adam = optimizer(&again);
    let file = SafeTensors::load(&path)?;
    again.load_state_dict(&file.under("net"))?;
    adam.load_state_dict(&file.under("adam"))?;
    autograd_core::seed(7);
    println!("resumed:  the same loss to the last bit: {}", learn(&again, &mut adam, 20)? == loss);

    let error = Linear::<f32>::new(2, 3).load_state_dict(&file.under("net.head"));
    println!("\na file of another model:\n{}", error.expect_err("the shapes differ"));
    std::fs::remove_file(path).expect("the file is there");
    Ok(())
}
