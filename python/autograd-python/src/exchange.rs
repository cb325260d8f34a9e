//! The exchange of tensors with a framework that has a table of functions for it: a tenth of the time of a capsule.

use std::ffi::c_void;

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::dlpack::{EXCHANGE, ExchangeApi, Versioned};

/// The table of a framework's tensor type.
#[pyclass(frozen)]
pub struct Exchange {
    tensor: Py<PyType>,
    api: *const ExchangeApi,
}

// SAFETY: the table is constant, and lives as long as the process; its functions are called with the lock held.
unsafe impl Send for Exchange {}
// SAFETY: as above.
unsafe impl Sync for Exchange {}

#[pymethods]
impl Exchange {
    /// The table of a type that has the attribute `__dlpack_c_exchange_api__`.
    #[new]
    fn new(tensor: Bound<'_, PyType>) -> PyResult<Self> {
        let capsule = tensor.getattr("__dlpack_c_exchange_api__")?;
        // SAFETY: the lock is held. A capsule of this name holds such a table.
        let api = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), EXCHANGE.as_ptr()) };
        if api.is_null() {
            return Err(PyErr::fetch(tensor.py()));
        }
        let api = api.cast::<ExchangeApi>().cast_const();
        // SAFETY: as above; the first fields are those of all versions.
        if !unsafe { &*api }.is_known() {
            return Err(PyTypeError::new_err(
                "the exchange of tensors has another major version than 1",
            ));
        }
        Ok(Self { tensor: tensor.unbind(), api })
    }
}

impl Exchange {
    /// The tensor's struct, whose owner the caller is; `None` for another object than a tensor.
    pub(crate) fn take(&self, object: &Bound<'_, PyAny>) -> PyResult<Option<*mut Versioned>> {
        if !object.is_instance(self.tensor.bind(object.py()))? {
            return Ok(None);
        }
        let mut taken = std::ptr::null_mut();
        // SAFETY: the lock is held, and the object is of the table's type.
        let failed = unsafe { ((*self.api).from_object)(object.as_ptr().cast(), &mut taken) } != 0;
        match failed {
            true => Err(PyErr::fetch(object.py())),
            false => Ok(Some(taken)),
        }
    }

    /// A tensor of the framework, which owns the struct then.
    ///
    /// # Safety
    ///
    /// The struct is valid, and this call becomes its owner.
    pub(crate) unsafe fn give<'py>(
        &self,
        py: Python<'py>,
        tensor: *mut Versioned,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut object: *mut c_void = std::ptr::null_mut();
        // SAFETY: the lock is held.
        let failed = unsafe { ((*self.api).to_object)(tensor, &mut object) } != 0;
        match failed || object.is_null() {
            true => Err(PyErr::take(py)
                .unwrap_or_else(|| PyRuntimeError::new_err("a result could not be handed over"))),
            // SAFETY: a new reference to an object.
            false => Ok(unsafe { Bound::from_owned_ptr(py, object.cast()) }),
        }
    }
}
