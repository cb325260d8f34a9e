//! Explicit vectors of floats, for kernels whose numbers must stay in registers: matrix products.
//! The compiler finds such registers itself in straight loops, but not in loop nests. A [`Vectors`]
//! value proves that the CPU has the instructions: only [`Vectored::run`] creates one.

use super::{Level, level};

pub trait Vectors<T>: Copy {
    type Vector: Copy;
    const LANES: usize;
    const REGISTERS: usize;

    fn splat(self, x: T) -> Self::Vector;
    /// Loads the first `LANES` numbers; fewer are padded with zeros.
    fn load(self, from: &[T]) -> Self::Vector;
    /// Writes the first `LANES` numbers, or as many as fit.
    fn store(self, x: Self::Vector, to: &mut [T]);
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The sums of up to `LANES` vectors, one in each lane; the other lanes are zeros.
    fn sums(self, x: &[Self::Vector]) -> Self::Vector;
    /// Transposes a square whose rows are `LANES` vectors.
    fn transpose(self, x: &mut [Self::Vector]);
    /// `a * b + c`, in one rounding.
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
}

pub trait VectorKernel<T> {
    /// Mark it, and all it calls a million times, `#[inline(always)]`.
    fn run<V: Vectors<T>>(self, vectors: V);
}

pub trait Vectored: Copy + 'static {
    /// Runs a kernel at the widest level of this CPU, which must [have vectors](has_vectors).
    fn run<K: VectorKernel<Self>>(kernel: K);
}

/// Whether this CPU has vectors: all levels but the baseline have them.
pub fn has_vectors() -> bool {
    level() > Level::Baseline
}

macro_rules! vectored {
    ($($t:ty)*) => {$(
        impl Vectored for $t {
            fn run<K: VectorKernel<Self>>(kernel: K) {
                match level() {
                    // SAFETY: `level` gives Avx512 only where the CPU has every feature that
                    // `wide` is compiled for.
                    #[cfg(all(target_arch = "x86_64", not(autograd_portable)))]
                    Level::Avx512 => unsafe { x86::wide::<$t, K>(kernel) },
                    // SAFETY: likewise for Avx2 and `narrow`.
                    #[cfg(all(target_arch = "x86_64", not(autograd_portable)))]
                    Level::Avx2 => unsafe { x86::narrow::<$t, K>(kernel) },
                    _ => unreachable!("callers ask whether the CPU has vectors"),
                }
            }
        }
    )*};
}

vectored! { f32 f64 }

#[cfg(all(target_arch = "x86_64", not(autograd_portable)))]
mod x86 {
    use std::arch::x86_64::*;

    use super::{VectorKernel, Vectors};

    /// 512 bits. Only [`wide`] creates one, so its existence proves AVX-512.
    #[derive(Clone, Copy)]
    pub(super) struct Wide(());

    /// 256 bits. Only [`narrow`] creates one, so its existence proves AVX2 and FMA.
    #[derive(Clone, Copy)]
    pub(super) struct Narrow(());

    #[target_feature(
        enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512cd,avx2,fma,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub(super) fn wide<T, K: VectorKernel<T>>(kernel: K)
    where
        Wide: Vectors<T>,
    {
        kernel.run(Wide(()));
    }

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn narrow<T, K: VectorKernel<T>>(kernel: K)
    where
        Narrow: Vectors<T>,
    {
        kernel.run(Narrow(()));
    }

