//! The sentences of `check(..)`. Lower case; what is wrong, then how to mend it.

use crate::messages::list;

pub(crate) fn without_inputs() -> String {
    "`check` needs a shape for each tensor of `forward` and a value for all else; write \
     `check(x = [2, 3], slope = 0.1)`"
        .into()
}

pub(crate) fn malformed() -> String {
    "this is no input of `check(..)`; write `x = [2, 3]` for a tensor of this shape, `slope = 0.1` \
     for a value"
        .into()
}

pub(crate) fn empty() -> String {
    "an input of `check(..)` is empty; remove the comma".into()
}

pub(crate) fn range() -> String {
    "`in` is followed by the least and the greatest number; write `x = [2, 3] in 0.5..2.0`".into()
}

pub(crate) fn range_without_shape(name: &str) -> String {
    format!("`in` stands after a shape; write `{name} = [2, 3] in 0.5..2.0`")
}

pub(crate) fn unknown(name: &str, near: Option<&str>, known: &[String]) -> String {
    match near {
        Some(near) => {
            format!("`forward` has no parameter `{name}`; did you mean `{near}`?")
        }
        None => format!("`forward` has no parameter `{name}`; it has {}", list(known)),
    }
}

pub(crate) fn repeated(name: &str) -> String {
    format!("`{name}` stands twice in `check(..)`; remove one")
}

pub(crate) fn missing(names: &[String], write: &str) -> String {
    format!("`check(..)` says nothing of {}; write `check({write})`", list(names))
}

pub(crate) fn not_a_shape(name: &str, found: &str) -> String {
    format!(
        "`{name}` is a tensor, and `{found}` is none; write its shape, like `{name} = [2, 3]`, or \
         an expression that makes it"
    )
}

pub(crate) fn not_optional(name: &str) -> String {
    format!("`{name}` is not optional, so it cannot be `None`; write its shape: `{name} = [2, 3]`")
}

pub(crate) fn shapes_for_one(name: &str) -> String {
    format!("`{name}` is one tensor, so it has one shape; write `{name} = [2, 3]`")
}

pub(crate) fn shape_for_list(name: &str) -> String {
    format!("`{name}` is a list of tensors; write the shape of each, like `{name} = [[2, 3], [3]]`")
}

pub(crate) fn range_of_list(name: &str) -> String {
    format!("`in` stands after each shape of a list; write `{name} = [[2, 3] in 0.5..2.0]`")
}

pub(crate) fn length(found: &str) -> String {
    format!(
        "a shape is a list of lengths, which are whole numbers, and `{found}` is none; a tensor of \
         given numbers is written `Tensor::from([..])`"
    )
}

pub(crate) fn integers(name: &str, element: &str, shape: &str) -> String {
    format!(
        "`{name}` holds `{element}`, and its numbers cannot be guessed; say between which they \
         are, like `{name} = {shape} in 0..4`, or write a tensor of them"
    )
}

pub(crate) fn no_gradient() -> String {
    "the op is `#[py_layer(no_grad)]`, so there is no gradient to check; remove `check(..)`".into()
}

pub(crate) fn surrogate() -> String {
    "`surrogate` says that `backward` is not the derivative of `forward`, so there is nothing to \
     check it against; remove `check(..)`"
        .into()
}
