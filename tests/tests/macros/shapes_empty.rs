//! `check(..)` of an op with `shapes(..)`, with lengths that are fixed as 0: the generated tests run here.

use autograd_core::prelude::*;

/// Only the lengths that are given are 0.
fn is_empty_along(x: &Tensor<f64>, axes: &[usize]) {
    let zeros: Vec<usize> = (0..x.ndim()).filter(|axis| x.shape()[*axis] == 0).collect();
    assert_eq!(zeros, axes);
}

#[py_layer(
    shapes(x: [n, m] -> [n, m]),
    check(n = 0, empty = vec![0]),
    check(m = 0, empty = vec![1]),
    check(n = 0, m = 0, empty = vec![0, 1]),
    check(x = [0, 3], empty = vec![0]),
    check(empty = vec![]),
)]
impl Double {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, empty: Vec<usize>) -> Tensor<f64> {
        is_empty_along(x, &empty);
        x * 2.0
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer(
    shapes(x: [b.., n], w: [n, m] -> [b.., m]),
    check(n = 0), check(m = 0), check(n = 0, m = 0), check(x = [0, 3]), check(x = [2, 0, 0]), check(w = [0, 2])
)]
impl<T: Float> Product<T> {
    type Saved = (Tensor<T>, Tensor<T>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>, w: &Tensor<T>) -> Tensor<T> {
        ctx.save_for_backward((x, w));
        x.matmul(w)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let rows: usize = x.shape()[..x.ndim() - 1].iter().product();
        let (x, dy_rows) = (x.reshape([rows, w.dim(0)]), dy.reshape([rows, w.dim(1)]));
        Grads { x: dy.matmul(&w.t()), w: x.t().matmul(&dy_rows) }
    }
}

#[py_layer(
    shapes(x: [d], xs: [[n, d]; c] -> [c * n, d]),
    check(c = 0), check(n = 0), check(d = 0), check(n = 0, c = 1), check(xs = [])
)]
impl Rows {
    type Attrs = usize;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        xs: &[&Tensor<f64>],
    ) -> Tensor<f64> {
        ctx.set_attrs(xs.len());
        let scaled: Vec<Tensor<f64>> = xs.iter().map(|row| *row * 3.0).collect();
        if scaled.is_empty() { Tensor::zeros([0, x.dim(0)]) } else { Tensor::concat(&scaled, 0) }
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let count = *ctx.attrs();
        let n = dy.dim(0).checked_div(count).unwrap_or(0);
        let each = (0..count).map(|i| dy.narrow(0, i * n, n) * 3.0);
        Grads { x: Tensor::zeros([dy.dim(1)]), xs: each.collect::<Vec<_>>() }
    }
}

#[py_layer(
    shapes(x: [a.., n], y: [b.., n] -> [a.. & b.., n]),
    check(n = 0), check(x = [0, 3]), check(y = [0, 3]), check(y = [3, 2]), check(x = [2, 0, 3], y = [1, 3])
)]
impl Times {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, y));
        x * y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (x, y) = ctx.saved_tensor();
        ((dy * y).sum_to(x.shape()), (dy * x).sum_to(y.shape()))
    }
}

#[py_layer(
    shapes(x: [b, s, heads * d] -> [b, heads, s, d]),
    check(heads = 2, d = 0), check(x = [2, 3, 0], heads = 2), check(b = 0), check(s = 0), check(x = [0, 3, 4], heads = 1)
)]
impl Split {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, heads: usize) -> Tensor<f64> {
        let &[b, s, c] = x.shape() else { unreachable!() };
        x.reshape([b, s, heads, c / heads]).permute(&[0, 2, 1, 3])
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let &[b, heads, s, d] = dy.shape() else { unreachable!() };
        dy.permute(&[0, 2, 1, 3]).reshape([b, s, heads * d])
    }
}

#[py_layer(
    shapes(x: [n] -> ([n + 1 - k], [n / 2], [2 * n], [0, k])),
    check(n = 0, k = 1), check(x = [0], k = 0), check(n = 2, k = 3), check(k = 0)
)]
impl Lengths {
    type Attrs = (usize, usize);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        k: usize,
    ) -> (Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>) {
        let n = x.dim(0);
        ctx.set_attrs((n, k));
        let (more, both) =
            (Tensor::concat(&[x, &Tensor::zeros([1])], 0), Tensor::concat(&[x, x], 0));
        (more.narrow(0, 0, n + 1 - k), x.narrow(0, 0, n / 2), both, Tensor::zeros([0, k]))
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy0: &Tensor<f64>,
        dy1: &Tensor<f64>,
        dy2: &Tensor<f64>,
        _: &Tensor<f64>,
    ) -> Tensor<f64> {
        let (n, _) = *ctx.attrs();
        let padded =
            |dy: &Tensor<f64>| Tensor::concat(&[dy, &Tensor::zeros([n + 1])], 0).narrow(0, 0, n);
        padded(dy0) + padded(dy1) + dy2.narrow(0, 0, n) + dy2.narrow(0, n, n)
    }
}
