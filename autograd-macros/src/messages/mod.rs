//! The messages of the macro, in tables. Lower case: first the mistake, then the fix.

/// A table of messages. Each becomes a function with the listed parameters, `&str` if no type is written.
/// `near? ".." else ".."`: the first text if `near` is a name, otherwise the second.
macro_rules! sentences {
    (@type) => { &str };
    (@type $ty:ty) => { $ty };
    ($(
        $(#[$doc:meta])*
        $name:ident($($arg:ident $(: $ty:ty)?),*) $($near:ident? $some:literal else)? $text:literal;
    )*) => {$(
        $(#[$doc])*
        pub(crate) fn $name($($arg: $crate::messages::sentences!(@type $($ty)?)),*) -> String {
            $(if let Some($near) = $near {
                return format!($some);
            })?
            format!($text)
        }
    )*};
}

pub(crate) use sentences;

mod block;
mod context;
mod gradients;
mod signature;

pub(crate) use block::*;
pub(crate) use context::*;
pub(crate) use gradients::*;
pub(crate) use signature::*;

/// `1 gradient`, `2 gradients`.
pub(crate) fn plural(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// `` `a`, `b` and `c` ``
pub(crate) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [init @ .., last] => {
            let init: Vec<_> = init.iter().map(|name| format!("`{name}`")).collect();
            format!("{} and `{last}`", init.join(", "))
        }
    }
}
