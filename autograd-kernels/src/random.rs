//! Random numbers, bit for bit as Paddle's on the CPU: the same engine, seeding and distributions.
//! Everything is drawn from a [`Generator`]; the process-wide one is behind a lock. Integers and
//! uniform numbers are the same on every machine; a normal number may differ in its last bit if
//! `ln` does not round as glibc's does.

use std::array;
use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use std::vec;

use num_traits::Float;
use rand_mt::Mt64;

use crate::array::pool::with_capacity;

#[cfg(test)]
mod tests;

/// The process-wide generator. If it is not seeded, the first draw creates it.
static DEFAULT: Mutex<Option<Generator>> = Mutex::new(None);

fn default() -> MutexGuard<'static, Option<Generator>> {
    // A panic while drawing leaves a valid generator, so poison is ignored.
    DEFAULT.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn seed(seed: u64) {
    replace_generator(Generator::new(seed));
}

pub fn rng_state() -> Generator {
    draw(|generator| generator.clone())
}

pub fn set_rng_state(state: &Generator) {
    replace_generator(state.clone());
}

fn replace_generator(generator: Generator) {
    THREAD_GENERATOR.with_borrow_mut(|own| match own {
        Some(own) => **own = generator,
        None => *default() = Some(generator),
    });
}

thread_local! {
    /// The generator of this thread, in place of the process-wide one.
    static THREAD_GENERATOR: RefCell<Option<Box<Generator>>> = const { RefCell::new(None) };
}

/// Draws from this thread's generator or the process-wide one. `f` runs no user code.
fn draw<R>(f: impl FnOnce(&mut Generator) -> R) -> R {
    THREAD_GENERATOR.with_borrow_mut(|own| match own {
        Some(generator) => f(generator),
        None => f(default().get_or_insert_with(Generator::from_entropy)),
    })
}

/// While it exists, this thread draws from a generator of its own; other threads are not affected.
pub struct ThreadGeneratorGuard(Option<Box<Generator>>);

impl ThreadGeneratorGuard {
    pub fn to(generator: &Generator) -> Self {
        Self(THREAD_GENERATOR.replace(Some(Box::new(generator.clone()))))
    }
}

impl Drop for ThreadGeneratorGuard {
    fn drop(&mut self) {
        THREAD_GENERATOR.set(self.0.take());
    }
}

/// A number of this thread's generator, or of the process-wide one.
pub fn draw_u64() -> u64 {
    draw(Generator::next_u64)
}

/// Fills `out` with integers in `low..high`. The range must not be empty.
pub fn fill_randint(out: &mut [i64], low: i64, high: i64) {
    draw(|generator| generator.fill_randint(out, low, high));
}

pub fn shuffle(items: &mut [i64]) {
    draw(|generator| generator.shuffle(items));
}

/// An independent stream of random numbers, besides the process-wide one that [`seed`] restarts.
/// The generator is `std::mt19937_64` seeded by `std::seed_seq({seed})`, as in Paddle: equal seeds
/// give equal numbers, and only the seed modulo 2³² counts. A clone continues with the same numbers
/// as the original. Not suitable for secrets.
#[derive(Clone)]
pub struct Generator {
    /// The numbers before those of the engine: the state that the generator was restored from.
    ahead: vec::IntoIter<u64>,
    seed: u32,
    /// Created by the first draw: seeding takes longer than a small op, and many parts of a program draw nothing.
    engine: Option<Box<Mt64>>,
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generator").finish_non_exhaustive()
    }
}

impl Generator {
    /// The length of [`state`](Self::state).
    #[doc(hidden)]
    pub const STATE: usize = 312;

