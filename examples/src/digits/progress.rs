//! Progress of the training: a bar on a terminal, otherwise a line now and then.

use std::io::{IsTerminal, Write, stderr, stdout};

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Args;
use crate::failure::Failure;
use crate::train::Outcome;

/// A bar that is redrawn, or lines below each other.
pub enum Progress {
    Bar(ProgressBar),
    Lines { epochs: usize },
}

/// The maximum number of lines without a terminal.
const LINES: usize = 20;

impl Progress {
    pub fn start(args: &Args) -> Result<Self, Failure> {
        if !(stderr().is_terminal() && stdout().is_terminal()) {
            return Ok(Self::Lines { epochs: args.epochs });
        }
        let style = ProgressStyle::with_template(
            "{bar:24.green/bright.black} epoch {pos}/{len}  {msg}  {elapsed}",
        );
        let bar = ProgressBar::new(args.epochs as u64);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸━"));
        Ok(Self::Bar(bar))
    }

    /// Shows that an epoch is over.
    pub fn epoch(&mut self, epoch: usize, outcome: &Outcome) -> Result<(), Failure> {
        let (lessons, exam) = outcome.last();
        match self {
            Self::Bar(bar) => {
                bar.set_message(format!(
                    "loss {:.4}  held back {:.2} %",
                    lessons.loss,
                    exam.accuracy()
                ));
                bar.set_position(epoch as u64);
            }
            Self::Lines { epochs } => {
                let every = epochs.div_ceil(LINES);
                if epoch.is_multiple_of(every) || epoch == *epochs {
                    let width = epochs.to_string().len();
                    writeln!(
                        stdout(),
                        "epoch {epoch:width$}/{epochs}  loss {:.4}  accuracy {:6.2} %   \
                         held back: loss {:.4}  accuracy {:6.2} %",
                        lessons.loss,
                        lessons.accuracy(),
                        exam.loss,
                        exam.accuracy(),
                    )?;
                }
            }
        }
        Ok(())
    }

    pub fn finish(&mut self) {
        if let Self::Bar(bar) = self {
            bar.finish();
        }
    }
}
