//! The header: which tensor stands where.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use super::json::{Json, write_string};
use super::{SafeTensors, StateDict, malformed};
use crate::array::DType;
use crate::array::shape::element_count;
use crate::graph::AnyTensor;

/// The limit that the format's own readers have.
const LONGEST: u64 = 100_000_000;
const METADATA: &str = "__metadata__";

/// A checked header.
pub(super) struct Header {
    pub(super) metadata: BTreeMap<String, String>,
    /// In the order in which the data stands; together it is all of the data.
    pub(super) entries: Vec<Entry>,
}

/// Where a tensor's data is.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    begin: u64,
    end: u64,
}

/// The name of an element type in the format, and how many bytes an element has.
fn of_dtype(dtype: DType) -> (&'static str, u64) {
    match dtype {
        DType::Bool => ("BOOL", 1),
        DType::UInt8 => ("U8", 1),
        DType::Int32 => ("I32", 4),
        DType::Float32 => ("F32", 4),
        DType::Float64 => ("F64", 8),
        DType::Int64 => ("I64", 8),
    }
}

/// In the order in which Python's writer puts them, so that data is aligned to its element size.
const WRITTEN: [DType; 6] =
    [DType::Int64, DType::Float64, DType::Float32, DType::Int32, DType::UInt8, DType::Bool];

/// The tensors in the order in which their data is written.
pub(super) fn in_order(tensors: &StateDict) -> impl Iterator<Item = (&String, &AnyTensor)> {
    let of_type = |dtype| tensors.iter().filter(move |(_, tensor)| tensor.dtype() == dtype);
    WRITTEN.into_iter().flat_map(of_type)
}

