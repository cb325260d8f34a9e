//! From tokens to the model. Tells what cannot be understood, and goes on with the rest.

mod attributes;
mod block;
mod context;
mod derivative;
mod elements;
mod forward;
mod placeholders;
mod signature;
mod twin;

use proc_macro2::TokenStream;
use syn::{ImplItemType, ReturnType};

use crate::attributes::is_cfg;
use crate::errors::Errors;
use crate::items::Found;
use crate::messages;
use crate::model::{Broken, Function, Item, Layer, nearest};
use block::name_declared_types;
use derivative::{bare_grads, derivative};
use elements::with_known_elements;

pub(crate) use attributes::{parameter_attributes, stripped};
pub(crate) use block::block;
pub(crate) use context::{BACKWARD_CONTEXT, CONTEXTS};
pub(crate) use forward::forward;
pub(crate) use signature::{RawParam, Returned, parameters, pattern_name, returned};

/// Reads the block; none where it is no impl block of an op.
pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Option<Layer> {
    let (block, mut items) = block(tokens, "py_layer", errors)?;
    name_declared_types(&mut items);
    let mut layer = Layer::new(block);
    for item in items {
        layer.add(item, errors);
    }
    Some(layer)
}

impl Layer {
    fn add(&mut self, item: Found, errors: &mut Errors) {
        match item {
            Found::Other(tokens) => self.block.items.push(Item::Other(tokens)),
            Found::Broken(broken) => self.block.broken.push(broken),
            Found::Macro(tokens) => {
                errors.at(&tokens, messages::item_macro());
                self.block.items.push(Item::Other(tokens));
                // What it makes may be what is missing.
                self.block.broken.push(Broken { name: None, parameters: None });
            }
            Found::Type(ty) => self.add_type(ty, errors),
            Found::Function(function) => {
                self.add_function(function, errors);
            }
        }
    }

    fn add_type(&mut self, item: ImplItemType, errors: &mut Errors) {
        let ImplItemType { attrs, ident, generics, ty, .. } = item;
        let name = ident.to_string();
        if let Some(cfg) = attrs.iter().find(|attr| is_cfg(attr)) {
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
                return errors.at(&ident, messages::unknown_type(&name, near));
            }
        };
        if place.is_some() {
            return errors.at(&ident, messages::second_type(&name));
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
            "forward" | "backward" | "jvp"
                if self.functions().any(|other| other.sig.ident == ident) =>
            {
                errors.at(&ident, messages::second_function(&name));
            }
            "forward" => {
                let filled = placeholders::filled(&function);
                let read = filled.as_ref().unwrap_or(&function);
                self.forward = Some(forward(read, &self.name.to_string(), errors));
                self.block.items.push(Item::Function(Box::new(stripped(function))));
            }
            "backward" => {
                if let ReturnType::Type(_, ty) = &mut function.sig.output {
                    bare_grads(ty, errors);
                }
                self.backward = Some(derivative(&function, &self.name.to_string(), errors));
                self.block.items.push(Item::Function(Box::new(stripped(function))));
            }
            "jvp" => {
                self.jvp = Some(derivative(&function, &self.name.to_string(), errors));
                self.block.items.push(Item::Function(Box::new(stripped(function))));
            }
            "apply" | "try_apply" | "with" => {
                errors.at(&ident, messages::generated_name(&name));
            }
            _ => self.block.items.push(Item::Function(Box::new(function))),
        }
    }
}
