//! The arguments of a call, whose types are known when it runs.

use super::description::{Description, Parameter};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, Tensor, for_any};

/// An argument of a call by a host.
///
/// ```
/// use autograd_core::host::Arg;
/// use autograd_core::prelude::*;
///
/// #[py_layer(elementwise, export)]
/// impl Scale {
///     fn forward(x: Real, #[default(2.0)] by: f64) -> Real {
///         x * by
///     }
/// }
///
/// let x = Arg::One(Tensor::from([3.0]).into());
/// let run = |by| Scale::EXPORT.forward(&[x.clone(), by], &[]);
/// assert_eq!(run(Arg::Omitted)?.0[0].norm(), 6.0);
/// assert_eq!(run(Arg::Int(5))?.0[0].norm(), 15.0);
/// assert!(run(Arg::Text("5".into())).is_err());
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Arg {
    /// A tensor.
    One(AnyTensor),
    /// An optional tensor that is absent.
    Absent,
    /// A list of tensors.
    List(Vec<AnyTensor>),
    /// A number.
    Float(f64),
    /// An integer.
    Int(i64),
    /// A bool.
    Bool(bool),
    /// A text.
    Text(String),
    /// None: the parameter has its default.
    Omitted,
}

impl Arg {
    fn tensors(&self) -> &[AnyTensor] {
        match self {
            Self::One(tensor) => std::slice::from_ref(tensor),
            Self::List(list) => list,
            _ => &[],
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::One(tensor) => {
                format!("a tensor of {} with shape {:?}", tensor.dtype(), tensor.shape())
            }
            Self::Absent => "no tensor".to_owned(),
            Self::List(list) => format!("a list of {} tensors", list.len()),
            Self::Float(number) => format!("the number {number:?}"),
            Self::Int(number) => format!("the integer {number}"),
            Self::Bool(value) => format!("the bool {value}"),
            Self::Text(text) => format!("the text {text:?}"),
            Self::Omitted => "nothing".to_owned(),
        }
    }
}

/// The arguments with separate tensors, which want gradients as `needs` says, and these tensors.
pub(super) fn prepared(
    of: &Description,
    args: &[Arg],
    needs: &[bool],
) -> Result<(Vec<Arg>, Vec<AnyTensor>)> {
    let (expected, found) = (of.parameters.len(), args.len());
    if expected != found {
        return Err(Error::Count { op: of.name, what: "arguments".to_owned(), expected, found });
    }
    let mut inputs = Vec::new();
    let mut separate = |parameter: &Parameter, tensor: &AnyTensor| {
        let wants = parameter.differentiable && needs.get(inputs.len()).copied().unwrap_or(true);
        let tensor = tensor.alias();
        let tensor = if wants { wanting(tensor) } else { tensor };
        inputs.push(tensor.clone());
        tensor
    };
    let each = of.parameters.iter().zip(args).map(|(parameter, arg)| match arg {
        Arg::One(tensor) => Arg::One(separate(parameter, tensor)),
        Arg::List(list) => Arg::List(list.iter().map(|each| separate(parameter, each)).collect()),
        other => other.clone(),
    });
    let args = each.collect();
    Ok((args, inputs))
}

/// The tensor, which nobody else holds, as one that wants a gradient if it can have one.
pub(super) fn wanting(tensor: AnyTensor) -> AnyTensor {
    for_any!(tensor, t => t.wanting().into())
}

/// A call, as generated code reads its arguments.
#[doc(hidden)]
#[derive(Debug)]
pub struct Call<'a> {
    pub(super) of: &'static Description,
    pub(super) args: &'a [Arg],
}

impl<'a> Call<'a> {
    fn wrong(&self, at: usize, expected: &str) -> Error {
        Error::value(self.of.name, self.of.parameters[at].name, expected, self.args[at].shown())
    }

    /// Whether the tensors of these parameters have elements of type `T`: an instance of a generic op is chosen.
    pub fn has<T: Element>(&self, parameters: &[usize]) -> bool {
        let mut tensors = parameters.iter().flat_map(|&at| self.args[at].tensors());
        tensors.next().is_some_and(|first| first.dtype() == T::DTYPE)
    }

    /// The error of a call for which there is no instance.
    pub fn no_instance(&self, parameters: &[usize]) -> Error {
        let at = parameters.iter().copied().find(|&at| !self.args[at].tensors().is_empty());
        let at = at.or_else(|| parameters.first().copied()).unwrap_or_default();
        let elements = self.of.parameters[at].elements.iter().map(|dtype: &DType| dtype.name());
        self.wrong(at, &format!("a tensor of {}", elements.collect::<Vec<_>>().join(" or ")))
    }

