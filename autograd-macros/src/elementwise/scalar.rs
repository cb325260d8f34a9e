//! `scalar_op!`: an elementwise op in one line.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, Expr, Token, Visibility};

use super::messages;
use crate::errors::Errors;

/// `Softplus: y = (1.0 + x.exp()).ln(), dx = dy / (1.0 + (-x).exp())`
struct ScalarOp {
    attrs: Vec<Attribute>,
    vis: Visibility,
    name: Ident,
    value: Expr,
    gradients: Vec<(Ident, Expr)>,
}

impl Parse for ScalarOp {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        let output: Ident = input.parse()?;
        if output != "y" {
            return Err(syn::Error::new(output.span(), "the value is called `y`"));
        }
        input.parse::<Token![=]>()?;
        let value = input.parse()?;
        let mut gradients = Vec::new();
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let gradient: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            gradients.push((gradient, input.parse()?));
        }
        Ok(Self { attrs, vis, name, value, gradients })
    }
}

/// The macro as a plain function: the block that says the same.
pub(crate) fn scalar_op(tokens: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let op = match ScalarOp::parse.parse2(tokens) {
        Ok(op) if !op.gradients.is_empty() => op,
        Ok(op) => {
            errors.at(&op.name, messages::scalar_form());
            return errors.into_tokens();
        }
        Err(error) => {
            errors.at_span(error.span(), messages::scalar_form());
            return errors.into_tokens();
        }
    };
    let mut inputs = Vec::new();
    for (gradient, _) in &op.gradients {
        match gradient.to_string().strip_prefix('d') {
            Some(input) if !input.is_empty() => {
                inputs.push(Ident::new(input, gradient.span()));
            }
            _ => errors.at(gradient, messages::scalar_gradient(&gradient.to_string())),
        }
    }
    if !errors.is_empty() {
        return errors.into_tokens();
    }
    let ScalarOp { attrs, vis, name, value, gradients } = op;
    let expressions: Vec<&Expr> = gradients.iter().map(|(_, expression)| expression).collect();
    // Backward is given what it names, and nothing else is kept.
    let own = [format_ident!("y"), format_ident!("dy")];
    let named = |ident: &&Ident| mentions(quote!(#(#expressions)*), &ident.to_string());
    let given: Vec<&Ident> = inputs.iter().chain(&own).filter(named).collect();
    let path = crate::library::private_path(None);
    let real = quote!(#path::elementwise::Real<L>);
    let returned = match expressions.len() {
        1 => quote!(#real),
        n => {
            let reals = vec![real.clone(); n];
            quote!((#(#reals),*))
        }
    };
    let gradients = match expressions.as_slice() {
        [one] => quote!(#one),
        many => quote!((#(#many),*)),
    };
    let block = quote! {
        #(#attrs)*
        impl #name {
            #vis fn forward<L: #path::elementwise::Lane>(
                #(#inputs: #real),*
            ) -> #real {
                #value
            }

            fn backward<L: #path::elementwise::Lane>(
                #(#given: #real),*
            ) -> #returned {
                #gradients
            }
        }
    };
    super::layer(quote!(elementwise), block)
}

fn mentions(tokens: TokenStream, name: &str) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(group.stream(), name),
        _ => false,
    })
}
