//! The format, by the `safetensors` crate, with the checks that it does not make.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Read, Write};

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{SafeTensors, malformed};
use crate::array::shape::element_count;
use crate::array::{DType, Shape, Value};
use crate::error::Plural;
use crate::graph::{AnyTensor, Element, Tensor};

/// The limit in the crate and in Python's package.
const MAX_HEADER_BYTES: u64 = 100_000_000;
const METADATA: &str = "__metadata__";

/// The supported element types, in the order of Python's package, which keeps the data aligned.
const DTYPES: [Dtype; 8] = [
    Dtype::I64,
    Dtype::F64,
    Dtype::F32,
    Dtype::I32,
    Dtype::BF16,
    Dtype::F16,
    Dtype::U8,
    Dtype::BOOL,
];

/// A 16-bit float format, as an argument of [`SafeTensors::store_as`](super::SafeTensors::store_as).
///
/// ```
/// use autograd_core::safetensors::{Half, SafeTensors};
/// use autograd_core::{Result, Tensor};
///
/// let stored = |half| -> Result<f32> {
///     let mut file = SafeTensors::new();
///     file.insert("x", Tensor::from(100_000.0_f32));
///     file.store_as(half, |_| true);
///     Ok(SafeTensors::from_bytes(&file.to_bytes()?)?.get("x")?.item())
/// };
/// assert_eq!(stored(Half::F16)?, f32::INFINITY);
/// assert_eq!(stored(Half::BF16)?, 99_840.0);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// IEEE's half precision: 11 bits of precision, up to 65504.
    F16,
    /// The upper 16 bits of an `f32`: 8 bits of precision, and the range of `f32`.
    BF16,
}

impl Half {
    fn dtype(self) -> Dtype {
        match self {
            Self::F16 => Dtype::F16,
            Self::BF16 => Dtype::BF16,
        }
    }

    /// Returns the number of fraction bits, and the exponent of the smallest normal number.
    fn layout(self) -> (u32, i32) {
        match self {
            Self::F16 => (10, -14),
            Self::BF16 => (7, -126),
        }
    }

    fn infinity(self) -> u16 {
        0x7fff >> self.layout().0 << self.layout().0
    }

    /// Returns the bits of the nearest number, ties to even. A number beyond the range becomes infinite.
    fn bits_of(self, x: f64) -> u16 {
        let sign = u16::from(x.is_sign_negative()) << 15;
        let (fraction, least) = self.layout();
        if x.is_nan() {
            return sign | self.infinity() | 1 << (fraction - 1);
        }
        if x.is_infinite() {
            return sign | self.infinity();
        }
        let exponent = ((x.abs().to_bits() >> 52) as i32 - 1023).max(least);
        // In units of the last place: exact, as the divisor is a power of two. The leading bit, or
        // a carry of the rounding, adds 1 to the exponent.
        let units = (x.abs() / 2_f64.powi(exponent - fraction as i32)).round_ties_even() as u64;
        let bits = (((exponent - least) as u64) << fraction) + units;
        sign | bits.min(u64::from(self.infinity())) as u16
    }

    /// Returns the number with these bits, which is exact in `f32`.
    fn value_of(self, bits: u16) -> f32 {
        match self {
            Self::BF16 => f32::from_bits(u32::from(bits) << 16),
            Self::F16 => {
                let (exponent, fraction) = (i32::from(bits >> 10) & 31, f32::from(bits & 1023));
                let size = match exponent {
                    31 if fraction == 0.0 => f32::INFINITY,
                    31 => f32::NAN,
                    0 => fraction * 2_f32.powi(-24),
                    _ => (fraction + 1024.0) * 2_f32.powi(exponent - 25),
                };
                if bits >> 15 == 1 { -size } else { size }
            }
        }
    }
}

pub(super) fn write(file: &SafeTensors, out: &mut dyn Write) -> io::Result<()> {
    let header = header(file)?;
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    in_order(file).try_for_each(|(dtype, _, tensor)| out.write_all(&bytes_of(tensor, dtype)))
}

