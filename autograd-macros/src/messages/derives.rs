//! Messages of `#[derive(Saved)]` and `#[derive(Module)]`.

sentences! {
    saved_needs_fields() "#[derive(Saved)] needs a struct with named fields, each made of tensors";
    saved_lifetime()
        "what is saved outlives the call, so it cannot borrow; keep tensors by value (a clone is \
         cheap)";
}

pub(crate) fn derive_needs_struct(derive: &str, found: &str) -> String {
    match derive {
        "Saved" => {
            format!("#[derive(Saved)] stands on a struct with named fields, not on {found}")
        }
        _ => format!(
            "#[derive(Module)] stands on a struct, not on {found}; write `impl Module` by hand"
        ),
    }
}

pub(crate) fn derive_argument(name: &str, field: bool) -> String {
    match (name, field) {
        ("module", true) => {
            "the only such attribute of a field is `#[module(skip)]`, for a field that holds no \
             parameters"
                .into()
        }
        (_, true) => format!(
            "a field has no `#[{name}(..)]`; `#[{name}(crate = path)]` stands on the struct"
        ),
        (_, false) => format!("write where autograd_core is: `#[{name}(crate = path)]`"),
    }
}
