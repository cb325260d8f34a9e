//! Programs run block by block: each step over a block, into a buffer of its own.

use std::ops::Range;

use super::kernels::StepKernel;
use super::pass::{Block, Formula, Scratch, block_of};
use super::program::{Program, Step};
use crate::array::Storable;
use crate::array::buffer::Buffer;
use crate::array::math::Math;
use crate::array::simd::dispatch;

/// Elements that a step does at once: the buffers of a program stay in the first cache.
const fn most<T>() -> usize {
    4096 / size_of::<T>()
}

impl<T: Storable + Math> Formula<T> for Program {
    fn outputs(&self) -> usize {
        self.outputs.len()
    }

    fn run(&self, block: &mut Block<'_, T>) {
        let Block { len, reals, masks, out, scratch, .. } = block;
        let stride = block_of(self.outputs.len());
        if scratch.numbers.is_empty() && scratch.masks.is_empty() {
            // The first block is the longest.
            let most = most::<T>().min(*len);
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
        // All steps lead to an only output: that is the last one, and computed in its place.
        let direct = match (&self.outputs[..], self.steps.last()) {
            ([_], Some(last)) if last.is_computed() => self.steps.len() - 1,
            _ => usize::MAX,
        };
        let inputs = (*reals, *masks);
        for start in (0..*len).step_by(most::<T>()) {
            let range = start..(start + most::<T>()).min(*len);
            let n = range.len();
            for (i, &step) in self.steps.iter().enumerate().filter(|(_, step)| step.is_computed()) {
                let place = self.places[i] as usize;
                if i == direct {
                    self.step(step, inputs, &range, scratch, &mut out[range.clone()], &mut []);
                } else if step.is_mask() {
                    let mut to = std::mem::take(&mut scratch.masks[place]);
                    self.step(step, inputs, &range, scratch, &mut [], &mut to[..n]);
                    scratch.masks[place] = to;
                } else {
                    let mut to = std::mem::take(&mut scratch.numbers[place]);
                    self.step(step, inputs, &range, scratch, &mut to[..n], &mut []);
                    scratch.numbers[place] = to;
                }
            }
            for (k, &output) in self.outputs.iter().enumerate().filter(|_| direct == usize::MAX) {
                let from = match self.steps[output as usize] {
                    Step::Real(i) => &reals[i as usize][range.clone()],
                    _ => &scratch.numbers[self.places[output as usize] as usize][..n],
                };
                out[k * stride + start..][..n].copy_from_slice(from);
            }
        }
    }
}

impl Program {
    /// Computes a step of a range of the block, either to numbers or to a mask.
    fn step<T: Storable + Math>(
        &self,
        step: Step,
        (reals, masks): (&[&[T]], &[&[bool]]),
        range: &Range<usize>,
        scratch: &Scratch<T>,
        to: &mut [T],
        to_mask: &mut [bool],
    ) {
        let mut kernel = StepKernel { step, numbers: [&[]; 3], masks: [&[]; 3], to, to_mask };
        for (k, operand) in step.operands().into_iter().enumerate() {
            let (of, place) = (self.steps[operand as usize], self.places[operand as usize]);
            match of {
                Step::Real(i) => kernel.numbers[k] = &reals[i as usize][range.clone()],
                Step::Mask(i) => kernel.masks[k] = &masks[i as usize][range.clone()],
                _ if of.is_mask() => {
                    kernel.masks[k] = &scratch.masks[place as usize][..range.len()]
                }
                _ => kernel.numbers[k] = &scratch.numbers[place as usize][..range.len()],
            }
        }
        dispatch(kernel);
    }
}
