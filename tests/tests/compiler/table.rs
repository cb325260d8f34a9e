//! One table of situations, tested in all forms of the macros, and each compared with the same mistake in
//! plain Rust: at most the same errors and one more. A situation is a line; a form is a program with places
//! for a situation.

use crate::rustc::{Message, check_text, each};

/// A form, and the same in plain Rust. `PARAMETER` is after the parameters of forward, `BODY` and
/// `BACKWARD` at the start of the bodies, `ITEM` in the block, `FIELD` among fields,
/// `ATTRIBUTE` above the block, `FUNCTION` above forward.
struct Form {
    name: &'static str,
    ours: &'static str,
    plain: &'static str,
}

const HEAD: &str = "#![allow(dead_code, unused)]\nuse autograd_core::prelude::*;\n\
    use autograd_core::static_graph::py_func;\nuse autograd_core::nn::{Linear, Module};\nuse autograd_core::scalar_op;\n\
    use ndarray::{ArrayD, ArrayViewD};\n";

const PLAIN_LAYER: &str = "struct Op; struct Context;
    ATTRIBUTE impl Op {
        ITEM
        FUNCTION fn forward(ctx: &mut Context, x: &Tensor<f64> PARAMETER) -> Tensor<f64> {
            BODY x * 2.0
        }
        fn backward(ctx: &Context, dy: &Tensor<f64>) -> Tensor<f64> {
            BACKWARD dy * 2.0
        }
    }";

const PLAIN_FORMULA: &str = "struct Op;
    ATTRIBUTE impl Op {
        ITEM
        FUNCTION fn forward(x: f64 PARAMETER) -> f64 { BODY x * 2.0 }
        fn backward(dy: f64) -> f64 { BACKWARD dy * 2.0 }
    }";

const PLAIN_FIELDS: &str = "struct Kept { x: Tensor<f64>, FIELD }";

const FORMS: &[Form] = &[
    Form {
        name: "#[py_layer]",
        ours: "#[py_layer] ATTRIBUTE impl Op {
            ITEM
            FUNCTION fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64> PARAMETER) -> Tensor<f64> {
                BODY x * 2.0
            }
            fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
                BACKWARD dy * 2.0
            }
        }",
        plain: PLAIN_LAYER,
    },
    Form {
        name: "#[py_layer] with Grads",
        ours: "#[py_layer] ATTRIBUTE impl Op {
            ITEM
            FUNCTION fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64> PARAMETER) -> Tensor<f64> {
                BODY x * 2.0
            }
            fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
                BACKWARD Grads { x: dy * 2.0 }
            }
        }",
        plain: PLAIN_LAYER,
    },
    Form {
        name: "#[py_layer(elementwise)]",
        ours: "#[py_layer(elementwise)] ATTRIBUTE impl Op {
            ITEM
            FUNCTION fn forward(x: Real PARAMETER) -> Real { BODY x * 2.0 }
            fn backward(dy: Real) -> Real { BACKWARD dy * 2.0 }
        }",
        plain: PLAIN_FORMULA,
    },
    Form {
        name: "#[py_func]",
        ours: "#[py_func] ATTRIBUTE impl Op {
            ITEM
            FUNCTION fn forward(x: ArrayViewD<f64> PARAMETER) -> ArrayD<f64> { BODY &x * 2.0 }
            fn backward(dy: ArrayViewD<f64>) -> ArrayD<f64> { BACKWARD &dy * 2.0 }
        }",
        plain: "struct Op;
        ATTRIBUTE impl Op {
            ITEM
            FUNCTION fn forward(x: ArrayViewD<f64> PARAMETER) -> ArrayD<f64> { BODY &x * 2.0 }
            fn backward(dy: ArrayViewD<f64>) -> ArrayD<f64> { BACKWARD &dy * 2.0 }
        }",
    },
    Form {
        name: "#[py_func] without backward",
        ours: "#[py_func] ATTRIBUTE impl Op {
            ITEM
            FUNCTION fn forward(x: ArrayViewD<f64> PARAMETER) -> ArrayD<f64> { BODY &x * 2.0 }
        }",
        plain: "struct Op;
        ATTRIBUTE impl Op {
            ITEM
            FUNCTION fn forward(x: ArrayViewD<f64> PARAMETER) -> ArrayD<f64> { BODY &x * 2.0 }
        }",
    },
    Form {
        name: "scalar_op!",
        ours: "scalar_op!(Op: y = { BODY x * 2.0 }, dx = { BACKWARD dy * 2.0 });",
        plain: PLAIN_FORMULA,
    },
    Form {
        name: "#[derive(Saved)]",
        ours: "#[derive(Saved)] struct Kept { x: Tensor<f64>, FIELD }",
        plain: PLAIN_FIELDS,
    },
    Form {
        name: "#[derive(Module)]",
        ours: "#[derive(Module)] struct Kept { x: Linear, FIELD }",
        plain: PLAIN_FIELDS,
    },
];

