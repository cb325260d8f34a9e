//! Hooks of tensors and nodes; `grad`, higher orders and the recording modes. Second derivatives of
//! custom ops are in `layers/py_layer.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use autograd_core::prelude::*;
use autograd_core::{
    BackwardOptions, Error, Generator, GradOptions, HookResult, Result, after_backward, backward,
    backward_to, grad, grad_with, gradcheck, is_grad_enabled,
};
use support::{gradient, leaf};

fn times(factor: f64) -> impl Fn(&Tensor<f64>) -> HookResult<Option<Tensor<f64>>> {
    move |grad| Ok(Some(grad * factor))
}

fn unused() -> GradOptions<f64> {
    GradOptions::new().allow_unused(true)
}

fn recorded() -> GradOptions<f64> {
    GradOptions::new().create_graph(true)
}

/// The gradient of the sum of `y`, itself differentiable.
fn slope(y: &Tensor<f64>, x: &Tensor<f64>) -> Tensor<f64> {
    grad_with(&[&y.sum()], &[x], recorded()).unwrap().remove(0).unwrap()
}

/// The gradients that a hook received, call by call.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Vec<f64>>>>);

impl Log {
    fn hook(&self) -> impl Fn(&Tensor<f64>) -> HookResult<Option<Tensor<f64>>> + use<> {
        let log = self.clone();
        move |grad| {
            log.0.lock().unwrap().push(grad.to_vec());
            Ok(None)
        }
    }

    fn seen(&self) -> Vec<Vec<f64>> {
        self.0.lock().unwrap().clone()
    }
}

/// `w = a + b` with a hook that doubles on `w` and one on `a`; the loss is `(w + y)(w + z)`.
struct Sums {
    a: Tensor<f64>,
    b: Tensor<f64>,
    w: Tensor<f64>,
    y: Tensor<f64>,
    z: Tensor<f64>,
}

impl Sums {
    fn new() -> Self {
        let (a, b) = (leaf(&[0.0, 1.0, 1.0, 2.0]), leaf(&[0.0, 0.0, 1.0, 2.0]));
        let (y, z) = (leaf(&[4.0, 5.0, 6.0, 7.0]), leaf(&[1.0, 2.0, 3.0, 4.0]));
        let w = &a + &b;
        Self { a, b, w, y, z }
    }

    fn backward(&self) {
        ((&self.w + &self.y) * (&self.w + &self.z)).sum().backward().unwrap();
    }

    /// `dL/dw = 2w + y + z`.
    const BASE: [f64; 4] = [5.0, 9.0, 13.0, 19.0];

    fn base(factor: f64) -> Vec<f64> {
        Self::BASE.map(|d| d * factor).to_vec()
    }
}

#[test]
fn hooks_on_a_leaf_change_what_that_leaf_keeps() {
    let (x, y, z) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]), leaf(&[5.0, 6.0]));
    let handle = y.register_hook(times(2.0)).unwrap();
    (&(&x + &y) * &z).sum().backward().unwrap();
    assert_eq!(gradient(&y), [10.0, 12.0]);
    assert_eq!(gradient(&x), [5.0, 6.0]);
    assert_eq!(gradient(&z), [4.0, 6.0]);
    assert!(handle.remove());
    y.clear_grad();
    (&(&x + &y) * &z).sum().backward().unwrap();
    assert_eq!(gradient(&y), [5.0, 6.0]);
}

#[test]
fn a_hook_on_the_way_sees_the_sum_once() {
    let s = Sums::new();
    s.w.retain_grads().unwrap();
    let log = Log::default();
    let seen = s.w.register_hook(log.hook()).unwrap();
    let doubled = s.w.register_hook(times(2.0)).unwrap();
    let on_leaf = s.a.register_hook(times(2.0)).unwrap();
    s.backward();
    assert_eq!(log.seen(), [Sums::BASE]);
    assert_eq!(gradient(&s.w), Sums::BASE);
    assert_eq!(gradient(&s.b), Sums::base(2.0));
    assert_eq!(gradient(&s.a), Sums::base(4.0));

    let s = Sums::new();
    assert!(seen.remove() && doubled.remove() && on_leaf.remove());
    s.backward();
    assert_eq!((gradient(&s.a), gradient(&s.b)), (Sums::base(1.0), Sums::base(1.0)));
}

#[test]
fn each_of_several_hooks_can_be_removed() {
    for removed in [None, Some(0), Some(1), Some(2)] {
        let (x, w, z) = (leaf(&[1.0, 2.0]), leaf(&[0.0, 1.0]), leaf(&[3.0, 4.0]));
        let y = &x * 1.0;
        let handles: Vec<_> = (0..3).map(|_| y.register_hook(times(2.0)).unwrap()).collect();
        if let Some(removed) = removed {
            assert!(handles[removed].remove());
        }
        ((&y + &w) * &z).sum().backward().unwrap();
        let factor = if removed.is_some() { 4.0 } else { 8.0 };
        assert_eq!(gradient(&x), [3.0 * factor, 4.0 * factor]);
        assert_eq!(gradient(&w), [3.0, 4.0]);
    }
    let (x, z) = (leaf(&[1.0]), leaf(&[3.0]));
    let y = &x * 1.0;
    let handles = [times(2.0), times(2.0)].map(|hook| y.register_hook(hook).unwrap());
    assert!(handles.iter().all(|handle| handle.remove()));
    (&y * &z).backward().unwrap();
    assert_eq!(gradient(&x), [3.0]);
}

