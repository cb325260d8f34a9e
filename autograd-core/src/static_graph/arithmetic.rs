//! Arithmetic of variables: elementwise functions and operators.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::ir::Site;
use super::program::{Program, Variable};
use super::table;
use crate::array::DType;
use crate::error::Result;
use crate::formula::binary_functions;
use crate::ops::entries::number;
use crate::ops::names::{all_functions, joined_functions};
use crate::ops::table::Attr;
use crate::ops::{Binary, Unary, expect};

/// An example that compares a method with that of tensors: inputs with their values, and the text of the call;
/// after it that of the call of tensors, where it is another one.
macro_rules! example {
    ($inputs:tt $call:expr) => {
        example!($inputs $call, $call)
    };
    ((
        x: $dtype:ident $shape:tt = $value:literal
        $(, $input:ident: $its_dtype:ident $its_shape:tt = $its_value:literal)*
    ) $call:expr, $eager:expr) => {
        concat!(
            "```\nuse autograd_core::static_graph::{Executor, Program};\n",
            "use autograd_core::{DType, Tensor};\n\nlet program = Program::new();\n",
            "let x = program.data(\"x\", ", stringify!($shape), ", DType::", stringify!($dtype), ")?;\n",
            $(
                "let ", stringify!($input), " = program.data(\"", stringify!($input), "\", ",
                stringify!($its_shape), ", DType::", stringify!($its_dtype), ")?;\n",
            )*
            "let y = ", $call, "?;\n",
            "let x = Tensor::from(", $value, ");\n",
            $("let ", stringify!($input), " = Tensor::from(", $its_value, ");\n",)*
            "let run = Executor::new().run(&program, &[(\"x\", &x)",
            $(", (\"", stringify!($input), "\", &", stringify!($input), ")",)* "], &[&y])?;\n",
            "assert_eq!(run[0].to_string(), ", $eager, ".to_string());\n",
            "# Ok::<(), autograd_core::Error>(())\n```"
        )
    };
}
pub(super) use example;

macro_rules! unary {
    ($($(#[$doc:meta])* $method:ident $op:ident $formula:tt, $rule:tt;)*) => {
        /// # Functions of each element
        ///
        /// As the methods of [`Tensor`](crate::Tensor) of the same names, for float types; the shape stays.
        ///
        /// ```
        /// use autograd_core::DType;
        /// use autograd_core::static_graph::Program;
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [-1, 4], DType::Float32)?;
        /// assert_eq!(x.tanh()?.exp()?.shape(), x.shape());
        /// assert!(program.data("n", [4], DType::Int64)?.tanh().is_err());
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        impl Variable {
            $(
                #[doc = concat!("As [`Tensor::", stringify!($method), "`](crate::Tensor::", stringify!($method), ").")]
                ///
                #[doc = example!((x: Float64 [2] = "[-0.5, 0.25]") concat!("x.", stringify!($method), "()"))]
                ///
                /// # Errors
                ///
                /// [`Error::Program`](crate::Error::Program) if the elements are not floats.
                #[track_caller]
                pub fn $method(&self) -> Result<Variable> {
                    self.program.one(&table::FUNCTIONS[Unary::$op as usize], [], &[self])
                }
            )*
        }
    };
}

all_functions! { unary }

impl Variable {
    /// [`Variable::ln`] under its name in NumPy, PyTorch and Paddle.
    ///
    #[doc = example!((x: Float64 [2] = "[0.25, 4.0]") "x.log()", "x.ln()")]
    ///
    /// # Errors
    ///
    /// As [`Variable::ln`].
    #[track_caller]
    pub fn log(&self) -> Result<Variable> {
        self.ln()
    }
}

/// An operand beside a variable: another variable, or a number (an integer beside integers).
///
/// ```
/// use autograd_core::static_graph::{Executor, Program};
/// use autograd_core::{DType, Tensor};
///
/// let program = Program::new();
/// let x = program.data("x", [2], DType::Float64)?;
/// let (size, positive) = (x.maximum(-&x)?, x.maximum(0.0)?);
/// let (executor, fed) = (Executor::new(), Tensor::from([-1.0, 2.0]));
/// let run = executor.run(&program, &[("x", &fed)], &[&size, &positive])?;
/// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [1.0, 2.0]);
/// assert_eq!(run[1].downcast_ref::<f64>().unwrap().to_vec(), [0.0, 2.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub trait IntoOperand {
    #[doc(hidden)]
    fn operand(self) -> Operand;
}

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

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl IntoOperand for $t {
            fn operand(self) -> Operand {
                Operand::Number(self.to_owned().into())
            }
        }
    )*};
}

numbers! { f64 &f64 f32 i32 }

