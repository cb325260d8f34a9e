//! Invalid input: each case has a defined result, or an error that names op, parameter, expected
//! and found values; afterwards everything is as usable as before.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use autograd_core::nn::{BatchNorm2d, Conv2d, Embedding, LayerNorm, Linear};
use autograd_core::{
    BackwardOptions, Conv2dOptions, Error, GradOptions, Result, Tensor, backward, grad, grad_with,
    hessian,
};
use ndarray::{Array, Array1, Array2, ArrayD, Axis, IxDyn, ShapeBuilder, array, s};
use support::leaf_like;

fn halves(shape: &[usize]) -> Tensor<f64> {
    let n = shape.iter().product();
    leaf_like(&(Tensor::<f64>::arange(n).reshape(shape) * 0.5 + 1.0))
}

/// The message of an error; also checks that the tensor can still take part in a backward.
#[track_caller]
fn message<T: std::fmt::Debug>(x: &Tensor<f64>, result: Result<T>) -> String {
    let error = result.expect_err("an error");
    x.clear_grad();
    (x * 2.0).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), vec![2.0; x.len()]);
    error.to_string()
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let x = halves(&[2, 3]);
    let y = halves(&[4]);
    let cases: Vec<(Result<Tensor<f64>>, &str)> = vec![
        (x.try_add(&y), "add: shapes [2, 3] and [4] cannot be broadcast together"),
        (x.try_sub(&y), "sub: shapes [2, 3] and [4] cannot be broadcast together"),
        (x.try_mul(&y), "mul: shapes [2, 3] and [4] cannot be broadcast together"),
        (x.try_div(&y), "div: shapes [2, 3] and [4] cannot be broadcast together"),
        (
            x.try_matmul(&y),
            "matmul: `other` must be a vector of length 3, to fit the left operand of shape [2, 3], found \
             shape [4]",
        ),
        (
            y.try_matmul(&x),
            "matmul: `other` must be a matrix with 4 rows, to fit the left operand of shape [4], found \
             shape [2, 3]",
        ),
        (
            x.try_matmul(&Tensor::from(1.0)),
            "matmul: `other` must be a vector, a matrix or a stack of matrices, found shape []",
        ),
        (
            x.try_reshape([4]),
            "reshape: `shape` must be a shape with 6 elements, as many as the tensor of shape [2, 3] has, \
             found shape [4]",
        ),
        (
            x.try_broadcast_to([3, 3]),
            "broadcast_to: `shape` must be a shape that [2, 3] broadcasts to, found shape [3, 3]",
        ),
        (
            x.try_broadcast_to([-1, 2, 3]),
            "broadcast_to: `shape` must be a shape that [2, 3] broadcasts to, with a length for a new axis, found \
             [-1, 2, 3]",
        ),
        (
            Tensor::try_concat(&[&x, &y], 0),
            "concat: `tensors[1]` must be of the first tensor's shape [2, 3] except along axis 0, found \
             shape [4]",
        ),
        (
            Tensor::try_concat(Vec::<Tensor<f64>>::new(), 0),
            "concat: expected 1 or more tensors, found 0",
        ),
        (Tensor::try_concat(&[&x], 2), "concat: axis 2 does not exist (the tensor has 2 axes)"),
        (x.try_softmax(-3), "softmax: axis -3 does not exist (the tensor has 2 axes)"),
        (x.try_cumsum(5), "cumsum: axis 5 does not exist (the tensor has 2 axes)"),
        (
            x.try_gather(0, &Tensor::from([0])),
            "gather: `index` must be of 2 axes, on each but 0 no longer than [2, 3], found shape [1]",
        ),
        (
            x.try_index_select(1, &Tensor::from([0, 7])),
            "index_select: `index[1]` is 7, outside an axis of length 3",
        ),
        (
            x.try_conv2d(&y, None, Conv2dOptions::new()),
            "conv2d: the tensor must be images of shape [n, channels, height, width], found shape \
             [2, 3]",
        ),
        (x.try_outer(&y), "outer: the tensor must be a vector, found shape [2, 3]"),
        (
            x.try_cross_entropy(&Tensor::from([0, 1, 2])),
            "cross_entropy: `targets` must be of shape [2], one class for each row, found \
             shape [3]",
        ),
    ];
    for (result, expected) in cases {
        assert_eq!(message(&x, result), expected);
    }
    assert_eq!(
        message(&x, x.try_item()),
        "item: the tensor must be of one element, found shape [2, 3]"
    );
    assert_eq!(
        message(&x, Tensor::from_vec([2, 2], vec![1.0])),
        "from_vec: expected 4 elements for shape [2, 2], found 1"
    );
    // Leading axes of stacks of matrices must agree too.
    let error = halves(&[2, 1, 3]).try_matmul(&halves(&[5, 3, 1])).unwrap_err();
    assert!(matches!(error, Error::Broadcast { op: "matmul", .. }), "{error}");
}

/// A layer with a bias of the wrong shape.
fn with_bias<L>(mut layer: L, bias: impl Fn(&mut L) -> &mut Tensor<f64>) -> L {
    *bias(&mut layer) = halves(&[2]);
    layer
}

