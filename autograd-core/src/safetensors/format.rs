//! The format, by the `safetensors` crate: its header and its element types. The checks here are those
//! that the crate leaves out.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Read, Write};

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{SafeTensors, StateDict, malformed};
use crate::array::shape::element_count;
use crate::array::{DType, Shape, Value};
use crate::graph::{AnyTensor, Element, Tensor};

/// The limit of the crate and of Python's package.
const MAX_HEADER_BYTES: u64 = 100_000_000;
const METADATA: &str = "__metadata__";

/// The element types, in the order in which Python's package writes them: data is then aligned.
const DTYPES: [(DType, Dtype); 6] = [
    (DType::Int64, Dtype::I64),
    (DType::Float64, Dtype::F64),
    (DType::Float32, Dtype::F32),
    (DType::Int32, Dtype::I32),
    (DType::UInt8, Dtype::U8),
    (DType::Bool, Dtype::BOOL),
];

/// Writes the header and the elements of all tensors.
pub(super) fn write(file: &SafeTensors, out: &mut dyn Write) -> io::Result<()> {
    let header = header(file)?;
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    in_order(&file.tensors).try_for_each(|(_, _, tensor)| out.write_all(&bytes_of(tensor)))
}

fn in_order(tensors: &StateDict) -> impl Iterator<Item = (Dtype, &String, &AnyTensor)> {
    DTYPES.into_iter().flat_map(move |(own, dtype)| {
        let of_type = tensors.iter().filter(move |(_, tensor)| tensor.dtype() == own);
        of_type.map(move |(name, tensor)| (dtype, name, tensor))
    })
}

/// The header, padded with spaces. The crate writes notes in the order of a hash map; here equal files
/// have equal bytes.
fn header(file: &SafeTensors) -> io::Result<Vec<u8>> {
    let refused = |why: String| io::Error::new(ErrorKind::InvalidInput, why);
    if file.tensors.contains_key(METADATA) {
        return Err(refused(format!(
            "the name `{METADATA}` is kept for notes; no tensor may have it"
        )));
    }
    let mut entries = Vec::new();
    if !file.metadata.is_empty() {
        entries.push(format!("\"{METADATA}\":{}", serde_json::to_string(&file.metadata)?));
    }
    let mut end = 0;
    for (dtype, name, tensor) in in_order(&file.tensors) {
        let (begin, shape) = (end, tensor.shape().to_vec());
        end += shape.iter().product::<usize>() * (dtype.bitsize() / 8);
        let info = TensorInfo { dtype, shape, data_offsets: (begin, end) };
        entries.push(format!("{}:{}", serde_json::to_string(name)?, serde_json::to_string(&info)?));
    }
    let mut text = format!("{{{}}}", entries.join(",")).into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    if text.len() as u64 > MAX_HEADER_BYTES {
        let why = format!("names and notes make a header of more than {MAX_HEADER_BYTES} bytes");
        return Err(refused(why));
    }
    Ok(text)
}

/// Reads a file of `len` bytes.
pub(super) fn read(from: &mut dyn Read, len: u64) -> io::Result<SafeTensors> {
    let Some(rest) = len.checked_sub(8) else {
        return Err(malformed(format!(
            "a safetensors file starts with 8 bytes that give its header's length, but this one \
             has {len} bytes"
        )));
    };
    let mut size = [0; 8];
    from.read_exact(&mut size)?;
    let size = u64::from_le_bytes(size);
    if size > rest || size > MAX_HEADER_BYTES {
        let limit = rest.min(MAX_HEADER_BYTES);
        return Err(malformed(format!(
            "the header claims {size} bytes, but at most {limit} are possible in a file of {len} \
             bytes; this is no safetensors file, or it was cut"
        )));
    }
    let mut text = vec![0; size as usize];
    from.read_exact(&mut text)?;
    let (metadata, header) = parse(&text)?;
    let (expected, found) = (header.data_len() as u64, rest - size);
    if expected != found {
        let cut = if expected > found { "; it was cut" } else { "" };
        return Err(malformed(format!(
            "the tensors take {expected} bytes, but the file has {found} bytes of data{cut}"
        )));
    }
    let mut file = SafeTensors { metadata, ..SafeTensors::new() };
    for name in header.offset_keys() {
        let Some(info) = header.info(&name) else { unreachable!("a name of the header") };
        let mut bytes = vec![0; info.data_offsets.1 - info.data_offsets.0];
        from.read_exact(&mut bytes)?;
        let tensor = tensor_of(info, &bytes).map_err(|why| malformed_tensor(&name, why))?;
        file.tensors.insert(name, tensor);
    }
    Ok(file)
}

fn malformed_tensor(name: &str, why: impl Display) -> io::Error {
    malformed(format!("tensor `{name}`: {why}"))
}

