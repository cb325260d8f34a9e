//! User-defined rules, schedules, and batches, against PyTorch (`golden/training.py`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use autograd_core::data::{DataLoader, Dataset};
use autograd_core::nn::{Linear, Module, parameter};
use autograd_core::optim::schedule::{
    Constant, Cosine, Exponential, Linear as Line, Schedule, Steps,
};
use autograd_core::optim::{Optimizer, RmsProp, Rule, Sgd, Step};
use autograd_core::{Error, Float, Generator, Result, Tensor};

fn golden(name: &str) -> Vec<f64> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/training.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| line.split(' '));
    let line = lines.find_map(|mut words| (words.next() == Some(name)).then_some(words));
    line.unwrap_or_else(|| panic!("no figures of {name}")).map(|x| x.parse().unwrap()).collect()
}

fn assert_close(name: &str, found: &[f64], right: &[f64], tolerance: f64) {
    assert_eq!(found.len(), right.len(), "{name}");
    for (found, right) in found.iter().zip(right) {
        let close = (found - right).abs() <= tolerance * right.abs().max(1.0);
        assert!(close, "{name}: {found} is not {right}");
    }
}

fn gradient<T: Float>(step: usize) -> Tensor<T> {
    let numbers = (0..4).map(|i| ((7 * i + 3 * step) % 11) as f64 / 4.0 - 1.25);
    Tensor::from(numbers.map(T::from_f64).collect::<Vec<T>>())
}

/// RMSprop as a user writes it, with other things that a rule may do.
#[derive(Clone)]
struct Own {
    rate: f64,
    alpha: f64,
    momentum: f64,
    eps: f64,
    /// Instead of an elementwise pass.
    by_slices: bool,
    before: Arc<dyn Fn(u64) + Send + Sync>,
}

impl Own {
    fn new() -> Self {
        let before = Arc::new(|_| {});
        Self { rate: 0.1, alpha: 0.9, momentum: 0.8, eps: 1e-3, by_slices: false, before }
    }
}

impl Rule for Own {
    const NAME: &'static str = "Own";

    fn rate(&self) -> f64 {
        self.rate
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    fn state(&self) -> &'static [&'static str] {
        &["square_avg", "momentum_buffer"]
    }

    fn check(&self) -> Result<()> {
        match self.rate >= 0.0 {
            true => Ok(()),
            false => Err(Error::Value {
                op: Self::NAME,
                parameter: "rate",
                expected: "0 or more".into(),
                found: self.rate.to_string(),
            }),
        }
    }

    fn update<T: Float>(&self, step: Step<'_, T>) {
        (self.before)(step.count());
        assert_eq!(step.has_new_state(), step.count() == 1);
        let [rate, alpha, intake, momentum, eps] =
            [self.rate, self.alpha, 1.0 - self.alpha, self.momentum, self.eps].map(T::from_f64);
        let one = |[p, v, b]: [T; 3], g: T| {
            let v = alpha * v + intake * g * g;
            let b = momentum * b + g / (v.sqrt() + eps);
            [p - rate * b, v, b]
        };
        if !self.by_slices {
            return step.each(one);
        }
        let (parameter, gradient, mut state) = step.into_slices();
        assert_eq!(state.len(), 2);
        for (i, &g) in gradient.iter().enumerate() {
            let new = one([parameter[i], state[0][i], state[1][i]], g);
            [parameter[i], state[0][i], state[1][i]] = new;
        }
    }
}

/// Six steps, with the state saved and loaded half-way.
fn steps<T: Float, R: Rule>(rule: R) -> Vec<f64> {
    let p = parameter(Tensor::from([0.5, -1.25, 2.0, 0.0].map(T::from_f64)));
    let mut optimizer = Optimizer::new(&p, rule.clone());
    let mut found = Vec::new();
    for t in 1..=6 {
        if t == 4 {
            let state = optimizer.state_dict();
            optimizer = Optimizer::new(&p, rule.clone());
            optimizer.load_state_dict(&state).unwrap();
        }
        p.set_grad(Some(&gradient::<T>(t))).unwrap();
        optimizer.step().unwrap();
        found.extend(p.to_vec().into_iter().map(T::into_f64));
    }
    found
}