#[test]
fn a_hook_is_removed_once() {
    let x = leaf(&[1.0]);
    let y = &x * 1.0;
    for tensor in [&x, &y] {
        let handle = tensor.register_hook(times(2.0)).unwrap();
        assert!(handle.remove());
        assert!(!handle.remove());
    }
    // Even if its tensor is dropped.
    let handle = (&x * 1.0).register_hook(times(2.0)).unwrap();
    assert!(!handle.remove());
}

#[test]
fn no_hook_where_gradients_stop() {
    let x = Tensor::from([1.0]);
    let error = x.register_hook(times(2.0)).err().unwrap();
    assert!(matches!(error, Error::Unsupported { op: "register_hook", .. }), "{error}");
    assert!(x.retain_grads().is_err());
    assert!((&x * 2.0).register_hook(times(2.0)).is_err());
}

#[test]
fn hooks_run_in_order_each_with_what_the_last_one_left() {
    let x = leaf(&[2.0]);
    let y = &x * 1.0;
    let log = Log::default();
    let _ = y.register_hook(log.hook()).unwrap();
    let _ = y.register_hook(times(3.0)).unwrap();
    let _ = y.register_hook(log.hook()).unwrap();
    y.sum().backward().unwrap();
    assert_eq!(log.seen(), [[1.0], [3.0]]);

    // On a leaf: once for each backward, with the sum of that backward and not the total.
    let x = leaf(&[1.0]);
    let log = Log::default();
    let _ = x.register_hook(log.hook()).unwrap();
    for total in [4.0, 8.0] {
        (&x * 1.0 + &x * 3.0).backward().unwrap();
        assert_eq!(gradient(&x), [total]);
    }
    assert_eq!(log.seen(), [[4.0], [4.0]]);
}

#[test]
fn retain_grads_has_its_place_among_the_hooks() {
    let x = leaf(&[1.0]);
    let b = &x * 1.0;
    let _ = b.register_hook(times(2.0)).unwrap();
    b.retain_grads().unwrap();
    let _ = b.register_hook(times(2.0)).unwrap();
    b.sum().backward().unwrap();
    assert_eq!((gradient(&b), gradient(&x)), (vec![2.0], vec![4.0]));

    let b = &x * 1.0;
    b.retain_grads().unwrap();
    let _ = b.register_hook(times(2.0)).unwrap();
    b.sum().backward().unwrap();
    assert_eq!(gradient(&b), [1.0]);
}

#[test]
fn what_is_kept_twice_is_kept_once() {
    let x = leaf(&[1.0, 2.0]);
    let h = &x * 2.0;
    h.retain_grads().unwrap();
    h.retain_grads().unwrap();
    let _ = h.register_hook(times(3.0)).unwrap();
    h.retain_grads().unwrap();
    (&h * 5.0).sum().backward().unwrap();
    // The gradient before the hook.
    assert_eq!((gradient(&h), gradient(&x)), (vec![5.0; 2], vec![30.0; 2]));
}

#[test]
fn a_hook_that_returns_another_shape() {
    let x = leaf(&[1.0, 2.0]);
    let h = &x * 2.0;
    let handle = h.register_hook(|_| Ok(Some(Tensor::zeros([5])))).unwrap();
    let error = h.sum().backward().unwrap_err().to_string();
    assert!(error.starts_with("mul (called at tests/tests/engine/hooks_and_grad.rs:"), "{error}");
    let end = ") must give a gradient of shape [2] for output 0, found shape [5]";
    assert!(error.ends_with(end), "{error}");
    assert!(x.grad().is_none());
    handle.remove();
    (&x * 2.0).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0, 2.0]);
}

/// Saves both inputs; only the first has a gradient.
#[py_layer(allow(none_gradient))]
impl Both {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        y: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>) {
        (x * 1.0, y * 1.0)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dx: &Tensor<f64>,
        _dy: &Tensor<f64>,
    ) -> (Tensor<f64>, Option<Tensor<f64>>) {
        (dx.clone(), None)
    }
}

#[test]
fn a_hook_is_called_with_a_gradient_or_not_at_all() {
    let (x, y) = (leaf(&[1.0]), Tensor::from([2.0]));
    let (a, b) = Both::apply(&x, &y);
    let (on_a, on_b) = (Log::default(), Log::default());
    let _ = a.register_hook(on_a.hook()).unwrap();
    let _ = b.register_hook(on_b.hook()).unwrap();
    (&a * 3.0).backward().unwrap();
    assert_eq!(on_a.seen(), [[3.0]]);
    assert!(on_b.seen().is_empty());
}

#[test]
fn hooks_on_parts() {
    let x = leaf(&[1.0, 2.0, 3.0]);
    let parts = x.split(3, 0);
    let log = Log::default();
    let _ = parts[0].register_hook(log.hook()).unwrap();
    parts[0].backward().unwrap();
    assert_eq!(log.seen(), [[1.0]]);
    assert_eq!(gradient(&x), [1.0, 0.0, 0.0]);
    // Now no gradient reaches part 0, so its hook is not called.
    (&parts[1] + &parts[2] * 2.0).backward().unwrap();
    assert_eq!(log.seen().len(), 1);
    assert_eq!(gradient(&x), [1.0, 1.0, 2.0]);
}

