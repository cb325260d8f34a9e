//! Element types and shapes of variables.

use std::fmt;

use smallvec::SmallVec;

use crate::array::DType;

/// The lengths of the axes; `None` for a free axis, whose length is known when the program runs.
pub(crate) type Dims = SmallVec<[Option<usize>; 4]>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) dtype: DType,
    pub(crate) dims: Dims,
}

impl Form {
    pub(crate) fn new(dtype: DType, dims: Dims) -> Self {
        Self { dtype, dims }
    }

    /// Returns why a tensor of this type and shape does not have this form, if so.
    pub(crate) fn misfit(&self, dtype: DType, shape: &[usize]) -> Option<String> {
        if dtype != self.dtype {
            return Some(format!("must have element type {}, found {dtype}", self.dtype));
        }
        let fits = shape.len() == self.dims.len()
            && shape.iter().zip(&self.dims).all(|(&n, dim)| dim.is_none_or(|dim| dim == n));
        (!fits).then(|| format!("must have shape {}, found {shape:?}", ShapeOf(&self.dims)))
    }

    pub(crate) fn agrees(&self, other: &Self) -> bool {
        self.dtype == other.dtype
            && self.dims.len() == other.dims.len()
            && self.dims.iter().zip(&other.dims).all(|pair| match pair {
                (Some(a), Some(b)) => a == b,
                _ => true,
            })
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dtype, ShapeOf(&self.dims))
    }
}

/// Displays a shape as `[-1, 4]`, with -1 for a free axis.
pub(crate) struct ShapeOf<'a>(pub(crate) &'a [Option<usize>]);

impl fmt::Display for ShapeOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = self.0.iter().map(|dim| dim.map_or(-1, |n| n as i128));
        f.debug_list().entries(lengths).finish()
    }
}
