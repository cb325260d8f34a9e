//! The order of the walk, as users see it: each op is visited once, with its complete gradient.

use std::sync::{Arc, Mutex};

use autograd_core::prelude::*;
use autograd_core::{BackwardOptions, Error, GradOptions, backward, checkpoint, grad_with};
use support::leaf;

#[test]
fn an_output_put_together_again_is_waited_for() {
    // Only the product holds the exponential, until a recorded backward reads it: then there are two
    // paths to it, and both must be complete before it is visited.
    let x = leaf(&[0.1, 0.7]);
    let factors = [3.0, -2.0];
    let loss = ((&x * 2.0).exp() * &Tensor::from(factors.to_vec())).sum();
    let options = GradOptions::new().create_graph(true);
    let gradient = grad_with(&[&loss], &[&x], options).unwrap().remove(0).unwrap();
    let roots = [loss.into(), gradient.sum().into()];
    backward(&roots, &[None, None], BackwardOptions::new()).unwrap();
    // loss = c e^2x, its gradient 2 c e^2x, and the gradient of that 4 c e^2x.
    let found = x.grad().unwrap().to_vec();
    for ((found, x), c) in found.into_iter().zip([0.1_f64, 0.7]).zip(factors) {
        let expected = 6.0 * c * (2.0 * x).exp();
        assert!((found - expected).abs() < 1e-12 * expected.abs(), "{found} {expected}");
    }
}

#[test]
fn an_op_of_one_consumer_and_a_seed_of_its_own_is_visited_once() {
    let x = leaf(&[0.5]);
    let inner = &x * 3.0;
    let outer = (inner.clone() * 2.0).square();
    backward(&[outer.into(), inner.into()], &[None, None], BackwardOptions::new()).unwrap();
    // 36 x^2 and 3 x.
    assert_eq!(x.grad().unwrap().to_vec(), [72.0 * 0.5 + 3.0]);
}

#[test]
fn a_wide_sum_of_temporaries_adds_up_in_one_order() {
    let sum = || {
        let x = leaf(&[0.1, 0.2, 0.3]);
        let mut sum = &x * 0.7;
        for i in 1..1000 {
            sum = (&x * f64::from(i)).tanh() + sum;
        }
        sum.sum().backward().unwrap();
        x.grad().unwrap().to_vec()
    };
    let first = sum();
    let expected: f64 =
        0.7 + (1..1000).map(f64::from).map(|i| i * (1.0 - (0.1 * i).tanh().powi(2))).sum::<f64>();
    assert!((first[0] - expected).abs() < 1e-9 * expected, "{} {expected}", first[0]);
    assert_eq!(first, sum());
}

/// Many ops wait at once; one that waits among the last feeds one that waits among the first.
#[test]
fn among_many_that_wait_the_highest_goes_first_and_then_the_first_that_came() {
    for count in [3, 12, 13, 40] {
        let x = leaf(&[0.5, -1.0]);
        let visited = Arc::new(Mutex::new(Vec::new()));
        // Held, so that each op waits for further gradients.
        let mut all: Vec<Tensor<f64>> = (0..count).map(|i| &x * (i as f64 + 1.0)).collect();
        // Ops above the first one and above the last one.
        all.push(&all[0] * &all[count - 1]);
        for (i, y) in all.iter().enumerate() {
            let visited = Arc::clone(&visited);
            let note = move |_: &Tensor<f64>| {
                visited.lock().unwrap().push(i);
                Ok(None)
            };
            let _ = y.register_hook(note).unwrap();
        }
        let all: Vec<&Tensor<f64>> = all.iter().collect();
        Tensor::concat(&all, 0).sum().backward().unwrap();
        let expected: Vec<usize> = [count].into_iter().chain(0..count).collect();
        assert_eq!(*visited.lock().unwrap(), expected, "{count}");
        let n = count as f64;
        let slope = |x: f64| n * (n + 1.0) / 2.0 + 2.0 * n * x;
        assert_eq!(x.grad().unwrap().to_vec(), [slope(0.5), slope(-1.0)], "{count}");
    }
}

/// A few leaves are found by a linear search, many by a map: both sides of the threshold.
#[test]
fn leaves_that_are_reached_in_turns_get_the_sum() {
    for count in [1, 2, 8, 9, 10, 40] {
        let leaves: Vec<Tensor<f64>> = (0..count).map(|i| Tensor::from(i as f64)).collect();
        leaves.iter().for_each(|leaf| leaf.set_stop_gradient(false));
        let round = |by: f64| leaves.iter().map(move |leaf| leaf * by);
        let sum = round(2.0).chain(round(3.0)).chain(round(5.0)).reduce(|a, b| a + b);
        sum.unwrap().backward().unwrap();
        for (i, leaf) in leaves.iter().enumerate() {
            assert_eq!(leaf.grad().unwrap().item(), 10.0, "leaf {i} of {count}");
        }
    }
}

