//! `check()` of an op with `shapes(..)`: the generated tests choose the shapes. The wrong backwards are right unless
//! the environment asks for wrong rules, as those of `wrong_rules.rs`; shapes chosen by hand can miss them.

use std::process::Command;

use autograd_core::prelude::*;

use crate::wrong_rules::{WRONG, wrong};

#[py_layer(shapes(x: [b.., n], w: [n, m], bias: [m] -> [b.., m]), check(x = [2, 3]), check(x = [3]))]
impl Linear {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        bias: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        let y = x.matmul(w);
        bias.map_or_else(|| y.clone(), |bias| &y + bias)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let (n, m) = (w.shape()[0] as isize, w.shape()[1] as isize);
        let (rows, dy_rows) = (x.reshape([-1, n]), dy.reshape([-1, m]));
        Grads { x: dy.matmul(&w.t()), w: rows.t().matmul(&dy_rows), bias: dy_rows.sum_axes(&[0]) }
    }
}

#[py_layer(shapes(x: [b.., n], w: [n, m] -> [b.., m]), check())]
impl AnyRank {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x.matmul(w)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let (n, m) = (w.shape()[0] as isize, w.shape()[1] as isize);
        Grads { x: dy.matmul(&w.t()), w: x.reshape([-1, n]).t().matmul(&dy.reshape([-1, m])) }
    }
}

#[py_layer(
    shapes(table: [v, d], index: [l] -> [l, d]),
    check(index = _ in 0..v), check(index = _ in 0..v, v = 3), check(index = [0] in 0..1),
    check(index = _ in 0..v, l = 0), check(index = _ in 0..v, d = 0), check(index = _ in 0..1, v = 0, l = 0)
)]
impl Embedding {
    type Saved = Tensor<i64>;
    type Attrs = usize;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        table: &Tensor<f64>,
        #[stop_gradient] index: &Tensor<i64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward(index);
        ctx.set_attrs(table.shape()[0]);
        table.index_select(0, index)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let rows = Tensor::zeros([*ctx.attrs(), dy.shape()[1]]);
        rows.index_add(0, ctx.saved_tensor(), dy)
    }
}

#[py_layer(shapes(xs: [[n, d]; c], scale: _ -> [c * n, d]), check(scale = [2], times = 3, c = 3), check(scale = [2], n = 1, c = 3))]
impl Rows {
    fn forward(
        ctx: &mut ForwardContext<Self>,
        xs: &[&Tensor<f64>],
        scale: &Tensor<f64>,
        #[default(2)] times: usize,
    ) -> Tensor<f64> {
        let _ = (ctx, scale, times);
        Tensor::concat(xs, 0)
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Vec<Tensor<f64>>, Tensor<f64>) {
        (dy.chunk(3, 0), Tensor::zeros([2]))
    }
}

#[py_layer(shapes(x: [b.., n], y: [a.., n], k: [k, n] -> [b.. & a.., k * n]), check(k = _ in 1.0..2.0), check())]
impl<T: Float> Broadcast<T> {
    type Saved = (Tensor<T>, Tensor<T>, Tensor<T>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<T>,
        y: &Tensor<T>,
        k: &Tensor<T>,
    ) -> Tensor<T> {
        ctx.save_for_backward((x, y, k));
        let each: Vec<_> = (0..k.shape()[0]).map(|i| x * y * k.select(0, i)).collect();
        Tensor::concat(&each, -1)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Grads {
        let (x, y, k) = ctx.saved_tensor();
        let mut grads = (Tensor::zeros(x.shape()), Tensor::zeros(y.shape()), Vec::new());
        for (i, dy) in dy.chunk(k.shape()[0], -1).into_iter().enumerate() {
            let k = k.select(0, i);
            grads.0 += (&dy * y * &k).sum_to(x.shape());
            grads.1 += (&dy * x * &k).sum_to(y.shape());
            grads.2.push((&dy * x * y).sum_to(k.shape()));
        }
        Grads { x: grads.0, y: grads.1, k: Tensor::stack(&grads.2, 0) }
    }
}

/// Right for matrices only.
#[py_layer(shapes(x: [b.., n], w: [n, m] -> [b.., m]), check(), check(x = [2, 3], w = [3, 2]))]
impl WrongRank {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x.matmul(w)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let rows = |t: &Tensor<f64>| t.reshape([-1, t.shape()[t.shape().len() - 1] as isize]);
        let flat = |t: &Tensor<f64>| if wrong() { t.clone() } else { rows(t) };
        Grads { x: dy.matmul(&w.t()), w: flat(x).t().matmul(&flat(dy)) }
    }
}

