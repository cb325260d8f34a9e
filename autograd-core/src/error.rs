//! The one error type: a variant for each contract that can be broken.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::path::PathBuf;
use std::sync::Arc;

use crate::array::DType;

/// The enum of errors, each with its message; a variant lists which of `op` and `location` it has.
macro_rules! errors {
    (
        $(#[$meta:meta])*
        pub enum Error {$(
            $(#[$doc:meta])*
            $variant:ident $(($op:ident $(, $location:ident)?))? {
                $($(#[$what:meta])* $field:ident: $type:ty,)*
            } = ($($words:tt)*),
        )*}
    ) => {
        $(#[$meta])*
        pub enum Error {$(
            $(#[$doc])*
            $variant {
                $(/** The op, or the function that was called. */ $op: &'static str,)?
                $($(#[$what])* $field: $type,)*
                $($(/** Where the op was called. */ $location: &'static Location<'static>,)?)?
            },
        )*}

        impl fmt::Display for Error {
            #[allow(unused_variables, reason = "not every field is part of the words")]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant { $($op, $($location,)?)? $($field),* } => write!(f, $($words)*),)*
                }
            }
        }
    };
}

errors! {
    /// An error, with the op, the parameter, what was expected and what was found. Every fallible call of
    /// this crate returns this type. Tensors stay usable, and a gradient is written whole or not at all.
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
    /// `Debug` writes the same text, for `unwrap()` and a `main` that returns a `Result`:
    ///
    /// ```
    /// let error = autograd_core::Tensor::from([1.0]).try_reshape([2, 2]).unwrap_err();
    /// assert_eq!(format!("{error:?}"), error.to_string());
    /// ```
    ///
    /// An error of your own becomes one by [`Error::custom`], or by `?` if it is a [`CustomError`].
    #[derive(Clone)]
    #[non_exhaustive]
    pub enum Error {
        /// A parameter has another shape than its op takes.
        Shape(op) {
            /** The parameter. */ parameter: String,
            /** What the op takes there. */ expected: String,
            /** The shape that was given. */ found: Vec<usize>,
        } = ("{op}: {} must be {expected}, found shape {found:?}", Parameter(parameter)),
        /// A tensor does not fit the `shapes(..)` of its op.
        Shapes(op) {
            /** The input, or the output of forward. */ parameter: String,
            /** Which lengths contradict each other. */ why: String,
        } = ("{op}: {why}"),
        /// Two shapes have no common shape to which both could be broadcast.
        Broadcast(op) {
            /** Shape of the left operand. */ left: Vec<usize>,
            /** Shape of the right operand. */ right: Vec<usize>,
        } = ("{op}: shapes {left:?} and {right:?} cannot be broadcast together"),
        /// An axis does not exist, or is given twice.
        Axis(op) {
            /** The axis as it was given. */ axis: isize,
            /** How many axes the tensor has. */ rank: usize,
            /** Why it cannot be used. */ why: &'static str,
        } = ("{op}: axis {axis} {why} (the tensor has {})", Plural(*rank, "axis", "axes")),
        /// An index is outside its axis.
        Index(op) {
            /** The parameter. */ parameter: String,
            /** The index. */ index: i64,
            /** Length of the axis. */ len: usize,
        } = ("{op}: {} is {index}, outside an axis of length {len}", Parameter(parameter)),
        /// A plain value (a count, a stride, a probability ..) that its op cannot take.
        Value(op) {
            /** The parameter. */ parameter: &'static str,
            /** What the op takes. */ expected: String,
            /** What was given. */ found: String,
        } = ("{op}: {} must be {expected}, found {found}", Parameter(parameter)),
        /// A shape whose elements cannot be counted or held in memory.
        TooLarge(op) {
            /** The shape. */ shape: Vec<usize>,
        } = ("{op}: a tensor of shape {shape:?} is too large for this machine"),
        /// A sum or product of integers that the element type cannot hold.
        Overflow(op) {
            /** The element type. */ dtype: DType,
            /** The number, if it is known; of several the first that was found. */
            found: Option<String>,
        } = (
            "{op}: a result {}is outside of {dtype}{}",
            found.as_ref().map_or(String::new(), |found| format!("of {found} ")),
            wider(*dtype)
        ),
        /// An element type other than the expected one.
        ElementType(op) {
            /** The parameter. */ parameter: String,
            /** The element type asked for. */ expected: DType,
            /** The element type that was found. */ found: DType,
        } = ("{op}: {} must have element type {expected}, found {found}", Parameter(parameter)),
        /// A seed (the gradient a backward starts from) of another shape than its output.
        SeedShape(op) {
            /** The output: the op that it came from and where that was called. */ output: String,
            /** Shape of the output. */ expected: Vec<usize>,
            /** Shape of the seed. */ found: Vec<usize>,
        } = ("{op}: the seed for {output} must have its shape {expected:?}, found {found:?}"),
        /// There is no gradient.
        NoGradient(op) {
            /** Shape of the tensor. */ shape: Vec<usize>,
            /// The explanation; see [`explain`](crate::explain()).
            why: String,
        } = ("{op}: the tensor of shape {shape:?} has {why}"),
        /// No seed for an output that does not have exactly one element.
        SeedMissing(op) {
            /** The output: the op that it came from and where that was called. */ output: String,
            /** Shape of the output. */ found: Vec<usize>,
            /** How a seed is given to this call, if it takes one. */ with: Option<&'static str>,
        } = (
            "{op}: {output} has shape {found:?}, {}",
            match with {
                Some(with) => format!(
                    "so it needs a seed: give one with `{with}`, or reduce the output to one element \
                     first, with `sum()` or `mean()`"
                ),
                None => "but must have one element: reduce it with `sum()` or `mean()`".to_owned(),
            }
        ),
        /// A wrong number of seeds, outputs or the like.
        Count(op) {
            /** What is counted, a plural. */ what: String,
            /** How many were needed. */ expected: usize,
            /** How many there were. */ found: usize,
        } = ("{op}: expected {}, found {found}", Counted(*expected, what)),
        /// The same tensor twice, where each may occur once.
        Duplicate(op) {
            /** The parameter, with the position of the second one. */ parameter: String,
        } = ("{op}: `{parameter}` was given before; each may be given once"),
        /// The graph was freed by an earlier backward, perhaps one that failed.
        GraphFreed(op, location) {} = (
            "{op} (called at {location}): its graph was freed by an earlier backward (one that failed \
             frees it too); compute the output again, or keep the graph in that call: \
             `backward_options(BackwardOptions::new().retain_graph(true))`"
        ),
        /// A saved tensor was changed in place between its saving and its use.
        SavedTensorChanged(op, location) {
            /** The saved tensor, by name or position. */ parameter: String,
            /** Version when saved. */ saved: u32,
            /** Version when needed. */ found: u32,
        } = (
            "{op} (called at {location}): {} was changed in place after it was saved for backward \
             (version {saved} then, {found} now); change a `copy()` of it instead",
            Parameter(parameter)
        ),
        /// A hook on a gradient, or a callback of [`after_backward`](crate::after_backward), returned an error.
        /// No gradient was written, except if the callback ran after the backward. `op` is the op whose
        /// gradients the hook sees, `a leaf`, or `backward`. The user's error is the
        /// [`source`](StdError::source), which can be downcast; its message is part of this one.
        Hook(op) {
            /** Which hook. */ hook: String,
            /** Where it was registered. */ registered: &'static Location<'static>,
            /** Where the op was called. */ location: Option<&'static Location<'static>>,
            /** What the hook returned. */ source: Arc<dyn StdError + Send + Sync>,
        } = ("{op}{}: the {hook} (registered at {registered}) failed: {source}", called(*location)),
        /// A hook returned a gradient of another shape or element type than the one that it received, or a
        /// wrong number of gradients. `op` is the op whose gradients the hook sees, or `a leaf`.
        HookGradient(op) {
            /** Which hook. */ hook: &'static str,
            /** Where it was registered. */ registered: &'static Location<'static>,
            /** Which gradient. */ parameter: String,
            /** What the hook may return. */ expected: String,
            /** What it returned. */ found: String,
            /** Where the op was called. */ location: Option<&'static Location<'static>>,
        } = (
            "{op}{}: the {hook} (registered at {registered}) must give {expected} for {parameter}, \
             found {found}",
            called(*location)
        ),
        /// A pack or unpack hook ([`saved_tensors_hooks`](crate::saved_tensors_hooks)) failed.
        SavedTensorHook(op, location) {
            /** The saved tensor, by name or position. */ parameter: String,
            /** Which hook. */ hook: &'static str,
            /** What it returned; its message is part of this error's. */
            source: Arc<dyn StdError + Send + Sync>,
        } = (
            "{op} (called at {location}): the {hook} hook failed for {}: {source}",
            Parameter(parameter)
        ),
        /// An unpack hook returned a tensor of another shape or element type than was packed.
        Unpacked(op, location) {
            /** The saved tensor, by name or position. */ parameter: String,
            /** Shape and element type that were packed. */ expected: (Vec<usize>, DType),
            /** Shape and element type that came back. */ found: (Vec<usize>, DType),
        } = (
            "{op} (called at {location}): the unpack hook must give {} back as it was packed, with \
             shape {:?} and element type {}, found shape {:?} and element type {}",
            Parameter(parameter), expected.0, expected.1, found.0, found.1
        ),
        /// A gradient returned by `backward` has another shape than its input.
        GradientShape(op, location) {
            /** The input. */ parameter: String,
            /** Shape of the input. */ expected: Vec<usize>,
            /** Shape of the gradient. */ found: Vec<usize>,
            /** The input's shape in the op's `shapes(..)`, if it has one. */ line: Option<Box<str>>,
        } = (
            "{op} (called at {location}): backward returned a gradient of shape {found:?} for \
             `{parameter}`, which has shape {expected:?}{}",
            line.as_ref().map_or(String::new(), |line| format!(" = {line}"))
        ),
        /// `backward` returned no gradient for an input that needs one, though all outputs have gradients.
        GradientMissing(op, location) {
            /** The input. */ parameter: String,
        } = (
            "{op} (called at {location}): backward returned no gradient for `{parameter}`, which needs \
             one (stop_gradient is false); return zeros if it is zero"
        ),
        /// `backward` returned a wrong number of gradients for a list.
        GradientCount(op, location) {
            /** The list input. */ parameter: String,
            /** Length of the list. */ expected: usize,
            /** Number of gradients. */ found: usize,
        } = (
            "{op} (called at {location}): backward returned {} for the list `{parameter}`, which \
             has {}",
            Plural(*found, "gradient", "gradients"), Plural(*expected, "tensor", "tensors")
        ),
        /// A tangent returned by `jvp` has another shape than its output.
        TangentShape(op, location) {
            /** The output, by position. */ output: String,
            /** Shape of the output. */ expected: Vec<usize>,
            /** Shape of the tangent. */ found: Vec<usize>,
        } = (
            "{op} (called at {location}): jvp returned a tangent of shape {found:?} for {output}, \
             which has shape {expected:?}"
        ),
        /// `jvp` returned a wrong number of tangents for a list.
        TangentCount(op, location) {
            /** The output, by position. */ output: String,
            /** Length of the list. */ expected: usize,
            /** Number of tangents. */ found: usize,
        } = (
            "{op} (called at {location}): jvp returned {} for {output}, a list of {}",
            Plural(*found, "tangent", "tangents"), Plural(*expected, "tensor", "tensors")
        ),
        /// A second derivative through a saved value whose own gradient is not known.
        SavedIntermediate(op, location) {
            /** The saved tensor, by position. */ parameter: String,
        } = (
            "{op} (called at {location}): {parameter} is neither an input nor an output of the op, so \
             its own gradient is not known and a second derivative through it would be wrong; save an \
             input or an output and compute the rest in backward, or save a constant as integers or bools"
        ),
        /// An op does not support a request (a gradient of an op without one ..).
        Unsupported(op) {
            /** What was asked and what can be done instead. */ why: String,
        } = ("{op}: {why}"),
        /// User code panicked on a thread that works for the caller.
        Panic(op) {
            /** What panicked, and its message. */ why: String,
        } = ("{op}: {why}"),
        /// The context of a custom op was used incorrectly.
        Context(op) {
            /** The context call. */ call: &'static str,
            /** The rule and how it was broken. */ why: String,
        } = ("{op}: `{call}`: {why}"),
        /// An input of `grad` from which no output was computed.
        Unused {
            /** Position of the input. */ position: usize,
        } = (
            "grad: input {position} was not used to compute the outputs; allow that with \
             `allow_unused`"
        ),
        /// A gradient differs from finite differences; see [`gradcheck()`](crate::gradcheck()).
        GradientWrong(op) {
            /** Which input was moved, and how. */ direction: String,
            /** The slope in this direction by backward. */ backward: f64,
            /** The slope by finite differences. */ differences: f64,
            /** Whether the function has a kink or a jump there. */ not_differentiable: bool,
        } = (
            "{op}: {direction}: the slope is {backward} by backward and {differences} by finite \
             differences{}",
            kink(*not_differentiable)
        ),
        /// A backward of an elementwise op that is not the derivative of its forward.
        BackwardDiffers(op) {
            /** The input whose gradient it is. */ input: &'static str,
            /** The inputs and the outputs' gradients at the point. */ point: String,
            /** What backward gives. */ backward: f64,
            /** What the derivative of forward gives. */ derivative: f64,
        } = (
            "{op}: the gradient of `{input}` at {point} is {backward} by backward, and {derivative} by \
             the derivative of forward; if backward is not meant to be the derivative, mark the op `surrogate`"
        ),
        /// A slope by forward mode is wrong; see [`jvpcheck()`](crate::jvpcheck()).
        JvpWrong(op) {
            /** Which input was moved, and how. */ direction: String,
            /** The slope in this direction by forward mode. */ jvp: f64,
            /** The slope it is checked against. */ expected: f64,
            /** Where that comes from: finite differences, or backward. */ by: &'static str,
            /** Whether the function has a kink or a jump there. */ not_differentiable: bool,
        } = (
            "{op}: {direction}: the slope is {jvp} by jvp and {expected} by {by}{}",
            kink(*not_differentiable)
        ),
        /// The first NaN or infinity; see [`detect_anomaly`](crate::detect_anomaly).
        NotFinite(op, location) {
            /** What was not finite, how often and where. */ found: String,
            /** What went into it, with ranges. */ inputs: Vec<String>,
        } = ("{op} (called at {location}): {found}{}", lines(inputs)),
        /// One of the [`solvers`](crate::solvers) did not reach its tolerance.
        NotConverged(op) {
            /** What did not converge, and after how many steps. */ why: String,
        } = ("{op}: {why}"),
        /// Named tensors that do not match those of a model; all differences are reported at once.
        StateDict(op) {
            /** Names that were needed and not found. */ missing: Vec<String>,
            /** Names that were found and are not needed. */ unexpected: Vec<String>,
            /** Tensors of another shape or element type, in words. */ different: Vec<String>,
        } = (
            "{op}: the tensors are not those that are needed{}{}{}",
            named("missing", missing), named("not needed", unexpected), lines(different)
        ),
        /// A file that could not be read or written, or whose contents are malformed.
        File(op) {
            /** The file, unless it was given as bytes. */ path: Option<PathBuf>,
            /** [`InvalidData`](io::ErrorKind::InvalidData) where the contents are malformed, else what the
            operating system said. */
            kind: io::ErrorKind,
            /** What is wrong. */ why: String,
        } = (
            "{op}: {}{why}",
            path.as_ref().map_or(String::new(), |path| format!("{}: ", path.display()))
        ),
        /// The backward or the `jvp` of a custom op returned an error.
        User(op, location) {
            /** Which user function. */ function: &'static str,
            /** Its message. */ message: String,
            /** The error itself, if it is of this type, a box, or a `std::error::Error` that is `Send`, `Sync` and
            `'static`: the [`source`](StdError::source), which can be downcast. */
            source: Source,
        } = ("{op} (called at {location}): {function} failed: {message}"),
        /// An error of the user's own, by [`Error::custom`].
        Custom {
            /** The error: the [`source`](StdError::source), which can be downcast. Its message is that of
            this one. */
            source: Arc<dyn StdError + Send + Sync>,
        } = ("{source}"),
        /// A rule of [programs](crate::static_graph) was broken while one was built.
        Program {
            /** The operator, or the call. */ op: String,
            /** The rule and how it was broken, with the variables. */ why: String,
            /** The line that built it. */ location: String,
        } = ("{op} (built at {location}): {why}"),
        /// An operator of a program failed while the program ran. No parameter was changed.
        Operator {
            /** The operator. */ op: String,
            /** What happened. */ why: String,
            /** The error itself, if an op or a user function returned one: the [`source`](StdError::source), which
            can be downcast. It is the user's own error, if there is one. */
            source: Source,
            /** The line that built the operator. */ location: String,
        } = ("{op} (built at {location}): {why}"),
        /// An argument or a requested result of a run does not fit its program. Nothing was run.
        Run {
            /** The variable. */ variable: String,
            /** What is wrong. */ why: String,
        } = ("run: `{variable}` {why}"),
    }
}

/// The result of a fallible call of this crate.
///
/// ```
/// use autograd_core::{Result, Tensor};
///
/// fn slope_of_square(x: f64) -> Result<f64> {
///     let x = Tensor::from(x);
///     x.set_stop_gradient(false);
///     x.square().backward()?;
///     Ok(x.try_grad()?.item())
/// }
///
/// assert_eq!(slope_of_square(3.0)?, 6.0);
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error that is kept as the [`source`](StdError::source) of another one.
pub(crate) type Source = Option<Arc<dyn StdError + Send + Sync>>;

/// The result of a hook. `?` converts any error, which becomes the source of [`Error::Hook`] or
/// [`Error::SavedTensorHook`].
///
/// ```
/// use autograd_core::{HookResult, Tensor};
///
/// fn check(grad: &Tensor<f64>) -> HookResult<Option<Tensor<f64>>> {
///     if grad.item().is_finite() { Ok(None) } else { Err("the slope is infinite".into()) }
/// }
///
/// let x = Tensor::from(0.0);
/// x.set_stop_gradient(false);
/// x.register_hook(check)?;
/// assert!(x.sqrt().backward().unwrap_err().to_string().contains("the slope is infinite"));
/// assert!(x.exp().backward().is_ok());
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub type HookResult<T> = Result<T, Box<dyn StdError + Send + Sync>>;

// The error of a hook is only read.
impl UnwindSafe for Error {}
impl RefUnwindSafe for Error {}

#[doc(hidden)]
#[diagnostic::do_not_recommend]
impl From<autograd_kernels::Error> for Error {
    #[cold]
    fn from(error: autograd_kernels::Error) -> Self {
        use autograd_kernels::Error as Kernel;
        match error {
            Kernel::Broadcast { op, left, right } => Self::Broadcast { op, left, right },
            Kernel::Axis { op, axis, rank, why } => Self::Axis { op, axis, rank, why },
            Kernel::TooLarge { op, shape } => Self::TooLarge { op, shape },
            Kernel::Overflow { op, element, found } => {
                let dtype =
                    DType::named(element).unwrap_or_else(|| unreachable!("element type {element}"));
                Self::Overflow { op, dtype, found }
            }
        }
    }
}

// Written by hand: a derived impl would be instantiated in each crate that prints an error.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.kept().map(|source| &**source as _)
    }
}

/// An error type that `?` converts to [`Error`], as [`Error::custom`] does. A boxed error is one; yours is by one
/// line:
///
/// ```
/// # #[derive(Debug)] struct NoData;
/// # impl std::fmt::Display for NoData {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("no data") }
/// # }
/// # impl std::error::Error for NoData {}
/// impl autograd_core::CustomError for NoData {}
///
/// fn load() -> autograd_core::Result<()> {
///     Err(NoData)?
/// }
///
/// use std::error::Error;
/// let error = load().unwrap_err();
/// assert!(error.source().is_some_and(|source| source.is::<NoData>()));
/// ```
#[diagnostic::on_unimplemented(
    label = "write `.map_err(autograd_core::Error::custom)?`, or `impl autograd_core::CustomError` for the error"
)]
pub trait CustomError: Into<Box<dyn StdError + Send + Sync>> {}

#[diagnostic::do_not_recommend]
impl CustomError for Box<dyn StdError + Send + Sync> {}

impl<E: CustomError> From<E> for Error {
    #[cold]
    fn from(error: E) -> Self {
        Self::custom(error)
    }
}

impl Error {
    /// An error of your own as an [`Error`]: a text, or any error, which becomes the
    /// [`source`](StdError::source). An error of this type, in a box too, is returned as it is.
    ///
    /// ```
    /// use autograd_core::{Error, Result};
    ///
    /// fn rate(text: &str) -> Result<f64> {
    ///     let rate: f64 = text.parse().map_err(Error::custom)?;
    ///     if rate > 0.0 { Ok(rate) } else { Err(Error::custom(format!("a rate of {rate}"))) }
    /// }
    ///
    /// assert_eq!(rate("-1").unwrap_err().to_string(), "a rate of -1");
    /// assert_eq!(rate("a").unwrap_err().to_string(), "invalid float literal");
    /// ```
    ///
    /// `?` alone converts a [`CustomError`].
    #[cold]
    pub fn custom(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        match error.into().downcast::<Self>() {
            Ok(own) => *own,
            Err(error) => Self::Custom { source: error.into() },
        }
    }

    /// The error that this one keeps as its source.
    fn kept(&self) -> Option<&Arc<dyn StdError + Send + Sync>> {
        match self {
            Self::User { source, .. } | Self::Operator { source, .. } => source.as_ref(),
            Self::Hook { source, .. }
            | Self::SavedTensorHook { source, .. }
            | Self::Custom { source } => Some(source),
            _ => None,
        }
    }

    /// What an error around this one keeps as its source: the user's own error, if there is one.
    pub(crate) fn into_source(self) -> Arc<dyn StdError + Send + Sync> {
        self.kept().cloned().unwrap_or_else(|| Arc::new(self))
    }

    /// The error that the backward or the `jvp` of a custom op returned.
    #[cold]
    pub(crate) fn user<E: fmt::Display + 'static>(
        op: &'static str,
        location: &'static Location<'static>,
        function: &'static str,
        error: E,
        source: impl FnOnce(E) -> Source,
    ) -> Self {
        let (message, mut error) = (error.to_string(), Some(error));
        let any: &mut dyn Any = &mut error;
        let source = if let Some(own) = any.downcast_mut::<Option<Self>>() {
            own.take().map(Self::into_source)
        } else if let Some(boxed) = any.downcast_mut::<Option<Box<dyn StdError + Send + Sync>>>() {
            boxed.take().map(Arc::from)
        } else {
            error.and_then(source)
        };
        Self::User { op, function, message, source, location }
    }

    #[cold]
    pub(crate) fn shape(
        op: &'static str,
        parameter: impl Into<String>,
        expected: impl Into<String>,
        found: &[usize],
    ) -> Self {
        let (parameter, expected) = (parameter.into(), expected.into());
        Self::Shape { op, parameter, expected, found: found.to_vec() }
    }

    #[cold]
    pub(crate) fn value(
        op: &'static str,
        parameter: &'static str,
        expected: impl Into<String>,
        found: impl fmt::Display,
    ) -> Self {
        Self::Value { op, parameter, expected: expected.into(), found: found.to_string() }
    }

    /// The same error with `called`, the function that the user called, as its op.
    pub(crate) fn called(mut self, called: &'static str) -> Self {
        match &mut self {
            Self::Shape { op, .. }
            | Self::Broadcast { op, .. }
            | Self::Axis { op, .. }
            | Self::Index { op, .. }
            | Self::Value { op, .. }
            | Self::TooLarge { op, .. }
            | Self::Overflow { op, .. }
            | Self::Count { op, .. } => *op = called,
            _ => {}
        }
        self
    }

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

/// The type that a result which does not fit may be cast to.
fn wider(dtype: DType) -> String {
    let range = dtype.range().map(|[low, high]| format!(", which holds {low} to {high}"));
    let wider = if dtype == DType::Int64 { "f64" } else { "i64" };
    format!("{}; call `.cast::<{wider}>()` first", range.unwrap_or_default())
}

fn kink(not_differentiable: bool) -> &'static str {
    if not_differentiable { "; the function is not differentiable here" } else { "" }
}

/// ` (called at src/main.rs:7:13)`, if there is a location.
fn called(location: Option<&Location<'_>>) -> String {
    location.map_or(String::new(), |location| format!(" (called at {location})"))
}

fn lines(texts: &[String]) -> String {
    texts.iter().map(|text| format!("\n  {text}")).collect()
}

fn named(what: &str, names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("\n  {what}: `{}`", names.join("`, `")) }
}

/// The tensor that a method was called on, in errors: the caller wrote no name for it.
pub(crate) const RECEIVER: &str = "the tensor";

/// A name in backticks; a phrase as it is: `weight`, `index[1, 0]`, the tensor.
struct Parameter<'a>(&'a str);

impl fmt::Display for Parameter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.split('[').next().unwrap_or_default();
        if name.contains(' ') { f.write_str(self.0) } else { write!(f, "`{}`", self.0) }
    }
}

/// `1 axis`, `2 axes`.
pub(crate) struct Plural<N>(pub(crate) N, pub(crate) &'static str, pub(crate) &'static str);

impl<N: fmt::Display> fmt::Display for Plural<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.to_string();
        write!(f, "{count} {}", if count == "1" { self.1 } else { self.2 })
    }
}

/// `1 axis in the index`, `2 axes in the index`: the text begins with a plural, or with `or more`.
struct Counted<'a>(usize, &'a str);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, what) = self;
        let end = what.find(|c: char| !c.is_alphabetic()).unwrap_or(what.len());
        let (word, rest) = what.split_at(end);
        match (count, word) {
            (1, "axes") => write!(f, "1 axis{rest}"),
            (1, word) => write!(f, "1 {}{rest}", word.strip_suffix('s').unwrap_or(word)),
            _ => write!(f, "{count} {what}"),
        }
    }
}
