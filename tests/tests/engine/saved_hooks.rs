//! Hooks on saved tensors. Saving other values does not compile:
//! `compiler/fixtures/types/declared_and_returned.rs`.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use autograd_core::prelude::*;
use autograd_core::{
    BackwardOptions, DType, Error, GradOptions, HookResult, SavedTensorsHooks, checkpoint, grad,
    grad_with, is_grad_enabled, saved_tensors_hooks,
};
use support::ops::Double;
use support::{gradient, leaf};

fn float(tensor: &AnyTensor) -> &Tensor<f64> {
    tensor.downcast_ref().expect("a tensor of f64")
}

/// The number of calls of each hook.
#[derive(Clone, Default)]
struct Calls(Arc<[AtomicUsize; 2]>);

impl Calls {
    /// A scope whose hooks keep plain numbers.
    fn scope(&self) -> SavedTensorsHooks {
        let (packs, unpacks) = (self.clone(), self.clone());
        saved_tensors_hooks(
            move |saved| {
                packs.0[0].fetch_add(1, Ordering::Relaxed);
                let saved = float(saved);
                Ok((saved.to_vec(), saved.shape().to_vec()))
            },
            move |(data, shape)| {
                unpacks.0[1].fetch_add(1, Ordering::Relaxed);
                Ok(Tensor::from_vec(&shape[..], data.clone())?.into())
            },
        )
    }

    fn count(&self) -> [usize; 2] {
        [0, 1].map(|hook| self.0[hook].load(Ordering::Relaxed))
    }
}

/// A scope with these hooks.
fn scope_of(
    pack: impl Fn(&AnyTensor) -> HookResult<AnyTensor> + 'static,
    unpack: impl Fn(&AnyTensor) -> HookResult<AnyTensor> + Send + Sync + 'static,
) -> SavedTensorsHooks {
    saved_tensors_hooks(pack, unpack)
}

fn as_it_is() -> SavedTensorsHooks {
    scope_of(|saved| Ok(saved.clone()), |packed| Ok(packed.clone()))
}

/// The derivative of `x * y * y`, from an input, the output and an optional tensor.
#[py_layer]
impl Product {
    type Saved = (Tensor<f64>, Option<Tensor<f64>>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        y: &Tensor<f64>,
        extra: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        let z = x * y * y;
        ctx.save_for_backward((x, extra, y, &z));
        z
    }

    fn backward(ctx: &BackwardContext<Self>, dz: &Tensor<f64>) -> Grads {
        let (x, extra, y, z) = ctx.saved_tensor();
        let zeros = extra.as_ref().map(Tensor::zeros_like);
        Grads { x: dz * z / x, y: dz * z / y * 2.0, extra: zeros }
    }
}

