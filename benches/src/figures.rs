//! Measurements, stored in a file so that a table can combine several runs. A row is stored as a whole:
//! its figures are from one run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::peers::folder;

/// Seconds or bytes of one repetition; `None` if the peer ended before it had done the work.
#[derive(Clone, Copy, PartialEq)]
pub struct Figure {
    pub median: f64,
    pub least: f64,
}

pub type Peers = BTreeMap<String, Option<Figure>>;

/// Figures by row and threads, then by peer.
#[derive(Default)]
pub struct Figures(pub BTreeMap<(String, usize), Peers>);

fn file() -> PathBuf {
    folder().join("figures.tsv")
}

impl Figures {
    pub fn read() -> Self {
        let text = std::fs::read_to_string(file()).unwrap_or_default();
        let mut figures = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split('\t').collect();
            let [row, threads, peer, median, least] = words[..] else { continue };
            let key = (row.to_owned(), threads.parse().unwrap_or(1));
            let figure = median.parse().ok().zip(least.parse().ok());
            let figure = figure.map(|(median, least)| Figure { median, least });
            figures.0.entry(key).or_default().insert(peer.to_owned(), figure);
        }
        figures
    }

    pub fn write(&self) -> std::io::Result<()> {
        let mut text = String::from("# row\tthreads\tpeer\tmedian\tleast (seconds or bytes)\n");
        for ((row, threads), peers) in &self.0 {
            for (peer, figure) in peers {
                let numbers = figure.map_or_else(
                    || "ended\tended".to_owned(),
                    |figure| format!("{:.4e}\t{:.4e}", figure.median, figure.least),
                );
                text.push_str(&format!("{row}\t{threads}\t{peer}\t{numbers}\n"));
            }
        }
        std::fs::write(file(), text)
    }
}

pub fn of(mut values: Vec<f64>) -> Figure {
    values.sort_by(f64::total_cmp);
    Figure { median: values[values.len() / 2], least: values[0] }
}
