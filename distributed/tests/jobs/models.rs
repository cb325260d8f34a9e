//! Random models: gradients of several ranks against those of one process, which each rank computes too.

use autograd_core::nn::{Module, parameter};
use autograd_core::{AnyTensor, Generator, Tensor};
use autograd_mpi::{DataParallel, Result, World};

use crate::driver::{Job, Outcome, Test, check, set_threads};

pub const TESTS: &[Test] = &[
    ("random models on 1, 2, 3, 4 ranks: gradients of one process", gradients_agree),
    ("random models, reproducible: equal bits on 1, 2, 3, 4 ranks", bits_are_equal),
];

const MODELS: u64 = 40;

pub fn run(job: &[&str]) -> Option<Result<()>> {
    match job {
        ["models", mode] => {
            Some(World::init().and_then(|world| world.run(|world| models(world, *mode == "exact"))))
        }
        _ => None,
    }
}

/// A choice of `n` that all ranks make alike.
fn below(random: &mut Generator, n: usize) -> usize {
    (random.next_u64() % n as u64) as usize
}

/// Layers of either element type; one weight may be used twice, some not at all.
struct Model {
    singles: Vec<Tensor<f32>>,
    doubles: Vec<Tensor<f64>>,
    shared: bool,
}

impl Module for Model {
    fn visit(&self, visitor: &mut autograd_core::nn::Visitor<'_>) {
        visitor.enter("singles", &self.singles);
        visitor.enter("doubles", &self.doubles);
        if let (true, Some(first)) = (self.shared, self.singles.first()) {
            visitor.enter("again", first);
        }
    }
}

impl Model {
    fn random(random: &mut Generator) -> Self {
        let width = 1 + below(random, 6);
        let singles = 1 + below(random, 4);
        let doubles = below(random, 4);
        let shared = below(random, 2) == 0;
        random.clone().run(|| Self {
            singles: (0..singles).map(|_| parameter(Tensor::randn([width, width]))).collect(),
            doubles: (0..doubles).map(|i| parameter(Tensor::randn([width, i + 1]))).collect(),
            shared,
        })
    }

    /// The mean loss of rows; parameters in `unused` take no part.
    fn loss(&self, x: &Tensor<f32>, unused: u64) -> Tensor<f64> {
        let used = |i: usize| unused >> i & 1 == 0;
        let mut h = x.clone();
        for (i, w) in self.singles.iter().enumerate().filter(|(i, _)| used(*i)) {
            h = h.matmul(w).tanh();
            if i == 0 && self.shared {
                h = h.matmul(w);
            }
        }
        let h = h.cast::<f64>();
        let start = h.square().mean_axes([1]);
        let wide = self.doubles.iter().enumerate().filter(|(i, _)| used(8 + i));
        wide.fold(start, |sum, (_, w)| sum + h.matmul(w).sin().sum_axes([1])).mean()
    }
}

/// The parts of a rank, each with the loss of some rows: those before the last are accumulated.
fn parts(random: &mut Generator, ranks: usize) -> Vec<Vec<usize>> {
    (0..ranks).map(|_| (0..1 + below(random, 3)).map(|_| below(random, 5)).collect()).collect()
}

fn models(world: &World, exact: bool) -> Result<()> {
    set_threads();
    for seed in 0..MODELS {
        let mut random = Generator::new(seed);
        let model = Model::random(&mut random);
        let expected = Model::random(&mut Generator::new(seed));
        let unused = random.next_u64() & random.next_u64();
        let (first, others) = (1 + below(&mut random, 200), 1 + below(&mut random, 200));
        let width = model.singles[0].dim(0);
        if world.rank() > 0 {
            // Replaced by those of rank 0.
            autograd_core::no_grad().run(|| model.singles[0].fill(7.0))?;
        }
        let overlap = below(&mut random, 2) == 0;
        let parallel = DataParallel::new(world, &model)?.buckets(first, others).overlap(overlap);
        let micro_batch = 1 + below(&mut random, 4);
        let mut parallel = if exact { parallel.reproducible(micro_batch) } else { parallel };
        for _ in 0..2 {
            match exact {
                true => step_exactly(world, &model, &mut parallel, &mut random, unused)?,
                false => {
                    step(world, [&model, &expected], width, &mut parallel, &mut random, unused)?
                }
            }
        }
        parallel.check_in_step(&grads(&model).collect())?;
        if exact {
            world.on_root(|| {
                for (name, grad) in grads(&model) {
                    println!("{seed} {name} {}", elements(&grad));
                }
            });
        }
    }
    Ok(())
}

fn grads(model: &Model) -> impl Iterator<Item = (String, AnyTensor)> {
    let all = model.distinct_parameters().into_iter();
    all.filter_map(|(name, tensor)| Some((name, tensor.grad()?)))
}

