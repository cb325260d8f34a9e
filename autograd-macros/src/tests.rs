//! Tests of the whole macro as a function: it never panics, never accepts counts that disagree, and each
//! message has a fixture.

mod editor;
pub(crate) mod fuzzed;
mod habits;
mod mutants;
mod walk;

use std::fs;
use std::path::{Path, PathBuf};

use fuzzed::{Decisions, VALID, refused};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::layer::layer;
use crate::tokens::{Trees, is_group};

fn run(block: &str) -> String {
    let block: TokenStream = block.parse().expect("tokens");
    layer(TokenStream::new(), block, false).to_string()
}

/// Asserts that ops with the texts `right` are accepted, and those with `wrong` rejected with `words`.
#[track_caller]
fn assert_verdicts(op: impl Fn(&str) -> String, right: &[&str], words: &str, wrong: &[&str]) {
    for text in right {
        let reported = run(&op(text));
        assert!(!refused(&reported), "{text}\n{reported}");
    }
    for text in wrong {
        let reported = run(&op(text));
        assert!(refused(&reported) && reported.contains(words), "{text}\n{words}\n{reported}");
    }
}

#[test]
fn valid_blocks_are_accepted() {
    for block in VALID {
        let expansion = run(block);
        assert!(!refused(&expansion), "{expansion}");
        let parsed = syn::parse_str::<syn::File>(&expansion);
        assert!(parsed.is_ok(), "an expansion is valid Rust: {:?}", parsed.err());
    }
}

#[test]
fn gradients_under_other_names_are_refused_where_they_are_exchanged() {
    let of = |inputs: &str, returned: &str| {
        let inputs: Vec<&str> = inputs.split(", ").collect();
        let forward: String = inputs.iter().map(|x| format!(", {x}: &Tensor<f64>")).collect();
        let types = vec!["Tensor<f64>"; inputs.len()].join(", ");
        format!(
            "impl Op {{ fn forward(_ctx: &mut ForwardContext<Self>{forward}) -> Tensor<f64> {{ \
             todo!() }} fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> ({types}) {{ \
             {returned} }} }}"
        )
    };
    for (inputs, wrong, meant) in [
        ("x, w", "(dw, dx)", "(dx, dw)"),
        ("x, w", "(dw.clone(), Some(dx))", "(dx, dw)"),
        ("x, w, b", "(grad_b, grad_w, grad_x)", "(grad_x, grad_w, grad_b)"),
        ("x, w, b", "(w_grad, b_grad, x_grad)", "(x_grad, w_grad, b_grad)"),
        ("x, w, b", "(d_w, d_x, dy * 2.0)", "(d_x, d_w, ..)"),
    ] {
        let words = format!("in the order of forward's inputs: `{meant}`");
        assert_verdicts(|wrong| of(inputs, wrong), &[], &words, &[wrong]);
    }
    // Not a permutation, so the intention is unknown; and names of other values.
    let right = ["(dx, dw)", "(dw, dy * 2.0)", "(dw, dw)", "(dw * 1.0, dx * 1.0)"];
    assert_verdicts(|right| of("x, w", right), &right, "", &[]);
    let bound = "let dx = dy * 2.0; (dx, ddx)";
    assert_verdicts(|right| of("x, dx", right), &[bound], "", &[]);
    assert_verdicts(|right| of("x, y", right), &["(dy, dx)"], "", &[]);
}

struct Random(u64);

impl Decisions for Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % n.max(1)
    }
}

/// The number of rounds of a fuzz test. `FUZZ=100 cargo test --release -p autograd-macros` runs a hundred
/// times as many.
fn rounds(count: usize) -> usize {
    let times = std::env::var("FUZZ").ok().and_then(|times| times.parse().ok());
    count * times.unwrap_or(1)
}

#[test]
fn mutated_blocks_are_refused_or_right() {
    let mut random = Random(2023);
    let (mut accepted, mut compared) = (0, 0);
    for _ in 0..rounds(6000) {
        let outcome = fuzzed::block(&mut random);
        accepted += usize::from(outcome.is_some());
        compared += usize::from(outcome == Some(true));
    }
    assert!(accepted > 100 && compared > 50, "the mutations are too wild: {accepted}, {compared}");
}

