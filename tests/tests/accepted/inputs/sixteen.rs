// sixteen tensor inputs and sixteen outputs
use autograd_core::prelude::*;
use support::gradient;

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x0: &Tensor<f64>,
        x1: &Tensor<f64>,
        x2: &Tensor<f64>,
        x3: &Tensor<f64>,
        x4: &Tensor<f64>,
        x5: &Tensor<f64>,
        x6: &Tensor<f64>,
        x7: &Tensor<f64>,
        x8: &Tensor<f64>,
        x9: &Tensor<f64>,
        x10: &Tensor<f64>,
        x11: &Tensor<f64>,
        x12: &Tensor<f64>,
        x13: &Tensor<f64>,
        x14: &Tensor<f64>,
        x15: &Tensor<f64>,
    ) -> (
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
    ) {
        (
            x0 * 0.0,
            x1 * 1.0,
            x2 * 2.0,
            x3 * 3.0,
            x4 * 4.0,
            x5 * 5.0,
            x6 * 6.0,
            x7 * 7.0,
            x8 * 8.0,
            x9 * 9.0,
            x10 * 10.0,
            x11 * 11.0,
            x12 * 12.0,
            x13 * 13.0,
            x14 * 14.0,
            x15 * 15.0,
        )
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        d0: &Tensor<f64>,
        d1: &Tensor<f64>,
        d2: &Tensor<f64>,
        d3: &Tensor<f64>,
        d4: &Tensor<f64>,
        d5: &Tensor<f64>,
        d6: &Tensor<f64>,
        d7: &Tensor<f64>,
        d8: &Tensor<f64>,
        d9: &Tensor<f64>,
        d10: &Tensor<f64>,
        d11: &Tensor<f64>,
        d12: &Tensor<f64>,
        d13: &Tensor<f64>,
        d14: &Tensor<f64>,
        d15: &Tensor<f64>,
    ) -> (
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
    ) {
        (
            d0 * 0.0,
            d1 * 1.0,
            d2 * 2.0,
            d3 * 3.0,
            d4 * 4.0,
            d5 * 5.0,
            d6 * 6.0,
            d7 * 7.0,
            d8 * 8.0,
            d9 * 9.0,
            d10 * 10.0,
            d11 * 11.0,
            d12 * 12.0,
            d13 * 13.0,
            d14 * 14.0,
            d15 * 15.0,
        )
    }
}

#[test]
fn compiles_and_runs() {
    let xs: Vec<_> = (0..16).map(|_| Tensor::<f64>::from(vec![1.0])).collect();
    xs.iter().for_each(|x| x.set_stop_gradient(false));
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = &xs[..] else { unreachable!() };
    let y = Op::apply(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
    (y.15 * 1.0 + y.7 * 2.0).sum().backward().unwrap();
    assert_eq!(gradient(&p), [15.0]);
    assert_eq!(gradient(&h), [14.0]);
    assert_eq!(gradient(&a), [0.0]);
}
