//! The rules, applied to different ways to write the same code, and pairs of similar blocks: one is reported by
//! the macro, the other left to the compiler.

use super::{assert_verdicts, run};
use crate::model::as_tensor;
use crate::tokens::mentions;

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

/// As [`op`], with a tensor `x` and this further parameter.
fn with(param: &str, body: &str) -> String {
    op("", &format!("x: &Tensor<f64>, {param}"), body, &returns("Tensor<f64>", "dy * 2.0"))
}

const SAVED: &str = "type Saved = Tensor<f64>;";

const SAVE: &str = "ctx.save_for_backward(x)";

const TWICE: &str = "`save_for_backward` is called twice";

#[test]
fn a_second_call_among_the_same_statements_is_seen() {
    assert_verdicts(
        |body| {
            let body = format!("{body} x * 2.0").replace("SAVE", SAVE);
            let backward = returns("Tensor<f64>", "dy * ctx.saved_tensor()");
            op(SAVED, "x: &Tensor<f64>, c: bool", &body, &backward)
        },
        // A call on another path is no repetition. Uncertain cases are left to the check at run time.
        &[
            "if c { SAVE; return x * 1.0; } SAVE;",
            "match c { true => { SAVE; } false => SAVE, }",
            "match c { true => SAVE, false => SAVE };",
            "match c { true => SAVE, false => {} } SAVE;",
            "let a = c && match c { true => SAVE, false => SAVE }; SAVE;",
            "if c { SAVE; } else { SAVE; }",
            "c && SAVE; SAVE;",
            "let f = |ctx: &mut ForwardContext<Self>| SAVE; SAVE;",
            "other.save_for_backward(x); SAVE;",
            "ctx.other(x); SAVE;",
            "#[cfg(a)] SAVE; #[cfg(not(a))] SAVE;",
        ],
        TWICE,
        &[
            "SAVE; SAVE;",
            "SAVE; let a = SAVE;",
            "let a = SAVE; if c { } SAVE;",
            "if c { SAVE; f(); SAVE; }",
            "loop { SAVE; x.f(|y| y); SAVE; break; }",
            "SAVE; if c { SAVE; }",
            "match c { true => SAVE, false => { SAVE; } } SAVE;",
            "SAVE; let Some(a) = b else { SAVE; return x };",
        ],
    );
}

#[test]
fn a_mark_is_reported_where_its_name_is_surely_an_input() {
    assert_verdicts(
        |body| {
            let body = body.replace("MARK", "ctx.mark_non_differentiable");
            let tuple = with("c: bool", &body).replacen(
                "-> Tensor<f64> {",
                "-> (Tensor<f64>, Tensor<f64>) {",
                1,
            );
            tuple.replacen("dy: &Tensor<f64>", "dy: &Tensor<f64>, dz: &Tensor<f64>", 1)
        },
        &[
            "MARK(OTHER); (y, z)",
            "let x = y * 2.0; MARK(&x); (y, z)",
            "let (x, w) = f(y); MARK(&x); (y, z)",
            "let (&x, w) = f(y); MARK(&x); (y, z)",
            "if c { let x = y * 2.0; MARK(&x); } (y, z)",
            "if c { for x in f(y) { MARK(&x); } } (y, z)",
            // A marked input may be an output too.
            "MARK(x); (y, x.clone())",
            "MARK(x); Ok((y, x.clone()))",
            "MARK(x); let x = y * 2.0; (y, x)",
            "MARK(x); let (x) = y * 2.0; (y, z)",
        ],
        "`x` is an input",
        &[
            "MARK(x); (y, z)",
            "MARK((x)); (y, z)",
            "MARK([x, w]); (y, z)",
            "MARK((&y, x)); (y, z)",
            "MARK(x); (y, x.other())",
            "if c { let a = x; } MARK(x); (y, z)",
            "if c { f(x); } MARK(x); (y, z)",
        ],
    );
}

#[test]
fn a_default_names_no_other_parameter() {
    assert_verdicts(
        |value| with(&format!("by: f64, #[default({value})] to: f64"), "x * by"),
        &[
            "by(1.0)",
            "by::ONE",
            "other::by",
            "other.by",
            "by!(1.0)",
            "|by| by",
            "{ let by = 1.0; by }",
        ],
        "cannot use the parameter `by`",
        &["by", "1.0 + by", "f(by)"],
    );
}

