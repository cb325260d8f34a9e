//! One implementation for each length of a tuple.

/// Calls a macro with the parts of each tuple of up to sixteen elements: `(type, another type, position)`.
macro_rules! each_tuple {
    ($call:ident) => {
        each_tuple! { $call []
            (A A1 0) (B B1 1) (C C1 2) (D D1 3) (E E1 4) (F F1 5) (G G1 6) (H H1 7)
            (I I1 8) (J J1 9) (K K1 10) (L L1 11) (M M1 12) (N N1 13) (O O1 14) (P P1 15)
        }
    };
    ($call:ident [$($parts:tt)*]) => {
        $call! { $($parts)* }
    };
    ($call:ident [$($parts:tt)*] $next:tt $($others:tt)*) => {
        $call! { $($parts)* }
        each_tuple! { $call [$($parts)* $next] $($others)* }
    };
}

pub(super) use each_tuple;
