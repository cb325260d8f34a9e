//! A framework's tensor as one of this library, over the same memory where that is possible.

use std::sync::atomic::{AtomicUsize, Ordering};

use autograd_core::{AnyTensor, DType, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::dlpack::{CPU, DlTensor, Managed, NEW, OLD, Versioned};
use crate::exchange::Exchange;

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The number of imports whose memory is read now.
pub(crate) fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// A taken capsule's tensor; its drop frees the tensor.
enum Owner {
    Old(*mut Managed),
    New(*mut Versioned),
}

// SAFETY: DLPack allows its deleter to be called on any thread; one of Python takes the interpreter's lock.
unsafe impl Send for Owner {}
// SAFETY: it is only dropped.
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the capsule was taken, so this is the only owner, and its deleter is called once.
        unsafe {
            match *self {
                Self::Old(of) => (*of).deleter.into_iter().for_each(|free| free(of)),
                Self::New(of) => (*of).deleter.into_iter().for_each(|free| free(of)),
            }
        }
    }
}

pub(crate) fn import(
    op: &str,
    parameter: &str,
    object: &Bound<'_, PyAny>,
    exchange: Option<&Exchange>,
) -> PyResult<AnyTensor> {
    let wrong = |why: String| PyTypeError::new_err(format!("{op}: `{parameter}` {why}"));
    let taken = exchange.map(|exchange| exchange.take(object)).transpose();
    let taken =
        taken.map_err(|error| wrong(format!("cannot be read: {}", error.value(object.py()))))?;
    if let Some(of) = taken.flatten() {
        // SAFETY: a struct that this function owns.
        return unsafe { read(&(*of).tensor, Owner::New(of), wrong) };
    }
    let capsule = capsule(object).map_err(|error| match error {
        None => wrong(format!("must be a tensor, found {}", type_of(object))),
        Some(error) => wrong(format!("cannot be read: {}", error.value(object.py()))),
    })?;
    let raw = capsule.as_ptr();
    // SAFETY: the lock is held. A capsule of one of these names holds a struct of this form until it is renamed,
    // which makes this function its owner.
    let (tensor, owner) = unsafe {
        if ffi::PyCapsule_IsValid(raw, NEW[0].as_ptr()) == 1 {
            let of = ffi::PyCapsule_GetPointer(raw, NEW[0].as_ptr()).cast::<Versioned>();
            ffi::PyCapsule_SetName(raw, NEW[1].as_ptr());
            (&(*of).tensor, Owner::New(of))
        } else if ffi::PyCapsule_IsValid(raw, OLD[0].as_ptr()) == 1 {
            let of = ffi::PyCapsule_GetPointer(raw, OLD[0].as_ptr()).cast::<Managed>();
            ffi::PyCapsule_SetName(raw, OLD[1].as_ptr());
            (&(*of).tensor, Owner::Old(of))
        } else {
            return Err(wrong("gives no DLPack tensor".to_owned()));
        }
    };
    // SAFETY: as above.
    unsafe { read(tensor, owner, wrong) }
}

/// # Safety
///
/// `tensor` is a valid tensor, whose memory lives until `owner` is dropped.
unsafe fn read(
    tensor: &DlTensor,
    owner: Owner,
    wrong: impl Fn(String) -> PyErr,
) -> PyResult<AnyTensor> {
    LIVE.fetch_add(1, Ordering::Relaxed);
    if tensor.device.kind != CPU.kind {
        return Err(wrong("must be on the CPU: this op has no other kernel".to_owned()));
    }
    let found = tensor.dtype;
    // SAFETY: the struct is what DLPack says, and lives until `owner` is dropped. Its producer does not change the
    // elements meanwhile, as the documentation asks.
    let read = found.dtype().and_then(|dtype| unsafe { over(tensor, dtype, owner) });
    read.ok_or_else(|| {
        let all = "float32, float64, int32, int64, uint8 or bool";
        wrong(format!("must have elements of {all}, found {}", found.words()))
    })
}

/// # Safety
///
/// `tensor` is a valid tensor of this element type, whose memory lives until `owner` is dropped.
unsafe fn over(tensor: &DlTensor, dtype: DType, owner: Owner) -> Option<AnyTensor> {
    let axes = tensor.ndim as usize;
    // SAFETY: there are so many lengths and strides.
    let (shape, strides): (Vec<usize>, Vec<isize>) = unsafe {
        let shape: Vec<usize> = (0..axes).map(|i| *tensor.shape.add(i) as usize).collect();
        let strides = match tensor.strides.is_null() {
            true => row_major(&shape),
            false => (0..axes).map(|i| *tensor.strides.add(i) as isize).collect(),
        };
        (shape, strides)
    };
    // SAFETY: the offset is inside of the allocation.
    let data = unsafe { tensor.data.cast::<u8>().add(tensor.byte_offset as usize) };
    let owner = Box::new(owner);
    // SAFETY: as of this function.
    unsafe { foreign(dtype, &shape, &strides, data, owner) }
}

pub(crate) fn row_major(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1_isize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as isize;
    }
    strides
}

/// # Safety
///
/// As of `Tensor::from_foreign`, for elements of `dtype`; a bool may be any byte.
pub(crate) unsafe fn foreign(
    dtype: DType,
    shape: &[usize],
    strides: &[isize],
    data: *const u8,
    owner: Box<dyn Send + Sync>,
) -> Option<AnyTensor> {
    macro_rules! of {
        ($t:ty) => {
            // SAFETY: as of this function.
            unsafe { Tensor::<$t>::from_foreign(shape, strides, data.cast(), owner) }.into()
        };
    }
    Some(match dtype {
        DType::Float32 => of!(f32),
        DType::Float64 => of!(f64),
        DType::Int32 => of!(i32),
        DType::Int64 => of!(i64),
        DType::UInt8 => of!(u8),
        // A foreign bool may be another byte than 0 and 1, which would be no bool of Rust.
        DType::Bool => {
            // SAFETY: as of this function; a byte is a `u8`.
            let bytes = unsafe { Tensor::<u8>::from_foreign(shape, strides, data, owner) };
            bytes.ne_scalar(0).into()
        }
        _ => return None,
    })
}

/// What `__dlpack__` returns; no error if there is no such method.
fn capsule<'py>(object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Option<PyErr>> {
    let method = object.getattr("__dlpack__").map_err(|_| None)?;
    let keywords = PyDict::new(object.py());
    keywords.set_item("max_version", (1, 0)).map_err(Some)?;
    match method.call((), Some(&keywords)) {
        // An older producer does not know the keyword.
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => {
            method.call0().map_err(Some)
        }
        called => called.map_err(Some),
    }
}

fn type_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "another type".to_owned(), |name| name.to_string())
}
