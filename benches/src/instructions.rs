//! Counts of instructions, which do not depend on what else the machine does. Callgrind has no AVX-512, so the
//! processes run as on a processor without it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::peers::Peer;
use crate::rows::Row;

/// The repetitions of two runs: their difference has no start-up in it.
const REPEATS: [u64; 2] = [10, 30];

/// Instructions of one operation: ours, and the others' as multiples. Python peers have none.
pub fn table<'r>(rows: impl Iterator<Item = &'r Row>, peers: &[&Peer]) -> String {
    let peers: Vec<&&Peer> = peers.iter().filter(|peer| peer.program().is_some()).collect();
    let mut text = String::from("|row|work|");
    peers.iter().for_each(|peer| write!(text, "{}|", peer.title).expect("a string grows"));
    text.push_str("\n|---|---|");
    text.push_str(&"---:|".repeat(peers.len()));
    for row in rows.filter(|row| !row.unit.is_memory()) {
        eprintln!("{}", row.name);
        write!(text, "\n|{}|{}|", row.name, row.title).expect("a string grows");
        let mut ours = None;
        for peer in &peers {
            let cell = match (ours, instructions(row, peer)) {
                (_, None) => String::new(),
                (None, Some(count)) => format!("{:.0}", ours.insert(count)),
                (Some(ours), Some(count)) => format!("{:.2}x", count / ours),
            };
            write!(text, "{cell}|").expect("a string grows");
        }
    }
    text
}

fn instructions(row: &Row, peer: &Peer) -> Option<f64> {
    let [few, many] = REPEATS.map(|repeats| count(row, peer, repeats));
    let repeats = (REPEATS[1] - REPEATS[0]) as f64;
    Some(many?.checked_sub(few?)? as f64 / repeats / row.count)
}

/// The instructions of a process that repeats the row's work; `None` if the peer lacks the row, or ended.
fn count(row: &Row, peer: &Peer, repeats: u64) -> Option<u64> {
    let (program, argument) = peer.program()?;
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(argument);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("valgrind can be started");
    writeln!(child.stdin.take()?, "repeat {} {repeats}", row.name).ok()?;
    let output = child.wait_with_output().ok()?;
    if !String::from_utf8_lossy(&output.stdout).contains("done") {
        return None;
    }
    let report = String::from_utf8_lossy(&output.stderr);
    let collected = report.lines().find_map(|line| line.split_once("Collected :"))?.1;
    collected.trim().parse().ok()
}
