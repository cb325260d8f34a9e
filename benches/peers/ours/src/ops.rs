//! Rows of single ops and chains of them.

use autograd_core::prelude::*;
use kit::{
    AB, ABC, BATCH_ELEMENTS, CHAIN, ELEMENTWISE, MEMORY, SCALARS, USES, Work, input, input_f32,
    widened,
};

#[py_layer]
impl<T: Float> CusTanh<T> {
    type Saved = Tensor<T>;

    pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let y = ctx.saved_tensor();
        dy * (1.0 - y.square())
    }
}

/// A leaf that wants a gradient.
pub fn leaf<T: Float>(data: Vec<T>, shape: &[usize]) -> Tensor<T> {
    let x = Tensor::from(data).reshape(shape);
    x.set_stop_gradient(false);
    x
}

/// Takes the leaf's gradient.
pub fn take<T: Float>(x: &Tensor<T>) -> Tensor<T> {
    let grad = x.grad().expect("x wants a gradient");
    x.clear_grad();
    grad
}

pub fn numbers<T: Float>(x: Tensor<T>) -> Vec<f64> {
    x.to_vec().into_iter().map(T::into_f64).collect()
}

pub fn chain(backward: bool) -> Option<Work> {
    chain_of(|x| CusTanh::apply(x), backward)
}

/// A chain of one op on six numbers.
pub fn chain_of(
    op: impl Fn(&Tensor<f64>) -> Tensor<f64> + 'static,
    backward: bool,
) -> Option<Work> {
    let x = leaf(input(6), &[2, 3]);
    let work = move || {
        let mut y = op(&x);
        for _ in 1..CHAIN {
            y = op(&y);
        }
        if !backward {
            return y;
        }
        y.mean().backward().expect("the graph is new");
        take(&x)
    };
    Work::new(work, numbers)
}

/// For a batch that is dropped before the next one is created.
pub fn from_vec() -> Option<Work> {
    let batch = input_f32(BATCH_ELEMENTS);
    Work::new(move || Tensor::from(batch.clone()), numbers)
}

pub fn from_slice() -> Option<Work> {
    let batch = input_f32(BATCH_ELEMENTS);
    Work::new(move || Tensor::from(&batch[..]), numbers)
}

pub fn built_in() -> Option<Work> {
    let x = leaf(input_f32(6), &[2, 3]);
    let a = Tensor::<f32>::full([2, 3], AB[0]);
    let b = Tensor::<f32>::full([2, 3], AB[1]);
    let work = move || {
        let mut y = (&x * &a + &b).tanh();
        for _ in 1..CHAIN {
            y = (y * &a + &b).tanh();
        }
        y.mean().backward().expect("the graph is new");
        take(&x)
    };
    Work::new(work, numbers)
}

pub fn tanh(n: usize, backward: bool) -> Option<Work> {
    let x = leaf(input_f32(n), &[n]);
    let seed = Tensor::<f32>::ones([n]);
    let work = move || {
        let y = CusTanh::apply(&x);
        if !backward {
            return y;
        }
        y.backward_with(&seed).expect("the graph is new");
        take(&x)
    };
    Work::new(work, numbers)
}

pub fn scalars() -> Option<Work> {
    let x = leaf(input_f32(ELEMENTWISE), &[ELEMENTWISE]);
    let [a, b, c] = ABC;
    let work = move || {
        ((&x * a + b).relu() * c).sum().backward().expect("the graph is new");
        take(&x)
    };
    Work::new(work, numbers)
}

pub fn tensors() -> Option<Work> {
    let x = leaf(input_f32(ELEMENTWISE), &[ELEMENTWISE]);
    let abc = ABC.map(|v| leaf(vec![v; ELEMENTWISE], &[ELEMENTWISE]));
    let work = move || {
        let [a, b, c] = &abc;
        ((&x * a + b).relu() * c).sum().backward().expect("the graph is new");
        let rest = [a, b, c].map(take);
        (take(&x), rest)
    };
    Work::new(work, |(x, [a, ..])| numbers(x + a))
}

/// A product, and the gradients of both factors.
pub fn product<T: Float>(m: usize, k: usize, n: usize) -> Option<Work> {
    let from = |n: usize| input(n).into_iter().map(T::from_f64).collect::<Vec<T>>();
    let a = leaf(from(m * k), &[m, k]);
    let b = leaf(from(k * n), &[k, n]);
    let seed = Tensor::<T>::ones([m, n]);
    let work = move || {
        a.matmul(&b).backward_with(&seed).expect("the graph is new");
        (take(&a), take(&b))
    };
    Work::new(work, |(da, db)| [numbers(da), numbers(db)].concat())
}

pub fn square<T: Float>(n: usize) -> Option<Work> {
    product::<T>(n, n, n)
}

pub fn scalar_chain(n: usize) -> Option<Work> {
    let x = leaf(vec![1.0], &[]);
    let [a, b] = SCALARS.map(Tensor::<f64>::from);
    let work = move || {
        let mut y = &x * &a;
        for i in 1..n {
            y = if i % 2 == 0 { y * &a } else { y + &b };
        }
        y.backward().expect("the graph is new");
        take(&x)
    };
    Work::new(work, numbers)
}

pub fn memory() -> Option<Work> {
    let (n, ops) = MEMORY;
    let x = leaf(input_f32(n), &[n]);
    let seed = Tensor::<f32>::ones([n]);
    let work = move || {
        let mut y = CusTanh::apply(&x);
        for _ in 1..ops {
            y = CusTanh::apply(&y);
        }
        y.backward_with(&seed).expect("the graph is new");
        take(&x)
    };
    Work::new(work, |grad| widened(&grad.to_vec()[..64]))
}

#[allow(clippy::assign_op_pattern, reason = "a new tensor each time, as the peers' rows have")]
pub fn fan_out() -> Option<Work> {
    let x = leaf(input_f32(6), &[6]);
    let work = move || {
        let mut sum = &x * 0.5;
        for _ in 1..USES {
            sum = sum + &x * 0.5;
        }
        sum.sum().backward().expect("the graph is new");
        take(&x)
    };
    Work::new(work, numbers)
}
