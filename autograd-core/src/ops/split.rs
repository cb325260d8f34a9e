//! Tensors split along an axis.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

use super::call::call_at;
use super::slices::part;
use super::table::{Attr, Form, OpDef, Type, any, entries, exactly, for_programs, position};
use super::{Caller, expect, pairs};
use crate::array::shape::axis as check_axis;
use crate::array::{Shape, Value};
use crate::error::{Error, Result};
use crate::graph::{
    Composite, Edges, Element, Lost, Node, NodeRef, Op, Pull, Push, SavedState, Slots, Tensor,
    is_noting, typed,
};

entries! {
    SPLITS:

    /// One of the parts, by its number.
    SPLIT = OpDef {
        attrs: &[("axis", Type::Int), ("parts", Type::Int), ("part", Type::Int)],
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            let mut dims = x.dims.clone();
            let at = position(op.int(0), dims.len())?;
            dims[at] = dims[at].map(|n| n / op.int(1).max(1) as usize);
            Ok(vec![Form::new(x.dtype, dims)])
        }),
        run: |op, x, at| any!(x, x => {
            let [parts, part] = [op.int(1), op.int(2)].map(|n| n as usize);
            let found = split(&x, parts, op.int(0), at)?.into_iter().nth(part);
            found.ok_or_else(|| Error::value("split", "part", format!("less than {parts}"), part))
        }),
        ..OpDef::new("split")
    };
}

/// # Splits
impl<T: Element> Tensor<T> {
    pairs! {
        /// Splits an axis into parts of equal length.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let parts = Tensor::from([1.0, 2.0, 3.0, 4.0]).split(2, 0);
        /// assert_eq!(parts[1].to_vec(), [3.0, 4.0]);
        /// ```
        pub fn split, try_split(&self, parts: usize, axis: isize) -> Vec<Tensor<T>>,
            Axis | Value | TooLarge if "there is no such axis, `parts` does not divide its length, or so many do \
                not fit in memory",
            "Tensor::from([1.0, 2.0, 3.0]).try_split(2, 0)" => Value {
            T::split(self, parts, axis, Location::caller())
        }

        /// Splits an axis into at most `parts` parts of equal length, the last perhaps shorter; an empty one
        /// into `parts` empty ones.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let lengths = |parts| Tensor::<i64>::arange(5).chunk(parts, 0).iter().map(Tensor::len).collect::<Vec<_>>();
        /// assert_eq!((lengths(2), lengths(4)), (vec![3, 2], vec![2, 2, 1]));
        /// ```
        #[doc(alias = "array_split")]
        pub fn chunk(&self, parts: usize, axis: isize) -> Vec<Tensor<T>>,
            Panics if "there is no such axis or `parts` is 0" {
            let n = self.length("chunk", axis);
            if parts == 0 {
                expect(Err(Error::value("chunk", "parts", "1 or more", 0)))
            }
            if n == 0 {
                return self.split(parts, axis);
            }
            let _composite = Composite::here("chunk");
            let each = n.div_ceil(parts);
            let starts = (0..n).step_by(each);
            starts.map(|start| self.narrow(axis, start, each.min(n - start))).collect()
        }

        /// Splits an axis into parts of these lengths.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let parts = Tensor::from([1, 2, 3]).split_with_sizes(&[1, 2], 0);
        /// assert_eq!((parts[0].to_vec(), parts[1].to_vec()), (vec![1], vec![2, 3]));
        /// ```
        #[doc(alias = "split")]
        pub fn split_with_sizes, try_split_with_sizes(&self, sizes: &[usize], axis: isize) -> Vec<Tensor<T>>,
            Axis | Value if "there is no such axis, or the lengths do not add up to its length",
            "Tensor::from([1, 2, 3]).try_split_with_sizes(&[1, 1], 0)" => Value {
            let op = "split_with_sizes";
            let _composite = Composite::here(op);
            let n = self.shape()[check_axis(op, axis, self.ndim())?];
            if sizes.iter().fold(0, |sum: usize, &n| sum.saturating_add(n)) != n {
                let expected = format!("lengths that add up to {n}, the length of axis {axis}");
                return Err(Error::value(op, "sizes", expected, format!("{sizes:?}")));
            }
            let (mut start, mut all) = (0, Vec::new());
            for &len in sizes {
                all.push(self.try_slice_axis(axis, start, start + len, 1)?);
                start += len;
            }
            Ok(all)
        }
    }
}

