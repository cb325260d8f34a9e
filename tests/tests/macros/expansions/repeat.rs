///A differentiable op.
#[allow(dead_code, missing_copy_implementations)]
struct Repeat<T: ?::core::marker::Sized, const N: usize>(
    ::core::marker::PhantomData<fn() -> (*const T,)>,
);
#[allow(elided_lifetimes_in_paths)]
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
#[cfg_attr(clippy, allow(clippy::all, clippy::pedantic, clippy::nursery))]
const _: () = {
    use ::autograd_core::private::{self as __autograd, Unknown as _};
    struct RepeatKey;
    mod RepeatArguments {
        pub struct xs {}
    }
    impl<T: Float, const N: usize> __autograd::Layer<RepeatKey> for Repeat<T, N> {
        type Saved = ();
        type Checked = Self::Saved;
        type Attrs = ();
        type Needs = ();
        const INFO: __autograd::Facts = ("Repeat", 1usize, "xs", 0u64, "", true);
        fn pull(raw: &__autograd::RawBackward<'_>, lent: &__autograd::Lent<'_>) {
            __autograd::float_tensor::<Tensor<T>>();
            let gradient0 = __autograd::Known::<[Tensor<T>; N]>::gradient(raw, 0usize);
            let context = __autograd::BackwardContext(lent, __autograd::PhantomData);
            let returned = Self::backward(&context, gradient0.lend());
            __autograd::Known::<
                Tensor<T>,
            >::give::<[Tensor<T>], _>(raw, 0usize, returned);
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
            let inputs: &[&dyn __autograd::TensorInput] = &[
                __autograd::Known::<Tensor<T>>::input(&xs),
            ];
            let state = &mut __autograd::start(
                <Self as __autograd::Layer<RepeatKey>>::RULES,
                inputs,
            );
            let mut context = __autograd::ForwardContext(
                state.start(),
                __autograd::PhantomData,
            );
            let returned = Self::forward(&mut context, xs);
            __autograd::Known::<[Tensor<T>; N]>::finish(context.0, returned)
        }
        ///Starts a call with arguments by name, in any order; ends with `apply()`.
        #[inline]
        fn with() -> RepeatWith<T, N, __autograd::Required> {
            RepeatWith(__autograd::Required, ::core::marker::PhantomData)
        }
    }
    ///Arguments of [`Repeat`] by name; ends with `apply()`.
    #[must_use = "nothing runs before `apply()`"]
    struct RepeatWith<T: Float, const N: usize, Argument0>(
        Argument0,
        ::core::marker::PhantomData<fn() -> (*const T,)>,
    );
    impl<T: Float, const N: usize, Argument0> RepeatWith<T, N, Argument0> {
        ///The argument `xs`.
        fn xs<'a>(
            self,
            xs: &'a [Tensor<T>],
        ) -> RepeatWith<T, N, __autograd::Set<&'a [Tensor<T>]>>
        where
            Argument0: __autograd::NotGiven<RepeatArguments::xs>,
        {
            RepeatWith(__autograd::Set(xs), ::core::marker::PhantomData)
        }
        ///Runs the op.
        #[track_caller]
        fn apply<'a>(self) -> [Tensor<T>; N]
        where
            Argument0: __autograd::Given<RepeatArguments::xs, Value = &'a [Tensor<T>]>,
            T: 'a,
        {
            __autograd::expect(self.try_apply())
        }
        ///As `apply`, with misuse of the op as an error instead of a panic.
        #[track_caller]
        fn try_apply<'a>(self) -> __autograd::Result<[Tensor<T>; N]>
        where
            Argument0: __autograd::Given<RepeatArguments::xs, Value = &'a [Tensor<T>]>,
            T: 'a,
        {
            <Repeat<
                T,
                N,
            >>::try_apply(__autograd::Given::<RepeatArguments::xs>::take(self.0))
        }
    }
};
