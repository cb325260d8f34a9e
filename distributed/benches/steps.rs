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
    for job in ["large", "small"] {
        println!("\n{job}, two ranks in one machine");
        let mut command = Command::new("mpirun");
        let open = "--allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
                    --mca btl_vader_single_copy_mechanism none -n 2";
        command.args(open.split_whitespace()).arg(&program);
        assert!(command.env("AUTOGRAD_MPI_JOB", job).status().is_ok_and(|status| status.success()));
    }
    match hosts::Hosts::new() {
        Some(hosts) if hosts.limit("2gbit").is_some() => {
            println!("\nlarge, two hosts, a link of 2 Gbit/s");
            let status = hosts.command(1000, &program).env("AUTOGRAD_MPI_JOB", "large").status();
            assert!(status.is_ok_and(|status| status.success()));
        }
        _ => println!("\nskipped: network namespaces cannot be made here"),
    }
    Ok(())
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find(|line| line.starts_with("model name")).unwrap_or("unknown");
    let cores = std::thread::available_parallelism().map_or(1, Into::into);
    format!("{}, {cores} cores", name.rsplit(": ").next().unwrap_or(name))
}

fn measure(world: &World) -> Result<()> {
    set_num_threads(1);
    autograd_core::seed(1);
    match env::var("AUTOGRAD_MPI_JOB").as_deref() {
        Ok("large") => large(world),
        _ => small(world),
    }
}

const ROUNDS: usize = 9;

/// Runs all ways in turn, and prints the median time of each, and its ratio to the way at `base`.
fn compare(
    world: &World,
    base: usize,
    ways: &mut [(String, Box<dyn FnMut() -> Result<()> + '_>)],
) -> Result<()> {
    let mut times = vec![Vec::new(); ways.len()];
    for round in 0..ROUNDS + 1 {
        for (times, (_, way)) in times.iter_mut().zip(ways.iter_mut()) {
            world.barrier()?;
            let start = Instant::now();
            way()?;
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
        for ((name, _), time) in ways.iter().zip(&medians) {
            println!("|{name}|{time:.2}|{:.2}|", time / medians[base]);
        }
    });
    Ok(())
}

/// 32 MiB of gradients, of eight layers.
fn large(world: &World) -> Result<()> {
    let net = || (0..8).map(|_| Linear::<f32>::new(1024, 1024)).collect::<Vec<_>>();
    let x = Tensor::<f32>::randn([40, 1024]);
    let loss = |net: &[Linear]| {
        net.iter().fold(x.clone(), |x, layer| layer.forward(&x).tanh()).square().mean()
    };
    let alone = net();
    let nets: Vec<_> = (0..6).map(|_| net()).collect();
    let mut ways: Vec<(String, Box<dyn FnMut() -> Result<()>>)> = vec![(
        "no communication".into(),
        Box::new(|| {
            loss(&alone).backward()?;
            alone.clear_grad();
            Ok(())
        }),
    )];
    const MIB: usize = 1 << 20;
    let sizes = [
        ("at the end, 8 MiB", false, 8 * MIB),
        ("overlapped, 32 MiB", true, 32 * MIB),
        ("overlapped, 8 MiB", true, 8 * MIB),
        ("overlapped, 2 MiB", true, 2 * MIB),
        ("overlapped, 0.25 MiB", true, MIB / 4),
    ];
    for (net, (name, overlap, size)) in nets.iter().zip(sizes) {
        let mut parallel = DataParallel::new(world, net)?.buckets(size, size).overlap(overlap);
        ways.push((
            name.into(),
            Box::new(move || {
                parallel.backward(&loss(net), 40)?;
                net.clear_grad();
                Ok(())
            }),
        ));
    }
    let last = &nets[5];
    let mut exact = DataParallel::new(world, last)?.reproducible(40);
    let rows = Tensor::from(vec![0_i64; 40]);
    ways.push((
        "reproducible, one micro-batch a rank".into(),
        Box::new(move || {
            exact.step(&rows, |_| Ok(loss(last)))?;
            last.clear_grad();
            Ok(())
        }),
    ));
    compare(world, 1, &mut ways)
}

/// The net of the digits, a batch of 64: whole steps.
fn small(world: &World) -> Result<()> {
    let x = Tensor::<f32>::rand([64, 64]);
    let y = Tensor::<i64>::randint([64], 0, 10);
    let net = || {
        Sequential::new().then(Linear::<f32>::new(64, 128)).then(Relu).then(Linear::new(128, 10))
    };
    let nets: Vec<_> = (0..5).map(|_| net()).collect();
    let loss = |net: &Sequential, rows: &Tensor<i64>| {
        net.forward(&x.index_select(0, rows)).try_cross_entropy(&y.index_select(0, rows))
    };
    let half = 64 / world.size();
    let rows = Tensor::<i64>::arange(half);
    let mut ways: Vec<(String, Box<dyn FnMut() -> Result<()> + '_>)> = Vec::new();
    let mut add = |name: &str, net, mut step: Box<dyn FnMut(&Sequential) -> Result<()>>| {
        let mut sgd = Optimizer::new(net, Sgd::new(0.01));
        ways.push((
            name.into(),
            Box::new(move || {
                // Long enough to be measured.
                for _ in 0..50 {
                    step(net)?;
                    sgd.step()?;
                    sgd.clear_grad();
                }
                Ok(())
            }),
        ));
    };
    let same = rows.clone();
    add(
        "no communication, 50 steps",
        &nets[0],
        Box::new(move |net| Ok(loss(net, &same)?.backward()?)),
    );
    let mut parallel = DataParallel::new(world, &nets[1])?;
    let same = rows.clone();
    add(
        "plain, 50 steps",
        &nets[1],
        Box::new(move |net| parallel.step(&same, |rows| loss(net, rows)).map(drop)),
    );
    for (at, micro_batch) in [(2, 32), (3, 16), (4, 8)] {
        let mut parallel = DataParallel::new(world, &nets[at])?.reproducible(micro_batch);
        let same = rows.clone();
        let name = format!("reproducible, micro-batches of {micro_batch}, 50 steps");
        add(
            &name,
            &nets[at],
            Box::new(move |net| parallel.step(&same, |rows| loss(net, rows)).map(drop)),
        );
    }
    compare(world, 1, &mut ways)
}
