//! What is said of signatures: contexts, inputs, outputs.

// Signatures.

pub(crate) fn qualifier(qualifier: &str, function: &str) -> String {
    format!("`{function}` of an op cannot be `{qualifier}`; remove it")
}

pub(crate) fn receiver(function: &str, context: &str) -> String {
    format!(
        "an op has no values, so `{function}` has no `self`; its first parameter is `ctx: {context}`"
    )
}

pub(crate) fn context_missing(function: &str, context: &str) -> String {
    format!("`{function}` needs the context first; write `fn {function}(ctx: {context}, ..)`")
}

pub(crate) fn context_not_first(function: &str, context: &str) -> String {
    format!("the context must be the first parameter of `{function}`; move `ctx: {context}` there")
}

pub(crate) fn context_by_value(function: &str, context: &str) -> String {
    format!("the context comes by reference; write `{context}` in `{function}`")
}

pub(crate) fn context_shared(found: &str, context: &str) -> String {
    format!(
        "`forward` saves and marks through its context, so `{found}` is not enough; write `{context}`"
    )
}

pub(crate) fn context_mutable(function: &str, found: &str, context: &str) -> String {
    format!("`{function}` only reads its context, so it is not `{found}`; write `{context}`")
}

pub(crate) fn context_other_phase(function: &str, found: &str, context: &str) -> String {
    format!("`{function}` gets another context than `{found}`; write `{context}`")
}

pub(crate) fn context_argument(found: &str, context: &str) -> String {
    format!("`{found}` does not say that the context is that of this op; write `{context}`")
}

pub(crate) fn context_again(function: &str) -> String {
    format!("`{function}` has a context already; remove this one")
}

pub(crate) fn variadic(function: &str) -> String {
    format!("`{function}` cannot take `...`; a list of tensors is `&[&Tensor<T>]`")
}

pub(crate) fn generic_derivative(function: &str) -> String {
    format!(
        "`{function}` cannot have parameters of its own: what it gets is known from `forward`; put \
         them on the impl"
    )
}

pub(crate) fn derivative_impl_trait(function: &str) -> String {
    let what = if function == "backward" { "a gradient" } else { "an input or a tangent" };
    format!("{what} is a `&Tensor<T>` or an `Option<&Tensor<T>>`, not an `impl Trait`")
}

pub(crate) fn lent(function: &str, lifetime: &str) -> String {
    format!(
        "what `{function}` gets is lent for the time of the call, which is shorter than `{lifetime}`; \
         leave the lifetime out"
    )
}

pub(crate) fn derivative_where(function: &str) -> String {
    format!("`{function}` cannot have a where clause of its own; put it on the impl")
}

pub(crate) fn repeated_parameter(name: &str, function: &str) -> String {
    format!("`{function}` has a parameter `{name}` already; give this one another name")
}

// Inputs.

pub(crate) fn no_tensor_input() -> String {
    "`forward` has no tensor input, so there is nothing to differentiate; add one, like `x: \
     &Tensor<f64>` (by the name `Tensor`: an alias of it is not seen)"
        .into()
}

/// Where no tensor is in sight, and this name is nearly one.
pub(crate) fn slip_of_tensor(found: &str) -> String {
    format!("`{found}` is no tensor, and `forward` has no other here; did you mean `Tensor`?")
}

pub(crate) fn all_inputs_stopped(names: &str, one: bool) -> String {
    let (all, is) =
        if one { ("the only tensor input", "is") } else { ("all tensor inputs", "are") };
    format!(
        "{all} ({names}) {is} marked `#[stop_gradient]`, so `backward` would never run; say \
         `#[py_layer(no_grad)]` and leave `backward` out"
    )
}

pub(crate) fn tensor_by_value(name: &str, tensor: &str) -> String {
    format!("the tensor input `{name}` must be borrowed; write `{name}: &{tensor}`")
}

pub(crate) fn tensor_by_mut(name: &str, tensor: &str) -> String {
    format!(
        "an op cannot change its inputs, so `{name}` cannot be `&mut`; write `{name}: &{tensor}`, and \
         return what is computed"
    )
}

pub(crate) fn tensor_form(name: &str, found: &str, tensor: &str, write: Option<&str>) -> String {
    match write {
        Some(write) => format!(
            "the tensor input `{name}` cannot have the form `{found}`; write `{name}: {write}`"
        ),
        None => format!(
            "the tensor in `{name}` would lose its gradient inside `{found}`; a tensor input is \
             `&{tensor}`, `Option<&{tensor}>`, `&[{tensor}]`, `&[&{tensor}]` or `[&{tensor}; N]`"
        ),
    }
}

pub(crate) fn tensor_name(form: &str) -> String {
    format!(
        "a tensor input needs a name: it stands in errors, in `needs_input_grad()` and in \
         `Grads {{ .. }}`; write `x: {form}`"
    )
}

