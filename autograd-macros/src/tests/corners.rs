//! What is reported and what is left to the compiler, where the two are next to each other.

use crate::tokens::mentions;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::held;
use crate::layer::layer;
use crate::model::as_tensor;

/// An op with these parameters after forward's context and these types.
fn op(items: &str, params: &str, body: &str, backward: &str) -> String {
    format!(
        "impl Op {{ {items} fn forward(ctx: &mut ForwardContext<Self>, {params}) -> Tensor<f64> {{ \
         {body} }} {backward} }}"
    )
}

/// A backward that returns this, with this body.
fn returns(ty: &str, body: &str) -> String {
    format!("fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> {ty} {{ {body} }}")
}

const ONE: &str = "x: &Tensor<f64>";
const TWO: &str = "x: &Tensor<f64>, w: &Tensor<f64>";
const BACKWARD: &str = "fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> \
                        { dy * 2.0 }";
const READS: &str = "fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy \
                     * ctx.saved_tensor() }";

#[test]
fn types_of_other_names_are_left_to_the_compiler() {
    held(
        |ty| op("", ONE, "x * 2.0", &returns(ty, "dy * 2.0")),
        &["Gradient", "Gradient<f64>", "Option", "<A as B>::Gradient<f64>"],
        "is not returned as",
        &["usize", "Option<f64>", "&Tensor<f64>"],
    );
    held(
        |ty| op(&format!("type Saved = {ty};"), ONE, "ctx.save_for_backward(x); x * 2.0", READS),
        &["Kept", "[Kept; 2]"],
        "cannot be saved",
        &["f64", "[f64; 2]"],
    );
    let ty = syn::parse_str("<A as B>::Tensor<f64>").expect("a type");
    assert!(as_tensor(&ty).is_none());
    assert!(mentions(&quote::quote!(f((a, [b]))), "b"));
}

#[test]
fn a_parameter_of_the_caller_is_none_of_the_others() {
    held(
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
    held(
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
    held(
        |body| op("", "x: &Tensor<f64>, other: Other", body, BACKWARD),
        &[
            "let a = other.alpha; x * 2.0",
            "let a = other.needs_input_grad()[0]; x * 2.0",
            "let a = other.alpha.beta(ctx.is_on()); x * 2.0",
            // Still being written.
            "ctx.save",
        ],
        "so `alpha` cannot be kept in one",
        &["ctx.alpha = 1.0; x * 2.0", "ctx.alpha"],
    );
}

#[test]
fn a_context_that_is_given_away_may_keep_anything() {
    held(
        |body| op("type Saved = Tensor<f64>;", ONE, body, READS),
        &[
            "helper(ctx, x)",
            "{ helper(ctx) }",
            "let c = ctx; x * 2.0",
            "loop {}",
            "todo!()",
            "panic!(\"later\")",
            "ctx.save_for_backward::<_, _>(x); x * 2.0",
        ],
        "save_for_backward",
        &["f(x)", "f {}", "x * 2.0", "later!()"],
    );
}

/// What `macro_rules!` puts around an expression is not seen by anybody.
#[test]
fn an_invisible_group_changes_nothing() {
    fn grouped(tokens: TokenStream) -> TokenStream {
        let mut trees: Vec<TokenTree> = Vec::new();
        for tree in tokens {
            match tree {
                TokenTree::Group(group) => {
                    let is_call = trees.len() >= 3
                        && trees[trees.len() - 1].to_string() == "save_for_backward";
                    let inner = Group::new(group.delimiter(), grouped(group.stream()));
                    trees.push(inner.into());
                    if is_call {
                        let call = trees.split_off(trees.len() - 4).into_iter().collect();
                        trees.push(Group::new(Delimiter::None, call).into());
                    }
                }
                tree => trees.push(tree),
            }
        }
        trees.into_iter().collect()
    }
    let body = "ctx.save_for_backward(x); ctx.save_for_backward(x); x * 2.0";
    let block = op("type Saved = Tensor<f64>;", ONE, body, BACKWARD);
    let block = grouped(block.parse().expect("tokens"));
    let reported = layer(TokenStream::new(), block, false).to_string();
    assert!(reported.contains("`save_for_backward` is called twice"), "{reported}");
}

#[test]
fn gradients_are_known_by_their_names_alone() {
    held(
        |value| {
            let ty = "Result<(Tensor<f64>, Tensor<f64>), String>";
            op("", TWO, "x * w", &returns(ty, value))
        },
        &[
            "Ok((dx, dw))",
            "Ok((dw.abs(), dx.abs()))",
            "Ok((f(dw), f(dx)))",
            "Ok((Some(dw, 1), Some(dx, 1)))",
            "swap((dw, dx))",
            "Ok((dw, dx), 1)",
            "(dw, dx).into()",
        ],
        "stands in the place of the gradient of `x`",
        &["Ok((dw, dx))", "Ok((dw.clone(), dx.clone()))", "Ok((Some(dw), Some(dx.clone())))"],
    );
}

#[test]
fn a_bound_that_takes_tensors_gives_none() {
    let of = |to: &str| op("", &format!("x: &Tensor<f64>, to: {to}"), "x * 2.0", BACKWARD);
    held(of, &["impl Sink<Tensor<f64>>", "&dyn Sink<Item = Tensor<f64>>"], "", &[]);
    held(
        |bound| of("S").replace("forward(", &format!("forward<S: {bound}>(")),
        &["Sink<Tensor<f64>>"],
        "would lose its gradient",
        &["Into<Tensor<f64>>"],
    );
}

#[test]
fn attributes_borrow_for_no_lifetime_but_that_of_the_program() {
    let keeps = |ty: &str| {
        let items = format!("type Attrs = {ty};");
        let backward = BACKWARD.replace("dy * 2.0", "dy * ctx.attrs().0");
        let block = op(&items, ONE, "ctx.set_attrs(kept()); x * 2.0", &backward);
        block.replace("impl Op", "impl<'a> Op<'a>")
    };
    held(
        keeps,
        &[
            "&'static str",
            "Names<'static>",
            "(f64, [Vec<Names<'static>>; 2])",
            "fn(&'a str)",
            "Box<dyn Fn(&'a str)>",
            "Names",
            "<A as B<'a>>::C",
        ],
        "cannot borrow for `'a`",
        &[
            "&'a str",
            "&'static &'a str",
            "Names<'a>",
            "Names<'static, 'a>",
            "(f64, Names<'a>)",
            "[Names<'a>; 2]",
            "&'static [Names<'a>]",
            "Vec<Option<Names<'a>>>",
        ],
    );
    held(keeps, &[], "cannot borrow; write `String`", &["&str", "Box<&str>"]);
}
