//! Messages of `#[derive(Saved)]` and `#[derive(Module)]`.

sentences! {
    saved_needs_fields() "#[derive(Saved)] needs a struct with named fields, each made of tensors";
    saved_lifetime()
        "what is saved outlives the call, so it cannot borrow; keep tensors by value (a clone is \
         cheap)";
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