#[test]
fn rmsprop_is_pytorch_s_also_written_outside_of_the_crate() {
    fn both<R: Rule>(name: &str, rule: R) {
        assert_close(name, &steps::<f64, R>(rule.clone()), &golden(name), 1e-14);
        assert_close(name, &steps::<f32, R>(rule), &golden(name), 2e-6);
    }
    both("rmsprop", RmsProp::new(0.01));
    let momentum = RmsProp::new(0.1).alpha(0.9).momentum(0.8).eps(1e-3);
    both("rmsprop_momentum", momentum);
    both("rmsprop_momentum", Own::new());
    both("rmsprop_momentum", Own { by_slices: true, ..Own::new() });
    let centered = RmsProp::new(0.1).alpha(0.7).centered(true);
    both("rmsprop_centered", centered.eps(1e-2).weight_decay(0.2));
    both("rmsprop_all", centered.momentum(0.5).eps(0.1).weight_decay(0.1));
    assert_eq!(steps::<f64, _>(momentum), steps::<f64, _>(Own::new()));

    let words = |rule: RmsProp| {
        let p = parameter(Tensor::from(1.0));
        Optimizer::new(&p, rule).step().unwrap_err().to_string()
    };
    assert_eq!(words(momentum.alpha(1.5)), "RmsProp: `alpha` must be in [0, 1], found 1.5");
    assert_eq!(
        words(RmsProp::new(-0.1)),
        "RmsProp: `learning_rate` must be 0 or more, and finite, found -0.1"
    );
}

#[test]
fn a_rule_of_a_user_moves_what_those_of_the_crate_move() {
    // Long tensors in parts, short, transposed, both types, frozen, without a gradient.
    let long = Tensor::<f32>::arange(100_000).reshape([100, 1000]) / 1e5;
    let model = || {
        let frozen = parameter(Tensor::from([1.0_f32]));
        let unused = parameter(Tensor::from([1.0_f32]));
        let parts = (parameter(long.transpose()), parameter(Tensor::from([0.5_f64, 2.0])));
        let loss = parts.0.square().sum() * &frozen.sum() + unused.detach().sum();
        loss.backward().unwrap();
        parts.1.square().sum().backward().unwrap();
        frozen.set_stop_gradient(true);
        (parts.0, parts.1, frozen, unused)
    };
    let (ours, own) = (model(), model());
    let rule = RmsProp::new(0.1).alpha(0.9).momentum(0.8).eps(1e-3);
    let (mut by_ours, mut by_own) = (Optimizer::new(&ours, rule), Optimizer::new(&own, Own::new()));
    let handle = own.0.clone();
    for _ in 0..3 {
        by_ours.step().unwrap();
        by_own.step().unwrap();
    }
    assert_eq!(own.0.to_vec(), ours.0.to_vec());
    assert_eq!(own.1.to_vec(), ours.1.to_vec());
    assert_eq!((own.2.item(), own.3.item()), (1.0, 1.0));
    assert_eq!(handle.to_vec(), ours.0.to_vec(), "the tensor is the one it was");
    let names: Vec<String> = by_own.state_dict().into_keys().collect();
    let expected = ["momentum_buffer", "square_avg", "step"];
    let moved = ["0", "1"].map(|name| expected.map(|what| format!("{name}.{what}"))).concat();
    let expected: Vec<_> = moved.into_iter().chain(["2.step".into(), "3.step".into()]).collect();
    assert_eq!(names, expected);
    assert_eq!(by_own.rules()[0].rate(), 0.1);
    by_own.set_learning_rate(0.0);
    let before = own.1.to_vec();
    by_own.rules_mut()[0].momentum = 0.0;
    by_own.step().unwrap();
    assert_eq!(own.1.to_vec(), before);
}

