//! The drawing as SVG: rows of boxes from top to bottom, with few crossings and bends.

use std::fmt::Write;
use std::iter::once;

use super::{Look, Shape};
use crate::array::shape::sorted;

const HEIGHT: f64 = 38.0;
const ROW_GAP: f64 = 34.0;
const MARGIN: f64 = 20.0;

const MAX_DRAWN_BOXES: usize = 250;

/// Draws boxes; of too many, only the last ones.
pub(crate) fn svg(items: &[Shape], legend: &str) -> String {
    let first = items.len().saturating_sub(MAX_DRAWN_BOXES);
    let items = &items[first..];
    let label = |item: &Shape| [item.name.clone(), format!("{}{}", item.detail, item.more)];
    let labels: Vec<[String; 2]> = items.iter().map(label).collect();
    let width = |[name, detail]: &[String; 2]| text_width(name, 14.0).max(text_width(detail, 10.5));
    let widths: Vec<f64> = labels.iter().map(|label| (width(label) + 20.0).max(60.0)).collect();
    let inside = |item: &Shape| -> Vec<usize> {
        item.inputs.iter().filter_map(|input| input.checked_sub(first)).collect()
    };
    let inputs: Vec<Vec<usize>> = items.iter().map(inside).collect();
    let layout = place(&widths, &inputs);

    let mut legend = legend.to_owned();
    if first > 0 {
        let _ = write!(legend, " · {first} ops and leaves further up are left out");
    }
    let width = layout.width.max(text_width(&legend, 11.0)) + 2.0 * MARGIN;
    let height = top(layout.rows) + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"Helvetica, Arial, sans-serif\">\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#78909c\"/>\
         </marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let shift = (width - layout.width) / 2.0;
    for line in &layout.lines {
        draw_line(&mut svg, &layout, line, shift);
    }
    for ((item, label), spot) in items.iter().zip(&labels).zip(&layout.spots) {
        draw_box(&mut svg, item, label, spot, shift);
    }
    let _ = writeln!(
        svg,
        "<text x=\"{MARGIN}\" y=\"{:.0}\" font-size=\"11\" fill=\"#607d8b\">{}</text>\n</svg>",
        height - 12.0,
        escape(&legend)
    );
    svg
}

/// The greatest width of a text in a usual font.
fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.58
}

fn top(row: usize) -> f64 {
    MARGIN + row as f64 * (HEIGHT + ROW_GAP)
}

fn draw_box(svg: &mut String, item: &Shape, [name, detail]: &[String; 2], spot: &Spot, shift: f64) {
    let (fill, stroke) = match item.look {
        Look::Output => ("#e3f2fd", "#1565c0"),
        Look::Leaf => ("#e6f4ea", "#2e7d32"),
        Look::Op => ("#fafafa", "#78909c"),
    };
    let round = if item.look == Look::Leaf { HEIGHT / 2.0 } else { 4.0 };
    let (x, y, width) = (spot.x + shift, top(spot.row), spot.width);
    let _ = writeln!(
        svg,
        "<g text-anchor=\"middle\"><title>{}</title><rect x=\"{:.1}\" y=\"{y:.1}\" \
         width=\"{width:.1}\" height=\"{HEIGHT}\" rx=\"{round}\" fill=\"{fill}\" \
         stroke=\"{stroke}\"/><text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"14\" fill=\"#263238\">{}\
         </text><text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"10.5\" fill=\"#607d8b\">{}</text></g>",
        escape(&item.tip),
        x - width / 2.0,
        y + 17.0,
        escape(name),
        y + 31.0,
        escape(detail),
    );
}

