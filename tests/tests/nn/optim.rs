//! Optimizers against results of NumPy (`golden/optim.py`), and their documented properties.

use autograd_core::nn::{Linear, Module, parameter};
use autograd_core::optim::{
    Adam, AdamW, Lazy, Optimizer, RmsProp, Rule, Sgd, Step, clip_grad_norm, clip_grad_value,
};
use autograd_core::safetensors::{SafeTensors, StateDict};
use autograd_core::{Error, Float, Tensor, no_grad};

use crate::golden;

const START: [f64; 4] = [0.5, -1.25, 2.0, 0.0];

fn gradient<T: Float>(step: usize) -> Tensor<T> {
    let numbers = (0..4).map(|i| ((7 * i + 3 * step) % 11) as f64 / 4.0 - 1.25);
    Tensor::from(numbers.map(T::from_f64).collect::<Vec<T>>())
}

fn start<T: Float>() -> Tensor<T> {
    parameter(Tensor::from(START.map(T::from_f64)))
}

fn assert_close<T: Float>(found: &Tensor<T>, expected: &[f64], tolerance: f64, what: &str) {
    for (found, expected) in found.to_vec().into_iter().zip(expected) {
        let found = found.into_f64();
        assert!(
            (found - expected).abs() <= tolerance * expected.abs().max(1.0),
            "{what}: {found} is not {expected}"
        );
    }
}

/// In both element types, with the state saved and loaded half-way.
fn assert_golden<R: Rule>(name: &str, rule: R) {
    fn run<T: Float, R: Rule>(name: &str, rule: R, tolerance: f64) {
        let p = start::<T>();
        let mut optimizer = Optimizer::new(&p, rule.clone());
        let expected = golden(name);
        assert_eq!(expected.len(), 6, "{name}");
        for (i, expected) in expected.iter().enumerate() {
            if i == 3 {
                let mut file = SafeTensors::new();
                file.insert_under("optimizer", optimizer.state_dict());
                let file = SafeTensors::from_bytes(&file.to_bytes().unwrap()).unwrap();
                optimizer = Optimizer::new(&p, rule.clone());
                optimizer.load_state_dict(&file.under("optimizer")).unwrap();
            }
            p.set_grad(Some(&gradient::<T>(i + 1))).unwrap();
            optimizer.step().unwrap();
            assert_close(&p, expected, tolerance, name);
        }
    }
    run::<f64, R>(name, rule.clone(), 1e-14);
    run::<f32, R>(name, rule, 1e-6);
}

#[test]
fn sgd_is_numpy_s() {
    assert_golden("sgd", Sgd::new(0.1));
    assert_golden("sgd_weight_decay", Sgd::new(0.1).weight_decay(0.3));
    assert_golden("sgd_momentum", Sgd::new(0.1).momentum(0.9));
    let dampened = Sgd::new(0.1).momentum(0.9).dampening(0.4).weight_decay(0.1);
    assert_golden("sgd_dampening", dampened);
    assert_golden("sgd_nesterov", Sgd::new(0.1).momentum(0.8).weight_decay(0.1).nesterov(true));
}

#[test]
fn adam_is_numpy_s() {
    assert_golden("adam", Adam::new(0.01));
    assert_golden("adam_all", Adam::new(0.1).betas(0.7, 0.95).eps(0.01).weight_decay(0.2));
    assert_golden("adamw", AdamW::new(0.01));
    assert_golden("adamw_all", AdamW::new(0.1).betas(0.7, 0.95).eps(0.01).weight_decay(0.5));
}

#[test]
fn long_parameters_of_every_layout_move_like_short_ones() {
    let whole = Tensor::<f64>::arange(6000).reshape([60, 100]) / 1000.0;
    for layout in [whole.clone(), whole.transpose(), whole.flip(0), whole.narrow(1, 3, 50)] {
        let p = parameter(layout.clone());
        let mut adam = Optimizer::new(&p, Adam::new(0.1));
        for _ in 0..3 {
            p.clear_grad();
            // The gradient is a transpose.
            (p.transpose().square() * 0.5).sum().backward().unwrap();
            adam.step().unwrap();
        }
        let one = parameter(Tensor::from(layout.to_vec()[777]));
        let mut adam = Optimizer::new(&one, Adam::new(0.1));
        for _ in 0..3 {
            one.clear_grad();
            (one.square() * 0.5).backward().unwrap();
            adam.step().unwrap();
        }
        assert_eq!(p.shape(), layout.shape());
        assert!((p.to_vec()[777] - one.item()).abs() < 1e-15);
    }
}

