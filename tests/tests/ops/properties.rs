//! Every op with a gradient against finite differences, first and second order, for f64 and f32, on
//! random shapes, broadcasts, layouts and parameters.
//!
//! `PROPERTY_CASES=1000` tries more than CI does; a failure prints how to repeat it.

use std::collections::BTreeSet;

use autograd_core::prelude::*;
use autograd_core::{
    Generator, GradOptions, Graph, Tensor, grad_with, gradcheck, gradgradcheck, jvpcheck,
};

use crate::names;
use crate::random::{Domain, Draw};
use crate::run::{Number, places_are_of_callers, run};

use Domain::{Apart, Between};

/// Ops of the public API without a gradient, and the reason.
const WITHOUT_GRADIENT: &[(&str, &str)] = &[
    (
        "zeros ones full zeros_like ones_like full_like from_vec eye arange arange_step linspace",
        "made of nothing",
    ),
    ("rand randn rand_like randn_like uniform normal randint randperm", "random"),
    ("bernoulli multinomial", "random"),
    ("to_vec to_ndarray view item at", "no tensor comes out"),
    ("copy_from fill", "not recorded: what is written over is a leaf's data"),
    (
        "equal not_equal greater greater_equal less less_equal is_nan and or xor not any all",
        "bools",
    ),
    ("any_axes all_axes any_axes_keep all_axes_keep nonzero allclose", "of bools, or bools"),
    ("eq_scalar ne_scalar gt_scalar ge_scalar lt_scalar le_scalar", "bools"),
    ("argmax argmin argsort searchsorted bincount", "integers"),
    ("unique", "its length depends on the elements"),
    ("one_hot", "of integers"),
];

/// The arguments of an op.
pub(crate) struct Arguments {
    pub(crate) variant: String,
    pub(crate) inputs: Vec<(Vec<usize>, Domain)>,
    pub(crate) index: Vec<Tensor<i64>>,
}

