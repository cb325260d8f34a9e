//! From the model to code: the user's block, the struct, the two formulas, `apply`, the builder.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, GenericParam, Signature, Type};

use super::args::Args;
use super::model::{Backward, Forward, Item, Kind, Meant, Op, Param};
use crate::expand::{Mode, private_name};
use crate::library::{import, private_path};
use crate::model::{Function, Layer, plain_name};

pub(crate) struct Expansion<'a> {
    pub(crate) op: &'a Op,
    pub(crate) args: &'a Args,
    /// Whether the block passed its checks; else nothing runs, and all that can be named exists.
    pub(crate) valid: bool,
}

impl Expansion<'_> {
    pub(crate) fn tokens(&self) -> TokenStream {
        let structure = self.structure();
        let block = self.user_block();
        let cfg: Vec<_> = self.op.attrs.iter().filter(|attr| is(attr, &["cfg"])).collect();
        let import = import(self.args.common.krate.as_ref());
        let inside = match &self.op.forward {
            Some(forward) if self.valid => {
                let formulas = self.formulas(forward);
                let apply = self.apply(forward);
                let with = self.with(forward);
                quote!(#formulas #apply #with)
            }
            Some(forward) => {
                let (apply, with) = (self.apply(forward), self.with(forward));
                quote!(#apply #with)
            }
            None => TokenStream::new(),
        };
        let test = self.test();
        // The struct of the gradients is seen by this block only.
        let block = match self.grads() {
            None => block,
            Some(grads) => quote! {
                #(#cfg)*
                const _: () = {
                    #grads
                    #block
                };
            },
        };
        quote! {
            #structure
            #block
            #(#cfg)*
            #[allow(
                non_camel_case_types, non_snake_case, non_upper_case_globals, dead_code, unreachable_pub, unused_qualifications,
                elided_lifetimes_in_paths, private_interfaces, missing_debug_implementations,
                missing_copy_implementations, single_use_lifetimes, unused_lifetimes, clippy::all,
                clippy::pedantic, clippy::nursery
            )]
            const _: () = {
                #import
                #inside
            };
            #test
        }
    }

    fn vis(&self) -> TokenStream {
        let vis = self.op.forward.as_ref().map(|forward| &forward.function.vis);
        vis.map_or_else(TokenStream::new, ToTokens::to_token_stream)
    }

    fn structure(&self) -> TokenStream {
        let attrs = self.op.attrs.iter().filter(|attr| !is(attr, &["expect"]));
        let documented = self.op.attrs.iter().any(|attr| is(attr, &["doc"]));
        let doc = (!documented).then(|| quote!(#[doc = "An elementwise op."]));
        let (vis, name) = (self.vis(), &self.op.name);
        quote! {
            #doc #(#attrs)*
            #[allow(dead_code, missing_copy_implementations)]
            #vis struct #name;
        }
    }

    /// `Grads`, where backward returns it: a field for each differentiable input.
    fn grads(&self) -> Option<TokenStream> {
        let forward = self.op.forward.as_ref()?;
        self.op.backward.as_ref().filter(|backward| backward.grads)?;
        let path = private_path(self.args.common.krate.as_ref());
        let fields = forward.differentiable().into_iter().map(|param| &param.ident);
        let grads = Ident::new("Grads", Span::call_site());
        Some(quote! {
            #[allow(dead_code, missing_docs, missing_debug_implementations)]
            struct #grads<L: #path::elementwise::Lane> {
                #(#fields: #path::elementwise::Real<L>),*
            }
        })
    }

    /// The user's functions: inlined into the loops, and generic where that was left out.
    fn user_block(&self) -> TokenStream {
        let lints = ["allow", "warn", "deny", "forbid", "expect", "cfg"];
        let attrs = self.op.attrs.iter().filter(|attr| is(attr, &lints));
        let name = &self.op.name;
        let items = self.op.items.iter().map(|item| match item {
            Item::Other(tokens) => tokens.clone(),
            Item::Function(function) => self.user_function(function),
        });
        quote! {
            #(#attrs)*
            impl #name {
                #(#items)*
            }
        }
    }

    fn user_function(&self, function: &Function) -> TokenStream {
        let Function { attrs, vis, sig, body } = self.completed(function);
        let inline =
            (!attrs.iter().any(|attr| is(attr, &["inline"]))).then(|| quote!(#[inline(always)]));
        let formula = sig.ident == "forward" || sig.ident == "backward";
        // The op's docs say what it does; a public function without docs is warned about.
        let documented = attrs.iter().any(|attr| is(attr, &["doc"]));
        let doc = (formula && !documented).then(|| quote!(#[doc = "The op's formula."]));
        // Called in the formulas' expansion, which is absent after an error.
        let unused = match self.valid {
            true => quote!(#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]),
            false => quote!(#[allow(unused)]),
        };
        quote!(#doc #(#attrs)* #inline #unused #vis #sig #body)
    }

    /// `fn forward(x: Real) -> Real` becomes `fn forward<L: Lane>(x: Real<L>) -> Real<L>`.
    fn completed(&self, function: &Function) -> Function {
        let mut function = self.with_lane(function);
        let returns_grads = self.op.backward.as_ref().is_some_and(|backward| backward.grads);
        if returns_grads && function.sig.ident == "backward" {
            let lane = function.sig.generics.type_params().next().map(|param| &param.ident);
            if let (Some(lane), syn::ReturnType::Type(_, ty)) = (lane, &mut function.sig.output)
                && let Type::Path(path) = &mut **ty
                && let Some(segment) = path.path.segments.last_mut()
                && segment.arguments.is_none()
            {
                segment.arguments = syn::PathArguments::AngleBracketed(syn::parse_quote!(<#lane>));
            }
        }
        function
    }

    fn with_lane(&self, function: &Function) -> Function {
        let mut function = function.clone();
        let bare = mentions_bare(function.sig.to_token_stream());
        if !bare || function.sig.generics.type_params().next().is_some() {
            return function;
        }
        let path = private_path(self.args.common.krate.as_ref());
        let lane: GenericParam = syn::parse_quote!(L: #path::elementwise::Lane);
        let sig = complete(function.sig.to_token_stream());
        if let Ok(sig) = syn::parse2::<Signature>(sig) {
            function.sig = sig;
            function.sig.generics.params.push(lane);
        }
        let mut body = Group::new(function.body.delimiter(), complete(function.body.stream()));
        body.set_span(function.body.span());
        function.body = body;
        function
    }

    fn struct_name(&self, which: &str) -> Ident {
        format_ident!("{}{which}", self.op.name)
    }

    /// What is the same in every call, and a formula each for forward and backward.
    fn formulas(&self, forward: &Forward) -> TokenStream {
        let info = self.info(forward);
        let given = Given::all(forward);
        let outputs = forward.outputs.len();
        let call = self.call_forward(forward, None);
        let name = self.struct_name("Forward");
        let forward_formula = self.formula(forward, &name, &given, outputs, call);
        let name = self.struct_name("Derivative");
        let derived_given = Given::derived(forward);
        let differentiable = forward.differentiable().len();
        let derived =
            self.formula(forward, &name, &derived_given, differentiable, self.derived(forward));
        let backward_formula = self.op.backward.as_ref().map(|backward| {
            let given = Given::by(forward, &backward.meant(forward));
            let name = self.struct_name("Backward");
            let call = self.call_backward(forward, backward);
            self.formula(forward, &name, &given, differentiable, call)
        });
        quote!(#info #forward_formula #derived #backward_formula)
    }

    fn info(&self, forward: &Forward) -> TokenStream {
        let p = private_name();
        let name = plain_name(&self.op.name);
        let reals: Vec<_> = forward.of(Kind::Real).map(|param| plain_name(&param.ident)).collect();
        let differentiable = forward.of(Kind::Real).map(|param| !param.stop_gradient);
        let masks: Vec<_> = forward.of(Kind::Mask).map(|param| plain_name(&param.ident)).collect();
        let outputs = forward.outputs.len();
        let given = match &self.op.backward {
            Some(backward) => Given::by(forward, &backward.meant(forward)),
            None => Given::derived(forward),
        };
        let (kept_reals, kept_masks) = (&given.reals, &given.masks);
        let (kept_outputs, gradients) = (&given.outputs, &given.gradients);
        let reduction = match &self.args.reduce {
            None => quote!(#p::elementwise::Reduction::None),
            Some(reduce) => {
                let which = if reduce.name == "sum" { quote!(Sum) } else { quote!(Mean) };
                let axes = &reduce.axes;
                quote!(#p::elementwise::Reduction::#which(::std::borrow::Cow::Borrowed(&[#(#axes),*])))
            }
        };
        let info = self.struct_name("Info");
        quote! {
            static #info: #p::elementwise::Info = #p::elementwise::Info {
                name: #name,
                reals: ::std::borrow::Cow::Borrowed(&[#(#reals),*]),
                differentiable: ::std::borrow::Cow::Borrowed(&[#(#differentiable),*]),
                masks: ::std::borrow::Cow::Borrowed(&[#(#masks),*]),
                outputs: #outputs,
                keeps_reals: ::std::borrow::Cow::Borrowed(&[#(#kept_reals),*]),
                keeps_masks: ::std::borrow::Cow::Borrowed(&[#(#kept_masks),*]),
                keeps_outputs: ::std::borrow::Cow::Borrowed(&[#(#kept_outputs),*]),
                gradients: ::std::borrow::Cow::Borrowed(&[#(#gradients),*]),
                reduction: #reduction,
            };
        }
    }

    /// A struct with the plain parameters, and its formula.
    fn formula(
        &self,
        forward: &Forward,
        name: &Ident,
        given: &Given,
        outputs: usize,
        body: TokenStream,
    ) -> TokenStream {
        let p = private_name();
        let fields = forward.of(Kind::Plain).map(|param| {
            let (ident, ty) = (field(param), &param.ty);
            quote!(#ident: #ty)
        });
        let (reals, masks) = (given.names(forward), given.mask_names(forward));
        let (i, m) = (reals.len(), masks.len());
        quote! {
            #[derive(Clone)]
            struct #name { #(#fields),* }
            impl #p::elementwise::Lanewise<#i, #m, #outputs> for #name {
                #[inline(always)]
                #[allow(unused_variables)]
                fn call<L: #p::elementwise::Lane>(
                    &self,
                    [#(#reals),*]: [#p::elementwise::Real<L>; #i],
                    [#(#masks),*]: [#p::elementwise::Mask<L>; #m],
                ) -> [#p::elementwise::Real<L>; #outputs] {
                    #body
                }
            }
        }
    }

    /// A call of forward, as an array; along an input where one is named.
    fn call_forward(&self, forward: &Forward, along: Option<&Ident>) -> TokenStream {
        let p = private_name();
        let op = &self.op.name;
        let arguments = forward.params.iter().map(|param| {
            let ident = given_name(&param.ident);
            match (param.kind, along) {
                (Kind::Plain, _) => {
                    let field = field(param);
                    quote!(::core::clone::Clone::clone(&self.#field))
                }
                (_, None) => quote!(#ident),
                (Kind::Mask, _) => quote!(#ident.for_duals()),
                (Kind::Real, Some(moving)) if *moving == param.ident => {
                    quote!(#p::elementwise::Real::moving(#ident, 1.0))
                }
                (Kind::Real, Some(_)) => quote!(#p::elementwise::Real::constant(#ident)),
            }
        });
        let call = quote!(<#op>::forward(#(#arguments),*));
        as_array(&call, forward.outputs.len(), forward.tuple)
    }

    fn call_backward(&self, forward: &Forward, backward: &Backward) -> TokenStream {
        let op = &self.op.name;
        let arguments = backward.params.iter().map(|(ident, _)| {
            let name = plain_name(ident);
            let plain =
                forward.of(Kind::Plain).find(|param| plain_name(&param.ident) == name).map(field);
            match plain {
                Some(field) => quote!(::core::clone::Clone::clone(&self.#field)),
                None => given_name(ident).to_token_stream(),
            }
        });
        let call = quote!(<#op>::backward(#(#arguments),*));
        if backward.grads {
            let fields = forward.differentiable().into_iter().map(|param| &param.ident);
            let grads = crate::model::local("grads");
            return quote!({ let #grads = #call; [#(#grads.#fields),*] });
        }
        as_array(&call, backward.returned.len(), backward.tuple)
    }

    /// The gradients by forward-mode numbers over the same formula.
    fn derived(&self, forward: &Forward) -> TokenStream {
        let p = private_name();
        let grads: Vec<_> = (0..forward.outputs.len())
            .map(|k| given_name(&Ident::new(&format!("d{}", forward.output(k)), Span::call_site())))
            .collect();
        let each = forward.differentiable().into_iter().map(|param| {
            let call = self.call_forward(forward, Some(&param.ident));
            quote!(#p::elementwise::pulled(&#call, &[#(#grads),*]))
        });
        quote!([#(#each),*])
    }

    /// The inputs of `apply`, with the parameters of the function.
    fn signature(&self, forward: &Forward) -> (TokenStream, Vec<TokenStream>) {
        let p = private_name();
        let mut generics = quote!(T: #p::elementwise::Float);
        let params = forward.params.iter().enumerate().map(|(i, param)| {
            let ident = &param.ident;
            match param.kind {
                Kind::Real => quote!(#ident: &#p::Tensor<T>),
                Kind::Mask => {
                    let mask = format_ident!("M{i}");
                    generics.extend(quote!(, #mask: #p::elementwise::MaskElement));
                    quote!(#ident: &#p::Tensor<#mask>)
                }
                Kind::Plain => {
                    let ty = &param.ty;
                    quote!(#ident: #ty)
                }
            }
        });
        let params = params.collect();
        (generics, params)
    }

    fn output(&self, forward: &Forward) -> TokenStream {
        let p = private_name();
        let tensors = vec![quote!(#p::Tensor<T>); forward.outputs.len().max(1)];
        match tensors.as_slice() {
            [one] if !forward.tuple || self.op.forward.is_none() => one.clone(),
            many => quote!((#(#many,)*)),
        }
    }

    /// `apply`, `try_apply` and `check_backward`.
    fn apply(&self, forward: &Forward) -> TokenStream {
        let p = private_name();
        let (op, vis) = (&self.op.name, self.vis());
        let survives = |attr: &&Attribute| is(attr, &["doc", "must_use", "deprecated"]);
        let attrs: Vec<_> = forward.function.attrs.iter().filter(survives).collect();
        let documented = attrs.iter().any(|attr| is(attr, &["doc"]));
        let doc = (!documented).then(|| quote!(#[doc = "Runs the op on these inputs."]));
        let (generics, params) = self.signature(forward);
        let names: Vec<_> = forward.params.iter().map(|param| &param.ident).collect();
        let output = self.output(forward);
        let body = match self.valid {
            true => self.try_apply_body(forward),
            false => quote! {{
                let _ = (#(&#names,)*);
                ::core::unimplemented!("this op did not compile")
            }},
        };
        let check = self.check_backward(forward);
        quote! {
            #[allow(deprecated)]
            impl #op {
                #doc #(#attrs)*
                #[track_caller]
                #vis fn apply<#generics>(#(#params),*) -> #output {
                    #p::expect(Self::try_apply(#(#names),*))
                }

                /// As [`apply`](Self::apply), with shapes that do not fit as an error.
                ///
                /// # Errors
                ///
                /// If the inputs cannot be stretched to one shape.
                #[track_caller]
                #vis fn try_apply<#generics>(#(#params),*) -> #p::Result<#output> #body

                #check
            }
        }
    }

    /// The op with its plain parameters: its type and its value.
    fn pair(&self, forward: &Forward) -> (TokenStream, TokenStream) {
        let p = private_name();
        let fields: Vec<_> = forward
            .of(Kind::Plain)
            .map(|param| {
                let (field, ident) = (field(param), &param.ident);
                quote!(#field: ::core::clone::Clone::clone(&#ident))
            })
            .collect();
        // A struct of a formula, compiled for what it is given.
        let compiled = |name: &Ident, given: &Given, outputs: usize| {
            let (i, m) = (given.count(), given.masks.len());
            let ty = quote!(#p::elementwise::Compiled<#name, #i, #m, #outputs>);
            (ty, quote!(#p::elementwise::Compiled(#name { #(#fields),* })))
        };
        let differentiable = forward.differentiable().len();
        let (forward_type, forward_value) =
            compiled(&self.struct_name("Forward"), &Given::all(forward), forward.outputs.len());
        let (derived_type, derived_value) =
            compiled(&self.struct_name("Derivative"), &Given::derived(forward), differentiable);
        let (backward_type, backward_value, derived_type, derived_value) = match &self.op.backward {
            Some(backward) => {
                let given = Given::by(forward, &backward.meant(forward));
                let (ty, value) = compiled(&self.struct_name("Backward"), &given, differentiable);
                (ty, value, derived_type, quote!(::core::option::Option::Some(#derived_value)))
            }
            None => {
                let none = quote!(::core::option::Option::None);
                (derived_type, derived_value, quote!(#p::elementwise::Program), none)
            }
        };
        let info = self.struct_name("Info");
        (
            quote!(#p::elementwise::Pair<#forward_type, #backward_type, #derived_type>),
            quote!(#p::elementwise::Pair::new(&#info, #forward_value, #backward_value, #derived_value)),
        )
    }

    fn try_apply_body(&self, forward: &Forward) -> TokenStream {
        let p = private_name();
        let (pair_type, pair) = self.pair(forward);
        let reals: Vec<_> = forward.of(Kind::Real).map(|param| &param.ident).collect();
        let masks = forward.of(Kind::Mask).map(|param| {
            let ident = &param.ident;
            quote!(&#p::elementwise::MaskElement::mask(#ident))
        });
        let masks: Vec<_> = masks.collect();
        let (op, outputs) = (crate::model::local("op"), crate::model::local("outputs"));
        let take = quote! {
            ::core::iter::Iterator::next(&mut #outputs).unwrap_or_else(|| ::core::unreachable!())
        };
        let result = match (forward.outputs.len(), forward.tuple) {
            (1, false) => take,
            (n, _) => {
                let each = vec![take; n];
                quote!((#(#each,)*))
            }
        };
        // Without parameters, it is the same in all calls.
        let (op_value, (apply, given)) = match forward.of(Kind::Plain).next() {
            None => (quote!(static OP: #pair_type = #pair;), (quote!(apply_static), quote!(&OP))),
            Some(_) => (quote!(let #op: #pair_type = #pair;), (quote!(apply), quote!(#op))),
        };
        let verify = self.args.verify.map(|_| {
            let op = match forward.of(Kind::Plain).next() {
                None => given.clone(),
                Some(_) => quote!(&#given),
            };
            quote! {
                if ::core::cfg!(debug_assertions) {
                    #p::elementwise::verify(#op, &[#(#reals),*], &[#(#masks),*])?;
                }
            }
        });
        // Without parameters, what is true of one call is true of all.
        let plain = forward.of(Kind::Plain).next().is_some();
        let once = self.op.backward.is_some() && self.args.surrogate.is_none() && !plain;
        let checked = (once && self.args.verify.is_none()).then(|| {
            quote! {
                if ::core::cfg!(debug_assertions) {
                    static CHECKED: #p::elementwise::Checked = #p::elementwise::Checked::new();
                    CHECKED.require(&OP)?;
                }
            }
        });
        quote! {{
            #op_value
            #verify
            #checked
            let mut #outputs = ::core::iter::IntoIterator::into_iter(
                #p::elementwise::#apply::<T>(#given, &[#(#reals),*], &[#(#masks),*])?,
            );
            #p::Result::Ok(#result)
        }}
    }

    /// Compares what was written by hand with the derivative.
    fn check_backward(&self, forward: &Forward) -> Option<TokenStream> {
        self.op.backward.as_ref()?;
        if !self.valid {
            return None;
        }
        let p = private_name();
        let vis = self.vis();
        let params = forward.of(Kind::Plain).map(|param| {
            let (ident, ty) = (&param.ident, &param.ty);
            quote!(#ident: #ty)
        });
        let (_, pair) = self.pair(forward);
        Some(quote! {
            /// Compares `backward` with the derivative of `forward` at many points.
            ///
            /// # Errors
            ///
            /// [`BackwardDiffers`](#p::Error::BackwardDiffers) with the input and the point where
            /// they differ.
            #vis fn check_backward(#(#params),*) -> #p::Result<()> {
                #p::elementwise::check_backward(&#pair)
            }
        })
    }

    /// The test that is generated for a backward that was written by hand.
    fn test(&self) -> Option<TokenStream> {
        let forward = self.op.forward.as_ref().filter(|_| self.valid)?;
        self.op.backward.as_ref()?;
        if self.args.surrogate.is_some() {
            return None;
        }
        // Numbers without a default are tried with some; other types the macro knows nothing of.
        let tried = |value: f64| -> Option<Vec<TokenStream>> {
            forward
                .of(Kind::Plain)
                .map(|param| match (&param.default, crate::model::text(&param.ty).as_str()) {
                    (Some(default), _) => Some(default.to_token_stream()),
                    (None, "f64") => Some(quote!(#value)),
                    (None, _) => None,
                })
                .collect()
        };
        let plain = forward.of(Kind::Plain).any(|param| param.default.is_none());
        let values: &[f64] = if plain { &[0.25, 1.0, 2.5] } else { &[1.0] };
        let calls: Option<Vec<Vec<TokenStream>>> =
            values.iter().map(|&value| tried(value)).collect();
        let calls = calls?;
        let op = &self.op.name;
        let name = format_ident!("{}_backward_is_the_derivative", op);
        let cfg = self.op.attrs.iter().filter(|attr| is(attr, &["cfg"]));
        Some(quote! {
            #(#cfg)*
            #[cfg(test)]
            #[test]
            #[allow(non_snake_case, unnameable_test_items)]
            fn #name() {
                #(
                    if let ::core::result::Result::Err(error) = <#op>::check_backward(#(#calls),*) {
                        ::core::panic!("{error}");
                    }
                )*
            }
        })
    }

    /// Arguments by name: the builder of an op with the same inputs as tensors.
    fn with(&self, forward: &Forward) -> TokenStream {
        let p = private_name();
        let (generics, params) = self.signature(forward);
        let params = params.into_iter().zip(&forward.params).map(|(tokens, param)| {
            let default = param.default.as_ref().map(|default| quote!(#[default(#default)]));
            quote!(#default #tokens)
        });
        let (output, vis) = (self.output(forward), self.vis());
        let block = quote! {
            impl Op {
                #vis fn forward<#generics>(
                    ctx: &mut #p::ForwardContext<Self>, #(#params),*
                ) -> #output {}
            }
        };
        let mut errors = crate::errors::Errors::new();
        let layer = crate::parse::parse(block, &mut errors);
        errors.forget();
        let Some(mut layer) = layer else { return TokenStream::new() };
        let op: Ident = self.op.name.clone();
        layer.self_ty =
            Type::Path(syn::TypePath { attrs: Vec::new(), qself: None, path: op.clone().into() });
        layer.name = op;
        self.builder(&layer)
    }

    fn builder(&self, layer: &Layer) -> TokenStream {
        let mode = if self.valid { Mode::Full } else { Mode::Fallback(TokenStream::new()) };
        let (args, private) = (&self.args.common, private_name());
        crate::builder::expand(&crate::expand::Expansion { layer, args, private, mode })
    }
}

/// What a formula is given, by position: numbers that are inputs, masks, outputs, gradients.
struct Given {
    reals: Vec<usize>,
    masks: Vec<usize>,
    outputs: Vec<usize>,
    gradients: Vec<usize>,
}

impl Given {
    /// The inputs.
    fn all(forward: &Forward) -> Self {
        Self {
            reals: (0..forward.of(Kind::Real).count()).collect(),
            masks: (0..forward.of(Kind::Mask).count()).collect(),
            outputs: Vec::new(),
            gradients: Vec::new(),
        }
    }

    /// The inputs, and the gradients of all outputs.
    fn derived(forward: &Forward) -> Self {
        Self { gradients: (0..forward.outputs.len()).collect(), ..Self::all(forward) }
    }

    /// What is named.
    fn by(forward: &Forward, named: &[Meant]) -> Self {
        let of = |kind: Kind| {
            let params = forward.params.iter().enumerate().filter(|(_, param)| param.kind == kind);
            let params = params.enumerate();
            params
                .filter(|(_, (position, _))| named.contains(&Meant::Input(*position)))
                .map(|(i, _)| i)
                .collect()
        };
        let outputs = 0..forward.outputs.len();
        Self {
            reals: of(Kind::Real),
            masks: of(Kind::Mask),
            outputs: outputs.clone().filter(|k| named.contains(&Meant::Output(*k))).collect(),
            gradients: outputs.filter(|k| named.contains(&Meant::Gradient(*k))).collect(),
        }
    }

    fn count(&self) -> usize {
        self.reals.len() + self.outputs.len() + self.gradients.len()
    }

    fn names(&self, forward: &Forward) -> Vec<Ident> {
        let inputs: Vec<_> = forward.of(Kind::Real).map(|param| &param.ident).collect();
        let inputs = self.reals.iter().map(|&i| given_name(inputs[i]));
        let named = |prefix: &str, k: usize| {
            given_name(&Ident::new(&format!("{prefix}{}", forward.output(k)), Span::call_site()))
        };
        let outputs = self.outputs.iter().map(|&k| named("", k));
        let gradients = self.gradients.iter().map(|&k| named("d", k));
        inputs.chain(outputs).chain(gradients).collect()
    }

    fn mask_names(&self, forward: &Forward) -> Vec<Ident> {
        let masks: Vec<_> = forward.of(Kind::Mask).map(|param| &param.ident).collect();
        self.masks.iter().map(|&i| given_name(masks[i])).collect()
    }
}

/// The local that holds what is given under a name.
fn given_name(ident: &Ident) -> Ident {
    crate::model::local(&format!("given_{}", plain_name(ident)))
}

/// The field of a plain parameter.
fn field(param: &Param) -> Ident {
    format_ident!("plain_{}", plain_name(&param.ident))
}

/// What a formula returns, as an array.
fn as_array(call: &TokenStream, count: usize, tuple: bool) -> TokenStream {
    if !tuple {
        return quote!([#call]);
    }
    let parts: Vec<_> = (0..count).map(|i| crate::model::local(&format!("part{i}"))).collect();
    quote!({ let (#(#parts,)*) = #call; [#(#parts),*] })
}

fn is(attr: &Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attr.path().is_ident(name))
}

/// Whether `Real` or `Mask` stands somewhere without what it is generic over.
fn mentions_bare(tokens: TokenStream) -> bool {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    (0..trees.len()).any(|i| match &trees[i] {
        TokenTree::Group(group) => mentions_bare(group.stream()),
        _ => is_bare(&trees, i),
    })
}

fn is_bare(trees: &[TokenTree], i: usize) -> bool {
    let named = matches!(&trees[i], TokenTree::Ident(name) if name == "Real" || name == "Mask");
    let next = |at: usize, c: char| matches!(trees.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == c);
    named && !next(i + 1, '<') && !(next(i + 1, ':') && next(i + 2, ':'))
}

/// `Real<L>` for `Real`.
fn complete(tokens: TokenStream) -> TokenStream {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut out = TokenStream::new();
    for i in 0..trees.len() {
        match &trees[i] {
            TokenTree::Group(group) => {
                let mut new = Group::new(group.delimiter(), complete(group.stream()));
                new.set_span(group.span());
                out.extend([TokenTree::Group(new)]);
            }
            tree => {
                out.extend([tree.clone()]);
                if is_bare(&trees, i) {
                    let lane = Ident::new("L", Span::call_site());
                    out.extend(quote!(<#lane>));
                }
            }
        }
    }
    out
}