/// Each error names the called function or layer and its parameters; the tensor on which a method
/// is called has no name that the caller wrote.
#[test]
fn errors_speak_of_what_the_caller_wrote() {
    let (x, y, one) = (halves(&[2, 3]), halves(&[4]), halves(&[]));
    let (index, pictures) = (Tensor::from([9]), halves(&[1, 3, 4, 4]));
    let plain = Conv2dOptions::new();
    let groups = plain.groups(2);
    let wide = Tensor::<f64>::zeros([3, 0]);
    type Case<'a> = (Box<dyn Fn() -> Tensor<f64> + 'a>, &'static str);
    let cases: Vec<Case<'_>> = vec![
        (
            Box::new(|| y.transpose()),
            "transpose: the tensor must be of two axes or more, found shape [4]",
        ),
        (Box::new(|| y.tril(0)), "tril: the tensor must be of two axes or more, found shape [4]"),
        (
            Box::new(|| x.narrow(1, 2, 2)),
            "narrow: start + len must be at most 3, the length of axis 1, found 2 + 2",
        ),
        (
            Box::new(|| x.narrow(-1, 4, 0)),
            "narrow: start + len must be at most 3, the length of axis -1, found 4 + 0",
        ),
        (Box::new(|| x.narrow(2, 0, 1)), "narrow: axis 2 does not exist (the tensor has 2 axes)"),
        (Box::new(|| x.select(-2, 2)), "select: `index` is 2, outside an axis of length 2"),
        (Box::new(|| x.select(2, 0)), "select: axis 2 does not exist (the tensor has 2 axes)"),
        (
            Box::new(|| x.slice_axis(1, 2, 1, 1)),
            "slice_axis: start, end and step must be such that start <= end <= 3 and step >= 1 on axis 1 of \
             [2, 3], found 2, 1 and 1",
        ),
        (
            Box::new(|| Tensor::stack(&[&x, &y], 0)),
            "stack: `tensors[1]` must be of shape [2, 3], as the first is, found shape [4]",
        ),
        (
            Box::new(|| Tensor::stack(Vec::<Tensor<f64>>::new(), 0)),
            "stack: expected 1 or more tensors, found 0",
        ),
        (
            Box::new(|| Tensor::stack(&[&x], 4)),
            "stack: axis 4 does not exist (the tensor has 2 axes)",
        ),
        (Box::new(|| x.unsqueeze(5)), "unsqueeze: axis 5 does not exist (the tensor has 2 axes)"),
        (
            Box::new(|| x.unsqueeze_axes(&[0, 0])),
            "unsqueeze_axes: axis 0 is given twice (the tensor has 2 axes)",
        ),
        (
            Box::new(|| Tensor::zeros([usize::MAX, 2])),
            "zeros: a tensor of shape [18446744073709551615, 2] is too large for this machine",
        ),
        (
            Box::new(|| Tensor::ones([usize::MAX, 2])),
            "ones: a tensor of shape [18446744073709551615, 2] is too large for this machine",
        ),
        (
            Box::new(|| y.matmul(&x)),
            "matmul: `other` must be a matrix with 4 rows, to fit the left operand of shape [4], \
             found shape [2, 3]",
        ),
        (
            Box::new(|| one.matmul(&x)),
            "matmul: the tensor must be a vector, a matrix or a stack of matrices, found shape []",
        ),
        (Box::new(|| x.outer(&y)), "outer: the tensor must be a vector, found shape [2, 3]"),
        (Box::new(|| y.outer(&x)), "outer: `other` must be a vector, found shape [2, 3]"),
        (
            Box::new(|| wide.max_axes([1])),
            "max: the tensor must be of one element or more along the reduced axes, found shape [3, 0]",
        ),
        (
            Box::new(|| wide.argmin(1).cast()),
            "argmin: the tensor must be of one element or more along axis 1, found shape [3, 0]",
        ),
        (
            Box::new(|| Tensor::from([0, 9]).one_hot(9)),
            "one_hot: element [1] of the tensor is 9, outside an axis of length 9",
        ),
        (
            Box::new(|| x.index_select(0, &index)),
            "index_select: `index[0]` is 9, outside an axis of length 2",
        ),
        (
            Box::new(|| x.index_add(0, &Tensor::from([0]), &y)),
            "index_add: `source` must be of shape [1, 3], one slice for each index, found shape [4]",
        ),
        (
            Box::new(|| y.cross_entropy(&index)),
            "cross_entropy: the tensor must be of shape [n, classes] or [n, classes, ..], found shape [4]",
        ),
        (
            Box::new(|| x.mse_loss(&y)),
            "mse_loss: `target` must be of shape [2, 3], as the predictions are, found shape [4]",
        ),
        (
            Box::new(|| x.smooth_l1_loss(&y)),
            "smooth_l1_loss: `target` must be of shape [2, 3], as the predictions are, found shape [4]",
        ),
        (
            Box::new(|| x.binary_cross_entropy_with_logits(&y)),
            "binary_cross_entropy_with_logits: `targets` must be of shape [2, 3], as the predictions \
             are, found shape [4]",
        ),
        (
            Box::new(|| x.max_pool2d(2)),
            "max_pool2d: the tensor must be images of shape [n, channels, height, width], found shape [2, 3]",
        ),
        (
            Box::new(|| pictures.avg_pool2d(5)),
            "avg_pool2d: the tensor must be at least 5 high and 5 wide, for one window to fit, found \
             shape [1, 3, 4, 4]",
        ),
        (
            Box::new(|| pictures.conv2d(&halves(&[2, 1, 3, 3]), None, plain)),
            "conv2d: `weight` must be of shape [outputs, 3, height, width], for 3 channels in 1 group, \
             found shape [2, 1, 3, 3]",
        ),
        (
            Box::new(|| pictures.conv2d(&halves(&[2, 1, 3, 3]), None, groups)),
            "conv2d: the tensor must be of a number of channels that is a multiple of `groups`, 2, \
             found shape [1, 3, 4, 4]",
        ),
        (
            Box::new(|| halves(&[1, 2, 4, 4]).conv2d(&halves(&[3, 1, 3, 3]), None, groups)),
            "conv2d: `weight` must be of a number of outputs that is a multiple of `groups`, 2, found \
             shape [3, 1, 3, 3]",
        ),
        (
            Box::new(|| x.linear(&halves(&[2, 4]), None)),
            "linear: the tensor must be of shape [.., 4], for `weight` of shape [2, 4], found shape \
             [2, 3]",
        ),
        (
            Box::new(|| Linear::new(4, 2).forward(&x)),
            "Linear: `x` must be of shape [.., 4], for `weight` of shape [2, 4], found shape [2, 3]",
        ),
        (
            Box::new(|| Conv2d::new(1, 2, 3, plain).forward(&pictures)),
            "Conv2d: `x` must be of shape [n, 1, height, width], found shape [1, 3, 4, 4]",
        ),
        (
            Box::new(|| Conv2d::new(4, 2, 3, groups).forward(&pictures)),
            "Conv2d: `x` must be of shape [n, 4, height, width], found shape [1, 3, 4, 4]",
        ),
        (
            Box::new(|| Conv2d::new(3, 2, 5, plain).forward(&pictures)),
            "Conv2d: `x` must be at least 5 high and 5 wide, for one window to fit, found shape \
             [1, 3, 4, 4]",
        ),
        (
            Box::new(|| Conv2d::new(1, 2, 3, plain).forward(&x)),
            "Conv2d: `x` must be images of shape [n, channels, height, width], found shape [2, 3]",
        ),
        (
            Box::new(|| Embedding::new(3, 2).forward(&Tensor::from([[0, 1], [2, 3]]))),
            "Embedding: `numbers[1, 1]` is 3, outside an axis of length 3",
        ),
        (
            Box::new(|| LayerNorm::new(4).forward(&x)),
            "LayerNorm: `x` must be of a shape that ends in [4], found shape [2, 3]",
        ),
        (
            Box::new(|| BatchNorm2d::new(2).forward(&pictures)),
            "BatchNorm2d: `x` must be of shape [n, 2, height, width], found shape [1, 3, 4, 4]",
        ),
        (
            Box::new(|| with_bias(LayerNorm::new(3), |norm| &mut norm.bias).forward(&x)),
            "LayerNorm: shapes [2, 3] and [2] cannot be broadcast together",
        ),
        (
            Box::new(|| with_bias(BatchNorm2d::new(3), |norm| &mut norm.bias).forward(&pictures)),
            "BatchNorm2d: `bias` must be of shape [3], as `weight` is, found shape [2]",
        ),
    ];
    let wrong: Vec<String> = cases
        .into_iter()
        .filter_map(|(case, expected)| {
            let panic = catch_unwind(AssertUnwindSafe(case)).expect_err(expected);
            let text = panic.downcast::<String>().map_or_else(|_| String::new(), |text| *text);
            (text != expected).then(|| format!("said {text}\nfor  {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

thread_local! {
    static PANICKED_AT: RefCell<String> = const { RefCell::new(String::new()) };
}

#[test]
fn the_panicking_form_points_at_its_caller() {
    let own = std::thread::current().id();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map_or_else(String::new, ToString::to_string);
        PANICKED_AT.with_borrow_mut(|at| *at = place);
        if std::thread::current().id() != own {
            before(info);
        }
    }));
    let x = halves(&[2, 3]);
    let y = halves(&[4]);
    let mut z = halves(&[2, 3]) * 1.0;
    let index = Tensor::from([9]);
    let mask = Tensor::from([true]);
    type Case<'a> = (&'static str, Box<dyn FnMut() + 'a>);
    let cases: Vec<Case<'_>> = vec![
        ("add", Box::new(|| drop(&x + &y))),
        ("add", Box::new(|| drop((&x * 2.0) + &y))),
        ("add_assign", Box::new(|| z += &halves(&[5, 2, 3]))),
        ("maximum", Box::new(|| drop(x.maximum(&y)))),
        ("pow", Box::new(|| drop(x.pow(&y)))),
        ("matmul", Box::new(|| drop(x.matmul(&y)))),
        ("reshape", Box::new(|| drop(x.reshape([4])))),
        ("permute", Box::new(|| drop(x.permute(&[0, 0])))),
        ("permute", Box::new(|| drop(x.permute(&[0])))),
        ("transpose", Box::new(|| drop(y.transpose()))),
        ("unsqueeze", Box::new(|| drop(x.unsqueeze(4)))),
        ("squeeze", Box::new(|| drop(x.squeeze(0)))),
        ("squeeze", Box::new(|| drop(x.squeeze(2)))),
        ("narrow", Box::new(|| drop(x.narrow(0, 1, 2)))),
        ("narrow", Box::new(|| drop(x.narrow(0, usize::MAX, 2)))),
        ("slice_axis", Box::new(|| drop(x.slice_axis(1, 0, 3, 0)))),
        ("select", Box::new(|| drop(x.select(1, 3)))),
        ("flip", Box::new(|| drop(x.flip(2)))),
        ("split", Box::new(|| drop(x.split(2, 1)))),
        ("split", Box::new(|| drop(x.split(0, 1)))),
        ("concat", Box::new(|| drop(Tensor::concat(&[&x, &y], 0)))),
        ("stack", Box::new(|| drop(Tensor::stack(&[&x, &y], 0)))),
        ("broadcast_to", Box::new(|| drop(x.broadcast_to([3])))),
        ("tril", Box::new(|| drop(y.tril(0)))),
        ("sum", Box::new(|| drop(x.sum_axes([2])))),
        ("sum", Box::new(|| drop(x.sum_axes([0, -2])))),
        ("mean", Box::new(|| drop(x.mean_axes_keep([3])))),
        ("max", Box::new(|| drop(Tensor::<f64>::zeros([0]).max()))),
        ("min", Box::new(|| drop(Tensor::<f64>::zeros([2, 0]).min_axes([1])))),
        ("var", Box::new(|| drop(x.var_axes([2], 0)))),
        ("logsumexp", Box::new(|| drop(x.logsumexp([2])))),
        ("softmax", Box::new(|| drop(x.softmax(2)))),
        ("gather", Box::new(|| drop(x.gather(0, &index)))),
        ("index_select", Box::new(|| drop(x.index_select(0, &index)))),
        ("argmax", Box::new(|| drop(x.argmax(2)))),
        ("one_hot", Box::new(|| drop(index.one_hot::<f32>(9)))),
        ("cumsum", Box::new(|| drop(x.cumsum(2)))),
        ("equal", Box::new(|| drop(x.equal(&y)))),
        ("and", Box::new(|| drop(Tensor::from([true, false]).and(&Tensor::from([true; 3]))))),
        ("where_else", Box::new(|| drop(mask.where_else(&x, &y)))),
        ("item", Box::new(|| _ = x.item())),
        ("at", Box::new(|| _ = x.at(&[2, 0]))),
        ("at", Box::new(|| _ = x.at(&[0]))),
        ("clamp", Box::new(|| drop(x.clamp(1.0, 0.0)))),
        ("clamp", Box::new(|| drop(x.clamp(f64::NAN, 0.0)))),
        ("dropout", Box::new(|| drop(x.dropout(1.5, true)))),
        ("mse_loss", Box::new(|| drop(x.mse_loss(&y)))),
        ("nll_loss", Box::new(|| drop(x.nll_loss(&index)))),
        ("cross_entropy", Box::new(|| drop(x.cross_entropy(&index)))),
        ("conv2d", Box::new(|| drop(x.conv2d(&y, None, Conv2dOptions::new())))),
        ("max_pool2d", Box::new(|| drop(x.max_pool2d(2)))),
        ("zeros", Box::new(|| drop(Tensor::<f32>::zeros([usize::MAX, 2])))),
        ("randint", Box::new(|| drop(Tensor::randint([2], 3, 3)))),
    ];
    let mut wrong = Vec::new();
    for (n, (op, mut case)) in cases.into_iter().enumerate() {
        let panic = catch_unwind(AssertUnwindSafe(&mut case)).expect_err(op);
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        let text = text.unwrap_or_default();
        let place = PANICKED_AT.with_borrow(Clone::clone);
        if !text.starts_with(&format!("{op}: ")) || !place.contains("bad_input.rs") {
            wrong.push(format!("case {n}: {op}: at {place}: {text}"));
        }
    }
    let _ = std::panic::take_hook();
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(message(&x, x.try_add(&y)).split(':').next(), Some("add"));
    assert_eq!(z.to_vec(), halves(&[2, 3]).to_vec());
}

