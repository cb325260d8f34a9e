//! Layers and parameters by name.

use autograd_core::nn::{
    BatchNorm2d, Buffer, Conv2d, Dropout, Embedding, LayerNorm, Linear, Mode, Module, Visitor,
    init::{self, Fan, Nonlinearity},
    parameter,
};
use autograd_core::safetensors::{SafeTensors, StateDict};
use autograd_core::{
    Conv2dOptions, Error, Float, Generator, GradOptions, Tensor, grad_with, gradcheck,
    gradgradcheck,
};

use crate::Scratch;

use crate::golden;

fn names(module: &impl Module) -> Vec<String> {
    module.named_parameters().into_iter().map(|(name, _)| name).collect()
}

/// Normalizes, then applies an affine map.
#[derive(Module)]
struct Block<T: Float> {
    norm: LayerNorm<T>,
    linear: Linear<T>,
    #[module(skip)]
    #[allow(dead_code, reason = "what a user may have there")]
    name: &'static str,
}

#[derive(Module)]
struct Net<'a, M: Module> {
    r#in: Conv2d,
    norm: BatchNorm2d,
    blocks: Vec<Block<f64>>,
    pair: (Linear, Tensor<f64>),
    none: Option<Linear>,
    some: Option<Dropout>,
    boxed: Box<dyn Module>,
    inner: M,
    borrowed: &'a Tensor,
    table: Buffer<i64>,
    mode: Mode,
}

#[derive(Module)]
struct Nothing;

