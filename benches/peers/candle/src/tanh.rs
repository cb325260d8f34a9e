//! The op through `CustomOp1`, its backward in one pass through `CustomOp2`.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};

pub struct Tanh;

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