#[test]
fn wrong_seeds_and_wrong_calls_of_backward() {
    let x = halves(&[2, 3]);
    let y = &x * 3.0;
    let seed = |shape: &[usize]| Tensor::<f64>::ones(shape);
    for shape in [&[3, 2][..], &[6], &[2, 3, 1], &[1], &[]] {
        let error = y.backward_with(&seed(shape)).unwrap_err();
        assert!(matches!(error, Error::SeedShape { .. }), "{error}");
    }
    assert!(matches!(y.backward().unwrap_err(), Error::SeedMissing { op: "backward", .. }));
    assert!(x.grad().is_none());
    y.backward_with(&seed(&[2, 3])).unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [3.0; 6]);
    let error = y.backward_with(&seed(&[2, 3])).unwrap_err();
    assert!(matches!(error, Error::GraphFreed { op: "mul", .. }), "{error}");
    assert_eq!(x.grad().unwrap().to_vec(), [3.0; 6]);

    // A single element of any shape needs no seed; a tensor without elements does.
    let one = halves(&[1, 1]);
    (&one * 2.0).backward().unwrap();
    assert_eq!(one.grad().unwrap().shape(), [1, 1]);
    let none = halves(&[0, 2]);
    assert!((&none * 2.0).backward().is_err());
    (&none * 2.0).backward_with(&Tensor::zeros([0, 2])).unwrap();
    assert_eq!(none.grad().unwrap().shape(), [0, 2]);
}

