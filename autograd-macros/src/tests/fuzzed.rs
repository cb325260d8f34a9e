//! Fuzzed input, generated from decisions: random ones in the tests, a fuzzer's in `fuzz/`.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::layer::layer;

/// A source of decisions.
pub(crate) trait Decisions {
    /// Returns a number below `n`; 0 if `n` is 0.
    fn below(&mut self, n: usize) -> usize;
}

pub(crate) const VALID: &[&str] = &[
    "impl Tanh { type Saved = Tensor<f64>; pub fn forward(ctx: &mut ForwardContext<Self>, x: \
     &Tensor<f64>) -> Tensor<f64> { let y = x.tanh(); ctx.save_for_backward(&y); y } fn \
     backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * \
     ctx.saved_tensor() } }",
    "impl<T: Float, const N: usize> Many<T, N> where T: Copy { type Attrs = usize; fn forward(ctx: \
     &mut ForwardContext<Self>, xs: &[&Tensor<T>], bias: Option<&Tensor<T>>, #[stop_gradient] at: \
     &Tensor<i64>, #[default(2)] k: usize, f: impl Fn(&Tensor<T>) -> Tensor<T>) -> \
     Result<(Tensor<T>, usize, [Tensor<T>; N]), String> { ctx.set_attrs(k); todo!() } fn \
     backward(ctx: &BackwardContext<Self>, d: &Tensor<T>, list: &[Tensor<T>]) -> Result<Grads, \
     String> { Ok(Grads { xs: vec![None], bias: None }) } fn help() -> usize { 1 } }",
];

pub(crate) fn refused(expansion: &str) -> bool {
    expansion.contains("compile_error")
}

fn mutated(source: &str, decisions: &mut impl Decisions) -> TokenStream {
    let mut tokens: TokenStream = source.parse().expect("tokens");
    for _ in 0..=decisions.below(4) {
        tokens = mutate(tokens, decisions);
    }
    tokens
}

/// Asserts that a mutated valid block is rejected, or that its counts agree. `None` if it was rejected, otherwise
/// whether the counts were compared.
pub(crate) fn block(decisions: &mut impl Decisions) -> Option<bool> {
    let tokens = mutated(VALID[decisions.below(VALID.len())], decisions);
    let arguments = match decisions.below(8) {
        0 => mutate(tokens.clone(), decisions),
        _ => TokenStream::new(),
    };
    let expansion = layer(arguments, tokens.clone(), false).to_string();
    let _ = expansion.parse::<TokenStream>().expect("tokens come out");
    if refused(&expansion) {
        return None;
    }
    let agree = counts_agree(&tokens);
    assert!(agree != Some(false), "accepted: {tokens}");
    Some(agree.is_some())
}

/// Runs the other forms on the same mutations; the counts of an accepted formula must agree. Returns
/// whether the elementwise form was accepted.
pub(crate) fn formula(decisions: &mut impl Decisions) -> bool {
    const FORMULA: &str = "impl Op { fn forward<L: Lane>(x: Real<L>, w: Real<L>, #[stop_gradient] \
        keep: Mask<L>, by: f64) -> (Real<L>, Real<L>) { (x * w, keep.select(x, w) * by) } fn \
        backward<L: Lane>(x: Real<L>, dy0: Real<L>, dy1: Real<L>) -> (Real<L>, Real<L>) { (dy0, \
        dy1 * x) } }";
    const SCALAR: &str = "Softplus: y = (1.0 + x.exp()).ln(), dx = dy / (1.0 + (-x).exp())";
    const ARRAYS: &str = "impl Op { fn forward(x: ArrayViewD<f32>, w: ArrayViewD<f32>) -> \
        ArrayD<f32> { &x * &w } fn backward(x: ArrayViewD<f32>, w: ArrayViewD<f32>, dy: \
        ArrayViewD<f32>) -> (ArrayD<f32>, ArrayD<f32>) { (&dy * &w, &dy * &x) } }";
    let block = mutated(FORMULA, decisions);
    let expansion = layer(quote::quote!(elementwise), block.clone(), false).to_string();
    let _ = expansion.parse::<TokenStream>().expect("tokens come out");
    let accepted = !refused(&expansion) && !expansion.contains("does not understand");
    assert!(!accepted || formula_counts_agree(&block), "accepted: {block}");
    let _ = crate::elementwise::scalar_op(mutated(SCALAR, decisions));
    let _ = crate::py_func::py_func(TokenStream::new(), mutated(ARRAYS, decisions));
    accepted
}

