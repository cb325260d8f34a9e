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
    let parts = returned_parts(body);
    if parts.len() != inputs.len() {
        return;
    }
    let names: Vec<Option<Ident>> = parts.iter().map(name).collect();
    let mut wrong: Vec<(usize, usize)> = Vec::new();
    for (place, name) in names.iter().enumerate() {
        if let Some(name) = name
            && let Some(input) = input_of(&plain_name(name), inputs, taken)
            && input != place
        {
            wrong.push((place, input));
        }
    }
    // Names that are exchanged among themselves leave no other reading.
    let mut places: Vec<usize> = wrong.iter().map(|&(place, _)| place).collect();
    let mut meant: Vec<usize> = wrong.iter().map(|&(_, input)| input).collect();
    places.sort_unstable();
    meant.sort_unstable();
    let Some(&(place, _)) = wrong.first() else { return };
    let Some(first) = &names[place] else { return };
    if places != meant {
        return;
    }
    let written = |place: usize| match wrong.iter().find(|&&(_, input)| input == place) {
        Some(&(from, _)) => names[from].as_ref().map(Ident::to_string),
        None => names[place].as_ref().map(Ident::to_string),
    };
    let right: Vec<String> =
        (0..inputs.len()).map(|place| written(place).unwrap_or_else(|| "..".to_owned())).collect();
    let message =
        messages::gradients_swapped(&first.to_string(), &inputs[place], &right.join(", "));
    errors.at(first, message);
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
