//! Ops compiled in the library, once for each element type: a release build shares no generic
//! function between crates. So the methods of [`Tensor`] are short, and call methods of these
//! traits, which are not generic.

use ndarray::ArrayD;

use super::binary::{BINARY, SCALAR};
use super::call::call_at;
use super::elementwise::{self, ElementwiseOp, Handle, Outputs};
use super::inplace::{copy_from, fill, replace};
use super::matmul::MATMUL;
use super::reduce::REDUCTIONS;
use super::table::attr::Attr;
use super::trace;
use super::unary::FUNCTIONS;
use super::{
    Binary, Caller, Float, Input, Numeric, Reduce, Unary, binary, create, expect, matmul, reduce,
    shape, split,
};
use crate::array::Shape;
use crate::error::Result;
use crate::graph::{OfElements, Tensor, View, is_noting};

/// Implements [`OfElements`] by generic functions. Not inlined: other crates would compile them again.
macro_rules! of_elements {
    ($($t:ident)*; $methods:tt) => {
        $(of_elements!(@implement $t $methods);)*
    };
    (@implement $t:ident {
        $($(#[$cfg:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $function:path;)*
    }) => {
        impl OfElements for $t {
            $(
                $(#[$cfg])*
                #[inline(never)]
                fn $name($($arg: $ty),*) $(-> $ret)? {
                    $function($($arg),*)
                }
            )*
        }
    };
}

of_elements! {
    f32 f64 i32 i64 u8 bool; {
        fn of_vec(shape: Shape, data: Vec<Self>) -> Result<Tensor<Self>> = create::of_vec;
        fn of_slice(shape: Shape, data: &[Self]) -> Tensor<Self> = create::of_slice;
        fn item(x: &Tensor<Self>) -> Result<Self> = create::item;
        fn to_vec(x: &Tensor<Self>) -> Vec<Self> = create::to_vec;
        fn to_ndarray(x: &Tensor<Self>) -> ArrayD<Self> = create::to_ndarray;
        fn view(x: &Tensor<Self>) -> View<'_, Self> = Tensor::view_here;
        #[cfg(feature = "nn")]
        fn own(x: &Tensor<Self>) -> Tensor<Self> = Tensor::own;
        fn detach(x: &Tensor<Self>, at: Caller) -> Tensor<Self> = Tensor::detached_at;
        fn copy(x: &Tensor<Self>, at: Caller) -> Tensor<Self> = shape::copy;
        fn contiguous(x: &Tensor<Self>, at: Caller) -> Tensor<Self> = shape::contiguous;
        fn split(
            x: &Tensor<Self>,
            parts: usize,
            axis: isize,
            at: Caller,
        ) -> Result<Vec<Tensor<Self>>> = split::split;
        fn copy_from(x: &Tensor<Self>, source: &Tensor<Self>, at: Caller) -> Result<()>
            = copy_from;
        fn fill(x: &Tensor<Self>, element: Self) -> Result<()> = fill;
        fn replace(
            x: &mut Tensor<Self>,
            name: &'static str,
            result: Tensor<Self>,
        ) -> Result<()> = replace;
    }
}

// Noting is off inside an op, so an entry called from these methods may call them again to run the op.

/// Calls the scalar op if a program can hold the number as an `f64`; otherwise makes the number a tensor.
#[cold]
fn noted_scalar<T: Numeric + num_traits::NumCast>(
    op: Binary,
    x: Input<'_, T>,
    (scalar, swapped): (T, bool),
    caller: Caller,
) -> Tensor<T> {
    let is_held = |number: &f64| T::DTYPE.is_float() || T::nearest(*number) == scalar;
    expect(match scalar.to_f64().filter(is_held) {
        Some(number) => {
            let attrs = [Attr::Number(number), Attr::Flag(swapped)];
            call_at(&SCALAR[op as usize], attrs, [x.tensor().untyped()], caller)
        }
        None => {
            let number = Input::Own(Tensor::from(scalar));
            let [a, b] = if swapped { [number, x] } else { [x, number] };
            T::binary(op, a, b, caller)
        }
    })
}

macro_rules! numeric_entry_points {
    ($($t:ty => $binary:path, $scalar:path, $reduce:path, $matmul:path;)*) => {$(
        impl Numeric for $t {
            fn nearest(value: f64) -> Self {
                value as $t
            }
            fn binary(
                op: Binary,
                left: Input<'_, Self>,
                right: Input<'_, Self>,
                caller: Caller,
            ) -> Result<Tensor<Self>> {
                match is_noting() {
                    true => {
                        let inputs = [left.tensor().untyped(), right.tensor().untyped()];
                        call_at(&BINARY[op as usize], [], inputs, caller)
                    }
                    false => $binary(op, left, right, caller),
                }
            }
            fn binary_scalar(
                op: Binary,
                x: Input<'_, Self>,
                scalar: Self,
                swapped: bool,
                caller: Caller,
            ) -> Tensor<Self> {
                match is_noting() {
                    true => noted_scalar(op, x, (scalar, swapped), caller),
                    false => $scalar(op, x, scalar, swapped, caller),
                }
            }
            fn reduce(
                op: Reduce,
                x: &Tensor<Self>,
                axes: &[isize],
                keep: bool,
                caller: Caller,
            ) -> Result<Tensor<Self>> {
                if is_noting() {
                    let attrs = [Attr::Ints(axes.to_vec()), Attr::Flag(keep)];
                    return call_at(&REDUCTIONS[op as usize], attrs, [x.untyped()], caller);
                }
                $reduce(op, x, axes, keep, caller)
            }
            fn matmul(
                left: &Tensor<Self>,
                right: &Tensor<Self>,
                caller: Caller,
            ) -> Result<Tensor<Self>> {
                if is_noting() {
                    return call_at(&MATMUL, [], [left.untyped(), right.untyped()], caller);
                }
                $matmul(left, right, caller)
            }
        }
    )*};
}

numeric_entry_points! {
    f32 => binary::float, binary::float_scalar, reduce::float, matmul::float;
    f64 => binary::float, binary::float_scalar, reduce::float, matmul::float;
    i32 => binary::integer, binary::integer_scalar, reduce::integer, matmul::integer;
    i64 => binary::integer, binary::integer_scalar, reduce::integer, matmul::integer;
    u8 => binary::integer, binary::integer_scalar, reduce::integer, matmul::integer;
}

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Float for $t {
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            fn into_f64(self) -> f64 {
                f64::from(self)
            }
            fn unary(op: Unary, x: Input<'_, Self>, caller: Caller) -> Tensor<Self> {
                match is_noting() {
                    true => {
                        let x = [x.tensor().untyped()];
                        expect(call_at(&FUNCTIONS[op as usize], [], x, caller))
                    }
                    false => elementwise::run_single(Handle::Static(op.op()), x, caller),
                }
            }
            fn formula(
                op: &'static dyn ElementwiseOp<Self>,
                x: &Tensor<Self>,
                caller: Caller,
            ) -> Result<Tensor<Self>> {
                if !is_noting() && elementwise::is_single(op.info()) {
                    return Ok(elementwise::run_single(Handle::Static(op), Input::Ref(x), caller));
                }
                elementwise::one_output(Self::elementwise(Handle::Static(op), &[x], &[], caller))
            }
            fn elementwise(
                op: Handle<Self>,
                reals: &[&Tensor<Self>],
                masks: &[&Tensor<bool>],
                caller: Caller,
            ) -> Result<Outputs<Self>> {
                if is_noting() {
                    let inputs = reals.iter().map(|x| x.untyped());
                    let inputs = inputs.chain(masks.iter().map(|mask| mask.untyped())).collect();
                    let call = trace::formula(&op);
                    let run = || elementwise::run(op, reals, masks, caller);
                    let outputs = |all: &Outputs<Self>| all.iter().map(|y| y.untyped()).collect();
                    return trace::noted(call, inputs, caller, run, outputs);
                }
                elementwise::run(op, reals, masks, caller)
            }
        }
    )*};
}

floats! { f32 f64 }
