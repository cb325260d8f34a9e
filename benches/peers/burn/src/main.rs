//! burn, with the backend that its process is told: `flex` or `ndarray`.

// The ndarray backend is on its way out of burn; it is measured while it is there.
#![allow(deprecated)]

#[cfg(test)]
mod porting;
mod tanh;

use burn::Tensor;
use burn::tensor::activation::{gelu_approximate, log_softmax, relu};
use burn::tensor::{DType, Device, Int, TensorData};
use kit::{
    AB, ABC, BATCH, CHAIN, ELEMENTWISE, MEMORY, RATE, SCALARS, USES, WIDTHS, Work, classes, input,
    input_f32, size, weights,
};
use tanh::tanh;

fn main() {
    let device = match std::env::args().nth(1).as_deref() {
        Some("ndarray") => Device::ndarray(),
        _ => Device::flex(),
    };
    let device = &device.autodiff();
    kit::serve(|row| match row {
        "W1-forward" | "W1-formula-forward" => chain(device, false),
        "W1" | "W1-formula" => chain(device, true),
        "W2" => built_in(device),
        _ if row.starts_with("W3-forward-") => elementwise(device, size(row), tanh, false),
        _ if row.starts_with("W3-") => elementwise(device, size(row), tanh, true),
        "W4-scalars" | "W4-formula" => scalars(device),
        "W4-tensors" => tensors(device),
        "W5-row" => product(device, DType::F32, 1, 784, 128),
        _ if row.starts_with("W5-f64-") => {
            product(device, DType::F64, size(row), size(row), size(row))
        }
        _ if row.starts_with("W5-") => product(device, DType::F32, size(row), size(row), size(row)),
        "W6" => step(device),
        _ if row.starts_with("W7-") => scalar_chain(device, size(row)),
        "W8" => memory(device),
        "W9" => fan_out(device),
        "gelu" => elementwise(device, 1_000_000, gelu_approximate, true),
        _ => None,
    });
}

fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    x.into_data().convert::<f64>().to_vec().expect("numbers")
}

fn constant<const D: usize>(device: &Device, data: Vec<f64>, shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(data, shape), (device, DType::F32))
}

fn leaf<const D: usize>(device: &Device, data: Vec<f32>, shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(data, shape), (device, DType::F32)).require_grad()
}

/// The gradient of one leaf.
fn gradient<const D: usize, const E: usize>(y: &Tensor<D>, x: &Tensor<E>) -> Tensor<E> {
    x.grad_remove(&mut y.backward()).expect("x wants a gradient")
}

fn chain(device: &Device, backward: bool) -> Option<Work> {
    let data = TensorData::new(input(6), [2, 3]);
    let x = Tensor::<2>::from_data(data, (device, DType::F64)).require_grad();
    let work = move || {
        let mut y = tanh(x.clone());
        for _ in 1..CHAIN {
            y = tanh(y);
        }
        if backward { gradient(&y.mean(), &x) } else { y }
    };
    Work::new(work, numbers)
}

fn built_in(device: &Device) -> Option<Work> {
    let x = leaf(device, input_f32(6), [2, 3]);
    let [a, b] = AB.map(|v| constant(device, vec![f64::from(v); 6], [2, 3]));
    let work = move || {
        let mut y = x.clone();
        for _ in 0..CHAIN {
            y = (y * a.clone() + b.clone()).tanh();
        }
        gradient(&y.mean(), &x)
    };
    Work::new(work, numbers)
}

fn elementwise(
    device: &Device,
    n: usize,
    op: impl Fn(Tensor<1>) -> Tensor<1> + 'static,
    backward: bool,
) -> Option<Work> {
    let x = leaf(device, input_f32(n), [n]);
    let work = move || {
        let y = op(x.clone());
        if backward { gradient(&y, &x) } else { y }
    };
    Work::new(work, numbers)
}

fn scalars(device: &Device) -> Option<Work> {
    let x = leaf(device, input_f32(ELEMENTWISE), [ELEMENTWISE]);
    let [a, b, c] = ABC;
    let work = move || gradient(&(relu(x.clone() * a + b) * c).sum(), &x);
    Work::new(work, numbers)
}

