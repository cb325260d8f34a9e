//! Convolutions, pooling, and axes that are cut and joined.

use autograd_core::Padding;
use autograd_core::prelude::*;

/// A convolution as windows and one product.
#[py_layer(shapes(x: [b, c, l], w: [o, c, k] -> [b, o, l - k + 1]), check(l = 4, k = 2))]
impl Conv1d {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        let &[o, c, k] = w.shape() else { unreachable!() };
        w.reshape([o, c * k]).matmul(&Self::columns(x, k))
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let &[o, c, k] = w.shape() else { unreachable!() };
        let &[b, _, l] = x.shape() else { unreachable!() };
        let dw = dy.matmul(&Self::columns(x, k).t()).sum_axes(0).reshape([o, c, k]);
        let dcolumns = w.reshape([o, c * k]).t().matmul(dy).reshape([b, c, k, l - k + 1]);
        let mut dx = Tensor::zeros([b, c, l]);
        for at in 0..k {
            let part = dcolumns.select(2, at);
            dx = dx + part.pad(&[[0, 0], [0, 0], [at, k - 1 - at]], Padding::Constant(0.0));
        }
        Grads { x: dx, w: dw }
    }

    fn columns(x: &Tensor<f64>, k: usize) -> Tensor<f64> {
        let windows = x.unfold(2, k, 1);
        let &[b, c, places, k] = windows.shape() else { unreachable!() };
        windows.permute(&[0, 1, 3, 2]).reshape([b, c * k, places])
    }
}

/// A convolution with kernels of one element.
#[py_layer(shapes(x: [b, c, h, w], kernel: [o, c] -> [b, o, h, w]), check())]
impl Pointwise {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        kernel: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, kernel));
        let &[b, c, h, w] = x.shape() else { unreachable!() };
        kernel.matmul(&x.reshape([b, c, h * w])).reshape([b, kernel.dim(0), h, w])
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, kernel) = ctx.saved_tensor();
        let &[b, c, h, w] = x.shape() else { unreachable!() };
        let dy = dy.reshape([b, kernel.shape()[0], h * w]);
        let dx = kernel.t().matmul(&dy).reshape([b, c, h, w]);
        let dkernel = dy.matmul(&x.reshape([b, c, h * w]).t()).sum_axes(0);
        Grads { x: dx, kernel: dkernel }
    }
}

/// The mean of each window of `p` by `p`.
#[py_layer(shapes(x: [b, c, h * p, w * p] -> [b, c, h, w]), check(p = 2))]
impl AvgPool {
    type Attrs = usize;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, p: usize) -> Tensor<f64> {
        ctx.set_attrs(p);
        let [b, c, h, w] = <[usize; 4]>::try_from(x.shape()).unwrap();
        x.reshape([b, c, h / p, p, w / p, p]).mean_axes(&[3, 5])
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let p = *ctx.attrs();
        dy.repeat_interleave(p, 2).repeat_interleave(p, 3) / (p * p) as f64
    }
}

/// The greatest element of each window, which has a constant length.
#[py_layer(shapes(x: [b, P * n] -> [b, n]))]
impl<const P: usize> MaxPool<P> {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let &[b, l] = x.shape() else { unreachable!() };
        let windows = x.reshape([b, l / P, P]);
        let (y, at) = windows.max_with_indices(-1);
        ctx.save_for_backward(at.one_hot(P));
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let hot = ctx.saved_tensor();
        let [b, n] = *dy.shape() else { unreachable!() };
        (dy.unsqueeze(-1) * hot).reshape([b, n * P])
    }
}

/// Channels moved into space.
#[py_layer(shapes(x: [b, c * r * r, h, w] -> [b, c, h * r, w * r]), check(r = 2), check())]
impl PixelShuffle {
    type Attrs = usize;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, r: usize) -> Tensor<f64> {
        ctx.set_attrs(r);
        let &[b, channels, h, w] = x.shape() else { unreachable!("four axes") };
        let c = channels / (r * r);
        x.reshape([b, c, r, r, h, w]).permute(&[0, 1, 4, 2, 5, 3]).reshape([b, c, h * r, w * r])
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let r = *ctx.attrs();
        let &[b, c, h, w] = dy.shape() else { unreachable!("four axes") };
        let (h, w) = (h / r, w / r);
        dy.reshape([b, c, h, r, w, r]).permute(&[0, 1, 3, 5, 2, 4]).reshape([b, c * r * r, h, w])
    }
}

/// An image as rows of patches.
#[py_layer(shapes(x: [b, c, h * p, w * p] -> [b, h * w, c * p * p]), check(p = 2))]
impl Patches {
    type Attrs = (usize, Vec<usize>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, p: usize) -> Tensor<f64> {
        ctx.set_attrs((p, x.shape().to_vec()));
        let (b, c, h, w) = (x.dim(0), x.dim(1), x.dim(2) / p, x.dim(3) / p);
        let cut = x.reshape([b, c, h, p, w, p]);
        cut.permute(&[0, 2, 4, 1, 3, 5]).reshape([b, h * w, c * p * p])
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (p, shape) = ctx.attrs();
        let &[b, c, h, w] = &shape[..] else { unreachable!() };
        let cut = dy.reshape([b, h / p, w / p, c, *p, *p]);
        cut.permute(&[0, 3, 1, 4, 2, 5]).reshape(shape)
    }
}

/// Zeros before and after the last axis.
#[py_layer(shapes(x: [n, m] -> [n, m + left + right]), check(left = 1, right = 2), check())]
impl PadColumns {
    type Attrs = (usize, usize);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        left: usize,
        right: usize,
    ) -> Tensor<f64> {
        ctx.set_attrs((left, x.shape()[1]));
        x.pad(&[[0, 0], [left, right]], Padding::Constant(0.0))
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let &(start, len) = ctx.attrs();
        dy.narrow(1, start, len)
    }
}

/// Differences of neighbours.
#[py_layer(shapes(x: [b.., n + 1] -> [b.., n]), check())]
impl Differences {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let last = x.shape().last().unwrap() - 1;
        x.narrow(-1, 1, last) - x.narrow(-1, 0, last)
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let zero = Tensor::zeros_like(&dy.narrow(-1, 0, 1));
        Tensor::concat(&[&zero, dy], -1) - Tensor::concat(&[dy, &zero], -1)
    }
}

/// All but the batch in one axis.
#[py_layer(shapes(x: [b, c, h, w] -> [b, c * h * w]), check())]
impl Flatten {
    type Attrs = Vec<usize>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.set_attrs(x.shape().to_vec());
        x.reshape([x.shape()[0] as isize, -1])
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.reshape(ctx.attrs().as_slice())
    }
}

#[test]
fn a_constant_length_is_checked() {
    let x = Tensor::from([[1.0, 3.0, 2.0, 0.5]]);
    x.set_stop_gradient(false);
    let y = MaxPool::<2>::apply(&x);
    assert_eq!(y.to_vec(), [3.0, 2.0]);
    y.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [0.0, 1.0, 1.0, 0.0]);
    let error = MaxPool::<3>::try_apply(&x).unwrap_err().to_string();
    assert_eq!(error, "MaxPool: axis 1 of `x` is 4, must be a multiple of 3 (P * n)");
}
