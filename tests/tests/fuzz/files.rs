//! Safetensors files: random bytes, and files that are nearly correct.

use autograd_core::safetensors::SafeTensors;
use autograd_core::{AnyTensor, Error};

use crate::choices::Choices;

/// Bytes are read or refused; a file that is read can be written as bytes that read the same, and
/// its tensors are usable.
pub(crate) fn read(bytes: &[u8]) {
    let file = match SafeTensors::from_bytes(bytes) {
        Ok(file) => file,
        Err(Error::File { kind: std::io::ErrorKind::InvalidData, .. }) => return,
        Err(error) => panic!("not a word on malformed data: {error}"),
    };
    let written = file.to_bytes().expect("what was read can be written");
    let again = SafeTensors::from_bytes(&written).expect("what was written can be read");
    assert_eq!(again.to_bytes().expect("and written again"), written);
    for tensor in file.tensors.values() {
        assert!(format!("{tensor:?}").len() < 1 << 20);
        if let AnyTensor::Float32(x) = tensor {
            x.set_stop_gradient(false);
            (x + 1.0).sum().backward().expect("a gradient");
        }
    }
}

/// A file of a few tensors, in which any number may be wrong.
pub(crate) fn nearly_right(choices: &mut Choices<'_>) -> Vec<u8> {
    const NAMES: [&str; 8] = ["a", "b", "c", "a.b", "__metadata__", "", "\\u03c9", "\\ud834"];
    const TYPES: [(&str, u64); 8] = [
        ("F32", 4),
        ("F64", 8),
        ("I64", 8),
        ("I32", 4),
        ("U8", 1),
        ("BOOL", 1),
        ("BF16", 2),
        ("f32", 4),
    ];
    const LENGTHS: [u64; 10] = [2, 1, 3, 0, 7, 17, 1 << 31, 1 << 40, 1 << 62, u64::MAX];
    let mut header = String::from("{");
    let mut at = 0_u64;
    for i in 0..choices.below(6) {
        let name = choices.pick(&NAMES);
        let (dtype, size) = choices.pick(&TYPES);
        let axes = choices.below(5);
        let few = if choices.one_in(6) { LENGTHS.len() } else { 5 };
        let shape: Vec<u64> = (0..axes).map(|_| LENGTHS[choices.below(few)]).collect();
        let bytes = shape.iter().fold(*size, |bytes, n| bytes.wrapping_mul(*n));
        let begin = if choices.one_in(12) { *choices.pick(&LENGTHS) } else { at };
        let end =
            begin.wrapping_add(if choices.one_in(12) { *choices.pick(&LENGTHS) } else { bytes });
        at = end;
        let comma = if i > 0 { "," } else { "" };
        header += &match choices.below(24) {
            0 => format!("{comma}\"__metadata__\":{{\"{name}\":\"{dtype}\"}}"),
            1 => format!("{comma}\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{shape:?}}}"),
            _ => format!(
                "{comma}\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\
                 \"data_offsets\":[{begin},{end}]}}"
            ),
        };
    }
    header.push('}');
    if choices.one_in(8) {
        let at = choices.below(header.len());
        let junk = choices.pick(&['{', '[', '"', '\\', '9', '-', ' ', 'ω', '\0']);
        header.insert(at, *junk);
    }
    if choices.one_in(12) {
        let open = choices.pick(&["{\"a\":", "[", "{\"a\":{\"shape\":["]);
        header = open.repeat(1 + choices.below(2000));
    }
    let mut size = header.len() as u64;
    if choices.one_in(12) {
        size = *choices.pick(&[0, 1, size + 1, size - 1, 1 << 40, u64::MAX]);
    }
    let mut bytes = size.to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    let data = if choices.one_in(12) { choices.below(300) as u64 } else { at.min(5000) };
    bytes.extend((0..data).map(|i| (i % 2) as u8));
    if choices.one_in(12) {
        bytes.truncate(choices.below(bytes.len()));
    }
    bytes
}
