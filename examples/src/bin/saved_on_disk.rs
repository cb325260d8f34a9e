//! Saved tensors are kept on disk until backward needs them.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use autograd_core::prelude::*;
use autograd_core::{HookResult, saved_tensors_hooks};

static FILES: AtomicUsize = AtomicUsize::new(0);

/// A tensor in a file, which is deleted when the graph drops the tensor.
struct OnDisk {
    path: PathBuf,
    shape: Vec<usize>,
}

impl OnDisk {
    fn write(tensor: &AnyTensor) -> HookResult<Self> {
        let AnyTensor::Float64(tensor) = tensor else {
            return Err(format!("no file format for {}", tensor.dtype()).into());
        };
        let n = FILES.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("saved_{}_{n}", std::process::id()));
        let bytes: Vec<u8> = tensor.to_vec().into_iter().flat_map(f64::to_le_bytes).collect();
        fs::write(&path, bytes)?;
        Ok(Self { path, shape: tensor.shape().to_vec() })
    }

    fn read(&self) -> HookResult<AnyTensor> {
        let bytes = fs::read(&self.path)?;
        let (numbers, _) = bytes.as_chunks::<8>();
        let data = numbers.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect();
        Ok(Tensor::from_vec(&self.shape[..], data)?.into())
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        // It does not matter here if another process has deleted the file.
        let _ = fs::remove_file(&self.path);
        FILES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Hyperbolic tangent with a hand-written gradient.
#[py_layer]
impl CusTanh {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * (1.0 - ctx.saved_tensor().square())
    }
}

fn loss(x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
    let h = (0..3).fold(x.clone(), |h, _| CusTanh::apply(&h.matmul(w)));
    h.square().mean()
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(2023);
    let x = Tensor::<f64>::randn([64, 32]);
    let w = Tensor::<f64>::randn([32, 32]) * 0.2;
    w.set_stop_gradient(false);

    loss(&x, &w).backward()?;
    let in_memory = w.grad().expect("w takes part");
    w.clear_grad();

    let scope = saved_tensors_hooks(OnDisk::write, OnDisk::read);
    let loss = loss(&x, &w);
    scope.check()?;
    drop(scope);
    println!("after forward: {} files", FILES.load(Ordering::Relaxed));
    loss.backward()?;
    println!("after backward: {} files", FILES.load(Ordering::Relaxed));
    let same = w.grad().expect("w takes part").to_vec() == in_memory.to_vec();
    println!("the gradient is {}", if same { "the same" } else { "another" });
    Ok(())
}
