//! `std::mt19937_64`, seeded by `std::seed_seq`.

pub(super) const WORDS: usize = 312;
/// The distance of the two words that give a new one.
const DISTANCE: usize = 156;
const LOW_BITS: u64 = (1 << 31) - 1;
const MATRIX: u64 = 0xb502_6f5a_a966_19e9;

#[derive(Clone)]
pub(super) struct Engine {
    words: [u64; WORDS],
    /// The position of the next number; `WORDS` if new words must be computed first.
    next: usize,
}

impl Engine {
    pub(super) fn new(seed: u32) -> Self {
        let halves = seed_words(seed);
        let mut words = [0; WORDS];
        for (word, halves) in words.iter_mut().zip(halves.chunks_exact(2)) {
            *word = u64::from(halves[0]) | u64::from(halves[1]) << 32;
        }
        Self { words, next: WORDS }
    }

    #[inline]
    pub(super) fn next_u64(&mut self) -> u64 {
        if self.next == WORDS {
            self.refill();
        }
        let word = self.words[self.next];
        self.next += 1;
        temper(word)
    }

    fn refill(&mut self) {
        let wrap = |at: usize| if at < WORDS { at } else { at - WORDS };
        for at in 0..WORDS {
            let both = self.words[at] & !LOW_BITS | self.words[wrap(at + 1)] & LOW_BITS;
            let odd = (both & 1).wrapping_neg() & MATRIX;
            self.words[at] = self.words[wrap(at + DISTANCE)] ^ both >> 1 ^ odd;
        }
        self.next = 0;
    }

    /// The words and the position of the next number.
    pub(super) fn state(&self) -> [u64; WORDS + 1] {
        let mut state = [self.next as u64; WORDS + 1];
        state[..WORDS].copy_from_slice(&self.words);
        state
    }

    pub(super) fn from_state(state: &[u64; WORDS + 1]) -> Option<Self> {
        let mut words = [0; WORDS];
        words.copy_from_slice(&state[..WORDS]);
        let next = usize::try_from(state[WORDS]).ok().filter(|next| *next <= WORDS)?;
        // From zeros, all numbers would be zero. The low bits of the first word are never used.
        let is_engine = words[0] & !LOW_BITS != 0 || words[1..].iter().any(|word| *word != 0);
        is_engine.then_some(Self { words, next })
    }
}

/// From a word to a number.
fn temper(mut word: u64) -> u64 {
    word ^= (word >> 29) & 0x5555_5555_5555_5555;
    word ^= (word << 17) & 0x71d6_7fff_eda6_0000;
    word ^= (word << 37) & 0xfff7_eee0_0000_0000;
    word ^ (word >> 43)
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
