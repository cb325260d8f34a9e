//! The op through candle's `CustomOp1`, its backward in one pass through `CustomOp2`: the fastest
//! way that candle has.

use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, DType, Device, Layout, Result, Shape, Tensor, Var,
};

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
        Ok(Some(dy.contiguous()?.apply_op2_no_bwd(y, &TanhGrad)?))
    }
}

struct TanhGrad;

impl CustomOp2 for TanhGrad {
    fn name(&self) -> &'static str {
        "cus_tanh_grad"
    }

    fn cpu_fwd(
        &self,
        dy: &CpuStorage,
        dy_layout: &Layout,
        y: &CpuStorage,
        y_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (dy_start, dy_end) = dy_layout.contiguous_offsets().expect("made contiguous");
        let (y_start, y_end) = y_layout.contiguous_offsets().expect("an output of the op");
        let storage = match (dy, y) {
            (CpuStorage::F32(dy), CpuStorage::F32(y)) => {
                let pairs = dy[dy_start..dy_end].iter().zip(&y[y_start..y_end]);
                CpuStorage::F32(pairs.map(|(dy, y)| dy * (1.0 - y * y)).collect())
            }
            (CpuStorage::F64(dy), CpuStorage::F64(y)) => {
                let pairs = dy[dy_start..dy_end].iter().zip(&y[y_start..y_end]);
                CpuStorage::F64(pairs.map(|(dy, y)| dy * (1.0 - y * y)).collect())
            }
            _ => unreachable!("the benchmark has floats of one type"),
        };
        Ok((storage, y_layout.shape().clone()))
    }
}

pub fn small(backward: bool) -> Candidate {
    let x = Tensor::from_vec(input(6), (2, 3), &Device::Cpu).expect("six numbers");
    let x = Var::from_tensor(&x).expect("a variable");
    let work = move || -> Result<Tensor> {
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
    tanh(1_000_000, backward)
}

pub fn tanh(n: usize, backward: bool) -> Candidate {
    let data: Vec<f32> = input(n).into_iter().map(|v| v as f32).collect();
    let x = Tensor::from_vec(data, n, &Device::Cpu).expect("as many numbers");
    let x = Var::from_tensor(&x).expect("a variable");
    let work = move || -> Result<Tensor> {
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