#[py_layer]
impl ExpSavingWhatItComputed {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let factor = x.exp();
        ctx.save_for_backward(&factor);
        &factor * 1.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

#[test]
fn each_saved_tensor_of_a_layer_is_packed_once_and_unpacked_once() {
    let run = |calls: Option<&Calls>| {
        let (x, y) = (leaf(&[1.5, -2.0]), leaf(&[0.5, 3.0]));
        let scope = calls.map(Calls::scope);
        let z = Product::apply(&x, &y, None);
        drop(scope);
        z.sum().backward().unwrap();
        (gradient(&x), gradient(&y))
    };
    let calls = Calls::default();
    assert_eq!(run(Some(&calls)), run(None));
    assert_eq!(calls.count(), [3, 3]);
}

#[test]
fn both_factors_of_a_product_are_packed() {
    let (x, y) = (leaf(&[1.5, -2.0]), leaf(&[0.5, 3.0]));
    let calls = Calls::default();
    let z = calls.scope().run(|| &x * &y);
    assert_eq!(calls.count(), [2, 0]);
    z.sum().backward().unwrap();
    assert_eq!(calls.count(), [2, 2]);
    assert_eq!((gradient(&x), gradient(&y)), (vec![0.5, 3.0], vec![1.5, -2.0]));
    // The same tensor, saved twice, is packed twice.
    let calls = Calls::default();
    let z = calls.scope().run(|| &x * &x);
    z.sum().backward().unwrap();
    assert_eq!(calls.count(), [2, 2]);
}

#[test]
fn what_is_not_saved_is_not_packed() {
    let (x, c) = (leaf(&[1.5, -2.0]), Tensor::from([2.0, 3.0]));
    let calls = Calls::default();
    calls.scope().run(|| {
        let _ = (&x + &c, x.sum(), x.reshape([2, 1]), &c * &c, no_grad().run(|| &x * &x));
    });
    assert_eq!(calls.count(), [0, 0]);
    // `x * c` needs only `c`.
    let _ = calls.scope().run(|| &x * &c);
    assert_eq!(calls.count(), [1, 0]);
}

#[test]
fn saved_tensors_are_readable_until_backward() {
    for hooks in [false, true] {
        let (x, y) = (leaf(&[1.5]), leaf(&[3.0]));
        let scope = hooks.then(as_it_is);
        let z = Product::apply(&x, &y, None);
        drop(scope);
        let node = z.graph_node().unwrap();
        for _ in 0..2 {
            let saved = node.saved_tensors().unwrap();
            let items: Vec<_> = saved.iter().map(|t| t.as_ref().map(|t| float(t).item())).collect();
            assert_eq!(items, [Some(1.5), None, Some(3.0), Some(13.5)]);
            // Inputs and outputs are connected to the graph.
            assert!(saved.iter().flatten().all(|saved| !saved.stop_gradient()));
            let slope = grad(&[&(float(saved[3].as_ref().unwrap()) * 2.0)], &[&z]).unwrap();
            assert_eq!(slope[0].item(), 2.0);
        }
        z.backward().unwrap();
        let error = node.saved_tensors().unwrap_err();
        assert!(matches!(error, Error::GraphFreed { op: "Product", .. }), "{error}");
    }
}

#[test]
fn saved_tensors_of_built_in_ops() {
    let (x, c) = (leaf(&[1.0, 2.0]), Tensor::from([3.0, 4.0]));
    let saved = |y: &Tensor<f64>| -> Vec<Option<Vec<f64>>> {
        let saved = y.graph_node().unwrap().saved_tensors().unwrap();
        saved.iter().map(|t| t.as_ref().map(|t| float(t).to_vec())).collect()
    };
    assert_eq!(saved(&x.exp()), [Some(x.exp().to_vec())]);
    assert_eq!(saved(&(&x * &c)), [None, Some(vec![3.0, 4.0])]);
    assert_eq!(saved(&(&x + &c)).into_iter().flatten().count(), 0);
    assert!(saved(&Double::apply(&x)).is_empty());
    assert!(
        saved(&checkpoint({
            let x = x.clone();
            move || x.exp()
        }))
        .is_empty()
    );
}

#[test]
fn a_saved_tensor_changed_in_place_is_reported() {
    let x = leaf(&[1.0, 2.0]);
    let h = &x * 1.0;
    let y = h.square();
    no_grad().run(|| h.fill(5.0)).unwrap();
    let error = y.graph_node().unwrap().saved_tensors().unwrap_err();
    assert!(matches!(error, Error::SavedTensorChanged { op: "square", .. }), "{error}");
}

#[test]
fn what_was_packed_goes_with_the_backward_that_used_it() {
    let packed: Rc<RefCell<Vec<Weak<Vec<f64>>>>> = Rc::default();
    let list = Rc::clone(&packed);
    let scope = saved_tensors_hooks(
        move |saved| {
            let data = Arc::new(float(saved).to_vec());
            list.borrow_mut().push(Arc::downgrade(&data));
            Ok(data)
        },
        |data| Ok(Tensor::from(&data[..]).into()),
    );
    let held = || packed.borrow().iter().filter(|data| data.strong_count() > 0).count();
    let x = leaf(&[1.0, 2.0]);
    let loss = scope.run(|| x.exp().sin().sum());
    assert_eq!(held(), 2);
    loss.backward_options(BackwardOptions::new().retain_graph(true)).unwrap();
    assert_eq!(held(), 2);
    let first = gradient(&x);
    loss.backward().unwrap();
    assert_eq!(held(), 0);
    assert_eq!(gradient(&x), first.iter().map(|g| g * 2.0).collect::<Vec<_>>());
    // Also for a graph that is never walked.
    let loss = as_it_is().run(|| x.exp());
    drop(loss);
    let error = x.exp().graph_node().map(|node| node.saved_tensors().is_ok());
    assert_eq!(error, Some(true));
}

#[test]
fn unpacked_in_every_backward_of_a_retained_graph() {
    let (x, calls) = (leaf(&[2.0]), Calls::default());
    let y = calls.scope().run(|| x.square());
    let retain = BackwardOptions::new().retain_graph(true);
    y.backward_options(retain).unwrap();
    y.backward_options(retain).unwrap();
    y.backward().unwrap();
    assert_eq!(calls.count(), [1, 3]);
    assert_eq!(gradient(&x), [12.0]);
    assert!(matches!(y.backward(), Err(Error::GraphFreed { op: "square", .. })));
    assert_eq!(calls.count(), [1, 3]);
}

#[test]
fn the_innermost_scope_counts() {
    let x = leaf(&[2.0]);
    let (outer, inner) = (Calls::default(), Calls::default());
    let outside = outer.scope();
    let a = x.square();
    let b = inner.scope().run(|| x.square());
    let c = x.square();
    drop(outside);
    let d = x.square();
    assert_eq!((outer.count(), inner.count()), ([2, 0], [1, 0]));
    (a + b + c + d).backward().unwrap();
    assert_eq!((outer.count(), inner.count()), ([2, 2], [1, 1]));
    assert_eq!(gradient(&x), [16.0]);
}

#[test]
fn scopes_may_end_in_any_order_and_end_with_a_panic() {
    let x = leaf(&[2.0]);
    let (outer, inner) = (Calls::default(), Calls::default());
    let (first, second) = (outer.scope(), inner.scope());
    drop(first);
    let _ = x.square();
    drop(second);
    let _ = x.square();
    assert_eq!((outer.count(), inner.count()), ([0, 0], [1, 0]));
    let caught = catch_unwind(AssertUnwindSafe(|| outer.scope().run(|| panic!("inside"))));
    assert!(caught.is_err());
    let _ = x.square();
    assert_eq!(outer.count(), [0, 0]);
}

#[test]
fn hooks_run_unrecorded_and_pack_nothing_themselves() {
    let depth = Rc::new(Cell::new(0));
    let inside = Rc::clone(&depth);
    let scope = scope_of(
        move |saved| {
            inside.set(inside.get() + 1);
            assert!(saved.stop_gradient() && !is_grad_enabled());
            let other = leaf(&[3.0]);
            let halved = enable_grad().run(|| (float(saved) * &other) / 6.0);
            Ok(halved.into())
        },
        |packed| {
            assert!(!is_grad_enabled());
            Ok((float(packed) * 2.0).into())
        },
    );
    let x = leaf(&[2.0, 4.0]);
    let y = scope.run(|| x.square());
    assert_eq!(depth.get(), 1);
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [4.0, 8.0]);
    assert!(is_grad_enabled());
}