/// Runs the macro with arbitrary tokens as arguments and as the block.
pub(crate) fn any_tokens(decisions: &mut impl Decisions) {
    let head = ["", "impl Op", "impl<T> Op<T>"][decisions.below(3)];
    let head: TokenStream = head.parse().expect("tokens");
    let body = tokens(decisions, 3);
    let item = match decisions.below(2) {
        0 => quote::quote!(#head #body),
        _ => quote::quote!(#head { #body }),
    };
    let arguments = tokens(decisions, 1);
    let _ = layer(arguments.clone(), item.clone(), false);
    let _ = layer(quote::quote!(elementwise, #arguments), item.clone(), false);
    let _ = crate::elementwise::scalar_op(item.clone());
    let _ = crate::py_func::py_func(arguments, item.clone());
    let _ = crate::derives::module(item.clone());
    let _ = crate::derives::saved(item);
}

fn tokens(decisions: &mut impl Decisions, depth: usize) -> TokenStream {
    const WORDS: &[&str] = &[
        "impl", "fn", "forward", "backward", "Op", "Tensor", "<", ">", "&", "ctx", ":", ",", ";",
        "->", "Self", "type", "Saved", "=", "'a", "1", "\"s\"", "#", "!", "?", "for", "where",
        "mut", "dyn", "Grads", "Option", "Result", "crate", "no_grad", "allow", "..", "|",
        "r#type",
    ];
    let mut trees: Vec<TokenTree> = Vec::new();
    for _ in 0..decisions.below(12) {
        if depth > 0 && decisions.below(4) == 0 {
            let delimiters =
                [Delimiter::Brace, Delimiter::Parenthesis, Delimiter::Bracket, Delimiter::None];
            let delimiter = delimiters[decisions.below(delimiters.len())];
            trees.push(Group::new(delimiter, tokens(decisions, depth - 1)).into());
        } else if let Ok(word) = WORDS[decisions.below(WORDS.len())].parse::<TokenStream>() {
            trees.extend(word);
        }
    }
    trees.into_iter().collect()
}

/// Deletes, doubles or swaps a tree at some depth.
fn mutate(tokens: TokenStream, decisions: &mut impl Decisions) -> TokenStream {
    let mut trees: Vec<TokenTree> = tokens.into_iter().collect();
    if trees.is_empty() {
        return TokenStream::new();
    }
    let at = decisions.below(trees.len());
    let down = decisions.below(4) > 0;
    if let (true, Some(group)) = (down, trees.iter().position(|t| matches!(t, TokenTree::Group(_))))
        && let TokenTree::Group(inner) = trees[(group..trees.len())
            .filter(|&i| matches!(trees[i], TokenTree::Group(_)))
            .nth(decisions.below(3))
            .unwrap_or(group)]
        .clone()
    {
        let place = trees.iter().position(|t| t.to_string() == inner.to_string()).unwrap_or(group);
        let delimiter =
            if decisions.below(40) == 0 { Delimiter::Bracket } else { inner.delimiter() };
        trees[place] = Group::new(delimiter, mutate(inner.stream(), decisions)).into();
        return trees.into_iter().collect();
    }
    match decisions.below(3) {
        0 => drop(trees.remove(at)),
        1 => trees.insert(at, trees[at].clone()),
        _ => {
            let other = decisions.below(trees.len());
            trees.swap(at, other);
        }
    }
    trees.into_iter().collect()
}

/// Whether the counts of a block agree, found independently of the macro.
fn counts_agree(block: &TokenStream) -> Option<bool> {
    let (forward, backward) = functions(block)?;
    let integer = |text: &str| {
        ["i32", "i64", "u8", "bool"].iter().any(|t| text.contains(&format!("Tensor<{t}>")))
    };
    let is_input = |ty: &String| {
        let forms = ["&Tensor", "Option<&Tensor", "&[Tensor", "&[&Tensor", "[&Tensor"];
        forms.iter().any(|form| ty.starts_with(form)) && !integer(ty)
    };
    let is_output = |ty: &String| {
        ["Tensor", "[Tensor", "Vec<Tensor"].iter().any(|form| ty.starts_with(form)) && !integer(ty)
    };
    let returned = returned(&backward);
    // `Grads` or a possible alias of a tuple: the count is not visible.
    let named = matches!(returned.as_slice(), [one] if !one.contains("Tensor"));
    let inputs = inputs(&forward).iter().filter(|ty| is_input(ty)).count();
    let outputs = self::returned(&forward).iter().filter(|ty| is_output(ty)).count();
    let gradients = backward.inputs.len().saturating_sub(1);
    Some(outputs == gradients && (named || returned.len() == inputs))
}

fn functions(block: &TokenStream) -> Option<(syn::Signature, syn::Signature)> {
    let block = syn::parse2::<syn::ItemImpl>(block.clone()).ok()?;
    let function = |name: &str| {
        block.items.iter().find_map(|item| match item {
            syn::ImplItem::Fn(function) if function.sig.ident == name => Some(function.sig.clone()),
            _ => None,
        })
    };
    Some((function("forward")?, function("backward")?))
}

fn text(ty: &syn::Type) -> String {
    quote::quote!(#ty).to_string().replace(' ', "")
}

fn inputs(sig: &syn::Signature) -> Vec<String> {
    let params = sig.inputs.iter().filter_map(|input| match input {
        syn::FnArg::Typed(param) => Some(param),
        syn::FnArg::Receiver(_) => None,
    });
    let marked = |attr: &syn::Attribute| attr.path().is_ident("stop_gradient");
    let params = params.filter(|param| !param.attrs.iter().any(marked));
    params.map(|param| text(&param.ty)).collect()
}

/// The types that are returned, without a `Result` around them.
fn returned(sig: &syn::Signature) -> Vec<String> {
    let syn::ReturnType::Type(_, ty) = &sig.output else { return Vec::new() };
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
        syn::Type::Tuple(tuple) => tuple.elems.iter().map(text).collect(),
        ty => vec![text(ty)],
    }
}

/// Whether backward of a formula returns as many numbers as forward takes.
fn formula_counts_agree(block: &TokenStream) -> bool {
    functions(block).is_none_or(|(forward, backward)| {
        let inputs = inputs(&forward);
        let numbers = inputs.iter().filter(|ty| ty.split('<').next() == Some("Real"));
        numbers.count() == returned(&backward).len()
    })
}
