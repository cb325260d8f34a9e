//! The output before and after training.

use std::io::Write;
use std::path::Path;

use autograd_core::nn::Module;

use crate::args::Args;
use crate::data::{Digits, SIDE};
use crate::failure::Failure;
use crate::model::{Mlp, Score};
use crate::train::Outcome;

/// Prints the data and the model.
pub fn opening(
    to: &mut impl Write,
    args: &Args,
    model: &Mlp,
    lessons: &Digits,
    exam: &Digits,
) -> Result<(), Failure> {
    let source = match &args.data {
        Some(path) => path.display().to_string(),
        None => "Alpaydin and Kaynak 1998, CC BY 4.0".to_owned(),
    };
    writeln!(to, "images   {SIDE} x {SIDE} handwritten digits ({source})")?;
    writeln!(to, "         {} to learn from, {} held back", lessons.len(), exam.len())?;
    writeln!(
        to,
        "model    {}, {} parameters, seed {}",
        model.shape(),
        model.parameter_count(),
        args.seed
    )?;
    writeln!(to)?;
    Ok(())
}

/// Prints the results.
pub fn closing(to: &mut impl Write, model: &Mlp, outcome: &Outcome) -> Result<(), Failure> {
    let (lessons, exam) = outcome.last();
    writeln!(to, "\n{:<14}{:>12}{:>14}", "", "learned from", "held back")?;
    let mut row = |name: &str, cell: &dyn Fn(&Score) -> String| {
        writeln!(to, "{name:<14}{:>12}{:>14}", cell(lessons), cell(exam))
    };
    row("images", &|score| score.images.to_string())?;
    row("loss", &|score| format!("{:.4}", score.loss))?;
    row("accuracy", &|score| format!("{:.2} %", score.accuracy()))?;
    row("errors", &|score| score.errors().to_string())?;
    let seconds = outcome.time.as_secs_f64();
    let speed = outcome.seen as f64 / seconds;
    writeln!(to)?;
    writeln!(to, "parameters    {}", model.parameter_count())?;
    writeln!(to, "time          {seconds:.2} s of learning, {speed:.0} images a second")?;
    Ok(())
}

/// Prints the path of a file that was written.
pub fn written(to: &mut impl Write, what: &str, path: &Path) -> Result<(), Failure> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    writeln!(to, "{what:<13} {}", path.display())?;
    Ok(())
}
