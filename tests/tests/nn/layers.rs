//! Layers against results of PyTorch (`golden/layers.py`), and their documented properties.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use autograd_core::nn::{
    AttentionMasks, BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, Dropout, Elu, Flatten, Gelu,
    GroupNorm, Layer, LayerNorm, LeakyRelu, Linear, LogSoftmax, Module, MultiheadAttention, Relu,
    RmsNorm, Sequential, Sigmoid, Silu, Softmax, Softplus, Tanh,
};
use autograd_core::{
    AnyTensor, Conv1dOptions, Conv2dOptions, Float, Graph, Tensor, gradcheck, gradgradcheck,
    jvpcheck, no_grad,
};

/// The values that `golden/layers.py` printed for a layer, by name.
fn golden(name: &str) -> BTreeMap<String, Vec<f64>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/layers.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        if words.next() == Some(name) {
            let what = words.next().unwrap().to_owned();
            found.insert(what, words.map(|x| x.parse().unwrap()).collect());
        }
    }
    assert!(!found.is_empty(), "no figures of {name}");
    found
}

/// Numbers around 0, the same in every run.
fn numbers<T: Float>(shape: &[usize], seed: usize) -> Tensor<T> {
    let n: usize = shape.iter().product();
    let number = |i: usize| ((i * 7919 + seed) % 1009) as f64 / 252.0 - 2.0;
    Tensor::from_vec(shape, (0..n).map(|i| T::from_f64(number(i))).collect()).unwrap()
}

/// Sets distinct values of the parameters.
fn set<T: Float>(module: &impl Module) {
    for (i, p) in module.parameters_of::<T>().iter().enumerate() {
        no_grad().run(|| p.copy_from(&(numbers::<T>(p.shape(), 100 + 31 * i) / 2.0))).unwrap();
    }
}

fn assert_close<T: Float>(name: &str, what: &str, found: &Tensor<T>, right: &[f64]) {
    let tolerance = if found.dtype() == autograd_core::DType::Float64 { 1e-11 } else { 2e-4 };
    assert_eq!(found.len(), right.len(), "{name}: {what}");
    for (found, right) in found.to_vec().into_iter().map(T::into_f64).zip(right) {
        let close = (found - right).abs() <= tolerance * right.abs().max(1.0);
        assert!(close, "{name}: {what} has {found}, not {right}");
    }
}

/// The layer's result, gradients and buffers equal PyTorch's.
fn is_torch_s<T: Float, M: Module>(
    name: &str,
    layer: &M,
    shapes: &[&[usize]],
    steps: usize,
    forward: impl Fn(&M, &[Tensor<T>]) -> Tensor<T>,
) {
    let mut expected = golden(name);
    set::<T>(layer);
    let mut check = |what: &str, found: &Tensor<T>| {
        let right = expected.remove(what).unwrap_or_else(|| panic!("{name} has no {what}"));
        assert_close(name, what, found, &right);
    };
    for step in 0..steps {
        layer.clear_grad();
        let inputs = shapes.iter().enumerate();
        let inputs: Vec<_> = inputs.map(|(i, x)| numbers::<T>(x, 7 + 13 * i + step)).collect();
        inputs.iter().for_each(|x| x.set_stop_gradient(false));
        let y = forward(layer, &inputs);
        (&y * numbers::<T>(y.shape(), 29)).sum().backward().unwrap();
        if step + 1 < steps {
            continue;
        }
        check("y", &y);
        for (i, x) in inputs.iter().enumerate() {
            check(&format!("x{i}"), &x.try_grad().unwrap());
        }
        for (i, p) in layer.parameters_of::<T>().iter().enumerate() {
            check(&format!("p{i}"), &p.try_grad().unwrap());
        }
        for (what, buffer) in layer.state_dict() {
            if what.starts_with("running") {
                check(&what, buffer.downcast_ref().unwrap());
            }
        }
    }
    expected.remove("num_batches_tracked");
    assert!(expected.is_empty(), "{name}: not compared {:?}", expected.keys());
}

