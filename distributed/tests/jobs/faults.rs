//! Faults on one rank: the job ends by itself, with a message that names the rank and the cause.

use std::path::Path;
use std::process::{self, Command};
use std::thread;
use std::time::Duration;

use autograd_core::nn::{Linear, Module};
use autograd_core::prelude::*;
use autograd_core::safetensors::SafeTensors;
use autograd_mpi::{DataParallel, Result, World};

use crate::driver::{Job, Outcome, Test, check, folder, names_in};

pub const TESTS: &[Test] = &[
    ("fault: a panic in forward", || ends("forward", &["rank 1 of 2: it panicked", "no such row"])),
    ("fault: a panic in backward", || {
        ends("backward", &["rank 1 of 2: it panicked in a backward", "a bad slope"])
    }),
    ("fault: a panic in an overlapped backward", || {
        ends("overlapped", &["rank 1 of 2: it panicked in a backward", "a bad slope"])
    }),
    ("fault: a panic in a hook", || {
        ends("hook", &["rank 1 of 2: it panicked in a backward", "a bad hook"])
    }),
    ("fault: a panic that is caught", || {
        ends("caught", &["rank 1 of 2: it panicked in a backward"])
    }),
    ("fault: abort", || ends("abort", &["rank 1 of 2: the data are gone"])),
    ("fault: an error of the program", || ends("error", &["rank 1 of 2: no such file"])),
    ("fault: another number of parameters", || {
        ends("count", &["rank 1", "must be as on rank 0, none, found parameter `1.weight`"])
    }),
    ("fault: another shape", || {
        ends("shape", &["rank 1", "[2, 3] of float32, found [2, 4] of float32"])
    }),
    ("fault: a skipped step", || {
        ends("skipped", &["rank 0 sums gradients in backward (bucket 0 of 8 numbers), rank 1 ends"])
    }),
    ("fault: a rank that hangs", || {
        ends("hangs", &["rank 0 of 2: no answer within 1s where it sums gradients in backward"])
    }),
    ("fault: a killed rank", || ends("killed", &["rank 1", "signal 9"])),
    ("fault: a full disk", full_disk),
];

pub fn run(job: &[&str]) -> Option<Result<()>> {
    let ["fault", fault, ..] = job else { return None };
    let path = job.get(2).copied().unwrap_or_default();
    let world = World::init().map(|world| match *fault {
        "skipped" => world.check_calls(true),
        "hangs" => world.timeout(Duration::from_secs(1)),
        "cut" => world.timeout(Duration::from_secs(2)),
        _ => world,
    });
    Some(world.and_then(|world| world.run(|world| faulty(world, fault, path))))
}

#[py_layer]
impl Steep {
    type Attrs = bool;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor, bad: bool) -> Tensor {
        ctx.set_attrs(bad);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor) -> Tensor {
        assert!(!ctx.attrs(), "a bad slope");
        dy * 2.0
    }
}

fn faulty(world: &World, fault: &str, path: &str) -> Result<()> {
    let bad = world.rank() == 1;
    let is = |name: &str| bad && fault == name;
    let width = if is("shape") { 4 } else { 3 };
    let net: Vec<_> = (0..1 + usize::from(is("count"))).map(|_| Linear::new(width, 2)).collect();
    let mut parallel = DataParallel::new(world, &net)?;
    if fault == "overlapped" {
        parallel = parallel.buckets(8, 8);
    }
    let x = Tensor::<f32>::ones([4, 3]);
    if is("hook") {
        let _ = net[0].weight.register_hook(|_| panic!("a bad hook"))?;
    }
    let steps = if fault == "cut" { 10_000 } else { 5 };
    for step in 0..steps {
        let now = step == 3;
        if now && is("skipped") {
            return Ok(());
        }
        if now && is("forward") {
            panic!("no such row");
        }
        if now && is("abort") {
            world.abort("the data are gone");
        }
        if now && is("error") {
            return Err(autograd_core::Error::custom("no such file").into());
        }
        if now && is("hangs") {
            thread::sleep(Duration::from_secs(50));
        }
        if now && is("killed") {
            let killed = Command::new("kill").args(["-9", &process::id().to_string()]).status();
            assert!(killed.is_ok_and(|status| status.success()));
            thread::sleep(Duration::from_secs(50));
        }
        let bad = is("backward") || is("caught") || is("overlapped");
        let loss = Steep::apply(&net[0].forward(&x), now && bad).mean();
        let mut backward = || parallel.backward(&loss, 4).map(drop);
        if fault == "caught" {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(backward));
            assert!(caught.is_ok(), "the job has ended before");
        } else {
            backward()?;
        }
        if fault == "cut" {
            world.on_root(|| println!("step {step}"));
            thread::sleep(Duration::from_millis(2));
        }
        if fault == "disk" {
            let written = world.on_root(|| {
                let mut file = SafeTensors::new();
                file.insert_under("net", net.state_dict());
                if now {
                    file.insert("large", Tensor::<f32>::zeros([1 << 20]));
                }
                file.save(Path::new(path))
            });
            world.agree(written.unwrap_or(Ok(())))?;
        }
    }
    Ok(())
}

/// Runs a faulty job: it must end in time, without success and with these parts in what it prints.
fn ends(fault: &str, parts: &[&str]) -> Outcome {
    let ended = Job::new(2, format!("fault {fault}")).run();
    let seconds = ended.took.as_secs_f64();
    check(!ended.success, || format!("the job was successful:\n{}", ended.text))?;
    check(seconds < 10.0, || format!("it took {seconds:.1} s:\n{}", ended.text))?;
    let missing: Vec<_> = parts.iter().filter(|part| !ended.text.contains(**part)).collect();
    check(missing.is_empty(), || format!("{missing:?} is missing in:\n{}", ended.text))
}

fn full_disk() -> Outcome {
    let folder = folder("disk");
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
        .arg(&folder)
        .output();
    if !mount.is_ok_and(|mount| mount.status.success()) {
        return Err("skipped: a small file system cannot be mounted here".into());
    }
    let path = folder.join("net.safetensors");
    let parts = ["rank 0", "net.safetensors", "No space left on device"];
    let ended = ends(&format!("disk {}", path.display()), &parts);
    let whole = SafeTensors::load(&path).map(|file| file.tensors.len());
    let names = names_in(&folder);
    let unmounted = Command::new("umount").arg(&folder).status();
    let _ = std::fs::remove_dir_all(&folder);
    ended?;
    check(unmounted.is_ok_and(|status| status.success()), || "umount".into())?;
    check(names == ["net.safetensors"], || format!("files: {names:?}"))?;
    check(matches!(whole, Ok(2)), || format!("the file of the step before: {whole:?}"))
}
