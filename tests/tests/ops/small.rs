//! Small ops are recorded in another way than large ones: results and observable effects are the same.
//! With an observer they are recorded as large ones are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use autograd_core::prelude::*;
use autograd_core::{
    AnyTensor, Error, GradOptions, SavedTensorsHooks, detect_anomaly, grad_with,
    saved_tensors_hooks,
};
use support::leaf;

/// An op whose rule reads the input.
#[py_layer(elementwise)]
impl Cube {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x * x
    }
}

/// One that reads the output.
#[py_layer(elementwise)]
impl ByHand {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x.tanh()
    }

    fn backward<L: Lane>(y: Real<L>, dy: Real<L>) -> Real<L> {
        dy * (1.0 - y * y)
    }
}

/// One that reads neither.
#[py_layer(elementwise)]
impl Affine {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * 3.0 - 1.0
    }
}

/// One that reads both.
#[py_layer(elementwise)]
impl Both {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x.exp() * x
    }

    fn backward<L: Lane>(x: Real<L>, y: Real<L>, dy: Real<L>) -> Real<L> {
        dy * (x.exp() + y)
    }
}

/// One whose gradient is not the derivative.
#[py_layer(elementwise, surrogate)]
impl StraightThrough {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x.round()
    }

    fn backward<L: Lane>(dy: Real<L>) -> Real<L> {
        dy
    }
}

/// An op of two tensors.
#[py_layer(elementwise)]
impl Huber {
    fn forward<L: Lane>(a: Real<L>, b: Real<L>) -> Real<L> {
        let d = (a - b).abs();
        d.lt(1.0).select(d * d * 0.5, d - 0.5)
    }
}

/// An op of three tensors.
#[py_layer(elementwise)]
impl Mix {
    fn forward<L: Lane>(a: Real<L>, b: Real<L>, t: Real<L>) -> Real<L> {
        a + (b - a) * t
    }
}

/// How the data of an operand is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    New,
    /// Changed in place.
    Changed,
    /// Shared with another tensor.
    Shared,
    /// Changed in place to strided data.
    Strided,
}

impl State {
    fn of<T: Float>(self, x: Tensor<T>) -> Tensor<T> {
        match self {
            Self::New => return x,
            Self::Shared => return x.detach(),
            Self::Changed | Self::Strided => {}
        }
        let changed = Tensor::zeros(x.shape().to_vec());
        let source = match self {
            Self::Strided if x.ndim() == 2 => {
                let wide = Tensor::zeros([x.shape()[0] + 9, x.shape()[1] + 9]);
                let all = Tensor::concat(&[&x, &wide.narrow(0, 0, x.shape()[0])], 1);
                all.narrow(1, 0, x.shape()[1])
            }
            Self::Strided => x.mean().broadcast_to(x.shape()),
            _ => x,
        };
        changed.copy_from(&source).unwrap();
        changed
    }
}

/// A scope that observes and changes nothing.
fn onlooker() -> SavedTensorsHooks {
    saved_tensors_hooks(|saved: &AnyTensor| Ok(saved.clone()), |kept: &AnyTensor| Ok(kept.clone()))
}

/// All NaNs are equal.
fn bits<T: Float>(x: &Tensor<T>) -> Vec<u64> {
    let bits = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
    x.to_vec().into_iter().map(|x| bits(x.into_f64())).collect()
}

fn create<T: Float>() -> GradOptions<T> {
    GradOptions::new().create_graph(true).materialize_grads(true)
}