fn figures<T: Float>() {
    fn one<T: Float, L: Layer<T>>(name: &str, layer: &L, shape: &[usize], steps: usize) {
        is_torch_s(name, layer, &[shape], steps, |layer, x| layer.forward(&x[0]));
    }
    one::<T, _>("batch_norm1d", &BatchNorm1d::new(3), &[4, 3], 2);
    let norm = BatchNorm1d::new(2).eps(1e-2).momentum(0.3);
    one::<T, _>("batch_norm1d_length", &norm, &[2, 2, 5], 2);
    let norm = BatchNorm1d::new(2);
    norm.eval();
    one::<T, _>("batch_norm1d_eval", &norm, &[3, 2, 4], 1);
    one::<T, _>("group_norm", &GroupNorm::new(2, 4), &[2, 4, 3, 2], 1);
    one::<T, _>("group_norm_flat", &GroupNorm::new(3, 6).eps(1e-2), &[3, 6], 1);
    one::<T, _>("instance_norm", &GroupNorm::new(3, 3), &[2, 3, 5], 1);
    one::<T, _>("rms_norm", &RmsNorm::new(5), &[2, 3, 5], 1);
    one::<T, _>("rms_norm_two_axes", &RmsNorm::new([2, 3]).eps(1e-2), &[4, 2, 3], 1);
    let options = Conv1dOptions::new();
    one::<T, _>("conv1d", &Conv1d::new(2, 3, 3, options), &[2, 2, 7], 1);
    let options = options.stride(2).padding(1).dilation(2).groups(2);
    one::<T, _>("conv1d_options", &Conv1d::new(4, 6, 2, options), &[2, 4, 8], 1);
    let net = Sequential::new();
    let net = net.then(Linear::new(4, 5)).then(Gelu).then(Linear::new(5, 3)).then(LogSoftmax(-1));
    one::<T, _>("sequential", &net, &[6, 4], 1);

    one::<T, _>("layer_norm", &LayerNorm::new(5), &[2, 3, 5], 1);
    one::<T, _>("layer_norm_two_axes", &LayerNorm::new([2, 3]).eps(1e-2), &[4, 2, 3], 1);
    one::<T, _>("batch_norm2d", &BatchNorm2d::new(2).momentum(0.3), &[2, 2, 3, 2], 2);
    let options = Conv2dOptions::new().stride([2, 1]).padding([1, 2]).dilation([1, 2]).groups(2);
    let convolution = Conv2d::new(4, 6, [2, 3], options).without_bias();
    one::<T, _>("conv2d", &convolution, &[2, 4, 5, 6], 1);
    let net = Sequential::new().then(Linear::new(4, 5)).then(Relu).then(LeakyRelu(0.2));
    let net =
        net.then(Elu(0.7)).then(Silu).then(Softplus).then(Tanh).then(Sigmoid).then(Softmax(1));
    one::<T, _>("activations", &net, &[6, 4], 1);

    let attention = MultiheadAttention::<T>::new(6, 2);
    let shapes: [&[usize]; 3] = [&[2, 3, 6], &[2, 4, 6], &[2, 4, 6]];
    let (yes, no) = (true, false);
    let padding = Tensor::from([[no, no, no, yes], [no, yes, no, no]]);
    let mask = Tensor::from([[no, yes, no, no], [no, no, no, no], [yes, no, no, no]]);
    is_torch_s("attention", &attention, &shapes, 1, |layer, x| {
        layer.forward(&x[0], &x[1], &x[2], AttentionMasks::new())
    });
    is_torch_s("attention_masked", &attention, &shapes, 1, |layer, x| {
        layer.forward(&x[0], &x[1], &x[2], AttentionMasks::new().padding(&padding).attention(&mask))
    });
    let far = [[0.5, 0.0, -1.5, f64::NEG_INFINITY], [0.0, 2.0, 0.0, 0.0]];
    let far = Tensor::from(far.map(|row| row.map(T::from_f64)));
    is_torch_s(
        "attention_added",
        &attention,
        &[&shapes[..], &[&[3, 4]]].concat(),
        1,
        |layer, x| {
            let masks = AttentionMasks::new().padding(&far).attention(&x[3]);
            layer.forward(&x[0], &x[1], &x[2], masks)
        },
    );
    is_torch_s("attention_causal", &attention, &[&[2, 4, 6]], 1, |layer, x| {
        layer.forward(&x[0], &x[0], &x[0], AttentionMasks::new().causal())
    });
    let plain = MultiheadAttention::<T>::new(4, 1).without_bias();
    is_torch_s("attention_without_bias", &plain, &[&[1, 3, 4]], 1, |layer, x| {
        layer.forward(&x[0], &x[0], &x[0], AttentionMasks::new())
    });
}

