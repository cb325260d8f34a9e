//! The limit of the machine: the same polynomial as the library's tanh, written for vector
//! instructions in one loop, into buffers that exist already; no tensor, no graph, no allocation.

use crate::{Candidate, input};

/// x + x³ N(x²) near 0, else 1 - 2 / (e^2x + 1).
#[inline(always)]
fn tanh(x: f32) -> f32 {
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
fn both(x: &[f32], seed: &[f32], y: &mut [f32], dx: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = tanh(*x);
    }
    for ((dx, y), seed) in dx.iter_mut().zip(y).zip(seed) {
        *dx = seed * (1.0 - *y * *y);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
fn avx512(x: &[f32], seed: &[f32], y: &mut [f32], dx: &mut [f32]) {
    both(x, seed, y, dx);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(x: &[f32], seed: &[f32], y: &mut [f32], dx: &mut [f32]) {
    both(x, seed, y, dx);
}

fn widest(x: &[f32], seed: &[f32], y: &mut [f32], dx: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
        {
            // SAFETY: the CPU has what the function is compiled for.
            return unsafe { avx512(x, seed, y, dx) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU has what the function is compiled for.
            return unsafe { avx2(x, seed, y, dx) };
        }
    }
    both(x, seed, y, dx);
}

/// Tanh, and the gradient of its input.
pub fn tanh_both(n: usize) -> Candidate {
    let x: Vec<f32> = input(n).into_iter().map(|v| v as f32).collect();
    let seed = vec![1.0_f32; n];
    let (mut y, mut dx) = (vec![0.0; n], vec![0.0; n]);
    widest(&x, &seed, &mut y, &mut dx);
    let answer = dx.iter().map(|&v| f64::from(v)).collect();
    let work = move || {
        widest(&x, &seed, &mut y, &mut dx);
        dx[n / 2]
    };
    Candidate::new("the limit: one SIMD loop each, no graph", work, answer)
}
