//! Messages about signatures: contexts, inputs, outputs.

sentences! {
    // Signatures.

    qualifier(qualifier, function) "`{function}` of an op cannot be `{qualifier}`; remove it";
    target_feature(function)
        "`{function}` is called by generated code, which does not have the feature; put `#[target_feature]` on a \
         helper, which `{function}` calls";
    receiver(function, context)
        "an op has no values, so `{function}` has no `self`; its first parameter is `ctx: \
         {context}`";
    context_missing(function, context)
        "`{function}` needs the context first; write `fn {function}(ctx: {context}, ..)`";
    context_not_first(function, context)
        "the context must be the first parameter of `{function}`; move `ctx: {context}` there";
    context_form(function, found, context)
        "the context of `{function}` is `{context}`, not `{found}`; write `ctx: {context}`";
    context_again(function) "`{function}` has a context already; remove this one";
    variadic(function) "`{function}` cannot take `...`; a list of tensors is `&[&Tensor<T>]`";
    generic_derivative(function)
        "`{function}` cannot have parameters of its own: what it gets is known from `forward`; put \
         them on the impl";
    lent(function, lifetime)
        "what `{function}` gets is lent for the time of the call, which is shorter than \
         `{lifetime}`; leave the lifetime out";
    derivative_where(function)
        "`{function}` cannot have a where clause of its own; put it on the impl";

    // Inputs.

    no_tensor_input()
        "`forward` has no tensor input, so there is nothing to differentiate; add one, like `x: \
         &Tensor<f64>` (by the name `Tensor`: an alias of it is not seen)";
    /// No tensor was found, and this name looks like a misspelt `Tensor`.
    slip_of_tensor(found)
        "`{found}` is no tensor, and `forward` has no other here; did you mean `Tensor`?";
    tensor_by_value(name, tensor)
        "the tensor input `{name}` must be borrowed; write `{name}: &{tensor}`";
    tensor_by_mut(name, tensor)
        "an op cannot change its inputs, so `{name}` cannot be `&mut`; write `{name}: &{tensor}`, \
         and return what is computed";
    tensor_name(form)
        "a tensor input needs a name: it stands in errors, in `needs_input_grad()` and in `Grads {{ \
         .. }}`; write `x: {form}`";
    integer_input(name, element, form)
        "a tensor of `{element}` has no gradient; write `#[stop_gradient] {name}: {form}`, and \
         return nothing for it from `backward`";
    stop_gradient_on_plain(name)
        "`{name}` is not a tensor, so it has no gradient to stop; remove `#[stop_gradient]`";
    default_on_tensor(name)
        "`{name}` is a tensor, and the only default of a tensor is `None`; write \
         `#[default(None)] {name}: Option<&Tensor<T>>`, or remove `#[default]`";
    default_on_impl(name)
        "a default cannot stand on `impl Trait`, because it would not fix the type of `{name}`; use \
         a function pointer, like `fn(&Tensor<f64>) -> Tensor<f64>`";
    default_of_another(name, other, ty)
        "the default of `{name}` cannot use the parameter `{other}`: it is computed without the \
         others; write `{name}: Option<{ty}>`, and choose in `forward` where it is `None`";
    malformed_default() "write the default in parentheses: `#[default(0.5)]`";
    malformed_stop_gradient() "`#[stop_gradient]` takes no argument";
    attribute_on_gradient(name)
        "`#[{name}]` belongs to the parameters of `forward`; remove it here";
    attribute_on_context(name) "`#[{name}]` cannot stand on the context; remove it";
    reserved_parameter(name)
        "a parameter cannot be called `{name}`: `with()` has a method of this name; rename it";
    unknown_element(found, write)
        "a tensor cannot hold `{found}`: its elements are `f32`, `f64`, `i32`, `i64`, `u8` or \
         `bool`; write `Tensor<{write}>`";
    not_float(parameter, op)
        "the elements of this tensor are of the type `{parameter}`, which need not be a float, and \
         only tensors of floats have a gradient; write `impl<{parameter}: Float> {op}<{parameter}>`";
    function_generic(name, parameter, op)
        "the tensor depends on `{name}`, a parameter of `forward` that `backward` does not know; \
         put it on the impl: `impl<{parameter}> {op}<{name}>`";

    derivative_impl_trait(what)
        "{what} is a `&Tensor<T>` or an `Option<&Tensor<T>>`, not an `impl Trait`";
    all_inputs_stopped(inputs)
        "{inputs} marked `#[stop_gradient]`, so `backward` would never run; say \
         `#[py_layer(no_grad)]` and leave `backward` out";
    tensor_form(name, found, tensor, write: Option<&str>) write?
        "the tensor input `{name}` cannot have the form `{found}`; write `{name}: {write}`" else
        "the tensor in `{name}` would lose its gradient inside `{found}`; a tensor input is \
         `&{tensor}`, `Option<&{tensor}>`, `&[{tensor}]`, `&[&{tensor}]` or `[&{tensor}; N]`";
    unknown_attribute(name, meant: Option<&str>) meant?
        "there is no `#[{name}]` on a parameter; write `#[{meant}]`" else
        "there is no `#[{name}]` on a parameter: `#[stop_gradient]` stands on a tensor and \
         `#[default(..)]` on a plain input; remove it";

    // Outputs.

    no_return()
        "`forward` returns nothing; it must return at least one tensor of a float type: write `-> \
         Tensor<f64>`";
    no_tensor_output(found)
        "`forward` returns `{found}`, which is no tensor that could be differentiated; it must \
         return at least one tensor of a float type, alone or in a tuple, like `(Tensor<f64>, \
         {found})` (by the names `Tensor` and `Result`: an alias of either is not seen)";
    only_integer_outputs()
        "`forward` returns integer or bool tensors only, and these have no gradient; return at \
         least one tensor of a float type too, or write a plain function in place of an op";
    output_form(tensor)
        "the tensor inside this output would lose its gradient; a tensor output is `{tensor}`, \
         `[{tensor}; N]` or `Vec<{tensor}>`, alone or directly in the tuple";
    output_alias(found, alias, tensor)
        "the tensor inside `{found}` would lose its gradient; a tensor output is `{tensor}`, `[{tensor}; N]` or \
         `Vec<{tensor}>`, alone or directly in the tuple (a `Result` around it by this name: if `{alias}` is an \
         alias of it, it is not seen)";
    output_reference(tensor) "an output is returned by value; write `{tensor}` (a clone is cheap)";
    output_impl_trait(found)
        "`{found}` cannot be an output: such a type may borrow from the context, which is gone \
         after the call; write a type, like a number, a function pointer or a `Box<dyn ..>`";
}