#[test]
fn wrong_calls_of_grad() {
    let (x, w) = (halves(&[2]), halves(&[2]));
    let y = x.square().sum();
    assert!(matches!(grad(&[&y], &[&w]).unwrap_err(), Error::Unused { position: 0 }));
    assert!(matches!(grad(&[&y], &[&x, &w]).unwrap_err(), Error::Unused { position: 1 }));
    // The error comes before the walk, so the graph still exists.
    let z = x.square().sum();
    grad(&[&z], &[&x, &w]).unwrap_err();
    z.backward().unwrap();
    x.clear_grad();
    assert!(matches!(grad(&[&y], &[&x, &x]).unwrap_err(), Error::Duplicate { op: "grad", .. }));
    assert!(matches!(grad(&[&y, &y], &[&x]).unwrap_err(), Error::Duplicate { .. }));
    assert!(matches!(grad::<f64, f64>(&[], &[&x]).unwrap_err(), Error::Count { .. }));
    assert!(matches!(grad::<f64, f64>(&[&y], &[]).unwrap_err(), Error::Count { .. }));
    let seeds = |seeds| GradOptions::new().seeds(seeds);
    let error = grad_with(&[&y], &[&x], seeds(vec![])).unwrap_err();
    assert!(matches!(error, Error::Count { op: "grad", expected: 1, found: 0, .. }), "{error}");
    let error = grad_with(&[&y], &[&x], seeds(vec![Some(Tensor::zeros([3]))])).unwrap_err();
    assert!(matches!(error, Error::SeedShape { .. }), "{error}");
    // None of these freed the graph except for the unused input, whose walk had begun.
    let z = x.square().sum();
    assert!(grad(&[&z], &[&x, &x]).is_err());
    let both = grad_with(&[&z], &[&x, &w], GradOptions::new().allow_unused(true)).unwrap();
    assert!(both[0].is_some() && both[1].is_none());
    assert!(x.grad().is_none());
    let stopped = Tensor::<f64>::ones([2]);
    assert!(grad(&[&x.sum()], &[&stopped]).is_err());
}

