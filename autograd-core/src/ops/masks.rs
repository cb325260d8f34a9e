//! Masks: logic, selection by a mask, and the positions of true elements.

use std::ops::{BitAnd, BitOr, BitXor, Not};
use std::panic::Location;

use smallvec::smallvec;

use super::call::{call, call_at};
use super::gather::place;
use super::table::{
    Computed, Form, Gradient, OpDef, Ran, Values, arithmetic, broadcast as broadcast_forms,
    computed, entries, exactly, for_programs, number, one, same_dtype, several,
};
use super::{Binary, Caller, Numeric, Operand, expect, pairs};
use crate::array::elementwise::{chosen_of, convert, convert_zip};
use crate::array::shape::broadcast;
use crate::array::{DType, Value};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Rule, Saved, Scalar, Tensor, finish, unrecorded};

entries! {
    MASKS:

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
            AnyTensor::Bool(x) => computed(Ok(Tensor::from_value(convert(&x.read(), |a| !a)).and_lost(&x))),
            _ => Err("its mask must be bool".into()),
        },
        gradient: Gradient::None,
        ..OpDef::new("not")
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
            let both = Tensor::from_value(convert_zip(&shape, &a.read(), &b.read(), f));
            computed(Ok(both.and_lost(&a).and_lost(&b)))
        }
        _ => Err("its masks must be bool".into()),
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
    if !on.would_record() && !off.would_record() {
        return Ok(unrecorded(name, caller, &[on, off], value).and_lost(mask));
    }
    Ok(finish(name, caller, &[on, off], value, || {
        let shapes = [on.shape_owned(), off.shape_owned()];
        Rule::new([Saved::input(0, mask)], move |saved, dy: Tensor<T>, wants| {
            let (mask, zero) =
                (saved.tensor::<bool>()?, Tensor::from_value(Value::scalar(T::ZERO)));
            Ok([
                wants[0].then(|| mask.where_else(&dy, &zero).unbroadcast(&shapes[0])),
                wants[1].then(|| mask.where_else(&zero, &dy).unbroadcast(&shapes[1])),
            ])
        })
        .with_push(|saved, tangents: &[Option<Tensor<T>>], shape| {
            let (mask, zero) =
                (saved.tensor::<bool>()?, Tensor::from_value(Value::scalar(T::ZERO)));
            let [on, off] = [0, 1].map(|i| tangents[i].as_ref().unwrap_or(&zero));
            let dy = mask.try_where_else(on, off)?;
            Ok(Some(if dy.shape() == shape { dy } else { dy.try_broadcast_to(shape)? }))
        })
    }))
}

/// # Choices
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// [`Tensor::where_else`] in the order of PyTorch and NumPy.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([-1.0, 2.0]);
        /// assert_eq!(Tensor::where_(&x.gt_scalar(0.0), &x, 0.0).to_vec(), [0.0, 2.0]);
        /// ```
        #[doc(alias = "where_cond")]
        #[doc(alias = "mask_where")]
        pub fn where_(mask: &Tensor<bool>, on: impl Operand<T>, off: impl Operand<T>) -> Tensor<T>,
            Panics if "the three shapes cannot be broadcast together" {
            expect(mask.try_where_else(on, off).map_err(|error| error.called("where_")))
        }

        /// Returns this tensor with `element` where `mask` is true, with broadcasting. The gradient there is 0.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let scores = Tensor::from([1.0, 2.0, 3.0]);
        /// let hidden = Tensor::from([false, true, false]);
        /// assert_eq!(scores.masked_fill(&hidden, f64::NEG_INFINITY).softmax(0).to_vec()[1], 0.0);
        /// ```
        #[doc(alias = "mask_fill")]
        pub fn masked_fill(&self, mask: &Tensor<bool>, element: impl Scalar<T>) -> Tensor<T>,
            Panics if "the shapes cannot be broadcast together" {
            let filled = mask.try_where_else(Tensor::from(element.scalar()), self);
            expect(filled.map_err(|error| error.called("masked_fill")))
        }

        /// Returns the elements where `mask` is true, in row-major order, along one axis. In a trace, the
        /// mask must not depend on the inputs, as the number of elements does.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, -2.0], [-3.0, 4.0]]);
        /// assert_eq!(x.masked_select(&x.gt_scalar(0.0)).to_vec(), [1.0, 4.0]);
        /// ```
        #[doc(alias = "boolean_mask")]
        pub fn masked_select(&self, mask: &Tensor<bool>) -> Tensor<T>,
            Panics if "the shapes cannot be broadcast together" {
            mask.is_read("masked_select");
            let shape = expect(broadcast("masked_select", self.shape(), mask.shape()));
            let mask = if mask.shape() == &shape[..] { mask } else { &wide(mask, &shape) };
            let x = if self.shape() == &shape[..] { self } else { &self.broadcast_to(shape) };
            x.flatten().index_select(0, &Tensor::from(places(mask)).and_lost(mask))
        }
    }
}