#[test]
fn among_many_leaves_each_is_found_again() {
    for count in 1..40_usize {
        let leaves: Vec<_> = (0..count).map(|i| leaf(&[i as f64 + 1.0])).collect();
        // Each leaf twice, with as many others between the two times as possible.
        let twice = leaves.iter().chain(&leaves).enumerate();
        let parts = twice.map(|(k, leaf)| leaf * (k as f64 + 1.0));
        let sum = parts.reduce(|sum, part| sum + part).unwrap().sum();
        let expected = |i: usize| [(2 * i + count + 2) as f64];
        let listed: Vec<_> = leaves.iter().collect();
        let options = GradOptions::new().retain_graph(true);
        for (i, grad) in grad_with(&[&sum], &listed, options).unwrap().into_iter().enumerate() {
            assert_eq!(grad.unwrap().to_vec(), expected(i), "leaf {i} of {count}");
        }
        // The gradient arrives as one tensor.
        let pieces = Arc::new(Mutex::new(0));
        for leaf in &leaves {
            let pieces = Arc::clone(&pieces);
            let count = move |_: &_| {
                *pieces.lock().unwrap() += 1;
                Ok(None)
            };
            let _ = leaf.register_hook(count).unwrap();
        }
        sum.backward().unwrap();
        assert_eq!(*pieces.lock().unwrap(), count);
        for (i, leaf) in leaves.iter().enumerate() {
            assert_eq!(leaf.grad().unwrap().to_vec(), expected(i), "leaf {i} of {count}");
        }
    }
}

#[test]
fn a_kept_gradient_is_outside_the_graph_whatever_a_hook_returned() {
    // A temporary of the hook becomes the gradient: one that wants a gradient, one that was recorded, one
    // that is still held elsewhere; with few numbers and with many.
    for n in [3, 100] {
        let w = Tensor::full([n], 2.0);
        w.set_stop_gradient(false);
        let held = Arc::new(Mutex::new(Vec::new()));
        let wants = move |_: &Tensor<f64>| {
            let grad = Tensor::full([n], 2.0);
            grad.set_stop_gradient(false);
            grad
        };
        let recorded = {
            let w = w.clone();
            move |_: &Tensor<f64>| {
                let _guard = enable_grad();
                &w * 1.0
            }
        };
        let shared = {
            let held = Arc::clone(&held);
            move |grad: &Tensor<f64>| {
                let grad = grad * 2.0;
                held.lock().unwrap().push(grad.clone());
                grad
            }
        };
        type Returns = Box<dyn Fn(&Tensor<f64>) -> Tensor<f64> + Send + Sync>;
        let all: [Returns; 3] = [Box::new(wants), Box::new(recorded), Box::new(shared)];
        for returns in all {
            let x = Tensor::full([n], 5.0);
            x.set_stop_gradient(false);
            let _ = x.register_hook(move |grad| Ok(Some(returns(grad)))).unwrap();
            (&x * 1.0).sum().backward().unwrap();
            let grad = x.grad().unwrap();
            assert!(grad.stop_gradient() && grad.is_leaf());
            assert_eq!(grad.to_vec(), vec![2.0; n]);
            // Another backward adds to it, without changing other tensors.
            (&x * 1.0).sum().backward().unwrap();
            assert_eq!(x.grad().unwrap().to_vec(), vec![4.0; n]);
        }
        assert!(held.lock().unwrap().iter().all(|grad| grad.to_vec() == vec![2.0; n]));
        assert!(w.grad().is_none());
    }
}

/// A function of two leaves and an intermediate tensor, which may be cut.
type Cut = fn(&[Tensor<f64>; 2], &dyn Fn(&Tensor<f64>) -> Tensor<f64>) -> Tensor<f64>;

