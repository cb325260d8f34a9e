//! What user code draws on threads of the library depends on the work, and not on the threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use autograd_core::data::{DataLoader, Dataset};
use autograd_core::prelude::*;
use autograd_core::{Result, backward_parallel, rng_state, set_rng_state};

use crate::seeded;

/// The numbers 0, 1, 2 .. with noise; counts the batches that are made.
#[derive(Clone)]
struct Noisy(usize, Arc<AtomicUsize>);

impl Dataset for Noisy {
    type Batch = Vec<f64>;

    fn len(&self) -> usize {
        self.0
    }

    fn get(&self, items: &[usize]) -> Result<Vec<f64>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        let noise = Tensor::<f64>::rand([items.len()]).to_vec();
        Ok(items.iter().zip(noise).map(|(item, noise)| *item as f64 + noise).collect())
    }
}

fn noisy() -> Noisy {
    Noisy(22, Arc::default())
}

/// How batches are made and used.
#[derive(Clone, Copy)]
struct Use {
    shuffle: Option<u64>,
    in_background: bool,
    /// Whether the program draws between the batches.
    draws: bool,
    skipped: usize,
}

fn batches(data: Noisy, epoch: u64, how: Use) -> Vec<Vec<f64>> {
    let mut loader = DataLoader::new(data, 4);
    if let Some(seed) = how.shuffle {
        loader = loader.shuffle(seed);
    }
    if how.in_background {
        loader = loader.in_background();
    }
    let batches = loader.epoch(epoch).skip(how.skipped);
    let used = |batch: Result<Vec<f64>>| {
        if how.draws {
            Tensor::<f64>::rand([7]);
        }
        batch.unwrap()
    };
    batches.map(used).collect()
}

#[test]
fn data_draw_the_same_numbers_on_every_thread_and_after_a_skip() {
    let _turn = seeded(5);
    let start = rng_state();
    for shuffle in [None, Some(3)] {
        for epoch in 0..3 {
            let run = |in_background, draws, skipped| {
                set_rng_state(&start);
                batches(noisy(), epoch, Use { shuffle, in_background, draws, skipped })
            };
            let first = run(false, false, 0);
            assert_eq!(first.len(), 6);
            for (in_background, draws, skipped) in [
                (true, false, 0),
                (false, true, 0),
                (true, true, 0),
                (false, true, 4),
                (true, true, 4),
            ] {
                let found = run(in_background, draws, skipped);
                assert_eq!(found, first[skipped..], "{in_background} {draws} {skipped}");
            }
            assert!(run(true, false, 6).is_empty() && run(true, false, 60).is_empty());
        }
    }
    // The program's own numbers do not change.
    set_rng_state(&start);
    let expected = Tensor::<f64>::rand([3]).to_vec();
    for in_background in [false, true] {
        set_rng_state(&start);
        batches(noisy(), 0, Use { shuffle: None, in_background, draws: false, skipped: 0 });
        assert_eq!(Tensor::<f64>::rand([3]).to_vec(), expected);
    }
}

#[test]
fn data_draw_other_numbers_in_each_batch_epoch_and_run() {
    let noise = |seed, epoch, shuffle| {
        let _turn = seeded(seed);
        let how = Use { shuffle, in_background: true, draws: false, skipped: 0 };
        let all = batches(noisy(), epoch, how).concat();
        all.into_iter().map(|x| x.fract()).collect::<Vec<f64>>()
    };
    let runs = [
        noise(1, 0, None),
        noise(2, 0, None),
        noise(1, 1, None),
        noise(1, 2, None),
        noise(1, 0, Some(0)),
        noise(1, 1, Some(0)),
        noise(1, 0, Some(1)),
    ];
    let mut all = runs.concat();
    let len = all.len();
    all.sort_by(f64::total_cmp);
    all.dedup();
    assert_eq!(all.len(), len);
    // With a seed, the process-wide generator has no part.
    assert_eq!(noise(2, 0, Some(1)), runs[6]);
}

#[test]
fn skipped_batches_are_not_made() {
    let _turn = seeded(1);
    for in_background in [false, true] {
        let data = noisy();
        let how = Use { shuffle: None, in_background, draws: false, skipped: 5 };
        assert_eq!(batches(data.clone(), 0, how).len(), 1);
        assert_eq!(data.1.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn items_of_a_parallel_backward_draw_the_same_numbers_on_every_thread() {
    let _turn = seeded(9);
    let run = |threads| {
        autograd_core::seed(9);
        let w = Tensor::<f64>::ones([32]);
        w.set_stop_gradient(false);
        let inside = w.clone();
        let loss = |_: usize| Ok((inside.dropout(0.5, true) * Tensor::randn([32])).sum());
        let mut losses = Vec::new();
        for _ in 0..2 {
            let all = backward_parallel(20, threads, loss).unwrap();
            losses.extend(all.iter().map(Tensor::item));
        }
        (losses, w.grad().unwrap().to_vec(), Tensor::<f64>::rand([2]).to_vec())
    };
    let first = run(1);
    let mut losses = first.0.clone();
    losses.sort_by(f64::total_cmp);
    losses.dedup();
    assert_eq!(losses.len(), 40, "each item has its own numbers");
    for threads in [2, 5, 1] {
        assert_eq!(run(threads), first, "{threads} threads");
    }
}
