//! What ranks do together beside training, and the checks at the start.

use autograd_core::nn::{Buffer, Linear, Module, parameter};
use autograd_core::{Tensor, after_backward};
use autograd_mpi::{DataParallel, Error, Result, World};

use crate::driver::{Job, Outcome, Test, check};

pub const TESTS: &[Test] = &[
    ("world: sums, means, rows, broadcast, agree", together),
    ("errors: the same on all ranks, and all go on", errors),
    ("checked calls", checked),
];

pub fn run(job: &[&str]) -> Option<Result<()>> {
    let program: fn(&World) -> Result<()> = match job {
        ["world"] => world,
        ["errors"] => fails,
        ["checked"] => {
            let world = World::init().map(|world| world.check_calls(true));
            return Some(world.and_then(|world| world.run(fails)));
        }
        _ => return None,
    };
    Some(World::init().and_then(|world| world.run(program)))
}

fn world(world: &World) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    assert_eq!((world.local_rank(), world.local_size()), (rank, size));
    world.barrier()?;
    let n = size as f64;
    assert_eq!(world.sum(&[1.0, rank as f64])?, [n, n * (n - 1.0) / 2.0]);
    assert_eq!(world.mean(2.0 * (n + rank as f64), size + rank)?, 2.0);
    assert!(world.mean(0.0, 0)?.is_nan());

    // Rank `r` has `r` rows.
    let rows = Tensor::full([rank, 2], rank as i64);
    let all = world.all_gather(&rows)?;
    let expected: Vec<i64> = (0..size).flat_map(|rank| vec![rank as i64; 2 * rank]).collect();
    assert_eq!((all.shape(), all.to_vec()), (&[size * (size - 1) / 2, 2][..], expected));
    let flags = world.all_gather(&Tensor::from(vec![rank == 1]))?;
    assert_eq!(flags.to_vec(), (0..size).map(|rank| rank == 1).collect::<Vec<_>>());

    let w = parameter(Tensor::<f64>::full([3], rank as f64));
    world.broadcast(&w, size - 1)?;
    assert_eq!(w.to_vec(), [n - 1.0; 3]);
    assert!(matches!(world.broadcast(&w, size), Err(Error::Argument { op: "broadcast", .. })));

    assert_eq!(world.on_root(|| 7), (rank == 0).then_some(7));
    assert_eq!(world.agree(Ok::<_, String>(rank))?, rank);
    let failed = world.agree(if rank == 0 { Err("the disk is full") } else { Ok(()) });
    let text = "agree: rank 0 failed: the disk is full";
    assert_eq!(failed.unwrap_err().to_string(), text);

    let second = World::init().unwrap_err().to_string();
    assert_eq!(second, "MPI: it was started before in this process, which is possible once");
    buffers(world)
}

#[derive(Module)]
struct WithBuffer {
    layer: Linear,
    mean: Buffer<f64>,
}

fn buffers(world: &World) -> Result<()> {
    let of = |x: f64| Buffer::new(Tensor::from(vec![x, 2.0 * x]));
    let net = WithBuffer { layer: Linear::new(3, 2), mean: of(world.rank() as f64) };
    let parallel = DataParallel::new(world, &net)?;
    parallel.check_in_step(&net.state_dict())?;
    assert_eq!(net.mean.to_vec(), [0.0, 0.0]);
    let now = 5.0 + world.rank() as f64;
    net.mean.fill(now)?;
    if world.size() > 1 {
        let error = parallel.check_in_step(&net.state_dict()).unwrap_err().to_string();
        assert!(error.contains("`mean`"), "{error}");
    }
    parallel.sync_buffers()?;
    parallel.check_in_step(&net.state_dict())?;
    assert_eq!(net.mean.to_vec(), [5.0, 5.0]);
    Ok(())
}

/// The text of the error that all ranks must get.
#[track_caller]
fn failed<T>(result: Result<T>, all: &[&str]) {
    let text = result.err().map_or_else(|| "no error".into(), |error| error.to_string());
    assert!(all.iter().all(|part| text.contains(part)), "{text}");
}

