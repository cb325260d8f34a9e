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

/// Counts in a block, found another way than the macro finds them; none where a name may hide
/// something.
struct Counts {
    inputs: usize,
    outputs: usize,
    gradients: usize,
    returned: Option<usize>,
}

fn counts(block: &TokenStream) -> Option<Counts> {
    let block = syn::parse2::<syn::ItemImpl>(block.clone()).ok()?;
    let function = |name: &str| {
        block.items.iter().find_map(|item| match item {
            syn::ImplItem::Fn(function) if function.sig.ident == name => Some(&function.sig),
            _ => None,
        })
    };
    let text = |tokens: &dyn quote::ToTokens| tokens.to_token_stream().to_string().replace(' ', "");
    let integer = |text: &str| {
        ["i32", "i64", "u8", "bool"].iter().any(|t| text.contains(&format!("Tensor<{t}>")))
    };
    let forward = function("forward")?;
    let backward = function("backward")?;
    let inputs = forward.inputs.iter().filter(|input| {
        let syn::FnArg::Typed(param) = input else { return false };
        let ty = text(&param.ty);
        let stopped = param.attrs.iter().any(|attr| attr.path().is_ident("stop_gradient"));
        let form = ["&Tensor<", "Option<&Tensor<", "&[Tensor<", "&[&Tensor<", "[&Tensor<"];
        form.iter().any(|form| ty.starts_with(form)) && !stopped && !integer(&ty)
    });
    let parts = |output: &syn::ReturnType| -> Vec<String> {
        let syn::ReturnType::Type(_, ty) = output else { return Vec::new() };
        let mut ty = &**ty;
        if let syn::Type::Path(path) = ty
            && let Some(last) = path.path.segments.last()
            && last.ident == "Result"
            && let syn::PathArguments::AngleBracketed(arguments) = &last.arguments
            && let Some(syn::GenericArgument::Type(inner)) = arguments.args.first()
        {
            ty = inner;
        }
        match ty {
            syn::Type::Tuple(tuple) => tuple.elems.iter().map(|ty| text(ty)).collect(),
            ty => vec![text(ty)],
        }
    };
    let is_output = |ty: &String| {
        ["Tensor<", "[Tensor<", "Vec<Tensor<"].iter().any(|form| ty.starts_with(form))
            && !integer(ty)
    };
    let returned = parts(&backward.output);
    let by_name = returned == ["Grads"];
    Some(Counts {
        inputs: inputs.count(),
        outputs: parts(&forward.output).iter().filter(|ty| is_output(ty)).count(),
        gradients: backward.inputs.len().saturating_sub(1),
        returned: (!by_name).then_some(returned.len()),
    })
}

fn counts_agree(block: &TokenStream) -> bool {
    counts(block).is_none_or(|counts| {
        counts.outputs == counts.gradients
            && counts.returned.is_none_or(|returned| returned == counts.inputs)
    })
}

#[test]
fn mutated_blocks_are_refused_or_right() {
    let mut random = Random(2023);
    let (mut accepted, mut compared) = (0, 0);
    for round in 0..rounds(6000) {
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
        let _ = expansion.parse::<TokenStream>().expect("tokens come out");
        if !refused(&expansion) {
            accepted += 1;
            compared += usize::from(counts(&tokens).is_some());
            assert!(counts_agree(&tokens), "accepted: {tokens}");
        }
    }
    assert!(accepted > 100 && compared > 50, "the mutations are too wild: {accepted}, {compared}");
}

