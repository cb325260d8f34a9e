//! Hooks that remove and add hooks during a backward, and the objects that hooks keep alive.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use autograd_core::prelude::*;
use autograd_core::{
    BackwardOptions, HookHandle, OrderedBackward, backward_parallel, backward_to, checkpoint, grad,
};

/// The places of hooks, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Place {
    Output,
    Before,
    After,
    Leaf,
}

const PLACES: [Place; 4] = [Place::Output, Place::Before, Place::After, Place::Leaf];

impl Place {
    /// Whether a hook at this place runs before one at `other` that was registered later.
    fn is_before(self, other: Self) -> bool {
        matches!(self, Self::Output | Self::Before) || self <= other
    }

    fn register(
        self,
        leaf: &Tensor<f64>,
        output: &Tensor<f64>,
        hook: impl Fn() + Send + Sync + 'static,
    ) -> HookHandle {
        let node = || output.graph_node().unwrap();
        match self {
            Self::Output => output.register_hook(move |_| {
                hook();
                Ok(None)
            }),
            Self::Before => Ok(node().register_before(move |_| {
                hook();
                Ok(None)
            })),
            Self::After => Ok(node().register_after(move |_, _| {
                hook();
                Ok(None)
            })),
            Self::Leaf => leaf.register_hook(move |_| {
                hook();
                Ok(None)
            }),
        }
        .unwrap()
    }
}

/// A leaf, the output of an op, and a loss; and the number of calls of a hook.
struct Setup {
    leaf: Tensor<f64>,
    output: Tensor<f64>,
    loss: Tensor<f64>,
}

impl Setup {
    /// With few numbers, or with many.
    fn new(count: usize) -> Self {
        let leaf = Tensor::<f64>::ones([count]);
        leaf.set_stop_gradient(false);
        let output = leaf.exp();
        let loss = output.sum();
        Self { leaf, output, loss }
    }

    fn register(&self, place: Place, hook: impl Fn() + Send + Sync + 'static) -> HookHandle {
        place.register(&self.leaf, &self.output, hook)
    }

    fn run(&self) {
        self.loss.backward_options(BackwardOptions::new().retain_graph(true)).unwrap();
    }
}

#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn hook(&self) -> impl Fn() + Send + Sync + use<> {
        let count = self.clone();
        move || count.add()
    }
}

/// A handle that is stored after its hook was registered.
#[derive(Clone, Default)]
struct Later(Arc<Mutex<Option<HookHandle>>>);

impl Later {
    fn put(&self, handle: HookHandle) {
        self.0.lock().unwrap().replace(handle);
    }

    /// Whether there was a hook to remove.
    fn remove(&self) -> bool {
        let handle = self.0.lock().unwrap().take();
        handle.is_some_and(|handle| handle.remove())
    }
}

#[test]
fn a_hook_that_another_one_removes_does_not_run_any_more() {
    for count in [3, 1000] {
        for (first, second) in PLACES.into_iter().flat_map(|a| PLACES.map(|b| (a, b))) {
            let setup = Setup::new(count);
            let (removed, between, stays) = (Count::default(), Count::default(), Count::default());
            let later = Later::default();
            let handle = later.clone();
            let _ = setup.register(first, move || {
                handle.remove();
            });
            let _ = setup.register(second, between.hook());
            later.put(setup.register(second, removed.hook()));
            let _ = setup.register(second, stays.hook());
            setup.run();
            let ran = usize::from(!first.is_before(second));
            assert_eq!(removed.get(), ran, "{first:?} removes {second:?}");
            setup.run();
            assert_eq!(removed.get(), ran, "{first:?} removes {second:?}");
            assert_eq!((between.get(), stays.get()), (2, 2), "{first:?} removes {second:?}");
        }
    }
}

#[test]
fn a_hook_that_removes_itself_or_an_earlier_one() {
    for place in PLACES {
        let setup = Setup::new(3);
        let (own, earlier, after) = (Count::default(), Count::default(), Count::default());
        let before = Later::default();
        before.put(setup.register(place, earlier.hook()));
        let later = Later::default();
        let (itself, ran) = (later.clone(), own.clone());
        later.put(setup.register(place, move || {
            ran.add();
            assert!(itself.remove() && before.remove());
        }));
        let _ = setup.register(place, after.hook());
        setup.run();
        setup.run();
        assert_eq!((own.get(), earlier.get(), after.get()), (1, 1, 2), "{place:?}");
    }
}