#[test]
fn grad_runs_hooks_on_the_way_but_none_of_leaves() {
    let x = leaf(&[3.0]);
    let h = &x * 2.0;
    let log = Log::default();
    let _ = x.register_hook(log.hook()).unwrap();
    let _ = x.register_hook(times(2.0)).unwrap();
    let _ = h.register_hook(times(10.0)).unwrap();
    let retain = || GradOptions::new().retain_graph(true);
    let dx = grad_with(&[&h.sum()], &[&x], retain()).unwrap().remove(0).unwrap();
    assert_eq!(dx.to_vec(), [20.0]);
    assert!(log.seen().is_empty());
    let dh = grad(&[&h.sum()], &[&h]).unwrap().remove(0);
    assert_eq!(dh.to_vec(), [10.0]);
    assert!(x.grad().is_none() && h.grad().is_none());
}

#[test]
fn a_hook_is_part_of_a_recorded_backward() {
    let x = leaf(&[2.0]);
    let h = x.square();
    let _ = h.register_hook(times(3.0)).unwrap();
    let first = slope(&h, &x);
    let second = slope(&first, &x);
    assert_eq!((first.to_vec(), second.to_vec()), (vec![12.0], vec![6.0]));

    // Ops of the hook are differentiated too: d/dx (2x · x) = 4x.
    let h = x.square();
    let factor = x.clone();
    let _ = h.register_hook(move |grad| Ok(Some(grad * &factor))).unwrap();
    let first = slope(&h, &x);
    assert_eq!((first.to_vec(), slope(&first, &x).to_vec()), (vec![8.0], vec![8.0]));
}

#[test]
fn a_hook_that_runs_a_backward_of_its_own() {
    let inner = |grad: &Tensor<f64>| {
        let copy = grad.detach();
        copy.set_stop_gradient(false);
        let y = enable_grad().run(|| (&copy * 2.0 + 5.0).sum());
        y.backward()?;
        Ok(Some(grad + copy.grad().unwrap()))
    };
    for on_leaf in [true, false] {
        let x = leaf(&[1.0, -2.0]);
        let h = &x * 1.0;
        let _ = if on_leaf { x.register_hook(inner) } else { h.register_hook(inner) }.unwrap();
        h.square().sum().backward().unwrap();
        assert_eq!(gradient(&x), [2.0 + 2.0, -4.0 + 2.0]);
    }
}

