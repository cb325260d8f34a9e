//! Handlers of XLA's typed foreign functions, version 0.1 of its interface: its structs, and three functions.

use std::ffi::{CString, c_char, c_void};

use autograd_core::host::{Memory, Origin, words};
use autograd_core::{AnyTensor, DType};

use crate::errors::running;
use crate::import::{foreign, row_major};
use crate::plan::{Plan, zeros};

#[repr(C)]
struct Extension {
    size: usize,
    kind: i32,
    next: *mut Extension,
}

#[repr(C)]
struct Version {
    size: usize,
    start: *mut Extension,
    major: i32,
    minor: i32,
}

#[repr(C)]
struct Metadata {
    size: usize,
    version: Version,
    traits: u32,
    state: i64,
}

#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

#[repr(C)]
struct ErrorArgs {
    size: usize,
    start: *mut Extension,
    message: *const c_char,
    code: i32,
}

#[repr(C)]
struct Buffer {
    size: usize,
    start: *mut Extension,
    dtype: i32,
    data: *mut c_void,
    rank: i64,
    dims: *mut i64,
}

#[repr(C)]
struct Span {
    at: *const c_char,
    len: usize,
}

#[repr(C)]
struct Buffers {
    size: usize,
    start: *mut Extension,
    len: i64,
    types: *mut i32,
    buffers: *mut *mut Buffer,
}

#[repr(C)]
struct Attrs {
    size: usize,
    start: *mut Extension,
    len: i64,
    types: *mut i32,
    names: *mut *mut Span,
    values: *mut *mut c_void,
}

#[repr(C)]
struct Api {
    size: usize,
    start: *mut Extension,
    version: Version,
    internal: *const c_void,
    error_create: unsafe extern "C" fn(*mut ErrorArgs) -> *mut c_void,
}

/// A call.
#[repr(C)]
pub struct Frame {
    size: usize,
    start: *mut Extension,
    api: *const Api,
    context: *mut c_void,
    stage: i32,
    args: Buffers,
    results: Buffers,
    attrs: Attrs,
}

pub(crate) type Handler = unsafe extern "C" fn(*mut Frame) -> *mut c_void;

const METADATA: i32 = 1;
const INVALID_ARGUMENT: i32 = 3;
/// The type of an attribute that is a text.
const TEXT: i32 = 4;

fn dtype(code: i32) -> Option<DType> {
    Some(match code {
        1 => DType::Bool,
        4 => DType::Int32,
        5 => DType::Int64,
        6 => DType::UInt8,
        11 => DType::Float32,
        12 => DType::Float64,
        _ => return None,
    })
}

impl Buffer {
    /// # Safety
    ///
    /// The buffer is one of a call that is running.
    unsafe fn shape(&self) -> Vec<usize> {
        // SAFETY: there are `rank` lengths.
        (0..self.rank as usize).map(|axis| unsafe { *self.dims.add(axis) as usize }).collect()
    }
}

impl Buffers {
    /// # Safety
    ///
    /// They are those of a call that is running.
    unsafe fn iter(&self) -> impl Iterator<Item = &Buffer> {
        // SAFETY: there are `len` pointers to buffers.
        (0..self.len as usize).map(|i| unsafe { &**self.buffers.add(i) })
    }

    /// Copies of the arguments: XLA frees its memory after the call, and an op may keep a tensor for longer.
    ///
    /// # Safety
    ///
    /// As of [`iter`](Self::iter).
    unsafe fn tensors(&self) -> Result<Vec<AnyTensor>, String> {
        let copied = |(i, buffer): (usize, &Buffer)| {
            let unknown = || format!("argument {i} has an unknown element type");
            let dtype = dtype(buffer.dtype).ok_or_else(unknown)?;
            // SAFETY: the call is running.
            let shape = unsafe { buffer.shape() };
            let (strides, data) = (row_major(&shape), buffer.data.cast::<u8>());
            // SAFETY: the memory is valid for the call, and this tensor is dropped here; its copy stays.
            let lent = unsafe { foreign(dtype, &shape, &strides, data, Box::new(())) };
            Ok(Memory::of(lent.ok_or_else(unknown)?).into_tensor())
        };
        // SAFETY: as of this function.
        unsafe { self.iter() }.enumerate().map(copied).collect()
    }