#[test]
fn mutated_formulas_are_refused_or_right() {
    let mut random = Random(11);
    let accepted = (0..rounds(2000)).filter(|_| fuzzed::formula(&mut random)).count();
    assert!(accepted > 50, "the mutations are too wild: {accepted}");
}

#[test]
fn any_tokens_are_borne() {
    let mut random = Random(7);
    (0..rounds(3000)).for_each(|_| fuzzed::any_tokens(&mut random));
}

/// An item that syn cannot parse is reported, if the compiler accepts it.
#[test]
fn what_is_not_understood_is_reported() {
    let unread = "static NOT_OF_AN_IMPL: usize = 1;";
    for (arguments, block) in [
        ("", VALID[0].replacen('{', &format!("{{ {unread} "), 1)),
        ("elementwise", format!("impl Op {{ {unread} fn forward(x: Real) -> Real {{ x }} }}")),
    ] {
        let arguments = arguments.parse().expect("arguments");
        let expansion = layer(arguments, block.parse().expect("tokens"), false).to_string();
        assert!(expansion.contains("that #[py_layer] does not understand"), "{expansion}");
    }
}

/// The trees of a stream and of its groups, without the groups.
fn leaves(tokens: TokenStream) -> Vec<TokenTree> {
    let inside = |tree| match tree {
        TokenTree::Group(group) => leaves(group.stream()),
        tree => vec![tree],
    };
    tokens.into_iter().flat_map(inside).collect()
}

fn places(tokens: TokenStream) -> Vec<(String, std::ops::Range<usize>)> {
    let trees = leaves(tokens).into_iter();
    trees.map(|tree| (tree.to_string(), tree.span().byte_range())).collect()
}

/// Completion and go-to-definition work by spans, so the tokens of a body keep theirs.
#[test]
fn bodies_keep_their_spans() {
    let broken = [
        "impl Op { fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { let \
         y = x.; y } fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { \
         dy. } }",
        "impl Op { fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x. \
         } }",
        "impl Op { fn forward(ctx: ForwardContext<Self>, x: Tensor<f64>) { ctx.sa } fn backward() { \
         dy.mul(x } }",
    ];
    for source in VALID.iter().copied().chain(broken) {
        let Ok(block) = source.parse::<TokenStream>() else { continue };
        let (written, out) =
            (bodies(block.clone()), places(layer(TokenStream::new(), block, false)));
        for (word, place) in places(written) {
            let kept = out.iter().any(|(other, at)| *other == word && *at == place);
            assert!(kept, "`{word}` at {place:?} was lost of {source}");
        }
    }
}

