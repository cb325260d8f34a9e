//! Messages about the attribute and the block as a whole, and of the derives.

sentences! {
    // The attribute.

    elementwise_of_tensors()
        "`elementwise` is for formulas of `Real<L>`, and this is an op of tensors; remove it";
    not_asked_for() "this is a formula of `Real<L>`; write `#[py_layer(elementwise)]`";
    empty_argument() "an argument of #[py_layer] is empty; remove the comma";
    malformed_argument(attribute, takes)
        "this is no argument of {attribute}; it takes {takes}";
    argument_takes_no_value(name) "`{name}` takes no value; write `{name}` alone";
    crate_path_as_text(path) "`crate` takes a path without quotes; write `crate = {path}`";
    argument_needs_path()
        "`crate` needs the path of autograd_core; write `#[py_layer(crate = path)]`";
    unknown_argument(attribute, name, takes, near: Option<&str>) near?
        "{attribute} has no argument `{name}`; did you mean `{near}`?" else
        "{attribute} has no argument `{name}`; it takes {takes}";
    unknown_reduction(name)
        "there is no reduction `{name}`; write `reduce = sum` or `reduce = mean`";
    allow_needs_names()
        "`allow` needs what it silences; write `allow(unread_saved)`, `allow(none_gradient)` or \
         `allow(shapes)`";
    unknown_warning(name, near: Option<&str>) near?
        "#[py_layer] has no warning `{name}`; did you mean `{near}`?" else
        "#[py_layer] has no warning `{name}`; `allow(..)` takes `unread_saved`, `none_gradient` and `shapes`";
    twice(name) "`{name}` stands twice; remove one";
    no_grad_and_once()
        "an op with `no_grad` has no backward, so `once_differentiable` says nothing; remove it";
    no_grad_with_backward()
        "the op is `#[py_layer(no_grad)]`, so its `backward` would never run; remove one of the two";

    // The shape of the block.

    not_an_impl(attribute, found, name)
        "#[{attribute}] stands on an impl block, not on {found}; write `impl {name} {{ fn \
         forward(..) {{ .. }} fn backward(..) {{ .. }} }}`: the struct is made by the macro";
    self_type(name)
        "the op must be a plain new name, because the macro makes the struct; write `impl {name}`, \
         or `impl<T: Float> {name}<T>` for an op of any element type";
    visibility_of_the_block()
        "an impl block has no visibility; the op's is that of `forward`: write `pub fn forward(..)`";
    trait_impl(attribute, name)
        "#[{attribute}] needs an impl block of the op itself, without a trait; write `impl {name}`";
    self_type_argument(found)
        "`{found}` is not a parameter of this impl; the macro makes the struct, so its arguments \
         are the parameters of the impl, like `impl<T: Float> MyOp<T>`";
    parameter_not_used(name, op)
        "the parameter `{name}` is missing after the op's name; write `{op}<{name}>`";
    parameter_default(name, default)
        "the parameter `{name}` of an op has no default: the inputs say what it is; remove `= \
         {default}`";
    empty_block(name) "the op `{name}` is empty; it needs `fn forward` and `fn backward`";
    no_forward(name)
        "the op `{name}` has no `forward`; add `fn forward(ctx: &mut ForwardContext<Self>, x: \
         &Tensor<f64>) -> Tensor<f64>`";
    no_body(name) "`{name}` has no body; write `{{ todo!() }}` in place of `;` until there is one";
    near_name(found, meant) "is this `{meant}`? the function is called `{found}`; rename it";
    no_backward(name, signature)
        "the op `{name}` has no `backward`; add `{signature}`, or say `#[py_layer(no_grad)]` if the \
         op has no gradient";
    second_function(name) "there is a `{name}` above already; an op has one";
    second_type(name) "`type {name}` stands twice; an op has one (several tensors go into a tuple)";
    type_generics(name) "`type {name}` takes no parameters of its own; use those of the impl";
    unknown_type(name, near: Option<&str>) near?
        "there is no `type {name}` in an op; did you mean `type {near}`?" else
        "there is no `type {name}` in an op, only `type Saved` and `type Attrs`; write other types \
         outside the block";
    generated_name(name) "the macro makes `{name}` for every op; give this function another name";
    item_macro()
        "a macro call here cannot be looked into; write the functions out, or make the whole op by \
         a macro_rules! macro that contains #[py_layer]";
    cfg_inside(attribute, what)
        "`#[{attribute}]` on {what} is not supported; put it on the whole block, once for each variant";
    without_dyn(object: &str)
        "this is a trait object; write `dyn {object}`";

    not_understood()
        "something in this op is Rust that #[py_layer] does not understand, so the op does nothing: \
         move it out of the block, or write it in another way";

    // Warnings: legal, but certainly wrong.

    unread_saved()
        "`type Saved` keeps tensors alive that `backward` never reads: read `ctx.saved_tensor()` \
         there, or save nothing; silenced by `#[py_layer(allow(unread_saved))]`";
    none_gradient(name)
        "the gradient of `{name}` is always `None`: write `#[stop_gradient] {name}` in `forward` if \
         it has none; silenced by `#[py_layer(allow(none_gradient))]`";
}

sentences! {
    saved_needs_fields() "#[derive(Saved)] needs a struct with named fields, each made of tensors";
    saved_lifetime()
        "what is saved outlives the call, so it cannot borrow; keep tensors by value (a clone is \
         cheap)";
    saved_unsized()
        "what is saved must be `Sized`; keep tensors by value, a list as a `Vec<Tensor<T>>`";
    saved_needs_struct(found)
        "#[derive(Saved)] stands on a struct with named fields, not on {found}";
    module_needs_struct(found)
        "#[derive(Module)] stands on a struct, not on {found}; write `impl Module` by hand";
    derive_argument(name) "write where autograd_core is: `#[{name}(crate = path)]`";
    saved_field_argument()
        "a field has no `#[saved(..)]`; `#[saved(crate = path)]` stands on the struct";
    module_field_argument()
        "the only such attribute of a field is `#[module(skip)]`, for a field that holds no \
         parameters";
}
