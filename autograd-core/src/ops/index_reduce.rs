//! Slices that an index names, reduced with those of another tensor.

use smallvec::smallvec;

use super::call::call;
use super::gather::{Picks, changed, index_of};
use super::table::{Attr, OpDef, Type, entries, exactly, float, for_programs, position, several};
use super::{Caller, Float, expect, pairs};
use crate::array::pick::{self, AxisShape};
use crate::array::shape::axis as check_axis;
use crate::error::{Error, Result};
use crate::graph::{Composite, Rule, Saved, Tensor, finish, unrecorded};

/// How [`Tensor::index_reduce`] combines elements with those that they are added to.
///
/// ```
/// use autograd_core::{IndexReduction, Tensor};
///
/// let x = Tensor::from([2.0, 5.0, 3.0]);
/// let (index, source) = (Tensor::from([0, 0, 2]), Tensor::from([1.0, 7.0, 4.0]));
/// let reduced = |how| x.index_reduce(0, &index, &source, how).to_vec();
/// assert_eq!(reduced(IndexReduction::Min), [1.0, 5.0, 3.0]);
/// assert_eq!(reduced(IndexReduction::Prod), [14.0, 5.0, 12.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexReduction {
    /// The mean.
    Mean,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// The product.
    Prod,
}

entries! {
    INDEX_REDUCTIONS:

    INDEX_MAX = OpDef {
        run: |op, values, at| {
            let [x, index, source] = several(values)?;
            let index = index_of(index)?;
            float!(smallvec![x, source], (x, source) => {
                index_max(&x, op.int(0), (&index, &source), at)
            })
        },
        ..reducing_op("index_max")
    };

    INDEX_PROD = OpDef {
        run: |op, values, _| {
            let [x, index, source] = several(values)?;
            let index = index_of(index)?;
            float!(smallvec![x, source], (x, source) => {
                index_prod(&x, op.int(0), (&index, &source))
            })
        },
        ..reducing_op("index_prod")
    };
}

const fn reducing_op(name: &'static str) -> OpDef {
    OpDef {
        attrs: &[("axis", Type::Int)],
        infer: for_programs(|op, inputs| {
            let [x, ..] = exactly::<3>(inputs)?;
            position(op.int(0), float(x)?.dims.len())?;
            changed(op, inputs)
        }),
        ..OpDef::new(name)
    }
}

/// The greatest of each slice and of those of `source` that `index` names for it.
fn index_max<T: Float>(
    x: &Tensor<T>,
    axis: isize,
    (index, source): (&Tensor<i64>, &Tensor<T>),
    caller: Caller,
) -> Result<Tensor<T>> {
    let op = INDEX_MAX.name;
    let (position, _) = Picks::Slices.fit(op, x.shape(), axis, index, Some(source.shape()))?;
    let around = AxisShape::new(x.shape(), position);
    let (list, from) = (index.to_vec(), source.read());
    let from = from.contiguous();
    let from = from.as_slice().unwrap_or(&[]);
    let value = pick::changed(x.read().into_owned(), |data| {
        pick::add_at(data, around, &list, from, |old: T, new: T| old.greater(new));
    });
    if !x.would_record() && !source.would_record() {
        return Ok(unrecorded(op, caller, &[x, source], value).and_lost(index));
    }
    Ok(finish(op, caller, &[x, source], value.clone(), || {
        let saved = [
            Saved::input(0, x),
            Saved::input(1, index),
            Saved::input(2, source),
            Saved::output_value(value),
        ];
        Rule::new(saved, move |saved, dy: Tensor<T>, wants| {
            let (x, index) = (saved.tensor::<T>()?, saved.tensor::<i64>()?);
            let (source, y) = (saved.tensor::<T>()?, saved.tensor::<T>()?);
            let is = |x: &Tensor<T>, y: &Tensor<T>| x.equal(y).or(&x.is_nan().and(&y.is_nan()));
            let (of_x, of_source) = (is(&x, &y), is(&source, &y.try_index_select(axis, &index)?));
            // Equal extremes share the gradient.
            let sharers = of_x.cast::<T>().try_index_add(axis, &index, &of_source.cast::<T>())?;
            let (share, zero) = (dy / sharers, Tensor::from(T::ZERO));
            let picked = share.try_index_select(axis, &index)?;
            Ok([
                wants[0].then(|| of_x.where_else(&share, &zero)),
                wants[1].then(|| of_source.where_else(&picked, &zero)),
            ])
        })
    }))
}