/// An editor shows `apply` with the docs, names, types and defaults of forward.
#[test]
fn apply_has_the_words_of_forward() {
    let source = "impl Op { /// Computes it.\n pub fn forward(ctx: &mut ForwardContext<Self>, r#type: \
                  &Tensor<f64>, mut by: f64, (a, b): (u8, u8)) -> Tensor<f64> { todo!() } fn \
                  backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { todo!() } \
                  }";
    let expansion = layer(TokenStream::new(), source.parse().expect("tokens"), false);
    let placed = places(expansion.clone());
    let file = syn::parse2::<syn::File>(expansion).expect("an expansion is valid Rust");
    let text = prettyplease::unparse(&file);
    for words in [
        "/// Computes it.\n        #[track_caller]\n        #[inline]\n        pub fn apply(",
        "r#type: &Tensor<f64>,\n            by: f64,\n            argument_2: (u8, u8),\n        ) -> Tensor<f64>",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    // Go to definition leads to the user's parameter from `apply` and from `with()`.
    let start = source.find("by: f64").expect("the parameter");
    let here = placed.iter().filter(|(word, at)| word == "by" && at.start == start).count();
    assert!(here > 2, "{here}");
}

/// What is in braces in the block.
fn bodies(block: TokenStream) -> TokenStream {
    let inside = |tree| match tree {
        TokenTree::Group(group) => group.stream(),
        _ => TokenStream::new(),
    };
    let items = block.into_iter().flat_map(inside);
    let is_body = |tree: &TokenTree| is_group(Some(tree), Delimiter::Brace);
    items.filter(is_body).flat_map(inside).collect()
}

/// The texts of all messages, from the source of each `messages.rs` and the files in a folder of this name.
fn sentences() -> Vec<String> {
    let is_message = |path: &PathBuf| path.display().to_string().contains("/messages");
    let mut literals = Vec::new();
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
        .iter()
        .filter(|of| is_message(of))
    {
        let source = fs::read_to_string(path).expect("text");
        let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        literals.extend(texts(code.collect::<Vec<_>>().join("\n").parse().expect("Rust")));
    }
    // For other syntax that the compiler parses and syn does not: none is known.
    literals.retain(|text| !text.contains("does not understand"));
    literals
}

/// The texts in the tokens.
fn texts(tokens: TokenStream) -> Vec<String> {
    let text = |tree: TokenTree| syn::parse2::<syn::LitStr>(tree.into()).ok();
    leaves(tokens).into_iter().filter_map(text).map(|text| text.value()).collect()
}

/// The longest part of a format string between placeholders.
fn longest_part(format: &str) -> String {
    let text = format.replace("{{", "\u{1}").replace("}}", "\u{2}");
    let parts = text.split('{').filter_map(|part| part.rsplit('}').next());
    let longest = parts.max_by_key(|part| part.len()).unwrap_or_default();
    longest.replace('\u{1}', "{").replace('\u{2}', "}")
}

/// All programs that must not compile.
fn fixtures() -> Vec<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
    ["ui", "compiler/fixtures"].iter().flat_map(|folder| sources(&tests.join(folder))).collect()
}

