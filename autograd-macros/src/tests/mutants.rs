//! Right ops, each with mistakes in backward that change a shape for general lengths: most do not compile.

use std::path::Path;

use proc_macro2::TokenStream;
use quote::quote;

use super::fuzzed::refused;
use super::ops;
use crate::layer::layer;

/// A piece of an op, and what a mutant has in its place.
type Mutant = (&'static str, &'static str);

/// The file and the name of an op, and its mutants.
const OPS: &[(&str, &str, &[Mutant])] = &[
    (
        "linear",
        "Linear",
        &[
            ("(dy.matmul(&w.t()), x.t().matmul(dy))", "(x.t().matmul(dy), dy.matmul(&w.t()))"),
            ("dy.matmul(&w.t())", "dy.matmul(w)"),
            ("x.t().matmul(dy)", "x.matmul(dy)"),
            ("x.t().matmul(dy)", "dy.t().matmul(x)"),
            ("dy.matmul(&w.t())", "w.t().matmul(dy)"),
        ],
    ),
    (
        "linear",
        "TorchLinear",
        &[
            ("dy.matmul(weight)", "dy.matmul(&weight.t())"),
            ("dy2.t().matmul(&x2)", "x2.t().matmul(&dy2)"),
            ("dy2.t().matmul(&x2)", "dy2.matmul(&x2)"),
            ("Some(dy.sum_to(b.shape()))", "Some(dy.clone())"),
        ],
    ),
    (
        "linear",
        "Lora",
        &[
            ("dy_s.matmul(&up.t())", "dy_s.matmul(up)"),
            ("dhidden.matmul(&down.t())", "dhidden.matmul(down)"),
            ("x.t().matmul(&dhidden)", "x.matmul(&dhidden)"),
            ("down: ddown, up: dup", "down: dup, up: ddown"),
            ("x.matmul(down).t().matmul(&dy_s)", "x.matmul(down).matmul(&dy_s)"),
        ],
    ),
    (
        "linear",
        "LowRank",
        &[
            ("dy.t().matmul(&(u * s))", "dy.matmul(&(u * s))"),
            ("dy.matmul(v)", "dy.matmul(&v.t())"),
            ("(&dus * u).sum_axes(0)", "(&dus * u).sum_axes(1)"),
            ("(&dus * u).sum_axes(0)", "&dus * u"),
        ],
    ),
    (
        "linear",
        "RowOuter",
        &[
            ("dy.matmul(&c.unsqueeze(-1))", "dy.matmul(&c.unsqueeze(-2))"),
            ("a: da, c: dc", "a: dc, c: da"),
            ("a.unsqueeze(1).matmul(dy)", "a.unsqueeze(1).matmul(&dy.t())"),
            ("a.unsqueeze(1).matmul(dy)", "dy.matmul(&a.unsqueeze(1))"),
        ],
    ),
    (
        "linear",
        "QuadraticForm",
        &[
            ("x.t().matmul(&weighted)", "x.matmul(&weighted)"),
            ("x * dy.unsqueeze(1)", "x * dy.unsqueeze(0)"),
            ("weighted.matmul(&(a + a.t()))", "(a + a.t()).matmul(&weighted)"),
        ],
    ),
    (
        "linear",
        "TiedAutoencoder",
        &[
            ("dy.matmul(w) *", "dy.matmul(&w.t()) *"),
            ("dy.t().matmul(&code)", "code.t().matmul(dy)"),
            ("dcode.matmul(&w.t())", "dcode.matmul(w)"),
            ("x.t().matmul(&dcode)", "dcode.t().matmul(x)"),
            ("x: dcode.matmul(&w.t()), w: dw", "w: dcode.matmul(&w.t()), x: dw"),
        ],
    ),
    (
        "linear",
        "TwoLayers",
        &[
            ("dy.matmul(&w2.t())", "dy.matmul(w2)"),
            ("w1: x.t().matmul(&dz)", "w1: dz.t().matmul(x)"),
            ("dz.sum_axes(&[0])", "dz.sum_axes(&[1])"),
            ("b1: dz.sum_axes(&[0])", "b1: dz.clone()"),
            ("h.t().matmul(dy)", "h.matmul(dy)"),
        ],
    ),
    (
        "linear",
        "Contraction",
        &[
            ("dy.matmul(&w.t())", "dy.matmul(&w)"),
            ("x.t().matmul(dy)", "x.matmul(dy)"),
            ("x: dx, w: dw", "x: dw, w: dx"),
            ("dy.matmul(&w.t()).reshape([b, i, j])", "dy.matmul(&w.t()).reshape([b, j, i])"),
        ],
    ),
    (
        "attention",
        "Attention",
        &[
            ("ds.matmul(k)", "ds.t().matmul(k)"),
            ("ds.t().matmul(q)", "ds.matmul(q)"),
            ("p.t().matmul(dy)", "p.matmul(dy)"),
            ("dy.matmul(&v.t())", "dy.matmul(v)"),
            ("q: ds.matmul(k), k: ds.t().matmul(q)", "k: ds.matmul(k), q: ds.t().matmul(q)"),
        ],
    ),
    (
        "attention",
        "MaskedAttention",
        &[
            ("v: p.t().matmul(dy)", "v: p.matmul(dy)"),
            ("q: ds.matmul(k)", "q: ds.t().matmul(k)"),
            ("dy.matmul(&v.t())", "dy.matmul(v)"),
        ],
    ),
    (
        "attention",
        "LinearAttention",
        &[
            ("fk.t().matmul(v)", "fk.matmul(v)"),
            ("fq.t().matmul(dy)", "fq.matmul(dy)"),
            ("fk.matmul(&dstate)", "fk.t().matmul(&dstate)"),
            ("v.matmul(&dstate.t())", "v.matmul(&dstate)"),
            ("dy.matmul(&state.t())", "dy.matmul(&state)"),
        ],
    ),
    (
        "norms",
        "RmsNorm",
        &[
            ("(dy * &h).sum_to(gain.shape())", "dy * &h"),
            ("(dy * &h).sum_to(gain.shape())", "(dy * &h).sum_to(x.shape())"),
            ("(&dh * &h).mean_axes_keep(-1)", "(&dh * &h).mean_axes(-1)"),
        ],
    ),
    (
        "norms",
        "BatchNorm",
        &[
            ("(dy * &h).mean_axes_keep(axes)", "(dy * &h).mean_axes(axes)"),
            ("dx + dmean.reshape([1, -1, 1])", "dx + dmean"),
        ],
    ),
    (
        "norms",
        "WeightNorm",
        &[
            ("(dy * &unit).sum_axes(1)", "(dy * &unit).sum_axes(0)"),
            ("unit * dg.unsqueeze(1)", "unit * dg.unsqueeze(0)"),
            ("(g / &norm).unsqueeze(1)", "(g / &norm)"),
            ("v: dv, g: dg", "v: dg, g: dv"),
        ],
    ),
    (
        "distances",
        "SquaredDistances",
        &[
            ("dy.matmul(y)", "dy.t().matmul(y)"),
            ("dy.t().matmul(x)", "dy.matmul(x)"),
            ("dy.sum_axes(0).unsqueeze(1)", "dy.sum_axes(1).unsqueeze(1)"),
            ("x: dx, y: dy_", "x: dy_, y: dx"),
        ],
    ),
    (
        "distances",
        "Rbf",
        &[
            ("x: ddiff.sum_axes(1)", "x: ddiff.sum_axes(0)"),
            ("y: -ddiff.sum_axes(0)", "y: -ddiff.sum_axes(1)"),
            ("-(de * dist).sum()", "-(de * dist)"),
            ("x: ddiff.sum_axes(1)", "x: ddiff.clone()"),
        ],
    ),
    (
        "distances",
        "Mahalanobis",
        &[
            ("dz.matmul(&factor.t())", "dz.matmul(factor)"),
            ("-dx.sum_to(mean.shape())", "-&dx"),
            ("dy.unsqueeze(-1)", "dy.unsqueeze(0)"),
            (
                "centred.reshape([-1, n]).t().matmul(&dz.reshape([-1, r]))",
                "dz.reshape([-1, r]).t().matmul(&centred.reshape([-1, n]))",
            ),
        ],
    ),
    (
        "distances",
        "SinkhornStep",
        &[
            ("ds.sum_axes(0)", "ds.sum_axes(1)"),
            ("dy.unsqueeze(-1)", "dy.unsqueeze(0)"),
            ("v: ds.sum_axes(0)", "v: ds.clone()"),
        ],
    ),
    ("losses", "InfoNce", &[("dlogits.matmul(positive)", "dlogits.matmul(&positive.t())")]),
    (
        "recurrent",
        "MinimalGru",
        &[
            ("da.matmul(&wz.t())", "da.matmul(wz)"),
            ("uz: h.t().matmul(&da)", "uz: x_t.matmul(&da)"),
            (
                "wz: x_t.matmul(&da), uz: h.t().matmul(&da)",
                "uz: x_t.matmul(&da), wz: h.t().matmul(&da)",
            ),
            ("dn.matmul(&wn.t())", "dn.matmul(wn)"),
        ],
    ),
    (
        "recurrent",
        "SsmStep",
        &[
            ("decay: (&ds * state).sum_axes(0)", "decay: &ds * state"),
            ("(&ds * input).sum_axes(-1)", "(&ds * input).sum_axes(1)"),
            ("sum_axes(&[0, 1])", "sum_axes(&[0, 2])"),
            ("dy.unsqueeze(-1) * read", "dy * read"),
        ],
    ),
    (
        "recurrent",
        "Highway",
        &[("dh.matmul(&w.t())", "w.matmul(&dh)"), ("w: x.t().matmul(&dh)", "w: x.matmul(&dh)")],
    ),
    (
        "matrices",
        "Kronecker",
        &[
            ("sum_axes(&[1, 3])", "sum_axes(&[0, 2])"),
            (
                "(&dy * a.reshape([p, 1, q, 1])).sum_axes(&[0, 2])",
                "(&dy * a.reshape([p, 1, q, 1]))",
            ),
            ("&dy * b.reshape([1, r, 1, s])", "&dy * b"),
        ],
    ),
    (
        "forms",
        "Shadowed",
        &[
            ("dy.matmul(&w.t())", "dy.matmul(w)"),
            ("let dy = dy.t();", "let dy = dy.clone();"),
            ("(dy.matmul(&w.t()), x.t().matmul(&dy))", "(x.t().matmul(&dy), dy.matmul(&w.t()))"),
        ],
    ),
];

