//! The pipeline as a function: it never panics, never accepts counts that disagree, and every
//! sentence has a fixture.

use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::layer;

const VALID: &[&str] = &[
    "impl Tanh { type Saved = Tensor<f64>; pub fn forward(ctx: &mut ForwardContext<Self>, x: \
     &Tensor<f64>) -> Tensor<f64> { let y = x.tanh(); ctx.save_for_backward(&y); y } fn \
     backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * \
     ctx.saved_tensor() } }",
    "impl<T: Float, const N: usize> Many<T, N> where T: Copy { type Attrs = usize; fn forward(ctx: \
     &mut ForwardContext<Self>, xs: &[&Tensor<T>], bias: Option<&Tensor<T>>, #[stop_gradient] at: \
     &Tensor<i64>, #[default(2)] k: usize, f: impl Fn(&Tensor<T>) -> Tensor<T>) -> \
     Result<(Tensor<T>, usize, [Tensor<T>; N]), String> { ctx.set_attrs(k); todo!() } fn \
     backward(ctx: &BackwardContext<Self>, d: &Tensor<T>, list: &[Tensor<T>]) -> Result<Grads, \
     String> { Ok(Grads { xs: vec![], bias: None }) } fn help() -> usize { 1 } }",
];

fn run(block: &str) -> String {
    let block: TokenStream = block.parse().expect("tokens");
    layer(TokenStream::new(), block).to_string()
}

fn refused(expansion: &str) -> bool {
    expansion.contains("compile_error")
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
fn counts_that_disagree_are_refused() {
    let tensors = |count: usize, one: &str| vec![one; count].join(", ");
    for inputs in 1..5 {
        for outputs in 1..5 {
            for gradients in 0..5 {
                for returned in 1..5 {
                    let params: String =
                        (0..inputs).map(|i| format!(", x{i}: &Tensor<f64>")).collect();
                    let grads: String =
                        (0..gradients).map(|i| format!(", d{i}: &Tensor<f64>")).collect();
                    let many = |count: usize| match count {
                        1 => "Tensor<f64>".to_owned(),
                        count => format!("({})", tensors(count, "Tensor<f64>")),
                    };
                    let block = format!(
                        "impl Op {{ fn forward(ctx: &mut ForwardContext<Self>{params}) -> {} {{ \
                         todo!() }} fn backward(ctx: &BackwardContext<Self>{grads}) -> {} {{ \
                         todo!() }} }}",
                        many(outputs),
                        many(returned)
                    );
                    let agree = outputs == gradients && inputs == returned;
                    assert_eq!(!refused(&run(&block)), agree, "{block}");
                }
            }
        }
    }
}

/// A small generator of its own: the same mutations every time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % n.max(1)
    }
}

/// Deletes, doubles or swaps some tree at some depth.
fn mutate(tokens: TokenStream, random: &mut Random) -> TokenStream {
    let mut trees: Vec<TokenTree> = tokens.into_iter().collect();
    if trees.is_empty() {
        return TokenStream::new();
    }
    let at = random.below(trees.len());
    let down = random.below(4) > 0;
    if let (true, Some(group)) = (down, trees.iter().position(|t| matches!(t, TokenTree::Group(_))))
        && let TokenTree::Group(inner) = trees[(group..trees.len())
            .filter(|&i| matches!(trees[i], TokenTree::Group(_)))
            .nth(random.below(3))
            .unwrap_or(group)]
        .clone()
    {
        let place = trees.iter().position(|t| t.to_string() == inner.to_string()).unwrap_or(group);
        let delimiter = if random.below(40) == 0 { Delimiter::Bracket } else { inner.delimiter() };
        trees[place] = Group::new(delimiter, mutate(inner.stream(), random)).into();
        return trees.into_iter().collect();
    }
    match random.below(3) {
        0 => drop(trees.remove(at)),
        1 => trees.insert(at, trees[at].clone()),
        _ => {
            let other = random.below(trees.len());
            trees.swap(at, other);
        }
    }
    trees.into_iter().collect()
}

#[test]
fn mutated_blocks_never_make_it_panic() {
    let mut random = Random(2023);
    for round in 0..4000 {
        let mut tokens: TokenStream = VALID[round % VALID.len()].parse().expect("tokens");
        for _ in 0..=random.below(4) {
            tokens = mutate(tokens, &mut random);
        }
        let arguments = if random.below(8) == 0 {
            mutate(tokens.clone(), &mut random)
        } else {
            TokenStream::new()
        };
        let expansion = layer(arguments, tokens.clone()).to_string();
        // What was accepted is Rust, unless the body itself is broken.
        let _ = expansion.parse::<TokenStream>().expect("tokens come out");
    }
}

/// The fixed parts of each sentence, from the source of the messages.
fn sentences() -> Vec<(String, Vec<String>)> {
    let source = include_str!("messages.rs");
    let file = syn::parse_str::<syn::File>(source).expect("this crate's own source");
    let mut all = Vec::new();
    for item in file.items {
        let syn::Item::Fn(function) = item else { continue };
        let name = function.sig.ident.to_string();
        if matches!(name.as_str(), "plural" | "list") {
            continue;
        }
        let mut literals = Vec::new();
        collect(quote::ToTokens::to_token_stream(&function.block), &mut literals);
        all.push((name, literals));
    }
    all
}

fn collect(tokens: TokenStream, literals: &mut Vec<String>) {
    for tree in tokens {
        match tree {
            TokenTree::Group(group) => collect(group.stream(), literals),
            TokenTree::Literal(literal) => {
                if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                    literals.push(text.value());
                }
            }
            _ => {}
        }
    }
}

/// The longest stretch of a format string without a hole.
fn longest_part(format: &str) -> String {
    let text = format.replace("{{", "\u{1}").replace("}}", "\u{2}");
    let mut parts = vec![String::new()];
    let mut hole = false;
    for c in text.chars() {
        match c {
            '{' => {
                hole = true;
                parts.push(String::new());
            }
            '}' => hole = false,
            c if !hole => parts.last_mut().expect("one at least").push(c),
            _ => {}
        }
    }
    let longest = parts.into_iter().max_by_key(String::len).unwrap_or_default();
    longest.replace('\u{1}', "{").replace('\u{2}', "}")
}

#[test]
fn every_sentence_has_a_fixture() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/ui");
    let mut told = String::new();
    for subject in fs::read_dir(folder).expect("the fixtures") {
        for file in fs::read_dir(subject.expect("a folder").path()).expect("a folder") {
            let path = file.expect("a file").path();
            if path.extension().is_some_and(|extension| extension == "stderr") {
                told += &fs::read_to_string(path).expect("text");
            }
        }
    }
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let missing: Vec<String> = sentences()
        .into_iter()
        .filter(|(_, literals)| {
            let longest = literals.iter().map(|l| longest_part(l)).max_by_key(String::len);
            let part = longest.unwrap_or_default();
            let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
            !told.contains(&part)
        })
        .map(|(name, _)| name)
        .collect();
    assert!(missing.is_empty(), "sentences without a fixture: {missing:?}");
}