impl Operand {
    /// The operand as a variable, a constant for a number.
    #[track_caller]
    pub(super) fn variable(self, program: &Program, op: &str, dtype: DType) -> Result<Variable> {
        match self {
            Self::Variable(variable) => Ok(variable),
            Self::Number(found) => {
                let site = Site::here(op);
                let constant = number(dtype, found).map_err(|why| site.wrong(why))?;
                program.one(&table::CONSTANT, [Attr::Tensor(constant)], &[])
            }
        }
    }
}

impl Variable {
    #[track_caller]
    fn binary(&self, op: Binary, right: impl IntoOperand) -> Result<Variable> {
        match right.operand() {
            Operand::Variable(right) => {
                self.program.one(&table::BINARY[op as usize], [], &[self, &right])
            }
            Operand::Number(scalar) => self.with_scalar(op, scalar, false),
        }
    }

    #[track_caller]
    fn with_scalar(&self, op: Binary, scalar: f64, is_left: bool) -> Result<Variable> {
        let attrs = [Attr::Number(scalar), Attr::Flag(is_left)];
        self.program.one(&table::SCALAR[op as usize], attrs, &[self])
    }
}

macro_rules! binary {
    ($($method:ident $op:ident $other:ident $doc:expr $(, $eager:literal)?;)*) => {
        /// # Functions of two variables
        ///
        /// Shapes broadcast, as those of tensors; the operand in parentheses may be a number.
        ///
        /// ```
        /// use autograd_core::DType;
        /// use autograd_core::static_graph::Program;
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [-1, 4], DType::Float32)?;
        /// let bias = program.data("bias", [4], DType::Float32)?;
        /// assert_eq!(x.try_add(&bias)?.maximum(0.0)?.shape(), x.shape());
        /// assert!(x.try_add(&program.data("n", [3], DType::Float32)?).is_err());
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        impl Variable {
            $(
                #[doc = $doc]
                ///
                #[doc = example!(
                    (x: Float64 [2] = "[-1.5, 4.0]", t: Float64 [2] = "[2.0, 0.5]")
                    concat!("x.", stringify!($method), "(&t)") $(, $eager)?
                )]
                ///
                /// # Errors
                ///
                /// [`Error::Program`](crate::Error::Program) if the shapes do not broadcast, the
                /// element types differ, or the variables are of different programs.
                #[track_caller]
                pub fn $method(&self, $other: impl IntoOperand) -> Result<Variable> {
                    self.binary(Binary::$op, $other)
                }
            )*
        }
    };
}

binary! {
    try_add Add other "`self + other`, as [`Tensor::try_add`](crate::Tensor::try_add).", "x.try_add(&t)?";
    try_sub Sub other "`self - other`, as [`Tensor::try_sub`](crate::Tensor::try_sub).", "x.try_sub(&t)?";
    try_mul Mul other "`self * other`, as [`Tensor::try_mul`](crate::Tensor::try_mul).", "x.try_mul(&t)?";
    try_div Div other "`self / other`, as [`Tensor::try_div`](crate::Tensor::try_div).", "x.try_div(&t)?";
    pow Pow exponent "As [`Tensor::pow`](crate::Tensor::pow).";
    maximum Max other "As [`Tensor::maximum`](crate::Tensor::maximum).";
    minimum Min other "As [`Tensor::minimum`](crate::Tensor::minimum).";
}

macro_rules! functions {
    ($(
        $(#[$doc:meta])*
        $method:ident $variant:ident $name:ident $error:tt |$a:ident, $b:ident| $value:expr, $rule:tt;
    )*) => {
        binary! {
            $(
                $method $variant other
                concat!("As [`Tensor::", stringify!($method), "`](crate::Tensor::", stringify!($method), ").");
            )*
        }
    };
}

binary_functions! { functions }

macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {$(
        operators! { @variable $trait $method &Variable, Variable }
        operators! { @number $trait $method &Variable: f64, i32, &f64, &i32 }
        operators! { @number $trait $method Variable: f64, i32, &f64, &i32 }
    )*};
    (@variable $trait:ident $method:ident $($left:ty),*) => {$(
        /// Panics if the method of [`Variable`] returns an error.
        impl<R: IntoOperand> $trait<R> for $left {
            type Output = Variable;

            #[track_caller]
            fn $method(self, right: R) -> Variable {
                expect(self.binary(Binary::$trait, right))
            }
        }
    )*};
    (@number $trait:ident $method:ident $right:ty: $($number:ty),*) => {$(
        /// Panics if the elements are not numbers, or have a type that cannot hold this number.
        impl $trait<$right> for $number {
            type Output = Variable;

            #[track_caller]
            fn $method(self, right: $right) -> Variable {
                expect(right.with_scalar(Binary::$trait, self.to_owned().into(), true))
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

/// Panics if the elements are not floats.
impl Neg for &Variable {
    type Output = Variable;

    #[track_caller]
    fn neg(self) -> Variable {
        expect(Variable::neg(self))
    }
}
