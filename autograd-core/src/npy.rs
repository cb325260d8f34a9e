//! NumPy's files: an array in an `.npy` file, named arrays in an `.npz` archive.
//!
//! ```
//! use autograd_core::{Tensor, npy};
//!
//! let path = std::env::temp_dir().join(format!("doc-{}.npy", std::process::id()));
//! npy::write_npy(&path, &Tensor::from([[1.0, 2.0], [3.0, 4.0]]))?;
//! let x: Tensor<f64> = npy::read_npy(&path)?.downcast().expect("it was written as f64");
//! assert_eq!(x.to_vec(), [1.0, 2.0, 3.0, 4.0]);
//! # std::fs::remove_file(path).ok();
//! # Ok::<(), autograd_core::Error>(())
//! ```
//!
//! - Element types are `float32`, `float64`, `int32`, `int64`, `uint8` and `bool`, little-endian. Arrays in
//!   C and in Fortran order are read; arrays are written row-major, with their shape unchanged.
//! - Archives are read as `np.savez` and `np.savez_compressed` write them, and written as by `np.savez`.
//! - Tensors that are read want no gradient. A file is not trusted: a header that claims more elements than
//!   the file has is an error before memory is allocated.
//! - A file is replaced atomically: a full disk or a crash leaves the old one.

use std::collections::BTreeMap;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

use ndarray::{ArrayD, ArrayViewD};
use ndarray_npy::{
    ReadNpyExt, ReadableElement, ViewElement, ViewNpyError, ViewNpyExt, WriteNpyExt,
};
use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, ZipArchive};

use crate::error::Result;
use crate::file::{self, malformed};
use crate::graph::{AnyTensor, Element, Tensor, for_any};

const SUFFIX: &str = ".npy";

/// Reads an `.npy` file.
///
/// ```
/// use autograd_core::{Tensor, npy};
///
/// let path = std::env::temp_dir().join(format!("read-{}.npy", std::process::id()));
/// npy::write_npy(&path, &Tensor::from([1_i64, 2]))?;
/// assert_eq!(npy::read_npy(&path)?.downcast::<i64>().unwrap().to_vec(), [1, 2]);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::File`](crate::Error::File) if the file does not exist or cannot be read, is not a complete `.npy`
/// file, or has elements of another type or byte order than this module reads.
pub fn read_npy(path: impl AsRef<Path>) -> Result<AnyTensor> {
    file::read("read_npy", path.as_ref(), |file, _| parse(&all(file)?))
}

/// Writes a tensor as an `.npy` file, with its shape and element type.
///
/// ```
/// use autograd_core::{Tensor, npy};
///
/// let path = std::env::temp_dir().join(format!("write-{}.npy", std::process::id()));
/// npy::write_npy(&path, &Tensor::from([[1.0_f32, 2.0]]))?;
/// assert!(std::fs::read(&path).unwrap().starts_with(b"\x93NUMPY"));
/// assert_eq!(npy::read_npy(&path)?.shape(), [1, 2]);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::File`](crate::Error::File) if the file cannot be written. An existing file is unchanged then.
pub fn write_npy<T: Element>(path: impl AsRef<Path>, tensor: &Tensor<T>) -> Result<()> {
    file::replace("write_npy", path.as_ref(), |out| write(&tensor.untyped(), out))
}

/// Reads all arrays of an `.npz` archive, by name without `.npy`.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use autograd_core::{Tensor, npy};
///
/// let path = std::env::temp_dir().join(format!("read-{}.npz", std::process::id()));
/// let tensors = [("a", Tensor::from([1.0])), ("b", Tensor::from([2.0, 3.0]))];
/// npy::write_npz(&path, &BTreeMap::from(tensors.map(|(name, x)| (name.into(), x.into()))))?;
/// let arrays = npy::read_npz(&path)?;
/// assert_eq!(arrays.keys().collect::<Vec<_>>(), ["a", "b"]);
/// assert_eq!(arrays["b"].downcast_ref::<f64>().unwrap().to_vec(), [2.0, 3.0]);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// As [`read_npy`]; also if the file is not an archive, or contains something other than arrays.
/// The error names the array that is wrong.
pub fn read_npz(path: impl AsRef<Path>) -> Result<BTreeMap<String, AnyTensor>> {
    file::read("read_npz", path.as_ref(), |file, _| {
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(io::Error::from)?;
        let mut arrays = BTreeMap::new();
        for position in 0..archive.len() {
            let entry = archive.by_index(position).map_err(io::Error::from)?;
            let full = entry.name().to_owned();
            let Some(name) = full.strip_suffix(SUFFIX) else {
                return Err(malformed(format!(
                    "`{full}` is no array: its name does not end in {SUFFIX}"
                )));
            };
            let array = all(entry).and_then(|bytes| parse(&bytes));
            let array = array
                .map_err(|error| io::Error::new(error.kind(), format!("`{name}`: {error}")))?;
            arrays.insert(name.to_owned(), array);
        }
        Ok(arrays)
    })
}

