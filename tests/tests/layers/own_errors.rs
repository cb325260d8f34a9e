//! The error of a user's backward or `jvp` is the source of the library's, if its type can be kept.

use std::error::Error as StdError;
use std::fmt::{self, Debug, Display};
use std::rc::Rc;

use autograd_core::prelude::*;
use autograd_core::{Error, jvp};
use support::leaf;

#[derive(Debug, PartialEq)]
struct Own(i32);

impl Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "own {}", self.0)
    }
}

impl StdError for Own {}

/// Can be displayed, but is no error that another thread may have.
#[derive(Debug)]
struct OfThread(Rc<str>);

impl Display for OfThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for OfThread {}

trait Fails: 'static {
    type Error: StdError + Send + Sync + 'static;
    fn error() -> Self::Error;
}

impl Fails for Own {
    type Error = Self;
    fn error() -> Self {
        Own(3)
    }
}

macro_rules! ops {
    ($($name:ident: $error:ty = $value:expr;)*) => {$(
        #[py_layer]
        impl $name {
            fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
                x * 2.0
            }

            fn backward(_ctx: &BackwardContext<Self>, _dy: &Tensor<f64>) -> Result<Tensor<f64>, $error> {
                Err($value)
            }

            fn jvp(
                _ctx: &JvpContext<Self>,
                _x: &Tensor<f64>,
                _dx: &Tensor<f64>,
            ) -> Result<Tensor<f64>, $error> {
                Err($value)
            }
        }
    )*};
}

ops! {
    Typed: Own = Own(1);
    Boxed: Box<dyn StdError + Send + Sync> = Own(2).into();
    Library: Error = Error::custom(Own(4));
    Local: OfThread = OfThread("own 5".into());
    Text: String = "own 6".to_owned();
}

#[py_layer]
impl<F: Fails> Generic<F> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, _dy: &Tensor<f64>) -> Result<Tensor<f64>, F::Error> {
        Err(F::error())
    }
}

#[track_caller]
fn check(error: &Error, number: i32, is_kept: bool) {
    let Error::User { message, .. } = error else { panic!("{error}") };
    assert_eq!(*message, format!("own {number}"));
    let source = error.source().map(|source| source.downcast_ref::<Own>());
    assert_eq!(source, is_kept.then_some(Some(&Own(number))));
}

#[test]
fn an_error_that_can_be_kept_is_the_source() {
    type Op = fn(&Tensor<f64>) -> Tensor<f64>;
    let ops: [(Op, i32, bool); 5] = [
        (Typed::apply, 1, true),
        (Boxed::apply, 2, true),
        (Library::apply, 4, true),
        (Local::apply, 5, false),
        (Text::apply, 6, false),
    ];
    for (op, number, is_kept) in ops {
        check(&op(&leaf(&[1.0])).backward().unwrap_err(), number, is_kept);
        let one = [Tensor::from([1.0])];
        check(&jvp(|t| op(&t[0]), &one, &one).unwrap_err(), number, is_kept);
    }
    check(&Generic::<Own>::apply(&leaf(&[1.0])).backward().unwrap_err(), 3, true);
}
