//! Learns handwritten digits on all ranks.
//!
//! ```sh
//! mpirun -n 2 cargo run --release --example digits
//! mpirun -n 4 cargo run --release --example digits -- --reproducible
//! ```
//!
//! Rank 0 shows a bar and, at the end, the losses. With `--reproducible` they are the same to the last bit
//! on any number of ranks.

use std::io::Read;

use autograd_core::nn::{Linear, Module, Relu, Sequential};
use autograd_core::optim::{Adam, Optimizer};
use autograd_core::safetensors::SafeTensors;
use autograd_core::{Tensor, no_grad};
use autograd_mpi::{DataParallel, Result, Shards, World};
use flate2::read::GzDecoder;
use indicatif::{ProgressBar, ProgressStyle};

const DIGITS: &[u8] = include_bytes!("../../examples/data/digits.csv.gz");
const EPOCHS: u64 = 20;

fn main() -> Result<()> {
    World::init()?.run(learn)
}

fn learn(world: &World) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, Into::into);
    autograd_core::set_num_threads(cores / world.local_size());
    autograd_core::seed(1);
    let (images, labels) = world.agree(read())?;
    // Every fifth image is held back.
    let (exam, lessons): (Vec<i64>, Vec<i64>) = (0..labels.len() as i64).partition(|i| i % 5 == 4);
    let (exam, lessons) = (Tensor::from(exam), Tensor::from(lessons));

    let net =
        Sequential::new().then(Linear::<f32>::new(64, 128)).then(Relu).then(Linear::new(128, 10));
    let mut adam = Optimizer::new(&net, Adam::new(0.002));
    let mut parallel = DataParallel::new(world, &net)?;
    if std::env::args().any(|argument| argument == "--reproducible") {
        parallel = parallel.reproducible(8);
    }
    let shards = Shards { rows: lessons.len(), batch: 64, seed: 1 };
    let bar = world.on_root(|| bar(EPOCHS * shards.batches() as u64));
    let mut losses = Vec::new();
    for epoch in 0..EPOCHS {
        let (mut sum, mut items) = (0.0, 0);
        for rows in parallel.epoch(&shards, epoch) {
            let report = parallel.step(&rows, |rows| {
                let rows = lessons.index_select(0, rows);
                net.forward(&images.index_select(0, &rows))
                    .try_cross_entropy(&labels.index_select(0, &rows))
            })?;
            adam.step()?;
            adam.clear_grad();
            sum += report.loss * report.items as f64;
            items += report.items;
            bar.iter().for_each(|bar| bar.inc(1));
        }
        losses.push(sum / items as f64);
        bar.iter().for_each(|bar| bar.set_message(format!("loss {:.4}", sum / items as f64)));
    }

    // Each rank examines a part of the images that were held back.
    let all = Shards { rows: exam.len(), batch: exam.len(), seed: 0 };
    let (mut right, mut count) = (0, 0);
    for rows in all.epoch(world, 0) {
        let rows = exam.index_select(0, &rows);
        let guesses = no_grad().run(|| net.forward(&images.index_select(0, &rows)).argmax(1));
        right += guesses.equal(&labels.index_select(0, &rows)).cast::<i64>().sum().item();
        count += rows.len();
    }
    let accuracy = world.mean(right as f64, count)?;
    parallel.check_in_step(&net.state_dict())?;

    // One rank writes, and all know whether it could.
    let path = std::env::temp_dir().join("digits.safetensors");
    let written = world
        .on_root(|| SafeTensors { tensors: net.state_dict(), ..SafeTensors::new() }.save(&path));
    world.agree(written.unwrap_or(Ok(())))?;
    world.on_root(|| {
        bar.iter().for_each(ProgressBar::finish);
        println!("losses {losses:?}");
        println!(
            "{:.2} % of {} images held back are right, on {} ranks",
            100.0 * accuracy,
            exam.len(),
            world.size()
        );
        println!("written: {}", path.display());
    });
    Ok(())
}

fn bar(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:32} step {pos}/{len}  {msg}  {elapsed}");
    ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// The images, with pixels from 0 to 1, and their digits.
fn read() -> autograd_core::Result<(Tensor<f32>, Tensor<i64>)> {
    let mut text = String::new();
    GzDecoder::new(DIGITS).read_to_string(&mut text).map_err(autograd_core::Error::custom)?;
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let numbers = line.split(',').map(|n| n.trim().parse::<f32>());
        let mut numbers =
            numbers.collect::<Result<Vec<_>, _>>().map_err(autograd_core::Error::custom)?;
        labels.push(numbers.pop().unwrap_or_default() as i64);
        pixels.extend(numbers.into_iter().map(|x| x / 16.0));
    }
    Ok((Tensor::from_vec([labels.len(), 64], pixels)?, labels.into()))
}