/// A place, and the code there.
const SITUATIONS: &[(&str, &str)] = &[
    // Types of the signature.
    ("PARAMETER", ", p: Unknown"),
    ("PARAMETER", ", p: &Unknown"),
    ("PARAMETER", ", p: Vec<Unknown>"),
    ("PARAMETER", ", p: (f64, Unknown)"),
    ("PARAMETER", ", p: HashMap<u8, u8>"),
    ("PARAMETER", ", p: std::unknown::Name"),
    ("PARAMETER", ", p: fn(Unknown) -> f64"),
    ("PARAMETER", ", p: T"),
    ("PARAMETER", ", p: <f64 as Unknown>::Name"),
    ("PARAMETER", ", p: Self::Unknown"),
    ("PARAMETER", ", p: &dyn Unknown"),
    ("PARAMETER", ", p: impl Unknown"),
    ("PARAMETER", ", p: impl Fn(Unknown) -> f64"),
    ("PARAMETER", ", p: [f64; UNKNOWN]"),
    ("PARAMETER", ", p: str"),
    ("PARAMETER", ", p: [f64]"),
    ("PARAMETER", ", p: Vec<str>"),
    ("PARAMETER", ", p: &'a str"),
    ("PARAMETER", ", p: std::borrow::Cow<'a, str>"),
    ("PARAMETER", ", p: Vec"),
    ("PARAMETER", ", p: &Vec"),
    ("PARAMETER", ", p: Option<Box>"),
    ("PARAMETER", ", p: Vec<f64, f64, f64>"),
    ("PARAMETER", ", p: std::collections::HashMap<u8>"),
    ("PARAMETER", ", p: f64<u8>"),
    ("PARAMETER", ", p: String<u8>"),
    ("PARAMETER", ", p: std::fmt::Debug"),
    ("PARAMETER", ", p: &std::fmt::Debug"),
    ("PARAMETER", ", p: Box<std::fmt::Debug>"),
    ("PARAMETER", ", p: Fn(f64) -> f64"),
    ("PARAMETER", ", p: &dyn Clone"),
    ("PARAMETER", ", p: Box<dyn Clone>"),
    ("PARAMETER", ", p: &dyn Iterator"),
    ("PARAMETER", ", p: Box<dyn Iterator<Itm = f64>>"),
    ("PARAMETER", ", p: &dyn std::fmt::Debug<u8>"),
    ("PARAMETER", ", p: Box<dyn Fn(Unknown) -> f64>"),
    ("PARAMETER", ", p: &dyn Fn(Vec) -> f64"),
    ("PARAMETER", ", p: Box<dyn Fn(&'a str)>"),
    ("PARAMETER", ", p: &dyn Fn() -> &'a str"),
    ("PARAMETER", ", p: &(dyn std::fmt::Debug + 'a)"),
    ("PARAMETER", ", p: &dyn Fn() -> &str"),
    ("PARAMETER", ", p: impl Into"),
    ("PARAMETER", ", p: impl Iterator<Itm = f64>"),
    ("PARAMETER", ", p: impl std::fmt::Debug<u8>"),
    ("PARAMETER", ", p: impl Fn(Vec) -> f64"),
    ("PARAMETER", ", p: impl Into<str>"),
    ("PARAMETER", ", p: impl Into<Vec<str>>"),
    ("PARAMETER", ", p: impl IntoIterator<Item = Vec>"),
    ("PARAMETER", ", p: fn(&'a str) -> f64"),
    ("PARAMETER", ", p: fn(Vec) -> f64"),
    ("PARAMETER", ", p: fn() -> &str"),
    ("PARAMETER", ", p: fn(Vec<str>)"),
    ("PARAMETER", ", p: [f64; -1]"),
    ("PARAMETER", ", p: [f64; 1.0]"),
    ("PARAMETER", ", p: [f64; \"a\"]"),
    ("PARAMETER", ", p: [f64; usize::MAX + 1]"),
    ("PARAMETER", ", p: [f64; Vec::new()]"),
    ("PARAMETER", ", p: [f64; { let a: u8 = 1.0; 1 }]"),
    ("PARAMETER", ", p: [f64; size_of::<Unknown>()]"),
    ("PARAMETER", ", p: [str; 2]"),
    ("PARAMETER", ", p: Option<str>"),
    ("PARAMETER", ", p: Option<[f64]>"),
    ("PARAMETER", ", p: Vec<[f64]>"),
    ("PARAMETER", ", p: Vec<dyn std::fmt::Debug>"),
    ("PARAMETER", ", p: std::sync::Arc<Vec<str>>"),
    ("PARAMETER", ", p: std::collections::HashMap<str, f64>"),
    ("PARAMETER", ", p: std::collections::HashMap<String, str>"),
    ("PARAMETER", ", p: (str, f64)"),
    ("PARAMETER", ", p: &(str, f64)"),
    ("PARAMETER", ", p: &[str]"),
    ("PARAMETER", ", p: &[[f64]]"),
    ("PARAMETER", ", p: Box<[str]>"),
    ("PARAMETER", ", p: Vec<f64>::Item"),
    ("PARAMETER", ", p: <Vec<f64> as IntoIterator>::Itm"),
    ("PARAMETER", ", p: <Vec<f64> as IntoIterator>"),
    ("PARAMETER", ", p: std::ops::Range"),
    ("PARAMETER", ", p: std::ops::Range<f64, f64>"),
    ("PARAMETER", ", p: std::ops::Range<str>"),
    ("PARAMETER", ", p: std::num::NonZero<f64>"),
    ("PARAMETER", ", p: std::time::Duration<u8>"),
    ("PARAMETER", ", p: _"),
    ("PARAMETER", ", p: Option<_>"),
    ("PARAMETER", ", p: !"),
    ("PARAMETER", ", p: *const Unknown"),
    ("PARAMETER", ", p: Option<i31>"),
    ("PARAMETER", ", p: Some<f64>"),
    ("PARAMETER", ", p: Option::Some"),
    ("PARAMETER", ", p: std::vec"),
    ("PARAMETER", ", p: &'static strr"),
    ("PARAMETER", ", p: Self"),
    ("PARAMETER", ", p: &Self::A"),
    ("PARAMETER", ", p: impl Fn(&'a str)"),
    ("PARAMETER", ", p: &mut Vec<Unknown>"),
    ("PARAMETER", ", p: std::cell::Ref<str>"),
    ("PARAMETER", ", p: std::borrow::Cow<str>"),
    ("PARAMETER", ", p: std::borrow::Cow<dyn Clone>"),
    ("PARAMETER", ", p: Result<f64>"),
    ("PARAMETER", ", p: Result<f64, str>"),
    ("PARAMETER", ", p: std::borrow::Cow<Vec>"),
    // Fields of the derives.
    ("FIELD", "y: Unknown"),
    ("FIELD", "y: Vec<Unknown>"),
    ("FIELD", "y: Vec"),
    ("FIELD", "y: Option<Tensor<Unknown>>"),
    ("FIELD", "y: T"),
    ("FIELD", "y: std::fmt::Debug"),
    ("FIELD", "y: [f64; UNKNOWN]"),
    ("FIELD", "y: Box<dyn Clone>"),
    ("FIELD", "y: &'a str"),
    ("FIELD", "y: Vec<str>"),
    ("FIELD", "y: Option<Vec>"),
    ("FIELD", "y: std::ops::Range<f64, f64>"),
    ("FIELD", "y: fn(Vec) -> f64"),
    ("FIELD", "y: &str"),
    ("FIELD", "y: [f64; -1]"),
    ("FIELD", "y: _"),
    ("FIELD", "y: Tensor<Unknown>"),
    ("FIELD", "y: Vec<Tensor<Unknown>>"),
    ("FIELD", "y: Linear<Unknown>"),
    ("FIELD", "y: Option<str>"),
    ("FIELD", "y: str"),
    ("FIELD", "y: Tensor<Vec<f64>>"),
    // Bodies.
    ("BODY", "unknown();"),
    ("BODY", "let a: u8 = 1.0;"),
    ("BODY", "let a = x.unknown();"),
    ("BODY", "let a = Unknown { a: 1 };"),
    ("BODY", "break;"),
    ("BODY", "let a = [1, 2; 3];"),
    ("BODY", "let a = ;"),
    ("BODY", "if true { let a = 1"),
    ("BACKWARD", "unknown();"),
    ("BACKWARD", "let a: u8 = 1.0;"),
    ("BACKWARD", "let a = dy.unknown();"),
    ("BACKWARD", "return 1;"),
    // Items.
    ("ITEM", "fn helper(a: Unknown) {}"),
    ("ITEM", "const A: u8 = 1.0;"),
    ("ITEM", "fn helper("),
    ("ITEM", "fn helper() {} fn helper() {}"),
    // Attributes.
    ("ATTRIBUTE", "#[unknown]"),
    ("FUNCTION", "#[unknown]"),
    ("FUNCTION", "#[deprecated = 1]"),
    ("FUNCTION", "#[inline(sometimes)]"),
];