#[test]
fn a_change_in_place_does_not_reach_what_was_packed() {
    for kept in [false, true] {
        let x = leaf(&[1.0, 2.0]);
        let h = &x * 1.0;
        // Even if the hook keeps the tensor that it was given.
        let scope = if kept { as_it_is() } else { Calls::default().scope() };
        let y = scope.run(|| h.square());
        no_grad().run(|| h.fill(5.0)).unwrap();
        y.sum().backward().unwrap();
        assert_eq!(gradient(&x), [2.0, 4.0]);
    }
}

#[test]
fn nor_does_a_change_of_an_output() {
    let x = leaf(&[1.0, 2.0]);
    let run = |hooks: bool| {
        x.clear_grad();
        let scope = hooks.then(as_it_is);
        let y = Product::apply(&x, &x, None);
        drop(scope);
        let loss = y.sum();
        no_grad().run(|| y.fill(5.0)).unwrap();
        loss.backward().map(|()| gradient(&x))
    };
    assert_eq!(run(true).unwrap(), [3.0, 12.0]);
    assert!(matches!(run(false), Err(Error::SavedTensorChanged { .. })));
}

#[test]
fn what_a_hook_does_to_its_tensor_stays_with_it() {
    let x = leaf(&[1.0, 2.0]);
    let scope = scope_of(
        |saved| {
            float(saved).fill(7.0)?;
            Ok(saved.clone())
        },
        |packed| Ok(packed.clone()),
    );
    let y = scope.run(|| x.exp());
    assert_eq!((x.to_vec(), y.to_vec()), (vec![1.0, 2.0], x.detach().exp().to_vec()));
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [7.0, 7.0]);
}

