// every form of parameters and outputs, with strict lints, in a function and behind another name
#![deny(warnings, missing_docs)]
//! A crate with documentation.
use autograd_core::prelude::*;

/// Public, documented, with everything.
#[py_layer(elementwise)]
impl Everything {
    /// Doubles, and more.
    #[must_use]
    pub fn forward<L: Lane>(
        x: Real<L>,
        mut w: Real,
        #[stop_gradient] keep: Mask<L>,
        #[default(2)] power: i32,
        r#type: bool,
    ) -> (Real<L>, Real<L>) {
        w *= 2.0;
        let y = if r#type { x.powi(power) } else { x };
        (keep.select(y * w, helper(x)), -w)
    }
}

#[inline(always)]
fn helper<L: Lane>(x: Real<L>) -> Real<L> {
    x.mul_add(0.5, 1.0)
}

#[py_layer(elementwise, reduce = mean(0, -1))]
impl Spared {
    fn forward(x: Real) -> (Real,) {
        let step = |x: Real| x + 1.0;
        (step(x),)
    }

    fn backward(dy: Real) -> (Real,) {
        (dy,)
    }
}

mod hostile {
    #![no_implicit_prelude]
    use ::autograd_core::{Lane, Real};
    #[allow(dead_code)]
    struct Option;
    #[allow(dead_code)]
    struct Result;

    #[::autograd_core::py_layer(elementwise)]
    impl Square {
        pub fn forward<N: Lane>(x: Real<N>) -> Real<N> {
            x * x
        }

        fn backward<M: Lane>(dy: Real<M>, x: Real<M>) -> Real<M> {
            2.0 * x * dy
        }
    }
}

/// A name for the library.
pub use autograd_core as renamed;

#[test]
fn compiles_and_runs() {
    #[py_layer(elementwise, crate = renamed)]
    impl Inside {
        fn forward<L: Lane>(x: Real<L>) -> Real<L> {
            x + 1.0
        }
    }
    scalar_op!(Twice: y = 2.0 * x, dx = 2.0 * dy);
    // Integers are numbers.
    scalar_op!(Whole: y = (3 * x - 1) / 2 + 1, dx = 3 * dy / 2);
    assert_eq!(Whole::apply(&Tensor::<f32>::from([1.0, 2.0])).to_vec(), [2.0, 3.5]);
    scalar_op!(Limited: y = x.max(0).min(3), dx = (x.gt(0) & x.lt(3)).select(dy, 0));
    assert_eq!(Limited::apply(&Tensor::<f64>::from([-1.0, 9.0])).to_vec(), [0.0, 3.0]);
    let x = Tensor::<f64>::from(vec![1.0, 2.0]);
    let keep = Tensor::from(vec![true, false]);
    let (y, z) = Everything::with().x(&x).w(&x).keep(&keep).r#type(true).apply();
    assert_eq!(y.to_vec(), [2.0, 2.0]);
    assert_eq!(z.to_vec(), [-2.0, -4.0]);
    assert_eq!(Spared::apply(&x.reshape([1, 2])).0.item(), 2.5);
    assert_eq!(hostile::Square::apply(&x).to_vec(), [1.0, 4.0]);
    assert_eq!(Inside::apply(&Twice::apply(&x)).to_vec(), [3.0, 5.0]);
}