fn fails(world: &World) -> Result<()> {
    let (rank, last) = (world.rank(), world.size() - 1);
    let on_last = format!("rank {last}");
    let or_here = |here: &'static str, there: &'static str| match rank == last {
        true => vec![here],
        false => vec![on_last.as_str(), there],
    };
    // Models that differ on the last rank.
    let width = if rank == last { 4 } else { 3 };
    let shape =
        "parameter `weight` must be as on rank 0, [2, 3] of float32, found [2, 4] of float32";
    failed(DataParallel::new(world, &Linear::<f32>::new(width, 2)), &or_here(shape, shape));
    let two = |n: usize| (0..n).map(|_| Linear::<f32>::new(2, 2)).collect::<Vec<_>>();
    let count = "must be as on rank 0, none, found parameter `2.weight`";
    let layers = two(if rank == last { 3 } else { 2 });
    failed(DataParallel::new(world, &layers), &or_here(count, count));

    // Of several differences the first is named.
    let names =
        "the next tensor must be as on rank 0, parameter `0.bias`, found parameter `1.weight`";
    let layers = two(3);
    let without = vec![Linear::<f32>::new(2, 2).without_bias(), Linear::new(2, 2)];
    let layers = if rank == last { &without } else { &layers };
    failed(DataParallel::new(world, layers), &or_here(names, names));
    let dtype =
        "parameter `weight` must be as on rank 0, [2, 3] of float32, found [2, 3] of float64";
    let result = match rank == last {
        true => DataParallel::new(world, &Linear::<f64>::new(3, 2)),
        false => DataParallel::new(world, &Linear::<f32>::new(3, 2)),
    };
    failed(result, &or_here(dtype, dtype));

    // Arguments that differ, or are none.
    let rows = Tensor::<f32>::ones([2, width]);
    let row = "all_gather: a row of `rows` must be as on rank 0, [3] of float32, found [4] of";
    failed(world.all_gather(&rows), &or_here(row, row));
    failed(world.all_gather(&Tensor::from(1.0_f32)), &["`rows` must be a tensor with axes"]);
    let tensor = "broadcast: `tensor` must be as on rank 0, [2, 3] of float32, found [2, 4] of";
    failed(world.broadcast(&rows, 0), &or_here(tensor, tensor));
    let len = "sum: the length of `numbers` must be as on rank 0, 3, found 4";
    failed(world.sum(&vec![1.0; width]), &or_here(len, len));

    // A layer that no rank has used.
    let net = two(2);
    let mut parallel = DataParallel::new(world, &net)?;
    let report = parallel.backward(&net[0].forward(&Tensor::ones([3, 2])).mean(), 3)?;
    assert_eq!(report.unused, ["1.weight", "1.bias"]);
    assert!(net[0].weight.grad().is_some() && net[1].weight.grad().is_none());

    // An error in a hook of one rank: no rank writes a gradient, and the next step works on all.
    let net = Linear::<f64>::new(3, 2);
    let mut parallel = DataParallel::new(world, &net)?.buckets(8, 8);
    let x = Tensor::<f64>::ones([4, 3]);
    let hook = net.weight.register_hook(move |_| match rank == last {
        true => Err("out of luck".into()),
        false => Ok(None),
    });
    let hook = hook?;
    let called = std::rc::Rc::new(std::cell::Cell::new(false));
    let inside = called.clone();
    after_backward(move || {
        inside.set(true);
        Ok(())
    });
    let result = parallel.backward(&net.forward(&x).mean(), 4);
    failed(result, &or_here("out of luck", "out of luck"));
    assert!(net.weight.grad().is_none() && net.bias.as_ref().is_some_and(|b| b.grad().is_none()));
    assert!(!called.get());
    assert!(hook.remove());
    let (seen, weight) = (std::rc::Rc::new(std::cell::Cell::new(0)), net.weight.clone());
    let inside = seen.clone();
    after_backward(move || {
        inside.set(1 + weight.grad().map_or(0, |grad| grad.len()));
        Ok(())
    });
    let report = parallel.backward(&net.forward(&x).mean(), 4)?;
    assert_eq!((report.items, seen.get()), (4 * world.size(), 1 + 6));
    assert!(net.weight.grad().is_some_and(|grad| grad.to_vec() == [0.5; 6]));

    // The loss of a step fails on one rank; so do bad losses.
    let rows = Tensor::from(vec![0_i64, 1]);
    let result = parallel.step(&rows, |rows| match rank == last {
        true => Err(autograd_core::Error::custom("no data")),
        false => Ok(net.forward(&x.index_select(0, rows)).mean()),
    });
    failed(result, &or_here("no data", "no data"));
    failed(
        parallel.backward(&net.forward(&x), 4),
        &["backward: `loss` must be of one element, the mean over the items, found shape [4, 2]"],
    );

    // A call in the loss would come between the sums of gradients.
    let result = parallel.step(&rows, |rows| {
        world.barrier()?;
        Ok(net.forward(&x.index_select(0, rows)).mean())
    });
    failed(result, &["barrier: `self` must be free; call it before or after the backward"]);

    // No rank has items.
    let report = parallel.backward(&Tensor::from(f64::NAN), 0)?;
    assert_eq!((report.items, report.loss.is_nan()), (0, true));

    // A frozen parameter that wants a gradient later.
    let frozen = Linear::<f64>::new(3, 1);
    frozen.weight.set_stop_gradient(true);
    let mut parallel = DataParallel::new(world, &frozen)?;
    assert_eq!(parallel.backward(&frozen.forward(&x).mean(), 1)?.unused, Vec::<String>::new());
    frozen.weight.set_stop_gradient(false);
    let result = parallel.backward(&frozen.forward(&x).mean(), 1);
    failed(
        result,
        &["the parameter `weight` wanted no gradient when DataParallel::new was called"],
    );

    // Reproducible steps check what they depend on.
    let net = Linear::<f64>::new(3, 2);
    let mut parallel = DataParallel::new(world, &net)?.reproducible(2);
    autograd_core::seed(rank as u64);
    let mut step = |rows: &[i64]| {
        parallel.step(&Tensor::from(rows), |rows| Ok(net.forward(&x.index_select(0, rows)).mean()))
    };
    if world.size() > 1 {
        failed(step(&[0, 1]), &["call `autograd_core::seed` with one number", "different states"]);
        autograd_core::seed(1);
        failed(
            step(&[0]),
            &["`micro-batches` must be", "take the rows from `DataParallel::epoch`"],
        );
    }
    autograd_core::seed(1);
    let report = step(if rank == last { &[0, 1, 2] } else { &[0, 1] })?;
    assert_eq!(report.items, 2 * world.size() + 1);
    failed(
        parallel.accumulate(&net.forward(&x).mean(), 3),
        &["`items` must be at most `micro_batch` = 2"],
    );
    Ok(())
}

fn together() -> Outcome {
    for ranks in [1, 2, 4] {
        Job::new(ranks, "world").lines()?;
    }
    Ok(())
}

fn errors() -> Outcome {
    for ranks in [2, 4] {
        Job::new(ranks, "errors").lines()?;
    }
    Ok(())
}

fn checked() -> Outcome {
    let lines = Job::new(2, "checked").lines()?;
    check(lines.is_empty(), || lines.join("\n"))
}
