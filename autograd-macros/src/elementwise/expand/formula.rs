//! The formulas of forward, of backward and of the derived gradients, each a struct with its parameters.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};

use super::Elementwise;
use crate::elementwise::model::{FormulaValue, Kind};
use crate::library::private;
use crate::model::{Derivative, Forward, Returned};
use crate::tokens::{local, plain_name};

/// The arguments of a formula.
#[derive(Default)]
pub(super) struct Given {
    pub(super) numbers: Vec<Ident>,
    pub(super) masks: Vec<Ident>,
    /// What they are: inputs, outputs, gradients, in this order.
    values: Vec<FormulaValue>,
    pub(super) results: usize,
}

/// The local variable for the argument of this name.
fn given_name(name: &str) -> Ident {
    local(&format!("given_{name}"))
}

impl Elementwise<'_> {
    /// The op's constants, and its formulas: a struct of the plain parameters with a number for each formula.
    pub(super) fn formulas(&self, forward: &Forward) -> Vec<TokenStream> {
        let (name, fields) = (self.struct_name("Formula"), self.plain(forward, None));
        let structure = quote! {
            #[derive(Clone)]
            struct #name<const WHICH: ::core::primitive::usize> { #(#fields),* }
        };
        let backward = self.0.layer.backward.as_ref().map(|of| self.call_backward(forward, of));
        let bodies = [self.call_forward(forward, None), self.derived(forward)];
        let formulas = self.given(forward).into_iter().zip(bodies.into_iter().chain(backward));
        let formulas =
            formulas.enumerate().map(|(which, (given, body))| self.formula(which, &given, &body));
        let own = [self.info(forward), structure, self.pair(forward)];
        own.into_iter().chain(formulas).collect()
    }

    /// The arguments of each formula: forward, the derived gradients, and a backward written by hand.
    pub(super) fn given(&self, forward: &Forward) -> Vec<Given> {
        let (outputs, gradients) =
            (forward.outputs.parts.len(), self.0.layer.differentiable().len());
        let given = |results, keeps: &dyn Fn(&FormulaValue) -> bool| {
            let mut given = Given { results, ..Given::default() };
            for (name, value) in forward.names().into_iter().filter(|(_, value)| keeps(value)) {
                let kind = match value {
                    FormulaValue::Input(at) => forward.params[at].formula_kind(),
                    FormulaValue::Output(_) | FormulaValue::Gradient(_) => Kind::Real,
                };
                match kind {
                    Kind::Real => given.numbers.push(given_name(&name)),
                    Kind::Mask => given.masks.push(given_name(&name)),
                    Kind::Plain => continue,
                }
                given.values.push(value);
            }
            given
        };
        let all = given(outputs, &|value| matches!(value, FormulaValue::Input(_)));
        let derived = given(gradients, &|value| !matches!(value, FormulaValue::Output(_)));
        let named = self.0.layer.backward.as_ref().map(|of| of.named_values(forward));
        let backward = named.map(|named| given(gradients, &|value| named.contains(value)));
        [all, derived].into_iter().chain(backward).collect()
    }

    fn info(&self, forward: &Forward) -> TokenStream {
        let p = private();
        let name = plain_name(&self.0.layer.name);
        let reals: Vec<_> = forward.of(Kind::Real).map(|param| plain_name(&param.ident)).collect();
        let differentiable =
            forward.inputs().filter(|(param, _)| param.formula_kind() == Kind::Real);
        let differentiable = differentiable.map(|(_, input)| !input.stop_gradient);
        let masks: Vec<_> = forward.of(Kind::Mask).map(|param| plain_name(&param.ident)).collect();
        let outputs = forward.outputs.parts.len();
        let Some(given) = self.given(forward).pop() else { return TokenStream::new() };
        let kept = |kind: Kind| -> Vec<usize> {
            let inputs =
                forward.params.iter().enumerate().filter(|(_, param)| param.formula_kind() == kind);
            let kept = inputs
                .enumerate()
                .filter(|(_, (at, _))| given.values.contains(&FormulaValue::Input(*at)));
            kept.map(|(position, _)| position).collect()
        };
        let (kept_reals, kept_masks) = (kept(Kind::Real), kept(Kind::Mask));
        let kept_outputs =
            (0..outputs).filter(|at| given.values.contains(&FormulaValue::Output(*at)));
        let gradients =
            (0..outputs).filter(|at| given.values.contains(&FormulaValue::Gradient(*at)));
        let reduction = match &self.0.args.reduce {
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

    fn formula(&self, which: usize, given: &Given, body: &TokenStream) -> TokenStream {
        let (p, name, lane) = (private(), self.struct_name("Formula"), self.lane());
        let Given { numbers, masks, results, .. } = given;
        let (i, m) = (numbers.len(), masks.len());
        quote! {
            impl #p::elementwise::Lanewise<#i, #m, #results> for #name<#which> {
                #[inline(always)]
                fn call<#lane: #p::elementwise::Lane>(
                    &self,
                    [#(#numbers),*]: [#p::elementwise::Real<#lane>; #i],
                    [#(#masks),*]: [#p::elementwise::Mask<#lane>; #m],
                ) -> [#p::elementwise::Real<#lane>; #results] {
                    #body
                }
            }
        }
    }

    /// A call of forward, with an array as result. `along`: the input to differentiate by, if any.
    fn call_forward(&self, forward: &Forward, along: Option<&Ident>) -> TokenStream {
        let p = private();
        let op = &self.0.layer.name;
        let arguments = forward.params.iter().map(|param| {
            let ident = given_name(&plain_name(&param.ident));
            match (param.formula_kind(), along) {
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

    fn call_backward(&self, forward: &Forward, backward: &Derivative) -> TokenStream {
        let op = &self.0.layer.name;
        let names = backward.params.iter().filter_map(|param| param.name.as_ref());
        let arguments = names.map(|ident| {
            let name = plain_name(ident);
            match forward.of(Kind::Plain).find(|param| plain_name(&param.ident) == name) {
                Some(param) => clone_of(&param.ident),
                None => given_name(&name).to_token_stream(),
            }
        });
        let call = quote!(<#op>::backward(#(#arguments),*));
        if backward.returns.by_name().is_some() {
            let fields = self.0.layer.differentiable().into_iter().map(|(param, _)| &param.ident);
            let grads = local("grads");
            return quote!({ let #grads = #call; [#(#grads.#fields),*] });
        }
        as_array(&call, &backward.returns)
    }

    /// The gradients, computed with dual numbers by the same formula.
    fn derived(&self, forward: &Forward) -> TokenStream {
        let p = private();
        let grads: Vec<_> = (0..forward.outputs.parts.len())
            .map(|k| given_name(&format!("d{}", forward.output_name(k))))
            .collect();
        let each = self.0.layer.differentiable().into_iter().map(|(param, _)| {
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

fn as_array(call: &TokenStream, returned: &Returned) -> TokenStream {
    if !returned.tuple {
        return quote!([#call]);
    }
    let parts: Vec<_> = (0..returned.parts.len()).map(|i| local(&format!("part{i}"))).collect();
    quote!({ let (#(#parts,)*) = #call; [#(#parts),*] })
}
