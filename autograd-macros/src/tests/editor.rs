//! What completion, hover and rename of an editor need. An editor maps the token at its cursor to the first token of
//! the expansion at the same place in the source: that must be the user's own, where an editor compiles it.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::leaves;
use crate::args::{ELEMENTWISE, LAYER};
use crate::layer::layer;
use crate::tokens::{is_group, is_one_of, is_punct, text};

/// A token of an expansion, without what it contains.
struct Placed {
    text: String,
    start: usize,
    /// Whether an editor compiles it.
    compiled: bool,
}

fn placed(tokens: TokenStream, compiled: bool, all: &mut Vec<Placed>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut skipped = 0;
    for (at, tree) in trees.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &trees[before]);
        if is_punct(before, '#') && excludes_editors(tree) {
            skipped = at + 1 + length_of_item(&trees[at + 1..]);
        }
        let compiled = compiled && at >= skipped;
        match tree {
            TokenTree::Group(group) => placed(group.stream(), compiled, all),
            tree => {
                let (text, start) = (tree.to_string(), tree.span().byte_range().start);
                all.push(Placed { text, start, compiled });
            }
        }
    }
}

/// Whether these are the brackets of a `cfg` that is false in an editor.
fn excludes_editors(tree: &TokenTree) -> bool {
    let TokenTree::Group(group) = tree else { return false };
    ["cfg(not(rust_analyzer))", "cfg(doc)"].contains(&text(&group.stream()).as_str())
}

/// The number of trees of the item, statement or parameter at the start.
fn length_of_item(trees: &[TokenTree]) -> usize {
    let is_head = |tree: &TokenTree| matches!(tree, TokenTree::Ident(word) if is_one_of(word, "let type const use"));
    let is_end = |tree: &TokenTree| {
        let braces = is_group(Some(tree), Delimiter::Brace) && !trees.first().is_some_and(is_head);
        braces || is_punct(Some(tree), ';') || is_punct(Some(tree), ',')
    };
    trees.iter().position(is_end).map_or(trees.len(), |end| end + 1)
}

/// The functions in a block, each with its tokens from `fn` to the end of the body.
fn functions(block: TokenStream) -> Vec<Vec<TokenTree>> {
    let body = block.into_iter().last();
    let Some(TokenTree::Group(body)) = body else { return Vec::new() };
    let (mut functions, mut function): (Vec<Vec<TokenTree>>, Option<Vec<TokenTree>>) =
        Default::default();
    for tree in body.stream() {
        if matches!(&tree, TokenTree::Ident(word) if word == "fn") && function.is_none() {
            function = Some(Vec::new());
        }
        let Some(read) = &mut function else { continue };
        let is_end = is_group(Some(&tree), Delimiter::Brace);
        read.push(tree);
        if is_end {
            functions.extend(function.take());
        }
    }
    functions
}

/// The tokens without attributes, which may be arguments of the macro.
fn without_attributes(tokens: TokenStream) -> TokenStream {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let is_attribute =
        |at: usize| is_punct(trees.get(at), '#') && is_group(trees.get(at + 1), Delimiter::Bracket);
    let kept = trees
        .iter()
        .enumerate()
        .filter(|(at, _)| !is_attribute(*at) && !at.checked_sub(1).is_some_and(is_attribute));
    let inside = |(_, tree): (usize, &TokenTree)| match tree {
        TokenTree::Group(group) => {
            TokenTree::Group(crate::tokens::regroup(group, without_attributes(group.stream())))
        }
        tree => tree.clone(),
    };
    kept.map(inside).collect()
}

