//! Names that users give to inputs, outputs and fields, in all forms.

use crate::rustc::{check_text, each};

/// Raw names and keywords, those of what expansions generate, and what is easily made wrong from text.
const NAMES: &[&str] = &[
    "r#in",
    "r#type",
    "r#gen",
    "_in",
    "_type",
    "_gen",
    "_crate",
    "_self",
    "__",
    "_1",
    "_1a",
    "x1",
    "größe",
    "call",
    "with",
    "inputs",
    "outputs",
    "state",
    "context",
    "op",
    "program",
    "name",
    "shape",
    "order",
    "value",
    "forward",
    "backward",
    "jvp",
    "check",
    "Tensor",
    "Argument0",
    "Input0",
    "L",
    "G0",
    "Grads",
    "__inputs",
    "__context",
];

/// `NAME` is replaced by the name, `PLAIN` by the name without `r#`, and `TAKEN` by a parameter of the name
/// (`_y` would be an unused `y`).
const FORMS: &[&str] = &[
    "#[py_layer] impl Op {
        pub fn forward(_: &mut ForwardContext<Self>, NAME: &Tensor<f64>) -> Tensor<f64> { NAME * 2.0 }
        pub fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
    }",
    "#[py_layer] impl Op {
        type Attrs = f64;
        pub fn forward(ctx: &mut ForwardContext<Self>, x0: &Tensor<f64>, NAME: f64) -> Tensor<f64> {
            ctx.set_attrs(NAME);
            x0 * NAME
        }
        pub fn backward(ctx: &BackwardContext<Self>, NAME: &Tensor<f64>) -> Tensor<f64> { NAME * *ctx.attrs() }
    }",
    "#[py_layer] impl Op {
        pub fn forward(_: &mut ForwardContext<Self>, NAME: &Tensor<f64>) -> Tensor<f64> { NAME * 2.0 }
        pub fn backward(_: &BackwardContext<Self>, dx: &Tensor<f64>) -> Grads { Grads { NAME: dx * 2.0 } }
    }",
    "#[py_layer(elementwise)] impl Op {
        pub fn forward(NAME: Real) -> Real { NAME * 2.0 }
    }",
    "#[py_layer(elementwise)] impl Op {
        pub fn forward(x0: Real, NAME: f64) -> Real { x0 * NAME }
        pub fn backward(NAME: f64, dy: Real) -> Real { dy * NAME }
    }",
    "scalar_op!(pub Op: y = NAME * 2.0, dPLAIN = dy * 2.0);",
    "#[py_func] impl Op {
        pub fn forward(NAME: ArrayViewD<'_, f64>) -> ArrayD<f64> { &NAME * 2.0 }
    }",
    "#[py_func(NAME)] impl Op {
        pub fn forward(x0: ArrayViewD<'_, f64>) -> ArrayD<f64> { x0.to_owned() }
        pub fn backward(TAKEN dPLAIN: ArrayViewD<'_, f64>) -> ArrayD<f64> { dPLAIN.to_owned() }
    }",
    "#[derive(Saved)] pub struct Parts { pub NAME: Tensor<f64> }",
    "#[derive(Module)] pub struct Parts { pub NAME: Linear<f64> }",
];

fn module(form: &str, name: &str, at: usize) -> String {
    let plain = name.strip_prefix("r#").unwrap_or(name);
    let taken = if name.starts_with('_') { "" } else { "NAME: ArrayViewD<'_, f64>," };
    let items = form.replace("TAKEN", taken).replace("NAME", name).replace("PLAIN", plain);
    format!("pub mod m{at} {{\nuse super::*;\n{items}\n}}\n")
}

#[test]
fn any_name_can_be_given() {
    let head = "#![allow(nonstandard_style, unused)]\nuse autograd_core::prelude::*;\n\
        use autograd_core::{nn::{Linear, Module}, static_graph::py_func};\nuse ndarray::{ArrayD, ArrayViewD};\n";
    each(&["--edition=2018", "--edition=2024"], |&edition| {
        let mut program = head.to_owned();
        let mut modules = Vec::new();
        for form in FORMS {
            let of_edition = if edition == "--edition=2024" { None } else { Some(&"gen") };
            for name in NAMES.iter().chain(of_edition) {
                modules.push((program.len() as u64, name));
                program += &module(form, name, modules.len());
            }
        }
        program += "fn main() {}\n";
        let wrong = check_text(&program, &[edition.to_owned()]).into_iter().map(|message| {
            let at = modules.partition_point(|(start, _)| *start <= message.place.0);
            let name = modules[at.saturating_sub(1)].1;
            format!("{edition}, `{name}`: {}", message.rendered)
        });
        let wrong: Vec<String> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}
