//! Compares autograd-core with its peers in one run: `cargo run --release`, in this folder.
//!
//! ```text
//! --only W1,W5     rows whose names start so; all by default
//! --peers ours,..  the peers to measure; all available ones by default
//! --threads 1,2    1 by default
//! --rounds 9       turns of each peer in a row
//! --turn 0.04      seconds of a turn, at least
//! --built          builds nothing: peers that are not built already are skipped
//! --isa avx2       without AVX-512, for the peers that can be limited
//! --instructions   counts instructions by callgrind instead of times: ours, and multiples for Rust peers
//! --keep           stores the figures, and writes the table of all stored rows into the docs
//! ```
//!
//! Each peer is a separate process that waits during the turns of the others, so that a slow moment of
//! the machine affects all of them. A figure is the median over the rounds; its ratio is the result.
//! Before the timing, the answers of all peers are compared.

mod figures;
mod instructions;
mod measure;
mod peers;
mod programs;
mod rows;
mod table;

use figures::Figures;
use measure::{Plan, Processes};
use peers::PEERS;
use rows::ROWS;

struct Options {
    only: Vec<String>,
    peers: Vec<String>,
    threads: Vec<usize>,
    plan: Plan,
    built: bool,
    keep: bool,
    isa: Option<String>,
    instructions: bool,
}

fn options() -> Options {
    let mut options = Options {
        only: Vec::new(),
        peers: Vec::new(),
        threads: vec![1],
        plan: Plan { rounds: 9, turn: 0.04 },
        built: false,
        keep: false,
        isa: None,
        instructions: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut list = || -> Vec<String> {
            let next = words.next().unwrap_or_else(|| panic!("{word} wants a value"));
            next.split(',').map(str::to_owned).collect()
        };
        let number = |text: &String| text.parse().unwrap_or_else(|_| panic!("no number: {text}"));
        match word.as_str() {
            "--only" => options.only = list(),
            "--peers" => options.peers = list(),
            "--threads" => options.threads = list().iter().map(|n| number(n) as usize).collect(),
            "--rounds" => options.plan.rounds = number(&list()[0]) as usize,
            "--turn" => options.plan.turn = number(&list()[0]),
            "--built" => options.built = true,
            "--keep" => options.keep = true,
            "--isa" => options.isa = Some(list()[0].clone()),
            "--instructions" => options.instructions = true,
            _ => panic!("there is no option {word}; see src/main.rs"),
        }
    }
    for name in &options.peers {
        assert!(PEERS.iter().any(|peer| peer.name == name), "there is no peer {name}");
    }
    options
}

fn main() {
    let options = options();
    assert!(
        options.isa.is_none() || !options.keep,
        "the stored figures are those of the whole processor"
    );
    if let Some(isa) = &options.isa {
        peers::ISA.get_or_init(|| isa.clone());
    }
    let wanted = |name: &str| options.peers.is_empty() || options.peers.iter().any(|p| p == name);
    let mut peers = Vec::new();
    for peer in PEERS.iter().filter(|peer| wanted(peer.name)) {
        if peer.prepare(!options.built) {
            peers.push(peer);
        } else {
            eprintln!("{} cannot be had here", peer.title);
        }
    }
    let chosen = |name: &str| options.only.is_empty() || options.only.iter().any(|o| is(name, o));
    if options.instructions {
        let rows = ROWS.iter().filter(|row| chosen(row.name));
        return println!("{}", instructions::table(rows, &peers));
    }
    let mut kept = if options.keep { Figures::read() } else { Figures::default() };
    for &threads in &options.threads {
        let mut processes = Processes::new(threads);
        for row in ROWS.iter().filter(|row| chosen(row.name) && (threads == 1 || row.threads)) {
            eprintln!("{} {threads}", row.name);
            let figures = if programs::is(row.name) {
                programs::row(row, &peers)
            } else {
                measure::row(row, &peers, &mut processes, &options.plan)
            };
            kept.0.insert((row.name.to_owned(), threads), figures);
        }
    }
    println!("{}", table::ratios(&kept));
    if options.keep {
        kept.write().and_then(|()| table::into_docs(&kept)).expect("the folder can be written");
    }
}

/// Whether the row is selected: `W5` selects all of `W5-..`, `W1` does not select `W12`.
fn is(row: &str, asked: &str) -> bool {
    row.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}