/// Asserts that the expansion has the user's functions before anything else at the places of their tokens.
#[track_caller]
fn assert_users_first(source: &str, expansion: TokenStream) {
    let (mut all, text) = (Vec::new(), expansion.to_string());
    placed(expansion, true, &mut all);
    let block: TokenStream = source.parse().expect("tokens");
    for function in functions(block) {
        let mut last = None;
        for tree in leaves(without_attributes(function.into_iter().collect())) {
            let (word, start) = (tree.to_string(), tree.span().byte_range().start);
            let first = all.iter().position(|of| of.start == start);
            let after = &source[start.saturating_sub(40)..start];
            let Some(first) = first else { panic!("`{word}` after `{after}` is lost:\n{text}") };
            let found = &all[first];
            assert!(
                found.text == word,
                "before `{word}` after `{after}` stands `{}`:\n{text}",
                found.text
            );
            assert!(found.compiled, "`{word}` after `{after}` is not compiled:\n{text}");
            assert!(
                Some(first) > last,
                "`{word}` after `{after}` is first in another item:\n{text}"
            );
            last = Some(first);
        }
    }
}

/// An op on tensors, with code at the start of forward and of backward, and what backward returns.
fn op(forward: &str, backward: &str, returned: &str, gradients: &str) -> String {
    format!(
        "impl Op {{ type Saved = (Tensor<f64>, Tensor<f64>); type Attrs = f64; pub fn forward(ctx: &mut \
         ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>, #[default(2.0)] by: f64) -> Tensor<f64> {{ {forward} \
         let y = x.tanh(); ctx.save_for_backward((&y, w)); ctx.set_attrs(by); y * w * by }} fn backward(ctx: \
         &BackwardContext<Self>, dy: &Tensor<f64>) -> {returned} {{ {backward} let (y, w) = ctx.saved_tensor(); \
         let by = *ctx.attrs(); {gradients} }} }}"
    )
}

const GRADS: &str = "Grads { x: dy * w * by, w: dy * y }";

/// What is in forward while it is typed.
const TYPED: [&str; 6] = ["", "ctx.;", "x.;", "let q = x.;", "ctx.se", "Self::;"];

#[test]
fn the_user_s_tokens_are_first_in_ops_of_tensors() {
    for typed in TYPED {
        let derived = typed.replace("x.", "dy.").replace("ctx.se", "ctx.saved");
        let right = op(typed, &derived, "Grads", GRADS);
        let tuple = op(typed, &derived, "(Tensor<f64>, Tensor<f64>)", "(dy * w * by, dy * y)");
        let without = |source: &str, part: &str| {
            assert!(source.contains(part), "{part}");
            source.replace(part, "")
        };
        let no_backward = right.split("fn backward").next().map(|start| start.to_owned() + "}");
        let backward_first = {
            let (head, rest) = right.split_once("pub fn forward").expect("forward");
            let (forward, backward) = rest.split_once("fn backward").expect("backward");
            let backward = backward.strip_suffix("}").expect("the end");
            format!("{head} fn backward{backward} pub fn forward{forward} }}")
        };
        let states = [
            no_backward.expect("a block"),
            without(&right, "ctx.save_for_backward((&y, w));"),
            without(&right, "ctx.set_attrs(by);"),
            right.replace("save_for_backward((&y, w))", "save_for_backward(&y, w)"),
            op(typed, &derived, "Tensor<f64>", "dy * y"),
            op(typed, &derived, "Grads", "Grads { x: dy., w: dy * y }"),
            op(typed, &derived, "Grads", "Grads { x: dy * w, }"),
            op(typed, &derived, "Gra", GRADS),
            op(typed, &derived, "Ten", "dy * y"),
            op(typed, &derived, "Tenso<f64>", "dy * y"),
            op(typed, &derived, "&Tensor<f64>", "dy * y"),
            right.replace("x: &Tensor<f64>, w", "x: &Ten, w"),
            right.replace("x: &Tensor<f64>, w", "x: &Tenso, w"),
            right.replace("x: &Tensor<f64>, w", "x: _, w"),
            right.replace("x: &Tensor<f64>, w", "x: impl Fn(), w"),
            right.replace("ctx: &mut ForwardContext<Self>", "ctx: &mut For"),
            right.replace("ctx: &mut ForwardContext<Self>", "ctx: &mut ForwardContext"),
            right.replace("ctx: &BackwardContext<Self>", "ctx: &Ba"),
            right.replace("pub fn", "pub async fn"),
            right.replace("impl Op", "impl<T: Float> Op<T>").replace("f64", "T"),
            right.replace("impl Op", "impl Trait for Op"),
            right.replace("by: f64", "by: Names"),
            right.replace("f64> {", "Price> {").replace("(Tensor<f64>, Tensor<f64>)", "Kept"),
            backward_first,
            right,
            tuple,
        ];
        for source in states {
            let block = source.parse().expect("tokens");
            assert_users_first(&source, layer(TokenStream::new(), block, true));
        }
    }
}

