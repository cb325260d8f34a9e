//! Every sentence of the macro, in one place. Lower case; what is wrong, then how to mend it.

/// `1 gradient`, `2 gradients`.
pub(crate) fn plural(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// `` `a`, `b` and `c` ``
pub(crate) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [init @ .., last] => {
            let init: Vec<_> = init.iter().map(|name| format!("`{name}`")).collect();
            format!("{} and `{last}`", init.join(", "))
        }
    }
}

// The attribute.

pub(crate) fn empty_argument() -> String {
    "an argument of #[py_layer] is empty; remove the comma".into()
}

pub(crate) fn malformed_argument() -> String {
    "this is no argument of #[py_layer]; it takes `no_grad`, `once_differentiable`, `check(..)`, \
     `crate = path` and `allow(..)`"
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
             `check(..)`, `crate = path` and `allow(..)`"
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

pub(crate) fn empty_block(name: &str) -> String {
    format!("the op `{name}` is empty; it needs `fn forward` and `fn backward`")
}

pub(crate) fn second_op(name: &str, line: usize) -> String {
    format!("there is an op `{name}` in line {line} already; give this one another name")
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
        "an op cannot change its inputs, so `{name}` cannot be `&mut`; write `{name}: &{tensor}`"
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

// Arity.

pub(crate) fn gradient_count(found: usize, outputs: usize, write: &str) -> String {
    let tensors = plural(outputs, "tensor output");
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

/// `dw` stands where the gradient of `x` belongs.
pub(crate) fn gradients_swapped(found: &str, input: &str, right: &str) -> String {
    format!(
        "`{found}` stands in the place of the gradient of `{input}`, and its own place is another \
         one; gradients are returned in the order of forward's inputs: `({right})`"
    )
}

/// `the output` where there is one, else `output 1`, counted from 0 as in code.
pub(crate) fn output(position: usize, outputs: usize) -> String {
    if outputs == 1 { "the output".to_owned() } else { format!("output {position}") }
}

pub(crate) fn gradient_element(
    name: &str,
    found: &str,
    output: &str,
    of: &str,
    write: &str,
) -> String {
    format!(
        "the gradient `{name}` has elements of type `{found}`, but {output} of `forward` has \
         `{of}`; write `{name}: {write}`"
    )
}

pub(crate) fn returned_element(found: &str, input: &str, of: &str, write: &str) -> String {
    format!(
        "the gradient of `{input}` has elements of type `{found}`, but `{input}` has `{of}`; \
         write `{write}`"
    )
}

pub(crate) fn gradient_form(output: &str, found: &str, name: &str, write: &str) -> String {
    format!("the gradient of {output} comes not as `{found}`; write `{name}: {write}`")
}

pub(crate) fn returned_form(name: &str, found: &str, write: &str) -> String {
    format!("the gradient of `{name}` is not returned as `{found}`; return {write}")
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
        1 => ("gradient", "is missing: it is a differentiable tensor input"),
        _ => ("gradients", "are missing: they are differentiable tensor inputs"),
    };
    format!(
        "the {gradient} of {} {it} of `forward`; write `{write}` (`None` where there is no \
         gradient)",
        list(missing)
    )
}

pub(crate) fn grads_field_unknown(name: &str, near: Option<&str>, names: &[String]) -> String {
    match near {
        Some(near) => {
            format!("`forward` has no differentiable tensor input `{name}`; did you mean `{near}`?")
        }
        None => format!(
            "`forward` has no differentiable tensor input `{name}`; `Grads` has {}",
            list(names)
        ),
    }
}

pub(crate) fn grads_field_stopped(name: &str) -> String {
    format!(
        "the input `{name}` is marked `#[stop_gradient]`, so `Grads` has no field for it; remove \
         it here, or the mark in `forward`"
    )
}

pub(crate) fn grads_field_plain(name: &str) -> String {
    format!("the input `{name}` is not a tensor, so it has no gradient; remove it here")
}

pub(crate) fn grads_field_repeated(name: &str) -> String {
    format!("the gradient of `{name}` is given twice; remove one")
}

// `jvp`.

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
    format!("the tangent of `{input}` comes not as `{found}`; write `{name}: {write}`")
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

// What is saved.

pub(crate) fn saved_plain(found: &str) -> String {
    format!(
        "`{found}` is not made of tensors, so it cannot be saved; put it into `type Attrs`: \
         `ctx.set_attrs(..)` in `forward`, `ctx.attrs()` in `backward`"
    )
}

pub(crate) fn saved_reference(inner: &str) -> String {
    format!(
        "what is saved outlives the call, so `type Saved` cannot borrow; write `{inner}`, and give \
         `save_for_backward` a reference"
    )
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

// Calls on the context.

pub(crate) fn call_twice(call: &str) -> String {
    let mend = match call {
        "save_for_backward" => {
            "save everything at once, as a tuple: `ctx.save_for_backward((&a, &b))`"
        }
        "set_attrs" => "set everything at once, as a tuple or a struct",
        "set_materialize_grads" => "keep one of the calls",
        _ => "mark everything at once, as a tuple",
    };
    format!("`{call}` is called twice on this path; {mend}")
}

pub(crate) fn several_arguments(call: &str, found: usize, arguments: &str) -> String {
    format!(
        "`{call}` takes everything at once, but is given {found} arguments; write them as a tuple: \
         `ctx.{call}(({arguments}))`"
    )
}

pub(crate) fn field_of_context(name: &str, near: Option<&str>, forward: bool) -> String {
    match near {
        Some(near) => format!("the context has no fields; did you mean `ctx.{near}()`?"),
        None if forward => format!(
            "the context has no fields, so `{name}` cannot be kept in one; declare `type Attrs` in \
             the block, call `ctx.set_attrs({name})` here, and read `ctx.attrs()` in `backward`"
        ),
        None => format!(
            "the context has no field `{name}`; declare `type Attrs` in the block, call \
             `ctx.set_attrs(..)` in `forward`, and read `ctx.attrs()` here"
        ),
    }
}

pub(crate) fn needs_by_position(write: &str) -> String {
    format!(
        "`needs_input_grad()` has the inputs by name, not by position; write \
         `ctx.needs_input_grad().{write}`"
    )
}

pub(crate) fn never_called(declared: &str, call: &str) -> String {
    format!(
        "`type {declared}` is declared, but `forward` never calls `ctx.{call}(..)`; call it, or \
         remove the declaration"
    )
}

pub(crate) fn not_declared(call: &str, declared: &str, example: &str) -> String {
    format!("`{call}` needs a declaration in the block; add `type {declared} = {example};`")
}

pub(crate) fn undeclared_read(read: &str, declared: &str, example: &str, call: &str) -> String {
    format!(
        "`{read}` has nothing to read: the op keeps nothing; add `type {declared} = {example};` to \
         the block, and call `ctx.{call}(..)` in `forward`"
    )
}

pub(crate) fn marks_input(name: &str) -> String {
    format!(
        "`{name}` is an input; `mark_non_differentiable` takes outputs (an input without a \
         gradient is declared `#[stop_gradient] {name}`)"
    )
}

pub(crate) fn marks_output(name: &str) -> String {
    format!(
        "`{name}` is computed in `forward`; `mark_not_inplace` takes inputs: leave `{name}` out, it \
         is a new tensor in any case"
    )
}

pub(crate) fn bare_gradient(name: &str, write: &str) -> String {
    format!(
        "`set_materialize_grads(false)` in `forward` says that a missing gradient comes as `None`; \
         write `{name}: {write}`"
    )
}

// `#[derive(Saved)]`

pub(crate) fn saved_needs_fields() -> String {
    "#[derive(Saved)] needs a struct with named fields, each made of tensors".into()
}

pub(crate) fn saved_struct(found: &str) -> String {
    format!("#[derive(Saved)] stands on a struct with named fields, not on {found}")
}

pub(crate) fn malformed_saved() -> String {
    "write where autograd_core is: `#[saved(crate = path)]`".into()
}

pub(crate) fn saved_lifetime() -> String {
    "what is saved outlives the call, so it cannot borrow; keep tensors by value (a clone is \
     cheap)"
        .into()
}

// `#[derive(Module)]`

pub(crate) fn module_struct(found: &str) -> String {
    format!("#[derive(Module)] stands on a struct, not on {found}; write `impl Module` by hand")
}

pub(crate) fn module_attribute() -> String {
    "the only such attribute is `#[module(skip)]`, for a field that holds no parameters".into()
}