#[test]
fn a_hook_that_another_one_adds_runs_from_the_next_backward_on() {
    for (first, second) in PLACES.into_iter().flat_map(|a| PLACES.map(|b| (a, b))) {
        let setup = Setup::new(3);
        let added = Count::default();
        let (leaf, output) = (setup.leaf.clone(), setup.output.clone());
        let (once, hook) = (Mutex::new(true), added.clone());
        let handle = Later::default();
        let own = handle.clone();
        handle.put(setup.register(first, move || {
            if std::mem::take(&mut *once.lock().unwrap()) {
                let _ = second.register(&leaf, &output, hook.hook());
            }
        }));
        setup.run();
        assert_eq!(added.get(), 0, "{first:?} adds {second:?}");
        setup.run();
        assert_eq!(added.get(), 1, "{first:?} adds {second:?}");
        // It holds the tensor on which it is registered.
        assert!(own.remove());
        setup.run();
        assert_eq!(added.get(), 2, "{first:?} adds {second:?}");
    }
}

#[test]
fn the_same_on_another_tensor_of_the_same_backward() {
    // `h` is visited before `m`, and `m` before the leaf.
    let setup = Setup::new(3);
    let (m, x) = (setup.output.clone(), setup.leaf.clone());
    let loss = m.square().sum();
    let h = m.square();
    let loss = loss + h.sum();
    let (added, removed) = (Count::default(), Count::default());
    let later = Later::default();
    later.put(
        m.register_hook({
            let hook = removed.hook();
            move |_| {
                hook();
                Ok(None)
            }
        })
        .unwrap(),
    );
    let (below, hook, remove) = (m.clone(), added.clone(), later.clone());
    let once = Mutex::new(true);
    let _ = h.register_hook(move |_| {
        if std::mem::take(&mut *once.lock().unwrap()) {
            for place in PLACES {
                let _ = place.register(&x, &below, hook.hook());
            }
            assert!(remove.remove());
        }
        Ok(None)
    });
    loss.backward_options(BackwardOptions::new().retain_graph(true)).unwrap();
    assert_eq!((added.get(), removed.get()), (0, 0));
    loss.backward_options(BackwardOptions::new().retain_graph(true)).unwrap();
    assert_eq!((added.get(), removed.get()), (4, 0));
    // In `grad` as well, which runs no hooks of leaves.
    grad(&[&loss], &[&setup.leaf]).unwrap();
    assert_eq!((added.get(), removed.get()), (7, 0));
}

#[test]
fn a_gradient_is_kept_from_the_next_backward_on() {
    let setup = Setup::new(3);
    let output = setup.output.clone();
    let handle = setup.register(Place::Output, move || output.retain_grads().unwrap());
    setup.run();
    assert!(setup.output.grad().is_none());
    assert!(handle.remove());
    setup.run();
    assert_eq!(setup.output.grad().unwrap().to_vec(), [1.0; 3]);
}

#[test]
fn all_that_walks_keeps_to_it() {
    type Walk = fn(&Setup);
    const WALKS: [(&str, Walk); 4] = [
        ("backward", Setup::run),
        ("backward_to", |setup| {
            let options = BackwardOptions::new().retain_graph(true);
            let (loss, leaf) = (setup.loss.clone(), setup.leaf.clone());
            backward_to(&[loss.into()], &[None], &[leaf.into()], options).unwrap();
        }),
        ("backward_parallel", |setup| {
            // The second item fails because the first one has freed the graph.
            backward_parallel(1, 1, |_| Ok(setup.leaf.exp().sum())).unwrap();
        }),
        ("OrderedBackward", |setup| {
            let ordered = OrderedBackward::new();
            ordered.backward(0, &setup.leaf.exp().sum()).unwrap();
            ordered.finish().unwrap();
        }),
    ];
    for (name, walk) in WALKS {
        let setup = Setup::new(3);
        let (removed, added) = (Count::default(), Count::default());
        let later = Later::default();
        let (handle, once) = (later.clone(), Mutex::new(true));
        let (leaf, hook) = (setup.leaf.clone(), added.clone());
        let own = Later::default();
        own.put(setup.register(Place::Leaf, move || {
            if std::mem::take(&mut *once.lock().unwrap()) {
                assert!(handle.remove());
                let _ = Place::Leaf.register(&leaf, &leaf, hook.hook());
            }
        }));
        later.put(setup.register(Place::Leaf, removed.hook()));
        walk(&setup);
        assert_eq!((removed.get(), added.get()), (0, 0), "{name}");
        assert!(own.remove());
        walk(&setup);
        assert_eq!((removed.get(), added.get()), (0, 1), "{name}");
    }
}