#[test]
fn the_user_s_tokens_are_first_in_formulas() {
    let of = |typed: &str, derived: &str, returned: &str, gradients: &str| {
        format!(
            "impl Op {{ pub fn forward<L: Lane>(x: Real<L>, #[stop_gradient] keep: Mask<L>, #[default(2.0)] k: f64) -> \
             Real<L> {{ {typed} keep.select(x * k, x) }} fn backward<L: Lane>(x: Real<L>, k: f64, dy: Real<L>) -> \
             {returned} {{ {derived} {gradients} }} }}"
        )
    };
    for typed in [
        "",
        "x.;",
        "let q = x.;",
        "x.gt(0.0).;",
        "if x > 0.0 { x } else { -x };",
        "if x.gt(0.0) { };",
    ] {
        let derived = typed.replace("x.", "dy.");
        let right = of(typed, &derived, "Real<L>", "dy * k");
        for source in [
            right.replace("<L: Lane>", "").replace("<L>", ""),
            right.split("fn backward").next().expect("forward").to_owned() + "}",
            right.replace("x: Real<L>, #", "x: Re, #"),
            right.replace("x: Real<L>, #", "x: Tensor<f64>, #"),
            right.replace("k: f64", "k: Names"),
            of(typed, &derived, "Grads", "Grads { x: dy. }"),
            of(typed, &derived, "Grads", "Grads { x: dy * k }"),
            of(typed, &derived, "(Real<L>, Real<L>)", "dy"),
            right,
        ] {
            for arguments in [quote::quote!(elementwise), TokenStream::new()] {
                let block = source.parse().expect("tokens");
                assert_users_first(&source, layer(arguments, block, false));
            }
        }
    }
}

#[test]
fn the_user_s_tokens_are_first_in_functions_of_arrays() {
    for typed in ["", "x.;", "let q = x.;"] {
        let right = format!(
            "impl Op {{ pub fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {{ {typed} x.mapv(f64::tanh) }} fn \
             backward(y: ArrayViewD<f64>, dy: ArrayViewD<f64>) -> ArrayD<f64> {{ {} &dy * (1.0 - &y * &y) }} }}",
            typed.replace("x.", "dy.")
        );
        for source in [
            right.replace("-> ArrayD<f64> { dy", "-> (ArrayD<f64>, ArrayD<f64>) { dy"),
            right.replace("-> ArrayD<f64> {  &dy", "-> (ArrayD<f64>, ArrayD<f64>) {  &dy"),
            right.replace("x: ArrayViewD<f64>", "x: Arr"),
            right.replace("y: ArrayViewD<f64>, ", "y: ArrayViewD<f32>, z: Arr, "),
            right,
        ] {
            let block = source.parse().expect("tokens");
            assert_users_first(&source, crate::py_func::py_func(TokenStream::new(), block));
        }
    }
}

/// The parameters of the generated functions have the place of their first use.
#[test]
fn the_user_s_tokens_are_first_in_scalar_ops() {
    for source in [
        "Op: y = x * w, dx = dy * w, dw = dy * x",
        "Op: y = x., dx = 2.0 * x * dy",
        "Op: y = x.ex, dx = 2.0 * x * dy",
        "Op: y = x * x, dx = dy.",
        "Op: y = x * x, dx = dy * y., dz = 1.0",
        "Op: y = x * x, dx = dy * {x.; 1.0}",
        "Op: z = x.exp(), dx = dy * x",
    ] {
        let mut all = Vec::new();
        placed(crate::elementwise::scalar_op(source.parse().expect("tokens")), true, &mut all);
        for value in source.split('=').skip(1) {
            let value = value.split(", d").next().expect("a value");
            if syn::parse_str::<syn::Expr>(value).is_err() {
                continue;
            }
            let start = value.as_ptr() as usize - source.as_ptr() as usize;
            for tree in leaves(source.parse().expect("tokens")) {
                let at = tree.span().byte_range().start;
                if !(start..start + value.len()).contains(&at) {
                    continue;
                }
                let first = all.iter().find(|of| of.start == at);
                let kept = first.is_some_and(|of| of.compiled && of.text == tree.to_string());
                assert!(kept, "`{tree}` at {at} of `{source}`");
            }
        }
    }
}

