//! The one error type: a variant for each contract that can be broken.

use std::error::Error as StdError;
use std::io;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::path::PathBuf;
use std::sync::Arc;

use crate::array::DType;

mod words;

pub(crate) use words::{Plural, RECEIVER};

/// What went wrong, with the op, the parameter, what was expected and what was found.
///
/// Every fallible call of this crate returns this type. Nothing is lost when one is returned:
/// tensors stay usable, and a gradient is either written whole or not at all.
///
/// ```
/// use autograd_core::{Error, Tensor};
///
/// let a = Tensor::<f64>::zeros([2, 3]);
/// let b = Tensor::<f64>::zeros([4]);
/// let error = a.try_add(&b).unwrap_err();
/// assert!(matches!(error, Error::Broadcast { .. }));
/// assert_eq!(error.to_string(), "add: shapes [2, 3] and [4] cannot be broadcast together");
/// ```
///
/// `Debug` writes the same words, for `unwrap()` and a `main` that returns a `Result`:
///
/// ```
/// let error = autograd_core::Tensor::from([1.0]).try_reshape([2, 2]).unwrap_err();
/// assert_eq!(format!("{error:?}"), error.to_string());
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum Error {
    /// A parameter has another shape than its op takes.
    Shape {
        /// The op.
        op: &'static str,
        /// The parameter.
        parameter: String,
        /// What the op takes there.
        expected: String,
        /// The shape that was given.
        found: Vec<usize>,
    },
    /// Two shapes have no common shape to which both could be broadcast.
    Broadcast {
        /// The op.
        op: &'static str,
        /// Shape of the left operand.
        left: Vec<usize>,
        /// Shape of the right operand.
        right: Vec<usize>,
    },
    /// An axis does not exist, or stands twice.
    Axis {
        /// The op.
        op: &'static str,
        /// The axis as it was given.
        axis: isize,
        /// How many axes the tensor has.
        rank: usize,
        /// Why it cannot be used.
        why: &'static str,
    },
    /// An index lies outside its axis.
    Index {
        /// The op.
        op: &'static str,
        /// The parameter.
        parameter: String,
        /// The index.
        index: i64,
        /// Length of the axis.
        len: usize,
    },
    /// A plain value (a count, a stride, a probability ..) that its op cannot take.
    Value {
        /// The op.
        op: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What the op takes.
        expected: String,
        /// What was given.
        found: String,
    },
    /// A shape whose elements cannot be counted or held in memory.
    TooLarge {
        /// The op.
        op: &'static str,
        /// The shape.
        shape: Vec<usize>,
    },
    /// A sum or product of integers, or the end of a range, that the element type cannot hold.
    Overflow {
        /// The op.
        op: &'static str,
        /// The element type.
        dtype: DType,
        /// The number, if it is known; of several the first that was found.
        found: Option<String>,
    },
    /// An element type other than the one asked for.
    ElementType {
        /// The op.
        op: &'static str,
        /// The parameter.
        parameter: String,
        /// The element type asked for.
        expected: DType,
        /// The element type that was found.
        found: DType,
    },
    /// A seed (the gradient a backward starts from) of another shape than its output.
    SeedShape {
        /// The call.
        op: &'static str,
        /// The output: the op that it came from and where that was called.
        output: String,
        /// Shape of the output.
        expected: Vec<usize>,
        /// Shape of the seed.
        found: Vec<usize>,
    },
    /// A gradient was asked for where there is none.
    NoGradient {
        /// The call.
        op: &'static str,
        /// Shape of the tensor.
        shape: Vec<usize>,
        /// What [`explain`](crate::explain()) says of it.
        why: String,
    },
    /// No seed for an output that has not one element.
    SeedMissing {
        /// The call.
        op: &'static str,
        /// The output: the op that it came from and where that was called.
        output: String,
        /// Shape of the output.
        found: Vec<usize>,
        /// How a seed is given to this call, if it takes one.
        with: Option<&'static str>,
    },
    /// Another number of seeds, outputs or the like than needed.
    Count {
        /// The call.
        op: &'static str,
        /// What is counted.
        what: String,
        /// How many were needed.
        expected: usize,
        /// How many there were.
        found: usize,
    },
    /// The same tensor twice where each may stand once.
    Duplicate {
        /// The call.
        op: &'static str,
        /// The parameter, with the position of the second one.
        parameter: String,
    },
    /// The graph was freed by an earlier backward.
    GraphFreed {
        /// The op whose saved state is gone.
        op: &'static str,
        /// Where the op was called.
        location: &'static Location<'static>,
    },
    /// A saved tensor was changed in place between its saving and its use.
    SavedTensorChanged {
        /// The op that saved it.
        op: &'static str,
        /// The saved tensor, by name or position.
        parameter: String,
        /// Version when saved.
        saved: u32,
        /// Version when needed.
        found: u32,
        /// Where the op was called.
        location: &'static Location<'static>,
    },
    /// A hook on a gradient, or what was given to [`after_backward`](crate::after_backward),
    /// returned an error. No gradient was written, unless after the backward.
    ///
    /// The error itself is the [`source`](StdError::source), which can be downcast; its message is
    /// part of this one's.
    Hook {
        /// The op whose gradients the hook sees; of a leaf, `a leaf`; after a backward, `backward`.
        op: &'static str,
        /// Which hook.
        hook: String,
        /// Where it was registered.
        registered: &'static Location<'static>,
        /// Where the op was called.
        location: Option<&'static Location<'static>>,
        /// What the hook returned.
        source: Arc<dyn StdError + Send + Sync>,
    },
    /// A hook returned a gradient of another shape or element type than it got, or another number
    /// of gradients.
    HookGradient {
        /// The op whose gradients the hook sees; of a leaf, `a leaf`.
        op: &'static str,
        /// Which hook.
        hook: &'static str,
        /// Where it was registered.
        registered: &'static Location<'static>,
        /// Which gradient.
        parameter: String,
        /// What the hook may return.
        expected: String,
        /// What it returned.
        found: String,
        /// Where the op was called.
        location: Option<&'static Location<'static>>,
    },
    /// A pack or unpack hook returned an error; see
    /// [`saved_tensors_hooks`](crate::saved_tensors_hooks).
    SavedTensorHook {
        /// The op that saved the tensor.
        op: &'static str,
        /// The saved tensor, by name or position.
        parameter: String,
        /// Which hook.
        hook: &'static str,
        /// What it returned; its message is part of this error's.
        source: Arc<dyn StdError + Send + Sync>,
        /// Where the op was called.
        location: &'static Location<'static>,
    },
    /// An unpack hook returned a tensor of another shape or element type than was packed.
    Unpacked {
        /// The op that saved the tensor.
        op: &'static str,
        /// The saved tensor, by name or position.
        parameter: String,
        /// Shape and element type that were packed.
        expected: (Vec<usize>, DType),
        /// Shape and element type that came back.
        found: (Vec<usize>, DType),
        /// Where the op was called.
        location: &'static Location<'static>,
    },
    /// A gradient returned by `backward` has another shape than its input.
    GradientShape {
        /// The op.
        op: &'static str,
        /// The input.
        parameter: String,
        /// Shape of the input.
        expected: Vec<usize>,
        /// Shape of the gradient.
        found: Vec<usize>,
        /// Where the op was called.
        location: &'static Location<'static>,
    },
    /// `backward` returned no gradient for an input that needs one.
    GradientMissing {
        /// The op.
        op: &'static str,
        /// The input.
        parameter: String,
        /// Where the op was called.
        location: &'static Location<'static>,
    },
    /// `backward` returned another number of gradients for a list than the list has tensors.
    GradientCount {
        /// The op.
        op: &'static str,
        /// The list input.
        parameter: String,
        /// Length of the list.
        expected: usize,
        /// Number of gradients.
        found: usize,
        /// Where the op was called.
        location: &'static Location<'static>,
    },
    /// A tangent returned by `jvp` has another shape than its output.
    TangentShape {
        /// The op.
        op: &'static str,
        /// The output, by position.
        output: String,
        /// Shape of the output.
        expected: Vec<usize>,
        /// Shape of the tangent.
        found: Vec<usize>,
        /// Where the op was called.
        location: &'static Location<'static>,
    },
    /// `jvp` returned another number of tangents for a list than the list has tensors.
    TangentCount {
        /// The op.
        op: &'static str,
        /// The output, by position.
        output: String,
        /// Length of the list.
        expected: usize,
        /// Number of tangents.
        found: usize,
        /// Where the op was called.
        location: &'static Location<'static>,
    },
    /// A second derivative through a saved value whose own gradient is not known.
    SavedIntermediate {
        /// The op.
        op: &'static str,
        /// The saved tensor, by position.
        parameter: String,
        /// Where the op was called.
        location: &'static Location<'static>,
    },
    /// An op was asked for something that it does not do (a gradient of an op without one ..).
    Unsupported {
        /// The op.
        op: &'static str,
        /// What was asked and what can be done instead.
        why: String,
    },
    /// User code panicked on a thread that works for the caller.
    Panic {
        /// The call that started the thread.
        op: &'static str,
        /// What panicked, and its message.
        why: String,
    },
    /// The context of a layer was used against its rules.
    Context {
        /// The op.
        op: &'static str,
        /// The context call.
        call: &'static str,
        /// The rule and how it was broken.
        why: String,
    },
    /// An input of `grad` from which no output can be reached.
    Unused {
        /// Position of the input.
        position: usize,
    },
    /// A gradient that differs from what finite differences give; see
    /// [`gradcheck()`](crate::gradcheck()).
    GradientWrong {
        /// The check.
        op: &'static str,
        /// Which input was moved, and how.
        direction: String,
        /// The slope in this direction by backward.
        backward: f64,
        /// The slope by finite differences.
        differences: f64,
        /// Whether the function has a kink or a jump there.
        not_differentiable: bool,
    },
    /// A backward of an elementwise op that is not the derivative of its forward.
    BackwardDiffers {
        /// The op.
        op: &'static str,
        /// The input whose gradient it is.
        input: &'static str,
        /// The inputs and the outputs' gradients at the point.
        point: String,
        /// What backward gives.
        backward: f64,
        /// What the derivative of forward gives.
        derivative: f64,
    },
    /// A slope by forward mode that differs from what it is checked against; see
    /// [`jvpcheck()`](crate::jvpcheck()).
    JvpWrong {
        /// The check.
        op: &'static str,
        /// Which input was moved, and how.
        direction: String,
        /// The slope in this direction by forward mode.
        jvp: f64,
        /// The slope it is checked against.
        expected: f64,
        /// Where that comes from: finite differences, or backward.
        by: &'static str,
        /// Whether the function has a kink or a jump there.
        not_differentiable: bool,
    },
    /// The first NaN or infinity; see [`detect_anomaly`](crate::detect_anomaly).
    NotFinite {
        /// The op.
        op: &'static str,
        /// What was not finite, how often and where.
        found: String,
        /// What went into it, with ranges.
        inputs: Vec<String>,
        /// Where the op was called.
        location: &'static Location<'static>,
    },
    /// Tensors by name that are not those of a model; all that differs is reported at once.
    StateDict {
        /// The call.
        op: &'static str,
        /// Names that were needed and not found.
        missing: Vec<String>,
        /// Names that were found and are not needed.
        unexpected: Vec<String>,
        /// Tensors of another shape or element type, in words.
        different: Vec<String>,
    },
    /// A file that could not be read or written, or whose contents are malformed.
    File {
        /// The call.
        op: &'static str,
        /// The file, unless it was given as bytes.
        path: Option<PathBuf>,
        /// [`InvalidData`](io::ErrorKind::InvalidData) where the contents are malformed, else what
        /// the operating system said.
        kind: io::ErrorKind,
        /// What is wrong.
        why: String,
    },
    /// User code (a layer's backward, a hook ..) returned an error.
    User {
        /// The op.
        op: &'static str,
        /// Which user function.
        function: &'static str,
        /// Its message.
        message: String,
        /// Where the op was called.
        location: &'static Location<'static>,
    },
    /// A rule of [programs](crate::static_graph) was broken while one was built.
    Program {
        /// The operator, or the call.
        op: String,
        /// The rule and how it was broken, with the variables.
        why: String,
        /// The line that built it.
        location: String,
    },
    /// An operator of a program failed while the program ran. No parameter was changed.
    Operator {
        /// The operator.
        op: String,
        /// What happened.
        why: String,
        /// The line that built the operator.
        location: String,
    },
    /// What a run was given, or asked for, does not fit its program. Nothing was run.
    Run {
        /// The variable.
        variable: String,
        /// What is wrong.
        why: String,
    },
}

