//! What backward and `jvp` return, against what they are to return.

use syn::{ReturnType, Type, TypePath};

use super::types::{is_list, other_element, returned_tensor, surely_wrong};
use crate::errors::Errors;
use crate::model::{Form, Function, Returns, argument_of, form_text, gradient_type, output_form};
use crate::tokens::text;

pub(crate) struct Wanted<'a> {
    /// What each value belongs to, with its form and its tensor.
    pub(crate) values: Vec<(String, Form, &'a TypePath)>,
    pub(crate) count: &'a dyn Fn(usize) -> String,
    pub(crate) list: &'a dyn Fn(&str) -> String,
    /// Whose value, what was found, and how it is written.
    pub(crate) form: fn(&str, &str, &str) -> String,
    /// The element found, whose value, its element, and how it is written.
    pub(crate) element: fn(&str, &str, &str, &str) -> String,
}

impl Wanted<'_> {
    pub(crate) fn check(&self, returns: &Returns, function: &Function, errors: &mut Errors) {
        let count = self.values.len();
        match returns {
            Returns::Nothing => match &function.sig.output {
                ReturnType::Default => errors.at(&function.sig.ident, (self.count)(0)),
                ReturnType::Type(_, ty) => errors.at(ty, (self.count)(0)),
            },
            Returns::Tuple(whole, types) if types.len() != count => {
                errors.at(whole, (self.count)(types.len()));
            }
            Returns::Tuple(whole, _) if count == 1 => {
                let (name, form, tensor) = &self.values[0];
                let write = form_text(*form, &text(tensor));
                errors.at(whole, (self.form)(name, &text(whole), &write));
            }
            Returns::Tuple(_, types) => {
                (0..count).for_each(|position| self.one(position, &types[position], errors));
            }
            Returns::One(ty) if count == 1 => self.one(0, ty, errors),
            Returns::One(ty) if is_list(ty) => errors.at(ty, (self.list)(&text(ty))),
            // An alias may be a tuple.
            Returns::One(ty) => {
                if output_form(argument_of(ty, "Option").unwrap_or(ty)).is_some() {
                    errors.at(ty, (self.count)(1));
                }
            }
            Returns::ByName(_) => {}
        }
    }

    fn one(&self, position: usize, ty: &Type, errors: &mut Errors) {
        let (name, form, tensor) = &self.values[position];
        let of = text(tensor);
        if let Some(found) = returned_tensor(*form, ty) {
            if let Some((found, expected)) = other_element(&found, tensor) {
                let write = gradient_type(*form, &of);
                errors.at(ty, (self.element)(&found, name, &expected, &write));
            }
        } else if surely_wrong(ty) {
            errors.at(ty, (self.form)(name, &text(ty), &form_text(*form, &of)));
        }
    }
}
