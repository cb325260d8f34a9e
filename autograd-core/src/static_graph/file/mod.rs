//! Programs in files: the program as lines of text in a safetensors file, beside what the executor
//! keeps for it. Functions are bound by name again when it is loaded.

#[cfg(feature = "safetensors")]
mod program;
mod read;
mod write;

use std::collections::HashMap;

use super::py_func::{Function, PyFunc};

/// What the first line says.
const HEAD: &str = "autograd-core program 1";

/// Functions by name, for a program that is loaded: those of its py_funcs, their backward
/// functions, `#[py_layer]` ops and eager closures.
#[derive(Clone, Debug, Default)]
pub struct Functions(HashMap<String, Function>);

impl Functions {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a function under the name that the program's text shows.
    pub fn with<F, Marker, const M: usize, const N: usize>(mut self, name: &str, func: F) -> Self
    where
        F: PyFunc<Marker, M, N>,
    {
        let function = Function { name: name.into(), ..Function::new(func) };
        self.0.insert(name.to_owned(), function);
        self
    }
}
