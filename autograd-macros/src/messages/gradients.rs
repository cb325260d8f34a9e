//! Messages about backward and `jvp`: what they take and return.

use super::{list, plural};

sentences! {
    absent_input(name, call, read, kept: Option<&str>)
        kept? "`backward` is not given `{name}`, an input of `forward`: keep it there beside the others, in the one \
         `ctx.{call}((.., {name}))` and in `{kept}`, and read `ctx.{read}()` here" else
        "`backward` is not given `{name}`, an input of `forward`: keep it by `ctx.{call}({name})` there, and \
         read `ctx.{read}()` here";
    absent_parameter(name, write)
        "`backward` is given what its parameters name; add `{write}` to use `{name}`";
    gradient_of_input(name)
        "`{name}` is an input, and `backward` gets the gradients of the outputs; keep what it needs \
         by `ctx.save_for_backward(&{name})` in `forward`, and read `ctx.saved_tensor()` here";
    /// `dw` is in the place of the gradient of `x`.
    gradients_swapped(found, input, right)
        "`{found}` stands in the place of the gradient of `{input}`, and its own place is another \
         one; gradients are returned in the order of forward's inputs: `({right})`";
    // Parameters and results of backward and `jvp`.

    value_element(what, found, whose, of, write, declare: Option<&str>)
        declare? "{what} has elements of type `{found}`, but {whose} of `forward` has `{of}`; write `{write}`, or \
         `{declare}` in `forward`" else
        "{what} has elements of type `{found}`, but {whose} of `forward` has `{of}`; write `{write}`";
    value_form(what, passed, found, write) "{what} is not {passed} as `{found}`; write `{write}`";
    returned_list(function, found, one, has, write)
        "`{function}` returns the list `{found}`, but the {one}s of {has} come in a tuple; return \
         {write}";

    // `Grads`

    parameter_named_grads()
        "a parameter cannot be called `Grads`: the macro makes a struct of this name for the \
         gradients; give it another name";
    grads_not_returned(found, write)
        "`backward` returns `Grads`, not `{found}`; write `{write}`, with a gradient for each input";
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

sentences! {
    jvp_without_gradient()
        "the op is `#[py_layer(no_grad)]`, so it has no derivative; remove that argument, or `jvp`";
    jvp_plain_input(name)
        "`{name}` is no tensor input, so it is no parameter of `jvp`; give it to \
         `ctx.set_attrs(..)` in `forward`, and read `ctx.attrs()` here";
    jvp_stopped_input(name)
        "`{name}` is marked `#[stop_gradient]` in `forward`, so it is no parameter of `jvp`; give \
         it to `ctx.save_for_backward(..)` there, and read `ctx.saved_tensor()` here";
    jvp_order(found, expected, write)
        "`{found}` stands where {expected} is expected; `jvp` takes the inputs in the order of \
         `forward`, and then their tangents: {write}";
    jvp_returned_grads(write)
        "`Grads` has the names of the inputs, and `jvp` returns the tangents of the outputs, which \
         have none; return {write}";
}

pub(crate) fn jvp_count(found: usize, inputs: &[String], write: &str) -> String {
    let takes = match found {
        0 => "nothing".to_owned(),
        found => plural(found, "parameter"),
    };
    let tensors = plural(inputs.len(), "differentiable tensor input");
    let each = if inputs.len() == 1 { "it, and then its" } else { "them, and then their" };
    let tangent = if inputs.len() == 1 { "tangent" } else { "tangents" };
    format!(
        "`jvp` takes {takes} after its context, but `forward` has {tensors} ({}), and `jvp` takes \
         {each} {tangent}: {write}",
        list(inputs)
    )
}
