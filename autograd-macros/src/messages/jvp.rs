//! What is said of `jvp`.

use super::{list, plural};

pub(crate) fn jvp_without_gradient() -> String {
    "the op is `#[py_layer(no_grad)]`, so it has no derivative; remove that argument, or `jvp`"
        .into()
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

pub(crate) fn jvp_plain_input(name: &str) -> String {
    format!(
        "`{name}` is no tensor input, so it is no parameter of `jvp`; give it to `ctx.set_attrs(..)` \
         in `forward`, and read `ctx.attrs()` here"
    )
}

pub(crate) fn jvp_stopped_input(name: &str) -> String {
    format!(
        "`{name}` is marked `#[stop_gradient]` in `forward`, so it is no parameter of `jvp`; give it \
         to `ctx.save_for_backward(..)` there, and read `ctx.saved_tensor()` here"
    )
}

pub(crate) fn jvp_order(found: &str, expected: &str, write: &str) -> String {
    format!(
        "`{found}` stands where {expected} is expected; `jvp` takes the inputs in the order of \
         `forward`, and then their tangents: {write}"
    )
}

pub(crate) fn jvp_input_element(name: &str, found: &str, of: &str, write: &str) -> String {
    format!(
        "the input `{name}` has elements of type `{of}` in `forward`, not `{found}`; write \
         `{name}: {write}`"
    )
}

pub(crate) fn jvp_input_form(name: &str, found: &str, write: &str) -> String {
    format!("the input `{name}` comes to `jvp` not as `{found}`; write `{name}: {write}`")
}

pub(crate) fn tangent_element(
    name: &str,
    found: &str,
    input: &str,
    of: &str,
    write: &str,
) -> String {
    format!(
        "the tangent `{name}` has elements of type `{found}`, but its input `{input}` has `{of}`; \
         write `{name}: {write}`"
    )
}

pub(crate) fn tangent_form(input: &str, found: &str, name: &str, write: &str) -> String {
    format!("the tangent of `{input}` is not passed as `{found}`; write `{name}: {write}`")
}

pub(crate) fn tangent_optional(input: &str, name: &str, write: &str) -> String {
    format!(
        "the input `{input}` is optional, and where it is absent it has no tangent; write `{name}: \
         {write}`"
    )
}

pub(crate) fn jvp_returned_count(found: usize, outputs: usize, write: &str) -> String {
    let returns = if found == 0 { "no tangent".to_owned() } else { plural(found, "tangent") };
    let tensors = plural(outputs, "tensor output");
    format!("`jvp` returns {returns}, but `forward` has {tensors}; return `{write}`")
}

pub(crate) fn jvp_returned_list(found: &str, outputs: usize, write: &str) -> String {
    format!(
        "`jvp` returns the list `{found}`, but the tangents of {outputs} outputs come in a tuple; \
         return `{write}`"
    )
}

pub(crate) fn jvp_returned_grads(write: &str) -> String {
    format!(
        "`Grads` has the names of the inputs, and `jvp` returns the tangents of the outputs, which \
         have none; return `{write}`"
    )
}

pub(crate) fn jvp_returned_element(found: &str, output: &str, of: &str, write: &str) -> String {
    format!(
        "the tangent of {output} has elements of type `{found}`, but {output} of `forward` has \
         `{of}`; write `{write}`"
    )
}

pub(crate) fn jvp_returned_form(output: &str, found: &str, write: &str) -> String {
    format!("the tangent of {output} is not returned as `{found}`; return {write}")
}
