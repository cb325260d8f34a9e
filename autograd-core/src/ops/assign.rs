//! Assignment to the parts of tensors that an index selects.

use smallvec::smallvec;

use super::call::call;
use super::gather::{Picks, changed, check_indices, index_of, select};
use super::indexing::{End, IntoIndex, Item, axes_of, check_mask, part, whole};
use super::table::{
    Attr, Form, Gradient, OpDef, Type, computed, entries, exactly, for_programs, number, one,
    several,
};
use super::{Caller, Numeric, Operand, expect, pairs};
use crate::array::DType;
use crate::array::shape::broadcast;
use crate::error::{Error, Result};
use crate::graph::{Composite, Tensor};

entries! {
    ASSIGNMENTS:

    /// The position of each element, in row-major order.
    PLACES = OpDef {
        infer: for_programs(|_, inputs| {
            Ok(vec![Form::new(DType::Int64, exactly::<1>(inputs)?[0].dims.clone())])
        }),
        run: |_, x, _| {
            let x = one(x)?;
            computed(Tensor::<i64>::arange(x.len()).try_reshape(x.shape()))
        },
        gradient: Gradient::None,
        ..OpDef::new("places")
    };

    PUT = OpDef {
        attrs: &[("accumulate", Type::Flag)],
        infer: for_programs(changed),
        run: |op, values, at| {
            let [x, index, source] = several(values)?;
            let (index, accumulate) = (index_of(index)?, op.flag(0));
            number!(smallvec![x, source], (x, source) => put(&x, &index, &source, accumulate, at))
        },
        ..OpDef::new("index_put")
    };
}

/// # Assignment to parts
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Returns a copy with `elements`, which broadcast, in the part that an index selects, as for
        /// [`Tensor::i`]; the last one, if it selects an element several times. The gradient of a replaced
        /// element is 0.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        /// assert_eq!(x.slice_assign((.., 0), 0.0).to_vec(), [0.0, 2.0, 0.0, 4.0]);
        /// ```
        #[doc(alias = "setitem")]
        #[doc(alias = "index_fill")]
        pub fn slice_assign(&self, index: impl IntoIndex, elements: impl Operand<T>) -> Tensor<T>,
            Panics if "[`Tensor::i`] does not take the index, or the elements cannot be broadcast to the part" {
            let _composite = Composite::here("slice_assign");
            expect(elements.lend(|of| put_part("slice_assign", self, index.items(), of, false)))
        }

        /// As [`Tensor::slice_assign`]; with `accumulate`, the elements are added instead, also several to one.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([0, 0, 0]);
        /// let index = Tensor::from([2, 0, 2]);
        /// assert_eq!(x.index_put(&index, &Tensor::from([1, 5, 7]), true).to_vec(), [5, 0, 8]);
        /// assert_eq!(x.index_put(&index, &Tensor::from([1, 5, 7]), false).to_vec(), [5, 0, 7]);
        /// ```
        pub fn index_put, try_index_put(
            &self,
            index: impl IntoIndex,
            elements: impl Operand<T>,
            accumulate: bool,
        ) -> Tensor<T>,
            Count | Index | Value | Shape | Broadcast | Overflow if "[`Tensor::i`] does not take the index, the \
                elements cannot be broadcast to the part, or an integer sum is outside of the element type",
            "Tensor::from([0, 0, 0]).try_index_put(..2, &Tensor::from([1, 2, 3]), false)" => Shape {
            let _composite = Composite::here("index_put");
            elements.lend(|of| put_part("index_put", self, index.items(), of, accumulate))
        }
    }
}

