//! Memory of somebody else is read, and never written, reused or kept.

use std::sync::Arc;

use autograd_core::host::Memory;
use autograd_core::prelude::*;
use autograd_core::{buffer_pool_bytes, empty_buffer_pool};

/// Enough elements for deferred functions and for the pool.
const LEN: usize = 20_000;

/// Memory, and a tensor over it.
fn foreign(shape: &[usize], strides: &[isize], offset: usize) -> (Arc<Vec<f32>>, Tensor<f32>) {
    let memory: Arc<Vec<f32>> = Arc::new((0..LEN).map(|i| i as f32 / 1000.0 - 9.0).collect());
    let owner = Box::new(Arc::clone(&memory));
    let data = memory[offset..].as_ptr();
    // SAFETY: the owner keeps the vector, which nobody writes, and the strides stay inside of it.
    let tensor = unsafe { Tensor::from_foreign(shape, strides, data, owner) };
    (memory, tensor)
}

fn expected() -> Vec<f32> {
    (0..LEN).map(|i| i as f32 / 1000.0 - 9.0).collect()
}

#[test]
fn nothing_writes_foreign_memory() {
    type Use = fn(Tensor<f32>);
    let uses: [(&str, Use); 12] = [
        ("fill", |x| x.fill(7.0).unwrap()),
        ("copy_from", |x| x.copy_from(&Tensor::ones_like(&x)).unwrap()),
        ("add_assign", |mut x| x += 1.0),
        ("add_assign of a tensor", |mut x| {
            let other = Tensor::ones_like(&x);
            x += &other;
        }),
        ("set_item", |mut x| x.set_item(&[0], 7.0).unwrap()),
        ("a consumed operand", |x| drop((x + 1.0).to_vec())),
        ("a chain of deferred functions", |x| drop((-(x * 2.0 - 1.0).square()).relu().to_vec())),
        ("a function of an element", |x| drop(x.tanh().to_vec())),
        ("a change behind a reader", |x| {
            let deferred = &x * 3.0;
            x.fill(1.0).unwrap();
            assert_eq!(deferred.to_vec()[0], -27.0);
        }),
        ("a leaf of a backward", |x| {
            x.set_stop_gradient(false);
            (&x * &x).sum().backward().unwrap();
            let grad = x.grad().unwrap();
            grad.fill(0.0).unwrap();
        }),
        ("a seed", |x| {
            let leaf = Tensor::<f32>::zeros(x.shape());
            leaf.set_stop_gradient(false);
            let y = &leaf * 1.0 + &leaf;
            autograd_core::backward(&[y.into()], &[Some(x.into())], Default::default()).unwrap();
            leaf.grad().unwrap().fill(5.0).unwrap();
        }),
        ("memory for somebody else", |x| {
            let memory = Memory::of(x.into());
            // SAFETY: the memory is that of the tensor alone.
            unsafe { memory.data().cast::<f32>().write(3.0) };
        }),
    ];
    for (what, run) in uses {
        for keeps in [false, true] {
            let (memory, x) = foreign(&[LEN], &[1], 0);
            let other = keeps.then(|| x.detach());
            run(x);
            drop(other);
            assert!(*memory == expected(), "{what}");
            assert_eq!(Arc::strong_count(&memory), 1, "{what} keeps the memory");
        }
    }
}

#[test]
fn foreign_memory_is_read_in_place_and_not_pooled() {
    let (memory, x) = foreign(&[LEN], &[1], 0);
    let view = x.view();
    assert_eq!(view.as_ptr(), memory.as_ptr());
    drop(view);
    empty_buffer_pool();
    let before = buffer_pool_bytes();
    drop(x);
    assert_eq!((buffer_pool_bytes(), Arc::strong_count(&memory)), (before, 1));
}

#[test]
fn every_layout_is_read() {
    // Columns of a matrix, rows that repeat, steps backwards, and few elements.
    let (memory, x) = foreign(&[100, 200], &[1, 100], 0);
    assert_eq!(x.to_vec()[1], memory[100]);
    let (memory, x) = foreign(&[30, 100], &[0, 2], 5);
    assert_eq!((x.to_vec()[101], Arc::strong_count(&memory)), (memory[7], 2));
    let (memory, x) = foreign(&[100, 3], &[-3, -1], 299);
    assert_eq!(x.to_vec(), memory[..300].iter().rev().copied().collect::<Vec<_>>());
    assert_eq!(Arc::strong_count(&memory), 1, "a copy needs no owner");
    let (memory, x) = foreign(&[4], &[1], 1);
    assert_eq!((x.to_vec(), Arc::strong_count(&memory)), (memory[1..5].to_vec(), 1));
    let (memory, x) = foreign(&[0, 7], &[7, 1], 0);
    assert_eq!((x.len(), Arc::strong_count(&memory)), (0, 1));
    let (_, x) = foreign(&[], &[], 3);
    assert_eq!(x.item(), -8.997);
}

#[test]
fn data_that_is_not_aligned_is_copied() {
    let bytes: Vec<u8> =
        std::iter::once(0).chain((0..50).flat_map(|i| f64::from(i).to_ne_bytes())).collect();
    let bytes = Arc::new(bytes);
    let owner = Box::new(Arc::clone(&bytes));
    let data = bytes[1..].as_ptr().cast::<f64>();
    // SAFETY: 50 numbers, which nobody writes.
    let x = unsafe { Tensor::<f64>::from_foreign(&[50], &[1], data, owner) };
    assert_eq!((x.to_vec()[49], Arc::strong_count(&bytes)), (49.0, 1));
}

#[test]
fn memory_for_somebody_else_is_not_shared() {
    let x = Tensor::from(vec![1.0_f32; 100]);
    let shared = Memory::of(x.detach().into());
    // SAFETY: as its documentation says.
    unsafe { shared.data().cast::<f32>().write(3.0) };
    assert_eq!(x.to_vec()[0], 1.0);
    let strided = Memory::of(x.reshape([2, 50]).t().into());
    assert_eq!((strided.shape(), strided.bytes()), (&[50, 2][..], 400));
    // The only tensor's memory is handed over.
    let x = Tensor::from(vec![1.0_f32; 100]);
    let place = x.view().as_ptr();
    assert_eq!(Memory::of(x.into()).data().cast_const().cast(), place);
}
