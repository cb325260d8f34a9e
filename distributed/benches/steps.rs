//! Times of steps: without communication, with sums at the end, with sums while the walk goes on, for several sizes of
//! buckets; and the reproducible mode beside the plain one. `cargo bench`, on two ranks in one machine and, where root
//! may make network namespaces, on two hosts with a link of 2 Gbit/s.
//!
//! All ways of a table take turns in one job, so what else the machine does affects all of them.

#![allow(unreachable_pub, reason = "in a program, `pub` is what a module offers to the others")]

#[path = "../tests/hosts/mod.rs"]
mod hosts;

use std::env;
use std::process::Command;
use std::time::Instant;

use autograd_core::nn::{Linear, Module, Relu, Sequential};
use autograd_core::optim::{Optimizer, Sgd};
use autograd_core::{Tensor, set_num_threads};
use autograd_mpi::{DataParallel, Result, World};

fn main() -> Result<()> {
    if env::var("AUTOGRAD_MPI_JOB").is_ok() {
        return World::init()?.run(measure);
    }
    println!("{}", processor());
    let program = env::current_exe().expect("the name of this program");
    let filter = env::args().nth(1).filter(|arg| !arg.starts_with('-')).unwrap_or_default();
    let jobs = [SHORT, LONG, "small"].into_iter().filter(|job| job.contains(&filter));
    for job in jobs.clone() {
        println!("\n{job}, two ranks in one machine");
        let mut command = Command::new("mpirun");
        let open = "--allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
                    --mca btl_vader_single_copy_mechanism none -n 2";
        command.args(open.split_whitespace()).arg(&program);
        assert!(command.env("AUTOGRAD_MPI_JOB", job).status().is_ok_and(|status| status.success()));
    }
    match hosts::Hosts::new() {
        Some(hosts) if hosts.limit("2gbit").is_some() => {
            for job in jobs.filter(|job| *job != "small") {
                println!("\n{job}, two hosts, a link of 2 Gbit/s");
                let status = hosts.command(1000, &program).env("AUTOGRAD_MPI_JOB", job).status();
                assert!(status.is_ok_and(|status| status.success()));
            }
        }
        _ => println!("\nskipped: network namespaces cannot be made here"),
    }
    Ok(())
}

/// 32 MiB of gradients and so many rows a rank: a backward that is much shorter than the messages on the link, and
/// one that is as long.
const SHORT: &str = "large 40";
const LONG: &str = "large 800";

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find(|line| line.starts_with("model name")).unwrap_or("unknown");
    let cores = std::thread::available_parallelism().map_or(1, Into::into);
    format!("{}, {cores} cores", name.rsplit(": ").next().unwrap_or(name))
}

fn measure(world: &World) -> Result<()> {
    set_num_threads(1);
    autograd_core::seed(1);
    let job = env::var("AUTOGRAD_MPI_JOB").unwrap_or_default();
    match job.strip_prefix("large ").and_then(|rows| rows.parse().ok()) {
        Some(rows) => large(world, rows),
        None => small(world),
    }
}

const ROUNDS: usize = 9;

struct Way<'a> {
    name: String,
    /// The way to whose time this one's is compared.
    base: usize,
    /// Returns when it started to do what is measured.
    run: Box<dyn FnMut() -> Result<Instant> + 'a>,
}

