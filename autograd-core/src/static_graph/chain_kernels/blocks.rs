//! Blocks of elements whose type is known when running only.

use crate::array::buffer::Buffer;
use crate::array::feed::Feed;
use crate::array::{DType, Storable, Value};
use crate::graph::{AnyTensor, Element, Tensor, for_any};
use crate::ops::IntoElements;

/// An element type of a chain: all are.
pub(super) trait Item: IntoElements {
    fn block(data: &mut [Self]) -> Block<'_>;
    fn read<'b>(block: &'b Block<'_>) -> &'b [Self];
    /// Leaves an empty one.
    fn take<'b>(block: &mut Block<'b>) -> &'b mut [Self];
    fn fed<'f, 'a>(input: &'f Input<'a>) -> &'f Feed<'a, Self>;
}

/// Runs an expression with the name of an element type.
macro_rules! for_dtype {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            DType::Float32 => {
                type $t = f32;
                $body
            }
            DType::Float64 => {
                type $t = f64;
                $body
            }
            DType::Int32 => {
                type $t = i32;
                $body
            }
            DType::Int64 => {
                type $t = i64;
                $body
            }
            DType::UInt8 => {
                type $t = u8;
                $body
            }
            DType::Bool => {
                type $t = bool;
                $body
            }
        }
    };
}
pub(super) use for_dtype;

/// Runs an expression on what an enum over all element types holds.
macro_rules! for_item {
    ($of:ident, $value:expr, $x:ident => $body:expr) => {
        match $value {
            $of::Float32($x) => $body,
            $of::Float64($x) => $body,
            $of::Int32($x) => $body,
            $of::Int64($x) => $body,
            $of::UInt8($x) => $body,
            $of::Bool($x) => $body,
        }
    };
}

macro_rules! items {
    ($($variant:ident($t:ty) $room:ident,)*) => {
        /// A block of a result, or a whole one.
        pub(super) enum Block<'a> { $($variant(&'a mut [$t])),* }

        /// The value of an operand.
        pub(super) enum Operand<'a> { $($variant(&'a Value<$t>)),* }

        /// Where the blocks of an operand come from.
        pub(super) enum Input<'a> { $($variant(Feed<'a, $t>)),* }

        /// A result that is written.
        pub(super) enum Whole { $($variant(Value<$t>)),* }

        /// Room for blocks.
        pub(super) struct Room<'a> { $(pub(super) $room: &'a mut [$t]),* }

        $(
            impl Item for $t {
                fn block(data: &mut [Self]) -> Block<'_> {
                    Block::$variant(data)
                }
                fn read<'b>(block: &'b Block<'_>) -> &'b [Self] {
                    match block {
                        Block::$variant(data) => data,
                        _ => unreachable!("{OTHER}"),
                    }
                }
                fn take<'b>(block: &mut Block<'b>) -> &'b mut [Self] {
                    match block {
                        Block::$variant(data) => std::mem::take(data),
                        _ => unreachable!("{OTHER}"),
                    }
                }
                fn fed<'f, 'a>(input: &'f Input<'a>) -> &'f Feed<'a, Self> {
                    match input {
                        Input::$variant(feed) => feed,
                        _ => unreachable!("{OTHER}"),
                    }
                }
            }
        )*

        impl<'a> Block<'a> {
            /// The first elements, and the others.
            pub(super) fn split(self, at: usize) -> [Self; 2] {
                match self {
                    $(Self::$variant(data) => {
                        let (first, rest) = data.split_at_mut(at.min(data.len()));
                        [Self::$variant(first), Self::$variant(rest)]
                    })*
                }
            }

            /// The elements from `start` to `end`; none of an empty one.
            pub(super) fn part(&mut self, start: usize, end: usize) -> Block<'_> {
                match self {
                    $(Self::$variant(data) => {
                        let part = if data.is_empty() { 0..0 } else { start..end };
                        Block::$variant(&mut data[part])
                    })*
                }
            }

            pub(super) fn copy(&mut self, other: &Block<'_>) {
                match (self, other) {
                    $((Self::$variant(to), Block::$variant(from)) => to.copy_from_slice(from),)*
                    _ => unreachable!("{OTHER}"),
                }
            }
        }

        impl Operand<'_> {
            /// Of a tensor whose data does not change any more, stretched to `shape`.
            pub(super) fn new<'a>(tensor: &'a AnyTensor, shape: &[usize]) -> Operand<'a> {
                match tensor {
                    $(AnyTensor::$variant(tensor) => match tensor.fixed() {
                        Some(value) => {
                            value.will_be_read(shape);
                            Operand::$variant(value)
                        }
                        None => unreachable!("it was fixed"),
                    },)*
                }
            }

            /// Its blocks from element `start` on.
            pub(super) fn feed(&self, shape: &[usize], start: usize) -> Input<'_> {
                match self {
                    $(Self::$variant(value) => {
                        Input::$variant(Feed::new(value, shape, start))
                    })*
                }
            }

            /// Those of one that nobody reads, or that will be written over.
            pub(super) fn copies(&self) -> Input<'_> {
                match self {
                    $(Self::$variant(_) => Input::$variant(Feed::Over(Buffer::default(), None)),)*
                }
            }
        }

        impl Input<'_> {
            pub(super) fn advance(&mut self, n: usize) {
                for_item!(Self, self, feed => feed.advance(n));
            }

            pub(super) fn copy(&mut self, block: &Block<'_>) {
                // There are no steps, which would ask where the block begins.
                match (self, block) {
                    $((Self::$variant(feed), Block::$variant(data)) => feed.copy(data),)*
                    _ => unreachable!("{OTHER}"),
                }
            }
        }

        impl Whole {
            /// Of an element type, to be written: in the buffer of a tensor that nobody reads any
            /// more, if there is one.
            pub(super) fn new(dtype: DType, shape: &[usize], into: Option<AnyTensor>) -> Self {
                match dtype {
                    $(DType::$variant => Self::$variant(place::<$t>(shape, into)),)*
                }
            }

            /// The value of a tensor that nobody else holds, if it can be written in this shape.
            pub(super) fn of(tensor: &mut AnyTensor, shape: &[usize]) -> Option<Self> {
                match tensor {
                    $(AnyTensor::$variant(tensor) => own(tensor, shape).map(Self::$variant),)*
                }
            }

            pub(super) fn block(&mut self) -> Block<'_> {
                match self {
                    $(Self::$variant(value) => match value.as_mut_slice() {
                        Some(data) => Block::$variant(data),
                        None => unreachable!("it was made for this pass"),
                    },)*
                }
            }

            pub(super) fn tensor(self) -> AnyTensor {
                for_item!(Self, self, value => Element::wrap(Tensor::new(value)))
            }
        }

        impl<'a> Room<'a> {
            /// Takes room for `n` elements of a type.
            pub(super) fn take(&mut self, dtype: DType, n: usize) -> Block<'a> {
                match dtype {
                    $(DType::$variant => {
                        let (block, rest) = std::mem::take(&mut self.$room).split_at_mut(n);
                        self.$room = rest;
                        Block::$variant(block)
                    })*
                }
            }
        }
    };
}

