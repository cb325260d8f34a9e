#[cfg(miri)]
use ::autograd_core::private::words::arguments as _;
impl Norm {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.square().sum()
    }
}
///A differentiable op.
struct Norm;
const _: () = {
    use ::autograd_core::private as __autograd;
    use __autograd::Unknown as _;
    mod __NormArguments {
        pub struct r#x {}
    }
    enum __NormKey {}
    impl __autograd::CustomOp<__NormKey> for Norm {
        type Saved = ();
        type Checked = Self::Saved;
        type Attrs = ();
        type Needs = ();
        const INFO: __autograd::Facts = ("Norm", 1usize, "x", 0u64, "", false);
        fn pull(__raw: &__autograd::RawBackward<'_>, __lent: &__autograd::Lent<'_>) {
            __autograd::float_tensor::<Tensor<f64>>();
            let _ = (__raw, __lent);
        }
    }
    impl Norm {
        ///Runs the op on these inputs.
        #[track_caller]
        #[inline]
        fn apply(x: &Tensor<f64>) -> Tensor<f64> {
            __autograd::expect(Self::try_apply(x))
        }
        /**As `apply`, with misuse of the op as an error instead of a panic.

# Errors

If a context call was against its rules, or an input against the op's.*/
        #[track_caller]
        fn try_apply(x: &Tensor<f64>) -> __autograd::Result<Tensor<f64>> {
            let _ = Norm;
            let __inputs: &[__autograd::InputTensors<'_>] = &[
                __autograd::Known::<Tensor<f64>>::input(&x),
            ];
            let __state = &mut __autograd::start(
                <Self as __autograd::CustomOp<__NormKey>>::RULES,
                __inputs,
            );
            let mut __context = __autograd::ForwardContext(
                __state.start(),
                __autograd::PhantomData,
            );
            __autograd::without_gradient(__context.0)?;
            let __returned = Self::forward(&mut __context, x);
            __autograd::Known::<Tensor<f64>>::finish(__context.0, __returned)
        }
        ///Starts a call with arguments by name, in any order: `x(&Tensor<f64>)`; ends with `apply()` or `try_apply()`.
        #[inline]
        fn with() -> __NormWith<__autograd::Required> {
            __NormWith(__autograd::Required)
        }
    }
    ///Arguments of [`Norm`] by name; ends with `apply()`.
    #[must_use = "nothing runs before `apply()`"]
    struct __NormWith<__Argument0>(__Argument0);
    impl<__Argument0> __NormWith<__Argument0> {
        ///The argument `x`.
        pub fn x<'a>(
            self,
            x: &'a Tensor<f64>,
        ) -> __NormWith<__autograd::Set<&'a Tensor<f64>>>
        where
            __Argument0: __autograd::NotGiven<__NormArguments::r#x>,
        {
            __NormWith(__autograd::Set(x))
        }
        ///Runs the op.
        #[track_caller]
        fn apply<'a>(self) -> Tensor<f64>
        where
            __Argument0: __autograd::Given<
                __NormArguments::r#x,
                Value = &'a Tensor<f64>,
            >,
        {
            __autograd::expect(self.try_apply())
        }
        ///As `apply`, with misuse of the op as an error instead of a panic.
        #[track_caller]
        fn try_apply<'a>(self) -> __autograd::Result<Tensor<f64>>
        where
            __Argument0: __autograd::Given<
                __NormArguments::r#x,
                Value = &'a Tensor<f64>,
            >,
        {
            <Norm>::try_apply(__autograd::Given::<__NormArguments::r#x>::take(self.0))
        }
    }
};
