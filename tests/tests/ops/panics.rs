//! Panics of ops: their location is that of the call.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use autograd_core::Tensor;

use crate::properties::{arguments, differentiable};
use crate::random::Draw;
use crate::run::run;

/// Shapes that few ops take in place of their own.
const SHAPES: [&[usize]; 6] = [&[], &[0], &[7], &[1, 1], &[3, 0], &[2, 3, 4, 5]];

thread_local! {
    /// Whether the test below runs on this thread.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    /// The last panic inside the library.
    static INSIDE: Cell<Option<String>> = const { Cell::new(None) };
}

#[test]
fn a_panic_is_reported_at_the_call() {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        if !WATCHED.get() {
            return before(panic);
        }
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        if place.contains("autograd-core/src") || place.contains("autograd-kernels/src") {
            INSIDE.set(Some(format!("{place}: {:?}", panic.payload_as_str())));
        }
    }));
    WATCHED.set(true);
    let mut wrong = Vec::new();
    for op in differentiable() {
        for seed in 0..4 {
            let given = arguments(&op, "float64", &mut Draw::new(seed)).unwrap();
            for at in 0..given.inputs.len() {
                for shape in SHAPES {
                    let shapes = given.inputs.iter().enumerate();
                    let shapes = shapes.map(|(i, (own, _))| if i == at { shape } else { &own[..] });
                    let inputs: Vec<Tensor<f64>> = shapes.map(Tensor::ones).collect();
                    let _ = catch_unwind(AssertUnwindSafe(|| {
                        run(&op, &given.variant, &inputs, &given.index)
                    }));
                    wrong.extend(INSIDE.take().map(|place| format!("{op}: {place}")));
                }
            }
        }
    }
    WATCHED.set(false);
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
