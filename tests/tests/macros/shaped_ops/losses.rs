//! Losses and what is estimated.

use autograd_core::prelude::*;

/// Focal loss of logits and labels of 0 and 1.
#[py_layer(shapes(logits: [b.., n], target: [b.., n] -> []), check(target = _ in 0.0..1.0))]
impl FocalLoss {
    type Saved = (Tensor<f64>, Tensor<f64>);

    const GAMMA: f64 = 2.0;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        logits: &Tensor<f64>,
        #[stop_gradient] target: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((logits, target));
        let sign = 2.0 * target - 1.0;
        let p = (logits * &sign).sigmoid();
        -((1.0 - &p).pow(Self::GAMMA) * p.ln()).sum()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (logits, target) = ctx.saved_tensor();
        let sign = 2.0 * target - 1.0;
        let p = (logits * &sign).sigmoid();
        let q = 1.0 - &p;
        let slope = Self::GAMMA * &q * p.ln() - &q * &q / &p;
        dy * slope * &p * q * sign
    }
}

/// InfoNCE: each anchor against all positives of the batch.
#[py_layer(shapes(anchor: [b, d], positive: [b, d] -> []), check(temperature = 0.5))]
impl InfoNce {
    type Saved = (Tensor<f64>, Tensor<f64>);
    type Attrs = f64;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        anchor: &Tensor<f64>,
        positive: &Tensor<f64>,
        temperature: f64,
    ) -> Tensor<f64> {
        ctx.save_for_backward((anchor, positive));
        ctx.set_attrs(temperature);
        let logits = anchor.matmul(&positive.t()) / temperature;
        (logits.logsumexp(-1) - logits.diagonal(0)).mean()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (anchor, positive) = ctx.saved_tensor();
        let temperature = *ctx.attrs();
        let logits = anchor.matmul(&positive.t()) / temperature;
        let b = anchor.shape()[0];
        let dlogits = dy * (logits.softmax(-1) - Tensor::<f64>::eye(b)) / (b as f64 * temperature);
        Grads { anchor: dlogits.matmul(positive), positive: dlogits.t().matmul(anchor) }
    }
}

/// Triplet loss with a smooth margin.
#[py_layer(shapes(a: [b, d], p: [b, d], n: [b, d] -> [b]), check())]
impl Triplet {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        a: &Tensor<f64>,
        p: &Tensor<f64>,
        n: &Tensor<f64>,
        #[default(1.0)] margin: f64,
    ) -> Tensor<f64> {
        ctx.save_for_backward((a, p, n));
        let _ = margin;
        Self::gap(a, p, n).softplus()
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>, Tensor<f64>) {
        let (a, p, n) = ctx.saved_tensor();
        let dgap = (dy * Self::gap(a, p, n).sigmoid()).unsqueeze(-1) * 2.0;
        let (to_p, to_n) = (a - p, a - n);
        (&dgap * (&to_p - &to_n), -&dgap * to_p, dgap * to_n)
    }

    fn gap(a: &Tensor<f64>, p: &Tensor<f64>, n: &Tensor<f64>) -> Tensor<f64> {
        (a - p).square().sum_axes(-1) - (a - n).square().sum_axes(-1)
    }
}

/// Gumbel softmax, with the noise as an input.
#[py_layer(shapes(logits: [b.., k], noise: [b.., k] -> [b.., k]), check(tau = 0.7))]
impl GumbelSoftmax {
    type Saved = Tensor<f64>;
    type Attrs = f64;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        logits: &Tensor<f64>,
        #[stop_gradient] noise: &Tensor<f64>,
        tau: f64,
    ) -> Tensor<f64> {
        let y = ((logits + noise) / tau).softmax(-1);
        ctx.save_for_backward(&y);
        ctx.set_attrs(tau);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let y = ctx.saved_tensor();
        let inner = (dy * y).sum_axes_keep(-1);
        y * (dy - inner) / *ctx.attrs()
    }
}