/// The value, first and second gradients of inputs that want one, and the visible parts of the node.
fn all_of<T: Float>(
    f: impl Fn(&Tensor<T>, &Tensor<T>) -> Tensor<T>,
    shape: &[usize],
    wants: [bool; 2],
    states: [State; 2],
) -> (Vec<Vec<u64>>, &'static str, Vec<Option<Vec<usize>>>) {
    let numbers = [
        [0.5, -2.0, f64::NAN, f64::INFINITY, 0.0, -0.0],
        [-1.5, 0.0, 2.0, -3.0, f64::NEG_INFINITY, 1e-320],
    ];
    let len = shape.iter().product();
    let [a, b] = [0, 1].map(|i| {
        let data = numbers[i].iter().map(|x| T::from_f64(*x)).cycle().take(len).collect::<Vec<_>>();
        let x = states[i].of(Tensor::from(data).reshape(shape));
        x.set_stop_gradient(!wants[i]);
        x
    });
    let y = f(&a, &b);
    let inputs: Vec<_> = [&a, &b].into_iter().filter(|x| !x.stop_gradient()).collect();
    let node = y.graph_node().unwrap();
    let saved = node.saved_tensors().unwrap().into_iter();
    let saved = saved.map(|saved| saved.map(|saved| saved.shape().to_vec())).collect();
    let seed = || {
        let data: Vec<T> = (0..len).map(|i| T::from_f64(1.5 + i as f64)).collect();
        vec![Some(Tensor::from(data).reshape(shape))]
    };
    let first = grad_with(&[&y], &inputs, create().seeds(seed())).unwrap();
    let mut found = vec![bits(&y)];
    for dx in first.into_iter().flatten() {
        found.push(bits(&dx));
        if !dx.stop_gradient() {
            let second = grad_with(&[&dx], &inputs, create().seeds(seed())).unwrap();
            found.extend(second.iter().flatten().map(bits));
        }
    }
    // Not recorded: no graph is kept, and temporaries are overwritten.
    y.backward_with(seed()[0].as_ref().unwrap()).unwrap();
    found.extend(inputs.iter().map(|x| bits(&x.grad().unwrap())));
    (found, node.name(), saved)
}

fn same_for<T: Float>() {
    type Op<T> = fn(&Tensor<T>, &Tensor<T>) -> Tensor<T>;
    let pairs: [Op<T>; 15] = [
        |a, b| a + b,
        |a, b| a - b,
        |a, b| a * b,
        |a, b| a / b,
        |a, b| (a * 2.0) - b,
        |a, b| a - (b * 2.0),
        |a, b| (a * 2.0) * (b * 3.0),
        |a, b| (a + 1.0) / b,
        |a, b| a / (b + 1.0),
        |a, b| a.maximum(b),
        |a, b| a.pow(b),
        |a, b| (a.tanh() - b) * a.exp(),
        |a, b| Huber::apply(a, b),
        |a, b| Huber::apply(&(a * 2.0), b),
        |a, b| Mix::apply(a, b, &(a * b)),
    ];
    let states = {
        use State::{Changed, New, Shared, Strided};
        [
            [New, New],
            [Changed, New],
            [New, Changed],
            [Changed, Changed],
            [Shared, Changed],
            [Strided, Shared],
            [Shared, New],
        ]
    };
    let singles: [Op<T>; 31] = [
        |a, _| a + 2.0,
        |a, _| a - 2.0,
        |a, _| 2.0 - a,
        |a, _| a * 3.0,
        |a, _| a / 3.0,
        |a, _| 3.0 / a,
        |a, _| (a * 2.0) - 0.5,
        |a, _| 0.5 - (a * 2.0),
        |a, _| a.pow(3.0),
        |a, _| a.maximum(0.25),
        |a, _| a * a,
        |a, _| (a * 3.0) - a,
        |a, _| (a * 2.0) * a,
        |a, _| -a,
        |a, _| a.square(),
        |a, _| a.relu(),
        |a, _| a.tanh(),
        |a, _| (a * 2.0).tanh(),
        |a, _| (a + 1.0).tanh().square(),
        |a, _| a.exp(),
        |a, _| a.ln(),
        |a, _| a.sqrt(),
        |a, _| a.gelu(),
        |a, _| a.step(),
        |a, _| Cube::apply(a),
        |a, _| ByHand::apply(a),
        |a, _| Affine::apply(a),
        |a, _| Both::apply(a),
        |a, _| StraightThrough::apply(a),
        |a, _| ByHand::apply(&Affine::apply(&a.tanh())),
        // Beyond the range of the loop: the program computes it.
        |a, _| (Cube::apply(a) * 1e20).sin(),
    ];
    for shape in [&[][..], &[1], &[6], &[2, 3], &[1, 2, 1, 3], &[1, 1, 2, 1, 3]] {
        let check = |f: Op<T>, i: usize, wants| {
            let new = all_of(f, shape, wants, states[0]);
            for states in states {
                let found = all_of(f, shape, wants, states);
                let _scope = onlooker();
                let text = || format!("op {i} of {states:?} {wants:?}, shape {shape:?}");
                assert_eq!(found, all_of(f, shape, wants, states), "{}", text());
                if !states.contains(&State::Strided) {
                    assert_eq!(found, new, "{}", text());
                }
            }
        };
        for wants in [[true, true], [true, false], [false, true]] {
            pairs.iter().enumerate().for_each(|(i, f)| check(*f, i, wants));
        }
        singles.iter().enumerate().for_each(|(i, f)| check(*f, i, [true, false]));
    }
}

