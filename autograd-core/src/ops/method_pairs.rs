//! Pairs of methods, of which one panics and the other returns an error.

/// Pairs of methods, of which one panics and the other returns an error and has the body; and methods that only
/// panic. The macro writes the sections `Panics` and `Errors`, and the example of the second method from a call and its
/// error: `"Tensor::from([1.0]).try_argmax(1)" => Axis`, perhaps after imports: `use "nn::Linear";`. A bound is tokens,
/// so errors show its place.
macro_rules! pairs {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident $(, $try_name:ident)? $(<$param:ident: $of:ident>)?
            ($(&$self:ident $(,)?)? $($input:ident: $type:ty),* $(,)?) -> $output:ty,
            $error:ident $(| $more:ident)* if $when:literal
            $(, $(use $import:literal;)* $fails:expr => $shown:ident)?
            $(where $bounded:ident: $bound:tt)? $body:block
    )*) => {$(
        $crate::ops::pairs! {
            @one [$($try_name)?] [$(<$param: $of>)?] [$($bounded: $bound)?]
            [$(#[$doc])*] $name($(&$self,)? $($input: $type),*) -> $output, [$error $($more)*] $when
            [$($(use $import;)* $fails => $shown)?] $body
        }
    )*};
    (
        @one [] [$($generics:tt)*] [$($bound:tt)*]
        [$($doc:tt)*] $name:ident($($input:tt)*) -> $output:ty, [Panics] $when:literal [] $body:block
    ) => {
        $($doc)*
        #[doc = concat!("\n# Panics\n\nIf ", $when, ".")]
        #[track_caller]
        pub fn $name $($generics)* ($($input)*) -> $output where $($bound)* $body
    };
    (
        @one [$try_name:ident] [$($generics:tt)*] [$($bound:tt)*]
        [$($doc:tt)*] $name:ident($(&$self:ident,)? $($input:ident: $type:ty),*) -> $output:ty,
        [$error:ident $($more:ident)*] $when:literal
        [$($(use $import:literal;)* $fails:expr => $shown:ident)?] $body:block
    ) => {
        $($doc)*
        #[doc = concat!(
            "\n# Panics\n\nIf ", $when, "; see [`", stringify!($try_name), "`](Self::",
            stringify!($try_name), ").",
        )]
        #[track_caller]
        pub fn $name $($generics)* ($(&$self,)? $($input: $type),*) -> $output where $($bound)* {
            $crate::ops::expect(Self::$try_name($($self,)? $($input),*))
        }

        #[doc = concat!(
            "[`", stringify!($name), "`](Self::", stringify!($name), "), with an error instead of a panic.",
            $(
                "\n\n```\n", $("use autograd_core::", $import, ";\n",)* "use autograd_core::{Error, Tensor};\n\n",
                "let result = ", $fails, ";\n",
                "assert!(matches!(result, Err(Error::", stringify!($shown), " { .. })));\n```",
            )?
            "\n\n# Errors\n\n[`Error::", stringify!($error), "`](crate::Error::", stringify!($error), ")",
            $(" or [`Error::", stringify!($more), "`](crate::Error::", stringify!($more), ")",)*
            " if ", $when, ".",
        )]
        #[track_caller]
        pub fn $try_name $($generics)* ($(&$self,)? $($input: $type),*) -> $crate::error::Result<$output>
        where $($bound)* $body
    };
}

pub(crate) use pairs;
