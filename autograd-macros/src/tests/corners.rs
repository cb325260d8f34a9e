//! What is reported and what is left to the compiler, where the two are next to each other.

use crate::tokens::mentions;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::fuzzed::refused;
use super::run;
use crate::layer::layer;
use crate::model::as_tensor;

/// An op with these parameters after forward's context and these types.
fn op(items: &str, params: &str, body: &str, backward: &str) -> String {
    format!(
        "impl Op {{ {items} fn forward(ctx: &mut ForwardContext<Self>, {params}) -> Tensor<f64> {{ \
         {body} }} {backward} }}"
    )
}

const BACKWARD: &str = "fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> \
                        { dy * 2.0 }";

#[track_caller]
fn accepted(block: &str) {
    let reported = run(block);
    assert!(!refused(&reported), "{block}\n{reported}");
}

#[track_caller]
fn reported(block: &str, words: &str) {
    let reported = run(block);
    assert!(refused(&reported) && reported.contains(words), "{block}\n{words}\n{reported}");
}

#[test]
fn types_of_other_names_are_left_to_the_compiler() {
    let returns = |ty: &str| {
        format!(
            "fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> {ty} {{ dy * 2.0 }}"
        )
    };
    for ty in ["Gradient", "Gradient<f64>", "Option", "<A as B>::Gradient<f64>"] {
        accepted(&op("", "x: &Tensor<f64>", "x * 2.0", &returns(ty)));
    }
    for ty in ["usize", "Option<f64>", "&Tensor<f64>"] {
        reported(&op("", "x: &Tensor<f64>", "x * 2.0", &returns(ty)), "is not returned as");
    }
    for (saved, right) in [("Kept", true), ("[Kept; 2]", true), ("f64", false), ("[f64; 2]", false)]
    {
        let items = format!("type Saved = {saved};");
        let body = "ctx.save_for_backward(x); x * 2.0";
        let reported = run(&op(&items, "x: &Tensor<f64>", body, BACKWARD));
        assert_eq!(!refused(&reported), right, "{saved}: {reported}");
    }
    let ty = syn::parse_str("<A as B>::Tensor<f64>").expect("a type");
    assert!(as_tensor(&ty).is_none());
    assert!(mentions(&quote::quote!(f((a, [b]))), "b"));
}

#[test]
fn a_gradient_may_have_the_name_of_an_input() {
    let backward = "fn backward(_ctx: &BackwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * \
                    2.0 }";
    accepted(&op("", "x: &Tensor<f64>", "x * 2.0", backward));
}

#[test]
fn a_parameter_of_the_caller_is_none_of_the_others() {
    let block = op("", "x: &Tensor<f64>, by: f64", "x * by", BACKWARD);
    accepted(&block.replace("forward(", "forward<X: AsRef<Tensor<f64>>>("));
    let block = op("", "x: &Tensor<f64>, by: X", "x * 2.0", BACKWARD);
    let block = block.replace("forward(", "forward<X, Y>(");
    accepted(&block.replacen(
        "-> Tensor<f64> {",
        "-> Tensor<f64> where Y: AsRef<Tensor<f64>> {",
        1,
    ));
}

#[test]
fn several_gradients_may_stand_behind_one_name() {
    let returns = |ty: &str| {
        let backward = format!(
            "fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> {ty} {{ both(dy) }}"
        );
        op("", "x: &Tensor<f64>, w: &Tensor<f64>", "x * w", &backward)
    };
    accepted(&returns("Both"));
    accepted(&returns("Both<Tensor<f64>>"));
    reported(&returns("Tensor<f64>"), "returns 1 gradient");
    let nothing = BACKWARD.replace("-> Tensor<f64>", "");
    let block = op("", "x: &Tensor<f64>", "x * 2.0", &nothing);
    reported(&block, "return `Tensor<f64>`");
    assert!(!run(&block).contains("or by name"));
    let lists = BACKWARD.replace("-> Tensor<f64>", "-> [Tensor<f64>; 2]");
    accepted(&op("", "ws: [&Tensor<f64>; 2]", "ws[0] * 2.0", &lists));
}

