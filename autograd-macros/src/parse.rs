//! From tokens to the model. Tells what cannot be understood, and goes on with the rest.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, FnArg, Generics, Meta, Pat, ReturnType, Signature, Token, Type};

use crate::errors::Errors;
use crate::items::{self, Found};
use crate::messages;
use crate::model::{
    Backward, Form, Forward, Function, GradientParam, Item, Jvp, Layer, Output, OutputKind,
    Outputs, Param, ParamKind, Returns, TensorInput, argument_of, as_tensor, bare, element,
    hidden_tensor, input_form, is_integer, is_named, last_segment, mentions, nearest, output_form,
    parameter_name, plain_name, text,
};

pub(crate) const FORWARD_CONTEXT: &str = "&mut ForwardContext<Self>";
pub(crate) const BACKWARD_CONTEXT: &str = "&BackwardContext<Self>";
pub(crate) const JVP_CONTEXT: &str = "&JvpContext<Self>";

/// What a context may be called, by somebody who takes one function for another.
pub(crate) const CONTEXTS: [&str; 4] =
    ["ForwardContext", "BackwardContext", "JvpContext", "PyLayerContext"];

/// An impl block before its items are looked into.
pub(crate) struct Block {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) generics: Generics,
    pub(crate) trait_: Option<TokenStream>,
    pub(crate) self_ty: Type,
    body: Group,
}

impl Parse for Block {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        // Told by the compiler already.
        input.parse::<Option<Token![unsafe]>>()?;
        input.parse::<Token![impl]>()?;
        let generic = input.peek(Token![<])
            && (input.peek2(Token![>])
                || input.peek2(Token![#])
                || input.peek2(syn::Lifetime)
                || input.peek2(Token![const])
                || input.peek2(syn::Ident));
        let mut generics: Generics = if generic { input.parse()? } else { Generics::default() };
        let negative = input.peek(Token![!]);
        if negative {
            input.parse::<Token![!]>()?;
        }
        let mut self_ty: Type = input.parse()?;
        let mut trait_ = None;
        if input.peek(Token![for]) {
            input.parse::<Token![for]>()?;
            trait_ = Some(self_ty.to_token_stream());
            self_ty = input.parse()?;
        }
        generics.where_clause = input.parse()?;
        let tree = input.parse::<TokenTree>()?;
        match tree {
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
                Ok(Self { attrs, generics, trait_, self_ty, body })
            }
            other => Err(syn::Error::new(other.span(), "expected the block of the op, `{ .. }`")),
        }
    }
}

/// Reads the block; none where it is no impl block of an op.
pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Option<Layer> {
    let (block, name, items) = block(tokens, errors)?;
    let of_trait = block.trait_.is_some();
    let mut layer = Layer {
        attrs: block.attrs,
        generics: block.generics,
        self_ty: block.self_ty,
        name,
        items: Vec::new(),
        saved: None,
        state: None,
        forward: None,
        backward: None,
        jvp: None,
        of_trait,
        broken: Vec::new(),
    };
    for item in items {
        layer.add(item, errors);
    }
    Some(layer)
}

/// The block, the op's name, and its items.
pub(crate) fn block(
    tokens: TokenStream,
    errors: &mut Errors,
) -> Option<(Block, Ident, Vec<Found>)> {
    let mut block = match Block::parse.parse2(tokens.clone()) {
        Ok(block) => block,
        Err(error) => {
            match other_item(tokens.clone()) {
                Some((found, words)) => {
                    let named = matches!(found, "a struct" | "an enum" | "a union" | "a trait");
                    let name = words.clone().into_iter().nth(1).filter(|_| named);
                    let name = name.map(|name| name.to_string());
                    errors.at(words, messages::not_an_impl(found, name.as_deref()));
                }
                // The compiler has told what is wrong with an impl.
                None if mentions(&tokens, "impl") => {}
                None => errors.syntax(&error),
            }
            return None;
        }
    };
    let name = head(&mut block, errors)?;
    let items = items::split(block.body.stream(), errors);
    Some((block, name, items))
}

