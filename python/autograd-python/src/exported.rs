//! A tensor of this library for a framework, which reads it by `__dlpack__`.

use std::ffi::c_void;
use std::sync::Arc;

use autograd_core::host::Memory;
use autograd_core::{AnyTensor, DType};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::dlpack::{CPU, DlTensor, Managed, NEW, OLD, Type, Versioned};
use crate::exchange::Exchange;

/// A result in memory that nobody else uses: the framework that takes it may write it.
#[pyclass(frozen)]
pub struct Exported(Arc<Memory>);

impl Exported {
    pub(crate) fn of(tensor: AnyTensor) -> Self {
        Self(Arc::new(Memory::of(tensor)))
    }
}

/// A struct that a capsule points to, with what it refers to.
#[repr(C)]
struct Lent<M> {
    managed: M,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _memory: Arc<Memory>,
}

unsafe extern "C" fn free<M>(of: *mut M) {
    // SAFETY: `of` is the first field of a box that `capsule` made, and is freed once.
    drop(unsafe { Box::from_raw(of.cast::<Lent<M>>()) });
}

/// The destructor of a capsule that nobody took.
unsafe extern "C" fn unused<M: Form>(capsule: *mut ffi::PyObject) {
    // SAFETY: the lock is held. A capsule that still has this name has its struct.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) == 1 {
            free::<M>(ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast());
        }
    }
}

/// Nothing reads it, but Paddle calls the deleter only if it is not null.
const CONTEXT: *mut c_void = std::ptr::dangling_mut::<u8>().cast();

trait Form {
    const NAME: &'static std::ffi::CStr;
    fn new(tensor: DlTensor) -> Self;
    fn tensor(&mut self) -> &mut DlTensor;
}

impl Form for Managed {
    const NAME: &'static std::ffi::CStr = OLD[0];

    fn new(tensor: DlTensor) -> Self {
        Self { tensor, context: CONTEXT, deleter: Some(free::<Self>) }
    }

    fn tensor(&mut self) -> &mut DlTensor {
        &mut self.tensor
    }
}

impl Form for Versioned {
    const NAME: &'static std::ffi::CStr = NEW[0];

    fn new(tensor: DlTensor) -> Self {
        let deleter = Some(free::<Self> as _);
        Self { major: 1, minor: 0, context: CONTEXT, deleter, flags: 0, tensor }
    }

    fn tensor(&mut self) -> &mut DlTensor {
        &mut self.tensor
    }
}

impl Exported {
    /// The tensor for Python: one of the framework if its table is known, else this object, for `from_dlpack`.
    pub(crate) fn handed<'py>(
        self,
        py: Python<'py>,
        exchange: Option<&Exchange>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(exchange) = exchange else { return Ok(Bound::new(py, self)?.into_any()) };
        let lent = self.lent::<Versioned>()?;
        // SAFETY: a struct of this module, which is handed over.
        unsafe { exchange.give(py, lent) }
    }

    /// A struct that owns what it refers to.
    fn lent<M: Form>(&self) -> PyResult<*mut M> {
        let memory = Arc::clone(&self.0);
        let shape: Vec<i64> = memory.shape().iter().map(|&n| n as i64).collect();
        let strides = crate::import::row_major(memory.shape());
        let strides: Vec<i64> = strides.into_iter().map(|step| step as i64).collect();
        let unknown = || PyTypeError::new_err(format!("DLPack has no {}", memory.dtype()));
        let dtype = Type::of(memory.dtype()).ok_or_else(unknown)?;
        let tensor = DlTensor {
            data: memory.data().cast(),
            device: CPU,
            ndim: shape.len() as i32,
            dtype,
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        let mut lent = Box::new(Lent { managed: M::new(tensor), shape, strides, _memory: memory });
        let places = (lent.shape.as_mut_ptr(), lent.strides.as_mut_ptr());
        let tensor = lent.managed.tensor();
        (tensor.shape, tensor.strides) = places;
        Ok(Box::into_raw(lent).cast())
    }

    fn capsule<'py, M: Form>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let raw = self.lent::<M>()?;
        // SAFETY: the lock is held. The struct is the first field of the box, which its deleter frees, or the
        // capsule's destructor if nobody takes it.
        unsafe {
            let capsule = ffi::PyCapsule_New(raw.cast(), M::NAME.as_ptr(), Some(unused::<M>));
            Bound::from_owned_ptr_or_err(py, capsule).inspect_err(|_| free::<M>(raw))
        }
    }
}

#[pymethods]
impl Exported {
    fn __dlpack_device__(&self) -> (i32, i32) {
        (CPU.kind, CPU.id)
    }

    /// For NumPy: before 2.1 what it makes of a DLPack tensor is read-only.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (memory, all) = (&self.0, PyDict::new(py));
        let kind = match memory.dtype() {
            DType::Float32 => "f4",
            DType::Float64 => "f8",
            DType::Int32 => "i4",
            DType::Int64 => "i8",
            DType::UInt8 => "u1",
            DType::Bool => "b1",
            other => return Err(PyTypeError::new_err(format!("NumPy has no {other}"))),
        };
        let order = if cfg!(target_endian = "little") { "<" } else { ">" };
        all.set_item("version", 3)?;
        all.set_item("typestr", format!("{order}{kind}"))?;
        all.set_item("shape", PyTuple::new(py, memory.shape())?)?;
        all.set_item("data", (memory.data().addr(), false))?;
        Ok(all)
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // The memory is that of the CPU, and not shared.
        let _ = (stream, dl_device, copy);
        match max_version {
            Some((major, _)) if major >= 1 => self.capsule::<Versioned>(py),
            _ => self.capsule::<Managed>(py),
        }
    }
}
