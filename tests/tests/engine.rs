//! The engine as its users see it.
