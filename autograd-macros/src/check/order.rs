//! Gradients of one type may stand in the wrong order, and no type shows it. Their names may.

use proc_macro2::{Group, Ident};

use super::calls::{name, returned_parts};
use crate::errors::Errors;
use crate::messages;
use crate::tokens::plain_name;

/// Holds a tuple of names at the end of backward, `(dw, dx)`, against the inputs they are the
/// gradients of. `taken` are the names of backward's parameters, which may be like an input's
/// gradient and are something else.
pub(super) fn check(inputs: &[String], taken: &[String], body: &Group, errors: &mut Errors) {
    let names: Vec<Option<Ident>> = returned_parts(body).iter().map(name).collect();
    if names.len() != inputs.len() {
        return;
    }
    let said = |name: &Option<Ident>| input_of(&plain_name(name.as_ref()?), inputs, taken);
    let said: Vec<Option<usize>> = names.iter().map(said).collect();
    let is_wrong = |place: &usize| said[*place].is_some_and(|input| input != *place);
    let wrong: Vec<usize> = (0..names.len()).filter(is_wrong).collect();
    let meant = |place: usize| wrong.iter().copied().find(|from| said[*from] == Some(place));
    // Names that are exchanged among themselves leave no other reading.
    if let Some(&place) = wrong.first()
        && let Some(first) = &names[place]
        && wrong.iter().all(|place| meant(*place).is_some())
    {
        let right = (0..names.len()).map(|place| &names[meant(place).unwrap_or(place)]);
        let right = right.map(|name| name.as_ref().map_or("..".to_owned(), Ident::to_string));
        let right = right.collect::<Vec<_>>().join(", ");
        errors.at(first, messages::gradients_swapped(&first.to_string(), &inputs[place], &right));
    }
}

/// The one input whose gradient a name says it is.
fn input_of(name: &str, inputs: &[String], taken: &[String]) -> Option<usize> {
    if taken.iter().any(|other| other == name) {
        return None;
    }
    let says = |input: &String| {
        let forms = [
            format!("d{input}"),
            format!("d_{input}"),
            format!("grad_{input}"),
            format!("{input}_grad"),
        ];
        forms.iter().any(|form| form == name)
    };
    let mut found = (0..inputs.len()).filter(|&i| says(&inputs[i]));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}
