//! The rows of each global batch, divided among the ranks.

use autograd_core::{Generator, Tensor};

use crate::World;

/// A sampler: in each epoch all rows once, in a random order that depends on the seed and the epoch alone, in global
/// batches, each divided among the ranks. The last batch may be smaller, and a rank's part of it empty.
#[derive(Clone, Copy, Debug)]
pub struct Shards {
    /// The number of rows of the data.
    pub rows: usize,
    /// The number of rows of a batch, of all ranks together.
    pub batch: usize,
    /// The seed of the order.
    pub seed: u64,
}

impl Shards {
    /// The number of batches in an epoch.
    ///
    /// ```
    /// use autograd_mpi::Shards;
    ///
    /// assert_eq!(Shards { rows: 10, batch: 4, seed: 7 }.batches(), 3);
    /// ```
    pub fn batches(&self) -> usize {
        self.rows.div_ceil(self.batch.max(1))
    }

    /// Returns this rank's rows of each batch of epoch `n`. To go on within an epoch, [`skip`](Iterator::skip) the
    /// batches that were used; the number of ranks may be another one then.
    ///
    /// ```
    /// use autograd_mpi::{Shards, World};
    ///
    /// let world = World::init()?;
    /// let shards = Shards { rows: 10, batch: 4, seed: 7 };
    /// let parts: Vec<_> = shards.epoch(&world, 0).map(|rows| rows.len()).collect();
    /// assert_eq!(parts, [4, 4, 2]); // without `mpirun`
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    pub fn epoch(&self, world: &World, n: u64) -> impl Iterator<Item = Tensor<i64>> + use<> {
        self.of_rank(world.rank(), world.size(), n, 1)
    }

    /// [`epoch`](Shards::epoch) for a rank of `size`, with batches that are cut at multiples of `multiple` only.
    ///
    /// ```
    /// use autograd_mpi::Shards;
    ///
    /// let shards = Shards { rows: 10, batch: 4, seed: 7 };
    /// let lens = |rank, multiple| {
    ///     shards.of_rank(rank, 3, 0, multiple).map(|rows| rows.len()).collect::<Vec<_>>()
    /// };
    /// assert_eq!([lens(0, 1), lens(1, 1), lens(2, 1)], [[2, 2, 1], [1, 1, 1], [1, 1, 0]]);
    /// assert_eq!([lens(0, 2), lens(1, 2), lens(2, 2)], [[2, 2, 2], [2, 2, 0], [0, 0, 0]]);
    /// ```
    pub fn of_rank(
        &self,
        rank: usize,
        size: usize,
        n: u64,
        multiple: usize,
    ) -> impl Iterator<Item = Tensor<i64>> + use<> {
        let (batch, multiple) = (self.batch.max(1), multiple.max(1));
        let order = Generator::of_part(&[self.seed, n]).randperm(self.rows);
        (0..self.batches()).map(move |at| {
            let rows = &order[at * batch..order.len().min((at + 1) * batch)];
            let pieces = rows.len().div_ceil(multiple);
            // The first ranks have one piece more.
            let start = |rank: usize| {
                let piece = rank * (pieces / size) + rank.min(pieces % size);
                (piece * multiple).min(rows.len())
            };
            Tensor::from(&rows[start(rank)..start(rank + 1)])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of each batch on all ranks together, after a check of where it is cut.
    fn batches(shards: Shards, size: usize, n: u64, multiple: usize) -> Vec<Vec<i64>> {
        let mut batches = vec![Vec::new(); shards.batches()];
        for rank in 0..size {
            for (batch, rows) in batches.iter_mut().zip(shards.of_rank(rank, size, n, multiple)) {
                assert!(rows.is_empty() || batch.len().is_multiple_of(multiple));
                batch.extend(rows.to_vec());
            }
        }
        batches
    }

    #[test]
    fn ranks_share_each_batch_and_an_epoch_has_each_row_once() {
        for (rows, batch) in [(10, 4), (1, 5), (0, 3), (97, 16)] {
            let shards = Shards { rows, batch, seed: 7 };
            let expected = batches(shards, 1, 2, 1);
            for (size, multiple) in [(2, 1), (3, 1), (4, 3), (5, 8), (40, 1)] {
                assert_eq!(batches(shards, size, 2, multiple), expected);
            }
            let mut all = expected.concat();
            all.sort_unstable();
            assert_eq!(all, (0..rows as i64).collect::<Vec<_>>());
        }
        let of = |seed, n| batches(Shards { rows: 97, batch: 16, seed }, 1, n, 1);
        assert!(of(7, 2) != of(7, 3) && of(7, 2) != of(8, 2));
    }
}
