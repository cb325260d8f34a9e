//! Corrects types after an error, so that the rest of the signature is read as it was meant.

use proc_macro2::{Ident, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::Parse;

use crate::errors::Errors;
use crate::messages;
use crate::model::Function;
use crate::tokens::{is_one_of, is_punct, rewritten};

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
pub(super) fn with_known_elements<P: Parse + ToTokens>(
    written: &P,
    errors: &mut Errors,
) -> Option<P> {
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
pub(super) fn without_placeholders(function: &Function) -> Option<Function> {
    let tokens = rewritten(function.sig.to_token_stream(), &mut |trees, at| {
        let before = |back: usize| at.checked_sub(back).map(|at| &trees[at]);
        let element = is_punct(before(1), '<')
            && matches!(before(2), Some(TokenTree::Ident(name)) if name == "Tensor");
        match &trees[at] {
            // Neither `'_` nor a pattern.
            TokenTree::Ident(word)
                if word == "_"
                    && !is_punct(before(1), '\'')
                    && !is_punct(trees.get(at + 1), ':') =>
            {
                Some(match element {
                    true => (quote_spanned!(word.span()=> f64), 1),
                    false => (quote_spanned!(word.span()=> Tensor<f64>), 1),
                })
            }
            _ => None,
        }
    });
    Some(Function { sig: syn::parse2(tokens?).ok()?, ..function.clone() })
}