#[test]
fn a_hook_keeps_nothing_alive() {
    /// A hook may be any callable: here a method.
    struct Scale(f64, #[allow(dead_code, reason = "it counts itself")] Arc<()>);
    impl Scale {
        fn call(&self, grad: &Tensor<f64>) -> HookResult<Option<Tensor<f64>>> {
            Ok(Some(grad * self.0))
        }
    }
    let count = Arc::new(());
    let x = leaf(&[1.0]);
    let h = &x * 1.0;
    let scale = Scale(4.0, Arc::clone(&count));
    let handle = h.register_hook(move |grad| scale.call(grad)).unwrap();
    h.retain_grads().unwrap();
    let y = &h * 2.0;
    drop(h);
    y.backward().unwrap();
    assert_eq!(gradient(&x), [8.0]);
    assert_eq!(Arc::strong_count(&count), 2);
    drop(y);
    assert_eq!(Arc::strong_count(&count), 1, "the graph is gone and its hooks with it");
    assert!(!handle.remove());
}

#[test]
fn grad_with_respect_to_parts() {
    let x = leaf(&[1.0; 8]).reshape([4, 2]);
    x.retain_grads().unwrap();
    let calls = Log::default();
    let _ = x.register_hook(calls.hook()).unwrap();
    let parts = x.split(2, 0);
    let (a, b) = (&parts[0], &parts[1]);
    let seed = Tensor::from(vec![1.0, 2.0, 3.0, 4.0]).reshape([2, 2]);
    let options = GradOptions::new().seeds(vec![Some(seed.clone())]);
    let grads = grad_with(&[&(a + b * 2.0)], &[a, b], options).unwrap();
    let grads: Vec<_> = grads.into_iter().map(|grad| grad.unwrap().to_vec()).collect();
    assert_eq!(grads, [vec![1.0, 2.0, 3.0, 4.0], vec![2.0, 4.0, 6.0, 8.0]]);
    assert!(calls.seen().is_empty() && x.grad().is_none());
}

#[test]
fn retained_gradients_are_written_with_the_others_or_not_at_all() {
    let x = leaf(&[1.0]);
    let h = &x * 2.0;
    h.retain_grads().unwrap();
    let armed = x.register_hook(|_| Err("it is not its day".into()));
    let armed = armed.unwrap();
    let y = &h * 3.0;
    let retain = BackwardOptions::new().retain_graph(true);
    let error = y.backward_options(retain).unwrap_err();
    assert!(error.to_string().ends_with(" failed: it is not its day"), "{error}");
    assert!(x.grad().is_none() && h.grad().is_none());
    armed.remove();
    y.backward_options(retain).unwrap();
    assert_eq!((gradient(&x), gradient(&h)), (vec![6.0], vec![3.0]));
}

#[test]
fn grad_leaves_retained_gradients_alone() {
    let x = leaf(&[1.0]);
    let h = &x * 2.0;
    h.retain_grads().unwrap();
    grad(&[&(&h * 3.0)], &[&x]).unwrap();
    assert!(h.grad().is_none());
}

#[test]
fn gradients_from_grad_share_nothing() {
    let (a, b) = (leaf(&[1.0]), leaf(&[2.0]));
    for options in [GradOptions::new, recorded] {
        let seed = Tensor::from([5.0]);
        let options = options().seeds(vec![Some(seed.clone())]);
        let grads = grad_with(&[&(&a + &b)], &[&a, &b], options).unwrap();
        let [da, db] = [0, 1].map(|i| grads[i].clone().unwrap());
        no_grad().run(|| da.fill(100.0)).unwrap();
        assert_eq!((db.to_vec(), seed.to_vec()), (vec![5.0], vec![5.0]));
    }
    let seed = Tensor::from([5.0]);
    let options = GradOptions::new().seeds(vec![Some(seed.clone())]);
    let dx = grad_with(&[&a], &[&a], options).unwrap().remove(0).unwrap();
    dx.fill(100.0).unwrap();
    assert_eq!(seed.to_vec(), [5.0]);
}

#[test]
fn an_input_that_was_not_used() {
    let (x, z) = (leaf(&[1.0]), leaf(&[1.0]));
    let y = &x * 2.0;
    let retain = || unused().retain_graph(true);
    let grads = grad_with(&[&y], &[&x, &z], retain()).unwrap();
    assert_eq!(grads[0].as_ref().unwrap().to_vec(), [2.0]);
    assert!(grads[1].is_none());
    let error = grad(&[&y], &[&x, &z]).unwrap_err();
    assert!(matches!(error, Error::Unused { position: 1 }), "{error}");
    assert!(error.to_string().contains("allow_unused"), "{error}");
}

#[test]
fn duplicates() {
    let (x, y) = (leaf(&[1.0]), leaf(&[2.0]));
    let z = &x * &y;
    let inputs = grad(&[&z], &[&x, &y, &x]).unwrap_err();
    assert_eq!(inputs.to_string(), "grad: `inputs[2]` was given before; each may be given once");
    let outputs = grad(&[&z, &z.clone()], &[&x]).unwrap_err();
    assert!(matches!(outputs, Error::Duplicate { op: "grad", .. }), "{outputs}");
    // The call walked nothing.
    assert_eq!(grad(&[&z], &[&x]).unwrap()[0].to_vec(), [2.0]);
}

#[test]
fn counts() {
    let x = leaf(&[1.0]);
    let y = &x * 2.0;
    let none: &[&Tensor<f64>] = &[];
    assert!(matches!(grad(none, &[&x]), Err(Error::Count { expected: 1, found: 0, .. })));
    assert!(matches!(grad(&[&y], none), Err(Error::Count { expected: 1, found: 0, .. })));
    let seeds = GradOptions::new().seeds(vec![None, None]);
    let error = grad_with(&[&y], &[&x], seeds).unwrap_err();
    assert_eq!(error.to_string(), "grad: expected 1 seed, one for each output, found 2");
}

#[test]
fn inputs_that_are_outputs() {
    let x = leaf(&[3.0]);
    for create_graph in [false, true] {
        let run = |outputs: &[&Tensor<f64>], input: &Tensor<f64>| {
            let options = unused().create_graph(create_graph);
            let found = grad_with(outputs, &[input], options).unwrap().remove(0);
            found.map(|grad| (grad.item(), grad.stop_gradient()))
        };
        let y = &x + 1.0;
        assert_eq!(run(&[&x], &x).unwrap().0, 1.0);
        assert_eq!(run(&[&y, &x], &x).unwrap().0, 2.0);
        assert!(run(&[&x], &y).is_none());
        assert_eq!(run(&[&x, &(&x + 1.0)], &x).unwrap().0, 2.0);
        let y = &x + 1.0;
        assert_eq!(run(&[&x, &y], &y).unwrap().0, 1.0);
        // A gradient is recorded only if that was requested.
        let y = x.square();
        assert_eq!(run(&[&y], &x).unwrap(), (6.0, !create_graph));
    }
}

/// `mean(y (y + 1))` for `y = relu(x)`, and the gradient of that.
fn relu_slope(x: &Tensor<f64>, options: GradOptions<f64>) -> Tensor<f64> {
    let y = x.relu();
    grad_with(&[&(&y * (&y + 1.0)).mean()], &[x], options).unwrap().remove(0).unwrap()
}

#[test]
fn a_recorded_gradient_keeps_its_graph_alive() {
    let data = [-1.0, 0.5, 2.0, 3.0];
    let x = leaf(&data);
    let dx = relu_slope(&x, recorded());
    let loss = (dx.square() + x.square()).mean();
    let n = 4.0;
    for k in 1..=6 {
        loss.backward_options(BackwardOptions::new().retain_graph(true)).unwrap();
        for ((g, x), dx) in gradient(&x).iter().zip(data).zip(dx.to_vec()) {
            let on = if x > 0.0 { 1.0 } else { 0.0 };
            let expected = f64::from(k) * 2.0 / n * (x + dx * on * 2.0 / n);
            assert!((g - expected).abs() < 1e-12, "{g} {expected}");
        }
    }
}

#[test]
fn a_gradient_that_was_not_recorded_is_a_constant() {
    let x = leaf(&[-1.0, 0.5, 2.0, 3.0]);
    let dx = relu_slope(&x, GradOptions::new());
    assert!(dx.stop_gradient());
    (dx.square() + x.square()).mean().backward().unwrap();
    assert_eq!(gradient(&x), x.to_vec().iter().map(|x| 2.0 * x / 4.0).collect::<Vec<_>>());
    x.clear_grad();
    (&dx * &x).sum().backward().unwrap();
    assert_eq!(gradient(&x), dx.to_vec());
}

/// `x²`, with a gradient that is computed from both the input and the output.
#[py_layer]
impl Quotient {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x * x;
        ctx.save_for_backward((x, &y));
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (x, y) = ctx.saved_tensor();
        dy * 2.0 * y / x
    }
}

