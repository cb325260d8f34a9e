//! `backward_each`: the gradient of a leaf is handed out during the walk, and none is written.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use autograd_core::nn::{BatchNorm1d, Linear, Module};
use autograd_core::prelude::*;
use autograd_core::{
    BackwardOptions, Error, HookResult, Result, after_backward, as_one_backward, backward_each,
    checkpoint, leaves_of,
};
use support::leaf;

fn each(
    loss: &Tensor<f64>,
    each: &mut dyn FnMut(&AnyTensor, AnyTensor) -> HookResult<()>,
) -> Result<()> {
    backward_each(&[loss.clone().into()], &[None], BackwardOptions::new(), each)
}

/// The gradients in the order in which they were handed out.
fn collected(loss: &Tensor<f64>) -> Vec<(AnyTensor, Vec<f64>)> {
    let mut found = Vec::new();
    each(loss, &mut |leaf, grad| {
        found.push((leaf.clone(), grad.downcast::<f64>().unwrap().to_vec()));
        Ok(())
    })
    .unwrap();
    found
}

type Events = Arc<Mutex<Vec<String>>>;

/// Notes when its rule runs.
#[py_layer]
impl Noted {
    type Attrs = (String, Events);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        name: String,
        events: Events,
    ) -> Tensor<f64> {
        ctx.set_attrs((name, events));
        x * 1.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (name, events) = ctx.attrs();
        events.lock().unwrap().push(name.clone());
        dy * 1.0
    }
}

/// Each layer's gradient is handed out before the rules of the layer below run.
#[test]
fn gradients_come_while_the_walk_runs() {
    let layers: Vec<Tensor<f64>> = (1..5).map(|i| leaf(&[0.1 * f64::from(i), 0.5])).collect();
    let events = Events::default();
    let mut x = leaf(&[1.0, -1.0]) * 1.0;
    for (i, w) in layers.iter().enumerate() {
        x = (Noted::apply(&x, format!("below {i}"), Arc::clone(&events)) * w).tanh();
    }
    each(&x.sum(), &mut |leaf, _| {
        if let Some(i) = layers.iter().position(|w| w.id() == leaf.id()) {
            events.lock().unwrap().push(format!("leaf {i}"));
        }
        Ok(())
    })
    .unwrap();
    let expected: Vec<String> =
        (0..4).rev().flat_map(|i| [format!("leaf {i}"), format!("below {i}")]).collect();
    assert_eq!(*events.lock().unwrap(), expected);
}

#[test]
fn a_shared_leaf_comes_once_when_its_last_use_is_done() {
    let (w, b) = (leaf(&[0.5]), leaf(&[0.25]));
    let x = (&w * 2.0).tanh() + &b;
    let loss = (x * &w).sum() + w.square().sum();
    let found = collected(&loss);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].0.id(), found[1].0.id()), (b.id(), w.id()));
    loss.item();
    let again = (((&w * 2.0).tanh() + &b) * &w).sum() + w.square().sum();
    again.backward().unwrap();
    assert_eq!(found[1].1, w.grad().unwrap().to_vec());
    assert_eq!(found[0].1, b.grad().unwrap().to_vec());
}

/// Passes its gradient to the first input only.
#[py_layer]
impl First {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {
        x + y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: Option<&Tensor<f64>>) -> Grads {
        let _ = ctx;
        Grads { x: dy.cloned(), y: dy.map(|dy| dy * 0.0) }
    }
}

/// An op whose second output is used only where no gradient flows.
#[py_layer]
impl Fork {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        ctx.set_materialize_grads(false);
        (x * 2.0, x * 3.0)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: Option<&Tensor<f64>>,
        _dz: Option<&Tensor<f64>>,
    ) -> Option<Tensor<f64>> {
        dy.map(|dy| dy * 2.0)
    }
}

/// Ops that no gradient reaches hold nothing back for ever.
#[test]
fn a_leaf_behind_ops_without_a_gradient_comes_at_the_end() {
    let (w, v) = (leaf(&[0.5]), leaf(&[2.0]));
    // The gradient of `tail` is absent, so the op between `w` and it is never visited.
    let (head, tail) = Fork::apply(&(&w * 1.0));
    let (_, unused) = Fork::apply(&(&tail * &v));
    let loss = First::apply(&head, &w).sum() + unused.sum() * 0.0;
    let reached = leaves_of(&[loss.clone().into()]);
    assert!(reached.iter().any(|x| x.id() == v.id()));
    let found = collected(&loss);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].0.id(), found[0].1.as_slice()), (w.id(), &[2.0][..]));
}

#[test]
fn an_output_that_is_a_leaf_has_its_seed() {
    let x = leaf(&[3.0]);
    assert_eq!(collected(&x)[0].1, [1.0]);
    let outputs = [x.clone().into(), x.square().into()];
    let mut sum = Vec::new();
    backward_each(&outputs, &[None, None], BackwardOptions::new(), &mut |_, grad| {
        sum.push(grad.downcast::<f64>().unwrap().item());
        Ok(())
    })
    .unwrap();
    assert_eq!(sum, [7.0]);
}