#[derive(Module)]
struct Tuple(Linear, #[module(skip)] (), Nothing, [Tensor; 2]);

#[test]
fn names_are_paths_in_the_order_of_the_fields() {
    let one = || parameter(Tensor::from(1.0));
    let borrowed = one();
    let block = |name| Block { norm: LayerNorm::new(3), linear: Linear::new(3, 3), name };
    let net = Net {
        r#in: Conv2d::new(1, 2, 3, Conv2dOptions::new()).without_bias(),
        norm: BatchNorm2d::new(2),
        blocks: vec![block("a"), block("b")],
        pair: (Linear::new(1, 1), parameter(Tensor::from(1.0))),
        none: None,
        some: Some(Dropout::new(0.5)),
        boxed: Box::new(Tuple(Linear::new(1, 2), (), Nothing, [one(), one()])),
        inner: one(),
        borrowed: &borrowed,
        table: Buffer::new(Tensor::from([1, 2])),
        mode: Mode::new(),
    };
    let expected = [
        "in.weight",
        "norm.weight",
        "norm.bias",
        "blocks.0.norm.weight",
        "blocks.0.norm.bias",
        "blocks.0.linear.weight",
        "blocks.0.linear.bias",
        "blocks.1.norm.weight",
        "blocks.1.norm.bias",
        "blocks.1.linear.weight",
        "blocks.1.linear.bias",
        "pair.0.weight",
        "pair.0.bias",
        "pair.1",
        "boxed.0.weight",
        "boxed.0.bias",
        "boxed.3.0",
        "boxed.3.1",
        "inner",
        "borrowed",
    ];
    assert_eq!(names(&net), expected);
    let state: Vec<String> = net.state_dict().into_keys().collect();
    assert_eq!(state.len(), expected.len() + 4);
    for buffer in ["norm.num_batches_tracked", "norm.running_mean", "norm.running_var", "table"] {
        assert!(state.contains(&buffer.to_owned()), "{buffer}");
    }
    assert_eq!(net.parameter_count(), 18 + 4 + 2 * (6 + 9 + 3) + 2 + 1 + 4 + 2 + 1 + 1);

    assert!(net.mode.is_training());
    net.eval();
    assert!(!net.mode.is_training());
    let x = Tensor::<f32>::ones([100]);
    let dropout = net.some.as_ref().unwrap();
    assert_eq!(dropout.forward(&x).to_vec(), x.to_vec());
    net.train();
    assert!(dropout.forward(&x).to_vec().contains(&0.0));
}

#[test]
fn small_modules_have_names_too() {
    let p = parameter(Tensor::from(1.0_f32));
    assert_eq!(names(&p), ["0"]);
    assert_eq!(names(&(p.clone(),)), ["0"]);
    assert_eq!(names(&[p.clone(), p.clone()]), ["0", "1"]);
    assert_eq!([p.clone(), p.clone()].parameter_count(), 1, "one tensor in two places");
    assert!(names(&Nothing).is_empty());
    p.set_grad(Some(&p)).unwrap();
    [p.clone()].clear_grad();
    assert!(p.grad().is_none());
}

#[test]
#[should_panic(expected = "`visit` shows two tensors under the name `a`")]
fn two_tensors_of_one_name_are_a_mistake() {
    struct Wrong(Tensor);
    impl Module for Wrong {
        fn visit(&self, visitor: &mut Visitor<'_>) {
            visitor.enter("a", &self.0);
            visitor.enter("a", &self.0);
        }
    }
    Wrong(Tensor::from(1.0)).state_dict();
}

#[test]
fn a_parameter_is_apart_from_what_it_was_made_of() {
    let x = Tensor::from(vec![1.0, 2.0]);
    let p = parameter(x.clone());
    autograd_core::no_grad().run(|| p.fill(7.0)).unwrap();
    assert_eq!((x.to_vec(), p.to_vec()), (vec![1.0, 2.0], vec![7.0, 7.0]));
    assert!(x.stop_gradient() && !p.stop_gradient());
}

#[test]
fn a_model_is_saved_and_loaded_by_name() {
    let model = || (Linear::<f32>::new(3, 4), BatchNorm2d::<f64>::new(2));
    let (a, b) = (model(), model());
    a.1.forward(&Tensor::randn([2, 2, 2, 2]));
    let folder = Scratch::new("model");
    let path = folder.0.join("a.safetensors");
    let mut file = SafeTensors::new();
    file.insert_under("model", a.state_dict());
    file.save(&path).unwrap();

    let handle = b.0.weight.clone();
    let loaded = SafeTensors::load(&path).unwrap();
    b.load_state_dict(&loaded.under("model")).unwrap();
    assert_eq!(handle.to_vec(), a.0.weight.to_vec(), "the tensor is the one it was");
    assert_eq!(b.1.running_var.to_vec(), a.1.running_var.to_vec());
    assert_eq!(b.1.num_batches_tracked.item(), 1);
    assert!(!b.0.weight.stop_gradient());
    // Loaded tensors are not aliases: the model can change without changing those of the file.
    autograd_core::no_grad().run(|| b.0.weight.fill(0.0)).unwrap();
    assert_eq!(loaded.get::<f32>("model.0.weight").unwrap().to_vec(), a.0.weight.to_vec());
}

#[test]
fn all_that_differs_is_reported_at_once_and_nothing_is_loaded() {
    let model = [Linear::<f32>::new(3, 4), Linear::new(4, 1)];
    let before = model[0].weight.to_vec();
    let mut state: StateDict = [Linear::<f32>::new(3, 4), Linear::new(4, 1)].state_dict();
    state.remove("0.bias");
    state.remove("1.bias");
    state.insert("1.weight".into(), Tensor::<f64>::zeros([1, 4]).into());
    state.insert("2.weight".into(), Tensor::<f32>::zeros([4]).into());
    let error = model.load_state_dict(&state).unwrap_err();
    let words = "load_state_dict: the tensors are not those that are needed\
        \n  missing: `0.bias`, `1.bias`\
        \n  not needed: `2.weight`\
        \n  `1.weight` must be [1, 4] of float32, found [1, 4] of float64";
    assert_eq!(error.to_string(), words);
    let Error::StateDict { missing, .. } = error else { panic!("{error}") };
    assert_eq!(missing, ["0.bias", "1.bias"]);
    assert_eq!(model[0].weight.to_vec(), before);
}

#[test]
fn one_tensor_under_two_names_gets_one_value() {
    let shared = parameter(Tensor::from(vec![1.0_f32, f32::NAN]));
    let model = [shared.clone(), shared.clone()];
    let mut state = model.state_dict();
    model.load_state_dict(&state).unwrap();
    state.insert("1".into(), Tensor::from(vec![2.0_f32, 3.0]).into());
    let words = "load_state_dict: the tensors are not those that are needed\
        \n  `0` and `1` are one tensor, but have different values";
    assert_eq!(model.load_state_dict(&state).unwrap_err().to_string(), words);
    assert_eq!(shared.to_vec()[0], 1.0);
}

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-13, "{found} is not {expected}");
    }
}