/// The product of each slice and of those of `source` that `index` names for it. Pairs are multiplied until
/// each slice has one factor, so the gradient needs no quotient, which zeros do not have.
fn index_prod<T: Float>(
    x: &Tensor<T>,
    axis: isize,
    (index, source): (&Tensor<i64>, &Tensor<T>),
) -> Result<Tensor<T>> {
    let op = INDEX_PROD.name;
    let (position, _) = Picks::Slices.fit(op, x.shape(), axis, index, Some(source.shape()))?;
    let n = x.shape()[position];
    let mut groups: Vec<Vec<i64>> = (0..n).map(|slice| vec![slice as i64]).collect();
    for (factor, &slice) in (n..).zip(&index.to_vec()) {
        groups[slice as usize].push(factor as i64);
    }
    let mut of_one = x.shape_owned();
    of_one[position] = 1;
    let one = Tensor::ones(of_one);
    let mut factors = Tensor::try_concat(&[x, source], axis)?;
    while groups.iter().any(|group| group.len() > 1) {
        let no_other = factors.shape()[position] as i64;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for group in &mut groups {
            let start = left.len() as i64;
            for pair in group.chunks(2) {
                left.push(pair[0]);
                right.push(*pair.get(1).unwrap_or(&no_other));
            }
            *group = (start..left.len() as i64).collect();
        }
        let padded = Tensor::try_concat(&[&factors, &one], axis)?;
        let picked = |list: Vec<i64>| padded.try_index_select(axis, &Tensor::from(list));
        factors = picked(left)? * picked(right)?;
    }
    Ok(factors)
}

/// # Reduction by index
impl<T: Float> Tensor<T> {
    pairs! {
        /// Combines the slices of `source` with those that `index` names on an axis: by the mean with the
        /// slice itself, the extreme, or the product. Slices that are not named stay. Equal extremes share
        /// the gradient; NaN is an extreme.
        ///
        /// ```
        /// use autograd_core::{IndexReduction, Tensor};
        ///
        /// let x = Tensor::from([1.0, 5.0, 3.0]);
        /// let (index, source) = (Tensor::from([0, 0, 2]), Tensor::from([4.0, 7.0, 2.0]));
        /// let greatest = x.index_reduce(0, &index, &source, IndexReduction::Max);
        /// assert_eq!(greatest.to_vec(), [7.0, 5.0, 3.0]);
        /// let mean = x.index_reduce(0, &index, &source, IndexReduction::Mean);
        /// assert_eq!(mean.to_vec(), [4.0, 5.0, 2.5]);
        /// ```
        pub fn index_reduce, try_index_reduce(
            &self,
            axis: isize,
            index: &Tensor<i64>,
            source: &Tensor<T>,
            reduction: IndexReduction,
        ) -> Tensor<T>,
            Axis | Shape | Index if "there is no such axis, `index` is not a list, an index lies outside the axis, \
                or `source` has not one slice for each index",
            use "IndexReduction";
            "Tensor::from([1.0])\n    .try_index_reduce(0, &Tensor::from([1]), &Tensor::from([2.0]), IndexReduction::Max)"
                => Index {
            let _composite = Composite::here("index_reduce");
            let named = |error: Error| error.called("index_reduce");
            match reduction {
                IndexReduction::Mean => {
                    let sum = self.try_index_add(axis, index, source).map_err(named)?;
                    Ok(sum / self.counts_along(axis, index))
                }
                IndexReduction::Max => self.reduced_at(&INDEX_MAX, axis, index, source).map_err(named),
                IndexReduction::Min => {
                    Ok(-(-self).reduced_at(&INDEX_MAX, axis, index, &-source).map_err(named)?)
                }
                IndexReduction::Prod => {
                    self.reduced_at(&INDEX_PROD, axis, index, source).map_err(named)
                }
            }
        }
    }

    #[track_caller]
    fn reduced_at(
        &self,
        by: &'static OpDef,
        axis: isize,
        index: &Tensor<i64>,
        source: &Tensor<T>,
    ) -> Result<Tensor<T>> {
        let inputs = [self.untyped(), index.untyped(), source.untyped()];
        call(by, [Attr::Int(axis)], inputs)
    }

    /// For each slice of an axis: 1 and how often `index` names it, in a shape that broadcasts.
    fn counts_along(&self, axis: isize, index: &Tensor<i64>) -> Tensor<T> {
        let axis = expect(check_axis("index_reduce", axis, self.ndim()));
        let ones = Tensor::<T>::ones([self.shape()[axis]]);
        let counts = ones.index_add(0, index, &Tensor::ones([index.len()]));
        let mut shape = vec![1; self.ndim()];
        shape[axis] = self.shape()[axis];
        counts.reshape(shape)
    }
}
