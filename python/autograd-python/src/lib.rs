//! Ops of autograd-core as a Python module, for NumPy, JAX, PyTorch and Paddle.
//!
//! ```ignore
//! autograd_python::export!(my_ops; CusTanh, layers::Gate);
//! ```
//!
//! makes the Python module `my_ops` of a `cdylib`, with the ops that have `#[py_layer(export)]`. The package
//! `autograd_bridge` turns it into functions of a framework.

mod dlpack;
mod errors;
mod exchange;
mod exported;
mod import;
mod op;
mod plan;
mod xla;

use std::ffi::c_void;

use autograd_core::host::DynOp;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

#[doc(hidden)]
pub use {autograd_core, pyo3};

/// Makes the Python module of these ops: `export!(my_ops; CusTanh, layers::Gate)`.
#[macro_export]
macro_rules! export {
    ($module:ident; $($($part:ident)::+),* $(,)?) => {
        static OPS: &[&dyn $crate::autograd_core::host::DynOp] = &[$($($part)::+::EXPORT),*];

        #[$crate::pyo3::pymodule(gil_used = false, crate = "autograd_python::pyo3")]
        fn $module(
            module: &$crate::pyo3::Bound<'_, $crate::pyo3::types::PyModule>,
        ) -> $crate::pyo3::PyResult<()> {
            $crate::fill(module, OPS)
        }
    };
}

/// The contents of a module: its ops by their names, the handlers for XLA, and the number of threads.
#[doc(hidden)]
pub fn fill(module: &Bound<'_, PyModule>, ops: &'static [&'static dyn DynOp]) -> PyResult<()> {
    errors::silence_panics_of_ops();
    plan::register(ops);
    let py = module.py();
    let all = PyDict::new(py);
    for op in ops {
        let name = snake_case(op.description().name);
        all.set_item(name, Py::new(py, op::Op(*op))?)?;
    }
    module.add("__ops__", all)?;
    module.add_class::<op::Op>()?;
    module.add_class::<op::State>()?;
    module.add_class::<exported::Exported>()?;
    module.add_class::<exchange::Exchange>()?;
    module.add_function(wrap_pyfunction!(set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(live_imports, module)?)?;
    module.add_function(wrap_pyfunction!(op::abstract_of, module)?)?;
    let handlers: [(&str, xla::Handler); 3] = [
        ("xla_forward", xla::forward),
        ("xla_backward", xla::backward),
        ("xla_second", xla::second),
    ];
    for (name, handler) in handlers {
        // SAFETY: the lock is held, and a capsule without a destructor owns nothing.
        let capsule = unsafe {
            let capsule = ffi::PyCapsule_New(handler as *mut c_void, std::ptr::null(), None);
            Bound::from_owned_ptr_or_err(py, capsule)?
        };
        module.add(name, capsule)?;
    }
    Ok(())
}

/// How many threads an op may use.
#[pyfunction]
fn set_num_threads(threads: usize) {
    autograd_core::set_num_threads(threads);
}

/// How many tensors of a framework are read by tensors of this module now.
#[pyfunction]
fn live_imports() -> usize {
    import::live()
}

/// `CusTanh` as `cus_tanh`.
fn snake_case(name: &str) -> String {
    let mut all = String::new();
    let mut before_is_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && before_is_lower {
            all.push('_');
        }
        before_is_lower = c.is_lowercase() || c.is_ascii_digit();
        all.extend(c.to_lowercase());
    }
    all
}
