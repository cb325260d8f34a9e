//! An error or a panic in user code that a backward calls, at every possible place: the report is
//! complete, nothing is half written, and the next backward works.

use std::error::Error as _;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use autograd_core::prelude::*;
use autograd_core::{
    BackwardOptions, Error, HookResult, after_backward, is_grad_enabled, saved_tensors_hooks,
};
use support::leaf;

/// A user's error type.
#[derive(Debug, PartialEq)]
struct Mine(u32);

impl fmt::Display for Mine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {}", self.0)
    }
}

impl std::error::Error for Mine {}

/// The behaviour of the user code.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Fail,
    Panic,
    Nothing,
}

thread_local! {
    static DOES: std::cell::Cell<Does> = const { std::cell::Cell::new(Does::Nothing) };
}

/// Called in every hook here.
fn user_code() -> HookResult<()> {
    match DOES.get() {
        Does::Fail => Err(Mine(7))?,
        Does::Panic => panic!("in user code"),
        Does::Nothing => Ok(()),
    }
}

/// A place for user code: a function that registers it, and the start and end of its error message.
struct Place {
    name: &'static str,
    /// Takes the leaf, a tensor computed from it, and whether to register again before each
    /// backward.
    register: fn(&Tensor<f64>, &Tensor<f64>) -> &'static Location<'static>,
    begins: &'static str,
    hook: &'static str,
    /// Whether gradients are written before the user code runs.
    after: bool,
}

/// The line after this call.
#[track_caller]
fn here() -> &'static Location<'static> {
    Location::caller()
}

const PLACES: [Place; 5] = [
    Place {
        name: "a hook on the output of an op",
        register: |_, h| {
            let _ = h.register_hook(|_| user_code().map(|()| None)).unwrap();
            here()
        },
        begins: "mul (called at tests/tests/engine/hook_errors.rs:",
        hook: ": the hook on output 0 (registered at ",
        after: false,
    },
    Place {
        name: "a hook on a leaf",
        register: |x, _| {
            let _ = x.register_hook(|_| user_code().map(|()| None)).unwrap();
            here()
        },
        begins: "a leaf",
        hook: ": the hook (registered at ",
        after: false,
    },
    Place {
        name: "a hook before a node",
        register: |_, h| {
            let _ = h.graph_node().unwrap().register_before(|_| user_code().map(|()| None));
            here()
        },
        begins: "mul (called at tests/tests/engine/hook_errors.rs:",
        hook: ": the hook before it (registered at ",
        after: false,
    },
    Place {
        name: "a hook after a node",
        register: |_, h| {
            let _ = h.graph_node().unwrap().register_after(|_, _| user_code().map(|()| None));
            here()
        },
        begins: "mul (called at tests/tests/engine/hook_errors.rs:",
        hook: ": the hook after it (registered at ",
        after: false,
    },
    Place {
        name: "what runs after the backward",
        register: |_, _| {
            after_backward(user_code);
            here()
        },
        begins: "backward",
        hook: ": the call after it (registered at ",
        after: true,
    },
];

#[test]
fn an_error_names_the_hook_and_is_its_source() {
    for place in PLACES {
        let (x, w) = (leaf(&[3.0]), leaf(&[5.0]));
        let h = &x * &w;
        let y = h.square() + &w;
        DOES.set(Does::Fail);
        let after = (place.register)(&x, &h);
        let retain = BackwardOptions::new().retain_graph(true);
        let error = y.backward_options(retain).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(place.begins), "{}: {text}", place.name);
        assert!(text.contains(place.hook), "{}: {text}", place.name);
        let registered = format!("{}:{}:", after.file(), after.line() - 1);
        assert!(text.contains(&registered), "{}: {text} not at {registered}", place.name);
        assert!(text.ends_with(" failed: number 7"), "{}: {text}", place.name);
        assert!(matches!(error, Error::Hook { .. }), "{}: {error:?}", place.name);
        let source = error.source().and_then(|source| source.downcast_ref::<Mine>());
        assert_eq!(source, Some(&Mine(7)), "{}", place.name);
        // A clone of the error has the same source.
        assert!(error.clone().source().unwrap().is::<Mine>());
        usable(&place, &x, &w, &y);
    }
}

#[test]
fn a_panic_is_passed_on() {
    for place in PLACES {
        let (x, w) = (leaf(&[3.0]), leaf(&[5.0]));
        let h = &x * &w;
        let y = h.square() + &w;
        DOES.set(Does::Panic);
        (place.register)(&x, &h);
        let retain = BackwardOptions::new().retain_graph(true);
        let panic = catch_unwind(AssertUnwindSafe(|| y.backward_options(retain))).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"in user code"), "{}", place.name);
        usable(&place, &x, &w, &y);
    }
}

/// No gradient is half written, and the next backward works.
fn usable(place: &Place, x: &Tensor<f64>, w: &Tensor<f64>, y: &Tensor<f64>) {
    let written = [x, w].map(|t| t.grad().is_some());
    assert_eq!(written, [place.after; 2], "{}", place.name);
    assert!(is_grad_enabled());
    DOES.set(Does::Nothing);
    [x, w].into_iter().for_each(Tensor::clear_grad);
    y.backward().unwrap();
    let grads = [x, w].map(|t| t.grad().unwrap().item());
    assert_eq!(grads, [150.0, 91.0], "{}", place.name);
}

#[test]
fn errors_of_pack_and_unpack_are_sources_too() {
    let x = leaf(&[3.0]);
    let unpack = |t: &AnyTensor| user_code().map(|()| t.clone());
    let y = saved_tensors_hooks(|t| Ok(t.clone()), unpack).run(|| x.square());
    DOES.set(Does::Fail);
    let retain = BackwardOptions::new().retain_graph(true);
    let error = y.backward_options(retain).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("square (called at tests/tests/engine/hook_errors.rs:"), "{text}");
    assert!(text.contains("the unpack hook failed for "), "{text}");
    assert_eq!(error.source().unwrap().downcast_ref(), Some(&Mine(7)));
    DOES.set(Does::Nothing);
    y.backward().unwrap();
    assert_eq!(x.grad().unwrap().item(), 6.0);

    x.clear_grad();
    DOES.set(Does::Fail);
    let scope =
        saved_tensors_hooks(|t| user_code().map(|()| t.clone()), |t: &AnyTensor| Ok(t.clone()));
    let y = x.square();
    DOES.set(Does::Nothing);
    for error in [scope.check().unwrap_err(), y.backward().unwrap_err()] {
        assert!(error.to_string().contains("the pack hook failed for "), "{error}");
        assert_eq!(error.source().unwrap().downcast_ref(), Some(&Mine(7)));
    }
    assert!(x.grad().is_none());
    x.square().backward().unwrap();
    assert_eq!(x.grad().unwrap().item(), 6.0);
}

/// A backward inside a hook fails: the outer error has the place, and the inner one is its source.
#[test]
fn an_error_of_an_inner_backward_is_the_source_of_the_outer() {
    let x = leaf(&[3.0]);
    let freed = x.square();
    freed.backward().unwrap();
    x.clear_grad();
    let h = &x * 2.0;
    let _ = h.register_hook(move |_| Ok(freed.backward().map(|()| None)?)).unwrap();
    let error = h.square().backward().unwrap_err();
    assert!(error.to_string().starts_with("mul (called at "), "{error}");
    let inner = error.source().unwrap().downcast_ref::<Error>().unwrap();
    assert!(matches!(inner, Error::GraphFreed { op: "square", .. }), "{inner}");
    assert!(x.grad().is_none());
}
