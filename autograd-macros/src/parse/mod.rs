//! From tokens to the model. A mistake is reported, and parsing continues.

mod block;
mod derivative;
mod forward;
mod mended;
mod signature;
mod twin;

use proc_macro2::TokenStream;
use syn::{ImplItemType, ReturnType};

use crate::attributes::is_cfg;
use crate::errors::Errors;
use crate::items::ParsedItem;
use crate::messages;
use crate::model::{Layer, RULES, nearest};
use block::name_declared_types;
use derivative::{bare_grads, derivative};
use mended::{with_known_elements, without_placeholders};

pub(crate) use block::{BlockRules, block, other_item};
pub(crate) use derivative::reject_attributes;
pub(crate) use forward::{forward, params};
pub(crate) use signature::{BACKWARD_CONTEXT, is_context, parameters, pattern_name, returned};

const BLOCK_RULES: BlockRules =
    BlockRules { rules: RULES, generated: &["apply", "try_apply", "with"], lenient: false };

/// Parses the block; `None` if the tokens are not an impl block of an op.
pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Option<Layer> {
    let (mut block, mut found) = block(tokens, "py_layer", errors)?;
    name_declared_types(&mut found);
    found.iter_mut().for_each(|item| correct(item, errors));
    let (functions, types) = block.sort(found, &BLOCK_RULES, errors);
    let mut layer = Layer::new(block);
    types.into_iter().for_each(|item| layer.add_type(item, errors));
    let op = layer.name.to_string();
    for function in functions {
        match &function.sig.ident.to_string()[..] {
            "forward" => {
                let without_placeholders = without_placeholders(&function).unwrap_or(function);
                layer.forward = Some(forward(&without_placeholders, &op, errors));
            }
            "backward" => layer.backward = Some(derivative(&function, &op, errors)),
            _ => layer.jvp = Some(derivative(&function, &op, errors)),
        }
    }
    Some(layer)
}

/// Reports and corrects mistakes that the compiler would report again in generated code.
fn correct(item: &mut ParsedItem, errors: &mut Errors) {
    match item {
        ParsedItem::Function(function) if function.is_rule() => {
            let sig = &mut function.sig;
            if let Some(known) = with_known_elements(sig, errors) {
                *sig = known;
            }
            if let ReturnType::Type(_, ty) = &mut sig.output
                && sig.ident == "backward"
            {
                bare_grads(ty, errors);
            }
        }
        ParsedItem::Type(item) => {
            if let Some(known) = with_known_elements(&item.ty, errors) {
                item.ty = known;
            }
        }
        _ => {}
    }
}

impl Layer {
    fn add_type(&mut self, item: ImplItemType, errors: &mut Errors) {
        let ImplItemType { attrs, ident, generics, ty, .. } = item;
        let name = ident.to_string();
        if let Some(cfg) = attrs.iter().find(|attr| is_cfg(attr)) {
            errors.at(cfg, messages::cfg_inside(&format!("`type {name}`")));
        }
        if !generics.params.is_empty() {
            errors.at(&generics.params, messages::type_generics(&name));
        }
        let near = nearest(&name, &["Saved", "Attrs"]);
        let is_slip = near != Some(&name);
        if is_slip {
            errors.at(&ident, messages::unknown_type(&name, near));
        }
        let place = match near {
            Some("Saved") => &mut self.saved,
            Some(_) => &mut self.state,
            None => return,
        };
        if place.is_none() {
            *place = Some(ty);
        } else if !is_slip {
            errors.at(&ident, messages::second_type(&name));
        }
    }
}