#[test]
fn a_call_that_needs_a_seed_says_how_it_is_given() {
    let x = halves(&[2]);
    let y = x.square();
    let text_of = |error: Error| {
        assert!(matches!(error, Error::SeedMissing { .. }), "{error}");
        let words = error.to_string();
        // The location of the call is part of the message.
        let (before, rest) = words.split_once(" (called at ").unwrap();
        format!("{before}{}", rest.split_once(')').unwrap().1)
    };
    let needs = |call: &str, with: &str| {
        format!(
            "{call}: the output of square has shape [2], so it needs a seed: give one with \
             `{with}`, or reduce the output to one element first, with `sum()` or `mean()`"
        )
    };
    let error = grad(&[&y], &[&x]).unwrap_err();
    assert_eq!(text_of(error), needs("grad", "GradOptions::seeds"));
    assert_eq!(text_of(y.backward().unwrap_err()), needs("backward", "backward_with"));
    assert_eq!(
        x.backward().unwrap_err().to_string(),
        "backward: a leaf tensor has shape [2], so it needs a seed: give one with \
         `backward_with`, or reduce the output to one element first, with `sum()` or `mean()`"
    );
    assert_eq!(
        hessian(Tensor::square, &x).unwrap_err().to_string(),
        "hessian: what the closure returns must be of one element, found shape [2]"
    );
}

#[test]
fn the_same_output_twice_is_reported_among_many() {
    for count in [2, 8, 9, 30] {
        let x = halves(&[1]);
        let outputs: Vec<_> = (0..count).map(|k| &x * f64::from(k)).collect();
        let mut listed: Vec<_> = outputs.iter().collect();
        grad(&listed, &[&x]).unwrap();
        let last = listed.len() - 1;
        listed[last] = listed[last / 2];
        let error = grad(&listed, &[&x]).unwrap_err().to_string();
        assert!(error.contains(&format!("outputs[{last}]")), "{error}");
    }
}

#[test]
fn tensors_without_elements() {
    let x = halves(&[0, 3]);
    assert_eq!((x.sum().item(), x.prod().item()), (0.0, 1.0));
    assert!(x.mean().item().is_nan());
    assert_eq!(x.sum_axes([0]).to_vec(), [0.0; 3]);
    assert_eq!(x.sum_axes([1]).shape(), [0]);
    assert_eq!(x.max_axes([1]).shape(), [0]);
    assert!(x.max_axes([1]).to_vec().is_empty());
    assert_eq!(x.to_string().lines().count(), 2);
    assert!(x.to_vec().is_empty() && x.is_empty() && x.view().is_empty());
    let y = (&x + 1.0).tanh() * &halves(&[3]) / &x.exp();
    assert_eq!(y.shape(), [0, 3]);
    y.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().shape(), [0, 3]);
    x.clear_grad();
    let broadcast = halves(&[1]);
    (&x * &broadcast).sum().backward().unwrap();
    assert_eq!(broadcast.grad().unwrap().to_vec(), [0.0]);
    // An inner axis of length 0 sums to zeros.
    let product = halves(&[2, 0]).matmul(&halves(&[0, 4]));
    assert_eq!(product.to_vec(), [0.0; 8]);
    assert_eq!(x.reshape([3, 0]).transpose().flip(0).softmax(1).shape(), [0, 3]);
    assert_eq!(Tensor::concat(&[&x, &halves(&[2, 3])], 0).shape(), [2, 3]);
    assert_eq!(x.narrow(0, 0, 0).broadcast_to([5, 0, 3]).len(), 0);
    assert_eq!(x.split(1, 0).len(), 1);
    assert!(
        x.try_reshape([0, usize::MAX]).is_ok_and(|y| y.is_empty()) || x.try_reshape([0]).is_ok()
    );
    assert!(!x.gt_scalar(0.0).any() && x.gt_scalar(0.0).all());
    let (mut a, b) = (&x * 1.0, halves(&[0, 3]));
    a += &b;
    a.fill(1.0).unwrap_err();
    assert_eq!(Tensor::<f64>::from(ArrayD::zeros(IxDyn(&[2, 0, 3]))).shape(), [2, 0, 3]);
}