#[test]
fn an_error_of_pack_is_reported_by_check_and_by_backward() {
    let full =
        |_: &AnyTensor| -> HookResult<AnyTensor> { Err(std::io::Error::other("disk full"))? };
    let x = leaf(&[1.0, 2.0]);
    let scope = scope_of(full, |packed| Ok(packed.clone()));
    assert!(scope.check().is_ok());
    let line = line!() + 1;
    let y = x.exp();
    let z = Product::apply(&x, &x, None);
    let text = scope.check().unwrap_err().to_string();
    drop(scope);
    assert!(text.starts_with("exp (called at tests/tests/engine/saved_hooks.rs:"), "{text}");
    assert!(text.contains(&format!(":{line}:")), "{text}");
    assert!(text.ends_with("the pack hook failed for its output: disk full"), "{text}");

    assert_eq!(y.backward_with(&y).unwrap_err().to_string(), text);
    let error = z.sum().backward().unwrap_err();
    let Error::SavedTensorHook { op, parameter, hook, .. } = &error else { panic!("{error}") };
    assert_eq!((*op, &parameter[..], *hook), ("Product", "x", "pack"));
    // Nothing is half done, and ops that need no saved tensor still work.
    assert!(x.grad().is_none());
    (&x + &y.detach()).sum().backward().unwrap();
    assert_eq!(gradient(&x), [1.0, 1.0]);
}

#[test]
fn a_panic_of_pack_leaves_the_op_and_nothing_behind() {
    let scope = scope_of(|_| panic!("pack"), |packed| Ok(packed.clone()));
    let (x, mut h) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]) * 1.0);
    let before = h.to_vec();
    for op in [0, 1, 2] {
        let caught = catch_unwind(AssertUnwindSafe(|| match op {
            0 => drop(x.exp()),
            1 => drop(Product::apply(&x, &x, None)),
            _ => h *= &x,
        }));
        assert!(caught.is_err());
    }
    drop(scope);
    assert!(is_grad_enabled());
    assert_eq!(h.to_vec(), before);
    (h * x.square()).sum().backward().unwrap();
    assert_eq!(gradient(&x), [6.0, 16.0]);
}

#[test]
fn an_error_of_unpack_ends_the_backward() {
    let scope = scope_of(|saved| Ok(saved.clone()), |_| Err("file gone".into()));
    let (x, w) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
    let h = &w * 2.0;
    let (y, z) = scope.run(|| (x.square(), Product::apply(&x, &h, None)));
    let retain = BackwardOptions::new().retain_graph(true);
    for _ in 0..2 {
        let error = (&h + &y).sum().backward_options(retain).unwrap_err().to_string();
        assert!(
            error.starts_with("square (called at tests/tests/engine/saved_hooks.rs:"),
            "{error}"
        );
        let end = "the unpack hook failed for its first input: file gone";
        assert!(error.ends_with(end), "{error}");
    }
    let error = z.sum().backward().unwrap_err().to_string();
    assert!(error.ends_with("the unpack hook failed for `x`: file gone"), "{error}");
    assert!(x.grad().is_none() && w.grad().is_none());
    h.sum().backward().unwrap();
    assert_eq!(gradient(&w), [2.0, 2.0]);
}

#[test]
fn a_panic_of_unpack_leaves_the_backward() {
    let scope = scope_of(|saved| Ok(saved.clone()), |_| panic!("unpack"));
    let x = leaf(&[1.0, 2.0]);
    let y = scope.run(|| x.square().sum());
    assert!(catch_unwind(AssertUnwindSafe(|| y.backward())).is_err());
    assert!(is_grad_enabled() && x.grad().is_none());
    // The saved tensors it needs were consumed; the next backward works.
    assert!(matches!(y.backward(), Err(Error::GraphFreed { .. })));
    x.square().sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0, 4.0]);
}

#[test]
fn what_comes_back_must_have_the_shape_and_the_element_type() {
    let x = leaf(&[1.0, 2.0]);
    let shape = scope_of(|saved| Ok(saved.clone()), |_| Ok(Tensor::from([1.0]).into()));
    let error = shape.run(|| Product::apply(&x, &x, None)).sum().backward().unwrap_err();
    let Error::Unpacked { op, parameter, expected, found, .. } = &error else { panic!("{error}") };
    assert_eq!((*op, &parameter[..]), ("Product", "x"));
    assert_eq!(expected, &(vec![2], DType::Float64));
    assert_eq!(found, &(vec![1], DType::Float64));

    let dtype =
        scope_of(|saved| Ok(float(saved).cast::<f32>().into()), |packed| Ok(packed.clone()));
    let error = dtype.run(|| x.tanh()).sum().backward().unwrap_err().to_string();
    assert!(error.starts_with("tanh (called at tests/tests/engine/saved_hooks.rs:"), "{error}");
    let end = "the unpack hook must give its output back as it was packed, with shape [2] and \
               element type float64, found shape [2] and element type float32";
    assert!(error.ends_with(end), "{error}");
    assert!(x.grad().is_none());
}

