//! From tokens to the model. Tells what cannot be understood, and goes on with the rest.

mod attributes;
mod block;
mod context;
mod derivative;
mod elements;
mod forward;
mod placeholders;
mod signature;

use proc_macro2::{Ident, TokenStream};
use syn::{Generics, ReturnType, Type};

use crate::errors::Errors;
use crate::glance::Glance;
use crate::items::Found;
use crate::messages;
use crate::model::{Broken, Function, Item, Layer, nearest};
use attributes::{cfg_in, is_doc};
use block::name_declared_types;
use context::take_context;
use derivative::{backward, bare_grads, jvp};
use elements::{may_be_unknown, with_known_elements};
use signature::{RawParam, inside_result, raw_params, returned};

pub(crate) use attributes::{is_cfg, is_lint, is_ours, parameter_attributes, stripped};
pub(crate) use block::{Block, block};
pub(crate) use context::{BACKWARD_CONTEXT, CONTEXTS, FORWARD_CONTEXT, JVP_CONTEXT};
pub(crate) use derivative::form_text;
pub(crate) use forward::forward;
pub(crate) use signature::{pattern_name, qualifiers, repeated_names};

/// Reads the block; none where it is no impl block of an op.
pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Option<Layer> {
    let glance = Glance::of(&tokens);
    let (block, name, mut items) = block(tokens, errors)?;
    if glance.behind("Self").any(|rest| rest.starts_with("::")) {
        name_declared_types(&mut items);
    }
    let of_trait = block.trait_.is_some();
    let mut layer = Layer {
        glance,
        attrs: block.attrs,
        place: block.place,
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
        wrong: (false, false),
    };
    for item in items {
        layer.add(item, errors);
    }
    Some(layer)
}

impl Layer {
    fn add(&mut self, item: Found, errors: &mut Errors) {
        match item {
            Found::Other(tokens) => self.items.push(Item::Other(tokens)),
            Found::Broken(broken) => self.broken.push(broken),
            Found::Macro(tokens) => {
                errors.at(&tokens, messages::item_macro());
                self.items.push(Item::Other(tokens));
                // What it makes may be what is missing.
                self.broken.push(Broken { name: None, parameters: None });
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
        if self.glance.may_mention("cfg")
            && let Some(cfg) = cfg_in(all)
        {
            errors.at(cfg, messages::cfg_inside(&format!("`type {name}`")));
        }
        if !generics.params.is_empty() {
            errors.at(&generics.params, messages::type_generics(&name));
        }
        let known = may_be_unknown(&self.glance).then(|| with_known_elements(&ty, errors));
        let ty = known.flatten().unwrap_or(ty);
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
            && may_be_unknown(&self.glance)
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
                let may_be = self.glance.may_mention_word("_");
                let filled = may_be.then(|| placeholders::filled(&function)).flatten();
                let read = filled.as_ref().unwrap_or(&function);
                self.forward = Some(forward(read, &self.name.to_string(), errors));
                self.items.push(Item::Function(Box::new(stripped(function))));
            }
            "backward" => {
                if let ReturnType::Type(_, ty) = &mut function.sig.output {
                    bare_grads(ty, errors);
                }
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