fn in_order(file: &SafeTensors) -> impl Iterator<Item = (Dtype, &String, &AnyTensor)> {
    let stored = |name: &str, tensor: &AnyTensor| match (tensor.dtype(), file.halves.get(name)) {
        (DType::Float64 | DType::Float32, Some(half)) => half.dtype(),
        (DType::Float64, None) => Dtype::F64,
        (DType::Float32, None) => Dtype::F32,
        (DType::Int64, _) => Dtype::I64,
        (DType::Int32, _) => Dtype::I32,
        (DType::UInt8, _) => Dtype::U8,
        (DType::Bool, _) => Dtype::BOOL,
    };
    DTYPES.into_iter().flat_map(move |dtype| {
        let of_type = file.tensors.iter().filter(move |(name, x)| stored(name, x) == dtype);
        of_type.map(move |(name, tensor)| (dtype, name, tensor))
    })
}

/// Returns the header, padded with spaces. Unlike the crate's, it has the notes in a fixed order.
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
    for (dtype, name, tensor) in in_order(file) {
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

pub(super) fn read(from: &mut dyn Read, len: u64) -> io::Result<SafeTensors> {
    let Some(rest) = len.checked_sub(8) else {
        return Err(malformed(format!(
            "a safetensors file starts with 8 bytes that give its header's length, but this one \
             has {}",
            Plural(len, "byte", "bytes")
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
    let (metadata, header, unread) = parse(&text)?;
    let (expected, found) = (header.data_len() as u64, rest - size);
    if expected != found {
        let cut = if expected > found { "; it was cut" } else { "" };
        return Err(malformed(format!(
            "the tensors take {}, but the file has {} of data{cut}",
            Plural(expected, "byte", "bytes"),
            Plural(found, "byte", "bytes")
        )));
    }
    let mut file = SafeTensors { metadata, unread, ..SafeTensors::new() };
    for name in header.offset_keys() {
        let Some(info) = header.info(&name) else { unreachable!("a name of the header") };
        if file.unread.contains_key(&name) {
            let len = (info.data_offsets.1 - info.data_offsets.0) as u64;
            if io::copy(&mut Read::take(&mut *from, len), &mut io::sink())? < len {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            continue;
        }
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

type Texts = BTreeMap<String, String>;

/// Returns the notes, the tensors, whose data is contiguous from 0, and the element types of unreadable ones.
fn parse(text: &[u8]) -> io::Result<(Texts, Metadata, Texts)> {
    let wrong = |why: &dyn Display| malformed(format!("header: {why}"));
    let text = str::from_utf8(text).map_err(|why| wrong(&why))?;
    if !text.starts_with('{') {
        return Err(wrong(&"it must start with `{`"));
    }
    let Object(entries) = serde_json::from_str(text).map_err(|why| wrong(&why))?;
    let mut metadata = BTreeMap::new();
    let mut tensors = Vec::new();
    let mut unread = BTreeMap::new();
    for (name, raw) in entries {
        if name == METADATA {
            metadata = notes(raw).map_err(|why| wrong(&format!("`{METADATA}`: {why}")))?;
        } else {
            let (info, other) = info(raw).map_err(|why| malformed_tensor(&name, why))?;
            if let Some(dtype) = other {
                unread.insert(name.clone(), dtype);
            }
            tensors.push((name, info));
        }
    }
    tensors.sort_by_key(|(_, info)| info.data_offsets);
    let header = Metadata::new(None, tensors).map_err(|why| wrong(&why))?;
    Ok((metadata, header, unread))
}

fn notes(raw: &RawValue) -> serde_json::Result<BTreeMap<String, String>> {
    let Object(notes) = serde_json::from_str(raw.get())?;
    notes.into_iter().map(|(name, raw)| Ok((name, serde_json::from_str(raw.get())?))).collect()
}

/// Returns the entry of a tensor, and the name of its element type if that is not in [`DTYPES`]:
/// its data then counts as bytes. Checks keys and lengths, which the crate does not.
fn info(raw: &RawValue) -> Result<(TensorInfo, Option<String>), String> {
    let Object(keys) = serde_json::from_str(raw.get()).map_err(|why| why.to_string())?;
    const KEYS: [&str; 3] = ["data_offsets", "dtype", "shape"];
    if let Some(other) = keys.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("`{other}` is none of {}", KEYS.join(", ")));
    }
    let info: TensorInfo = match (serde_json::from_str(raw.get()), unknown_dtype(&keys)) {
        (Ok(info), _) => info,
        (Err(_), Some((dtype, data_offsets @ (begin, end)))) => {
            let Some(len) = end.checked_sub(begin) else {
                return Err(format!("its data goes from {begin} to {end}"));
            };
            let info = TensorInfo { dtype: Dtype::U8, shape: vec![len], data_offsets };
            return Ok((info, Some(dtype)));
        }
        (Err(why), None) => return Err(why.to_string()),
    };
    let TensorInfo { dtype, shape, data_offsets: (begin, end) } = &info;
    let count = element_count("load", shape).ok();
    let bits = count.and_then(|count| count.checked_mul(dtype.bitsize()));
    let bytes = bits.map(|bits| bits.div_ceil(8));
    let len = end.checked_sub(*begin).filter(|len| Some(*len) == bytes);
    let Some(len) = len else {
        let expected = bytes
            .map_or("too many bytes".into(), |bytes| Plural(bytes, "byte", "bytes").to_string());
        return Err(format!(
            "shape {shape:?} of {dtype} takes {expected}, but its data goes from {begin} to {end}"
        ));
    };
    if DTYPES.contains(dtype) {
        return Ok((info, None));
    }
    let other = dtype.to_string();
    Ok((TensorInfo { dtype: Dtype::U8, shape: vec![len], ..info }, Some(other)))
}

/// Returns the element type and the offsets of an entry that is valid but for a type unknown to the crate.
fn unknown_dtype(keys: &BTreeMap<String, &RawValue>) -> Option<(String, (usize, usize))> {
    let dtype: String = serde_json::from_str(keys.get("dtype")?.get()).ok()?;
    let known = serde_json::from_str::<Dtype>(keys["dtype"].get()).is_ok();
    serde_json::from_str::<Vec<usize>>(keys.get("shape")?.get()).ok()?;
    let offsets = serde_json::from_str(keys.get("data_offsets")?.get()).ok()?;
    (!known).then_some((dtype, offsets))
}

/// A JSON object whose names all differ. Its values are not parsed yet.
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

fn bytes_of(tensor: &AnyTensor, stored: Dtype) -> Vec<u8> {
    fn bytes<T: Element, const N: usize>(x: &Tensor<T>, of: impl Fn(T) -> [u8; N]) -> Vec<u8> {
        let value = x.read();
        value.contiguous().as_slice().unwrap_or(&[]).iter().flat_map(|&x| of(x)).collect()
    }
    let half = [Half::F16, Half::BF16].into_iter().find(|half| half.dtype() == stored);
    match (tensor, half) {
        (AnyTensor::Float32(x), Some(half)) => bytes(x, |x| half.bits_of(x.into()).to_le_bytes()),
        (AnyTensor::Float64(x), Some(half)) => bytes(x, |x| half.bits_of(x).to_le_bytes()),
        (AnyTensor::Float32(x), _) => bytes(x, f32::to_le_bytes),
        (AnyTensor::Float64(x), _) => bytes(x, f64::to_le_bytes),
        (AnyTensor::Int32(x), _) => bytes(x, i32::to_le_bytes),
        (AnyTensor::Int64(x), _) => bytes(x, i64::to_le_bytes),
        (AnyTensor::UInt8(x), _) => bytes(x, u8::to_le_bytes),
        (AnyTensor::Bool(x), _) => bytes(x, |x| [u8::from(x)]),
    }
}

/// Returns the tensor with these bytes as elements; [`info`] has checked their number.
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
        Tensor::from_value(Value::from_vec(Shape::from_slice(shape), data)).into()
    }
    let shape = &info.shape;
    Ok(match info.dtype {
        Dtype::F32 => tensor(shape, bytes, f32::from_le_bytes),
        Dtype::F64 => tensor(shape, bytes, f64::from_le_bytes),
        Dtype::F16 => tensor(shape, bytes, |x| Half::F16.value_of(u16::from_le_bytes(x))),
        Dtype::BF16 => tensor(shape, bytes, |x| Half::BF16.value_of(u16::from_le_bytes(x))),
        Dtype::I32 => tensor(shape, bytes, i32::from_le_bytes),
        Dtype::I64 => tensor(shape, bytes, i64::from_le_bytes),
        Dtype::U8 => tensor(shape, bytes, u8::from_le_bytes),
        Dtype::BOOL => match bytes.iter().find(|&&byte| byte > 1) {
            Some(wrong) => return Err(format!("{wrong} is no bool; they are 0 and 1")),
            None => tensor(shape, bytes, |[byte]| byte == 1),
        },
        _ => unreachable!("`info` turns other types into bytes"),
    })
}