#[test]
fn scalars_have_no_axis() {
    let x = halves(&[]);
    assert_eq!((x.ndim(), x.len(), x.shape().is_empty()), (0, 1, true));
    assert_eq!((x.sum().item(), x.mean().item(), x.max().item()), (1.0, 1.0, 1.0));
    assert_eq!(x.sum_axes([]).shape().len(), 0);
    assert!(matches!(x.try_softmax(0).unwrap_err(), Error::Axis { rank: 0, .. }));
    assert!(matches!(x.try_argmax(-1).unwrap_err(), Error::Axis { .. }));
    assert!(x.try_index_select(0, &Tensor::from([0])).is_err());
    assert!(x.try_matmul(&x).is_err());
    assert_eq!(x.unsqueeze(0).unsqueeze(-1).shape(), [1, 1]);
    assert_eq!(x.permute(&[]).item(), 1.0);
    assert_eq!(x.reshape(()).item(), 1.0);
    assert_eq!(x.at(&[]), 1.0);
    assert_eq!(x.view().ndim(), 0);
    x.exp().backward().unwrap();
    assert!((x.grad().unwrap().item() - 1_f64.exp()).abs() < 1e-15);
}

#[test]
fn shapes_beyond_this_machine() {
    let x = halves(&[2, 3]);
    let huge = usize::MAX;
    assert!(matches!(x.try_reshape([huge, huge]).unwrap_err(), Error::TooLarge { .. }));
    assert!(matches!(x.try_broadcast_to([huge, 2, 3]).unwrap_err(), Error::TooLarge { .. }));
    assert!(matches!(Tensor::from_vec([huge, 8], vec![1.0]).unwrap_err(), Error::TooLarge { .. }));
    assert!(Tensor::from([0]).try_one_hot::<f64>(huge).is_err());
    let error = Tensor::<f64>::ones([1]).try_broadcast_to([1_usize << 31, 1 << 31]).unwrap_err();
    assert!(matches!(error, Error::TooLarge { op: "broadcast_to", .. }), "{error}");
    // A size that can be addressed but not allocated.
    let wide = Tensor::<f64>::ones([1]).broadcast_to([1_usize << 47]);
    assert_eq!(wide.len(), 1 << 47);
    assert_eq!(wide.at(&[1 << 46]), 1.0);
    let panic = catch_unwind(|| Tensor::<f64>::zeros([1 << 47])).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("out of memory"), "{text}");
    let panic = catch_unwind(AssertUnwindSafe(|| wide.contiguous())).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("out of memory"));
    let panic = catch_unwind(AssertUnwindSafe(|| wide.reshape([1_usize << 46, 2]))).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("out of memory"));
    assert_eq!(message(&x, x.try_add(halves(&[7]))).split(' ').next(), Some("add:"));
}

#[test]
fn steps_and_starts_at_their_limits() {
    let x = halves(&[20]);
    let first = x.slice_axis(0, 0, 20, usize::MAX);
    assert_eq!(first.to_vec(), [1.0]);
    first.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().sum().item(), 1.0);
    assert!(catch_unwind(AssertUnwindSafe(|| x.narrow(0, 19, usize::MAX))).is_err());
    assert_eq!(x.narrow(0, 20, 0).shape(), [0]);
    let rows = halves(&[20, 4]);
    let first = rows.slice_axis(0, 0, 20, usize::MAX);
    assert_eq!(first.to_vec(), rows.select(0, 0).to_vec());
    first.sum().backward().unwrap();
    assert_eq!(rows.grad().unwrap().sum().item(), 4.0);
    assert_eq!(rows.slice_axis(0, 20, 20, usize::MAX).shape(), [0, 4]);
    let matrix = halves(&[4, 20]).transpose();
    assert_eq!(matrix.slice_axis(0, 19, 20, usize::MAX).to_vec(), matrix.select(0, 19).to_vec());
    assert!(catch_unwind(AssertUnwindSafe(|| x.flip(isize::MIN))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| x.unsqueeze(isize::MAX))).is_err());
    let below = x.reshape([4, 5]).triu(isize::MAX);
    assert_eq!(below.sum().item(), 0.0);
    assert_eq!(x.reshape([4, 5]).tril(isize::MIN).sum().item(), 0.0);
}

