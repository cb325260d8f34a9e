//! Parts of error messages.

use std::fmt;
use std::panic::Location;

use crate::array::DType;

/// The type that a result which does not fit may be cast to.
pub(super) fn wider(dtype: DType) -> String {
    let range = dtype.range().map(|[low, high]| format!(", which holds {low} to {high}"));
    let wider = if dtype == DType::Int64 { "f64" } else { "i64" };
    format!("{}; call `.cast::<{wider}>()` first", range.unwrap_or_default())
}

pub(super) fn kink(not_differentiable: bool) -> &'static str {
    if not_differentiable { "; the function is not differentiable here" } else { "" }
}

/// ` (called at src/main.rs:7:13)`, if there is a location.
pub(super) fn called(location: Option<&Location<'_>>) -> String {
    location.map_or(String::new(), |location| format!(" (called at {location})"))
}

pub(super) fn lines(texts: &[String]) -> String {
    texts.iter().map(|text| format!("\n  {text}")).collect()
}

pub(super) fn named(what: &str, names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("\n  {what}: `{}`", names.join("`, `")) }
}

/// The tensor that a method was called on, in errors: the caller wrote no name for it.
pub(crate) const RECEIVER: &str = "the tensor";

/// A name in backticks; a phrase as it is: `weight`, `index[1, 0]`, the tensor.
pub(super) struct Parameter<'a>(pub(super) &'a str);

impl fmt::Display for Parameter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.split('[').next().unwrap_or_default();
        if name.contains(' ') { f.write_str(self.0) } else { write!(f, "`{}`", self.0) }
    }
}

/// `1 axis`, `2 axes`.
pub(crate) struct Plural(pub(crate) usize, pub(crate) &'static str, pub(crate) &'static str);

impl fmt::Display for Plural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, if self.0 == 1 { self.1 } else { self.2 })
    }
}