    /// Creates the generator for `seed` modulo 2³².
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { ahead: vec::IntoIter::default(), seed: seed as u32, engine: None }
    }

    /// The generator of one part of the work of a program, which these numbers identify: the part draws
    /// the same numbers on every thread and at every time.
    #[doc(hidden)]
    #[must_use]
    pub fn of_part(part: &[u64]) -> Self {
        let mix = |mixed: u64, number: &u64| {
            let product = (mixed ^ number).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            product ^ product >> 32
        };
        Self::new(part.iter().fold(0, mix))
    }

    /// All that the next numbers depend on: the next 312 of them, which reveal the engine's state.
    #[doc(hidden)]
    #[must_use]
    pub fn state(&self) -> [u64; Self::STATE] {
        let mut next = self.clone();
        array::from_fn(|_| next.next_u64())
    }

    /// The generator with a state; `None` if no generator has it.
    #[doc(hidden)]
    #[must_use]
    pub fn from_state(state: &[u64; Self::STATE]) -> Option<Self> {
        // From zeros, all numbers would be zero.
        let is_state = state[1..].iter().any(|number| *number != 0);
        is_state.then(|| Self {
            ahead: Vec::from(*state).into_iter(),
            seed: 0,
            engine: Some(Box::new(Mt64::from(*state))),
        })
    }

    fn from_entropy() -> Self {
        Self::new(RandomState::new().hash_one(SystemTime::now()))
    }

    /// The next 64 random bits. All other methods draw them one after the other.
    pub fn next_u64(&mut self) -> u64 {
        let Self { ahead, seed, engine } = self;
        ahead.next().unwrap_or_else(|| engine.get_or_insert_with(|| seeded(*seed)).next_u64())
    }

    /// Runs a closure in which this thread draws from this generator, for example to create tensors,
    /// layers and programs. The generator continues after the last number drawn, even after a panic.
    pub fn run<R>(&mut self, f: impl FnOnce() -> R) -> R {
        struct Within<'a>(&'a mut Generator, Option<Box<Generator>>);

        impl Drop for Within<'_> {
            fn drop(&mut self) {
                if let Some(generator) = THREAD_GENERATOR.replace(self.1.take()) {
                    *self.0 = *generator;
                }
            }
        }

        let before = THREAD_GENERATOR.replace(Some(Box::new(self.clone())));
        let _within = Within(self, before);
        f()
    }

    /// Fills `out` with integers of `low..high`, all equally likely: `paddle.randint`.
    ///
    /// # Panics
    ///
    /// Panics if `low >= high`, even if `out` is empty.
    #[track_caller]
    pub fn fill_randint(&mut self, out: &mut [i64], low: i64, high: i64) {
        assert!(
            low < high,
            "random integers need `low` below `high`, but `low` is {low} and `high` is {high}"
        );
        // As u64, because the difference of two i64 may not fit into an i64.
        let range = high.wrapping_sub(low) as u64;
        for value in out {
            *value = low.wrapping_add(self.below(range) as i64);
        }
    }

    /// The numbers `0..n` in random order, all orders equally likely: `paddle.randperm`.
    pub fn randperm(&mut self, n: usize) -> Vec<i64> {
        let mut order = with_capacity(n);
        order.extend(0..n as i64);
        self.shuffle(&mut order);
        order
    }

    /// Fills `out` with normal numbers of the given mean and standard deviation, drawn in pairs;
    /// the last one of an odd length is discarded: two fills of 3 differ from one fill of 6.
    fn fill_normal<T: RandomFloat>(&mut self, out: &mut [T], mean: T, std: T) {
        for pair in out.chunks_mut(2) {
            let normal: [T; 2] = self.normal_pair();
            pair.iter_mut().zip(normal).for_each(|(to, x)| *to = x * std + mean);
        }
    }

    /// Fills `out` with numbers from `low` up to `high`; `high` itself can only result from rounding,
    /// which does not happen between 0 and 1.
    #[doc(hidden)]
    pub fn fill_uniform<T: RandomFloat>(&mut self, out: &mut [T], low: T, high: T) {
        for value in out {
            *value = T::canonical(self.next_u64()) * (high - low) + low;
        }
    }

    /// Two independent standard normal numbers, by Marsaglia's polar method.
    fn normal_pair<T: RandomFloat>(&mut self) -> [T; 2] {
        loop {
            let x = T::canonical(self.next_u64());
            let y = T::canonical(self.next_u64());
            if let Some(pair) = polar(x, y) {
                return pair;
            }
        }
    }

    /// An unbiased number below `range`, which is not 0: Lemire's method as in libstdc++.
    fn below(&mut self, range: u64) -> u64 {
        loop {
            let product = u128::from(self.next_u64()) * u128::from(range);
            let low = product as u64;
            // The first test implies the second and nearly always avoids its division.
            if low >= range || low >= range.wrapping_neg() % range {
                return (product >> 64) as u64;
            }
        }
    }

    /// `std::shuffle` of libstdc++, which uses one draw for two swaps.
    fn shuffle(&mut self, items: &mut [i64]) {
        let len = items.len();
        // Beyond this length, the product of two swap ranges does not fit into one draw.
        if len > u32::MAX as usize {
            for i in 1..len {
                items.swap(i, self.below(i as u64 + 1) as usize);
            }
            return;
        }
        let mut i = 1;
        // All items but the first are swapped, in pairs; of an odd number, the first one alone.
        if len > 0 && len.is_multiple_of(2) {
            items.swap(1, self.below(2) as usize);
            i = 2;
        }
        while i < len {
            let range = i as u64 + 1;
            let both = self.below(range * (range + 1));
            items.swap(i, (both / (range + 1)) as usize);
            items.swap(i + 1, (both % (range + 1)) as usize);
            i += 2;
        }
    }
}