#[test]
fn parameters_of_both_types_move_together_and_those_without_a_gradient_stay() {
    let (a, b) = (parameter(Tensor::from(1.0_f32)), parameter(Tensor::from(1.0_f64)));
    let c = parameter(Tensor::from(1.0_f32));
    let model = (a.clone(), b.clone(), c.clone());
    let mut sgd = Optimizer::new(&model, Sgd::new(0.5));
    a.set_grad(Some(&Tensor::from(1.0))).unwrap();
    b.set_grad(Some(&Tensor::from(1.0))).unwrap();
    sgd.step().unwrap();
    assert_eq!((a.item(), b.item(), c.item()), (0.5, 0.5, 1.0));
    assert!(a.grad().is_some(), "a step keeps the gradients");
    sgd.clear_grad();
    assert!(a.grad().is_none() && b.grad().is_none());
    sgd.step().unwrap();
    assert_eq!((a.item(), b.item(), c.item()), (0.5, 0.5, 1.0));
}

#[test]
fn frozen_parameters_stay() {
    let model = (parameter(Tensor::from(1.0_f32)), parameter(Tensor::from(1.0_f32)));
    let mut adam = Optimizer::new(&model, AdamW::new(0.1));
    (&model.0 * &model.1).backward().unwrap();
    model.0.set_stop_gradient(true);
    adam.step().unwrap();
    assert_eq!(model.0.item(), 1.0);
    assert!(model.1.item() < 0.95);
    let state = adam.state_dict();
    let of_first: Vec<_> = state.keys().filter(|name| !name.starts_with("1.")).collect();
    assert_eq!(of_first, ["0.step"]);
    assert_eq!(state["0.step"].downcast_ref::<i64>().unwrap().item(), 0);
}

#[test]
fn a_tensor_in_two_places_moves_once() {
    let p = parameter(Tensor::from(1.0_f32));
    let mut sgd = Optimizer::new(&[p.clone(), p.clone()], Sgd::new(0.25));
    p.set_grad(Some(&Tensor::from(1.0))).unwrap();
    sgd.step().unwrap();
    assert_eq!(p.item(), 0.75);
}

#[test]
fn groups_have_rules_of_their_own() {
    let model = [Linear::<f64>::new(1, 1), Linear::new(1, 1)];
    no_grad().run(|| {
        model.parameters().iter().for_each(|p| p.downcast_ref::<f64>().unwrap().fill(1.0).unwrap())
    });
    let mut sgd = Optimizer::new(&model, Sgd::new(0.1))
        .group(|name| name.ends_with("bias"), Sgd::new(0.2))
        .group(|name| name == "1.bias", Sgd::new(0.3));
    for p in model.parameters() {
        p.downcast_ref::<f64>()
            .unwrap()
            .set_grad(Some(&Tensor::ones([1; 2][..p.shape().len()].to_vec())))
            .unwrap();
    }
    let values = || -> Vec<f64> {
        model.parameters().iter().map(|p| p.downcast_ref::<f64>().unwrap().to_vec()[0]).collect()
    };
    sgd.step().unwrap();
    assert_eq!(values(), [0.9, 0.8, 0.9, 0.7]);
    sgd.set_learning_rate(0.0);
    sgd.rules_mut()[2] = Sgd::new(0.5);
    sgd.step().unwrap();
    assert_eq!(values(), [0.9, 0.8, 0.9, 0.7 - 0.5]);
}