#[test]
fn a_rule_that_panics_or_refuses_changes_nothing() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let fails_at = Arc::new(AtomicUsize::new(4));
    let limit = Arc::clone(&fails_at);
    let before = Arc::new(move |_| {
        let call = seen.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(call != limit.load(Ordering::Relaxed), "on purpose");
    });
    let model = [0.5, 1.5, 2.5].map(|x| parameter(Tensor::from([x; 100])));
    let mut optimizer = Optimizer::new(&model, Own { before, ..Own::new() });
    let values = || model.iter().flat_map(|p| p.to_vec()).collect::<Vec<f64>>();
    let backward = || {
        model.clear_grad();
        model.iter().for_each(|p| p.square().sum().backward().unwrap());
    };
    backward();
    optimizer.step().unwrap();
    let (moved, state) = (values(), format!("{:?}", optimizer.state_dict()));
    // In the second step the rule panics at each parameter in turn.
    for at in 1..=3 {
        calls.store(0, Ordering::Relaxed);
        fails_at.store(at, Ordering::Relaxed);
        backward();
        let panic = catch_unwind(AssertUnwindSafe(|| optimizer.step())).unwrap_err();
        assert!(panic.downcast::<&str>().is_ok_and(|words| *words == "on purpose"));
        assert_eq!(values(), moved, "at {at}");
        assert_eq!(format!("{:?}", optimizer.state_dict()), state, "at {at}");
    }
    fails_at.store(usize::MAX, Ordering::Relaxed);
    optimizer.set_learning_rate(-1.0);
    let words = optimizer.step().unwrap_err().to_string();
    assert_eq!(words, "Own: `rate` must be 0 or more, found -1");
    assert_eq!(values(), moved);
    // Then it continues as if nothing had happened.
    optimizer.set_learning_rate(0.1);
    optimizer.step().unwrap();
    let other = parameter(Tensor::from([0.5; 100]));
    let mut undisturbed = Optimizer::new(&other, Own::new());
    for _ in 0..2 {
        other.clear_grad();
        other.square().sum().backward().unwrap();
        undisturbed.step().unwrap();
    }
    assert_eq!(values()[..100], other.to_vec());

    // A panic on the threads that share a long parameter.
    #[derive(Clone)]
    struct Refuses;
    impl Rule for Refuses {
        const NAME: &'static str = "Refuses";
        fn rate(&self) -> f64 {
            0.0
        }
        fn set_rate(&mut self, _: f64) {}
        fn update<T: Float>(&self, step: Step<'_, T>) {
            let limit = T::from_f64(3e6);
            step.each(|[p], g| {
                assert!(p < limit, "too large");
                [p - g]
            });
        }
    }
    let p = parameter(Tensor::<f32>::arange(4_000_000));
    p.set_grad(Some(&Tensor::ones([4_000_000]))).unwrap();
    let mut optimizer = Optimizer::new(&p, Refuses);
    assert!(catch_unwind(AssertUnwindSafe(|| optimizer.step())).is_err());
    assert_eq!((p.at(&[0]), p.at(&[3_999_999])), (0.0, 3_999_999.0));
}

#[test]
fn no_tensor_is_locked_while_a_rule_of_a_user_runs() {
    let p = parameter(Tensor::from([1.0, 2.0]));
    let inner = p.clone();
    // It reads the parameter, on another thread too, and changes it, which the step overwrites.
    let before = Arc::new(move |count: u64| {
        let on_thread = inner.clone();
        let seen = std::thread::spawn(move || on_thread.to_vec()).join().unwrap();
        assert_eq!(seen, inner.to_vec());
        assert!(inner.grad().is_some() && count > 0);
        autograd_core::no_grad().run(|| inner.fill(7.0)).unwrap();
    });
    let mut optimizer = Optimizer::new(&p, Own { before, momentum: 0.0, ..Own::new() });
    p.square().sum().backward().unwrap();
    optimizer.step().unwrap();
    assert!(p.to_vec()[0] < 1.0 && p.to_vec()[1] < 2.0 && p.to_vec()[1] > 1.0);
}

