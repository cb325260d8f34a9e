//! What is said of the gradients that backward takes and returns.

use super::{list, plural};

sentences! {
    gradient_of_input(name)
        "`{name}` is an input, and `backward` gets the gradients of the outputs; keep what it needs \
         by `ctx.save_for_backward(&{name})` in `forward`, and read `ctx.saved_tensor()` here";
    /// `dw` stands where the gradient of `x` belongs.
    gradients_swapped(found, input, right)
        "`{found}` stands in the place of the gradient of `{input}`, and its own place is another \
         one; gradients are returned in the order of forward's inputs: `({right})`";
    gradient_element(name, found, output, of, write)
        "the gradient `{name}` has elements of type `{found}`, but {output} of `forward` has \
         `{of}`; write `{name}: {write}`";
    returned_element(found, input, of, write)
        "the gradient of `{input}` has elements of type `{found}`, but `{input}` has `{of}`; write \
         `{write}`";
    gradient_form(output, found, name, write)
        "the gradient of {output} is not passed as `{found}`; write `{name}: {write}`";
    returned_form(name, found, write)
        "the gradient of `{name}` is not returned as `{found}`; return {write}";
    parameter_named_grads()
        "a parameter cannot be called `Grads`: the macro makes a struct of this name for the \
         gradients; give it another name";
    grads_arguments()
        "`Grads` has no arguments: the macro makes it, with a field for each differentiable input; \
         write `Grads`";
    grads_in_parentheses(names) "`Grads` has named fields; write `Grads {{ {names}: .. }}`";
    grads_field_empty(name)
        "the list `{name}` has a gradient for each of its tensors, and here are none; write \
         `vec![None; n]` for a list of `n` tensors without a gradient, or `#[stop_gradient] {name}` \
         in `forward` if they never have one";
    grads_field_stopped(name)
        "the input `{name}` is marked `#[stop_gradient]`, so `Grads` has no field for it; remove it \
         here, or the mark in `forward`";
    grads_default(write) "`Grads` has no default, and a gradient that is left out is lost; {write}";
    grads_field_plain(name)
        "the input `{name}` is not a tensor, so it has no gradient; remove it here";
    grads_field_repeated(name) "the gradient of `{name}` is given twice; remove one";
    grads_field_unknown(name, near: Option<&str>, names)
        near? "`forward` has no differentiable input `{name}`; did you mean `{near}`?" else
        "`forward` has no differentiable input `{name}`; `Grads` has {names}";
}

pub(crate) fn gradient_count(found: usize, outputs: usize, integers: bool, write: &str) -> String {
    let float = if integers { " of a float type" } else { "" };
    let tensors = format!("{}{float}", plural(outputs, "tensor output"));
    let takes = if found == 0 { "no gradient".to_owned() } else { plural(found, "gradient") };
    format!(
        "`backward` takes {takes}, but `forward` has {tensors}; it takes one for each output, in \
         their order: {write}"
    )
}

pub(crate) fn returned_count(found: usize, inputs: &[String], write: &str) -> String {
    let returns = if found == 0 { "no gradient".to_owned() } else { plural(found, "gradient") };
    let tensors = plural(inputs.len(), "differentiable tensor input");
    format!(
        "`backward` returns {returns}, but `forward` has {tensors} ({}); return {write}",
        list(inputs)
    )
}

/// `the output` where there is one, else `output 1`, counted from 0 as in code.
pub(crate) fn output(position: usize, outputs: usize) -> String {
    if outputs == 1 { "the output".to_owned() } else { format!("output {position}") }
}

pub(crate) fn returned_list(found: &str, inputs: &[String], write: &str) -> String {
    format!(
        "`backward` returns the list `{found}`, but the gradients of several inputs ({}) come in a \
         tuple; return {write}",
        list(inputs)
    )
}

pub(crate) fn grads_field_missing(missing: &[String], write: &str) -> String {
    let (gradient, it) = match missing.len() {
        1 => ("gradient", "is missing: it is a differentiable input"),
        _ => ("gradients", "are missing: they are differentiable inputs"),
    };
    format!("the {gradient} of {} {it} of `forward`; {write}", list(missing))
}
