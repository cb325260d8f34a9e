//! Why is there no gradient? The graph shows the reason, as text and as a drawing.
//!
//! `cargo run -p examples --bin explain -- graph.svg` writes the drawing too.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::{Graph, Tensor, detect_anomaly, explain, no_grad};

fn parameter(shape: [usize; 2]) -> Tensor<f64> {
    let tensor = Tensor::randn(shape) * 0.5;
    tensor.set_stop_gradient(false);
    tensor
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    autograd_core::seed(2023);
    let (w1, w2, skip) = (parameter([4, 8]), parameter([8, 3]), parameter([4, 3]));
    let x = Tensor::<f64>::randn([5, 4]);

    let hidden = x.matmul(&w1).tanh();
    // A mistake: the skip connection is detached.
    let scores = hidden.matmul(&w2) + x.matmul(&skip.detach());
    let penalty = w1.square().mean() + w2.square().mean();
    let loss = scores.cross_entropy(&Tensor::from([0_i64, 2, 1, 1, 0])) + penalty * 0.1;

    println!("w1: {}\n", explain(&loss, &w1));
    println!("skip: {}\n", explain(&loss, &skip));
    println!("x: {}\n", explain(&loss, &x));

    // Another mistake: the scale was computed under `no_grad`, whose scope ended long ago.
    let scale = no_grad().run(|| skip.square().mean()).sqrt();
    let scaled = (&scores / (scale + 1.0)).sum();
    println!("skip: {}\n", explain(&scaled, &skip));

    let graph =
        Graph::of(&[loss.into()]).named(&w1, "w1").named(&w2, "w2").named(&hidden, "hidden");
    println!("{}", graph.summary());
    println!("{}", graph.to_dot());
    if let Some(path) = std::env::args_os().nth(1) {
        std::fs::write(path, graph.to_svg())?;
    }

    // Why is there a NaN?
    let scope = detect_anomaly();
    let spread = (w1.min() - w1.square().mean()).sqrt();
    if let Err(error) = scope.check() {
        println!("{error}");
    }
    println!("{}", spread.item());
    Ok(())
}