/// All compiler output of the fixtures, in one line.
fn reported_to_fixtures() -> String {
    let output = |path: &PathBuf| fs::read_to_string(path.with_extension("stderr")).ok();
    let reported: String = fixtures().iter().filter_map(output).collect();
    one_line(&reported)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The literals that are messages and are in no fixture's output.
fn missing_in(literals: &[String], reported: &str) -> Vec<String> {
    let parts = literals.iter().map(|literal| one_line(&longest_part(literal)));
    // Shorter literals are names or pieces of code.
    parts.filter(|part| part.len() > 12 && !reported.contains(part)).collect()
}

#[test]
fn every_sentence_has_a_fixture() {
    let missing = missing_in(&sentences(), &reported_to_fixtures());
    assert!(missing.is_empty(), "sentences without a fixture: {missing:#?}");
}

/// The messages of the library's traits for proofs that fail.
#[test]
fn every_sentence_of_a_proof_has_a_fixture() {
    let reported = reported_to_fixtures();
    let mut missing = Vec::new();
    let mut count = 0;
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../autograd-core/src")) {
        let source = fs::read_to_string(&file).expect("a source");
        let literals = trait_messages(source.parse().expect("Rust"));
        count += literals.len();
        missing
            .extend(missing_in(&literals, &reported).into_iter().map(|part| (file.clone(), part)));
    }
    assert!(count > 60, "{count} sentences were found");
    assert!(missing.is_empty(), "sentences without a fixture: {missing:#?}");
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

fn trait_messages(tokens: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    Trees::new(tokens).find(&mut |trees, at| {
        if let [TokenTree::Ident(name), TokenTree::Group(group), ..] = &trees[at..]
            && name == "on_unimplemented"
        {
            found.extend(texts(group.stream()));
        }
        None::<()>
    });
    found
}

/// The arguments and the block of each `#[py_layer]` in a program.
fn ops(path: &Path) -> Vec<(TokenStream, syn::ItemImpl)> {
    let source = syn::parse_file(&fs::read_to_string(path).expect("a program"));
    let op = |item| {
        let syn::Item::Impl(mut block) = item else { return None };
        let is_ours = |attr: &syn::Attribute| attr.path().is_ident("py_layer");
        let at = block.attrs.iter().position(is_ours)?;
        match block.attrs.remove(at).meta {
            syn::Meta::List(list) => Some((list.tokens, block)),
            _ => Some((TokenStream::new(), block)),
        }
    };
    source.map(|source| source.items.into_iter().filter_map(op).collect()).unwrap_or_default()
}

fn reported_of(path: &Path, words: &mut String) -> usize {
    let ops = ops(path);
    let count = ops.len();
    for (arguments, block) in ops {
        let expansion = layer(arguments, quote::quote!(#block), false);
        if refused(&expansion.to_string()) {
            texts(expansion).iter().for_each(|text| words.push_str(&format!("{text}\n")));
        }
    }
    count
}

/// Runs without the compiler: fast enough to test each check's message under `cargo mutants`.
#[test]
fn fixtures_are_given_their_sentences() {
    let mut sentences: Vec<String> = sentences().iter().map(|text| longest_part(text)).collect();
    sentences.retain(|part| part.len() > 12);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
    let (mut held, mut wrong) = (0, Vec::new());
    for path in fixtures() {
        let Ok(stderr) = fs::read_to_string(path.with_extension("stderr")) else { continue };
        let mut words = String::new();
        let blocks = reported_of(&path, &mut words);
        // The compiler emits the warnings.
        let from_here = |line: &&str| !line.starts_with("use of deprecated");
        let expected = stderr.lines().filter_map(|line| line.strip_prefix("error: "));
        for line in expected.filter(from_here) {
            let ours = sentences.iter().any(|part| line.contains(part.as_str()));
            if blocks == 0 || !ours {
                continue;
            }
            held += 1;
            let escaped = line.replace('"', "\\\"");
            if !words.contains(line) && !words.contains(&escaped) {
                wrong.push(format!("{}: {line}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "not reported:\n{}", wrong.join("\n"));
    assert!(held > 100, "only {held} sentences were held to their fixtures");
    let (mut right, mut words) = (0, String::new());
    for path in sources(&tests.join("tests/accepted")) {
        right += reported_of(&path, &mut words);
    }
    assert!(right > 80 && words.is_empty(), "of {right} right ops:\n{words}");
}

/// Build caches, remote builds and editors know of no file that a macro reads.
#[test]
fn macros_read_only_their_tokens() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let own = sources.iter().filter(|path| !path.display().to_string().contains("src/tests"));
    let mut count = 0;
    for path in own {
        count += 1;
        let text = fs::read_to_string(path).expect("a source file");
        for reads in ["std::fs", "std::env", "std::process", "local_file", "include_str"] {
            assert!(!text.contains(reads), "{} has `{reads}`", path.display());
        }
    }
    assert!(count > 50, "{count}");
}

/// `EXPANSIONS=overwrite cargo test -p autograd-macros` rewrites the snapshots; review the difference.
#[test]
fn expansions_are_as_they_were() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
    let ops = ops(&tests.join("tests/macros/expansions/ops.rs"));
    assert_eq!(ops.len(), 5);
    for (arguments, block) in ops {
        let name = crate::tokens::text(&block.self_ty);
        let name = name.split('<').next().unwrap_or_default().to_lowercase();
        // One is expanded as with the feature `verify`.
        let verifies = name == "verified";
        let folder = tests.join(if verifies {
            "verifying/tests/verify/expansions"
        } else {
            "tests/macros/expansions"
        });
        let expansion = layer(arguments, quote::quote!(#block), verifies);
        let file = syn::parse2(expansion).expect("an expansion is valid Rust");
        let text = prettyplease::unparse(&file);
        let path = folder.join(format!("{name}.rs"));
        if std::env::var_os("EXPANSIONS").is_some_and(|what| what == "overwrite") {
            fs::create_dir_all(&folder).expect("the folder of the expansions");
            fs::write(&path, &text).expect("the expansion is written");
        }
        let before = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(before, text, "the expansion of `{name}` changed");
    }
}