#[test]
fn a_saved_input_and_output() {
    let x = leaf(&[2.0]);
    let y = Quotient::apply(&x);
    let first = slope(&y, &x);
    assert_eq!((first.item(), slope(&first, &x).item()), (4.0, 2.0));
    assert_eq!(grad(&[&y], &[&x]).unwrap()[0].item(), 4.0);
}

#[test]
fn a_seed_of_another_shape() {
    let x = leaf(&[1.0, 2.0, 3.0]);
    let y = &x * 2.0;
    for wrong in [Tensor::zeros([2]), Tensor::from(1.0), Tensor::zeros([1, 3])] {
        let found_shape = wrong.shape().to_vec();
        let error = grad_with(&[&y], &[&x], GradOptions::new().seeds(vec![Some(wrong)]));
        match error {
            Err(Error::SeedShape { op: "grad", output, expected, found }) => {
                assert!(output.starts_with("the output of mul (called at tests/"), "{output}");
                assert_eq!((expected, found), (vec![3], found_shape));
            }
            other => panic!("{other:?}"),
        }
    }
    // Without a seed, there must be a single element.
    let error = grad(&[&y], &[&x]).unwrap_err();
    assert!(matches!(error, Error::SeedMissing { op: "grad", .. }));
    assert!(error.to_string().contains("the output of mul (called at tests/"), "{error}");
}

static COUNTED: AtomicUsize = AtomicUsize::new(0);

/// Counts the calls of its backward.
#[py_layer]
impl Counted {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        COUNTED.fetch_add(1, Ordering::Relaxed);
        dy * 2.0
    }
}

#[test]
fn grad_runs_only_what_leads_to_an_input() {
    let (x, z) = (leaf(&[1.0]), leaf(&[1.0]));
    let (a, b) = (Counted::apply(&x), Counted::apply(&z));
    assert_eq!(grad(&[&(&a + &b)], &[&x]).unwrap()[0].item(), 2.0);
    assert_eq!(COUNTED.load(Ordering::Relaxed), 1);

    let x = leaf(&[2.0]);
    let h = x.square();
    let y = h.square();
    let both: Vec<_> = grad(&[&y], &[&h, &x]).unwrap().iter().map(Tensor::item).collect();
    assert_eq!(both, [8.0, 32.0]);
    assert!(h.grad().is_none() && x.grad().is_none());
}

#[test]
fn a_second_grad_needs_a_retained_graph() {
    let x = leaf(&[1.0, 2.0]);
    for y in [|x: &Tensor<f64>| x.square().sum(), |x: &Tensor<f64>| x.sum()] {
        let y = y(&x);
        grad(&[&y], &[&x]).unwrap();
        assert!(matches!(grad(&[&y], &[&x]), Err(Error::GraphFreed { .. })));
        assert!(matches!(y.backward(), Err(Error::GraphFreed { .. })));
        assert!(x.grad().is_none());
    }
    let y = x.square().sum();
    let retain = GradOptions::new().retain_graph(true);
    grad_with(&[&y], &[&x], retain).unwrap();
    y.backward().unwrap();
    assert_eq!(gradient(&x), [2.0, 4.0]);
    assert!(matches!(grad(&[&y], &[&x]), Err(Error::GraphFreed { .. })));
}

#[test]
fn create_graph_retains() {
    let x = leaf(&[3.0]);
    let y = x.square();
    assert_eq!(slope(&y, &x).item(), 6.0);
    assert_eq!(grad(&[&y], &[&x]).unwrap()[0].item(), 6.0);
    // Unless that is set otherwise.
    let y = x.square();
    let dx = grad_with(&[&y], &[&x], recorded().retain_graph(false)).unwrap().remove(0).unwrap();
    assert_eq!(slope(&dx, &x).item(), 2.0);
}

#[test]
fn modes_nest_and_end_with_their_scope() {
    let x = leaf(&[1.0]);
    assert!(is_grad_enabled());
    {
        let _off = no_grad();
        assert!((&x * 2.0).stop_gradient());
        assert!(!enable_grad().run(|| &x * 2.0).stop_gradient());
        no_grad().run(|| assert!(!is_grad_enabled()));
        assert!(!is_grad_enabled());
        assert!(Tensor::<f64>::ones([2]).stop_gradient());
    }
    assert!(is_grad_enabled());
    let panic = catch_unwind(|| no_grad().run(|| panic!("inside")));
    assert!(panic.is_err() && is_grad_enabled());
    let error: Result<()> = no_grad().run(|| {
        Tensor::<f64>::ones([2]).try_add(Tensor::ones([3]))?;
        Ok(())
    });
    assert!(error.is_err() && is_grad_enabled());
}

#[test]
fn the_innermost_mode_counts() {
    let x = leaf(&[1.0]);
    let off = no_grad();
    let on = enable_grad();
    assert!(!(&x * 2.0).stop_gradient());
    drop(on);
    assert!((&x * 2.0).stop_gradient());
    drop(off);
    assert!(is_grad_enabled());
}

#[test]
fn backward_inside_no_grad() {
    let x = leaf(&[1.0, 2.0]);
    let y = x.square().sum();
    no_grad().run(|| y.backward()).unwrap();
    assert_eq!(gradient(&x), [2.0, 4.0]);
    let y = x.square().sum();
    let dx = no_grad().run(|| grad_with(&[&y], &[&x], recorded())).unwrap().remove(0).unwrap();
    assert_eq!(slope(&dx, &x).to_vec(), [2.0, 2.0]);
}

