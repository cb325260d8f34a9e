//! The formulas of forward, of backward and of the derived gradients, each a struct with its parameters.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};

use crate::elementwise::parse::{FormulaValue, Kind};
use crate::expansion::Expansion;
use crate::library::private;
use crate::model::{Derivative, Forward, Param, Returned};
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

impl Expansion<'_> {
    /// The op's constants, and its formulas: a struct of the plain parameters with a number for each formula.
    pub(crate) fn formulas(&self) -> Vec<TokenStream> {
        let Some(forward) = &self.layer.forward else { return Vec::new() };
        let (p, name, fields) = (private(), self.struct_name("Formula"), self.plain(forward, None));
        let all = self.given(forward);
        let structure = quote! {
            #[derive(Clone)]
            struct #name<const __WHICH: ::core::primitive::usize> { #(#fields),* }
        };
        let backward = self.layer.backward.as_ref().map(|of| self.call_backward(forward, of));
        let bodies = [self.value(forward, None), self.derived(forward)].into_iter().chain(backward);
        let formulas = all.iter().zip(bodies).enumerate().map(|(which, (given, body))| {
            let (i, m, o) = (given.numbers.len(), given.masks.len(), given.results);
            let function = self.function(&Ident::new("call", Span::mixed_site()), given, &body);
            quote!(impl #p::elementwise::Lanewise<#i, #m, #o> for #name<#which> { #function })
        });
        let own = [self.formula_info(forward), structure, self.pair(forward)];
        own.into_iter().chain(formulas).collect()
    }

    /// The arguments of each formula: forward, the derived gradients, and a backward written by hand.
    pub(super) fn given(&self, forward: &Forward) -> Vec<Given> {
        let (outputs, gradients) = (forward.outputs.parts.len(), self.layer.differentiable().len());
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
        let named = self.layer.backward.as_ref().map(|of| of.named_values(forward));
        let backward = named.map(|named| given(gradients, &|value| named.contains(value)));
        [all, derived].into_iter().chain(backward).collect()
    }

    fn formula_info(&self, forward: &Forward) -> TokenStream {
        let p = private();
        let name = plain_name(&self.layer.name);
        let named = |kind| forward.of(kind).map(|of| plain_name(&of.ident)).collect::<Vec<_>>();
        let (reals, masks) = (named(Kind::Real), named(Kind::Mask));
        let differentiable =
            forward.inputs().filter(|(param, _)| param.formula_kind() == Kind::Real);
        let differentiable = differentiable.map(|(_, input)| !input.stop_gradient);
        let outputs = forward.outputs.parts.len();
        let Some(given) = self.given(forward).pop() else { return TokenStream::new() };
        let has = |value| given.values.contains(&value);
        let kept = |kind: Kind| -> Vec<usize> {
            let inputs = forward.params.iter().enumerate();
            let inputs = inputs.filter(|(_, param)| param.formula_kind() == kind).enumerate();
            let kept = inputs.filter(|(_, (at, _))| has(FormulaValue::Input(*at)));
            kept.map(|(position, _)| position).collect()
        };
        let (kept_reals, kept_masks) = (kept(Kind::Real), kept(Kind::Mask));
        let kept_outputs = (0..outputs).filter(|at| has(FormulaValue::Output(*at)));
        let gradients = (0..outputs).filter(|at| has(FormulaValue::Gradient(*at)));
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

    fn function(&self, name: &Ident, given: &Given, body: &TokenStream) -> TokenStream {
        let (p, lane) = (private(), self.lane());
        let Given { numbers, masks, results, .. } = given;
        let (i, m) = (numbers.len(), masks.len());
        quote! {
            #[inline(always)]
            fn #name<#lane: #p::elementwise::Lane>(
                &self,
                [#(#numbers),*]: [#p::elementwise::Real<#lane>; #i],
                [#(#masks),*]: [#p::elementwise::Mask<#lane>; #m],
            ) -> [#p::elementwise::Real<#lane>; #results] {
                #body
            }
        }
    }

    /// The values of the formula. `along`: the input to differentiate by, if any.
    fn value(&self, forward: &Forward, along: Option<&Ident>) -> TokenStream {
        let p = private();
        let argument = |param: &Param| {
            let given = given_name(&plain_name(&param.ident));
            let ident = &param.ident;
            match (param.formula_kind(), along) {
                (Kind::Plain, _) => quote!(::core::clone::Clone::clone(&self.#ident)),
                (_, None) => quote!(#given),
                (Kind::Mask, _) => quote!(#given.for_duals()),
                (_, Some(moving)) if *moving == param.ident => {
                    quote!(#p::elementwise::Real::moving(#given, 1.0))
                }
                (_, Some(_)) => quote!(#p::elementwise::Real::constant(#given)),
            }
        };
        let op = self.callee(&self.layer.name);
        let arguments = forward.params.iter().map(argument);
        as_array(&quote!(#op::forward(#(#arguments),*)), &forward.outputs)
    }

    fn call_backward(&self, forward: &Forward, backward: &Derivative) -> TokenStream {
        let op = self.callee(&self.layer.name);
        let is_plain = |name: &str| forward.of(Kind::Plain).any(|of| plain_name(&of.ident) == name);
        let names = backward.params.iter().filter_map(|param| param.name.as_ref());
        let arguments = names.map(|ident| match plain_name(ident) {
            name if is_plain(&name) => quote!(::core::clone::Clone::clone(&self.#ident)),
            name => given_name(&name).to_token_stream(),
        });
        let call = quote!(#op::backward(#(#arguments),*));
        if backward.returns.by_name().is_some() {
            let fields = self.layer.differentiable().into_iter().map(|(_, param, _)| &param.ident);
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
        let each = self.layer.differentiable().into_iter().map(|(_, param, _)| {
            let value = self.value(forward, Some(&param.ident));
            quote!(#p::elementwise::pulled(&#value, &[#(#grads),*]))
        });
        quote!([#(#each),*])
    }
}

fn as_array(call: &TokenStream, returned: &Returned) -> TokenStream {
    if !returned.tuple {
        return quote!([#call]);
    }
    let parts: Vec<_> = (0..returned.parts.len()).map(|i| local(&format!("part{i}"))).collect();
    quote!({ let (#(#parts,)*) = #call; [#(#parts),*] })
}
