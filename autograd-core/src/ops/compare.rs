//! Comparisons, selection by a mask, and conversion of the element type.

use std::panic::Location;

use smallvec::smallvec;

use super::call::{call, call_at};
use super::table::{
    Attr, Computed, Form, Gradient, OpDef, Ran, Type, Values, arithmetic,
    broadcast as broadcast_forms, computed, entries, exactly, family, for_programs, number, one,
    same_dtype, several,
};
use super::{Binary, Caller, Numeric, Operand, Scalar, expect, pairs};
use crate::array::elementwise::{chosen_of, convert, convert_zip};
use crate::array::shape::broadcast;
use crate::array::{DType, Storable, Value};
use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, Comparison, Element, Handle, Lost, Rule, Saved, Tensor, finish, for_any, unrecorded,
};

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident $try:ident $scalar:ident $comparison:ident;)*) => {
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
                    pub fn $name, $try(&self, other: &Tensor<T>) -> Tensor<bool>,
                        Broadcast if "the shapes cannot be broadcast together" {
                        Comparison::$comparison.of(self, other)
                    }
                }

                $(#[$doc])*
                #[track_caller]
                pub fn $scalar(&self, b: impl Scalar<T>) -> Tensor<bool> {
                    let number = Tensor::new(Value::scalar(b.scalar()));
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
    equal try_equal eq_scalar Equal;
    /// True where the elements differ.
    not_equal try_not_equal ne_scalar NotEqual;
    /// True where `self > other`.
    greater try_greater gt_scalar Greater;
    /// True where `self >= other`.
    greater_equal try_greater_equal ge_scalar GreaterEqual;
    /// True where `self < other`.
    less try_less lt_scalar Less;
    /// True where `self <= other`.
    less_equal try_less_equal le_scalar LessEqual;
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

entries! {
    CHOICES:

    WHERE = OpDef {
        infer: for_programs(|_, inputs| {
            let [chosen, a, b] = exactly(inputs)?;
            same_dtype(arithmetic(Binary::Add, a)?, b)?;
            let dims = broadcast_forms(&a.dims, &b.dims)?;
            let dims = broadcast_forms(&mask(chosen)?.dims, &dims)?;
            Ok(vec![Form::new(a.dtype, dims)])
        }),
        run: |_, values, at| match several(values)? {
            [AnyTensor::Bool(mask), a, b] => {
                number!(smallvec![a, b], (a, b) => choose("where_else", &mask, &a, &b, at))
            }
            _ => Err("its mask must be bool".into()),
        },
        ..OpDef::new("where")
    };

    AND = OpDef {
        run: |_, masks, _| logical("and", masks, |a, b| a & b),
        ..logical_op("and")
    };

    OR = OpDef {
        run: |_, masks, _| logical("or", masks, |a, b| a | b),
        ..logical_op("or")
    };

    XOR = OpDef {
        run: |_, masks, _| logical("xor", masks, |a, b| a ^ b),
        ..logical_op("xor")
    };

    NOT = OpDef {
        infer: for_programs(|_, inputs| {
            let [x] = exactly(inputs)?;
            Ok(vec![mask(x)?.clone()])
        }),
        run: |_, x, _| match one(x)? {
            AnyTensor::Bool(x) => computed(Ok(Tensor::new(convert(&x.read(), |a| !a)).and_lost(&x))),
            _ => Err("its mask must be bool".into()),
        },
        gradient: Gradient::None,
        ..OpDef::new("not")
    };

    CAST = OpDef {
        attrs: &[("to", Type::Elements)],
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            Ok(vec![Form::new(op.dtype(0), x.dims.clone())])
        }),
        run: |op, x, at| {
            Ok(smallvec![for_any!(one(x)?, x => Cast::cast(&x, op.dtype(0), at))])
        },
        ..OpDef::new("cast")
    };
}

fn mask(x: &Form) -> Computed<&Form> {
    match x.dtype {
        DType::Bool => Ok(x),
        other => Err(format!("its mask must be bool, found {other}")),
    }
}

