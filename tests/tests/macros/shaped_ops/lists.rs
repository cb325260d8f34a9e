//! Lists of tensors, and inputs that may be absent.

use autograd_core::prelude::*;

/// Columns side by side.
#[py_layer(shapes(xs: [[n, d]; c] -> [n, c * d]), check())]
impl Concat {
    type Attrs = usize;

    fn forward(ctx: &mut ForwardContext<Self>, xs: &[&Tensor<f64>]) -> Tensor<f64> {
        ctx.set_attrs(xs.len());
        Tensor::concat(xs, 1)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        dy.chunk(*ctx.attrs(), 1)
    }
}

/// A new first axis.
#[py_layer(shapes(xs: [[b..]; k] -> [k, b..]), check())]
impl Stack {
    fn forward(_: &mut ForwardContext<Self>, xs: &[Tensor<f64>]) -> Tensor<f64> {
        Tensor::stack(xs, 0)
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        (0..dy.shape()[0]).map(|i| dy.select(0, i)).collect()
    }
}

/// The outputs of experts, weighted by a softmax for each row.
#[py_layer(shapes(experts: [[b, d]; e], gates: [b, e] -> [b, d]), check(e = 3))]
impl Mixture {
    type Saved = (Vec<Tensor<f64>>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        experts: &[&Tensor<f64>],
        gates: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((experts.iter().map(|&e| e.clone()).collect::<Vec<_>>(), gates));
        let p = gates.softmax(-1);
        let stacked = Tensor::stack(experts, 1);
        (stacked * p.unsqueeze(-1)).sum_axes(1)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (experts, gates) = ctx.saved_tensor();
        let p = gates.softmax(1);
        let parts: Vec<_> = (0..experts.len()).map(|i| dy * p.narrow(1, i, 1)).collect();
        let dp = (Tensor::stack(experts, 1) * dy.unsqueeze(1)).sum_axes(-1);
        let dgates = &p * (&dp - (&dp * &p).sum_axes_keep(1));
        Grads { experts: parts, gates: dgates }
    }
}

/// The mean of three.
#[py_layer(shapes(xs: [[b.., n]] -> [b.., n]), check())]
impl MeanOfThree {
    fn forward(_: &mut ForwardContext<Self>, xs: [&Tensor<f64>; 3]) -> Tensor<f64> {
        let [a, b, c] = xs;
        (a + b + c) / 3.0
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy / 3.0; 3]
    }
}

/// A sum of three, with weights.
#[py_layer(shapes(xs: [[b, n]; c], weights: [c] -> [b, n]), check())]
impl WeightedThree {
    type Saved = (Vec<Tensor<f64>>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        xs: [&Tensor<f64>; 3],
        weights: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((xs.map(Clone::clone).to_vec(), weights));
        (0..3).map(|i| xs[i] * weights.select(0, i)).sum()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (xs, weights) = ctx.saved_tensor();
        let each: Vec<_> = xs.iter().map(|x| (dy * x).sum()).collect();
        Grads {
            xs: (0..xs.len()).map(|i| dy * weights.select(0, i)).collect::<Vec<_>>(),
            weights: Tensor::stack(&each, 0),
        }
    }
}

/// One tensor in parts.
#[py_layer(shapes(x: [n, 3 * d] -> [[n, d]; 3]), check())]
impl Split {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Vec<Tensor<f64>> {
        x.chunk(3, -1)
    }

    fn backward(_: &BackwardContext<Self>, dy: &[Tensor<f64>]) -> Tensor<f64> {
        Tensor::concat(dy, -1)
    }
}

/// A residual connection, with a shift that may be absent and a projection if the widths differ.
#[py_layer(
    shapes(x: [b, n], y: [b, m], project: [n, m], shift: [m] -> [b, m]),
    check(), check(shift = None), check(project = None, n = 3, m = 3), check(project = None, shift = None, n = 2, m = 2)
)]
impl Residual {
    type Saved = (Tensor<f64>, Option<Tensor<f64>>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        y: &Tensor<f64>,
        project: Option<&Tensor<f64>>,
        shift: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, project));
        let carried = if let Some(p) = project { x.matmul(p) } else { x.clone() };
        let mut sum = y + carried;
        if let Some(shift) = shift {
            sum = sum + shift;
        }
        sum
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, project) = ctx.saved_tensor();
        let (x, project) = match project {
            Some(p) => (dy.matmul(&p.t()), Some(x.t().matmul(dy))),
            None => (dy.clone(), None),
        };
        let needs = ctx.needs_input_grad();
        let shift = if needs.shift { Some(dy.sum_axes(0)) } else { None };
        Grads { x, y: dy.clone(), project, shift }
    }
}
