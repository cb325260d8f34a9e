// `?` converts the errors that say so: the message has the words that convert any other
use autograd_core::prelude::*;

#[derive(Debug)]
struct NoData;

impl std::fmt::Display for NoData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no data")
    }
}

impl std::error::Error for NoData {}

fn load() -> Result<f64, NoData> {
    Err(NoData)
}

#[py_layer]
impl Scaled {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
    ) -> autograd_core::Result<Tensor<f64>> {
        Ok(x * load()?)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> autograd_core::Result<Tensor<f64>> {
        let by: f64 = "2".parse()?;
        Ok(dy * by)
    }
}

fn main() {}