#[test]
fn layers_are_pytorch_s() {
    figures::<f64>();
    figures::<f32>();
}

#[test]
fn names_are_pytorch_s() {
    let names = |module: &dyn Module| -> Vec<String> { module.state_dict().into_keys().collect() };
    let attention = ["in_proj_bias", "in_proj_weight", "out_proj.bias", "out_proj.weight"];
    assert_eq!(names(&MultiheadAttention::<f32>::new(4, 2)), attention);
    assert_eq!(names(&RmsNorm::<f32>::new(2)), ["weight"]);
    let statistics = ["bias", "num_batches_tracked", "running_mean", "running_var", "weight"];
    assert_eq!(names(&BatchNorm1d::<f32>::new(2)), statistics);
    let net = Sequential::<f32>::new()
        .then(Conv1d::new(1, 2, 3, Conv1dOptions::new()).without_bias())
        .then_fn(|x| x.relu())
        .then(Dropout::new(0.5))
        .then(Flatten)
        .then(Sequential::new().then(Linear::new(2, 1)));
    assert_eq!(names(&net), ["0.weight", "4.0.bias", "4.0.weight"]);
    assert_eq!((net.len(), net.is_empty()), (5, false));
    net.eval();
    assert_eq!(net.forward(&Tensor::ones([2, 1, 3])).shape(), [2, 1]);
    assert_eq!(Sequential::new().forward(&Tensor::from(3.0)).item(), 3.0);
}

#[test]
fn activations_are_the_functions() {
    let x = numbers::<f64>(&[3, 4], 5);
    let cases: [(Box<dyn Layer<f64>>, Tensor<f64>); 12] = [
        (Box::new(Relu), x.relu()),
        (Box::new(Gelu), x.gelu()),
        (Box::new(Silu), x.silu()),
        (Box::new(Sigmoid), x.sigmoid()),
        (Box::new(Tanh), x.tanh()),
        (Box::new(Softplus), x.softplus()),
        (Box::new(LeakyRelu(0.2)), x.leaky_relu(0.2)),
        (Box::new(Elu(1.5)), x.elu(1.5)),
        (Box::new(Softmax(0)), x.softmax(0)),
        (Box::new(LogSoftmax(-1)), x.log_softmax(1)),
        (Box::new(Flatten), x.clone()),
        (Box::new(Dropout::new(0.0)), x.clone()),
    ];
    for (i, (layer, expected)) in cases.into_iter().enumerate() {
        assert_eq!(layer.forward(&x).to_vec(), expected.to_vec(), "case {i}");
        assert!(layer.parameters().is_empty());
    }
    assert_eq!(Flatten.forward(&Tensor::<f32>::zeros([0, 2, 3])).shape(), [0, 6]);
    assert_eq!(Flatten.forward(&Tensor::<f32>::zeros([3])).shape(), [3, 1]);
    assert_eq!(Flatten.forward(&Tensor::<f32>::zeros(())).shape(), [1, 1]);
}

/// Each op of the layer has the place where the layer was called.
fn places_are_of_callers(layer: &str, y: Tensor<f64>) {
    let dot = Graph::of(&[y.into()]).to_dot();
    let ours = dot.lines().find(|line| line.contains("autograd-core/src"));
    assert_eq!(ours, None, "{layer}");
}

#[test]
fn layers_in_a_list_have_the_place_of_its_call() {
    let net = Sequential::new()
        .then(Linear::new(2, 4))
        .then(BatchNorm1d::new(4))
        .then(Box::new(Relu))
        .then(Sequential::new().then(Softmax(-1)))
        .then_fn(|x| x.slice_assign(0, 1.0));
    places_are_of_callers("Sequential", net.forward(&numbers(&[3, 2], 3)));
}

