//! Gradients of one type may stand in the wrong order, and no type shows it. Their names may.

use proc_macro2::{Group, Ident};
use quote::ToTokens;
use syn::{Block, Expr, Stmt};

use crate::errors::Errors;
use crate::messages;
use crate::tokens::plain_name;

/// Holds a tuple of names at the end of backward, `(dw, dx)`, against the inputs they are the
/// gradients of. `taken` are the names of backward's parameters, which may be like an input's
/// gradient and are something else.
pub(super) fn check(inputs: &[String], taken: &[&String], body: &Group, errors: &mut Errors) {
    let Some(tail) = tail(body) else { return };
    let parts = parts(&tail);
    if parts.len() != inputs.len() {
        return;
    }
    let names: Vec<Option<&Ident>> = parts.into_iter().map(name).collect();
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
    let Some(first) = names[place] else { return };
    if places != meant {
        return;
    }
    let written = |place: usize| match wrong.iter().find(|&&(_, input)| input == place) {
        Some(&(from, _)) => names[from].map(Ident::to_string),
        None => names[place].map(Ident::to_string),
    };
    let right: Vec<String> =
        (0..inputs.len()).map(|place| written(place).unwrap_or_else(|| "..".to_owned())).collect();
    let message =
        messages::gradients_swapped(&first.to_string(), &inputs[place], &right.join(", "));
    errors.at(first, message);
}

pub(crate) fn tail(body: &Group) -> Option<Expr> {
    let block = syn::parse2::<Block>(body.to_token_stream()).ok()?;
    match block.stmts.into_iter().next_back() {
        Some(Stmt::Expr(tail, None)) => Some(tail),
        _ => None,
    }
}

/// The parts of a tuple, also of one inside `Ok(..)`; what is no tuple is the only part.
pub(crate) fn parts(tail: &Expr) -> Vec<&Expr> {
    match inside("Ok", tail) {
        Expr::Tuple(tuple) => tuple.elems.iter().collect(),
        one => vec![one],
    }
}

/// What stands in `Ok(..)` or `Some(..)`.
fn inside<'a>(what: &str, expr: &'a Expr) -> &'a Expr {
    match expr {
        Expr::Call(call) if call.args.len() == 1 => match &*call.func {
            Expr::Path(path) if path.path.is_ident(what) => &call.args[0],
            _ => expr,
        },
        _ => expr,
    }
}

/// `dx`, `Some(dx)`, `dx.clone()`
fn name(expr: &Expr) -> Option<&Ident> {
    match inside("Some", expr) {
        Expr::Path(path) => path.path.get_ident(),
        Expr::MethodCall(call) if call.method == "clone" => name(&call.receiver),
        _ => None,
    }
}

/// The one input whose gradient a name says it is.
fn input_of(name: &str, inputs: &[String], taken: &[&String]) -> Option<usize> {
    if taken.iter().any(|other| *other == name) {
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
