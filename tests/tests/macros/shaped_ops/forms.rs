//! Ways to write bodies: early returns, macros, loops, shadowed names, blocks, what is not needed.

use autograd_core::prelude::*;

/// Computes only the gradients that are wanted.
#[py_layer(shapes(x: [b, n], w: [n, m] -> [b, m]), check())]
impl OnlyNeeded {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x.matmul(w)
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> (Option<Tensor<f64>>, Option<Tensor<f64>>) {
        let (x, w) = ctx.saved_tensor();
        let needs = ctx.needs_input_grad();
        let dx = needs.x.then(|| dy.matmul(&w.t()));
        let mut dw = None;
        if needs.w {
            dw = Some(x.t().matmul(dy));
        }
        (dx, dw)
    }
}

/// Refuses what it cannot divide, and returns early if there is nothing to do.
#[py_layer(shapes(x: [n, n], s: [] -> [n, n]), check(s = _ in 0.5..1.5))]
impl Checked {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        s: &Tensor<f64>,
    ) -> Result<Tensor<f64>, String> {
        ctx.save_for_backward((x, s));
        if s.item() == 0.0 {
            return Err(format!("{s} divides nothing"));
        }
        if s.item() == 1.0 {
            return Ok(x.clone());
        }
        Ok(x / s)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, s) = ctx.saved_tensor();
        Grads { x: dy / s, s: -(dy * x).sum() / s.square() }
    }
}

/// Names that mean something else line by line.
#[py_layer(shapes(x: [n, m], w: [m, k] -> [k, n]), check())]
impl Shadowed {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        let x = x.matmul(w);
        let x = x.tanh();
        let x = {
            let w = x;
            w.t()
        };
        x
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let dy = dy.t();
        let y = x.matmul(w).tanh();
        let dy = dy * (1.0 - y.square());
        let (x, w) = (dy.matmul(&w.t()), x.t().matmul(&dy));
        Grads { x, w }
    }
}

macro_rules! times {
    ($a:expr, $b:expr) => {
        $a.matmul(&$b)
    };
}

/// Products by a macro, asserted by others.
#[py_layer(shapes(a: [n, k], b: [k, m] -> [n, m]), check())]
impl ByMacro {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        assert_eq!(a.shape()[1], b.shape()[0], "the inner lengths");
        ctx.save_for_backward((a, b));
        times!(a, b)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (a, b) = ctx.saved_tensor();
        debug_assert_eq!(dy.shape(), [a.shape()[0], b.shape()[1]]);
        Grads { a: times!(dy, b.t()), b: times!(a.t(), dy) }
    }
}

/// Layers of one width, one after the other.
#[py_layer(shapes(x: [b, n], w: [layers, n, n] -> [b, n]), check(layers = 2))]
impl Deep {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        let mut y = x.clone();
        for i in 0..w.shape()[0] {
            y = y.matmul(&w.select(0, i)).tanh();
        }
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let mut at = vec![x.clone()];
        for i in 0..w.dim(0) {
            at.push(at[i].matmul(&w.select(0, i)).tanh());
        }
        let mut d = dy.clone();
        let mut dw = Vec::with_capacity(w.dim(0));
        for i in (0..w.dim(0)).rev() {
            d = d * (1.0 - at[i + 1].square());
            dw.push(at[i].t().matmul(&d));
            d = d.matmul(&w.select(0, i).t());
        }
        dw.reverse();
        Grads { x: d, w: Tensor::stack(&dw, 0) }
    }
}

/// A choice of formulas by a parameter.
#[py_layer(shapes(x: [b.., n] -> [b..]), check(mean = true), check(mean = false))]
impl Reduce {
    type Attrs = (bool, Vec<usize>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, mean: bool) -> Tensor<f64> {
        ctx.set_attrs((mean, x.shape().to_owned()));
        if mean { x.mean_axes(-1) } else { x.sum_axes(-1) }
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (mean, shape) = ctx.attrs();
        let n = match shape.last() {
            Some(&n) if *mean => n as f64,
            _ => 1.0,
        };
        (dy / n).unsqueeze(-1).broadcast_to(shape)
    }
}

/// Broadcasting of two inputs with axes of their own.
#[py_layer(shapes(x: [a.., n], y: [b.., n] -> [a.. & b.., n]), check())]
impl BroadcastSum {
    type Attrs = (Vec<usize>, Vec<usize>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {
        ctx.set_attrs((x.shape().into(), y.shape().into()));
        x + 2.0 * y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, y) = ctx.attrs();
        Grads { x: dy.sum_to(x), y: (2.0 * dy).sum_to(y) }
    }
}

/// With a rule for tangents.
#[py_layer(shapes(x: [n, k], y: [k, m] -> [n, m]), check())]
impl WithTangents {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, y));
        x.matmul(y)
    }

    fn backward(ctx: &BackwardContext<Self>, dz: &Tensor<f64>) -> Grads {
        let (x, y) = ctx.saved_tensor();
        Self::Grads { y: x.t().matmul(dz), x: dz.matmul(&y.t()) }
    }

    fn jvp(
        _: &JvpContext<Self>,
        x: &Tensor<f64>,
        y: &Tensor<f64>,
        dx: Option<&Tensor<f64>>,
        dy: &Tensor<f64>,
    ) -> Tensor<f64> {
        let of_y = x.matmul(dy);
        dx.map_or_else(|| of_y.clone(), |dx| dx.matmul(y) + &of_y)
    }
}

/// What is saved in a struct of its own.
#[derive(Saved)]
struct Kept {
    x: Tensor<f64>,
    gain: Tensor<f64>,
}

/// A gain of each channel, saved by names.
#[py_layer(shapes(x: [b, c, l], gain: [c] -> [b, c, l]), check())]
impl ChannelGain {
    type Saved = Kept;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, gain: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(Kept { x: x.clone(), gain: gain.clone() });
        x * gain.reshape([gain.len(), 1])
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let Kept { x, gain } = ctx.saved_tensor();
        Grads { x: dy * gain.unsqueeze(-1), gain: (dy * x).sum_axes([0, -1]) }
    }
}

/// The harmonic mean, with a helper of its own for the slope, and second order left out.
#[py_layer(once_differentiable, shapes(x: [b.., n] -> [b..]), check(x = _ in 0.5..2.0))]
impl Harmonic {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.recip().mean_axes_keep(-1).recip();
        let out = y.squeeze(-1);
        ctx.save_for_backward((x, y));
        out
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (x, y) = ctx.saved_tensor();
        let Some(&n) = x.shape().last() else { return dy.clone() };
        dy.unsqueeze(-1) * (y / x).square() / n as f64
    }
}
