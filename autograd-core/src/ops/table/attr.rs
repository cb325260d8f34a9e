//! Attributes of operators as text: for readers, and in files.

use super::form::{Dims, Form, ShapeOf};
use crate::array::{DType, IntoDims};
use crate::graph::{AnyTensor, Element, Tensor, for_any};

#[derive(Clone, Debug)]
pub(crate) enum Attr {
    Number(f64),
    Flag(bool),
    /// An axis, or a position.
    Int(isize),
    Ints(Vec<isize>),
    /// A shape, or a position that may be free.
    Dims(Dims),
    /// Pairs of lengths, one for each of two directions.
    Pairs(Vec<[usize; 2]>),
    Type(DType),
    Tensor(AnyTensor),
}

impl Attr {
    /// The attribute of a reshape with at most one free length.
    pub(crate) const NONE_KEPT: Self = Self::Ints(Vec::new());

    pub(crate) fn shape(shape: &[usize]) -> Self {
        Self::Dims(shape.iter().copied().map(Some).collect())
    }
}

/// Returns a position on an axis of length `n` from an attribute. -1 is the end of the axis, -2 the position before
/// it, and so on. A position before the start of the axis is beyond its end.
pub(crate) fn position_on(n: usize, at: isize) -> usize {
    let from_end = || n.checked_add_signed(at + 1).unwrap_or(usize::MAX);
    usize::try_from(at).unwrap_or_else(|_| from_end())
}

pub(crate) type Param = (&'static str, Type);

/// The type of an attribute, and how texts show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// A number, shown as Rust writes it: `1e-5`.
    Number,
    /// A number, shown as people write it: `0.1`.
    Plain,
    Flag,
    /// A flag that a copy for testing turns off.
    Training,
    Int,
    /// A position on the axis that is the first attribute; see [`position_on`].
    Position,
    Ints,
    Dims,
    /// For each free length of the shape before it, the input's axis that has this length, or -1 for a length that
    /// follows from the number of elements. Empty if at most one length is free.
    Kept,
    Pairs,
    Elements,
    Tensor,
}

/// Returns `name=value`, as in the text of a program.
pub(crate) fn shown((name, kind): Param, attr: &Attr) -> String {
    match (attr, kind) {
        (Attr::Number(x), Type::Plain) => format!("{name}={x}"),
        (Attr::Number(x), _) => format!("{name}={x:?}"),
        (Attr::Flag(flag), _) => format!("{name}={flag}"),
        (Attr::Int(n), _) => format!("{name}={n}"),
        (Attr::Ints(all), Type::Kept) if all.is_empty() => String::new(),
        (Attr::Ints(all), _) => format!("{name}={all:?}"),
        (Attr::Dims(dims), _) => format!("{name}={}", ShapeOf(dims)),
        (Attr::Pairs(pairs), _) => {
            let names = name.split(' ').zip(pairs);
            names.map(|(name, pair)| format!("{name}={pair:?}")).collect::<Vec<_>>().join(", ")
        }
        (Attr::Type(dtype), _) => format!("{name}={dtype}"),
        (Attr::Tensor(tensor), _) => match tensor.shape() {
            [] => for_any!(tensor, t => format!("{name}={:?}", t.item())),
            _ => String::new(),
        },
    }
}

/// Returns the attribute as in a file: one field, or several separated by semicolons.
pub(crate) fn written(attr: &Attr) -> String {
    // `{:?}` reads back to the same bits.
    fn elements<T: Element>(tensor: &Tensor<T>) -> String {
        join_strings(&mut tensor.to_vec().iter().map(|value| format!("{value:?}")), ",")
    }
    match attr {
        Attr::Number(x) => format!("{x:?}"),
        Attr::Flag(flag) => flag.to_string(),
        Attr::Int(n) => n.to_string(),
        Attr::Ints(all) => list(all),
        Attr::Dims(dims) => dims_text(dims),
        Attr::Pairs(pairs) => list(pairs.as_flattened()),
        Attr::Type(dtype) => dtype.to_string(),
        Attr::Tensor(tensor) => {
            let values = for_any!(tensor, t => elements(t));
            format!("{};{};{values}", tensor.dtype(), list(tensor.shape()))
        }
    }
}

pub(crate) fn read<'f>(
    kind: Type,
    fields: &mut impl Iterator<Item = &'f str>,
) -> Result<Attr, String> {
    let mut next = || fields.next().ok_or("an attribute is missing");
    Ok(match kind {
        Type::Number | Type::Plain => Attr::Number(parse(next()?)?),
        Type::Flag | Type::Training => Attr::Flag(parse(next()?)?),
        Type::Int | Type::Position => Attr::Int(parse(next()?)?),
        Type::Ints => Attr::Ints(read_list(next()?)?),
        // Files of earlier versions have none.
        Type::Kept => Attr::Ints(read_list(fields.next().unwrap_or_default())?),
        Type::Dims => Attr::Dims(read_dims(next()?)?),
        Type::Elements => Attr::Type(read_dtype(next()?)?),
        Type::Pairs => {
            let numbers: Vec<usize> = read_list(next()?)?;
            Attr::Pairs(numbers.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect())
        }
        Type::Tensor => {
            let (dtype, shape) = (read_dtype(next()?)?, read_list(next()?)?);
            Attr::Tensor(tensor(dtype, shape, next()?)?)
        }
    })
}

pub(crate) fn is_same(a: &Attr, b: &Attr) -> bool {
    written(a) == written(b)
}

fn tensor(dtype: DType, shape: Vec<usize>, values: &str) -> Result<AnyTensor, String> {
    fn typed<T: Element + std::str::FromStr>(
        shape: Vec<usize>,
        values: &str,
    ) -> Result<AnyTensor, String> {
        let tensor = Tensor::from(read_list::<T>(values)?).try_reshape(shape);
        tensor.map(AnyTensor::from).map_err(|error| error.to_string())
    }
    match dtype {
        DType::Float32 => typed::<f32>(shape, values),
        DType::Float64 => typed::<f64>(shape, values),
        DType::Int32 => typed::<i32>(shape, values),
        DType::Int64 => typed::<i64>(shape, values),
        DType::UInt8 => typed::<u8>(shape, values),
        DType::Bool => typed::<bool>(shape, values),
    }
}

fn join_strings(parts: &mut dyn Iterator<Item = String>, between: &str) -> String {
    parts.collect::<Vec<_>>().join(between)
}

pub(crate) fn list<N: ToString>(numbers: &[N]) -> String {
    join_strings(&mut numbers.iter().map(ToString::to_string), ",")
}

pub(crate) fn dims_text(dims: &[Option<usize>]) -> String {
    join_strings(&mut dims.iter().map(|dim| dim.map_or("-1".to_owned(), |n| n.to_string())), ",")
}

pub(crate) fn parse<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("`{text}` is not a valid value here"))
}

pub(crate) fn read_list<N: std::str::FromStr>(text: &str) -> Result<Vec<N>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',').map(parse).collect()
}

pub(crate) fn read_dims(text: &str) -> Result<Dims, String> {
    read_list::<i64>(text)?.into_dims().map_err(|n| format!("{n} is no length"))
}

fn read_dtype(name: &str) -> Result<DType, String> {
    DType::named(name).ok_or_else(|| format!("no type `{name}`"))
}

pub(crate) fn read_form(dtype: &str, dims: &str) -> Result<Form, String> {
    Ok(Form::new(read_dtype(dtype)?, read_dims(dims)?))
}
