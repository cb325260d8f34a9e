//! Products of matrices: linear layers, low rank, gates.

use autograd_core::prelude::*;

/// A linear layer, for each element type.
#[py_layer(shapes(x: [b, n], w: [n, m] -> [b, m]), check())]
impl<T: Float> Linear<T> {
    type Saved = (Tensor<T>, Tensor<T>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>, w: &Tensor<T>) -> Tensor<T> {
        ctx.save_for_backward((x, w));
        x.matmul(w)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> (Tensor<T>, Tensor<T>) {
        let (x, w) = ctx.saved_tensor();
        (dy.matmul(&w.t()), x.t().matmul(dy))
    }
}

/// A linear layer with PyTorch's layout of the weight, and a bias that may be left out.
#[py_layer(shapes(x: [b.., inputs], weight: [outputs, inputs], bias: [outputs] -> [b.., outputs]), check(), check(bias = None))]
impl TorchLinear {
    type Saved = (Tensor<f64>, Tensor<f64>, Option<Tensor<f64>>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        weight: &Tensor<f64>,
        bias: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, weight, bias));
        let y = x.matmul(&weight.t());
        match bias {
            Some(bias) => y + bias,
            None => y,
        }
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, weight, bias) = ctx.saved_tensor();
        let &[outputs, inputs] = weight.shape() else { unreachable!() };
        let dy2 = dy.reshape([dy.len() / outputs, outputs]);
        let x2 = x.reshape([x.len() / inputs, inputs]);
        let db = match bias {
            Some(b) => Some(dy.sum_to(b.shape())),
            None => None,
        };
        Grads { x: dy.matmul(weight), weight: dy2.t().matmul(&x2), bias: db }
    }
}

/// A bilinear layer, by `einsum`.
#[py_layer(shapes(left: [b, n], right: [b, m], w: [o, n, m] -> [b, o]), check())]
impl Bilinear {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        left: &Tensor<f64>,
        right: &Tensor<f64>,
        w: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((left, right, w));
        Tensor::einsum("bn,onm,bm->bo", &[left, w, right])
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (left, right, w) = ctx.saved_tensor();
        Grads {
            left: Tensor::einsum("bo,onm,bm->bn", &[dy, w, right]),
            right: Tensor::einsum("bo,onm,bn->bm", &[dy, w, left]),
            w: Tensor::einsum("bo,bn,bm->onm", &[dy, left, right]),
        }
    }
}

/// Low-rank adaptation: a frozen weight and two factors.
#[py_layer(shapes(x: [b, n], w: [n, m], down: [n, r], up: [r, m] -> [b, m]), check(alpha = 0.5))]
impl Lora {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>);
    type Attrs = f64;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[stop_gradient] w: &Tensor<f64>,
        down: &Tensor<f64>,
        up: &Tensor<f64>,
        #[default(1.0)] alpha: f64,
    ) -> Tensor<f64> {
        let scale = alpha / down.shape()[1] as f64;
        ctx.save_for_backward((x, w, down, up));
        ctx.set_attrs(scale);
        x.matmul(w) + scale * x.matmul(down).matmul(up)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w, down, up) = ctx.saved_tensor();
        let dy_s = dy * *ctx.attrs();
        let dhidden = dy_s.matmul(&up.t());
        let dx = dy.matmul(&w.t()) + dhidden.matmul(&down.t());
        let ddown = x.t().matmul(&dhidden);
        let dup = x.matmul(down).t().matmul(&dy_s);
        Grads { x: dx, down: ddown, up: dup }
    }
}

/// A matrix from its singular factors.
#[py_layer(shapes(u: [n, r], s: [r], v: [m, r] -> [n, m]), check())]
impl LowRank {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        u: &Tensor<f64>,
        s: &Tensor<f64>,
        v: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((u, s, v));
        (u * s).matmul(&v.t())
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (u, s, v) = ctx.saved_tensor();
        let dv = dy.t().matmul(&(u * s));
        let dus = dy.matmul(v);
        Grads { u: &dus * s, s: (&dus * u).sum_axes(0), v: dv }
    }
}

