//! The types of an op's signatures in generated code. A type that the compiler may reject is an error type there
//! after an error, so that the error is not reported again.

use std::ops::RangeInclusive;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{FnArg, GenericParam, Type};

use crate::elementwise::parse::{Kind, kind};
use crate::generics::is_lifetime;
use crate::library::private_at;
use crate::model::{Block, Function, bare, is_named, last_segment, type_arguments};
use crate::tokens::{here, is_one_of, mentions, text};

/// Whether a type parameter has this name.
pub(crate) fn is_type_of(generics: &[&GenericParam], name: &Ident) -> bool {
    generics.iter().any(|of| matches!(of, GenericParam::Type(of) if of.ident == *name))
}

/// Whether the type is taken to be right and without hidden lifetimes, by its names. `generics`: the parameters that
/// it may mention.
pub(crate) fn is_certain(ty: &Type, generics: &[&GenericParam]) -> bool {
    let is_certain = |ty: &Type| is_certain(ty, generics);
    match bare(ty) {
        Type::Reference(of) => match bare(&of.elem) {
            Type::Slice(slice) => is_certain(&slice.elem),
            target => is_named(target, "str") || is_certain(target),
        },
        Type::Tuple(tuple) => tuple.elems.iter().all(is_certain),
        Type::Array(of) => text(&of.len).parse::<usize>().is_ok() && is_certain(&of.elem),
        Type::ImplTrait(_) => true,
        ty => {
            let Some(last) = last_segment(ty) else { return false };
            let types: Vec<_> = type_arguments(last).collect();
            let known = CERTAIN.iter().find(|(names, _)| is_one_of(&last.ident, names));
            let parameter = is_type_of(generics, &last.ident);
            (parameter && last.arguments.is_empty())
                || known.is_some_and(|(_, count)| count.contains(&types.len()))
                    && types.into_iter().all(is_certain)
        }
    }
}

/// Names of types, and how many arguments they have.
const CERTAIN: [(&str, RangeInclusive<usize>); 4] = [
    ("bool char f32 f64 i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize String Self", 0..=0),
    ("Tensor Real Mask", 0..=1),
    ("Vec Option Box Rc Arc Cell RefCell Mutex RwLock Range RangeInclusive PhantomData", 1..=1),
    ("HashMap BTreeMap", 2..=2),
];

/// The type as the return type of functions in an array whose length is [`signatures`]: an error type if that
/// does not compile.
pub(crate) fn checked(lifetime: &impl ToTokens, ty: &impl ToTokens, place: Span) -> TokenStream {
    let p = private_at(place);
    quote_spanned!(place=> <[fn(&#lifetime ()) -> #ty; __SIGNATURES] as #p::Returned>::Type)
}

/// The op in calls of its functions: an error type if [`signatures`] does not compile.
pub(crate) fn callee(op: &impl ToTokens) -> TokenStream {
    let op = checked(&quote!('static), op, Span::call_site());
    quote!(<#op>)
}

/// A constant that calls the op's functions. If the compiler rejects a type in a signature, the constant has an
/// error, which is reported once for all that depends on it. `lane`: the type argument of a formula. `types`: proofs of
/// its types.
pub(crate) fn signatures(
    block: &Block,
    lane: Option<TokenStream>,
    types: TokenStream,
) -> TokenStream {
    let without_parameters = block.generics.params.iter().all(is_lifetime);
    let types = without_parameters.then_some(types);
    let rules = block.rules().filter(|_| without_parameters);
    let calls = rules.filter_map(|Function { sig, .. }| {
        // The type of an opaque value depends on the body, which may depend on the constant.
        let opaque = mentions(&sig.output, "impl") || mentions(&sig.output, "Grads");
        // The constant knows no types for parameters.
        let own = lane.is_none() && !sig.generics.params.iter().all(is_lifetime);
        if opaque || own || mentions(&sig.inputs, "impl") {
            return None;
        }
        let (op, name) = (&block.name, &sig.ident);
        let lanes = lane.as_ref().map(|lane| {
            let lanes = vec![lane; sig.generics.type_params().count().max(1)];
            quote!(::<#(#lanes),*>)
        });
        // All errors at one place: the compiler prints equal ones once.
        let here = here(name.span());
        let inputs = (0..sig.inputs.len()).map(|at| Ident::new(&format!("__{at}"), here));
        let inputs: Vec<_> = inputs.collect();
        let kept = sig.inputs.iter().zip(&inputs).filter_map(|(input, value)| match input {
            FnArg::Typed(of) if lane.is_some() && kind(&of.ty) == Kind::Plain => {
                Some(quote_spanned!(here=> __kept(&#value);))
            }
            _ => None,
        });
        let function = quote_spanned!(here=> <#op>::#name #lanes);
        Some(quote_spanned! {here=>
            let _ = |#(#inputs),*| {
                #(#kept)*
                #function(#(#inputs),*)
            };
        })
    });
    // A formula keeps its plain parameters.
    let kept = lane.as_ref().map(|_| {
        let (clone, marker) = (quote!(::core::clone::Clone), quote!(::core::marker));
        quote!(fn __kept<T: #clone + #marker::Send + #marker::Sync + 'static>(_: &T) {})
    });
    let silent = block.silent(0);
    quote! {
        #silent
        const __SIGNATURES: ::core::primitive::usize = {
            #kept
            #(#calls)*
            #types
            0
        };
    }
}