/// The other forms of the macro bear the same mutations; the elementwise one counts too.
#[test]
fn mutated_formulas_are_refused_or_right() {
    const FORMULA: &str = "impl Op { fn forward<L: Lane>(x: Real<L>, w: Real<L>, #[stop_gradient] \
        keep: Mask<L>, by: f64) -> (Real<L>, Real<L>) { (x * w, keep.select(x, w) * by) } fn \
        backward<L: Lane>(x: Real<L>, dy0: Real<L>, dy1: Real<L>) -> (Real<L>, Real<L>) { (dy0, \
        dy1 * x) } }";
    const SCALAR: &str = "Softplus: y = (1.0 + x.exp()).ln(), dx = dy / (1.0 + (-x).exp())";
    const ARRAYS: &str = "impl Op { fn forward(x: ArrayViewD<f32>, w: ArrayViewD<f32>) -> \
        ArrayD<f32> { &x * &w } fn backward(x: ArrayViewD<f32>, w: ArrayViewD<f32>, dy: \
        ArrayViewD<f32>) -> (ArrayD<f32>, ArrayD<f32>) { (&dy * &w, &dy * &x) } }";
    let mut random = Random(11);
    let mut mutated = |source: &str| {
        let mut tokens: TokenStream = source.parse().expect("tokens");
        for _ in 0..=random.below(4) {
            tokens = mutate(tokens, &mut random);
        }
        tokens
    };
    let mut accepted = 0;
    for _ in 0..rounds(2000) {
        let block = mutated(FORMULA);
        let expansion = layer(quote::quote!(elementwise), block.clone()).to_string();
        let _ = expansion.parse::<TokenStream>().expect("tokens come out");
        if !refused(&expansion) && !expansion.contains("does not understand") {
            accepted += 1;
            assert!(formula_counts_agree(&block), "accepted: {block}");
        }
        let _ = crate::elementwise::scalar_op(mutated(SCALAR));
        let _ = crate::py_func::expand(TokenStream::new(), mutated(ARRAYS));
    }
    assert!(accepted > 50, "the mutations are too wild: {accepted}");
}

/// Whether backward of a formula returns one number for each that forward takes, and names only
/// what there is.
fn formula_counts_agree(block: &TokenStream) -> bool {
    let Ok(block) = syn::parse2::<syn::ItemImpl>(block.clone()) else { return true };
    let function = |name: &str| {
        block.items.iter().find_map(|item| match item {
            syn::ImplItem::Fn(function) if function.sig.ident == name => Some(&function.sig),
            _ => None,
        })
    };
    let (Some(forward), Some(backward)) = (function("forward"), function("backward")) else {
        return true;
    };
    let text = |tokens: &dyn quote::ToTokens| tokens.to_token_stream().to_string().replace(' ', "");
    let inputs = forward.inputs.iter().filter(|input| {
        let syn::FnArg::Typed(param) = input else { return false };
        let stopped = param.attrs.iter().any(|attr| attr.path().is_ident("stop_gradient"));
        text(&param.ty).split('<').next() == Some("Real") && !stopped
    });
    let returned = match &backward.output {
        syn::ReturnType::Default => 0,
        syn::ReturnType::Type(_, ty) => match &**ty {
            syn::Type::Tuple(tuple) => tuple.elems.len(),
            _ => 1,
        },
    };
    inputs.count() == returned
}

/// How many rounds a fuzz test takes: `FUZZ=100 cargo test --release -p autograd-macros` takes a
/// hundred times as many.
fn rounds(count: usize) -> usize {
    let times = std::env::var("FUZZ").ok().and_then(|times| times.parse().ok());
    count * times.unwrap_or(1)
}

