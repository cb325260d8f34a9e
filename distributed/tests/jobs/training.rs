//! The digits, learned by one process and by several.

use std::io::Read;

use autograd_core::nn::{Dropout, Linear, Module, Relu, Sequential};
use autograd_core::optim::{Adam, Optimizer, Sgd};
use autograd_core::safetensors::SafeTensors;
use autograd_core::{Generator, Tensor, rng_state, set_rng_state};
use autograd_mpi::{DataParallel, Result, Shards, World};
use flate2::read::GzDecoder;

use crate::driver::{Job, Outcome, Test, check, example, folder, set_threads};

pub const TESTS: &[Test] = &[
    ("digits: one process and 1, 2, 4 ranks agree", plain_agrees),
    ("digits: repeated runs have equal bits", runs_repeat),
    ("reproducible: equal bits on 1, 2, 3, 4 ranks", bits_are_equal),
    ("reproducible: saved on 2 ranks, continued on 3", continues),
    ("examples: the same numbers on 1 and 2 ranks", examples),
];

pub fn run(job: &[&str]) -> Option<Result<()>> {
    match job {
        ["digits", mode] => {
            Some(World::init().and_then(|world| world.run(|world| digits(world, mode))))
        }
        ["continue", path, from, to] => {
            let (from, to) = (from.parse().ok()?, to.parse().ok()?);
            Some(World::init().and_then(|world| world.run(|world| resumed(world, path, from, to))))
        }
        _ => None,
    }
}

pub fn load() -> (Tensor<f32>, Tensor<i64>) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/digits.csv.gz");
    let mut text = String::new();
    let bytes = std::fs::read(file).expect("the digits of the examples");
    GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("a gzip file");
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let mut numbers: Vec<f32> = line.split(',').map(|n| n.parse().expect("a number")).collect();
        labels.push(numbers.pop().expect("the digit") as i64);
        pixels.extend(numbers.into_iter().map(|x| x / 16.0));
    }
    let images = Tensor::from_vec([labels.len(), 64], pixels).expect("64 pixels a line");
    (images, labels.into())
}

const BATCH: usize = 64;
const EPOCHS: u64 = 5;

/// Prints the loss of each epoch and, at the end, all weights.
fn digits(world: &World, mode: &str) -> Result<()> {
    set_threads();
    autograd_core::seed(3);
    let (images, labels) = load();
    let net = Sequential::new().then(Linear::<f32>::new(64, 32)).then(Relu);
    let net = match mode {
        "exact" => net.then(Dropout::new(0.1)),
        _ => net,
    };
    let net = net.then(Linear::new(32, 10));
    let mut sgd = Optimizer::new(&net, Sgd::new(0.2).momentum(0.5));
    let loss = |rows: &Tensor<i64>| {
        net.forward(&images.index_select(0, rows)).try_cross_entropy(&labels.index_select(0, rows))
    };
    let shards = Shards { rows: labels.len(), batch: BATCH, seed: 5 };
    let mut parallel = DataParallel::new(world, &net)?;
    if mode == "exact" || mode == "micro" {
        parallel = parallel.reproducible(8);
    }
    if mode == "buckets" {
        parallel = parallel.buckets(100, 1000);
    }
    for epoch in 0..EPOCHS {
        let (mut sum, mut items) = (0.0, 0);
        if mode == "alone" {
            for rows in shards.of_rank(0, 1, epoch, 1) {
                let loss = loss(&rows)?;
                loss.backward()?;
                sum += f64::from(loss.item()) * rows.len() as f64;
                items += rows.len();
                sgd.step()?;
                sgd.clear_grad();
            }
        } else {
            for rows in parallel.epoch(&shards, epoch) {
                let report = parallel.step(&rows, loss)?;
                sum += report.loss * report.items as f64;
                items += report.items;
                assert!(report.unused.is_empty(), "{:?}", report.unused);
                sgd.step()?;
                sgd.clear_grad();
            }
        }
        assert_eq!(items, labels.len());
        world.on_root(|| println!("loss {:e}", sum / items as f64));
    }
    parallel.check_in_step(&net.state_dict())?;
    world.on_root(|| {
        for (name, tensor) in net.named_parameters() {
            let weights = tensor.downcast::<f32>().expect("of f32").to_vec();
            println!("{name} {weights:?}");
        }
    });
    Ok(())
}

/// The numbers in the lines.
fn numbers(lines: &[String]) -> Vec<f64> {
    let all = lines.join(" ");
    let words = all.split(|c: char| " [],".contains(c));
    words.filter_map(|word| word.parse().ok()).collect()
}

