//! The description of the op, and the call of `try_apply` from a host's arguments.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Expr, Lit, LitStr, Meta, Type, TypePath};

use super::type_parameter;
use crate::attributes::is_doc;
use crate::check_arg;
use crate::expansion::Expansion;
use crate::library::{kept, private};
use crate::model::{
    Form, Forward, Layer, Param, ParamKind, bare, element, first_argument, output_form,
    without_reference,
};
use crate::tokens::{at, local, plain_name, replace_ident, text, whole_span};

impl Expansion<'_> {
    /// The op as a value; nothing without `export`.
    pub(crate) fn export(&self) -> Option<TokenStream> {
        let (export, forward) = (self.args.export.as_ref()?, self.layer.forward.as_ref()?);
        let (p, call) = (&private(), local("call"));
        let parameter = type_parameter(self.layer).map(|parameter| parameter.ident.to_string());
        // Formulas are functions of either float type; their tensors have it as a parameter of forward.
        let own = forward.function.sig.generics.type_params().next();
        let (parameter, instances) = match (&parameter, self.layer.is_formula) {
            (None, true) => (own.map(|own| own.ident.to_string()), floats()),
            _ => (parameter, export.instances.clone()),
        };
        let description = self.description(forward, parameter.as_deref(), &instances);
        let run = |instance: Option<&Type>| {
            let concrete = |tokens: TokenStream| match (&parameter, instance) {
                (Some(name), Some(ty)) => replace_ident(tokens, name, &ty.to_token_stream()),
                _ => tokens,
            };
            self.run(forward, &call, &concrete)
        };
        let (op, vis) = (&self.layer.self_ty, self.forward_vis());
        let of = |ty: Option<&Type>| match (type_parameter(self.layer), ty) {
            (Some(own), Some(ty)) => {
                let (op, name) = (op.to_token_stream(), own.ident.to_string());
                replace_ident(op, &name, &ty.to_token_stream())
            }
            _ => op.to_token_stream(),
        };
        let body = match &instances[..] {
            [] => run(None),
            all => {
                let tensors = self.of_element(forward, parameter.as_deref());
                let arms = all.iter().map(|ty| {
                    let (run, op) = (run(Some(ty)), of(Some(ty)));
                    // `Self` is the instance.
                    let run = replace_ident(run, "Self", &quote!(<#op>));
                    quote!(if #call.has::<#ty>(&[#(#tensors),*]) { return #run; })
                });
                quote!({
                    #(#arms)*
                    #p::Result::Err(#call.no_instance(&[#(#tensors),*]))
                })
            }
        };
        let op = of(instances.first());
        let formula = self.layer.is_formula.then(|| self.formula_op(forward, &call));
        let value = match self.layer.generics.params.is_empty() {
            true => self.layer.name.to_token_stream(),
            false => {
                let name = &self.layer.name;
                quote!(#name(::core::marker::PhantomData))
            }
        };
        Some(quote! {
            impl #op {
                /// The op as a value, for programs of other languages.
                #vis const EXPORT: &'static dyn #p::host::DynOp = &#value;
            }

            #[automatically_derived]
            impl #p::host::DynOp for #op {
                fn description(&self) -> &'static #p::host::Description {
                    #description
                }

                fn run(
                    &self,
                    #call: &#p::host::Call<'_>,
                ) -> #p::Result<#p::Vec<#p::AnyTensor>> #body

                #formula
            }
        })
    }

    fn run(
        &self,
        forward: &Forward,
        call: &Ident,
        concrete: &dyn Fn(TokenStream) -> TokenStream,
    ) -> TokenStream {
        let p = &private();
        let (returned, all) = (local("returned"), local("all"));
        let read = forward.params.iter().enumerate();
        let read = read.map(|(at, param)| concrete(argument(param, at, call)));
        let given = forward.params.iter().enumerate().map(|(at, param)| {
            let given = given(at);
            match &param.kind {
                ParamKind::Tensor(input) if input.form == Form::List => {
                    check_arg::list(&param.ty, &plain_name(&param.ident), quote!(#given))
                }
                _ => given.to_token_stream(),
            }
        });
        let name = plain_name(&self.layer.name);
        let user = forward.outputs.fallible.then(|| {
            let kept = kept(Span::call_site());
            quote!(let #returned = #p::host::returned(#name, #returned, #kept)?;)
        });
        let outputs: Vec<_> = (0..forward.outputs.parts.len()).map(output).collect();
        let parts = match forward.outputs.tuple {
            true => quote!((#(#outputs,)*)),
            false => quote!(#(#outputs)*),
        };
        let give = forward.outputs.parts.iter().zip(&outputs).map(|(ty, output)| {
            let span = whole_span(ty);
            let (output, all) = (at(output, span), at(&all, span));
            quote_spanned!(span=> #p::host::HostOutput::give(#output, &mut #all);)
        });
        quote! {{
            #(#read)*
            let #returned = Self::try_apply(#(#given),*)?;
            #user
            let #parts = #returned;
            let mut #all = #p::Vec::new();
            #(#give)*
            #p::Result::Ok(#all)
        }}
    }

    /// The formula with a host's plain arguments.
    fn formula_op(&self, forward: &Forward, call: &Ident) -> TokenStream {
        let p = &private();
        let plain: Vec<_> = forward
            .params
            .iter()
            .enumerate()
            .filter(|(_, param)| matches!(param.kind, ParamKind::Plain { .. }))
            .collect();
        let read = plain.iter().map(|(at, param)| argument(param, *at, call));
        let given: Vec<_> = plain.iter().map(|(at, _)| given(*at)).collect();
        let pair = self.pair_of(&given);
        quote! {
            fn formula_op(
                &self,
                #call: &#p::host::Call<'_>,
            ) -> #p::Result<::core::option::Option<#p::host::FormulaOp>> {
                let _ = #call;
                #(#read)*
                #p::Result::Ok(::core::option::Option::Some(#p::host::FormulaOp::of(&#pair)))
            }
        }
    }

    /// The positions of the parameters whose element type is the parameter.
    fn of_element(&self, forward: &Forward, parameter: Option<&str>) -> Vec<usize> {
        let params = forward.params.iter().enumerate();
        let of = params.filter(|(_, param)| match &param.kind {
            ParamKind::Tensor(input) => Some(&*element(&input.tensor)) == parameter,
            ParamKind::Plain { .. } => false,
        });
        of.map(|(at, _)| at).collect()
    }

    fn description(
        &self,
        forward: &Forward,
        parameter: Option<&str>,
        instances: &[Type],
    ) -> TokenStream {
        let (p, name) = (&private(), plain_name(&self.layer.name));
        let elements = |tensor: &TypePath| {
            let written = tensor_element(tensor);
            let all = match Some(&*text(&written)) == parameter {
                true => instances.iter().map(ToTokens::to_token_stream).collect(),
                false => vec![written],
            };
            quote!(&[#(<#all as #p::host::ElementFunctions>::DTYPE),*])
        };
        let written = self.written(forward);
        let parameters = forward.params.iter().zip(&written.params).map(|(param, written)| {
            let (name, rust) = (plain_name(&param.ident), text(&written.ty));
            let (form, elements, differentiable) = match &param.kind {
                ParamKind::Tensor(input) => {
                    let form = match input.form {
                        Form::One => quote!(One),
                        Form::Optional => quote!(Optional),
                        Form::List => quote!(List),
                    };
                    let wants = self.args.no_grad.is_none() && !input.stop_gradient;
                    (form, elements(&input.tensor), wants)
                }
                ParamKind::Plain { .. } => (quote!(Plain), quote!(&[]), false),
            };
            let default = option(param.default().map(text));
            quote!(#p::host::Parameter {
                name: #name,
                form: #p::host::Form::#form,
                rust: #rust,
                elements: #elements,
                differentiable: #differentiable,
                default: #default,
            })
        });
        let outputs = forward.outputs.parts.iter().map(|ty| {
            let (rust, form) = (text(ty), output_form(ty));
            let is_list = matches!(form, Some((Form::List, _)));
            let elements = form.map_or_else(|| quote!(&[]), |(_, tensor)| elements(tensor));
            quote!(#p::host::Output { rust: #rust, is_list: #is_list, elements: #elements })
        });
        let docs = docs(self.layer, forward);
        let keeps_attrs = self.layer.state.is_some();
        let has_backward = self.args.no_grad.is_none();
        let is_formula = self.layer.is_formula;
        let shapes = match &self.args.shapes {
            Some(_) => quote!(::core::option::Option::Some(Self::SHAPES)),
            None => quote!(::core::option::Option::None),
        };
        quote! {
            const {
                &#p::host::Description {
                    name: #name,
                    docs: #docs,
                    parameters: &[#(#parameters),*],
                    outputs: &[#(#outputs),*],
                    keeps_attrs: #keeps_attrs,
                    has_backward: #has_backward,
                    is_formula: #is_formula,
                    shapes: #shapes,
                }
            }
        }
    }
}

fn floats() -> Vec<Type> {
    vec![syn::parse_quote!(f32), syn::parse_quote!(f64)]
}

fn tensor_element(tensor: &TypePath) -> TokenStream {
    let written = tensor.path.segments.last().and_then(first_argument);
    written.map_or_else(|| quote!(::core::primitive::f32), ToTokens::to_token_stream)
}

fn given(at: usize) -> Ident {
    local(&format!("given{at}"))
}

fn output(at: usize) -> Ident {
    local(&format!("output{at}"))
}

fn option(text: Option<String>) -> TokenStream {
    match text {
        Some(text) => quote!(::core::option::Option::Some(#text)),
        None => quote!(::core::option::Option::None),
    }
}

/// Reads an argument into a variable.
fn argument(param: &Param, at: usize, call: &Ident) -> TokenStream {
    let (given, ty) = (given(at), &param.ty);
    let ParamKind::Tensor(input) = &param.kind else {
        let span = whole_span(ty);
        let (call, given) = (crate::tokens::at(call, span), crate::tokens::at(&given, span));
        let read = quote_spanned!(span=> #call.plain::<#ty>(#at)?);
        let read = match param.default() {
            Some(default) => quote!(if #call.is_default(#at) { #default } else { #read }),
            None => read,
        };
        return quote!(let #given: #ty = #read;);
    };
    let element = tensor_element(&input.tensor);
    let form = match input.form {
        Form::One => format_ident!("tensor"),
        Form::Optional => format_ident!("optional"),
        Form::List => {
            let length = match bare(without_reference(ty)) {
                Type::Array(array) => {
                    let length = &array.len;
                    quote!(::core::option::Option::Some(#length))
                }
                _ => quote!(::core::option::Option::None),
            };
            return quote!(let #given = #call.list::<#element>(#at, #length)?;);
        }
    };
    quote!(let #given = #call.#form::<#element>(#at)?;)
}

/// The documentation of the block, or of forward.
fn docs(layer: &Layer, forward: &Forward) -> String {
    let of = |attrs: &[syn::Attribute]| {
        let lines = attrs.iter().filter(|attr| is_doc(attr)).filter_map(|attr| match &attr.meta {
            Meta::NameValue(doc) => match &doc.value {
                Expr::Lit(literal) => match &literal.lit {
                    Lit::Str(line) => Some(LitStr::value(line)),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        });
        lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>().join("\n")
    };
    let block = of(&layer.attrs);
    if block.is_empty() { of(&forward.function.attrs) } else { block }
}