#[test]
fn after_an_error_nothing_has_moved() {
    let fails = |rule: Sgd, words: &str| {
        let p = parameter(Tensor::from(1.0_f64));
        let mut sgd = Optimizer::new(&p, Sgd::new(0.1)).group(|_| false, rule);
        p.set_grad(Some(&Tensor::from(1.0))).unwrap();
        assert_eq!(sgd.step().unwrap_err().to_string(), words);
        assert_eq!(p.item(), 1.0);
    };
    fails(Sgd::new(-1.0), "Sgd: `learning_rate` must be 0 or more, and finite, found -1");
    fails(Sgd::new(f64::NAN), "Sgd: `learning_rate` must be 0 or more, and finite, found NaN");
    fails(
        Sgd::new(0.1).momentum(-0.5),
        "Sgd: `momentum` must be 0 or more, and finite, found -0.5",
    );
    fails(Sgd::new(0.1).nesterov(true), "Sgd: `momentum` must be above 0 for Nesterov's, found 0");
    let dampened = Sgd::new(0.1).momentum(0.9).dampening(0.1).nesterov(true);
    fails(dampened, "Sgd: `dampening` must be 0 with Nesterov's momentum, found 0.1");
    let step = |rule| Optimizer::new(&start::<f32>(), rule).step().unwrap_err().to_string();
    assert_eq!(step(Adam::new(0.1).betas(1.0, 0.9)), "Adam: `beta1` must be in [0, 1), found 1");
    assert_eq!(
        step(Adam::new(0.1).eps(-1.0)),
        "Adam: `eps` must be 0 or more, and finite, found -1"
    );

    // The second parameter cannot be changed, so the first one is not either.
    let p = parameter(Tensor::from(1.0_f64));
    let mut sgd = Optimizer::new(&(p.clone(), &p * 2.0), Sgd::new(0.1));
    p.set_grad(Some(&Tensor::from(1.0))).unwrap();
    let words = "Sgd: parameter `1` was computed by an op; only a leaf can be moved";
    assert_eq!(sgd.step().unwrap_err().to_string(), words);
    assert_eq!(p.item(), 1.0);
}

#[test]
fn a_graph_that_a_step_outdated_says_so() {
    let p = parameter(Tensor::from(vec![2.0_f64]));
    let loss = p.square().sum();
    p.set_grad(Some(&Tensor::from(vec![1.0]))).unwrap();
    Optimizer::new(&p, Sgd::new(0.1)).step().unwrap();
    let words = loss.backward().unwrap_err().to_string();
    assert!(words.starts_with("square") && words.contains("changed in place"), "{words}");
}

#[test]
fn other_handles_see_the_step_and_earlier_reads_do_not() {
    let p = parameter(Tensor::<f32>::ones([1000]));
    let (handle, detached) = (p.clone(), p.detach());
    let kept = p.reshape([10, 100]);
    let seen = p.view();
    p.set_grad(Some(&Tensor::ones([1000]))).unwrap();
    Optimizer::new(&handle, Sgd::new(0.5)).step().unwrap();
    assert!(seen.iter().all(|&x| x == 1.0));
    assert!(kept.to_vec().iter().all(|&x| x == 1.0));
    assert!(p.to_vec().iter().chain(&detached.to_vec()).all(|&x| x == 0.5));
}

