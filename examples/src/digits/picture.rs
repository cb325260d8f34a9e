//! A picture of a run: its losses, the confusion of digits, and some of the images.

use std::fmt::Display;
use std::fs;
use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::data::{CLASSES, Digits, SIDE};
use crate::failure::Failure;
use crate::model::Score;
use crate::train::Outcome;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const SIZE: (u32, u32) = (1200, 1030);
const FONT: &str = "sans-serif";

const PAPER: RGBColor = RGBColor(255, 255, 255);
const INK: RGBColor = RGBColor(33, 37, 41);
const FAINT: RGBColor = RGBColor(108, 117, 125);
const LINE: RGBColor = RGBColor(222, 226, 230);
const LESSONS: RGBColor = RGBColor(49, 106, 178);
const EXAM: RGBColor = RGBColor(224, 123, 32);
const RIGHT: RGBColor = RGBColor(38, 128, 80);
const WRONG: RGBColor = RGBColor(200, 48, 48);

/// Writes the picture as SVG.
pub fn draw(path: &Path, exam: &Digits, outcome: &Outcome) -> Result<(), Failure> {
    let mut svg = String::new();
    {
        let page = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        page.fill(&PAPER).map_err(failed)?;
        heading(&page.clone().shrink((40, 28), (1120, 80)), outcome)?;
        losses(&page.clone().shrink((40, 124), (540, 340)), outcome)?;
        accuracies(&page.clone().shrink((620, 124), (540, 340)), outcome)?;
        confusion(&page.clone().shrink((40, 492), (540, 520)), exam, outcome)?;
        images(&page.clone().shrink((620, 492), (540, 520)), exam, outcome)?;
        page.present().map_err(failed)?;
    }
    Ok(fs::write(path, svg)?)
}

fn failed(error: impl Display) -> Failure {
    Failure::Write(std::io::Error::other(error.to_string()))
}

/// Text beside, before or around a point, at its height.
fn text(
    area: &Area<'_>,
    words: &str,
    at: (i32, i32),
    size: i32,
    colour: RGBColor,
    anchor: HPos,
) -> Result<(), Failure> {
    let style = (FONT, size).into_font().color(&colour).pos(Pos::new(anchor, VPos::Center));
    area.draw(&Text::new(words.to_owned(), at, style)).map_err(failed)
}

fn heading(area: &Area<'_>, outcome: &Outcome) -> Result<(), Failure> {
    let (_, exam) = outcome.last();
    let title = format!("{:.2} % of the digits held back are read right", exam.accuracy());
    let epochs = outcome.exam.len();
    let below = format!(
        "{} of {} images wrong after {epochs} {} of learning, with gradients written by hand",
        exam.errors(),
        exam.images,
        if epochs == 1 { "epoch" } else { "epochs" },
    );
    text(area, &title, (0, 16), 36, INK, HPos::Left)?;
    text(area, &below, (0, 54), 20, FAINT, HPos::Left)
}

fn losses(area: &Area<'_>, outcome: &Outcome) -> Result<(), Failure> {
    // Decades: the axis is logarithmic, so nothing may be 0.
    let decades = |scores: &[Score]| scores.iter().map(|s| s.loss.max(1e-6).log10()).collect();
    let lines: [Vec<f64>; 2] = [decades(&outcome.lessons), decades(&outcome.exam)];
    let all = || lines.iter().flatten().copied();
    let low = all().fold(-1.0, f64::min).floor();
    let high = all().fold(low + 2.0, f64::max).ceil();
    let ticks = (high - low) as usize + 1;
    curves(area, "Loss", &lines, low..high, ticks, &|decade| format!("{}", 10f64.powf(*decade)))
}

fn accuracies(area: &Area<'_>, outcome: &Outcome) -> Result<(), Failure> {
    let percent = |scores: &[Score]| scores.iter().map(Score::accuracy).collect();
    let lines: [Vec<f64>; 2] = [percent(&outcome.lessons), percent(&outcome.exam)];
    let low = lines.iter().flatten().copied().fold(95.0, f64::min);
    let low = (low / 5.0).floor() * 5.0;
    curves(area, "Accuracy", &lines, low..100.5, 6, &|percent| format!("{percent:.0} %"))
}

/// Draws a panel's title, and returns the area below it.
fn panel<'a>(area: &Area<'a>, title: &str) -> Result<Area<'a>, Failure> {
    text(area, title, (0, 12), 23, INK, HPos::Left)?;
    let (width, height) = area.dim_in_pixel();
    Ok(area.clone().shrink((0, 40), (width, height - 40)))
}

/// Draws a curve for training and one for the exam, over the epochs.
fn curves(
    area: &Area<'_>,
    title: &str,
    lines: &[Vec<f64>; 2],
    range: Range<f64>,
    ticks: usize,
    label: &dyn Fn(&f64) -> String,
) -> Result<(), Failure> {
    let plot = panel(area, title)?;
    let epochs = lines[0].len();
    let mut chart = ChartBuilder::on(&plot)
        .x_label_area_size(52)
        .y_label_area_size(60)
        .build_cartesian_2d(1.0..epochs.max(2) as f64, range)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(LINE)
        .axis_style(LINE)
        .label_style((FONT, 17).into_font().color(&FAINT))
        .x_desc("epoch")
        .x_labels(epochs.clamp(2, 10))
        .x_label_formatter(&|epoch| format!("{epoch:.0}"))
        .y_labels(ticks)
        .y_label_formatter(label)
        .draw()
        .map_err(failed)?;
    for (line, colour) in lines.iter().zip([LESSONS, EXAM]) {
        let points = || line.iter().enumerate().map(|(i, &y)| (i as f64 + 1.0, y));
        chart.draw_series(LineSeries::new(points(), colour.stroke_width(2))).map_err(failed)?;
        let end = points().next_back().map(|at| Circle::new(at, 4, colour.filled()));
        chart.draw_series(end).map_err(failed)?;
    }
    for (words, colour, x) in [("learned from", LESSONS, 326), ("held back", EXAM, 464)] {
        let line = PathElement::new([(x - 30, 12), (x - 8, 12)], colour.stroke_width(3));
        area.draw(&line).map_err(failed)?;
        text(area, words, (x, 12), 18, INK, HPos::Left)?;
    }
    Ok(())
}

