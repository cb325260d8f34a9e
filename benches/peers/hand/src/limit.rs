//! The limit of the machine: one loop of vector instructions for each pass, into existing buffers, without
//! tensors, graph or allocations.

use kit::{ABC, ELEMENTWISE, Work, input_f32, widened};

use crate::simd::widest;

/// x - x³ / D(x²) near 0, else 1 - 1 / (½ e^2x + ½), e^2x = 2ⁿ 2^r: one division, and no step that
/// is not needed for an error of 1.2 units in the last place.
#[inline(always)]
fn tanh_of(x: f32) -> f32 {
    // The low bits of this number, and so those of `t`, include the exponent's bias.
    const MAGIC: f32 = 12_582_912.0 + 127.0;
    const TWO_LOG2_E: f32 = 2.0 * std::f32::consts::LOG2_E;
    let a = x.abs();
    let small = a < 0.75;
    let base = if small { a } else { 1.0 };
    let square = base * base;
    let near = (-0.005_453_115_f32).mul_add(square, 1.199_917_4).mul_add(square, 3.000_007_4);
    let limited = if a > 10.0 { 10.0 } else { a };
    let t = limited.mul_add(TWO_LOG2_E, MAGIC);
    let r = limited.mul_add(TWO_LOG2_E, MAGIC - t);
    let power = [0.000_669_392_76, 0.004_812_714_6, 0.027_751_831, 0.120_112_97, 0.346_573_6, 0.5]
        .into_iter()
        .fold(6.668_083_4e-5_f32, |sum, c| sum.mul_add(r, c));
    let far = power.mul_add(f32::from_bits(t.to_bits() << 23), 0.5);
    let quotient = square / if small { near } else { far };
    (-base).mul_add(quotient, base).copysign(x)
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

#[inline(always)]
fn slope_of_all(y: &[f32], slope: &mut [f32]) {
    for (slope, y) in slope.iter_mut().zip(y) {
        *slope = 1.0 - y * y;
    }
}

#[inline(always)]
fn multiply_all(x: &mut [f32], by: &[f32]) {
    for (x, by) in x.iter_mut().zip(by) {
        *x *= by;
    }
}

widest!(pub tanhs(x: &[f32], y: &mut [f32]) = tanh_of_all);
widest!(slopes(y: &[f32], slope: &mut [f32]) = slope_of_all);
widest!(multiply(x: &mut [f32], by: &[f32]) = multiply_all);
widest!(pub tanh_grads(y: &[f32], dy: &[f32], dx: &mut [f32]) = tanh_grad_of_all);

/// Passes over memory for tanh, and for the gradient of its input.
#[derive(Clone, Copy, PartialEq)]
pub enum Passes {
    /// No gradient.
    Forward,
    /// One forward and one backward, as for a formula.
    Two,
    /// One of tanh, one of its slope and one of the product.
    Three,
}

pub fn tanh(n: usize, passes: Passes) -> Option<Work> {
    let (x, seed) = (input_f32(n), vec![1.0; n]);
    let (mut y, mut dx) = (vec![0.0; n], vec![0.0; n]);
    let work = move |see: &mut dyn FnMut(&[f32])| {
        tanhs(&x, &mut y);
        match passes {
            Passes::Forward => return see(&y),
            Passes::Two => tanh_grads(&y, &seed, &mut dx),
            Passes::Three => {
                slopes(&y, &mut dx);
                multiply(&mut dx, &seed);
            }
        }
        see(&dx);
    };
    into_buffers(work)
}

/// Work whose results stay in its buffers and are read there.
fn into_buffers(mut work: impl FnMut(&mut dyn FnMut(&[f32])) + 'static) -> Option<Work> {
    let mut first = Vec::new();
    work(&mut |result| first = widened(result));
    Work::new(move || work(&mut |result| _ = std::hint::black_box(result)), |()| first)
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

/// Sums in sixteen times sixteen independent partial sums.
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

/// The gradient of relu for an output gradient that is one number.
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

/// One pass for each op, as in an eager engine, with reused buffers.
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
        // Backward: the gradient of the sum is one number, and addition passes it on unchanged.
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
        // The gradient of c is the one that relu returned.
        relu_grad_each(&y, &c, &mut db);
        times_each(&db, &x, &mut da);
        times_each(&db, &a, &mut dx);
        see(&dx, &da);
    };
    let mut work = work;
    let mut first = Vec::new();
    work(&mut |dx, da| first = dx.iter().zip(da).map(|(x, a)| f64::from(x + a)).collect());
    Work::new(move || work(&mut |dx, da| _ = std::hint::black_box((dx, da))), |()| first)
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
