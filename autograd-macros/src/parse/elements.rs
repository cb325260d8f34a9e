//! Element types that there are not.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::Parse;

use crate::errors::Errors;
use crate::glance::Glance;
use crate::messages;

/// Element types that somebody may want, and which to take.
const ABSENT: [(&str, &str); 13] = [
    ("String", "f64"),
    ("i8", "i32"),
    ("i16", "i32"),
    ("u16", "i32"),
    ("u32", "i64"),
    ("u64", "i64"),
    ("usize", "i64"),
    ("isize", "i64"),
    ("u128", "i64"),
    ("i128", "i64"),
    ("f16", "f32"),
    ("f128", "f64"),
    ("char", "u8"),
];

/// Whether one of them may stand in the block.
pub(super) fn may_be_unknown(block: &Glance) -> bool {
    let elements = block.behind("Tensor").filter_map(|rest| rest.strip_prefix('<'));
    let mut elements = elements.map(str::trim_start);
    elements.any(|element| ABSENT.iter().any(|(absent, _)| element.starts_with(absent)))
}

/// The same with an element type that there is in place of each that there is not: the compiler
/// would tell that of everything that is made of it.
pub(super) fn with_known_elements<P: Parse + ToTokens>(
    written: &P,
    errors: &mut Errors,
) -> Option<P> {
    let mut found = false;
    let tokens = known_elements(written.to_token_stream(), &mut found, errors);
    found.then(|| syn::parse2(tokens).ok())?
}

pub(super) fn known_elements(
    tokens: TokenStream,
    found: &mut bool,
    errors: &mut Errors,
) -> TokenStream {
    let mut out: Vec<TokenTree> = Vec::new();
    for tree in tokens {
        let element = matches!(out.as_slice(), [.., TokenTree::Ident(tensor), TokenTree::Punct(open)]
            if tensor == "Tensor" && open.as_char() == '<');
        out.push(match tree {
            TokenTree::Ident(word) if element => {
                let known = ABSENT.iter().find(|(absent, _)| word == absent);
                if let Some((absent, write)) = known {
                    *found = true;
                    errors.at(&word, messages::unknown_element(absent, write));
                }
                known.map_or(word.clone(), |(_, write)| Ident::new(write, word.span())).into()
            }
            TokenTree::Group(group) => {
                let inner = known_elements(group.stream(), found, errors);
                let mut new = Group::new(group.delimiter(), inner);
                new.set_span(group.span());
                new.into()
            }
            tree => tree,
        });
    }
    out.into_iter().collect()
}