/// Squares by an inner graph, which its backward runs.
#[py_layer]
impl InnerGraph {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let inside = x.detach();
        inside.set_stop_gradient(false);
        let y = enable_grad().run(|| &inside * &inside);
        ctx.save_for_backward((&inside, &y));
        y.detach()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Result<Tensor<f64>> {
        let (x, y) = ctx.saved_tensor();
        y.backward_with(dy)?;
        x.grad().map_or_else(|| unreachable!("backward left it"), Ok)
    }
}

#[test]
fn backward_runs_a_graph_of_its_own() {
    let x = leaf(&[3.0]);
    InnerGraph::apply(&x).backward().unwrap();
    assert_eq!(gradient(&x), [6.0]);
}

#[test]
fn third_order_and_a_backward_over_gradients() {
    let x = leaf(&[1.0, 2.0, 3.0]);
    let first = slope(&(&x * &x * &x), &x);
    let second = slope(&first, &x);
    let third = slope(&second, &x);
    assert_eq!(first.to_vec(), [3.0, 12.0, 27.0]);
    assert_eq!(second.to_vec(), [6.0, 12.0, 18.0]);
    assert_eq!(third.to_vec(), [6.0, 6.0, 6.0]);
    let dx = slope(&(&x * &x * &x), &x);
    (&dx * &dx).sum().backward().unwrap();
    assert_eq!(gradient(&x), [36.0, 288.0, 972.0]);
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let x = Tensor::from([1.0, 2.0]);
    let error = gradcheck(
        |t| {
            let h = &t[0] * 1.0;
            let _ = h.register_hook(|grad| Ok(Some(grad + 1e-2))).unwrap();
            h.square()
        },
        std::slice::from_ref(&x),
    );
    assert!(error.unwrap_err().to_string().contains("input 0"));
    // A gradient that is not multiplied by that of the output.
    let error = gradcheck(
        |t| {
            let h = &t[0] * 1.0;
            let _ = h.register_hook(|grad| Ok(Some(grad / grad))).unwrap();
            h
        },
        &[x],
    );
    assert!(matches!(error, Err(Error::GradientWrong { .. })));
}

#[test]
fn a_step_with_a_gradient_penalty() {
    Generator::new(36).run(gradient_penalty);
}

fn gradient_penalty() {
    let (w1, w2) = (Tensor::<f64>::randn([4, 8]), Tensor::<f64>::randn([8, 1]));
    let generator = Tensor::<f64>::randn([3, 4]);
    for parameter in [&w1, &w2, &generator] {
        parameter.set_stop_gradient(false);
    }
    let critic = |x: &Tensor<f64>| x.matmul(&w1).tanh().matmul(&w2);
    let fake = Tensor::<f64>::randn([5, 3]).matmul(&generator);

    let mixed = (&fake * 0.3 + Tensor::<f64>::randn([5, 4]) * 0.7).detach();
    mixed.set_stop_gradient(false);
    let options = recorded().retain_graph(true);
    let slopes = grad_with(&[&critic(&mixed).sum()], &[&mixed], options).unwrap();
    let norms = slopes[0].as_ref().unwrap().square().sum_axes([1]).sqrt();
    let penalty = (norms - 1.0).square().mean() * 10.0;
    let loss = critic(&fake).mean() + penalty;
    loss.backward_options(BackwardOptions::new().retain_graph(true)).unwrap();
    assert!(w1.grad().is_some() && w2.grad().is_some());

    // A second loss on the same fake image cancels the generator's gradient from the first; the penalty
    // does not reach the generator.
    assert!(gradient(&generator).iter().any(|g| g.abs() > 1e-3));
    (-critic(&fake).mean()).backward().unwrap();
    assert!(gradient(&generator).iter().all(|g| g.abs() < 1e-12));
}

fn floats(grads: &[Option<AnyTensor>]) -> Vec<Option<f64>> {
    let float = |grad: &AnyTensor| grad.downcast_ref::<f64>().unwrap().item();
    grads.iter().map(|grad| grad.as_ref().map(float)).collect()
}

#[test]
fn hooks_before_and_after_a_node() {
    let (x, w) = (leaf(&[2.0]), Tensor::from([3.0]));
    let y = &x * &w;
    let node = y.graph_node().unwrap();
    assert_eq!((node.name(), node.location().file()), ("mul", file!()));
    assert_eq!(format!("{node:?}"), format!("mul at {}", node.location()));
    let log = Log::default();
    let _ = y.register_hook(times(2.0)).unwrap();
    let before = node.register_before(|grads| {
        assert_eq!(floats(grads), [Some(2.0)]);
        Ok(Some(vec![Some(Tensor::from([5.0]).into())]))
    });
    let _ = y.register_hook(log.hook()).unwrap();
    let after = node.register_after(|inputs, outputs| {
        // The second factor wants no gradient.
        assert_eq!((floats(inputs), floats(outputs)), (vec![Some(15.0), None], vec![Some(5.0)]));
        Ok(None)
    });
    let _ = node.register_after(|_, _| Ok(Some(vec![Some(Tensor::from([7.0]).into()), None])));
    let retain = BackwardOptions::new().retain_graph(true);
    y.backward_options(retain).unwrap();
    assert_eq!((gradient(&x), log.seen()), (vec![7.0], vec![vec![5.0]]));
    assert!(before.remove() && after.remove() && !before.remove());
    y.backward_options(retain).unwrap();
    assert_eq!(log.seen()[1], [2.0]);
    assert!(x.graph_node().is_none());
}