#[test]
fn a_rule_without_state_goes_on_at_its_count() {
    /// Steps of the length `1 / count`.
    #[derive(Clone)]
    struct Harmonic;
    impl Rule for Harmonic {
        const NAME: &'static str = "Harmonic";
        fn rate(&self) -> f64 {
            1.0
        }
        fn set_rate(&mut self, _: f64) {}
        fn update<T: Float>(&self, step: Step<'_, T>) {
            assert!(!step.has_new_state());
            let rate = T::from_f64(1.0 / step.count() as f64);
            step.each(|[p], g| [p - rate * g]);
        }
    }
    let p = parameter(Tensor::from([4.0]));
    let mut optimizer = Optimizer::new(&p, Harmonic);
    let at_first = optimizer.state_dict();
    assert_eq!(at_first["0.step"].downcast_ref::<i64>().unwrap().item(), 0, "it was never moved");
    p.set_grad(Some(&Tensor::from([1.0]))).unwrap();
    optimizer.step().unwrap();
    let state = optimizer.state_dict();
    assert_eq!(state.keys().collect::<Vec<_>>(), ["0.step"]);
    let mut resumed = Optimizer::new(&p, Harmonic);
    resumed.load_state_dict(&state).unwrap();
    resumed.step().unwrap();
    assert_eq!(p.to_vec(), [2.5]);
    let negative = [("0.step".to_owned(), Tensor::from(-1_i64).into())].into();
    let error = resumed.load_state_dict(&negative).unwrap_err();
    assert_eq!(
        error.to_string(),
        "load_state_dict: `step` must be 0 or more, found -1 in `0.step`"
    );
}

#[test]
fn a_pass_over_other_elements_than_the_rule_has_is_refused() {
    #[derive(Clone)]
    struct Wrong;
    impl Rule for Wrong {
        const NAME: &'static str = "Wrong";
        fn rate(&self) -> f64 {
            0.0
        }
        fn set_rate(&mut self, _: f64) {}
        fn update<T: Float>(&self, step: Step<'_, T>) {
            step.each(|[p, v], g| [p - g, v]);
        }
    }
    let p = parameter(Tensor::from([1.0]));
    p.set_grad(Some(&p)).unwrap();
    let mut optimizer = Optimizer::new(&p, Wrong);
    let panic = catch_unwind(AssertUnwindSafe(|| optimizer.step())).unwrap_err();
    let expected = "Step::each: the function takes 2 elements, but there are 1: the parameter's and \
                    those that `Rule::state` names";
    assert_eq!(*panic.downcast::<String>().unwrap(), expected);
    assert_eq!(p.item(), 1.0);
}

#[test]
fn schedules_are_pytorch_s() {
    let is = |name: &str, schedule: &dyn Schedule| {
        let right = golden(name);
        let found: Vec<f64> = (0..right.len() as u64).map(|step| schedule.at(step)).collect();
        assert_close(name, &found, &right, 1e-15);
    };
    let (steps, decay) = (Steps::new(0.1, 3, 0.5), Exponential::new(0.1, 0.9));
    is("step", &steps);
    is("linear", &Line::new(0.1, 0.02, 8));
    is("cosine", &Cosine::new(0.1, 0.01, 11));
    is("exponential", &decay);
    is("then", &Steps::new(0.1, 2, 0.5).then(5, decay));
    is("warm_up", &decay.warm_up(3));
    is("times", &steps.times(|step: u64| 0.9_f64.powf(step as f64)));

    // At and after the end, and for empty intervals.
    let cosine = Cosine::new(1.0, 0.25, 4);
    assert_eq!([0, 4, 5, u64::MAX].map(|step| cosine.at(step)), [1.0, 0.25, 0.25, 0.25]);
    assert_eq!(Line::new(1.0, 0.5, 0).at(0), 0.5);
    assert_eq!(Steps::new(1.0, 0, 0.5).at(2), 0.25);
    assert_eq!(Constant(3.0).warm_up(0).at(0), 3.0);
    assert_eq!(Constant(3.0).then(0, Constant(4.0)).at(0), 4.0);
    let boxed: Vec<Box<dyn Schedule>> = vec![Box::new(cosine), Box::new(|_: u64| 2.0)];
    assert_eq!(boxed[1].at(7), 2.0);
    assert_eq!(cosine.then(4, Constant(9.0)).warm_up(2).at(6), 9.0);

    let p = parameter(Tensor::from(1.0));
    let mut sgd = Optimizer::new(&p, Sgd::new(0.0));
    for step in 0..3 {
        sgd.set_learning_rate(Line::new(0.5, 0.0, 2).at(step));
        p.set_grad(Some(&Tensor::from(1.0))).unwrap();
        sgd.step().unwrap();
    }
    assert_eq!(p.item(), 1.0 - 0.5 - 0.25);
}