const OTHER: &str = "a link reads and writes what is of its type";

items! {
    Float32(f32) f32s,
    Float64(f64) f64s,
    Int32(i32) i32s,
    Int64(i64) i64s,
    UInt8(u8) u8s,
    Bool(bool) bools,
}

/// Takes the data as it is now.
pub(super) fn fix(tensor: &mut AnyTensor) {
    for_any!(tensor, tensor => {
        if tensor.fixed().is_none() {
            *tensor = Tensor::new(tensor.read().into_owned());
        }
    });
}

/// How many elements of each type there is to be room for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lengths([usize; 6]);

impl Lengths {
    pub(super) fn add(&mut self, dtype: DType, n: usize) {
        self.0[dtype as usize] += n;
    }

    /// Runs a closure on room of this thread, of any content.
    pub(super) fn with_room<R>(self, f: impl FnOnce(Room<'_>) -> R) -> R {
        fn with<T: Storable, R>(n: usize, f: impl FnOnce(&mut [T]) -> R) -> R {
            if n == 0 { f(&mut []) } else { T::with_scratch(n, f) }
        }
        let n = |dtype: DType| self.0[dtype as usize];
        with(n(DType::Float32), |f32s| {
            with(n(DType::Float64), |f64s| {
                with(n(DType::Int32), |i32s| {
                    with(n(DType::Int64), |i64s| {
                        with(n(DType::UInt8), |u8s| {
                            with(n(DType::Bool), |bools| {
                                f(Room { f32s, f64s, i32s, i64s, u8s, bools })
                            })
                        })
                    })
                })
            })
        })
    }
}

/// A value of a shape and any content.
fn place<T: Element>(shape: &[usize], into: Option<AnyTensor>) -> Value<T> {
    let into = into.and_then(AnyTensor::downcast).map(Tensor::<T>::try_into_value);
    let value = into.and_then(Result::ok).unwrap_or_else(|| Value::scalar(T::ZERO));
    value.rewritten(crate::array::shape::copied(shape), |_| {})
}

fn own<T: Element>(tensor: &mut Tensor<T>, shape: &[usize]) -> Option<Value<T>> {
    let empty = Tensor::new(Value::scalar(T::ZERO));
    let mut value = match std::mem::replace(tensor, empty).try_into_value() {
        Ok(value) => value,
        Err(held) => {
            *tensor = held;
            return None;
        }
    };
    if value.shape() == shape && value.as_mut_slice().is_some() {
        return Some(value);
    }
    *tensor = Tensor::new(value);
    None
}