    /// Copies the results to where XLA wants them.
    ///
    /// # Safety
    ///
    /// As of [`iter`](Self::iter).
    unsafe fn write(&self, op: &str, results: Vec<AnyTensor>) -> Result<(), String> {
        let (expected, found) = (self.len as usize, results.len());
        if expected != found {
            return Err(format!("{op}: {expected} tensors were expected, found {found}"));
        }
        // SAFETY: as of this function.
        for (buffer, result) in unsafe { self.iter() }.zip(results) {
            let result = Memory::of(result);
            // SAFETY: as of this function.
            let shape = unsafe { buffer.shape() };
            if dtype(buffer.dtype) != Some(result.dtype()) || shape != result.shape() {
                return Err(format!(
                    "{op}: a tensor has shape {:?}, but {shape:?} for zeros: JAX needs shapes that do not depend on \
                     numbers",
                    result.shape()
                ));
            }
            // SAFETY: XLA's buffer has room for the elements of this shape and type, and is no memory of ours.
            unsafe {
                result.data().copy_to_nonoverlapping(buffer.data.cast(), result.bytes());
            }
        }
        Ok(())
    }
}

impl Attrs {
    /// # Safety
    ///
    /// They are those of a call that is running.
    unsafe fn plan(&self) -> Option<&str> {
        (0..self.len as usize).find_map(|i| {
            // SAFETY: there are `len` types, names and values; a text is a span of bytes.
            unsafe {
                let name = &**self.names.add(i);
                let name = std::slice::from_raw_parts(name.at.cast::<u8>(), name.len);
                if name != b"plan" || *self.types.add(i) != TEXT {
                    return None;
                }
                let value = &*(*self.values.add(i)).cast::<Span>();
                let value = std::slice::from_raw_parts(value.at.cast::<u8>(), value.len);
                std::str::from_utf8(value).ok()
            }
        })
    }
}

type Run = fn(&Plan, Vec<AnyTensor>) -> Result<Vec<AnyTensor>, String>;

/// # Safety
///
/// `frame` is a call by XLA.
unsafe fn handle(frame: *mut Frame, run: Run) -> *mut c_void {
    // SAFETY: as of this function.
    let frame = unsafe { &*frame };
    let mut extension = frame.start;
    while !extension.is_null() {
        // SAFETY: a list of extensions, of which one with this kind is a question for the version.
        unsafe {
            if (*extension).kind == METADATA {
                let metadata = &mut *(*extension.cast::<MetadataExtension>()).metadata;
                (metadata.version.major, metadata.version.minor, metadata.traits) = (0, 1, 0);
                return std::ptr::null_mut();
            }
            extension = (*extension).next;
        }
    }
    let called = || {
        // SAFETY: the call is running.
        let plan = unsafe { frame.attrs.plan() }.ok_or("a call without a plan")?;
        let plan = Plan::of(plan)?;
        // SAFETY: as above.
        let results = run(&plan, unsafe { frame.args.tensors() }?)?;
        // SAFETY: as above.
        unsafe { frame.results.write(plan.op.description().name, results) }
    };
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| running(called)));
    let message = match found {
        Ok(Ok(())) => return std::ptr::null_mut(),
        Ok(Err(message)) => message,
        Err(_) => "a panic outside of an op".to_owned(),
    };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    let mut args = ErrorArgs {
        size: size_of::<ErrorArgs>(),
        start: std::ptr::null_mut(),
        message: message.as_ptr(),
        code: INVALID_ARGUMENT,
    };
    // SAFETY: XLA's function, which copies the message.
    unsafe { ((*frame.api).error_create)(&mut args) }
}