/// The nearest row of a codebook, with a straight-through gradient.
#[py_layer(surrogate, shapes(z: [b, d], codebook: [k, d] -> ([b, d], [b])))]
impl VectorQuantizer {
    type Saved = (Tensor<i64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        z: &Tensor<f64>,
        codebook: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<i64>) {
        let code = z.cdist(codebook).argmin(1);
        ctx.save_for_backward((&code, codebook));
        (codebook.index_select(0, &code), code)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (code, codebook) = ctx.saved_tensor();
        Grads { z: dy.clone(), codebook: Tensor::zeros_like(codebook).index_add(0, code, dy) }
    }
}

/// Negative log likelihood of a normal distribution, with a variance that may be one for all.
#[py_layer(shapes(mean: [b.., n], target: [b.., n], log_var: [n] -> []), check())]
impl GaussianNll {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        mean: &Tensor<f64>,
        target: &Tensor<f64>,
        log_var: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((mean, target, log_var));
        let error = (target - mean).square();
        (0.5 * (log_var + error / log_var.exp())).sum()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (mean, target, log_var) = ctx.saved_tensor();
        let error = mean - target;
        let precision = (-log_var).exp();
        let dmean = dy * &error * &precision;
        let dlog = 0.5 * dy * (1.0 - error.square() * precision);
        Grads { target: -&dmean, mean: dmean, log_var: dlog.sum_to(log_var.shape()) }
    }
}

/// The divergence of a diagonal normal distribution from the standard one (of a VAE).
#[py_layer(shapes(mu: [b, d], log_var: [b, d] -> [b]), check())]
impl KlStandard {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        mu: &Tensor<f64>,
        log_var: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((mu, log_var));
        let terms = log_var.exp() + mu * mu - 1.0 - log_var;
        terms.sum_axes(1) * 0.5
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (mu, log_var) = ctx.saved_tensor();
        let dy = dy.unsqueeze(1);
        Grads { mu: &dy * mu, log_var: 0.5 * dy * (log_var.exp() - 1.0) }
    }
}

/// Soft cross entropy of a student with a teacher's logits.
#[py_layer(once_differentiable, shapes(student: [b, c], teacher: [b, c] -> []), check())]
impl Distillation {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        student: &Tensor<f64>,
        #[stop_gradient] teacher: &Tensor<f64>,
    ) -> Tensor<f64> {
        let probs = teacher.softmax(1);
        ctx.save_for_backward((student, &probs));
        -(probs * student.log_softmax(1)).sum_axes(1).mean()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (student, probs) = ctx.saved_tensor();
        let b = student.shape()[0] as f64;
        (student.softmax(1) - probs) * (dy / b)
    }
}

/// Dice loss of each class.
#[py_layer(shapes(p: [b, c, h, w], target: [b, c, h, w] -> [c]), check(p = _ in 0.1..0.9, target = _ in 0.0..1.0))]
impl Dice {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        p: &Tensor<f64>,
        #[stop_gradient] target: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((p, target));
        let over = [0, 2, 3];
        let both = (p * target).sum_axes(over);
        let all = p.sum_axes(over) + target.sum_axes(over) + 1.0;
        1.0 - 2.0 * both / all
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (p, target) = ctx.saved_tensor();
        let over = [0, 2, 3];
        let both = (p * target).sum_axes_keep(over);
        let all = (p + target).sum_axes_keep(over) + 1.0;
        dy.reshape([-1, 1, 1]) * 2.0 * (both / all.square() - target / all)
    }
}

#[test]
fn the_nearest_row_has_the_gradient() {
    let codebook = Tensor::from([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]);
    codebook.set_stop_gradient(false);
    let (y, code) = VectorQuantizer::apply(&Tensor::from([[0.9, 1.2]]), &codebook);
    assert_eq!((y.to_vec(), code.to_vec()), (vec![1.0, 1.0], vec![1]));
    y.sum().backward().unwrap();
    assert_eq!(codebook.grad().unwrap().to_vec(), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
}
