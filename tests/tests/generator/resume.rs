//! A training that is stopped and resumed by another process gives what one process does, to the last bit.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use autograd_core::data::{DataLoader, Dataset};
use autograd_core::nn::{Dropout, Linear, Module};
use autograd_core::optim::schedule::{Cosine, Schedule};
use autograd_core::optim::{AdamW, Optimizer};
use autograd_core::prelude::*;
use autograd_core::safetensors::SafeTensors;
use autograd_core::{Error, Generator, Result, rng_state, seed, set_rng_state};

use crate::{seeded, turn};

#[derive(Module)]
struct Net {
    first: Linear,
    drop: Dropout,
    second: Linear,
}

impl Net {
    fn forward(&self, x: &Tensor) -> Tensor {
        self.second.forward(&self.drop.forward(&self.first.forward(x).tanh()))
    }
}

/// Numbers with noise.
struct Noisy;

impl Dataset for Noisy {
    type Batch = Tensor;

    fn len(&self) -> usize {
        24
    }

    fn get(&self, items: &[usize]) -> Result<Tensor> {
        let x = items.iter().map(|&item| item as f32 * 0.1).collect::<Vec<_>>();
        Ok(Tensor::from(x).unsqueeze(1) + Tensor::<f32>::randn([items.len(), 3]))
    }
}

/// Trains to a number of steps, from a file if there is one, and writes a file.
fn train(from: Option<&Path>, steps: usize, to: &Path) -> Result<()> {
    // All is created in the same way, with numbers of its own.
    seed(from.map_or(1, |_| 99));
    let (first, second) = (Linear::new(3, 16), Linear::new(16, 1));
    let net = Net { first, drop: Dropout::new(0.3), second };
    let mut adam = Optimizer::new(&net, AdamW::new(0.02));
    let loader = DataLoader::new(Noisy, 8).shuffle(4).in_background();
    let schedule = Cosine::new(0.02, 0.0, 30).warm_up(4);
    let mut step = 0;
    if let Some(path) = from {
        let file = SafeTensors::load(path)?;
        net.load_state_dict(&file.under("net"))?;
        adam.load_state_dict(&file.under("adam"))?;
        step = file.metadata["step"].parse().unwrap();
        set_rng_state(&Generator::try_from(&file.get("random")?)?);
    }
    while step < steps {
        let (epoch, used) = (step / loader.len(), step % loader.len());
        for batch in loader.epoch(epoch as u64).skip(used).take(steps - step) {
            let x = batch?;
            adam.set_learning_rate(schedule.at(step as u64));
            let noise = Tensor::<f32>::randn([x.shape()[0], 1]) * 0.1;
            net.forward(&x).mse_loss(&(x.sin().sum_axes_keep(1) + noise)).backward()?;
            adam.step()?;
            adam.clear_grad();
            step += 1;
        }
    }
    let mut file = SafeTensors::new();
    file.insert_under("net", net.state_dict());
    file.insert_under("adam", adam.state_dict());
    file.insert("random", rng_state());
    file.metadata.insert("step".into(), step.to_string());
    file.save(to)
}

const TRAINS: &str = "RESUMED_TRAINING";

#[test]
fn a_resumed_training_is_that_of_one_process() {
    let _turn = turn();
    if let Ok(run) = env::var(TRAINS) {
        let [from, steps, to] = run.split('|').collect::<Vec<_>>()[..] else { panic!("{run}") };
        let from = (!from.is_empty()).then(|| Path::new(from));
        return train(from, steps.parse().unwrap(), Path::new(to)).unwrap();
    }
    let file = |name: &str| env::temp_dir().join(format!("resumed-{name}-{}", std::process::id()));
    let run = |from: Option<&PathBuf>, steps: usize, to: &PathBuf, threads: &str| {
        let from = from.map_or("", |path| path.to_str().unwrap());
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["resume::a_resumed_training_is_that_of_one_process", "--exact"]);
        again.env(TRAINS, format!("{from}|{steps}|{}", to.display()));
        let output = again.env("AUTOGRAD_NUM_THREADS", threads).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        fs::read(to).unwrap()
    };
    let [whole, half, rest] = ["whole", "half", "rest"].map(file);
    let expected = run(None, 10, &whole, "2");
    // In the middle of an epoch.
    let before = run(None, 5, &half, "1");
    let found = run(Some(&half), 10, &rest, "2");
    [whole, half, rest].iter().for_each(|path| fs::remove_file(path).unwrap());
    assert_ne!(before, expected);
    assert!(found == expected, "the files differ");
}

#[test]
fn a_state_goes_through_a_file_at_any_position() {
    let _turn = seeded(2023);
    for drawn in [0, 1, 310, 311, 312, 313, 1000] {
        seed(2023);
        (0..drawn).for_each(|_| drop(Tensor::<f64>::rand([1])));
        let mut file = SafeTensors::new();
        file.insert("random", rng_state());
        let file = SafeTensors::from_bytes(&file.to_bytes().unwrap()).unwrap();
        let expected = Tensor::<f64>::randn([1001]).to_vec();
        seed(1);
        set_rng_state(&Generator::try_from(&file.get("random").unwrap()).unwrap());
        assert_eq!(Tensor::<f64>::randn([1001]).to_vec(), expected, "after {drawn}");
    }
}

#[test]
fn a_tensor_that_is_no_state_is_refused() {
    let state = Tensor::<i64>::from(&Generator::new(3)).to_vec();
    assert_eq!(state.len(), 312);
    for (state, found) in [
        (Tensor::from(state[1..].to_vec()), "a tensor of shape [311]"),
        (Tensor::zeros([0]), "a tensor of shape [0]"),
        (Tensor::zeros([312]), "other numbers"),
    ] {
        let error = Generator::try_from(&state).unwrap_err();
        assert!(matches!(error, Error::Unsupported { op: "Generator::try_from", .. }), "{error}");
        let words = "`state` must be the 312 numbers that a generator was converted to, found ";
        assert!(error.to_string().ends_with(&format!("{words}{found}")), "{error}");
    }
}