#[test]
fn state_of_another_model_is_refused_and_changes_nothing() {
    let model = [Linear::<f32>::new(2, 3), Linear::new(3, 1)];
    let mut adam = Optimizer::new(&model, Adam::new(0.1));
    model[0].forward(&Tensor::ones([1, 2])).sum().backward().unwrap();
    adam.step().unwrap();
    let state = adam.state_dict();
    let names: Vec<&String> = state.keys().collect();
    let expected = [
        "0.bias.exp_avg",
        "0.bias.exp_avg_sq",
        "0.bias.step",
        "0.weight.exp_avg",
        "0.weight.exp_avg_sq",
        "0.weight.step",
        "1.bias.step",
        "1.weight.step",
    ];
    assert_eq!(names, expected, "parameters that never moved have a count of 0 alone");

    let mut wrong = state.clone();
    wrong.remove("0.bias.step");
    wrong.insert("0.weight.exp_avg".into(), Tensor::<f64>::zeros([2, 3]).into());
    wrong.insert("2.weight.exp_avg".into(), Tensor::<f32>::zeros([2, 3]).into());
    let words = "load_state_dict: the tensors are not those that are needed\
        \n  missing: `0.bias.step`\
        \n  not needed: `2.weight.exp_avg`\
        \n  `0.weight.exp_avg` must be [3, 2] of float32, found [2, 3] of float64";
    assert_eq!(adam.load_state_dict(&wrong).unwrap_err().to_string(), words);
    let mut negative = state.clone();
    negative.insert("0.bias.step".into(), Tensor::from(-1_i64).into());
    let words = "load_state_dict: `step` must be 0 or more, found -1 in `0.bias.step`";
    assert_eq!(adam.load_state_dict(&negative).unwrap_err().to_string(), words);
    let same = |a: &StateDict, b: &StateDict| format!("{a:?}") == format!("{b:?}");
    assert!(same(&adam.state_dict(), &state));

    let at_first = Optimizer::new(&model, Adam::new(0.1)).state_dict();
    adam.load_state_dict(&at_first).unwrap();
    assert!(same(&adam.state_dict(), &at_first));
    adam.load_state_dict(&state).unwrap();
    assert!(same(&adam.state_dict(), &state));
}

#[test]
fn state_under_a_misspelt_prefix_is_refused_by_every_rule_that_has_any() {
    fn check<R: Rule>(rule: R, missing: &[&str]) {
        let p = parameter(Tensor::from([1.0]));
        let mut optimizer = Optimizer::new(&p, rule.clone());
        for _ in 0..2 {
            let mut file = SafeTensors::new();
            file.insert_under("optimizer", optimizer.state_dict());
            let mut resumed = Optimizer::new(&p, rule.clone());
            match resumed.load_state_dict(&file.under("optimiser")) {
                Err(Error::StateDict { missing: found, .. }) => assert_eq!(found, missing),
                found => assert!(found.is_ok() && missing.is_empty(), "{found:?}"),
            }
            resumed.load_state_dict(&file.under("optimizer")).unwrap();
            assert_eq!(
                format!("{:?}", resumed.state_dict()),
                format!("{:?}", optimizer.state_dict())
            );
            p.set_grad(Some(&Tensor::from([1.0]))).unwrap();
            optimizer.step().unwrap();
        }
    }
    check(Sgd::new(0.1), &[]);
    check(Sgd::new(0.1).momentum(0.9), &["0.momentum_buffer"]);
    check(Adam::new(0.1), &["0.exp_avg", "0.exp_avg_sq", "0.step"]);
    check(RmsProp::new(0.1), &["0.square_avg"]);
}

#[test]
fn state_of_other_names_starts_anew_when_the_rule_is_changed() {
    let step = |optimizer: &mut Optimizer<RmsProp>, p: &Tensor<f64>| {
        p.clear_grad();
        p.square().sum().backward().unwrap();
        optimizer.step().unwrap();
    };
    let of_first = RmsProp::new(0.1).momentum(0.9);
    let of_second = RmsProp::new(0.1).centered(true);
    let p = parameter(Tensor::from([1.0]));
    let mut changed = Optimizer::new(&p, of_first);
    step(&mut changed, &p);
    changed.rules_mut()[0] = of_second;
    let other = parameter(p.copy().detach());
    let mut new = Optimizer::new(&other, of_second);
    step(&mut changed, &p);
    step(&mut new, &other);
    assert_eq!(p.to_vec(), other.to_vec());
}