/// The notes and the tensors of a header. The tensors' data lies without a gap from 0 on.
fn parse(text: &[u8]) -> io::Result<(BTreeMap<String, String>, Metadata)> {
    let wrong = |why: &dyn Display| malformed(format!("header: {why}"));
    let text = str::from_utf8(text).map_err(|why| wrong(&why))?;
    if !text.starts_with('{') {
        return Err(wrong(&"it must start with `{`"));
    }
    let Object(entries) = serde_json::from_str(text).map_err(|why| wrong(&why))?;
    let mut metadata = BTreeMap::new();
    let mut tensors = Vec::new();
    for (name, raw) in entries {
        if name == METADATA {
            metadata = notes(raw).map_err(|why| wrong(&format!("`{METADATA}`: {why}")))?;
        } else {
            let info = info(raw).map_err(|why| malformed_tensor(&name, why))?;
            tensors.push((name, info));
        }
    }
    tensors.sort_by_key(|(_, info)| info.data_offsets);
    let header = Metadata::new(None, tensors).map_err(|why| wrong(&why))?;
    Ok((metadata, header))
}

fn notes(raw: &RawValue) -> serde_json::Result<BTreeMap<String, String>> {
    let Object(notes) = serde_json::from_str(raw.get())?;
    notes.into_iter().map(|(name, raw)| Ok((name, serde_json::from_str(raw.get())?))).collect()
}

/// Of a tensor: the crate takes keys that the format does not have, lengths whose product overflows
/// beside a 0, and types that are no [`DType`].
fn info(raw: &RawValue) -> Result<TensorInfo, String> {
    let Object(keys) = serde_json::from_str(raw.get()).map_err(|why| why.to_string())?;
    const KEYS: [&str; 3] = ["data_offsets", "dtype", "shape"];
    if let Some(other) = keys.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("`{other}` is none of {}", KEYS.join(", ")));
    }
    let info: TensorInfo = serde_json::from_str(raw.get()).map_err(|why| why.to_string())?;
    let TensorInfo { dtype, shape, data_offsets: (begin, end) } = &info;
    if own_dtype(*dtype).is_none() {
        let known = DTYPES.map(|(_, dtype)| dtype.to_string()).join(", ");
        return Err(format!("element type {dtype} is none of {known}"));
    }
    let count = element_count("load", shape).ok();
    let bytes = count.and_then(|count| count.checked_mul(dtype.bitsize() / 8));
    if bytes.is_none() || end.checked_sub(*begin) != bytes {
        let expected = bytes.map_or("too many".into(), |bytes| bytes.to_string());
        return Err(format!(
            "shape {shape:?} of {dtype} takes {expected} bytes, but its data goes from {begin} to {end}"
        ));
    }
    Ok(info)
}

fn own_dtype(dtype: Dtype) -> Option<DType> {
    DTYPES.into_iter().find_map(|(own, known)| (known == dtype).then_some(own))
}

/// A JSON object whose names all differ, with values that are not parsed yet.
struct Object<'a>(BTreeMap<String, &'a RawValue>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut found = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    match found.entry(name) {
                        Entry::Vacant(entry) => entry.insert(value),
                        Entry::Occupied(entry) => {
                            let why = format!("`{}` appears twice", entry.key());
                            return Err(A::Error::custom(why));
                        }
                    };
                }
                Ok(Object(found))
            }
        }

        deserializer.deserialize_map(Names)
    }
}

/// The elements in row-major order.
fn bytes_of(tensor: &AnyTensor) -> Vec<u8> {
    fn bytes<T: Element, const N: usize>(x: &Tensor<T>, of: impl Fn(T) -> [u8; N]) -> Vec<u8> {
        let value = x.read();
        value.contiguous().as_slice().unwrap_or(&[]).iter().flat_map(|&x| of(x)).collect()
    }
    match tensor {
        AnyTensor::Float32(x) => bytes(x, f32::to_le_bytes),
        AnyTensor::Float64(x) => bytes(x, f64::to_le_bytes),
        AnyTensor::Int32(x) => bytes(x, i32::to_le_bytes),
        AnyTensor::Int64(x) => bytes(x, i64::to_le_bytes),
        AnyTensor::UInt8(x) => bytes(x, u8::to_le_bytes),
        AnyTensor::Bool(x) => bytes(x, |x| [u8::from(x)]),
    }
}

/// The tensor whose elements these bytes are; [`info`] has compared their number.
fn tensor_of(info: &TensorInfo, bytes: &[u8]) -> Result<AnyTensor, String> {
    fn tensor<T: Element, const N: usize>(
        shape: &[usize],
        bytes: &[u8],
        element: impl Fn([u8; N]) -> T,
    ) -> AnyTensor
    where
        AnyTensor: From<Tensor<T>>,
    {
        let data = bytes.as_chunks().0.iter().map(|&bytes| element(bytes)).collect();
        Tensor::new(Value::from_vec(Shape::from_slice(shape), data)).into()
    }
    let shape = &info.shape;
    Ok(match own_dtype(info.dtype) {
        Some(DType::Float32) => tensor(shape, bytes, f32::from_le_bytes),
        Some(DType::Float64) => tensor(shape, bytes, f64::from_le_bytes),
        Some(DType::Int32) => tensor(shape, bytes, i32::from_le_bytes),
        Some(DType::Int64) => tensor(shape, bytes, i64::from_le_bytes),
        Some(DType::UInt8) => tensor(shape, bytes, u8::from_le_bytes),
        Some(DType::Bool) => match bytes.iter().find(|&&byte| byte > 1) {
            Some(wrong) => return Err(format!("{wrong} is no bool; they are 0 and 1")),
            None => tensor(shape, bytes, |[byte]| byte == 1),
        },
        None => unreachable!("`info` refuses other types"),
    })
}
