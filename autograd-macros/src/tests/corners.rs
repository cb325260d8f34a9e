//! Pairs of similar blocks: one is reported by the macro, the other left to the compiler.

use crate::tokens::mentions;

use super::assert_verdicts;
use crate::model::as_tensor;

/// An op with these items, parameters, body and backward.
fn op(items: &str, params: &str, body: &str, backward: &str) -> String {
    format!(
        "impl Op {{ {items} fn forward(ctx: &mut ForwardContext<Self>, {params}) -> Tensor<f64> {{ \
         {body} }} {backward} }}"
    )
}

/// A backward with this return type and body.
fn returns(ty: &str, body: &str) -> String {
    format!("fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> {ty} {{ {body} }}")
}

const ONE: &str = "x: &Tensor<f64>";
const BACKWARD: &str = "fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> \
                        { dy * 2.0 }";
#[test]
fn types_of_other_names_are_left_to_the_compiler() {
    assert_verdicts(
        |ty| op("", ONE, "x * 2.0", &returns(ty, "dy * 2.0")),
        &["Gradient", "Gradient<f64>", "Option", "<A as B>::Gradient<f64>"],
        "is not returned as",
        &["usize", "Option<f64>", "&Tensor<f64>"],
    );
    let ty = syn::parse_str("<A as B>::Tensor<f64>").expect("a type");
    assert!(as_tensor(&ty).is_none());
    assert!(mentions(&quote::quote!(f((a, [b]))), "b"));
}

#[test]
fn a_parameter_of_the_caller_is_none_of_the_others() {
    assert_verdicts(
        |generics| {
            let block = op("", "x: &Tensor<f64>, by: f64", "x * by", BACKWARD);
            let (own, clause) = generics.split_once(' ').unwrap_or((generics, ""));
            let block = block.replace("forward(", &format!("forward<{own}>("));
            block.replacen("-> Tensor<f64> {", &format!("-> Tensor<f64> {clause} {{"), 1)
        },
        &["X:AsRef<Tensor<f64>>", "X,Y where Y: AsRef<Tensor<f64>>"],
        "",
        &[],
    );
}

#[test]
fn a_mark_is_reported_where_its_name_is_surely_an_input() {
    assert_verdicts(
        |body| {
            format!(
                "impl Op {{ fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, c: bool) -> \
                 (Tensor<f64>, Tensor<f64>) {{ {body} (y, z) }} fn backward(_ctx: \
                 &BackwardContext<Self>, dy: &Tensor<f64>, dz: &Tensor<f64>) -> Tensor<f64> {{ dy * \
                 2.0 }} }}"
            )
        },
        &[
            "ctx.mark_non_differentiable(OTHER);",
            "let x = y * 2.0; ctx.mark_non_differentiable(&x);",
            "let (x, w) = f(y); ctx.mark_non_differentiable(&x);",
            "let (&x, w) = f(y); ctx.mark_non_differentiable(&x);",
            "if c { let x = y * 2.0; ctx.mark_non_differentiable(&x); }",
            "if c { for x in f(y) { ctx.mark_non_differentiable(&x); } }",
        ],
        "`x` is an input",
        &[
            "ctx.mark_non_differentiable(x);",
            "ctx.mark_non_differentiable((x));",
            "ctx.mark_non_differentiable([x, w]);",
            "ctx.mark_non_differentiable((&y, x));",
            "if c { let a = x; } ctx.mark_non_differentiable(x);",
            "if c { f(x); } ctx.mark_non_differentiable(x);",
        ],
    );
}

#[test]
fn what_another_value_has_is_none_of_the_contexts() {
    assert_verdicts(
        |body| op("", "x: &Tensor<f64>, other: Other", body, BACKWARD),
        &[
            "let a = other.alpha; x * 2.0",
            "let a = other.needs_input_grad()[0]; x * 2.0",
            "let a = other.alpha.beta(ctx.is_on()); x * 2.0",
            // Not finished.
            "ctx.save",
        ],
        "so `alpha` cannot be kept in one",
        &["ctx.alpha = 1.0; x * 2.0", "ctx.alpha"],
    );
}

#[test]
fn a_bound_that_takes_tensors_gives_none() {
    let of = |to: &str| op("", &format!("x: &Tensor<f64>, to: {to}"), "x * 2.0", BACKWARD);
    assert_verdicts(of, &["impl Sink<Tensor<f64>>", "&dyn Sink<Item = Tensor<f64>>"], "", &[]);
    assert_verdicts(
        |bound| of("S").replace("forward(", &format!("forward<S: {bound}>(")),
        &["Sink<Tensor<f64>>"],
        "would lose its gradient",
        &["Into<Tensor<f64>>"],
    );
}
