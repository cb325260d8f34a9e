//! Gradients of the same type in the wrong order, which only their names reveal.

use proc_macro2::{Group, Ident};

use super::calls::{name, returned_parts};
use crate::errors::Errors;
use crate::messages;
use crate::tokens::plain_name;

/// Compares a tuple of names at the end of backward, `(dw, dx)`, with the order of the inputs. `taken`
/// has the names of backward's parameters: such a name may look like that of an input's gradient, but
/// is not one.
pub(super) fn check(inputs: &[String], taken: &[String], body: &Group, errors: &mut Errors) {
    let names: Vec<Option<Ident>> = returned_parts(body).iter().map(name).collect();
    if names.len() != inputs.len() {
        return;
    }
    let named_input = |name: &Option<Ident>| input_of(&plain_name(name.as_ref()?), inputs, taken);
    let named_input: Vec<Option<usize>> = names.iter().map(named_input).collect();
    let is_wrong = |place: &usize| named_input[*place].is_some_and(|input| input != *place);
    let wrong: Vec<usize> = (0..names.len()).filter(is_wrong).collect();
    let meant = |place: usize| wrong.iter().copied().find(|from| named_input[*from] == Some(place));
    // Only a permutation is certainly a mistake.
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

/// The only input whose gradient could have this name.
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
