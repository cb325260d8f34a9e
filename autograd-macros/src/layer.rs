//! The tensor form of `#[py_layer]`.

use proc_macro2::TokenStream;
use quote::quote;

use crate::args::{self, Args};
use crate::check::forward::not_floats;
use crate::errors::Errors;
use crate::expansion::{Expansion, Mode};
use crate::front::Form;
use crate::library::private_path;
use crate::model::{Block, Layer};
use crate::tokens::mentions;
use crate::{check, check_arg, elementwise, expand, fallback, front, messages, parse};

/// The attribute as a function. `verifies`: whether calls of the op can be verified at run time.
pub(crate) fn layer(arguments: TokenStream, block: TokenStream, verifies: bool) -> TokenStream {
    let asked = elementwise::has_elementwise(&arguments);
    // An op of tensors mentions `Tensor` and a formula mentions `Real`, whatever the attribute says.
    let is_formula = match asked {
        true => mentions(&block, "Real") || !mentions(&block, "ForwardContext"),
        false => !mentions(&block, "Tensor") && mentions(&block, "Real"),
    };
    if is_formula {
        return elementwise::formula(arguments, block, asked);
    }
    front::run::<Layer>(block, |errors| {
        let mut args = args::parse(arguments, &args::LAYER, errors);
        args.verifies = verifies;
        if let Some(asked) = args.elementwise {
            errors.at_span(asked, messages::elementwise_of_tensors());
        }
        args
    })
}

impl Form for Layer {
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
        check_arg::check(Some(self), args, errors);
    }

    fn check_bodies(&self, errors: &mut Errors) {
        check::check_bodies(self, errors);
    }

    fn is_refused(&self) -> bool {
        self.functions().any(|function| check::refused::of_signature(self, function).any())
    }

    fn expand(mut self, args: &Args, mode: Mode) -> TokenStream {
        if matches!(mode, Mode::Full) {
            let named = expand::elements::name(&mut self);
            let written = named.as_ref().map(|(written, types)| (written, types));
            let expansion = Expansion { layer: &self, args, mode, written }.tokens();
            if let Some((written, _)) = named {
                self.forward = Some(written);
            }
            let warnings = check::warn::warnings(&self, args);
            let tests = check_arg::tests(&self, args);
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
        Expansion { layer: &self, args, mode, written: None }.tokens()
    }
}