#[track_caller]
fn put_part<T: Numeric>(
    op: &'static str,
    x: &Tensor<T>,
    items: Vec<Item>,
    elements: &Tensor<T>,
    accumulate: bool,
) -> Result<Tensor<T>> {
    let items = whole(op, x.shape(), items)?;
    if let ([] | [1], Some(at)) = (elements.shape(), only_mask(&items)) {
        return put_one(op, x, items, at, elements, accumulate);
    }
    let places: Tensor<i64> = call(&PLACES, [], [x.untyped()])?;
    let places = part(op, &places, items)?;
    let fits = broadcast(op, elements.shape(), places.shape());
    if !fits.is_ok_and(|shape| &shape[..] == places.shape()) {
        let expected =
            format!("of a shape that is broadcast to {:?}, that of the part", places.shape());
        return Err(Error::shape(op, "elements", expected, elements.shape()));
    }
    let inputs = [x.untyped(), places.untyped(), elements.untyped()];
    call(&PUT, [Attr::Flag(accumulate)], inputs).map_err(|error| error.called(op))
}

/// The position of the only tensor in an index, if that is a mask.
fn only_mask(items: &[Item]) -> Option<usize> {
    let mut tensors =
        (0..).zip(items).filter(|(_, item)| matches!(item, Item::Mask(_) | Item::List(_)));
    match (tensors.next(), tensors.next()) {
        (Some((at, Item::Mask(_))), None) => Some(at),
        _ => None,
    }
}

/// Writes one element where the mask at this position of the index is true. The mask is not read, so it may follow
/// the inputs of a trace.
#[track_caller]
fn put_one<T: Numeric>(
    op: &'static str,
    x: &Tensor<T>,
    mut items: Vec<Item>,
    at: usize,
    element: &Tensor<T>,
    accumulate: bool,
) -> Result<Tensor<T>> {
    let axis = items[..at].iter().map(axes_of).sum();
    let Item::Mask(mask) = items.remove(at) else { unreachable!("it was found there") };
    check_mask(op, x.shape(), axis, &mask)?;
    let behind = items[at..].iter().filter(|item| !matches!(item, Item::At(_))).count();
    items.splice(at..at, (0..mask.ndim()).map(|_| Item::ALL));
    let axes: Vec<isize> = (1..=behind as isize).map(|axis| -axis).collect();
    let mask = mask.unsqueeze_axes(&axes);
    if accumulate {
        // The sum with -0 is the number itself, of 0 too.
        let elements = mask.try_where_else(element, Tensor::from(T::nearest(-0.0)))?;
        return put_part(op, x, items, &elements, true);
    }
    if items.iter().all(|item| matches!(item, Item::Range(None, End::Open, 1))) {
        return mask.try_where_else(element, x);
    }
    let elements = mask.try_where_else(element, part(op, x, items.clone())?)?;
    put_part(op, x, items, &elements, false)
}

/// Returns `x` with the elements of `source`, which is broadcast, at the positions in `index`.
fn put<T: Numeric>(
    x: &Tensor<T>,
    index: &Tensor<i64>,
    source: &Tensor<T>,
    accumulate: bool,
    caller: Caller,
) -> Result<Tensor<T>> {
    let source = source.try_broadcast_to(index.shape())?.flatten();
    let (flat, index) = (x.flatten(), index.flatten());
    let put = match accumulate {
        true => flat.try_index_add(0, &index, &source)?,
        false => last_put(&flat, &index, &source, caller)?,
    };
    put.try_reshape(x.shape_owned())
}

/// The same for lists; the last element at a position wins.
fn last_put<T: Numeric>(
    x: &Tensor<T>,
    index: &Tensor<i64>,
    source: &Tensor<T>,
    caller: Caller,
) -> Result<Tensor<T>> {
    check_indices(PUT.name, "index", &index.read(), x.len())?;
    // Of the elements of `x` and, behind them, those of `source`: the ones that stay, and the last written ones.
    let mut kept: Vec<i64> = (0..x.len() as i64).collect();
    (x.len() as i64..).zip(index.to_vec()).for_each(|(from, at)| kept[at as usize] = from);
    let both = Tensor::try_concat(&[x, source], 0)?;
    select(Picks::Slices, &both, 0, &Tensor::from(kept).and_lost(index), caller)
}