/// The library has each argument as a word, by which an editor completes it.
#[test]
fn arguments_are_words_of_the_library() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../autograd-core/src/private.rs");
    let source = std::fs::read_to_string(path).expect("the library");
    let words =
        source.split("pub mod arguments {").nth(1).and_then(|rest| rest.split("pub mod").next());
    let words = words.expect("the words").split("pub enum ").skip(1);
    let mut words: Vec<&str> = words.filter_map(|rest| rest.split(' ').next()).collect();
    let arguments = [LAYER.1, ELEMENTWISE.1].into_iter().flat_map(|list| list.split(", "));
    let names = arguments.filter_map(|argument| argument.split([' ', '(']).next());
    // An editor completes a keyword by itself.
    let mut names: Vec<&str> = names.filter(|name| *name != "crate").collect();
    for list in [&mut words, &mut names] {
        list.sort_unstable();
        list.dedup();
    }
    assert_eq!(words, names);
}

/// Declared names of an expansion: of items and of the parameters of functions.
fn declared(tokens: TokenStream, names: &mut Vec<String>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        let is = |words: &str| matches!(tree, TokenTree::Ident(word) if is_one_of(word, words));
        let item = is("struct enum trait mod fn static type const as");
        if let (true, Some(TokenTree::Ident(name))) = (item, trees.get(at + 1)) {
            names.push(name.to_string());
        }
        let list = trees[at..].iter().find(|tree| is_group(Some(tree), Delimiter::Parenthesis));
        if let (true, Some(TokenTree::Group(list))) = (is("fn"), list) {
            let list: Vec<TokenTree> = list.stream().into_iter().collect();
            names.extend(list.windows(3).filter_map(|three| match three {
                [TokenTree::Ident(name), colon, after]
                    if is_punct(Some(colon), ':') && !is_punct(Some(after), ':') =>
                {
                    Some(name.to_string())
                }
                _ => None,
            }));
        }
        if let TokenTree::Group(group) = tree {
            declared(group.stream(), names);
        }
    }
}

/// A user's item of the same name would be shadowed in the types and the bodies of the block.
#[test]
fn generated_names_are_no_names_of_the_user_s() {
    // `NeedsInputGrad` lies in a scope of its own, without the user's types.
    const OWN: &str = "apply try_apply with call Grads check_backward Saved Checked Attrs Needs INFO PUSH pull of NeedsInputGrad none_gradient fmt _";
    let formula = "impl Op { fn forward(x: Real, k: Names) -> Real { x * k.0 } fn backward(k: Names, dy: Real) -> Grads { \
                   Grads { x: dy * k.0 } } }";
    let needs = op("let _ = ctx.needs_input_grad().x;", "", "Grads", GRADS)
        .replace("by: f64", "by: &Names");
    let source = |text: &str| text.parse::<TokenStream>().expect("tokens");
    for (text, expansion) in [
        (needs.as_str(), layer(TokenStream::new(), source(&needs), true)),
        (super::VALID[1], layer(TokenStream::new(), source(super::VALID[1]), false)),
        (formula, layer(quote::quote!(elementwise), source(formula), false)),
    ] {
        let mut names = Vec::new();
        declared(expansion, &mut names);
        let written: Vec<String> = leaves(source(text)).iter().map(ToString::to_string).collect();
        names.retain(|name| {
            let name = name.trim_start_matches("r#");
            let is_own = OWN.split(' ').any(|own| own == name);
            let is_test = name.ends_with("_backward_is_the_derivative");
            !name.starts_with("__") && !is_own && !is_test && !written.iter().any(|of| of == name)
        });
        assert!(names.is_empty(), "{names:?}");
    }
}
