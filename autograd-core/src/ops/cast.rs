//! Conversion of the element type.

use std::panic::Location;

use smallvec::smallvec;

use super::call::call;
use super::table::{Attr, Form, OpDef, Type, entries, exactly, for_programs, one};
use super::{Caller, expect};
use crate::array::elementwise::convert;
use crate::array::{DType, Storable, Value};
use crate::graph::{AnyTensor, Element, Lost, Rule, Tensor, TensorHandle, finish, for_any};

entries! {
    CASTS:

    CAST = OpDef {
        attrs: &[("to", Type::Elements)],
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            Ok(vec![Form::new(op.dtype(0), x.dims.clone())])
        }),
        run: |op, x, at| {
            Ok(smallvec![cast(&one(x)?, op.dtype(0), at)])
        },
        ..OpDef::new("cast")
    };
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
    Tensor::from_value(value).with_lost(lost).into()
}

macro_rules! casts {
    ($x:ident, $to:ident, $caller:ident: $($variant:ident $from:ident),*) => {
        match $x {
            $(AnyTensor::$variant(x) => casts! {
                @of x, $to, $caller, $from:
                Float32 f32, Float64 f64, Int32 i32, Int64 i64, UInt8 u8, Bool bool
            },)*
        }
    };
    (@of $x:ident, $dtype:ident, $caller:ident, $from:ident: $($variant:ident $to:ident),*) => {
        match $dtype {
            $(DType::$variant => converted($x, $caller, |v| casts!(@value v, $from $to)),)*
        }
    };
    (@value $v:expr, bool bool) => { $v };
    (@value $v:expr, $a:ident bool) => { $v != <$a as Storable>::ZERO };
    (@value $v:expr, bool $b:ident) => { if $v { <$b as Storable>::ONE } else { <$b as Storable>::ZERO } };
    (@value $v:expr, $a:ident $b:ident) => { $v as $b };
}

/// Converts to an element type given as a value: generic code needs no bound for each pair of types.
pub(crate) fn cast(x: &AnyTensor, to: DType, caller: Caller) -> AnyTensor {
    casts! {
        x, to, caller: Float32 f32, Float64 f64, Int32 i32, Int64 i64, UInt8 u8, Bool bool
    }
}

/// Returns a number as a scalar of an element type, or why the type cannot hold it.
pub(crate) fn number(dtype: DType, number: f64) -> Result<AnyTensor, String> {
    let scalar = cast(&Tensor::from(number).into(), dtype, Location::caller());
    let same = for_any!(&scalar, scalar => scalar.cast::<f64>().item()) == number;
    if dtype.is_float() || same {
        return Ok(scalar);
    }
    Err(format!("{dtype} cannot hold the number {number:?}"))
}

/// # Element types
impl<T: Element> Tensor<T> {
    /// Converts elements as by Rust's `as`: 1.9 becomes the integer 1, a float outside the range of an integer type
    /// its nearest bound, and NaN 0; a number that `f32` does not have becomes the nearest one; an integer wraps.
    /// A `bool` is `x != 0`, and gives 0 or 1. Gradients flow between float types only.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from(vec![1.9, -1.9]).cast::<i64>().to_vec(), [1, -1]);
    /// ```
    #[doc(alias = "to")]
    #[doc(alias = "double")]
    #[doc(alias = "float")]
    #[doc(alias = "astype")]
    #[doc(alias = "to_dtype")]
    #[track_caller]
    pub fn cast<U: Element>(&self) -> Tensor<U> {
        expect(call(&CAST, [Attr::Type(U::DTYPE)], [self.untyped()]))
    }
}
