//! Loops compiled for the widest vectors that the CPU supports at run time.

/// `widest!(name(arguments) = inlined)` is a function `name` that calls `inlined`.
macro_rules! widest {
    ($vis:vis $name:ident($($arg:ident: $type:ty),*) = $inlined:path) => {
        $vis fn $name($($arg: $type),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
                fn avx512($($arg: $type),*) {
                    $inlined($($arg),*)
                }

                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $type),*) {
                    $inlined($($arg),*)
                }

                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                {
                    // SAFETY: the CPU has what the function is compiled for.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the CPU has what the function is compiled for.
                    return unsafe { avx2($($arg),*) };
                }
            }
            $inlined($($arg),*)
        }
    };
}

pub(crate) use widest;
