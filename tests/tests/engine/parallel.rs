//! Backwards on several threads, with sums in one order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use autograd_core::prelude::*;
use autograd_core::{Error, OrderedBackward, Result, after_backward, backward_parallel};
use support::ops::Tanh;
use support::wanting;

const ITEMS: usize = 37;

fn wave(shape: &[usize], seed: u64) -> Tensor {
    let data = (0..shape.iter().product()).map(|i: usize| (i as f32 * 0.37 + seed as f32).sin());
    wanting(Tensor::from_vec(shape, data.collect()).unwrap())
}

fn bits(x: &Tensor) -> Vec<u32> {
    x.grad().unwrap().to_vec().into_iter().map(f32::to_bits).collect()
}

/// The bits of the gradients and of the losses, computed on so many threads.
fn train(threads: usize) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let (w, b) = (wave(&[30, 20], 1), wave(&[20], 2));
    let mut losses = Vec::new();
    // Twice: the second time there are gradients to add to.
    for _ in 0..2 {
        let loss = |item: usize| {
            // Later items are faster, so that they finish in another order.
            thread::sleep(Duration::from_micros(((ITEMS - item) % 5 * 100) as u64));
            let x = wave(&[8, 30], 100 + item as u64).detach();
            Ok(Tanh::apply(&(x.matmul(&w) + &b)).square().mean() * (item as f32 * 0.1))
        };
        let found = backward_parallel(ITEMS, threads, loss).unwrap();
        losses.extend(found.iter().map(|loss| loss.item().to_bits()));
        assert!(found.iter().all(Tensor::stop_gradient));
    }
    (bits(&w), bits(&b), losses)
}

#[test]
fn not_one_bit_depends_on_the_number_of_threads() {
    let one = train(1);
    for threads in [2, 3, 4, 8, 64, 0] {
        for _ in 0..3 {
            assert_eq!(train(threads), one, "{threads} threads");
        }
    }
}

#[test]
fn it_is_one_backward_of_all_losses_in_their_order() {
    let (x, y) = (wave(&[5], 3), wave(&[5], 4));
    let calls = AtomicUsize::new(0);
    let loss = |x: &Tensor, item: usize| (x * (item as f32 + 0.1)).sin().sum();
    let seen = std::sync::Arc::new(AtomicUsize::new(0));
    let hook = std::sync::Arc::clone(&seen);
    let _ = x.register_hook(move |_| {
        hook.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    });
    let done = std::rc::Rc::new(std::cell::Cell::new(0));
    let after = std::rc::Rc::clone(&done);
    after_backward(move || {
        after.set(after.get() + 1);
        Ok(())
    });
    let losses = backward_parallel(10, 4, |item| {
        calls.fetch_add(1, Ordering::Relaxed);
        Ok(loss(&x, item))
    });
    assert_eq!(losses.unwrap().len(), 10);
    assert_eq!((calls.into_inner(), seen.load(Ordering::Relaxed), done.get()), (10, 1, 1));
    // The same by hand: separate gradients, added in order.
    let mut sum = None;
    for item in 0..10 {
        y.clear_grad();
        let same = x.detach();
        same.set_stop_gradient(false);
        loss(&same, item).backward().unwrap();
        let grad = same.grad().unwrap();
        sum = Some(sum.map_or(grad.clone(), |sum: Tensor| sum + grad));
    }
    let sum: Vec<u32> = sum.unwrap().to_vec().into_iter().map(f32::to_bits).collect();
    assert_eq!(bits(&x), sum);
}

#[test]
fn the_first_error_in_the_items_order_is_returned() -> Result<()> {
    for threads in [1, 2, 8] {
        let x = wave(&[2], 5);
        let failing = |item: usize| match item {
            3 => {
                // The other failure happens first.
                thread::sleep(Duration::from_millis(5));
                Err(Error::Unsupported { op: "mine", why: "no third".into() })
            }
            4 => Ok(&x * 1.0),
            _ => Ok((&x * 2.0).sum()),
        };
        let error = backward_parallel(20, threads, failing).unwrap_err();
        assert_eq!(error.to_string(), "mine: no third");
        assert!(x.grad().is_none());
        let error = backward_parallel(1, threads, |_| failing(4)).unwrap_err();
        assert!(
            matches!(error, Error::SeedMissing { op: "backward_parallel", with: None, .. }),
            "{error}"
        );
        assert!(x.grad().is_none());
        backward_parallel(3, threads, failing)?;
        assert_eq!(x.grad().unwrap().to_vec(), [6.0, 6.0]);
    }
    Ok(())
}

#[test]
fn a_panic_is_passed_on_and_nothing_is_written() {
    let x = wave(&[2], 6);
    let loss = |item: usize| {
        assert!(item != 5, "the fifth");
        Ok((&x * 2.0).sum())
    };
    let run = || backward_parallel(50, 4, loss);
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the fifth"));
    assert!(x.grad().is_none());
    backward_parallel(5, 4, loss).unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [10.0, 10.0]);
}