/// The elements in digits that no other number has.
fn elements(tensor: &AnyTensor) -> String {
    match tensor {
        AnyTensor::Float32(x) => format!("{:?}", x.to_vec()),
        AnyTensor::Float64(x) => format!("{:?}", x.to_vec()),
        _ => unreachable!("a gradient is of floats"),
    }
}

/// One step of all ranks, compared with one backward of all rows.
fn step(
    world: &World,
    [model, expected]: [&Model; 2],
    width: usize,
    parallel: &mut DataParallel<'_>,
    random: &mut Generator,
    unused: u64,
) -> Result<()> {
    // Some ranks use less.
    let unused_of: Vec<u64> = (0..world.size())
        .map(|_| if below(random, 3) == 0 { unused | random.next_u64() & 0xf0f } else { unused })
        .collect();
    let parts = parts(random, world.size());
    let total: usize = parts.iter().flatten().sum();
    let mut x = |rows: usize| {
        let mut generator = Generator::new(random.next_u64());
        generator.run(|| Tensor::<f32>::randn([rows, width]))
    };
    let mut all = Vec::new();
    for (parts, unused) in parts.iter().zip(&unused_of) {
        all.push(parts.iter().map(|&rows| (x(rows), *unused)).collect::<Vec<_>>());
    }
    for (x, unused) in all.iter().flatten().filter(|(x, _)| !x.is_empty()) {
        // With weights, as the parts differ in length.
        (expected.loss(x, *unused) * (x.dim(0) as f64 / total as f64)).backward()?;
    }
    let loss = |x: &Tensor<f32>, unused| match x.is_empty() {
        true => Tensor::from(f64::NAN),
        false => model.loss(x, unused),
    };
    let own = &all[world.rank()];
    let Some(((last, unused), before)) = own.split_last() else { return Ok(()) };
    for (x, unused) in before {
        parallel.accumulate(&loss(x, *unused), x.dim(0))?;
    }
    let report = parallel.backward(&loss(last, *unused), last.dim(0))?;
    assert_eq!(report.items, total);
    let names: Vec<String> =
        model.distinct_parameters().into_iter().map(|(name, _)| name).collect();
    let both = model.distinct_parameters().into_iter().zip(expected.distinct_parameters());
    for ((name, found), (_, expected)) in both {
        let (found, expected) = (found.grad(), expected.grad());
        assert_eq!(found.is_some(), expected.is_some(), "{name} of {names:?}");
        let (Some(found), Some(expected)) = (found, expected) else { continue };
        let difference = |found: Tensor<f64>, expected: Tensor<f64>| {
            (found - &expected).abs().max().item() / (1.0 + expected.abs().max().item())
        };
        let (most, bound) = match (found, expected) {
            (AnyTensor::Float32(a), AnyTensor::Float32(b)) => {
                (difference(a.cast(), b.cast()), 1e-5)
            }
            (AnyTensor::Float64(a), AnyTensor::Float64(b)) => (difference(a, b), 1e-5),
            _ => unreachable!("of one type"),
        };
        assert!(most < bound, "{name}: {most}");
    }
    Ok(())
}

/// One step of rows that are the same for any number of ranks.
fn step_exactly(
    world: &World,
    model: &Model,
    parallel: &mut DataParallel<'_>,
    random: &mut Generator,
    unused: u64,
) -> Result<()> {
    let rows = below(random, 30);
    let shards = autograd_mpi::Shards { rows, batch: rows, seed: 1 };
    let seed = random.next_u64();
    let width = model.singles[0].dim(0);
    let x = Generator::new(seed).run(|| Tensor::<f32>::randn([rows, width]));
    autograd_core::seed(seed);
    for rows in parallel.epoch(&shards, 0) {
        let report = parallel.step(&rows, |rows| {
            let x = x.index_select(0, rows);
            // Drawn anew for each micro-batch, and special now and then.
            let noise = Tensor::<f32>::randn([1]).cast::<f64>() * 0.1 + 1.0;
            let scale = if seed.is_multiple_of(7) && rows.to_vec().contains(&3) {
                f64::INFINITY
            } else {
                1e3
            };
            Ok((model.loss(&x, unused) * noise * scale).sum())
        })?;
        world.on_root(|| println!("{:e} {} {:?}", report.loss, report.items, report.unused));
    }
    Ok(())
}

fn gradients_agree() -> Outcome {
    for ranks in [1, 2, 3, 4] {
        Job::new(ranks, "models plain").lines()?;
    }
    Ok(())
}

fn bits_are_equal() -> Outcome {
    let expected = Job::new(1, "models exact").lines()?;
    let text = expected.join("\n");
    check(expected.len() > 100 && text.contains("inf") && text.contains("NaN"), || text.clone())?;
    for (ranks, threads) in [(2, 1), (2, 2), (3, 1), (4, 1)] {
        let found = Job::new(ranks, "models exact").threads(threads).lines()?;
        check(found == expected, || {
            let first = found.iter().zip(&expected).find(|(found, expected)| found != expected);
            format!("{ranks} ranks differ: {first:?}")
        })?;
    }
    Ok(())
}
