//! Comparisons, exact and with a tolerance.

use std::panic::Location;

use super::call::call;
use super::gather::place;
use super::table::{
    Form, Gradient, OpDef, broadcast as broadcast_forms, computed, exactly, family, for_programs,
    same_dtype, several,
};
use super::{Caller, Numeric, Scalar, expect, pairs};
use crate::array::elementwise::convert_zip;
use crate::array::shape::broadcast;
use crate::array::{DType, Value};
use crate::error::Result;
use crate::graph::{Element, Lost, Tensor, for_any};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident $try:ident $scalar:ident $comparison:ident $of_two:tt;)*) => {
        impl Comparison {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$comparison),*];

            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$comparison => stringify!($name),)*
                }
            }

            #[track_caller]
            fn of<T: Element>(self, a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<bool>> {
                call(&COMPARISONS[self as usize], [], [a.untyped(), b.untyped()])
            }
        }

        /// # Comparisons
        ///
        /// Each compares a tensor with another one, with broadcasting, or with a number (`.._scalar`; see
        /// [`Scalar`](crate::Scalar)). The result is a `bool` tensor without gradient. NaN is as in IEEE 754.
        impl<T: Element> Tensor<T> {
            $(
                pairs! {
                    $(#[$doc])*
                    ///
                    /// ```
                    /// use autograd_core::Tensor;
                    ///
                    /// let x = Tensor::from([1.0, 2.0, 3.0]);
                    #[doc = concat!("let mask = x.", stringify!($name), "(&Tensor::from([2.0]));")]
                    #[doc = concat!("assert_eq!(mask.to_vec(), ", stringify!($of_two), ");")]
                    /// ```
                    pub fn $name, $try(&self, other: &Tensor<T>) -> Tensor<bool>,
                        Broadcast if "the shapes cannot be broadcast together",
                        concat!("Tensor::from([1.0, 2.0]).", stringify!($try), "(&Tensor::from([1.0, 2.0, 3.0]))")
                            => Broadcast {
                        Comparison::$comparison.of(self, other)
                    }
                }

                $(#[$doc])*
                ///
                /// ```
                /// use autograd_core::Tensor;
                ///
                /// let x = Tensor::from([1.0, 2.0, 3.0]);
                #[doc = concat!("assert_eq!(x.", stringify!($scalar), "(2.0).to_vec(), ", stringify!($of_two), ");")]
                /// ```
                #[track_caller]
                pub fn $scalar(&self, b: impl Scalar<T>) -> Tensor<bool> {
                    let number = Tensor::from_value(Value::scalar(b.scalar()));
                    let mask = expect(Comparison::$comparison.of(self, &number));
                    let (name, at) = (stringify!($scalar), Location::caller());
                    mask.with_lost(Lost::without_derivative(name, at, self))
                }
            )*
        }
    };
}

comparisons! {
    /// True where the elements are equal.
    equal try_equal eq_scalar Equal [false, true, false];
    /// True where the elements differ.
    not_equal try_not_equal ne_scalar NotEqual [true, false, true];
    /// True where `self > other`.
    greater try_greater gt_scalar Greater [false, false, true];
    /// True where `self >= other`.
    greater_equal try_greater_equal ge_scalar GreaterEqual [false, true, true];
    /// True where `self < other`.
    less try_less lt_scalar Less [true, false, false];
    /// True where `self <= other`.
    less_equal try_less_equal le_scalar LessEqual [true, true, false];
}

family! {
    COMPARISONS of Comparison::ALL => OpDef {
        family: "compare",
        infer: for_programs(|_, inputs| {
            let [a, b] = exactly(inputs)?;
            same_dtype(a, b)?;
            Ok(vec![Form::new(DType::Bool, broadcast_forms(&a.dims, &b.dims)?)])
        }),
        run: |op, values, at| {
            let test = Comparison::ALL[op.def.index];
            let [a, b] = several(values)?;
            let types = "its inputs are of different element types";
            for_any!(a, a => computed(compare(test, &a, b.downcast_ref().ok_or(types)?, at)))
        },
        gradient: Gradient::None,
        ..OpDef::new("")
    }
}

fn compare<T: Element>(
    op: Comparison,
    x: &Tensor<T>,
    other: &Tensor<T>,
    caller: Caller,
) -> Result<Tensor<bool>> {
    let shape = broadcast(op.name(), x.shape(), other.shape())?;
    let mask = Tensor::from_value(compared(op, &shape, &x.read(), &other.read()));
    let lost = |input| Lost::without_derivative(op.name(), caller, input);
    Ok(mask.with_lost(lost(x).and(lost(other))))
}

fn compared<T: Element>(
    op: Comparison,
    shape: &[usize],
    a: &Value<T>,
    b: &Value<T>,
) -> Value<bool> {
    match op {
        Comparison::Equal => convert_zip(shape, a, b, |a, b| a == b),
        Comparison::NotEqual => convert_zip(shape, a, b, |a, b| a != b),
        Comparison::Greater => compared(Comparison::Less, shape, b, a),
        Comparison::GreaterEqual => compared(Comparison::LessEqual, shape, b, a),
        Comparison::Less => convert_zip(shape, a, b, |a, b| a < b),
        Comparison::LessEqual => convert_zip(shape, a, b, |a, b| a <= b),
    }
}

/// # Closeness
impl<T: Numeric> Tensor<T> {
    /// True where an element is NaN, in the shape of this tensor.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from([0.0, f64::NAN]).is_nan().to_vec(), [false, true]);
    /// ```
    #[track_caller]
    pub fn is_nan(&self) -> Tensor<bool> {
        self.not_equal(self)
    }

