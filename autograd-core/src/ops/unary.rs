//! Functions of one tensor, element by element.

use super::{Caller, Float, Input};
use crate::array::Value;
use crate::array::elementwise::{Map, MapSlice, Zip, ZipSlices, map, zip_onto};
use crate::array::lane::Lane;
use crate::array::math::{Math, angles_in_range};
use crate::error::Result;
use crate::graph::{
    Elementwise, Keep, KeepOutput, KeptOutput, Plain, Tensor, is_grad_enabled, op_node,
};

/// What a rule needs besides the output's gradient.
enum Saves {
    Nothing,
    Input,
    Output,
}

/// A table of rules: `Name method saves, |x| y = f(x), |dy, saved| dx`. The derivative is written
/// once and compiled twice: over lanes of numbers, which makes one fused pass, and over tensors,
/// which makes it differentiable again.
macro_rules! unary_ops {
    ($(
        $(#[$doc:meta])*
        $name:ident $method:ident $saves:ident,
        |$x:ident| $forward:expr, |$dy:ident, $s:ident| $backward:expr;
    )*) => {
        /// The functions of one tensor.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Unary { $($name),* }

        impl Unary {
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($method)),* }
            }

            fn saves(self) -> Saves {
                match self { $(Self::$name => Saves::$saves),* }
            }

            const fn takes_angle(self) -> bool {
                matches!(self, Self::Sin | Self::Cos | Self::Tan)
            }

            pub(super) fn kernel<T: Float>(self) -> &'static dyn MapSlice<T> {
                match self { $(Self::$name => &forward::$name),* }
            }

            pub(super) fn gradient_kernel<T: Float>(self) -> &'static dyn ZipSlices<T> {
                match self { $(Self::$name => &backward::$name),* }
            }

            /// The derivative as ops on tensors.
            fn formula<T: Float>(self, dy: Tensor<T>, saved: &Tensor<T>) -> Tensor<T> {
                match self { $(Self::$name => { let ($dy, $s) = (dy, saved); let _ = $s; $backward })* }
            }
        }

        mod forward {
            use super::*;
            $(
                #[derive(Clone, Copy)]
                pub(super) struct $name;
                impl $name {
                    #[inline(always)]
                    fn formula<T: Math, const FMA: bool, const LARGE: bool>(x: T) -> T {
                        let $x = Lane::<T, FMA, LARGE>(x);
                        let y: Lane<T, FMA, LARGE> = $forward;
                        y.0
                    }
                }
                impl<T: Math> Map<T> for $name {
                    const ANGLE: bool = Unary::$name.takes_angle();

                    #[inline(always)]
                    fn call<const FMA: bool>(self, x: T) -> T {
                        Self::formula::<T, FMA, false>(x)
                    }

                    #[inline(always)]
                    fn call_large<const FMA: bool>(self, x: T) -> T {
                        Self::formula::<T, FMA, true>(x)
                    }
                }
            )*
        }

        mod backward {
            use super::*;
            $(
                #[derive(Clone, Copy)]
                pub(super) struct $name;
                impl $name {
                    #[inline(always)]
                    fn formula<T: Math, const FMA: bool, const LARGE: bool>(dy: T, s: T) -> T {
                        let ($dy, $s) = (Lane::<T, FMA, LARGE>(dy), Lane::<T, FMA, LARGE>(s));
                        let _ = $s;
                        let dx: Lane<T, FMA, LARGE> = $backward;
                        dx.0
                    }
                }
                impl<T: Math> Zip<T> for $name {
                    #[inline(always)]
                    fn has_large(saved: &[T]) -> bool {
                        let takes_angle = const { Unary::$name.takes_angle() };
                        takes_angle && !angles_in_range(saved)
                    }

                    #[inline(always)]
                    fn call<const FMA: bool>(self, dy: T, s: T) -> T {
                        Self::formula::<T, FMA, false>(dy, s)
                    }

                    #[inline(always)]
                    fn call_large<const FMA: bool>(self, dy: T, s: T) -> T {
                        Self::formula::<T, FMA, true>(dy, s)
                    }
                }
            )*
        }

        /// # Functions of each element
        ///
        /// Each gives a tensor of the same shape. Angles are in radians.
        impl<T: Float> Tensor<T> {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $method(&self) -> Tensor<T> {
                    T::unary(Unary::$name, Input::Ref(self), std::panic::Location::caller())
                }
            )*
        }
    };
}

