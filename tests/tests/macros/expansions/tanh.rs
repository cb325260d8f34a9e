#[cfg(miri)]
use ::autograd_core::private::words::arguments as _;
impl Tanh {
    ///Defines the op; callers do not need it.
    #[cfg_attr(doc, doc(hidden))]
    pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * (1.0 - ctx.saved_tensor().square())
    }
}
/// Hyperbolic tangent.
pub struct Tanh;
const _: () = {
    use ::autograd_core::private as __autograd;
    use __autograd::Unknown as _;
    mod __TanhArguments {
        pub struct r#x {}
    }
    enum __TanhKey {}
    impl __autograd::CustomOp<__TanhKey> for Tanh {
        type Saved = Tensor<f64>;
        type Checked = Self::Saved;
        type Attrs = ();
        type Needs = ();
        const INFO: __autograd::Facts = ("Tanh", 1usize, "x", 0u64, "dy", false);
        fn pull(__raw: &__autograd::RawBackward<'_>, __lent: &__autograd::Lent<'_>) {
            __autograd::float_tensor::<Tensor<f64>>();
            let __gradient0 = __autograd::Known::<Tensor<f64>>::gradient(__raw, 0usize);
            let __context = __autograd::BackwardContext(__lent, __autograd::PhantomData);
            let __returned = Self::backward(&__context, (&__gradient0).lend());
            __autograd::Known::<
                Tensor<f64>,
            >::give::<Tensor<f64>, _>(__raw, 0usize, __returned);
        }
    }
    impl Tanh {
        ///Runs the op on these inputs.
        #[track_caller]
        #[inline]
        pub fn apply(x: &Tensor<f64>) -> Tensor<f64> {
            __autograd::expect(Self::try_apply(x))
        }
        /**As `apply`, with misuse of the op as an error instead of a panic.

# Errors

If a context call was against its rules, or an input against the op's.*/
        #[track_caller]
        pub fn try_apply(x: &Tensor<f64>) -> __autograd::Result<Tensor<f64>> {
            let _ = Tanh;
            let __inputs: &[__autograd::InputTensors<'_>] = &[
                __autograd::Known::<Tensor<f64>>::input(&x),
            ];
            let __state = &mut __autograd::start(
                <Self as __autograd::CustomOp<__TanhKey>>::RULES,
                __inputs,
            );
            let mut __context = __autograd::ForwardContext(
                __state.start(),
                __autograd::PhantomData,
            );
            let __returned = Self::forward(&mut __context, x);
            __autograd::Known::<Tensor<f64>>::finish(__context.0, __returned)
        }
        ///Starts a call with arguments by name, in any order: `x(&Tensor<f64>)`; ends with `apply()` or `try_apply()`.
        #[inline]
        pub fn with() -> __TanhWith<__autograd::Required> {
            __TanhWith(__autograd::Required)
        }
    }
    ///Arguments of [`Tanh`] by name; ends with `apply()`.
    #[must_use = "nothing runs before `apply()`"]
    pub struct __TanhWith<__Argument0>(__Argument0);
    impl<__Argument0> __TanhWith<__Argument0> {
        ///The argument `x`.
        pub fn x<'a>(
            self,
            x: &'a Tensor<f64>,
        ) -> __TanhWith<__autograd::Set<&'a Tensor<f64>>>
        where
            __Argument0: __autograd::NotGiven<__TanhArguments::r#x>,
        {
            __TanhWith(__autograd::Set(x))
        }
        ///Runs the op.
        #[track_caller]
        pub fn apply<'a>(self) -> Tensor<f64>
        where
            __Argument0: __autograd::Given<
                __TanhArguments::r#x,
                Value = &'a Tensor<f64>,
            >,
        {
            __autograd::expect(self.try_apply())
        }
        ///As `apply`, with misuse of the op as an error instead of a panic.
        #[track_caller]
        pub fn try_apply<'a>(self) -> __autograd::Result<Tensor<f64>>
        where
            __Argument0: __autograd::Given<
                __TanhArguments::r#x,
                Value = &'a Tensor<f64>,
            >,
        {
            <Tanh>::try_apply(__autograd::Given::<__TanhArguments::r#x>::take(self.0))
        }
    }
};