#[test]
fn an_input_that_cannot_be_is_reported_alone() {
    let backward = "fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, \
                    Tensor<f64>) { (dy * 2.0, dy * 3.0) }";
    let block = op("", "x: &Tensor<f64>, w: Box<Tensor<f64>>", "x * 2.0", backward);
    let reported = run(&block);
    assert!(refused(&reported) && !reported.contains("returns 2 gradients"), "{reported}");
}

/// An op whose forward has a second output, and marks what is given here.
fn marks(body: &str) -> String {
    format!(
        "impl Op {{ fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, c: bool) -> \
         (Tensor<f64>, Tensor<f64>) {{ {body} (y, z) }} fn backward(_ctx: &BackwardContext<Self>, \
         dy: &Tensor<f64>, dz: &Tensor<f64>) -> Tensor<f64> {{ dy * 2.0 }} }}"
    )
}

#[test]
fn a_mark_is_reported_where_its_name_is_surely_an_input() {
    for body in [
        "ctx.mark_non_differentiable(x);",
        "ctx.mark_non_differentiable((x));",
        "ctx.mark_non_differentiable([x, w]);",
        "ctx.mark_non_differentiable((&y, x));",
        "if c { let a = x; } ctx.mark_non_differentiable(x);",
        "if c { f(x); } ctx.mark_non_differentiable(x);",
    ] {
        reported(&marks(body), "`x` is an input");
    }
    for body in [
        "ctx.mark_non_differentiable(OTHER);",
        "let x = y * 2.0; ctx.mark_non_differentiable(&x);",
        "let (x, w) = f(y); ctx.mark_non_differentiable(&x);",
        "let (&x, w) = f(y); ctx.mark_non_differentiable(&x);",
        "if c { let x = y * 2.0; ctx.mark_non_differentiable(&x); }",
        "if c { for x in f(y) { ctx.mark_non_differentiable(&x); } }",
    ] {
        accepted(&marks(body));
    }
}

#[test]
fn what_another_value_has_is_none_of_the_contexts() {
    for body in ["other.alpha", "other.needs_input_grad()[0]", "other.alpha.beta(ctx.is_on())"] {
        let body = format!("let a = {body}; x * 2.0");
        accepted(&op("", "x: &Tensor<f64>, other: Other", &body, BACKWARD));
    }
    reported(&op("", "x: &Tensor<f64>", "ctx.alpha = 1.0; x * 2.0", BACKWARD), "alpha");
    reported(&op("", "x: &Tensor<f64>", "ctx.alpha", BACKWARD), "alpha");
    // Still being written.
    accepted(&op("", "x: &Tensor<f64>", "ctx.save", BACKWARD));
}

#[test]
fn a_context_that_is_given_away_may_keep_anything() {
    let backward = "fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy \
                    * ctx.saved_tensor() }";
    let saved = "type Saved = Tensor<f64>;";
    for body in ["helper(ctx, x)", "{ helper(ctx) }", "let c = ctx; x * 2.0"] {
        accepted(&op(saved, "x: &Tensor<f64>", body, backward));
    }
    for body in ["loop {}", "todo!()", "panic!(\"later\")"] {
        accepted(&op(saved, "x: &Tensor<f64>", body, backward));
    }
    for body in ["f(x)", "f {}", "x * 2.0", "later!()"] {
        reported(&op(saved, "x: &Tensor<f64>", body, backward), "save_for_backward");
    }
}

#[test]
fn calls_of_several_names_are_counted_apart() {
    let items = "type Saved = Tensor<f64>; type Attrs = f64;";
    let body = "ctx.save_for_backward(x); ctx.set_attrs(1.0); ctx.set_materialize_grads(true); \
                ctx.other(); ctx.other(); x * 2.0";
    accepted(&op(items, "x: &Tensor<f64>", body, BACKWARD));
    let twice = "ctx.save_for_backward(x); ctx.set_attrs(1.0); ctx.set_attrs(2.0); x * 2.0";
    reported(&op(items, "x: &Tensor<f64>", twice, BACKWARD), "`set_attrs` is called twice");
    let off = body.replace("grads(true)", "grads(false)");
    reported(&op(items, "x: &Tensor<f64>", &off, BACKWARD), "Option<&Tensor<f64>>");
}

