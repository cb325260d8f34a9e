//! Errors of the user's own as the library's: made, passed on by `?`, and found again.

use std::error::Error as _;
use std::fmt;

use autograd_core::prelude::*;
use autograd_core::{Error, Result, jvp};

#[derive(Debug, PartialEq)]
struct NoTable(u8);

impl fmt::Display for NoTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no table {}", self.0)
    }
}

impl std::error::Error for NoTable {}

impl From<NoTable> for Error {
    fn from(error: NoTable) -> Self {
        Self::custom(error)
    }
}

fn table(number: u8) -> std::result::Result<f64, NoTable> {
    if number == 0 { Ok(2.0) } else { Err(NoTable(number)) }
}

#[py_layer]
impl Scaled {
    type Attrs = [u8; 2];

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        tables: [u8; 3],
    ) -> Result<Tensor<f64>> {
        let [forward, backward, jvp] = tables;
        ctx.set_attrs([backward, jvp]);
        Ok(x * table(forward)?)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Result<Tensor<f64>> {
        Ok(dy * table(ctx.attrs()[0])?)
    }

    fn jvp(ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Result<Tensor<f64>> {
        Ok(dx * table(ctx.attrs()[1])?)
    }
}

#[py_layer]
impl Boxed {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        _dy: &Tensor<f64>,
    ) -> Result<Tensor<f64>, Box<dyn std::error::Error + Send + Sync>> {
        Err(NoTable(4).into())
    }
}

fn leaf() -> Tensor<f64> {
    let x = Tensor::from([3.0]);
    x.set_stop_gradient(false);
    x
}

fn cause(error: &Error) -> Option<&NoTable> {
    error.source()?.downcast_ref()
}

#[test]
fn the_users_error_is_the_source_and_its_text_the_message() {
    let error = Error::custom(NoTable(1));
    assert_eq!((error.to_string().as_str(), cause(&error)), ("no table 1", Some(&NoTable(1))));
    assert_eq!(format!("{error:?}"), "no table 1");
    let text = Error::custom(format!("{} is too many", 3));
    assert_eq!(text.to_string(), "3 is too many");
    let boxed: Box<dyn std::error::Error + Send + Sync> = NoTable(2).into();
    assert_eq!(cause(&Error::from(boxed)), Some(&NoTable(2)));
    assert_eq!(cause(&error.clone()), Some(&NoTable(1)));
}

#[test]
fn forward_passes_it_on_as_it_is() {
    let error = Scaled::apply(&leaf(), [1, 0, 0]).unwrap_err();
    assert_eq!((error.to_string().as_str(), cause(&error)), ("no table 1", Some(&NoTable(1))));
}

#[test]
fn backward_and_jvp_name_the_op() {
    let x = leaf();
    let error = Scaled::apply(&x, [0, 2, 0]).unwrap().backward().unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("Scaled (called at "), "{text}");
    assert!(text.ends_with("backward failed: no table 2"), "{text}");
    assert_eq!(cause(&error), Some(&NoTable(2)));
    let boxed = Boxed::apply(&x).backward().unwrap_err();
    assert!(boxed.to_string().ends_with("backward failed: no table 4"), "{boxed}");
    assert_eq!(cause(&boxed), Some(&NoTable(4)));
    assert!(x.grad().is_none());
    let scaled = |x: &[Tensor<f64>]| Scaled::apply(&x[0], [0, 0, 3]).unwrap();
    let error = jvp(scaled, &[x], &[Tensor::from([1.0])]).unwrap_err();
    assert!(error.to_string().ends_with("jvp failed: no table 3"), "{error}");
    assert_eq!(cause(&error), Some(&NoTable(3)));
}

/// An error of the library from within backward is a source that can be matched.
#[test]
fn an_error_of_the_library_stays_whole() {
    #[py_layer]
    impl Misfit {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 2.0
        }

        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Result<Tensor<f64>> {
            dy.try_reshape([7])
        }
    }
    let error = Misfit::apply(&leaf()).backward().unwrap_err();
    let source: Option<&Error> = error.source().and_then(|source| source.downcast_ref());
    assert!(matches!(source, Some(Error::Shape { op: "reshape", .. })), "{error}");
}
