//! The formulas of forward, of backward and of the derived gradients, each a struct with its parameters.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};

use super::{Expansion, Given, given_name};
use crate::elementwise::model::{Backward, FormulaValue, Forward, Kind};
use crate::library::private;
use crate::model::Returned;
use crate::tokens::plain_name;

impl Expansion<'_> {
    /// The op's constants, and its formulas: a struct of the plain parameters with a number for each formula.
    pub(super) fn formulas(&self, forward: &Forward) -> TokenStream {
        let (info, pair, name) =
            (self.info(forward), self.pair(forward), self.struct_name("Formula"));
        let fields = self.plain(forward, None);
        let backward = self.op.backward.as_ref().map(|of| self.call_backward(forward, of));
        let bodies = [self.call_forward(forward, None), self.derived(forward)];
        let formulas = self.given(forward).into_iter().zip(bodies.into_iter().chain(backward));
        let formulas = formulas
            .enumerate()
            .map(|(which, ((given, outputs), body))| self.formula(which, &given, outputs, body));
        quote! {
            #info
            #[derive(Clone)]
            struct #name<const WHICH: ::core::primitive::usize> { #(#fields),* }
            #(#formulas)*
            #pair
        }
    }

    /// The arguments and the number of results of each formula: forward, the derived gradients, and a
    /// backward written by hand.
    pub(super) fn given(&self, forward: &Forward) -> Vec<(Given, usize)> {
        let gradients = forward.differentiable().len();
        let given = |keeps: &dyn Fn(&FormulaValue) -> bool| Given::new(forward, keeps);
        let all = given(&|value| matches!(value, FormulaValue::Input(_)));
        let derived = given(&|value| !matches!(value, FormulaValue::Output(_)));
        let named = self.op.backward.as_ref().map(|of| of.named_values(forward));
        let backward = named.map(|named| (given(&|value| named.contains(value)), gradients));
        let own = [(all, forward.outputs.parts.len()), (derived, gradients)];
        own.into_iter().chain(backward).collect()
    }

    pub(super) fn info(&self, forward: &Forward) -> TokenStream {
        let p = private();
        let name = plain_name(&self.op.name);
        let reals: Vec<_> = forward.of(Kind::Real).map(|param| plain_name(&param.ident)).collect();
        let differentiable = forward.of(Kind::Real).map(|param| !param.stop_gradient);
        let masks: Vec<_> = forward.of(Kind::Mask).map(|param| plain_name(&param.ident)).collect();
        let outputs = forward.outputs.parts.len();
        let Some((given, _)) = self.given(forward).pop() else { return TokenStream::new() };
        let kept = |kind: Kind| -> Vec<usize> {
            let inputs = forward.params.iter().enumerate().filter(|(_, param)| param.kind == kind);
            let kept =
                inputs.enumerate().filter(|(_, (at, _))| given.has(&FormulaValue::Input(*at)));
            kept.map(|(position, _)| position).collect()
        };
        let (kept_reals, kept_masks) = (kept(Kind::Real), kept(Kind::Mask));
        let kept_outputs = (0..outputs).filter(|at| given.has(&FormulaValue::Output(*at)));
        let gradients = (0..outputs).filter(|at| given.has(&FormulaValue::Gradient(*at)));
        let reduction = match &self.args.reduce {
            None => quote!(#p::elementwise::Reduction::None),
            Some(reduce) => {
                let which = if reduce.name == "sum" { quote!(Sum) } else { quote!(Mean) };
                let axes = &reduce.axes;
                quote!(#p::elementwise::Reduction::#which(#p::Cow::Borrowed(&[#(#axes),*])))
            }
        };
        let info = self.struct_name("Info");
        quote! {
            static #info: #p::elementwise::Info = #p::elementwise::Info {
                name: #name,
                reals: #p::Cow::Borrowed(&[#(#reals),*]),
                differentiable: #p::Cow::Borrowed(&[#(#differentiable),*]),
                masks: #p::Cow::Borrowed(&[#(#masks),*]),
                outputs: #outputs,
                keeps_reals: #p::Cow::Borrowed(&[#(#kept_reals),*]),
                keeps_masks: #p::Cow::Borrowed(&[#(#kept_masks),*]),
                keeps_outputs: #p::Cow::Borrowed(&[#(#kept_outputs),*]),
                gradients: #p::Cow::Borrowed(&[#(#gradients),*]),
                reduction: #reduction,
            };
        }
    }

    fn formula(
        &self,
        which: usize,
        given: &Given,
        outputs: usize,
        body: TokenStream,
    ) -> TokenStream {
        let (p, name) = (private(), self.struct_name("Formula"));
        let names =
            |of: &[(Ident, FormulaValue)]| of.iter().map(|(name, _)| name.clone()).collect();
        let (reals, masks): (Vec<_>, Vec<_>) = (names(&given.numbers), names(&given.masks));
        let (i, m, lane) = (reals.len(), masks.len(), self.lane());
        quote! {
            impl #p::elementwise::Lanewise<#i, #m, #outputs> for #name<#which> {
                #[inline(always)]
                fn call<#lane: #p::elementwise::Lane>(
                    &self,
                    [#(#reals),*]: [#p::elementwise::Real<#lane>; #i],
                    [#(#masks),*]: [#p::elementwise::Mask<#lane>; #m],
                ) -> [#p::elementwise::Real<#lane>; #outputs] {
                    #body
                }
            }
        }
    }

    /// A call of forward, with an array as result. `along`: the input to differentiate by, if any.
    pub(super) fn call_forward(&self, forward: &Forward, along: Option<&Ident>) -> TokenStream {
        let p = private();
        let op = &self.op.name;
        let arguments = forward.params.iter().map(|param| {
            let ident = given_name(&plain_name(&param.ident));
            match (param.kind, along) {
                (Kind::Plain, _) => clone_of(&param.ident),
                (_, None) => quote!(#ident),
                (Kind::Mask, _) => quote!(#ident.for_duals()),
                (Kind::Real, Some(moving)) if *moving == param.ident => {
                    quote!(#p::elementwise::Real::moving(#ident, 1.0))
                }
                (_, Some(_)) => quote!(#p::elementwise::Real::constant(#ident)),
            }
        });
        let call = quote!(<#op>::forward(#(#arguments),*));
        as_array(&call, &forward.outputs)
    }

    pub(super) fn call_backward(&self, forward: &Forward, backward: &Backward) -> TokenStream {
        let op = &self.op.name;
        let arguments = backward.params.iter().map(|(ident, _)| {
            let name = plain_name(ident);
            match forward.of(Kind::Plain).find(|param| plain_name(&param.ident) == name) {
                Some(param) => clone_of(&param.ident),
                None => given_name(&name).to_token_stream(),
            }
        });
        let call = quote!(<#op>::backward(#(#arguments),*));
        if backward.returned.by_name().is_some() {
            let fields = forward.differentiable().into_iter().map(|param| &param.ident);
            let grads = crate::tokens::local("grads");
            return quote!({ let #grads = #call; [#(#grads.#fields),*] });
        }
        as_array(&call, &backward.returned)
    }

    /// The gradients, computed with dual numbers by the same formula.
    pub(super) fn derived(&self, forward: &Forward) -> TokenStream {
        let p = private();
        let grads: Vec<_> = (0..forward.outputs.parts.len())
            .map(|k| given_name(&format!("d{}", forward.output(k))))
            .collect();
        let each = forward.differentiable().into_iter().map(|param| {
            let call = self.call_forward(forward, Some(&param.ident));
            quote!(#p::elementwise::pulled(&#call, &[#(#grads),*]))
        });
        quote!([#(#each),*])
    }
}

/// The clone of a plain parameter of a formula.
fn clone_of(ident: &Ident) -> TokenStream {
    quote!(::core::clone::Clone::clone(&self.#ident))
}

pub(super) fn as_array(call: &TokenStream, returned: &Returned) -> TokenStream {
    if !returned.tuple {
        return quote!([#call]);
    }
    let parts: Vec<_> =
        (0..returned.parts.len()).map(|i| crate::tokens::local(&format!("part{i}"))).collect();
    quote!({ let (#(#parts,)*) = #call; [#(#parts),*] })
}