#[test]
fn leaves_of_a_checkpoint_come_too() {
    let (w, x) = (leaf(&[0.5]), leaf(&[2.0]));
    let (inside, input) = (w.clone(), &x * 1.0);
    let y = checkpoint(move || (&input * &inside).sin() * &inside);
    let found = collected(&(y * &w).sum());
    let of = |leaf: &Tensor<f64>| found.iter().filter(|(x, _)| x.id() == leaf.id()).count();
    assert_eq!((of(&w), of(&x), found.len()), (1, 1, 2));
}

#[test]
fn hooks_of_a_leaf_run_once_on_the_whole_gradient() {
    let w = leaf(&[2.0]);
    let _ = w.register_hook(|grad| Ok(Some(grad * 10.0)));
    assert_eq!(collected(&(&w * &w).sum())[0].1, [40.0]);
    assert!(w.grad().is_none());
}

/// Retained gradients are written and callbacks run when all is done, and neither after an error.
#[test]
fn all_or_nothing() {
    let done = Rc::new(Cell::new(0));
    let call = || {
        let done = Rc::clone(&done);
        after_backward(move || {
            done.set(done.get() + 1);
            Ok(())
        });
    };
    let (w, v) = (leaf(&[2.0]), leaf(&[3.0]));
    let model = || {
        let h = w.square();
        h.retain_grads().unwrap();
        ((&h * &v).sum(), h)
    };
    let (loss, h) = model();
    call();
    let got = RefCell::new(0);
    let error = each(&loss, &mut |leaf, _| {
        *got.borrow_mut() += 1;
        if leaf.id() == w.id() { Err("the disk is full")? } else { Ok(()) }
    })
    .unwrap_err();
    assert!(matches!(error, Error::Hook { .. }));
    let text = error.to_string();
    assert!(text.starts_with("a leaf: the callback of backward_each (registered at "), "{text}");
    assert!(text.ends_with("failed: the disk is full"), "{text}");
    assert_eq!((got.take(), done.get()), (2, 0));
    assert!(h.grad().is_none() && w.grad().is_none());

    let (loss, h) = model();
    call();
    let panic = catch_unwind(AssertUnwindSafe(|| each(&loss, &mut |_, _| panic!("out of luck"))));
    assert!(panic.is_err());
    assert!(h.grad().is_none() && done.get() == 0);

    let (loss, h) = model();
    call();
    each(&loss, &mut |_, _| {
        assert!(h.grad().is_none() && done.get() == 0);
        Ok(())
    })
    .unwrap();
    assert_eq!((h.grad().unwrap().to_vec(), done.get()), (vec![3.0], 1));
    assert!(w.grad().is_none() && v.grad().is_none());
}

/// Arguments are checked as those of `backward`.
#[test]
fn arguments_are_checked() {
    let w = leaf(&[2.0, 3.0]);
    let error = each(&w.square(), &mut |_, _| Ok(())).unwrap_err();
    assert!(matches!(error, Error::SeedMissing { op: "backward_each", .. }), "{error}");
    let none = backward_each(&[], &[], BackwardOptions::new(), &mut |_, _| Ok(()));
    assert!(matches!(none, Err(Error::Count { op: "backward_each", .. })));
}

/// With `create_graph` the gradients can be differentiated again.
#[test]
fn gradients_may_be_recorded() {
    let w = leaf(&[2.0]);
    let outputs = [(&w * &w * &w).sum().into()];
    let mut first = None;
    backward_each(&outputs, &[None], BackwardOptions::new().create_graph(true), &mut |_, grad| {
        first = grad.downcast::<f64>();
        Ok(())
    })
    .unwrap();
    first.unwrap().sum().backward().unwrap();
    assert_eq!(w.grad().unwrap().to_vec(), [12.0]);
}

/// The callbacks of `after_backward` run once, when the outermost has succeeded.
#[test]
fn several_backwards_can_be_one() {
    let x = leaf(&[3.0]);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let call = || {
        let (x, seen) = (x.clone(), Rc::clone(&seen));
        after_backward(move || {
            seen.borrow_mut().push(x.grad().map(|grad| grad.item()));
            Ok(())
        });
    };
    call();
    let two = as_one_backward(|| {
        x.square().sum().backward()?;
        assert!(seen.borrow().is_empty());
        x.clear_grad();
        x.square().sum().backward()?;
        Ok(2)
    });
    assert_eq!((two.unwrap(), seen.take()), (2, vec![Some(6.0)]));
    call();
    let failed: Result<()> = as_one_backward(|| Err(Error::custom("no data")));
    assert_eq!(failed.unwrap_err().to_string(), "no data");
    x.square().sum().backward().unwrap();
    assert!(seen.borrow().is_empty(), "the callback of a step that failed is dropped");
}

#[test]
fn parameters_in_two_places_are_listed_once_and_buffers_apart() {
    let shared = Linear::<f32>::new(2, 2);
    let net = (shared.clone(), BatchNorm1d::<f32>::new(2), shared);
    let names = |list: Vec<(String, AnyTensor)>| list.into_iter().map(|(name, _)| name);
    let distinct: Vec<String> = names(net.distinct_parameters()).collect();
    assert_eq!(distinct, ["0.weight", "0.bias", "1.weight", "1.bias"]);
    assert_eq!(net.named_parameters().len(), 6);
    let buffers: Vec<String> = names(net.named_buffers()).collect();
    assert_eq!(buffers, ["1.running_mean", "1.running_var", "1.num_batches_tracked"]);
}