/// What stands under the attribute where no impl block does.
fn other_item(tokens: TokenStream) -> Option<(&'static str, TokenStream)> {
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let TokenTree::Ident(word) = &tree else { continue };
        let found = match word.to_string().as_str() {
            "struct" => "a struct",
            "enum" => "an enum",
            "union" => "a union",
            "fn" => "a function",
            "mod" => "a module",
            "trait" => "a trait",
            "use" => "a use declaration",
            "static" => "a static",
            "const" if !matches!(trees.peek(), Some(TokenTree::Ident(next)) if next == "fn") => {
                "a constant"
            }
            "type" => "a type alias",
            "impl" => return None,
            _ => continue,
        };
        let mut words = tree.to_token_stream();
        if let Some(TokenTree::Ident(name)) = trees.next() {
            name.to_tokens(&mut words);
        }
        return Some((found, words));
    }
    None
}

/// Everything before the braces: the op's name, and parameters and arguments that agree, whatever
/// was told of them.
fn head(block: &mut Block, errors: &mut Errors) -> Option<Ident> {
    if let Some(trait_) = &block.trait_ {
        errors.at(trait_, messages::trait_impl(&text(&block.self_ty)));
    }
    let mut ty = bare(&block.self_ty);
    if let Type::Reference(reference) = ty {
        ty = bare(&reference.elem);
    }
    let segment = match ty {
        Type::Path(path) => path.path.segments.last().cloned(),
        _ => None,
    };
    let plain = matches!(bare(&block.self_ty), Type::Path(path)
        if path.qself.is_none() && path.path.segments.len() == 1)
        && !matches!(&segment, Some(segment)
            if matches!(segment.arguments, syn::PathArguments::Parenthesized(_)));
    if !plain {
        let name = segment.as_ref().map(|segment| segment.ident.to_string());
        errors.at(&block.self_ty, messages::self_type(name.as_deref()));
    }
    let name = segment.as_ref()?.ident.clone();
    let mut arguments = self_arguments(segment.as_ref()?);
    let known: Vec<String> = block.generics.params.iter().map(parameter_name).collect();
    for argument in &mut arguments {
        let written = text(argument);
        if !known.contains(&written) {
            errors.at(&*argument, messages::self_type_argument(&written));
            *argument = add_parameter(&mut block.generics, argument);
        }
    }
    for parameter in block.generics.params.clone() {
        let written = parameter_name(&parameter);
        if !arguments.iter().any(|argument| text(argument) == written) {
            errors.at(&parameter, messages::parameter_not_used(&written, &name.to_string()));
            arguments.extend(written.parse());
        }
    }
    if !errors.is_empty() {
        arguments.sort_by_key(|argument| !text(argument).starts_with('\''));
        let written = match arguments.is_empty() {
            true => quote!(#name),
            false => quote!(#name<#(#arguments),*>),
        };
        block.self_ty = syn::parse2(written).ok()?;
    }
    Some(name)
}

fn self_arguments(segment: &syn::PathSegment) -> Vec<TokenStream> {
    match &segment.arguments {
        syn::PathArguments::AngleBracketed(arguments) => {
            arguments.args.iter().map(ToTokens::to_token_stream).collect()
        }
        _ => Vec::new(),
    }
}

/// A parameter in place of an argument that is none.
fn add_parameter(generics: &mut Generics, argument: &TokenStream) -> TokenStream {
    let name = format_ident!("Unknown{}", generics.params.len());
    let (parameter, argument): (syn::GenericParam, _) = match syn::parse2(argument.clone()) {
        Ok(syn::GenericArgument::Lifetime(lifetime)) => {
            (syn::parse_quote!(#lifetime), quote!(#lifetime))
        }
        Ok(syn::GenericArgument::Const(_)) => {
            (syn::parse_quote!(const #name: usize), quote!(#name))
        }
        _ => (syn::parse_quote!(#name), quote!(#name)),
    };
    match &parameter {
        syn::GenericParam::Lifetime(_) => generics.params.insert(0, parameter),
        _ => generics.params.push(parameter),
    }
    generics.lt_token.get_or_insert_with(<Token![<]>::default);
    generics.gt_token.get_or_insert_with(<Token![>]>::default);
    argument
}

impl Layer {
    fn add(&mut self, item: Found, errors: &mut Errors) {
        match item {
            Found::Other(tokens) => self.items.push(Item::Other(tokens)),
            Found::Broken(broken) => self.broken.push(broken),
            Found::Macro(tokens) => {
                errors.at(&tokens, messages::item_macro());
                self.items.push(Item::Other(tokens));
            }
            Found::Type { ident, generics, ty, all } => {
                self.add_type(&ident, &generics, ty, &all, errors);
            }
            Found::Function(function) => {
                self.add_function(function, errors);
            }
        }
    }

    fn add_type(
        &mut self,
        ident: &Ident,
        generics: &Generics,
        ty: Type,
        all: &TokenStream,
        errors: &mut Errors,
    ) {
        let name = ident.to_string();
        if let Some(cfg) = cfg_in(all) {
            errors.at(cfg, messages::cfg_inside(&format!("`type {name}`")));
        }
        if !generics.params.is_empty() {
            errors.at(&generics.params, messages::type_generics(&name));
        }
        let ty = with_known_elements(&ty, errors).unwrap_or(ty);
        let place = match name.as_str() {
            "Saved" => &mut self.saved,
            "Attrs" => &mut self.state,
            _ => {
                let near = nearest(&name, &["Saved", "Attrs"]);
                return errors.at(ident, messages::unknown_type(&name, near));
            }
        };
        if place.is_some() {
            return errors.at(ident, messages::second_type(&name));
        }
        *place = Some(ty);
    }

    fn add_function(&mut self, mut function: Function, errors: &mut Errors) {
        let ident = function.sig.ident.clone();
        let name = ident.to_string();
        if matches!(name.as_str(), "forward" | "backward" | "jvp")
            && let Some(sig) = with_known_elements(&function.sig, errors)
        {
            function.sig = sig;
        }
        match name.as_str() {
            "forward" if self.forward.is_some() => {
                errors.at(&ident, messages::second_function("forward"));
            }
            "backward" if self.backward.is_some() => {
                errors.at(&ident, messages::second_function("backward"));
            }
            "forward" => {
                self.forward = Some(forward(&function, &self.name.to_string(), errors));
                self.items.push(Item::Function(Box::new(stripped(function))));
            }
            "backward" => {
                self.backward = Some(backward(&function, &self.name.to_string(), errors));
                self.items.push(Item::Function(Box::new(stripped(function))));
            }
            "jvp" if self.jvp.is_some() => {
                errors.at(&ident, messages::second_function("jvp"));
            }
            "jvp" => {
                self.jvp = Some(jvp(&function, &self.name.to_string(), errors));
                self.items.push(Item::Function(Box::new(stripped(function))));
            }
            "apply" | "try_apply" | "with" => {
                errors.at(&ident, messages::generated_name(&name));
            }
            _ => self.items.push(Item::Function(Box::new(function))),
        }
    }
}

/// The same with an element type that there is in place of each that there is not: the compiler
/// would tell that of everything that is made of it.
fn with_known_elements<P: Parse + ToTokens>(written: &P, errors: &mut Errors) -> Option<P> {
    let mut found = false;
    let tokens = known_elements(written.to_token_stream(), &mut found, errors);
    found.then(|| syn::parse2(tokens).ok())?
}

fn known_elements(tokens: TokenStream, found: &mut bool, errors: &mut Errors) -> TokenStream {
    const ABSENT: [(&str, &str); 12] = [
        ("i8", "i32"),
        ("i16", "i32"),
        ("u16", "i32"),
        ("u32", "i64"),
        ("u64", "i64"),
        ("usize", "i64"),
        ("isize", "i64"),
        ("u128", "i64"),
        ("i128", "i64"),
        ("f16", "f32"),
        ("f128", "f64"),
        ("char", "u8"),
    ];
    let mut out: Vec<TokenTree> = Vec::new();
    for tree in tokens {
        let element = matches!(out.as_slice(), [.., TokenTree::Ident(tensor), TokenTree::Punct(open)]
            if tensor == "Tensor" && open.as_char() == '<');
        out.push(match tree {
            TokenTree::Ident(word) if element => {
                let known = ABSENT.iter().find(|(absent, _)| word == absent);
                if let Some((absent, write)) = known {
                    *found = true;
                    errors.at(&word, messages::unknown_element(absent, write));
                }
                known.map_or(word.clone(), |(_, write)| Ident::new(write, word.span())).into()
            }
            TokenTree::Group(group) => {
                let inner = known_elements(group.stream(), found, errors);
                let mut new = Group::new(group.delimiter(), inner);
                new.set_span(group.span());
                new.into()
            }
            tree => tree,
        });
    }
    out.into_iter().collect()
}

/// The function without the attributes that only the macro knows.
pub(crate) fn stripped(mut function: Function) -> Function {
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(param) = input {
            param.attrs.retain(|attr| !is_ours(attr) && !is_cfg(attr));
        }
    }
    function.attrs.retain(|attr| !attr.path().is_ident("cfg"));
    function
}

pub(crate) fn is_ours(attr: &Attribute) -> bool {
    attr.path().is_ident("default") || attr.path().is_ident("stop_gradient")
}

fn is_cfg(attr: &Attribute) -> bool {
    attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr")
}

fn cfg_in(tokens: &TokenStream) -> Option<TokenStream> {
    let item = syn::parse2::<syn::ImplItemType>(tokens.clone()).ok()?;
    item.attrs.iter().find(|attr| is_cfg(attr)).map(ToTokens::to_token_stream)
}

/// What is wrong with a signature whoever it belongs to.
pub(crate) fn qualifiers(function: &Function, name: &str, errors: &mut Errors) {
    let sig = &function.sig;
    for attr in &function.attrs {
        if attr.path().is_ident("cfg") {
            errors.at(attr, messages::cfg_inside(&format!("`{name}`")));
        }
    }
    if let Some(token) = &sig.constness {
        errors.at(token, messages::qualifier("const", name));
    }
    if let Some(token) = &sig.asyncness {
        errors.at(token, messages::qualifier("async", name));
    }
    let safety = sig.safety.to_token_stream();
    if !safety.is_empty() {
        let word = safety.to_string();
        errors.at(safety, messages::qualifier(&word, name));
    }
    if let Some(abi) = &sig.abi {
        errors.at(abi, messages::qualifier("extern", name));
    }
    if let Some(variadic) = &sig.variadic {
        errors.at(variadic, messages::variadic(name));
    }
}

/// A parameter before it is known what it is.
struct RawParam {
    attrs: Vec<Attribute>,
    pat: Pat,
    ty: Type,
}

fn raw_params(sig: &Signature, name: &str, context: &str, errors: &mut Errors) -> Vec<RawParam> {
    let mut params = Vec::new();
    for input in &sig.inputs {
        match input {
            FnArg::Receiver(receiver) => errors.at(receiver, messages::receiver(name, context)),
            FnArg::Typed(param) => params.push(RawParam {
                attrs: param.attrs.clone(),
                pat: (*param.pat).clone(),
                ty: (*param.ty).clone(),
            }),
            #[allow(unreachable_patterns, reason = "more may come with the language")]
            other => errors.at(other, messages::variadic(name)),
        }
    }
    params
}

/// One name for two parameters: the second is told.
pub(crate) fn repeated_names(sig: &Signature, errors: &mut Errors) {
    let mut seen: Vec<String> = Vec::new();
    for input in &sig.inputs {
        let FnArg::Typed(param) = input else { continue };
        let Some(name) = pattern_name(&param.pat) else { continue };
        let text = plain_name(&name);
        if seen.contains(&text) {
            errors.at(&name, messages::repeated_parameter(&text, &sig.ident.to_string()));
        }
        seen.push(text);
    }
}

/// Takes the context off the front of the parameters.
fn take_context(
    params: &mut Vec<RawParam>,
    sig: &Signature,
    name: &str,
    op: &str,
    errors: &mut Errors,
) -> Option<Ident> {
    let (own, written) = match name {
        "forward" => ("ForwardContext", FORWARD_CONTEXT),
        "backward" => ("BackwardContext", BACKWARD_CONTEXT),
        _ => ("JvpContext", JVP_CONTEXT),
    };
    let is_context = |ty: &Type| {
        let ty = match bare(ty) {
            Type::Reference(reference) => &reference.elem,
            ty => ty,
        };
        CONTEXTS.iter().any(|name| is_named(ty, name))
    };
    let found: Vec<usize> = (0..params.len()).filter(|&i| is_context(&params[i].ty)).collect();
    let Some(&first) = found.first() else {
        // An alias may stand for the context: then the name tells.
        if params.first().is_some_and(|param| text(&param.pat) == "ctx") {
            let param = params.remove(0);
            errors.at(&param.ty, messages::context_other_phase(name, &text(&param.ty), written));
            return pattern_name(&param.pat);
        }
        if sig.receiver().is_none() {
            errors.at(&sig.ident, messages::context_missing(name, written));
        }
        return None;
    };
    for &again in found.iter().skip(1).rev() {
        let param = params.remove(again);
        errors.at(&param.ty, messages::context_again(name));
    }
    let param = params.remove(first);
    if first != 0 {
        errors.at(&param.ty, messages::context_not_first(name, written));
    } else {
        check_context(&param.ty, own, name, op, written, errors);
    }
    for attr in param.attrs.iter().filter(|attr| is_ours(attr) || is_cfg(attr)) {
        errors.at(attr, messages::attribute_on_context(&text(attr.path())));
    }
    pattern_name(&param.pat)
}

fn check_context(ty: &Type, own: &str, name: &str, op: &str, written: &str, errors: &mut Errors) {
    let Type::Reference(reference) = bare(ty) else {
        return errors.at(ty, messages::context_by_value(name, written));
    };
    let Some(segment) = last_segment(&reference.elem) else { return };
    if segment.ident != own {
        return errors.at(ty, messages::context_other_phase(name, &text(ty), written));
    }
    if name == "forward" && reference.mutability.is_none() {
        return errors.at(ty, messages::context_shared(&text(ty), written));
    }
    if name != "forward" && reference.mutability.is_some() {
        return errors.at(ty, messages::context_mutable(name, &text(ty), written));
    }
    let other = match &segment.arguments {
        syn::PathArguments::None => true,
        syn::PathArguments::AngleBracketed(list) => list.args.iter().any(|argument| {
            // A name that is neither `Self` nor that of the op is another type's.
            matches!(argument, syn::GenericArgument::Type(ty)
                if !is_named(ty, "Self") && !is_named(ty, op))
        }),
        syn::PathArguments::Parenthesized(_) => true,
    };
    if other {
        errors.at(ty, messages::context_argument(&text(ty), written));
    }
}

pub(crate) fn pattern_name(pat: &Pat) -> Option<Ident> {
    match pat {
        Pat::Ident(ident) if ident.subpat.is_none() => Some(ident.ident.clone()),
        _ => None,
    }
}

pub(crate) fn forward(function: &Function, op: &str, errors: &mut Errors) -> Forward {
    qualifiers(function, "forward", errors);
    let sig = &function.sig;
    repeated_names(sig, errors);
    let mut raw = raw_params(sig, "forward", FORWARD_CONTEXT, errors);
    let context = take_context(&mut raw, sig, "forward", op, errors);
    let mut params: Vec<Param> = Vec::new();
    for (position, param) in raw.into_iter().enumerate() {
        let mut param = forward_param(param, position, errors);
        let name = plain_name(&param.ident);
        // Two parameters of one name have been told; `apply` needs two names.
        if params.iter().any(|other| plain_name(&other.ident) == name) {
            param.ident = Ident::new(&format!("argument_{position}"), param.ident.span());
        }
        if matches!(name.as_str(), "apply" | "try_apply") {
            errors.at(&param.ident, messages::reserved_parameter(&name));
        }
        params.push(param);
    }
    let (fallible, outputs) = outputs(&sig.output);
    Forward { function: function.clone(), context, params, fallible, outputs }
}

fn forward_param(param: RawParam, position: usize, errors: &mut Errors) -> Param {
    let RawParam { attrs, pat, ty } = param;
    let name = pattern_name(&pat);
    let shown = name.as_ref().map_or_else(|| text(&pat), plain_name);
    let (stop, default) = parameter_attributes(&attrs, errors);
    let ident = name.clone().unwrap_or_else(|| made_up_name(&pat, position));
    let kind = match input_form(&ty) {
        Some((form, tensor)) => {
            if name.is_none() {
                errors.at(&pat, messages::tensor_name(&text(&ty)));
            }
            if let Some(default) = default {
                errors.at(default.0, messages::default_on_tensor(&shown));
            }
            let element = element(tensor);
            if is_integer(&element) && stop.is_none() {
                errors.at(&ty, messages::integer_input(&shown, &element, &text(&ty)));
            }
            let stop_gradient = stop.is_some() || is_integer(&element);
            ParamKind::Tensor(TensorInput { form, tensor: tensor.clone(), stop_gradient })
        }
        None => {
            if let Some(tensor) = hidden_tensor(&ty) {
                wrong_form(&ty, &shown, &text(tensor), errors);
            } else if let Some(stop) = stop {
                errors.at(stop, messages::stop_gradient_on_plain(&shown));
            }
            if let Some((attr, _)) = &default
                && matches!(bare(&ty), Type::ImplTrait(_))
            {
                errors.at(attr, messages::default_on_impl(&shown));
            }
            ParamKind::Plain { default: default.and_then(|(_, default)| default) }
        }
    };
    Param { ident, ty, kind }
}

fn wrong_form(ty: &Type, name: &str, tensor: &str, errors: &mut Errors) {
    let message = match bare(ty) {
        Type::Path(_) if as_tensor(ty).is_some() => messages::tensor_by_value(name, tensor),
        Type::Reference(reference) if as_tensor(&reference.elem).is_some() => {
            messages::tensor_by_mut(name, tensor)
        }
        _ => {
            let write = nearest_form(ty, tensor);
            messages::tensor_form(name, &text(ty), tensor, write.as_deref())
        }
    };
    errors.at(ty, message);
}

/// The form that somebody meant who wrote another.
fn nearest_form(ty: &Type, tensor: &str) -> Option<String> {
    let inner = match bare(ty) {
        Type::Reference(reference) => bare(&reference.elem),
        ty => ty,
    };
    let item = |ty: &Type| {
        let ty = match bare(ty) {
            Type::Reference(reference) => &*reference.elem,
            ty => ty,
        };
        as_tensor(ty).is_some()
    };
    match inner {
        // `&&Tensor`
        inner if item(inner) => Some(format!("&{tensor}")),
        Type::Slice(slice) if item(&slice.elem) => Some(format!("&[{tensor}]")),
        Type::Array(array) if item(&array.elem) => {
            Some(format!("[&{tensor}; {}]", text(&array.len)))
        }
        inner => {
            let of = |name: &str| argument_of(inner, name).is_some_and(item);
            if of("Option") {
                Some(format!("Option<&{tensor}>"))
            } else if of("Vec") {
                Some(format!("&[{tensor}]"))
            } else if of("Box") || of("Rc") || of("Arc") {
                Some(format!("&{tensor}"))
            } else {
                None
            }
        }
    }
}

fn made_up_name(pat: &Pat, position: usize) -> Ident {
    Ident::new(&format!("argument_{position}"), first_span(pat).resolved_at(Span::call_site()))
}

fn first_span(tokens: &impl ToTokens) -> Span {
    crate::errors::ends(tokens.to_token_stream()).0
}

pub(crate) type Default = (Attribute, Option<syn::Expr>);

pub(crate) fn parameter_attributes(
    attrs: &[Attribute],
    errors: &mut Errors,
) -> (Option<Attribute>, Option<Default>) {
    let (mut stop, mut default) = (None, None);
    for attr in attrs {
        if is_cfg(attr) {
            errors.at(attr, messages::cfg_inside("a parameter"));
        } else if attr.path().is_ident("stop_gradient") {
            if !matches!(attr.meta, Meta::Path(_)) {
                errors.at(attr, messages::malformed_stop_gradient());
            }
            if stop.replace(attr.clone()).is_some() {
                errors.at(attr, messages::repeated_attribute("stop_gradient"));
            }
        } else if attr.path().is_ident("default") {
            let expression = match &attr.meta {
                Meta::List(list) => list.parse_args::<syn::Expr>().ok(),
                _ => None,
            };
            if expression.is_none() {
                errors.at(attr, messages::malformed_default());
            }
            if default.replace((attr.clone(), expression)).is_some() {
                errors.at(attr, messages::repeated_attribute("default"));
            }
        }
    }
    (stop, default)
}

fn returned(output: &ReturnType) -> Option<&Type> {
    match output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => Some(ty),
    }
}

/// The type inside a `Result`.
fn inside_result(ty: &Type) -> Option<&Type> {
    argument_of(ty, "Result")
}

fn outputs(output: &ReturnType) -> (bool, Outputs) {
    let Some(whole) = returned(output) else {
        return (false, Outputs { ty: None, tuple: false, parts: Vec::new() });
    };
    let inside = inside_result(whole);
    let ty = bare(inside.unwrap_or(whole));
    let (tuple, types) = match ty {
        Type::Tuple(tuple) => (true, tuple.elems.iter().cloned().collect()),
        ty => (false, vec![ty.clone()]),
    };
    let parts = types.into_iter().map(output_part).collect();
    (inside.is_some(), Outputs { ty: Some(ty.clone()), tuple, parts })
}

fn output_part(ty: Type) -> Output {
    let kind = match output_form(&ty) {
        Some((form, tensor)) if !is_integer(&element(tensor)) => {
            OutputKind::Tensor { form, tensor: tensor.clone() }
        }
        _ => OutputKind::Plain,
    };
    Output { ty, kind }
}

fn backward(function: &Function, op: &str, errors: &mut Errors) -> Backward {
    let (context, params) = derivative(function, "backward", BACKWARD_CONTEXT, op, errors);
    let (fallible, returns) = returns(&function.sig.output);
    Backward { function: function.clone(), context, params, fallible, returns }
}

fn jvp(function: &Function, op: &str, errors: &mut Errors) -> Jvp {
    let (context, params) = derivative(function, "jvp", JVP_CONTEXT, op, errors);
    let (fallible, returns) = returns(&function.sig.output);
    Jvp { function: function.clone(), context, params, fallible, returns }
}

/// The lifetime of a reference, or of one in an `Option`.
fn lifetime_of(ty: &Type) -> Option<&syn::Lifetime> {
    match bare(argument_of(ty, "Option").unwrap_or(ty)) {
        Type::Reference(reference) => reference.lifetime.as_ref(),
        _ => None,
    }
}

/// What backward and `jvp` have in common: they get what is known from forward.
fn derivative(
    function: &Function,
    name: &str,
    written: &str,
    op: &str,
    errors: &mut Errors,
) -> (Option<Ident>, Vec<GradientParam>) {
    qualifiers(function, name, errors);
    let sig = &function.sig;
    let own =
        sig.generics.params.iter().any(|param| !matches!(param, syn::GenericParam::Lifetime(_)));
    if own {
        errors.at(&sig.generics, messages::generic_derivative(name));
    }
    if !own && let Some(clause) = &sig.generics.where_clause {
        errors.at(clause, messages::derivative_where(name));
    }
    repeated_names(sig, errors);
    let mut raw = raw_params(sig, name, written, errors);
    for param in &raw {
        let own = |lifetime: &str| {
            sig.generics.lifetimes().any(|own| own.lifetime.to_string() == lifetime)
        };
        if let Some(lifetime) = lifetime_of(&param.ty)
            && lifetime.ident != "_"
            && !own(&lifetime.to_string())
        {
            errors.at(lifetime, messages::lent(name, &lifetime.to_string()));
        }
    }
    let context = take_context(&mut raw, sig, name, op, errors);
    let params = raw
        .into_iter()
        .map(|param| {
            for attr in param.attrs.iter().filter(|attr| is_ours(attr)) {
                errors.at(attr, messages::attribute_on_gradient(&text(attr.path())));
            }
            for attr in param.attrs.iter().filter(|attr| is_cfg(attr)) {
                errors.at(attr, messages::cfg_inside("a parameter"));
            }
            if let Type::ImplTrait(ty) = bare(&param.ty) {
                errors.at(ty, messages::derivative_impl_trait(name));
            }
            GradientParam { name: pattern_name(&param.pat), ty: param.ty }
        })
        .collect();
    (context, params)
}

fn returns(output: &ReturnType) -> (bool, Returns) {
    let Some(whole) = returned(output) else { return (false, Returns::Nothing) };
    let inside = inside_result(whole);
    let ty = bare(inside.unwrap_or(whole));
    let returns = match ty {
        Type::Tuple(tuple) if tuple.elems.is_empty() => Returns::Nothing,
        Type::Tuple(tuple) => Returns::Tuple(ty.clone(), tuple.elems.iter().cloned().collect()),
        ty if is_grads(ty) => Returns::ByName(ty.clone()),
        ty => Returns::One(ty.clone()),
    };
    (inside.is_some(), returns)
}

/// The bare name `Grads`.
fn is_grads(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path.path.is_ident("Grads"),
        _ => false,
    }
}

/// What the gradient of an input is called in messages.
pub(crate) fn form_text(form: Form, tensor: &str) -> String {
    match form {
        Form::One | Form::Optional => format!("`{tensor}` or `Option<{tensor}>`"),
        Form::List => format!("`Vec<{tensor}>` or `Vec<Option<{tensor}>>`"),
    }
}
