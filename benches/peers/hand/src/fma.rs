//! The rate of multiply-adds of the widest vectors, from registers.

use kit::Work;

use crate::simd::widest;

/// Independent sums, so that none waits for another: 16 registers of the widest kind.
const SUMS: usize = 256;
const STEPS: usize = 1 << 14;

/// Floating point operations in one repetition.
pub const OPERATIONS: f64 = (2 * SUMS * STEPS) as f64;

#[inline(always)]
fn fma(sums: &mut [f32; SUMS], x: f32, y: f32) {
    let mut local = *sums;
    for _ in 0..STEPS {
        for sum in &mut local {
            *sum = sum.mul_add(x, y);
        }
    }
    *sums = local;
}

widest!(run(sums: &mut [f32; SUMS], x: f32, y: f32) = fma);

pub fn peak() -> Option<Work> {
    let mut sums = [1.0; SUMS];
    let work = move || {
        run(&mut sums, std::hint::black_box(0.5), std::hint::black_box(0.25));
        sums[0]
    };
    // The answer is the number of operations, by which the runner divides.
    Work::new(work, |_| vec![OPERATIONS])
}
