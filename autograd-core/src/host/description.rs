//! The signature of an op, for programs that cannot read its Rust.

use crate::array::DType;
use crate::py_layer::shapes::Shapes;

/// The signature of an op. The [module](super) has an example.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "the macro writes it")]
pub struct Description {
    /// The op's name.
    pub name: &'static str,
    /// Its documentation.
    pub docs: &'static str,
    /// The parameters of forward, in their order.
    pub parameters: &'static [Parameter],
    /// The outputs of forward, in their order.
    pub outputs: &'static [Output],
    /// Whether the op keeps something for backward that is not a tensor.
    pub keeps_attrs: bool,
    /// Whether the op has a backward.
    pub has_backward: bool,
    /// Whether the op is a formula, which is computed element by element.
    pub is_formula: bool,
    /// The shapes of its tensors, if it has a `shapes(..)`.
    pub shapes: Option<&'static Shapes>,
}

/// A parameter of an op.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "the macro writes it")]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What a host passes.
    pub form: Form,
    /// Its type in Rust.
    pub rust: &'static str,
    /// The element types that its tensors may have; none for a plain parameter.
    pub elements: &'static [DType],
    /// Whether backward returns a gradient for it.
    pub differentiable: bool,
    /// Its default, as it is written in Rust.
    pub default: Option<&'static str>,
}

/// What a host passes for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the macro writes it")]
pub enum Form {
    /// A tensor.
    One,
    /// A tensor, or none.
    Optional,
    /// A list of tensors.
    List,
    /// A number, a bool or a text.
    Plain,
}

/// An output of an op.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "the macro writes it")]
pub struct Output {
    /// Its type in Rust.
    pub rust: &'static str,
    /// Whether it is a list of tensors.
    pub is_list: bool,
    /// The element types that it may have.
    pub elements: &'static [DType],
}
