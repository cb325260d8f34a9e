//! The drawing as SVG.

use std::fmt::Write;

use super::layout::{self, Layout, Line, Spot};
use super::{Look, Shape};

const HEIGHT: f64 = 38.0;
const ROW_GAP: f64 = 34.0;
const MARGIN: f64 = 20.0;

pub(super) fn draw(items: &[Shape], first: usize, legend: &str) -> String {
    let label = |item: &Shape| [item.name.clone(), format!("{}{}", item.detail, item.more)];
    let labels: Vec<[String; 2]> = items.iter().map(label).collect();
    let width = |[name, detail]: &[String; 2]| text_width(name, 14.0).max(text_width(detail, 10.5));
    let widths: Vec<f64> = labels.iter().map(|label| (width(label) + 20.0).max(60.0)).collect();
    let inside = |item: &Shape| -> Vec<usize> {
        item.inputs.iter().filter_map(|input| input.checked_sub(first)).collect()
    };
    let inputs: Vec<Vec<usize>> = items.iter().map(inside).collect();
    let layout = layout::place(&widths, &inputs);

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