/// The header's bytes, filled up with spaces.
pub(super) fn write(file: &SafeTensors) -> io::Result<Vec<u8>> {
    let mut text = String::from("{");
    if !file.metadata.is_empty() {
        write_string(&mut text, METADATA);
        for (i, (name, note)) in file.metadata.iter().enumerate() {
            text.push_str(if i == 0 { ":{" } else { "," });
            write_string(&mut text, name);
            text.push(':');
            write_string(&mut text, note);
        }
        text.push('}');
    }
    let mut begin = 0;
    for (name, tensor) in in_order(&file.tensors) {
        if name == METADATA {
            let why = format!("the name `{METADATA}` is kept for notes; no tensor may have it");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        if text.len() > 1 {
            text.push(',');
        }
        let (dtype, size) = of_dtype(tensor.dtype());
        let end = begin + tensor.shape().iter().map(|&n| n as u64).product::<u64>() * size;
        write_string(&mut text, name);
        let shape: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
        let shape = shape.join(",");
        text.push_str(&format!(
            ":{{\"dtype\":\"{dtype}\",\"shape\":[{shape}],\"data_offsets\":[{begin},{end}]}}"
        ));
        begin = end;
    }
    text.push('}');
    while !text.len().is_multiple_of(8) {
        text.push(' ');
    }
    if text.len() as u64 > LONGEST {
        let why = format!("names and notes make a header of more than {LONGEST} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(text.into_bytes())
}

/// Reads and checks the header of a file of `len` bytes.
pub(super) fn read(from: &mut dyn Read, len: u64) -> io::Result<Header> {
    let Some(rest) = len.checked_sub(8) else {
        return Err(malformed(format!(
            "a safetensors file starts with 8 bytes that give its header's length, but this one \
             has {len} bytes"
        )));
    };
    let mut size = [0; 8];
    from.read_exact(&mut size)?;
    let size = u64::from_le_bytes(size);
    if size > rest || size > LONGEST {
        let limit = rest.min(LONGEST);
        return Err(malformed(format!(
            "the header claims {size} bytes, but at most {limit} are possible in a file of {len} \
             bytes; this is no safetensors file, or it was cut"
        )));
    }
    let mut text = vec![0; size as usize];
    from.read_exact(&mut text)?;
    let text = String::from_utf8(text).map_err(|e| {
        malformed(format!("header, byte {}: not UTF-8", e.utf8_error().valid_up_to()))
    })?;
    let mut header = parse(&text)?;
    check_places(&mut header.entries, rest - size)?;
    Ok(header)
}

fn parse(text: &str) -> io::Result<Header> {
    let mut json = Json::new(text);
    let mut header = Header { metadata: BTreeMap::new(), entries: Vec::new() };
    let mut names = BTreeSet::new();
    if !text.starts_with('{') {
        return json.wrong("`{`");
    }
    json.object(|json, name| {
        if name == METADATA {
            json.object(|json, name| {
                let note = json.string()?;
                match header.metadata.insert(name.clone(), note) {
                    None => Ok(()),
                    Some(_) => Err(malformed(format!("the note `{name}` stands there twice"))),
                }
            })?;
        } else {
            header.entries.push(entry(json, name.clone())?);
        }
        let twice = || malformed(format!("`{name}` stands there twice"));
        if names.insert(name.clone()) { Ok(()) } else { Err(twice()) }
    })?;
    json.end()?;
    Ok(header)
}

/// `{"dtype": .., "shape": .., "data_offsets": ..}`, in any order.
fn entry(json: &mut Json<'_>, name: String) -> io::Result<Entry> {
    let wrong = |why: String| malformed(format!("tensor `{name}`: {why}"));
    let (mut dtype, mut shape, mut offsets) = (None, None, None);
    json.object(|json, key| {
        let first = match &key[..] {
            "dtype" => dtype.replace(json.string()?).is_none(),
            "shape" => shape.replace(json.numbers()?).is_none(),
            "data_offsets" => offsets.replace(json.numbers()?).is_none(),
            _ => return Err(wrong(format!("`{key}` is none of dtype, shape and data_offsets"))),
        };
        if first { Ok(()) } else { Err(wrong(format!("`{key}` stands there twice"))) }
    })?;
    let missing = |key| wrong(format!("`{key}` is missing"));
    let dtype = dtype.ok_or_else(|| missing("dtype"))?;
    let shape = shape.ok_or_else(|| missing("shape"))?;
    let offsets = offsets.ok_or_else(|| missing("data_offsets"))?;

    let Some(known) = WRITTEN.into_iter().find(|&known| of_dtype(known).0 == dtype) else {
        let known = WRITTEN.map(|known| of_dtype(known).0).join(", ");
        return Err(wrong(format!("element type {dtype:?} is none of {known}")));
    };
    let [begin, end] = offsets[..] else {
        return Err(wrong(format!("`data_offsets` must be two numbers, found {}", offsets.len())));
    };
    let size = of_dtype(known).1;
    // An axis of length 0 excuses no other.
    let lengths: Option<Vec<usize>> = shape.iter().map(|&n| n.try_into().ok()).collect();
    let lengths = lengths.filter(|lengths| element_count("load", lengths).is_ok());
    let bytes = lengths.as_ref().map(|lengths| lengths.iter().product::<usize>() as u64 * size);
    let fits = end.checked_sub(begin) == bytes;
    let Some(shape) = lengths.filter(|_| fits) else {
        let expected = bytes.map_or("too many".into(), |bytes| bytes.to_string());
        return Err(wrong(format!(
            "shape {shape:?} of {dtype} takes {expected} bytes, but its data goes from {begin} to \
             {end}"
        )));
    };
    Ok(Entry { name, dtype: known, shape, begin, end })
}

/// The data of all tensors, one behind the other, is all of the data.
fn check_places(entries: &mut [Entry], len: u64) -> io::Result<()> {
    entries.sort_by_key(|entry| (entry.begin, entry.end));
    let mut before = (0, None);
    for entry in entries {
        let Entry { name, begin, end, .. } = entry;
        let (at, other) = before;
        if *begin != at {
            let why = match (*begin > at, other) {
                (true, _) => format!("bytes {at} to {begin} belong to no tensor"),
                (false, Some(other)) => format!("its data overlaps that of `{other}`"),
                (false, None) => unreachable!("no offset is below 0"),
            };
            return Err(malformed(format!("tensor `{name}`: {why}")));
        }
        if *end > len {
            return Err(malformed(format!(
                "tensor `{name}`: its data goes from {begin} to {end}, but the file has {len} \
                 bytes of data; it was cut"
            )));
        }
        before = (*end, Some(&*name));
    }
    if before.0 != len {
        return Err(malformed(format!("bytes {} to {len} belong to no tensor", before.0)));
    }
    Ok(())
}
