//! `#[py_func]`: an impl block with `forward` and `backward` over arrays as an operator of a
//! program. Parsed, checked, and expanded to a call of `Program::py_func`.

mod messages;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{
    FnArg, GenericParam, ImplItem, ImplItemFn, ItemImpl, Pat, Path, PathArguments, ReturnType,
    Token, Type,
};

use crate::args::parts;
use crate::errors::{Errors, ends};
use crate::expand::respanned;
use crate::question;

/// The attribute as a plain function.
pub(crate) fn expand(arguments: TokenStream, block: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let Arguments { names, library } = Arguments::read(arguments, &mut errors);
    let Ok(item) = syn::parse2::<ItemImpl>(block.clone()) else {
        errors.at(first(&block), messages::not_an_impl());
        let reported = errors.into_tokens();
        return quote!(#reported #block);
    };
    let Some(op) = Op::read(&item, names, &mut errors) else {
        let reported = errors.into_tokens();
        // Of each function that the trait does not have, more would be reported.
        let item = ItemImpl { trait_: None, ..item };
        return quote!(#reported #item);
    };
    op.check(&mut errors);
    let sound = errors.is_empty();
    let reported = errors.into_tokens();
    let code = op.tokens(sound, library.as_ref());
    quote!(#reported #code)
}

/// Takes away what was reported and the compiler would report again.
fn repair(block: &mut ItemImpl) {
    block.trait_ = None;
    let mut seen = vec![Ident::new("call", Span::call_site())];
    for (position, part) in block.items.iter_mut().enumerate() {
        let ImplItem::Fn(ImplItemFn { sig, block, .. }) = part else { continue };
        if let Some(body) = question::repaired(sig, &braces(block))
            && let Ok(repaired) = syn::parse2(TokenTree::Group(body).into())
        {
            *block = repaired;
        }
        let own = ["forward", "backward", "call"].iter().any(|name| sig.ident == name);
        if own && seen.contains(&sig.ident) {
            sig.ident = format_ident!("_{}_{position}", sig.ident, span = sig.ident.span());
        } else if own {
            seen.push(sig.ident.clone());
            sig.asyncness = None;
        }
    }
}

/// A body with its braces.
fn braces(block: &syn::Block) -> Group {
    let stmts = &block.stmts;
    let mut group = Group::new(Delimiter::Brace, quote!(#(#stmts)*));
    group.set_span(block.brace_token.span.join());
    group
}

fn first(tokens: &TokenStream) -> TokenStream {
    tokens.clone().into_iter().take(1).collect()
}

/// What stands between the parentheses of the attribute.
#[derive(Default)]
struct Arguments {
    /// Names of the outputs.
    names: Option<Vec<Ident>>,
    /// Where the library is: `crate = path`.
    library: Option<Path>,
}

impl Arguments {
    fn read(tokens: TokenStream, errors: &mut Errors) -> Self {
        let library = |input: ParseStream<'_>| {
            input.parse::<Token![crate]>()?;
            input.parse::<Token![=]>()?;
            input.call(Path::parse_mod_style)
        };
        let mut read = Self::default();
        for (part, comma) in parts(tokens) {
            if part.is_empty() {
                errors.at(comma, messages::unknown_argument());
            } else if let Ok(name) = syn::parse2::<Ident>(part.clone()) {
                read.names.get_or_insert_default().push(name);
            } else {
                match library.parse2(part.clone()) {
                    Ok(_) if read.library.is_some() => errors.at(part, messages::path_twice()),
                    Ok(path) => read.library = Some(path),
                    Err(_) => errors.at(part, messages::unknown_argument()),
                }
            }
        }
        read
    }
}

/// A parameter of the user's function, or a value that it returns.
struct Value {
    name: Ident,
    ty: Type,
}

struct Op<'a> {
    item: &'a ItemImpl,
    name: Ident,
    forward: &'a ImplItemFn,
    backward: Option<&'a ImplItemFn>,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    /// Names of outputs that were given, where they are not as many as there are outputs.
    misnamed: Option<Vec<Ident>>,
}

impl<'a> Op<'a> {
    /// What can be read, or nothing where there is too little of it.
    fn read(item: &'a ItemImpl, names: Option<Vec<Ident>>, errors: &mut Errors) -> Option<Self> {
        let name = op_name(item, errors)?;
        let mut functions: [Vec<&ImplItemFn>; 2] = [Vec::new(), Vec::new()];
        for part in &item.items {
            if let ImplItem::Fn(function) = part {
                match function.sig.ident.to_string().as_str() {
                    "forward" => functions[0].push(function),
                    "backward" => functions[1].push(function),
                    "call" => errors.at(&function.sig.ident, messages::taken("call")),
                    _ => {}
                }
            }
        }
        for of in &functions {
            if let Some(second) = of.get(1) {
                errors.at(&second.sig.ident, messages::twice(&second.sig.ident.to_string()));
            }
        }
        let [forward, backward] = functions.map(|of| of.first().copied());
        let Some(forward) = forward else {
            errors.at(&item.self_ty, messages::no_forward());
            return None;
        };
        let inputs = parameters(forward, errors)?;
        let types = returned(&forward.sig.output);
        let (outputs, misnamed) = match names {
            Some(names) if names.len() != types.len() => (None, Some(names)),
            names => (names, None),
        };
        let outputs = outputs.unwrap_or_else(|| default_names(types.len()));
        let outputs = outputs.into_iter().zip(types).map(|(name, ty)| Value { name, ty }).collect();
        Some(Self { item, name, forward, backward, inputs, outputs, misnamed })
    }

    /// The rules, each named after what it forbids.
    fn check(&self, errors: &mut Errors) {
        unusual_signature(self.forward, errors);
        if let Some(misnamed) = &self.misnamed {
            let names = quote!(#(#misnamed),*);
            errors.at(names, messages::output_count(misnamed.len(), self.outputs.len()));
        }
        if self.inputs.is_empty() && self.outputs.is_empty() {
            errors.at(&self.forward.sig.ident, messages::neither());
        }
        for output in &self.outputs {
            if let Some(input) = self.inputs.iter().find(|input| input.name == output.name) {
                errors.at(&input.name, messages::name_clash(&output.name.to_string()));
            }
        }
        if let Some(backward) = self.backward {
            unusual_signature(backward, errors);
            self.check_backward(backward, errors);
        }
        for function in [Some(self.forward), self.backward].into_iter().flatten() {
            question::check_function(&function.sig, &braces(&function.block), errors);
        }
    }

    fn check_backward(&self, backward: &ImplItemFn, errors: &mut Errors) {
        if self.outputs.is_empty() {
            return errors.at(&backward.sig.ident, messages::backward_of_nothing());
        }
        let Some(given) = parameters(backward, errors) else { return };
        let known = self.values();
        let mut positions = Vec::new();
        for value in &given {
            match known.iter().position(|name| value.name == name) {
                Some(position) => positions.push(position),
                None => {
                    let name = value.name.to_string();
                    errors.at(&value.name, messages::unknown_parameter(&name, &known));
                }
            }
        }
        if positions.len() < given.len() {
            return;
        }
        for output in &self.outputs {
            let gradient = gradient_of(&output.name);
            if !given.iter().any(|value| value.name == gradient) {
                let (gradient, output) = (gradient.to_string(), output.name.to_string());
                errors.at(&backward.sig.ident, messages::gradient_skipped(&gradient, &output));
            }
        }
        if !positions.is_sorted_by(|a, b| a < b) {
            let mut sorted = positions.clone();
            sorted.sort_unstable();
            let names: Vec<String> = sorted.iter().map(|&at| known[at].clone()).collect();
            errors.at(&backward.sig.inputs, messages::order(&names));
        }
        let gradients = returned(&backward.sig.output).len();
        if gradients != self.inputs.len() {
            let reported = messages::gradient_count(gradients, self.inputs.len());
            match &backward.sig.output {
                ReturnType::Default => errors.at(&backward.sig.ident, reported),
                ReturnType::Type(_, ty) => errors.at(ty, reported),
            }
        }
    }

    /// Names of all that backward can take, in order.
    fn values(&self) -> Vec<String> {
        let both = self.inputs.iter().chain(&self.outputs);
        let names = both.map(|value| value.name.to_string());
        names
            .chain(self.outputs.iter().map(|output| gradient_of(&output.name).to_string()))
            .collect()
    }

    fn tokens(&self, sound: bool, library: Option<&Path>) -> TokenStream {
        let private = crate::library::private_path(library);
        let (item, name, vis) = (self.item, &self.name, &self.forward.vis);
        let attrs = self.item.attrs.iter().filter(|attr| attr.path().is_ident("doc"));
        let cfg: Vec<_> =
            self.item.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect();
        let mut block = item.clone();
        block.attrs.retain(|attr| !attr.path().is_ident("doc"));
        if !sound {
            repair(&mut block);
        }
        let mut both: Vec<Ident> =
            self.inputs.iter().chain(&self.outputs).map(|value| value.name.clone()).collect();
        if !sound {
            // Names that were reported to clash are not reported again.
            both = (0..both.len()).map(|i| format_ident!("variable{i}")).collect();
        }
        let outcome = match self.outputs.len() {
            0 => quote!(()),
            1 => quote!(#private::Variable),
            n => quote!([#private::Variable; #n]),
        };
        let body = match sound {
            true => self.body(&private),
            false => quote!({ #(let _ = #both;)* ::core::unreachable!() }),
        };
        let proofs = if sound { self.proofs(&private) } else { TokenStream::new() };
        let doc = format!(
            "Adds the operator to the program of its variables: inputs {}, then outputs that \
             `create_var` made. Returns the outputs.",
            self.inputs
                .iter()
                .map(|input| format!("`{}`", input.name))
                .collect::<Vec<_>>()
                .join(", ")
        );
        let generics = &item.generics;
        let (declared, _, clause) = generics.split_for_impl();
        let op = &item.self_ty;
        let parameters: Vec<TokenStream> = generics.params.iter().map(without_bounds).collect();
        let types = generics.type_params().map(|param| &param.ident);
        let body_of_struct = match generics.params.is_empty() {
            true => quote!(;),
            false => quote!((::core::marker::PhantomData<fn() -> (#(#types,)*)>);),
        };
        let parameters = (!parameters.is_empty()).then(|| quote!(<#(#parameters),*>));
        let unused = if sound { TokenStream::new() } else { quote!(#[allow(unused)]) };
        quote! {
            #(#attrs)*
            #(#cfg)*
            #[allow(dead_code, missing_copy_implementations, missing_docs)]
            #vis struct #name #parameters #body_of_struct
            #unused
            #[allow(missing_docs)]
            #block
            #(#cfg)*
            #[allow(dead_code, clippy::too_many_arguments)]
            const _: () = {
                #proofs
                impl #declared #op #clause {
                    #[doc = #doc]
                    ///
                    /// # Errors
                    ///
                    /// Where `Program::py_func` gives one.
                    #[track_caller]
                    #vis fn call(#(#both: &#private::Variable),*) -> #private::Result<#outcome> {
                        #body
                    }
                }
            };
        }
    }

    /// The call of `Program::py_func`.
    fn body(&self, private: &TokenStream) -> TokenStream {
        let text = self.name.to_string();
        let names = |values: &[Value]| -> Vec<Ident> {
            values.iter().map(|value| value.name.clone()).collect()
        };
        let (inputs, outputs) = (names(&self.inputs), names(&self.outputs));
        let one = inputs.first().or(outputs.first());
        let program = one.map(|one| quote!(#private::Variable::program(#one)));
        let x = (!inputs.is_empty()).then(|| quote!(let call = call.x([#(#inputs),*]);));
        let out = (!outputs.is_empty()).then(|| quote!(let call = call.out([#(#outputs),*]);));
        let backward = self.backward.map(|backward| {
            let mut unread = Errors::new();
            let given = parameters(backward, &mut unread).unwrap_or_default();
            unread.forget();
            let skipped: Vec<&Ident> = inputs
                .iter()
                .chain(&outputs)
                .filter(|name| !given.iter().any(|value| value.name == **name))
                .collect();
            let backward = lent(backward);
            quote! {
                let call = call
                    .backward_func(#backward)
                    .skip_vars_in_backward_input([#(#skipped),*] as [&#private::Variable; _]);
            }
        });
        let forward = lent(self.forward);
        quote! {
            let call = #private::Program::py_func(#program, #forward).name(#text);
            #x
            #out
            #backward
            call.call()
        }
    }

    /// What the compiler proves: a gradient holds elements of the type of what it is a gradient of.
    fn proofs(&self, private: &TokenStream) -> TokenStream {
        let Some(backward) = self.backward else { return TokenStream::new() };
        let mut unread = Errors::new();
        let given = parameters(backward, &mut unread).unwrap_or_default();
        unread.forget();
        let mut proofs = Vec::new();
        for value in &given {
            let of = |name: &Ident, values: &[Value]| -> Option<Type> {
                values.iter().find(|value| value.name == *name).map(|value| value.ty.clone())
            };
            let span = value.ty.span();
            let ty = &value.ty;
            let private = respanned(private.clone(), span);
            if let Some(input) = of(&value.name, &self.inputs) {
                proofs.push(quote_spanned!(span=> #private::same_as_input::<#ty, #input>();));
            }
            let outputs = self.outputs.iter();
            let output = outputs.clone().find(|output| {
                value.name == output.name || value.name == gradient_of(&output.name)
            });
            if let Some(output) = output {
                let output = &output.ty;
                proofs.push(quote_spanned!(span=> #private::same_as_output::<#ty, #output>();));
            }
        }
        for (ty, input) in returned(&backward.sig.output).iter().zip(&self.inputs) {
            let input = &input.ty;
            let (start, end) = ends(ty.to_token_stream());
            let private = respanned(private.clone(), start);
            let path = quote_spanned!(start=> #private::gradient_of_input::<#ty, #input>);
            proofs.push(quote_spanned!(end=> #path();));
        }
        let (declared, _, clause) = self.item.generics.split_for_impl();
        quote! {
            #[allow(dead_code)]
            fn element_types #declared() #clause {
                #(#proofs)*
            }
        }
    }
}

fn op_name(item: &ItemImpl, errors: &mut Errors) -> Option<Ident> {
    if let Some((path, _)) = &item.trait_ {
        errors.at(path, messages::trait_impl());
        return None;
    }
    if let Some(lifetime) = item.generics.lifetimes().next() {
        errors.at(lifetime, messages::lifetime());
        return None;
    }
    let declared: Vec<&Ident> = item
        .generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(&param.ident),
            GenericParam::Const(param) => Some(&param.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    let own = match &*item.self_ty {
        Type::Path(path) if path.qself.is_none() && path.path.segments.len() == 1 => {
            path.path.segments.first()
        }
        _ => None,
    };
    let named = own.filter(|own| match &own.arguments {
        PathArguments::None => declared.is_empty(),
        PathArguments::AngleBracketed(arguments) => {
            let given =
                arguments.args.iter().map(|argument| argument.to_token_stream().to_string());
            given.eq(declared.iter().map(ToString::to_string))
        }
        PathArguments::Parenthesized(_) => false,
    });
    if named.is_none() {
        errors.at(&item.self_ty, messages::generic());
    }
    named.map(|own| own.ident.clone())
}

/// A function of the block as a value; what is wrong with its types is shown at its name.
fn lent(function: &ImplItemFn) -> TokenStream {
    let name = &function.sig.ident;
    quote_spanned!(Span::call_site().located_at(name.span())=> Self::#name)
}

/// A parameter as the struct declares it.
fn without_bounds(param: &GenericParam) -> TokenStream {
    match param {
        GenericParam::Type(param) => param.ident.to_token_stream(),
        GenericParam::Const(param) => {
            let (name, ty) = (&param.ident, &param.ty);
            quote!(const #name: #ty)
        }
        GenericParam::Lifetime(param) => param.lifetime.to_token_stream(),
    }
}

/// Named parameters, or an error.
fn parameters(function: &ImplItemFn, errors: &mut Errors) -> Option<Vec<Value>> {
    let name = function.sig.ident.to_string();
    let mut values = Vec::new();
    let mut sound = true;
    for input in &function.sig.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                errors.at(receiver, messages::receiver(&name));
                sound = false;
            }
            FnArg::Typed(typed) => match &*typed.pat {
                Pat::Ident(pat) if pat.subpat.is_none() => {
                    // `_y` is `y` that is not read.
                    let text = pat.ident.to_string();
                    let text = text.trim_start_matches('_');
                    let ident =
                        Ident::new(if text.is_empty() { "_" } else { text }, pat.ident.span());
                    values.push(Value { name: ident, ty: (*typed.ty).clone() });
                }
                pat => {
                    errors.at(pat, messages::parameter_needs_name(&name));
                    sound = false;
                }
            },
        }
    }
    sound.then_some(values)
}

fn unusual_signature(function: &ImplItemFn, errors: &mut Errors) {
    let sig = &function.sig;
    let name = sig.ident.to_string();
    if let Some(token) = &sig.asyncness {
        errors.at(token, messages::unusual(&name, "async"));
    }
    if let syn::Safety::Unsafe(token) = &sig.safety {
        errors.at(token, messages::unusual(&name, "unsafe"));
    }
    if let Some(token) = &sig.abi {
        errors.at(token, messages::unusual(&name, "extern"));
    }
    let named =
        sig.generics.type_params().next().is_some() || sig.generics.const_params().next().is_some();
    if named {
        errors.at(&sig.generics, messages::function_generic(&name));
    }
}

/// The values of a return type: none of `()`, those of a tuple, what is in a `Result`.
fn returned(output: &ReturnType) -> Vec<Type> {
    let ReturnType::Type(_, ty) = output else { return Vec::new() };
    values_of(ty)
}

fn values_of(ty: &Type) -> Vec<Type> {
    match ty {
        Type::Tuple(tuple) => tuple.elems.iter().cloned().collect(),
        Type::Paren(inner) => values_of(&inner.elem),
        Type::Group(inner) => values_of(&inner.elem),
        Type::Path(path) => {
            let last = path.path.segments.last();
            if let Some(last) = last.filter(|last| last.ident == "Result")
                && let PathArguments::AngleBracketed(arguments) = &last.arguments
                && let Some(syn::GenericArgument::Type(inner)) = arguments.args.first()
            {
                return values_of(inner);
            }
            vec![ty.clone()]
        }
        _ => vec![ty.clone()],
    }
}

/// `y`, or `y0`, `y1` ..
fn default_names(count: usize) -> Vec<Ident> {
    let name = |text: String| Ident::new(&text, Span::call_site());
    match count {
        1 => vec![name("y".to_owned())],
        n => (0..n).map(|i| name(format!("y{i}"))).collect(),
    }
}

fn gradient_of(output: &Ident) -> Ident {
    format_ident!("d{output}")
}