#[test]
fn nothing_to_do_and_nothing_to_learn() {
    assert!(backward_parallel::<f32>(0, 4, |_| unreachable!()).unwrap().is_empty());
    let losses = backward_parallel(3, 2, |item| Ok(Tensor::from(item as f32))).unwrap();
    assert_eq!(losses.iter().map(Tensor::item).collect::<Vec<_>>(), [0.0, 1.0, 2.0]);
}

/// Gradients that wait to be added take memory, so the number of items begun is limited.
#[test]
fn no_item_is_begun_more_than_two_a_thread_before_the_sums() {
    const THREADS: usize = 3;
    let w = wave(&[30, 20], 1);
    for fails in [false, true] {
        let begun = AtomicUsize::new(0);
        let losses = backward_parallel(ITEMS, THREADS, |item| {
            begun.fetch_add(1, Ordering::SeqCst);
            if item > 0 {
                return Ok(item_loss(&w, item));
            }
            // Until this item is added, the others begin those that they may, and no further ones.
            let start = Instant::now();
            while begun.load(Ordering::SeqCst) < 2 * THREADS {
                assert!(start.elapsed() < Duration::from_secs(20), "the others wait too early");
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(50));
            assert_eq!(begun.load(Ordering::SeqCst), 2 * THREADS);
            // Items that wait for this one continue, or end, whatever its result.
            if fails {
                Err(Error::Unsupported { op: "mine", why: "no loss".into() })
            } else {
                Ok(item_loss(&w, item))
            }
        });
        assert_eq!(losses.is_err(), fails);
        assert_eq!(begun.into_inner(), if fails { 2 * THREADS } else { ITEMS });
    }
}

/// User code may start such a backward inside a backward, and retained gradients are in order too.
#[test]
fn retained_gradients_and_nesting() {
    for threads in [1, 4] {
        let x = wave(&[1], 7);
        let h = &x * 3.0;
        h.retain_grads().unwrap();
        let inner = wave(&[1], 8);
        let loss = |item: usize| {
            backward_parallel(2, 2, |_| Ok((&inner * 2.0).sum()))?;
            Ok((&h.detach() * &x * item as f64).sum())
        };
        backward_parallel(4, threads, loss).unwrap();
        assert_eq!(inner.grad().unwrap().item(), 16.0);
        assert!(h.grad().is_none() && x.grad().is_some());
    }
}

/// Losses whose sum depends on the order in its last bits.
fn item_loss(w: &Tensor, item: usize) -> Tensor {
    let x = wave(&[8, 30], 100 + item as u64).detach();
    Tanh::apply(&x.matmul(w)).square().mean() * (item as f32 * 0.1)
}

#[test]
fn threads_of_ones_own_have_an_order_too() {
    let w = wave(&[30, 20], 1);
    backward_parallel(ITEMS, 2, |item| Ok(item_loss(&w, item))).unwrap();
    let expected = bits(&w);
    for threads in [1, 2, 5] {
        w.clear_grad();
        let all = OrderedBackward::new();
        thread::scope(|scope| {
            for worker in 0..threads {
                let (w, all) = (&w, &all);
                scope.spawn(move || {
                    // In reverse, so that nearly all arrive early.
                    for item in (0..ITEMS).rev().filter(|item| item % threads == worker) {
                        all.backward(item, &item_loss(w, item)).unwrap();
                    }
                });
            }
        });
        assert!(w.grad().is_none());
        all.finish().unwrap();
        assert_eq!(bits(&w), expected, "{threads} threads");
    }
    // With gaps in the numbers, the order is still that of the numbers.
    w.clear_grad();
    let all = OrderedBackward::new();
    (0..ITEMS).rev().for_each(|item| all.backward(item * 10, &item_loss(&w, item)).unwrap());
    all.finish().unwrap();
    assert_eq!(bits(&w), expected);
}

#[test]
fn a_number_stands_once_and_a_failed_item_has_no_part() {
    let w = wave(&[2], 1);
    let all = OrderedBackward::new();
    all.backward(0, &w.sum()).unwrap();
    all.backward(2, &w.sum()).unwrap();
    for item in [0, 2] {
        let error = all.backward(item, &w.sum()).unwrap_err();
        assert!(matches!(&error, Error::Duplicate { .. }), "{error}");
        assert!(error.to_string().contains(&format!("item {item}")), "{error}");
    }
    assert!(matches!(all.backward(1, &(&w * 2.0)), Err(Error::SeedMissing { .. })));
    let panics = (&w * 2.0).sum();
    let _ = panics.register_hook(|_| panic!("in a hook")).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| all.backward(1, &panics))).is_err());
    all.backward(1, &(&w * 3.0).sum()).unwrap();
    let hook = w.register_hook(|_| Err("no".into())).unwrap();
    let other = OrderedBackward::new();
    other.backward(0, &w.sum()).unwrap();
    assert!(other.finish().is_err() && w.grad().is_none());
    hook.remove();
    all.finish().unwrap();
    assert_eq!(w.grad().unwrap().to_vec(), [5.0, 5.0]);
    OrderedBackward::new().finish().unwrap();
}
