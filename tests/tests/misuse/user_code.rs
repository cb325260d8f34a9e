//! What user code does in `forward`, `backward`, hooks and destructors beside its own task.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use autograd_core::prelude::*;
use autograd_core::{HookHandle, is_grad_enabled};
use support::{gradient, leaf};

use crate::run::{panicked, usable};
use crate::values::Mul;

/// Does things in forward that it should not.
#[py_layer]
impl Meddles {
    type Attrs = fn(&Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        now: fn(&Tensor<f64>),
        later: fn(&Tensor<f64>),
    ) -> Tensor<f64> {
        now(x);
        ctx.set_attrs(later);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        ctx.attrs()(dy);
        dy * 2.0
    }
}

fn nothing(_: &Tensor<f64>) {}

pub(crate) fn a_scope_forgotten_in_forward() {
    let x = leaf(&[1.0]);
    let y = Meddles::apply(&x, |_| std::mem::forget(enable_grad()), nothing);
    assert!(is_grad_enabled());
    y.backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
    let y = no_grad().run(|| Meddles::apply(&x, |_| std::mem::forget(enable_grad()), nothing));
    assert!(is_grad_enabled() && y.stop_gradient());
}

pub(crate) fn a_whole_backward_inside_of_forward_and_backward() {
    fn train(_: &Tensor<f64>) {
        enable_grad().run(|| {
            let w = leaf(&[3.0]);
            Mul::apply(&w, &w).backward().unwrap();
            assert_eq!(gradient(&w), [6.0]);
        });
    }
    let x = leaf(&[1.0]);
    Meddles::apply(&x, train, train).backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}

pub(crate) fn an_input_stopped_inside_of_forward() {
    let x = leaf(&[1.0]);
    let y = Meddles::apply(&x, |x| x.set_stop_gradient(true), nothing);
    // A leaf that wants no gradient gets none; there is no other effect.
    let _ = y.sum().backward();
    assert!(x.grad().is_none_or(|grad| grad.item() == 2.0));
    x.set_stop_gradient(false);
    x.clear_grad();
    usable(&[&x]);
}

pub(crate) fn the_same_backward_from_inside_of_backward() -> String {
    static OUTPUT: Mutex<Option<Tensor<f64>>> = Mutex::new(None);
    static TOLD: Mutex<String> = Mutex::new(String::new());
    let x = leaf(&[1.0]);
    let y = Meddles::apply(&x, nothing, |_| {
        let output = OUTPUT.lock().unwrap().clone();
        if let Some(output) = output {
            *TOLD.lock().unwrap() = match output.backward() {
                Ok(()) => "it was not noticed".to_owned(),
                Err(error) => error.to_string(),
            };
        }
    });
    *OUTPUT.lock().unwrap() = Some(y.clone());
    y.backward().unwrap();
    *OUTPUT.lock().unwrap() = None;
    assert_eq!(gradient(&x), [2.0]);
    TOLD.lock().unwrap().clone()
}

pub(crate) fn an_input_changed_that_nobody_saved() {
    let x = leaf(&[1.0]);
    let h = &x * 1.0;
    let y = Meddles::apply(&h, nothing, nothing);
    no_grad().run(|| h.fill(10.0)).unwrap();
    y.backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}

pub(crate) fn forward_panics() -> String {
    let x = leaf(&[1.0]);
    let meddle = || Meddles::apply(&x, |x| panic!("no value for {}", x.item()), nothing);
    let message = panicked(meddle);
    assert!(is_grad_enabled());
    usable(&[&x]);
    message
}

pub(crate) fn an_op_applied_while_another_panics() {
    struct Applies(Tensor<f64>);
    impl Drop for Applies {
        fn drop(&mut self) {
            Mul::apply(&self.0, &self.0).sum().backward().unwrap();
        }
    }
    let x = leaf(&[2.0]);
    let held = Applies(x.clone());
    let caught = catch_unwind(AssertUnwindSafe(move || {
        let _held = held;
        panic!("on purpose");
    }));
    assert!(caught.is_err());
    assert_eq!(gradient(&x), [4.0]);
}

pub(crate) fn a_hook_that_removes_itself() {
    let x = leaf(&[1.0]);
    let handle = Arc::new(Mutex::new(None::<HookHandle>));
    let own = Arc::clone(&handle);
    let hook = x.register_hook(move |grad| {
        if let Some(handle) = own.lock().unwrap().take() {
            let _ = handle.remove();
        }
        Ok(Some(grad * 2.0))
    });
    *handle.lock().unwrap() = Some(hook.unwrap());
    (&x * 1.0).backward().unwrap();
    (&x * 1.0).backward().unwrap();
    assert_eq!(gradient(&x), [3.0]);
}

pub(crate) fn a_hook_that_clears_the_gradient_it_feeds() {
    let x = leaf(&[1.0]);
    (&x * 4.0).backward().unwrap();
    let same = x.clone();
    let handle = x.register_hook(move |_| {
        same.clear_grad();
        Ok(None)
    });
    (&x * 2.0).backward().unwrap();
    let _ = handle.unwrap().remove();
    assert_eq!(gradient(&x), [2.0]);
    x.clear_grad();
}
