//! Pieces of an expansion, which are written where they are put.
//!
//! A stream that is put into another is copied, and makes both calls of the compiler, which an
//! unoptimised macro makes slowly: where many streams are put into each other, that costs more than
//! all of their tokens. A piece is a function that writes its tokens into the stream they belong to.

use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream};
use quote::{ToTokens, TokenStreamExt};

/// What writes tokens.
pub(crate) struct Piece<F>(pub(crate) F);

impl<F: Fn(&mut TokenStream)> ToTokens for Piece<F> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        (self.0)(tokens);
    }
}

/// `quote_spanned!` for a piece, which owns what stands in it: `piece!(span=> #a.name())`. Of
/// repetitions it knows `#(#a)*`, `#(#a,)*` and `#(#a),*`; it knows no literals.
macro_rules! piece {
    ($at:expr=> $($code:tt)*) => {
        $crate::piece::Piece(move |tokens: &mut ::proc_macro2::TokenStream| {
            $crate::piece::put!(tokens, $at=> $($code)*);
        })
    };
}

/// The same, written into tokens that are there: `put!(tokens, span=> #a.name())`.
macro_rules! put {
    ($tokens:ident, $at:expr=> $($code:tt)*) => {{
        let at: ::proc_macro2::Span = $at;
        $crate::piece::put_each!($tokens at $($code)*);
    }};
}

macro_rules! put_each {
    ($tokens:ident $at:ident) => {
        let _ = (&$tokens, $at);
    };
    ($tokens:ident $at:ident # $value:ident $($rest:tt)*) => {
        ::quote::ToTokens::to_tokens(&$value, $tokens);
        $crate::piece::put_each!($tokens $at $($rest)*);
    };
    ($tokens:ident $at:ident # (# $values:ident $($after:tt)?) * $($rest:tt)*) => {
        for value in $values.iter() {
            ::quote::ToTokens::to_tokens(value, $tokens);
            $crate::piece::put_each!($tokens $at $($after)?);
        }
        $crate::piece::put_each!($tokens $at $($rest)*);
    };
    ($tokens:ident $at:ident # (# $values:ident) , * $($rest:tt)*) => {
        for (position, value) in $values.iter().enumerate() {
            if position > 0 {
                $crate::piece::put_each!($tokens $at ,);
            }
            ::quote::ToTokens::to_tokens(value, $tokens);
        }
        $crate::piece::put_each!($tokens $at $($rest)*);
    };
    ($tokens:ident $at:ident ($($inner:tt)*) $($rest:tt)*) => {
        $crate::piece::group($tokens, $at, ::proc_macro2::Delimiter::Parenthesis, |$tokens| {
            $crate::piece::put_each!($tokens $at $($inner)*);
        });
        $crate::piece::put_each!($tokens $at $($rest)*);
    };
    ($tokens:ident $at:ident [$($inner:tt)*] $($rest:tt)*) => {
        $crate::piece::group($tokens, $at, ::proc_macro2::Delimiter::Bracket, |$tokens| {
            $crate::piece::put_each!($tokens $at $($inner)*);
        });
        $crate::piece::put_each!($tokens $at $($rest)*);
    };
    ($tokens:ident $at:ident {$($inner:tt)*} $($rest:tt)*) => {
        $crate::piece::group($tokens, $at, ::proc_macro2::Delimiter::Brace, |$tokens| {
            $crate::piece::put_each!($tokens $at $($inner)*);
        });
        $crate::piece::put_each!($tokens $at $($rest)*);
    };
    ($tokens:ident $at:ident _ $($rest:tt)*) => {
        $crate::piece::word($tokens, $at, "_");
        $crate::piece::put_each!($tokens $at $($rest)*);
    };
    ($tokens:ident $at:ident $word:ident $($rest:tt)*) => {
        $crate::piece::word($tokens, $at, stringify!($word));
        $crate::piece::put_each!($tokens $at $($rest)*);
    };
    ($tokens:ident $at:ident $lifetime:lifetime $($rest:tt)*) => {
        $crate::piece::lifetime($tokens, $at, stringify!($lifetime));
        $crate::piece::put_each!($tokens $at $($rest)*);
    };
    ($tokens:ident $at:ident $marks:tt $($rest:tt)*) => {
        $crate::piece::marks($tokens, $at, stringify!($marks));
        $crate::piece::put_each!($tokens $at $($rest)*);
    };
}

pub(crate) use {piece, put, put_each};

pub(crate) fn group(
    tokens: &mut TokenStream,
    at: Span,
    delimiter: Delimiter,
    write: impl FnOnce(&mut TokenStream),
) {
    let mut inner = TokenStream::new();
    write(&mut inner);
    let mut group = Group::new(delimiter, inner);
    group.set_span(at);
    tokens.append(group);
}

pub(crate) fn word(tokens: &mut TokenStream, at: Span, word: &str) {
    tokens.append(Ident::new(word, at));
}

pub(crate) fn lifetime(tokens: &mut TokenStream, at: Span, lifetime: &str) {
    mark(tokens, at, b'\'', Spacing::Joint);
    word(tokens, at, &lifetime[1..]);
}

/// One or more of punctuation that belong together.
pub(crate) fn marks(tokens: &mut TokenStream, at: Span, marks: &str) {
    let mut rest = marks.as_bytes();
    while let [first, after @ ..] = rest {
        let spacing = if after.is_empty() { Spacing::Alone } else { Spacing::Joint };
        mark(tokens, at, *first, spacing);
        rest = after;
    }
}

fn mark(tokens: &mut TokenStream, at: Span, mark: u8, spacing: Spacing) {
    let mut punct = Punct::new(char::from(mark), spacing);
    punct.set_span(at);
    tokens.append(punct);
}

#[cfg(test)]
mod tests {
    use proc_macro2::{Span, TokenStream};
    use quote::{ToTokens, quote};

    #[test]
    fn a_piece_is_what_quote_makes_of_it() {
        let (one, many) = (quote!(Vec<u8>), [quote!(a), quote!(b)]);
        let empty: [TokenStream; 0] = [];
        let quoted = quote! {
            #[allow(unused)] fn f<'a, T: 'static>(_: &'a T, x: #one) -> ::core::f::<Box<_>> where {
                let c = |&_| [#(#many),*]; f(#(#many,)*); { #(#many)* } #(#empty),* c && d => 'b
            }
        };
        let made = piece! {Span::call_site()=>
            #[allow(unused)] fn f<'a, T: 'static>(_: &'a T, x: #one) -> ::core::f::<Box<_>> where {
                let c = |&_| [#(#many),*]; f(#(#many,)*); { #(#many)* } #(#empty),* c && d => 'b
            }
        };
        let made = made.to_token_stream();
        assert_eq!(made.to_string(), quoted.to_string());
        // Spacing too, which the text does not show.
        assert_eq!(format!("{made:?}"), format!("{quoted:?}"));
    }

    #[test]
    fn a_piece_is_written_behind_what_is_there() {
        let mut tokens = quote!(a);
        let there = &mut tokens;
        put!(there, Span::call_site()=> . b());
        assert_eq!(tokens.to_string(), quote!(a.b()).to_string());
    }
}