fn draw_line(svg: &mut String, layout: &Layout, line: &Line, shift: f64) {
    let at = |i: usize| (layout.spots[i].x + shift, top(layout.spots[i].row));
    let mut path = String::new();
    for pair in line.spots.windows(2) {
        let ((x0, y0), (x, y)) = (at(pair[0]), at(pair[1]));
        let (from, middle) = (y0 + HEIGHT, (y0 + HEIGHT + y) / 2.0);
        let start = if path.is_empty() { 'M' } else { 'L' };
        // The arrow's point touches the box.
        let _ = write!(
            path,
            "{start}{x0:.1} {from:.1} C{x0:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {:.1} ",
            y - 1.0
        );
    }
    let _ = writeln!(
        svg,
        "<path d=\"{path}\" fill=\"none\" stroke=\"#78909c\" stroke-width=\"1.2\" \
         marker-end=\"url(#arrow)\"/>"
    );
    if let (true, Some(&to)) = (line.count > 1, line.spots.last()) {
        let (x, y) = at(to);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10.5\" fill=\"#607d8b\">×{}</text>",
            x + 6.0,
            y - 8.0,
            line.count
        );
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A box to place, or a bend of a line that passes a row.
struct Spot {
    width: f64,
    /// The position of its middle.
    x: f64,
    row: usize,
    /// The connected spots: above, and below.
    linked: [Vec<usize>; 2],
}

struct Line {
    spots: Vec<usize>,
    /// How often one box uses the other.
    count: usize,
}

struct Layout {
    spots: Vec<Spot>,
    lines: Vec<Line>,
    rows: usize,
    width: f64,
}

const GAP: f64 = 18.0;
const BEND: f64 = 6.0;

/// The number of passes over all rows, down and up in turn. The first half of them also sorts the rows.
const SWEEPS: usize = 80;

/// Places boxes of these `widths`; `inputs` of a box come before it.
fn place(widths: &[f64], inputs: &[Vec<usize>]) -> Layout {
    let spot = |width, row| Spot { width, x: 0.0, row, linked: Default::default() };
    let boxes = widths.iter().zip(rows(inputs));
    let mut spots: Vec<Spot> = boxes.map(|(&width, row)| spot(width, row)).collect();
    let mut lines = Vec::new();
    for (to, inputs) in inputs.iter().enumerate() {
        let order = sorted(inputs.len(), &|a, b| inputs[a].cmp(&inputs[b]));
        for same in order.chunk_by(|&a, &b| inputs[a] == inputs[b]) {
            let (from, count) = (inputs[same[0]], same.len());
            let (first, passed) = (spots.len(), spots[from].row + 1..spots[to].row);
            spots.extend(passed.map(|row| spot(BEND, row)));
            let path: Vec<usize> = once(from).chain(first..spots.len()).chain(once(to)).collect();
            for pair in path.windows(2) {
                spots[pair[0]].linked[1].push(pair[1]);
                spots[pair[1]].linked[0].push(pair[0]);
            }
            lines.push(Line { spots: path, count });
        }
    }
    let mut rows = vec![Vec::new(); spots.iter().map(|spot| spot.row + 1).max().unwrap_or(0)];
    spots.iter().enumerate().for_each(|(i, spot)| rows[spot.row].push(i));
    for sweep in 0..SWEEPS {
        let (down, sorts) = (sweep % 2 == 0, sweep < SWEEPS / 2);
        for step in 0..rows.len() {
            let row = if down { step } else { rows.len() - 1 - step };
            let mut wanted: Vec<(f64, usize)> =
                rows[row].iter().map(|&i| (wanted(&spots, i, down, !sorts), i)).collect();
            if sorts {
                let order = sorted(wanted.len(), &|a, b| wanted[a].0.total_cmp(&wanted[b].0));
                wanted = order.into_iter().map(|at| wanted[at]).collect();
                rows[row] = wanted.iter().map(|&(_, i)| i).collect();
            }
            set_apart(&mut spots, &wanted);
        }
    }
    let left = spots.iter().map(|spot| spot.x - spot.width / 2.0).fold(f64::MAX, f64::min);
    spots.iter_mut().for_each(|spot| spot.x -= left);
    let width = spots.iter().map(|spot| spot.x + spot.width / 2.0).fold(0.0, f64::max);
    Layout { spots, lines, rows: rows.len(), width }
}

/// A box is below its inputs; one without inputs is just above the first box that uses it.
fn rows(inputs: &[Vec<usize>]) -> Vec<usize> {
    let mut rows = vec![0; inputs.len()];
    let mut nearest = vec![usize::MAX; inputs.len()];
    for (item, inputs) in inputs.iter().enumerate() {
        rows[item] = inputs.iter().map(|&input| rows[input] + 1).max().unwrap_or(0);
        inputs.iter().for_each(|&input| nearest[input] = nearest[input].min(rows[item]));
    }
    for (item, nearest) in nearest.into_iter().enumerate() {
        if inputs[item].is_empty() && nearest != usize::MAX {
            rows[item] = nearest - 1;
        }
    }
    rows
}

/// The best position of a spot: the mean of the spots that it is connected with on one side, or on both.
fn wanted(spots: &[Spot], i: usize, down: bool, both: bool) -> f64 {
    let [above, below] = &spots[i].linked;
    let (one, other) = if down { (above, below) } else { (below, above) };
    let connected = match one.is_empty() {
        _ if both => [above.as_slice(), below],
        true => [other.as_slice(), &[]],
        false => [one.as_slice(), &[]],
    };
    let x: Vec<f64> = connected.into_iter().flatten().map(|&other| spots[other].x).collect();
    if x.is_empty() { spots[i].x } else { x.iter().sum::<f64>() / x.len() as f64 }
}

/// Moves the spots of a row apart, to the mean of pushing them to the right and pushing them to the left.
fn set_apart(spots: &mut [Spot], wanted: &[(f64, usize)]) {
    let distance = |n: usize| {
        let [a, b] = [wanted[n - 1].1, wanted[n].1];
        (spots[a].width + spots[b].width) / 2.0 + GAP
    };
    let mut right: Vec<f64> = wanted.iter().map(|&(x, _)| x).collect();
    let mut left = right.clone();
    for n in 1..wanted.len() {
        right[n] = right[n].max(right[n - 1] + distance(n));
    }
    for n in (1..wanted.len()).rev() {
        left[n - 1] = left[n - 1].min(left[n] - distance(n));
    }
    for (n, &(_, i)) in wanted.iter().enumerate() {
        spots[i].x = (right[n] + left[n]) / 2.0;
    }
}
