//! A macro that compiles generic functions in this crate.

/// Declares and implements traits by generic functions. Not inlined: other crates would compile them again.
macro_rules! instantiate {
    (impl $trait:ident<$of:ident> for $($t:ident)*; $methods:tt) => {
        $(instantiate!(@implement [$trait<$of>] $t $methods);)*
    };
    ($($(#[$doc:meta])* trait $trait:ident for $bound:ident: $($t:ident)*; $methods:tt)*) => {$(
        instantiate!(@declare [$(#[$doc])*] $trait $bound $methods);
        $(instantiate!(@implement [$trait] $t $methods);)*
    )*};
    (@declare [$($doc:tt)*] $trait:ident $bound:ident {
        $($(#[$cfg:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $function:path;)*
    }) => {
        $($doc)*
        pub(crate) trait $trait: Sized {
            $($(#[$cfg])* fn $name($($arg: $ty),*) $(-> $ret)? where Self: $bound;)*
        }
    };
    (@implement [$($trait:tt)*] $t:ident {
        $($(#[$cfg:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $function:path;)*
    }) => {
        impl $($trait)* for $t {
            $(
                $(#[$cfg])*
                #[inline(never)]
                fn $name($($arg: $ty),*) $(-> $ret)? {
                    $function($($arg),*)
                }
            )*
        }
    };
}

pub(crate) use instantiate;
