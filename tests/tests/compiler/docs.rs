//! A crate of ops in `cargo doc`: its pages begin with what a caller needs, and their links lead somewhere.

use std::fs;
use std::path::Path;

use crate::rustc::document;

const OPS: &str = r#"//! A crate of ops.
#![deny(missing_docs)]
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[doc(inline)]
pub use autograd_core::prelude::Real;

/// Scales a tensor.
#[py_layer]
impl Scaled {
    type Saved = (Tensor<f64>, Tensor<f64>);

    /// Multiplies by factors; see [`Scaled::half`].
    pub fn forward(
        ctx: &mut ForwardContext<Self>,
        /// The values.
        x: &Tensor<f64>,
        /// The factors,
        /// as many as values.
        scale: &Tensor<f64>,
        #[default(2.0)] by: f64,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, scale));
        x * scale * by
    }

    /// Not for callers.
    pub fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, scale) = ctx.saved_tensor();
        Grads { x: dy * scale, scale: dy * x }
    }

    /// Half of a factor.
    pub fn half(by: f64) -> f64 {
        by / 2.0
    }
}

/// An elementwise op.
#[py_layer(elementwise)]
impl Formula {
    /// Applies it.
    pub fn forward(
        /// The number.
        x: Real,
        #[default(1.0)] k: f64,
    ) -> Real {
        x * k
    }

    pub fn backward(k: f64, dy: Real) -> Real {
        dy * k
    }
}

autograd_core::scalar_op! {
    /// The square.
    pub Square: y = x * x, dx = dy * 2.0 * x
}

/// An operator.
#[py_func]
impl Twice {
    /// Doubles each element.
    pub fn forward(
        /// The numbers.
        x: ArrayViewD<f64>,
    ) -> ArrayD<f64> {
        &x * 2.0
    }

    fn backward(
        /// Not for callers.
        dy: ArrayViewD<f64>,
    ) -> ArrayD<f64> {
        &dy * 2.0
    }
}

/// What an op saves.
#[derive(Saved)]
pub struct Kept {
    /// The input.
    pub x: Tensor<f64>,
}
"#;

/// The text of a page, without tags.
fn text_of(page: &Path) -> String {
    let html =
        fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let main = html.split("id=\"main-content\"").nth(1).unwrap();
    let text: String =
        main.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Links to pages of the crate that are not there.
fn broken_links(page: &Path) -> Vec<String> {
    let html = fs::read_to_string(page).unwrap();
    let links = html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let local = links.filter(|link| !link.contains("://") && !link.contains("static.files"));
    let is_broken = |link: &&str| {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target =
            if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
        let ids = [format!("id=\"{anchor}\""), format!("id={anchor}>")];
        let is_there = |html: String| anchor.is_empty() || ids.iter().any(|id| html.contains(id));
        let is_source = target.components().any(|part| part.as_os_str() == "src");
        !is_source && !target.is_dir() && !fs::read_to_string(&target).is_ok_and(is_there)
    };
    local.filter(is_broken).map(str::to_owned).collect()
}

#[test]
fn pages_of_ops_show_what_callers_need_in_its_order() {
    let pages = document(OPS);
    let page = |name: &str| text_of(&pages.join(format!("struct.{name}.html")));
    let (scaled, formula) = (page("Scaled"), page("Formula"));
    for (text, words) in [
        (
            &scaled,
            &[
                "Scales a tensor.",
                "pub fn half",
                "pub fn apply(",
                "Multiplies by factors",
                "Arguments",
                "x: The values.",
                "scale: The factors,\nas many as values.",
                "pub fn try_apply(",
                "pub fn with(",
                "x(&Tensor<f64>), scale(&Tensor<f64>), by(f64)",
                "apply() or try_apply()",
                "by is 2.0 if it is not given.",
                "Auto Trait Implementations",
            ][..],
        ),
        (
            &formula,
            &[
                "An elementwise op.",
                "pub fn apply<",
                "Applies it.",
                "x: The number.",
                "pub fn with(",
                "x(&Tensor<T>), k(f64)",
                "k is 1.0 if it is not given.",
                "pub fn check_backward(",
            ],
        ),
        (&page("Square"), &["The square.", "pub fn apply<", "pub fn try_apply<", "pub fn with("]),
        (
            &page("Twice"),
            &[
                "An operator.",
                "pub fn call(",
                "Doubles each element.",
                "Adds the operator",
                "x: The numbers.",
                "Errors",
            ],
        ),
        (&page("Kept"), &["What an op saves.", "The input."]),
    ] {
        let mut rest = text.as_str();
        for word in words {
            rest = rest
                .split_once(word)
                .unwrap_or_else(|| panic!("no `{word}` in order in:\n{text}"))
                .1;
        }
        for hidden in ["pub fn forward", "pub fn backward", "Unsavable", "GradFor"] {
            assert!(!text.contains(hidden), "`{hidden}` in:\n{text}");
        }
    }
    let real = page("Real");
    assert!(!real.contains("Dual"), "{real}");
    for name in ["Scaled", "Formula", "Square", "Twice", "Kept"] {
        let broken = broken_links(&pages.join(format!("struct.{name}.html")));
        assert!(broken.is_empty(), "{name}: {broken:?}");
    }
    fs::remove_dir_all(pages.parent().unwrap()).unwrap();
}
