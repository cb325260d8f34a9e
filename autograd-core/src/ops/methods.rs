//! Methods that are alike but for names: pairs of which one panics, and options.

/// Methods in pairs: one that panics, and one with an error instead. Of each pair: its documentation, both
/// names, the signature, the errors and when they come, and the body of the second. The sections `Panics` and
/// `Errors` are written here. The bound is a token tree, so that the compiler shows it where it is given.
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

/// Methods that set an option: its documentation, its name, and what it is set to.
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
