//! Activations with a parameter, and dropout.

use std::sync::Arc;

use super::super::call::call;
use super::super::elementwise::{Handle, Info, Pair, Reduction, formulas, one_output};
use super::super::table::{
    Attr, Effect, OpDef, Type, any, entries, float, for_programs, same_float,
};
use super::super::{Caller, Float, Input, Scalar, Unary, expect, pairs};
use crate::array::Shape;
use crate::array::threads::each_grain;
use crate::error::{Error, Result};
use crate::formula::{Compiled, Lane, Program, Real};
use crate::graph::Tensor;

/// With the parameter 0 it is relu: an infinity that is not selected must not be multiplied by 0.
fn activation<T: Float>(
    x: Tensor<T>,
    op: fn(f64) -> Handle<T>,
    number: f64,
    at: Caller,
) -> Result<Tensor<T>> {
    match number {
        0.0 => Ok(T::unary(Unary::Relu, Input::Own(x), at)),
        number => one_output(T::elementwise(op(number), &[&x], &[], at)),
    }
}

/// Functions of a tensor and a number. Each call creates the op, as the number is part of its formulas.
macro_rules! with_number {
    ($($name:ident |$x:ident, $number:ident, $dy:ident| $y:expr, $dx:expr;)*) => {$(
        fn $name<T: Float>(number: f64) -> Handle<T> {
            formulas! {
                Forward($number) |$x| [$y];
                Backward($number) |$x, $dy| [$dx];
            }

            static INFO: Info =
                Info::new(stringify!($name), &["x"], &[true], [&[0], &[]], Reduction::None);
            /// No derivative for a check of backward.
            const NO_OTHER: Option<Program> = None;
            let (forward, backward) = (Compiled(Forward(number)), Compiled(Backward(number)));
            Handle::Shared(Arc::new(Pair::new(&INFO, forward, backward, NO_OTHER)))
        }
    )*};
}

with_number! {
    leaky_relu |x, slope, dy| x.gt(0.0).select(x, x * slope), x.gt(0.0).select(dy, slope * dy);
    // The exponential's argument is limited, so that a value that is not selected stays finite. The
    // slope is not computed from the function, which is near -1 where the slope is near 0.
    elu |x, alpha, dy| x.gt(0.0).select(x, x.min(0.0).exp_m1() * alpha),
        x.gt(0.0).select(dy, x.min(0.0).exp() * alpha * dy);
    nan_to_num |x, value, dy| x.is_nan().select(value, x), x.is_nan().select(0.0, dy);
}

/// Returns dropout of `x` by the drawn factors as an op: 0 where the factor is 0, even if `x` is not finite.
fn dropped<T: Float>() -> Handle<T> {
    formulas! {
        Forward |x, factor| [factor.eq(0.0).select(0.0, x * factor)];
        Backward |factor, dy| [factor.eq(0.0).select(0.0, dy * factor)];
    }

    static INFO: Info =
        Info::new("dropout", &["self", "factors"], &[true, false], [&[1], &[]], Reduction::None);
    static OP: Pair<Compiled<Forward, 2, 0, 1>, Compiled<Backward, 2, 0, 1>, Program> =
        Pair::new(&INFO, Compiled(Forward), Compiled(Backward), None);
    Handle::Static(&OP)
}

/// Draws the factors of dropout from the process-wide generator; `p` is a probability above 0.
fn dropout_mask<T: Float>(shape: Shape, p: f64) -> Tensor<T> {
    let mut mask = Tensor::<T>::rand(shape).read().into_owned();
    // For p = 1 no number reaches the limit, and the scale is not used.
    let (limit, scale) = (T::from_f64(p), T::from_f64(1.0 / (1.0 - p)));
    each_grain(mask.make_mut(), &|_, part| {
        part.iter_mut().for_each(|x| *x = if *x >= limit { scale } else { T::ZERO });
    });
    Tensor::from_value(mask)
}

