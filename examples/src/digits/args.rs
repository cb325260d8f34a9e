//! The command line.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::failure::Failure;

pub const HELP: &str = "\
Learns to read handwritten digits with ops whose gradients are written by hand.

Usage: digits [OPTIONS]
       cargo run --release -p examples -- [OPTIONS]

Options:
  --epochs N    how often to go through the images, 1 to 10000 [default: 100]
  --seed N      where the random numbers start; same seed, same figures [default: 2023]
  --out PATH    where the picture (SVG) goes
                [default: examples/out/digits.svg under cargo run, else digits.svg here]
  --save PATH   where what is learned goes after each epoch, as safetensors
                [default: nowhere]
  --data PATH   images to use instead of the built-in ones: lines of 64 pixels from 0 to 16
                and the digit, separated by commas; gzip or plain text
  -h, --help    this text

Exit code 0: done. 1: bad data, a failed op or a file that cannot be written.
2: bad arguments.
";

/// What the user wants.
#[derive(Debug, PartialEq)]
pub enum Command {
    Help,
    Learn(Args),
}

/// How to learn.
#[derive(Debug, PartialEq)]
pub struct Args {
    pub epochs: usize,
    pub seed: u64,
    pub out: PathBuf,
    /// `None` to save nothing.
    pub save: Option<PathBuf>,
    /// `None` for the built-in images.
    pub data: Option<PathBuf>,
}

impl Default for Args {
    fn default() -> Self {
        Self { epochs: 100, seed: 2023, out: default_out(), save: None, data: None }
    }
}

/// The package's folder if cargo runs the program, otherwise the current folder.
fn default_out() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(|p| PathBuf::from(p).join("out"));
    folder.unwrap_or_default().join("digits.svg")
}

/// Reads the command line, which starts with the program's name. `--flag=value` is `--flag value`.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, Failure> {
    let mut words = words.into_iter().skip(1);
    let mut args = Args::default();
    while let Some(word) = words.next() {
        let unknown = || Failure::Usage(format!("unknown argument `{}`", word.display()));
        let text = word.to_str().ok_or_else(unknown)?;
        let (flag, inline) = match text.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(OsString::from(value))),
            _ => (text, None),
        };
        let mut value = || {
            let value = inline.clone().or_else(|| words.next());
            let missing = || Failure::Usage(format!("{flag} needs a value"));
            value.filter(|v| !v.is_empty() && !is_flag(v)).ok_or_else(missing)
        };
        match flag {
            "--help" | "-h" => return Ok(Command::Help),
            "--epochs" => args.epochs = number(flag, &value()?, 1, 10_000)? as usize,
            "--seed" => args.seed = number(flag, &value()?, 0, u64::MAX)?,
            "--out" => args.out = value()?.into(),
            "--save" => args.save = Some(value()?.into()),
            "--data" => args.data = Some(value()?.into()),
            _ => return Err(unknown()),
        }
    }
    Ok(Command::Learn(args))
}

/// Checks, before an hour of training, that a file can be written at the end.
pub fn check_writable(what: &str, path: &Path) -> Result<(), Failure> {
    let open = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let stood = path.exists();
        fs::OpenOptions::new().create(true).append(true).open(path)?;
        if stood { Ok(()) } else { fs::remove_file(path) }
    };
    open().map_err(|error| {
        Failure::Usage(format!("the {what} cannot be written to {}: {error}", path.display()))
    })
}

fn is_flag(word: &OsStr) -> bool {
    word.to_string_lossy().starts_with("--")
}

fn number(flag: &str, word: &OsStr, low: u64, high: u64) -> Result<u64, Failure> {
    let text = word.to_string_lossy();
    u64::from_str(&text).ok().filter(|n| (low..=high).contains(n)).ok_or_else(|| {
        Failure::Usage(format!("{flag} takes a whole number from {low} to {high}, found `{text}`"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        let words = line.split_whitespace().map(OsString::from);
        parse([OsString::from("digits")].into_iter().chain(words)).map_err(|e| e.to_string())
    }

    #[test]
    fn every_flag_is_read() {
        let (save, data) = (Some("c".into()), Some("b.csv".into()));
        let args = Args { epochs: 3, seed: 7, out: "a.svg".into(), save, data };
        let line = "--epochs 3 --seed=7 --out a.svg --save c --data=b.csv";
        assert_eq!(parsed(line), Ok(Command::Learn(args)));
        assert_eq!(parsed(""), Ok(Command::Learn(Args::default())));
        assert_eq!(parsed("--epochs 3 -h"), Ok(Command::Help));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let range = "--epochs takes a whole number from 1 to 10000, found";
        for (line, message) in [
            ("--epoch 3", "unknown argument `--epoch`".to_owned()),
            ("3", "unknown argument `3`".to_owned()),
            ("--epochs", "--epochs needs a value".to_owned()),
            ("--out --seed 3", "--out needs a value".to_owned()),
            ("--data=", "--data needs a value".to_owned()),
            ("--epochs 0", format!("{range} `0`")),
            ("--epochs -1", format!("{range} `-1`")),
            ("--epochs 2.5", format!("{range} `2.5`")),
            ("--epochs ten", format!("{range} `ten`")),
        ] {
            assert_eq!(parsed(line), Err(message), "{line}");
        }
    }
}
