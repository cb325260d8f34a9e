//! What ops are called. Data only: rules and kernels are elsewhere.

use std::panic::Location;

use crate::formula::functions;

/// Where an op was called.
pub(crate) type Caller = &'static Location<'static>;

/// The functions of two tensors.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Maximum,
    Minimum,
}

impl Binary {
    pub(crate) const ALL: &'static [Self] =
        &[Self::Add, Self::Sub, Self::Mul, Self::Div, Self::Pow, Self::Maximum, Self::Minimum];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::Pow => "pow",
            Self::Maximum => "maximum",
            Self::Minimum => "minimum",
        }
    }
}

/// The reductions.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    Sum,
    Mean,
    Prod,
    Max,
    Min,
}

impl Reduce {
    pub(crate) const ALL: &'static [Self] =
        &[Self::Sum, Self::Mean, Self::Prod, Self::Max, Self::Min];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Prod => "prod",
            Self::Max => "max",
            Self::Min => "min",
        }
    }
}

/// The part of a matrix on one side of a diagonal, and with it.
#[derive(Clone, Copy)]
pub(crate) enum Triangle {
    Lower(isize),
    Upper(isize),
}

/// The two functions of rows.
#[derive(Clone, Copy)]
pub(crate) enum Softmax {
    Plain,
    Log,
}

/// The functions of one tensor: own ones, and those of the table.
macro_rules! unary {
    ([$($own:ident $own_variant:ident;)*] $($functions:tt)*) => {
        unary! { @of [$($own $own_variant;)*] $($functions)* }
    };
    // One of formulas only.
    (@of [$($ops:tt)*] $(#[$doc:meta])* trunc Trunc $k:ident [$($e:tt)*] $rule:tt; $($rest:tt)*) => {
        unary! { @of [$($ops)*] $($rest)* }
    };
    (
        @of [$($ops:tt)*]
        $(#[$doc:meta])* $method:ident $variant:ident $k:ident [$($e:tt)*] $rule:tt; $($rest:tt)*
    ) => {
        unary! { @of [$($ops)* $method $variant;] $($rest)* }
    };
    (@of [$($method:ident $variant:ident;)*]) => {
        /// The functions of one tensor.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Unary { $($variant),* }

        impl Unary {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($method)),* }
            }
        }
    };
}

functions! { unary [
    neg Neg;
    step Step;
    square Square;
    silu Silu;
    relu Relu;
    gelu Gelu;
] }
