//! The sentences of this form of the macro. Lower case; what is wrong, then how to mend it.

use crate::messages::{list, plural};

// The attribute.

pub(crate) fn malformed_argument() -> String {
    "this is no argument of #[py_layer(elementwise)]; it takes `reduce = sum`, `reduce = mean(-1)` \
     and the like, `surrogate`, `verify`, `check(..)` and `crate = path`"
        .into()
}

pub(crate) fn unknown_argument(name: &str, near: Option<&str>) -> String {
    match near {
        Some(near) => {
            format!("#[py_layer(elementwise)] has no argument `{name}`; did you mean `{near}`?")
        }
        None => format!(
            "#[py_layer(elementwise)] has no argument `{name}`; it takes `reduce = ..`, \
             `surrogate`, `verify`, `check(..)` and `crate = path`"
        ),
    }
}

pub(crate) fn unknown_reduction(name: &str) -> String {
    format!("there is no reduction `{name}`; write `reduce = sum` or `reduce = mean`")
}

pub(crate) fn surrogate_without_backward() -> String {
    "`surrogate` says that `backward` is not the derivative of `forward`, but there is no \
     `backward`; add one, or remove `surrogate`"
        .into()
}

pub(crate) fn verify_without_backward() -> String {
    "`verify` compares `backward` with the derivative of `forward`, but there is no `backward`; \
     remove `verify`"
        .into()
}

pub(crate) fn verify_of_a_surrogate() -> String {
    "`surrogate` says that `backward` is not the derivative of `forward`, so `verify` would always \
     fail; remove one of them"
        .into()
}

// The block.

pub(crate) fn generics(name: &str) -> String {
    format!(
        "an elementwise op has no parameters of its own: it is applied to tensors of any float \
         type; write `impl {name}`"
    )
}

pub(crate) fn no_forward(name: &str) -> String {
    format!("the op `{name}` has no `forward`; add `fn forward<L: Lane>(x: Real<L>) -> Real<L>`")
}

pub(crate) fn declares_type(name: &str) -> String {
    format!(
        "an elementwise op has no `type {name}`: what `backward` names is what is kept; remove it"
    )
}

// Signatures.

pub(crate) fn receiver(function: &str) -> String {
    format!("an op has no values, so `{function}` has no `self`; remove it")
}

pub(crate) fn context(function: &str) -> String {
    format!(
        "`{function}` of an elementwise op has no context: what `backward` names is what is kept; \
         remove this parameter"
    )
}

pub(crate) fn pattern() -> String {
    "an input needs a name: `backward` gets it by this name; write `x: Real<L>`".into()
}

pub(crate) fn tensor(name: &str) -> String {
    format!(
        "a formula computes with numbers, and is given tensors by `apply`; write `{name}: Real<L>`"
    )
}

pub(crate) fn list_input(name: &str, list: &str) -> String {
    format!(
        "a formula takes its numbers one by one, so `{name}` cannot be a list or a tuple of them; \
         write a parameter for each, like `x0: Real<L>, x1: Real<L>`, or an op on whole tensors: \
         `#[py_layer]` without `elementwise` takes a list, `{list}: &[Tensor<T>]`"
    )
}

pub(crate) fn optional_input(name: &str) -> String {
    format!(
        "a formula is the same in every call, so `{name}` cannot be optional; write `{name}: Real<L>` \
         and give it a tensor that changes nothing, like zeros of the shape `[1]`, or write an op on \
         whole tensors: `#[py_layer]` without `elementwise` takes `{name}: Option<&Tensor<T>>`"
    )
}

pub(crate) fn borrowed_number(name: &str, write: &str) -> String {
    format!("numbers are given to a formula by value; write `{name}: {write}`")
}

pub(crate) fn tensor_returned() -> String {
    "a formula computes with numbers, and `apply` makes tensors of them; write `-> Real<L>`".into()
}

pub(crate) fn no_number() -> String {
    "`forward` has no input that is a number, so there is nothing to differentiate; add one, like \
     `x: Real<L>`"
        .into()
}

pub(crate) fn slip_of_real(found: &str) -> String {
    format!("`{found}` is no number, and `forward` has no other input; did you mean `Real`?")
}

