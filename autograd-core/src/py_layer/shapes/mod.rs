//! The shapes of an op's tensors, as `shapes(..)` says them: a table that calls are checked against.

mod call;
#[cfg_attr(not(feature = "static-graph"), allow(dead_code, reason = "programs read the calls"))]
mod capture;
mod choose;
mod lengths;
mod python;

use std::fmt;

#[doc(hidden)]
pub use crate::array::shape::same;
pub use call::{
    Bound, CallLengths, TensorShapes, are_lengths, check_inputs, check_outputs, length, misfit,
};
#[cfg(feature = "static-graph")]
pub(crate) use capture::Capture;
pub use capture::{Captured, captured};
pub use choose::{Chosen, each_lengths, integer};
pub use lengths::Dims;

/// The shapes of an op's tensors: the table of its `shapes(..)`, as `Op::SHAPES`.
///
/// A call of the op compares its tensors with the table. Programs and other frameworks read it to find the shape of
/// a result without a run of the op. `Display` writes the line as in the attribute.
///
/// ```
/// use autograd_core::prelude::*;
/// use autograd_core::shapes::{Axis, Length};
///
/// #[py_layer(shapes(x: [b.., n], w: [n, m] -> [b.., m]))]
/// impl Product {
///     type Saved = (Tensor<f64>, Tensor<f64>);
///     fn forward(
///         ctx: &mut ForwardContext<Self>,
///         x: &Tensor<f64>,
///         w: &Tensor<f64>,
///     ) -> Tensor<f64> {
///         ctx.save_for_backward((x, w));
///         x.matmul(w)
///     }
///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
///         let (x, w) = ctx.saved_tensor();
///         let rows = |t: &Tensor<f64>| t.reshape([-1, t.shape()[t.shape().len() - 1] as isize]);
///         Grads { x: dy.matmul(&w.t()), w: rows(&x).t().matmul(&rows(dy)) }
///     }
/// }
///
/// assert_eq!(Product::SHAPES.to_string(), "x: [b.., n], w: [n, m] -> [b.., m]");
/// assert_eq!(Product::SHAPES.inputs[1].0, "w");
/// let axes = Product::SHAPES.outputs[0].axes.unwrap();
/// assert!(matches!(axes, [Axis::Many("b", 0), Axis::One(Length::Name("m", 1))]));
/// assert_eq!(Product::SHAPES.names, ["n", "m"]);
///
/// let (x, w) = (Tensor::<f64>::zeros([2, 3]), Tensor::<f64>::zeros([4, 5]));
/// let error = Product::try_apply(&x, &w).unwrap_err().to_string();
/// assert_eq!(error, "Product: axis 0 of `w` is 4, but axis 1 of `x` is 3 (n)");
/// ```
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "the macro writes it")]
pub struct Shapes {
    /// The op's name.
    pub op: &'static str,
    /// The line, as it is written.
    pub line: &'static str,
    /// The tensor inputs of forward in their order, each with its name.
    pub inputs: &'static [(&'static str, TensorShape)],
    /// The names of lengths.
    pub names: &'static [&'static str],
    /// The names of `b..`.
    pub groups: &'static [&'static str],
    /// The number of integer parameters and const parameters that are lengths: the first of `names`.
    pub integers: usize,
    /// The outputs of forward; those that are no tensors say nothing.
    pub outputs: &'static [TensorShape],
}

/// The shape of an input or output: of one tensor, or of each tensor of a list.
///
/// ```
/// use autograd_core::prelude::*;
/// use autograd_core::shapes::{Form, Length};
///
/// #[py_layer(no_grad, shapes(xs: [[n]; 2] -> [n]))]
/// impl Sum {
///     fn forward(_: &mut ForwardContext<Self>, xs: &[&Tensor<f64>]) -> Tensor<f64> {
///         xs[0] + xs[1]
///     }
/// }
///
/// let (_, xs) = Sum::SHAPES.inputs[0];
/// assert_eq!((xs.to_string().as_str(), xs.form), ("[[n]; 2]", Form::List));
/// assert!(matches!(xs.count, Length::Number(2)));
/// ```
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "the macro writes it")]
pub struct TensorShape {
    /// One tensor, one that may be absent, or a list.
    pub form: Form,
    /// The axes; `None` for any shape.
    pub axes: Option<&'static [Axis]>,
    /// The number of tensors of a list; [`Length::Any`] if the line gives none.
    pub count: Length,
}