#[test]
fn hooks_of_what_a_checkpoint_computes_again_run_in_the_same_backward() {
    let x = Tensor::from([1.0, 2.0]);
    x.set_stop_gradient(false);
    let (inside, ran) = (x.clone(), Count::default());
    let count = ran.clone();
    let y = checkpoint(move || {
        let h = inside.exp();
        let _ = Place::Output.register(&inside, &h, count.hook());
        h.sum()
    });
    y.backward().unwrap();
    assert_eq!(ran.get(), 1);
}

#[test]
fn a_backward_inside_of_a_hook_is_the_next_one() {
    let setup = Setup::new(3);
    let leaf = setup.leaf.clone();
    let ran = Count::default();
    let (inner, once) = (ran.clone(), Mutex::new(true));
    let handle = setup.register(Place::Output, move || {
        if std::mem::take(&mut *once.lock().unwrap()) {
            let _ = Place::Leaf.register(&leaf, &leaf, inner.hook());
            enable_grad().run(|| leaf.square().sum()).backward().unwrap();
        }
    });
    setup.run();
    // Only the inner one.
    assert_eq!(ran.get(), 1);
    assert!(handle.remove());
    setup.run();
    assert_eq!(ran.get(), 2);
}

/// Registers or removes a hook on the same tensor in its destructor.
struct OnDrop(Tensor<f64>, Count);

impl Drop for OnDrop {
    fn drop(&mut self) {
        let _ = self.0.register_hook(|_| Ok(None)).unwrap().remove();
        self.1.add();
    }
}

#[test]
fn what_a_removed_hook_held_is_dropped_while_nothing_is_locked() {
    for place in PLACES {
        let setup = Setup::new(3);
        let dropped = Count::default();
        let held = match place {
            Place::Leaf => setup.leaf.clone(),
            _ => setup.output.clone(),
        };
        let held = OnDrop(held, dropped.clone());
        let handle = setup.register(place, move || assert_eq!(held.0.len(), 3));
        setup.run();
        assert!(handle.remove());
        assert_eq!(dropped.get(), 1, "{place:?}");
    }
}

#[test]
fn a_hook_that_captures_its_own_tensor_keeps_it_alive_until_it_is_removed() {
    for place in PLACES {
        let alive = Arc::new(());
        let make = |own: bool| {
            let setup = Setup::new(3);
            let tensor = match place {
                Place::Leaf => &setup.leaf,
                _ => &setup.output,
            };
            // The data alone, outside of the graph, keeps nothing alive.
            let tensor = if own { tensor.clone() } else { tensor.detach() };
            let held = Arc::clone(&alive);
            setup
                .register(place, move || assert!(tensor.len() == 3 && Arc::strong_count(&held) > 0))
        };
        let handle = make(true);
        assert_eq!(Arc::strong_count(&alive), 2, "{place:?}");
        assert!(handle.remove());
        assert_eq!(Arc::strong_count(&alive), 1, "{place:?}");
        let handle = make(false);
        assert_eq!(Arc::strong_count(&alive), 1, "{place:?}");
        assert!(!handle.remove());
    }
}

#[test]
fn a_backward_without_a_graph_in_a_hook_is_an_error() {
    let (x, c) = (Tensor::from(1.0), Tensor::from(2.0));
    x.set_stop_gradient(false);
    c.set_stop_gradient(false);
    let inner = c.clone();
    let hook = x.register_hook(move |_| {
        inner.square().backward()?;
        Ok(None)
    });
    let error = (&x * 3.0).backward().unwrap_err().to_string();
    assert!(error.contains("hooks, run with recording off"), "{error}");
    assert!(x.grad().is_none());
    hook.unwrap().remove();
    let inner = c.clone();
    let _hook = x.register_hook(move |_| {
        enable_grad().run(|| inner.square().backward())?;
        Ok(None)
    });
    (&x * 3.0).backward().unwrap();
    assert_eq!([x.grad().unwrap().item(), c.grad().unwrap().item()], [3.0, 4.0]);
}
