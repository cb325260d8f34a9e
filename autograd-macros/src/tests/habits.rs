//! The rules against the ways in which people write the same thing.

use proc_macro2::TokenStream;

use super::fuzzed::refused;
use super::run;

/// An op whose forward has this body.
fn forward(body: &str) -> String {
    run(&format!(
        "impl Op {{ type Saved = Tensor<f64>; fn forward(ctx: &mut ForwardContext<Self>, x: \
         &Tensor<f64>, c: bool) -> Tensor<f64> {{ {body} }} fn backward(ctx: &BackwardContext<Self>, \
         dy: &Tensor<f64>) -> Tensor<f64> {{ dy * ctx.saved_tensor() }} }}"
    ))
}

const SAVE: &str = "ctx.save_for_backward(x)";

fn is_reported_twice(reported: &str) -> bool {
    reported.contains("save_for_backward") && reported.contains("twice") && refused(reported)
}

#[test]
fn a_second_call_is_seen_wherever_the_first_stands() {
    for first in [
        "SAVE;",
        "let a = SAVE;",
        "let Some(a) = SAVE else { return x };",
        "{ SAVE; }",
        "unsafe { SAVE; }",
        "(SAVE);",
        "&SAVE;",
        "!SAVE;",
        "SAVE?;",
        "SAVE as usize;",
        "SAVE.0;",
        "a = SAVE;",
        "SAVE + 1;",
        "1 + SAVE;",
        "SAVE && c;",
        "f(SAVE);",
        "SAVE(1);",
        "x.f(SAVE);",
        "SAVE.f();",
        "(1, SAVE);",
        "[SAVE];",
        "a[SAVE];",
        "SAVE[0];",
        "if SAVE { }",
        "match SAVE { _ => {} }",
        "for i in SAVE { }",
        "if c { SAVE; } else { SAVE; }",
        "match c { true => SAVE, false => SAVE }",
        "if c { SAVE; } else { panic!() }",
        "if c { SAVE; } else { todo!(); }",
        "if c { SAVE; } else { return x; }",
        "for i in 0..3 { if c { SAVE; } else { continue; } SAVE; }",
    ] {
        let body = format!("{first} {SAVE}; x * 2.0").replace("SAVE", SAVE);
        assert!(is_reported_twice(&forward(&body)), "{body}");
    }
}

#[test]
fn a_second_call_is_seen_wherever_it_stands() {
    for second in [
        "let a = SAVE;",
        "let Some(a) = b else { SAVE; return x };",
        "{ SAVE; }",
        "unsafe { SAVE; }",
        "if c { SAVE; }",
        "if c { } else { SAVE; }",
        "match c { true => SAVE, false => {} }",
        "while c { SAVE; }",
        "loop { SAVE; }",
        "for i in 0..3 { SAVE; }",
        "c && SAVE;",
        "return SAVE;",
    ] {
        let body = format!("{SAVE}; {second} x * 2.0").replace("SAVE", SAVE);
        assert!(is_reported_twice(&forward(&body)), "{body}");
    }
}

#[test]
fn a_call_on_another_path_is_none_too_many() {
    for first in [
        "if c { SAVE; return x * 1.0; }",
        "if c { SAVE; panic!() }",
        "if c { SAVE; unreachable!(); }",
        "match c { true => { SAVE; return x * 1.0 } false => {} }",
        "if c { SAVE; }",
        "match c { true => SAVE, false => {} }",
        "while c { SAVE; }",
        "loop { SAVE; break; }",
        "for i in 0..3 { SAVE; }",
        "c && { SAVE; true };",
        "c || { SAVE; true };",
        "let Some(a) = b else { SAVE; return x };",
        "let f = |ctx: &mut ForwardContext<Self>| SAVE;",
        "other.save_for_backward(x);",
        "ctx.other(x);",
    ] {
        let body = format!("{first} {SAVE}; x * 2.0").replace("SAVE", SAVE);
        assert!(!is_reported_twice(&forward(&body)), "{body}");
    }
}

#[test]
fn parentheses_and_other_names_change_nothing() {
    for (right, types) in [
        (true, ["&(Tensor<f64>)", "(Tensor<f64>)", "&(Tensor<f64>)", "(Tensor<f64>)"]),
        (true, ["&Tensor<f64>", "Tensor<Number>", "&Tensor<f64>", "Tensor<f64>"]),
        (true, ["&Tensor<f64>", "Tensor<f64>", "&Tensor<Number>", "Tensor<f64>"]),
        (true, ["&Tensor<f64>", "Tensor<f64>", "&Tensor<f64>", "Tensor<Number>"]),
        (true, ["&Tensor<Number>", "Tensor<f64>", "&Tensor<f64>", "Tensor<f64>"]),
        (false, ["&Tensor<f64>", "Tensor<f64>", "&Tensor<f32>", "Tensor<f64>"]),
        (false, ["&Tensor<f64>", "Tensor<f64>", "&Tensor<f64>", "Tensor<f32>"]),
    ] {
        let [x, y, dy, dx] = types;
        let reported = run(&format!(
            "impl Op {{ fn forward(_ctx: &mut ForwardContext<Self>, x: {x}) -> {y} {{ x * 2.0 }} fn \
             backward(_ctx: &BackwardContext<Self>, dy: {dy}) -> {dx} {{ dy * 2.0 }} }}"
        ));
        assert_eq!(!refused(&reported), right, "{types:?}: {reported}");
    }
}

