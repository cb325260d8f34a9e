//! The signature of an op, for programs that cannot read its Rust.

use crate::array::DType;
use crate::py_layer::shapes::Shapes;

/// The signature of an op.
///
/// ```
/// use autograd_core::prelude::*;
///
/// #[py_layer(no_grad, export, shapes(x: [n, m] -> [m, n]))]
/// impl Transposed {
///     fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         x.t()
///     }
/// }
///
/// let of = Transposed::EXPORT.description();
/// assert_eq!((of.name, of.parameters.len(), of.outputs.len()), ("Transposed", 1, 1));
/// assert!(!of.has_backward && !of.is_formula);
/// assert_eq!(of.shapes.unwrap().to_string(), "x: [n, m] -> [m, n]");
/// ```
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
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::prelude::*;
///
/// #[py_layer(elementwise, export)]
/// impl Scale {
///     fn forward(x: Real, #[default(2.0)] by: f64) -> Real {
///         x * by
///     }
/// }
///
/// let of = Scale::EXPORT.description().parameters;
/// assert_eq!(of[0].elements, [DType::Float32, DType::Float64]);
/// assert!(of[0].differentiable && !of[1].differentiable);
/// assert_eq!((of[1].name, of[1].rust, of[1].default), ("by", "f64", Some("2.0")));
/// ```
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
///
/// ```
/// use autograd_core::host::Form;
/// use autograd_core::prelude::*;
///
/// #[py_layer(no_grad, export)]
/// impl Joined {
///     fn forward(_: &mut ForwardContext<Self>, xs: &[&Tensor<f64>], by: f64) -> Tensor<f64> {
///         Tensor::concat(xs, 0) * by
///     }
/// }
///
/// let of = Joined::EXPORT.description().parameters;
/// assert_eq!([of[0].form, of[1].form], [Form::List, Form::Plain]);
/// ```
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
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::prelude::*;
///
/// #[py_layer(no_grad, export)]
/// impl Parts {
///     fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<bool>) {
///         (x.abs(), x.lt_scalar(0.0))
///     }
/// }
///
/// let of = Parts::EXPORT.description().outputs;
/// assert_eq!((of[1].rust, of[1].is_list), ("Tensor<bool>", false));
/// assert_eq!(of[1].elements, [DType::Bool]);
/// ```
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
