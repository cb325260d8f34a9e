//! Messages about saved values and calls on the context.

sentences! {
    // Saved values.

    saved_plain(found)
        "`{found}` is not made of tensors, so it cannot be saved; put it into `type Attrs`: \
         `ctx.set_attrs(..)` in `forward`, `ctx.attrs()` in `backward`";
    saved_reference(inner)
        "what is saved outlives the call, so `type Saved` cannot borrow; write `{inner}`, and give \
         `save_for_backward` a reference";
    attrs_reference(inner, owned)
        "what `set_attrs` keeps outlives the call, so `type Attrs` cannot borrow; write `{owned}`, \
         or `&'static {inner}` for what lives as long as the program";
    attrs_threads(write)
        "what `set_attrs` keeps goes to other threads with the tensors; write `{write}`";
    attrs_unsized(found, write) "`{found}` has no size known to the compiler; write `type Attrs = {write}`";
    attrs_impl_trait(found, write)
        "`type Attrs` is one type, and `{found}` names none; write `type Attrs = {write}`";
    attrs_parameter(name)
        "what `set_attrs` keeps outlives the call, and goes to other threads with the tensors; bound \
         `{name}: Send + Sync + 'static` on the impl";
    attrs_lifetime(lifetime)
        "what `set_attrs` keeps outlives the call, so `type Attrs` cannot borrow for `{lifetime}`; \
         write `'static` for what lives as long as the program, or a type that owns what it holds";

    // Calls on the context.

    several_arguments(call, found: usize, arguments)
        "`{call}` takes everything at once, but is given {found} arguments; write them as a tuple: \
         `ctx.{call}(({arguments}))`";
    needs_by_position(write)
        "`needs_input_grad()` has the inputs by name, not by position; write \
         `ctx.needs_input_grad().{write}`";
    never_called(declared, call)
        "`type {declared}` is declared, but `forward` never calls `ctx.{call}(..)`; call it, or \
         remove the declaration";
    not_declared(call, declared, example)
        "`{call}` needs a declaration in the block; add `type {declared} = {example};`";
    undeclared_read(read, declared, example, call)
        "`{read}` has nothing to read: the op keeps nothing; add `type {declared} = {example};` to \
         the block, and call `ctx.{call}(..)` in `forward`";
    mark_dirty()
        "there is no `ctx.mark_dirty(..)`: an op does not change its inputs; return a new tensor, \
         and remove this call";
    save_for_forward()
        "there is no `ctx.save_for_forward(..)`: `fn jvp` gets the inputs themselves, and reads what \
         `save_for_backward` saved";
    field_in_forward(name, near: Option<&str>) near?
        "the context has no fields; did you mean `ctx.{near}()`?" else
        "the context has no fields, so `{name}` cannot be kept in one; declare `type Attrs` in the \
         block, call `ctx.set_attrs({name})` here, and read `ctx.attrs()` in `backward`";
    field_in_derivative(name, near: Option<&str>) near?
        "the context has no fields; did you mean `ctx.{near}()`?" else
        "the context has no field `{name}`; declare `type Attrs` in the block, call \
         `ctx.set_attrs(..)` in `forward`, and read `ctx.attrs()` here";
    marks_input(name)
        "`{name}` is an input; `mark_non_differentiable` takes outputs (an input without a gradient \
         is declared `#[stop_gradient] {name}`)";
    marks_output(name)
        "`{name}` is computed in `forward`; `mark_not_inplace` takes inputs: leave `{name}` out, it \
         is a new tensor in any case";
    bare_gradient(name, write)
        "`set_materialize_grads(false)` in `forward` says that a missing gradient comes as `None`; \
         write `{name}: {write}`";
}

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

pub(crate) fn save_of_each(list: &str, place: &str, declare: Option<&str>) -> String {
    let declare = declare.map_or_else(String::new, |ty| format!("declare `type Saved = {ty}`, "));
    format!(
        "`save_for_backward` is called for each tensor of the list `{list}`, but one call saves the \
         whole list: {declare}collect what is saved in a `Vec`, and write \
         `ctx.save_for_backward(&saved)` once, after the {place}"
    )
}
