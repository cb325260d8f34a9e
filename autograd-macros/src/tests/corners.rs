//! What is reported and what is left to the compiler, where the two are next to each other.

use crate::tokens::mentions;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::fuzzed::refused;
use super::{held, run};
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
fn several_gradients_may_stand_behind_one_name() {
    held(
        |ty| op("", TWO, "x * w", &returns(ty, "both(dy)")),
        &["Both", "Both<Tensor<f64>>"],
        "returns 1 gradient",
        &["Tensor<f64>"],
    );
    let nothing = run(&op("", ONE, "x * 2.0", &BACKWARD.replace("-> Tensor<f64>", "")));
    assert!(nothing.contains("return `Tensor<f64>`") && !nothing.contains("or by name"));
    let lists = BACKWARD.replace("-> Tensor<f64>", "-> [Tensor<f64>; 2]");
    held(|ws| op("", ws, "ws[0] * 2.0", &lists), &["ws: [&Tensor<f64>; 2]"], "", &[]);
}

#[test]
fn an_input_that_cannot_be_is_reported_alone() {
    let backward = returns("(Tensor<f64>, Tensor<f64>)", "(dy * 2.0, dy * 3.0)");
    let reported = run(&op("", "x: &Tensor<f64>, w: Box<Tensor<f64>>", "x * 2.0", &backward));
    assert!(refused(&reported) && !reported.contains("returns 2 gradients"), "{reported}");
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

#[test]
fn calls_of_several_names_are_counted_apart() {
    let of = |body: &str| op("type Saved = Tensor<f64>; type Attrs = f64;", ONE, body, READS);
    let body = "ctx.save_for_backward(x); ctx.set_attrs(1.0); ctx.set_materialize_grads(true); \
                ctx.other(); ctx.other(); x * 2.0";
    let twice = "ctx.save_for_backward(x); ctx.set_attrs(1.0); ctx.set_attrs(2.0); x * 2.0";
    held(of, &[body], "`set_attrs` is called twice", &[twice]);
    held(of, &[], "Option<&Tensor<f64>>", &[&body.replace("grads(true)", "grads(false)")]);
}

#[test]
fn what_is_kept_and_not_declared_is_reported_where_it_is_kept() {
    let kept = op("", ONE, "ctx.save_for_backward(x); x * 2.0", READS);
    assert!(run(&kept).contains("type Saved = Tensor<f64>"));
    assert!(!run(&kept).contains("has nothing to read"));
    held(|body| op("", ONE, body, READS), &[], "has nothing to read", &["x * 2.0"]);
}

#[test]
fn what_is_kept_is_suggested_by_value() {
    for (param, kept, example) in [
        ("by: f64", "by", "type Attrs = f64"),
        ("by: usize", "by", "type Attrs = usize"),
        ("by: &str", "by", "type Attrs = f64"),
        ("by: Name<'static>", "by", "type Attrs = f64"),
        ("by: f64", "true", "type Attrs = bool"),
    ] {
        let body = format!("ctx.set_attrs({kept}); x * 2.0");
        let reported = run(&op("", &format!("x: &Tensor<f64>, {param}"), &body, BACKWARD));
        assert!(reported.contains(example), "{param}: {reported}");
    }
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
fn jvp_takes_every_form_of_input() {
    const RIGHT: [&str; 6] = [
        "x: &Tensor<f64>",
        "b: Option<&Tensor<f64>>",
        "ws: &[Tensor<f64>]",
        "dx: &Tensor<f64>",
        "db: Option<&Tensor<f64>>",
        "dws: &[Tensor<f64>]",
    ];
    // An op of every form of input, whose `jvp` takes this one otherwise.
    let with = |param: &str| {
        let mut params = RIGHT;
        let name = |param: &str| param.split(':').next().map(str::to_owned);
        let place = RIGHT.iter().position(|right| name(right) == name(param));
        params[place.expect("a parameter")] = param;
        let params = params.join(", ");
        format!(
            "impl Op {{ fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, b: \
             Option<&Tensor<f64>>, ws: &[Tensor<f64>]) -> Tensor<f64> {{ x * 2.0 }} fn \
             backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {{ Grads {{ x: dy * \
             2.0, b: None, ws: vec![None] }} }} fn jvp(_ctx: &JvpContext<Self>, {params}) -> \
             Tensor<f64> {{ dx * 2.0 }} }}"
        )
    };
    let right = [
        RIGHT[0],
        "x: &Tensor<Number>",
        "b: Option<&Tensor<Number>>",
        "ws: &[Tensor<Number>]",
        "dx: Option<&Tensor<f64>>",
        "dx: &Tensor<Number>",
        "db: Option<&Tensor<Number>>",
        "dws: &[Option<Tensor<f64>>]",
    ];
    held(with, &right, "f32", &["x: &Tensor<f32>", "dx: &Tensor<f32>"]);
    held(with, &[], "x: &Tensor<f64>", &["x: Tensor<f64>"]);
    held(with, &[], "Option<&Tensor<f64>>", &["b: &Tensor<f64>", "db: &Tensor<f64>"]);
    let lists = ["ws: &Tensor<f64>", "ws: [&Tensor<f64>; 2]", "dws: &Tensor<f64>"];
    held(with, &[], "&[Tensor<f64>]", &lists);
}

#[test]
fn jvp_of_an_op_with_plain_inputs_has_a_tangent_for_each_tensor() {
    // An op with these outputs and these gradients, whose `jvp` returns this.
    let with = |outputs: &str, gradients: &str, jvp: &str| {
        format!(
            "impl Op {{ fn forward(_ctx: &mut ForwardContext<Self>, by: f64, x: &Tensor<f64>) -> \
             {outputs} {{ x * by }} fn backward(_ctx: &BackwardContext<Self>, {gradients}) -> \
             Tensor<f64> {{ dy * 2.0 }} fn jvp(_ctx: &JvpContext<Self>, x: &Tensor<f64>, dx: \
             &Tensor<f64>) -> {jvp} {{ tangents(dx) }} }}"
        )
    };
    let one = |jvp: &str| with("Tensor<f64>", "dy: &Tensor<f64>", jvp);
    let gradients = "dy: &Tensor<f64>, dz: &Tensor<f64>";
    let two = |jvp: &str| with("(Tensor<f64>, Tensor<f64>)", gradients, jvp);
    held(one, &["Tensor<f64>", "Tensor<Number>", "Tangent"], "f32", &["Tensor<f32>"]);
    held(one, &[], "`(Tensor<f64>,)`", &["(Tensor<f64>,)"]);
    held(one, &[], "returns 2 tangents", &["(Tensor<f64>, Tensor<f64>)"]);
    let right = ["(Tensor<f64>, Tensor<f64>)", "(Tensor<Number>, Option<Tensor<f64>>)", "Both"];
    held(two, &right, "output 1", &["(Tensor<f64>, Tensor<f32>)"]);
    held(two, &[], "returns 1 tangent", &["(Tensor<f64>,)", "Tensor<f64>"]);
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
fn a_list_without_zeros_is_one_of_options() {
    let of = |body: &str| {
        let backward = "fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>, dz: \
                        &[Tensor<f64>]) -> Tensor<f64> { dy * 2.0 }";
        let block = op("", ONE, &format!("{body} (x * 2.0, vec![])"), backward);
        block.replacen("-> Tensor<f64>", "-> (Tensor<f64>, Vec<Tensor<f64>>)", 1)
    };
    let off = ["ctx.set_materialize_grads(false);"];
    let right = ["ctx.set_materialize_grads(true);", "other(false);"];
    held(of, &right, "dy: Option<&Tensor<f64>>", &off);
    held(of, &[], "dz: &[Option<Tensor<f64>>]", &off);
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

#[test]
fn a_slip_of_tensor_is_reported_where_there_is_no_other() {
    let of = |params: &str| op("", params, "x * 2.0", BACKWARD);
    let right = ["x: &Tensor<f64>, s: &Sensor"];
    held(of, &right, "`Tenser` is no tensor", &["x: &Tenser<f64>"]);
    held(of, &[], "did you mean `Tensor`?", &["x: [&Tensr; 2], by: f64"]);
    held(of, &[], "has no tensor input", &["x: &Other<f64>", "by: f64", ""]);
}

#[test]
fn a_length_of_forward_is_unknown_in_backward() {
    held(
        |ty| {
            let block = op("", "xs: [&Tensor<f64>; N]", "xs[0] * 2.0", &returns(ty, "dy * 2.0"));
            block.replace("forward(", "forward<const N: usize>(")
        },
        &["Vec<Tensor<f64>>"],
        "impl<const N: usize> Op<N>",
        &["[Tensor<f64>; N]"],
    );
}

#[test]
fn a_default_of_grads_is_reported_and_another_update_is_not() {
    let of = |value: &str| op("", TWO, "x * w", &returns("Grads", value));
    held(
        of,
        &["let g = Grads { x: dy * 2.0, w: dy * 3.0 }; Grads { x: dy * 4.0, ..g }"],
        "`Grads` has no default",
        &["Grads { x: dy * 2.0, ..Default::default() }", "Grads { ..Grads::default() }"],
    );
    held(of, &[], "the gradient of `w` is missing", &["Grads { x: dy.slice(0..2) }"]);
}