const PLACES: [&str; 7] =
    ["PARAMETER", "BODY", "BACKWARD", "ITEM", "FIELD", "ATTRIBUTE", "FUNCTION"];

/// A program with a situation in it.
fn program(template: &str, place: &str, text: &str) -> String {
    let filled = PLACES.iter().fold(template.to_owned(), |filled, other| {
        filled.replace(other, if *other == place { text } else { "" })
    });
    format!("{HEAD}{filled}\nfn main() {{}}\n")
}

/// Types with a mistake, tried wherever a signature has a type.
const WRONG_TYPES: &[&str] = &[
    "Unknown",
    "Vec<Unknown>",
    "Tensor<Unknown>",
    "&'a str",
    "[f64; UNKNOWN]",
    "Vec",
    "std::fmt::Debug",
    "Box<Fn(f64) -> f64>",
    "str",
    "Box<dyn Clone>",
    "(Tensor<f64>, Box<dyn Clone>)",
    "(Tensor<f64>, str)",
    "Result<Tensor<f64>, str>",
    "Result<Tensor<f64>, Unknown>",
    "Result<f64>",
    "ArrayD<Mine<str>>",
    "Tensor<str>",
    "&dyn Clone",
    "impl Unknown",
    "impl Clone<u8>",
    "fn(Vec) -> f64",
    "[Tensor<f64>; -1]",
    "Vec<Tensor<Unknown>>",
    "Option<&Tensor<Unknown>>",
    "_",
    "Option<_>",
    "Tensor<_>",
    "Vec<str>",
    "(f64, Vec)",
];