#[test]
fn fields_of_a_context_are_distinguished_from_calls_of_it() {
    // Mostly together with a field, so that each use of the context is checked.
    for (body, fields) in [
        ("let a = ctx.kept + 1.0; y", "kept"),
        ("ctx.kept", "kept"),
        ("ctx.other::<f64>(x); ctx.kept = x; y", "kept"),
        ("ctx.kept = x; { ctx.save }", "kept"),
        ("ctx.kept = x; { ctx.set_mat }", "kept"),
        ("ctx.kept = x; { ctx.lost }", "kept lost"),
        ("ctx.kept = x; { ctx.saved }", "kept saved"),
        ("let a = other.kept; y", ""),
        ("let a = other.needs_input_grad()[0]; y", ""),
        ("let a = other.kept.beta(ctx.is_on()); y", ""),
        ("ctx.save", ""),
    ] {
        let reported = run(&with("other: Other", body));
        for name in ["kept", "other", "save", "set_mat", "lost", "saved"] {
            let found = reported.contains(&format!("so `{name}` cannot be kept in one"));
            assert_eq!(found, fields.split(' ').any(|field| field == name), "{name}: {reported}");
        }
        assert!(!fields.is_empty() || !reported.contains("compile_error"), "{reported}");
    }
}

#[test]
fn what_is_saved_for_each_tensor_of_a_list_is_reported() {
    assert_verdicts(
        |body| {
            let backward = returns("Grads", "Grads { xs: f(dy), x: None }");
            op(SAVED, "xs: &[Tensor<f64>], x: Option<&Tensor<f64>>", body, &backward)
        },
        &[
            "for (i, y) in xs.iter().enumerate() { if i == 0 { ctx.save_for_backward(y); } } z()",
            "for y in xs { ctx.save_for_backward(y); break; } z()",
            "for y in xs.iter().take(1) { ctx.save_for_backward(y); } z()",
            "for y in &xs[..1] { ctx.save_for_backward(y); } z()",
            "x.map(|y| ctx.save_for_backward(y)); z()",
            "x.iter().for_each(|y| ctx.save_for_backward(y)); z()",
            "xs.iter().filter(|y| c).for_each(|y| ctx.save_for_backward(y)); z()",
            "let n = xs.iter().map(|y| y.len()).sum(); ctx.save_for_backward(&xs[0]); z()",
        ],
        "saves the whole list",
        &[
            "for y in xs { ctx.save_for_backward(y); } xs[0].clone()",
            "for (i, y) in xs.iter().enumerate() { let z = y * 2.0; ctx.save_for_backward(&z); } z()",
            "xs.iter().for_each(|y| ctx.save_for_backward(y)); z()",
            "let ys: Vec<_> = xs.iter().map(|y| { ctx.save_for_backward(y); y * 2.0 }).collect(); z()",
            "xs.iter().zip(ws).fold(z(), |sum, y| { ctx.save_for_backward(y); sum })",
        ],
    );
}

#[test]
fn types_of_other_names_are_left_to_the_compiler() {
    assert_verdicts(
        |ty| op("", "x: &Tensor<f64>", "x * 2.0", &returns(ty, "dy * 2.0")),
        &["Gradient", "Gradient<f64>", "Option", "<A as B>::Gradient<f64>"],
        "is not returned as",
        &["usize", "Option<f64>", "&Tensor<f64>"],
    );
    let ty = syn::parse_str("<A as B>::Tensor<f64>").expect("a type");
    assert!(as_tensor(&ty).is_none());
    assert!(mentions(&quote::quote!(f((a, [b]))), "b"));
}

#[test]
fn a_bound_that_takes_tensors_gives_none() {
    let types = ["impl Sink<Tensor<f64>>", "&dyn Sink<Item = Tensor<f64>>"];
    assert_verdicts(|to| with(&format!("to: {to}"), "x * 2.0"), &types, "", &[]);
    assert_verdicts(
        |generics| {
            let (own, clause) = generics.split_once(" where").unwrap_or((generics, ""));
            let block = with("to: S", "x * 2.0").replace("forward(", &format!("forward<{own}>("));
            block.replacen("-> Tensor<f64> {", &format!("-> Tensor<f64> where {clause} {{"), 1)
        },
        // The bound of another parameter is none of its own.
        &[
            "S: Sink<Tensor<f64>>",
            "S, X: AsRef<Tensor<f64>>",
            "S, X, Y where Y: AsRef<Tensor<f64>>",
        ],
        "would lose its gradient",
        &["S: Into<Tensor<f64>>"],
    );
}
