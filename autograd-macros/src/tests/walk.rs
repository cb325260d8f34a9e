//! The walk through bodies: it knows each method of `tests/tests/layers/shapes_walk.rs`, where tensors agree.

use proc_macro2::{TokenStream, TokenTree};

use super::fuzzed::refused;
use crate::layer::layer;
use crate::tokens::is_punct;

/// The expansion of an op with these shapes of `x`, `y` and the output.
fn run(shapes: [&str; 3], body: &str) -> String {
    let [x, y, output] = shapes;
    let args: TokenStream = format!("no_grad, shapes(x: {x}, y: {y} -> {output})").parse().unwrap();
    let block = format!(
        "impl Op {{ fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {{ \
         {body} }} }}"
    );
    layer(args, block.parse().unwrap(), false).to_string()
}

#[test]
fn the_walk_knows_each_method_that_is_compared_with_tensors() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/tests/layers/shapes_walk.rs");
    let file: TokenStream = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let trees: Vec<TokenTree> = file.into_iter().collect();
    let call = (0..trees.len()).find(|&at| {
        matches!(&trees[at], TokenTree::Ident(name) if name == "walked")
            && is_punct(trees.get(at + 1), '!')
    });
    let Some(TokenTree::Group(ops)) = call.and_then(|at| trees.get(at + 2)) else {
        panic!("no ops")
    };
    let ops: Vec<TokenTree> = ops.stream().into_iter().collect();
    let ops: Vec<&[TokenTree]> = ops.split(|tree| is_punct(Some(tree), ';')).collect();
    let ops: Vec<_> = ops.into_iter().filter(|op| !op.is_empty()).collect();
    assert!(ops.len() > 80, "{}", ops.len());
    for op in ops {
        // `Name: [n], [m] -> [n], |x, y| body`
        let shapes = [2, 4, 7].map(|at| op[at].to_string());
        let shapes = [&*shapes[0], &shapes[1], &shapes[2]];
        let body: TokenStream = op[14..].iter().cloned().collect();
        let body = body.to_string();
        let right = run(shapes, &body);
        assert!(!refused(&right), "{body}\n{right}");
        let wrong = run([shapes[0], shapes[1], "[7, 7, 7, 7, 7]"], &body);
        assert!(wrong.contains("the output has the shape"), "not known: {} {body}\n{wrong}", op[0]);
    }
}

/// What the walk must not judge.
#[test]
fn what_is_unknown_is_not_judged() {
    for body in [
        "own(x)",
        "let mut z = x.clone(); z = own(&z); z",
        "let mut z = x.clone(); change(&mut z); z",
        "let mut z = x.clone(); let mut f = || z = y.clone(); f(); z",
        "let mut z = x.clone(); for _ in 0..3 { z = z.t(); } z",
        "let mut z = x.clone(); if special { z = y.clone(); } z",
        "let mut z = x.clone(); assign!(z); z",
        "assert_eq!(x.shape(), y.shape()); x + y",
        "if x.shape() != y.shape() { return own(x); } x + y",
        "if x.shape() == y.shape() { x + y } else { own(y) }",
        "match x.shape() { [a, b] if a == b => x.t() + x, _ => own(y) }",
        "let x = own(x); x",
        "let z: Tensor<f64> = { let x = y; x.clone() }; own(&z)",
        "ensure!(same(x, y)); x * y",
        "same(x, y); x * y",
        "same(x, y)?; x * y",
        "let mut z = x.clone(); { z = own(y); } z",
        "let mut z = x.clone(); own(y).then(|| z = own(y)); z",
        "'a: { if own(x) { break 'a own(y); } x.clone() }",
        "let z = (x.shape() == y.shape()).then(|| x + y); own(&z)",
        "let &[_, 1] = x.shape() else { return own(x) }; x * y",
        "let rest = -1; x.reshape([rest, y.shape()[0]])",
        "let mut s = x.shape().to_vec(); s.reverse(); x.reshape(&s)",
        "let mut s = [x.t(), y.clone()]; s.reverse(); let [a, b] = s; own(&b); x.matmul(&a)",
        "let (mut a, mut b) = (x.clone(), y.clone()); for _ in 0..own(x) { (a, b) = (b, a); } a",
        "let sum = x.try_add(y)?; own(&sum); x * y",
        "let &[n, _] = same(x, y)?; x * y * n",
        "let axes = [0, 1]; own(x.sum_axes(axes))",
        "let mut z = x.clone(); let w = { z = own(y); 1.0 }; z * w",
        "let mut z = x.clone(); if own(x) { (z, _) = own(y); } z",
        "let mut z = x.clone(); let r = &mut z; *r = own(y); z",
        "let z = own(x); #[cfg(any())] let z = x.clone(); z",
        "#[cfg(any())] { x.clone() } #[cfg(not(any()))] { own(y) }",
        "let mut z = x.clone(); z.turn_by_own_method(); z",
        "let (_, same) = own(y); assert!(same); x * y",
        "let mut n = y.shape()[1]; for i in 0..=3 { n += i; } Tensor::zeros([n, n])",
        "let mut n = y.shape()[1]; n += own(x); Tensor::zeros([n, n])",
    ] {
        let run = run(["[n, m]", "[m, n]", "[m, m]"], body);
        let judged =
            run.contains("the output has the shape") || run.contains("cannot be broadcast");
        assert!(!judged, "{body}\n{run}");
    }
}

