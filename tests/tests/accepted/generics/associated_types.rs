// plain parameters of associated types of a type parameter
use autograd_core::prelude::*;
use support::{gradient, leaf};

pub trait Norm {
    type Stats;
    type Of<'a>;

    fn scale(stats: &Self::Stats) -> f64;
}

pub struct Mean;

impl Norm for Mean {
    type Stats = f64;
    type Of<'a> = &'a f64;

    fn scale(stats: &f64) -> f64 {
        *stats
    }
}

#[py_layer]
impl<N: Norm> Scale<N> {
    type Attrs = f64;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        stats: &N::Stats,
        _list: Vec<N::Stats>,
        _pair: (N::Stats, f64),
        _array: &[N::Stats; 1],
        _function: Box<dyn Fn(N::Stats) -> f64>,
        _of: Option<N::Of<'_>>,
    ) -> Tensor<f64> {
        let k = N::scale(stats);
        ctx.set_attrs(k);
        x * k
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * *ctx.attrs()
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let y = Scale::<Mean>::apply(&x, &2.0, vec![], (1.0, 1.0), &[1.0], Box::new(|x| x), None);
    y.sum().backward().unwrap();
    assert_eq!(y.to_vec(), [6.0]);
    assert_eq!(gradient(&x), [2.0]);
}
