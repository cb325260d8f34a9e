//! The one error type: a variant for each contract that can be broken.

use std::error::Error as StdError;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, io};

use crate::array::DType;

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

// By hand: a derived one would be compiled again in each crate that shows an error.
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

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape { op, parameter, expected, found } => {
                let parameter = Parameter(parameter);
                write!(f, "{op}: {parameter} must be {expected}, found shape {found:?}")
            }
            Self::Broadcast { op, left, right } => {
                write!(f, "{op}: shapes {left:?} and {right:?} cannot be broadcast together")
            }
            Self::Axis { op, axis, rank, why } => {
                write!(
                    f,
                    "{op}: axis {axis} {why} (the tensor has {})",
                    Plural(*rank, "axis", "axes")
                )
            }
            Self::Index { op, parameter, index, len } => {
                let parameter = Parameter(parameter);
                write!(f, "{op}: {parameter} is {index}, outside an axis of length {len}")
            }
            Self::Value { op, parameter, expected, found } => {
                write!(f, "{op}: {} must be {expected}, found {found}", Parameter(parameter))
            }
            Self::TooLarge { op, shape } => {
                write!(f, "{op}: a tensor of shape {shape:?} is too large for this machine")
            }
            Self::Overflow { op, dtype, found } => {
                write!(f, "{op}: a result ")?;
                if let Some(found) = found {
                    write!(f, "of {found} ")?;
                }
                write!(f, "is outside of {dtype}")?;
                if let Some([low, high]) = dtype.range() {
                    write!(f, ", which holds {low} to {high}")?;
                }
                let wider = if *dtype == DType::Int64 { "f64" } else { "i64" };
                write!(f, "; call `.cast::<{wider}>()` first")
            }
            Self::ElementType { op, parameter, expected, found } => {
                let parameter = Parameter(parameter);
                write!(f, "{op}: {parameter} must have element type {expected}, found {found}")
            }
            Self::SeedShape { op, output, expected, found } => write!(
                f,
                "{op}: the seed for {output} must have its shape {expected:?}, found {found:?}"
            ),
            Self::NoGradient { op, shape, why } => {
                write!(f, "{op}: the tensor of shape {shape:?} has {why}")
            }
            Self::SeedMissing { op, output, found, with: Some(with) } => write!(
                f,
                "{op}: {output} has shape {found:?}, so it needs a seed: give one with `{with}`, \
                 or reduce the output to one element first, with `sum()` or `mean()`"
            ),
            Self::SeedMissing { op, output, found, with: None } => write!(
                f,
                "{op}: {output} has shape {found:?}, but must have one element: reduce it with \
                 `sum()` or `mean()`"
            ),
            Self::Count { op, what, expected, found } => {
                write!(f, "{op}: expected {expected} {what}, found {found}")
            }
            Self::Duplicate { op, parameter } => {
                write!(f, "{op}: `{parameter}` is the same tensor as an earlier one")
            }
            Self::GraphFreed { op, location } => write!(
                f,
                "{op} (called at {location}): its graph was freed by an earlier backward; \
                 keep it with `retain_graph` in that first call"
            ),
            Self::SavedTensorChanged { op, parameter, saved, found, location } => write!(
                f,
                "{op} (called at {location}): `{parameter}` was changed in place after it was \
                 saved for backward (version {saved} then, {found} now); change a `copy()` of it instead"
            ),
            Self::Hook { op, hook, registered, location, source } => {
                called(f, op, *location)?;
                write!(f, ": the {hook} (registered at {registered}) failed: {source}")
            }
            Self::HookGradient { op, hook, registered, parameter, expected, found, location } => {
                called(f, op, *location)?;
                write!(
                    f,
                    ": the {hook} (registered at {registered}) must give {expected} for \
                     {parameter}, found {found}"
                )
            }
            Self::SavedTensorHook { op, parameter, hook, source, location } => write!(
                f,
                "{op} (called at {location}): the {hook} hook failed for `{parameter}`: {source}"
            ),
            Self::Unpacked { op, parameter, expected, found, location } => write!(
                f,
                "{op} (called at {location}): the unpack hook must give `{parameter}` back as it \
                 was packed, with shape {:?} and element type {}, found shape {:?} and element \
                 type {}",
                expected.0, expected.1, found.0, found.1
            ),
            Self::GradientShape { op, parameter, expected, found, location } => write!(
                f,
                "{op} (called at {location}): backward returned a gradient of shape {found:?} \
                 for `{parameter}`, which has shape {expected:?}"
            ),
            Self::GradientMissing { op, parameter, location } => write!(
                f,
                "{op} (called at {location}): backward returned no gradient for `{parameter}`, \
                 which needs one (stop_gradient is false); return zeros if it is zero"
            ),
            Self::GradientCount { op, parameter, expected, found, location } => write!(
                f,
                "{op} (called at {location}): backward returned {} for the list `{parameter}`, \
                 which has {}",
                Plural(*found, "gradient", "gradients"),
                Plural(*expected, "tensor", "tensors")
            ),
            Self::TangentShape { op, output, expected, found, location } => write!(
                f,
                "{op} (called at {location}): jvp returned a tangent of shape {found:?} for \
                 {output}, which has shape {expected:?}"
            ),
            Self::TangentCount { op, output, expected, found, location } => write!(
                f,
                "{op} (called at {location}): jvp returned {} for {output}, a list of {}",
                Plural(*found, "tangent", "tangents"),
                Plural(*expected, "tensor", "tensors")
            ),
            Self::SavedIntermediate { op, parameter, location } => write!(
                f,
                "{op} (called at {location}): {parameter} is neither an input nor an output of \
                 the op, so its own gradient is not known and a second derivative through it \
                 would be wrong; save an input or an output and compute the rest in backward"
            ),
            Self::Unsupported { op, why } => write!(f, "{op}: {why}"),
            Self::Context { op, call, why } => write!(f, "{op}: `{call}`: {why}"),
            Self::Unused { position } => write!(
                f,
                "grad: input {position} was not used to compute the outputs; \
                 allow that with `allow_unused`"
            ),
            Self::GradientWrong { op, direction, backward, differences, not_differentiable } => {
                write!(
                    f,
                    "{op}: {direction}: the slope is {backward} by backward and {differences} by \
                     finite differences"
                )?;
                kink(f, *not_differentiable)
            }
            Self::JvpWrong { op, direction, jvp, expected, by, not_differentiable } => {
                write!(f, "{op}: {direction}: the slope is {jvp} by jvp and {expected} by {by}")?;
                kink(f, *not_differentiable)
            }
            Self::BackwardDiffers { op, input, point, backward, derivative } => write!(
                f,
                "{op}: the gradient of `{input}` at {point} is {backward} by backward, and \
                 {derivative} by the derivative of forward"
            ),
            Self::NotFinite { op, found, inputs, location } => {
                write!(f, "{op} (called at {location}): {found}")?;
                inputs.iter().try_for_each(|input| write!(f, "\n  {input}"))
            }
            Self::StateDict { op, missing, unexpected, different } => {
                write!(f, "{op}: the tensors are not those that are needed")?;
                for (what, names) in [("missing", missing), ("not needed", unexpected)] {
                    if !names.is_empty() {
                        write!(f, "\n  {what}: `{}`", names.join("`, `"))?;
                    }
                }
                different.iter().try_for_each(|different| write!(f, "\n  {different}"))
            }
            Self::File { op, path: Some(path), why, .. } => {
                write!(f, "{op}: {}: {why}", path.display())
            }
            Self::File { op, path: None, why, .. } => write!(f, "{op}: {why}"),
            Self::User { op, function, message, location } => {
                write!(f, "{op} (called at {location}): {function} failed: {message}")
            }
            Self::Program { op, why, location } | Self::Operator { op, why, location } => {
                write!(f, "{op} (built at {location}): {why}")
            }
            Self::Run { variable, why } => write!(f, "run: `{variable}` {why}"),
        }
    }
}

