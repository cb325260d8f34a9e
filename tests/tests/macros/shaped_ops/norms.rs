//! Normalization.

use autograd_core::prelude::*;

const EPS: f64 = 1e-3;

/// Layer norm of the last axis.
#[py_layer(shapes(x: [b.., n], scale: [n], bias: [n] -> [b.., n]), check())]
impl LayerNorm {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        scale: &Tensor<f64>,
        bias: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, scale));
        let (h, _) = Self::normal(x);
        h * scale + bias
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, scale) = ctx.saved_tensor();
        let (h, r) = Self::normal(x);
        let dh = dy * scale;
        let mean = |t: &Tensor<f64>| t.mean_axes_keep(&[-1]);
        let x = &r * (&dh - mean(&dh) - &h * mean(&(&dh * &h)));
        Grads { x, scale: (dy * &h).sum_to(scale.shape()), bias: dy.sum_to(scale.shape()) }
    }

    fn normal(x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let centred = x - x.mean_axes_keep(&[-1]);
        let r = (centred.square().mean_axes_keep(&[-1]) + EPS).rsqrt();
        (&centred * &r, r)
    }
}

/// Group norm: groups of channels, and all positions.
#[py_layer(shapes(x: [b, groups * c, l], scale: [groups * c] -> [b, groups * c, l]), check(groups = 2), check())]
impl GroupNorm {
    type Saved = (Tensor<f64>, Tensor<f64>);
    type Attrs = usize;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        scale: &Tensor<f64>,
        groups: usize,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, scale));
        ctx.set_attrs(groups);
        let (h, _) = normal(x, groups);
        h.reshape(x.shape()) * scale.unsqueeze(1)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, scale) = ctx.saved_tensor();
        let (h, r) = normal(x, *ctx.attrs());
        let dh = (dy * scale.unsqueeze(-1)).reshape(h.shape());
        let dx = r * (&dh - dh.mean_axes_keep(-1) - &h * (&dh * &h).mean_axes_keep(-1));
        let dscale = (dy * h.reshape(x.shape())).sum_axes(&[0, 2]);
        Grads { x: dx.reshape(x.shape()), scale: dscale }
    }
}

/// Each group's elements in a row, normalized, and the factor of each row.
fn normal(x: &Tensor<f64>, groups: usize) -> (Tensor<f64>, Tensor<f64>) {
    let &[b, c, l] = x.shape() else { unreachable!() };
    let rows = x.reshape([b, groups, c / groups * l]);
    let rows = &rows - rows.mean_axes_keep(-1);
    let r = (rows.square().mean_axes_keep(-1) + EPS).rsqrt();
    (&rows * &r, r)
}

/// Division by the root of the mean square.
#[py_layer(shapes(x: [b.., n], gain: [n] -> [b.., n]), check())]
impl<T: Float> RmsNorm<T> {
    type Saved = (Tensor<T>, Tensor<T>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>, gain: &Tensor<T>) -> Tensor<T> {
        ctx.save_for_backward((x, gain));
        let r = (x.square().mean_axes_keep(-1) + 0.1).rsqrt();
        x * r * gain
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Grads {
        let (x, gain) = ctx.saved_tensor();
        let r = (x.square().mean_axes_keep(-1) + 0.1).rsqrt();
        let h = x * &r;
        let dh = dy * gain;
        Grads {
            gain: (dy * &h).sum_to(gain.shape()),
            x: (&dh - &h * (&dh * &h).mean_axes_keep(-1)) * &r,
        }
    }
}

/// Batch norm of each channel, which also returns the mean.
#[py_layer(shapes(x: [b, c, l] -> ([b, c, l], [c])), check(b = 2))]
impl BatchNorm {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        ctx.save_for_backward(x);
        let mean = x.mean_axes(&[0, 2]);
        let centred = x - mean.unsqueeze(1);
        let var = centred.square().mean_axes_keep(&[0, 2]);
        (centred * (var + EPS).rsqrt(), mean)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>, dmean: &Tensor<f64>) -> Tensor<f64> {
        let x = ctx.saved_tensor();
        let axes = [0, 2];
        let centred = x - x.mean_axes_keep(axes);
        let r = (centred.square().mean_axes_keep(axes) + EPS).rsqrt();
        let h = &centred * &r;
        let count = (x.shape()[0] * x.shape()[2]) as f64;
        let dx = r * (dy - dy.mean_axes_keep(axes) - &h * (dy * &h).mean_axes_keep(axes));
        dx + dmean.reshape([1, -1, 1]) / count
    }
}

/// Rows of length one.
#[py_layer(shapes(x: [b.., n] -> [b.., n]), check(x = _ in 0.5..1.5))]
impl Normalize {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x / x.norm_axes_keep(-1, 2.0)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let x = ctx.saved_tensor();
        let norm = x.norm_axes_keep(-1, 2.0);
        let y = x / &norm;
        let along = (dy * &y).sum_axes_keep(-1);
        (dy - along * y) / norm
    }
}

/// Weight normalization: a length and a direction for each row.
#[py_layer(shapes(v: [o, n], g: [o] -> [o, n]), check(v = _ in 0.5..1.5))]
impl WeightNorm {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, v: &Tensor<f64>, g: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((v, g));
        v * (g / v.norm_axes(1, 2.0)).unsqueeze(1)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (v, g) = ctx.saved_tensor();
        let norm = v.square().sum_axes(1).sqrt();
        let unit = v / norm.unsqueeze(1);
        let dg = (dy * &unit).sum_axes(1);
        let dv = (dy - unit * dg.unsqueeze(1)) * (g / &norm).unsqueeze(1);
        Grads { v: dv, g: dg }
    }
}

/// Softmax of an axis that the caller names.
#[py_layer(shapes(x: [n, m] -> [n, m]), check(axis = 0), check(axis = -1))]
impl SoftmaxAlong {
    type Saved = Tensor<f64>;
    type Attrs = isize;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, axis: isize) -> Tensor<f64> {
        let e = (x - x.max_axes_keep(axis).detach()).exp();
        let y = &e / e.sum_axes_keep(axis);
        ctx.save_for_backward(&y);
        ctx.set_attrs(axis);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (y, &axis) = (ctx.saved_tensor(), ctx.attrs());
        y * (dy - (dy * y).sum_axes_keep(axis))
    }
}
