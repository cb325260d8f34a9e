//! Cells and scans.

use autograd_core::prelude::*;

/// An LSTM cell: the next state and the next memory.
#[py_layer(shapes(x: [b, n], h: [b, d], c: [b, d], w: [n + d, 4 * d], bias: [4 * d] -> ([b, d], [b, d])), check())]
impl LstmCell {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        h: &Tensor<f64>,
        c: &Tensor<f64>,
        w: &Tensor<f64>,
        bias: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>) {
        ctx.save_for_backward((x, h, c, w, bias));
        let z = Tensor::concat(&[x, h], 1).matmul(w) + bias;
        let gates = z.chunk(4, 1);
        let (i, f, g, o) =
            (gates[0].sigmoid(), gates[1].sigmoid(), gates[2].tanh(), gates[3].sigmoid());
        let c = f * c + i * g;
        (o * c.tanh(), c)
    }

    fn backward(ctx: &BackwardContext<Self>, dh: &Tensor<f64>, dc: &Tensor<f64>) -> Grads {
        let (x, h, c, w, bias) = ctx.saved_tensor();
        let xh = Tensor::concat(&[x, h], 1);
        let z = xh.matmul(w) + bias;
        let d = h.shape()[1];
        let gate = |at: usize| z.narrow(1, at * d, d);
        let (i, f, g, o) =
            (gate(0).sigmoid(), gate(1).sigmoid(), gate(2).tanh(), gate(3).sigmoid());
        let top = (&f * c + &i * &g).tanh();
        let dc = dc + dh * &o * (1.0 - top.square());
        let slope = |s: &Tensor<f64>| s * (1.0 - s);
        let dz = Tensor::concat(
            &[
                &dc * &g * slope(&i),
                &dc * c * slope(&f),
                &dc * &i * (1.0 - g.square()),
                dh * top * slope(&o),
            ],
            1,
        );
        let dxh = dz.matmul(&w.t());
        let n = x.shape()[1];
        Grads {
            x: dxh.narrow(1, 0, n),
            h: dxh.narrow(1, n, d),
            c: dc * f,
            w: xh.t().matmul(&dz),
            bias: dz.sum_axes(0),
        }
    }
}

/// A gated unit of one gate: the old state, or a new one.
#[py_layer(shapes(x: [b, n], h: [b, d], wz: [n, d], uz: [d, d], wn: [n, d] -> [b, d]), check())]
impl MinimalGru {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        h: &Tensor<f64>,
        wz: &Tensor<f64>,
        uz: &Tensor<f64>,
        wn: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, h, wz, uz, wn));
        let z = (x.matmul(wz) + h.matmul(uz)).sigmoid();
        let n = x.matmul(wn).tanh();
        &z * h + (1.0 - &z) * n
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, h, wz, uz, wn) = ctx.saved_tensor();
        let z = (x.matmul(wz) + h.matmul(uz)).sigmoid();
        let n = x.matmul(wn).tanh();
        let da = dy * (h - &n) * &z * (1.0 - &z);
        let dn = dy * (1.0 - &z) * (1.0 - n.square());
        let mut dx = da.matmul(&wz.t());
        dx = dx + dn.matmul(&wn.t());
        let dh = dy * &z + da.matmul(&uz.t());
        let x_t = x.t();
        Grads { x: dx, h: dh, wz: x_t.matmul(&da), uz: h.t().matmul(&da), wn: x_t.matmul(&dn) }
    }
}

/// A step of a diagonal state space model: the output and the next state.
#[py_layer(
    shapes(u: [b, d], state: [b, d, n], decay: [d, n], input: [d, n], read: [n] -> ([b, d], [b, d, n])),
    check()
)]
impl SsmStep {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        u: &Tensor<f64>,
        state: &Tensor<f64>,
        decay: &Tensor<f64>,
        input: &Tensor<f64>,
        read: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>) {
        ctx.save_for_backward((u, state, decay, input, read));
        let next = state * decay + u.unsqueeze(-1) * input;
        (next.matmul(read), next)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>, dnext: &Tensor<f64>) -> Grads {
        let (u, state, decay, input, read) = ctx.saved_tensor();
        let next = state * decay + u.unsqueeze(-1) * input;
        let ds = dnext + dy.unsqueeze(-1) * read;
        Grads {
            u: (&ds * input).sum_axes(-1),
            state: &ds * decay,
            decay: (&ds * state).sum_axes(0),
            input: (&ds * u.unsqueeze(-1)).sum_axes(0),
            read: (next * dy.unsqueeze(-1)).sum_axes(&[0, 1]),
        }
    }
}

/// A linear recurrence over a sequence, by a loop.
#[py_layer(shapes(x: [l, d], decay: [d] -> [l, d]), check())]
impl LinearScan {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        decay: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, decay));
        Self::scan(x, decay)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, decay) = ctx.saved_tensor();
        let l = x.shape()[0];
        // The adjoint runs from the end.
        let dx = Self::scan(&dy.flip(0), decay).flip(0);
        let y = Self::scan(x, decay);
        let before = dx.narrow(0, 1, l - 1) * y.narrow(0, 0, l - 1);
        Grads { x: dx, decay: before.sum_axes(0) }
    }

    fn scan(x: &Tensor<f64>, decay: &Tensor<f64>) -> Tensor<f64> {
        let mut state = Tensor::zeros_like(decay);
        let mut states = Vec::new();
        for t in 0..x.shape()[0] {
            state = state * decay + x.select(0, t);
            states.push(state.clone());
        }
        Tensor::stack(&states, 0)
    }
}

/// A highway layer: what is carried and what is transformed.
#[py_layer(shapes(x: [b, n], w: [n, n], gate: [n, n] -> [b, n]), check())]
impl Highway {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        gate: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, w, gate));
        let t = x.matmul(gate).sigmoid();
        let h = x.matmul(w);
        h * &t + x * (1.0 - t)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w, gate) = ctx.saved_tensor();
        let t = x.matmul(gate).sigmoid();
        let h = x.matmul(w);
        let dh = dy * &t;
        let da = dy * (h - x) * &t * (1.0 - &t);
        Grads {
            x: dh.matmul(&w.t()) + da.matmul(&gate.t()) + dy * (1.0 - t),
            w: x.t().matmul(&dh),
            gate: x.t().matmul(&da),
        }
    }
}
