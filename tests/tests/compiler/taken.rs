//! An op whose name is taken: the compiler's own error about that is the first one.

use std::collections::BTreeSet;

use crate::rustc::{Message, check_text, each};

const HEAD: &str = "use autograd_core::prelude::*;\nuse autograd_core::static_graph::py_func;\n\
    use ndarray::{ArrayD, ArrayViewD};\n";

const TAKEN: &str = "the name `Op` is defined multiple times";

/// Ops, each with the most errors of two of its kind.
const OPS: &[(&str, usize)] = &[
    (
        "#[py_layer] impl Op {
            fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
            fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
        }",
        12,
    ),
    (
        "#[py_layer] impl Op {
            type Saved = Tensor<f64>;
            fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
                ctx.save_for_backward(x);
                x.square()
            }
            fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
                Grads { x: dy * ctx.saved_tensor() * 2.0 }
            }
        }",
        22,
    ),
    (
        "#[py_layer] impl<T: Float> Op<T> {
            fn forward(_: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> { x + x }
            fn backward(_: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> { dy + dy }
        }",
        12,
    ),
    ("#[py_layer(elementwise)] impl Op { fn forward(x: Real) -> Real { x * 3.0 } }", 9),
    ("scalar_op!(Op: y = x * 2.0, dx = dy * 2.0);", 13),
    ("#[py_func] impl Op { fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> { x.to_owned() } }", 6),
];

/// Other items.
const ITEMS: &[&str] = &[
    "struct Op;",
    "pub struct Op { pub scale: f64 }",
    "struct Op(f64);",
    "struct Op<T>(T);",
    "enum Op { First }",
    "union Op { first: u8 }",
    "struct Other; type Op = Other;",
    "type Op = f64;",
    "trait Op {}",
    "mod Op {}",
];

/// The most errors of an op beside another item.
const MOST: usize = 6;

#[test]
fn a_name_that_is_taken_is_the_first_error() {
    let mut programs = Vec::new();
    for (op, same) in OPS {
        programs.push((format!("{HEAD}{op}\n{op}\nfn main() {{}}"), *same));
        for item in ITEMS {
            programs.push((format!("{HEAD}{item}\n{op}\nfn main() {{}}"), MOST));
            programs.push((format!("{HEAD}{op}\n{item}\nfn main() {{}}"), MOST));
        }
    }
    let wrong = each(&programs, |(program, most)| {
        let mut errors = check_text(program, &[]);
        errors.retain(Message::is_error);
        // The compiler prints equal errors once, but not in incremental builds.
        let distinct: BTreeSet<_> = errors.iter().map(|error| &error.rendered).collect();
        let first = errors.first().is_some_and(|error| error.text.starts_with(TAKEN));
        (!first || distinct.len() > *most).then(|| {
            let count = distinct.len();
            let texts: String = errors.iter().map(|error| format!("{}\n", error.text)).collect();
            format!("{program}\n{count} errors, at most {most}:\n{texts}")
        })
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