#[test]
fn nobody_sees_how_they_are_recorded() {
    same_for::<f32>();
    same_for::<f64>();
}

#[test]
fn an_input_changed_since_is_named() {
    for (position, name) in [(0, "its first input"), (1, "its second input")] {
        let inputs = [leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0])];
        let copies = inputs.each_ref().map(|x| x * 1.0);
        let y = &copies[0] * &copies[1];
        copies[position].detach().fill(0.0).unwrap();
        match y.sum().backward() {
            Err(Error::SavedTensorChanged { op: "mul", parameter, saved: 0, found: 1, .. }) => {
                assert_eq!(parameter, name);
            }
            other => panic!("{other:?}"),
        }
        assert!(inputs.iter().all(|x| x.grad().is_none()));
    }
    let x = leaf(&[1.0, 2.0]);
    let ops: [(fn(&Tensor<f64>) -> Tensor<f64>, &str); 2] =
        [(|x| x.square(), "square"), (|x| Cube::apply(x), "Cube")];
    for (f, name) in ops {
        let h = &x * 1.0;
        let y = f(&h);
        h.detach().fill(0.0).unwrap();
        match y.sum().backward() {
            Err(Error::SavedTensorChanged { op, .. }) => assert_eq!(op, name),
            other => panic!("{other:?}"),
        }
    }
}

/// A leaf whose data was changed in place `times` times.
fn changed(data: [f64; 2], times: u32) -> Tensor<f64> {
    let x = leaf(&[0.0, 0.0]);
    for _ in 0..times {
        x.detach().copy_from(&Tensor::from(data)).unwrap();
    }
    x
}

#[test]
fn an_input_changed_before_is_distinguished_from_one_changed_since() {
    for (before, since, expected) in [
        ([0, 3], 0, (0, 1, "its first input")),
        ([0, 3], 1, (3, 4, "its second input")),
        ([3, 0], 0, (3, 4, "its first input")),
        ([3, 0], 1, (0, 1, "its second input")),
        ([2, 2], 0, (2, 3, "its first input")),
        ([1, 2], 1, (2, 3, "its second input")),
    ] {
        let inputs = [changed([1.0, 2.0], before[0]), changed([3.0, 4.0], before[1])];
        let y = &inputs[0] * &inputs[1];
        let z = &inputs[0] * &inputs[1];
        z.sum().backward().unwrap();
        let values = inputs.each_ref().map(Tensor::to_vec);
        for (x, other) in [(0, 1), (1, 0)] {
            assert_eq!(inputs[x].grad().unwrap().to_vec(), values[other]);
            inputs[x].clear_grad();
        }
        inputs[since].detach().fill(0.0).unwrap();
        match y.sum().backward() {
            Err(Error::SavedTensorChanged { op: "mul", parameter, saved, found, .. }) => {
                assert_eq!((saved, found, &*parameter), expected, "{before:?}");
            }
            other => panic!("{before:?}: {other:?}"),
        }
        assert!(inputs.iter().all(|x| x.grad().is_none()));
    }
    type Op = fn(&Tensor<f64>) -> Tensor<f64>;
    let ops: [(Op, &str); 3] = [
        (|x| x.square(), "square"),
        (|x| Cube::apply(x), "Cube"),
        (|x| Huber::apply(x, &Tensor::from([0.5, 0.5])), "Huber"),
    ];
    for (f, name) in ops {
        let x = changed([1.0, 2.0], 2);
        let y = f(&x);
        f(&x).sum().backward().unwrap();
        x.clear_grad();
        x.detach().fill(0.0).unwrap();
        match y.sum().backward() {
            Err(Error::SavedTensorChanged { op, saved: 2, found: 3, .. }) => assert_eq!(op, name),
            other => panic!("{other:?}"),
        }
        assert!(x.grad().is_none());
    }
}

