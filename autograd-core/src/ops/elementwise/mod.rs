//! Ops made of formulas: named ones of `#[py_layer(elementwise)]`, and [`fuse`]. An op has two
//! formulas, forward and backward, each run in one pass over memory. A recorded backward runs as a
//! program, which is an op of this kind again, so a derivative of any order is one pass.

mod check;
mod compute;
mod fuse;
mod node;
pub(super) mod op;
mod steps;

pub(crate) use check::differentiated;
pub use check::{Checked, check_backward, verify};
pub(super) use compute::{run_formula, run_pass};
pub use fuse::{fuse, try_fuse};
pub(super) use node::{call_shapes, recorded_as, run_single};
#[allow(unreachable_pub, reason = "a hidden method of a public trait uses it")]
pub use op::Handle;
pub use op::{ElementwiseOp, Info, Outputs, Pair, Reduction, pulled};
pub(super) use op::{formulas, is_single};

use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::array::elementwise::convert;
use crate::array::shape::{axes, broadcast, same};
use crate::array::{Shape, Storable};
use crate::error::{Error, Result};
use crate::graph::{Composite, Element, Tensor};
use crate::ops::{Caller, Float, Input};

use compute::Frame;
use node::call;

/// An element type whose tensors can be a [`Mask`](crate::Mask) of a formula: `bool`, or an integer
/// type, where every number but 0 counts as true. See "Elementwise ops" of [`py_layer`](macro@crate::py_layer).
///
/// ```
/// use autograd_core::prelude::*;
///
/// #[py_layer(elementwise)]
/// impl Keep {
///     fn forward(x: Real, #[stop_gradient] on: Mask) -> Real {
///         on.select(x, 0.0)
///     }
/// }
///
/// let x = Tensor::from([1.0, 2.0]);
/// assert_eq!(Keep::apply(&x, &Tensor::from([false, true])).to_vec(), [0.0, 2.0]);
/// assert_eq!(Keep::apply(&x, &Tensor::from([0, -3_i64])).to_vec(), [0.0, 2.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "a tensor of `{Self}` cannot be a mask",
    label = "a mask is a tensor of `bool` or of integers",
    note = "`x.gt_scalar(0.0)` and the like make a mask of numbers"
)]
pub trait MaskElement: Element {
    #[doc(hidden)]
    fn mask(tensor: &Tensor<Self>) -> Tensor<bool>;
}

#[diagnostic::do_not_recommend]
impl MaskElement for bool {
    fn mask(tensor: &Tensor<bool>) -> Tensor<bool> {
        tensor.clone()
    }
}

macro_rules! integer_masks {
    ($($t:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl MaskElement for $t {
            fn mask(tensor: &Tensor<$t>) -> Tensor<bool> {
                Tensor::from_value(convert(&tensor.read(), |v| v != <$t>::ZERO))
            }
        }
    )*};
}

integer_masks! { i32 i64 u8 }

/// Applies an op to its inputs.
#[track_caller]
pub fn apply<T: Float>(
    op: impl ElementwiseOp<T> + 'static,
    reals: &[&Tensor<T>],
    masks: &[&Tensor<bool>],
) -> Result<Outputs<T>> {
    T::elementwise(Handle::Shared(Arc::new(op)), reals, masks, Location::caller())
}

/// As [`apply`], for a static op without parameters.
#[track_caller]
pub fn apply_static<T: Float>(
    op: &'static dyn ElementwiseOp<T>,
    reals: &[&Tensor<T>],
    masks: &[&Tensor<bool>],
) -> Result<Outputs<T>> {
    T::elementwise(Handle::Static(op), reals, masks, Location::caller())
}

/// As [`apply_static`], for an op with one input and one result.
#[track_caller]
pub fn apply_one<T: Float>(op: &'static dyn ElementwiseOp<T>, x: &Tensor<T>) -> Result<Tensor<T>> {
    T::formula(op, x, Location::caller())
}

pub(super) fn one_output<T: Float>(outputs: Result<Outputs<T>>) -> Result<Tensor<T>> {
    outputs.map(|mut outputs| outputs.swap_remove(0))
}

/// [`apply`] for one element type, compiled in this crate.
pub(super) fn run<T: Float>(
    op: Handle<T>,
    reals: &[&Tensor<T>],
    masks: &[&Tensor<bool>],
    caller: Caller,
) -> Result<Outputs<T>> {
    let info = op.info();
    if let [x] = reals
        && is_single(info)
    {
        return Ok(SmallVec::from_iter([run_single(op, Input::Ref(x), caller)]));
    }
    let shapes = || reals.iter().map(|x| x.shape()).chain(masks.iter().map(|x| x.shape()));
    let whole = matches!(info.reduction, Reduction::None);
    if whole && shapes().all(|shape| same(shape, reals[0].shape())) {
        return Ok(call(&op, reals, masks, None, caller));
    }
    let mut shape = Shape::new();
    for (i, found) in shapes().enumerate() {
        if shape.as_slice() != found {
            shape = broadcast(info.name, &shape, found).map_err(|error| match error.into() {
                Error::Broadcast { .. } => Error::Shape {
                    op: info.name,
                    parameter: (info.reals.iter().chain(info.masks.iter()).nth(i))
                        .map_or_else(|| format!("input {i}"), |name| (*name).to_owned()),
                    expected: format!(
                        "of a shape that can be broadcast with {:?}",
                        shape.as_slice()
                    ),
                    found: found.to_vec(),
                },
                error => error,
            })?;
        }
    }
    let frame = Frame::of(shape, info.outputs, &info.reduction, info.name)?;
    let group = frame.group();
    let mut outputs = call(&op, reals, masks, Some(frame), caller);
    if let Reduction::Mean(_) = info.reduction {
        let _composite = Composite::at(caller);
        for output in &mut outputs {
            *output = &*output / T::from_f64(group as f64);
        }
    }
    Ok(outputs)
}

impl Frame {
    fn of(shape: Shape, outputs: usize, reduction: &Reduction, op: &'static str) -> Result<Self> {
        let (target, result) = match reduction {
            Reduction::None => (shape.clone(), shape.clone()),
            Reduction::Sum(given) | Reduction::Mean(given) => {
                let axes = axes(op, given, shape.len())?;
                let mut target = shape.clone();
                axes.iter().for_each(|&axis| target[axis] = 1);
                let left = (0..shape.len()).filter(|axis| !axes.contains(axis));
                let result = left.map(|axis| shape[axis]).collect();
                (target, result)
            }
        };
        let targets = SmallVec::from_elem((target, result), outputs);
        Ok(Self { shape, targets })
    }

    fn group(&self) -> usize {
        let target: usize = self.targets[0].0.iter().product();
        self.shape.iter().product::<usize>() / target.max(1)
    }
}
