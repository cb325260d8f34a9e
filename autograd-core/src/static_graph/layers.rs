//! Layers and common ops: what a program is written with. Each adds an operator and gives the
//! variable that it computes.

use std::ops::{Add, Div, Mul, Neg, Sub};
use std::panic::Location;

use super::build::Change;
use super::dims::{IntoDims, read_dims};
use super::ir::{Form, Place, wrong};
use super::kind::{Init, Kind, Reduction};
use super::program::Program;
use super::variable::Variable;
use crate::array::DType;
use crate::error::Result;
use crate::ops::{Binary, Unary};

/// How a fully connected layer's parameters are named and start.
#[derive(Clone, Debug)]
pub struct FcOptions {
    name: Option<String>,
    weight: Init,
    bias: Option<Init>,
}

impl Default for FcOptions {
    fn default() -> Self {
        Self { name: None, weight: Init::Xavier, bias: Some(Init::Constant(0.0)) }
    }
}

impl FcOptions {
    /// A generated name, [`Init::Xavier`] for the weights and zeros for the bias.
    pub fn new() -> Self {
        Self::default()
    }

    /// The layer's name: its parameters are `name.weight` and `name.bias`.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// How the weights start.
    pub fn weight(mut self, init: Init) -> Self {
        self.weight = init;
        self
    }

    /// How the bias starts; `None` for none.
    pub fn bias(mut self, init: impl Into<Option<Init>>) -> Self {
        self.bias = init.into();
        self
    }
}

/// # Layers
impl Program {
    /// A fully connected layer, `x · weight + bias`, with new parameters: from `[n, ..]` to
    /// `[n, size]`. Axes after the first are flattened.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `x` is no float matrix, or an axis after its
    /// first is free.
    #[track_caller]
    pub fn fc(&self, x: &Variable, size: usize) -> Result<Variable> {
        self.fully_connected(x, size, &FcOptions::new(), Location::caller())
    }

    /// [`Program::fc`] with names and first values of its parameters.
    ///
    /// # Errors
    ///
    /// As [`Program::fc`]; also if a parameter's name is taken.
    #[track_caller]
    pub fn fc_with(&self, x: &Variable, size: usize, options: &FcOptions) -> Result<Variable> {
        self.fully_connected(x, size, options, Location::caller())
    }

    fn fully_connected(
        &self,
        x: &Variable,
        size: usize,
        options: &FcOptions,
        location: &'static Location<'static>,
    ) -> Result<Variable> {
        let place = Place::Line(location);
        let mut input = self.own("fc", x, &place)?;
        let form = x.form();
        let mut width = Some(1);
        for dim in form.dims.iter().skip(1) {
            width = width.zip(*dim).map(|(a, b)| a * b);
        }
        let (true, Some(width)) = (form.dims.len() > 1, width) else {
            let why = format!("`{}` must be [n, ..] with only n free, it is {form}", x.name());
            return Err(wrong("fc", &place, why));
        };
        let output = self.change(|change| {
            if form.dims.len() > 2 {
                let flat = Kind::Reshape([form.dims[0], Some(width)].into_iter().collect());
                input = change.add(flat, &[input], &place)?;
            }
            let name = match &options.name {
                Some(name) => name.clone(),
                None => change.graph.fresh_name("fc", false),
            };
            let parameter = |change: &mut Change<'_>, what: &str, dims: &[usize], init| {
                let form = Form::new(form.dtype, dims.iter().map(|&n| Some(n)).collect());
                change.keep("fc", &format!("{name}.{what}"), form, true, init, &place)
            };
            let weight = parameter(change, "weight", &[width, size], options.weight)?;
            let product = change.add(Kind::Matmul, &[input, weight], &place)?;
            let Some(init) = options.bias else { return Ok(product) };
            let bias = parameter(change, "bias", &[size], init)?;
            change.add(Kind::Binary(Binary::Add), &[product, bias], &place)
        })?;
        Ok(self.variable(output))
    }

    /// The mean of all elements, a scalar.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the variable is of another program or no
    /// number.
    #[track_caller]
    pub fn mean(&self, x: &Variable) -> Result<Variable> {
        let kind = Kind::Reduce { op: Reduction::Mean, axes: Vec::new(), keep: false };
        self.one(kind, &[x], Location::caller())
    }

    /// The mean cross entropy of logits `[n, classes]` and `n` classes of type int64.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the shapes or element types do not fit.
    #[track_caller]
    pub fn cross_entropy(&self, logits: &Variable, classes: &Variable) -> Result<Variable> {
        self.one(Kind::CrossEntropy, &[logits, classes], Location::caller())
    }

    /// Several variables joined along an axis.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there are none, or they differ beside this
    /// axis.
    #[track_caller]
    pub fn concat(&self, variables: &[&Variable], axis: isize) -> Result<Variable> {
        self.one(Kind::Concat { axis }, variables, Location::caller())
    }
}

