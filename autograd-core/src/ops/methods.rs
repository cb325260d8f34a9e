//! Methods that differ only in their names: pairs of a panicking and a fallible one, and setters of options.

/// Pairs of methods: one panics, the other returns an error. Each pair has its documentation, both names, the
/// signature, the errors and their condition, and the body of the second. The macro writes the sections
/// `Panics` and `Errors`. The bound is a token tree, so that the compiler shows it where it is given.
macro_rules! pairs {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident, $try_name:ident $(<$param:ident: $of:ident>)?
            ($(&$self:ident $(,)?)? $($input:ident: $type:ty),* $(,)?) -> $output:ty,
            $error:ident $(| $more:ident)* if $when:literal
            $(where $bounded:ident: $bound:tt)? $body:block
    )*) => {$(
        $(#[$doc])*
        #[doc = concat!(
            "\n# Panics\n\nIf ", $when, "; see [`", stringify!($try_name), "`](Self::",
            stringify!($try_name), ").",
        )]
        #[track_caller]
        pub fn $name $(<$param: $of>)? ($(&$self,)? $($input: $type),*) -> $output $(where $bounded: $bound)? {
            $crate::ops::expect(Self::$try_name($($self,)? $($input),*))
        }

        #[doc = concat!(
            "[`", stringify!($name), "`](Self::", stringify!($name), "), with an error instead of a panic.",
            "\n\n# Errors\n\n[`Error::", stringify!($error), "`](crate::Error::", stringify!($error), ")",
            $(" or [`Error::", stringify!($more), "`](crate::Error::", stringify!($more), ")",)*
            " if ", $when, ".",
        )]
        #[track_caller]
        pub fn $try_name $(<$param: $of>)? ($(&$self,)? $($input: $type),*) -> $crate::error::Result<$output>
            $(where $bounded: $bound)?
        $body
    )*};
}

/// Methods that set an option: documentation, name, type, and conversions of the value.
macro_rules! options {
    ($($(#[$doc:meta])* pub fn $name:ident($value:ident: $type:ty) $(.$converted:ident())*;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $value: $type) -> Self {
            self.$name = $value $(.$converted())*;
            self
        }
    )*};
}

pub(crate) use {options, pairs};