/// Rows: the true digits. Columns: the guesses.
fn confusion(area: &Area<'_>, exam: &Digits, outcome: &Outcome) -> Result<(), Failure> {
    const CELL: i32 = 42;
    const LEFT: i32 = 60;
    const TOP: i32 = 46;
    let mut counts = [[0_usize; CLASSES]; CLASSES];
    for (label, &guess) in exam.labels.to_vec().into_iter().zip(&outcome.guesses) {
        counts[label as usize][guess as usize] += 1;
    }
    let grid = panel(area, "What is taken for what")?;
    let middle = CELL * CLASSES as i32 / 2;
    text(&grid, "taken for", (LEFT + middle, 2), 18, FAINT, HPos::Center)?;
    text(&grid, "is", (8, TOP + middle), 18, FAINT, HPos::Left)?;
    for (row, counts) in counts.iter().enumerate() {
        let y = TOP + CELL * row as i32;
        let of = counts.iter().sum::<usize>().max(1) as f64;
        text(&grid, &row.to_string(), (LEFT - 16, y + CELL / 2), 19, INK, HPos::Center)?;
        let x = LEFT + CELL * row as i32;
        text(&grid, &row.to_string(), (x + CELL / 2, TOP - 16), 19, INK, HPos::Center)?;
        for (column, &count) in counts.iter().enumerate() {
            let x = LEFT + CELL * column as i32;
            let part = count as f64 / of;
            // A mistake is visible however rare it is.
            let (colour, strength) = match (row == column, count) {
                (_, 0) => (LINE, 0.25),
                (true, _) => (LESSONS, 0.15 + 0.85 * part),
                (false, _) => (WRONG, (0.35 + 4.0 * part).min(1.0)),
            };
            let cell = [(x + 1, y + 1), (x + CELL - 1, y + CELL - 1)];
            grid.draw(&Rectangle::new(cell, colour.mix(strength).filled())).map_err(failed)?;
            if count > 0 {
                let ink = if strength > 0.5 { PAPER } else { INK };
                let at = (x + CELL / 2, y + CELL / 2);
                text(&grid, &count.to_string(), at, 18, ink, HPos::Center)?;
            }
        }
    }
    Ok(())
}

/// Held-out images with their guesses, wrong ones first.
fn images(area: &Area<'_>, exam: &Digits, outcome: &Outcome) -> Result<(), Failure> {
    const COLUMNS: usize = 7;
    const SHOWN: usize = 4 * COLUMNS;
    const STEP: (i32, i32) = (78, 119);
    let labels = exam.labels.to_vec();
    let guesses = &outcome.guesses;
    let (right, wrong): (Vec<usize>, Vec<usize>) =
        (0..labels.len()).partition(|&i| labels[i] == guesses[i]);
    let title = match wrong.len() {
        0 => "Some of the images".to_owned(),
        1 => "The image read wrong, and some read right".to_owned(),
        n if n <= SHOWN / 2 => format!("The {n} images read wrong, and some read right"),
        n => format!("Some of the {n} images read wrong, and some read right"),
    };
    let grid = panel(area, &title)?;
    let wrong = wrong.iter().take(SHOWN / 2);
    let right = right.iter().step_by((right.len() / SHOWN).max(1));
    let shown = wrong.chain(right).take(SHOWN);
    for (place, &image) in shown.enumerate() {
        let x = STEP.0 * (place % COLUMNS) as i32;
        let y = STEP.1 * (place / COLUMNS) as i32;
        let (label, guess) = (labels[image], guesses[image]);
        let (caption, colour) = match label == guess {
            true => (guess.to_string(), RIGHT),
            false => (format!("{guess} (is {label})"), WRONG),
        };
        draw_image(&grid, &exam.images.select(0, image).to_vec(), (x, y), colour)?;
        text(&grid, &caption, (x + 34, y + 84), 18, colour, HPos::Center)?;
    }
    Ok(())
}

/// An image of 8 x 8 pixels with a frame around it.
fn draw_image(
    area: &Area<'_>,
    pixels: &[f32],
    (x, y): (i32, i32),
    frame: RGBColor,
) -> Result<(), Failure> {
    const PIXEL: i32 = 8;
    let side = PIXEL * SIDE as i32;
    for (i, &ink) in pixels.iter().enumerate().filter(|&(_, &ink)| ink > 0.0) {
        let (left, top) = (x + 2 + PIXEL * (i % SIDE) as i32, y + 2 + PIXEL * (i / SIDE) as i32);
        let corners = [(left, top), (left + PIXEL, top + PIXEL)];
        let shade = |paper: u8, full: u8| {
            (f32::from(paper) + (f32::from(full) - f32::from(paper)) * ink) as u8
        };
        let colour = RGBColor(shade(PAPER.0, INK.0), shade(PAPER.1, INK.1), shade(PAPER.2, INK.2));
        area.draw(&Rectangle::new(corners, colour.filled())).map_err(failed)?;
    }
    let corners = [(x, y), (x + side + 4, y + side + 4)];
    area.draw(&Rectangle::new(corners, frame.stroke_width(2))).map_err(failed)
}
