//! Arguments by name: the states of an argument in `Op::with().x(&x).apply()`. The generated
//! builder has a type parameter for each: [`Required`], [`Optional`] or [`Set`]. The bounds are on
//! the methods, so that the compiler reports the messages below.

/// Not given yet, and without a default.
#[doc(hidden)]
pub struct Required;

/// Not given yet, but there is a default.
#[doc(hidden)]
pub struct Optional;

#[doc(hidden)]
pub struct Set<T>(pub T);

#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the argument `{Name}` is given twice",
    label = "given before in this chain of calls",
    note = "each argument of `with()` is given once"
)]
pub trait NotGiven<Name> {}

#[diagnostic::do_not_recommend]
impl<Name> NotGiven<Name> for Required {}
#[diagnostic::do_not_recommend]
impl<Name> NotGiven<Name> for Optional {}

#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the argument `{Name}` is missing",
    label = "call `.{Name}(..)` before this",
    note = "every argument without a `#[default(..)]` must be given"
)]
pub trait Given<Name> {
    type Value;

    fn take(self) -> Self::Value;
}

#[diagnostic::do_not_recommend]
impl<Name, T> Given<Name> for Set<T> {
    type Value = T;

    fn take(self) -> T {
        self.0
    }
}

#[doc(hidden)]
pub trait GivenOr<Name, T>: Sized {
    fn take_or(self, default: impl FnOnce() -> T) -> T;
}

#[diagnostic::do_not_recommend]
impl<Name, T> GivenOr<Name, T> for Set<T> {
    fn take_or(self, _: impl FnOnce() -> T) -> T {
        self.0
    }
}

#[diagnostic::do_not_recommend]
impl<Name, T> GivenOr<Name, T> for Optional {
    fn take_or(self, default: impl FnOnce() -> T) -> T {
        default()
    }
}

/// The return type of functions, also with the lifetimes of their argument.
#[doc(hidden)]
pub trait Returned {
    type Type;
}

impl<'a, R, const N: usize> Returned for [fn(&'a ()) -> R; N] {
    type Type = R;
}
