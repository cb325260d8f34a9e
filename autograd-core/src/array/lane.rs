use super::math::Math;
use std::ops::*;
#[derive(Copy, Clone)]
pub(crate) struct Lane<T, const FMA: bool>(pub T);
macro_rules! bin { ($($tr:ident $m:ident;)*) => {$(
impl<T: Math + $tr<Output = T>, const FMA: bool> $tr for Lane<T, FMA> { type Output = Self; #[inline(always)] fn $m(self, o: Self) -> Self { Lane(self.0.$m(o.0)) } }
impl<T: Math + $tr<Output = T>, const FMA: bool> $tr<f64> for Lane<T, FMA> { type Output = Self; #[inline(always)] fn $m(self, o: f64) -> Self { Lane(self.0.$m(T::lit(o))) } }
impl<T: Math + $tr<Output = T>, const FMA: bool> $tr<Lane<T, FMA>> for f64 { type Output = Lane<T, FMA>; #[inline(always)] fn $m(self, o: Lane<T, FMA>) -> Lane<T, FMA> { Lane(T::lit(self).$m(o.0)) } }
)*}}
bin! { Add add; Sub sub; Mul mul; Div div; }
impl<T: Math + Neg<Output = T>, const FMA: bool> Neg for Lane<T, FMA> { type Output = Self; #[inline(always)] fn neg(self) -> Self { Lane(-self.0) } }
macro_rules! un { ($($m:ident $v:ident;)*) => { impl<T: Math, const FMA: bool> Lane<T, FMA> { $(#[inline(always)] pub(crate) fn $m(self) -> Self { Lane(self.0.$v::<FMA>()) })* } } }
un! { exp v_exp; exp_m1 v_exp_m1; ln v_ln; ln_1p v_ln_1p; log2 v_log2; log10 v_log10; tanh v_tanh; sigmoid v_sigmoid; softplus v_softplus; erf v_erf; sin v_sin; cos v_cos; tan v_tan; asin v_asin; acos v_acos; atan v_atan; sinh v_sinh; cosh v_cosh; sqrt v_sqrt; rsqrt v_rsqrt; recip v_recip; abs v_abs; floor v_floor; ceil v_ceil; round v_round; signum v_signum; }
impl<T: Math, const FMA: bool> Lane<T, FMA> {
  #[inline(always)] pub(crate) fn pow(self, o: Self) -> Self { Lane(self.0.v_pow::<FMA>(o.0)) }
  #[inline(always)] pub(crate) fn step(self) -> Self { Lane(if self.0 > T::lit(0.0) { T::lit(1.0) } else { T::lit(0.0) }) }
  #[inline(always)] pub(crate) fn relu(self) -> Self { let z = T::lit(0.0); Lane(if self.0 < z { z } else { self.0 }) }
}
