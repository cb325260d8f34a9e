//! The rules, applied to different ways to write the same code.

use super::{assert_verdicts, run};

fn forward(body: &str) -> String {
    format!(
        "impl Op {{ type Saved = Tensor<f64>; fn forward(ctx: &mut ForwardContext<Self>, x: \
         &Tensor<f64>, c: bool) -> Tensor<f64> {{ {body} }} fn backward(ctx: &BackwardContext<Self>, \
         dy: &Tensor<f64>) -> Tensor<f64> {{ dy * ctx.saved_tensor() }} }}"
    )
}

const SAVE: &str = "ctx.save_for_backward(x)";

const TWICE: &str = "`save_for_backward` is called twice";

#[test]
fn a_second_call_among_the_same_statements_is_seen() {
    assert_verdicts(
        |body| forward(&format!("{body} x * 2.0").replace("SAVE", SAVE)),
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
fn a_marked_input_may_be_an_output_too() {
    assert_verdicts(
        |end| {
            format!(
                "impl Op {{ fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> \
                 (Tensor<f64>, Tensor<f64>) {{ ctx.mark_non_differentiable(x); {end} }} fn \
                 backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>, dz: &Tensor<f64>) -> \
                 Tensor<f64> {{ dy * 2.0 }} }}"
            )
        },
        &[
            "(y, x.clone())",
            "Ok((y, x.clone()))",
            "let x = y * 2.0; (y, x)",
            "let (x) = y * 2.0; (y, z)",
        ],
        "`x` is an input",
        &["(y, z)", "(y, x.other())"],
    );
}

#[test]
fn a_default_names_no_other_parameter() {
    assert_verdicts(
        |value| {
            format!(
                "impl Op {{ fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, by: f64, \
                 #[default({value})] to: f64) -> Tensor<f64> {{ x * by }} fn backward(_ctx: \
                 &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {{ dy * 2.0 }} }}"
            )
        },
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
    // Together with a field, so that each use of the context is checked.
    for (body, fields) in [
        ("let a = ctx.kept + 1.0; y", "kept"),
        ("ctx.other::<f64>(x); ctx.kept = x; y", "kept"),
        ("ctx.kept = x; { ctx.save }", "kept"),
        ("ctx.kept = x; { ctx.set_mat }", "kept"),
        ("ctx.kept = x; { ctx.lost }", "kept lost"),
        ("ctx.kept = x; { ctx.saved }", "kept saved"),
    ] {
        let reported = run(&format!(
            "impl Op {{ fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> \
             {{ {body} }} fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> \
             {{ dy.clone() }} }}"
        ));
        for name in ["kept", "other", "save", "set_mat", "lost", "saved"] {
            let found = reported.contains(&format!("so `{name}` cannot be kept in one"));
            assert_eq!(found, fields.split(' ').any(|field| field == name), "{name}: {reported}");
        }
    }
}

#[test]
fn what_is_saved_for_each_tensor_of_a_list_is_reported() {
    let of = |body: &str| {
        format!(
            "impl Op {{ type Saved = Tensor<f64>; fn forward(ctx: &mut ForwardContext<Self>, xs: \
             &[Tensor<f64>], x: Option<&Tensor<f64>>) -> Tensor<f64> {{ {body} }} fn backward(ctx: \
             &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {{ Grads {{ xs: f(dy), x: None }} }} \
             }}"
        )
    };
    assert_verdicts(
        of,
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
