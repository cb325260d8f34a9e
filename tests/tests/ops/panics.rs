//! Panics of ops: their location is that of the call.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use autograd_core::Tensor;

use crate::properties::{arguments, differentiable};
use crate::random::Draw;
use crate::run::run;

/// Shapes that few ops take in place of their own.
const SHAPES: [&[usize]; 6] = [&[], &[0], &[7], &[1, 1], &[3, 0], &[2, 3, 4, 5]];

thread_local! {
    /// Where this thread panicked; `None` if it is not watched.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a closure; returns its panic and the place of that.
fn watched(f: impl FnOnce()) -> Option<(Box<dyn Any + Send>, String)> {
    // Once for all tests: the hook is that of the process.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            PLACE.with_borrow_mut(|place| match place {
                Some(place) => {
                    *place = panic.location().map(ToString::to_string).unwrap_or_default()
                }
                None => before(panic),
            });
        }));
    });
    PLACE.set(Some(String::new()));
    let outcome = catch_unwind(AssertUnwindSafe(f));
    let place = PLACE.take().unwrap_or_default();
    outcome.err().map(|panic| (panic, place))
}

/// The panic of a closure, and its place.
pub(crate) fn panic_of(f: impl FnOnce()) -> (Box<dyn Any + Send>, String) {
    watched(f).expect("it panics")
}

#[test]
fn a_panic_is_reported_at_the_call() {
    let mut wrong = Vec::new();
    for op in differentiable() {
        for seed in 0..4 {
            let given = arguments(&op, "float64", &mut Draw::new(seed)).unwrap();
            for at in 0..given.inputs.len() {
                for shape in SHAPES {
                    let shapes = given.inputs.iter().enumerate();
                    let shapes = shapes.map(|(i, (own, _))| if i == at { shape } else { &own[..] });
                    let inputs: Vec<Tensor<f64>> = shapes.map(Tensor::ones).collect();
                    let call = || drop(run(&op, &given.variant, &inputs, &given.index));
                    let panic = watched(call).filter(|(_, place)| {
                        place.contains("autograd-core/src")
                            || place.contains("autograd-kernels/src")
                    });
                    let text = |panic: &dyn Any| {
                        let text = panic.downcast_ref::<String>().cloned();
                        text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
                    };
                    wrong.extend(
                        panic.map(|(panic, place)| format!("{op}: {place}: {:?}", text(&*panic))),
                    );
                }
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
