//! What is said of the attribute and of the block as a whole.

// The attribute.

pub(crate) fn question_mark(function: &str, returned: &str) -> String {
    format!(
        "`?` needs a `Result` to return, but `{function}` returns `{returned}`; `{function}` may \
         return a `Result`: write `-> autograd_core::Result<{returned}>`, or with an error type of \
         your own, and end with `Ok(..)`"
    )
}

pub(crate) fn empty_argument() -> String {
    "an argument of #[py_layer] is empty; remove the comma".into()
}

pub(crate) fn attribute_twice() -> String {
    "#[py_layer] stands on this block twice; remove one of them".into()
}

pub(crate) fn malformed_argument() -> String {
    "this is no argument of #[py_layer]; it takes `no_grad`, `once_differentiable`, `surrogate`, \
     `check(..)`, `crate = path` and `allow(..)`"
        .into()
}

pub(crate) fn argument_takes_no_value(name: &str) -> String {
    format!("`{name}` takes no value; write `#[py_layer({name})]`")
}

pub(crate) fn argument_needs_path() -> String {
    "`crate` needs the path of autograd_core; write `#[py_layer(crate = path)]`".into()
}

pub(crate) fn unknown_argument(name: &str, near: Option<&str>) -> String {
    match near {
        Some(near) => format!("#[py_layer] has no argument `{name}`; did you mean `{near}`?"),
        None => format!(
            "#[py_layer] has no argument `{name}`; it takes `no_grad`, `once_differentiable`, \
             `surrogate`, `check(..)`, `crate = path` and `allow(..)`"
        ),
    }
}

pub(crate) fn allow_needs_names() -> String {
    "`allow` needs the warnings to silence; write `allow(unread_saved)`, `allow(none_gradient)` or \
     both"
        .into()
}

pub(crate) fn unknown_warning(name: &str, near: Option<&str>) -> String {
    match near {
        Some(near) => format!("#[py_layer] has no warning `{name}`; did you mean `{near}`?"),
        None => format!(
            "#[py_layer] has no warning `{name}`; `allow(..)` takes `unread_saved` and \
             `none_gradient`"
        ),
    }
}

pub(crate) fn repeated_argument(name: &str) -> String {
    format!("`{name}` stands twice in #[py_layer]; remove one")
}

pub(crate) fn no_grad_and_once() -> String {
    "an op with `no_grad` has no backward, so `once_differentiable` says nothing; remove it".into()
}

pub(crate) fn no_grad_with_backward() -> String {
    "the op is `#[py_layer(no_grad)]`, so its `backward` would never run; remove one of the two"
        .into()
}

// The shape of the block.

pub(crate) fn not_an_impl(found: &str, name: Option<&str>) -> String {
    let name = name.unwrap_or("MyOp");
    format!(
        "#[py_layer] stands on an impl block, not on {found}; write `impl {name} {{ fn forward(..) \
         {{ .. }} fn backward(..) {{ .. }} }}`: the struct is made by the macro"
    )
}

pub(crate) fn visibility_of_the_block() -> String {
    "an impl block has no visibility; the op's is that of `forward`: write `pub fn forward(..)`"
        .into()
}

pub(crate) fn trait_impl(name: &str) -> String {
    format!(
        "#[py_layer] needs an impl block of the op itself, without a trait; write `impl {name}`"
    )
}

pub(crate) fn self_type(name: Option<&str>) -> String {
    let name = name.unwrap_or("MyOp");
    format!(
        "the op must be a plain new name, because the macro makes the struct; write `impl {name}`, \
         or `impl<T: Float> {name}<T>` for an op of any element type"
    )
}

pub(crate) fn self_type_argument(found: &str) -> String {
    format!(
        "`{found}` is not a parameter of this impl; the macro makes the struct, so its arguments \
         are the parameters of the impl, like `impl<T: Float> MyOp<T>`"
    )
}

pub(crate) fn parameter_not_used(name: &str, op: &str) -> String {
    format!("the parameter `{name}` is missing after the op's name; write `{op}<{name}>`")
}

pub(crate) fn parameter_default(name: &str, default: &str) -> String {
    format!(
        "the parameter `{name}` of an op has no default: the inputs say what it is; remove `= {default}`"
    )
}

pub(crate) fn empty_block(name: &str) -> String {
    format!("the op `{name}` is empty; it needs `fn forward` and `fn backward`")
}

pub(crate) fn name_exists(name: &str, op: bool) -> String {
    match op {
        true => format!("there is an op `{name}` above in this scope; give this one another name"),
        false => format!(
            "the macro makes the struct `{name}`, and there is a type `{name}` in this scope; remove that \
             type, or give the op another name"
        ),
    }
}

pub(crate) fn no_forward(name: &str) -> String {
    format!(
        "the op `{name}` has no `forward`; add `fn forward(ctx: &mut ForwardContext<Self>, x: \
         &Tensor<f64>) -> Tensor<f64>`"
    )
}

pub(crate) fn no_body(name: &str) -> String {
    format!("`{name}` has no body; write `{{ todo!() }}` in place of `;` until there is one")
}

pub(crate) fn near_name(found: &str, meant: &str) -> String {
    format!("is this `{meant}`? the function is called `{found}`; rename it")
}

pub(crate) fn no_backward(name: &str, signature: &str) -> String {
    format!(
        "the op `{name}` has no `backward`; add `{signature}`, or say `#[py_layer(no_grad)]` if \
         the op has no gradient"
    )
}

pub(crate) fn second_function(name: &str) -> String {
    format!("there is a `{name}` above already; an op has one")
}

pub(crate) fn second_type(name: &str) -> String {
    format!("`type {name}` stands twice; an op has one (several tensors go into a tuple)")
}

pub(crate) fn type_generics(name: &str) -> String {
    format!("`type {name}` takes no parameters of its own; use those of the impl")
}

pub(crate) fn unknown_type(name: &str, near: Option<&str>) -> String {
    match near {
        Some(near) => format!("there is no `type {name}` in an op; did you mean `type {near}`?"),
        None => format!(
            "there is no `type {name}` in an op, only `type Saved` and `type Attrs`; write other \
             types outside the block"
        ),
    }
}

pub(crate) fn generated_name(name: &str) -> String {
    format!("the macro makes `{name}` for every op; give this function another name")
}

pub(crate) fn item_macro() -> String {
    "a macro call here cannot be looked into; write the functions out, or make the whole op by a \
     macro_rules! macro that contains #[py_layer]"
        .into()
}

pub(crate) fn cfg_inside(what: &str) -> String {
    format!("`#[cfg]` on {what} is not supported; put it on the whole block, once for each variant")
}

pub(crate) fn not_understood() -> String {
    "something in this op is Rust that #[py_layer] does not understand, so the op does nothing: \
     move it out of the block, or write it in another way"
        .into()
}

// Warnings: legal, but surely wrong.

pub(crate) fn unread_saved() -> String {
    "`type Saved` keeps tensors alive that `backward` never reads: read `ctx.saved_tensor()` \
     there, or save nothing; silenced by `#[py_layer(allow(unread_saved))]`"
        .into()
}

pub(crate) fn none_gradient(name: &str) -> String {
    format!(
        "the gradient of `{name}` is always `None`: write `#[stop_gradient] {name}` in `forward` \
         if it has none; silenced by `#[py_layer(allow(none_gradient))]`"
    )
}
