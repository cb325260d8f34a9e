//! The document's example, with candle.

use candle_core::{CpuStorage, CustomOp1, Device, Layout, Result, Shape, Tensor, Var};

struct CusTanh;

impl CustomOp1 for CusTanh {
    fn name(&self) -> &'static str {
        "cus_tanh"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (start, end) = layout.contiguous_offsets().expect("the input is contiguous");
        let CpuStorage::F64(data) = storage else { unreachable!("the input is of f64") };
        let y = data[start..end].iter().map(|x| x.tanh()).collect();
        Ok((CpuStorage::F64(y), layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some((dy * (1.0 - y.sqr()?)?)?))
    }
}

fn main() -> Result<()> {
    let data = Var::from_tensor(&Tensor::randn(0.0_f64, 1.0, (2, 3), &Device::Cpu)?)?;
    let z = data.apply_op1(CusTanh)?;
    let grads = z.mean_all()?.backward()?;
    println!("{}", grads.get(&data).expect("data wants a gradient"));
    Ok(())
}