fn pictures(t: i32) -> Tensor<f64> {
    let numbers = (0..24).map(|i| f64::from((5 * i + 3 * t) % 13 - 4) / 8.0).collect();
    Tensor::from_vec([2, 2, 2, 3], numbers).unwrap()
}

#[test]
fn batch_normalisation_is_numpy_s() {
    let norm = BatchNorm2d::<f64>::new(2);
    autograd_core::no_grad().run(|| {
        norm.weight.copy_from(&Tensor::from(vec![1.5, -0.5])).unwrap();
        norm.bias.copy_from(&Tensor::from(vec![0.25, 2.0])).unwrap();
    });
    let (outputs, means, variances) =
        (golden("batch_norm"), golden("batch_norm_mean"), golden("batch_norm_var"));
    for t in 0..2 {
        let at = usize::try_from(t).unwrap();
        assert_close(&norm.forward(&pictures(t)).to_vec(), &outputs[at]);
        assert_close(&norm.running_mean.to_vec(), &means[at]);
        assert_close(&norm.running_var.to_vec(), &variances[at]);
    }
    assert_eq!(norm.num_batches_tracked.item(), 2);
    norm.eval();
    assert_close(&norm.forward(&pictures(2)).to_vec(), &outputs[2]);
    assert_eq!(norm.num_batches_tracked.item(), 2);
}

#[test]
fn a_checkpoint_collects_a_batch_once() {
    let (norm, other) = (BatchNorm2d::<f64>::new(2), BatchNorm2d::<f64>::new(2));
    other.forward(&pictures(0));
    let norm = std::sync::Arc::new(norm);
    let inner = std::sync::Arc::clone(&norm);
    // Nested checkpoints run the closure three times.
    let loss = autograd_core::checkpoint(move || {
        let inner = std::sync::Arc::clone(&inner);
        autograd_core::checkpoint(move || inner.forward(&pictures(0)).square()).sum()
    });
    assert_eq!(norm.num_batches_tracked.item(), 1);
    loss.backward().unwrap();
    assert_eq!(norm.num_batches_tracked.item(), 1);
    assert_eq!(norm.running_mean.to_vec(), other.running_mean.to_vec());
    assert_eq!(norm.running_var.to_vec(), other.running_var.to_vec());
    assert!(norm.weight.grad().is_some() && !autograd_core::is_recomputing());
}

#[test]
fn layer_normalisation_is_numpy_s() {
    let norm = LayerNorm::<f64>::new([2, 3]);
    let weight = Tensor::<f64>::arange(6).reshape([2, 3]) / 4.0;
    autograd_core::no_grad().run(|| {
        norm.weight.copy_from(&weight).unwrap();
        norm.bias.copy_from(&(1.0 - &weight)).unwrap();
    });
    assert_close(&norm.forward(&pictures(0)).to_vec(), &golden("layer_norm")[0]);
}