#[test]
fn any_layout_may_come_back() {
    let scope = scope_of(
        |saved| Ok(float(saved).transpose().to_owned().into()),
        |packed| Ok(float(packed).transpose().into()),
    );
    let x =
        Tensor::<f64>::from_vec([3, 20], (0..60).map(|i| f64::from(i).sin()).collect()).unwrap();
    x.set_stop_gradient(false);
    let run = |f: &dyn Fn() -> Tensor<f64>| {
        x.clear_grad();
        (f() * &x.detach()).sum().backward().unwrap();
        gradient(&x)
    };
    assert_eq!(run(&|| x.softmax(1)), {
        let y = scope.run(|| x.softmax(1));
        run(&|| y.clone())
    });
}

#[test]
fn in_lower_precision() {
    let scope = scope_of(
        |saved| Ok(float(saved).cast::<f32>().into()),
        |packed| match packed {
            AnyTensor::Float32(packed) => Ok(packed.cast::<f64>().into()),
            other => Err(format!("found {}", other.dtype()).into()),
        },
    );
    let x = leaf(&[0.1, 0.7]);
    let y = scope.run(|| x.sin().exp());
    y.sum().backward().unwrap();
    for (x, dx) in [0.1_f64, 0.7].into_iter().zip(gradient(&x)) {
        let exact = x.sin().exp() * x.cos();
        assert!((dx - exact).abs() < 1e-6 && dx != exact, "{dx} {exact}");
    }
}

#[test]
fn computed_again_in_place_of_kept() {
    let x = leaf(&[0.1, 0.7]);
    let input = x.detach();
    let scope = saved_tensors_hooks(|_| Ok(()), move |()| Ok(input.exp().into()));
    let y = scope.run(|| x.exp());
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), y.to_vec());
}

#[test]
fn a_long_chain_is_walked_and_dropped_on_a_small_stack() {
    let run = || {
        let x = leaf(&[1.0]);
        let chain = || (0..200_000).fold(&x * 1.0, |y, _| (&y * &y).sqrt());
        let y = as_it_is().run(chain);
        y.backward().unwrap();
        assert_eq!(gradient(&x), [1.0]);
        drop(as_it_is().run(chain));
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn no_lock_is_held_while_hooks_run() {
    let x = leaf(&[2.0]);
    let node = Arc::new(std::sync::OnceLock::<autograd_core::GraphNode>::new());
    let own = Arc::clone(&node);
    let depth = AtomicUsize::new(0);
    let scope = scope_of(
        |saved| Ok(saved.clone()),
        move |packed| {
            // Reads the saved tensors of the node that is being unpacked, once.
            if depth.fetch_add(1, Ordering::Relaxed) == 0 {
                let node = own.get().expect("the op is recorded");
                assert_eq!(node.saved_tensors()?.len(), 1);
            }
            Ok(packed.clone())
        },
    );
    let y = scope.run(|| x.square());
    assert!(node.set(y.graph_node().unwrap()).is_ok());
    y.backward_options(BackwardOptions::new().retain_graph(true)).unwrap();
    assert_eq!(gradient(&x), [4.0]);
}

#[test]
fn second_order_goes_through_what_was_unpacked() {
    // x * h * h with h = 2 x: 4 x^3, for a leaf, the result of an op and an output.
    let run = |hooks: bool| {
        let x = leaf(&[0.5, -1.5]);
        let scope = hooks.then(as_it_is);
        let h = &x * 2.0;
        let y = Product::apply(&x, &h, None) + (&x * &h).exp();
        drop(scope);
        let recorded = || GradOptions::new().create_graph(true);
        let first = grad_with(&[&y.sum()], &[&x], recorded()).unwrap().remove(0).unwrap();
        let second = grad_with(&[&first.sum()], &[&x], recorded()).unwrap().remove(0).unwrap();
        let third = grad(&[&second.sum()], &[&x]).unwrap().remove(0);
        [first, second, third].map(|grad| grad.to_vec())
    };
    let (packed, plain) = (run(true), run(false));
    for (packed, plain) in packed.iter().flatten().zip(plain.iter().flatten()) {
        assert!((packed - plain).abs() <= 1e-12 * plain.abs().max(1.0), "{packed} {plain}");
    }
}

#[test]
fn backward_to_a_leaf_goes_through_its_stand_in() {
    let x = leaf(&[3.0]);
    let y = as_it_is().run(|| x.square());
    let dx = grad_with(&[&y], &[&x], GradOptions::new().create_graph(true)).unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let inside = Arc::clone(&seen);
    let _ = x
        .register_hook(move |_| {
            inside.fetch_add(1, Ordering::Relaxed);
            Ok(None)
        })
        .unwrap();
    dx[0].as_ref().unwrap().backward().unwrap();
    assert_eq!((gradient(&x), seen.load(Ordering::Relaxed)), (vec![2.0], 1));
}

#[test]
fn a_packed_intermediate_is_refused_at_second_order_as_without_hooks() {
    let x = leaf(&[0.5]);
    let y = as_it_is().run(|| ExpSavingWhatItComputed::apply(&x));
    let recorded = GradOptions::new().create_graph(true).retain_graph(true);
    let error = grad_with(&[&y], &[&x], recorded).unwrap_err();
    assert!(matches!(error, Error::SavedIntermediate { .. }), "{error}");
    assert_eq!(grad(&[&y], &[&x]).unwrap()[0].item(), 0.5_f64.exp());
}

#[test]
fn a_recorded_backward_in_a_scope_is_packed_too() {
    let (x, calls) = (leaf(&[2.0]), Calls::default());
    let y = x.square();
    let dx = calls.scope().run(|| {
        grad_with(&[&y], &[&x], GradOptions::new().create_graph(true)).unwrap().remove(0).unwrap()
    });
    let [packs, _] = calls.count();
    assert!(packs > 0);
    assert_eq!(grad(&[&dx], &[&x]).unwrap()[0].item(), 2.0);
}

#[test]
fn a_scope_belongs_to_its_thread_and_unpacks_in_any() {
    let (x, calls) = (leaf(&[2.0]), Calls::default());
    let scope = calls.scope();
    let y = x.square();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let _ = x.square();
            y.backward().unwrap();
        });
    });
    drop(scope);
    assert_eq!(calls.count(), [1, 1]);
    assert_eq!(gradient(&x), [4.0]);
    // The same graph from several threads at once.
    let (x, calls) = (leaf(&[2.0]), Calls::default());
    let y = calls.scope().run(|| x.square());
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                y.backward_options(BackwardOptions::new().retain_graph(true)).unwrap();
            });
        }
    });
    assert_eq!(calls.count(), [1, 4]);
    assert_eq!(gradient(&x), [16.0]);
}