fn words(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

/// The domain on which an elementwise function is smooth.
fn smooth(op: &str, draw: &mut Draw) -> Option<Domain> {
    let either = |draw: &mut Draw| draw.pick(&[Between(0.1, 2.0), Between(-2.0, -0.1)]);
    Some(match op {
        "neg" | "square" | "exp" | "exp_m1" | "sinh" | "cosh" | "tanh" | "erf" => {
            Between(-2.0, 2.0)
        }
        "abs" | "signum" | "step" | "relu" | "leaky_relu" | "elu" | "nan_to_num" => either(draw),
        "floor" | "ceil" => Between(1.1, 1.9),
        "round" => Between(1.6, 2.4),
        "sqrt" | "rsqrt" | "recip" | "ln" | "log" | "log2" | "log10" | "lgamma" | "digamma" => {
            Between(0.4, 3.0)
        }
        "ln_1p" => Between(-0.5, 3.0),
        "sin" | "cos" | "sigmoid" | "softplus" | "silu" | "gelu" => Between(-3.0, 3.0),
        "tan" => Between(-1.0, 1.0),
        "asin" | "acos" | "erfinv" => Between(-0.8, 0.8),
        "atan" | "contiguous" | "copy" | "cast" => Between(-3.0, 3.0),
        "clamp" => draw.pick(&[Between(-0.4, 1.4), Between(1.6, 3.0), Between(-2.0, -0.6)]),
        _ => return None,
    })
}

/// Random arguments of an op for elements of type `dtype`; `None` for an unknown op.
pub(crate) fn arguments(op: &str, dtype: &str, draw: &mut Draw) -> Option<Arguments> {
    let given = |variant: &str, inputs: Vec<(Vec<usize>, Domain)>| {
        Some(Arguments { variant: variant.into(), inputs, index: Vec::new() })
    };
    let wide = Between(0.5, 2.0);
    if let Some(domain) = smooth(op, draw) {
        let variant = match op {
            "leaky_relu" => "0.1",
            "elu" => "1.3",
            "nan_to_num" => "0.5",
            "clamp" => "-0.5,1.5",
            "cast" => dtype,
            _ => "",
        };
        return given(variant, vec![(draw.shape(0, 4, 0), domain)]);
    }
    match op {
        "add" | "sub" | "mul" | "div" | "pow" | "maximum" | "minimum" | "hypot" | "atan2"
        | "logaddexp" | "xlogy" | "copysign"
            if draw.one_in(4) =>
        {
            let variant = draw.pick(match op {
                "pow" => &["0", "1", "2", "3", "0.5", "-1", "-2.5", "1.7"][..],
                _ => &["0.4", "2.2"],
            });
            given(variant, vec![(draw.shape(0, 4, 0), wide)])
        }
        "add" | "sub" | "mul" | "div" | "pow" | "maximum" | "minimum" | "where_else" | "where_"
        | "hypot" | "atan2" | "logaddexp" | "xlogy" | "copysign" | "remainder" => {
            let [left, right] = draw.broadcast();
            let mut domains = [Between(0.5, 1.4), Between(1.6, 2.5)];
            // A remainder of the larger would jump.
            if op != "remainder" && draw.one_in(2) {
                domains.reverse();
            }
            given("", vec![(left, domains[0]), (right, domains[1])])
        }
        "add_assign" | "sub_assign" | "mul_assign" | "div_assign" => {
            let left = draw.shape(0, 4, 0);
            let cut = draw.between(0, left.len());
            let right = left[cut..].iter().map(|&n| if draw.one_in(3) { 1 } else { n }).collect();
            given("", vec![(left, wide), (right, wide)])
        }
        "set_item" => given("", vec![(vec![draw.between(2, 9)], wide)]),
        "sum" | "prod" => given("", vec![(draw.shape(0, 4, 0), wide)]),
        "mean" | "norm" => given("", vec![(draw.shape(0, 4, 1), wide)]),
        "max" | "min" | "median" => given("", vec![(draw.shape(0, 3, 1), Apart)]),
        "sort" | "topk" | "max_with_indices" | "min_with_indices" => {
            let shape = draw.shape(1, 3, 1);
            let axis = draw.below(shape.len());
            let variant = match op {
                "topk" => words(&[draw.between(0, shape[axis]), axis]),
                _ => words(&[axis, draw.below(2)]),
            };
            given(&variant, vec![(shape, Apart)])
        }
        "norm_axes" | "norm_axes_keep" => {
            let shape = draw.shape(1, 3, 1);
            let count = draw.between(1, shape.len());
            let axes = draw.permutation(shape.len())[..count].to_vec();
            let p = draw.pick(&["0.5", "1", "1.5", "2", "3", "4", "inf", "-inf", "-1", "-2.5"]);
            let domain =
                if p.ends_with("inf") { Apart } else { draw.pick(&[wide, Between(-2.0, -0.5)]) };
            given(&format!("{p}:{}", words(&axes)), vec![(shape, domain)])
        }
        "dropout" => given(draw.pick(&["0", "1", "off"]), vec![(draw.shape(0, 4, 0), wide)]),
        "normalize" => {
            let mut shape = draw.shape(1, 3, 1);
            *shape.last_mut()? += 1;
            given("0.01", vec![(shape, Between(-1.0, 1.0))])
        }
        "var_axes" | "std_axes" | "var_axes_keep" | "std_axes_keep" => {
            let mut shape = draw.shape(1, 3, 1);
            let axis = draw.below(shape.len());
            shape[axis] += 2;
            let variant = format!("random:{axis}:{}", draw.below(2));
            // Equal numbers have no slope.
            given(&variant, vec![(shape, Apart)])
        }
        "softmax" | "log_softmax" | "cumsum" | "cumprod" => {
            let shape = draw.shape(1, 4, 0);
            let axis = draw.below(shape.len());
            given(&axis.to_string(), vec![(shape, Between(-1.0, 1.0))])
        }
        "swap_axes" | "squeeze_axes" | "unsqueeze_axes" => moving(op, draw),
        _ if op.contains("_axes") || op.starts_with("logsumexp") => {
            let empty = op.starts_with("sum") || op.starts_with("prod");
            let shape = draw.shape(1, 4, usize::from(!empty));
            let count = draw.between(1, shape.len());
            let axes = draw.permutation(shape.len())[..count].to_vec();
            let extreme = ["max", "min", "median"].iter().any(|name| op.starts_with(name));
            given(&words(&axes), vec![(shape, if extreme { Apart } else { wide })])
        }
        _ => moving(op, draw).or_else(|| products(op, draw)),
    }
}

/// Ops that move elements.
fn moving(op: &str, draw: &mut Draw) -> Option<Arguments> {
    let wide = Between(0.5, 2.0);
    let least =
        usize::from(["select", "squeeze", "squeeze_axes", "gather", "pad", "unfold"].contains(&op));
    let mut shape = match op {
        "i" | "slice_assign" | "index_put" => vec![3, 4, 2],
        "meshgrid" => draw.shape(1, 1, 0),
        "flatten" | "reshape" | "unsqueeze" | "stack" | "broadcast_to" | "unsqueeze_axes"
        | "repeat" | "masked_fill" | "masked_select" => draw.shape(0, 4, 0),
        "transpose" | "t" | "permute" | "tril" | "triu" | "diagonal" | "trace" => {
            draw.shape(2, 4, 0)
        }
        _ => draw.shape(1, 4, least),
    };
    let rank = shape.len();
    let axis = draw.below(rank);
    let n = shape.get(axis).copied().unwrap_or(1);
    let mut index = Vec::new();
    let mut more = Vec::new();
    let variant = match op {
        "flatten" | "transpose" | "t" | "masked_fill" | "masked_select" => String::new(),
        "i" => draw.below(15).to_string(),
        "slice_assign" | "index_put" => {
            // The written tensor is broadcast to the part.
            more.push((draw.pick(&[&[][..], &[1]]).to_vec(), wide));
            words(&[draw.below(15), draw.below(2)])
        }
        "meshgrid" => {
            more.push((draw.shape(1, 1, 0), wide));
            String::new()
        }
        "swap_axes" => words(&[axis, draw.below(rank)]),
        "unsqueeze_axes" => {
            let count = draw.between(0, 2);
            words(&draw.permutation(rank + count)[..count])
        }
        "squeeze_axes" => {
            let count = draw.between(0, rank);
            words(&draw.permutation(rank)[..count])
        }
        "roll" => format!("{axis},{}", draw.below(7) as isize - 3),
        "unfold" => words(&[axis, draw.between(1, n), draw.between(1, 3)]),
        "chunk" => words(&[draw.between(1, 3), axis]),
        "split_with_sizes" => {
            let (first, second) = (draw.between(0, n), n);
            words(&[axis, first, second - first])
        }
        "repeat" => {
            let count = rank + draw.between(0, 1);
            words(&(0..count).map(|_| draw.between(0, 2)).collect::<Vec<_>>())
        }
        "pad" => {
            let mode = draw.pick(&["constant", "reflect", "replicate", "circular"]);
            let axes = draw.between(0, rank);
            let widths: Vec<_> = (0..2 * axes).map(|_| draw.between(0, 2)).collect();
            format!("{mode}:{}", words(&widths))
        }
        "reshape" => {
            let cut = draw.between(0, rank);
            let product = |part: &[usize]| part.iter().product::<usize>();
            words(&[product(&shape[..cut]), 1, product(&shape[cut..])])
        }
        "permute" => words(&draw.permutation(rank)),
        "unsqueeze" | "stack" => draw.below(rank + 1).to_string(),
        "squeeze" => "0".into(),
        "flip" | "concat" => axis.to_string(),
        "narrow" => {
            let start = draw.between(0, n);
            words(&[axis, start, draw.between(0, n - start)])
        }
        "slice_axis" => {
            let start = draw.between(0, n);
            words(&[axis, start, draw.between(start, n), draw.between(1, 3)])
        }
        "select" => words(&[axis, draw.below(n)]),
        "split" => {
            let parts = draw.between(2, 3);
            shape[axis] *= parts;
            words(&[parts, axis])
        }
        "broadcast_to" => {
            let wanted: Vec<usize> = [draw.between(0, 2)].iter().chain(&shape).copied().collect();
            shape.iter_mut().for_each(|n| {
                if draw.one_in(2) {
                    *n = 1
                }
            });
            words(&wanted)
        }
        "sum_to" => {
            let kept = &shape[draw.between(0, rank)..];
            words(&kept.iter().map(|&n| if draw.one_in(2) { 1 } else { n }).collect::<Vec<_>>())
        }
        "diagonal" | "diag" => draw.pick(&["-1", "0", "1", "2"]).into(),
        "trace" => String::new(),
        "tril" | "triu" => draw.pick(&["-1", "0", "1", "2"]).into(),
        // Without ties, and each element once: extremes have a slope.
        "index_reduce" => {
            let count = draw.between(0, n);
            let each = draw.permutation(n)[..count].iter().map(|&i| i as i64).collect::<Vec<_>>();
            index.push(Tensor::from(each));
            let mut source = shape.clone();
            source[axis] = count;
            more.push((source, Between(2.5, 4.0)));
            axis.to_string()
        }
        "index_select" | "index_add" => {
            let count = if n == 0 { 0 } else { draw.between(0, 4) };
            index.push(draw.indices(&[count], n));
            if op == "index_add" {
                let mut source = shape.clone();
                source[axis] = count;
                more.push((source, wide));
            }
            axis.to_string()
        }
        "segment_sum" => {
            let segments = draw.between(1, 4);
            index.push(draw.indices(&[shape[0]], segments));
            segments.to_string()
        }
        "repeat_interleave_with_counts" => {
            index.push(draw.indices(&[n], 4));
            axis.to_string()
        }
        "repeat_interleave" => format!("{},{axis}", draw.between(0, 3)),
        "gather" | "scatter_add" | "scatter" => {
            let mut picked: Vec<usize> = shape.iter().map(|&n| draw.between(0, n)).collect();
            picked[axis] = if n == 0 { 0 } else { draw.between(0, 4) };
            index.push(draw.indices(&picked, n));
            if op != "gather" {
                more.push((picked, wide));
            }
            axis.to_string()
        }
        _ => return None,
    };
    let inputs = [(shape, wide)].into_iter().chain(more).collect();
    Some(Arguments { variant, inputs, index })
}

/// Products, images and losses.
fn products(op: &str, draw: &mut Draw) -> Option<Arguments> {
    let both = Between(-1.0, 1.0);
    let mut index = Vec::new();
    let mut variant = String::new();
    let inputs = match op {
        "matmul" => {
            let [m, k, n] = [(); 3].map(|()| draw.shape(1, 1, 0)[0]);
            let [left, right] = draw.broadcast();
            let left = [&left[..left.len().min(2)], &[m, k]].concat();
            let right = [&right[right.len() - right.len().min(2)..], &[k, n]].concat();
            // The leading axes that remain must still broadcast.
            let stacks = left.len() == 2 || right.len() == 2 || {
                let fits = |(&a, &b): (&usize, &usize)| a == b || a == 1 || b == 1;
                let (a, b) = (&left[..left.len() - 2], &right[..right.len() - 2]);
                a.iter().rev().zip(b.iter().rev()).all(fits)
            };
            let right = if stacks { right } else { vec![k, n] };
            match draw.below(4) {
                0 => vec![(vec![k], both), (right, both)],
                1 => vec![(left, both), (vec![k], both)],
                _ => vec![(left, both), (right, both)],
            }
        }
        "cdist" => {
            let [n, m, d] = [(); 3].map(|()| draw.between(1, 3));
            vec![(vec![n, d], Between(0.5, 1.4)), (vec![m, d], Between(1.6, 2.5))]
        }
        "qr" | "svd" | "pinv" | "lstsq" => {
            let [mut m, mut n] = [(); 2].map(|()| draw.between(0, 4));
            if op == "lstsq" {
                (m, n) = (m.max(n), m.min(n));
            }
            let stack = draw.shape(0, 2, 0);
            variant = "apart".into();
            let mut all = vec![([&stack[..], &[m, n]].concat(), both)];
            if op == "lstsq" {
                all.push((vec![m, draw.between(0, 3)], both));
            }
            all
        }
        "solve" | "inv" | "slogdet" | "cholesky" | "solve_triangular" | "cholesky_solve"
        | "eigh" => {
            let n = draw.between(0, 4);
            let stack = draw.shape(0, 2, 0);
            variant = match op {
                "cholesky" => "definite",
                "eigh" => "symmetric",
                "solve_triangular" => draw.pick(&["regular,upper", "regular,lower"]),
                _ => "regular",
            }
            .into();
            let mut all = vec![([&stack[..], &[n, n]].concat(), both)];
            if op.contains("solve") {
                let stack = &stack[draw.between(0, stack.len())..];
                all.push(match draw.one_in(3) {
                    true => (vec![n], both),
                    false => ([stack, &[n, draw.between(0, 3)]].concat(), both),
                });
            }
            all
        }
        "einsum" => {
            // Letters with lengths; operands with some of them, and a result with some of those.
            let lengths: Vec<usize> = (0..4).map(|_| draw.shape(1, 1, 0)[0].min(3)).collect();
            let term = |draw: &mut Draw, rank| -> Vec<usize> {
                (0..rank).map(|_| draw.below(4)).collect()
            };
            let count = draw.between(1, 3);
            let terms: Vec<_> = (0..count)
                .map(|_| {
                    let rank = draw.between(0, 3);
                    term(draw, rank)
                })
                .collect();
            let mut result: Vec<usize> = terms.concat();
            result.sort_unstable();
            result.dedup();
            result.retain(|_| draw.one_in(2));
            let word = |term: &Vec<usize>| term.iter().map(|&i| char::from(b"abcd"[i])).collect();
            let words: Vec<String> = terms.iter().map(word).collect();
            variant = format!("{}->{}", words.join(","), word(&result));
            let shape = |term: &Vec<usize>| term.iter().map(|&i| lengths[i]).collect();
            terms.iter().map(|term| (shape(term), both)).collect()
        }
        "outer" => vec![(draw.shape(1, 1, 0), both), (draw.shape(1, 1, 0), both)],
        "linear" => {
            let [inputs, outputs] = [(); 2].map(|()| draw.shape(1, 1, 1)[0]);
            let x = [&draw.shape(0, 3, 0)[..], &[inputs]].concat();
            let mut all = vec![(x, both), (vec![outputs, inputs], both)];
            if draw.one_in(2) {
                all.push((vec![outputs], both));
            }
            all
        }
        "conv2d" => {
            variant = draw.pick(&["plain", "strided", "groups", "dilated"]).into();
            let groups = if variant == "groups" { 2 } else { 1 };
            let (batch, each, out) = (draw.between(0, 2), draw.between(1, 2), draw.between(1, 2));
            let kernel = [draw.between(1, 3), draw.between(1, 2)];
            let picture = [draw.between(5, 7), draw.between(4, 6)];
            let weight = vec![out * groups, each, kernel[0], kernel[1]];
            let x = vec![batch, each * groups, picture[0], picture[1]];
            vec![(x, both), (weight, both), (vec![out * groups], both)]
        }
        "max_pool2d" | "avg_pool2d" => {
            variant = draw.pick(&["2", "3,2", "3"]).into();
            let picture = [draw.between(3, 6), draw.between(3, 6)];
            let x = vec![draw.between(0, 2), draw.between(1, 2), picture[0], picture[1]];
            vec![(x, Apart)]
        }
        "nll_loss" => {
            let (n, classes) = (draw.between(1, 4), draw.between(1, 5));
            index.push(draw.indices(&[n], classes));
            vec![(vec![n, classes], both)]
        }
        "cross_entropy" | "cross_entropy_with" | "nll_loss_with" => {
            let (n, classes) = (draw.between(1, 4), draw.between(1, 5));
            let rest = draw.shape(0, 2, 1);
            let targets = draw.indices(&[&[n][..], &rest].concat(), classes);
            if op != "cross_entropy" {
                let parts = ["ignore ", "weight ", "smooth ", "sum ", "none "];
                variant = parts.into_iter().filter(|_| draw.one_in(2)).collect();
                // The mean of no elements is NaN.
                if targets.to_vec().iter().all(|&class| class == 1) {
                    variant = variant.replace("ignore", "");
                }
            }
            index.push(targets);
            vec![([&[n, classes][..], &rest].concat(), both)]
        }
        _ if op
            .strip_suffix("_with")
            .is_some_and(|op| op != "cross_entropy" && op != "nll_loss") =>
        {
            let Arguments { variant: own, inputs, .. } =
                products(op.trim_end_matches("_with"), draw)?;
            let own = if own.is_empty() { own } else { format!(":{own}") };
            variant = format!("{}{own}", draw.pick(&["mean", "sum", "none", "batchmean"]));
            inputs
        }
        "l1_loss" | "huber_loss" => {
            let shape = draw.shape(0, 3, 1);
            variant = draw.pick(&["0.2", "1", "5"]).into();
            let target = draw.pick(&[Between(-0.2, 0.3), Between(3.0, 4.0)]);
            vec![(shape.clone(), Between(0.6, 0.75)), (shape, target)]
        }
        "kl_div" => {
            let shape = draw.shape(0, 3, 1);
            vec![(shape.clone(), Between(-2.0, 0.0)), (shape, Between(0.1, 0.9))]
        }
        "binary_cross_entropy" => {
            let shape = draw.shape(0, 3, 1);
            vec![(shape.clone(), Between(0.1, 0.9)), (shape, Between(0.1, 0.9))]
        }
        "mse_loss" | "smooth_l1_loss" | "binary_cross_entropy_with_logits" => {
            let shape = draw.shape(0, 3, 1);
            let target = draw.pick(&[Between(0.1, 0.4), Between(3.0, 4.0)]);
            vec![(shape.clone(), Between(0.5, 0.9)), (shape, target)]
        }
        _ => return None,
    };
    Some(Arguments { variant, inputs, index })
}

/// The sum of the elements times weights.
pub(crate) fn weighted<T: Number>(t: &Tensor<T>) -> Tensor<T> {
    let weights = (0..t.len()).map(|i| T::from_f64([1.0, -0.5, 0.75][i % 3])).collect();
    (t * Tensor::from_vec(t.shape(), weights).unwrap()).sum()
}

#[py_layer]
impl CallsOp {
    type Saved = Vec<Tensor<f64>>;
    type Attrs = (String, String, Vec<Tensor<i64>>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &[Tensor<f64>],
        call: &(String, String, Vec<Tensor<i64>>),
    ) -> Tensor<f64> {
        ctx.save_for_backward(x);
        ctx.set_attrs(call.clone());
        Tensor::from(0.0)
    }

    fn backward(ctx: &BackwardContext<Self>, _dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        let (op, variant, index) = ctx.attrs();
        run(op, variant, ctx.saved_tensor(), index);
        ctx.saved_tensor().iter().map(Tensor::zeros_like).collect()
    }
}

#[test]
fn every_op_may_be_called_in_a_recorded_backward() {
    for op in differentiable() {
        let given = arguments(&op, "float64", &mut Draw::new(1)).unwrap();
        let mut draw = Draw::new(2);
        let shapes = given.inputs.iter();
        let x: Vec<Tensor<f64>> =
            shapes.map(|(shape, domain)| draw.tensor(shape, *domain, 0)).collect();
        x.iter().for_each(|x| x.set_stop_gradient(false));
        let y = CallsOp::apply(&x, &(op.clone(), given.variant, given.index));
        let options = GradOptions::new().create_graph(true);
        if op.ends_with("_assign") || op == "set_item" {
            continue;
        }
        grad_with(&[&y], &x.iter().collect::<Vec<_>>(), options)
            .unwrap_or_else(|error| panic!("{op}: {error}"));
    }
}

/// The value of an op, its gradients, and the gradients of these, all with the same weights.
pub(crate) fn derivatives<T: Number>(
    op: &str,
    given: &Arguments,
    inputs: &[Tensor<T>],
) -> Vec<Vec<f64>> {
    let numbers = |t: &Tensor<T>| t.to_vec().into_iter().map(T::into_f64).collect::<Vec<_>>();
    inputs.iter().for_each(|x| x.set_stop_gradient(false));
    let refs: Vec<&Tensor<T>> = inputs.iter().collect();
    // A cast to the tensor's own type: another one would lose precision.
    let name = T::DTYPE.to_string();
    let variant = if op == "cast" { &name } else { &given.variant };
    let y = run(op, variant, inputs, &given.index);
    let y: &Tensor<T> = y.downcast_ref().expect("the element type of the inputs");
    let mut all = vec![numbers(y)];
    let mut sum = weighted(y);
    for _ in 0..2 {
        let options = GradOptions::new().create_graph(true).materialize_grads(true);
        let grads = grad_with(&[&sum], &refs, options).unwrap();
        sum = Tensor::from(T::ZERO);
        for grad in grads.into_iter().flatten() {
            places_are_of_callers(op, &Graph::of(&[grad.clone().into()]).to_dot());
            all.push(numbers(&grad));
            sum += weighted(&grad);
        }
    }
    all
}

/// Checks that results of `f` for the op's inputs differ at most by this fraction of their size.
pub(crate) fn same(
    what: &str,
    left: &[Vec<f64>],
    right: &[Vec<f64>],
    part: f64,
) -> Result<(), String> {
    let size = right.iter().flatten().fold(1.0, |size: f64, x| size.max(x.abs()));
    for (a, b) in left.iter().zip(right) {
        if a.len() != b.len() || a.iter().zip(b).any(|(a, b)| (a - b).abs() > part * size) {
            return Err(format!("{what}: {a:?}, {b:?}"));
        }
    }
    Ok(())
}

/// In f64, both orders and both modes agree with finite differences. In f32, where differences are
/// inaccurate, they agree with f64. The layout of the inputs does not matter in either.
fn hold<T: Number>(op: &str, given: &Arguments, draw: &mut Draw) -> Result<(), String> {
    let mut input = |(shape, domain): &(Vec<usize>, Domain)| {
        let depth = draw.between(0, 2);
        draw.tensor::<T>(shape, *domain, depth)
    };
    let inputs: Vec<Tensor<T>> = given.inputs.iter().map(&mut input).collect();
    let plain = inputs.iter().map(|x| Tensor::from_vec(x.shape(), x.to_vec()).unwrap());
    let double: Vec<Tensor<f64>> = plain.clone().map(|x: Tensor<T>| x.cast()).collect();
    let seen = derivatives(op, given, &inputs);
    let laid = derivatives(op, given, &plain.collect::<Vec<_>>());
    same("in this layout, and in the plain one", &seen, &laid, 64.0 * T::PRECISION)?;
    let wide = derivatives(op, given, &double);
    same("in this element type, and in f64", &seen, &wide, 256.0 * T::PRECISION)?;
    let any = inputs.into_iter().map(AnyTensor::from);
    let Some(inputs) = any.map(|x| x.downcast_ref().cloned()).collect::<Option<Vec<_>>>() else {
        return Ok(());
    };
    let f = |t: &[Tensor<f64>]| match run(op, &given.variant, t, &given.index) {
        AnyTensor::Float64(y) => y,
        other => panic!("{} of float64", other.dtype()),
    };
    let text = |error: autograd_core::Error| error.to_string();
    jvpcheck(f, &inputs).map_err(text)?;
    gradgradcheck(f, &inputs).map_err(text)
}

/// Tries one case, generated from a number; an error has the message and how to repeat it.
fn try_case(op: &str, seed: u64) -> Result<(), String> {
    let mut draw = Draw::new(seed);
    let dtype = if draw.one_in(4) { "float32" } else { "float64" };
    let Some(given) = arguments(op, dtype, &mut draw) else {
        panic!(
            "`{op}` has no property: say in `arguments` what it is given, or that it has no gradient"
        );
    };
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match dtype {
        "float32" => hold::<f32>(op, &given, &mut draw),
        _ => hold::<f64>(op, &given, &mut draw),
    }));
    let why = match result {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(why)) => why,
        Err(panic) => match panic.downcast::<String>() {
            Ok(words) => *words,
            Err(_) => "a panic".into(),
        },
    };
    let shapes: Vec<_> = given.inputs.iter().map(|(shape, domain)| (shape, domain)).collect();
    Err(format!(
        "{op} {} in {dtype} on {shapes:?}: {why}\nagain: PROPERTY={op}:{seed} cargo test -p tests \
         --test ops -- properties",
        given.variant
    ))
}

