//! Random arguments for an op: shapes, layouts, numbers; the same for the same seed.

use autograd_core::{Generator, Tensor};

use crate::run::Number;

/// A stream of choices.
pub(crate) struct Draw(Generator);

/// The numbers of an input.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Domain {
    /// Between two bounds.
    Between(f64, f64),
    /// All different, for ops with a kink at equal numbers.
    Apart,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Generator::new(seed))
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() >> 11) as usize % n.max(1)
    }

    /// A number from `low` to `high`, inclusive.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high + 1 - low)
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<V: Copy>(&mut self, from: &[V]) -> V {
        from[self.below(from.len())]
    }

    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The length of an axis: often 1, sometimes 0.
    fn length(&mut self, least: usize) -> usize {
        match self.below(12) {
            0 if least == 0 => 0,
            1..=3 => least.max(1),
            _ => self.between(least.max(2), least.max(5)),
        }
    }

    /// A shape of `low` to `high` axes, none shorter than `least`.
    pub(crate) fn shape(&mut self, low: usize, high: usize, least: usize) -> Vec<usize> {
        let rank = self.between(low, high);
        (0..rank).map(|_| self.length(least)).collect()
    }

    /// Two shapes that broadcast.
    pub(crate) fn broadcast(&mut self) -> [Vec<usize>; 2] {
        let common = self.shape(0, 4, 0);
        let side = |draw: &mut Self| -> Vec<usize> {
            let cut = if draw.one_in(2) { draw.between(0, common.len()) } else { 0 };
            common[cut..].iter().map(|&n| if draw.one_in(4) { 1 } else { n }).collect()
        };
        let sides = [side(self), side(self)];
        if self.one_in(2) { sides } else { [common, sides[1].clone()] }
    }

    pub(crate) fn permutation(&mut self, n: usize) -> Vec<usize> {
        self.0.randperm(n).into_iter().map(|i| i as usize).collect()
    }

    /// A list of indices into an axis.
    pub(crate) fn indices(&mut self, shape: &[usize], len: usize) -> Tensor<i64> {
        let n: usize = shape.iter().product();
        let data = (0..n).map(|_| self.below(len) as i64).collect();
        Tensor::from_vec(shape, data).unwrap()
    }

    fn numbers<T: Number>(&mut self, shape: &[usize], domain: Domain) -> Tensor<T> {
        let n: usize = shape.iter().product();
        let data = match domain {
            Domain::Between(low, high) => {
                (0..n).map(|_| T::from_f64(low + (high - low) * self.unit())).collect()
            }
            Domain::Apart => {
                let order = self.permutation(n);
                let number = |i: usize| (i as f64 - n as f64 / 2.0 + 0.3) * 0.25;
                order.into_iter().map(|i| T::from_f64(number(i))).collect()
            }
        };
        Tensor::from_vec(shape, data).unwrap()
    }

    /// A tensor of this shape in a layout that ops may get, or in `depth` of them combined.
    pub(crate) fn tensor<T: Number>(
        &mut self,
        shape: &[usize],
        domain: Domain,
        depth: usize,
    ) -> Tensor<T> {
        if depth == 0 {
            return self.numbers(shape, domain);
        }
        let axis = self.below(shape.len());
        let n = shape.get(axis).copied().unwrap_or(1);
        let with = |length: usize| {
            let mut shape = shape.to_vec();
            shape[axis] = length;
            shape
        };
        let along = axis as isize;
        match self.below(7) {
            // A number has only one layout.
            _ if shape.is_empty() => {
                let row = self.tensor::<T>(&[3], domain, depth - 1);
                row.select(0, self.below(3))
            }
            0 => self.tensor(shape, domain, 0),
            1 => {
                let order = self.permutation(shape.len());
                let mut turned = vec![0; shape.len()];
                order.iter().zip(shape).for_each(|(&from, &n)| turned[from] = n);
                let order: Vec<isize> = order.into_iter().map(|i| i as isize).collect();
                self.tensor(&turned, domain, depth - 1).permute(&order)
            }
            2 => {
                let (step, start) = (self.between(1, 3), self.between(0, 2));
                let end = start + n * step;
                self.tensor(&with(end + 1), domain, depth - 1).slice_axis(along, start, end, step)
            }
            3 => self.tensor(shape, domain, depth - 1).flip(along),
            4 if matches!(domain, Domain::Between(..)) => {
                self.tensor(&with(1), domain, depth - 1).broadcast_to(shape)
            }
            5 => {
                let longer = [&[3], shape].concat();
                let i = self.below(3);
                self.tensor(&longer, domain, depth - 1).select(0, i)
            }
            _ => {
                let start = self.between(0, 3);
                self.tensor(&with(start + n + 1), domain, depth - 1).narrow(along, start, n)
            }
        }
    }
}