const CUTS: [(&str, Cut); 7] = [
    ("a result", |[x, w], cut| cut(&(x * w)).exp() * x),
    ("a leaf", |[x, w], cut| (cut(w) * x).exp() * x),
    ("a leaf on all ways", |[x, w], cut| {
        let w = cut(w);
        (&w * x).exp() * &w + x
    }),
    ("one part of several", |[x, w], cut| {
        let parts = (x * w).split(2, 0);
        cut(&parts[0]).exp() * parts[1].sin()
    }),
    ("a result that others are computed from", |[x, w], cut| {
        let h = cut(&x.exp());
        (&h * w).sin() + &h * x
    }),
    ("a result behind another cut way", |[x, w], cut| {
        let h = cut(&x.exp());
        let m = &h * 2.0;
        m.detach() * w + m * x
    }),
    ("the output itself", |[x, w], cut| cut(&(x * w))),
];

#[test]
fn no_gradient_flows_through_no_grad_vars() {
    for count in [4, 1000] {
        for (name, cut) in CUTS {
            let data = |at: usize| (0..count).map(move |i| 0.25 + ((i + at) % 5) as f64 * 0.25);
            let leaves = [0, 2].map(|at| {
                let x = Tensor::from(data(at).collect::<Vec<_>>());
                x.set_stop_gradient(false);
                x
            });
            let inputs = [&leaves[0], &leaves[1]];
            for create_graph in [false, true] {
                let options = || {
                    GradOptions::new()
                        .allow_unused(true)
                        .retain_graph(true)
                        .create_graph(create_graph)
                };
                let right = cut(&leaves, &|h| h.detach()).sum();
                let right = grad_with(&[&right], &inputs, options()).unwrap();
                let marked = std::cell::RefCell::new(None);
                let y = cut(&leaves, &|h| {
                    marked.replace(Some(h.clone()));
                    h.clone()
                });
                let marked = marked.take().unwrap();
                let loss = y.sum();
                let stops = marked.stop_gradient();
                let marks = || options().no_grad_vars([marked.clone()]);
                // A hook on it is never called.
                let handle = marked.register_hook(|_| panic!("a hook on what is cut")).unwrap();
                for _ in 0..2 {
                    let found = grad_with(&[&loss], &inputs, marks()).unwrap();
                    for (found, right) in found.iter().zip(&right) {
                        let [found, right] = [found, right].map(|g| g.as_ref().map(Tensor::to_vec));
                        assert_eq!(found, right, "{name}, recorded: {create_graph}");
                    }
                }
                assert!(handle.remove());
                assert_eq!(marked.stop_gradient(), stops);
                assert!(leaves.iter().all(|leaf| leaf.grad().is_none()));
                // An input that is unused for this reason is an error, or `None` with `allow_unused`.
                let unused = right.iter().position(Option::is_none);
                let result = grad_with(
                    &[&loss],
                    &inputs,
                    GradOptions::new().retain_graph(true).no_grad_vars([marked.clone()]),
                );
                match unused {
                    Some(position) => assert!(
                        matches!(result, Err(Error::Unused { position: at }) if at == position),
                        "{name}"
                    ),
                    None => drop(result.unwrap()),
                }
                let itself = grad_with(&[&loss], &[&marked], marks()).unwrap();
                assert!(itself[0].is_none(), "{name}");
                // Without the option everything is as before.
                let whole = grad_with(&[&loss], &inputs, options()).unwrap();
                let plain = grad_with(&[&cut(&leaves, &Tensor::clone).sum()], &inputs, options());
                for (whole, plain) in whole.iter().zip(plain.unwrap()) {
                    assert_eq!(whole.as_ref().map(Tensor::to_vec), plain.map(|g| g.to_vec()));
                }
            }
        }
    }
}

#[test]
fn no_grad_vars_of_another_element_type_and_in_a_checkpoint() {
    let (x, w) = (leaf(&[0.5, 1.5]), leaf(&[2.0, 3.0]));
    let narrow = w.cast::<f32>();
    let h = x.exp();
    let inside = [x.clone(), narrow.cast::<f64>(), h.clone()];
    let y = checkpoint(move || &inside[0] * &inside[1] * &inside[2]).sum();
    let options = || GradOptions::new().allow_unused(true).retain_graph(true);
    let vars: [AnyTensor; 2] = [narrow.into(), h.clone().into()];
    let found = grad_with(&[&y], &[&x, &w], options().no_grad_vars(vars)).unwrap();
    assert_eq!(found[0].as_ref().unwrap().to_vec(), (&w * &h).to_vec());
    assert!(found[1].is_none());
    // Zeros on request.
    let options = options().materialize_grads(true).no_grad_vars([w.clone()]);
    assert_eq!(grad_with(&[&y], &[&w], options).unwrap()[0].as_ref().unwrap().to_vec(), [0.0; 2]);
}