/// Any tokens at all, in both places.
#[test]
fn any_tokens_are_borne() {
    const WORDS: &[&str] = &[
        "impl", "fn", "forward", "backward", "Op", "Tensor", "<", ">", "&", "ctx", ":", ",", ";",
        "->", "Self", "type", "Saved", "=", "'a", "1", "\"s\"", "#", "!", "?", "for", "where",
        "mut", "dyn", "Grads", "Option", "Result", "crate", "no_grad", "allow", "..", "|",
        "r#type",
    ];
    fn tokens(random: &mut Random, depth: usize) -> TokenStream {
        let mut trees: Vec<TokenTree> = Vec::new();
        for _ in 0..random.below(12) {
            if depth > 0 && random.below(4) == 0 {
                let delimiters =
                    [Delimiter::Brace, Delimiter::Parenthesis, Delimiter::Bracket, Delimiter::None];
                let delimiter = delimiters[random.below(delimiters.len())];
                trees.push(Group::new(delimiter, tokens(random, depth - 1)).into());
            } else if let Ok(word) = WORDS[random.below(WORDS.len())].parse::<TokenStream>() {
                trees.extend(word);
            }
        }
        trees.into_iter().collect()
    }
    let mut random = Random(7);
    for _ in 0..rounds(3000) {
        let head: TokenStream =
            ["", "impl Op", "impl<T> Op<T>"][random.below(3)].parse().expect("");
        let body = tokens(&mut random, 3);
        let item = match random.below(2) {
            0 => quote::quote!(#head #body),
            _ => quote::quote!(#head { #body }),
        };
        let arguments = tokens(&mut random, 1);
        let _ = layer(arguments.clone(), item.clone());
        let _ = layer(quote::quote!(elementwise, #arguments), item.clone());
        let _ = crate::elementwise::scalar_op(item.clone());
        let _ = crate::py_func::expand(arguments, item.clone());
        let _ = crate::module::expand(item.clone());
        let _ = crate::saved::expand(item);
    }
}

/// What syn cannot read is told, should the compiler have nothing to say of it.
#[test]
fn what_is_not_understood_is_told() {
    let unread = "static NOT_OF_AN_IMPL: usize = 1;";
    for (arguments, block) in [
        ("", VALID[0].replacen('{', &format!("{{ {unread} "), 1)),
        ("elementwise", format!("impl Op {{ {unread} fn forward(x: Real) -> Real {{ x }} }}")),
    ] {
        let arguments = arguments.parse().expect("arguments");
        let expansion = layer(arguments, block.parse().expect("tokens")).to_string();
        assert!(expansion.contains("that #[py_layer] does not understand"), "{expansion}");
    }
}

/// Where a token stands in the source.
fn places(tokens: TokenStream, found: &mut Vec<(String, std::ops::Range<usize>)>) {
    for tree in tokens {
        match tree {
            TokenTree::Group(group) => places(group.stream(), found),
            tree => found.push((tree.to_string(), tree.span().byte_range())),
        }
    }
}

/// Completion and go-to-definition work by spans: what comes out of a body is what went in.
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
        let mut written = Vec::new();
        bodies(block.clone(), &mut written);
        let mut out = Vec::new();
        places(layer(TokenStream::new(), block), &mut out);
        for (word, place) in written {
            let kept = out.iter().any(|(other, at)| *other == word && *at == place);
            assert!(kept, "`{word}` at {place:?} was lost of {source}");
        }
    }
}

/// What an editor shows of `apply` is what was written for forward: docs, names, types, defaults.
#[test]
fn apply_has_the_words_of_forward() {
    let source = "impl Op { /// Computes it.\n pub fn forward(ctx: &mut ForwardContext<Self>, r#type: \
                  &Tensor<f64>, mut by: f64, (a, b): (u8, u8)) -> Tensor<f64> { todo!() } fn \
                  backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { todo!() } \
                  }";
    let expansion = layer(TokenStream::new(), source.parse().expect("tokens"));
    let mut placed = Vec::new();
    places(expansion.clone(), &mut placed);
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

/// The tokens of the bodies in a block.
fn bodies(block: TokenStream, found: &mut Vec<(String, std::ops::Range<usize>)>) {
    for tree in block {
        let TokenTree::Group(items) = tree else { continue };
        for tree in items.stream() {
            if let TokenTree::Group(group) = tree
                && group.delimiter() == Delimiter::Brace
            {
                places(group.stream(), found);
            }
        }
    }
}

/// The fixed parts of each sentence, from the source of the messages.
fn sentences() -> Vec<(String, Vec<String>)> {
    let source = concat!(include_str!("messages.rs"), include_str!("elementwise/messages.rs"));
    let source = source.replace("//!", "//");
    let source = source.as_str();
    let file = syn::parse_str::<syn::File>(source).expect("this crate's own source");
    let mut all = Vec::new();
    for item in file.items {
        let syn::Item::Fn(function) = item else { continue };
        let name = function.sig.ident.to_string();
        // The last is for a syntax that the compiler reads and syn does not: there is none today.
        if matches!(name.as_str(), "plural" | "list" | "not_understood") {
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

/// What the macro itself says of a fixture's blocks, without the compiler: fast enough to hold each
/// check to its sentence while `cargo mutants` changes it.
#[test]
fn fixtures_are_told_their_sentences() {
    fn told(tokens: TokenStream, words: &mut String) {
        let mut literals = Vec::new();
        collect(tokens, &mut literals);
        literals.iter().for_each(|literal| words.push_str(&format!("{literal}\n")));
    }
    let sentences: Vec<String> = sentences()
        .into_iter()
        .filter_map(|(_, literals)| {
            literals.iter().map(|l| longest_part(l)).max_by_key(String::len)
        })
        .filter(|part| part.len() > 12)
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/ui");
    let (mut held, mut wrong) = (0, Vec::new());
    for subject in fs::read_dir(folder).expect("the fixtures") {
        for file in fs::read_dir(subject.expect("a folder").path()).expect("a folder") {
            let path = file.expect("a file").path();
            let Ok(stderr) = fs::read_to_string(path.with_extension("stderr")) else { continue };
            let source = fs::read_to_string(path.with_extension("rs")).expect("a fixture");
            let Ok(source) = syn::parse_file(&source) else { continue };
            let (mut words, mut blocks) = (String::new(), 0);
            for item in source.items {
                let syn::Item::Impl(mut block) = item else { continue };
                let is_ours = |attr: &syn::Attribute| attr.path().is_ident("py_layer");
                let Some(at) = block.attrs.iter().position(is_ours) else { continue };
                let arguments = match block.attrs.remove(at).meta {
                    syn::Meta::List(list) => list.tokens,
                    _ => TokenStream::new(),
                };
                blocks += 1;
                told(layer(arguments, quote::quote!(#block)), &mut words);
            }
            // Warnings come from the compiler, and that a name is taken from the block before it.
            let from_here = |line: &&str| {
                !line.starts_with("use of deprecated") && !line.starts_with("there is an op")
            };
            let expected = stderr.lines().filter_map(|line| line.strip_prefix("error: "));
            for line in expected.filter(from_here) {
                let ours = sentences.iter().any(|part| line.contains(part.as_str()));
                let is_source = path.extension().is_some_and(|end| end == "rs");
                if blocks == 0 || !ours || !is_source {
                    continue;
                }
                held += 1;
                let escaped = line.replace('"', "\\\"");
                if !words.contains(line) && !words.contains(&escaped) {
                    wrong.push(format!("{}: {line}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "not told:\n{}", wrong.join("\n"));
    assert!(held > 100, "only {held} sentences were held to their fixtures");
}

/// Ops whose expansions stand in `tests/tests/expansions`, where they are compiled and run.
const EXPANDED: &[(&str, &str, &str)] = &[
    (
        "tanh",
        "",
        "/// Hyperbolic tangent.
        #[py_layer]
        impl Tanh {
            type Saved = Tensor<f64>;
            pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
                let y = x.tanh();
                ctx.save_for_backward(&y);
                y
            }
            fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
                dy * (1.0 - ctx.saved_tensor().square())
            }
        }",
    ),
    (
        "scale",
        "",
        "impl Scale {
            type Saved = (Tensor<f64>, Tensor<f64>);
            type Attrs = f64;
            fn forward(
                ctx: &mut ForwardContext<Self>,
                x: &Tensor<f64>,
                w: &Tensor<f64>,
                #[stop_gradient] at: Option<&Tensor<i64>>,
                #[default(2.0)] by: f64,
            ) -> Result<(Tensor<f64>, usize), String> {
                ctx.save_for_backward((x, w));
                ctx.set_attrs(by);
                Ok((x * w * by, at.map_or(0, |at| at.len())))
            }
            fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
                let (x, w) = ctx.saved_tensor();
                let by = *ctx.attrs();
                Grads { x: dy * w * by, w: Some(dy * x * by) }
            }
        }",
    ),
    (
        "repeat",
        "once_differentiable",
        "impl<T: Float, const N: usize> Repeat<T, N> {
            fn forward(_ctx: &mut ForwardContext<Self>, xs: &[Tensor<T>]) -> [Tensor<T>; N] {
                std::array::from_fn(|_| &xs[0] * 1.0)
            }
            fn backward(
                _ctx: &BackwardContext<Self>,
                ds: &[Option<Tensor<T>>],
            ) -> Vec<Option<Tensor<T>>> {
                vec![ds[0].clone()]
            }
        }",
    ),
    (
        "norm",
        "no_grad",
        "impl Norm {
            fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
                x.square().sum()
            }
        }",
    ),
];

/// `EXPANSIONS=overwrite cargo test -p autograd-macros` writes them anew; then read the difference.
#[test]
fn expansions_are_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/tests/expansions");
    for (name, arguments, block) in EXPANDED {
        let block = block.replace("#[py_layer]", "");
        let expansion = layer(arguments.parse().expect("arguments"), block.parse().expect("an op"));
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