/// The result, and gradients of rows, weight and bias.
fn normalised<T: Float>(
    x: &Tensor<T>,
    [weight, bias]: [&Tensor<T>; 2],
    f: impl Fn(&Tensor<T>, [&Tensor<T>; 2]) -> Tensor<T>,
) -> Vec<Vec<f64>> {
    let inputs = [x, weight, bias].map(Tensor::detach);
    inputs.iter().for_each(|input| input.set_stop_gradient(false));
    let [x, weight, bias] = &inputs;
    let y = f(x, [weight, bias]);
    let seed = numbers::<T>(y.shape(), 29);
    y.backward_with(&seed).unwrap();
    let grads = inputs.iter().map(|input| input.grad().unwrap());
    let all = std::iter::once(y).chain(grads);
    all.map(|t| t.to_vec().into_iter().map(T::into_f64).collect()).collect()
}

#[test]
fn a_shift_of_another_shape_is_broadcast_or_refused() {
    let x = numbers::<f64>(&[4, 3], 3);
    for shift in [&[1][..], &[], &[4, 1]] {
        let mut norm = LayerNorm::<f64>::new(3);
        norm.bias = numbers(shift, 5);
        let right = x.normalize([1], 1e-5) + &norm.bias;
        assert_close(&norm.forward(&x).to_vec(), &right.to_vec());
    }
    let mut norm = LayerNorm::<f64>::new(3);
    norm.bias = numbers(&[2], 5);
    assert!(norm.try_forward(&x).is_err());
}

#[test]
fn a_recorded_gradient_of_normalised_rows_is_that_of_one_pass() {
    let norm = LayerNorm::<f64>::new(5);
    autograd_core::no_grad().run(|| norm.weight.fill(0.75)).unwrap();
    let x = numbers::<f64>(&[3, 5], 7);
    x.set_stop_gradient(false);
    let inputs = [&x, &norm.weight, &norm.bias];
    let grads = |recorded: bool| {
        let loss = norm.forward(&x).tanh().square().sum();
        let options = GradOptions::new().create_graph(recorded);
        let grads = grad_with(&[&loss], &inputs, options).unwrap();
        grads.into_iter().flat_map(|grad| grad.unwrap().to_vec()).collect::<Vec<f64>>()
    };
    assert_close(&grads(true), &grads(false));
}

/// Numbers around 0, the same in every run.
fn numbers<T: Float>(shape: &[usize], seed: usize) -> Tensor<T> {
    let n: usize = shape.iter().product();
    let number = |i: usize| ((i * 7919 + seed) % 1009) as f64 / 252.0 - 2.0;
    Tensor::from_vec(shape, (0..n).map(|i| T::from_f64(number(i))).collect()).unwrap()
}

fn one_pass_is_as_op_by_op<T: Float>(most: f64) {
    // Row lengths near the number of interleaved sums, one thread's part, and the limit of one pass.
    let shapes: [(&[usize], usize); 12] = [
        (&[1, 1], 1),
        (&[5, 3], 1),
        (&[300, 15], 1),
        (&[7, 16], 1),
        (&[2, 3, 17], 1),
        (&[65, 257], 1),
        (&[1030, 4], 1),
        (&[2, 16_384], 1),
        (&[2, 16_385], 1),
        (&[3, 5, 4, 6], 2),
        (&[24], 1),
        (&[2, 3, 4], 3),
    ];
    for (shape, axes) in shapes {
        let row = &shape[shape.len() - axes..];
        let weights = [&numbers::<T>(row, 400), &numbers(row, 500)];
        let list: Vec<isize> = (1..=axes as isize).map(|axis| -axis).collect();
        let plain = |x: &Tensor<T>, [weight, bias]: [&Tensor<T>; 2]| {
            let centered = x - x.mean_axes_keep(&list);
            let variance = centered.square().mean_axes_keep(&list);
            centered / (variance + 1e-3).sqrt() * weight + bias
        };
        let layer = |x: &Tensor<T>, [weight, bias]: [&Tensor<T>; 2]| {
            let mut norm = LayerNorm::new(row).eps(1e-3);
            (norm.weight, norm.bias) = (weight.clone(), bias.clone());
            norm.forward(x)
        };
        let alone = |x: &Tensor<T>, [weight, bias]: [&Tensor<T>; 2]| {
            x.normalize(&list, 1e-3) * weight + bias
        };
        let x = numbers::<T>(shape, 3);
        let turned = numbers::<T>(&shape.iter().rev().copied().collect::<Vec<_>>(), 3);
        let order: Vec<isize> = (0..shape.len() as isize).rev().collect();
        for x in [x, turned.permute(&order)] {
            let right = normalised(&x, weights, plain);
            for found in [normalised(&x, weights, layer), normalised(&x, weights, alone)] {
                for (found, right) in found.iter().flatten().zip(right.iter().flatten()) {
                    let close = (found - right).abs() <= most * (1.0 + right.abs());
                    assert!(close, "{shape:?}: {found}, not {right}");
                }
            }
        }
    }
}

