// fn jvp with every form of input, tangent and output
use autograd_core::jvp;
use autograd_core::prelude::*;

#[py_layer]
impl<T: Float> Mixed<T> {
    type Saved = Tensor<T>;
    type Attrs = f64;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<T>,
        b: Option<&Tensor<T>>,
        xs: &[Tensor<T>],
        #[stop_gradient] mask: &Tensor<T>,
        by: f64,
    ) -> (Tensor<T>, Vec<Tensor<T>>, usize) {
        ctx.save_for_backward(mask);
        ctx.set_attrs(by);
        let sum = b.map_or_else(|| x * mask, |b| x * mask + b);
        (sum, xs.iter().map(|x| x * by).collect(), xs.len())
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>, dys: &[Tensor<T>]) -> Grads {
        let by = *ctx.attrs();
        Grads {
            x: dy * ctx.saved_tensor(),
            b: Some(dy.clone()),
            xs: dys.iter().map(|dy| dy * by).collect::<Vec<_>>(),
        }
    }

    fn jvp(
        ctx: &JvpContext<Self>,
        _x: &Tensor<T>,
        b: Option<&Tensor<T>>,
        xs: &[Tensor<T>],
        dx: Option<&Tensor<T>>,
        db: Option<&Tensor<T>>,
        dxs: &[Option<Tensor<T>>],
    ) -> Result<(Option<Tensor<T>>, Vec<Option<Tensor<T>>>), String> {
        if xs.len() != dxs.len() || b.is_none() && db.is_some() {
            return Err("as many tangents as inputs".to_owned());
        }
        let by = *ctx.attrs();
        let dx = dx.map(|dx| dx * ctx.saved_tensor());
        let sum = match (dx, db) {
            (Some(dx), Some(db)) => Some(dx + db),
            (dx, db) => dx.or_else(|| db.cloned()),
        };
        Ok((sum, dxs.iter().map(|dx| dx.as_ref().map(|dx| dx * by)).collect()))
    }
}

#[py_layer(once_differentiable)]
impl Doubled {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> [Tensor<f64>; 2] {
        [x * 2.0, x * 3.0]
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &[Tensor<f64>]) -> Tensor<f64> {
        &dy[0] * 2.0 + &dy[1] * 3.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> [Tensor<f64>; 2] {
        [dx * 2.0, dx * 3.0]
    }
}

#[test]
fn compiles_and_runs() {
    let (x, dx) = (Tensor::from([1.0, 2.0]), Tensor::from([1.0, 0.0]));
    let mask = Tensor::from([5.0, 5.0]);
    let f = |t: &[Tensor<f64>]| {
        let (sum, list, _) = Mixed::apply(&t[0], Some(&t[1]), &t[..1], &mask, 10.0);
        sum + &list[0]
    };
    let (_, slope) = jvp(f, &[x.clone(), x.clone()], &[dx.clone(), dx.clone()]).unwrap();
    assert_eq!(slope.to_vec(), [16.0, 0.0]);
    let sum = |t: &[Tensor<f64>]| {
        let [a, b] = Doubled::apply(&t[0]);
        a + b
    };
    assert_eq!(jvp(sum, &[x], &[dx]).unwrap().1.to_vec(), [5.0, 0.0]);
}
