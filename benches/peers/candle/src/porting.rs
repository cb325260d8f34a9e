//! The op of `docs/porting.md`: compiled, compared with the page, and its gradient checked.

use candle_core::{CpuStorage, CustomOp1, Device, Layout, Result, Shape, Tensor, Var};

// From the page
pub struct ScaledTanh {
    pub scale: f64,
}

impl CustomOp1 for ScaledTanh {
    fn name(&self) -> &'static str {
        "scaled_tanh"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let Some((start, end)) = layout.contiguous_offsets() else {
            candle_core::bail!("scaled_tanh needs a contiguous input")
        };
        let CpuStorage::F64(data) = storage else { candle_core::bail!("scaled_tanh takes f64") };
        let y = data[start..end].iter().map(|x| x.tanh() * self.scale).collect();
        Ok((CpuStorage::F64(y), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let slope = (1.0 - x.tanh()?.sqr()?)?;
        Ok(Some(((dy * slope)? * self.scale)?))
    }
}

pub fn scaled_tanh(x: &Tensor, scale: f64) -> Result<Tensor> {
    x.apply_op1(ScaledTanh { scale })
}

const PAGE: &str = include_str!("../../../../docs/porting.md");

#[test]
fn the_page_has_this_op() {
    let (_, rest) = include_str!("porting.rs").split_once("// From the page\n").unwrap();
    let (op, _) = rest.split_once("\nconst PAGE").unwrap();
    assert!(PAGE.contains(op), "docs/porting.md has another op");
}

const SLOPE: f64 = 3.0 * 0.786_447_732_965_927_4;

#[test]
fn its_gradient_is_right() {
    let x = Var::new(&[0.5_f64], &Device::Cpu).unwrap();
    let grads = scaled_tanh(&x, 3.0).unwrap().backward().unwrap();
    let dx = grads.get(&x).unwrap().to_vec1::<f64>().unwrap()[0];
    assert!((dx - SLOPE).abs() < 1e-12, "{dx}");
}