#[test]
fn hooks_on_a_node_that_uses_an_input_twice() {
    let x = leaf(&[3.0]);
    let y = &x * &x;
    let _ = y.graph_node().unwrap().register_after(|inputs, _| {
        assert_eq!(floats(inputs), [Some(3.0), Some(3.0)]);
        let Some(Some(AnyTensor::Float64(first))) = inputs.first() else { unreachable!() };
        Ok(Some(vec![Some((first * 10.0).into()), None]))
    });
    y.backward().unwrap();
    assert_eq!(gradient(&x), [33.0]);
}

/// Both gradients of a sum are the same tensor; a hook gets its own copy.
#[test]
fn a_change_in_place_by_a_hook_reaches_what_it_was_shown_only() {
    let (x, y) = (leaf(&[3.0]), leaf(&[4.0]));
    let sum = &x + &y;
    let _ = sum.graph_node().unwrap().register_after(|inputs, outputs| {
        for (grads, factor) in [(&inputs[..1], 10.0), (outputs, 100.0)] {
            let mut grad = grads[0].as_ref().unwrap().downcast_ref::<f64>().unwrap().clone();
            grad *= factor;
        }
        assert_eq!(
            (floats(inputs), floats(outputs)),
            (vec![Some(20.0), Some(2.0)], vec![Some(200.0)])
        );
        Ok(None)
    });
    (sum * 2.0).backward().unwrap();
    assert_eq!((gradient(&x), gradient(&y)), (vec![20.0], vec![2.0]));
}

#[test]
fn a_node_hook_that_fails_or_returns_what_does_not_fit() {
    let x = leaf(&[3.0, 4.0]);
    let wrong: [(Vec<Option<AnyTensor>>, &str); 3] = [
        (vec![], "must give 1 gradient (or None in their places) for its "),
        (vec![Some(Tensor::<f64>::zeros([3]).into())], "must give a gradient of shape [2] for "),
        (
            vec![Some(Tensor::<f32>::zeros([2]).into())],
            "must give a gradient of element type float64 for ",
        ),
    ];
    for (grads, message) in wrong {
        for after in [false, true] {
            let y = x.exp();
            let node = y.graph_node().unwrap();
            let grads = grads.clone();
            let handle = if after {
                node.register_after(move |_, _| Ok(Some(grads.clone())))
            } else {
                node.register_before(move |_| Ok(Some(grads.clone())))
            };
            let retain = BackwardOptions::new().retain_graph(true);
            let error = y.sum().backward_options(retain).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
            assert!(
                error.starts_with("exp (called at tests/tests/engine/hooks_and_grad.rs:"),
                "{error}"
            );
            assert!(x.grad().is_none());
            handle.remove();
            grad(&[&y.sum()], &[&x]).unwrap();
        }
    }
}

#[test]
fn several_roots_and_options() {
    let (x, w) = (leaf(&[2.0]), leaf(&[3.0]));
    let h = &x * &w;
    let (a, b) = (h.square(), &h * 5.0);
    let roots: [AnyTensor; 2] = [a.into(), b.into()];
    let retain = BackwardOptions::new().retain_graph(true);
    backward(&roots, &[None, None], retain).unwrap();
    assert_eq!((gradient(&x), gradient(&w)), (vec![51.0], vec![34.0]));
    backward(&roots, &[Some(Tensor::from([2.0]).into()), None], retain).unwrap();
    assert_eq!(gradient(&x), [51.0 + 87.0]);
    // Several outputs of `grad` are summed too, each with its seed.
    let (a, b) = (x.square(), &x * 5.0);
    let seeds = vec![Some(Tensor::from([10.0])), None];
    let dx = grad_with(&[&a, &b], &[&x], GradOptions::new().seeds(seeds)).unwrap();
    assert_eq!(dx[0].as_ref().unwrap().to_vec(), [45.0]);
}

#[test]
fn a_panic_in_a_hook_during_grad_leaves_everything_usable() {
    let x = leaf(&[1.0]);
    let h = &x * 2.0;
    let handle = h.register_hook(|_| panic!("in the hook")).unwrap();
    let y = &h * 3.0;
    let retain = || GradOptions::new().retain_graph(true);
    let panic = catch_unwind(AssertUnwindSafe(|| grad_with(&[&y], &[&x], retain())));
    assert!(panic.is_err() && is_grad_enabled());
    handle.remove();
    assert_eq!(grad(&[&h.sum()], &[&x]).unwrap()[0].item(), 2.0);
}

/// A number that callbacks change.
fn counter() -> std::rc::Rc<std::cell::Cell<u32>> {
    std::rc::Rc::default()
}

#[test]
fn called_once_after_a_whole_backward() -> Result<()> {
    let (x, count) = (leaf(&[2.0]), counter());
    let (seen, inside) = (x.clone(), count.clone());
    count.set(10);
    after_backward(move || {
        assert_eq!(gradient(&seen), [4.0]);
        inside.set(inside.get() * 2);
        Ok(())
    });
    // This writes no gradient.
    grad(&[&x.square()], &[&x])?;
    assert_eq!(count.get(), 10);
    x.square().backward()?;
    assert_eq!(count.get(), 20);
    x.square().backward()?;
    assert_eq!(count.get(), 20);
    Ok(())
}