#[test]
fn normalisation_in_one_pass_is_as_op_by_op() {
    one_pass_is_as_op_by_op::<f64>(1e-10);
    one_pass_is_as_op_by_op::<f32>(3e-3);
}

/// A gradient that is not shared is overwritten; shared ones must give the same, and not change.
#[test]
fn gradients_that_somebody_holds_are_as_those_that_nobody_does() {
    let ops: [(&str, fn(&Tensor<f64>) -> Tensor<f64>); 3] = [
        ("softmax", |x| x.softmax(-1)),
        ("log_softmax", |x| x.log_softmax(-1)),
        ("normalize", |x| x.normalize([-1], 1e-3)),
    ];
    // A few rows, and more than one thread takes at once, with a shorter last block.
    for shape in [[3, 5], [901, 40]] {
        let x = numbers::<f64>(&shape, 3);
        x.set_stop_gradient(false);
        let turned = numbers::<f64>(&[shape[1], shape[0]], 5).permute(&[1, 0]);
        let whole = numbers::<f64>(&shape, 7);
        let seeds = [
            turned,
            numbers(&[1, shape[1]], 11).broadcast_to(shape),
            numbers(&[shape[0], 1], 13).broadcast_to(shape),
            numbers(&[], 17).broadcast_to(shape),
            &whole * 3.0,
            whole,
        ];
        for (name, op) in ops {
            let grad = |end: &dyn Fn(Tensor<f64>)| {
                end(op(&x));
                let grad = x.grad().unwrap().to_vec();
                x.clear_grad();
                grad
            };
            for (state, seed) in seeds.iter().enumerate() {
                let before = seed.to_vec();
                let alone = Tensor::from_vec(shape, before.clone()).unwrap();
                let right = grad(&|y| (y * &alone).sum().backward().unwrap());
                let found = grad(&|y| y.backward_with(seed).unwrap());
                assert_eq!(found, right, "{name} {shape:?}, seed {state}");
                assert_eq!(seed.to_vec(), before, "{name} {shape:?}, seed {state}");
            }
        }
    }
}

#[test]
fn normalisation_gives_only_what_is_wanted_and_sees_changes() {
    let norm = LayerNorm::<f64>::new(3);
    let x = numbers(&[4, 3], 3);
    norm.forward(&x).sum().backward().unwrap();
    assert!(norm.weight.grad().is_some() && x.grad().is_none());
    norm.weight.clear_grad();
    norm.weight.set_stop_gradient(true);
    x.set_stop_gradient(false);
    let y = norm.forward(&x);
    y.square().sum().backward().unwrap();
    assert!(norm.weight.grad().is_none() && x.grad().is_some());

    let y = x.normalize([1], 1e-3);
    let changed = x.detach();
    changed.fill(1.0).unwrap();
    let words = y.sum().backward().unwrap_err().to_string();
    assert!(words.starts_with("normalize (called at tests/tests/nn/modules.rs"), "{words}");
    assert!(words.contains("its first input was changed in place"), "{words}");
    // No rows to normalize, and rows without elements.
    assert_eq!(Tensor::<f64>::zeros([0, 3]).normalize([1], 1e-3).shape(), [0, 3]);
    assert_eq!(Tensor::<f64>::zeros([2, 0]).normalize([1], 1e-3).shape(), [2, 0]);
    // Along other axes, in another order.
    let x = numbers::<f64>(&[4, 3, 5], 3);
    let turned = x.permute(&[1, 0, 2]);
    for (axes, after) in [(&[0][..], &[1][..]), (&[2, 0], &[1, 2]), (&[-1, 1], &[0, 2])] {
        let found = x.normalize(axes, 1e-3).permute(&[1, 0, 2]).to_vec();
        assert_close(&found, &turned.normalize(after, 1e-3).to_vec());
    }
    let last = x.permute(&[1, 2, 0]).contiguous().normalize([2], 1e-3).permute(&[2, 0, 1]);
    assert_close(&x.normalize([0], 1e-3).to_vec(), &last.to_vec());
}

