//! The macro by which generic functions are compiled in this crate.

/// Traits, and for each type an implementation that calls generic functions; or the implementation alone. Its methods stay calls:
/// inlined, they would be compiled again elsewhere after all.
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
