//! Operands read block by block in row-major order, whatever their layout.

use super::buffer::Buffer;
use super::deferred::Write;
use super::rows::Walk;
use super::shape::same;
use super::{Storable, Value};

/// Longer rows that repeat are gathered.
const MAX_REPEATED: usize = 512;

pub enum BlockReader<'a, T: Storable> {
    Slice(&'a [T]),
    Same(Buffer<T>, T),
    /// A short row that repeats; the buffer repeats it, so each block is a slice of the buffer.
    Repeated(&'a [T], Buffer<T>),
    /// Any other layout, gathered into a block.
    Gathered(&'a [T], Box<Walk<1>>, Buffer<T>),
    /// Deferred elements, computed block by block; the next block starts at this position.
    Deferred(Box<Write<T>>, usize, Buffer<T>),
}

impl<'a, T: Storable> BlockReader<'a, T> {
    pub fn new(value: &'a Value<T>, shape: &[usize], start: usize) -> Self {
        if same(value.shape(), shape) {
            if let Some(source) = value.source() {
                return Self::Deferred(source, start, Buffer::default());
            }
            if let Some(data) = value.as_slice() {
                return Self::Slice(data);
            }
        }
        let (raw, walk) = (value.raw(), Walk::new(shape, [&value.strides_as(shape)], start));
        match *walk.axes.as_slice() {
            [] | [(_, [0])] => {
                Self::Same(Buffer::default(), raw.first().copied().unwrap_or(T::ZERO))
            }
            [(n, [1])] if raw.len() >= n => Self::Slice(&raw[..n]),
            [(_, [0]), (n, [1])] if n <= MAX_REPEATED && raw.len() >= n => {
                Self::Repeated(&raw[..n], Buffer::default())
            }
            _ => Self::Gathered(raw, Box::new(walk), Buffer::default()),
        }
    }

    /// Makes the next `n` elements ready.
    pub fn advance(&mut self, n: usize) {
        match self {
            Self::Slice(_) => {}
            Self::Deferred(source, start, block) => {
                source(*start, resized(block, n));
                *start += n;
            }
            // Filled once: the first block is the longest.
            Self::Same(block, element) => {
                if block.is_empty() {
                    resized(block, n).fill(*element);
                }
            }
            Self::Repeated(row, block) => {
                if block.is_empty() {
                    repeat(row, resized(block, row.len() + n));
                }
            }
            Self::Gathered(raw, walk, block) => walk.copy(raw, resized(block, n)),
        }
    }

    /// The next `n` elements, from `start` on.
    pub fn next(&mut self, start: usize, n: usize) -> &[T] {
        self.advance(n);
        self.block(start, n)
    }

    pub fn block(&self, start: usize, n: usize) -> &[T] {
        match self {
            Self::Slice(data) => &data[start..start + n],
            Self::Repeated(row, block) => &block[start % row.len()..][..n],
            Self::Same(block, _) | Self::Gathered(_, _, block) | Self::Deferred(_, _, block) => {
                &block[..n]
            }
        }
    }
}

fn repeat<T: Copy>(row: &[T], out: &mut [T]) {
    out[..row.len()].copy_from_slice(row);
    let mut done = row.len();
    while done < out.len() {
        let more = done.min(out.len() - done);
        out.copy_within(..more, done);
        done += more;
    }
}

/// The first `n` elements of a block; replaces a block that is too short.
fn resized<T: Storable>(block: &mut Buffer<T>, n: usize) -> &mut [T] {
    if block.len() < n {
        *block = Buffer::any(n);
    }
    &mut block[..n]
}
