// The ops whose expansions are beside this file, where they are compiled and run; that of `Verified` is in
// `tests/verifying`. Read by the unit tests of the macros.

#[py_layer]
impl Verified {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        pair: [&Tensor<f64>; 2],
        bias: Option<&Tensor<f64>>,
        by: f64,
    ) -> Tensor<f64> {
        bias.map_or(x * by, |bias| x * by + bias) + pair[0] - pair[1]
    }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * 2.0, pair: [dy.clone(), -dy], bias: Some(dy.clone()) }
    }
}

/// Hyperbolic tangent.
#[py_layer]
impl Tanh {
    type Saved = Tensor<f64>;
    pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * (1.0 - ctx.saved_tensor().square())
    }
}

#[py_layer]
impl Scale {
    type Saved = (Tensor<f64>, Tensor<f64>);
    type Attrs = f64;
    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        #[stop_gradient] at: Option<&Tensor<i64>>,
        #[default(2.0)] by: f64,
    ) -> Result<(Tensor<f64>, usize), String> {
        ctx.save_for_backward((x, w));
        ctx.set_attrs(by);
        Ok((x * w * by, at.map_or(0, |at| at.len())))
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let by = *ctx.attrs();
        Grads { x: dy * w * by, w: Some(dy * x * by) }
    }
}

#[py_layer(once_differentiable)]
impl<T: Float, const N: usize> Repeat<T, N> {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[Tensor<T>]) -> [Tensor<T>; N] {
        std::array::from_fn(|_| &xs[0] * 1.0)
    }
    fn backward(
        _ctx: &BackwardContext<Self>,
        ds: &[Option<Tensor<T>>],
    ) -> Vec<Option<Tensor<T>>> {
        vec![ds[0].clone()]
    }
}

#[py_layer(no_grad)]
impl Norm {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.square().sum()
    }
}