entries! {
    ACTIVATIONS:

    LEAKY_RELU = OpDef {
        attrs: &[("slope", Type::Number)],
        run: |op, x, at| float!(x, x => activation(x, leaky_relu, op.number(0), at)),
        ..elementwise("leaky_relu")
    };

    ELU = OpDef {
        attrs: &[("alpha", Type::Number)],
        run: |op, x, at| float!(x, x => activation(x, elu, op.number(0), at)),
        ..elementwise("elu")
    };

    NAN_TO_NUM = OpDef {
        attrs: &[("value", Type::Number)],
        run: |op, x, at| float!(x, x => without_nan(&x, op.number(0), at)),
        ..elementwise("nan_to_num")
    };

    DROPOUT = OpDef {
        attrs: &[("p", Type::Plain), ("training", Type::Training)],
        run: |op, x, at| match op.draws() {
            false => any!(x, x => Ok(x.copy())),
            true => float!(x, x => dropout(&x, op.number(0), at)),
        },
        effect: Effect::Draws,
        ..elementwise("dropout")
    };
}

const fn elementwise(name: &'static str) -> OpDef {
    OpDef { infer: for_programs(same_float), ..OpDef::new(name) }
}

fn dropout<T: Float>(x: &Tensor<T>, p: f64, at: Caller) -> Result<Tensor<T>> {
    let factors = dropout_mask(x.shape_owned(), p);
    one_output(T::elementwise(dropped(), &[x, &factors], &[], at))
}

fn without_nan<T: Float>(x: &Tensor<T>, value: f64, at: Caller) -> Result<Tensor<T>> {
    one_output(T::elementwise(nan_to_num(value), &[x], &[], at))
}

/// # Activations with a parameter
///
/// The result has the shape of `x`.
impl<T: Float> Tensor<T> {
    /// `x` where `x > 0`, else `slope * x`; the gradient at 0 is `slope` (Maas, Hannun and Ng 2013).
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from([-2.0, 3.0]).leaky_relu(0.25).to_vec(), [-0.5, 3.0]);
    /// ```
    #[track_caller]
    pub fn leaky_relu(&self, slope: impl Scalar<T>) -> Tensor<T> {
        let attrs = [Attr::Number(slope.scalar().into_f64())];
        expect(call(&LEAKY_RELU, attrs, [self.untyped()]))
    }

    /// `x` where `x > 0`, else `alpha * (exp(x) - 1)`; the gradient at 0 is `alpha` (Clevert,
    /// Unterthiner and Hochreiter 2016).
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from([f64::NEG_INFINITY, 3.0]).elu(0.5).to_vec(), [-0.5, 3.0]);
    /// ```
    #[track_caller]
    pub fn elu(&self, alpha: impl Scalar<T>) -> Tensor<T> {
        let attrs = [Attr::Number(alpha.scalar().into_f64())];
        expect(call(&ELU, attrs, [self.untyped()]))
    }

    /// `value` where `x` is NaN, else `x`; the gradient is 0 where `x` is NaN. Infinities stay; a
    /// [`clamp`](Self::clamp) after it limits them:
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([f32::NAN, f32::INFINITY, 1.0]);
    /// assert_eq!(x.nan_to_num(0.0).clamp(f32::MIN, f32::MAX).to_vec(), [0.0, f32::MAX, 1.0]);
    /// ```
    #[track_caller]
    pub fn nan_to_num(&self, value: impl Scalar<T>) -> Tensor<T> {
        let attrs = [Attr::Number(value.scalar().into_f64())];
        expect(call(&NAN_TO_NUM, attrs, [self.untyped()]))
    }

    pairs! {
        /// In training, each element becomes 0 with probability `p`, else it is divided by `1 - p`; otherwise
        /// returns the elements as they are (Srivastava et al. 2014). Draws from the process-wide generator that
        /// [`seed`](crate::seed) sets.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let y = Tensor::<f32>::ones([1000]).dropout(0.5, true);
        /// assert!(y.to_vec().iter().all(|&y| y == 0.0 || y == 2.0));
        /// ```
        pub fn dropout, try_dropout(&self, p: f64, training: bool) -> Tensor<T>, Value if
            "`p` is not in [0, 1]",
            "Tensor::from([1.0]).try_dropout(1.5, true)" => Value
        {
            if !(0.0..=1.0).contains(&p) {
                let (expected, found) = ("a probability".into(), p.to_string());
                return Err(Error::Value { op: "dropout", parameter: "p", expected, found });
            }
            call(&DROPOUT, [Attr::Number(p), Attr::Flag(training)], [self.untyped()])
        }
    }
}