/// Types of a signature, each in ours and in plain Rust, where a wrong type is put in their place.
const TYPES_OF_A_SIGNATURE: &[(&str, &str)] = &[
    ("x: &Tensor<f64>", "x: TYPE"),
    ("dy: &Tensor<f64>", "dy: TYPE"),
    ("-> Tensor<f64> {BODY", "-> TYPE {BODY"),
    ("-> Tensor<f64> {BACKWARD", "-> TYPE {BACKWARD"),
    ("-> Tensor<f64> { BACKWARD", "-> TYPE { BACKWARD"),
    ("x: Real", "x: TYPE"),
    ("dy: Real", "dy: TYPE"),
    ("-> Real { BODY", "-> TYPE { BODY"),
    ("-> Real { BACKWARD", "-> TYPE { BACKWARD"),
    ("x: ArrayViewD<f64>", "x: TYPE"),
    ("dy: ArrayViewD<f64>", "dy: TYPE"),
    ("-> ArrayD<f64> { BODY", "-> TYPE { BODY"),
    ("-> ArrayD<f64> { BACKWARD", "-> TYPE { BACKWARD"),
];

/// Types that only the compiler can reject, with the number of additional errors allowed.
const UNSURE: &[(&str, &[(&str, usize)])] = &[
    ("&Tensor<f64> PARAMETER", ELEMENTS),
    ("-> Tensor<f64>", ELEMENTS),
    (
        "-> Tensor<f64>",
        &[("(Tensor<f64>, Mine)", 2), ("(Tensor<f64>, Vec<Mine>)", 2), ("(Tensor<f64>, Named)", 2)],
    ),
    (
        "PARAMETER",
        &[
            ("Mine", 1),
            ("&Mine", 1),
            ("Vec<Mine>", 1),
            ("Mine<u8, u8>", 1),
            ("Mine<str>", 2),
            ("Named", 1),
            ("Plain::Name", 1),
        ],
    ),
];

