#[cfg(miri)]
use ::autograd_core::private::words::arguments as _;
const _: () = {
    impl Scale {
        fn forward(
            ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
            w: &Tensor<f64>,
            at: Option<&Tensor<i64>>,
            by: f64,
        ) -> Result<(Tensor<f64>, usize), String> {
            ctx.save_for_backward((x, w));
            ctx.set_attrs(by);
            Ok((x * w * by, at.map_or(0, |at| at.len())))
        }
        fn backward(
            ctx: &BackwardContext<Self>,
            dy: &Tensor<f64>,
        ) -> Grads<
            impl __autograd::GradFor<Tensor<f64>>,
            impl __autograd::GradFor<Tensor<f64>>,
        > {
            let (x, w) = ctx.saved_tensor();
            let by = *ctx.attrs();
            Grads {
                x: match [dy * w * by] {
                    __given => {
                        <Tensor<
                            f64,
                        > as __autograd::NamedGrad<
                            __ScaleArguments::r#x,
                            _,
                        >>::entries(__given)
                    }
                },
                w: match [Some(dy * x * by)] {
                    __given => {
                        <Tensor<
                            f64,
                        > as __autograd::NamedGrad<
                            __ScaleArguments::r#w,
                            _,
                        >>::entries(__given)
                    }
                },
            }
        }
    }
    use ::autograd_core::private as __autograd;
    use __autograd::Unknown as _;
    const __SIGNATURES: ::core::primitive::usize = {
        let _ = |__0, __1, __2, __3, __4| { <Scale>::forward(__0, __1, __2, __3, __4) };
        0
    };
    type __ScaleOutput = <[fn(
        &'static (),
    ) -> Result<
        (Tensor<f64>, usize),
        String,
    >; __SIGNATURES] as __autograd::Returned>::Type;
    mod __ScaleArguments {
        pub struct r#x {}
        pub struct r#w {}
        pub struct r#at {}
        pub struct r#by {}
    }
    /// What backward returns, by the names of the inputs.
    #[derive(::core::fmt::Debug)]
    pub struct Grads<G0, G1> {
        pub x: G0,
        pub w: G1,
    }
    const _: () = {
        enum __ScaleKey {}
        impl __autograd::CustomOp<__ScaleKey> for Scale {
            type Saved = (Tensor<f64>, Tensor<f64>);
            type Checked = Self::Saved;
            type Attrs = f64;
            type Needs = ();
            const INFO: __autograd::Facts = (
                "Scale",
                3usize,
                "x w ~at",
                4u64,
                "dy",
                false,
            );
            fn pull(__raw: &__autograd::RawBackward<'_>, __lent: &__autograd::Lent<'_>) {
                __autograd::float_tensor::<Tensor<f64>>();
                __autograd::any_tensor::<Tensor<i64>>();
                let __gradient0 = __autograd::Known::<
                    Tensor<f64>,
                >::gradient(__raw, 0usize);
                let __context = __autograd::BackwardContext(
                    __lent,
                    __autograd::PhantomData,
                );
                let __returned = <<[fn(
                    &'static (),
                ) -> Self; __SIGNATURES] as __autograd::Returned>::Type>::backward(
                    &__context,
                    (&__gradient0).lend(),
                );
                __autograd::Known::<
                    Tensor<f64>,
                >::give::<Tensor<f64>, _>(__raw, 0usize, __returned.x);
                __autograd::Known::<
                    Tensor<f64>,
                >::give::<Tensor<f64>, _>(__raw, 1usize, __returned.w);
            }
        }
        #[cfg(doc)]
        impl Scale {
            ///Runs the op on these inputs.
            #[track_caller]
            #[inline]
            fn apply(
                x: &Tensor<f64>,
                w: &Tensor<f64>,
                at: Option<&Tensor<i64>>,
                by: f64,
            ) -> Result<(Tensor<f64>, usize), String> {
                __autograd::expect(Self::try_apply(x, w, at, by))
            }
            /**As `apply`, with misuse of the op as an error instead of a panic.

# Errors

If a context call was against its rules, or an input against the op's.*/
            #[track_caller]
            fn try_apply(
                x: &Tensor<f64>,
                w: &Tensor<f64>,
                at: Option<&Tensor<i64>>,
                by: f64,
            ) -> __autograd::Result<Result<(Tensor<f64>, usize), String>> {
                let _ = Scale;
                let __inputs: &[__autograd::InputTensors<'_>] = &[
                    __autograd::Known::<Tensor<f64>>::input(&x),
                    __autograd::Known::<Tensor<f64>>::input(&w),
                    __autograd::Known::<Tensor<i64>>::constant(&at),
                ];
                let __state = &mut __autograd::start(
                    <Self as __autograd::CustomOp<__ScaleKey>>::RULES,
                    __inputs,
                );
                let mut __context = __autograd::ForwardContext(
                    __state.start(),
                    __autograd::PhantomData,
                );
                let __returned = <<[fn(
                    &'static (),
                ) -> Self; __SIGNATURES] as __autograd::Returned>::Type>::forward(
                    &mut __context,
                    x,
                    w,
                    at,
                    by,
                );
                __autograd::finish_fallible(
                    __context.0,
                    __returned,
                    |__out: &mut (Tensor<f64>, usize), __visitor| {
                        __autograd::Known::<
                            Tensor<f64>,
                        >::output(__visitor, &mut __out.0);
                    },
                )
            }
            ///Starts a call with arguments by name, in any order: `x(&Tensor<f64>)`, `w(&Tensor<f64>)`, `at(Option<&Tensor<i64>>)`, `by(f64)`; ends with `apply()` or `try_apply()`. `by` is `2.0` if it is not given.
            #[inline]
            fn with() -> __ScaleWith<
                __autograd::Required,
                __autograd::Required,
                __autograd::Required,
                __autograd::Optional,
            > {
                __ScaleWith(
                    __autograd::Required,
                    __autograd::Required,
                    __autograd::Required,
                    __autograd::Optional,
                )
            }
        }
        #[cfg(not(doc))]
        impl Scale {
            ///Runs the op on these inputs.
            #[track_caller]
            #[inline]
            fn apply(
                x: &Tensor<f64>,
                w: &Tensor<f64>,
                at: Option<&Tensor<i64>>,
                by: f64,
            ) -> __ScaleOutput {
                __autograd::expect(Self::try_apply(x, w, at, by))
            }
            /**As `apply`, with misuse of the op as an error instead of a panic.

# Errors

If a context call was against its rules, or an input against the op's.*/
            #[track_caller]
            fn try_apply(
                x: &Tensor<f64>,
                w: &Tensor<f64>,
                at: Option<&Tensor<i64>>,
                by: f64,
            ) -> __autograd::Result<__ScaleOutput> {
                let _ = Scale;
                let __inputs: &[__autograd::InputTensors<'_>] = &[
                    __autograd::Known::<Tensor<f64>>::input(&x),
                    __autograd::Known::<Tensor<f64>>::input(&w),
                    __autograd::Known::<Tensor<i64>>::constant(&at),
                ];
                let __state = &mut __autograd::start(
                    <Self as __autograd::CustomOp<__ScaleKey>>::RULES,
                    __inputs,
                );
                let mut __context = __autograd::ForwardContext(
                    __state.start(),
                    __autograd::PhantomData,
                );
                let __returned = <<[fn(
                    &'static (),
                ) -> Self; __SIGNATURES] as __autograd::Returned>::Type>::forward(
                    &mut __context,
                    x,
                    w,
                    at,
                    by,
                );
                __autograd::finish_fallible(
                    __context.0,
                    __returned,
                    |__out: &mut (Tensor<f64>, usize), __visitor| {
                        __autograd::Known::<
                            Tensor<f64>,
                        >::output(__visitor, &mut __out.0);
                    },
                )
            }
            ///Starts a call with arguments by name, in any order: `x(&Tensor<f64>)`, `w(&Tensor<f64>)`, `at(Option<&Tensor<i64>>)`, `by(f64)`; ends with `apply()` or `try_apply()`. `by` is `2.0` if it is not given.
            #[inline]
            fn with() -> __ScaleWith<
                __autograd::Required,
                __autograd::Required,
                __autograd::Required,
                __autograd::Optional,
            > {
                __ScaleWith(
                    __autograd::Required,
                    __autograd::Required,
                    __autograd::Required,
                    __autograd::Optional,
                )
            }
        }
        ///Arguments of [`Scale`] by name; ends with `apply()`.
        #[must_use = "nothing runs before `apply()`"]
        struct __ScaleWith<__Argument0, __Argument1, __Argument2, __Argument3>(
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
        > __ScaleWith<__Argument0, __Argument1, __Argument2, __Argument3> {
            ///The argument `x`.
            pub fn x<'a>(
                self,
                x: &'a Tensor<f64>,
            ) -> __ScaleWith<
                __autograd::Set<&'a Tensor<f64>>,
                __Argument1,
                __Argument2,
                __Argument3,
            >
            where
                __Argument0: __autograd::NotGiven<__ScaleArguments::r#x>,
            {
                __ScaleWith(__autograd::Set(x), self.1, self.2, self.3)
            }
            ///The argument `w`.
            pub fn w<'b>(
                self,
                w: &'b Tensor<f64>,
            ) -> __ScaleWith<
                __Argument0,
                __autograd::Set<&'b Tensor<f64>>,
                __Argument2,
                __Argument3,
            >
            where
                __Argument1: __autograd::NotGiven<__ScaleArguments::r#w>,
            {
                __ScaleWith(self.0, __autograd::Set(w), self.2, self.3)
            }
            ///The argument `at`.
            pub fn at<'c>(
                self,
                at: Option<&'c Tensor<i64>>,
            ) -> __ScaleWith<
                __Argument0,
                __Argument1,
                __autograd::Set<Option<&'c Tensor<i64>>>,
                __Argument3,
            >
            where
                __Argument2: __autograd::NotGiven<__ScaleArguments::r#at>,
            {
                __ScaleWith(self.0, self.1, __autograd::Set(at), self.3)
            }
            ///The argument `by`.
            pub fn by(
                self,
                by: f64,
            ) -> __ScaleWith<__Argument0, __Argument1, __Argument2, __autograd::Set<f64>>
            where
                __Argument3: __autograd::NotGiven<__ScaleArguments::r#by>,
            {
                __ScaleWith(self.0, self.1, self.2, __autograd::Set(by))
            }
            ///Runs the op.
            #[track_caller]
            fn apply<'a, 'b, 'c>(self) -> __ScaleOutput
            where
                __Argument0: __autograd::Given<
                    __ScaleArguments::r#x,
                    Value = &'a Tensor<f64>,
                >,
                __Argument1: __autograd::Given<
                    __ScaleArguments::r#w,
                    Value = &'b Tensor<f64>,
                >,
                __Argument2: __autograd::Given<
                    __ScaleArguments::r#at,
                    Value = Option<&'c Tensor<i64>>,
                >,
                __Argument3: __autograd::GivenOr<__ScaleArguments::r#by, f64>,
            {
                __autograd::expect(self.try_apply())
            }
            ///As `apply`, with misuse of the op as an error instead of a panic.
            #[track_caller]
            fn try_apply<'a, 'b, 'c>(self) -> __autograd::Result<__ScaleOutput>
            where
                __Argument0: __autograd::Given<
                    __ScaleArguments::r#x,
                    Value = &'a Tensor<f64>,
                >,
                __Argument1: __autograd::Given<
                    __ScaleArguments::r#w,
                    Value = &'b Tensor<f64>,
                >,
                __Argument2: __autograd::Given<
                    __ScaleArguments::r#at,
                    Value = Option<&'c Tensor<i64>>,
                >,
                __Argument3: __autograd::GivenOr<__ScaleArguments::r#by, f64>,
            {
                <Scale>::try_apply(
                    __autograd::Given::<__ScaleArguments::r#x>::take(self.0),
                    __autograd::Given::<__ScaleArguments::r#w>::take(self.1),
                    __autograd::Given::<__ScaleArguments::r#at>::take(self.2),
                    __autograd::GivenOr::<
                        __ScaleArguments::r#by,
                        f64,
                    >::take_or(self.3, || -> f64 { 2.0 }),
                )
            }
        }
    };
};
///A differentiable op.
struct Scale;
