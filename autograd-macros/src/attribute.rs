//! `#[py_layer]` as a plain function: the stages, one after the other.

use proc_macro2::TokenStream;
use quote::quote;

use crate::errors::Errors;
use crate::expand::{Expansion, Mode};
use crate::library::Private;
use crate::{args, check, check_arg, elementwise, fallback, parse};

/// What becomes of a block, which can be verified while it runs or not.
pub(crate) fn layer(arguments: TokenStream, block: TokenStream, verifies: bool) -> TokenStream {
    if elementwise::is_asked_for(&arguments) {
        return elementwise::layer(arguments, block);
    }
    let mut errors = Errors::new();
    let args = args::parse(arguments, &mut errors);
    let parsed = parse::parse(block.clone(), &mut errors);
    let Some(mut layer) = parsed else {
        return fallback::of_tokens(block, errors);
    };
    if let Some(exists) = layer.exists {
        return fallback::of_existing(
            exists,
            &fallback::CALLS,
            &layer.generics,
            &layer.self_ty,
            errors,
        );
    }
    check::check(&layer, &args, &mut errors);
    check_arg::check_layer(&layer, &args, &mut errors);
    layer.wrong = check::refused::of_layer(&layer);
    if !errors.is_empty() || layer.is_broken() || layer.wrong.0 {
        return fallback::of_layer(&mut layer, &args, errors);
    }
    let reported = errors.into_tokens();
    let warnings = check::warn::warnings(&layer, &args);
    let private = Private::imported();
    let mode = Mode::Full;
    let expansion = Expansion { layer: &layer, args: &args, private, mode, verifies }.tokens();
    let tests = check_arg::layer_tests(&layer, &args);
    quote!(#reported #expansion #warnings #tests)
}
