//! The head of the impl block, its items, and the types that it declares.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Generics, ImplItemType, ItemImpl, Token, Type, Visibility};

use super::signature::stripped;
use crate::errors::Errors;
use crate::generics::parameter_name;
use crate::items::{self, ParsedItem};
use crate::messages;
use crate::model::{Block, Broken, Function, Item, bare, generic_arguments, without_reference};
use crate::tokens::{is_punct, mentions, regroup, rewritten, text};

/// The visibility, the head and the body of an impl block. Items are parsed one by one: one of them may have
/// a syntax error.
fn parts_of_impl(input: ParseStream<'_>) -> syn::Result<(Visibility, ItemImpl, Group)> {
    let attrs = input.call(Attribute::parse_outer)?;
    let vis = input.parse()?;
    let mut trees: Vec<TokenTree> = input.parse::<TokenStream>()?.into_iter().collect();
    let body = match trees.pop() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => body,
        _ => return Err(input.error("expected the block of the op, `{ .. }`")),
    };
    trees.push(regroup(&body, TokenStream::new()).into());
    let head = ItemImpl { attrs, ..syn::parse2(trees.into_iter().collect())? };
    Ok((vis, head, body))
}

/// Parses the block of an op into its head and items. `attribute` is the name of the macro.
pub(crate) fn block(
    tokens: TokenStream,
    attribute: &str,
    errors: &mut Errors,
) -> Option<(Block, Vec<ParsedItem>)> {
    let (vis, mut head, body) = match parts_of_impl.parse2(tokens.clone()) {
        Ok(parts) => parts,
        Err(error) => {
            match other_item(tokens.clone()) {
                Some((found, words)) => {
                    let named = matches!(found, "a struct" | "an enum" | "a union" | "a trait");
                    let name = words.get(1).filter(|_| named);
                    let name = name.map_or_else(|| "MyOp".to_owned(), ToString::to_string);
                    let head = words.iter().take(2).filter(|of| matches!(of, TokenTree::Ident(_)));
                    let head: TokenStream = head.cloned().collect();
                    errors.at(head, messages::not_an_impl(attribute, found, &name));
                }
                // The compiler has reported a syntax error in an impl.
                None if mentions(&tokens, "impl") => {}
                None => errors.syntax(&error),
            }
            return None;
        }
    };
    repeated_attribute(&mut head.attrs, attribute, errors);
    if !matches!(vis, Visibility::Inherited) {
        errors.at(&vis, messages::visibility_of_the_block());
    }
    let name = checked_head(&mut head, attribute, errors)?;
    let of_trait = head.trait_.is_some();
    let items = items::split(body.stream(), errors);
    let ItemImpl { attrs, impl_token, generics, self_ty, .. } = head;
    let (place, self_ty) = (impl_token.span, *self_ty);
    let (broken, kept) = (Vec::new(), Vec::new());
    Some((Block { attrs, place, generics, self_ty, name, items: kept, of_trait, broken }, items))
}

pub(crate) struct BlockRules {
    pub(crate) rules: &'static [&'static str],
    pub(crate) generated: &'static [&'static str],
    /// Whether macro items and attributes of parameters are left to the compiler.
    pub(crate) lenient: bool,
}

impl Block {
    /// Stores the items to emit. Returns the functions that define the op, each once, and the types.
    pub(crate) fn sort(
        &mut self,
        found: Vec<ParsedItem>,
        known: &BlockRules,
        errors: &mut Errors,
    ) -> (Vec<Function>, Vec<ImplItemType>) {
        let (mut functions, mut types): (Vec<Function>, Vec<ImplItemType>) = Default::default();
        for item in found {
            let function = match item {
                ParsedItem::Function(function) => function,
                ParsedItem::Type(ty) => {
                    types.push(ty);
                    continue;
                }
                ParsedItem::Broken(broken) => {
                    self.broken.push(broken);
                    continue;
                }
                ParsedItem::Macro(tokens) if !known.lenient => {
                    errors.at(&tokens, messages::item_macro());
                    self.items.push(Item::Other(tokens));
                    // The macro may generate an item that is missing.
                    self.broken.push(Broken { name: None, parameters: None });
                    continue;
                }
                ParsedItem::Macro(tokens) | ParsedItem::Other(tokens) => {
                    self.items.push(Item::Other(tokens));
                    continue;
                }
            };
            let ident = &function.sig.ident;
            let name = &ident.to_string()[..];
            if known.generated.contains(&name) {
                errors.at(ident, messages::generated_name(name));
            } else if !known.rules.contains(&name) {
                self.items.push(Item::Function(Box::new(function)));
            } else if functions.iter().any(|other| other.sig.ident == *ident) {
                errors.at(ident, messages::second_function(name));
            } else {
                functions.push(function.clone());
                let kept = if known.lenient { function } else { stripped(function) };
                self.items.push(Item::Function(Box::new(kept)));
            }
        }
        (functions, types)
    }
}