/// How many tensors an input or output has.
///
/// ```
/// use autograd_core::prelude::*;
/// use autograd_core::shapes::Form;
///
/// #[py_layer(no_grad, shapes(xs: [[n]], bias: [n] -> [n]))]
/// impl Sum {
///     fn forward(
///         _: &mut ForwardContext<Self>,
///         xs: &[&Tensor<f64>],
///         bias: Option<&Tensor<f64>>,
///     ) -> Tensor<f64> {
///         let sum = Tensor::stack(xs, 0).sum_axes(0);
///         bias.map_or(sum.clone(), |bias| &sum + bias)
///     }
/// }
///
/// let forms: Vec<Form> = Sum::SHAPES.inputs.iter().map(|(_, shape)| shape.form).collect();
/// assert_eq!(forms, [Form::List, Form::Optional]);
/// assert_eq!(Sum::SHAPES.outputs[0].form, Form::One);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the macro writes it")]
pub enum Form {
    /// One tensor.
    One,
    /// One tensor, or none.
    Optional,
    /// A list of tensors of one shape.
    List,
}

/// An axis in a line, or several.
///
/// ```
/// use autograd_core::prelude::*;
/// use autograd_core::shapes::{Axis, Length};
///
/// #[py_layer(no_grad, shapes(x: [b.., 3] -> [b..]))]
/// impl Sums {
///     fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         x.sum_axes(-1)
///     }
/// }
///
/// let axes = Sums::SHAPES.inputs[0].1.axes.unwrap();
/// assert!(matches!(axes, [Axis::Many("b", 0), Axis::One(Length::Number(3))]));
/// assert_eq!(axes[0].to_string(), "b..");
/// ```
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_enums, reason = "the macro writes it")]
pub enum Axis {
    /// One axis of this length.
    One(Length),
    /// `b..`: any number of axes. With its position among the groups of the line.
    Many(&'static str, usize),
    /// `a.. & b..`: what broadcasting makes of both.
    Broadcast((&'static str, usize), (&'static str, usize)),
}

/// The length of an axis.
///
/// ```
/// use autograd_core::prelude::*;
/// use autograd_core::shapes::{Axis, Length};
///
/// #[py_layer(no_grad, shapes(x: [n] -> [2 * n]))]
/// impl Twice {
///     fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         Tensor::concat(&[x, x], 0)
///     }
/// }
///
/// let x = Twice::SHAPES.inputs[0].1.axes.unwrap();
/// assert!(matches!(x, [Axis::One(Length::Name("n", 0))]));
/// let y = Twice::SHAPES.outputs[0].axes.unwrap();
/// assert!(matches!(y, [Axis::One(Length::Computed(_, '*', _))]));
/// ```
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_enums, reason = "the macro writes it")]
pub enum Length {
    /// `_`: any.
    Any,
    /// A number.
    Number(usize),
    /// The name of a length, with its position among the names of the line: equal names are equal lengths.
    Name(&'static str, usize),
    /// Two lengths with `+`, `-`, `*` or `/` between them. `/` rounds down.
    Computed(&'static Self, char, &'static Self),
}

impl fmt::Display for Shapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.line)
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("_"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name, _) => f.write_str(name),
            Self::Computed(left, sign, right) => {
                let is_sum = matches!(left, Self::Computed(_, '+' | '-', _));
                match is_sum && matches!(sign, '*' | '/') {
                    true => write!(f, "({left}) {sign} ")?,
                    false => write!(f, "{left} {sign} ")?,
                }
                match right {
                    Self::Computed(..) => write!(f, "({right})"),
                    _ => write!(f, "{right}"),
                }
            }
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(length) => write!(f, "{length}"),
            Self::Many(name, _) => write!(f, "{name}.."),
            Self::Broadcast((a, _), (b, _)) => write!(f, "{a}.. & {b}.."),
        }
    }
}

impl fmt::Display for TensorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(axes) = self.axes else { return f.write_str("_") };
        let axes: Vec<String> = axes.iter().map(Axis::to_string).collect();
        let axes = axes.join(", ");
        match (self.form, self.count) {
            (Form::One | Form::Optional, _) => write!(f, "[{axes}]"),
            (Form::List, Length::Any) => write!(f, "[[{axes}]]"),
            (Form::List, count) => write!(f, "[[{axes}]; {count}]"),
        }
    }
}
