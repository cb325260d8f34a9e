// `save_for_backward` for each tensor of a list, in a closure or a loop
use autograd_core::prelude::*;

#[py_layer]
impl Mapped {
    type Saved = Vec<Tensor<f64>>;

    fn forward(ctx: &mut ForwardContext<Self>, xs: &[Tensor<f64>]) -> Vec<Tensor<f64>> {
        xs.iter()
            .map(|x| {
                let y = x.tanh();
                ctx.save_for_backward(&y);
                y
            })
            .collect()
    }

    fn backward(ctx: &BackwardContext<Self>, dys: &[Tensor<f64>]) -> Vec<Tensor<f64>> {
        dys.iter().zip(ctx.saved_tensor()).map(|(dy, y)| dy * (1.0 - y.square())).collect()
    }
}

#[py_layer]
impl Each {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, xs: &[Tensor<f64>]) -> Tensor<f64> {
        xs.iter().for_each(|x| ctx.save_for_backward(x));
        xs[0].clone()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy * ctx.saved_tensor()]
    }
}

#[py_layer]
impl Looped {
    type Saved = Vec<Tensor<f64>>;

    fn forward(ctx: &mut ForwardContext<Self>, xs: &[Tensor<f64>]) -> Tensor<f64> {
        let mut sum = Tensor::zeros_like(&xs[0]);
        for x in xs {
            ctx.save_for_backward(x);
            sum += x;
        }
        sum
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        ctx.saved_tensor().iter().map(|_| dy.clone()).collect()
    }
}

fn main() {
    let xs = [Tensor::from([1.0])];
    Mapped::apply(&xs);
    Each::apply(&xs);
    Looped::apply(&xs);
}
