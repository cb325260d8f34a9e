//! `#[py_layer(elementwise)]`: a formula for each element instead of code on tensors.
//!
//! The stages and the expansion after an error are those of the tensor form.

mod check;
mod expand;
mod messages;
mod model;
mod parse;
mod scalar;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;

use crate::args::{self, Args};
use crate::errors::Errors;
use crate::expand::elements;
use crate::expansion::{Expansion, Mode};
use crate::front::Form;
use crate::model::{Block, Layer};
use crate::tokens::parts;
use crate::{check_arg, fallback, front};
pub(crate) use scalar::scalar_op;

pub(crate) fn has_elementwise(arguments: &TokenStream) -> bool {
    let mut firsts =
        parts(arguments.clone()).into_iter().filter_map(|(part, _)| part.into_iter().next());
    firsts.any(|first| matches!(first, TokenTree::Ident(name) if name == "elementwise"))
}

/// `asked`: whether `elementwise` is among the arguments.
pub(crate) fn formula(arguments: TokenStream, block: TokenStream, asked: bool) -> TokenStream {
    front::run::<Formula>(block, |errors| {
        let takes = if asked { &args::ELEMENTWISE } else { &args::LAYER };
        let args = args::parse(arguments, takes, errors);
        if !asked && errors.is_empty() {
            errors.at_span(Span::call_site(), messages::not_asked_for());
        }
        args
    })
}

struct Formula(Layer);

impl Form for Formula {
    type Args = Args;

    const CALLS: &'static [&'static str] = &fallback::CALLS;

    fn parse(tokens: TokenStream, _: &Args, errors: &mut Errors) -> Option<Self> {
        parse::parse(tokens, errors).map(Self)
    }

    fn block(&self) -> &Block {
        &self.0.block
    }

    fn check(&self, args: &Args, errors: &mut Errors) {
        check::check(&self.0, args, errors);
        check_arg::check(Some(&self.0), args, errors);
    }

    fn is_refused(&self) -> bool {
        self.0.is_refused()
    }

    fn expand(mut self, args: &Args, mode: Mode) -> TokenStream {
        let full = matches!(mode, Mode::Full);
        let tests = full.then(|| check_arg::tests(&self.0, args));
        let named = full.then(|| elements::name(&mut self.0)).flatten();
        let written = named.as_ref().map(|(written, types)| (written, types));
        let expansion =
            expand::Elementwise(Expansion { layer: &self.0, args, mode, written }).tokens();
        quote!(#expansion #tests)
    }
}
