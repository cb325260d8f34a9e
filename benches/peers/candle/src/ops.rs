//! The rows.

use candle_core::{D, DType, Device, Result, Tensor, Var};
use kit::{
    AB, ABC, BATCH, CHAIN, ELEMENTWISE, MEMORY, RATE, SCALARS, USES, WIDTHS, Work, classes, input,
    input_f32, weights,
};

use crate::tanh::Tanh;

pub fn numbers(t: &Tensor) -> Vec<f64> {
    let flat = t.to_dtype(DType::F64).and_then(|t| t.flatten_all()).and_then(|t| t.to_vec1());
    flat.expect("numbers")
}

/// Work that cannot fail, unless candle does.
pub fn new(
    work: impl Fn() -> Result<Tensor> + 'static,
    numbers: impl FnOnce(&Tensor) -> Vec<f64>,
) -> Option<Work> {
    Work::new(move || work().expect("candle computes it"), |result| numbers(&result))
}

pub fn var(data: Vec<f32>, shape: &[usize]) -> Var {
    Var::from_vec(data, shape, &Device::Cpu).expect("as many numbers")
}

pub fn chain(backward: bool) -> Option<Work> {
    let x = Var::from_vec(input(6), (2, 3), &Device::Cpu).expect("six numbers");
    let work = move || {
        let mut y = x.apply_op1(Tanh)?;
        for _ in 1..CHAIN {
            y = y.apply_op1(Tanh)?;
        }
        if !backward {
            return Ok(y);
        }
        Ok(y.mean_all()?.backward()?.remove(&x).expect("x wants a gradient"))
    };
    new(work, numbers)
}

pub fn built_in() -> Option<Work> {
    let x = var(input_f32(6), &[2, 3]);
    let constant = |v: f32| Tensor::full(v, (2, 3), &Device::Cpu).expect("a tensor");
    let (a, b) = (constant(AB[0]), constant(AB[1]));
    let work = move || {
        let mut y = ((x.as_tensor() * &a)? + &b)?.tanh()?;
        for _ in 1..CHAIN {
            y = ((y * &a)? + &b)?.tanh()?;
        }
        Ok(y.mean_all()?.backward()?.remove(&x).expect("x wants a gradient"))
    };
    new(work, numbers)
}

pub fn tanh(n: usize, backward: bool) -> Option<Work> {
    let x = var(input_f32(n), &[n]);
    let work = move || {
        let y = x.apply_op1(Tanh)?;
        if !backward {
            return Ok(y);
        }
        // candle starts every backward with ones, which is the seed of the others too.
        Ok(y.backward()?.remove(&x).expect("x wants a gradient"))
    };
    new(work, numbers)
}

pub fn scalars() -> Option<Work> {
    let x = var(input_f32(ELEMENTWISE), &[ELEMENTWISE]);
    let [a, b, c] = ABC.map(f64::from);
    let work = move || {
        let loss = (x.affine(a, b)?.relu()? * c)?.sum_all()?;
        Ok(loss.backward()?.remove(&x).expect("x wants a gradient"))
    };
    new(work, numbers)
}

pub fn tensors() -> Option<Work> {
    let x = var(input_f32(ELEMENTWISE), &[ELEMENTWISE]);
    let [a, b, c] = ABC.map(|v| var(vec![v; ELEMENTWISE], &[ELEMENTWISE]));
    let work = move || {
        let loss = (((x.as_tensor() * a.as_tensor())? + b.as_tensor())?.relu()? * c.as_tensor())?;
        let mut grads = loss.sum_all()?.backward()?;
        let mut take = |x| grads.remove(x).expect("it wants a gradient");
        Ok((take(&x), take(&a), take(&b), take(&c)))
    };
    let work = move || -> (Tensor, Tensor, Tensor, Tensor) {
        let result: Result<_> = work();
        result.expect("candle computes it")
    };
    Work::new(work, |(x, a, ..)| numbers(&(x + a).expect("one shape")))
}

