//! dfdx. Its tanh is the built-in one: what a user writes on its tape is slower.

use dfdx::prelude::*;
use kit::{
    AB, ABC, BATCH, CHAIN, ELEMENTWISE, MEMORY, RATE, SCALARS, USES, WIDTHS, Work, classes, input,
    input_f32, scaled_f32, size, widened,
};

fn main() {
    kit::serve(|row| match row {
        "W1-forward" | "W1-formula-forward" => chain(false),
        "W1" | "W1-formula" => chain(true),
        "W2" => built_in(),
        _ if row.starts_with("W3-forward-") => tanh(size(row), false),
        _ if row.starts_with("W3-formula-") => None,
        _ if row.starts_with("W3-") => tanh(size(row), true),
        "W4-scalars" | "W4-formula" => scalars(),
        "W4-tensors" => tensors(),
        "W5-row" => product::<f32>(1, 784, 128),
        _ if row.starts_with("W5-f64-") => product::<f64>(size(row), size(row), size(row)),
        _ if row.starts_with("W5-") => product::<f32>(size(row), size(row), size(row)),
        "W6" => step(),
        _ if row.starts_with("W7-") => scalar_chain(size(row)),
        "W8" => memory(),
        "W9" => fan_out(),
        _ => None,
    });
}

fn chain(backward: bool) -> Option<Work> {
    let dev = Cpu::default();
    let x: Tensor<Rank2<2, 3>, f64, _> = dev.tensor_from_vec(input(6), (Const, Const));
    let work = move || {
        let mut y = x.leaky_trace();
        for _ in 0..CHAIN {
            y = y.tanh();
        }
        if !backward {
            return y.split_tape().0;
        }
        y.mean().backward().get(&x)
    };
    Work::new(work, |dx| dx.as_vec())
}

fn built_in() -> Option<Work> {
    let dev = Cpu::default();
    let x: Tensor<Rank2<2, 3>, f32, _> = dev.tensor_from_vec(input_f32(6), (Const, Const));
    let a: Tensor<Rank2<2, 3>, f32, _> = dev.tensor_from_vec(vec![AB[0]; 6], (Const, Const));
    let b: Tensor<Rank2<2, 3>, f32, _> = dev.tensor_from_vec(vec![AB[1]; 6], (Const, Const));
    let work = move || {
        let mut y = x.leaky_trace();
        for _ in 0..CHAIN {
            y = (y * a.clone() + b.clone()).tanh();
        }
        y.mean().backward().get(&x)
    };
    Work::new(work, |dx| widened(&dx.as_vec()))
}

fn tanh(n: usize, backward: bool) -> Option<Work> {
    let dev = Cpu::default();
    let x: Tensor<(usize,), f32, _> = dev.tensor_from_vec(input_f32(n), (n,));
    let work = move || {
        let y = x.leaky_trace().tanh();
        if !backward {
            return y.split_tape().0;
        }
        y.sum::<Rank0, _>().backward().get(&x)
    };
    Work::new(work, |dx| widened(&dx.as_vec()))
}

fn scalars() -> Option<Work> {
    let dev = Cpu::default();
    let n = ELEMENTWISE;
    let x: Tensor<(usize,), f32, _> = dev.tensor_from_vec(input_f32(n), (n,));
    let [a, b, c] = ABC;
    let work = move || {
        let loss = ((x.leaky_trace() * a + b).relu() * c).sum::<Rank0, _>();
        loss.backward().get(&x)
    };
    Work::new(work, |dx| widened(&dx.as_vec()))
}

fn tensors() -> Option<Work> {
    let dev = Cpu::default();
    let n = ELEMENTWISE;
    let x: Tensor<(usize,), f32, _> = dev.tensor_from_vec(input_f32(n), (n,));
    let [a, b, c] =
        ABC.map(|v| -> Tensor<(usize,), f32, _> { dev.tensor_from_vec(vec![v; n], (n,)) });
    let work = move || {
        let y = (x.leaky_trace() * a.clone() + b.clone()).relu() * c.clone();
        let grads = y.sum::<Rank0, _>().backward();
        (grads.get(&x), grads.get(&a), grads.get(&b), grads.get(&c))
    };
    Work::new(work, |(dx, da, ..)| widened(&(dx + da).as_vec()))
}

fn product<E: Dtype + num::Of>(m: usize, k: usize, n: usize) -> Option<Work>
where
    Cpu: Device<E>,
{
    let dev = Cpu::default();
    let data = |n: usize| input(n).into_iter().map(E::of).collect::<Vec<E>>();
    let a: Tensor<(usize, usize), E, _> = dev.tensor_from_vec(data(m * k), (m, k));
    let b: Tensor<(usize, usize), E, _> = dev.tensor_from_vec(data(k * n), (k, n));
    let work = move || {
        let grads = a.leaky_trace().matmul(b.clone()).sum::<Rank0, _>().backward();
        (grads.get(&a), grads.get(&b))
    };
    let wide = |v: Vec<E>| v.into_iter().map(E::wide).collect::<Vec<f64>>();
    Work::new(work, move |(da, db)| [wide(da.as_vec()), wide(db.as_vec())].concat())
}

