//! How a tensor reads on the screen: the layout of Paddle's `to_string`.

use std::fmt::{self, Write};

#[cfg(test)]
mod tests;

/// Decimals of a float, unless the format string asks for another number (`{:.3}`).
const DECIMALS: usize = 8;
/// Columns a row of items may take before it goes on in the next line.
const LINE_WIDTH: usize = 80;
/// A tensor with more elements than this is shown by its edges.
const THRESHOLD: usize = 1000;
/// Elements shown at either end of a dimension of such a tensor.
const EDGE_ITEMS: usize = 3;
/// What stands for those that are left out.
const ELLIPSIS: &str = "...";

/// Writes a tensor as `Tensor(shape=[2], dtype=float32, stop_gradient=true,`, a new line, its data
/// and `)`. `data` is row-major and as long as `shape` says.
///
/// The precision of the formatter is the number of decimals, 8 without one. Other flags of the
/// format string change nothing.
pub(crate) fn render_tensor<T: Printable>(
    f: &mut fmt::Formatter<'_>,
    shape: &[usize],
    dtype: &str,
    stop_gradient: bool,
    data: &[T],
) -> fmt::Result {
    let decimals = f.precision().unwrap_or(DECIMALS);
    writeln!(f, "Tensor(shape={shape:?}, dtype={dtype}, stop_gradient={stop_gradient},")?;
    write_data(f, shape, data, 0, decimals)?;
    f.write_char(')')
}

/// The nested brackets alone. `data` is row-major and as long as `shape` says.
///
/// `indent` is the column at which the caller places the first bracket: later lines are indented by
/// it, and it counts towards the width of a line.
#[cfg(test)]
pub(crate) fn render<T: Printable>(shape: &[usize], data: &[T], indent: usize) -> String {
    let mut out = String::new();
    write_data(&mut out, shape, data, indent, DECIMALS).expect("a String takes any text");
    out
}

/// An element type that can be shown.
pub(crate) trait Printable: Copy {
    /// Whether the item takes the sign column. A negative zero does not, though it shows a sign.
    fn is_negative(self) -> bool;

    /// Appends the item to `out`, without padding.
    fn write_item(self, decimals: usize, out: &mut String) -> fmt::Result;
}

macro_rules! printable_float {
    ($($float:ident)+) => {$(
        impl Printable for $float {
            fn is_negative(self) -> bool {
                self < 0.0
            }

            fn write_item(self, decimals: usize, out: &mut String) -> fmt::Result {
                write_float(f64::from(self), decimals, out)
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

            fn write_item(self, _decimals: usize, out: &mut String) -> fmt::Result {
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

    fn write_item(self, _decimals: usize, out: &mut String) -> fmt::Result {
        out.write_str(if self { "True" } else { "False" })
    }
}

fn write_float(value: f64, decimals: usize, out: &mut String) -> fmt::Result {
    if value.is_nan() {
        out.write_str("nan")
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
    decimals: usize,
) -> fmt::Result {
    debug_assert_eq!(shape.iter().product::<usize>(), data.len());
    // Of an empty tensor the brackets count, which can be many without a single element.
    let size = shape
        .iter()
        .take_while(|&&len| len != 0)
        .fold(1_usize, |size, &len| size.saturating_mul(len));
    let summarised = size > THRESHOLD;

    let mut items = Items::default();
    items.collect(shape, data, summarised, decimals)?;
    let mut layout = Layout { out, items: &items, written: 0, summarised };
    layout.write_block(shape, indent)
}

/// The positions of a dimension that are shown, with `None` where the ellipsis stands.
fn shown(len: usize, summarised: bool) -> impl Iterator<Item = Option<usize>> {
    let cut = summarised && len > 2 * EDGE_ITEMS;
    let (head, tail) = if cut { (EDGE_ITEMS, len - EDGE_ITEMS) } else { (len, len) };
    let ellipsis = cut.then_some(None);
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
    fn collect<T: Printable>(
        &mut self,
        shape: &[usize],
        data: &[T],
        summarised: bool,
        decimals: usize,
    ) -> fmt::Result {
        let [len, inner @ ..] = shape else {
            return self.push(data[0], decimals);
        };
        let stride: usize = inner.iter().product();
        for i in shown(*len, summarised).flatten() {
            self.collect(inner, &data[i * stride..][..stride], summarised, decimals)?;
        }
        Ok(())
    }

    fn push<T: Printable>(&mut self, value: T, decimals: usize) -> fmt::Result {
        let start = self.text.len();
        value.write_item(decimals, &mut self.text)?;
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
    summarised: bool,
}

impl<W: Write> Layout<'_, W> {
    /// One tensor of the given shape, with its first bracket at column `indent`.
    fn write_block(&mut self, shape: &[usize], indent: usize) -> fmt::Result {
        let [len, inner @ ..] = shape else {
            return self.write_item();
        };
        let per_line = if inner.is_empty() {
            (LINE_WIDTH.saturating_sub(indent) / (self.items.width + 2)).max(1)
        } else {
            1
        };
        self.out.write_char('[')?;
        for (i, position) in shown(*len, self.summarised).enumerate() {
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
