//! Tensors as text, in the layout of Paddle's `to_string`.

use std::fmt::{self, Write};
use std::sync::{PoisonError, RwLock};

use crate::options::options;

/// How tensors are written as text: by default as in Paddle, floats with 8 decimals, which for 1e-10 are all
/// 0. [`set_print_options`] sets the options of all tensors, [`Tensor::display`](crate::Tensor::display)
/// those of one. A precision in a format string, as in `{:.3}`, overrides them.
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
    precision: usize,
    threshold: usize,
    edge_items: usize,
    line_width: usize,
    notation: Notation,
}

/// Whether floats are written with an exponent.
///
/// ```
/// use autograd_core::{Notation, PrintOptions, Tensor};
///
/// let text = |notation| {
///     let options = PrintOptions::new().precision(1).notation(notation);
///     Tensor::from([0.5, 1.5]).display(options).to_string().lines().last().unwrap().to_owned()
/// };
/// assert_eq!(text(Notation::Scientific), "[5.0e-01, 1.5e+00])");
/// assert_eq!(text(Notation::Auto), "[0.5, 1.5])");
/// ```
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

    /// Paddle's options: 8 decimals, up to 1000 elements whole, lines of 80 columns, [`Notation::Fixed`].
    ///
    /// ```
    /// use autograd_core::{PrintOptions, Tensor};
    ///
    /// let text = Tensor::from([0.5]).display(PrintOptions::new()).to_string();
    /// assert!(text.ends_with("\n[0.50000000])"));
    /// ```
    pub fn new() -> Self {
        Self::DEFAULT
    }

    options! {
        /// The number of decimals of floats.
        ///
        /// ```
        /// use autograd_core::{PrintOptions, Tensor};
        ///
        /// let text = Tensor::from([0.5]).display(PrintOptions::new().precision(2)).to_string();
        /// assert!(text.ends_with("\n[0.50])"));
        /// ```
        pub fn precision(decimals: usize);

        /// The number of elements up to which a tensor is shown whole.
        ///
        /// ```
        /// use autograd_core::{PrintOptions, Tensor};
        ///
        /// let options = PrintOptions::new().threshold(7);
        /// let text = |n| Tensor::<i64>::arange(n).display(options).to_string();
        /// assert!(text(7).ends_with("[0, 1, 2, 3, 4, 5, 6])"));
        /// assert!(text(8).contains("..."));
        /// ```
        pub fn threshold(elements: usize);

        /// The number of elements shown at either end of an axis of a larger tensor; 3 by default.
        ///
        /// ```
        /// use autograd_core::{PrintOptions, Tensor};
        ///
        /// let options = PrintOptions::new().threshold(4).edge_items(1);
        /// let text = Tensor::<i64>::arange(9).display(options).to_string();
        /// assert!(text.contains("...") && text.contains("8") && !text.contains("7"));
        /// ```
        #[doc(alias = "edgeitems")]
        pub fn edge_items(elements: usize);

        /// The number of columns of a line; a longer row of elements continues on the next line.
        ///
        /// ```
        /// use autograd_core::{PrintOptions, Tensor};
        ///
        /// let lines = |columns| {
        ///     let options = PrintOptions::new().line_width(columns);
        ///     Tensor::<i64>::zeros([20]).display(options).to_string().lines().count()
        /// };
        /// assert!(lines(20) > lines(80));
        /// ```
        #[doc(alias = "linewidth")]
        pub fn line_width(columns: usize);

        /// Whether floats are written with an exponent.
        ///
        /// ```
        /// use autograd_core::{Notation, PrintOptions, Tensor};
        ///
        /// let options = PrintOptions::new().precision(2).notation(Notation::Scientific);
        /// let text = Tensor::from([1e-10, 0.5]).display(options).to_string();
        /// assert!(text.ends_with("\n[1.00e-10, 5.00e-01])"));
        /// ```
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
///
/// ```
/// use autograd_core::{PrintOptions, print_options};
///
/// assert_eq!(print_options(), PrintOptions::new());
/// ```
#[doc(alias = "get_printoptions")]
pub fn print_options() -> PrintOptions {
    *OPTIONS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a tensor as `Tensor(shape=[2], dtype=float32, stop_gradient=true,`, a new line, its data and `)`.
/// `item` returns an element by its row-major position. Of the format string, the precision has an effect.
pub(crate) fn render_tensor(
    f: &mut fmt::Formatter<'_>,
    shape: &[usize],
    (dtype, stop_gradient): (&str, bool),
    item: &dyn Fn(usize) -> Item,
    options: PrintOptions,
) -> fmt::Result {
    let options = options.precision(f.precision().unwrap_or(options.precision));
    writeln!(f, "Tensor(shape={shape:?}, dtype={dtype}, stop_gradient={stop_gradient},")?;
    write_data(f, shape, item, options)?;
    f.write_char(')')
}

#[derive(Clone, Copy)]
pub(crate) enum Item {
    Float(f64),
    Integer(i64),
    Bool(bool),
}

impl Item {
    /// Whether it uses the sign column. A negative zero does not, though it has a sign.
    fn is_negative(self) -> bool {
        match self {
            Self::Float(x) => x < 0.0,
            Self::Integer(n) => n < 0,
            Self::Bool(_) => false,
        }
    }

    fn text(self, decimals: usize, scientific: bool) -> String {
        match self {
            Self::Bool(true) => "True".into(),
            Self::Bool(false) => "False".into(),
            Self::Integer(n) => n.to_string(),
            Self::Float(x) if x.is_nan() => "nan".into(),
            Self::Float(x) if scientific && x.is_finite() => {
                // Python's exponents have a sign and two digits.
                let text = format!("{x:.decimals$e}");
                let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let (sign, exponent) =
                    exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
                format!("{digits}e{sign}{exponent:0>2}")
            }
            Self::Float(x) if scientific => x.to_string(),
            Self::Float(x) if x.ceil() == x => format!("{x:.0}."),
            Self::Float(x) => format!("{x:.decimals$}"),
        }
    }
}

/// Writes the nested brackets alone.
fn write_data(
    out: &mut dyn Write,
    shape: &[usize],
    item: &dyn Fn(usize) -> Item,
    options: PrintOptions,
) -> fmt::Result {
    // An empty tensor is measured by its brackets, which can be many without a single element.
    let size = shape
        .iter()
        .take_while(|&&len| len != 0)
        .fold(1_usize, |size, &len| size.saturating_mul(len));
    let edge = (size > options.threshold).then_some(options.edge_items);
    let mut items = Vec::new();
    add_shown(shape, 0, item, edge, &mut items);
    let scientific = match options.notation {
        Notation::Fixed => false,
        Notation::Scientific => true,
        Notation::Auto => needs_exponents(&items),
    };
    let text = |item: &Item| (item.text(options.precision, scientific), item.is_negative());
    let items: Vec<(String, bool)> = items.iter().map(text).collect();
    let mut layout = Layout {
        width: items.iter().map(|(text, _)| text.len()).max().unwrap_or(0),
        signed: items.iter().any(|(_, negative)| *negative),
        items: items.iter(),
        out,
        edge,
        columns: options.line_width,
    };
    layout.write_block(shape, 0)
}

/// Adds the shown elements of a tensor of this shape, of which the first is at `start`.
fn add_shown(
    shape: &[usize],
    start: usize,
    item: &dyn Fn(usize) -> Item,
    edge: Option<usize>,
    to: &mut Vec<Item>,
) {
    let [len, inner @ ..] = shape else { return to.push(item(start)) };
    let stride: usize = inner.iter().product();
    for i in shown(*len, edge).flatten() {
        add_shown(inner, start + i * stride, item, edge, to);
    }
}

/// The positions of a dimension that are shown: all, or `edge` at either end, with `None` for the ellipsis.
fn shown(len: usize, edge: Option<usize>) -> impl Iterator<Item = Option<usize>> {
    let cut = edge.filter(|&edge| len > edge.saturating_mul(2));
    let (head, tail) = cut.map_or((len, len), |edge| (edge, len - edge));
    let ellipsis = cut.map(|_| None);
    (0..head).map(Some).chain(ellipsis).chain((tail..len).map(Some))
}

/// NumPy's rule: see [`Notation::Auto`].
fn needs_exponents(items: &[Item]) -> bool {
    let (mut least, mut most) = (f64::INFINITY, 0.0);
    for item in items {
        if let Item::Float(x) = item
            && *x != 0.0
            && x.is_finite()
        {
            (least, most) = (x.abs().min(least), x.abs().max(most));
        }
    }
    most >= 1e8 || least < 1e-4 || most / least > 1e3
}

struct Layout<'a> {
    out: &'a mut dyn Write,
    /// Each item as text, and whether it is negative.
    items: std::slice::Iter<'a, (String, bool)>,
    width: usize,
    signed: bool,
    edge: Option<usize>,
    columns: usize,
}

impl Layout<'_> {
    /// Writes one tensor of the given shape, with its first bracket at column `indent`.
    fn write_block(&mut self, shape: &[usize], indent: usize) -> fmt::Result {
        let [len, inner @ ..] = shape else {
            return self.write_item();
        };
        let per_line = if inner.is_empty() {
            (self.columns.saturating_sub(indent) / (self.width + 2)).max(1)
        } else {
            1
        };
        self.out.write_char('[')?;
        for (i, position) in shown(*len, self.edge).enumerate() {
            if i > 0 && i.is_multiple_of(per_line) {
                // Rows have no blank line between them; each higher axis adds one.
                let lines = "\n".repeat(inner.len().max(1));
                write!(self.out, ",{lines}{:1$}", "", indent + 1)?;
            } else if i > 0 {
                self.out.write_str(", ")?;
            }
            match position {
                Some(_) => self.write_block(inner, indent + 1)?,
                None => self.out.write_str("...")?,
            }
        }
        self.out.write_char(']')
    }

    fn write_item(&mut self) -> fmt::Result {
        let Some((text, negative)) = self.items.next() else { return Ok(()) };
        let mut width = self.width;
        // The widest item has no column for a sign: `-20` and `300` start in the same column.
        if self.signed && !negative && text.len() < width {
            self.out.write_char(' ')?;
            width -= 1;
        }
        write!(self.out, "{text:width$}")
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn only_what_is_shown_is_formatted() {
        let (count, mut text) = (Cell::new(0), String::new());
        let item = |_| {
            count.set(count.get() + 1);
            Item::Integer(7)
        };
        write_data(&mut text, &[1000, 1000], &item, PrintOptions::new()).unwrap();
        assert_eq!((count.get(), text.matches('7').count()), (36, 36));
    }
}
