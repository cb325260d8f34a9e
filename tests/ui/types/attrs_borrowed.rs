// `type Attrs` borrows a value that does not live long enough
use autograd_core::prelude::*;

#[py_layer]
impl Named {
    type Attrs = &str;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, name: &str) -> Tensor<f64> {
        ctx.set_attrs(name);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let name = ctx.attrs();
        dy * name.len()
    }
}

#[py_layer]
impl Shaped {
    type Attrs = (f64, Option<&[usize]>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, shape: &[usize]) -> Tensor<f64> {
        ctx.set_attrs((1.0, Some(shape)));
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