#[test]
fn gradients_of_parts_make_a_step_of_the_whole() {
    let mut generator = Generator::new(3);
    let (model, x) = generator.run(|| (Linear::<f64>::new(3, 1), Tensor::<f64>::randn([8, 3])));
    model.forward(&x).square().mean().backward().unwrap();
    let whole = model.weight.grad().unwrap().to_vec();
    model.clear_grad();
    for part in x.split(4, 0) {
        (model.forward(&part).square().mean() / 4.0).backward().unwrap();
    }
    assert_close("parts", &model.weight.grad().unwrap().to_vec(), &whole, 1e-14);
}

fn all<D: Dataset>(loader: &DataLoader<D>, epoch: u64) -> Vec<D::Batch> {
    loader.epoch(epoch).collect::<Result<_>>().unwrap()
}

#[test]
fn every_item_is_in_one_batch() {
    for (items, batch) in [(10, 4), (10, 5), (3, 7), (1, 1), (0, 3)] {
        let data: Vec<i64> = (0..items).collect();
        let plain = DataLoader::new(data.clone(), batch);
        let sizes = |loader: &DataLoader<Vec<i64>>| -> Vec<usize> {
            let sizes: Vec<usize> = all(loader, 0).iter().map(Vec::len).collect();
            assert_eq!((sizes.len(), sizes.is_empty()), (loader.len(), loader.is_empty()));
            sizes
        };
        assert_eq!(all(&plain, 0).concat(), data);
        assert_eq!(all(&plain, 1).concat(), data);
        assert!(sizes(&plain).iter().rev().skip(1).all(|&n| n == batch));
        let even = DataLoader::new(data.clone(), batch).drop_last();
        assert_eq!(sizes(&even), vec![batch; data.len() / batch]);
        for background in [false, true] {
            let loader = DataLoader::new(data.clone(), batch).shuffle(3);
            let loader = if background { loader.in_background() } else { loader };
            let mut found = all(&loader, 5).concat();
            let order = loader.epoch(5).collect::<Result<Vec<_>>>().unwrap().concat();
            assert_eq!(order, found, "an epoch has one order");
            found.sort_unstable();
            assert_eq!(found, data);
        }
    }
}

#[test]
fn the_order_depends_on_the_seed_and_the_epoch_alone() {
    let order = |seed: u64, epoch: u64| {
        autograd_core::seed(epoch);
        all(&DataLoader::new((0..50).collect::<Vec<i64>>(), 8).shuffle(seed), epoch).concat()
    };
    let mut orders = Vec::new();
    for seed in 0..5 {
        orders.extend((0..5).map(|epoch| order(seed, epoch)));
    }
    assert_eq!(order(3, 4), orders[19]);
    orders.sort();
    orders.dedup();
    assert_eq!(orders.len(), 25);
    // The first order is the library's own permutation for that seed.
    assert_eq!(order(7, 0), Generator::new(7).randperm(50));
}

