#[cfg(miri)]
use ::autograd_core::private::words::arguments as _;
const _: () = {
    impl Verified {
        fn forward(
            _ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
            pair: [&Tensor<f64>; 2],
            bias: Option<&Tensor<f64>>,
            by: f64,
        ) -> Tensor<f64> {
            bias.map_or(x * by, |bias| x * by + bias) + pair[0] - pair[1]
        }
        fn backward(
            _ctx: &BackwardContext<Self>,
            dy: &Tensor<f64>,
        ) -> Grads<
            impl __autograd::GradFor<Tensor<f64>>,
            impl __autograd::GradFor<[Tensor<f64>; 2]>,
            impl __autograd::GradFor<Tensor<f64>>,
        > {
            Grads {
                x: match [dy * 2.0] {
                    __given => {
                        <Tensor<
                            f64,
                        > as __autograd::NamedGrad<
                            __VerifiedArguments::r#x,
                            _,
                        >>::entries(__given)
                    }
                },
                pair: match [[dy.clone(), -dy]] {
                    __given => {
                        <[Tensor<
                            f64,
                        >; 2] as __autograd::NamedGrad<
                            __VerifiedArguments::r#pair,
                            _,
                        >>::entries(__given)
                    }
                },
                bias: match [Some(dy.clone())] {
                    __given => {
                        <Tensor<
                            f64,
                        > as __autograd::NamedGrad<
                            __VerifiedArguments::r#bias,
                            _,
                        >>::entries(__given)
                    }
                },
            }
        }
    }
    use ::autograd_core::private as __autograd;
    use __autograd::Unknown as _;
    mod __VerifiedArguments {
        pub struct r#x {}
        pub struct r#pair {}
        pub struct r#bias {}
        pub struct r#by {}
    }
    /// What backward returns, by the names of the inputs.
    #[derive(::core::fmt::Debug)]
    pub struct Grads<G0, G1, G2> {
        pub x: G0,
        pub pair: G1,
        pub bias: G2,
    }
    const _: () = {
        enum __VerifiedKey {}
        impl __autograd::CustomOp<__VerifiedKey> for Verified {
            type Saved = ();
            type Checked = Self::Saved;
            type Attrs = ();
            type Needs = ();
            const INFO: __autograd::Facts = (
                "Verified",
                3usize,
                "x pair bias",
                0u64,
                "dy",
                false,
            );
            fn pull(__raw: &__autograd::RawBackward<'_>, __lent: &__autograd::Lent<'_>) {
                __autograd::float_tensor::<Tensor<f64>>();
                let __gradient0 = __autograd::Known::<
                    Tensor<f64>,
                >::gradient(__raw, 0usize);
                let __context = __autograd::BackwardContext(
                    __lent,
                    __autograd::PhantomData,
                );
                let __returned = Self::backward(&__context, (&__gradient0).lend());
                __autograd::Known::<
                    Tensor<f64>,
                >::give::<Tensor<f64>, _>(__raw, 0usize, __returned.x);
                __autograd::Known::<
                    Tensor<f64>,
                >::give::<[Tensor<f64>; 2], _>(__raw, 1usize, __returned.pair);
                __autograd::Known::<
                    Tensor<f64>,
                >::give::<Tensor<f64>, _>(__raw, 2usize, __returned.bias);
            }
        }
        impl Verified {
            ///Runs the op on these inputs.
            #[track_caller]
            #[inline]
            fn apply(
                x: &Tensor<f64>,
                pair: [&Tensor<f64>; 2],
                bias: Option<&Tensor<f64>>,
                by: f64,
            ) -> Tensor<f64> {
                __autograd::expect(Self::try_apply(x, pair, bias, by))
            }
            /**As `apply`, with misuse of the op as an error instead of a panic.

# Errors

If a context call was against its rules, or an input against the op's.*/
            #[track_caller]
            fn try_apply(
                x: &Tensor<f64>,
                pair: [&Tensor<f64>; 2],
                bias: Option<&Tensor<f64>>,
                by: f64,
            ) -> __autograd::Result<Tensor<f64>> {
                let _ = Verified;
                let __inputs: &[__autograd::InputTensors<'_>] = &[
                    __autograd::Known::<Tensor<f64>>::input(&x),
                    __autograd::Known::<Tensor<f64>>::input(&pair),
                    __autograd::Known::<Tensor<f64>>::input(&bias),
                ];
                if __autograd::verifying() {
                    use __autograd::NotReused as _;
                    __autograd::verify::<
                        Self,
                        __VerifiedKey,
                    >(
                        ::core::panic::Location::caller(),
                        __inputs,
                        &|__again| {
                            Self::try_apply(
                                    &__autograd::Known::<
                                        Tensor<f64>,
                                    >::again_one(__again, 0usize),
                                    __autograd::check::array(
                                        "pair",
                                        <__autograd::Vec<
                                            &_,
                                        > as ::core::iter::FromIterator<
                                            _,
                                        >>::from_iter(
                                            &__autograd::Known::<
                                                Tensor<f64>,
                                            >::again_list(__again, 1usize),
                                        ),
                                    ),
                                    __autograd::Known::<
                                        Tensor<f64>,
                                    >::again_optional(__again, 2usize)
                                        .as_ref(),
                                    __autograd::Reused(&by).again()?,
                                )
                                .ok()
                                .map(::core::mem::drop)
                        },
                    )?;
                }
                let __state = &mut __autograd::start(
                    <Self as __autograd::CustomOp<__VerifiedKey>>::RULES,
                    __inputs,
                );
                let mut __context = __autograd::ForwardContext(
                    __state.start(),
                    __autograd::PhantomData,
                );
                let __returned = Self::forward(&mut __context, x, pair, bias, by);
                __autograd::Known::<Tensor<f64>>::finish(__context.0, __returned)
            }
            ///Starts a call with arguments by name, in any order: `x(&Tensor<f64>)`, `pair([&Tensor<f64>; 2])`, `bias(Option<&Tensor<f64>>)`, `by(f64)`; ends with `apply()` or `try_apply()`.
            #[inline]
            fn with() -> __VerifiedWith<
                __autograd::Required,
                __autograd::Required,
                __autograd::Required,
                __autograd::Required,
            > {
                __VerifiedWith(
                    __autograd::Required,
                    __autograd::Required,
                    __autograd::Required,
                    __autograd::Required,
                )
            }
        }
        ///Arguments of [`Verified`] by name; ends with `apply()`.
        #[must_use = "nothing runs before `apply()`"]
        struct __VerifiedWith<__Argument0, __Argument1, __Argument2, __Argument3>(
            __Argument0,
            __Argument1,
            __Argument2,
            __Argument3,
        );
        impl<
            __Argument0,
            __Argument1,
            __Argument2,
            __Argument3,
        > __VerifiedWith<__Argument0, __Argument1, __Argument2, __Argument3> {
            ///The argument `x`.
            pub fn x<'a>(
                self,
                x: &'a Tensor<f64>,
            ) -> __VerifiedWith<
                __autograd::Set<&'a Tensor<f64>>,
                __Argument1,
                __Argument2,
                __Argument3,
            >
            where
                __Argument0: __autograd::NotGiven<__VerifiedArguments::r#x>,
            {
                __VerifiedWith(__autograd::Set(x), self.1, self.2, self.3)
            }
            ///The argument `pair`.
            pub fn pair<'b>(
                self,
                pair: [&'b Tensor<f64>; 2],
            ) -> __VerifiedWith<
                __Argument0,
                __autograd::Set<[&'b Tensor<f64>; 2]>,
                __Argument2,
                __Argument3,
            >
            where
                __Argument1: __autograd::NotGiven<__VerifiedArguments::r#pair>,
            {
                __VerifiedWith(self.0, __autograd::Set(pair), self.2, self.3)
            }
            ///The argument `bias`.
            pub fn bias<'c>(
                self,
                bias: Option<&'c Tensor<f64>>,
            ) -> __VerifiedWith<
                __Argument0,
                __Argument1,
                __autograd::Set<Option<&'c Tensor<f64>>>,
                __Argument3,
            >
            where
                __Argument2: __autograd::NotGiven<__VerifiedArguments::r#bias>,
            {
                __VerifiedWith(self.0, self.1, __autograd::Set(bias), self.3)
            }
            ///The argument `by`.
            pub fn by(
                self,
                by: f64,
            ) -> __VerifiedWith<
                __Argument0,
                __Argument1,
                __Argument2,
                __autograd::Set<f64>,
            >
            where
                __Argument3: __autograd::NotGiven<__VerifiedArguments::r#by>,
            {
                __VerifiedWith(self.0, self.1, self.2, __autograd::Set(by))
            }
            ///Runs the op.
            #[track_caller]
            fn apply<'a, 'b, 'c>(self) -> Tensor<f64>
            where
                __Argument0: __autograd::Given<
                    __VerifiedArguments::r#x,
                    Value = &'a Tensor<f64>,
                >,
                __Argument1: __autograd::Given<
                    __VerifiedArguments::r#pair,
                    Value = [&'b Tensor<f64>; 2],
                >,
                __Argument2: __autograd::Given<
                    __VerifiedArguments::r#bias,
                    Value = Option<&'c Tensor<f64>>,
                >,
                __Argument3: __autograd::Given<__VerifiedArguments::r#by, Value = f64>,
            {
                __autograd::expect(self.try_apply())
            }
            ///As `apply`, with misuse of the op as an error instead of a panic.
            #[track_caller]
            fn try_apply<'a, 'b, 'c>(self) -> __autograd::Result<Tensor<f64>>
            where
                __Argument0: __autograd::Given<
                    __VerifiedArguments::r#x,
                    Value = &'a Tensor<f64>,
                >,
                __Argument1: __autograd::Given<
                    __VerifiedArguments::r#pair,
                    Value = [&'b Tensor<f64>; 2],
                >,
                __Argument2: __autograd::Given<
                    __VerifiedArguments::r#bias,
                    Value = Option<&'c Tensor<f64>>,
                >,
                __Argument3: __autograd::Given<__VerifiedArguments::r#by, Value = f64>,
            {
                <Verified>::try_apply(
                    __autograd::Given::<__VerifiedArguments::r#x>::take(self.0),
                    __autograd::Given::<__VerifiedArguments::r#pair>::take(self.1),
                    __autograd::Given::<__VerifiedArguments::r#bias>::take(self.2),
                    __autograd::Given::<__VerifiedArguments::r#by>::take(self.3),
                )
            }
        }
    };
};
///A differentiable op.
struct Verified;