#[test]
fn the_state_of_a_changed_rule_can_be_loaded_and_is_that_of_a_new_one() {
    fn check<R: Rule>(first: R, second: R) {
        let p = parameter(Tensor::from([1.0, 2.0]));
        p.set_grad(Some(&Tensor::from([0.5, -1.0]))).unwrap();
        let mut changed = Optimizer::new(&p, first);
        changed.step().unwrap();
        changed.step().unwrap();
        changed.rules_mut()[0] = second.clone();
        let (state, new) = (changed.state_dict(), Optimizer::new(&p, second.clone()).state_dict());
        assert_eq!(format!("{state:?}"), format!("{new:?}"));

        let other = parameter(p.copy().detach());
        other.set_grad(p.grad().as_ref()).unwrap();
        let mut loaded = Optimizer::new(&other, second);
        loaded.load_state_dict(&state).unwrap();
        for _ in 0..2 {
            changed.step().unwrap();
            loaded.step().unwrap();
        }
        assert_eq!(p.to_vec(), other.to_vec());
    }
    let (sgd, rms) = (Sgd::new(0.1), RmsProp::new(0.1));
    let sgds = [sgd, sgd.momentum(0.9).dampening(0.5)];
    let centered = rms.centered(true);
    let rms = [rms, rms.momentum(0.9), centered, centered.momentum(0.9)];
    check(sgds[0], sgds[1]);
    check(sgds[1], sgds[0]);
    for (first, second) in (0..16).map(|i| (i / 4, i % 4)).filter(|(first, second)| first != second)
    {
        check(rms[first], rms[second]);
    }
}

#[test]
fn loaded_state_is_no_alias_of_the_file() {
    let p = start::<f32>();
    let mut sgd = Optimizer::new(&p, Sgd::new(0.1).momentum(0.9));
    p.set_grad(Some(&gradient(1))).unwrap();
    sgd.step().unwrap();
    let state = sgd.state_dict();
    let before = state["0.momentum_buffer"].downcast_ref::<f32>().unwrap().to_vec();
    sgd.load_state_dict(&state).unwrap();
    sgd.step().unwrap();
    assert_eq!(state["0.momentum_buffer"].downcast_ref::<f32>().unwrap().to_vec(), before);
}

#[test]
fn gradients_are_clipped_by_their_common_norm() {
    let (a, b) = (parameter(Tensor::<f32>::zeros([2, 2])), parameter(Tensor::<f64>::zeros([3])));
    let unused = parameter(Tensor::<f32>::zeros([1]));
    let model = (a.clone(), b.clone(), unused, a.clone());
    let set = || {
        a.set_grad(Some(&Tensor::full([2, 2], 2.0))).unwrap();
        b.set_grad(Some(&Tensor::from(vec![0.0, 3.0, 0.0]))).unwrap();
    };
    set();
    let handle = a.grad().unwrap();
    assert_eq!(clip_grad_norm(&model, 1.0).unwrap(), 5.0);
    let factor = 1.0 / (5.0 + 1e-6);
    assert_close(&a.grad().unwrap(), &[2.0 * factor; 4], 1e-7, "a");
    assert_close(&b.grad().unwrap(), &[0.0, 3.0 * factor, 0.0], 1e-15, "b");
    assert_eq!(handle.to_vec(), [2.0; 4], "a handle keeps what it has");

    set();
    assert_eq!(clip_grad_norm(&model, 10.0).unwrap(), 5.0);
    assert_eq!(b.grad().unwrap().to_vec(), [0.0, 3.0, 0.0]);
    clip_grad_value(&model, 2.5).unwrap();
    assert_eq!(b.grad().unwrap().to_vec(), [0.0, 2.5, 0.0]);
    assert_eq!(a.grad().unwrap().to_vec(), [2.0; 4]);

    b.set_grad(Some(&Tensor::from(vec![f64::NAN, -9.0, 9.0]))).unwrap();
    let error = clip_grad_norm(&model, 1.0).unwrap_err().to_string();
    assert_eq!(error, "clip_grad_norm: norm of the gradients must be finite, found NaN");
    assert_eq!(a.grad().unwrap().to_vec(), [2.0; 4]);
    clip_grad_value(&model, 1.0).unwrap();
    let clipped = b.grad().unwrap().to_vec();
    assert!(clipped[0].is_nan() && clipped[1..] == [-1.0, 1.0]);
    assert!(clip_grad_norm(&model, -1.0).is_err() && clip_grad_value(&model, f64::NAN).is_err());
}

