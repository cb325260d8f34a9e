//! The `#[py_layer]` attribute of autograd-core.
use proc_macro::TokenStream;

/// Makes a differentiable op from an impl block.
#[proc_macro_attribute]
pub fn py_layer(_arguments: TokenStream, block: TokenStream) -> TokenStream {
    block
}

/// Makes a struct of tensors one that a layer can save.
#[proc_macro_derive(Saved)]
pub fn saved(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}