/// Removes and reports a second attribute of the macro: it would get the expansion of the first.
fn repeated_attribute(attrs: &mut Vec<Attribute>, name: &str, errors: &mut Errors) {
    attrs.retain(|attr| {
        let again = attr.path().segments.last().is_some_and(|last| last.ident == name);
        if again {
            errors.at(attr, messages::twice(&format!("#[{name}]")));
        }
        !again
    });
}

/// Replaces `Self::Saved` and similar by the declared type: the struct itself has no associated types.
pub(super) fn name_declared_types(items: &mut [ParsedItem]) {
    let declared: Vec<(Ident, TokenStream)> = items
        .iter()
        .filter_map(|item| match item {
            ParsedItem::Type(item) => Some((item.ident.clone(), item.ty.to_token_stream())),
            _ => None,
        })
        .collect();
    for item in items {
        let ParsedItem::Function(function) = item else { continue };
        if let Some(tokens) = named_types(function.sig.to_token_stream(), &declared)
            && let Ok(sig) = syn::parse2(tokens)
        {
            function.sig = sig;
        }
        if let Some(tokens) = named_types(function.body.stream(), &declared) {
            function.body = regroup(&function.body, tokens);
        }
    }
}

/// `None` if nothing is replaced.
fn named_types(tokens: TokenStream, declared: &[(Ident, TokenStream)]) -> Option<TokenStream> {
    rewritten(tokens, &mut |trees, at| match &trees[at..] {
        [TokenTree::Ident(own), a, b, TokenTree::Ident(name), ..]
            if own == "Self" && is_punct(Some(a), ':') && is_punct(Some(b), ':') =>
        {
            // The macro generates `Grads` beside the op.
            let own = (name == "Grads").then(|| name.to_token_stream());
            let found = declared.iter().find(|(declared, _)| *declared == *name);
            Some((own.or_else(|| found.map(|(_, ty)| ty.clone()))?, 4))
        }
        _ => None,
    })
}

/// What the attribute is on, in words, and the tokens from its keyword on; `None` for an impl.
pub(crate) fn other_item(tokens: TokenStream) -> Option<(&'static str, Vec<TokenTree>)> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    (0..trees.len()).find_map(|at| {
        let TokenTree::Ident(word) = &trees[at] else { return None };
        let of_function = matches!(trees.get(at + 1), Some(TokenTree::Ident(next)) if next == "fn");
        let found = match word.to_string().as_str() {
            "impl" => return Some(None),
            "struct" => "a struct",
            "enum" => "an enum",
            "union" => "a union",
            "fn" => "a function",
            "mod" => "a module",
            "trait" => "a trait",
            "use" => "a use declaration",
            "static" => "a static",
            "const" if !of_function => "a constant",
            "type" => "a type alias",
            _ => return None,
        };
        Some(Some((found, trees[at..].to_vec())))
    })?
}

/// Checks the head of the block, and returns the op's name. Afterwards the parameters and the arguments of
/// the type agree, even after an error.
fn checked_head(block: &mut ItemImpl, attribute: &str, errors: &mut Errors) -> Option<Ident> {
    if let Some((trait_, _)) = &block.trait_ {
        errors.at(trait_, messages::trait_impl(attribute, &text(&block.self_ty)));
    }
    let segment = match without_reference(&block.self_ty) {
        Type::Path(path) => path.path.segments.last().cloned(),
        _ => None,
    };
    let plain = matches!(bare(&block.self_ty), Type::Path(path)
        if path.qself.is_none() && path.path.segments.len() == 1)
        && !matches!(&segment, Some(segment)
            if matches!(segment.arguments, syn::PathArguments::Parenthesized(_)));
    if !plain {
        let name = segment.as_ref().map(|segment| segment.ident.to_string());
        errors.at(&block.self_ty, messages::self_type(name.as_deref().unwrap_or("MyOp")));
    }
    let name = segment.as_ref()?.ident.clone();
    defaults_of_parameters(&mut block.generics, errors);
    let arguments = generic_arguments(segment.as_ref()?);
    let mut arguments: Vec<_> = arguments.map(ToTokens::to_token_stream).collect();
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
        *block.self_ty = syn::parse2(written).ok()?;
    }
    Some(name)
}

/// `impl<T: Float = f32>`
fn defaults_of_parameters(generics: &mut Generics, errors: &mut Errors) {
    for parameter in &mut generics.params {
        let name = parameter_name(parameter);
        let default = match parameter {
            syn::GenericParam::Type(of) => of.default.take().map(|(_, ty)| quote!(#ty)),
            syn::GenericParam::Const(of) => of.default.take().map(|(_, value)| quote!(#value)),
            syn::GenericParam::Lifetime(_) => None,
        };
        if let Some(default) = default {
            let message = messages::parameter_default(&name, &text(&default));
            errors.at(default, message);
        }
    }
}

/// Adds a parameter for an argument that is not one, and returns the argument that names it.
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
