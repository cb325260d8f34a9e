//! Similarities, distances, kernels and rotations.

use autograd_core::prelude::*;

/// The cosine of the angle of two vectors.
#[py_layer(shapes(x: [b.., n], y: [b.., n] -> [b..]), check(x = _ in 0.5..1.5, y = _ in 0.5..1.5))]
impl CosineSimilarity {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, y));
        let norms = x.norm_axes(-1, 2.0) * y.norm_axes(-1, 2.0);
        (x * y).sum_axes(-1) / norms
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, y) = ctx.saved_tensor();
        let norm = |t: &Tensor<f64>| t.norm_axes_keep(-1, 2.0);
        let (u, v) = (x / norm(x), y / norm(y));
        let cos = (&u * &v).sum_axes_keep(-1);
        let dcos = dy.unsqueeze(-1);
        Grads { x: &dcos * (&v - &cos * &u) / norm(x), y: &dcos * (&u - &cos * &v) / norm(y) }
    }
}

/// Squared distances of all pairs of rows.
#[py_layer(shapes(x: [n, d], y: [m, d] -> [n, m]), check())]
impl SquaredDistances {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, y));
        let xx = x.square().sum_axes_keep(1);
        let yy = y.square().sum_axes(1);
        xx + yy - 2.0 * x.matmul(&y.t())
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, y) = ctx.saved_tensor();
        let dx = 2.0 * (x * dy.sum_axes_keep(1) - dy.matmul(y));
        let dy_ = 2.0 * (y * dy.sum_axes(0).unsqueeze(1) - dy.t().matmul(x));
        Grads { x: dx, y: dy_ }
    }
}

/// A radial kernel, by the differences of all pairs.
#[py_layer(shapes(x: [n, d], y: [m, d], gamma: [] -> [n, m]), check())]
impl Rbf {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        y: &Tensor<f64>,
        gamma: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, y, gamma));
        let diff = x.unsqueeze(1) - y.unsqueeze(0);
        (-gamma * diff.square().sum_axes(2)).exp()
    }

    fn backward(ctx: &BackwardContext<Self>, dk: &Tensor<f64>) -> Grads {
        let (x, y, gamma) = ctx.saved_tensor();
        let diff = x.unsqueeze(1) - y.unsqueeze(0);
        let dist = diff.square().sum_axes(-1);
        let de = dk * (-gamma * &dist).exp();
        let ddiff = (-2.0 * gamma * &de).unsqueeze(-1) * &diff;
        Grads { x: ddiff.sum_axes(1), y: -ddiff.sum_axes(0), gamma: -(de * dist).sum() }
    }
}

/// Squared Mahalanobis distance by a factor of the precision.
#[py_layer(shapes(x: [b.., n], mean: [n], factor: [n, r] -> [b..]), check())]
impl Mahalanobis {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        mean: &Tensor<f64>,
        factor: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, mean, factor));
        (x - mean).matmul(factor).square().sum_axes(-1)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, mean, factor) = ctx.saved_tensor();
        let centred = x - mean;
        let dz = 2.0 * centred.matmul(factor) * dy.unsqueeze(-1);
        let dx = dz.matmul(&factor.t());
        let [n, r] = [factor.dim(0) as isize, factor.dim(1) as isize];
        Grads {
            mean: -dx.sum_to(mean.shape()),
            factor: centred.reshape([-1, n]).t().matmul(&dz.reshape([-1, r])),
            x: dx,
        }
    }
}

/// A step of Sinkhorn's iteration in logarithms.
#[py_layer(shapes(scores: [n, m], v: [m] -> [n]), check())]
impl SinkhornStep {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        scores: &Tensor<f64>,
        v: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((scores, v));
        -(scores + v).logsumexp(-1)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (scores, v) = ctx.saved_tensor();
        let p = (scores + v).softmax(-1);
        let ds = -p * dy.unsqueeze(-1);
        Grads { v: ds.sum_axes(0), scores: ds }
    }
}

/// The cross product of vectors in space.
#[py_layer(shapes(a: [b.., 3], b: [b.., 3] -> [b.., 3]), check())]
impl Cross {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((a, b));
        Self::cross(a, b)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (a, b) = ctx.saved_tensor();
        Grads { a: Self::cross(b, dy), b: Self::cross(dy, a) }
    }

    fn cross(a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        let (next, last) = (|t: &Tensor<f64>| t.roll(-1, -1), |t: &Tensor<f64>| t.roll(1, -1));
        next(a) * last(b) - last(a) * next(b)
    }
}

/// Points of the plane, turned by an angle for each batch.
#[py_layer(shapes(points: [b, n, 2], angle: [b] -> [b, n, 2]), check())]
impl Rotate {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        points: &Tensor<f64>,
        angle: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((points, angle));
        points.matmul(&matrix(&angle.cos(), &angle.sin()))
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (points, angle) = ctx.saved_tensor();
        let (cos, sin) = (angle.cos(), angle.sin());
        let slope = points.matmul(&matrix(&-&sin, &cos));
        Grads { points: dy.matmul(&matrix(&cos, &sin).t()), angle: (dy * slope).sum_axes(&[1, 2]) }
    }
}

fn matrix(cos: &Tensor<f64>, sin: &Tensor<f64>) -> Tensor<f64> {
    let rows = [Tensor::stack(&[cos, sin], -1), Tensor::stack(&[&-sin, cos], -1)];
    Tensor::stack(&rows, 1)
}