/// A parameter that the line does not name may equal any of its lengths.
#[test]
fn other_integers_are_no_lengths() {
    for (line, is_judged) in [("[n, m] -> [n, m]", false), ("[n, m] -> [n, k + m - k]", true)] {
        let args: TokenStream = format!("no_grad, shapes(x: {line})").parse().unwrap();
        let block = "impl Op { fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, k: usize) -> Tensor<f64> { \
                     x + Tensor::zeros([x.shape()[0], k]) } }";
        let run = layer(args, block.parse().unwrap(), false).to_string();
        assert_eq!(run.contains("cannot be broadcast"), is_judged, "{line}");
    }
}

/// What forward refuses does not get to backward; a condition of numbers says nothing of lengths.
#[test]
fn what_forward_demands_holds_in_backward() {
    for (demand, is_judged) in [
        ("", true),
        ("assert!(by > 0.0 && by.is_finite(), \"{by}\");", true),
        ("assert_eq!(x.shape(), y.shape());", false),
        ("if x.shape() != y.shape() { return Err(error()); }", false),
        ("same(x, y)?;", false),
    ] {
        let args = "shapes(x: [n], y: [m] -> [n])".parse().unwrap();
        let block = format!(
            "impl Op {{ type Saved = (Tensor<f64>, Tensor<f64>); \
             fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, y: &Tensor<f64>, by: f64) -> Result<Tensor<f64>> {{ \
             {demand} ctx.save_for_backward((x, y)); Ok(own(x)) }} \
             fn backward(ctx: &BackwardContext<Self>, dz: &Tensor<f64>) -> Grads {{ \
             let (x, y) = ctx.saved_tensor(); Grads {{ x: dz * y, y: dz * x }} }} }}"
        );
        let run = layer(args, block.parse().unwrap(), false).to_string();
        assert_eq!(run.contains("cannot be broadcast"), is_judged, "{demand}");
    }
}

/// The way to sum a gradient that needs no other tensor, where the number of axes is known.
#[test]
fn an_unsummed_gradient_names_the_axes_if_they_are_known() {
    for (x, write) in [
        ("[b, n]", "`.sum_axes(0)`"),
        ("[a, b, n]", "`.sum_axes([0, 1])`"),
        ("[b.., n]", "`.sum_to(bias.shape())`"),
    ] {
        let args = format!("shapes(x: {x}, bias: [n] -> {x})").parse().unwrap();
        let block = "impl Op { fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, bias: &Tensor<f64>) -> \
                     Tensor<f64> { x + bias } \
                     fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads { \
                     Grads { x: dy.clone(), bias: dy.clone() } } }";
        let run = layer(args, block.parse().unwrap(), false).to_string();
        assert!(run.contains(write), "{x}: {run}");
    }
}