/// Runs all ways in turn, and prints the median time of each, and its ratio to its base.
fn compare(world: &World, ways: &mut [Way<'_>]) -> Result<Vec<f64>> {
    let mut times = vec![Vec::new(); ways.len()];
    for round in 0..ROUNDS + 1 {
        for (times, way) in times.iter_mut().zip(ways.iter_mut()) {
            world.barrier()?;
            let start = (way.run)()?;
            world.barrier()?;
            if round >= 1 {
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let medians: Vec<f64> = times.iter_mut().map(median).collect();
    world.on_root(|| {
        println!("|way|ms|ratio|\n|---|---:|---:|");
        for (Way { name, base, .. }, time) in ways.iter().zip(&medians) {
            println!("|{name}|{time:.2}|{:.2}|", time / medians[*base]);
        }
    });
    Ok(medians)
}

/// Backwards of eight layers; the forward is not measured.
fn large(world: &World, rows: usize) -> Result<()> {
    let net = || (0..8).map(|_| Linear::<f32>::new(1024, 1024)).collect::<Vec<_>>();
    let x = Tensor::<f32>::randn([rows, 1024]);
    let loss = |net: &[Linear]| {
        net.iter().fold(x.clone(), |x, layer| layer.forward(&x).tanh()).square().mean()
    };
    let start = |net: &[Linear]| -> Result<_> {
        let loss = loss(net);
        world.barrier()?;
        Ok((Instant::now(), loss))
    };
    let nets: Vec<_> = (0..7).map(|_| net()).collect();
    let way = |name: &str, run| Way { name: name.into(), base: 1, run };
    const MIB: usize = 1 << 20;
    let settings = [
        ("at the end, 8 MiB", Some((false, 8 * MIB))),
        ("overlapped, 32 MiB", Some((true, 32 * MIB))),
        ("overlapped, 8 MiB", Some((true, 8 * MIB))),
        ("overlapped, 2 MiB", Some((true, 2 * MIB))),
        ("overlapped, 0.25 MiB", Some((true, MIB / 4))),
        ("reproducible, one micro-batch a rank", None),
    ];
    let alone = || {
        let (start, loss) = start(&nets[0])?;
        loss.backward()?;
        nets[0].clear_grad();
        Ok(start)
    };
    let mut ways = vec![way("no communication", Box::new(alone))];
    for (net, (name, buckets)) in nets[1..].iter().zip(settings) {
        let parallel = DataParallel::new(world, net)?;
        let mut parallel = match buckets {
            Some((overlap, size)) => parallel.buckets(size, size).overlap(overlap),
            None => parallel.reproducible(rows),
        };
        let run = move || {
            let (start, loss) = start(net)?;
            parallel.backward(&loss, rows)?;
            net.clear_grad();
            Ok(start)
        };
        ways.push(way(name, Box::new(run)));
    }
    let medians = compare(world, &mut ways)?;
    let (walk, messages) = (medians[0], medians[1] - medians[0]);
    world.on_root(|| {
        println!("no ratio can be below {:.2}", walk.max(messages) / (walk + messages));
    });
    Ok(())
}

/// The net of the digits, a batch of 64: 50 steps at a time, long enough to be measured.
fn small(world: &World) -> Result<()> {
    let x = Tensor::<f32>::rand([64, 64]);
    let y = Tensor::<i64>::randint([64], 0, 10);
    let net = || {
        Sequential::new().then(Linear::<f32>::new(64, 128)).then(Relu).then(Linear::new(128, 10))
    };
    let nets: Vec<_> = (0..7).map(|_| net()).collect();
    let loss = |net: &Sequential, rows: &Tensor<i64>| {
        net.forward(&x.index_select(0, rows)).try_cross_entropy(&y.index_select(0, rows))
    };
    let half = 64 / world.size();
    let rows = Tensor::<i64>::arange(half);
    let way = |name: String, base, net, mut step: Box<dyn FnMut() -> Result<()>>| {
        let mut sgd = Optimizer::new(net, Sgd::new(0.01));
        let run = Box::new(move || {
            let start = Instant::now();
            for _ in 0..50 {
                step()?;
                sgd.step()?;
                sgd.clear_grad();
            }
            Ok(start)
        });
        Way { name, base, run }
    };
    let alone = Box::new(|| Ok(loss(&nets[0], &rows)?.backward()?));
    let mut ways = vec![way("no communication".into(), 1, &nets[0], alone)];
    for (nets, parts) in nets[1..].chunks(2).zip([1, 2, 4]) {
        let (base, micro_batch) = (ways.len(), half / parts);
        let pieces: Vec<_> = rows.to_vec().chunks(micro_batch).map(Tensor::from).collect();
        let mut parallel = DataParallel::new(world, &nets[0])?;
        let plain = move || {
            let (last, before) = pieces.split_last().expect("a micro-batch");
            for rows in before {
                parallel.accumulate(&loss(&nets[0], rows)?, micro_batch)?;
            }
            parallel.step(last, |rows| loss(&nets[0], rows)).map(drop)
        };
        let name = format!("plain, micro-batches of {micro_batch}");
        ways.push(way(name, base, &nets[0], Box::new(plain)));
        let mut parallel = DataParallel::new(world, &nets[1])?.reproducible(micro_batch);
        let rows = &rows;
        let exact = move || parallel.step(rows, |rows| loss(&nets[1], rows)).map(drop);
        let name = format!("reproducible, micro-batches of {micro_batch}");
        ways.push(way(name, base, &nets[1], Box::new(exact)));
    }
    compare(world, &mut ways).map(drop)
}