    fn typed<T: Element>(
        &self,
        at: usize,
        tensor: &'a AnyTensor,
        place: Option<usize>,
    ) -> Result<&'a Tensor<T>> {
        tensor.downcast_ref().ok_or_else(|| {
            let name = self.of.parameters[at].name;
            let parameter = place.map_or_else(|| name.to_owned(), |i| format!("{name}[{i}]"));
            let (expected, found) = (T::DTYPE, tensor.dtype());
            Error::ElementType { op: self.of.name, parameter, expected, found }
        })
    }

    pub fn tensor<T: Element>(&self, at: usize) -> Result<&'a Tensor<T>> {
        match &self.args[at] {
            Arg::One(tensor) => self.typed(at, tensor, None),
            _ => Err(self.wrong(at, &format!("a tensor of {}", T::DTYPE))),
        }
    }

    pub fn optional<T: Element>(&self, at: usize) -> Result<Option<&'a Tensor<T>>> {
        match &self.args[at] {
            Arg::Absent | Arg::Omitted => Ok(None),
            Arg::One(tensor) => self.typed(at, tensor, None).map(Some),
            _ => Err(self.wrong(at, &format!("a tensor of {}, or none", T::DTYPE))),
        }
    }

    /// A list of `length` tensors, or of any number.
    pub fn list<T: Element>(&self, at: usize, length: Option<usize>) -> Result<Vec<Tensor<T>>> {
        let Arg::List(list) = &self.args[at] else {
            return Err(self.wrong(at, &format!("a list of tensors of {}", T::DTYPE)));
        };
        if let Some(length) = length.filter(|length| *length != list.len()) {
            return Err(self.wrong(at, &format!("a list of {length} tensors")));
        }
        let typed = |(i, tensor)| self.typed::<T>(at, tensor, Some(i)).cloned();
        list.iter().enumerate().map(typed).collect()
    }

    pub fn plain<P: PlainArg<'a>>(&self, at: usize) -> Result<P> {
        P::of(&self.args[at]).ok_or_else(|| self.wrong(at, P::EXPECTED))
    }

    /// Whether the host gave nothing.
    pub fn is_default(&self, at: usize) -> bool {
        matches!(self.args[at], Arg::Omitted)
    }
}

/// A plain parameter that a host can give.
///
/// ```
/// use autograd_core::host::Arg;
/// use autograd_core::prelude::*;
///
/// #[py_layer(no_grad, export)]
/// impl Repeated {
///     fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, times: usize) -> Tensor<f64> {
///         Tensor::concat(vec![x; times], 0)
///     }
/// }
///
/// let x = Arg::One(Tensor::from([1.0]).into());
/// let run = |times| Repeated::EXPORT.forward(&[x.clone(), Arg::Int(times)], &[]);
/// assert_eq!(run(3)?.0[0].shape(), [3]);
/// assert!(run(-1).unwrap_err().to_string().contains("must be an integer of at least 0"));
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a host cannot give a plain parameter of type `{Self}`",
    label = "not a number, a bool or a text",
    note = "the plain parameters of an op under `#[py_layer(export)]` are of the types f64, f32, i64, i32, usize, bool, String and &str"
)]
pub trait PlainArg<'a>: Sized {
    #[doc(hidden)]
    const EXPECTED: &'static str;
    #[doc(hidden)]
    fn of(arg: &'a Arg) -> Option<Self>;
}

macro_rules! plain_args {
    ($($t:ty, $expected:literal, $($arg:pat => $value:expr),*;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<'a> PlainArg<'a> for $t {
            const EXPECTED: &'static str = $expected;

            fn of(arg: &'a Arg) -> Option<Self> {
                match arg {
                    $($arg => $value,)*
                    _ => None,
                }
            }
        }
    )*};
}

plain_args! {
    f64, "a number", Arg::Float(x) => Some(*x), Arg::Int(x) => Some(*x as Self);
    f32, "a number", Arg::Float(x) => Some(*x as Self), Arg::Int(x) => Some(*x as Self);
    i64, "an integer", Arg::Int(x) => Some(*x);
    i32, "an integer of 32 bits", Arg::Int(x) => Self::try_from(*x).ok();
    usize, "an integer of at least 0", Arg::Int(x) => Self::try_from(*x).ok();
    bool, "a bool", Arg::Bool(x) => Some(*x);
    String, "a text", Arg::Text(x) => Some(x.clone());
    &'a str, "a text", Arg::Text(x) => Some(x);
}