#[test]
fn what_is_kept_and_not_declared_is_reported_where_it_is_kept() {
    let backward = BACKWARD.replace("dy * 2.0", "dy * ctx.saved_tensor()");
    let kept = op("", "x: &Tensor<f64>", "ctx.save_for_backward(x); x * 2.0", &backward);
    reported(&kept, "type Saved = Tensor<f64>");
    assert!(!run(&kept).contains("has nothing to read"));
    reported(&op("", "x: &Tensor<f64>", "x * 2.0", &backward), "has nothing to read");
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
        reported(&op("", &format!("x: &Tensor<f64>, {param}"), &body, BACKWARD), example);
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
    let block = op("type Saved = Tensor<f64>;", "x: &Tensor<f64>", body, BACKWARD);
    let reported =
        layer(TokenStream::new(), grouped(block.parse().expect("tokens")), false).to_string();
    assert!(reported.contains("`save_for_backward` is called twice"), "{reported}");
}

/// An op of every form of input, with these parameters of `jvp`.
fn with_jvp(params: &str) -> String {
    format!(
        "impl Op {{ fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, b: \
         Option<&Tensor<f64>>, ws: &[Tensor<f64>]) -> Tensor<f64> {{ x * 2.0 }} fn backward(_ctx: \
         &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {{ Grads {{ x: dy * 2.0, b: None, ws: \
         vec![None] }} }} fn jvp(_ctx: &JvpContext<Self>, {params}) -> Tensor<f64> {{ dx * 2.0 }} }}"
    )
}

#[test]
fn jvp_takes_every_form_of_input() {
    let right = ["x: &Tensor<f64>", "b: Option<&Tensor<f64>>", "ws: &[Tensor<f64>]"];
    let tangents = ["dx: &Tensor<f64>", "db: Option<&Tensor<f64>>", "dws: &[Tensor<f64>]"];
    let all = || [right, tangents].concat();
    accepted(&with_jvp(&all().join(", ")));
    for (place, param) in [
        (0, "x: &Tensor<Number>"),
        (1, "b: Option<&Tensor<Number>>"),
        (2, "ws: &[Tensor<Number>]"),
        (3, "dx: Option<&Tensor<f64>>"),
        (3, "dx: &Tensor<Number>"),
        (4, "db: Option<&Tensor<Number>>"),
        (5, "dws: &[Option<Tensor<f64>>]"),
    ] {
        let mut params = all();
        params[place] = param;
        accepted(&with_jvp(&params.join(", ")));
    }
    for (place, param, words) in [
        (0, "x: &Tensor<f32>", "f32"),
        (0, "x: Tensor<f64>", "x: &Tensor<f64>"),
        (1, "b: &Tensor<f64>", "Option<&Tensor<f64>>"),
        (2, "ws: &Tensor<f64>", "&[Tensor<f64>]"),
        (2, "ws: [&Tensor<f64>; 2]", "&[Tensor<f64>]"),
        (3, "dx: &Tensor<f32>", "f32"),
        (4, "db: &Tensor<f64>", "Option<&Tensor<f64>>"),
        (5, "dws: &Tensor<f64>", "&[Tensor<f64>]"),
    ] {
        let mut params = all();
        params[place] = param;
        reported(&with_jvp(&params.join(", ")), words);
    }
}

