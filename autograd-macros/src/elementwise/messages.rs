//! The messages of the elementwise form. Lower case: first the mistake, then the fix.

use crate::messages::sentences;

sentences! {
    // The attribute.

    surrogate_without_backward()
        "`surrogate` says that `backward` is not the derivative of `forward`, but there is no \
         `backward`; add one, or remove `surrogate`";
    verify_without_backward()
        "`verify` compares `backward` with the derivative of `forward`, but there is no `backward`; \
         remove `verify`";
    verify_of_a_surrogate()
        "`surrogate` says that `backward` is not the derivative of `forward`, so `verify` would \
         always fail; remove one of them";

    // The block.

    generics(name)
        "an elementwise op has no parameters of its own: it is applied to tensors of any float \
         type; write `impl {name}`";
    no_forward(name)
        "the op `{name}` has no `forward`; add `fn forward(x: Real) -> Real`";
    declares_type(name)
        "an elementwise op has no `type {name}`: what `backward` names is what is kept; remove it";

    // Signatures.

    receiver(function) "an op has no values, so `{function}` has no `self`; remove it";
    plain_f32(name) "a plain number of a formula is `f64`; write `{name}: f64`";
    context(function)
        "`{function}` of an elementwise op has no context: what `backward` names is what is kept; \
         remove this parameter";
    pattern() "an input needs a name: `backward` gets it by this name; write `x: Real`";
    tensor(name)
        "a formula computes with numbers, and is given tensors by `apply`; write `{name}: Real`";
    list_input(name, list)
        "a formula takes its numbers one by one, so `{name}` cannot be a list or a tuple of them; \
         write a parameter for each, like `x0: Real, x1: Real`, or an op on whole tensors: \
         `#[py_layer]` without `elementwise` takes a list, `{list}: &[Tensor<T>]`";
    optional_input(name)
        "a formula is the same in every call, so `{name}` cannot be optional; write `{name}: \
         Real` and give it a tensor that changes nothing, like zeros of the shape `[1]`, or \
         write an op on whole tensors: `#[py_layer]` without `elementwise` takes `{name}: \
         Option<&Tensor<T>>`";
    borrowed_number(name, write) "numbers are given to a formula by value; write `{name}: {write}`";
    tensor_returned()
        "a formula computes with numbers, and `apply` makes tensors of them; write `-> Real`";
    no_number()
        "`forward` has no input that is a number, so there is nothing to differentiate; add one, \
         like `x: Real`";
    all_stopped(all)
        "{all} marked `#[stop_gradient]`, so there is nothing to differentiate; remove the mark from \
         one input";
    slip_of_real(found)
        "`{found}` is no number, and `forward` has no other input; did you mean `Real`?";
    reserved(name)
        "an input cannot be called `{name}`: `y`, `y0`, `y1` .. are outputs, and `dy`, `dy0`, \
         `dy1` .. their gradients; rename it";
    only_plain_number(name, found)
        "`{name}: {found}` is one number for all elements, so there is nothing to differentiate; \
         the number of each element is `{name}: Real`";
    no_jvp() "an elementwise op has no `jvp`: its slope is derived from `forward`; remove it";
    mask_not_stopped(name) "a mask has no gradient; write `#[stop_gradient] {name}: Mask`";
    stop_on_plain(name)
        "`{name}` is a plain value, so it has no gradient to stop; remove `#[stop_gradient]`";
    default_on_number(name)
        "`{name}` is given as a tensor, and a tensor has no default; remove `#[default]`";
    borrowed_plain(name)
        "the plain parameter `{name}` is kept for backward, so it cannot be borrowed or an `impl \
         Trait`; take it by value, like `{name}: f64`";
    closure_kept(name, write)
        "the plain parameter `{name}` is kept for backward: it is cloned, and goes to other threads; \
         write `{name}: {write}`";
    returns(found)
        "`forward` returns `{found}`; a formula returns `Real`, or several as a tuple, like \
         `(Real, Real)`";
    returns_nothing() "`forward` returns nothing; a formula returns `Real`";

    // Bodies.

    masks_joined(operator: char)
        "`{operator}{operator}` joins two `bool`s, and a mask holds one for each element; write `{operator}`";
    number_compared(write)
        "a number of a formula is compared by a method, which gives a mask; write `{write}`, and \
         `.select(a, b)` in place of `if`";
    branch_on_a_mask(mask)
        "a formula cannot branch on a mask, which holds a `bool` for each element; write `{mask}.select(a, b)` in \
         place of the branch";
    number_printed(number)
        "`{number}` stands for the numbers of many elements at once, so it cannot be printed; print the tensors \
         that the op takes and returns";
    number_cast(number, ty)
        "`{number}` stands for the numbers of many elements at once, so it cannot become one `{ty}`; write `{number}`, \
         with which numbers are computed as with an `f64`";
    lane_by_impl(write)
        "a formula has one lane for all its numbers, and each `impl Lane` is another; write `{write}`";

    // Backward.

    other_type(name, found, expected)
        "`{name}` is `{expected}`, not `{found}`; write `{name}: {expected}`";
    no_gradient(write)
        "no gradient uses `{write}`, the gradient of the output; multiply each gradient by it \
         (a block declares it: `{write}: Real`)";
    output_of_a_reduction(name, reduction)
        "`{name}` is not kept where the formula's value is reduced by `{reduction}`; compute it \
         from the inputs";
    returned_type(name, found)
        "the gradient of `{name}` is a number, not `{found}`; return `Real`";

    unknown_name(name, near: Option<&str>, names)
        near? "`backward` is given what it names, and there is no `{name}`; did you mean `{near}`?" else
        "`backward` is given what it names, and there is no `{name}`; there are {names}";

    // `scalar_op!`

    scalar_form()
        "write `scalar_op!(Softplus: y = (1.0 + x.exp()).ln(), dx = dy / (1.0 + (-x).exp()))`: the \
         name, the value, and a gradient `dx` for each input `x`";
    scalar_gradient(name)
        "`{name}` is no gradient; the gradient of the input `x` is written `dx = ..`";
    scalar_value() "the value is called `y`; write `y = ..`";
    scalar_unused(name, input)
        "`{name}` declares an input `{input}`, which the value does not name; the gradient of the \
         input `x` is written `dx = ..`";
}