#[test]
fn a_step_without_a_parameter_that_wants_a_gradient_is_refused() {
    let weights = vec![Tensor::from([1.0]), Tensor::from([2.0])];
    let mut optimizer = Optimizer::new(&weights, Sgd::new(0.1));
    let error = optimizer.step().unwrap_err().to_string();
    assert!(error.starts_with("Sgd: no parameter wants a gradient"), "{error}");
    weights[1].set_stop_gradient(false);
    optimizer.step().unwrap();
    Optimizer::new(&Vec::<Tensor<f64>>::new(), Sgd::new(0.1)).step().unwrap();
}

#[test]
fn a_list_of_parameters_is_optimized_as_the_module_is() {
    let net = Linear::<f64>::new(2, 1);
    let before = net.weight.to_vec();
    net.forward(&Tensor::from([[1.0, 2.0]])).sum().backward().unwrap();
    Optimizer::new(&net.parameters(), Sgd::new(0.5)).step().unwrap();
    assert_eq!(net.weight.to_vec(), [before[0] - 0.5, before[1] - 1.0]);
}

/// Rows with a gradient change as by the rule itself; others keep their numbers and their state.
#[test]
fn a_lazy_rule_leaves_rows_without_a_gradient() {
    fn steps<R: Rule>(rule: R, gradients: &[[f64; 8]]) -> (Vec<f64>, Vec<f64>) {
        let table = parameter(Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]));
        let mut optimizer = Optimizer::new(&table, rule);
        for gradient in gradients {
            let gradient = Tensor::from_vec([4, 2], gradient.to_vec()).unwrap();
            (&table * gradient).sum().backward().unwrap();
            optimizer.step().unwrap();
            table.clear_grad();
        }
        let state = optimizer.state_dict();
        let average = state.iter().find(|(name, _)| name.contains("exp_avg")).unwrap().1;
        (table.to_vec(), average.downcast_ref::<f64>().unwrap().to_vec())
    }
    let first = [1.0, -1.0, 0.0, 0.0, 2.0, 0.0, f64::NAN, 0.0];
    let second = [0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let (lazy, lazy_state) = steps(Lazy(Adam::new(0.1)), &[first, second]);
    let (dense, dense_state) = steps(Adam::new(0.1), &[first, second]);
    let (once, once_state) = steps(Adam::new(0.1), &[first]);
    assert_eq!((&lazy[..2], &lazy_state[..2]), (&dense[..2], &dense_state[..2]));
    assert_eq!((&lazy[2..4], &lazy_state[2..4]), (&[3.0, 4.0][..], &[0.0, 0.0][..]));
    assert_eq!((&lazy[4..6], &lazy_state[4..6]), (&once[4..6], &once_state[4..6]));
    assert!(dense[4] != once[4], "Adam itself goes on without a gradient");
    // An element of NaN is no element of 0.
    assert!(lazy[6].is_nan() && lazy[7] == once[7]);
}

#[test]
fn a_rule_sees_the_shape_of_a_parameter() {
    /// Divides each row's gradient by its length.
    #[derive(Clone)]
    struct Rows;

    impl Rule for Rows {
        const NAME: &'static str = "Rows";

        fn rate(&self) -> f64 {
            1.0
        }

        fn set_rate(&mut self, _: f64) {}

        fn update<T: Float>(&self, step: Step<'_, T>) {
            let width = step.shape().last().copied().unwrap_or(1);
            let (parameter, gradient, _) = step.into_slices();
            for (p, g) in parameter.chunks_mut(width).zip(gradient.chunks(width)) {
                let norm = g.iter().map(|&g| g * g).fold(T::ZERO, |a, b| a + b).sqrt();
                p.iter_mut().zip(g).for_each(|(p, &g)| *p = *p - g / norm);
            }
        }
    }

    for lazy in [false, true] {
        let p = parameter(Tensor::from([[0.0, 0.0], [0.0, 0.0]]));
        (&p * Tensor::from([[3.0, 4.0], [0.0, 2.0]])).sum().backward().unwrap();
        match lazy {
            true => Optimizer::new(&p, Lazy(Rows)).step().unwrap(),
            false => Optimizer::new(&p, Rows).step().unwrap(),
        }
        assert_eq!(p.to_vec(), [-0.6, -0.8, 0.0, -1.0]);
    }
}
