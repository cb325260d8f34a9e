//! Custom ops: those whose gradient a user writes. [`py_layer`](macro@crate::py_layer) turns an impl
//! block into a [`CustomOp`] and an `apply`. That calls [`start`](apply::Forward::start), which makes a
//! node if the call is recorded, the user's forward, and [`finish`](apply::finish). In backward the node
//! calls the generated `pull`, which calls the user's backward. Element types are erased at the boundary:
//! the node is the same type for every custom op.

mod apply;
mod backward;
mod builder;
mod call;
mod context;
mod environment;
mod forward_mode;
mod inputs;
#[doc(hidden)]
pub mod instances;
mod outputs;
mod plain;
mod proof;
mod rules;
mod saved;
pub(crate) mod shapes;
mod tuples;
#[cfg(feature = "verify")]
mod verify;

pub use apply::{Forward, expect, finish, finish_fallible, start, without_gradient};
pub use backward::{
    GradEntries, GradFor, GradParam, Gradient, GradsFor, Lent, NamedGrad, RawBackward,
};
pub use builder::{Given, GivenOr, NotGiven, Optional, Required, Returned, Set};
pub use context::{
    Attrs, BackwardContext, ForwardContext, InBackward, InForward, JvpContext, NotInJvp,
};
pub use forward_mode::{Dual, JvpForm, JvpInput, RawJvp, TangentFor, TangentParam, TangentsFor};
#[cfg(feature = "verify")]
pub use inputs::Again;
pub use inputs::{DifferentiableInput, Facts, InputTensors, NeedsGrad, TensorInput};
pub use outputs::{
    Fallible, Kept, NoTensors, NotKept, Outputs, OwnError, PlainOutput, TensorOutput, Visitor,
    marked, stand_in,
};
pub use plain::{
    HoldsNoTensor, HoldsTensor, HoldsTensorAt, HoldsTensorFurther, IsPlain, IsPlainState,
    NoTensorSeen, Probe, Probed, TensorSeen, attrs, check_plain, plain,
};
pub use proof::{
    AnyDual, AnyElementTensor, AnyGradient, FloatTensor, Known, List, Unknown, any_tensor,
    float_tensor, list,
};
pub use rules::CustomOpRules;
pub use saved::{CanSave, CannotSave, Choose, Chosen, IntoSaved, Pack, Saved, Unpack, Unsavable};
#[cfg(all(feature = "verify", feature = "linalg"))]
pub(crate) use verify::Unverified;
#[cfg(feature = "verify")]
pub use verify::{NotReused, Reused, VerifyScope, verify, verify_layers, verifying};

#[doc = include_str!("manual.md")]
pub use autograd_macros::py_layer;

use crate::error::Result;

/// The trait that [`py_layer`](macro@crate::py_layer) implements for an op. `Key` is a type private
/// to the op: it keeps `Saved` and `Attrs` out of the op's public interface, so that a public op
/// may have private types there.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an op made by #[py_layer]",
    label = "this type has no #[py_layer] impl block"
)]
pub trait CustomOp<Key>: Sized {
    type Saved: Saved;
    /// The type that arguments of `save_for_backward` are checked against: `Saved`, or [`Unsavable`] if
    /// `Saved` was reported as a type that cannot be saved.
    type Checked;
    type Attrs: Attrs;
    /// A struct with a field for each tensor input; `()` if the op does not use it.
    type Needs: Needs;
    const INFO: Facts;
    const SHAPES: Option<&'static shapes::Shapes> = None;
    fn pull(raw: &RawBackward<'_>, lent: &Lent<'_>);
    const PUSH: Option<fn(&RawJvp<'_>) -> Result<()>> = None;
    const RULES: &'static CustomOpRules = &CustomOpRules::of::<Self, Key>();
}

#[doc(hidden)]
pub trait Needs {
    fn of(needs: &dyn NeedsGrad) -> Self;
}

/// The struct of an op, by its key.
#[doc(hidden)]
pub trait HasNeeds {
    type Needs: Needs;
}

impl Needs for () {
    fn of(_: &dyn NeedsGrad) {}
}

macro_rules! shown {
    ($($context:ident)*) => {
        $(
            impl<L> std::fmt::Debug for $context<'_, L> {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.debug_struct(stringify!($context)).finish_non_exhaustive()
                }
            }
        )*
    };
}

shown!(ForwardContext BackwardContext JvpContext);