/// The ops with a gradient.
pub(crate) fn differentiable() -> BTreeSet<String> {
    let mut ops = names::ops();
    for op in WITHOUT_GRADIENT.iter().flat_map(|(ops, _)| ops.split(' ')) {
        assert!(ops.remove(op), "`{op}` is no op");
    }
    ops
}

/// The first seed of an op; each op has its own, so that a new op does not change the others.
pub(crate) fn first_seed(op: &str) -> u64 {
    let sum = |sum: u64, byte: u8| sum.wrapping_mul(31).wrapping_add(byte.into());
    op.bytes().fold(17, sum) % 1_000_000
}

#[test]
fn every_op_has_the_gradients_of_finite_differences() {
    if let Ok(one) = std::env::var("PROPERTY") {
        let (op, seed) = one.split_once(':').expect("PROPERTY=op:seed");
        return try_case(op, seed.parse().unwrap()).unwrap();
    }
    let cases = std::env::var("PROPERTY_CASES").map_or(24, |n| n.parse().unwrap());
    let mut wrong = Vec::new();
    for op in &differentiable() {
        for seed in 0..cases {
            wrong.extend(try_case(op, first_seed(op) + seed).err());
        }
    }
    assert!(wrong.is_empty(), "{} cases are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn sums_to_a_shape_are_the_adjoint_of_broadcasting_to_it() {
    for (shape, whole) in [
        (vec![3], vec![2, 3]),
        (vec![2, 1], vec![2, 3]),
        (vec![], vec![2, 3]),
        (vec![2, 3], vec![2, 3]),
        (vec![1, 1, 4], vec![5, 2, 4]),
        (vec![1], vec![0]),
        (vec![0, 1], vec![0, 3]),
    ] {
        let draw = || (Tensor::<f64>::randn(shape.clone()), Tensor::<f64>::randn(whole.clone()));
        let (x, dy) = Generator::new(8).run(draw);
        x.set_stop_gradient(false);
        x.broadcast_to(&whole[..]).backward_with(&dy).unwrap();
        let sums = dy.sum_to(&shape);
        assert!(sums.allclose(&x.grad().unwrap(), 1e-12, 1e-12), "{shape:?} {whole:?}");
        assert!(!sums.is_same(&dy));
        gradcheck(|t| t[0].sum_to(&shape), std::slice::from_ref(&dy)).unwrap();
        gradgradcheck(|t| t[0].square().sum_to(&shape), &[dy]).unwrap();
    }
    let error = Tensor::<f64>::ones([2, 3]).try_sum_to(&[2]).unwrap_err().to_string();
    assert_eq!(
        error,
        "sum_to: `shape` must be one that can be broadcast to [2, 3], found shape [2]"
    );
    assert!(Tensor::<f64>::ones([3]).try_sum_to(&[2, 3]).is_err());
}