#[test]
fn nan_and_infinity_pass_through() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    for n in [1, 9, 100] {
        // At the first position, the last and in between; few elements and whole vectors.
        for place in [0, n / 2, n - 1] {
            let mut data = vec![1.0; n];
            data[place] = nan;
            let x = Tensor::from(data);
            assert!(x.max().item().is_nan() && x.min().item().is_nan());
            assert!(x.sum().item().is_nan() && x.prod().item().is_nan());
            assert!(x.relu().to_vec()[place].is_nan());
            assert!(x.abs().to_vec()[place].is_nan());
            assert!(x.clamp(0.0, 2.0).to_vec()[place].is_nan());
            assert!(x.maximum(0.0).to_vec()[place].is_nan());
            assert!(x.minimum(Tensor::from(0.0)).to_vec()[place].is_nan());
            assert!(Tensor::<f64>::ones([n]).maximum(&x).to_vec()[place].is_nan());
            assert!(Tensor::<f64>::ones([n]).minimum(&x).to_vec()[place].is_nan());
            assert!(
                x.leaky_relu(0.1).to_vec()[place].is_nan() && x.elu(1.0).to_vec()[place].is_nan()
            );
            assert!(x.tanh().to_vec()[place].is_nan() && x.sigmoid().to_vec()[place].is_nan());
            assert!(x.exp().to_vec()[place].is_nan() && x.ln().to_vec()[place].is_nan());
            assert!(x.softmax(0).to_vec().iter().all(|y| y.is_nan()));
            assert!(x.log_softmax(0).to_vec()[0].is_nan() && x.logsumexp([]).item().is_nan());
            assert_eq!(x.argmax(0).item(), place as i64);
            assert_eq!(x.is_nan().cast::<i64>().sum().item(), 1);
            assert!(!x.eq_scalar(nan).any() && !x.gt_scalar(2.0).any());
            for f in [Tensor::gelu, Tensor::silu, Tensor::softplus, Tensor::erf, Tensor::signum] {
                let y = f(&x).to_vec()[place];
                assert!(y.is_nan(), "{y} in place {place} of {n}");
            }
            for f in [Tensor::sin, Tensor::cos, Tensor::sqrt, Tensor::square, Tensor::floor] {
                assert!(f(&x).to_vec()[place].is_nan());
            }
        }
    }
    let x = Tensor::from([inf, -inf, 0.0]);
    assert_eq!(x.tanh().to_vec(), [1.0, -1.0, 0.0]);
    assert_eq!(x.sigmoid().to_vec(), [1.0, 0.0, 0.5]);
    assert_eq!(x.exp().to_vec(), [inf, 0.0, 1.0]);
    assert_eq!(x.relu().to_vec(), [inf, 0.0, 0.0]);
    assert_eq!((x.max().item(), x.min().item()), (inf, -inf));
    assert!(x.sum().item().is_nan());
    assert_eq!(x.abs().ln().to_vec(), [inf, inf, -inf]);
    assert_eq!((1.0 / &x).to_vec()[..2], [0.0, 0.0]);
    assert_eq!(Tensor::from([0.0]).recip().to_vec(), [inf]);
}

#[test]
fn gradients_at_nan_and_infinity() {
    let x = Tensor::from([f64::NAN, 2.0, f64::INFINITY]);
    x.set_stop_gradient(false);
    x.square().sum().backward().unwrap();
    let dx = x.grad().unwrap().to_vec();
    assert!(dx[0].is_nan());
    assert_eq!(dx[1..], [4.0, f64::INFINITY]);
    // An element that is not selected gets 0, whatever its value.
    let x = Tensor::from([f64::NAN, -1.0, f64::INFINITY]);
    x.set_stop_gradient(false);
    let mask = Tensor::from([false, true, false]);
    mask.where_else(&x, 0.0).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [0.0, 1.0, 0.0]);
}

#[test]
fn arrays_in_any_order_arrive_as_they_are_seen() {
    let rows: Array2<f64> = Array::from_shape_fn((4, 5), |(i, j)| (10 * i + j) as f64);
    let expected: Vec<f64> = rows.iter().copied().collect();
    let columns = Array::from_shape_fn((4, 5).f(), |(i, j)| (10 * i + j) as f64);
    assert!(!columns.is_standard_layout());
    for x in
        [Tensor::from(rows.clone()), Tensor::from(columns.clone()), Tensor::from(columns.view())]
    {
        assert_eq!((x.shape(), x.to_vec()), (&[4, 5][..], expected.clone()));
    }
    let seen = |view: ndarray::ArrayView2<'_, f64>| {
        let x = Tensor::from(view);
        assert_eq!(x.to_vec(), view.iter().copied().collect::<Vec<_>>());
        assert_eq!(x.view(), view.into_dyn());
        // The owned array with the same layout.
        let owned = Tensor::from(view.to_owned());
        assert_eq!(owned.to_vec(), x.to_vec());
    };
    seen(rows.t());
    seen(rows.slice(s![..;-1, ..]));
    seen(rows.slice(s![.., ..;-1]));
    seen(rows.slice(s![1..;2, ..;3]));
    seen(rows.slice(s![3..3, ..]));
    seen(columns.slice(s![1..3, ..;-2]));
    seen(rows.slice(s![0..1, ..]).broadcast((6, 5)).unwrap());

    // Owned arrays whose data does not start at the beginning, or is reversed.
    let tail = rows.clone().slice_move(s![2.., ..]);
    assert_eq!(Tensor::from(tail.clone()).to_vec(), tail.iter().copied().collect::<Vec<_>>());
    let head = rows.clone().slice_move(s![..2, ..]);
    assert_eq!(Tensor::from(head.clone()).to_vec(), head.iter().copied().collect::<Vec<_>>());
    let mut reversed = rows.clone();
    reversed.invert_axis(Axis(0));
    assert_eq!(
        Tensor::from(reversed.clone()).to_vec(),
        reversed.iter().copied().collect::<Vec<_>>()
    );
    let mut line = Array1::from_iter(0..40);
    line.invert_axis(Axis(0));
    assert_eq!(Tensor::from(line).to_vec(), (0..40).rev().collect::<Vec<_>>());
    let single = array![[7.0]].slice_move(s![..;-1, ..]);
    assert_eq!(Tensor::from(single).to_vec(), [7.0]);
    assert_eq!(Tensor::from(ndarray::arr0(3_i64)).item(), 3);
    let swapped = ArrayD::from_shape_fn(IxDyn(&[2, 3, 4]), |i| i[0] * 100 + i[1] * 10 + i[2]);
    let swapped = swapped.mapv(|v| v as f32).permuted_axes(IxDyn(&[2, 0, 1]));
    let x = Tensor::from(swapped.clone());
    assert_eq!((x.shape(), x.at(&[3, 1, 2])), (&[4, 2, 3][..], 123.0));
    assert_eq!(x.to_ndarray(), swapped);
}

