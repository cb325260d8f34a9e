//! Setters of options.

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

pub(crate) use options;
