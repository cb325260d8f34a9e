//! `Layer::PUSH`: lends inputs and tangents to the user's `jvp`, and passes on the tangents that it returns.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use super::pull::{given, lend_arguments};
use crate::expansion::{Expansion, Mode};
use crate::library::private;
use crate::model::{Form, TensorInput};
use crate::tokens::{at, here, local, output_span};

/// The constant `PUSH`; `None` if the op has no `jvp`.
pub(crate) fn push(expansion: &Expansion<'_>) -> Option<TokenStream> {
    let jvp = expansion.layer.jvp.as_ref().filter(|_| matches!(expansion.mode, Mode::Full))?;
    let p = &private();
    let key = expansion.key();
    let raw = local("raw");
    let (saved, context, returned) = (local("saved"), local("context"), local("returned"));
    let inputs = expansion.layer.differentiable();
    let held: Vec<_> = (0..inputs.len()).map(|i| local(&format!("dual{i}"))).collect();
    let takes = inputs.iter().zip(&held).map(|((group, _, input), held)| {
        let of = form(input);
        let method = |here| quote_spanned!(here=> primal::<#of>);
        expansion.take(&input.tensor, method, *group, held)
    });
    let (primals, tangents) = jvp.params.split_at(inputs.len().min(jvp.params.len()));
    let (primals, tangents) =
        (lend_arguments(primals, &held, "input"), lend_arguments(tangents, &held, "tangent"));
    let result = jvp.returns.fallible.then(|| {
        let here = here(output_span(&jvp.function.sig.output));
        let (raw, returned) = (at(&raw, here), at(&returned, here));
        quote_spanned!(here=> let #returned = #raw.user(#returned)?;)
    });
    let outputs = expansion.layer.outputs().into_iter().enumerate();
    let wanted: Vec<_> =
        outputs.map(|(at, (ty, form, tensor))| (at, given(ty, form, tensor), tensor)).collect();
    let gives = expansion.pass_on(&jvp.returns, &wanted, None, &returned);
    let call = &jvp.function.sig.ident;
    Some(quote! {
        const PUSH: ::core::option::Option<fn(&#p::RawJvp<'_>) -> #p::Result<()>> =
            ::core::option::Option::Some(|#raw: &#p::RawJvp<'_>| {
                let #saved = #raw.saved::<Self, #key>()?;
                let #context = #raw.context::<Self, #key>(&#saved);
                #(#takes)*
                let #returned = Self::#call(&#context, #(#primals,)* #(#tangents),*);
                #result
                #gives
                #p::Result::Ok(())
            });
    })
}

fn form(input: &TensorInput) -> TokenStream {
    let tensor = &input.tensor;
    match input.form {
        Form::One => quote!(#tensor),
        Form::Optional => quote!(::core::option::Option<#tensor>),
        Form::List => quote!([#tensor]),
    }
}
