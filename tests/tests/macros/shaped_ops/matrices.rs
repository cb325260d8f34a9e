//! Matrices: Kronecker products, blocks, traces, determinants.

use autograd_core::linalg;
use autograd_core::prelude::*;

/// The Kronecker product.
#[py_layer(shapes(a: [p, q], b: [r, s] -> [p * r, q * s]), check())]
impl Kronecker {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((a, b));
        let (&[p, q], &[r, s]) = (a.shape(), b.shape()) else { unreachable!() };
        let product = a.reshape([p, 1, q, 1]) * b.reshape([1, r, 1, s]);
        product.reshape([p * r, q * s])
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (a, b) = ctx.saved_tensor();
        let (&[p, q], &[r, s]) = (a.shape(), b.shape()) else { unreachable!() };
        let dy = dy.reshape([p, r, q, s]);
        Grads {
            a: (&dy * b.reshape([1, r, 1, s])).sum_axes(&[1, 3]),
            b: (&dy * a.reshape([p, 1, q, 1])).sum_axes(&[0, 2]),
        }
    }
}

/// Blocks on a diagonal.
#[py_layer(shapes(blocks: [k, n, m] -> [k * n, k * m]), check())]
impl BlockDiagonal {
    type Attrs = [usize; 3];

    fn forward(ctx: &mut ForwardContext<Self>, blocks: &Tensor<f64>) -> Tensor<f64> {
        let &[k, n, m] = blocks.shape() else { unreachable!() };
        ctx.set_attrs([k, n, m]);
        let own = Tensor::<f64>::eye(k).reshape([k, 1, k, 1]);
        (blocks.unsqueeze(2) * own).reshape([k * n, k * m])
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let [k, n, m] = *ctx.attrs();
        let blocks: Vec<_> = (0..k).map(|i| dy.narrow(0, i * n, n).narrow(1, i * m, m)).collect();
        Tensor::stack(&blocks, 0)
    }
}

/// The trace of each matrix.
#[py_layer(shapes(x: [b.., n, n] -> [b..]), check())]
impl BatchTrace {
    type Attrs = usize;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let n = x.dim(-1);
        ctx.set_attrs(n);
        (x * Tensor::<f64>::eye(n)).sum_axes(&[-1, -2])
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.unsqueeze(-1).unsqueeze(-1) * Tensor::<f64>::eye(*ctx.attrs())
    }
}

/// The logarithm of a determinant, of a matrix far from singular.
#[py_layer(shapes(x: [n, n] -> []), check())]
impl LogDet {
    type Saved = Tensor<f64>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
    ) -> autograd_core::Result<Tensor<f64>> {
        ctx.save_for_backward(x);
        let (_, log) = linalg::slogdet(&shifted(x))?;
        Ok(log)
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> autograd_core::Result<Tensor<f64>> {
        let inverse = linalg::inv(&shifted(ctx.saved_tensor()))?;
        Ok(dy * inverse.t())
    }
}

fn shifted(x: &Tensor<f64>) -> Tensor<f64> {
    x + Tensor::<f64>::eye(x.shape()[0]) * 4.0
}

/// A linear system with several right sides.
#[py_layer(shapes(a: [n, n], b: [n, k] -> [n, k]), check())]
impl Solve {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        a: &Tensor<f64>,
        b: &Tensor<f64>,
    ) -> Result<Tensor<f64>, autograd_core::Error> {
        let x = linalg::solve(&shifted(a), b)?;
        ctx.save_for_backward((a, &x));
        Ok(x)
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dx: &Tensor<f64>,
    ) -> Result<Grads, autograd_core::Error> {
        let (a, x) = ctx.saved_tensor();
        let db = linalg::solve(&shifted(a).t(), dx)?;
        Ok(Grads { a: -db.matmul(&x.t()), b: db })
    }
}

/// A covariance from the lower triangle of a factor.
#[py_layer(shapes(factor: [b.., n, n] -> [b.., n, n]), check())]
impl FromCholesky {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, factor: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(factor);
        let l = factor.tril(0);
        l.matmul(&l.t())
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let l = ctx.saved_tensor().tril(0);
        let both = dy + dy.t();
        both.matmul(&l).tril(0)
    }
}

/// The symmetric and the skew part.
#[py_layer(shapes(x: [n, n] -> ([n, n], [n, n])), check())]
impl Parts {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let turned = x.t();
        ((x + &turned) / 2.0, (x - turned) / 2.0)
    }

    fn backward(
        _: &BackwardContext<Self>,
        dsym: Option<&Tensor<f64>>,
        dskew: Option<&Tensor<f64>>,
    ) -> Option<Tensor<f64>> {
        let sym = dsym.map(|d| (d + d.t()) * 0.5);
        let skew = dskew.map(|d| (d - d.t()) * 0.5);
        match (sym, skew) {
            (Some(a), Some(b)) => Some(a + b),
            (one, other) => one.or(other),
        }
    }
}

/// A power of a matrix, with a constant exponent.
#[py_layer(shapes(x: [n, n] -> [n, n]))]
impl<const K: usize> MatrixPower<K> {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        Self::power(x, K)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let x = ctx.saved_tensor();
        let mut dx = Tensor::zeros_like(x);
        for i in 0..K {
            dx = dx + Self::power(x, i).t().matmul(dy).matmul(&Self::power(x, K - 1 - i).t());
        }
        dx
    }

    fn power(x: &Tensor<f64>, k: usize) -> Tensor<f64> {
        (0..k).fold(Tensor::eye(x.shape()[0]), |y, _| y.matmul(x))
    }
}

/// A vector on the diagonal of a matrix.
#[py_layer(shapes(x: [n] -> [n, n]), check())]
impl Diagonal {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.diag(0)
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.diagonal(0)
    }
}

/// The covariance of columns.
#[py_layer(shapes(x: [b, n] -> [n, n]), check())]
impl Covariance {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        let x = x - x.mean_axes(0);
        x.t().matmul(&x) / x.shape()[0] as f64
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let x = ctx.saved_tensor();
        let b = x.shape()[0];
        let x = x - x.mean_axes(0);
        x.matmul(&(dy + dy.t())) / b as f64
    }
}

#[test]
fn a_power_has_the_gradient_of_products() {
    let x = Tensor::from([[0.5, 0.2], [0.1, -0.4]]);
    autograd_core::gradcheck(|t| MatrixPower::<3>::apply(&t[0]), &[x]).unwrap();
}