/// A float type of random numbers. All arithmetic is done in the type itself, with one rounding for
/// each operation: wider intermediates or fused multiply-add would give other bits than Paddle's.
pub trait RandomFloat: Float {
    /// Converts 64 random bits to a uniform number of `[0, 1)`.
    fn canonical(bits: u64) -> Self;

    fn normal(out: &mut [Self], mean: Self, std: Self);

    fn uniform(out: &mut [Self], low: Self, high: Self);
}

macro_rules! random_float {
    ($float:ident, $convert:expr) => {
        impl RandomFloat for $float {
            fn canonical(bits: u64) -> Self {
                const TWO_POW_64: $float = 18_446_744_073_709_551_616.0;
                // The conversion rounds the highest draws up to 2⁶⁴.
                ($convert(bits) / TWO_POW_64).min($float::next_down(1.0))
            }

            fn normal(out: &mut [Self], mean: Self, std: Self) {
                draw(|generator| generator.fill_normal(out, mean, std));
            }

            fn uniform(out: &mut [Self], low: Self, high: Self) {
                draw(|generator| generator.fill_uniform(out, low, high));
            }
        }
    };
}

random_float!(f32, round_to_f32);
random_float!(f64, |bits: u64| bits as f64);

/// `bits as f32`, without the branch on the highest bit, which is mispredicted half of the time.
fn round_to_f32(bits: u64) -> f32 {
    let high = bits >> 63;
    // A number too large for i64 is halved; its lowest bit is kept for the rounding.
    let halved = (bits >> high | bits & high) as i64;
    halved as f32 * [1.0, 2.0][high as usize]
}

/// Two normal numbers from two uniform ones; `None` if those are outside of the unit circle.
fn polar<T: Float>(u: T, v: T) -> Option<[T; 2]> {
    let (one, two) = (T::one(), T::one() + T::one());
    let [x, y] = [two * u - one, two * v - one];
    let square = x * x + y * y;
    if square > one || square == T::zero() {
        return None;
    }
    let factor = (-two * square.ln() / square).sqrt();
    // libstdc++ returns the second coordinate first and keeps the other for the next call.
    Some([y * factor, x * factor])
}

fn seeded(seed: u32) -> Box<Mt64> {
    let words = seed_words(seed);
    // The engine takes its state as the outputs that would reveal it, hence `temper`.
    let outputs =
        array::from_fn(|i| temper(u64::from(words[2 * i]) | u64::from(words[2 * i + 1]) << 32));
    Box::new(Mt64::from(outputs))
}

/// The words of `std::seed_seq({seed})`, low half first; names are those of the C++ standard.
fn seed_words(seed: u32) -> [u32; 624] {
    const N: usize = 624;
    const T: usize = 11;
    const P: usize = (N - T) / 2;
    const Q: usize = P + T;
    let mix = |x: u32| x ^ (x >> 27);

    let mut words = [0x8b8b_8b8b_u32; N];
    for k in 0..N {
        let (k_p, k_q, before) = ((k + P) % N, (k + Q) % N, (k + N - 1) % N);
        let r1 = mix(words[k] ^ words[k_p] ^ words[before]).wrapping_mul(1_664_525);
        // The input is the number of seed words, 1, then the seed, then nothing; each plus `k`.
        let input = match k {
            0 => 1,
            1 => seed.wrapping_add(1),
            _ => k as u32,
        };
        let r2 = r1.wrapping_add(input);
        words[k_p] = words[k_p].wrapping_add(r1);
        words[k_q] = words[k_q].wrapping_add(r2);
        words[k] = r2;
    }
    for k in 0..N {
        let (k_p, k_q, before) = ((k + P) % N, (k + Q) % N, (k + N - 1) % N);
        let sum = words[k].wrapping_add(words[k_p]).wrapping_add(words[before]);
        let r3 = mix(sum).wrapping_mul(1_566_083_941);
        let r4 = r3.wrapping_sub(k as u32);
        words[k_p] ^= r3;
        words[k_q] ^= r4;
        words[k] = r4;
    }
    words
}

/// The last step of mt19937_64, from a word of the state to an output.
fn temper(mut word: u64) -> u64 {
    word ^= (word >> 29) & 0x5555_5555_5555_5555;
    word ^= (word << 17) & 0x71d6_7fff_eda6_0000;
    word ^= (word << 37) & 0xfff7_eee0_0000_0000;
    word ^ (word >> 43)
}
