//! The model of a block: a guess from names, which the compiler then proves.

use proc_macro2::{Group, Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Expr, GenericArgument, Generics, Lifetime, PathArguments, PathSegment, ReturnType,
    Signature, Type, TypeParamBound, TypePath, Visibility, WherePredicate,
};

use std::cell::OnceCell;
use std::ops::Deref;

use crate::attributes::{is_doc, is_for_callers};
use crate::tokens::{Trees, is_one_of, mentions, text};

/// The part of the model that all forms share.
pub(crate) struct Block {
    pub(crate) attrs: Vec<Attribute>,
    /// The span of `impl`.
    pub(crate) place: Span,
    pub(crate) generics: Generics,
    pub(crate) self_ty: Type,
    pub(crate) name: Ident,
    /// The items to emit, in the user's order.
    pub(crate) items: Vec<Item>,
    /// Whether this is the impl of a trait, already reported. The type of such an impl exists.
    pub(crate) of_trait: bool,
    /// Items with syntax errors, which the compiler has reported.
    pub(crate) broken: Vec<Broken>,
}

impl Block {
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Function> {
        self.items.iter().filter_map(|item| match item {
            Item::Function(function) if function.is_rule() => Some(&**function),
            _ => None,
        })
    }

    /// Hides a public rule from the op's docs, which show the functions that call it. In a documented op it needs no
    /// docs of its own.
    pub(crate) fn hidden(&self, function: &Function) -> Option<TokenStream> {
        if !function.is_rule() || matches!(function.vis, Visibility::Inherited) {
            return None;
        }
        let documented = |attrs: &[Attribute]| attrs.iter().any(is_doc);
        let (own, moves) = (documented(&function.attrs), function.sig.ident == "forward");
        let lacks =
            if moves { own || documented(&self.attrs) } else { !own && documented(&self.attrs) };
        let doc = lacks.then(|| quote!(#[doc = "Defines the op; callers do not need it."]));
        Some(quote!(#doc #[cfg_attr(doc, doc(hidden))]))
    }

    /// Allows what clippy or the compiler would report about generated code. Each `allow` is an error in a crate that
    /// forbids its lint, so there is none without need.
    pub(crate) fn silent(&self, arguments: usize) -> TokenStream {
        let mut attrs = self.attrs.iter().chain(self.rules().flat_map(|rule| &rule.attrs));
        let old = attrs.any(|attr| mentions(attr, "deprecated"));
        let (old, many) = (old.then(|| quote!(#[allow(deprecated)])), allow_many(arguments));
        quote!(#old #many)
    }

    /// Constructs the op, so that it is not reported as dead code. By its name: `Self` may be another struct, which is
    /// reported as the name's first definition.
    pub(crate) fn constructed(&self) -> TokenStream {
        let mut name = self.name.clone();
        name.set_span(Span::mixed_site());
        match self.generics.params.is_empty() {
            true => quote!(let _ = #name;),
            false => quote!(let _ = Self(::core::marker::PhantomData);),
        }
    }

    /// The name of a type parameter that the macro adds, distinct from the op's and from those in the types.
    pub(crate) fn parameter<'a>(
        &self,
        name: &str,
        types: impl IntoIterator<Item = &'a Type>,
    ) -> Ident {
        let taken = self.name == name || types.into_iter().any(|ty| mentions(ty, name));
        let name = if taken { format!("__{name}") } else { name.to_owned() };
        Ident::new(&name, Span::call_site())
    }
}

pub(crate) fn allow_many(arguments: usize) -> Option<TokenStream> {
    (arguments > 7).then(|| quote!(#[cfg_attr(clippy, allow(clippy::too_many_arguments))]))
}

pub(crate) fn allow_by_value() -> TokenStream {
    quote!(#[cfg_attr(clippy, allow(clippy::needless_pass_by_value))])
}

/// The functions that define an op.
pub(crate) const RULES: &[&str] = &["forward", "backward", "jvp"];

/// An op, on tensors or by a formula.
pub(crate) struct Layer {
    pub(crate) block: Block,
    pub(crate) saved: Option<Type>,
    pub(crate) state: Option<Type>,
    pub(crate) forward: Option<Forward>,
    pub(crate) backward: Option<Derivative>,
    pub(crate) jvp: Option<Derivative>,
    pub(crate) is_formula: bool,
}

impl Deref for Layer {
    type Target = Block;

    fn deref(&self) -> &Block {
        &self.block
    }
}

/// An item with a syntax error: its name and parameters, if any.
pub(crate) struct Broken {
    pub(crate) name: Option<Ident>,
    pub(crate) parameters: Option<Group>,
}

/// An item of the block, to be emitted.
pub(crate) enum Item {
    Function(Box<Function>),
    Other(TokenStream),
}

/// A function, with its body as tokens.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Group,
    /// Cache of the body without code under a `#[cfg]`.
    pub(crate) without_cfg: OnceCell<Option<(Group, Trees)>>,
    /// Cache of the trees of the body.
    pub(crate) trees: OnceCell<Trees>,
    /// Cache of the parsed body.
    pub(crate) parsed: OnceCell<Option<syn::Block>>,
}

#[derive(Clone)]
pub(crate) struct Forward {
    pub(crate) function: Function,
    pub(crate) context: Option<Ident>,
    pub(crate) params: Vec<Param>,
    pub(crate) outputs: Returned,
}

/// A parameter of forward other than the context.
#[derive(Clone)]
pub(crate) struct Param {
    /// Its name in `apply`.
    pub(crate) ident: Ident,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) ty: Type,
    pub(crate) kind: ParamKind,
}

#[derive(Clone)]
pub(crate) enum ParamKind {
    Tensor(TensorInput),
    Plain { default: Option<Expr> },
}

#[derive(Clone)]
pub(crate) struct TensorInput {
    pub(crate) form: Form,
    pub(crate) tensor: TypePath,
    pub(crate) stop_gradient: bool,
    /// `None`, if it may be left out of a call by name.
    pub(crate) default: Option<Expr>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    One,
    Optional,
    List,
}

/// The return type of a function, without a `Result` around it.
#[derive(Clone)]
pub(crate) struct Returned {
    pub(crate) fallible: bool,
    /// The whole type; `None` if none is written.
    pub(crate) whole: Option<Type>,
    pub(crate) tuple: bool,
    pub(crate) parts: Vec<Type>,
}

/// Backward, or the optional rule of forward mode.
pub(crate) struct Derivative {
    pub(crate) function: Function,
    pub(crate) context: Option<Ident>,
    /// For backward the gradients of the outputs; for `jvp` the inputs, then their tangents.
    pub(crate) params: Vec<GradientParam>,
    pub(crate) returns: Returned,
}

pub(crate) struct GradientParam {
    pub(crate) name: Option<Ident>,
    pub(crate) ty: Type,
}

impl Layer {
    pub(crate) fn new(block: Block) -> Self {
        let (saved, state) = (None, None);
        let (forward, backward, jvp) = (None, None, None);
        Self { block, saved, state, forward, backward, jvp, is_formula: false }
    }

    /// Whether a missing item may be one with a syntax error.
    pub(crate) fn is_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    pub(crate) fn functions(&self) -> impl Iterator<Item = &Function> {
        let forward = self.forward.iter().map(|forward| &forward.function);
        let backward = self.backward.iter().map(|backward| &backward.function);
        forward.chain(backward).chain(self.jvp.iter().map(|jvp| &jvp.function))
    }

    /// The functions whose context has a name, with that name.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = (&Ident, &Function)> {
        let forward = self.forward.iter().map(|of| (of.context.as_ref(), &of.function));
        let derivatives = self.backward.iter().chain(&self.jvp);
        let all = forward.chain(derivatives.map(|of| (of.context.as_ref(), &of.function)));
        all.filter_map(|(context, function)| Some((context?, function)))
    }

    pub(crate) fn inputs(&self) -> impl Iterator<Item = (&Param, &TensorInput)> {
        self.forward.iter().flat_map(|forward| forward.inputs())
    }

    /// The inputs for which backward returns gradients, each with its position among the tensor inputs.
    pub(crate) fn differentiable(&self) -> Vec<(usize, &Param, &TensorInput)> {
        let inputs = self.inputs().enumerate().map(|(at, (param, input))| (at, param, input));
        inputs.filter(|(.., input)| !input.stop_gradient).collect()
    }

    pub(crate) fn outputs(&self) -> Vec<(&Type, Form, &TypePath)> {
        self.forward.iter().flat_map(|forward| forward.outputs.tensors()).collect()
    }
}

impl Function {
    pub(crate) fn is_rule(&self) -> bool {
        RULES.iter().any(|rule| self.sig.ident == rule)
    }

    /// The attributes that it keeps: those of forward that concern callers move to `apply`.
    pub(crate) fn own_attributes(&self) -> Vec<&Attribute> {
        let moves = |attr: &&Attribute| self.sig.ident == "forward" && is_for_callers(attr);
        self.attrs.iter().filter(|attr| !moves(attr)).collect()
    }

    pub(crate) fn trees(&self) -> &Trees {
        self.trees.get_or_init(|| Trees::new(self.body.stream()))
    }

    /// The body; `None` if it has a syntax error.
    pub(crate) fn parsed(&self) -> Option<&syn::Block> {
        let parse = || syn::parse2(self.body.to_token_stream()).ok();
        self.parsed.get_or_init(parse).as_ref()
    }

    /// Whether the body has no syntax error.
    pub(crate) fn is_read(&self) -> bool {
        self.parsed().is_some()
    }
}

impl Forward {
    pub(crate) fn inputs(&self) -> impl Iterator<Item = (&Param, &TensorInput)> {
        self.params.iter().filter_map(|param| match &param.kind {
            ParamKind::Tensor(input) => Some((param, input)),
            ParamKind::Plain { .. } => None,
        })
    }

    pub(crate) fn output(&self) -> TokenStream {
        match &self.function.sig.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) => ty.to_token_stream(),
        }
    }
}

impl Param {
    /// The value that is used if the caller passes none.
    pub(crate) fn default(&self) -> Option<&Expr> {
        match &self.kind {
            ParamKind::Plain { default } => default.as_ref(),
            ParamKind::Tensor(input) => input.default.as_ref(),
        }
    }
}

impl Returned {
    /// `Grads`, if the function returns gradients by name.
    pub(crate) fn by_name(&self) -> Option<&Type> {
        let is_grads = |ty: &&Type| matches!(ty, Type::Path(path) if path.path.segments.len() == 1 && is_named(ty, "Grads"));
        self.whole.as_ref().filter(is_grads)
    }

    /// The tensors with a gradient.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = (&Type, Form, &TypePath)> {
        let float = |ty| float_output(ty).map(|(form, tensor)| (ty, form, tensor));
        self.parts.iter().filter_map(float)
    }
}

// Types, classified by their syntax.

pub(crate) const PRIMITIVES: &str =
    "bool char str f32 f64 i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize";

/// The type without parentheses and invisible groups around it.
pub(crate) fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        _ => ty,
    }
}

/// The last segment of a path type; `None` for a qualified path, `<T as Trait>::X`.
pub(crate) fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match bare(ty) {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        _ => None,
    }
}

pub(crate) fn is_named(ty: &Type, name: &str) -> bool {
    last_segment(ty).is_some_and(|segment| segment.ident == name)
}

pub(crate) fn as_tensor(ty: &Type) -> Option<&TypePath> {
    match bare(ty) {
        Type::Path(path) if is_named(ty, "Tensor") => Some(path),
        _ => None,
    }
}

/// The first type argument of a type of this name, like `Option<X>`.
pub(crate) fn argument_of<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let segment = last_segment(ty).filter(|segment| segment.ident == name)?;
    first_argument(segment)
}

pub(crate) fn first_argument(segment: &PathSegment) -> Option<&Type> {
    type_arguments(segment).next()
}

/// What is in `<..>`.
pub(crate) fn generic_arguments(segment: &PathSegment) -> impl Iterator<Item = &GenericArgument> {
    let arguments = match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
        _ => None,
    };
    arguments.into_iter().flatten()
}

