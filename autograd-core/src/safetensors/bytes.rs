//! Elements as little-endian bytes, a block at a time.

use std::io::{self, Read, Write};

use super::malformed;
use crate::array::{DType, Shape, Value};
use crate::graph::{AnyTensor, Element, Tensor, for_any};

/// Bytes that are converted at a time.
const BLOCK: usize = 1 << 16;

/// An element type with a form in bytes.
trait Bytes: Element {
    fn append(elements: &[Self], bytes: &mut Vec<u8>);
    /// Appends the elements that whole `bytes` are, or says what is wrong with them.
    fn parse(bytes: &[u8], elements: &mut Vec<Self>) -> io::Result<()>;
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl Bytes for $t {
            fn append(elements: &[Self], bytes: &mut Vec<u8>) {
                bytes.extend(elements.iter().flat_map(|x| x.to_le_bytes()));
            }
            fn parse(bytes: &[u8], elements: &mut Vec<Self>) -> io::Result<()> {
                let (chunks, _) = bytes.as_chunks();
                elements.extend(chunks.iter().map(|&chunk| <$t>::from_le_bytes(chunk)));
                Ok(())
            }
        }
    )*};
}

numbers! { f32 f64 i32 i64 u8 }

impl Bytes for bool {
    fn append(elements: &[Self], bytes: &mut Vec<u8>) {
        bytes.extend(elements.iter().map(|&x| u8::from(x)));
    }

    fn parse(bytes: &[u8], elements: &mut Vec<Self>) -> io::Result<()> {
        if let Some(wrong) = bytes.iter().find(|&&byte| byte > 1) {
            return Err(malformed(format!("{wrong} is no bool; they are 0 and 1")));
        }
        elements.extend(bytes.iter().map(|&byte| byte == 1));
        Ok(())
    }
}

/// Writes a tensor's elements in row-major order.
pub(super) fn write(tensor: &AnyTensor, out: &mut dyn Write) -> io::Result<()> {
    fn elements<T: Bytes>(tensor: &Tensor<T>, out: &mut dyn Write) -> io::Result<()> {
        let value = tensor.read();
        let value = value.contiguous();
        let mut bytes = Vec::with_capacity(BLOCK.min(value.len() * size_of::<T>()));
        for block in value.as_slice().unwrap_or(&[]).chunks(BLOCK / size_of::<T>()) {
            bytes.clear();
            T::append(block, &mut bytes);
            out.write_all(&bytes)?;
        }
        Ok(())
    }
    for_any!(tensor, tensor => elements(tensor, out))
}

/// Reads a tensor's elements. The caller has checked that there are as many.
pub(super) fn read(dtype: DType, shape: &[usize], from: &mut dyn Read) -> io::Result<AnyTensor> {
    fn elements<T: Bytes>(shape: &[usize], from: &mut dyn Read) -> io::Result<AnyTensor> {
        let len: usize = shape.iter().product();
        let mut bytes = vec![0; BLOCK.min(len * size_of::<T>())];
        let mut result = Ok(());
        let value = Value::build(Shape::from_slice(shape), |out| {
            let end = out.len() + len;
            while out.len() < end {
                let block = (end - out.len()).min(BLOCK / size_of::<T>());
                let bytes = &mut bytes[..block * size_of::<T>()];
                if result.is_ok() {
                    result = from.read_exact(bytes).and_then(|()| T::parse(bytes, out));
                }
                if result.is_err() {
                    // What is built is thrown away, but must be whole.
                    out.resize(end, T::ZERO);
                }
            }
        });
        result.map(|()| Tensor::new(value).into())
    }
    match dtype {
        DType::Float32 => elements::<f32>(shape, from),
        DType::Float64 => elements::<f64>(shape, from),
        DType::Int32 => elements::<i32>(shape, from),
        DType::Int64 => elements::<i64>(shape, from),
        DType::UInt8 => elements::<u8>(shape, from),
        DType::Bool => elements::<bool>(shape, from),
    }
}