const fn logical_op(name: &'static str) -> OpDef {
    OpDef {
        infer: for_programs(|_, inputs| {
            let [a, b] = exactly(inputs)?;
            Ok(vec![Form::new(DType::Bool, broadcast_forms(&mask(a)?.dims, &mask(b)?.dims)?)])
        }),
        gradient: Gradient::None,
        ..OpDef::new(name)
    }
}

fn logical(op: &'static str, masks: Values, f: fn(bool, bool) -> bool) -> Ran {
    match several(masks)? {
        [AnyTensor::Bool(a), AnyTensor::Bool(b)] => {
            let shape = broadcast(op, a.shape(), b.shape()).map_err(Error::from)?;
            let both = Tensor::new(convert_zip(&shape, &a.read(), &b.read(), f));
            computed(Ok(both.and_lost(&a).and_lost(&b)))
        }
        _ => Err("its masks must be bool".into()),
    }
}

fn compare<T: Element>(
    op: Comparison,
    x: &Tensor<T>,
    other: &Tensor<T>,
    caller: Caller,
) -> Result<Tensor<bool>> {
    let shape = broadcast(op.name(), x.shape(), other.shape())?;
    let mask = Tensor::new(compared(op, &shape, &x.read(), &other.read()));
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

impl Tensor<bool> {
    pairs! {
        /// True where both masks are true: `a & b`.
        #[doc(alias = "logical_and")]
        pub fn and(&self, other: &Tensor<bool>) -> Tensor<bool>,
            Panics if "the shapes cannot be broadcast together" {
            expect(call(&AND, [], [self.untyped(), other.untyped()]))
        }

        /// True where at least one mask is true: `a | b`.
        #[doc(alias = "logical_or")]
        pub fn or(&self, other: &Tensor<bool>) -> Tensor<bool>,
            Panics if "the shapes cannot be broadcast together" {
            expect(call(&OR, [], [self.untyped(), other.untyped()]))
        }

        /// True where exactly one mask is true: `a ^ b`.
        #[doc(alias = "logical_xor")]
        pub fn xor(&self, other: &Tensor<bool>) -> Tensor<bool>,
            Panics if "the shapes cannot be broadcast together" {
            expect(call(&XOR, [], [self.untyped(), other.untyped()]))
        }
    }

    /// True where this mask is false: `!a`.
    #[doc(alias = "logical_not")]
    #[allow(clippy::should_implement_trait, reason = "it is the method behind `!`")]
    #[track_caller]
    pub fn not(&self) -> Tensor<bool> {
        expect(call(&NOT, [], [self.untyped()]))
    }

    /// Whether any element is true.
    #[track_caller]
    pub fn any(&self) -> bool {
        self.is_read("any");
        self.read().view().iter().any(|&b| b)
    }

    /// Whether all elements are true.
    #[track_caller]
    pub fn all(&self) -> bool {
        self.is_read("all");
        self.read().view().iter().all(|&b| b)
    }

    pairs! {
        /// Returns `on` where this mask is true, `off` elsewhere, with broadcasting; each is a tensor or a
        /// number. The gradient flows to the selected elements.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from(vec![-1.0, 2.0]);
        /// let y = x.gt_scalar(0.0).where_else(&x, &x * 0.1);
        /// assert_eq!(y.to_vec(), [-0.1, 2.0]);
        /// assert_eq!(x.lt_scalar(0.0).where_else(0.0, &x).to_vec(), [0.0, 2.0]);
        /// ```
        #[doc(alias = "where")]
        pub fn where_else, try_where_else<T: Numeric>(
            &self,
            on: impl Operand<T>,
            off: impl Operand<T>,
        ) -> Tensor<T>,
            Broadcast if "the three shapes cannot be broadcast together" {
            let at = Location::caller();
            on.lend(|on| {
                off.lend(|off| call_at(&WHERE, [], [self.untyped(), on.untyped(), off.untyped()], at))
            })
        }
    }
}

/// Selects one of two tensors by a mask; the op is recorded under `name`.
pub(super) fn choose<T: Numeric>(
    name: &'static str,
    mask: &Tensor<bool>,
    on: &Tensor<T>,
    off: &Tensor<T>,
    caller: Caller,
) -> Result<Tensor<T>> {
    let shape = broadcast(name, on.shape(), off.shape())?;
    let shape = broadcast(name, mask.shape(), &shape)?;
    let value = chosen_of(&shape, &mask.read(), &on.read(), &off.read());
    if !on.is_recorded() && !off.is_recorded() {
        return Ok(unrecorded(name, caller, &[on, off], value).and_lost(mask));
    }
    Ok(finish(name, caller, &[on, off], value, || {
        let shapes = [on.shape_owned(), off.shape_owned()];
        Rule::new([Saved::input(0, mask)], move |saved, dy: Tensor<T>, wants| {
            let (mask, zero) = (saved.tensor::<bool>()?, Tensor::new(Value::scalar(T::ZERO)));
            Ok([
                wants[0].then(|| mask.where_else(&dy, &zero).unbroadcast(&shapes[0])),
                wants[1].then(|| mask.where_else(&zero, &dy).unbroadcast(&shapes[1])),
            ])
        })
        .with_push(|saved, tangents: &[Option<Tensor<T>>], shape| {
            let (mask, zero) = (saved.tensor::<bool>()?, Tensor::new(Value::scalar(T::ZERO)));
            let [on, off] = [0, 1].map(|i| tangents[i].as_ref().unwrap_or(&zero));
            let dy = mask.try_where_else(on, off)?;
            Ok(Some(if dy.shape() == shape { dy } else { dy.try_broadcast_to(shape)? }))
        })
    }))
}

/// Conversion to an element type given as a value: generic code needs no bound for each pair of types.
pub(super) trait Cast: Element {
    fn cast(x: &Tensor<Self>, to: DType, caller: Caller) -> AnyTensor;
}

fn converted<T: Element, U: Element>(
    x: &Tensor<T>,
    caller: Caller,
    f: impl Fn(T) -> U + Sync,
) -> AnyTensor {
    let value = convert(&x.read(), f);
    if const { !T::DTYPE.is_float() || !U::DTYPE.is_float() } {
        return outside(value, x.lost_by("cast", caller, false));
    }
    let rule = || Rule::new([], |_, dy: Tensor<U>, _| Ok([Some(dy.cast::<T>())]));
    finish(CAST.name, caller, &[x], value, rule).into()
}

#[inline(never)]
fn outside<U: Element>(value: Value<U>, lost: Lost) -> AnyTensor {
    Tensor::new(value).with_lost(lost).into()
}

macro_rules! casts {
    ($($from:ident)*) => {$(
        impl Cast for $from {
            fn cast(x: &Tensor<$from>, to: DType, caller: Caller) -> AnyTensor {
                casts! {
                    @of x, to, caller, $from:
                    Float32 f32, Float64 f64, Int32 i32, Int64 i64, UInt8 u8, Bool bool
                }
            }
        }
    )*};
    (@of $x:expr, $dtype:expr, $caller:expr, $from:ident: $($variant:ident $to:ident),*) => {
        match $dtype {
            $(DType::$variant => converted($x, $caller, |v| casts!(@value v, $from $to)),)*
        }
    };
    (@value $v:expr, bool bool) => { $v };
    (@value $v:expr, $a:ident bool) => { $v != <$a as Storable>::ZERO };
    (@value $v:expr, bool $b:ident) => { if $v { <$b as Storable>::ONE } else { <$b as Storable>::ZERO } };
    (@value $v:expr, $a:ident $b:ident) => { $v as $b };
}

casts! { f32 f64 i32 i64 u8 bool }

impl<T: Element> Tensor<T> {
    /// Converts elements as by Rust's `as`: floats round, an integer wraps, a float outside the range of an
    /// integer type saturates; a `bool` is `x != 0`, and gives 0 or 1. Gradients flow between float types only.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from(vec![1.9, -1.9]).cast::<i64>().to_vec(), [1, -1]);
    /// ```
    #[doc(alias = "astype")]
    #[doc(alias = "to_dtype")]
    #[track_caller]
    pub fn cast<U: Element>(&self) -> Tensor<U> {
        expect(call(&CAST, [Attr::Type(U::DTYPE)], [self.untyped()]))
    }
}

impl<T: Numeric> Tensor<T> {
    /// True where an element is NaN.
    #[track_caller]
    pub fn is_nan(&self) -> Tensor<bool> {
        self.not_equal(self)
    }
}
