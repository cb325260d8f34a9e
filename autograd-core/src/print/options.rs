//! Options of printing.

use std::sync::{PoisonError, RwLock};

use crate::options::options;

/// How tensors are written as text: by default as in Paddle, floats with 8 decimals, which for
/// 1e-10 are all 0. [`Notation::Auto`] writes such numbers with an exponent, as NumPy does.
/// [`set_print_options`] sets the options of all tensors,
/// [`Tensor::display`](crate::Tensor::display) those of one. A precision in a format string, as in
/// `{:.3}`, overrides them.
///
/// ```
/// use autograd_core::{Notation, PrintOptions, Tensor};
///
/// let x = Tensor::from([1e-10, 0.5]);
/// let text = |options| x.display(options).to_string().lines().last().unwrap().to_owned();
/// let options = PrintOptions::new();
/// assert_eq!(text(options), "[0.00000000, 0.50000000])");
/// assert_eq!(text(options.notation(Notation::Auto).precision(2)), "[1.00e-10, 5.00e-01])");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    pub(super) precision: usize,
    pub(super) threshold: usize,
    pub(super) edge_items: usize,
    pub(super) line_width: usize,
    pub(super) notation: Notation,
}

/// Whether floats are written with an exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notation {
    /// Never, as Paddle does by default: `0.00000000`. Whole numbers have no decimals: `100000.`.
    Fixed,
    /// Always: `1.00000000e-10`.
    Scientific,
    /// For all elements that are shown, if the smallest magnitude other than 0 is below 1e-4, the largest
    /// is 1e8 or more, or the largest is more than a thousand times the smallest: NumPy's rule.
    Auto,
}

impl PrintOptions {
    const DEFAULT: Self = Self {
        precision: 8,
        threshold: 1000,
        edge_items: 3,
        line_width: 80,
        notation: Notation::Fixed,
    };

    /// Paddle's options: 8 decimals, tensors of up to 1000 elements whole, lines of 80 columns,
    /// [`Notation::Fixed`].
    pub fn new() -> Self {
        Self::DEFAULT
    }

    options! {
        /// The number of decimals of floats.
        pub fn precision(decimals: usize);

        /// The number of elements up to which a tensor is shown whole.
        pub fn threshold(elements: usize);

        /// The number of elements shown at either end of an axis of a larger tensor; 3 by default.
        #[doc(alias = "edgeitems")]
        pub fn edge_items(elements: usize);

        /// The number of columns of a line; a longer row of elements continues on the next line.
        #[doc(alias = "linewidth")]
        pub fn line_width(columns: usize);

        /// Whether floats are written with an exponent.
        #[doc(alias = "sci_mode")]
        #[doc(alias = "suppress")]
        pub fn notation(notation: Notation);
    }
}

impl Default for PrintOptions {
    fn default() -> Self {
        Self::new()
    }
}

static OPTIONS: RwLock<PrintOptions> = RwLock::new(PrintOptions::DEFAULT);

/// Sets the options with which tensors are written from now on, in the whole process.
///
/// ```standalone_crate
/// use autograd_core::{PrintOptions, Tensor, set_print_options};
///
/// set_print_options(PrintOptions::new().precision(3));
/// assert!(Tensor::from([0.5]).to_string().ends_with("[0.500])"));
/// ```
#[doc(alias = "set_printoptions")]
pub fn set_print_options(options: PrintOptions) {
    *OPTIONS.write().unwrap_or_else(PoisonError::into_inner) = options;
}

/// Returns the options with which tensors are written; see [`set_print_options`].
#[doc(alias = "get_printoptions")]
pub fn print_options() -> PrintOptions {
    *OPTIONS.read().unwrap_or_else(PoisonError::into_inner)
}
