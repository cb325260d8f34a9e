//! Functions of users that may fail, or that did not compile.

/// What a forward, a backward or a `jvp` returns that may fail.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the `Result` of the standard library",
    label = "expected `Result<_, E>`",
    note = "if another type is called `Result` too, import it under another name, or write `std::result::Result` here"
)]
pub trait Fallible {
    /// What is returned where nothing failed.
    type Output;
    /// Why it failed.
    type Error;
    /// As it is.
    ///
    /// # Errors
    ///
    /// Those of the function.
    fn result(self) -> Result<Self::Output, Self::Error>;
    /// As the function returns it.
    fn of(result: Result<Self::Output, Self::Error>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<O, E> Fallible for Result<O, E> {
    type Output = O;
    type Error = E;

    #[inline]
    fn result(self) -> Self {
        self
    }

    #[inline]
    fn of(result: Self) -> Self {
        result
    }
}

/// Stands where an op that did not compile misses something.
#[must_use]
pub fn stand_in<T>() -> T {
    unreachable!("what was not proven did not compile")
}