/// Writes tensors of any shapes and element types by name as an uncompressed `.npz` archive, as `np.savez`.
/// Equal tensors give equal bytes.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use autograd_core::{Tensor, npy};
///
/// let path = std::env::temp_dir().join(format!("doc-{}.npz", std::process::id()));
/// let tensors = BTreeMap::from([("bias".to_owned(), Tensor::from([0.5_f32, 1.0]).into())]);
/// npy::write_npz(&path, &tensors)?;
/// let bias = npy::read_npz(&path)?["bias"].downcast_ref::<f32>().cloned();
/// assert_eq!(bias.unwrap().to_vec(), [0.5, 1.0]);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// As [`write_npy`]; also if a name is longer than an archive can hold.
pub fn write_npz(path: impl AsRef<Path>, tensors: &BTreeMap<String, AnyTensor>) -> Result<()> {
    file::replace("write_npz", path.as_ref(), |out| {
        let mut archive = ZipWriter::new_stream(out);
        for (name, tensor) in tensors {
            if name.len() + SUFFIX.len() > usize::from(u16::MAX) {
                let why = format!("a name of {} bytes is too long for an archive", name.len());
                return Err(io::Error::new(ErrorKind::InvalidInput, why));
            }
            let is_large = u32::try_from(tensor.len().saturating_mul(16)).is_err();
            let options =
                SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
            archive.start_file(format!("{name}{SUFFIX}"), options.large_file(is_large))?;
            write(tensor, &mut archive)?;
        }
        archive.finish().map_err(io::Error::from).map(|_| ())
    })
}

fn all(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write(tensor: &AnyTensor, out: &mut dyn io::Write) -> io::Result<()> {
    let written = for_any!(tensor, t => t.view().as_standard_layout().write_npy(out));
    written.map_err(io::Error::other)
}

fn parse(bytes: &[u8]) -> io::Result<AnyTensor> {
    let types =
        [array::<f32>, array::<f64>, array::<i32>, array::<i64>, array::<u8>, array::<bool>];
    let mut tries = types.into_iter().map(|array| array(bytes));
    let is_other = |tried: &Result<_, _>| matches!(tried, Err(ViewNpyError::WrongDescriptor(_)));
    let found = tries.find(|tried| !is_other(tried)).unwrap_or_else(|| array::<f32>(bytes));
    found.map_err(|error| match error {
        ViewNpyError::WrongDescriptor(found) => malformed(format!(
            "its elements are of type {found}; float32, float64, int32, int64, uint8 and bool are read"
        )),
        ViewNpyError::NonNativeEndian => {
            malformed("its elements are big-endian; in NumPy, save `x.astype(x.dtype.newbyteorder('<'))`")
        }
        error => malformed(error.to_string()),
    })
}

fn array<T: Element + ReadableElement + ViewElement>(
    bytes: &[u8],
) -> Result<AnyTensor, ViewNpyError> {
    let array = match ArrayViewD::<T>::view_npy(bytes) {
        // The header agrees with the number of bytes, so a copy needs no more memory.
        Err(ViewNpyError::MisalignedData) => {
            ArrayD::read_npy(bytes).map_err(|error| ViewNpyError::InvalidData(Box::new(error)))
        }
        view => view.map(|view| view.to_owned()),
    };
    array.map(|array| Tensor::from(array).into())
}
