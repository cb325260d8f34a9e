//! The table of a line, and the code that compares the lengths in a call.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};

use super::parse::{Axis, Length, Line, TensorShape};
use super::rules::integers;
use crate::library::private;
use crate::model::{Form, Forward, Layer, output_form};
use crate::tokens::{local, plain_name};

/// The checks of a call.
pub(crate) struct Checks {
    /// Before forward.
    pub(crate) before: TokenStream,
    /// The outputs, after forward. `None` if the line says nothing of them.
    pub(crate) after: Option<TokenStream>,
}

/// The constant with the table.
pub(crate) fn table(layer: &Layer, line: &Line) -> TokenStream {
    let Some(forward) = &layer.forward else { return TokenStream::new() };
    let (p, slots) = (private(), Slots::new(layer, forward, line));
    let (op, text) = (plain_name(&layer.name), line.to_string());
    let Slots { names, integers, groups } = &slots;
    let inputs = forward.inputs().map(|(param, input)| {
        let (name, shape) = (plain_name(&param.ident), line.of(&param.ident));
        let shape = shape.map(|shape| slots.tensor_shape(shape, input.form));
        quote!((#name, #shape))
    });
    let outputs = line.outputs.iter().zip(&forward.outputs.parts).map(|(shape, part)| {
        let form = output_form(part).map_or(Form::One, |(form, _)| form);
        slots.tensor_shape(shape, form)
    });
    quote! {{
        use #p::shapes::{Axis, Form, Length, Shapes, TensorShape};
        &Shapes {
            op: #op, line: #text, inputs: &[#(#inputs),*], names: &[#(#names),*], groups: &[#(#groups),*],
            integers: #integers, outputs: &[#(#outputs),*],
        }
    }}
}

/// The names of lengths and of groups, whose positions are their numbers in the table.
struct Slots {
    /// First are the parameters that are lengths.
    names: Vec<String>,
    integers: usize,
    groups: Vec<String>,
}

impl Slots {
    fn new(layer: &Layer, forward: &Forward, line: &Line) -> Self {
        let integers = used_integers(layer, forward, line);
        let mut names: Vec<String> = Vec::new();
        for name in integers.iter().chain(&line.names()).map(plain_name) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut groups: Vec<String> = Vec::new();
        for axis in line.shapes().flat_map(|shape| shape.axes.iter().flatten()) {
            let found = match axis {
                Axis::One(_) => vec![],
                Axis::Many(name) => vec![name],
                Axis::Broadcast(a, b) => vec![a, b],
            };
            for name in found.into_iter().map(plain_name) {
                if !groups.contains(&name) {
                    groups.push(name);
                }
            }
        }
        Self { names, integers: integers.len(), groups }
    }

    /// The code of a shape in the table.
    fn tensor_shape(&self, shape: &TensorShape, form: Form) -> TokenStream {
        let form = match form {
            Form::One => quote!(One),
            Form::Optional => quote!(Optional),
            Form::List => quote!(List),
        };
        let axes = match &shape.axes {
            None => quote!(::core::option::Option::None),
            Some(axes) => {
                let axes = axes.iter().map(|axis| match axis {
                    Axis::One(length) => {
                        let length = self.length(length);
                        quote!(Axis::One(#length))
                    }
                    Axis::Many(name) => {
                        let (name, slot) = slot(&self.groups, name);
                        quote!(Axis::Many(#name, #slot))
                    }
                    Axis::Broadcast(a, b) => {
                        let [(a, of_a), (b, of_b)] = [a, b].map(|name| slot(&self.groups, name));
                        quote!(Axis::Broadcast((#a, #of_a), (#b, #of_b)))
                    }
                });
                quote!(::core::option::Option::Some(&[#(#axes),*]))
            }
        };
        let count = shape.count.as_ref().map_or_else(|| quote!(Length::Any), |n| self.length(n));
        quote!(TensorShape { form: Form::#form, axes: #axes, count: #count })
    }

    fn length(&self, length: &Length) -> TokenStream {
        match length {
            Length::Any(_) => quote!(Length::Any),
            Length::Number(number, _) => quote!(Length::Number(#number)),
            Length::Name(name) => {
                let (name, slot) = slot(&self.names, name);
                quote!(Length::Name(#name, #slot))
            }
            Length::Computed(left, sign, right) => {
                let (left, right) = (self.length(left), self.length(right));
                quote!(Length::Computed(&#left, #sign, &#right))
            }
        }
    }
}

fn slot(names: &[String], name: &Ident) -> (String, usize) {
    let name = plain_name(name);
    let slot = names.iter().position(|of| *of == name).unwrap_or_default();
    (name, slot)
}

impl Line {
    pub(crate) fn of(&self, input: &Ident) -> Option<&TensorShape> {
        let is_it = |(name, _): &&(Ident, TensorShape)| plain_name(name) == plain_name(input);
        self.inputs.iter().find(is_it).map(|(_, shape)| shape)
    }

    /// The names of all lengths.
    pub(crate) fn names(&self) -> Vec<Ident> {
        let mut names: Vec<Ident> = Vec::new();
        self.lengths().for_each(|length| {
            length.names(&mut |name| {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            });
        });
        names
    }

    /// Whether a length names this parameter.
    pub(crate) fn mentions(&self, name: &Ident) -> bool {
        let (mut found, text) = (false, plain_name(name));
        self.lengths().for_each(|length| length.names(&mut |of| found |= plain_name(of) == text));
        found
    }

    fn shapes(&self) -> impl Iterator<Item = &TensorShape> {
        self.inputs.iter().map(|(_, shape)| shape).chain(&self.outputs)
    }

    /// All lengths, of axes and of lists.
    fn lengths(&self) -> impl Iterator<Item = &Length> {
        self.shapes().flat_map(|shape| {
            let axes = shape.axes.iter().flatten().filter_map(|axis| match axis {
                Axis::One(length) => Some(length),
                Axis::Many(_) | Axis::Broadcast(..) => None,
            });
            axes.chain(&shape.count)
        })
    }
}

/// The integers that the line mentions.
fn used_integers(layer: &Layer, forward: &Forward, line: &Line) -> Vec<Ident> {
    let mut integers = integers(layer, forward);
    integers.retain(|integer| line.mentions(integer));
    integers
}

/// The code of a call's checks. `inputs` are its tensors; `returned` is what forward returned.
pub(crate) fn checks(
    layer: &Layer,
    forward: &Forward,
    line: &Line,
    inputs: &Ident,
    returned: &Ident,
) -> Checks {
    let p = private();
    let (integers, lengths, captured) = (local("integers"), local("lengths"), local("captured"));
    let out = if forward.outputs.fallible { local("out") } else { returned.clone() };
    let given = used_integers(layer, forward, line);
    let given = given.iter().map(|integer| quote!(#p::shapes::length(#integer)));
    let captures = ended(forward, &captured).map(|end| {
        quote! {
            if let ::core::option::Option::Some(#captured) =
                #p::shapes::captured(Self::SHAPES, #inputs, &#integers)
            {
                return #end;
            }
        }
    });
    let bind = quote!(#p::shapes::check_inputs(Self::SHAPES, #inputs, &#integers)?);
    let parts = line.outputs.iter().zip(&forward.outputs.parts).enumerate();
    let parts: Vec<_> = parts
        .map(|(position, (shape, part))| {
            let index = syn::Index::from(position);
            let part_of = if forward.outputs.tuple { quote!(#out.#index) } else { quote!(#out) };
            let is_tensor = shape.axes.is_some() && output_form(part).is_some();
            (position, is_tensor.then_some(part_of))
        })
        .collect();
    let checks_outputs = parts.iter().any(|(_, part)| part.is_some());
    let tensors = parts.iter().map(|(_, part)| match part {
        Some(part) if forward.outputs.fallible && !forward.outputs.tuple => quote!(#part),
        Some(part) => quote!(&#part),
        None => quote!(&()),
    });
    let tensors = quote!(&[#(#tensors),*]);
    let misfit = quote!(#p::shapes::misfit);
    let (bound, check) = match is_simple(forward, line) {
        true => {
            let slots = Slots::new(layer, forward, line);
            let (names, groups) = (slots.names.len(), slots.groups.len());
            let fits = forward.inputs().enumerate().map(|(position, (param, of))| {
                let ident = &param.ident;
                let fits = |tensor: TokenStream| {
                    quote!(#lengths.fits_input(Self::SHAPES, #position, #tensor.shape()))
                };
                match of.form {
                    Form::Optional => {
                        let tensor = local("tensor");
                        let fits = fits(tensor.to_token_stream());
                        (1, quote!(#ident.as_ref().is_none_or(|#tensor| #fits)))
                    }
                    Form::One | Form::List => (0, fits(ident.to_token_stream())),
                }
            });
            // Names in optional inputs are compared with what the others fix.
            let mut fits: Vec<_> = fits.collect();
            fits.sort_by_key(|(order, _)| *order);
            let fits = fits.iter().map(|(_, fits)| fits);
            let are_lengths =
                (slots.integers > 0).then(|| quote!(#p::shapes::are_lengths(&#integers) &&));
            let bound = quote! {
                let mut #lengths = #p::shapes::CallLengths::<#names, #groups>::new(&#integers);
                if !(#are_lengths #(#fits)&&*) {
                    return ::core::result::Result::Err(#misfit(Self::SHAPES, #inputs, &#integers, &[]));
                }
            };
            let fits = parts.iter().filter_map(|(position, part)| {
                let part = part.as_ref()?;
                Some(quote!(#lengths.fits_output(Self::SHAPES, #position, #part.shape())))
            });
            let check = quote! {
                if !(#(#fits)&&*) {
                    return ::core::result::Result::Err(
                        #misfit(Self::SHAPES, #inputs, &#integers, #tensors)
                    );
                }
            };
            (bound, check)
        }
        false => (
            quote!(let #lengths = #bind;),
            quote!(#p::shapes::check_outputs(Self::SHAPES, &#lengths, #tensors)?;),
        ),
    };
    let before = quote!(let #integers = [#(#given),*]; #captures #bound);
    let after = match forward.outputs.fallible {
        true => quote! {
            if let ::core::option::Option::Some(#out) = #p::Fallible::output(&#returned) { #check }
        },
        false => check,
    };
    let after = checks_outputs.then_some(after);
    Checks { before, after }
}

/// Whether all tensors are single, and all axes are names, numbers and groups.
fn is_simple(forward: &Forward, line: &Line) -> bool {
    let is_list = forward.inputs().any(|(_, input)| input.form == Form::List)
        || line.outputs.iter().any(|shape| shape.is_list);
    let mut axes = line.shapes().flat_map(|shape| shape.axes.iter().flatten());
    let is_simple = |axis| !matches!(axis, &Axis::One(Length::Computed(..)) | &Axis::Broadcast(..));
    !is_list && axes.all(is_simple)
}

/// What a call returns that shows only its line. Programs have ops whose outputs are single tensors.
fn ended(forward: &Forward, captured: &Ident) -> Option<TokenStream> {
    let outputs = &forward.outputs;
    let is_one = |part| matches!(output_form(part), Some((Form::One, _)));
    if !outputs.parts.iter().all(is_one) || outputs.parts.is_empty() {
        return None;
    }
    let parts = outputs.parts.iter().map(|_| quote!(#captured.output()));
    let whole = if outputs.tuple { quote!((#(#parts,)*)) } else { quote!(#(#parts)*) };
    let p = private();
    let whole = match outputs.fallible {
        true => quote!(#p::Fallible::of(::core::result::Result::Ok(#whole))),
        false => whole,
    };
    Some(quote!(::core::result::Result::Ok(#whole)))
}
