//! The op through candle's `CustomOp1`, backward in tensor ops: its fastest natural way.

use candle_core::{CpuStorage, CustomOp1, DType, Device, Layout, Result, Shape, Tensor, Var};

use crate::{CHAIN, Candidate, input};

struct Tanh;

impl CustomOp1 for Tanh {
    fn name(&self) -> &'static str {
        "cus_tanh"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (start, end) = layout.contiguous_offsets().expect("the inputs are contiguous");
        let storage = match storage {
            CpuStorage::F32(data) => {
                CpuStorage::F32(data[start..end].iter().map(|v| v.tanh()).collect())
            }
            CpuStorage::F64(data) => {
                CpuStorage::F64(data[start..end].iter().map(|v| v.tanh()).collect())
            }
            _ => unreachable!("the benchmark has floats only"),
        };
        Ok((storage, layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(dy.mul(&y.sqr()?.affine(-1.0, 1.0)?)?))
    }
}

pub fn small(backward: bool) -> Candidate {
    let x = Tensor::from_vec(input(6), (2, 3), &Device::Cpu).expect("six numbers");
    let x = Var::from_tensor(&x).expect("a variable");
    let mut work = move || -> Result<Tensor> {
        let mut y = x.apply_op1(Tanh)?;
        for _ in 1..CHAIN {
            y = y.apply_op1(Tanh)?;
        }
        if !backward {
            return Ok(y);
        }
        let grads = y.mean_all()?.backward()?;
        Ok(grads.get(&x).expect("x wants a gradient").clone())
    };
    let answer = numbers(&work().expect("candle computes it"));
    Candidate::new("candle 0.11", work, answer)
}

pub fn large(backward: bool) -> Candidate {
    let data: Vec<f32> = input(1_000_000).into_iter().map(|v| v as f32).collect();
    let x = Tensor::from_vec(data, 1_000_000, &Device::Cpu).expect("a million numbers");
    let x = Var::from_tensor(&x).expect("a variable");
    let mut work = move || -> Result<Tensor> {
        let y = x.apply_op1(Tanh)?;
        if !backward {
            return Ok(y);
        }
        // candle starts every backward with ones, which is the seed of the others too.
        let grads = y.backward()?;
        Ok(grads.get(&x).expect("x wants a gradient").clone())
    };
    let answer = numbers(&work().expect("candle computes it"));
    Candidate::new("candle 0.11", work, answer)
}

fn numbers(t: &Tensor) -> Vec<f64> {
    let flat = t.to_dtype(DType::F64).and_then(|t| t.flatten_all()).and_then(|t| t.to_vec1());
    flat.expect("numbers")
}
