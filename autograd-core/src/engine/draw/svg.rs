//! The drawing itself.

use std::fmt::Write;

use super::layout::{self, Layout, Line};
use super::{Look, Shape};

const HEIGHT: f64 = 38.0;
const BETWEEN: f64 = 34.0;
const MARGIN: f64 = 20.0;

/// Draws boxes; those before `first` are left out.
pub(super) fn draw(items: &[Shape], first: usize, legend: &str) -> String {
    let labels: Vec<[String; 2]> = items.iter().map(label).collect();
    let widths: Vec<f64> = labels.iter().map(box_width).collect();
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
    for spot in &layout.spots {
        if let Some(item) = spot.item {
            draw_box(&mut svg, &items[item], &labels[item], spot.x + shift, spot.width, spot.row);
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"{MARGIN}\" y=\"{:.0}\" font-size=\"11\" fill=\"#607d8b\">{}</text>\n</svg>",
        height - 12.0,
        escape(&legend)
    );
    svg
}

fn label(item: &Shape) -> [String; 2] {
    [item.name.clone(), format!("{}{}", item.detail, item.more)]
}

fn box_width(label: &[String; 2]) -> f64 {
    (text_width(&label[0], 14.0).max(text_width(&label[1], 10.5)) + 20.0).max(60.0)
}

/// What text takes at most in a usual font.
fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.58
}

fn top(row: usize) -> f64 {
    MARGIN + row as f64 * (HEIGHT + BETWEEN)
}

fn draw_box(svg: &mut String, item: &Shape, label: &[String; 2], x: f64, width: f64, row: usize) {
    let (fill, stroke) = match item.look {
        Look::Output => ("#e3f2fd", "#1565c0"),
        Look::Leaf => ("#e6f4ea", "#2e7d32"),
        Look::Op => ("#fafafa", "#78909c"),
    };
    let (round, y) = (if item.look == Look::Leaf { HEIGHT / 2.0 } else { 4.0 }, top(row));
    let _ = writeln!(
        svg,
        "<g text-anchor=\"middle\"><title>{}</title><rect x=\"{:.1}\" y=\"{y:.1}\" \
         width=\"{width:.1}\" height=\"{HEIGHT}\" rx=\"{round}\" fill=\"{fill}\" \
         stroke=\"{stroke}\"/><text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"14\" fill=\"#263238\">{}\
         </text><text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"10.5\" fill=\"#607d8b\">{}</text></g>",
        escape(&item.tip),
        x - width / 2.0,
        y + 17.0,
        escape(&label[0]),
        y + 31.0,
        escape(&label[1]),
    );
}

fn draw_line(svg: &mut String, layout: &Layout, line: &Line, shift: f64) {
    let mut path = String::new();
    let mut before: Option<(f64, f64)> = None;
    let last = line.spots.len() - 1;
    for (n, &i) in line.spots.iter().enumerate() {
        let spot = &layout.spots[i];
        let (x, y) = (spot.x + shift, top(spot.row));
        match before {
            None => {
                let _ = write!(path, "M{x:.1} {:.1}", y + HEIGHT);
            }
            Some((x0, y0)) => {
                let middle = (y0 + y) / 2.0;
                // The arrow's point touches the box.
                let end = if n == last { y - 1.0 } else { y };
                let _ = write!(path, " C{x0:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {end:.1}");
                if n != last {
                    let _ = write!(path, " L{x:.1} {:.1}", y + HEIGHT);
                }
            }
        }
        before = Some((x, y + HEIGHT));
    }
    let _ = writeln!(
        svg,
        "<path d=\"{path}\" fill=\"none\" stroke=\"#78909c\" stroke-width=\"1.2\" \
         marker-end=\"url(#arrow)\"/>"
    );
    if line.count > 1 {
        let to = &layout.spots[line.spots[last]];
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10.5\" fill=\"#607d8b\">×{}</text>",
            to.x + shift + 6.0,
            top(to.row) - 8.0,
            line.count
        );
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
