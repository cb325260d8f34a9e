//! Run-time choice of the instruction set. A kernel is ordinary safe Rust, written once.
//! [`dispatch`] compiles it once or twice more for wider vector registers and runs the widest
//! version that this CPU supports. `unsafe` is needed only to call those versions, and for the
//! intrinsics of `vectors`. `--cfg autograd_portable` leaves all of this out, as on a processor without
//! wider registers.

#[cfg_attr(
    any(not(target_arch = "x86_64"), autograd_portable),
    allow(dead_code, reason = "made on x86-64 only")
)]
mod vectors;

use std::sync::LazyLock;

pub use vectors::{VectorKernel, Vectored, Vectors, has_vectors};

/// An instruction set that kernels are compiled for, narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(
    any(not(target_arch = "x86_64"), autograd_portable),
    allow(dead_code, reason = "the wider levels exist on x86-64 only")
)]
pub enum Level {
    /// What the whole crate is compiled for: SSE2 on x86-64, NEON on AArch64.
    Baseline,
    /// AVX2 and FMA: 256 bits, x86-64-v3.
    Avx2,
    /// AVX-512 F, VL, BW, DQ and CD: 512 bits, x86-64-v4.
    Avx512,
}

/// Whether the baseline has a fused multiply-add; without one, `mul_add` would call the C library.
pub(crate) const BASELINE_FMA: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

/// Work that is compiled once for each level. Mark the implementation of `run`, and everything it
/// calls a million times, `#[inline(always)]`: a function or closure that stays a call is compiled
/// for the baseline. For the same reason, split work between threads outside of `run`, and dispatch
/// inside each thread.
pub trait Kernel {
    type Output;
    /// Whether registers of 512 bits are worth one more copy of the work.
    const WIDE: bool = true;

    /// Does the work; `FMA` says whether a fused multiply-add is one instruction at this level.
    fn run<const FMA: bool>(self) -> Self::Output;
}

#[inline]
pub fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    struct Alone<K>(K);

    impl<K: Kernel> SliceKernel<()> for Alone<K> {
        type Output = K::Output;
        const WIDE: bool = K::WIDE;

        #[inline(always)]
        fn run<const FMA: bool>(self, _: &mut [()], _: (&[()], &[()], &[()])) -> K::Output {
            self.0.run::<FMA>()
        }
    }

    dispatch_slices(Alone(kernel), &mut [], (&[], &[], &[]))
}

/// A [`Kernel`] that reads up to three slices and writes one. They are separate parameters, so the
/// compiler knows that none overlaps the output: an overlap check costs more than a short loop.
pub trait SliceKernel<T> {
    type Output;
    /// See [`Kernel::WIDE`].
    const WIDE: bool = true;

    fn run<const FMA: bool>(self, out: &mut [T], slices: (&[T], &[T], &[T])) -> Self::Output;
}

#[inline]
pub fn dispatch_slices<T, K: SliceKernel<T>>(
    kernel: K,
    out: &mut [T],
    (a, b, c): (&[T], &[T], &[T]),
) -> K::Output {
    match level() {
        // SAFETY: `widest` gives Avx512 only to a CPU that has every feature `avx512` is compiled for.
        #[cfg(all(target_arch = "x86_64", not(autograd_portable)))]
        Level::Avx512 if const { K::WIDE } => unsafe { avx512(kernel, out, a, b, c) },
        // SAFETY: `widest` gives Avx2 and Avx512 only to a CPU that has every feature `avx2` is compiled for.
        #[cfg(all(target_arch = "x86_64", not(autograd_portable)))]
        Level::Avx2 | Level::Avx512 => unsafe { avx2(kernel, out, a, b, c) },
        _ => baseline(kernel, out, a, b, c),
    }
}

macro_rules! compiled {
    ($($(#[$attribute:meta])* $level:ident: $fma:expr;)*) => {$(
        $(#[$attribute])*
        #[inline(never)]
        fn $level<T, K: SliceKernel<T>>(
            kernel: K,
            out: &mut [T],
            a: &[T],
            b: &[T],
            c: &[T],
        ) -> K::Output {
            kernel.run::<{ $fma }>(out, (a, b, c))
        }
    )*};
}

compiled! {
    #[cfg(all(target_arch = "x86_64", not(autograd_portable)))]
    #[target_feature(
        enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512cd,avx2,fma,bmi1,bmi2,lzcnt,popcnt"
    )]
    avx512: true;
    #[cfg(all(target_arch = "x86_64", not(autograd_portable)))]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
    avx2: true;
    baseline: BASELINE_FMA;
}

#[inline]
pub fn level() -> Level {
    #[cfg(any(test, feature = "testing"))]
    if let Some(level) = forced::LEVEL.get() {
        return level;
    }
    *LEVEL
}

static LEVEL: LazyLock<Level> = LazyLock::new(|| widest().min(limit()));

/// The limit that the environment variable `AUTOGRAD_ISA` sets: `baseline` or `avx2`; any other value sets none.
fn limit() -> Level {
    match std::env::var("AUTOGRAD_ISA").as_deref() {
        Ok("baseline") => Level::Baseline,
        Ok("avx2") => Level::Avx2,
        _ => Level::Avx512,
    }
}

#[cfg(all(target_arch = "x86_64", not(autograd_portable)))]
fn widest() -> Level {
    macro_rules! has {
        ($($feature:tt)*) => { true $(&& is_x86_feature_detected!($feature))* };
    }
    if !has!("avx2" "fma" "bmi1" "bmi2" "lzcnt" "popcnt") {
        Level::Baseline
    } else if !has!("avx512f" "avx512vl" "avx512bw" "avx512dq" "avx512cd") {
        Level::Avx2
    } else {
        Level::Avx512
    }
}

#[cfg(any(not(target_arch = "x86_64"), autograd_portable))]
fn widest() -> Level {
    Level::Baseline
}

#[cfg(any(test, feature = "testing"))]
pub use forced::{forced_level, levels, with_level};

#[cfg(any(test, feature = "testing"))]
mod forced {
    use super::{Level, widest};
    use std::cell::Cell;

    thread_local! {
        pub(super) static LEVEL: Cell<Option<Level>> = const { Cell::new(None) };
    }

    /// Runs `f` with `level`, or the widest level of this CPU below it, on this thread only.
    pub fn with_level<R>(level: Level, f: impl FnOnce() -> R) -> R {
        struct Restore(Option<Level>);
        impl Drop for Restore {
            fn drop(&mut self) {
                LEVEL.set(self.0);
            }
        }
        let _restore = Restore(LEVEL.replace(Some(level.min(widest()))));
        f()
    }

    pub fn forced_level() -> Option<Level> {
        LEVEL.get()
    }

    /// The levels this CPU has, narrowest first.
    pub fn levels() -> impl Iterator<Item = Level> {
        [Level::Baseline, Level::Avx2, Level::Avx512].into_iter().filter(|&level| level <= widest())
    }
}
