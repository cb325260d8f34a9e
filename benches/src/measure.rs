//! Measures one row with all peers in turns.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::figures::{self, Peers};
use crate::peers::{Peer, Process};
use crate::rows::Row;

/// The seconds after which a peer gets no more turns in a row.
const BUDGET: f64 = 4.0;

pub struct Plan {
    pub rounds: usize,
    /// The minimum seconds of a turn.
    pub turn: f64,
}

/// The processes for one number of threads, each started on first use.
pub struct Processes {
    threads: usize,
    running: BTreeMap<&'static str, Process>,
}

impl Processes {
    pub fn new(threads: usize) -> Self {
        Self { threads, running: BTreeMap::new() }
    }

    /// Returns the words of the answer; `None` if the process could not be started, or ended. A process that
    /// ended is restarted for the next request.
    fn ask(&mut self, peer: &Peer, request: &str) -> Option<Vec<String>> {
        if !self.running.contains_key(peer.name) {
            self.running.insert(peer.name, Process::start(peer, self.threads)?);
        }
        let answer = self.running.get_mut(peer.name).and_then(|process| process.ask(request));
        if answer.is_none() {
            self.running.remove(peer.name);
        }
        answer
    }
}

/// The figures of the peers that have this row.
pub fn row(row: &Row, peers: &[&Peer], processes: &mut Processes, plan: &Plan) -> Peers {
    let mut all = Peers::new();
    let mut times: Vec<(&Peer, Vec<f64>)> = Vec::new();
    let mut expected: Option<Vec<f64>> = None;
    for peer in peers.iter().filter(|peer| peer.has(row.name)) {
        if row.unit.is_memory() {
            // The peak is measured in a new process.
            processes.running.remove(peer.name);
        }
        let request = if row.unit.is_memory() { "peak" } else { "answer" };
        let Some(answer) = processes.ask(peer, &format!("{request} {}", row.name)) else {
            all.insert(peer.name.to_owned(), None);
            continue;
        };
        let numbers: Vec<f64> = answer[1..].iter().filter_map(|n| n.parse().ok()).collect();
        match answer[0].as_str() {
            "bytes" => {
                all.insert(peer.name.to_owned(), Some(figures::of(numbers)));
            }
            "numbers" => {
                check(row, peer, expected.get_or_insert_with(|| numbers.clone()), &numbers);
                times.push((peer, Vec::new()));
            }
            _ => {}
        }
    }
    let mut spent = vec![0.0; times.len()];
    for _ in 0..plan.rounds {
        for ((peer, times), spent) in times.iter_mut().zip(&mut spent) {
            if *spent > BUDGET {
                continue;
            }
            let start = Instant::now();
            let answer = processes.ask(peer, &format!("turn {} {}", row.name, plan.turn));
            *spent += start.elapsed().as_secs_f64();
            match answer.and_then(|words| words.get(1)?.parse().ok()) {
                Some(seconds) => times.push(seconds),
                None => *spent = f64::INFINITY,
            }
        }
    }
    for (peer, times) in times {
        all.insert(peer.name.to_owned(), (!times.is_empty()).then(|| figures::of(times)));
    }
    all
}

/// Panics if a peer computes other numbers.
fn check(row: &Row, peer: &Peer, expected: &[f64], numbers: &[f64]) {
    // If terms cancel, the error is relative to the largest number.
    let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-4 * b.abs().max(0.2 * largest);
    let same = numbers.len() == expected.len() && numbers.iter().zip(expected).all(close);
    assert!(
        same,
        "{}: {} computes something else: {numbers:?} instead of {expected:?}",
        row.name, peer.name
    );
}
