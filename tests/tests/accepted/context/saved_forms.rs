// everything that can be saved
use autograd_core::prelude::*;

#[derive(Saved)]
struct Parts {
    a: Tensor<f64>,
    b: (Tensor<i64>, Option<Tensor<f64>>),
}

#[py_layer]
impl Op {
    type Saved =
        (Parts, [Tensor<f64>; 2], Vec<Tensor<f64>>, (Tensor<f64>, Option<Tensor<f64>>), ());

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let n = x.cast::<i64>();
        let parts = Parts { a: x * 5.0, b: (n, None) };
        ctx.save_for_backward((parts, [x, x], &[x.clone()][..], (x, Some(x)), ()));
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (parts, [a, _], many, (b, c), ()) = ctx.saved_tensor();
        assert!(parts.b.1.is_none() && parts.b.0.len() == 1 && many.len() == 1);
        assert_eq!(a.to_vec(), b.to_vec());
        dy * &parts.a * c.as_ref().unwrap()
    }
}

compiles_and_runs!(|[x]| Op::apply(x), [3.0] => [45.0]);