pub fn product(dtype: DType, m: usize, k: usize, n: usize) -> Option<Work> {
    let matrix = |rows, columns| {
        let data = Tensor::from_vec(input(rows * columns), (rows, columns), &Device::Cpu);
        let data = data.and_then(|t| t.to_dtype(dtype)).expect("as many numbers");
        Var::from_tensor(&data).expect("a variable")
    };
    let (a, b) = (matrix(m, k), matrix(k, n));
    let work = move || {
        let mut grads = a.matmul(&b).and_then(|c| c.backward()).expect("candle computes it");
        let mut take = |x| grads.remove(x).expect("it wants a gradient");
        (take(&a), take(&b))
    };
    Work::new(work, |(da, db)| [numbers(&da), numbers(&db)].concat())
}

pub fn step() -> Option<Work> {
    let parameters: Vec<(Var, Var)> = (weights(&WIDTHS).into_iter().zip(WIDTHS.windows(2)))
        .map(|((w, b), widths)| (var(w, widths), var(b, &widths[1..])))
        .collect();
    let x = Tensor::from_vec(input_f32(BATCH * WIDTHS[0]), (BATCH, WIDTHS[0]), &Device::Cpu);
    let x = x.expect("as many numbers");
    let y: Vec<u32> = classes(BATCH, WIDTHS[3]).into_iter().map(|c| c as u32).collect();
    let y = Tensor::from_vec(y, (BATCH, 1), &Device::Cpu).expect("as many numbers");
    let step = move || -> Result<f64> {
        let mut hidden = x.clone();
        for (i, (w, b)) in parameters.iter().enumerate() {
            hidden = hidden.matmul(w)?.broadcast_add(b)?;
            if i < 2 {
                hidden = hidden.apply_op1(Tanh)?;
            }
        }
        // As candle-nn's loss.
        let shifted = hidden.broadcast_sub(&hidden.max_keepdim(D::Minus1)?)?;
        let sums = shifted.exp()?.sum_keepdim(D::Minus1)?.log()?;
        let log_softmax = shifted.broadcast_sub(&sums)?;
        let loss = log_softmax.gather(&y, 1)?.sum_all()?.affine(-1.0 / BATCH as f64, 0.0)?;
        let grads = loss.backward()?;
        for var in parameters.iter().flat_map(|(w, b)| [w, b]) {
            let grad = grads.get(var).expect("it wants a gradient");
            var.set(&var.sub(&(grad * RATE)?)?)?;
        }
        Ok(f64::from(loss.to_scalar::<f32>()?))
    };
    let step = move || step().expect("candle computes it");
    let first = [step(), step()];
    Work::new(step, move |third| vec![first[0], first[1], third])
}

pub fn scalar_chain(n: usize) -> Option<Work> {
    if n > 1_000_000 {
        return None;
    }
    let x = Var::new(1.0_f64, &Device::Cpu).expect("a variable");
    let [a, b] = SCALARS.map(|v| Tensor::new(v, &Device::Cpu).expect("a scalar"));
    let work = move || {
        let mut y = (x.as_tensor() * &a)?;
        for i in 1..n {
            y = if i % 2 == 0 { (y * &a)? } else { (y + &b)? };
        }
        Ok(y.backward()?.remove(&x).expect("x wants a gradient"))
    };
    new(work, numbers)
}

pub fn memory() -> Option<Work> {
    let (n, ops) = MEMORY;
    let x = var(input_f32(n), &[n]);
    let work = move || {
        let mut y = x.apply_op1(Tanh)?;
        for _ in 1..ops {
            y = y.apply_op1(Tanh)?;
        }
        Ok(y.backward()?.remove(&x).expect("x wants a gradient"))
    };
    new(work, |dx| numbers(dx)[..64].to_vec())
}

pub fn fan_out() -> Option<Work> {
    let x = var(input_f32(6), &[6]);
    let work = move || {
        let mut sum = (x.as_tensor() * 0.5)?;
        for _ in 1..USES {
            sum = (sum + (x.as_tensor() * 0.5)?)?;
        }
        Ok(sum.sum_all()?.backward()?.remove(&x).expect("x wants a gradient"))
    };
    new(work, numbers)
}

/// candle's built-in gelu, which is of the same form.
pub fn gelu() -> Option<Work> {
    let x = var(input_f32(1_000_000), &[1_000_000]);
    new(move || Ok(x.gelu()?.backward()?.remove(&x).expect("x wants a gradient")), numbers)
}