#[test]
fn layers_are_differentiable_twice() {
    let check = |f: &dyn Fn(&[Tensor<f64>]) -> Tensor<f64>, inputs: &[Tensor<f64>]| {
        gradcheck(f, inputs).unwrap();
        gradgradcheck(f, inputs).unwrap();
    };
    let batch_norm = |t: &[Tensor<f64>]| {
        let mut norm = BatchNorm2d::new(2);
        (norm.weight, norm.bias) = (t[1].clone(), t[2].clone());
        norm.forward(&t[0])
    };
    let two = Tensor::from(vec![0.5, -1.5]);
    check(&batch_norm, &[pictures(1), two.clone(), two.clone()]);
    let evaluated = |t: &[Tensor<f64>]| {
        let mut norm = BatchNorm2d::new(2);
        (norm.weight, norm.bias) = (t[1].clone(), t[2].clone());
        norm.eval();
        norm.forward(&t[0])
    };
    check(&evaluated, &[pictures(1), two.clone(), two.clone()]);
    let layer_norm = |t: &[Tensor<f64>]| {
        let mut norm = LayerNorm::new([2, 3]);
        (norm.weight, norm.bias) = (t[1].clone(), t[2].clone());
        norm.forward(&t[0])
    };
    let weight = Tensor::<f64>::arange(6).reshape([2, 3]) / 4.0;
    check(&layer_norm, &[pictures(1), weight.clone(), weight]);
    check(&|t| t[0].normalize([1], 1e-2), &[numbers(&[3, 5], 7)]);
    let words = Tensor::from([[0, 2], [2, 1]]);
    let embedding = |t: &[Tensor<f64>]| Embedding { weight: t[0].clone() }.forward(&words).square();
    check(&embedding, &[pictures(0).reshape([6, 4])]);
}

#[test]
fn wrong_shapes_are_reported() {
    let words = |result: autograd_core::Result<Tensor>| result.unwrap_err().to_string();
    let x = |shape: &[usize]| Tensor::<f32>::zeros(shape);
    assert_eq!(
        words(Linear::new(3, 2).try_forward(&x(&[5, 4]))),
        "Linear: `x` must be of shape [.., 3], for `weight` of shape [2, 3], found shape [5, 4]"
    );
    assert_eq!(
        words(LayerNorm::new([2, 3]).try_forward(&x(&[4, 3]))),
        "LayerNorm: `x` must be of a shape that ends in [2, 3], found shape [4, 3]"
    );
    assert_eq!(
        words(BatchNorm2d::new(2).try_forward(&x(&[4, 3, 1, 1]))),
        "BatchNorm2d: `x` must be of shape [n, 2, height, width], found shape [4, 3, 1, 1]"
    );
    assert_eq!(
        words(BatchNorm2d::new(2).try_forward(&x(&[1, 2, 1, 1]))),
        "BatchNorm2d: `x` must be of at least two values per channel, for a variance, found shape [1, \
         2, 1, 1]"
    );
    assert_eq!(
        words(Embedding::new(3, 2).try_forward(&Tensor::from(vec![3]))),
        "Embedding: `numbers[0]` is 3, outside an axis of length 3"
    );
    let groups = Conv2dOptions::new().groups(2);
    let panics = std::panic::catch_unwind(|| Conv2d::<f32>::new(3, 4, 1, groups));
    assert!(panics.is_err());
    assert!(std::panic::catch_unwind(|| LayerNorm::<f32>::new(())).is_err());
    assert!(std::panic::catch_unwind(|| init::xavier_normal::<f32>(3, 1.0)).is_err());
}