pub(super) fn split<T: Element>(
    x: &Tensor<T>,
    parts: usize,
    axis: isize,
    caller: Caller,
) -> Result<Vec<Tensor<T>>> {
    let position = check_axis("split", axis, x.ndim())?;
    let n = x.shape()[position];
    if parts == 0 || !n.is_multiple_of(parts) {
        let expected = format!("a divisor of {n}, the length of axis {axis}");
        return Err(Error::value("split", "parts", expected, parts));
    }
    let len = n / parts;
    let mut all = Vec::new();
    if all.try_reserve_exact(parts).is_err() {
        return Err(Error::TooLarge { op: "split", shape: vec![parts] });
    }
    if is_noting() {
        for i in 0..parts {
            let attrs = [axis, parts as isize, i as isize].map(Attr::Int);
            all.push(call_at(&SPLIT, attrs, [x.untyped()], caller)?);
        }
        return Ok(all);
    }
    let lost = if x.would_record() { Lost::NONE } else { Lost::of("split", caller, x) };
    for i in 0..parts {
        let part = part(&x.read(), position, (i * len, (i + 1) * len, 1));
        all.push(Tensor::from_value(part).with_lost(lost));
    }
    // For elements without gradients, the rule is not even compiled.
    if const { !T::DTYPE.is_float() } || !x.would_record() {
        return Ok(all);
    }
    let shape = all.first().map(Tensor::shape_owned).unwrap_or_default();
    let call = SplitCall { axis, shape, taken: Mutex::new(vec![false; parts]) };
    let (op, state) =
        (const { &Split::<T>(PhantomData) }, SavedState::new(Some(Arc::new(call)), &mut []));
    let node = NodeRef::record(op, Edges::One(x.edge()), state, caller);
    for (slot, part) in (0..).zip(&mut all) {
        part.attach(node.clone(), slot);
    }
    Ok(all)
}

/// The op of a split: the gradients of the parts, joined, are that of the whole.
struct Split<T>(PhantomData<fn() -> T>);

struct SplitCall {
    axis: isize,
    shape: Shape,
    /// Whether a backward took each part's gradient. Separate backwards may start from different parts.
    taken: Mutex<Vec<bool>>,
}

impl SplitCall {
    fn of(node: &Node) -> &Self {
        node.attrs().unwrap_or_else(|| unreachable!("it was recorded with the op"))
    }
}

impl<T: Element> Op for Split<T> {
    fn name(&self) -> &'static str {
        "split"
    }

    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let call = SplitCall::of(pull.node);
        let parts = {
            let mut all = call.taken.lock().unwrap_or_else(PoisonError::into_inner);
            let came = |part: usize| grads.get(part).is_some_and(Option::is_some);
            if (0..all.len()).any(|part| all[part] && came(part)) {
                return Err(Error::GraphFreed { op: "split", location: pull.node.location });
            }
            if !pull.retain {
                all.iter_mut().enumerate().for_each(|(part, taken)| *taken |= came(part));
            }
            all.len()
        };
        let zeros = || Tensor::from_value(Value::full(call.shape.clone(), T::ZERO));
        let mut grads = grads.into_iter();
        let grad = |_| grads.next().flatten().map_or_else(zeros, typed);
        let grads: Vec<Tensor<T>> = (0..parts).map(grad).collect();
        let grads: Vec<&Tensor<T>> = grads.iter().collect();
        let dx = Tensor::try_concat(grads, call.axis)?;
        pull.sink.deliver(&pull.node.edges()[0], T::wrap(dx))
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let Some(Some(dx)) = push.tangents.first() else { return Ok(None) };
        let call = SplitCall::of(push.node);
        let parts = call.taken.lock().unwrap_or_else(PoisonError::into_inner).len();
        let parts = split::<T>(&typed(dx.clone()), parts, call.axis, Location::caller())?;
        Ok(Some(parts.into_iter().map(|part| Some(T::wrap(part))).collect()))
    }
}
