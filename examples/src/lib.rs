//! What the programs share: pictures as SVG, and the code of the book as tests.

mod plot;

pub use plot::{Image, draw_curves, draw_image};

/// Each program of the README and of the book in `docs/` is compiled and run by `cargo test -p examples --doc`.
#[cfg(doctest)]
mod book {
    macro_rules! chapters {
        ($($name:ident $file:literal)*) => {
            $(
                #[doc = include_str!(concat!("../../docs/", $file))]
                mod $name {}
            )*
        };
    }

    /// The generated tests of these programs.
    #[doc = include_str!(concat!(env!("OUT_DIR"), "/checks.md"))]
    mod checks {}

    chapters! {
        readme "../README.md"
        first_op "first-op.md"
        loops "loops.md"
        shapes "shapes.md"
        formulas "formulas.md"
        recipes "recipes.md"
        missing_gradient "missing-gradient.md"
        numerics "numerics.md"
        performance "performance.md"
        programs "programs.md"
        porting "porting.md"
        publishing "publishing.md"
        service "service.md"
    }
}