    macro_rules! vectors {
        (
            $token:ident, $t:ty, $vector:ty, $lanes:literal, $registers:literal,
            $splat:ident $load:ident $store:ident $add:ident $mul_add:ident,
            part: $mask:expr, |$from:ident, $places:ident| $load_part:expr, $store_part:ident,
            joined: $($join:ident)*
        ) => {
            impl Vectors<$t> for $token {
                type Vector = $vector;
                const LANES: usize = $lanes;
                const REGISTERS: usize = $registers;

                #[inline(always)]
                fn splat(self, x: $t) -> $vector {
                    // SAFETY: the token proves the instruction set.
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                fn load(self, from: &[$t]) -> $vector {
                    if let Some(from) = from.first_chunk::<$lanes>() {
                        // SAFETY: the token proves the instruction set, the array that `LANES`
                        // numbers can be read; the load asks for no alignment.
                        return unsafe { $load(from.as_ptr()) };
                    }
                    // SAFETY: the token proves the instruction set; the mask has a bit for each
                    // number of the slice and no other, and nothing is read where it has none.
                    unsafe {
                        let ($from, $places) = (from.as_ptr(), $mask(from.len()));
                        $load_part
                    }
                }
                #[inline(always)]
                fn store(self, x: $vector, to: &mut [$t]) {
                    if let Some(to) = to.first_chunk_mut::<$lanes>() {
                        // SAFETY: the token proves the instruction set, the array that `LANES`
                        // numbers can be written; the store asks for no alignment.
                        return unsafe { $store(to.as_mut_ptr(), x) };
                    }
                    // SAFETY: the token proves the instruction set; the mask has a bit for each
                    // number of the slice and no other, and nothing is written where it has none.
                    unsafe { $store_part(to.as_mut_ptr(), $mask(to.len()), x) }
                }
                #[inline(always)]
                fn add(self, a: $vector, b: $vector) -> $vector {
                    // SAFETY: the token proves the instruction set.
                    unsafe { $add(a, b) }
                }
                #[inline(always)]
                fn sums(self, x: &[$vector]) -> $vector {
                    let zero: $t = 0.0;
                    let mut joined = [self.splat(zero); $lanes];
                    joined[..x.len()].copy_from_slice(x);
                    let mut count = $lanes;
                    $(
                        count /= 2;
                        for i in 0..count {
                            // SAFETY: the token proves the instruction set.
                            joined[i] = unsafe {
                                let (left, right) = $join(joined[2 * i], joined[2 * i + 1]);
                                $add(left, right)
                            };
                        }
                    )*
                    debug_assert_eq!(count, 1);
                    joined[0]
                }
                #[inline(always)]
                fn transpose(self, x: &mut [$vector]) {
                    let place: &mut [$vector; $lanes] = x.try_into().expect("LANES vectors");
                    let mut x = *place;
                    let mut apart = 1;
                    $(
                        for i in 0..$lanes {
                            if i & apart == 0 {
                                // SAFETY: the token proves the instruction set.
                                (x[i], x[i + apart]) = unsafe { $join(x[i], x[i + apart]) };
                            }
                        }
                        apart *= 2;
                    )*
                    debug_assert_eq!(apart, $lanes);
                    // Of four numbers in 128 bits, the first two belong in the even places.
                    if size_of::<$t>() == 4 {
                        x.chunks_exact_mut(4).for_each(|four| four.swap(1, 2));
                    }
                    *place = x;
                }
                #[inline(always)]
                fn mul_add(self, a: $vector, b: $vector, c: $vector) -> $vector {
                    // SAFETY: the token proves the instruction set.
                    unsafe { $mul_add(a, b, c) }
                }
            }
        };
    }

    vectors! {
        Wide, f32, __m512, 16, 32,
        _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_add_ps _mm512_fmadd_ps,
        part: |n: usize| (1_u16 << n) - 1,
        |from, mask| _mm512_maskz_loadu_ps(mask, from), _mm512_mask_storeu_ps,
        joined: singles_wide pairs_wide halves_wide halves_wide
    }
    vectors! {
        Wide, f64, __m512d, 8, 32,
        _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_add_pd _mm512_fmadd_pd,
        part: |n: usize| (1_u8 << n) - 1,
        |from, mask| _mm512_maskz_loadu_pd(mask, from), _mm512_mask_storeu_pd,
        joined: doubles_wide double_halves_wide double_halves_wide
    }
    vectors! {
        Narrow, f32, __m256, 8, 16,
        _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_add_ps _mm256_fmadd_ps,
        part: mask_8, |from, mask| _mm256_maskload_ps(from, mask), _mm256_maskstore_ps,
        joined: singles_narrow pairs_narrow halves_narrow
    }
    vectors! {
        Narrow, f64, __m256d, 4, 16,
        _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_add_pd _mm256_fmadd_pd,
        part: mask_4, |from, mask| _mm256_maskload_pd(from, mask), _mm256_maskstore_pd,
        joined: doubles_narrow double_halves_narrow
    }

    /// Steps of sums and transposes: of two adjacent numbers or groups in `a` or in `b`, one goes to
    /// each result vector, to the same place, those of `a` first. Each step separates numbers, or
    /// groups of them, that are twice as far apart as those of the step before.
    macro_rules! joins {
        ($($name:ident $vector:ty, |$a:ident, $b:ident| $left:expr, $right:expr;)*) => {$(
            #[inline(always)]
            unsafe fn $name($a: $vector, $b: $vector) -> ($vector, $vector) {
                // SAFETY: the callers have the instruction set.
                unsafe { ($left, $right) }
            }
        )*};
    }

    joins! {
        singles_wide __m512,
            |a, b| _mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b);
        pairs_wide __m512,
            |a, b| _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b))),
            _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
        halves_wide __m512,
            |a, b| _mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b);
        doubles_wide __m512d,
            |a, b| _mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b);
        double_halves_wide __m512d,
            |a, b| _mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0xdd>(a, b);
        singles_narrow __m256,
            |a, b| _mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b);
        pairs_narrow __m256,
            |a, b| _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b))),
            _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
        halves_narrow __m256,
            |a, b| _mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b);
        doubles_narrow __m256d,
            |a, b| _mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b);
        double_halves_narrow __m256d,
            |a, b| _mm256_permute2f128_pd::<0x20>(a, b), _mm256_permute2f128_pd::<0x31>(a, b);
    }

    /// The first `n` of eight numbers.
    #[inline(always)]
    unsafe fn mask_8(n: usize) -> __m256i {
        // SAFETY: the callers have AVX2.
        unsafe {
            let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), places)
        }
    }

    #[inline(always)]
    unsafe fn mask_4(n: usize) -> __m256i {
        // SAFETY: the callers have AVX2.
        unsafe {
            let places = _mm256_setr_epi64x(0, 1, 2, 3);
            _mm256_cmpgt_epi64(_mm256_set1_epi64x(n as i64), places)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Level, levels, with_level};
    use super::*;

    struct Parts;

    impl VectorKernel<f32> for Parts {
        fn run<V: Vectors<f32>>(self, v: V) {
            check(v, |i| i as f32);
        }
    }

    impl VectorKernel<f64> for Parts {
        fn run<V: Vectors<f64>>(self, v: V) {
            check(v, |i| i as f64);
        }
    }

    fn check<T: Copy + PartialEq + std::fmt::Debug, V: Vectors<T>>(v: V, from: impl Fn(i32) -> T) {
        let numbers: Vec<T> = (1..100).map(&from).collect();
        for n in 0..=V::LANES {
            // Slices with nothing behind them: a sanitizer detects accesses past the end.
            let read: Box<[T]> = numbers[..n].into();
            let mut written: Box<[T]> = vec![from(0); n].into();
            let x = v.load(&read);
            let y = v.mul_add(v.splat(from(2)), x, v.add(x, v.splat(from(1))));
            v.store(y, &mut written);
            let expected: Vec<T> = (1..=n as i32).map(|i| from(3 * i + 1)).collect();
            assert_eq!(written[..], expected[..]);
            let mut whole = vec![from(0); V::LANES];
            v.store(x, &mut whole);
            assert!(whole[n..].iter().all(|&x| x == from(0)));
            let lines: Vec<V::Vector> = (0..n).map(|i| v.load(&numbers[i..])).collect();
            v.store(v.sums(&lines), &mut whole);
            let lanes = V::LANES as i32;
            let sum =
                |i: i32| from(if i < n as i32 { lanes * (lanes + 1) / 2 + lanes * i } else { 0 });
            assert_eq!(whole, (0..lanes).map(sum).collect::<Vec<T>>());
        }
        let number = |row, column| from((row * V::LANES + column) as i32);
        let row = |row| (0..V::LANES).map(|column| number(row, column)).collect::<Vec<T>>();
        let mut square: Vec<V::Vector> = (0..V::LANES).map(|i| v.load(&row(i))).collect();
        v.transpose(&mut square);
        for (column, &x) in square.iter().enumerate() {
            let mut whole = vec![from(0); V::LANES];
            v.store(x, &mut whole);
            assert_eq!(whole, (0..V::LANES).map(|row| number(row, column)).collect::<Vec<T>>());
        }
    }

    #[test]
    fn whole_vectors_and_parts() {
        assert!(!with_level(Level::Baseline, has_vectors));
        for level in levels().filter(|&level| level > Level::Baseline) {
            with_level(level, || {
                assert!(has_vectors() && super::super::level() == level);
                f32::run(Parts);
                f64::run(Parts);
            });
        }
    }
}
