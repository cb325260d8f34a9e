//! `#[py_layer(elementwise)]`: a formula for each element instead of code on tensors.
//!
//! The stages and the expansion after an error are those of the tensor form.

mod check;
mod expand;
mod layer;
mod messages;
mod model;
mod parse;
mod scalar;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;

use crate::args::{self, Args};
use crate::errors::Errors;
use crate::expansion::Mode;
use crate::front::Form;
use crate::library::private_path;
use crate::model::{Block, Layer};
use crate::tokens::parts;
use crate::{check_arg, fallback, front};
use model::Kind;

pub(crate) use model::Op;
pub(crate) use scalar::scalar_op;

pub(crate) fn has_elementwise(arguments: &TokenStream) -> bool {
    let mut firsts =
        parts(arguments.clone()).into_iter().filter_map(|(part, _)| part.into_iter().next());
    firsts.any(|first| matches!(first, TokenTree::Ident(name) if name == "elementwise"))
}

/// `asked`: whether `elementwise` is among the arguments.
pub(crate) fn formula(arguments: TokenStream, block: TokenStream, asked: bool) -> TokenStream {
    front::run::<Op>(block, |errors| {
        let takes = if asked { &args::ELEMENTWISE } else { &args::LAYER };
        let args = args::parse(arguments, takes, errors);
        if !asked && errors.is_empty() {
            errors.at_span(Span::call_site(), messages::not_asked_for());
        }
        args
    })
}

impl Form for Op {
    type Args = Args;

    const CALLS: &'static [&'static str] = &fallback::CALLS;

    fn parse(tokens: TokenStream, _: &Args, errors: &mut Errors) -> Option<Self> {
        parse::parse(tokens, errors)
    }

    fn block(&self) -> &Block {
        &self.block
    }

    fn check(&self, args: &Args, errors: &mut Errors) {
        check::check(self, args, errors);
        if !args.checks.is_empty() {
            check_arg::check(self.of_tests(args).as_ref(), args, errors);
        }
    }

    fn is_refused(&self) -> bool {
        self.forward.iter().any(|forward| forward.of(Kind::Wrong).next().is_some())
    }

    fn expand(self, args: &Args, mode: Mode) -> TokenStream {
        let tested = matches!(mode, Mode::Full) && !args.checks.is_empty();
        let tests = tested.then(|| self.of_tests(args)).flatten();
        let tests = tests.map(|layer| check_arg::tests(&layer, args));
        let expansion = expand::Expansion { op: &self, args, mode }.tokens();
        quote!(#expansion #tests)
    }
}

impl Op {
    fn of_tests(&self, args: &Args) -> Option<Layer> {
        self.layer(&private_path(args.krate.as_ref()), false, false)
    }
}