/// What this crate's fallible calls return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a hook returns. `?` works on any error in it, which becomes the source of [`Error::Hook`] or
/// [`Error::SavedTensorHook`].
pub type HookResult<T> = Result<T, Box<dyn StdError + Send + Sync>>;

// What a hook returned is only read.
impl UnwindSafe for Error {}
impl RefUnwindSafe for Error {}

/// What a kernel cannot do is said in the same words.
#[doc(hidden)]
#[diagnostic::do_not_recommend]
impl From<autograd_kernels::Error> for Error {
    #[cold]
    fn from(error: autograd_kernels::Error) -> Self {
        use autograd_kernels::Error as Kernel;
        match error {
            Kernel::Shape { op, parameter, expected, found } => {
                Self::Shape { op, parameter: parameter.into(), expected, found }
            }
            Kernel::Broadcast { op, left, right } => Self::Broadcast { op, left, right },
            Kernel::Axis { op, axis, rank, why } => Self::Axis { op, axis, rank, why },
            Kernel::TooLarge { op, shape } => Self::TooLarge { op, shape },
            Kernel::Overflow { op, element, found } => {
                let dtype = DType::named(element);
                Self::Overflow { op, dtype, found }
            }
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Hook { source, .. } | Self::SavedTensorHook { source, .. } => Some(&**source),
            _ => None,
        }
    }
}