    pairs! {
        /// Whether `|self - other| <= atol + rtol * |other|` for all elements, with broadcasting. Equal
        /// infinities are close; NaN is never close.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([1.0, 2.0]);
        /// assert!(x.allclose(&(&x + 1e-9), 1e-5, 1e-8));
        /// assert!(!x.allclose(&(&x + 1e-3), 1e-5, 1e-8));
        /// ```
        ///
        /// [`assert_close!`](crate::assert_close) says where two tensors differ.
        #[doc(alias = "isclose")]
        #[doc(alias = "all_close")]
        pub fn allclose(&self, other: &Tensor<T>, rtol: f64, atol: f64) -> bool,
            Panics if "the shapes cannot be broadcast together" {
            self.is_read("allclose");
            other.is_read("allclose");
            let (a, b) = (self.detach().cast::<f64>(), other.detach().cast::<f64>());
            a.zip_values("allclose", &b, |a, b| excess(a, b, rtol, atol) <= 0.0).all()
        }
    }
}

/// Returns by how much two numbers exceed the allowed distance; infinite for NaN and unequal infinities.
fn excess(left: f64, right: f64, rtol: f64, atol: f64) -> f64 {
    if left == right {
        return 0.0;
    }
    let by = (left - right).abs() - (atol + rtol * right.abs());
    if by.is_nan() || left.is_infinite() || right.is_infinite() { f64::INFINITY } else { by }
}

/// The two tensors that [`assert_close!`](crate::assert_close) compares.
#[derive(Debug)]
pub struct Close<'a, T: Numeric> {
    left: &'a Tensor<T>,
    right: &'a Tensor<T>,
    rtol: f64,
    atol: f64,
}

impl<'a, T: Numeric> Close<'a, T> {
    /// Creates a comparison with PyTorch's tolerances for the element type.
    pub fn new(left: &'a Tensor<T>, right: &'a Tensor<T>) -> Self {
        let [rtol, atol] = match T::DTYPE {
            DType::Float32 => [1.3e-6, 1e-5],
            DType::Float64 => [1e-7, 1e-7],
            _ => [0.0, 0.0],
        };
        Self { left, right, rtol, atol }
    }

    /// Sets the relative tolerance, a factor of `|right|`.
    #[must_use]
    pub fn rtol(self, rtol: f64) -> Self {
        Self { rtol, ..self }
    }

    /// Sets the absolute tolerance.
    #[must_use]
    pub fn atol(self, atol: f64) -> Self {
        Self { atol, ..self }
    }

    /// Panics if the tensors are not close.
    #[track_caller]
    pub fn check(self, left: &str, right: &str) {
        self.left.is_read("assert_close");
        self.right.is_read("assert_close");
        if let Err(why) = self.compare() {
            panic!("`{left}` is not close to `{right}`: {why}");
        }
    }

    fn compare(&self) -> Result<(), String> {
        let &Self { rtol, atol, .. } = self;
        let [shape, other] = [self.left.shape(), self.right.shape()];
        if shape != other {
            return Err(format!("the shapes are {shape:?} and {other:?}"));
        }
        let [left, right] = [self.left, self.right].map(|t| t.detach().cast::<f64>().to_vec());
        let apart = |(&a, &b): (&f64, &f64)| excess(a, b, rtol, atol);
        let apart: Vec<f64> = left.iter().zip(&right).map(apart).collect();
        let count = apart.iter().filter(|&&by| by > 0.0).count();
        let worst = (0..apart.len()).reduce(|a, b| if apart[b] > apart[a] { b } else { a });
        let Some(worst) = worst.filter(|_| count > 0) else { return Ok(()) };
        let place = place(worst, shape);
        let (a, b) = (left[worst], right[worst]);
        let [plural, verb] = if apart.len() == 1 { ["", "s"] } else { ["s", ""] };
        Err(format!(
            "{count} of {} element{plural} differ{verb} by more than {atol:e} + {rtol:e} * |right|; the worst is at \
             {place:?}: {a:?} and {b:?}, {:e} apart where {:e} is allowed",
            apart.len(),
            (a - b).abs(),
            atol + rtol * b.abs(),
        ))
    }
}

/// Asserts that two tensors have the same shape, and that elements differ by at most `atol + rtol * |right|`.
/// The message says how many do not, and shows the worst. `rtol` and `atol` are 1.3e-6 and 1e-5 for `f32`,
/// 1e-7 for `f64`, as in PyTorch, and 0 for integers. Equal infinities are close; NaN is never close.
///
/// ```
/// use autograd_core::{Tensor, assert_close};
///
/// let x = Tensor::<f32>::from([1.0, 2.0]);
/// assert_close!(x.exp().ln(), x);
/// assert_close!(&x * 1.001, &x, rtol = 1e-2);
/// ```
///
/// ```should_panic
/// # use autograd_core::{Tensor, assert_close};
/// assert_close!(Tensor::from([1.0, 2.0]), Tensor::from([1.0, 2.5]));
/// // .. is not close to ..: 1 of 2 elements differ by more than 1e-7 + 1e-7 * |right|; the worst is at
/// // [1]: 2.0 and 2.5, 5e-1 apart where 3.5e-7 is allowed
/// ```
#[macro_export]
macro_rules! assert_close {
    ($left:expr, $right:expr $(, $tolerance:ident = $value:expr)* $(,)?) => {
        $crate::private::Close::new(&$left, &$right)
            $(.$tolerance($value))*
            .check(::core::stringify!($left), ::core::stringify!($right))
    };
}