macro_rules! unary {
    ($($method:ident $op:ident;)*) => {
        /// # Functions of each element
        ///
        /// As the methods of [`Tensor`](crate::Tensor) of the same names. All are for float types;
        /// of another type, they are an [`Error::Program`](crate::Error::Program).
        impl Variable {
            $(
                #[doc = concat!("As [`Tensor::", stringify!($method), "`](crate::Tensor::", stringify!($method), ").")]
                ///
                /// # Errors
                ///
                /// [`Error::Program`](crate::Error::Program) if the elements are no floats.
                #[track_caller]
                pub fn $method(&self) -> Result<Variable> {
                    self.program.one(Kind::Unary(Unary::$op), &[self], Location::caller())
                }
            )*
        }

        impl Kind {
            /// Functions of each element that a program can have.
            pub(super) const UNARY: &'static [Unary] = &[$(Unary::$op),*];
        }
    };
}

unary! {
    neg Neg;
    abs Abs;
    signum Signum;
    floor Floor;
    ceil Ceil;
    round Round;
    square Square;
    sqrt Sqrt;
    rsqrt Rsqrt;
    recip Recip;
    exp Exp;
    exp_m1 ExpM1;
    ln Ln;
    ln_1p Ln1p;
    sin Sin;
    cos Cos;
    tan Tan;
    asin Asin;
    acos Acos;
    atan Atan;
    sinh Sinh;
    cosh Cosh;
    tanh Tanh;
    sigmoid Sigmoid;
    relu Relu;
}

/// What can stand on the right of an operator: a variable or a number.
pub trait IntoOperand {
    #[doc(hidden)]
    fn operand(self) -> Operand;
}

/// See [`IntoOperand`].
#[doc(hidden)]
#[derive(Debug)]
pub enum Operand {
    Variable(Variable),
    Number(f64),
}

impl IntoOperand for &Variable {
    fn operand(self) -> Operand {
        Operand::Variable(self.clone())
    }
}

impl IntoOperand for Variable {
    fn operand(self) -> Operand {
        Operand::Variable(self)
    }
}

impl IntoOperand for f64 {
    fn operand(self) -> Operand {
        Operand::Number(self)
    }
}

impl Variable {
    fn binary(
        &self,
        op: Binary,
        right: impl IntoOperand,
        location: &'static Location<'static>,
    ) -> Result<Variable> {
        match right.operand() {
            Operand::Variable(right) => {
                self.program.one(Kind::Binary(op), &[self, &right], location)
            }
            Operand::Number(scalar) => {
                self.program.one(Kind::Scalar { op, scalar, swapped: false }, &[self], location)
            }
        }
    }

    fn scalar_left(
        &self,
        op: Binary,
        scalar: f64,
        location: &'static Location<'static>,
    ) -> Variable {
        let kind = Kind::Scalar { op, scalar, swapped: true };
        expect(self.program.one(kind, &[self], location))
    }
}

macro_rules! binary {
    ($($method:ident $op:ident $doc:literal;)*) => {
        /// # Functions of two variables
        ///
        /// Shapes broadcast, as those of tensors; the right one may be a number.
        impl Variable {
            $(
                #[doc = $doc]
                ///
                /// # Errors
                ///
                /// [`Error::Program`](crate::Error::Program) if the shapes cannot be broadcast
                /// together, the element types differ, or the variables are of two programs.
                #[track_caller]
                pub fn $method(&self, right: impl IntoOperand) -> Result<Variable> {
                    self.binary(Binary::$op, right, Location::caller())
                }
            )*
        }

        impl Kind {
            /// Functions of two elements that a program can have.
            pub(super) const BINARY: &'static [Binary] = &[$(Binary::$op),*];
        }
    };
}

binary! {
    try_add Add "`self + right`.";
    try_sub Sub "`self - right`.";
    try_mul Mul "`self * right`, element by element.";
    try_div Div "`self / right`, element by element.";
    pow Pow "`self` to the power `right`.";
    maximum Maximum "The greater of each two elements.";
    minimum Minimum "The lesser of each two elements.";
}