/// Mistakes that keep all shapes: the generated tests find them.
const SAME_SHAPES: &[(&str, &str, &[Mutant])] = &[
    ("linear", "Lora", &[("dy * *ctx.attrs()", "dy * 1.0")]),
    ("linear", "LowRank", &[("u: &dus * s", "u: dus.clone()")]),
    ("linear", "QuadraticForm", &[("(a + a.t())", "(a + a)")]),
    ("norms", "RmsNorm", &[("let dh = dy * gain", "let dh = dy * 1.0")]),
    (
        "losses",
        "InfoNce",
        &[
            ("dlogits.t().matmul(anchor)", "dlogits.matmul(anchor)"),
            (
                "anchor: dlogits.matmul(positive), positive: dlogits.t().matmul(anchor)",
                "positive: dlogits.matmul(positive), anchor: dlogits.t().matmul(anchor)",
            ),
        ],
    ),
    ("recurrent", "MinimalGru", &[("da.matmul(&uz.t())", "da.matmul(uz)")]),
    (
        "recurrent",
        "Highway",
        &[
            ("da.matmul(&gate.t())", "da.matmul(gate)"),
            (
                "w: x.t().matmul(&dh), gate: x.t().matmul(&da)",
                "gate: x.t().matmul(&dh), w: x.t().matmul(&da)",
            ),
        ],
    ),
];

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("tokens")
}

