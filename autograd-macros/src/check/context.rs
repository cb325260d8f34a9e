//! The rules of calls on the context. Only mistakes that are certain from the tokens are reported.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::Expr;

use super::calls::{Uses, is_stub, name, returned_parts};
use super::types::{is_bare_gradient, is_list};
use super::{habits, once};
use crate::errors::Errors;
use crate::messages;
use crate::model::{Derivative, Form, Forward, Layer, bare, nearest, without_reference};
use crate::tokens::{is_group, is_one_of, is_punct, parts, plain_name, text};

pub(super) fn check(layer: &Layer, errors: &mut Errors) {
    let before = errors.count();
    habits::check(layer, errors);
    if let Some(forward) = &layer.forward {
        // An error above may be the reason that nothing is saved.
        if errors.count() == before {
            declarations(layer, forward, errors);
        }
        let (body, trees) = forward.function.without_cfg();
        let Some(context) = &forward.context else { return };
        for call in once::repeated_calls(body, context, Vec::new()) {
            errors.at(&call, messages::call_twice(&call.to_string()));
        }
        for (call, list, place) in once::calls_per_tensor(trees, context, &lists(forward)) {
            let is_list = layer.saved.as_ref().is_some_and(is_list);
            let declare = (!is_list).then(|| saved_list(layer));
            let message = messages::save_of_each(&plain_name(list), place, declare.as_deref());
            errors.at(call, message);
        }
        let uses = Uses::new(trees, context);
        let calls: Vec<_> = uses.calls().collect();
        for (_, given) in calls.iter().filter(|(call, _)| *call == "mark_non_differentiable") {
            check_marked_outputs(given.clone(), forward, body, errors);
        }
        check_marked_inputs(&forward.function.body, context, errors);
        if let Some(backward) = &layer.backward {
            materialize(&calls, backward, errors);
        }
    }
}

fn lists(forward: &Forward) -> Vec<Ident> {
    let lists = forward.inputs().filter(|(_, input)| input.form == Form::List);
    lists.map(|(param, _)| param.ident.clone()).collect()
}

/// `Vec<Tensor<f64>>`, with the tensor type of the first list input.
fn saved_list(layer: &Layer) -> String {
    let list = layer.inputs().find(|(_, input)| input.form == Form::List);
    list.map(|(_, list)| format!("Vec<{}>", text(&list.tensor))).unwrap_or_default()
}

/// Whatever forward saves must be declared, and the reverse. Whatever is read must be saved and declared.
fn declarations(layer: &Layer, forward: &Forward, errors: &mut Errors) {
    let body = forward.function.trees();
    let uses = |body| forward.context.as_ref().map(|context| Uses::new(body, context));
    let (all, without_cfg) = (uses(body), uses(forward.function.without_cfg().1));
    let both = [
        (&layer.saved, "Saved", "save_for_backward", "saved_tensor"),
        (&layer.state, "Attrs", "set_attrs", "attrs"),
    ];
    for (ty, declared, call, read) in both {
        if let Some(ty) = ty {
            let nothing = matches!(bare(ty), syn::Type::Tuple(tuple) if tuple.elems.is_empty());
            // The compiler reports a misspelt call.
            let is_near = |name: &Ident| nearest(&name.to_string(), &[call]).is_some();
            let is_seen = |all: &Uses| !all.escapes && !all.iter().any(|used| is_near(&used.name));
            let never = !body.mentions(call) && all.as_ref().is_none_or(is_seen);
            if never && !nothing && !is_stub(&forward.function.body.stream()) {
                errors.at(ty, messages::never_called(declared, call));
            }
            continue;
        }
        // An item with a syntax error may be the declaration.
        if layer.is_broken() {
            continue;
        }
        let example = |given: &TokenStream| match declared {
            "Saved" => saved_example(layer, given),
            _ => attrs_example(forward, given),
        };
        let called = |uses: &Option<Uses>| {
            let (name, given) = uses.as_ref()?.call(call)?;
            Some((name.clone(), given))
        };
        if called(&all).is_some() {
            // `save_for_backward(())` saves nothing, so it needs no declaration.
            if let Some((ident, given)) =
                called(&without_cfg).filter(|(_, of)| of.to_string() != "()")
            {
                errors.at(ident, messages::not_declared(call, declared, &example(&given)));
            }
            continue;
        }
        for (context, function) in layer.contexts().filter(|(_, of)| of.sig.ident != "forward") {
            if let Some((ident, _)) = Uses::new(function.without_cfg().1, context).call(read) {
                let example = example(&TokenStream::new());
                errors.at(ident, messages::undeclared_read(read, declared, &example, call));
            }
        }
    }
}

/// A suggestion for `type Saved`: as many tensors of the first output's type as are saved.
fn saved_example(layer: &Layer, given: &TokenStream) -> String {
    let tensor = layer.outputs().first().map(|(_, _, tensor)| text(*tensor));
    let tensor = tensor.unwrap_or_else(|| "Tensor<f64>".to_owned());
    let count = match &given.clone().into_iter().collect::<Vec<_>>()[..] {
        [TokenTree::Group(tuple)] => parts(tuple.stream()).len(),
        _ => 1,
    };
    if count > 1 { format!("({})", vec![tensor; count].join(", ")) } else { tensor }
}