const ELEMENTS: &[(&str, usize)] = &[
    ("Tensor<Mine>", 2),
    ("Tensor<Vec<Mine>>", 2),
    ("Tensor<Named>", 2),
    ("Tensor<Plain>", 2),
    ("Tensor<Mine<u8>>", 2),
];

const TYPES: &str =
    "#[derive(Clone)] struct Mine<T>(T); #[derive(Clone)] struct Plain; trait Named {}\n";

/// As above for any type of a formula.
const OF_A_FORMULA: usize = 2;

#[test]
fn types_that_the_compiler_refuses_are_told_a_few_times() {
    let mut cases = Vec::new();
    for form in FORMS.iter().filter(|form| form.name.starts_with("#[py_layer")) {
        for (place, types) in UNSURE.iter().filter(|(place, _)| form.ours.contains(place)) {
            cases.extend(types.iter().map(|(ty, more)| (form, *place, *ty, *more)));
        }
    }
    assert!(cases.len() > 30, "{}", cases.len());
    let wrong = each(&cases, |(form, place, ty, more)| {
        let written = match *place {
            "PARAMETER" => format!(", p: {ty}"),
            place => place.replace("Tensor<f64>", ty),
        };
        let errors = |template: &str| {
            let text = TYPES.to_owned() + &program(&template.replacen(place, &written, 1), "", "");
            let output = check_text(&text, &[]);
            output.into_iter().filter(|message| message.is_error()).count()
        };
        let (ours, plain) = (errors(form.ours), errors(form.plain));
        let more = if form.ours.contains("elementwise") { OF_A_FORMULA } else { *more };
        let fits = plain > 0 && ours > 0 && ours <= plain + more;
        (!fits).then(|| format!("{}, {ty}: {ours} errors, {plain} in plain Rust", form.name))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn forms_without_a_slip_are_right() {
    for form in FORMS {
        for template in [form.ours, form.plain] {
            let output = check_text(&program(template, "", ""), &[]);
            let output: String = output.into_iter().map(|message| message.rendered).collect();
            assert!(output.is_empty(), "{}: {output}", form.name);
        }
    }
}

/// Codes of errors about names that do not exist. No proof may be reported about such a type.
const OF_NAMES: &[&str] = &["E0261", "E0405", "E0412", "E0425", "E0433"];

/// Types with more errors than the usual one above those of plain Rust, in forms with this name.
const MORE: &[(&str, &str, usize)] = &[
    // Each function that takes the parameter repeats its bounds.
    ("", ", p: impl ", 5),
    // Each of several errors is told for forward and for the alias.
    ("", "Vec<f64, f64, f64>", 3),
    ("", "Iterator<Itm = f64>", 2),
    ("", "Cow<dyn Clone>", 2),
    // The constant does not call a backward that returns `Grads`.
    ("with Grads", "dy: ", 2),
    // Bodies repeat the type, and it is no array.
    ("#[py_func]", "x: ", 2),
    ("#[py_func]", "dy: ", 2),
    ("#[py_func]", "-> ", 2),
    // Its backward returns too few gradients, too.
    ("#[py_func]", ", p: Self", 2),
    // A formula keeps its parameters: each missing trait is an error.
    ("elementwise", "Box<dyn Clone>", 4),
    ("elementwise", "Vec<dyn ", 4),
    ("elementwise", "Cow<dyn ", 4),
    ("elementwise", "Ref<str>", 4),
    ("elementwise", "str", 2),
    ("elementwise", "[f64]", 2),
    // Each part that is no `Real` is an error.
    ("elementwise", "(f64, Vec)", 3),
    ("elementwise", "x: &dyn Clone", 2),
];

/// A form with a mistake in it, ours and in plain Rust.
struct Slip {
    form: &'static str,
    text: String,
    programs: [String; 2],
}

/// The situations of the table, and each wrong type in place of each type of a signature.
fn slips() -> Vec<Slip> {
    let mut slips = Vec::new();
    for form in FORMS {
        for &(place, text) in SITUATIONS.iter().filter(|(place, _)| form.ours.contains(place)) {
            let programs = [form.ours, form.plain].map(|template| program(template, place, text));
            slips.push(Slip { form: form.name, text: text.to_owned(), programs });
        }
        let lines = |template: &str| template.replace("{\n", "{").replace("  ", "");
        let named = |plain: &str| plain.replace("x: f64", "x: Real").replace("dy: f64", "dy: Real");
        let plain = named(form.plain).replace("-> f64", "-> Real");
        let alias = if form.ours.contains("Real") { "type Real = f64;" } else { "" };
        let templates = [lines(form.ours), lines(&plain)];
        for (from, to) in TYPES_OF_A_SIGNATURE {
            if templates.iter().any(|template| !template.contains(from)) {
                continue;
            }
            for ty in WRONG_TYPES {
                let programs = templates.each_ref().map(|template| {
                    program(&template.replacen(from, &to.replace("TYPE", ty), 1), "", "")
                });
                let [ours, plain] = programs;
                let programs = [ours, plain + alias];
                let text = to.replace("TYPE", ty);
                slips.push(Slip { form: form.name, text, programs });
            }
        }
    }
    slips
}

#[test]
fn slips_are_told_as_in_plain_rust_by_all_forms() {
    let slips = slips();
    assert!(slips.len() > 400, "{}", slips.len());
    let wrong = each(&slips, |Slip { form, text, programs }| {
        let [ours, plain] = programs.each_ref().map(|program| {
            let output = check_text(program, &[]);
            output.into_iter().filter(|message| message.is_error()).collect::<Vec<_>>()
        });
        let is_known = |message: &Message| plain.iter().any(|known| known.text == message.text);
        let of_names = plain.iter().any(|message| OF_NAMES.contains(&&message.code[..]));
        let proofs = ours.iter().filter(|message| !message.code.is_empty() && !is_known(message));
        let is_false = of_names && proofs.count() > 0;
        let rows = MORE.iter().filter(|(of, part, _)| form.contains(of) && text.contains(part));
        let more = rows.map(|(.., more)| *more).max().unwrap_or(1);
        let fits =
            ours.len() <= plain.len() + more && (plain.is_empty() || !ours.is_empty()) && !is_false;
        (!fits).then(|| {
            let rendered: String = ours.iter().map(|message| message.rendered.clone()).collect();
            let (ours, plain) = (ours.len(), plain.len());
            format!("{form}, {text:?}: {ours} errors, {plain} in plain Rust\n{rendered}")
        })
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