fn plain_agrees() -> Outcome {
    let alone = numbers(&Job::new(1, "digits alone").lines()?);
    check(alone.len() == 5 + 64 * 32 + 32 + 32 * 10 + 10, || format!("{} numbers", alone.len()))?;
    check(alone[4] < 0.35 && alone[0] > 2.0 * alone[4], || format!("{:?}", &alone[..5]))?;
    for (ranks, mode) in
        [(1, "plain"), (2, "plain"), (4, "plain"), (2, "buckets"), (4, "buckets"), (2, "micro")]
    {
        let found = numbers(&Job::new(ranks, format!("digits {mode}")).lines()?);
        check(found.len() == alone.len(), || format!("{} numbers", found.len()))?;
        let both = found.iter().zip(&alone);
        let most = both.map(|(found, alone)| (found - alone).abs()).fold(0.0, f64::max);
        check(most < 1e-6, || format!("{mode} on {ranks} ranks: {most:e}"))?;
    }
    Ok(())
}

fn runs_repeat() -> Outcome {
    let first = Job::new(2, "digits buckets").lines()?;
    let again = Job::new(2, "digits buckets").threads(2).lines()?;
    check(first == again, || "two runs on 2 ranks differ".into())
}

fn bits_are_equal() -> Outcome {
    let expected = Job::new(1, "digits exact").lines()?;
    let losses = numbers(&expected);
    check(losses[4] < 0.5 && losses[0] > 2.0 * losses[4], || format!("{:?}", &losses[..5]))?;
    for (ranks, threads) in [(1, 2), (2, 1), (2, 2), (3, 1), (4, 1)] {
        let found = Job::new(ranks, "digits exact").threads(threads).lines()?;
        check(found == expected, || format!("{ranks} ranks of {threads} threads differ"))?;
    }
    Ok(())
}

/// Goes on from the file if `from` is not 0, up to step `to`; writes the file, and prints the weights.
fn resumed(world: &World, path: &str, from: usize, to: usize) -> Result<()> {
    autograd_core::seed(3);
    let (images, labels) = load();
    // So wide that its gradients take several messages.
    let net = Sequential::new().then(Linear::<f32>::new(64, 600)).then(Dropout::new(0.2));
    let net = net.then(Relu).then(Linear::new(600, 10));
    let mut adam = Optimizer::new(&net, Adam::new(0.01));
    let mut parallel = DataParallel::new(world, &net)?.reproducible(8);
    let shards = Shards { rows: 200, batch: 30, seed: 5 };
    if from > 0 {
        let file = SafeTensors::load(path)?;
        net.load_state_dict(&file.under("net"))?;
        adam.load_state_dict(&file.under("adam"))?;
        set_rng_state(&Generator::try_from(&file.get("random")?)?);
    }
    for step in from..to {
        let (epoch, used) = (step / shards.batches(), step % shards.batches());
        let Some(rows) = parallel.epoch(&shards, epoch as u64).nth(used) else { continue };
        parallel.step(&rows, |rows| {
            let (x, y) = (images.index_select(0, rows), labels.index_select(0, rows));
            net.forward(&x).try_cross_entropy(&y)
        })?;
        adam.step()?;
        adam.clear_grad();
    }
    let written = world.on_root(|| {
        let mut file = SafeTensors::new();
        file.insert_under("net", net.state_dict());
        file.insert_under("adam", adam.state_dict());
        file.insert("random", rng_state());
        file.save(path)
    });
    world.agree(written.unwrap_or(Ok(())))?;
    world.on_root(|| {
        for (name, tensor) in net.named_parameters() {
            println!("{name} {:?}", tensor.downcast::<f32>().expect("of f32").to_vec());
        }
    });
    Ok(())
}

fn continues() -> Outcome {
    let folder = folder("continue");
    let (whole, parts) = (folder.join("whole"), folder.join("parts"));
    let job = |path: &std::path::Path, range: &str| format!("continue {} {range}", path.display());
    let expected = Job::new(1, job(&whole, "0 20")).lines()?;
    Job::new(2, job(&parts, "0 9")).lines()?;
    let found = Job::new(3, job(&parts, "9 20")).lines()?;
    let _ = std::fs::remove_dir_all(&folder);
    check(found == expected, || "the weights differ".into())
}

fn examples() -> Outcome {
    for (name, argument, line) in [("own_op", "", "loss"), ("digits", "--reproducible", "losses")] {
        let lines = |ranks: usize| -> Outcome<Vec<String>> {
            let text = example(ranks, name, argument)?;
            Ok(text.lines().filter(|found| found.contains(line)).map(str::to_owned).collect())
        };
        let (one, two) = (lines(1)?, lines(2)?);
        check(!one.is_empty() && one == two, || format!("{name}: {one:?} {two:?}"))?;
    }
    Ok(())
}
