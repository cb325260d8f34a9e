//! Messages about `jvp`.

use super::{list, plural};

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
