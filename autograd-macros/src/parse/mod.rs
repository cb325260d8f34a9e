//! From tokens to the model. A mistake is reported, and parsing continues.

mod block;
mod derivative;
mod forward;
mod signature;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::Parse;
use syn::{ImplItemType, ReturnType};

use crate::attributes::is_cfg;
use crate::errors::Errors;
use crate::items::ParsedItem;
use crate::messages;
use crate::model::{Function, Layer, RULES, nearest};
use crate::tokens::{is_one_of, is_punct, rewritten, text};
use block::name_declared_types;
use derivative::{bare_grads, derivative};

pub(crate) use block::{BlockRules, block, other_item};
pub(crate) use derivative::reject_attributes;
pub(crate) use forward::{forward, params};
pub(crate) use signature::{BACKWARD_CONTEXT, is_context, parameters, pattern_name, returned};

const BLOCK_RULES: BlockRules =
    BlockRules { rules: RULES, generated: &["apply", "try_apply", "with"], lenient: false };

/// Parses the block; `None` if the tokens are not an impl block of an op.
pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Option<Layer> {
    let (mut block, mut found) = block(tokens, "py_layer", errors)?;
    name_declared_types(&mut found);
    found.iter_mut().for_each(|item| correct(item, errors));
    let (functions, types) = block.sort(found, &BLOCK_RULES, errors);
    let mut layer = Layer::new(block);
    types.into_iter().for_each(|item| layer.add_type(item, errors));
    let op = layer.name.to_string();
    for function in functions {
        match &function.sig.ident.to_string()[..] {
            "forward" => {
                let without_placeholders = without_placeholders(&function).unwrap_or(function);
                layer.forward = Some(forward(&without_placeholders, &op, errors));
            }
            "backward" => layer.backward = Some(derivative(&function, &op, errors)),
            _ => layer.jvp = Some(derivative(&function, &op, errors)),
        }
    }
    Some(layer)
}

/// Reports and corrects mistakes that the compiler would report again in generated code.
fn correct(item: &mut ParsedItem, errors: &mut Errors) {
    match item {
        ParsedItem::Function(function) if function.is_rule() => {
            let sig = &mut function.sig;
            if let Some(known) = with_known_elements(sig, errors) {
                *sig = known;
            }
            if let ReturnType::Type(_, ty) = &mut sig.output
                && sig.ident == "backward"
            {
                bare_grads(ty, errors);
            }
        }
        ParsedItem::Type(item) => {
            if let Some(known) = with_known_elements(&item.ty, errors) {
                item.ty = known;
            }
        }
        _ => {}
    }
}

impl Layer {
    fn add_type(&mut self, item: ImplItemType, errors: &mut Errors) {
        let ImplItemType { attrs, ident, generics, ty, .. } = item;
        let name = ident.to_string();
        if let Some(cfg) = attrs.iter().find(|attr| is_cfg(attr)) {
            errors.at(cfg, messages::cfg_inside(&text(cfg.path()), &format!("`type {name}`")));
        }
        if !generics.params.is_empty() {
            errors.at(&generics.params, messages::type_generics(&name));
        }
        let near = nearest(&name, &["Saved", "Attrs"]);
        let is_slip = near != Some(&name);
        if is_slip {
            errors.at(&ident, messages::unknown_type(&name, near));
        }
        let place = match near {
            Some("Saved") => &mut self.saved,
            Some(_) => &mut self.state,
            None => return,
        };
        if place.is_none() {
            *place = Some(ty);
        } else if !is_slip {
            errors.at(&ident, messages::second_type(&name));
        }
    }
}

/// Element types that do not exist here, after the one to suggest for them.
const ABSENT: [(&str, &str); 5] = [
    ("f64", "String f128"),
    ("f32", "f16"),
    ("i64", "u32 u64 u128 i128 usize isize"),
    ("i32", "i8 i16 u16"),
    ("u8", "char"),
];

/// Reports element types of [`ABSENT`] and replaces them: otherwise the compiler would report them in all
/// generated code. `None` if there is nothing to replace.
fn with_known_elements<P: Parse + ToTokens>(written: &P, errors: &mut Errors) -> Option<P> {
    let known = rewritten(written.to_token_stream(), &mut |trees, at| match &trees[at..] {
        [TokenTree::Ident(tensor), open, TokenTree::Ident(word), ..]
            if tensor == "Tensor" && is_punct(Some(open), '<') =>
        {
            let (write, _) = ABSENT.iter().find(|(_, absent)| is_one_of(word, absent))?;
            errors.at(word, messages::unknown_element(&word.to_string(), write));
            let word = Ident::new(write, word.span());
            Some((quote!(#tensor #open #word), 3))
        }
        _ => None,
    });
    syn::parse2(known?).ok()
}

/// The function with a likely type in place of each `_`. The compiler reports the `_`.
fn without_placeholders(function: &Function) -> Option<Function> {
    let tokens = rewritten(function.sig.to_token_stream(), &mut |trees, at| {
        let before = |back: usize| at.checked_sub(back).map(|at| &trees[at]);
        let named = |name: &str| matches!(before(2), Some(TokenTree::Ident(of)) if of == name);
        // What an input holds, like `Option<_>`, is most likely a number.
        let output = trees.iter().any(|tree| matches!(tree, TokenTree::Ident(of) if of == "fn"));
        let number = is_punct(before(1), '<') && (named("Tensor") || !output);
        // The first parameter of the type `_` is a tensor, unless there is one before it.
        let is_tensor = |tree: &TokenTree| matches!(tree, TokenTree::Ident(of) if of == "Tensor");
        let whole = is_punct(before(1), ':')
            && trees.get(at + 1).is_none_or(|next| is_punct(Some(next), ','));
        match &trees[at] {
            // Neither `'_` nor a pattern.
            TokenTree::Ident(word)
                if word == "_"
                    && !is_punct(before(1), '\'')
                    && !is_punct(trees.get(at + 1), ':') =>
            {
                Some(match number || whole && trees[..at].iter().any(is_tensor) {
                    true => (quote_spanned!(word.span()=> f64), 1),
                    false if whole => (quote_spanned!(word.span()=> &Tensor<f64>), 1),
                    false => (quote_spanned!(word.span()=> Tensor<f64>), 1),
                })
            }
            _ => None,
        }
    });
    Some(Function { sig: syn::parse2(tokens?).ok()?, ..function.clone() })
}
