//! Pictures of the programs: written as SVG to the path that is the first argument, if there is one.

use std::error::Error;
use std::path::PathBuf;

use autograd_core::Tensor;
use plotters::prelude::*;

const WIDTH: u32 = 560;
const HEIGHT: u32 = 360;
const SHADES: f64 = 16.0;
const COLOURS: [RGBColor; 4] =
    [RGBColor(49, 106, 178), RGBColor(224, 123, 32), RGBColor(38, 128, 80), RGBColor(150, 60, 150)];

/// Numbers in rows, with a title.
pub type Image<'a> = (&'a str, &'a Tensor<f64>);

fn path() -> Option<PathBuf> {
    std::env::args_os().nth(1).map(PathBuf::from)
}

/// Draws lines through points, with a legend.
///
/// # Errors
///
/// If the file cannot be written.
pub fn draw_curves(title: &str, curves: &[(&str, Vec<(f64, f64)>)]) -> Result<(), Box<dyn Error>> {
    let Some(path) = path() else { return Ok(()) };
    let range = |pick: fn(&(f64, f64)) -> f64| {
        let all = || curves.iter().flat_map(|(_, points)| points.iter().map(pick));
        let (low, high) = (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max));
        let margin = (high - low) * 0.05;
        low - margin..high + margin
    };
    // The legend stands above the curves.
    let (x, y) = (range(|p| p.0), range(|p| p.1));
    let y = y.start..y.end + (y.end - y.start) * 0.1 * curves.len() as f64;
    let page = SVGBackend::new(&path, (WIDTH, HEIGHT)).into_drawing_area();
    page.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&page)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(28)
        .y_label_area_size(48)
        .build_cartesian_2d(x, y)?;
    chart.configure_mesh().light_line_style(TRANSPARENT).bold_line_style(BLACK.mix(0.1)).draw()?;
    for (i, (name, points)) in curves.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        chart
            .draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    let legend = SeriesLabelPosition::UpperRight;
    chart.configure_series_labels().position(legend).background_style(WHITE.mix(0.8)).draw()?;
    Ok(page.present()?)
}

/// Draws matrices side by side: the least number of each is white, the greatest is blue.
///
/// # Errors
///
/// If the file cannot be written.
pub fn draw_image(images: &[Image<'_>]) -> Result<(), Box<dyn Error>> {
    let Some(path) = path() else { return Ok(()) };
    let ratio = images[0].1.dim(0) as f64 / (images[0].1.dim(1) * images.len()) as f64;
    let size = (WIDTH, (f64::from(WIDTH) * ratio) as u32 + 40);
    let page = SVGBackend::new(&path, size).into_drawing_area();
    page.fill(&WHITE)?;
    for (area, (title, image)) in page.split_evenly((1, images.len())).iter().zip(images) {
        let (rows, columns) = (image.dim(0), image.dim(1));
        let (low, high) = (image.min().item(), image.max().item());
        let mut chart = ChartBuilder::on(area)
            .caption(*title, ("sans-serif", 16))
            .margin(8)
            .build_cartesian_2d(0..columns, 0..rows)?;
        let columns: Vec<usize> = (0..columns).collect();
        for r in 0..rows {
            let shade = |c: usize| ((image.at(&[r, c]) - low) / (high - low) * SHADES).round();
            // Neighbours of one shade are one rectangle, so that the file stays small.
            for run in columns.chunk_by(|a, b| shade(*a) == shade(*b)) {
                let corners = [(run[0], rows - r), (run[0] + run.len(), rows - r - 1)];
                let colour = COLOURS[0].mix(shade(run[0]) / SHADES).filled();
                chart.draw_series([Rectangle::new(corners, colour)])?;
            }
        }
    }
    Ok(page.present()?)
}