/// The types in `<..>`.
pub(crate) fn type_arguments(segment: &PathSegment) -> impl Iterator<Item = &Type> {
    generic_arguments(segment).filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// The lifetimes that are written in a reference or in the `<..>` of a path.
pub(crate) fn written_lifetimes(ty: &Type) -> Vec<&Lifetime> {
    if let Type::Reference(reference) = bare(ty) {
        return reference.lifetime.iter().collect();
    }
    let arguments = last_segment(ty).into_iter().flat_map(generic_arguments);
    let lifetimes = arguments.filter_map(|argument| match argument {
        GenericArgument::Lifetime(lifetime) => Some(lifetime),
        _ => None,
    });
    lifetimes.collect()
}

/// The types that a value of this type holds: targets of references, elements of lists and tuples, type
/// arguments. Parameters and results of functions are not held.
pub(crate) fn contained_types(ty: &Type) -> Vec<&Type> {
    match bare(ty) {
        Type::Reference(reference) => vec![&reference.elem],
        Type::Slice(slice) => vec![&slice.elem],
        Type::Array(array) => vec![&array.elem],
        Type::Ptr(pointer) => vec![&pointer.elem],
        Type::Tuple(tuple) => tuple.elems.iter().collect(),
        ty => last_segment(ty).into_iter().flat_map(type_arguments).collect(),
    }
}

pub(crate) fn without_reference(ty: &Type) -> &Type {
    match bare(ty) {
        Type::Reference(reference) => bare(&reference.elem),
        ty => ty,
    }
}

/// The element type of a `Tensor`; `f32` if none is written.
pub(crate) fn element(tensor: &TypePath) -> String {
    let segment = tensor.path.segments.last();
    match segment.and_then(first_argument) {
        Some(element) => match bare(element) {
            // Faster for a plain name.
            Type::Path(path) => path.path.get_ident().map_or_else(|| text(path), Ident::to_string),
            element => text(element),
        },
        None => "f32".to_owned(),
    }
}

/// Whether the element type has no gradient.
pub(crate) fn is_integer(element: &str) -> bool {
    matches!(element, "i32" | "i64" | "u8" | "bool")
}

/// Whether the macro knows the element type. Two known names are certainly two types.
pub(crate) fn is_known(element: &str) -> bool {
    is_integer(element) || matches!(element, "f32" | "f64")
}

pub(crate) fn shared_target(ty: &Type) -> Option<&Type> {
    match bare(ty) {
        Type::Reference(reference) if reference.mutability.is_none() => Some(&reference.elem),
        _ => None,
    }
}

pub(crate) fn input_form(ty: &Type) -> Option<(Form, &TypePath)> {
    let borrowed = |ty| shared_target(ty).and_then(as_tensor);
    if let Some(tensor) = borrowed(ty) {
        return Some((Form::One, tensor));
    }
    if let Some(tensor) = argument_of(ty, "Option").and_then(borrowed) {
        return Some((Form::Optional, tensor));
    }
    let item = |ty| as_tensor(ty).or_else(|| borrowed(ty));
    let tensor = match (bare(ty), shared_target(ty).map(bare)) {
        (Type::Array(array), _) => borrowed(&array.elem),
        (_, Some(Type::Slice(slice))) => item(&slice.elem),
        (_, Some(Type::Array(array))) => item(&array.elem),
        (_, list) => list.and_then(|list| argument_of(list, "Vec")).and_then(as_tensor),
    };
    tensor.map(|tensor| (Form::List, tensor))
}

pub(crate) fn output_form(ty: &Type) -> Option<(Form, &TypePath)> {
    if let Some(tensor) = as_tensor(ty) {
        return Some((Form::One, tensor));
    }
    let element = match bare(ty) {
        Type::Array(array) => Some(&*array.elem),
        _ => argument_of(ty, "Vec"),
    };
    element.and_then(as_tensor).map(|tensor| (Form::List, tensor))
}

/// As [`output_form`], for tensors with a gradient.
pub(crate) fn float_output(ty: &Type) -> Option<(Form, &TypePath)> {
    output_form(ty).filter(|(_, tensor)| !is_integer(&element(tensor)))
}

/// The first float tensor anywhere in a type, except in parameters and results of functions.
pub(crate) fn hidden_tensor(ty: &Type) -> Option<&TypePath> {
    if let Some(tensor) = as_tensor(ty) {
        return (!is_integer(&element(tensor))).then_some(tensor);
    }
    match bare(ty) {
        Type::ImplTrait(object) => tensor_of_bounds(&object.bounds),
        Type::TraitObject(object) => tensor_of_bounds(&object.bounds),
        ty if is_named(ty, "PhantomData") => None,
        ty => contained_types(ty).into_iter().find_map(hidden_tensor),
    }
}

/// The tensor in bounds like `Into<Tensor>` or `Iterator<Item = Tensor>`.
pub(crate) fn tensor_of_bounds<'a>(
    bounds: impl IntoIterator<Item = &'a TypeParamBound>,
) -> Option<&'a TypePath> {
    const CARRYING_TRAITS: &str = "Into AsRef Borrow Deref Iterator IntoIterator ExactSizeIterator \
        DoubleEndedIterator";
    bounds.into_iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let segment = bound.path.segments.last()?;
        if !is_one_of(&segment.ident, CARRYING_TRAITS) {
            return None;
        }
        generic_arguments(segment).find_map(|argument| match argument {
            GenericArgument::Type(ty) => hidden_tensor(ty),
            GenericArgument::AssocType(assoc) => hidden_tensor(&assoc.ty),
            _ => None,
        })
    })
}

/// The bounds of a type parameter, at its declaration and in the `where` clause.
pub(crate) fn bounds_of<'a, 'n>(
    generics: &'a Generics,
    name: &'n str,
) -> impl Iterator<Item = &'a TypeParamBound> + use<'a, 'n> {
    let declared = generics.type_params().filter(move |param| param.ident == name);
    let clauses = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let clauses = clauses.filter_map(move |predicate| match predicate {
        WherePredicate::Type(predicate) if text(&predicate.bounded_ty) == name => {
            Some(&predicate.bounds)
        }
        _ => None,
    });
    declared.flat_map(|param| &param.bounds).chain(clauses.flatten())
}

/// The name of the list that `name` is probably a misspelling of.
pub(crate) fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    // At most two edits, and at least one letter must remain.
    let most = 2.min(name.chars().count().saturating_sub(1));
    let near = |candidate: &&&str| strsim::damerau_levenshtein(name, candidate) <= most;
    names.iter().filter(near).min_by_key(|other| strsim::damerau_levenshtein(name, other)).copied()
}