fn wide(mask: &Tensor<bool>, shape: &[usize]) -> Tensor<bool> {
    mask.cast::<u8>().broadcast_to(shape).cast()
}

pub(super) fn places(mask: &Tensor<bool>) -> Vec<i64> {
    (0..).zip(mask.to_vec()).filter_map(|(at, on)| on.then_some(at)).collect()
}

/// # Masks
///
/// `&`, `|`, `^` and `!` are [`Tensor::and`], [`Tensor::or`], [`Tensor::xor`] and [`Tensor::not`].
impl Tensor<bool> {
    pairs! {
        /// True where both masks are true: `a & b`.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let mask = Tensor::from([true, false]).and(&Tensor::from([true, true]));
        /// assert_eq!(mask.to_vec(), [true, false]);
        /// ```
        #[doc(alias = "logical_and")]
        pub fn and(&self, other: &Tensor<bool>) -> Tensor<bool>,
            Panics if "the shapes cannot be broadcast together" {
            expect(call(&AND, [], [self.untyped(), other.untyped()]))
        }

        /// True where at least one mask is true: `a | b`.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let mask = Tensor::from([true, false]).or(&Tensor::from([false, false]));
        /// assert_eq!(mask.to_vec(), [true, false]);
        /// ```
        #[doc(alias = "logical_or")]
        pub fn or(&self, other: &Tensor<bool>) -> Tensor<bool>,
            Panics if "the shapes cannot be broadcast together" {
            expect(call(&OR, [], [self.untyped(), other.untyped()]))
        }

        /// True where exactly one mask is true: `a ^ b`.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let mask = Tensor::from([true, false]).xor(&Tensor::from([true, true]));
        /// assert_eq!(mask.to_vec(), [false, true]);
        /// ```
        #[doc(alias = "logical_xor")]
        pub fn xor(&self, other: &Tensor<bool>) -> Tensor<bool>,
            Panics if "the shapes cannot be broadcast together" {
            expect(call(&XOR, [], [self.untyped(), other.untyped()]))
        }
    }

    /// True where this mask is false: `!a`, in its shape.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from([true, false]).not().to_vec(), [false, true]);
    /// ```
    #[doc(alias = "logical_not")]
    #[allow(clippy::should_implement_trait, reason = "it is the method behind `!`")]
    #[track_caller]
    pub fn not(&self) -> Tensor<bool> {
        expect(call(&NOT, [], [self.untyped()]))
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
            Broadcast if "the three shapes cannot be broadcast together",
            "Tensor::from([true, false]).try_where_else(Tensor::from([1.0, 2.0, 3.0]), 0.0)" => Broadcast {
            let at = Location::caller();
            on.lend(|on| {
                off.lend(|off| call_at(&WHERE, [], [self.untyped(), on.untyped(), off.untyped()], at))
            })
        }
    }

    /// Returns the positions of the true elements in row-major order, as indices: `[count, axes]`.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let mask = Tensor::from([[true, false], [false, true]]);
    /// assert_eq!(mask.nonzero().to_vec(), [0, 0, 1, 1]);
    /// ```
    #[doc(alias = "argwhere")]
    #[track_caller]
    pub fn nonzero(&self) -> Tensor<i64> {
        self.is_read("nonzero");
        let places = places(self);
        let count = places.len();
        let of_axes = |at: i64| place(at as usize, self.shape()).into_iter().map(|at| at as i64);
        let all: Vec<i64> = places.into_iter().flat_map(of_axes).collect();
        Tensor::from(all).reshape([count, self.ndim()]).and_lost(self)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $name:ident $left:ty, $right:ty;)*) => {$(
        /// Panics if the shapes cannot be broadcast together.
        impl $trait<$right> for $left {
            type Output = Tensor<bool>;

            #[track_caller]
            fn $method(self, other: $right) -> Tensor<bool> {
                let (left, right): (&Tensor<bool>, &Tensor<bool>) = (&self, &other);
                left.$name(right)
            }
        }
    )*};
    ($($trait:ident $method:ident $name:ident;)*) => {
        operators! { $(
            $trait $method $name Tensor<bool>, Tensor<bool>;
            $trait $method $name Tensor<bool>, &Tensor<bool>;
            $trait $method $name &Tensor<bool>, Tensor<bool>;
            $trait $method $name &Tensor<bool>, &Tensor<bool>;
        )* }
    };
}

operators! {
    BitAnd bitand and;
    BitOr bitor or;
    BitXor bitxor xor;
}

impl Not for &Tensor<bool> {
    type Output = Tensor<bool>;

    #[track_caller]
    fn not(self) -> Tensor<bool> {
        Tensor::not(self)
    }
}

impl Not for Tensor<bool> {
    type Output = Tensor<bool>;

    #[track_caller]
    fn not(self) -> Tensor<bool> {
        Tensor::not(&self)
    }
}