/// The mean, standard deviation and greatest magnitude of many numbers.
fn statistics(w: &Tensor<f64>) -> (f64, f64, f64) {
    assert!(!w.stop_gradient());
    let w = w.detach();
    (w.mean().item(), w.std_axes([], 0).item(), w.abs().max().item())
}

#[test]
fn initial_values_have_the_spread_of_their_formulas() {
    Generator::new(5).run(spread_of_initial_values);
}

fn spread_of_initial_values() {
    // fan_in = 40 * 3 * 5 = 600, fan_out = 60 * 15 = 900.
    let shape = [60, 40, 3, 5];
    let normal = |w: &Tensor<f64>, std: f64| {
        let (mean, found, _) = statistics(w);
        assert!(
            mean.abs() < 0.03 * std && (found - std).abs() < 0.02 * std,
            "{mean} {found} {std}"
        );
    };
    let uniform = |w: &Tensor<f64>, bound: f64| {
        let (mean, std, greatest) = statistics(w);
        assert!(mean.abs() < 0.03 * bound && greatest <= bound && greatest > 0.999 * bound);
        assert!((std - bound / 3.0_f64.sqrt()).abs() < 0.02 * bound, "{std} {bound}");
    };
    uniform(&init::xavier_uniform(shape, 2.0), 2.0 * (6.0_f64 / 1500.0).sqrt());
    normal(&init::xavier_normal(shape, 2.0), 2.0 * (2.0_f64 / 1500.0).sqrt());
    let relu = Nonlinearity::Relu.gain();
    uniform(&init::kaiming_uniform(shape, Fan::In, relu), (6.0_f64 / 600.0).sqrt());
    uniform(&init::kaiming_uniform(shape, Fan::Out, relu), (6.0_f64 / 900.0).sqrt());
    normal(&init::kaiming_normal(shape, Fan::In, relu), (2.0_f64 / 600.0).sqrt());
    normal(&init::kaiming_normal(shape, Fan::Out, 1.0), (1.0_f64 / 900.0).sqrt());
    normal(&init::normal([1000, 30], 0.0, 3.0), 3.0);
    uniform(&init::uniform([1000, 30], -3.0, 3.0), 3.0);
    let layer = Conv2d::<f64>::new(40, 60, [3, 5], Conv2dOptions::new());
    uniform(&layer.weight, (1.0_f64 / 600.0).sqrt());
    assert!(statistics(layer.bias.as_ref().unwrap()).2 <= (1.0_f64 / 600.0).sqrt());
    uniform(&Linear::<f64>::new(100, 300).weight, 0.1);
    assert_eq!(init::constant::<f32>([2], 1.5).to_vec(), [1.5, 1.5]);
    assert_eq!((init::zeros::<f32>(1).item(), init::ones::<f32>(1).item()), (0.0, 1.0));
    assert_eq!(Nonlinearity::LeakyRelu(1.0).gain(), 1.0);
    assert_eq!(Nonlinearity::Sigmoid.gain(), Nonlinearity::Linear.gain());
}

#[test]
fn layers_without_inputs_or_outputs_work() {
    let (none, nothing) = (Linear::<f64>::new(0, 3), Linear::<f64>::new(3, 0));
    assert_eq!(none.bias.as_ref().unwrap().to_vec(), [0.0; 3]);
    assert_eq!(none.forward(&Tensor::zeros([2, 0])).to_vec(), [0.0; 6]);
    assert_eq!(nothing.forward(&Tensor::zeros([2, 3])).shape(), [2, 0]);
}
