//! Three ops with hand-written gradients, from which the whole model is built.
//!
//! An op is an impl block with a `forward` and a `backward`. `#[py_layer]` defines a type with
//! `apply`, which has the parameters of `forward` (except `ctx`) and its return type.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use autograd_core::prelude::*;

/// An affine map, `y = x w + b`.
#[py_layer(shapes(x: [n, inputs], w: [inputs, outputs], b: [outputs] -> [n, outputs]))]
impl Linear {
    type Saved = (Tensor, Tensor);

    pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor, w: &Tensor, b: &Tensor) -> Tensor {
        ctx.save_for_backward((x, w));
        x.matmul(w) + b
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor) -> Grads {
        let (x, w) = ctx.saved_tensor();
        Grads {
            // Images want no gradient, so the first layer need not compute one.
            x: ctx.needs_input_grad().x.then(|| dy.matmul(&w.transpose())),
            w: x.transpose().matmul(dy),
            b: dy.sum_axes([0]),
        }
    }
}

/// The Gaussian error linear unit `x P(x)` of Hendrycks and Gimpel 2016, where `P` is the
/// distribution function of the standard normal distribution.
#[py_layer(shapes(x: [s..] -> [s..]))]
impl Gelu {
    type Saved = Tensor;

    pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor) -> Tensor {
        ctx.save_for_backward(x);
        x * Self::distribution(x)
    }

    /// `d (x P(x)) = (P(x) + x P'(x)) dx`, and `P'` is the density.
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor) -> Tensor {
        let x = ctx.saved_tensor();
        dy * (Self::distribution(x) + x * Self::density(x))
    }

    fn distribution(x: &Tensor) -> Tensor {
        ((x * FRAC_1_SQRT_2).erf() + 1.0) * 0.5
    }

    fn density(x: &Tensor) -> Tensor {
        (x.square() * -0.5).exp() / (2.0 * PI).sqrt()
    }
}

/// Softmax and cross-entropy in one: the mean of `-ln p[target]` over the rows of `logits`. Also
/// returns the guesses: the class with the greatest logit of each row.
///
/// It saves the probabilities, which are neither an input nor an output, so it can be
/// differentiated only once, which suffices for training.
#[py_layer(shapes(logits: [n, classes], targets: [n] -> ([], [n])))]
impl SoftmaxCrossEntropy {
    type Saved = (Tensor, Tensor<i64>);

    pub fn forward(
        ctx: &mut ForwardContext<Self>,
        logits: &Tensor,
        #[stop_gradient] targets: &Tensor<i64>,
    ) -> (Tensor, Tensor<i64>) {
        // No exponential overflows once the greatest logit is 0.
        let shifted = logits - logits.max_axes_keep([1]);
        let log_p = &shifted - shifted.exp().sum_axes_keep([1]).ln();
        let loss = -log_p.gather(1, &targets.unsqueeze(1)).mean();
        ctx.save_for_backward((&log_p.exp(), targets));
        (loss, logits.argmax(1))
    }

    /// `p - 1` at the target, `p` elsewhere.
    fn backward(ctx: &BackwardContext<Self>, loss: &Tensor) -> Tensor {
        let (p, targets) = ctx.saved_tensor();
        let &[n, classes] = p.shape() else { unreachable!("forward took a matrix") };
        loss * (p - targets.one_hot(classes)) / n as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(shape: &[usize]) -> Tensor {
        let tensor = Tensor::randn(shape);
        tensor.set_stop_gradient(false);
        tensor
    }

    /// The op and the same function of built-in ops have equal values and gradients.
    fn assert_same(op: &Tensor, built_in: &Tensor, leaves: &[&Tensor]) {
        let close = |a: &Tensor, b: &Tensor| (a - b).abs().max().item() < 1e-5;
        assert!(close(op, built_in), "{op} is not {built_in}");
        let gradients = |y: &Tensor| -> Vec<Tensor> {
            leaves.iter().for_each(|x| x.clear_grad());
            (y * y).sum().backward().unwrap();
            leaves.iter().map(|x| x.grad().unwrap()).collect()
        };
        for (a, b) in gradients(op).iter().zip(&gradients(built_in)) {
            assert!(close(a, b), "gradient {a} is not {b}");
        }
    }

    #[test]
    fn linear() {
        let (x, w, b) = (leaf(&[5, 3]), leaf(&[3, 4]), leaf(&[4]));
        assert_same(&Linear::apply(&x, &w, &b), &(x.matmul(&w) + &b), &[&x, &w, &b]);
    }

    #[test]
    fn gelu() {
        let x = leaf(&[40]);
        assert_same(&Gelu::apply(&x), &x.gelu(), &[&x]);
    }

    #[test]
    fn softmax_cross_entropy() {
        let (logits, targets) = (leaf(&[6, 10]), Tensor::from([3, 1, 4, 1, 5, 9]));
        let (loss, guesses) = SoftmaxCrossEntropy::apply(&logits, &targets);
        assert_same(&loss, &logits.cross_entropy(&targets), &[&logits]);
        assert_eq!(guesses.to_vec(), logits.argmax(1).to_vec());
    }

    #[test]
    fn great_logits_do_not_overflow() {
        let logits = Tensor::from([[1000.0, 0.0], [-1000.0, 0.0]]);
        let (loss, _) = SoftmaxCrossEntropy::apply(&logits, &Tensor::from([0, 0]));
        assert_eq!(loss.item(), 500.0);
    }
}