#[track_caller]
fn expect(built: Result<Variable>) -> Variable {
    match built {
        Ok(variable) => variable,
        Err(error) => panic!("{error}"),
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {$(
        /// Panics where the method of [`Variable`] gives an error.
        impl<R: IntoOperand> $trait<R> for &Variable {
            type Output = Variable;

            #[track_caller]
            fn $method(self, right: R) -> Variable {
                expect(self.binary(Binary::$trait, right, Location::caller()))
            }
        }

        /// Panics where the method of [`Variable`] gives an error.
        impl<R: IntoOperand> $trait<R> for Variable {
            type Output = Variable;

            #[track_caller]
            fn $method(self, right: R) -> Variable {
                expect(self.binary(Binary::$trait, right, Location::caller()))
            }
        }

        /// Panics if the elements are no numbers.
        impl $trait<&Variable> for f64 {
            type Output = Variable;

            #[track_caller]
            fn $method(self, right: &Variable) -> Variable {
                right.scalar_left(Binary::$trait, self, Location::caller())
            }
        }

        /// Panics if the elements are no numbers.
        impl $trait<Variable> for f64 {
            type Output = Variable;

            #[track_caller]
            fn $method(self, right: Variable) -> Variable {
                right.scalar_left(Binary::$trait, self, Location::caller())
            }
        }
    )*};
}

operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

/// Panics if the elements are no floats.
impl Neg for &Variable {
    type Output = Variable;

    #[track_caller]
    fn neg(self) -> Variable {
        expect(self.program.one(Kind::Unary(Unary::Neg), &[self], Location::caller()))
    }
}

macro_rules! reductions {
    ($($method:ident $op:ident $doc:literal;)*) => {
        /// # Reductions
        impl Variable {
            $(
                #[doc = concat!($doc, " along `axes`, which are taken away; all of them if none is given.")]
                ///
                /// # Errors
                ///
                /// [`Error::Program`](crate::Error::Program) if an axis does not exist or stands
                /// twice.
                #[track_caller]
                pub fn $method(&self, axes: &[isize]) -> Result<Variable> {
                    let kind = Kind::Reduce { op: Reduction::$op, axes: axes.to_vec(), keep: false };
                    self.program.one(kind, &[self], Location::caller())
                }
            )*
        }
    };
}

reductions! {
    sum Sum "The sum";
    mean Mean "The mean";
    prod Prod "The product";
    max Max "The greatest element";
    min Min "The least element";
}

/// # Matrices, shapes, losses
///
/// Each is an [`Error::Program`](crate::Error::Program) where shapes or element types do not fit.
impl Variable {
    /// The matrix product; see [`Tensor::matmul`](crate::Tensor::matmul).
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the inner lengths differ.
    #[track_caller]
    pub fn matmul(&self, right: &Variable) -> Result<Variable> {
        self.program.one(Kind::Matmul, &[self, right], Location::caller())
    }

    /// `exp(x)` divided by its sum along an axis.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there is no such axis.
    #[track_caller]
    pub fn softmax(&self, axis: isize) -> Result<Variable> {
        self.program.one(Kind::Softmax { axis }, &[self], Location::caller())
    }

    /// The logarithm of [`Variable::softmax`].
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there is no such axis.
    #[track_caller]
    pub fn log_softmax(&self, axis: isize) -> Result<Variable> {
        self.program.one(Kind::LogSoftmax { axis }, &[self], Location::caller())
    }

    /// [`Program::cross_entropy`] of these logits.
    ///
    /// # Errors
    ///
    /// As [`Program::cross_entropy`].
    #[track_caller]
    pub fn cross_entropy(&self, classes: &Variable) -> Result<Variable> {
        self.program.one(Kind::CrossEntropy, &[self, classes], Location::caller())
    }

    /// The same elements under another shape, one axis of which may be -1: what is left.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the elements do not fit.
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoDims) -> Result<Variable> {
        let location = Location::caller();
        let dims = read_dims(shape, "reshape", &Place::Line(location))?;
        self.program.one(Kind::Reshape(dims), &[self], location)
    }

    /// Axes in another order.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if an axis is missing or stands twice.
    #[track_caller]
    pub fn permute(&self, order: &[isize]) -> Result<Variable> {
        self.program.one(Kind::Permute(order.to_vec()), &[self], Location::caller())
    }

    /// The same numbers as elements of another type.
    ///
    /// # Errors
    ///
    /// None today.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Result<Variable> {
        self.program.one(Kind::Cast(dtype), &[self], Location::caller())
    }

    /// Each element is 0 with probability `p`, else divided by `1 - p`; in a
    /// [copy for testing](Program::clone_program) nothing changes.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `p` is not in [0, 1].
    #[track_caller]
    pub fn dropout(&self, p: f64) -> Result<Variable> {
        let location = Location::caller();
        if !(0.0..=1.0).contains(&p) {
            let why = format!("`p` must be a probability, found {p}");
            return Err(wrong("dropout", &Place::Line(location), why));
        }
        self.program.one(Kind::Dropout { p, training: true }, &[self], location)
    }
}
