// every lint that a careful crate turns on
#![deny(rust_2018_idioms, unused, nonstandard_style, let_underscore, missing_docs)]
#![deny(missing_debug_implementations, unreachable_pub, unused_qualifications, unused_lifetimes)]
#![deny(
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unused_results,
    missing_copy_implementations
)]
#![deny(
    elided_lifetimes_in_paths,
    explicit_outlives_requirements,
    unit_bindings,
    redundant_lifetimes,
    ambiguous_negative_literals,
    variant_size_differences,
    unused_import_braces,
    meta_variable_misuse,
    let_underscore_drop
)]
#![forbid(unsafe_code)]
//! A careful crate.
use autograd_core::prelude::*;

pub mod ops {
    //! Ops.
    use autograd_core::prelude::*;

    /// Documented.
    #[derive(Clone, Copy, Debug)]
    pub struct Other;

    /// An op; its functions need no docs of their own.
    #[py_layer]
    #[derive(Debug)]
    impl<T: Float> Op<T> {
        type Saved = Tensor<T>;

        pub fn forward(
            ctx: &mut ForwardContext<'_, Self>,
            x: &Tensor<T>,
            #[stop_gradient] mask: Option<&Tensor<bool>>,
            #[default(1)] n: usize,
        ) -> (Tensor<T>, usize) {
            ctx.save_for_backward(x);
            (x * 2.0, n + usize::from(mask.is_some()))
        }

        fn backward(ctx: &BackwardContext<'_, Self>, dy: &Tensor<T>) -> Grads {
            Grads { x: dy * ctx.saved_tensor() }
        }
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let (y, n) = ops::Op::with().x(&x).mask(None).apply();
    assert_eq!(n, 1);
    y.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [3.0]);
    let _ = ops::Other;
}