/// Outer products of rows.
#[py_layer(shapes(a: [b, n], c: [b, m] -> [b, n, m]), check())]
impl RowOuter {
    type Saved = [Tensor<f64>; 2];

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, c: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward([a, c]);
        a.unsqueeze(-1) * c.unsqueeze(-2)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let [a, c] = ctx.saved_tensor();
        let da = dy.matmul(&c.unsqueeze(-1)).squeeze(-1);
        let dc = a.unsqueeze(1).matmul(dy).squeeze(1);
        Grads { a: da, c: dc }
    }
}

/// A quadratic form of each row.
#[py_layer(shapes(x: [b, n], a: [n, n] -> [b]), check())]
impl QuadraticForm {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, a: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, a));
        (x.matmul(a) * x).sum_axes(-1)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, a) = ctx.saved_tensor();
        let weighted = x * dy.unsqueeze(1);
        Grads { x: weighted.matmul(&(a + a.t())), a: x.t().matmul(&weighted) }
    }
}

/// A gated linear unit: one weight for the values and the gates.
#[py_layer(shapes(x: [b.., n], w: [n, 2 * h] -> [b.., h]), check())]
impl GatedLinear {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        let halves = x.matmul(w).chunk(2, -1);
        let [value, gate] = &halves[..] else { unreachable!("two halves") };
        value * gate.sigmoid()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let halves = x.matmul(w).chunk(2, -1);
        let (value, s) = (&halves[0], halves[1].sigmoid());
        let dz = Tensor::concat(&[dy * &s, dy * value * &s * (1.0 - &s)], -1);
        let n = w.shape()[0];
        let rows = x.reshape([x.len() / n, n]);
        let dz_rows = dz.reshape([-1, w.shape()[1] as isize]);
        Grads { x: dz.matmul(&w.t()), w: rows.t().matmul(&dz_rows) }
    }
}

/// An autoencoder whose decoder is the transposed encoder.
#[py_layer(shapes(x: [b, n], w: [n, h] -> [b, n]), check())]
impl TiedAutoencoder {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        let code = x.matmul(w).tanh();
        code.matmul(&w.t())
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let code = x.matmul(w).tanh();
        let dcode = dy.matmul(w) * (1.0 - code.square());
        // The weight is used twice.
        let mut dw = dy.t().matmul(&code);
        dw = dw + x.t().matmul(&dcode);
        Grads { x: dcode.matmul(&w.t()), w: dw }
    }
}

/// Two layers with a nonlinearity between them.
#[py_layer(shapes(x: [b, n], w1: [n, h], b1: [h], w2: [h, m] -> [b, m]), check())]
impl TwoLayers {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w1: &Tensor<f64>,
        b1: &Tensor<f64>,
        w2: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, w1, b1, w2));
        Self::hidden(x, w1, b1).matmul(w2)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w1, b1, w2) = ctx.saved_tensor();
        let h = Self::hidden(x, w1, b1);
        let dh = dy.matmul(&w2.t());
        let dz = &dh * (1.0 - &h * &h);
        Grads {
            x: dz.matmul(&w1.t()),
            w1: x.t().matmul(&dz),
            b1: dz.sum_axes(&[0]),
            w2: h.t().matmul(dy),
        }
    }

    fn hidden(x: &Tensor<f64>, w: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        (x.matmul(w) + b).tanh()
    }
}

/// A contraction over two axes, as one product of matrices.
#[py_layer(shapes(x: [b, i, j], w: [i, j, k] -> [b, k]), check())]
impl Contraction {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        let (b, k) = (x.dim(0), w.dim(2));
        x.reshape([b, x.dim(1) * x.dim(2)]).matmul(&w.reshape([w.dim(0) * w.dim(1), k]))
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let &[b, i, j] = x.shape() else { unreachable!() };
        let k = w.shape()[2];
        let (x, w) = (x.reshape([b, i * j]), w.reshape([i * j, k]));
        let dx = dy.matmul(&w.t()).reshape([b, i, j]);
        let dw = x.t().matmul(dy).reshape([i, j, k]);
        Grads { x: dx, w: dw }
    }
}