#[test]
fn a_marked_input_may_be_an_output_too() {
    for (end, right) in [
        ("(y, x.clone())", true),
        ("Ok((y, x.clone()))", true),
        ("(y, z)", false),
        ("(y, x.other())", false),
        ("let x = y * 2.0; (y, x)", true),
        ("let (x) = y * 2.0; (y, z)", true),
        ("for x in y { }; (y, z)", false),
    ] {
        let reported = run(&format!(
            "impl Op {{ fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, \
             Tensor<f64>) {{ ctx.mark_non_differentiable(x); {end} }} fn backward(_ctx: \
             &BackwardContext<Self>, dy: &Tensor<f64>, dz: &Tensor<f64>) -> Tensor<f64> {{ dy * 2.0 \
             }} }}"
        ));
        assert_eq!(!refused(&reported), right, "{end}: {reported}");
    }
}

#[test]
fn a_default_names_no_other_parameter() {
    for (value, right) in [
        ("by", false),
        ("1.0 + by", false),
        ("f(by)", false),
        ("by(1.0)", true),
        ("by::ONE", true),
        ("other::by", true),
        ("other.by", true),
        ("by!(1.0)", true),
        ("|by| by", true),
        ("{ let by = 1.0; by }", true),
    ] {
        let block = format!(
            "impl Op {{ fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, by: f64, \
             #[default({value})] to: f64) -> Tensor<f64> {{ x * by }} fn backward(_ctx: \
             &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {{ dy * 2.0 }} }}"
        );
        let _: TokenStream = block.parse().expect("tokens");
        assert_eq!(!refused(&run(&block)), right, "{value}");
    }
}

#[test]
fn a_tensor_by_value_is_reported_once() {
    let reported = run(
        "impl Op { fn forward(_ctx: &mut ForwardContext<Self>, x: Tensor<f64>) -> Tensor<f64> { x } \
         fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy.clone() } }",
    );
    assert!(reported.contains("must be borrowed"), "{reported}");
    assert!(!reported.contains("no tensor input"), "{reported}");
}

#[test]
fn fields_of_a_context_are_distinguished_from_calls_of_it() {
    // A field beside them, so that all that is done with the context is looked at.
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

/// An op of a list whose forward has this body.
fn of_a_list(body: &str) -> String {
    run(&format!(
        "impl Op {{ type Saved = Tensor<f64>; fn forward(ctx: &mut ForwardContext<Self>, xs: \
         &[Tensor<f64>], x: Option<&Tensor<f64>>) -> Tensor<f64> {{ {body} }} fn backward(ctx: \
         &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {{ Grads {{ xs: f(dy), x: None }} }} }}"
    ))
}

#[test]
fn what_is_saved_for_each_tensor_of_a_list_is_reported() {
    for body in [
        "for y in xs { ctx.save_for_backward(y); } xs[0].clone()",
        "for (i, y) in xs.iter().enumerate() { let z = y * 2.0; ctx.save_for_backward(&z); } z()",
        "for y in xs { if c { ctx.save_for_backward(y) } else { ctx.save_for_backward(&z) } } z()",
        "xs.iter().for_each(|y| ctx.save_for_backward(y)); z()",
        "let ys: Vec<_> = xs.iter().map(|y| { ctx.save_for_backward(y); y * 2.0 }).collect(); z()",
        "xs.iter().zip(ws).fold(z(), |sum, y| { ctx.save_for_backward(y); sum })",
    ] {
        let reported = of_a_list(body);
        assert!(reported.contains("saves the whole list"), "{body}: {reported}");
        assert!(refused(&reported), "{body}");
    }
    for body in [
        "for (i, y) in xs.iter().enumerate() { if i == 0 { ctx.save_for_backward(y); } } z()",
        "for y in xs { ctx.save_for_backward(y); break; } z()",
        "for y in xs.iter().take(1) { ctx.save_for_backward(y); } z()",
        "for y in &xs[..1] { ctx.save_for_backward(y); } z()",
        "x.map(|y| ctx.save_for_backward(y)); z()",
        "x.iter().for_each(|y| ctx.save_for_backward(y)); z()",
        "xs.iter().filter(|y| c).for_each(|y| ctx.save_for_backward(y)); z()",
        "let n = xs.iter().map(|y| y.len()).sum(); ctx.save_for_backward(&xs[0]); z()",
    ] {
        assert!(!of_a_list(body).contains("saves the whole list"), "{body}");
    }
}