/// Outputs, then the saved intermediates if backward reads what was saved.
///
/// # Safety
///
/// `frame` is a call by XLA.
pub(crate) unsafe extern "C" fn forward(frame: *mut Frame) -> *mut c_void {
    let run: Run = |plan, tensors| {
        let args = plan.args(tensors);
        let called = plan.op.forward(&args, &plan.needs).map_err(|error| words(&error))?;
        let (mut results, kept) = called;
        if !plan.again {
            let saved = kept.tensors().into_iter();
            let saved = saved.filter(|(origin, _)| *origin == Origin::Intermediate);
            results.extend(saved.map(|(_, tensor)| tensor));
        }
        Ok(results)
    };
    // SAFETY: as of this function.
    unsafe { handle(frame, run) }
}

/// From what was saved, or the arguments, and the gradients of the outputs: the wanted gradients.
///
/// # Safety
///
/// `frame` is a call by XLA.
pub(crate) unsafe extern "C" fn backward(frame: *mut Frame) -> *mut c_void {
    let run: Run = |plan, mut given| {
        let text = |error| words(&error);
        let (kept, grads) = match plan.again {
            true => {
                let outputs = given.len().saturating_sub(plan.tensors());
                let grads = split(&mut given, outputs)?;
                (plan.op.forward(&plan.args(given), &plan.needs).map_err(text)?.1, grads)
            }
            false => {
                let (skeleton, outputs) = plan.skeleton().map_err(text)?;
                let grads = split(&mut given, outputs)?;
                (skeleton.with(given).map_err(text)?, grads)
            }
        };
        let grads: Vec<Option<AnyTensor>> = grads.into_iter().map(Some).collect();
        let found = kept.backward(&grads, &plan.needs).map_err(text)?;
        let wanted = found.into_iter().enumerate().zip(&plan.needs).filter(|(_, needs)| **needs);
        // A gradient that is absent is zero.
        let zeros = |i: usize| {
            let (dtype, shape) = plan.form(i);
            zeros(dtype, shape)
        };
        Ok(wanted.map(|((i, grad), _)| grad.unwrap_or_else(|| zeros(i))).collect())
    };
    // SAFETY: as of this function.
    unsafe { handle(frame, run) }
}

/// From what was saved, the gradients of the outputs and those of backward's results: the gradients of the floats
/// among the first two.
///
/// # Safety
///
/// `frame` is a call by XLA.
pub(crate) unsafe extern "C" fn second(frame: *mut Frame) -> *mut c_void {
    let run: Run = |plan, mut given| {
        let text = |error| words(&error);
        let (skeleton, outputs) = plan.skeleton().map_err(text)?;
        let wanted = plan.needs.iter().filter(|needs| **needs).count();
        let mut along = split(&mut given, wanted)?.into_iter();
        let along = plan.needs.iter().map(|needs| if *needs { along.next() } else { None });
        let along: Vec<Option<AnyTensor>> = along.collect();
        let grads = split(&mut given, outputs)?;
        let of: Vec<AnyTensor> = given.iter().chain(&grads).cloned().collect();
        let grads: Vec<Option<AnyTensor>> = grads.into_iter().map(Some).collect();
        let kept = skeleton.with(given).map_err(text)?;
        let found = kept.second(&grads, &plan.needs, &along).map_err(text)?;
        let found = found.saved.into_iter().chain(found.grads).zip(of);
        let floats = found.filter(|(_, of)| matches!(of.dtype(), DType::Float32 | DType::Float64));
        Ok(floats.map(|(grad, of)| grad.unwrap_or_else(|| zeros(of.dtype(), of.shape()))).collect())
    };
    // SAFETY: as of this function.
    unsafe { handle(frame, run) }
}

/// The last `count` tensors.
fn split(given: &mut Vec<AnyTensor>, count: usize) -> Result<Vec<AnyTensor>, String> {
    let at = given.len().checked_sub(count);
    at.map(|at| given.split_off(at)).ok_or_else(|| "a call with too few tensors".to_owned())
}
