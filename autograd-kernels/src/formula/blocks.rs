//! Programs run block by block: each step computes a block, in a buffer of its own.

use super::kernels::{CompareKernel, MulAddKernel, SelectKernel};
use super::pass::{Block, Formula, Scratch, block_of};
use super::program::{Program, Step};
use crate::array::Storable;
use crate::array::buffer::Buffer;
use crate::array::math::Math;
use crate::array::simd::dispatch;

/// Elements that a step computes at once: the buffers of a program stay in the L1 cache.
const fn step_elements<T>() -> usize {
    4096 / size_of::<T>()
}

impl<T: Storable + Math> Formula<T> for Program {
    fn outputs(&self) -> usize {
        self.outputs.len()
    }

    fn run_program(&self, block: &mut Block<'_, T>) {
        let Block { len, reals, masks, out, scratch, .. } = block;
        let stride = block_of(self.outputs.len());
        if scratch.numbers.is_empty() && scratch.masks.is_empty() {
            // The first block is the longest.
            let most = step_elements::<T>().min(*len);
            scratch.numbers = (0..self.buffers[0]).map(|_| Buffer::any(most)).collect();
            scratch.masks = (0..self.buffers[1]).map(|_| Buffer::any(most)).collect();
            for (step, &place) in self.steps.iter().zip(&self.places) {
                match *step {
                    Step::Lit(bits) => {
                        scratch.numbers[place as usize].fill(T::lit(f64::from_bits(bits)));
                    }
                    Step::Known(holds) => scratch.masks[place as usize].fill(holds),
                    _ => {}
                }
            }
        }
        let mut start = 0;
        while start < *len {
            let part = Part { start, len: step_elements::<T>().min(*len - start), reals, masks };
            let Part { len: n, .. } = part;
            // All steps lead to the only output, so it is the last step, and is computed in place.
            let direct =
                self.outputs.len() == 1 && self.steps[self.outputs[0] as usize].is_number();
            for i in 0..self.steps.len() - usize::from(direct) {
                self.step(i, &part, scratch);
            }
            if direct {
                let last = self.steps[self.outputs[0] as usize];
                self.number(last, &part, scratch, &mut out[start..start + n]);
            } else {
                for (k, &output) in self.outputs.iter().enumerate() {
                    let from = self.result(output, &part, reals, &scratch.numbers);
                    out[k * stride + start..][..n].copy_from_slice(from);
                }
            }
            start += n;
        }
    }
}

/// A part of a block, which a step computes at once.
struct Part<'a, T> {
    start: usize,
    len: usize,
    reals: &'a [&'a [T]],
    masks: &'a [&'a [bool]],
}

impl Program {
    /// The result of a step, or the input that it reads.
    fn result<'a, T, E: Storable>(
        &self,
        step: u32,
        part: &Part<'_, T>,
        given: &[&'a [E]],
        buffers: &'a [Buffer<E>],
    ) -> &'a [E] {
        match self.steps[step as usize] {
            Step::Real(i) | Step::Mask(i) => &given[i as usize][part.start..][..part.len],
            _ => &buffers[self.places[step as usize] as usize][..part.len],
        }
    }

    fn step<T: Storable + Math>(&self, i: usize, part: &Part<'_, T>, scratch: &mut Scratch<T>) {
        let step = self.steps[i];
        let place = self.places[i] as usize;
        match step {
            Step::Real(_) | Step::Mask(_) | Step::Lit(_) | Step::Known(_) => {}
            Step::Function(..) | Step::Binary(..) | Step::MulAdd(..) | Step::Select(..) => {
                let mut out = std::mem::take(&mut scratch.numbers[place]);
                self.number(step, part, scratch, &mut out[..part.len]);
                scratch.numbers[place] = out;
            }
            Step::Compare(f, a, b) => {
                let mut out = std::mem::take(&mut scratch.masks[place]);
                let of = |k| self.result(k, part, part.reals, &scratch.numbers);
                dispatch(CompareKernel(f, of(a), of(b), &mut out[..part.len]));
                scratch.masks[place] = out;
            }
            Step::Not(_) | Step::And(..) | Step::Or(..) => {
                let mut out = std::mem::take(&mut scratch.masks[place]);
                let of = |k| self.result(k, part, part.masks, &scratch.masks);
                let to = out[..part.len].iter_mut();
                match step {
                    Step::Not(a) => to.zip(of(a)).for_each(|(to, a)| *to = !a),
                    Step::And(a, b) => {
                        to.zip(of(a)).zip(of(b)).for_each(|((to, a), b)| *to = a & b);
                    }
                    Step::Or(a, b) => {
                        to.zip(of(a)).zip(of(b)).for_each(|((to, a), b)| *to = a | b);
                    }
                    _ => unreachable!("the arm above lists them"),
                }
                scratch.masks[place] = out;
            }
        }
    }

    fn number<T: Storable + Math>(
        &self,
        step: Step,
        part: &Part<'_, T>,
        scratch: &Scratch<T>,
        to: &mut [T],
    ) {
        let of = |k| self.result(k, part, part.reals, &scratch.numbers);
        match step {
            Step::Function(f, a) => {
                if !f.formula().run_loop(part.len, &[of(a)], &[], to) {
                    f.of_large_angles(of(a), to);
                }
            }
            Step::Binary(f, a, b) => {
                f.formula().run_loop(part.len, &[of(a), of(b)], &[], to);
            }
            Step::MulAdd(a, b, c) => dispatch(MulAddKernel(of(a), of(b), of(c), to)),
            Step::Select(m, a, b) => {
                let m = self.result(m, part, part.masks, &scratch.masks);
                dispatch(SelectKernel(m, of(a), of(b), to));
            }
            _ => unreachable!("the caller has seen that it gives numbers"),
        }
    }
}