pub(crate) fn integer_input(name: &str, element: &str, form: &str) -> String {
    format!(
        "a tensor of `{element}` has no gradient; write `#[stop_gradient] {name}: {form}`, and \
         return nothing for it from `backward`"
    )
}

pub(crate) fn stop_gradient_on_plain(name: &str) -> String {
    format!("`{name}` is not a tensor, so it has no gradient to stop; remove `#[stop_gradient]`")
}

pub(crate) fn default_on_tensor(name: &str) -> String {
    format!(
        "`{name}` is a tensor, and a tensor has no default; write `{name}: Option<&Tensor<T>>` \
         and call it with `None`"
    )
}

pub(crate) fn default_on_impl(name: &str) -> String {
    format!(
        "a default cannot stand on `impl Trait`, because it would not fix the type of `{name}`; \
         use a function pointer, like `fn(&Tensor<f64>) -> Tensor<f64>`"
    )
}

pub(crate) fn default_of_another(name: &str, other: &str, ty: &str) -> String {
    format!(
        "the default of `{name}` cannot use the parameter `{other}`: it is computed without the \
         others; write `{name}: Option<{ty}>`, and choose in `forward` where it is `None`"
    )
}

pub(crate) fn malformed_default() -> String {
    "write the default in parentheses: `#[default(0.5)]`".into()
}

pub(crate) fn malformed_stop_gradient() -> String {
    "`#[stop_gradient]` takes no argument".into()
}

pub(crate) fn repeated_attribute(name: &str) -> String {
    format!("`#[{name}]` stands twice on this parameter; remove one")
}

pub(crate) fn unknown_attribute(name: &str, stops: bool) -> String {
    match stops {
        true => format!("there is no `#[{name}]` on a parameter; write `#[stop_gradient]`"),
        false => format!(
            "there is no `#[{name}]` on a parameter: `#[stop_gradient]` stands on a tensor and \
             `#[default(..)]` on a plain input; remove it"
        ),
    }
}

pub(crate) fn attribute_on_gradient(name: &str) -> String {
    format!("`#[{name}]` belongs to the parameters of `forward`; remove it here")
}

pub(crate) fn attribute_on_context(name: &str) -> String {
    format!("`#[{name}]` cannot stand on the context; remove it")
}

pub(crate) fn reserved_parameter(name: &str) -> String {
    format!("a parameter cannot be called `{name}`: `with()` has a method of this name; rename it")
}

pub(crate) fn unknown_element(found: &str, write: &str) -> String {
    format!(
        "a tensor cannot hold `{found}`: its elements are `f32`, `f64`, `i32`, `i64`, `u8` or \
         `bool`; write `Tensor<{write}>`"
    )
}

pub(crate) fn not_float(parameter: &str, op: &str) -> String {
    format!(
        "the elements of this tensor are of the type `{parameter}`, which need not be a float, and \
         only tensors of floats have a gradient; write `impl<{parameter}: Float> {op}<{parameter}>`"
    )
}

pub(crate) fn function_generic(name: &str, parameter: &str, op: &str) -> String {
    format!(
        "the tensor depends on `{name}`, a parameter of `forward` that `backward` does not know; \
         put it on the impl: `impl<{parameter}> {op}<{name}>`"
    )
}

pub(crate) fn constant_of_forward(name: &str, parameter: &str, op: &str) -> String {
    format!(
        "`{name}` is a parameter of `forward` that `backward` does not know; put it on the impl: \
         `impl<{parameter}> {op}<{name}>`"
    )
}

// Outputs.

pub(crate) fn no_return() -> String {
    "`forward` returns nothing; it must return at least one tensor of a float type: write `-> \
     Tensor<f64>`"
        .into()
}

pub(crate) fn no_tensor_output(found: &str) -> String {
    format!(
        "`forward` returns `{found}`, which is no tensor that could be differentiated; it must \
         return at least one tensor of a float type, alone or in a tuple, like `(Tensor<f64>, \
         {found})` (by the names `Tensor` and `Result`: an alias of either is not seen)"
    )
}

pub(crate) fn only_integer_outputs() -> String {
    "`forward` returns integer or bool tensors only, and these have no gradient; return at least \
     one tensor of a float type too, or write a plain function in place of an op"
        .into()
}

pub(crate) fn output_form(tensor: &str) -> String {
    format!(
        "the tensor inside this output would lose its gradient; a tensor output is `{tensor}`, \
         `[{tensor}; N]` or `Vec<{tensor}>`, alone or directly in the tuple"
    )
}

pub(crate) fn output_reference(tensor: &str) -> String {
    format!("an output is returned by value; write `{tensor}` (a clone is cheap)")
}

pub(crate) fn output_impl_trait(found: &str) -> String {
    format!(
        "`{found}` cannot be an output: such a type may borrow from the context, which is gone after \
         the call; write a type, like a number, a function pointer or a `Box<dyn ..>`"
    )
}
