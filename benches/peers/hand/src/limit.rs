//! What the machine can do: one loop of vector instructions a pass, into buffers that exist already;
//! no tensor, no graph, no allocation.

use kit::{ABC, ELEMENTWISE, Work, input_f32, widened};

use crate::simd::widest;

/// x + x³ N(x²) near 0, else 1 - 2 / (e^2x + 1).
#[inline(always)]
fn tanh_of(x: f32) -> f32 {
    let a = x.abs();
    let square = a * a;
    let limited = if a > 10.0 { 10.0 } else { a };
    let x2 = limited + limited;
    let t = x2.mul_add(std::f32::consts::LOG2_E, 12_582_912.0);
    let n = 12_582_912.0 - t;
    let r = n.mul_add(1.428_606_8e-6, n.mul_add(0.693_145_75, x2));
    let r2 = r * r;
    let high = 0.001_386_319_9_f32.mul_add(r2, 0.008_367_626_f32.mul_add(r, 0.041_667_25));
    let p = r2.mul_add(high.mul_add(r2, 0.166_665_33_f32.mul_add(r, 0.5)), r);
    let scale = f32::from_bits(t.to_bits().wrapping_add(127) << 23);
    let far = p.mul_add(scale, 1.0 + scale);
    let s2 = square * square;
    let low = 0.133_314_06_f32.mul_add(square, -0.333_332_8);
    let middle = 0.020_628_268_f32.mul_add(square, -0.053_736_53);
    let near = (-0.005_692_46_f32).mul_add(s2, middle).mul_add(s2, low);
    let small = a < 0.625;
    let top = if small { a * square * near } else { -2.0 };
    let bottom = if small { 1.0 } else { far };
    ((if small { a } else { 1.0 }) + top / bottom).copysign(x)
}

#[inline(always)]
fn tanh_of_all(x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = tanh_of(*x);
    }
}

#[inline(always)]
fn tanh_grad_of_all(y: &[f32], dy: &[f32], dx: &mut [f32]) {
    for ((dx, y), dy) in dx.iter_mut().zip(y).zip(dy) {
        *dx = dy * (1.0 - y * y);
    }
}

widest!(pub tanhs(x: &[f32], y: &mut [f32]) = tanh_of_all);
widest!(pub tanh_grads(y: &[f32], dy: &[f32], dx: &mut [f32]) = tanh_grad_of_all);

/// Tanh, and the gradient of its input: two passes.
pub fn tanh(n: usize, backward: bool) -> Option<Work> {
    let (x, seed) = (input_f32(n), vec![1.0; n]);
    let (mut y, mut dx) = (vec![0.0; n], vec![0.0; n]);
    let work = move |see: &mut dyn FnMut(&[f32])| {
        tanhs(&x, &mut y);
        if backward {
            tanh_grads(&y, &seed, &mut dx);
        }
        see(if backward { &dx } else { &y });
    };
    into_buffers(work)
}

/// Work whose results stay in its buffers, where they are seen.
fn into_buffers(mut work: impl FnMut(&mut dyn FnMut(&[f32])) + 'static) -> Option<Work> {
    let mut first = Vec::new();
    work(&mut |result| first = widened(result));
    Work::new(move || work(&mut |result| drop(std::hint::black_box(result))), |()| first)
}

#[inline(always)]
fn multiply_by(x: &[f32], a: f32, y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = x * a;
    }
}

#[inline(always)]
fn scale_by(y: &mut [f32], a: f32) {
    for y in y {
        *y *= a;
    }
}

#[inline(always)]
fn add_to(y: &mut [f32], b: f32) {
    for y in y {
        *y += b;
    }
}

#[inline(always)]
fn relu_of(y: &mut [f32]) {
    for y in y {
        *y = if *y > 0.0 { *y } else { 0.0 };
    }
}

/// In sixteen times sixteen sums, which do not wait for each other.
#[inline(always)]
fn sum_of(y: &[f32], total: &mut f32) {
    let mut sums = [0.0_f32; 256];
    let chunks = y.chunks_exact(256);
    let rest: f32 = chunks.remainder().iter().sum();
    for chunk in chunks {
        for (sum, y) in sums.iter_mut().zip(chunk) {
            *sum += y;
        }
    }
    *total = rest + sums.iter().sum::<f32>();
}