#[test]
fn tensors_go_along_their_first_axis_together() {
    let x = Tensor::<f32>::arange(30).reshape([10, 3]);
    let y = Tensor::<i64>::arange(10);
    let names: Vec<String> = (0..10).map(|i| i.to_string()).collect();
    let loader = DataLoader::new((x, y, &names[..]), 4).shuffle(1);
    for (x, y, names) in all(&loader, 0) {
        for (i, name) in names.iter().enumerate() {
            let item: i64 = name.parse().unwrap();
            assert_eq!(y.at(&[i]), item);
            assert_eq!(x.select(0, i).to_vec()[0], 3.0 * item as f32);
        }
    }
    let flags = DataLoader::new((Tensor::from([true, false]), [1_u8, 2]), 1);
    assert_eq!(all(&flags, 0)[1].0.to_vec(), [false]);
    let words = |f: &dyn Fn()| {
        *catch_unwind(AssertUnwindSafe(f)).unwrap_err().downcast::<String>().unwrap()
    };
    assert_eq!(
        words(&|| drop(DataLoader::new((vec![1, 2], vec![1, 2, 3]), 1))),
        "DataLoader: the parts of the data must have as many items as each other, found 2 and 3"
    );
    let refused = [
        catch_unwind(|| drop(DataLoader::new(Tensor::from(1.0), 1))),
        catch_unwind(|| drop(DataLoader::new(vec![1], 0))),
    ];
    assert!(refused.iter().all(std::result::Result::is_err));
}

/// Data that fails at an item, and reports its reads.
struct Failing {
    panics: bool,
    seen: mpsc::Sender<Vec<usize>>,
}

impl Dataset for Failing {
    type Batch = usize;

    fn len(&self) -> usize {
        10
    }

    fn get(&self, items: &[usize]) -> Result<usize> {
        self.seen.send(items.to_vec()).ok();
        if items.contains(&5) {
            assert!(!self.panics, "item {} is torn", 5);
            return Err(Error::Unsupported { op: "Failing", why: "item 5 is torn".into() });
        }
        Ok(items[0])
    }
}

#[test]
fn what_fails_in_the_background_reaches_the_program() {
    for (panics, words) in [
        (true, "DataLoader: the data panicked: item 5 is torn"),
        (false, "Failing: item 5 is torn"),
    ] {
        let (seen, reads) = mpsc::channel();
        let loader = DataLoader::new(Failing { panics, seen }, 2).in_background();
        let mut batches = loader.epoch(0);
        assert_eq!(batches.next().unwrap().unwrap(), 0);
        assert_eq!(batches.next().unwrap().unwrap(), 2);
        let error = batches.next().unwrap().unwrap_err();
        assert_eq!(error.to_string(), words);
        assert_eq!(matches!(error, Error::Panic { .. }), panics);
        assert!(batches.next().is_none() && batches.next().is_none());
        // The next epoch starts from the beginning.
        assert_eq!(loader.epoch(1).next().unwrap().unwrap(), 0);
        drop(loader);
        drop(batches);
        // All threads have ended, and there were no reads after the error.
        let reads: Vec<_> = reads.iter().collect();
        assert!(reads.starts_with(&[vec![0, 1], vec![2, 3], vec![4, 5]]), "{reads:?}");
        assert!(reads.len() <= 5, "{reads:?}");
    }
    // Without a thread a panic propagates.
    let (seen, _reads) = mpsc::channel();
    let loader = DataLoader::new(Failing { panics: true, seen }, 10);
    let mut batches = loader.epoch(0);
    assert!(catch_unwind(AssertUnwindSafe(|| batches.next())).is_err());
}

#[test]
fn the_next_batch_is_prepared_while_the_program_works() {
    let (seen, reads) = mpsc::channel();
    let loader = DataLoader::new(Failing { panics: false, seen }, 1).in_background();
    let mut batches = loader.epoch(0);
    assert_eq!(batches.next().unwrap().unwrap(), 0);
    // Item 1 is read ahead, and item 2 is not read before item 1 is taken.
    assert_eq!(reads.recv().unwrap(), [0]);
    assert_eq!(reads.recv().unwrap(), [1]);
    assert!(reads.recv_timeout(std::time::Duration::from_millis(50)).is_err());
    assert_eq!(batches.size_hint(), (0, Some(9)));
}