unary_ops! {
    /// `-x`; also written `-&x`.
    Neg neg Nothing, |x| -x, |dy, _s| -dy;
    /// `|x|`; the gradient at 0 is 0.
    Abs abs Input, |x| x.abs(), |dy, x| dy * x.signum();
    /// -1, 0 or 1; its gradient is 0.
    Signum signum Nothing, |x| x.signum(), |dy, _s| dy * 0.0;
    /// 1 where `x > 0`, else 0 (Heaviside's function); its gradient is 0.
    Step step Nothing, |x| x.step(), |dy, _s| dy * 0.0;
    /// The greatest integer not above `x`; its gradient is 0.
    Floor floor Nothing, |x| x.floor(), |dy, _s| dy * 0.0;
    /// The least integer not below `x`; its gradient is 0.
    Ceil ceil Nothing, |x| x.ceil(), |dy, _s| dy * 0.0;
    /// The nearest integer, halves to the even one; its gradient is 0.
    Round round Nothing, |x| x.round(), |dy, _s| dy * 0.0;
    /// `x * x`.
    Square square Input, |x| x * x, |dy, x| dy * x * 2.0;
    /// The square root; NaN below 0.
    Sqrt sqrt Output, |x| x.sqrt(), |dy, y| dy / y * 0.5;
    /// `1 / sqrt(x)`.
    Rsqrt rsqrt Output, |x| x.rsqrt(), |dy, y| dy * y * y * y * -0.5;
    /// `1 / x`.
    Recip recip Output, |x| x.recip(), |dy, y| -(dy * y * y);
    /// `e` to the power `x`.
    Exp exp Output, |x| x.exp(), |dy, y| dy * y;
    /// `exp(x) - 1`, accurate near 0.
    ExpM1 exp_m1 Output, |x| x.exp_m1(), |dy, y| dy * (y + 1.0);
    /// The natural logarithm; NaN below 0.
    Ln ln Input, |x| x.ln(), |dy, x| dy / x;
    /// `ln(1 + x)`, accurate near 0.
    Ln1p ln_1p Input, |x| x.ln_1p(), |dy, x| dy / (x + 1.0);
    /// The logarithm to base 2.
    Log2 log2 Input, |x| x.log2(), |dy, x| dy / x * std::f64::consts::LOG2_E;
    /// The logarithm to base 10.
    Log10 log10 Input, |x| x.log10(), |dy, x| dy / x * std::f64::consts::LOG10_E;
    /// The sine.
    Sin sin Input, |x| x.sin(), |dy, x| dy * x.cos();
    /// The cosine.
    Cos cos Input, |x| x.cos(), |dy, x| -(dy * x.sin());
    /// The tangent.
    Tan tan Output, |x| x.tan(), |dy, y| dy * (y * y + 1.0);
    /// The inverse sine, in [-pi/2, pi/2]; NaN outside [-1, 1].
    Asin asin Input, |x| x.asin(), |dy, x| dy / (1.0 - x * x).sqrt();
    /// The inverse cosine, in [0, pi]; NaN outside [-1, 1].
    Acos acos Input, |x| x.acos(), |dy, x| -(dy / (1.0 - x * x).sqrt());
    /// The inverse tangent, in [-pi/2, pi/2].
    Atan atan Input, |x| x.atan(), |dy, x| dy / (x * x + 1.0);
    /// The hyperbolic sine.
    Sinh sinh Input, |x| x.sinh(), |dy, x| dy * x.cosh();
    /// The hyperbolic cosine.
    Cosh cosh Input, |x| x.cosh(), |dy, x| dy * x.sinh();
    /// The hyperbolic tangent.
    Tanh tanh Output, |x| x.tanh(), |dy, y| dy * (1.0 - y * y);
    /// The logistic function `1 / (1 + exp(-x))`.
    Sigmoid sigmoid Output, |x| x.sigmoid(), |dy, y| dy * (y * (1.0 - y));
    /// `ln(1 + exp(x))`, without overflow.
    Softplus softplus Input, |x| x.softplus(), |dy, x| dy * x.sigmoid();
    /// `x * sigmoid(x)`, also called swish.
    Silu silu Input, |x| x * x.sigmoid(), |dy, x| dy * (x.sigmoid() * ((1.0 - x.sigmoid()) * x + 1.0));
    /// The Gaussian error function, `2 / sqrt(pi)` times the integral of `exp(-t * t)` from 0 to `x`.
    Erf erf Input, |x| x.erf(), |dy, x| dy * (-(x * x)).exp() * std::f64::consts::FRAC_2_SQRT_PI;
    /// `x` where `x > 0`, else 0; the gradient at 0 is 0. NaN stays NaN.
    Relu relu Output, |x| x.relu(), |dy, y| dy * y.step();
    /// The Gaussian error linear unit `x * (1 + erf(x / sqrt(2))) / 2` (Hendrycks and Gimpel 2016).
    Gelu gelu Input,
        |x| x * 0.5 * ((x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0),
        |dy, x| dy * (((x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) * 0.5
            + (x * x * -0.5).exp() * x * 0.398_942_280_401_432_7);
}

/// Runs and, where it must be, records a unary op.
pub(super) fn run<T: Float>(op: Unary, x: Input<'_, T>, caller: Caller) -> Tensor<T> {
    if !x.tensor().is_recorded() {
        return compute(op, x);
    }
    let x = x.tensor();
    let mut y = compute(op, Input::Ref(x));
    let edges = [x.edge()];
    let (name, op_) = (op.name(), Plain(op));
    let node = match op.saves() {
        Saves::Nothing => op_node(name, caller, edges, Elementwise(op_), pull::<T>),
        Saves::Input => {
            let kept = Elementwise((op_, Keep::input(0, x)));
            op_node(name, caller, edges, kept, pull_input::<T>)
        }
        Saves::Output => {
            let kept = Elementwise((op_, KeepOutput::of(&y)));
            op_node(name, caller, edges, kept, pull_output::<T>)
        }
    };
    y.attach(node, 0);
    y
}

fn compute<T: Float>(op: Unary, x: Input<'_, T>) -> Tensor<T> {
    let kernel = op.kernel::<T>();
    match x.try_in_place(|x| kernel.run(x), || None) {
        Ok(done) => done,
        Err(x) => Tensor::new(x.consume(|x| map(x, kernel))),
    }
}

type Grads<T> = Result<[Option<Tensor<T>>; 1]>;

fn pull<T: Float>(op: Unary, dy: Tensor<T>, _: [bool; 1]) -> Grads<T> {
    let none = Tensor::new(Value::scalar(T::ZERO));
    Ok([Some(op.formula(dy, &none))])
}

fn pull_input<T: Float>((op, x): (Unary, Tensor<T>), dy: Tensor<T>, _: [bool; 1]) -> Grads<T> {
    if is_grad_enabled() {
        return Ok([Some(op.formula(dy, &x))]);
    }
    Ok([Some(op.fused(dy, &x.read()))])
}

fn pull_output<T: Float>((op, y): (Unary, KeptOutput<T>), dy: Tensor<T>, _: [bool; 1]) -> Grads<T> {
    if is_grad_enabled() {
        return Ok([Some(op.formula(dy, &y.into_tensor()))]);
    }
    Ok([Some(op.fused(dy, &y.read()))])
}

/// The derivative for a walk that keeps what [`Unary::reads`] names itself.
pub(super) fn gradient<T: Float>(op: Unary, dy: Tensor<T>, saved: Option<&Tensor<T>>) -> Tensor<T> {
    match saved {
        Some(saved) if is_grad_enabled() => op.formula(dy, saved),
        Some(saved) => op.fused(dy, &saved.read()),
        None => op.formula(dy, &Tensor::new(Value::scalar(T::ZERO))),
    }
}

impl Unary {
    /// Whether its rule reads the input, and whether the output.
    pub(crate) fn reads(self) -> (bool, bool) {
        match self.saves() {
            Saves::Nothing => (false, false),
            Saves::Input => (true, false),
            Saves::Output => (false, true),
        }
    }

    /// The derivative in one pass, in the gradient's own buffer where nobody else holds it.
    fn fused<T: Float>(self, dy: Tensor<T>, saved: &Value<T>) -> Tensor<T> {
        let kernel = self.gradient_kernel::<T>();
        let dy = Input::Own(dy);
        let Some(s) = saved.as_padded_inline().or_else(|| saved.as_slice()) else {
            return Tensor::new(dy.consume(|dy| zip_onto(dy, saved, kernel)));
        };
        match dy.try_in_place(|dy| kernel.run(dy, s), || None) {
            Ok(done) => done,
            Err(dy) => Tensor::new(dy.consume(|dy| zip_onto(dy, saved, kernel))),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn great_angles_are_reduced_exactly() {
        for n in [3, 100] {
            let angles: Vec<f64> = (0..n).map(|i| 1e9 + 1e7 * i as f64).collect();
            let x = Tensor::from(angles.clone());
            x.set_stop_gradient(false);
            let y = x.sin();
            assert_eq!(y.to_vec(), angles.iter().map(|a| a.sin()).collect::<Vec<_>>());
            y.sum().backward().unwrap();
            let dx = x.grad().unwrap();
            assert_eq!(dx.to_vec(), angles.iter().map(|a| a.cos()).collect::<Vec<_>>());
        }
    }
}
