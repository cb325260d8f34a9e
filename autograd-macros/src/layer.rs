//! `#[py_layer]`, on tensors or elementwise.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;
use syn::Path;

use crate::args::{self, Args};
use crate::check::forward::not_floats;
use crate::errors::Errors;
use crate::expansion::{Expansion, Mode};
use crate::front::Form;
use crate::library::private_path;
use crate::model::{Block, Layer};
use crate::tokens::{mentions, parts};
use crate::{
    check, check_arg, elementwise, expand, export, fallback, front, messages, parse, shapes,
};

/// The attribute as a function. `verifies`: whether calls of the op can be verified at run time.
pub(crate) fn layer(arguments: TokenStream, block: TokenStream, verifies: bool) -> TokenStream {
    let mut firsts =
        parts(arguments.clone()).into_iter().filter_map(|(part, _)| part.into_iter().next());
    let is_elementwise =
        |first: TokenTree| matches!(first, TokenTree::Ident(name) if name == "elementwise");
    let asked = firsts.any(is_elementwise);
    // An op of tensors mentions `Tensor` and a formula mentions `Real`, whatever the attribute says.
    let is_formula = match asked {
        true => mentions(&block, "Real") || !mentions(&block, "ForwardContext"),
        false => !mentions(&block, "Tensor") && mentions(&block, "Real"),
    };
    front::run::<Layer>(block, |errors| {
        let takes = if is_formula && asked { &args::ELEMENTWISE } else { &args::LAYER };
        let mut args = args::parse(arguments, takes, errors);
        (args.is_formula, args.verifies) = (is_formula, verifies);
        match args.elementwise {
            Some(asked) if !is_formula => {
                errors.at_span(asked, messages::elementwise_of_tensors());
            }
            None if is_formula && errors.is_empty() => {
                errors.at_span(Span::call_site(), messages::not_asked_for());
            }
            _ => {}
        }
        args
    })
}

impl Form for Layer {
    type Args = Args;

    const CALLS: &'static [&'static str] = &fallback::CALLS;

    fn parse(tokens: TokenStream, args: &Args, errors: &mut Errors) -> Option<Self> {
        match args.is_formula {
            true => elementwise::parse(tokens, errors),
            false => parse::parse(tokens, errors),
        }
    }

    fn library(args: &Args) -> Option<&Path> {
        args.krate.as_ref()
    }

    fn block(&self) -> &Block {
        &self.block
    }

    fn check(&self, args: &Args, errors: &mut Errors) {
        match self.is_formula {
            true => elementwise::check(self, args, errors),
            false => check::check(self, args, errors),
        }
        if let Some(line) = &args.shapes {
            match self.is_formula {
                true => errors.at(&line.word, shapes::elementwise()),
                // A parameter of a signature with errors may seem missing.
                false if errors.is_empty() => shapes::check(self, line, errors),
                false => {}
            }
        }
        if let Some(export) = args.export.as_ref().filter(|_| errors.is_empty()) {
            export::check(self, export, errors);
        }
        if let Some(word) = args.exhaustive.as_ref().filter(|_| errors.is_empty()) {
            let excluded = (args.surrogate.is_some(), args.reduce.is_some());
            check_arg::check_exhaustive(self, word, excluded, errors);
        }
        let excluded = (args.no_grad.is_some(), args.surrogate.is_some());
        check_arg::check(self, &args.checks, args.shapes.as_ref(), excluded, errors);
    }

    fn check_bodies(&self, args: &Args, errors: &mut Errors) {
        if !self.is_formula {
            check::check_bodies(self, errors);
        }
        let line = args.shapes.as_ref().filter(|_| !self.is_formula && !args.allows("shapes"));
        // A line with errors is not followed.
        let mut of_line = Errors::new();
        line.iter().for_each(|line| shapes::check(self, line, &mut of_line));
        if let Some(line) = line.filter(|_| of_line.is_empty()) {
            shapes::check_bodies(self, line, errors);
        }
    }

    fn expand(mut self, args: &Args, mode: Mode) -> TokenStream {
        if matches!(mode, Mode::Full) {
            let warnings = check::warn::warnings(&self, args);
            let tests = check_arg::tests(&self, args);
            let named = expand::elements::name(&mut self);
            // Only the user's block reports a name's style. Other names may be keywords in the macro's edition.
            for param in self.forward.iter_mut().flat_map(|forward| &mut forward.params) {
                let name = param.ident.to_string();
                if name.contains("__") || name.contains(char::is_uppercase) {
                    param.ident.set_span(param.ident.span().resolved_at(Span::call_site()));
                }
            }
            let expansion = Expansion { layer: &self, args, mode, named: named.as_ref() }.tokens();
            return quote!(#expansion #warnings #tests);
        }
        let path = private_path(args.krate.as_ref());
        for (parameter, _) in not_floats(&self) {
            let mut params = self.block.generics.type_params_mut();
            if let Some(parameter) = params.find(|param| param.ident == parameter) {
                parameter.colon_token.get_or_insert_with(Default::default);
                parameter.bounds.push(syn::parse_quote!(#path::Float));
            }
        }
        Expansion { layer: &self, args, mode, named: None }.tokens()
    }
}