/// What relu lets through of a gradient that is one number.
#[inline(always)]
fn relu_grad_of(relu: &mut [f32], dy: f32) {
    for relu in relu {
        *relu = if *relu > 0.0 { dy } else { 0.0 };
    }
}

widest!(times(x: &[f32], a: f32, y: &mut [f32]) = multiply_by);
widest!(scale(y: &mut [f32], a: f32) = scale_by);
widest!(add(y: &mut [f32], b: f32) = add_to);
widest!(relu(y: &mut [f32]) = relu_of);
widest!(sum(y: &[f32], total: &mut f32) = sum_of);
widest!(relu_grad(relu: &mut [f32], dy: f32) = relu_grad_of);

/// A pass an op, as an eager engine has it, with every buffer used again.
pub fn scalars() -> Option<Work> {
    let x = input_f32(ELEMENTWISE);
    let (mut y, mut out) = (vec![0.0; ELEMENTWISE], vec![0.0; ELEMENTWISE]);
    let [a, b, c] = ABC;
    let mut total = 0.0;
    into_buffers(move |see| {
        times(&x, a, &mut y);
        add(&mut y, b);
        relu(&mut y);
        times(&y, c, &mut out);
        sum(&out, &mut total);
        // Backward: the gradient of the sum is one number, and that of what was added is its own.
        relu_grad(&mut y, c * std::hint::black_box(1.0));
        scale(&mut y, a);
        see(&y);
    })
}

#[inline(always)]
fn multiply_pairs(x: &[f32], a: &[f32], y: &mut [f32]) {
    for ((y, x), a) in y.iter_mut().zip(x).zip(a) {
        *y = x * a;
    }
}

#[inline(always)]
fn add_pairs(y: &mut [f32], b: &[f32]) {
    for (y, b) in y.iter_mut().zip(b) {
        *y += b;
    }
}

#[inline(always)]
fn relu_grad_pairs(relu: &[f32], dy: &[f32], dx: &mut [f32]) {
    for ((dx, relu), dy) in dx.iter_mut().zip(relu).zip(dy) {
        *dx = if *relu > 0.0 { *dy } else { 0.0 };
    }
}

widest!(times_each(x: &[f32], a: &[f32], y: &mut [f32]) = multiply_pairs);
widest!(add_each(y: &mut [f32], b: &[f32]) = add_pairs);
widest!(relu_grad_each(relu: &[f32], dy: &[f32], dx: &mut [f32]) = relu_grad_pairs);

pub fn tensors() -> Option<Work> {
    let x = input_f32(ELEMENTWISE);
    let [a, b, c] = ABC.map(|v| vec![v; ELEMENTWISE]);
    let [mut y, mut out, mut db, mut da, mut dx] = std::array::from_fn(|_| vec![0.0; ELEMENTWISE]);
    let mut total = 0.0;
    let work = move |see: &mut dyn FnMut(&[f32], &[f32])| {
        times_each(&x, &a, &mut y);
        add_each(&mut y, &b);
        relu(&mut y);
        times_each(&y, &c, &mut out);
        sum(&out, &mut total);
        // The gradient of c is what relu gave.
        relu_grad_each(&y, &c, &mut db);
        times_each(&db, &x, &mut da);
        times_each(&db, &a, &mut dx);
        see(&dx, &da);
    };
    let mut work = work;
    let mut first = Vec::new();
    work(&mut |dx, da| first = dx.iter().zip(da).map(|(x, a)| f64::from(x + a)).collect());
    Work::new(move || work(&mut |dx, da| drop(std::hint::black_box((dx, da)))), |()| first)
}

/// A copy of 64 MB, far larger than the caches; the answer is its bytes, read and written.
pub fn copy() -> Option<Work> {
    let from = vec![1_u8; 64 << 20];
    let mut to = vec![0_u8; from.len()];
    let bytes = (2 * from.len()) as f64;
    let work = move || {
        to.copy_from_slice(std::hint::black_box(&from));
        to[7]
    };
    Work::new(work, |_| vec![bytes])
}
