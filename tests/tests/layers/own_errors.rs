//! The error of a user's backward or `jvp` is the source of the library's, if its type can be kept.

use std::error::Error as StdError;
use std::fmt::{self, Debug, Display};
use std::rc::Rc;

use autograd_core::host::Arg;
use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Program, Variable, gradients};
use autograd_core::{DType, Error, jvp};
use ndarray::{ArrayD, ArrayViewD};
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

#[py_layer(export)]
impl Refuses {
    fn forward(_ctx: &mut ForwardContext<Self>, _x: &Tensor<f64>) -> Result<Tensor<f64>, Own> {
        Err(Own(7))
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.clone()
    }
}

/// Backward runs an op whose backward fails.
#[py_layer]
impl Outer {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, _dy: &Tensor<f64>) -> Result<Tensor<f64>, Error> {
        let _recording = enable_grad();
        Typed::apply(&leaf(&[1.0])).backward()?;
        Err(Error::custom("the op inside did not fail"))
    }
}

/// The error of a run of a program that computes `y` of `x`, and then the gradient of `x`.
fn failed_run(place: impl FnOnce(&Program, &Variable, &Variable) -> Variable) -> Error {
    let program = Program::new();
    let x = program.data("x", [1], DType::Float64).unwrap();
    x.set_stop_gradient(false);
    let out = program.current_block().create_var("out", x.dtype(), x.shape()).unwrap();
    let y = place(&program, &x, &out);
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0);
    let fetched = dx.unwrap_or(y);
    let run = Executor::new().run(&program, &[("x", &Tensor::from([1.0]))], &[&fetched]);
    run.unwrap_err()
}

#[track_caller]
fn check_run(error: &Error, number: i32) {
    assert!(matches!(error, Error::Operator { .. }), "{error}");
    assert!(error.to_string().ends_with(&format!("own {number}")), "{error}");
    let source = error.source().and_then(|source| source.downcast_ref::<Own>());
    assert_eq!(source, Some(&Own(number)), "{error}");
}

#[test]
fn an_op_of_a_program_keeps_it_too() {
    type Op = fn(&Tensor<f64>) -> Tensor<f64>;
    let ops: [(Op, i32); 4] =
        [(Typed::apply, 1), (Boxed::apply, 2), (Library::apply, 4), (Outer::apply, 1)];
    for (op, number) in ops {
        let run = failed_run(|program, x, _| program.py_layer(op).x(x).call().unwrap());
        check_run(&run, number);
    }
    let forward = |program: &Program, x: &Variable, out: &Variable| {
        program.py_layer(Refuses::apply).x(x).out(out).call().unwrap()
    };
    check_run(&failed_run(forward), 7);
}

#[test]
fn a_call_by_another_language_keeps_it_too() {
    let args = [Arg::One(Tensor::from([1.0]).into())];
    check(&Refuses::EXPORT.forward(&args, &[]).unwrap_err(), 7, true);
}

#[test]
fn a_function_of_a_program_keeps_it_too() {
    fn typed(_: ArrayViewD<'_, f64>) -> Result<ArrayD<f64>, Own> {
        Err(Own(1))
    }
    fn boxed(_: ArrayViewD<'_, f64>) -> Result<ArrayD<f64>, Box<dyn StdError + Send + Sync>> {
        Err(Own(2).into())
    }
    fn library(_: ArrayViewD<'_, f64>) -> autograd_core::Result<ArrayD<f64>> {
        Err(Error::custom(Own(4)))
    }
    /// A program that another one runs.
    fn inner(_: ArrayViewD<'_, f64>) -> autograd_core::Result<ArrayD<f64>> {
        Err(failed_run(|program, x, out| program.py_func(typed).x(x).out(out).call().unwrap()))
    }
    macro_rules! check_all {
        ($($function:ident: $number:literal;)*) => {$(
            check_run(&failed_run(|program, x, out| {
                program.py_func($function).x(x).out(out).call().unwrap()
            }), $number);
            check_run(&failed_run(|program, x, out| {
                let double = |x: ArrayViewD<'_, f64>| 2.0 * &x;
                let call = program.py_func(double).x(x).out(out);
                let call = call.skip_vars_in_backward_input([x, out]);
                call.backward_func($function).call().unwrap()
            }), $number);
        )*};
    }
    check_all! { typed: 1; boxed: 2; library: 4; inner: 1; }
}

#[test]
fn the_source_of_an_op_that_failed_by_itself_is_its_error() {
    let error = failed_run(|program, x, out| {
        let narrow = |x: &Tensor<f64>| x.try_reshape([3]);
        program.eager(narrow).x(x).out(out).call().unwrap()
    });
    let source = error.source().and_then(|source| source.downcast_ref::<Error>());
    assert!(matches!(source, Some(Error::Shape { .. })), "{error}");
}