fn tensors(device: &Device) -> Option<Work> {
    let x = leaf(device, input_f32(ELEMENTWISE), [ELEMENTWISE]);
    let [a, b, c] = ABC.map(|v| leaf(device, vec![v; ELEMENTWISE], [ELEMENTWISE]));
    let work = move || {
        let y = relu(x.clone() * a.clone() + b.clone()) * c.clone();
        let mut grads = y.sum().backward();
        [&x, &a, &b, &c].map(|x| x.grad_remove(&mut grads).expect("it wants a gradient"))
    };
    Work::new(work, |[x, a, ..]| numbers(x + a))
}

fn product(device: &Device, dtype: DType, m: usize, k: usize, n: usize) -> Option<Work> {
    let matrix = |rows: usize, columns: usize| {
        let data = TensorData::new(input(rows * columns), [rows, columns]);
        Tensor::<2>::from_data(data, (device, dtype)).require_grad()
    };
    let (a, b) = (matrix(m, k), matrix(k, n));
    let work = move || {
        let mut grads = a.clone().matmul(b.clone()).backward();
        [&a, &b].map(|x| x.grad_remove(&mut grads).expect("it wants a gradient"))
    };
    Work::new(work, |grads| grads.map(numbers).concat())
}

fn step(device: &Device) -> Option<Work> {
    let device = device.clone();
    let mut parameters: Vec<(Tensor<2>, Tensor<1>)> =
        (weights(&WIDTHS).into_iter().zip(WIDTHS.windows(2)))
            .map(|((w, b), n)| (leaf(&device, w, [n[0], n[1]]), leaf(&device, b, [n[1]])))
            .collect();
    let x = constant(&device, input(BATCH * WIDTHS[0]), [BATCH, WIDTHS[0]]);
    let y: Vec<i64> = classes(BATCH, WIDTHS[3]).into_iter().map(|c| c as i64).collect();
    let y = Tensor::<2, Int>::from_data(TensorData::new(y, [BATCH, 1]), &device);
    let mut step = move || {
        let mut hidden = x.clone();
        for (i, (w, b)) in parameters.iter().enumerate() {
            hidden = hidden.matmul(w.clone()) + b.clone().unsqueeze();
            if i < 2 {
                hidden = tanh(hidden);
            }
        }
        let loss = log_softmax(hidden, 1).gather(1, y.clone()).mean().neg();
        let mut grads = loss.backward();
        for (w, b) in &mut parameters {
            let dw = w.grad_remove(&mut grads).expect("w wants a gradient");
            let db = b.grad_remove(&mut grads).expect("b wants a gradient");
            *w = Tensor::from_inner(w.clone().inner() - dw * RATE).require_grad();
            *b = Tensor::from_inner(b.clone().inner() - db * RATE).require_grad();
        }
        numbers(loss)[0]
    };
    let first = [step(), step()];
    Work::new(step, move |third| vec![first[0], first[1], third])
}

fn scalar_chain(device: &Device, n: usize) -> Option<Work> {
    if n > 1_000_000 {
        return None;
    }
    let scalar =
        |v: f64| Tensor::<1>::from_data(TensorData::new(vec![v], [1]), (device, DType::F64));
    let x = scalar(1.0).require_grad();
    let [a, b] = SCALARS.map(scalar);
    let work = move || {
        let mut y = x.clone();
        for i in 0..n {
            y = if i % 2 == 0 { y * a.clone() } else { y + b.clone() };
        }
        gradient(&y, &x)
    };
    Work::new(work, numbers)
}

fn memory(device: &Device) -> Option<Work> {
    let (n, ops) = MEMORY;
    let x = leaf(device, input_f32(n), [n]);
    let work = move || {
        let mut y = tanh(x.clone());
        for _ in 1..ops {
            y = tanh(y);
        }
        gradient(&y, &x)
    };
    Work::new(work, |grad| numbers(grad.slice([0..64])))
}

fn fan_out(device: &Device) -> Option<Work> {
    let x = leaf(device, input_f32(6), [6]);
    let work = move || {
        let mut sum = x.clone() * 0.5;
        for _ in 1..USES {
            sum = sum + x.clone() * 0.5;
        }
        gradient(&sum.sum(), &x)
    };
    Work::new(work, numbers)
}
