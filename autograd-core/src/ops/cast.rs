//! Conversion of the element type.

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
            Ok(smallvec![for_any!(one(x)?, x => Cast::cast(&x, op.dtype(0), at))])
        },
        ..OpDef::new("cast")
    };
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
    Tensor::from_value(value).with_lost(lost).into()
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
