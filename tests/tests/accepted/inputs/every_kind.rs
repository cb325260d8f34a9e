// Every kind of tensor input, plain input and output.
use autograd_core::prelude::*;
use support::gradient;

#[py_layer]
impl Kinds {
    type Saved = (Tensor<f64>, Vec<Tensor<f64>>, Option<Tensor<f64>>, [Tensor<f64>; 2]);
    type Attrs = (f64, String);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        bias: Option<&Tensor<f64>>,
        parts: &[Tensor<f64>],
        refs: &[&Tensor<f64>],
        pair: [&Tensor<f64>; 2],
        #[stop_gradient] index: &Tensor<i64>,
        factor: f64,
        name: &str,
        mut steps: usize,
        (a, b): (f64, f64),
    ) -> (Tensor<f64>, usize, [Tensor<f64>; 2], Vec<Tensor<f64>>, Tensor<i64>) {
        steps += 1;
        ctx.save_for_backward((x, parts, bias, pair));
        ctx.set_attrs((factor, name.to_owned()));
        let mut y = x * factor;
        if let Some(bias) = bias {
            y = y + bias;
        }
        let lists = refs.iter().map(|t| *t * (a + b)).collect();
        (y, steps, [pair[0] * 2.0, pair[1] * 3.0], lists, index.clone())
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
        dpair: &[Tensor<f64>],
        drefs: &[Option<Tensor<f64>>],
    ) -> Grads {
        let (_x, parts, bias, _pair) = ctx.saved_tensor();
        let (factor, _) = ctx.attrs();
        let needs = ctx.needs_input_grad();
        assert!(needs.x && needs.parts.iter().all(|part| !part) && !needs.index);
        Grads {
            x: dy * *factor,
            bias: bias.as_ref().map(|_| dy.clone()),
            parts: parts.iter().map(|_| None::<Tensor<f64>>).collect::<Vec<_>>(),
            refs: drefs.iter().map(|d| d.as_ref().map(|d| d * 3.0)).collect::<Vec<_>>(),
            pair: [&dpair[0] * 2.0, &dpair[1] * 3.0],
        }
    }
}

#[test]
fn compiles_and_runs() {
    let t = |v: f64| {
        let t = Tensor::<f64>::from(vec![v]);
        t.set_stop_gradient(false);
        t
    };
    let (x, b, r, p, q) = (t(1.0), t(2.0), t(3.0), t(4.0), t(5.0));
    let parts = [Tensor::<f64>::from(vec![1.0])];
    let index = Tensor::<i64>::from(vec![7]);
    let (y, steps, pair, refs, same) =
        Kinds::apply(&x, Some(&b), &parts, &[&r], [&p, &q], &index, 10.0, "n", 1, (1.0, 2.0));
    assert_eq!(steps, 2);
    assert_eq!(same.to_vec(), [7]);
    (y.sum() + pair[0].sum() + pair[1].sum() + refs[0].sum()).backward().unwrap();
    assert_eq!(gradient(&x), [10.0]);
    assert_eq!(gradient(&b), [1.0]);
    assert_eq!(gradient(&r), [3.0]);
    assert_eq!(gradient(&p), [2.0]);
    assert_eq!(gradient(&q), [3.0]);

    let (y, ..) = Kinds::with()
        .pair([&p, &q])
        .refs(&[])
        .parts(&parts)
        .bias(None)
        .x(&x)
        .index(&index)
        .name("n")
        .factor(2.0)
        .argument_9((0.5, 0.5))
        .steps(0)
        .try_apply()
        .unwrap();
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [12.0]);
}