/// The bias is summed over the first axis only.
#[py_layer(shapes(x: [b.., m], bias: [m] -> [b.., m]), check(), check(x = [2, 3], bias = [3]))]
impl WrongSum {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, bias: &Tensor<f64>) -> Tensor<f64> {
        x + bias
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let all = |dy: &Tensor<f64>| dy.reshape([-1, dy.shape()[dy.shape().len() - 1] as isize]);
        let sum = |dy: &Tensor<f64>| dy.sum_axes(&[0]);
        Grads { x: dy.clone(), bias: if wrong() { sum(dy) } else { sum(&all(dy)) } }
    }
}

/// Divided by the length of another axis.
#[py_layer(shapes(x: [b, n] -> [b]), check(), check(x = [3, 3]))]
impl WrongAxis {
    type Attrs = (usize, usize);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.set_attrs((x.shape()[0], x.shape()[1]));
        x.mean_axes(&[1])
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let &(b, n) = ctx.attrs();
        dy.unsqueeze(1).broadcast_to([b, n]) / (if wrong() { b } else { n }) as f64
    }
}

/// The broadcast is undone for single numbers only.
#[py_layer(shapes(x: [a..], y: [b..] -> [a.. & b..]), check(), check(x = [2, 3], y = []))]
impl WrongBroadcast {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, y));
        x * y
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> autograd_core::Result<(Tensor<f64>, Tensor<f64>)> {
        let (x, y) = ctx.saved_tensor();
        let alone =
            |dy: Tensor<f64>, x: &Tensor<f64>| if x.shape().is_empty() { dy.sum() } else { dy };
        let summed = |dy: Tensor<f64>, x: &Tensor<f64>| {
            if wrong() { alone(dy, x) } else { dy.sum_to(x.shape()) }
        };
        Ok((summed(dy * y, x), summed(dy * x, y)))
    }
}

/// The axes are not permuted back.
#[py_layer(shapes(x: [b, s, heads * d] -> [b, heads, s, d]), check(), check(x = [2, 3, 4], heads = 1))]
impl WrongOrder {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, heads: usize) -> Tensor<f64> {
        let &[b, s, c] = x.shape() else { unreachable!() };
        x.reshape([b, s, heads, c / heads]).permute(&[0, 2, 1, 3])
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let &[b, h, s, d] = dy.shape() else { unreachable!() };
        let back = if wrong() { dy.clone() } else { dy.permute(&[0, 2, 1, 3]) };
        back.reshape([b, s, h * d])
    }
}

/// Gradients exchanged between inputs of one shape.
#[py_layer(shapes(x: [n], y: [n] -> [n]), check())]
impl WrongInput {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, y));
        x * y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (x, y) = ctx.saved_tensor();
        if wrong() { (dy * x, dy * y) } else { (dy * y, dy * x) }
    }
}

/// Each wrong backward fails in a shape that the test chose, and five of six pass in one chosen by hand.
#[test]
fn chosen_shapes_find_what_shapes_by_hand_miss() {
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["shapes::Wrong", "--test-threads", "1"])
        .env(WRONG, "1")
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&run.stdout);
    let of = |op: &str, result: &str| format!("test shapes::{op}_first_order ... {result}");
    for op in ["WrongRank", "WrongSum", "WrongAxis", "WrongBroadcast", "WrongOrder"] {
        assert!(out.contains(&of(&format!("{op}_check_1"), "FAILED")), "{op}\n{out}");
        assert!(out.contains(&of(&format!("{op}_check_2"), "ok")), "{op}\n{out}");
    }
    assert!(out.contains(&of("WrongInput_check", "FAILED")), "{out}");
    assert!(out.contains("check(n = 2): WrongInput: `x`, element [0]: the slope is"), "{out}");
}