/// A suggestion for `type Attrs`: the type of the literal or parameter that is passed.
fn attrs_example(forward: &Forward, arguments: &TokenStream) -> String {
    let param = |name: &Ident| forward.params.iter().find(|param| param.ident == *name);
    let kept = syn::parse2::<Expr>(arguments.clone());
    let found = kept.ok().and_then(|kept| match &kept {
        Expr::Lit(literal) => match &literal.lit {
            syn::Lit::Int(_) => Some("usize".to_owned()),
            syn::Lit::Bool(_) => Some("bool".to_owned()),
            syn::Lit::Str(_) => Some("&'static str".to_owned()),
            _ => None,
        },
        Expr::Path(path) => {
            let param = path.path.get_ident().and_then(param)?;
            let written = text(&param.ty);
            let owned = matches!(bare(&param.ty), syn::Type::Path(_)) && !written.contains('\'');
            owned.then_some(written)
        }
        _ => None,
    });
    found.unwrap_or_else(|| "f64".to_owned())
}

fn materialize(calls: &[(&Ident, TokenStream)], backward: &Derivative, errors: &mut Errors) {
    let off = calls
        .iter()
        .any(|(call, given)| *call == "set_materialize_grads" && given.to_string() == "false");
    for param in backward.params.iter().filter(|_| off) {
        if is_bare_gradient(&param.ty) {
            let name = param.name.as_ref().map_or_else(|| "_".to_owned(), plain_name);
            let write = match without_reference(&param.ty) {
                syn::Type::Slice(list) => format!("&[Option<{}>]", text(&list.elem)),
                _ => format!("Option<{}>", text(&param.ty)),
            };
            errors.at(&param.ty, messages::bare_gradient(&name, &write));
        }
    }
}

/// Reports inputs that are marked, unless the body binds their names again or returns them.
fn check_marked_outputs(given: TokenStream, forward: &Forward, body: &Group, errors: &mut Errors) {
    let (mut names, mut others) = (Vec::new(), Vec::new());
    marked(given, &mut names);
    collect_bound(body.stream(), false, &mut others);
    let returned = returned_parts(body);
    others.extend(returned.iter().filter_map(name));
    for marked in names {
        let input = forward.inputs().any(|(param, _)| param.ident == marked);
        if input && !others.contains(&marked) && !returned.iter().any(TokenStream::is_empty) {
            errors.at(&marked, messages::marks_input(&plain_name(&marked)));
        }
    }
}

/// Reports what is marked as an input after `let y = x * 2.0;`, unless the name was bound again.
fn check_marked_inputs(body: &Group, context: &Ident, errors: &mut Errors) {
    let trees: Vec<TokenTree> = body.stream().into_iter().collect();
    let mut computed: Vec<&Ident> = Vec::new();
    for statement in trees.split(|tree| is_punct(Some(tree), ';')) {
        let mut bound = Vec::new();
        collect_bound(statement.iter().cloned().collect(), false, &mut bound);
        computed.retain(|name| !bound.contains(name));
        match statement {
            [TokenTree::Ident(word), TokenTree::Ident(name), equals, value @ ..]
                if word == "let" && is_punct(Some(equals), '=') && is_new(value) =>
            {
                computed.push(name);
            }
            [TokenTree::Ident(word), _, TokenTree::Ident(call), TokenTree::Group(given)]
                if word == context && call == "mark_not_inplace" =>
            {
                let mut names = Vec::new();
                marked(given.stream(), &mut names);
                for name in names.iter().filter(|name| computed.contains(name)) {
                    errors.at(name, messages::marks_output(&plain_name(name)));
                }
            }
            _ => {}
        }
    }
}

/// Whether the value is that of an operator: `x * 2.0`.
fn is_new(value: &[TokenTree]) -> bool {
    let is_operator =
        |tree: &TokenTree| ['+', '-', '*', '/'].iter().any(|c| is_punct(Some(tree), *c));
    !value.iter().any(|tree| is_group(Some(tree), Delimiter::Brace))
        && value
            .windows(2)
            .any(|two| !matches!(two[0], TokenTree::Punct(_)) && is_operator(&two[1]))
}

/// Collects the names in the tuple or reference that a mark takes.
fn marked(given: TokenStream, names: &mut Vec<Ident>) {
    for (part, _) in parts(given) {
        let bare = part.clone().into_iter().skip_while(|tree| is_punct(Some(tree), '&'));
        match &bare.collect::<Vec<_>>()[..] {
            [TokenTree::Group(group)] => marked(group.stream(), names),
            _ => names.extend(name(&part)),
        }
    }
}

/// Collects the names after `let` and `for`, at any depth. Too many names only suppress the error.
pub(super) fn collect_bound(tokens: TokenStream, mut binds: bool, names: &mut Vec<Ident>) {
    for tree in tokens {
        match tree {
            TokenTree::Ident(word) if is_one_of(&word, "let for") => binds = true,
            TokenTree::Ident(word) if binds && word != "in" => names.push(word),
            TokenTree::Ident(_) => binds = false,
            TokenTree::Punct(punct) => binds &= !matches!(punct.as_char(), '=' | ';'),
            TokenTree::Group(group) => collect_bound(group.stream(), binds, names),
            TokenTree::Literal(_) => {}
        }
    }
}
