//! The macros on mutated valid blocks, and on arbitrary tokens.

#![no_main]
#![allow(dead_code, unused_imports, unreachable_pub, reason = "not all of it is called here")]

// A proc-macro crate exports only macros, so its modules are compiled here again.
extern crate proc_macro;

macro_rules! modules {
    ($($path:literal $name:ident)*) => {$(
        #[path = $path]
        mod $name;
    )*};
}

modules! {
    "../../autograd-macros/src/args.rs" args
    "../../autograd-macros/src/attributes.rs" attributes
    "../../autograd-macros/src/block.rs" block
    "../../autograd-macros/src/builder/mod.rs" builder
    "../../autograd-macros/src/check/mod.rs" check
    "../../autograd-macros/src/check_arg/mod.rs" check_arg
    "../../autograd-macros/src/derives.rs" derives
    "../../autograd-macros/src/elementwise/mod.rs" elementwise
    "../../autograd-macros/src/errors.rs" errors
    "../../autograd-macros/src/expand/mod.rs" expand
    "../../autograd-macros/src/expansion.rs" expansion
    "../../autograd-macros/src/export/mod.rs" export
    "../../autograd-macros/src/fallback.rs" fallback
    "../../autograd-macros/src/front.rs" front
    "../../autograd-macros/src/generics.rs" generics
    "../../autograd-macros/src/items.rs" items
    "../../autograd-macros/src/layer.rs" layer
    "../../autograd-macros/src/library.rs" library
    "../../autograd-macros/src/messages/mod.rs" messages
    "../../autograd-macros/src/model.rs" model
    "../../autograd-macros/src/parse/mod.rs" parse
    "../../autograd-macros/src/py_func/mod.rs" py_func
    "../../autograd-macros/src/shapes/mod.rs" shapes
    "../../autograd-macros/src/signatures.rs" signatures
    "../../autograd-macros/src/tokens.rs" tokens
    "../../autograd-macros/src/tests/fuzzed.rs" fuzzed
    "../../tests/tests/fuzz/choices.rs" choices
}

use layer::layer;
use choices::Choices;

impl fuzzed::Decisions for Choices<'_> {
    fn below(&mut self, n: usize) -> usize {
        Choices::below(self, n)
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut choices = Choices::new(bytes);
    while !choices.is_used_up() {
        match choices.below(4) {
            0 | 1 => drop(fuzzed::block(&mut choices)),
            2 => drop(fuzzed::formula(&mut choices)),
            _ => fuzzed::any_tokens(&mut choices),
        }
    }
});
