//! What is said of `#[derive(Saved)]` and `#[derive(Module)]`.

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
