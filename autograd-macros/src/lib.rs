//! The macros of `autograd-core`, which re-exports them: depend on that crate.
//!
//! `front` runs all forms but the derives: `args`, `parse` (with `items`) builds the `model`, `check`, then
//! `expand` or `fallback`. `errors` collects the mistakes; `messages` has the texts.

mod args;
mod attributes;
mod block;
mod builder;
mod check;
mod check_arg;
mod derives;
mod elementwise;
mod errors;
mod expand;
mod expansion;
mod export;
mod fallback;
mod front;
mod generics;
mod items;
mod layer;
mod library;
mod messages;
mod model;
mod parse;
mod py_func;
mod shapes;
mod signatures;
#[cfg(test)]
mod tests;
mod tokens;

/// Defines a differentiable op from an impl block with `forward` and `backward`.
#[proc_macro_attribute]
pub fn py_layer(
    arguments: proc_macro::TokenStream,
    block: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    layer::layer(arguments.into(), block.into(), cfg!(feature = "verify")).into()
}

/// Defines an operator for programs from an impl block with `forward` and `backward` over arrays.
#[proc_macro_attribute]
pub fn py_func(
    arguments: proc_macro::TokenStream,
    block: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    py_func::py_func(arguments.into(), block.into()).into()
}

/// Lets an op save a struct of tensors: `type Saved = MyStruct;`.
///
/// `#[saved(crate = path)]` gives the path of autograd_core, if it is re-exported.
#[proc_macro_derive(Saved, attributes(saved))]
pub fn derive_saved(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    derives::saved(item.into()).into()
}

/// Implements `Module` for a struct of modules. Parameters are named after the fields.
///
/// Mark a field that is not a module with `#[module(skip)]`. `#[module(crate = path)]` gives the path
/// of autograd_core, if it is re-exported.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    derives::module(item.into()).into()
}

/// Defines an elementwise op in one line: its name, its value and its gradients.
///
/// `scalar_op!(Softplus: y = (1.0 + x.exp()).ln(), dx = dy / (1.0 + (-x).exp()))` is equivalent to a
/// `#[py_layer(elementwise)]` block with this forward and backward.
#[proc_macro]
pub fn scalar_op(tokens: proc_macro::TokenStream) -> proc_macro::TokenStream {
    elementwise::scalar_op(tokens.into()).into()
}
