//! The rules of this crate: their options as a table.

/// A rule: its documentation, what it is without options that are set, and its options, each with its first value
/// and its range. All options are kept as numbers, in the order in which programs and files have them. Those
/// behind `let` have no method here.
macro_rules! rule {
    (
        $(#[$doc:meta])* pub struct $name:ident;
        $(#[$new:meta])* pub fn new(learning_rate: f64);
        $(let $hidden:ident = $hidden_start:literal, $hidden_range:expr;)*
        $($(#[$option_doc:meta])* pub fn $option:ident($value:ident: $type:ty) = $start:literal, $range:expr;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            learning_rate: f64,
            $($hidden: f64,)*
            $($option: f64,)*
        }

        impl $name {
            $(#[$new])*
            pub fn new(learning_rate: f64) -> Self {
                $(let $hidden = $hidden_start;)*
                Self { learning_rate, $($hidden,)* $($option: f64::from($start),)* }
            }

            /// The step size.
            #[must_use]
            pub fn learning_rate(self, learning_rate: f64) -> Self {
                Self { learning_rate, ..self }
            }

            $(
                $(#[$option_doc])*
                #[must_use]
                pub fn $option(self, $value: $type) -> Self {
                    Self { $option: f64::from($value), ..self }
                }
            )*

            fn check_options(&self) -> Result<()> {
                let check = |option, range, found| super::check(stringify!($name), option, range, found);
                check("learning_rate", super::NOT_NEGATIVE, self.learning_rate)?;
                $(check(stringify!($hidden), $hidden_range, self.$hidden)?;)*
                $(check(stringify!($option), $range, self.$option)?;)*
                Ok(())
            }
        }

        #[cfg(feature = "static-graph")]
        impl $crate::optim::Listed for $name {
            fn options(&self) -> Vec<(&'static str, f64)> {
                vec![
                    ("learning_rate", self.learning_rate),
                    $((stringify!($hidden), self.$hidden),)*
                    $((stringify!($option), self.$option),)*
                ]
            }

            fn with_options(options: &[f64]) -> Option<Self> {
                let &[learning_rate, $($hidden,)* $($option,)*] = options else { return None };
                Some(Self { learning_rate, $($hidden,)* $($option,)* })
            }
        }
    };
}

/// What all rules of this crate have of [`Rule`](super::Rule) in common.
macro_rules! built_in {
    ($name:ident) => {
        const NAME: &'static str = stringify!($name);

        fn rate(&self) -> f64 {
            self.learning_rate
        }

        fn set_rate(&mut self, learning_rate: f64) {
            self.learning_rate = learning_rate;
        }

        // Never inlined: so the updates are compiled in this crate.
        #[inline(never)]
        fn erased(&self) -> $crate::optim::rule::Erased<'_> {
            $crate::optim::rule::Erased { rule: self, in_place: true }
        }
    };
}

pub(super) use {built_in, rule};