#[test]
fn jvp_of_an_op_with_plain_inputs_has_a_tangent_for_each_tensor() {
    let with_jvp = |outputs: &str, jvp: &str| {
        let block = op("", "by: f64, x: &Tensor<f64>", "x * by", BACKWARD);
        let block = block.replacen("-> Tensor<f64>", &format!("-> {outputs}"), 1);
        let (of, names) = match outputs.starts_with('(') {
            true => ("-> Tensor<f64>", "dy: &Tensor<f64>, dz: &Tensor<f64>"),
            false => ("-> Tensor<f64>", "dy: &Tensor<f64>"),
        };
        let block =
            block.replacen("dy: &Tensor<f64>) -> Tensor<f64>", &format!("{names}) {of}"), 1);
        let params = "_ctx: &JvpContext<Self>, x: &Tensor<f64>, dx: &Tensor<f64>";
        let jvp = format!("fn jvp({params}) -> {jvp} {{ tangents(dx) }} }}");
        format!("{}{jvp}", block.trim_end().strip_suffix('}').expect("a block"))
    };
    let (one, two) = ("Tensor<f64>", "(Tensor<f64>, Tensor<f64>)");
    for (outputs, returned) in [
        (one, "Tensor<f64>"),
        (one, "Tensor<Number>"),
        (one, "Tangent"),
        (two, "(Tensor<f64>, Tensor<f64>)"),
        (two, "(Tensor<Number>, Option<Tensor<f64>>)"),
        (two, "Both"),
    ] {
        accepted(&with_jvp(outputs, returned));
    }
    for (outputs, returned, words) in [
        (one, "Tensor<f32>", "f32"),
        (one, "(Tensor<f64>,)", "`(Tensor<f64>,)`"),
        (one, "(Tensor<f64>, Tensor<f64>)", "returns 2 tangents"),
        (two, "(Tensor<f64>, Tensor<f32>)", "output 1"),
        (two, "(Tensor<f64>,)", "returns 1 tangent"),
        (two, "Tensor<f64>", "returns 1 tangent"),
    ] {
        reported(&with_jvp(outputs, returned), words);
    }
}

#[test]
fn gradients_are_known_by_their_names_alone() {
    let returns = |value: &str| {
        let backward = format!(
            "fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Result<(Tensor<f64>, \
             Tensor<f64>), String> {{ {value} }}"
        );
        op("", "x: &Tensor<f64>, w: &Tensor<f64>", "x * w", &backward)
    };
    for value in
        ["Ok((dw, dx))", "Ok((dw.clone(), dx.clone()))", "Ok((Some(dw), Some(dx.clone())))"]
    {
        reported(&returns(value), "stands in the place of the gradient of `x`");
    }
    for value in [
        "Ok((dx, dw))",
        "Ok((dw.abs(), dx.abs()))",
        "Ok((f(dw), f(dx)))",
        "Ok((Some(dw, 1), Some(dx, 1)))",
        "swap((dw, dx))",
        "Ok((dw, dx), 1)",
        "(dw, dx).into()",
    ] {
        accepted(&returns(value));
    }
}

#[test]
fn a_block_of_helpers_is_not_empty() {
    let reported = run("impl Op { fn helper() {} }");
    assert!(reported.contains("has no `forward`") && !reported.contains("is empty"), "{reported}");
    self::reported("impl Op {}", "is empty");
}

#[test]
fn a_list_without_zeros_is_one_of_options() {
    let backward = "fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>, dz: &[Tensor<f64>]) \
                    -> Tensor<f64> { dy * 2.0 }";
    let body = "ctx.set_materialize_grads(false); (x * 2.0, vec![])";
    let block = op("", "x: &Tensor<f64>", body, backward);
    let block = block.replacen("-> Tensor<f64>", "-> (Tensor<f64>, Vec<Tensor<f64>>)", 1);
    reported(&block, "dy: Option<&Tensor<f64>>");
    reported(&block, "dz: &[Option<Tensor<f64>>]");
    accepted(&block.replace("(false)", "(true)"));
    accepted(&block.replace("ctx.set_materialize_grads(false);", "other(false);"));
}

#[test]
fn a_call_that_names_its_types_is_no_field() {
    let body = "ctx.save_for_backward::<_, _>(x); x * 2.0";
    let backward = BACKWARD.replace("dy * 2.0", "dy * ctx.saved_tensor::<_>()");
    accepted(&op("type Saved = Tensor<f64>;", "x: &Tensor<f64>", body, &backward));
    reported(&op("", "x: &Tensor<f64>", "ctx.alpha = 2.0; x * 2.0", BACKWARD), "alpha");
}