#[test]
fn ops_see_any_layout_alike() {
    let x = halves(&[6, 4]);
    let seen = [
        x.transpose(),
        x.slice_axis(0, 1, 6, 2),
        x.narrow(1, 1, 2).transpose(),
        x.select(1, 2).unsqueeze(0).broadcast_to([3, 6]),
        x.flip(0).transpose().slice_axis(1, 0, 6, 5),
    ];
    for t in seen {
        let plain = Tensor::from_vec(t.shape(), t.to_vec()).unwrap();
        assert_eq!(t.sum_axes([0]).to_vec(), plain.sum_axes([0]).to_vec());
        assert_eq!(t.argmax(1).to_vec(), plain.argmax(1).to_vec());
        assert_eq!(
            t.to_string().replace("stop_gradient=false", "stop_gradient=true"),
            plain.to_string()
        );
        assert_eq!(t.at(&[1, 1]), plain.at(&[1, 1]));
        assert_eq!(t.cast::<f32>().to_vec(), plain.cast::<f32>().to_vec());
        assert_eq!(t.reshape([t.len()]).to_vec(), plain.to_vec());
        assert!(t.equal(&plain).all());
        assert_eq!(t.to_ndarray(), plain.to_ndarray());
        let n = t.shape()[1];
        assert_eq!(t.matmul(&Tensor::eye(n)).to_vec(), plain.to_vec());
    }
}

#[test]
fn integers_wrap_element_by_element_and_saturate() {
    let x = Tensor::from([i64::MAX, i64::MIN, 7]);
    assert_eq!((&x + 1_i64).to_vec(), [i64::MIN, i64::MIN + 1, 8]);
    assert_eq!((&x / -1_i64).to_vec(), [-i64::MAX, i64::MIN, -7]);
    assert!(catch_unwind(AssertUnwindSafe(|| &x / 0_i64)).is_err());
    assert_eq!((Tensor::from([200_u8]) + 100).item(), 44);
    assert_eq!(Tensor::from([1e300, f64::NAN, -5.0]).cast::<u8>().to_vec(), [255, 0, 0]);
    assert_eq!(Tensor::from([2, 3]).cast::<bool>().to_vec(), [true, true]);
}

#[test]
fn writes_in_place_that_do_not_fit() {
    let mut x = Tensor::from(vec![1.0; 6]).reshape([2, 3]);
    let error = x.copy_from(&Tensor::zeros([3, 2])).unwrap_err();
    assert!(matches!(error, Error::Shape { op: "copy_from", .. }), "{error}");
    let error = x.try_add_assign(Tensor::zeros([4, 2, 3])).unwrap_err();
    assert!(matches!(error, Error::Shape { op: "add_assign", .. }), "{error}");
    let error = x.try_mul_assign(Tensor::zeros([2])).unwrap_err();
    assert!(matches!(error, Error::Broadcast { op: "mul", .. }), "{error}");
    for index in [&[2, 0][..], &[0, 3], &[0], &[0, 0, 0], &[]] {
        let error = x.set_item(index, 9.0).unwrap_err();
        assert!(matches!(error, Error::Shape { op: "set_item", .. }), "{error}");
    }
    assert_eq!(x.to_vec(), [1.0; 6]);
    x.set_item(&[1, 2], 9.0).unwrap();
    assert_eq!(x.at(&[1, 2]), 9.0);
    // A write through a view of shared data affects only the view.
    let row = x.select(0, 1);
    row.fill(0.0).unwrap();
    assert_eq!(x.at(&[1, 2]), 9.0);
    // The tensor itself as the source.
    x.copy_from(&x.clone()).unwrap();
    let own = x.clone();
    x += &own;
    assert_eq!(x.at(&[1, 2]), 18.0);
}

#[test]
fn what_a_rule_needs_and_was_changed_is_noticed() {
    let x = halves(&[3]);
    let w = Tensor::<f64>::ones([3]);
    let y = (&x * &w).sum();
    w.fill(5.0).unwrap();
    let error = y.backward().unwrap_err();
    assert!(matches!(error, Error::SavedTensorChanged { op: "mul", .. }), "{error}");
    let index = Tensor::from([0, 1]);
    let y = x.index_select(0, &index).sum();
    index.fill(2).unwrap();
    let error = y.backward().unwrap_err();
    assert!(matches!(error, Error::SavedTensorChanged { op: "index_select", .. }), "{error}");
    let mask = Tensor::from([true, false, true]);
    let y = mask.where_else(&x, 0.0).sum();
    mask.fill(false).unwrap();
    let error = y.backward().unwrap_err();
    assert!(matches!(error, Error::SavedTensorChanged { op: "where_else", .. }), "{error}");
    // An operand that is also the right side.
    let mut y = &x * 2.0;
    let same = y.clone();
    y *= &same;
    let error = y.sum().backward().unwrap_err();
    assert!(matches!(error, Error::SavedTensorChanged { op: "mul", .. }), "{error}");
    assert!(x.grad().is_none());
    backward(&[x.sum().into()], &[None], BackwardOptions::new()).unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [1.0; 3]);
}