#[test]
fn given_in_a_hook_it_waits_for_the_outermost_backward() -> Result<()> {
    let (x, other) = (leaf(&[2.0]), leaf(&[1.0]));
    let h = &x * 3.0;
    let order = Arc::new(Mutex::new(Vec::new()));
    let (log, inner) = (Arc::clone(&order), other.clone());
    let leaf = x.clone();
    let _ = h.register_hook(move |_| {
        for name in ["first", "second"] {
            let (log, leaf) = (Arc::clone(&log), leaf.clone());
            after_backward(move || {
                assert_eq!(gradient(&leaf), [3.0]);
                log.lock().unwrap().push(name);
                Ok(())
            });
        }
        enable_grad().run(|| inner.square().backward())?;
        log.lock().unwrap().push("inner done");
        Ok(None)
    })?;
    h.backward()?;
    assert_eq!(*order.lock().unwrap(), ["inner done", "first", "second"]);
    Ok(())
}

#[test]
fn errors_and_failed_backwards() {
    let (x, count) = (leaf(&[2.0]), counter());
    let add = |to: &std::rc::Rc<std::cell::Cell<u32>>| {
        let to = to.clone();
        move || {
            to.set(to.get() + 1);
            Ok(())
        }
    };
    // The second of three fails: the gradient is kept, and the third is not called.
    after_backward(add(&count));
    after_backward(|| Err("no".into()));
    after_backward(add(&count));
    let error = x.square().backward().unwrap_err();
    assert!(matches!(error, Error::Hook { op: "backward", .. }), "{error}");
    assert_eq!((gradient(&x), count.get()), (vec![4.0], 1));
    // A backward that fails or panics calls no callback, now or later.
    let y = x.square();
    y.backward().unwrap();
    after_backward(add(&count));
    assert!(matches!(y.backward(), Err(Error::GraphFreed { .. })));
    after_backward(add(&count));
    let h = &x * 1.0;
    let _ = h.register_hook(|_| panic!("hook")).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| h.backward())).is_err());
    after_backward(|| panic!("callback"));
    assert!(catch_unwind(AssertUnwindSafe(|| x.square().backward())).is_err());
    x.square().backward().unwrap();
    assert_eq!(count.get(), 1);
}

#[test]
fn zeros_for_unused_inputs() -> Result<()> {
    let (x, y) = (leaf(&[2.0, 3.0]), leaf(&[1.0]));
    let loss = x.square().sum();
    let grads = grad_with(&[&loss], &[&y, &x], GradOptions::new().materialize_grads(true))?;
    let [Some(dy), Some(dx)] = &grads[..] else { panic!("{grads:?}") };
    assert_eq!((dy.to_vec(), dx.to_vec()), (vec![0.0], vec![4.0, 6.0]));
    assert!(dy.stop_gradient());
    // It takes precedence over `allow_unused`, which alone gives `None`.
    let both = GradOptions::new().allow_unused(true).materialize_grads(true);
    let grads = grad_with(&[&x.sum()], &[&y], both)?;
    assert_eq!(grads[0].as_ref().map(Tensor::item), Some(0.0));
    Ok(())
}

#[test]
fn backward_fills_the_named_inputs_only() -> Result<()> {
    let options = BackwardOptions::new();
    let retain = options.retain_graph(true);
    let (x, y, unused) = (leaf(&[2.0]), leaf(&[3.0]), leaf(&[1.0]));
    let h = &x * &y;
    let kept = &h * 1.0;
    kept.retain_grads()?;
    let loss: [AnyTensor; 1] = [kept.square().into()];
    let seen = Log::default();
    let _ = x.register_hook(seen.hook())?;
    let any = |t: &Tensor<f64>| AnyTensor::from(t.clone());
    // 2 x y^2 = 36; hooks run on a leaf that gets its gradient.
    backward_to(&loss, &[None], &[any(&x), any(&unused)], retain)?;
    assert_eq!((gradient(&x), seen.seen()), (vec![36.0], vec![vec![36.0]]));
    assert!(y.grad().is_none() && unused.grad().is_none() && kept.grad().is_none());
    // The output of an op, which then keeps its gradient; a second one is added.
    backward_to(&loss, &[None], &[any(&h)], retain)?;
    backward_to(&loss, &[None], &[any(&h), any(&y)], options)?;
    assert_eq!((gradient(&h), gradient(&y)), (vec![24.0], vec![24.0]));
    assert_eq!(gradient(&x), [36.0]);
    let freed = backward_to(&loss, &[None], &[any(&x)], options);
    assert!(matches!(freed, Err(Error::GraphFreed { .. })));
    let none = backward_to(&loss, &[None], &[], options);
    assert!(matches!(none, Err(Error::Count { op: "backward_to", .. })));
    let twice = backward_to(&loss, &[None], &[any(&x), any(&x)], options);
    assert!(matches!(twice, Err(Error::Duplicate { op: "backward_to", .. })));
    assert_eq!(gradient(&x), [36.0]);
    Ok(())
}

#[test]
fn gradients_of_two_inputs_are_not_shared() -> Result<()> {
    let (a, b) = (leaf(&[1.0]), leaf(&[2.0]));
    let inputs = [a.clone().into(), b.clone().into()];
    backward_to(&[(&a + &b).into()], &[None], &inputs, BackwardOptions::new())?;
    (&a * 5.0).backward()?;
    assert_eq!((gradient(&a), gradient(&b)), (vec![6.0], vec![1.0]));
    Ok(())
}