#[test]
fn a_bound_that_takes_tensors_gives_none() {
    accepted(&op("", "x: &Tensor<f64>, to: impl Sink<Tensor<f64>>", "x * 2.0", BACKWARD));
    accepted(&op("", "x: &Tensor<f64>, to: &dyn Sink<Item = Tensor<f64>>", "x * 2.0", BACKWARD));
    let block = op("", "x: &Tensor<f64>, to: S", "x * 2.0", BACKWARD);
    accepted(&block.replace("forward(", "forward<S: Sink<Tensor<f64>>>("));
    reported(
        &block.replace("forward(", "forward<S: Into<Tensor<f64>>>("),
        "would lose its gradient",
    );
}

#[test]
fn attributes_borrow_for_no_lifetime_but_that_of_the_program() {
    let keeps = |ty: &str| {
        let block = op(
            &format!("type Attrs = {ty};"),
            "x: &Tensor<f64>",
            "ctx.set_attrs(kept()); x * 2.0",
            &BACKWARD.replace("dy * 2.0", "dy * ctx.attrs().0"),
        );
        block.replace("impl Op", "impl<'a> Op<'a>")
    };
    for ty in [
        "&'static str",
        "Names<'static>",
        "(f64, [Vec<Names<'static>>; 2])",
        "fn(&'a str)",
        "Box<dyn Fn(&'a str)>",
        "Names",
        "<A as B<'a>>::C",
    ] {
        accepted(&keeps(ty));
    }
    for ty in [
        "&'a str",
        "&'static &'a str",
        "Names<'a>",
        "Names<'static, 'a>",
        "(f64, Names<'a>)",
        "[Names<'a>; 2]",
        "&'static [Names<'a>]",
        "Vec<Option<Names<'a>>>",
    ] {
        reported(&keeps(ty), "cannot borrow for `'a`");
    }
    reported(&keeps("&str"), "cannot borrow; write `String`");
}

#[test]
fn a_slip_of_tensor_is_reported_where_there_is_no_other() {
    for (params, name) in [("x: &Tenser<f64>", "Tenser"), ("x: [&Tensr; 2], by: f64", "Tensr")] {
        reported(&op("", params, "x * 2.0", BACKWARD), "did you mean `Tensor`?");
        reported(&op("", params, "x * 2.0", BACKWARD), &format!("`{name}` is no tensor"));
    }
    for params in ["x: &Other<f64>", "by: f64", ""] {
        reported(&op("", params, "x * 2.0", BACKWARD), "has no tensor input");
    }
    accepted(&op("", "x: &Tensor<f64>, s: &Sensor", "x * 2.0", BACKWARD));
}

#[test]
fn a_length_of_forward_is_unknown_in_backward() {
    let block = op("", "xs: [&Tensor<f64>; N]", "xs[0] * 2.0", BACKWARD);
    let block = block.replace("forward(", "forward<const N: usize>(");
    reported(
        &block.replacen(
            "&Tensor<f64>) -> Tensor<f64> { dy",
            "&Tensor<f64>) -> [Tensor<f64>; N] { dy",
            1,
        ),
        "impl<const N: usize> Op<N>",
    );
    accepted(&block.replacen(
        "&Tensor<f64>) -> Tensor<f64> { dy",
        "&Tensor<f64>) -> Vec<Tensor<f64>> { dy",
        1,
    ));
}

#[test]
fn a_default_of_grads_is_reported_and_another_update_is_not() {
    let returns = |value: &str| {
        let backward = format!(
            "fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {{ {value} }}"
        );
        op("", "x: &Tensor<f64>, w: &Tensor<f64>", "x * w", &backward)
    };
    reported(&returns("Grads { x: dy * 2.0, ..Default::default() }"), "`Grads` has no default");
    reported(&returns("Grads { ..Grads::default() }"), "`Grads` has no default");
    accepted(&returns("let g = Grads { x: dy * 2.0, w: dy * 3.0 }; Grads { x: dy * 4.0, ..g }"));
    reported(&returns("Grads { x: dy.slice(0..2) }"), "the gradient of `w` is missing");
}