pub(crate) fn only_plain_number(name: &str, found: &str) -> String {
    format!(
        "`{name}: {found}` is one number for all elements, so there is nothing to differentiate; the \
         number of each element is `{name}: Real<L>`"
    )
}

pub(crate) fn no_jvp() -> String {
    "an elementwise op has no `jvp`: its slope is derived from `forward`; remove it".into()
}

pub(crate) fn all_stopped(names: &[String]) -> String {
    let are = if names.len() == 1 { "is" } else { "are" };
    format!(
        "{} {are} marked `#[stop_gradient]`, so there is nothing to differentiate; remove the mark \
         from one input",
        list(names)
    )
}

pub(crate) fn reserved(name: &str, outputs: usize) -> String {
    let (y, dy) = if outputs > 1 { ("y0, y1, ..", "dy0, dy1, ..") } else { ("y", "dy") };
    format!(
        "an input cannot be called `{name}`: in `backward` the outputs are `{y}` and their \
         gradients `{dy}`; rename it"
    )
}

pub(crate) fn mask_not_stopped(name: &str) -> String {
    format!("a mask has no gradient; write `#[stop_gradient] {name}: Mask<L>`")
}

pub(crate) fn stop_on_plain(name: &str) -> String {
    format!("`{name}` is a plain value, so it has no gradient to stop; remove `#[stop_gradient]`")
}

pub(crate) fn default_on_number(name: &str) -> String {
    format!("`{name}` is given as a tensor, and a tensor has no default; remove `#[default]`")
}

pub(crate) fn borrowed_plain(name: &str) -> String {
    format!(
        "the plain parameter `{name}` is kept for backward, so it cannot be borrowed or an `impl \
         Trait`; take it by value, like `{name}: f64`"
    )
}

pub(crate) fn returns(found: &str) -> String {
    format!(
        "`forward` returns `{found}`; a formula returns `Real<L>`, or several as a tuple, like \
         `(Real<L>, Real<L>)`"
    )
}

pub(crate) fn returns_nothing() -> String {
    "`forward` returns nothing; a formula returns `Real<L>`".into()
}

// Backward.

pub(crate) fn unknown_name(name: &str, near: Option<&str>, names: &[String]) -> String {
    match near {
        Some(near) => format!(
            "`backward` is given what it names, and there is no `{name}`; did you mean `{near}`?"
        ),
        None => format!(
            "`backward` is given what it names, and there is no `{name}`; there are {}",
            list(names)
        ),
    }
}

pub(crate) fn other_type(name: &str, found: &str, expected: &str) -> String {
    format!("`{name}` is `{expected}`, not `{found}`; write `{name}: {expected}`")
}

pub(crate) fn no_gradient(write: &str) -> String {
    format!(
        "`backward` does not take the gradient of the output, to which its result is proportional; \
         add `{write}: Real<L>`"
    )
}

pub(crate) fn output_of_a_reduction(name: &str, reduction: &str) -> String {
    format!(
        "`{name}` is not kept where the formula's value is reduced by `{reduction}`; compute it \
         from the inputs"
    )
}

pub(crate) fn returned_count(found: usize, inputs: &[String]) -> String {
    let gradients = if found == 0 { "no gradient".to_owned() } else { plural(found, "gradient") };
    let write = match inputs.len() {
        1 => "Real<L>".to_owned(),
        n => format!("({})", vec!["Real<L>"; n].join(", ")),
    };
    format!(
        "`backward` returns {gradients}, but `forward` has {} ({}); return `{write}`",
        plural(inputs.len(), "differentiable input"),
        list(inputs)
    )
}

pub(crate) fn returned_type(name: &str, found: &str) -> String {
    format!("the gradient of `{name}` is a number, not `{found}`; return `Real<L>`")
}

// `scalar_op!`

pub(crate) fn scalar_form() -> String {
    "write `scalar_op!(Softplus: y = (1.0 + x.exp()).ln(), dx = dy / (1.0 + (-x).exp()))`: the \
     name, the value, and a gradient `dx` for each input `x`"
        .into()
}

pub(crate) fn scalar_gradient(name: &str) -> String {
    format!("`{name}` is no gradient; the gradient of the input `x` is written `dx = ..`")
}

pub(crate) fn scalar_twice(name: &str) -> String {
    format!("`{name}` stands twice in this `scalar_op!`; remove one")
}
