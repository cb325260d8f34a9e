//! The stages of all forms: arguments, parsing, checks, expansion.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Path;

use crate::errors::Errors;
use crate::expansion::Mode;
use crate::fallback;
use crate::model::{Block, Function};

pub(crate) trait Form: Sized {
    type Args;

    /// The names that callers of an op use.
    const CALLS: &'static [&'static str];

    /// Parses the block; `None` if the tokens are not an impl block of an op.
    fn parse(tokens: TokenStream, args: &Self::Args, errors: &mut Errors) -> Option<Self>;

    /// The path of the library, if it was given.
    fn library(args: &Self::Args) -> Option<&Path>;

    fn block(&self) -> &Block;

    fn check(&self, args: &Self::Args, errors: &mut Errors);

    fn check_bodies(&self, _: &Self::Args, _: &mut Errors) {}

    fn expand(self, args: &Self::Args, mode: Mode) -> TokenStream;
}

pub(crate) fn run<F: Form>(
    block: TokenStream,
    args: impl FnOnce(&mut Errors) -> F::Args,
) -> TokenStream {
    let mut errors = Errors::new();
    let args = args(&mut errors);
    let Some(form) = F::parse(block.clone(), &args, &mut errors) else {
        return fallback::of_tokens(block, errors);
    };
    if form.block().of_trait {
        let reported = fallback::of_trait(F::CALLS, form.block(), errors);
        return quote! {
            #[allow(unexpected_cfgs)]
            const _: () = { #[cfg(rust_analyzer)] #block };
            #reported
        };
    }
    form.check(&args, &mut errors);
    let mut found = Errors::new();
    form.check_bodies(&args, &mut found);
    // The compiler has reported a body with a syntax error. Other mistakes in such a body may follow from it.
    if found.is_empty() || form.block().rules().all(Function::is_read) {
        errors.extend(found);
    }
    let completions = errors.completions(F::library(&args));
    let refused = form.block().has_wrong_type() || !form.block().broken.is_empty();
    let (mode, reported) = fallback::mode(&form.block().name, errors, refused);
    let expansion = form.expand(&args, mode);
    // The user's code first: an editor looks at the first token of an expansion that is at its cursor.
    quote!(#completions #expansion #reported)
}
