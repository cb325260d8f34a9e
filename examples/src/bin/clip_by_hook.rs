//! Hooks: a gradient is limited during backward, and observed at a node.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::{AnyTensor, HookResult, Result, Tensor};

/// Scales a gradient down to length 1 if it is longer.
fn clip(grad: &Tensor<f64>) -> HookResult<Option<Tensor<f64>>> {
    let length = grad.norm().item();
    Ok((length > 1.0).then(|| grad / length))
}

fn main() -> Result<()> {
    // A recurrence that explodes: backward through 20 steps multiplies by 2 each time.
    let w = Tensor::from(2.0);
    w.set_stop_gradient(false);
    let unrolled = |clipped: bool| -> Result<Tensor<f64>> {
        let mut h = Tensor::from([0.1, -0.1]);
        for _ in 0..20 {
            h = &h * &w;
            if clipped {
                let _ = h.register_hook(clip)?;
            }
        }
        Ok(h.square().sum())
    };
    for clipped in [false, true] {
        unrolled(clipped)?.backward()?;
        let how = if clipped { "clipped" } else { "as it is" };
        println!("{how}: dw = {:.6e}", w.grad().expect("w takes part").item());
        w.clear_grad();
    }

    // Hooks on a node see the gradients that its rule receives and computes.
    let y = (&w * Tensor::from([1.0, 2.0])).exp();
    let node = y.graph_node().expect("y was recorded");
    println!("{} was called at line {}", node.name(), node.location().line());
    let watch = node.register_after(|inputs, outputs| {
        let show = |grads: &[Option<AnyTensor>]| match grads.first() {
            Some(Some(AnyTensor::Float64(grad))) => format!("{:.4?}", grad.to_vec()),
            _ => "none".to_owned(),
        };
        println!("in backward it turned {} into {}", show(outputs), show(inputs));
        Ok(None)
    });
    y.sum().backward()?;
    println!("removed: {}, again: {}", watch.remove(), watch.remove());
    Ok(())
}
