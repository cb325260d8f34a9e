//! What errors say.

use std::fmt;
use std::panic::Location;

use super::Error;
use crate::array::DType;

// By hand: a derived one would be compiled again in each crate that shows an error.
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
            Self::Unsupported { op, why } | Self::Panic { op, why } => write!(f, "{op}: {why}"),
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
