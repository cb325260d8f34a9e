//! How a tensor reads on the screen: the layout of Paddle's `to_string`.

use std::fmt::{self, Write};

mod options;
#[cfg(test)]
mod tests;

pub use options::{Notation, PrintOptions, print_options, set_print_options};

/// What stands for those that are left out.
const ELLIPSIS: &str = "...";

/// Writes a tensor as `Tensor(shape=[2], dtype=float32, stop_gradient=true,`, a new line, its data
/// and `)`. `data` is row-major and as long as `shape` says.
///
/// The precision of the formatter, if there is one, is the number of decimals. Other flags of the
/// format string change nothing.
pub(crate) fn render_tensor<T: Printable>(
    f: &mut fmt::Formatter<'_>,
    shape: &[usize],
    (dtype, stop_gradient): (&str, bool),
    data: &[T],
    options: PrintOptions,
) -> fmt::Result {
    let options = options.precision(f.precision().unwrap_or(options.precision));
    writeln!(f, "Tensor(shape={shape:?}, dtype={dtype}, stop_gradient={stop_gradient},")?;
    write_data(f, shape, data, 0, options)?;
    f.write_char(')')
}

/// The nested brackets alone. `data` is row-major and as long as `shape` says.
///
/// `indent` is the column at which the caller places the first bracket: later lines are indented by
/// it, and it counts towards the width of a line.
#[cfg(test)]
pub(crate) fn render<T: Printable>(shape: &[usize], data: &[T], indent: usize) -> String {
    let mut out = String::new();
    write_data(&mut out, shape, data, indent, PrintOptions::new())
        .expect("a String takes any text");
    out
}

/// An element type that can be shown.
pub(crate) trait Printable: Copy {
    /// Whether the item takes the sign column. A negative zero does not, though it shows a sign.
    fn is_negative(self) -> bool;

    /// Its size, if it may be written with an exponent.
    fn size(self) -> Option<f64> {
        None
    }

    /// Appends the item to `out`, without padding.
    fn write_item(self, style: Style, out: &mut String) -> fmt::Result;
}

/// How a float is written.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    decimals: usize,
    scientific: bool,
}

macro_rules! printable_float {
    ($($float:ident)+) => {$(
        impl Printable for $float {
            fn is_negative(self) -> bool {
                self < 0.0
            }

            fn size(self) -> Option<f64> {
                Some(f64::from(self).abs())
            }

            fn write_item(self, style: Style, out: &mut String) -> fmt::Result {
                write_float(f64::from(self), style, out)
            }
        }
    )+};
}

printable_float!(f32 f64);

macro_rules! printable_integer {
    ($($integer:ident)+) => {$(
        impl Printable for $integer {
            fn is_negative(self) -> bool {
                // Widened, because the compiler objects to asking a u8 whether it is below zero.
                i64::from(self) < 0
            }

            fn write_item(self, _: Style, out: &mut String) -> fmt::Result {
                write!(out, "{self}")
            }
        }
    )+};
}

printable_integer!(i32 i64 u8);

impl Printable for bool {
    fn is_negative(self) -> bool {
        false
    }

    fn write_item(self, _: Style, out: &mut String) -> fmt::Result {
        out.write_str(if self { "True" } else { "False" })
    }
}