#[test]
fn a_hook_may_run_a_backward_of_its_own() {
    let scope = scope_of(
        |saved| Ok(saved.clone()),
        |packed| {
            let own = leaf(&[1.0]);
            enable_grad().run(|| (&own * 3.0).backward())?;
            Ok((float(packed) * own.grad().expect("a gradient") / 3.0).into())
        },
    );
    let x = leaf(&[2.0]);
    scope.run(|| x.square()).backward().unwrap();
    assert_eq!(gradient(&x), [4.0]);
}

#[test]
fn a_checkpoint_packs_nothing_unless_its_closure_says_so() {
    let (outer, inner) = (Calls::default(), Calls::default());
    let x = leaf(&[0.5, 2.0]);
    let (x1, x2, calls) = (x.clone(), x.clone(), inner.clone());
    let y = outer.scope().run(|| {
        let a = checkpoint(move || (&x1 * &x1).exp());
        a + checkpoint(move || calls.scope().run(|| x2.exp()))
    });
    y.sum().backward().unwrap();
    assert_eq!(outer.count(), [0, 0]);
    // In both runs of the closure; the second one is walked.
    assert_eq!(inner.count(), [2, 1]);
    for (x, dx) in [0.5_f64, 2.0].into_iter().zip(gradient(&x)) {
        let exact = 2.0 * x * (x * x).exp() + x.exp();
        assert!((dx - exact).abs() < 1e-9 * exact, "{dx} {exact}");
    }
}

#[test]
fn integer_tensors_are_packed_too() {
    let scope = scope_of(|saved| Ok(saved.clone()), |packed| Ok(packed.clone()));
    let (x, index) = (leaf(&[1.0, 2.0, 3.0]), Tensor::from([0_i64, 2, 2]));
    let y = scope.run(|| x.index_select(0, &index));
    let saved = y.graph_node().unwrap().saved_tensors().unwrap();
    let Some(Some(AnyTensor::Int64(saved))) = saved.first() else { panic!("{saved:?}") };
    assert_eq!(saved.to_vec(), [0, 2, 2]);
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [1.0, 0.0, 2.0]);
}
