//! `#[py_func]`: parses and checks an impl block with `forward` and `backward` over arrays, and expands it
//! to an operator of programs, by a call of `Program::py_func`.

mod messages;
mod types;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, FnArg, GenericParam, PatType, Path, Type};

use crate::args::take_crate;
use crate::attributes::{is_cfg, is_doc, is_for_each_call};
use crate::check::absent;
use crate::errors::Errors;
use crate::expand::documented_arguments;
use crate::expansion::Mode;
use crate::fallback;
use crate::front::{self, Form};
use crate::generics::is_lifetime;
use crate::items::ParsedItem;
use crate::library::{import, private, private_at};
use crate::messages::{absent_parameter, list, plural, returned_count};
use crate::model::{
    Block, Function, Item, allow_by_value, argument_of, bare, is_named, last_segment, nearest,
    type_arguments,
};
use crate::parse::{BlockRules, block, is_context, parameters, pattern_name, returned};
use crate::signatures::{callee, checked, is_certain, signatures};
use crate::tokens::{anonymous, ends, is_one_of, local, mentions, named, parts, plain_name, text};

#[derive(Default)]
pub(crate) struct Arguments {
    names: Option<Vec<Ident>>,
    library: Option<Path>,
}

impl Arguments {
    fn read(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for (part, comma) in parts(tokens) {
            if part.is_empty() {
                errors.at(comma, messages::unknown_argument());
            } else if let Ok(name) = syn::parse2::<Ident>(part.clone())
                && !is_one_of(&name, "elementwise no_grad once_differentiable")
            {
                let name = named(&plain_name(&name), name.span()).unwrap_or(name);
                read.names.get_or_insert_default().push(name);
            } else if !take_crate(&part, &mut read.library, errors) {
                errors.at(part, messages::unknown_argument());
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

pub(crate) struct Op {
    block: Block,
    forward: Option<Function>,
    backward: Option<Function>,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    /// The parameters of backward, if each has a name.
    given: Option<Vec<Value>>,
    /// The docs of forward's parameters.
    docs: Option<TokenStream>,
}

const BLOCK_RULES: BlockRules =
    BlockRules { rules: &["forward", "backward"], generated: &["call"], lenient: true };

pub(crate) fn py_func(arguments: TokenStream, block: TokenStream) -> TokenStream {
    front::run::<Op>(block, |errors| Arguments::read(arguments, errors))
}

impl Form for Op {
    type Args = Arguments;

    const CALLS: &'static [&'static str] = BLOCK_RULES.generated;

    fn parse(tokens: TokenStream, args: &Arguments, errors: &mut Errors) -> Option<Self> {
        let (mut block, mut found) = block(tokens, "py_func", errors)?;
        let docs = found.iter().find_map(documented);
        found.iter_mut().for_each(|item| without_attributes(item, errors));
        let (functions, types) = block.sort(found, &BLOCK_RULES, errors);
        block.items.extend(types.iter().map(|ty| Item::Other(ty.to_token_stream())));
        let of = |name: &str| functions.iter().find(|function| function.sig.ident == name).cloned();
        let (forward, backward) = (of("forward"), of("backward"));
        let (inputs, outputs, given) = (Vec::new(), Vec::new(), None);
        let mut op = Self { block, forward, backward, inputs, outputs, given, docs };
        let Some(forward) = &op.forward else { return Some(op) };
        op.inputs = named_parameters(forward, errors).unwrap_or_default();
        op.given = op.backward.as_ref().and_then(|backward| named_parameters(backward, errors));
        let types = returned(&forward.sig.output).parts;
        let names = args.names.clone().filter(|names| names.len() == types.len());
        let names = names.unwrap_or_else(|| default_names(types.len()));
        op.outputs = names.into_iter().zip(types).map(|(name, ty)| Value { name, ty }).collect();
        Some(op)
    }

    fn library(args: &Arguments) -> Option<&Path> {
        args.library.as_ref()
    }

    fn block(&self) -> &Block {
        &self.block
    }

    fn check(&self, args: &Arguments, errors: &mut Errors) {
        let block = &self.block;
        if let Some(lifetime) = block.generics.lifetimes().next() {
            errors.at(lifetime, messages::lifetime());
        }
        let Some(forward) = &self.forward else {
            if block.broken.is_empty() {
                errors.at(&block.self_ty, messages::no_forward());
            }
            return;
        };
        if let Some(names) = args.names.as_ref().filter(|of| of.len() != self.outputs.len()) {
            let count = messages::output_count(names.len(), self.outputs.len());
            let mut each = names.iter().map(ToTokens::to_token_stream);
            let slip = each.find(|name| nearest(&name.to_string(), &["crate"]).is_some());
            let wrong = slip.map(|name| (name, messages::unknown_argument()));
            let (place, message) = wrong.unwrap_or_else(|| (quote!(#(#names),*), count));
            errors.at(place, message);
        }
        if self.inputs.is_empty() && self.outputs.is_empty() {
            errors.at(&forward.sig.ident, messages::neither());
        }
        for output in &self.outputs {
            if let Some(input) = self.inputs.iter().find(|input| input.name == output.name) {
                errors.at(&input.name, messages::name_clash(&output.name.to_string()));
            }
        }
        let generics: Vec<_> = block.generics.params.iter().collect();
        for Value { name, ty } in self.inputs.iter().chain(self.given.iter().flatten()) {
            types::check(Some(name), ty, &generics, errors);
        }
        let gradients = self.backward.as_ref().map(|backward| returned(&backward.sig.output).parts);
        let outputs = self.outputs.iter().map(|output| &output.ty);
        for ty in outputs.clone().chain(gradients.iter().flatten()) {
            types::check(None, ty, &generics, errors);
        }
        let all = self.inputs.iter().map(|input| &input.ty).chain(outputs);
        types::unbound_element(all, block, errors);
        for (name, ty) in self.absent() {
            let shown = plain_name(&name);
            let write = format!("{shown}: {}", text(ty));
            errors.at(&name, absent_parameter(&shown, &write));
        }
        if let Some(backward) = &self.backward {
            self.check_backward(backward, errors);
        }
    }

    fn expand(self, args: &Arguments, mode: Mode) -> TokenStream {
        self.tokens(&mode, args.library.as_ref())
    }
}

impl Op {
    fn check_backward(&self, backward: &Function, errors: &mut Errors) {
        if self.outputs.is_empty() {
            return errors.at(&backward.sig.ident, messages::backward_of_nothing());
        }
        let Some(given) = &self.given else { return };
        let known = self.values();
        let mut positions = Vec::new();
        for value in given {
            match known.iter().position(|name| value.name == name) {
                Some(position) => positions.push(position),
                None => {
                    let name = value.name.to_string();
                    errors.at(&value.name, messages::unknown_parameter(&name, &list(&known)));
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
            errors.at(&backward.sig.inputs, messages::order(&list(&names)));
        }
        let gradients = returned(&backward.sig.output).parts.len();
        if gradients != self.inputs.len() {
            let has = plural(self.inputs.len(), "input");
            let write = "one for each input";
            let reported = returned_count("backward", gradients, "gradient", &has, write);
            errors.at_output(&backward.sig, reported);
        }
    }

    /// The inputs that backward names and does not get.
    fn absent(&self) -> Vec<(Ident, &Type)> {
        let (Some(forward), Some(backward)) = (&self.forward, &self.backward) else {
            return Vec::new();
        };
        absent::inputs(forward, backward)
    }

    /// The names of the values that backward can take, in order.
    fn values(&self) -> Vec<String> {
        let both = self.inputs.iter().chain(&self.outputs);
        let names = both.map(|value| value.name.to_string());
        names
            .chain(self.outputs.iter().map(|output| gradient_of(&output.name).to_string()))
            .collect()
    }

    fn tokens(&self, mode: &Mode, library: Option<&Path>) -> TokenStream {
        let (private, library) = (private(), import(library));
        let Block { generics, self_ty: op, .. } = &self.block;
        let vis = self.forward.as_ref().map(|forward| &forward.vis);
        let is_old = |attr: &&Attribute| is_for_each_call(attr) && mentions(*attr, "deprecated");
        let moves = |attr: &&Attribute| is_old(attr) || is_doc(attr);
        let calls = self.forward.iter().flat_map(|of| of.attrs.iter().filter(is_old));
        let docs = self.forward.iter().flat_map(|of| of.attrs.iter().filter(|of| is_doc(of)));
        let docs: Vec<_> = docs.collect();
        let end = (!docs.is_empty()).then(|| quote!(#[doc = ""]));
        let arguments = &self.docs;
        let structure = self.block.structure(&vis, "An operator of programs.");
        let block = self.block.written(mode, |function| match mode {
            Mode::Reported(reported) => {
                let absent = match function.sig.ident == "backward" {
                    true => self.absent().into_iter().map(|(name, _)| name).collect(),
                    false => Vec::new(),
                };
                fallback::with_error_types(reported, function, absent)
            }
            _ => {
                let Function { attrs, vis, sig, body, .. } = function;
                let kept = attrs.iter().filter(|attr| sig.ident != "forward" || !moves(attr));
                let hidden = self.block.hidden(function);
                let by_value = function.is_rule().then(allow_by_value);
                quote!(#(#kept)* #hidden #by_value #vis #sig #body)
            }
        });
        let cfg = self.block.cfg();
        let both: Vec<&Ident> =
            self.inputs.iter().chain(&self.outputs).map(|value| &value.name).collect();
        let silent = self.block.silent(both.len());
        let outcome = match self.outputs.len() {
            0 => quote!(()),
            1 => quote!(#private::Variable),
            n => quote!([#private::Variable; #n]),
        };
        let inputs = self.inputs.iter().map(|input| format!("`{}`", input.name));
        let doc = format!(
            "Adds the operator to the program of its variables: inputs {}, then outputs that \
             `create_var` made. Returns the outputs.",
            inputs.collect::<Vec<_>>().join(", ")
        );
        let (declared, _, clause) = generics.split_for_impl();
        let keyword = self.block.keyword();
        let body = match mode {
            Mode::Full => self.body(),
            _ => quote!({ #(let _ = #both;)* ::core::unreachable!() }),
        };
        let place = self.forward.as_ref().map_or_else(Span::call_site, place_of);
        let name = Ident::new("call", place);
        let full = matches!(mode, Mode::Full);
        let signatures = full.then(|| signatures(&self.block, None, self.types()));
        let program = local("program");
        let built = match mode {
            Mode::Full => self.built(&program),
            _ => quote!({ let _ = #program; ::core::unreachable!() }),
        };
        let function = quote! {
            #(#cfg)*
            #silent
            const _: () = {
                #library
                #signatures
                #keyword #declared #op #clause {
                    // The compiler suggests it in place of these.
                    #[doc(alias("apply", "try_apply", "with"))]
                    #(#docs)*
                    #end
                    #[doc = #doc]
                    #arguments
                    ///
                    /// # Errors
                    ///
                    /// Where `Program::py_func` gives one.
                    #(#calls)*
                    #[track_caller]
                    #vis fn #name(#(#both: &#private::Variable),*) -> #private::Result<#outcome> {
                        #body
                    }
                }

                impl #declared #private::PyFuncBlock for #op #clause {
                    fn build(#program: &#private::Program) -> #private::BlockCall {
                        #built
                    }
                }
            };
        };
        let call = match mode {
            Mode::Reported(reported) => {
                let constants = fallback::constants(Self::CALLS, generics, op, reported);
                fallback::calls(&constants, &function)
            }
            _ => function,
        };
        quote!(#block #structure #call)
    }

    fn body(&self) -> TokenStream {
        let private = private();
        let names = |values: &[Value]| -> Vec<Ident> {
            values.iter().map(|value| value.name.clone()).collect()
        };
        let (inputs, outputs) = (names(&self.inputs), names(&self.outputs));
        let one = inputs.first().or(outputs.first());
        let program = one.map(|one| quote!(#private::Variable::program(#one)));
        // A local of the macro, which no input's name can clash with.
        let call = local("call");
        let x = (!inputs.is_empty()).then(|| quote!(let #call = #call.x([#(#inputs),*]);));
        let out = (!outputs.is_empty()).then(|| quote!(let #call = #call.out([#(#outputs),*]);));
        let skipped = self.backward.as_ref().map(|_| {
            let given = |name: &Ident| self.given.iter().flatten().any(|of| of.name == *name);
            let skipped = inputs.iter().chain(&outputs).filter(|name| !given(name));
            quote! {
                let #call = #call
                    .skip_vars_in_backward_input([#(#skipped),*] as [&#private::Variable; _]);
            }
        });
        let (takes, returns) = (inputs.len(), outputs.len());
        let constructed = self.block.constructed();
        let proofs = self.proofs();
        quote! {
            #constructed
            #proofs
            let #call = <Self as #private::PyFuncBlock>::build(#program);
            let #call = #call.with_counts::<#takes, #returns>();
            #x
            #out
            #skipped
            #call.call()
        }
    }

    /// The call of `Program::py_func` with the block's functions.
    fn built(&self, program: &Ident) -> TokenStream {
        let private = private();
        let name = match self.block.generics.params.is_empty() {
            true => plain_name(&self.block.name).into_token_stream(),
            // Each element type has functions of its own.
            false => quote!(&#private::name_of_block::<Self>()),
        };
        let backward = self.backward.as_ref().map(|backward| {
            let marker = marker(&self.block, backward, self.given.as_deref(), self.inputs.len());
            let backward = function_value(backward);
            quote!(.backward_func #marker (#backward))
        });
        let forward = self.forward.as_ref().map(|forward| {
            let (place, function) = (place_of(forward), function_value(forward));
            let (private, marker) = (
                private_at(place),
                marker(&self.block, forward, Some(&self.inputs), self.outputs.len()),
            );
            quote_spanned!(place=> #private::Program::py_func #marker (#program, #function))
        });
        quote!(#private::BlockCall::of(#forward.name(#name) #backward))
    }

    /// Proofs that a program can pass the parameters and take the results.
    fn types(&self) -> TokenStream {
        let private = private();
        let given = self.inputs.iter().chain(self.given.iter().flatten());
        let given = given.map(|value| (value.ty.clone(), quote!(PyFuncParam)));
        let rules = self.forward.iter().chain(&self.backward);
        let results = rules.flat_map(|rule| returned(&rule.sig.output).parts);
        let results = results.map(|ty| (ty, quote!(PyFuncValue)));
        // A type that the compiler rejects would be reported again, but for a name alone.
        let generics: Vec<_> = self.block.generics.params.iter().collect();
        let is_name =
            |ty: &Type| matches!(bare(ty), Type::Path(of) if of.path.get_ident().is_some());
        let types = given.chain(results);
        let types = types.filter(|(ty, _)| is_name(ty) || is_accepted(ty, &generics));
        let (types, traits): (Vec<_>, Vec<_>) = types.map(|(ty, of)| (anonymous(&ty), of)).unzip();
        quote!(let _ = || { #(let _ = <#types as #private::#traits>::PARAM;)* };)
    }

    /// Proofs that each gradient has the element type of its input or output.
    fn proofs(&self) -> TokenStream {
        let Some(backward) = &self.backward else { return TokenStream::new() };
        let mut proofs = Vec::new();
        let of = |ty: &Type| {
            let checked = || checked(&quote!('static), &anonymous(ty), ty.span());
            certain(&self.block, ty).unwrap_or_else(checked)
        };
        for Value { name, ty } in self.given.iter().flatten() {
            let is_of = |of: &&Value| *name == of.name || *name == gradient_of(&of.name);
            let input = self.inputs.iter().find(|of| *name == of.name);
            let input = input.map(|input| ("same_as_input", input));
            let output = || Some(("same_as_output", self.outputs.iter().find(is_of)?));
            let Some((proof, other)) = input.or_else(output) else { continue };
            let (span, ty, other) = (ty.span(), of(ty), of(&other.ty));
            let (private, proof) = (private_at(span), Ident::new(proof, span));
            proofs.push(quote_spanned!(span=> #private::#proof::<#ty, #other>();));
        }
        for (ty, input) in returned(&backward.sig.output).parts.iter().zip(&self.inputs) {
            let (start, end) = ends(ty.to_token_stream());
            let (private, ty, input) = (private_at(start), of(ty), of(&input.ty));
            let path = quote_spanned!(start=> #private::gradient_of_input::<#ty, #input>);
            proofs.push(quote_spanned!(end=> #path();));
        }
        quote!(#(#proofs)*)
    }
}

/// A type of the block in a body, if it is certain.
fn certain(block: &Block, ty: &Type) -> Option<TokenStream> {
    let generics: Vec<_> = block.generics.params.iter().collect();
    // A lifetime of its function has no name there.
    is_accepted(ty, &generics).then(|| anonymous(ty))
}

/// Whether the compiler surely accepts the type, by its names.
fn is_accepted(ty: &Type, generics: &[&GenericParam]) -> bool {
    if let Some(inner) = argument_of(ty, "Option") {
        return is_accepted(inner, generics);
    }
    match bare(ty) {
        Type::Reference(of) => match bare(&of.elem) {
            Type::Slice(_) => of.lifetime.is_none() && is_certain(ty, generics),
            target if is_named(target, "str") => of.lifetime.is_none(),
            target => of.lifetime.is_none() && is_accepted(target, generics),
        },
        ty => {
            let is_array = last_segment(ty).is_some_and(|last| {
                last.ident.to_string().starts_with("Array")
                    && type_arguments(last).all(|ty| is_certain(ty, generics))
            });
            is_array || is_certain(ty, generics)
        }
    }
}

/// The docs of the parameters, if this is forward and has any.
fn documented(item: &ParsedItem) -> Option<TokenStream> {
    let ParsedItem::Function(function) = item else { return None };
    let forward = (function.sig.ident == "forward").then_some(function)?;
    let params = forward.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(param) => {
            let docs = param.attrs.iter().filter(|attr| is_doc(attr)).cloned();
            Some((pattern_name(&param.pat)?, docs.collect::<Vec<_>>()))
        }
        FnArg::Receiver(_) => None,
    });
    let params: Vec<_> = params.collect();
    documented_arguments(params.iter().map(|(name, docs)| (name, &docs[..])))
}

/// Removes attributes of parameters that the compiler would reject, and reports those that are not docs.
fn without_attributes(item: &mut ParsedItem, errors: &mut Errors) {
    let ParsedItem::Function(function) = item else { return };
    if !function.is_rule() {
        return;
    }
    for input in &mut function.sig.inputs {
        let FnArg::Typed(param) = input else { continue };
        for attr in param.attrs.iter().filter(|attr| is_cfg(attr)) {
            errors.at(attr, crate::messages::cfg_inside(&text(attr.path()), "a parameter"));
        }
        param.attrs.retain(|attr| !is_cfg(attr) && !is_doc(attr));
    }
}

/// The type arguments of a method that takes the function: the types of its parameters, for the proof that it is one
/// of arrays. A type that the compiler may reject is left to inference.
fn marker(
    block: &Block,
    function: &Function,
    parameters: Option<&[Value]>,
    results: usize,
) -> TokenStream {
    let Some(parameters) = parameters else { return TokenStream::new() };
    let types = parameters.iter().map(|of| match certain(block, &of.ty) {
        Some(ty) => quote!(::core::marker::PhantomData<#ty>),
        None => quote!(_),
    });
    let (place, count) = (place_of(function), parameters.len());
    quote_spanned!(place=> ::<_, ((#(#types,)*), _), #count, #results>)
}

/// A function of the block as a value. Errors about its types are shown at its name.
fn function_value(function: &Function) -> TokenStream {
    let (op, name) = (callee(&quote!(Self)), &function.sig.ident);
    quote_spanned!(place_of(function)=> #op::#name)
}

fn place_of(function: &Function) -> Span {
    Span::call_site().located_at(function.sig.ident.span())
}

/// The parameters with their names; `None` if one has no name.
fn named_parameters(function: &Function, errors: &mut Errors) -> Option<Vec<Value>> {
    let sig = &function.sig;
    let name = sig.ident.to_string();
    let params = parameters(function, &messages::receiver(&name), errors);
    let generic = |param: &GenericParam| !is_lifetime(param);
    if sig.generics.params.iter().any(generic) {
        errors.at(&sig.generics, messages::function_generic(&name));
    }
    if mentions(&sig.output, "impl") {
        errors.at_output(sig, messages::function_generic(&name));
    }
    let mut sound = params.len() == sig.inputs.len();
    let mut values = Vec::new();
    for PatType { pat, ty, .. } in params {
        match pattern_name(&pat) {
            _ if mentions(&ty, "impl") => errors.at(ty, messages::function_generic(&name)),
            _ if is_context(&ty) => errors.at(ty, messages::context(&name)),
            Some(ident) => {
                // `_y` is an unused `y`.
                let text = ident.to_string();
                let name = named(text.trim_start_matches('_'), ident.span()).unwrap_or(ident);
                values.push(Value { name, ty: *ty });
            }
            None => {
                errors.at(pat, messages::parameter_needs_name(&name));
                sound = false;
            }
        }
    }
    sound.then_some(values)
}

/// The default names of outputs: `y`, or `y0`, `y1` ..
fn default_names(count: usize) -> Vec<Ident> {
    let name = |at: usize| if count == 1 { "y".to_owned() } else { format!("y{at}") };
    (0..count).map(|at| Ident::new(&name(at), Span::call_site())).collect()
}

fn gradient_of(output: &Ident) -> Ident {
    format_ident!("d{}", output)
}