fn write_float(value: f64, Style { decimals, scientific }: Style, out: &mut String) -> fmt::Result {
    if value.is_nan() {
        out.write_str("nan")
    } else if scientific && value.is_finite() {
        // Python's exponents have a sign and two digits.
        let text = format!("{value:.decimals$e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) =
            exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        write!(out, "{digits}e{sign}{exponent:0>2}")
    } else if scientific {
        write!(out, "{value}")
    } else if value.ceil() == value {
        write!(out, "{value:.0}.")
    } else {
        write!(out, "{value:.decimals$}")
    }
}

fn write_data<T: Printable>(
    out: &mut impl Write,
    shape: &[usize],
    data: &[T],
    indent: usize,
    options: PrintOptions,
) -> fmt::Result {
    debug_assert_eq!(shape.iter().product::<usize>(), data.len());
    // Of an empty tensor the brackets count, which can be many without a single element.
    let size = shape
        .iter()
        .take_while(|&&len| len != 0)
        .fold(1_usize, |size, &len| size.saturating_mul(len));
    let edge = (size > options.threshold).then_some(options.edge_items);

    let scientific = match options.notation {
        Notation::Fixed => false,
        Notation::Scientific => true,
        Notation::Auto => {
            let (mut least, mut most) = (f64::INFINITY, 0.0);
            each_shown(shape, data, edge, &mut |item: T| {
                if let Some(size) = item.size().filter(|size| *size > 0.0 && size.is_finite()) {
                    (least, most) = (size.min(least), size.max(most));
                }
                Ok(())
            })?;
            most >= 1e8 || least < 1e-4 || most / least > 1e3
        }
    };
    let style = Style { decimals: options.precision, scientific };
    let mut items = Items::default();
    each_shown(shape, data, edge, &mut |item| items.push(item, style))?;
    let mut layout = Layout { out, items: &items, written: 0, edge, width: options.line_width };
    layout.write_block(shape, indent)
}

/// Visits the items that are shown, in the order in which they are.
fn each_shown<T: Printable>(
    shape: &[usize],
    data: &[T],
    edge: Option<usize>,
    visit: &mut dyn FnMut(T) -> fmt::Result,
) -> fmt::Result {
    let [len, inner @ ..] = shape else {
        return visit(data[0]);
    };
    let stride: usize = inner.iter().product();
    for i in shown(*len, edge).flatten() {
        each_shown(inner, &data[i * stride..][..stride], edge, visit)?;
    }
    Ok(())
}

/// The positions of a dimension that are shown, with `None` where the ellipsis stands: so many at
/// either end, or all.
fn shown(len: usize, edge: Option<usize>) -> impl Iterator<Item = Option<usize>> {
    let cut = edge.filter(|&edge| len > edge.saturating_mul(2));
    let (head, tail) = cut.map_or((len, len), |edge| (edge, len - edge));
    let ellipsis = cut.map(|_| None);
    (0..head).map(Some).chain(ellipsis).chain((tail..len).map(Some))
}

/// The items that are shown, in the order in which they are, formatted once and end to end.
#[derive(Default)]
struct Items {
    text: String,
    cells: Vec<Cell>,
    /// Length of the longest.
    width: usize,
    /// Whether one of them is negative.
    signed: bool,
}

struct Cell {
    end: usize,
    negative: bool,
}

impl Items {
    fn push<T: Printable>(&mut self, value: T, style: Style) -> fmt::Result {
        let start = self.text.len();
        value.write_item(style, &mut self.text)?;
        let end = self.text.len();
        let negative = value.is_negative();
        self.width = self.width.max(end - start);
        self.signed |= negative;
        self.cells.push(Cell { end, negative });
        Ok(())
    }
}

/// Puts the items between brackets.
struct Layout<'a, W> {
    out: &'a mut W,
    items: &'a Items,
    written: usize,
    edge: Option<usize>,
    /// The columns of a line.
    width: usize,
}

impl<W: Write> Layout<'_, W> {
    /// One tensor of the given shape, with its first bracket at column `indent`.
    fn write_block(&mut self, shape: &[usize], indent: usize) -> fmt::Result {
        let [len, inner @ ..] = shape else {
            return self.write_item();
        };
        let per_line = if inner.is_empty() {
            (self.width.saturating_sub(indent) / (self.items.width + 2)).max(1)
        } else {
            1
        };
        self.out.write_char('[')?;
        for (i, position) in shown(*len, self.edge).enumerate() {
            if i > 0 && i.is_multiple_of(per_line) {
                self.out.write_char(',')?;
                // The higher the rank, the more blank lines: rows follow each other closely.
                for _ in 0..inner.len().max(1) {
                    self.out.write_char('\n')?;
                }
                self.write_spaces(indent + 1)?;
            } else if i > 0 {
                self.out.write_str(", ")?;
            }
            match position {
                Some(_) => self.write_block(inner, indent + 1)?,
                None => self.out.write_str(ELLIPSIS)?,
            }
        }
        self.out.write_char(']')
    }

    /// The next item, to the left of its column but behind the sign column if there is one.
    fn write_item(&mut self) -> fmt::Result {
        let Items { text, cells, width, signed } = self.items;
        let start = self.written.checked_sub(1).map_or(0, |i| cells[i].end);
        let Cell { end, negative } = cells[self.written];
        self.written += 1;

        let mut padding = width - (end - start);
        // The widest item has no room for it: `-20` and `300` stand in the same column.
        if *signed && !negative && padding > 0 {
            self.out.write_char(' ')?;
            padding -= 1;
        }
        self.out.write_str(&text[start..end])?;
        self.write_spaces(padding)
    }

    fn write_spaces(&mut self, count: usize) -> fmt::Result {
        write!(self.out, "{:count$}", "")
    }
}