/// Runs the op `name`, and then its mutants: how many are refused, and those that are not.
fn run(file: &str, name: &str, mutants: &[Mutant]) -> (usize, Vec<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/tests/macros/shaped_ops");
    let found = ops(&folder.join(file).with_extension("rs")).into_iter().find(|(_, block)| {
        let of = crate::tokens::text(&block.self_ty);
        of.split(['<', ' ']).next() == Some(name)
    });
    let (arguments, block) = found.unwrap_or_else(|| panic!("{file} has no {name}"));
    let block = quote!(#block).to_string();
    let refuses =
        |block: &str| refused(&layer(arguments.clone(), tokens(block), false).to_string());
    assert!(!refuses(&block), "{name} is right");
    let mut accepted = Vec::new();
    for (piece, other) in mutants {
        // Forward comes first.
        let (piece, other) = (tokens(piece).to_string(), tokens(other).to_string());
        let backward = block.find("fn backward").expect("a backward");
        let at = block[backward..].find(&piece).unwrap_or_else(|| panic!("{name}: no {piece}"));
        let (before, after) = block.split_at(backward + at);
        let mutant = format!("{before}{other}{}", &after[piece.len()..]);
        if !refuses(&mutant) {
            accepted.push(format!("{name}: {other}"));
        }
    }
    (mutants.len() - accepted.len(), accepted)
}

#[test]
fn most_mutants_that_change_a_shape_do_not_compile() {
    let (mut refused, mut accepted) = (0, Vec::new());
    for (file, name, mutants) in OPS {
        let (count, rest) = run(file, name, mutants);
        refused += count;
        accepted.extend(rest);
    }
    let count = refused + accepted.len();
    let list = accepted.join("\n");
    assert!(5 * refused >= 4 * count, "{refused} of {count} are refused; not:\n{list}");
}

#[test]
fn mutants_that_keep_all_shapes_compile() {
    for (file, name, mutants) in SAME_SHAPES {
        assert_eq!(run(file, name, mutants).0, 0, "{name}");
    }
}
