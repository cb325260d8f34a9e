#[cfg(miri)]
use ::autograd_core::private::words::arguments as _;
impl<T: Float, const N: usize> Repeat<T, N> {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[Tensor<T>]) -> [Tensor<T>; N] {
        std::array::from_fn(|_| &xs[0] * 1.0)
    }
    fn backward(
        _ctx: &BackwardContext<Self>,
        ds: &[Option<Tensor<T>>],
    ) -> Vec<Option<Tensor<T>>> {
        vec![ds[0].clone()]
    }
}
///A differentiable op.
struct Repeat<T: ?::core::marker::Sized, const N: usize>(
    ::core::marker::PhantomData<fn() -> (*const T,)>,
);
const _: () = {
    use ::autograd_core::private as __autograd;
    use __autograd::Unknown as _;
    mod __RepeatArguments {
        pub struct r#xs {}
    }
    enum __RepeatKey {}
    impl<T: Float, const N: usize> __autograd::CustomOp<__RepeatKey> for Repeat<T, N> {
        type Saved = ();
        type Checked = Self::Saved;
        type Attrs = ();
        type Needs = ();
        const INFO: __autograd::Facts = ("Repeat", 1usize, "xs", 0u64, "", true);
        fn pull(__raw: &__autograd::RawBackward<'_>, __lent: &__autograd::Lent<'_>) {
            __autograd::float_tensor::<Tensor<T>>();
            let __gradient0 = __autograd::Known::<
                [Tensor<T>; N],
            >::gradient(__raw, 0usize);
            let __context = __autograd::BackwardContext(__lent, __autograd::PhantomData);
            let __returned = Self::backward(&__context, (&__gradient0).lend());
            __autograd::Known::<
                Tensor<T>,
            >::give::<[Tensor<T>], _>(__raw, 0usize, __returned);
        }
    }
    impl<T: Float, const N: usize> Repeat<T, N> {
        ///Runs the op on these inputs.
        #[track_caller]
        #[inline]
        fn apply(xs: &[Tensor<T>]) -> [Tensor<T>; N] {
            __autograd::expect(Self::try_apply(xs))
        }
        /**As `apply`, with misuse of the op as an error instead of a panic.

# Errors

If a context call was against its rules, or an input against the op's.*/
        #[track_caller]
        fn try_apply(xs: &[Tensor<T>]) -> __autograd::Result<[Tensor<T>; N]> {
            let _ = Self(::core::marker::PhantomData);
            let __inputs: &[__autograd::InputTensors<'_>] = &[
                __autograd::Known::<Tensor<T>>::input(&xs),
            ];
            let __state = &mut __autograd::start(
                <Self as __autograd::CustomOp<__RepeatKey>>::RULES,
                __inputs,
            );
            let mut __context = __autograd::ForwardContext(
                __state.start(),
                __autograd::PhantomData,
            );
            let __returned = Self::forward(&mut __context, xs);
            __autograd::Known::<[Tensor<T>; N]>::finish(__context.0, __returned)
        }
        ///Starts a call with arguments by name, in any order: `xs(&[Tensor<T>])`; ends with `apply()` or `try_apply()`.
        #[inline]
        fn with() -> __RepeatWith<T, N, __autograd::Required> {
            __RepeatWith(__autograd::Required, ::core::marker::PhantomData)
        }
    }
    ///Arguments of [`Repeat`] by name; ends with `apply()`.
    #[must_use = "nothing runs before `apply()`"]
    struct __RepeatWith<T: Float, const N: usize, __Argument0>(
        __Argument0,
        ::core::marker::PhantomData<fn() -> (*const T,)>,
    );
    impl<T: Float, const N: usize, __Argument0> __RepeatWith<T, N, __Argument0> {
        ///The argument `xs`.
        pub fn xs<'a>(
            self,
            xs: &'a [Tensor<T>],
        ) -> __RepeatWith<T, N, __autograd::Set<&'a [Tensor<T>]>>
        where
            __Argument0: __autograd::NotGiven<__RepeatArguments::r#xs>,
        {
            __RepeatWith(__autograd::Set(xs), ::core::marker::PhantomData)
        }
        ///Runs the op.
        #[track_caller]
        fn apply<'a>(self) -> [Tensor<T>; N]
        where
            __Argument0: __autograd::Given<
                __RepeatArguments::r#xs,
                Value = &'a [Tensor<T>],
            >,
            T: 'a,
        {
            __autograd::expect(self.try_apply())
        }
        ///As `apply`, with misuse of the op as an error instead of a panic.
        #[track_caller]
        fn try_apply<'a>(self) -> __autograd::Result<[Tensor<T>; N]>
        where
            __Argument0: __autograd::Given<
                __RepeatArguments::r#xs,
                Value = &'a [Tensor<T>],
            >,
            T: 'a,
        {
            <Repeat<
                T,
                N,
            >>::try_apply(__autograd::Given::<__RepeatArguments::r#xs>::take(self.0))
        }
    }
};