fn kink(f: &mut fmt::Formatter<'_>, not_differentiable: bool) -> fmt::Result {
    if not_differentiable {
        f.write_str("; the function is not differentiable here")?;
    }
    Ok(())
}

/// `mul (called at src/main.rs:7:13)`, or what has no such place.
fn called(f: &mut fmt::Formatter<'_>, op: &str, location: Option<&Location<'_>>) -> fmt::Result {
    f.write_str(op)?;
    match location {
        Some(location) => write!(f, " (called at {location})"),
        None => Ok(()),
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

/// What errors call the tensor that a method was called on: the caller wrote no name for it.
pub(crate) const RECEIVER: &str = "the tensor";

/// A name in backticks, words as they are: `weight`, `index[1, 0]`, the tensor.
struct Parameter<'a>(&'a str);

impl fmt::Display for Parameter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.split('[').next().unwrap_or_default();
        if name.contains(' ') { f.write_str(self.0) } else { write!(f, "`{}`", self.0) }
    }
}

impl Error {
    /// The same error of `called`, the function that the user called, where another one found it.
    pub(crate) fn called(mut self, called: &'static str) -> Self {
        match &mut self {
            Self::Shape { op, .. }
            | Self::Broadcast { op, .. }
            | Self::Axis { op, .. }
            | Self::Index { op, .. }
            | Self::Value { op, .. }
            | Self::TooLarge { op, .. }
            | Self::Count { op, .. } => *op = called,
            _ => {}
        }
        self
    }

    /// The same error of a layer, whose input is called `x`.
    #[cfg(feature = "nn")]
    pub(crate) fn of_layer(self, layer: &'static str) -> Self {
        let mut error = self.called(layer);
        if let Self::Shape { parameter, .. } = &mut error
            && parameter == RECEIVER
        {
            *parameter = "x".into();
        }
        error
    }
}

/// `1 axis`, `2 axes`.
pub(crate) struct Plural(pub(crate) usize, pub(crate) &'static str, pub(crate) &'static str);

impl fmt::Display for Plural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, if self.0 == 1 { self.1 } else { self.2 })
    }
}