#[test]
fn a_parameter_is_read_as_it_is() {
    let w = autograd_core::nn::parameter(Tensor::from([2.0, 3.0_f64]));
    let x = Tensor::from([5.0, 7.0]);
    for step in 1..=3 {
        let y = (&w * &x).tanh() + &w;
        let by_hand: Vec<f64> =
            w.to_vec().iter().zip([5.0, 7.0f64]).map(|(w, x)| (w * x).tanh() + w).collect();
        for (found, by_hand) in y.to_vec().into_iter().zip(by_hand) {
            assert!((found - by_hand).abs() < 1e-15 * by_hand.abs(), "{found} {by_hand}");
        }
        y.sum().backward().unwrap();
        assert_eq!(w.grad().unwrap().shape(), [2]);
        w.clear_grad();
        w.detach().copy_from(&(w.detach() * 0.1)).unwrap();
        assert_eq!(w.to_vec().len(), 2, "step {step}");
    }
    // Earlier copies do not change.
    let before = w.detach();
    let copy = &before * 1.0;
    w.detach().fill(1.0).unwrap();
    assert_eq!(before.to_vec(), [1.0, 1.0]);
    assert!((copy.at(&[0]) - 2e-3).abs() < 1e-12);
}

#[test]
fn a_graph_is_walked_once_unless_it_is_retained() {
    let x = leaf(&[1.0, 2.0]);
    let ops: [fn(&Tensor<f64>) -> Tensor<f64>; 6] = [
        |x| x + x,
        |x| x * 2.0,
        |x| x.tanh(),
        |x| x - 1.0,
        |x| ByHand::apply(x),
        |x| Affine::apply(x),
    ];
    for f in ops {
        let y = f(&x).sum();
        let node = f(&x).graph_node().unwrap();
        node.saved_tensors().unwrap();
        let retain = autograd_core::BackwardOptions::new().retain_graph(true);
        y.backward_options(retain).unwrap();
        y.backward().unwrap();
        assert!(matches!(y.backward(), Err(Error::GraphFreed { .. })));
    }
}

#[test]
fn a_hook_of_a_node_that_is_gone_is_no_other_ones() {
    let x = leaf(&[1.0, 2.0]);
    let calls = Arc::new(AtomicUsize::new(0));
    let hook = {
        let calls = Arc::clone(&calls);
        let y = &x * 2.0;
        y.register_hook(move |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            Ok(None)
        })
        .unwrap()
    };
    // In the memory of the first one.
    let y = &x * 3.0;
    let other = y.register_hook(|_| Ok(None)).unwrap();
    assert!(!hook.remove());
    y.sum().backward().unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    assert!(other.remove());
}

#[test]
fn ranges_are_not_those_of_a_node_that_is_gone() {
    let x = leaf(&[1.0, 2.0]);
    let outside = &x * 1.0;
    let scope = detect_anomaly();
    for factor in 2..100 {
        drop((&x * f64::from(factor)).exp());
    }
    drop((&outside - 1.0).ln());
    match scope.check() {
        Err(Error::NotFinite { op: "ln", inputs, .. }) => {
            assert!(inputs[0].starts_with("input 0: shape [2], from 0.0 to 1.0, from sub at "));
        }
        other => panic!("{other:?}"),
    }
    drop(scope);
    let scope = detect_anomaly();
    drop(outside.ln() * f64::INFINITY);
    match scope.check() {
        Err(Error::NotFinite { op: "mul", inputs, .. }) => {
            assert!(inputs[0].starts_with("input 0: shape [2], from 0.0 to "), "{inputs:?}");
        }
        other => panic!("{other:?}"),
    }
}
