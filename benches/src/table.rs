//! The table of ratios.

use std::fmt::Write;

use crate::figures::{Figure, Figures};
use crate::peers::{PEERS, Peer, folder};
use crate::rows::{ROWS, Row, Unit};

/// The table is between these lines of the page.
const MARKS: [&str; 2] = ["<!-- figures -->", "<!-- end of figures -->"];

/// The table: absolute numbers of ours, and multiples of them for the others.
pub fn ratios(figures: &Figures) -> String {
    let measured = |peer: &Peer| figures.0.values().any(|peers| peers.contains_key(peer.name));
    let peers: Vec<&Peer> = PEERS.iter().filter(|peer| measured(peer)).collect();
    let mut text = String::from("|row|work|");
    for peer in &peers {
        write!(text, "{}|", peer.title).expect("a string grows");
    }
    text.push_str("\n|---|---|");
    text.push_str(&"---:|".repeat(peers.len()));
    for row in ROWS {
        for threads in 1..=64 {
            let Some(of_row) = figures.0.get(&(row.name.to_owned(), threads)) else { continue };
            let ours = of_row.get(PEERS[0].name).copied().flatten();
            let suffix = if threads == 1 { String::new() } else { format!(", {threads} threads") };
            let id = row.name.split('-').next().unwrap_or_default();
            write!(text, "\n|{id}|{}{suffix}|", row.title).expect("a string grows");
            for peer in &peers {
                let figure = of_row.get(peer.name);
                let cell = figure.map(|&figure| cell(row, ours, peer, figure));
                write!(text, "{}|", cell.unwrap_or_default()).expect("a string grows");
            }
        }
    }
    text
}

fn cell(row: &Row, ours: Option<Figure>, peer: &Peer, figure: Option<Figure>) -> String {
    match (ours, figure) {
        (_, None) => "ended".to_owned(),
        (Some(ours), Some(figure)) if peer.name != PEERS[0].name => {
            format!("{}x", digits(figure.median / ours.median))
        }
        (_, Some(figure)) => amount(row, figure.median),
    }
}

fn amount(row: &Row, value: f64) -> String {
    let value = value * row.unit.scale() / row.count;
    if row.unit == Unit::Bytes {
        return format!("{value:.0}");
    }
    format!("{} {}", digits(value), row.unit.name())
}

/// Formats with three significant digits, or with all digits before the point.
fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Writes the table into `docs/benchmarks.md`, with the machine and the day.
pub fn into_docs(figures: &Figures) -> std::io::Result<()> {
    let page = folder().join("../docs/benchmarks.md");
    let text = std::fs::read_to_string(&page)?;
    let (before, rest) = text.split_once(MARKS[0]).expect("the page has the first mark");
    let (_, after) = rest.split_once(MARKS[1]).expect("the page has the second mark");
    let (begin, end) = (MARKS[0], MARKS[1]);
    let new = format!("{before}{begin}\n\n{}\n\n{}\n\n{end}{after}", machine(), ratios(figures));
    std::fs::write(page, new)
}

/// Processor, cores and day, as far as the system reports them.
fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpu.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let model = field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let family = field("cpu family").zip(field("model\t"));
    let family = family.map(|(family, model)| format!(" (family {family}, model {model})"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let date = std::process::Command::new("date").arg("+%-d %B %Y").output();
    let date = date.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    format!(
        "{model}{}, {cores} cores; {}.",
        family.unwrap_or_default(),
        date.unwrap_or_else(|_| "on a day the system does not tell".to_owned())
    )
}
