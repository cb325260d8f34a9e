//! `#[py_layer]`: a form of the macro.

use proc_macro2::TokenStream;
use quote::quote;

use crate::args::{self, Args};
use crate::check::forward::not_floats;
use crate::errors::Errors;
use crate::expansion::{Expansion, Mode};
use crate::front::Form;
use crate::library::private_path;
use crate::model::{Block, Function, Layer};
use crate::{check, check_arg, elementwise, expand, fallback, front, parse};

/// The attribute as a plain function. `verifies`: whether the op can be verified while it runs.
pub(crate) fn layer(arguments: TokenStream, block: TokenStream, verifies: bool) -> TokenStream {
    match (elementwise::is_asked_for(&arguments), verifies) {
        (true, _) => front::run::<elementwise::Op>(arguments, block),
        (_, false) => front::run::<Op<false>>(arguments, block),
        (_, true) => front::run::<Op<true>>(arguments, block),
    }
}

struct Op<const VERIFIES: bool>(Layer);

impl<const VERIFIES: bool> Form for Op<VERIFIES> {
    type Args = Args;

    const CALLS: &'static [&'static str] = &fallback::CALLS;

    fn args(tokens: TokenStream, errors: &mut Errors) -> Args {
        args::parse(tokens, &args::LAYER, errors)
    }

    fn parse(tokens: TokenStream, _: &Args, errors: &mut Errors) -> Option<Self> {
        parse::parse(tokens, errors).map(Self)
    }

    fn block(&self) -> &Block {
        &self.0.block
    }

    fn functions(&self) -> Vec<&Function> {
        self.0.functions().collect()
    }

    fn check(&self, args: &Args, errors: &mut Errors) {
        check::check(&self.0, args, errors);
        check_arg::check(Some(&self.0), args, errors);
    }

    fn check_bodies(&self, errors: &mut Errors) {
        check::check_bodies(&self.0, errors);
    }

    fn is_refused(&self) -> bool {
        self.0.functions().any(|function| check::refused::of_signature(&self.0, function).any())
    }

    fn expand(mut self, args: &Args, mode: Mode) -> TokenStream {
        if matches!(mode, Mode::Full) {
            let named = expand::elements::name(&mut self.0);
            let written = named.as_ref().map(|(written, types)| (written, types));
            let layer = &self.0;
            let expansion = Expansion { layer, args, mode, written, verifies: VERIFIES }.tokens();
            if let Some((written, _)) = named {
                self.0.forward = Some(written);
            }
            let layer = &self.0;
            let warnings = check::warn::warnings(layer, args);
            let tests = check_arg::tests(layer, args, false);
            return quote!(#expansion #warnings #tests);
        }
        let path = private_path(args.krate.as_ref());
        for (parameter, _) in not_floats(&self.0) {
            let mut params = self.0.block.generics.type_params_mut();
            if let Some(parameter) = params.find(|param| param.ident == parameter) {
                parameter.colon_token.get_or_insert_with(Default::default);
                parameter.bounds.push(syn::parse_quote!(#path::Float));
            }
        }
        Expansion { layer: &self.0, args, mode, written: None, verifies: false }.tokens()
    }
}