#[test]
fn layers_have_derivatives_of_all_kinds() {
    fn check(name: &str, f: &dyn Fn(&[Tensor<f64>]) -> Tensor<f64>, inputs: &[Tensor<f64>]) {
        inputs.iter().for_each(|x| x.set_stop_gradient(false));
        places_are_of_callers(name, f(inputs));
        gradcheck(f, inputs).unwrap_or_else(|why| panic!("{name}: {why}"));
        gradgradcheck(f, inputs).unwrap_or_else(|why| panic!("{name}: {why}"));
        jvpcheck(f, inputs).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
    let input = |shape: &[usize], seed| numbers::<f64>(shape, seed);
    let (two, four) = (input(&[2], 17), input(&[4], 19));
    check(
        "BatchNorm1d",
        &|t| {
            let mut norm = BatchNorm1d::new(2);
            (norm.weight, norm.bias) = (t[1].clone(), t[2].clone());
            norm.forward(&t[0])
        },
        &[input(&[3, 2, 2], 3), two.clone(), two.clone()],
    );
    check(
        "GroupNorm",
        &|t| {
            let mut norm = GroupNorm::new(2, 4);
            (norm.weight, norm.bias) = (t[1].clone(), t[2].clone());
            norm.forward(&t[0])
        },
        &[input(&[2, 4, 3], 3), four.clone(), four.clone()],
    );
    check(
        "RmsNorm",
        &|t| {
            let mut norm = RmsNorm::new(4);
            norm.weight = t[1].clone();
            // Some rows above 1 in size, some below.
            norm.forward(&(&t[0] * Tensor::from([[3.0], [0.25], [1.0]])))
        },
        &[input(&[3, 4], 3), four],
    );
    check(
        "Conv1d",
        &|t| {
            let mut layer = Conv1d::new(2, 2, 2, Conv1dOptions::new().padding(1));
            (layer.weight, layer.bias) = (t[1].clone(), Some(t[2].clone()));
            layer.forward(&t[0])
        },
        &[input(&[2, 2, 3], 3), input(&[2, 2, 2], 5), two],
    );
    check(
        "MultiheadAttention",
        &|t| {
            let mut layer = MultiheadAttention::new(4, 2);
            (layer.in_proj_weight, layer.out_proj.weight) = (t[1].clone(), t[2].clone());
            layer.forward(&t[0], &t[0], &t[0], AttentionMasks::new().causal())
        },
        &[input(&[2, 3, 4], 3), input(&[12, 4], 5) / 2.0, input(&[4, 4], 7)],
    );
}

#[test]
fn a_query_that_may_look_at_nothing_gets_nothing() {
    for number in [0.0, 1e10] {
        let layer = MultiheadAttention::<f32>::new(2, 1);
        let x = Tensor::full([1, 2, 2], number);
        x.set_stop_gradient(false);
        let mask = Tensor::from([[true, true], [false, true]]);
        let masks = AttentionMasks::new().attention(&mask);
        let (y, weights) = layer.try_forward(&x, &x, &x, masks).unwrap();
        assert_eq!(weights.to_vec(), [0.0, 0.0, 1.0, 0.0]);
        assert_eq!(y.select(1, 0).to_vec(), [0.0, 0.0], "the bias of the last projection");
        y.sum().backward().unwrap();
        let grad = x.try_grad().unwrap().to_vec();
        assert_eq!(grad[2..], [0.0, 0.0], "the second key is looked at by nobody");
        assert!(grad.iter().all(|x| x.is_finite()), "{grad:?}");
    }
    // A mask for each head, with rows in which everything is masked.
    let layer = MultiheadAttention::<f64>::new(2, 2);
    let x = numbers(&[3, 2, 2], 3);
    let mask = Tensor::from(vec![false, true, true, false]).reshape([2, 1, 2]);
    let mask = Tensor::concat(&[&mask, &mask], 1);
    let (_, weights) =
        layer.try_forward(&x, &x, &x, AttentionMasks::new().attention(&mask)).unwrap();
    assert_eq!(weights.select(0, 1).to_vec(), [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
    let none = Tensor::<f64>::zeros([3, 0, 2]);
    assert_eq!(layer.forward(&x, &none, &none, AttentionMasks::new()).to_vec(), [0.0; 12]);
    assert_eq!(layer.forward(&none, &x, &x, AttentionMasks::new()).shape(), [3, 0, 2]);
    let dropped = MultiheadAttention::<f64>::new(2, 1).dropout(1.0);
    assert_eq!(dropped.forward(&x, &x, &x, AttentionMasks::new()).to_vec(), [0.0; 12]);
    dropped.eval();
    assert_ne!(dropped.forward(&x, &x, &x, AttentionMasks::new()).to_vec(), [0.0; 12]);
}

#[test]
fn numbers_of_a_mask_are_added_to_the_scores() {
    let layer = MultiheadAttention::<f64>::new(4, 2);
    let x = numbers(&[3, 2, 4], 3);
    let weights = |masks| layer.try_forward(&x, &x, &x, masks).unwrap().1;
    let off = f64::NEG_INFINITY;
    // Minus infinity is the same as `true`, even if everything is masked.
    let hidden = Tensor::from([[true, true], [false, true]]);
    let added = Tensor::from([[off, off], [0.0, off]]);
    let of_pairs =
        [AttentionMasks::new().attention(&hidden), AttentionMasks::new().attention(&added)];
    assert_eq!(weights(of_pairs[0]).to_vec(), weights(of_pairs[1]).to_vec());
    let hidden = Tensor::from([[true, false], [false, false], [true, true]]);
    let added = Tensor::from([[off, 0.0], [0.0, 0.0], [off, off]]).cast::<f32>();
    let of_keys = [AttentionMasks::new().padding(&hidden), AttentionMasks::new().padding(&added)];
    assert_eq!(weights(of_keys[0]).to_vec(), weights(of_keys[1]).to_vec());
    let one = Tensor::from([[off, 0.0], [0.0, 0.0]]);
    let both = of_keys.map(|masks| weights(masks.attention(&one)).to_vec());
    assert_eq!(both[0], both[1]);
    // Other numbers: the logarithm of a factor scales the weight of a key.
    let bias = Tensor::from([[2_f64.ln(), 0.0], [0.0, 3_f64.ln()]]);
    bias.set_stop_gradient(false);
    let factors = Tensor::from([[2.0, 1.0], [1.0, 3.0]]);
    let scaled = weights(AttentionMasks::new()) * factors;
    let expected = &scaled / scaled.sum_axes_keep(-1);
    let found = weights(AttentionMasks::new().attention(&bias));
    assert!(found.allclose(&expected, 1e-12, 0.0), "{found} {expected}");
    let f = |bias: &[Tensor<f64>]| {
        layer.forward(&x, &x, &x, AttentionMasks::new().attention(&bias[0]).causal())
    };
    gradgradcheck(f, &[numbers(&[2, 2, 2], 5)]).unwrap();
    let wrong = Tensor::<f32>::zeros([2, 3]);
    let error = layer.try_forward(&x, &x, &x, AttentionMasks::new().attention(&wrong)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "MultiheadAttention: `attention` must be broadcastable to [3, 2, 2, 2], with the last two axes \
         whole, found shape [2, 3]"
    );
}

#[test]
fn normalization_holds_over_the_whole_range() {
    let rows = Tensor::from([[1e38_f32, 3e38], [1e-38, 3e-38], [0.0, 0.0], [1.0, 7.0]]);
    let found = RmsNorm::<f32>::new(2).eps(0.0).forward(&rows.narrow(0, 0, 1)).to_vec();
    assert!((found[0] - 0.447_213_6).abs() < 1e-6 && (found[1] - 1.341_640_8).abs() < 1e-6);
    let found = RmsNorm::<f32>::new(2).forward(&rows).to_vec();
    assert!((found[1] - 1.341_640_8).abs() < 1e-6, "{found:?}");
    assert!(found[2] > 0.0 && found[2] < 1e-33 && found[4..6] == [0.0, 0.0], "{found:?}");
    assert!((found[7] - 1.4).abs() < 1e-6);
    // No elements to normalize.
    assert_eq!(RmsNorm::<f32>::new(2).forward(&Tensor::zeros([0, 2])).shape(), [0, 2]);
    assert_eq!(RmsNorm::<f32>::new(0).forward(&Tensor::zeros([3, 0])).shape(), [3, 0]);
    assert_eq!(GroupNorm::<f32>::new(1, 2).forward(&Tensor::zeros([0, 2, 3])).shape(), [0, 2, 3]);
    assert_eq!(GroupNorm::<f32>::new(1, 2).forward(&Tensor::zeros([3, 2, 0])).shape(), [3, 2, 0]);
}

#[test]
fn wrong_shapes_are_reported_by_the_layer_s_name() {
    let x = |shape: &[usize]| Tensor::<f32>::zeros(shape);
    let words = |layer: &dyn Layer, shape: &[usize]| {
        let error = layer.try_forward(&x(shape)).unwrap_err().to_string();
        let forward = AssertUnwindSafe(|| layer.forward(&x(shape)));
        let panic = std::panic::catch_unwind(forward).unwrap_err();
        assert_eq!(*panic.downcast::<String>().unwrap(), error);
        error
    };
    let batch = BatchNorm1d::new(2);
    assert_eq!(
        words(&batch, &[4, 3]),
        "BatchNorm1d: `x` must be of shape [n, 2] or [n, 2, length], found shape [4, 3]"
    );
    assert!(words(&batch, &[4, 2, 1, 1]).contains("[n, 2, length], found shape [4, 2, 1, 1]"));
    assert!(words(&batch, &[1, 2]).contains("at least two values per channel"));
    assert_eq!(
        words(&GroupNorm::new(1, 3), &[4, 2]),
        "GroupNorm: `x` must be of shape [n, 3, ..], found shape [4, 2]"
    );
    assert!(words(&GroupNorm::new(1, 3), &[]).contains("found shape []"));
    assert_eq!(
        words(&RmsNorm::new([2, 3]), &[3]),
        "RmsNorm: `x` must be of a shape that ends in [2, 3], found shape [3]"
    );
    let conv = Conv1d::new(4, 2, 5, Conv1dOptions::new().groups(2));
    assert_eq!(
        words(&conv, &[1, 2, 9]),
        "Conv1d: `x` must be of shape [n, 4, length], found shape [1, 2, 9]"
    );
    assert_eq!(
        words(&conv, &[1, 4, 3]),
        "Conv1d: `x` must be at least 5 long, for one window to fit, found shape [1, 4, 3]"
    );
    let net = Sequential::new().then(Relu).then(LayerNorm::new(3));
    assert!(words(&net, &[2]).starts_with("LayerNorm: `x` must be"));

    let layer = MultiheadAttention::<f32>::new(4, 2);
    let attend = |shapes: [&[usize]; 3], masks: AttentionMasks<'_>| {
        let [q, k, v] = shapes.map(x);
        layer.try_forward(&q, &k, &v, masks).unwrap_err().to_string()
    };
    let none = AttentionMasks::new();
    assert_eq!(
        attend([&[3, 4], &[1, 3, 4], &[1, 3, 4]], none),
        "MultiheadAttention: `query` must be of shape [n, queries, 4], found shape [3, 4]"
    );
    assert_eq!(
        attend([&[2, 3, 4], &[1, 3, 4], &[1, 3, 4]], none),
        "MultiheadAttention: `key` must be of shape [2, keys, 4], found shape [1, 3, 4]"
    );
    assert_eq!(
        attend([&[1, 3, 4], &[1, 3, 4], &[1, 2, 4]], none),
        "MultiheadAttention: `value` must be of shape [1, 3, 4], as `key` is, found shape [1, 2, 4]"
    );
    let mask = Tensor::from([[false; 2]; 3]);
    let shapes: [&[usize]; 3] = [&[1, 3, 4]; 3];
    // The last two axes are wrong, that of the heads, and that of the batch, which would grow.
    for shape in [&[3, 2][..], &[3, 3, 3], &[5, 1, 3, 3], &[1, 1, 1, 3, 3], &[1, 3]] {
        let mask = Tensor::full(shape, false);
        assert_eq!(
            attend(shapes, none.attention(&mask)),
            format!(
                "MultiheadAttention: `attention` must be broadcastable to [1, 2, 3, 3], with the last two axes \
                 whole, found shape {shape:?}"
            )
        );
    }
    assert_eq!(
        attend(shapes, none.padding(&mask)),
        "MultiheadAttention: `padding` must be of shape [1, 3], found shape [3, 2]"
    );
    for refused in [
        std::panic::catch_unwind(|| drop(GroupNorm::<f32>::new(2, 3))),
        std::panic::catch_unwind(|| drop(RmsNorm::<f32>::new(()))),
        std::panic::catch_unwind(|| drop(MultiheadAttention::<f32>::new(3, 2))),
        std::panic::catch_unwind(|| {
            drop(Conv1d::<f32>::new(3, 2, 1, Conv1dOptions::new().groups(2)))
        }),
    ] {
        assert!(refused.is_err());
    }
}

#[test]
fn loops_over_parameters_need_no_casts() {
    let model = (Linear::<f32>::new(2, 1), Linear::<f64>::new(2, 1), RmsNorm::<f32>::new(2));
    let shared = [&model.0, &model.0];
    assert_eq!(model.parameters_of::<f32>().len(), 3);
    assert_eq!(model.parameters_of::<f64>().len(), 2);
    assert_eq!(shared.parameters_of::<f32>().len(), 2, "each tensor once");
    model.0.forward(&Tensor::from([[3.0, 4.0]])).sum().backward().unwrap();
    let norms: Vec<Option<f64>> =
        model.parameters().iter().map(|p| p.grad().map(|grad| grad.norm())).collect();
    assert_eq!(norms, [Some(5.0), Some(1.0), None, None, None]);
    let weight = AnyTensor::from(model.0.weight.clone());
    assert_eq!((weight.len(), weight.shape(), weight.is_empty()), (2, &[1, 2][..], false));
    weight.clear_grad();
    assert!(model.0.weight.grad().is_none() && weight.grad().is_none());

    let integers = AnyTensor::from(Tensor::from([3_i64, -4]));
    integers.clear_grad();
    assert!(integers.grad().is_none() && integers.norm() == 5.0);
    assert_eq!(AnyTensor::from(Tensor::from([true, false, true, true, true])).norm(), 2.0);

    let x = Tensor::from([1.0]);
    assert!(x.is_same(&x.clone()) && !x.is_same(&x.copy()) && !x.is_same(&x.detach()));
    let (any, again) = (AnyTensor::from(x.clone()), AnyTensor::from(x));
    assert!(any.is_same(&again) && !any.is_same(&integers));
}

#[test]
fn an_option_of_a_normalization_that_is_out_of_range_is_an_error() {
    let x = Tensor::<f64>::randn([4, 2]);
    for eps in [-1e-5, f64::NAN, f64::INFINITY] {
        let of = |layer: &str| format!("{layer}: `eps` must be 0 or more, and finite, found {eps}");
        let words = |y: autograd_core::Result<Tensor<f64>>| y.unwrap_err().to_string();
        assert_eq!(words(LayerNorm::new([2]).eps(eps).try_forward(&x)), of("LayerNorm"));
        assert_eq!(words(GroupNorm::new(1, 2).eps(eps).try_forward(&x)), of("GroupNorm"));
        assert_eq!(words(RmsNorm::new([2]).eps(eps).try_forward(&x)), of("RmsNorm"));
        assert_eq!(words(BatchNorm1d::new(2).eps(eps).try_forward(&x)), of("BatchNorm1d"));
    }
    let layer = BatchNorm1d::<f64>::new(2).momentum(1.5);
    let error = layer.try_forward(&x).unwrap_err().to_string();
    assert_eq!(error, "BatchNorm1d: `momentum` must be in [0, 1], found 1.5");
    assert!(LayerNorm::new([2]).eps(0.0).try_forward(&x).is_ok());
}
