//! Messages about the gradients that backward takes and returns.

use super::plural;

sentences! {
    gradient_of_input(name)
        "`{name}` is an input, and `backward` gets the gradients of the outputs; keep what it needs \
         by `ctx.save_for_backward(&{name})` in `forward`, and read `ctx.saved_tensor()` here";
    /// `dw` is in the place of the gradient of `x`.
    gradients_swapped(found, input, right)
        "`{found}` stands in the place of the gradient of `{input}`, and its own place is another \
         one; gradients are returned in the order of forward's inputs: `({right})`";
    // Parameters and results of backward and `jvp`.

    value_element(what, found, whose, of, write)
        "{what} has elements of type `{found}`, but {whose} of `forward` has `{of}`; write `{write}`";
    value_form(what, passed, found, write) "{what} is not {passed} as `{found}`; write `{write}`";
    returned_list(function, found, one, has, write)
        "`{function}` returns the list `{found}`, but the {one}s of {has} come in a tuple; return \
         {write}";

    // `Grads`

    parameter_named_grads()
        "a parameter cannot be called `Grads`: the macro makes a struct of this name for the \
         gradients; give it another name";
    grads_arguments()
        "`Grads` has no arguments: the macro makes it, with a field for each differentiable input; \
         write `Grads`";
    grads_field_empty(name)
        "the list `{name}` has a gradient for each of its tensors, and here are none; write \
         `vec![None; n]` for a list of `n` tensors without a gradient, or `#[stop_gradient] {name}` \
         in `forward` if they never have one";
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

pub(crate) fn returned_count(
    function: &str,
    found: usize,
    one: &str,
    has: &str,
    write: &str,
) -> String {
    let returns = if found == 0 { format!("no {one}") } else { plural(found, one) };
    format!("`{function}` returns {returns}, but `forward` has {has}; return {write}")
}

/// `the output` if there is only one, otherwise `output 1`, counted from 0 as in code.
pub(crate) fn output(position: usize, outputs: usize) -> String {
    if outputs == 1 { "the output".to_owned() } else { format!("output {position}") }
}