mod num {
    pub trait Of {
        fn of(v: f64) -> Self;
        fn wide(self) -> f64;
    }

    impl Of for f32 {
        fn of(v: f64) -> Self {
            v as f32
        }

        fn wide(self) -> f64 {
            f64::from(self)
        }
    }

    impl Of for f64 {
        fn of(v: f64) -> Self {
            v
        }

        fn wide(self) -> f64 {
            self
        }
    }
}

fn step() -> Option<Work> {
    const N: [usize; 4] = WIDTHS;
    let dev = Cpu::default();
    let weight = |i: usize| scaled_f32(N[i] * N[i + 1], 0.05);
    let bias = |i: usize| scaled_f32(N[i + 1], 0.05);
    let mut w1: Tensor<Rank2<64, 256>, f32, _> = dev.tensor_from_vec(weight(0), (Const, Const));
    let mut w2: Tensor<Rank2<256, 256>, f32, _> = dev.tensor_from_vec(weight(1), (Const, Const));
    let mut w3: Tensor<Rank2<256, 10>, f32, _> = dev.tensor_from_vec(weight(2), (Const, Const));
    let mut b1: Tensor<Rank1<256>, f32, _> = dev.tensor_from_vec(bias(0), (Const,));
    let mut b2: Tensor<Rank1<256>, f32, _> = dev.tensor_from_vec(bias(1), (Const,));
    let mut b3: Tensor<Rank1<10>, f32, _> = dev.tensor_from_vec(bias(2), (Const,));
    let x: Tensor<Rank2<128, 64>, f32, _> =
        dev.tensor_from_vec(input_f32(BATCH * N[0]), (Const, Const));
    let mut hot = vec![0.0; BATCH * N[3]];
    for (i, class) in classes(BATCH, N[3]).into_iter().enumerate() {
        hot[i * N[3] + class] = 1.0;
    }
    let y: Tensor<Rank2<128, 10>, f32, _> = dev.tensor_from_vec(hot, (Const, Const));
    let mut step = move || {
        let hidden = x.leaky_trace().matmul(w1.clone());
        let hidden = (hidden + b1.clone().broadcast_like(&(Const::<128>, Const::<256>))).tanh();
        let hidden = hidden.matmul(w2.clone());
        let hidden = (hidden + b2.clone().broadcast_like(&(Const::<128>, Const::<256>))).tanh();
        let logits = hidden.matmul(w3.clone());
        let logits = logits + b3.clone().broadcast_like(&(Const::<128>, Const::<10>));
        let loss = cross_entropy_with_logits_loss(logits, y.clone());
        let value = f64::from(loss.array());
        let grads = loss.backward();
        let rate = RATE as f32;
        w1 = w1.clone() - grads.get(&w1) * rate;
        w2 = w2.clone() - grads.get(&w2) * rate;
        w3 = w3.clone() - grads.get(&w3) * rate;
        b1 = b1.clone() - grads.get(&b1) * rate;
        b2 = b2.clone() - grads.get(&b2) * rate;
        b3 = b3.clone() - grads.get(&b3) * rate;
        value
    };
    let first = [step(), step()];
    Work::new(step, move |third| vec![first[0], first[1], third])
}

fn scalar_chain(n: usize) -> Option<Work> {
    let dev = Cpu::default();
    let x: Tensor<Rank0, f64, _> = dev.tensor(1.0);
    let [a, b] = SCALARS.map(|v| -> Tensor<Rank0, f64, _> { dev.tensor(v) });
    let work = move || {
        let mut y = x.leaky_trace();
        for i in 0..n {
            y = if i % 2 == 0 { y * a.clone() } else { y + b.clone() };
        }
        y.backward().get(&x)
    };
    Work::new(work, |dx| dx.as_vec())
}

fn memory() -> Option<Work> {
    let (n, ops) = MEMORY;
    let dev = Cpu::default();
    let x: Tensor<(usize,), f32, _> = dev.tensor_from_vec(input_f32(n), (n,));
    let work = move || {
        let mut y = x.leaky_trace();
        for _ in 0..ops {
            y = y.tanh();
        }
        y.sum::<Rank0, _>().backward().get(&x)
    };
    Work::new(work, |dx| widened(&dx.as_vec()[..64]))
}

fn fan_out() -> Option<Work> {
    let dev = Cpu::default();
    let x: Tensor<Rank1<6>, f32, _> = dev.tensor_from_vec(input_f32(6), (Const,));
    let work = move || {
        let mut sum = x.leaky_trace() * 0.5;
        for _ in 1..USES {
            let (so_far, tape) = sum.split_tape();
            sum = x.clone().put_tape(tape) * 0.5 + so_far;
        }
        sum.sum::<Rank0, _>().backward().get(&x)
    };
    Work::new(work, |dx| widened(&dx.as_vec()))
}
