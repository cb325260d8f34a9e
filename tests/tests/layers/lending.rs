//! User code may write to tensors that a backward, a program or a checker passes to it: no other code sees
//! that. Changes of a tensor that wants a gradient are refused.

use std::sync::{Arc, Mutex};

use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Fetch, Init, Program, Variable, gradients};
use autograd_core::{
    BackwardOptions, DType, Error, GradOptions, HookResult, backward, checkpoint, grad_with,
    gradcheck, gradgradcheck, jacobian, jvp, saved_tensors_hooks, vjp,
};
use support::leaf;

/// Few numbers, which are inline, and many, which are in a shared buffer.
const COUNTS: [usize; 2] = [3, 1000];

fn data(count: usize) -> Vec<f64> {
    (0..count).map(|i| 0.5 + (i % 7) as f64 * 0.25).collect()
}

/// Writes to a tensor in every possible way, as far as that is allowed.
fn spoil(tensor: &Tensor<f64>) {
    let mut other = tensor.clone();
    let _ = tensor.fill(100.0);
    let _ = tensor.copy_from(&Tensor::full(tensor.shape(), 50.0));
    let _ = other.try_add_assign(1.0);
    if tensor.ndim() == 1 {
        let _ = other.set_item(&[0], 7.0);
    }
    // Through another handle of the same data.
    let _ = tensor.detach().fill(-3.0);
}

/// The same, without the last write, which needs another handle.
fn change(tensor: &Tensor<f64>) {
    let mut other = tensor.clone();
    let _ = tensor.fill(100.0);
    let _ = tensor.copy_from(&Tensor::full(tensor.shape(), 50.0));
    let _ = other.try_add_assign(1.0);
    let _ = other.set_item(&vec![0; tensor.ndim()], 7.0);
}

fn spoil_any(tensor: &AnyTensor) {
    match tensor {
        AnyTensor::Float64(tensor) => spoil(tensor),
        AnyTensor::Float32(tensor) => tensor.fill(100.0).unwrap(),
        AnyTensor::Int64(tensor) => tensor.fill(1).unwrap(),
        other => panic!("not here: {other}"),
    }
}

// Programs.

/// A program with a function in it: all variables and gradients are fetched, in the order of their names.
struct Ran {
    fetched: Vec<Vec<f64>>,
    parameters: Vec<Vec<f64>>,
    fed: Vec<f64>,
}

/// Builds `y = x² + w` by a function of `x` and `w`, between operators that read the same variables before
/// and after it; runs it twice.
fn run(count: usize, place: impl Fn(&Program, [&Variable; 4]) -> Variable) -> Ran {
    let program = Program::new();
    let x = program.data("x", [count], DType::Float64).unwrap();
    x.set_stop_gradient(false);
    let w = program.create_parameter("w", [count], DType::Float64, Init::Constant(2.0)).unwrap();
    let h = x.tanh().unwrap();
    let before = &h * &w;
    let out = program.current_block().create_var("y", DType::Float64, [count]).unwrap();
    // Without gradients.
    let c = program.data("c", [count], DType::Float64).unwrap();
    let d = c.exp().unwrap();
    let y = place(&program, [&h, &w, &out, &d]);
    let after = (&h * &w) + &x;
    let loss = (&y * &y + &after * &before).sum().unwrap();
    let grads = gradients(&[&loss], &[&x, &w]).unwrap();
    let (dx, dw) = (grads[0].clone().unwrap(), grads[1].clone().unwrap());
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    let [fed, constant] = [(); 2].map(|()| Tensor::from(&data(count)[..]));
    let fetch: [&dyn Fetch; 9] = [&h, &before, &y, &after, &loss, &dx, &dw, &c, &d];
    let mut fetched = Vec::new();
    for _ in 0..2 {
        let run = executor.run(&program, &[("x", &fed), ("c", &constant)], &fetch).unwrap();
        fetched.extend(run.iter().map(|value| value.downcast_ref::<f64>().unwrap().to_vec()));
        // Fetched values belong to the caller.
        run.iter().for_each(spoil_any);
        spoil_any(&executor.parameter("w").unwrap());
    }
    let parameters = vec![executor.parameter("w").unwrap().downcast_ref::<f64>().unwrap().to_vec()];
    assert_eq!(constant.to_vec(), data(count));
    Ran { fetched, parameters, fed: fed.to_vec() }
}

type F = Tensor<f64>;

fn forward(x: &F, w: &F) -> F {
    x.square() + w
}

fn backward_of(x: &F, _w: &F, _y: &F, dy: &F) -> (F, F) {
    (dy * x * 2.0, dy * 1.0)
}

fn listed(f: impl Fn(&[&F]) -> Vec<F>, args: &[Option<AnyTensor>]) -> Vec<Option<AnyTensor>> {
    let args: Vec<&F> =
        args.iter().map(|arg| arg.as_ref().unwrap().downcast_ref().unwrap()).collect();
    f(&args).into_iter().map(|value| Some(value.into())).collect()
}

#[test]
fn functions_of_a_program_write_into_what_they_are_given() {
    type Place = fn(&Program, [&Variable; 4], bool) -> Variable;
    const PLACES: [(&str, Place); 6] = [
        ("py_func", |program, [x, w, out, _], spoils| {
            let call = program
                .py_func(move |x: &F, w: &F| {
                    let y = forward(x, w);
                    if spoils {
                        [x, w].into_iter().for_each(spoil);
                    }
                    y
                })
                .x([x, w])
                .out(out)
                .backward_func(backward_of);
            call.call().unwrap()
        }),
        ("its backward", |program, [x, w, out, _], spoils| {
            let call = program.py_func(forward).x([x, w]).out(out).backward_func(
                move |x: &F, w: &F, y: &F, dy: &F| {
                    let grads = backward_of(x, w, y, dy);
                    if spoils {
                        [x, w, y, dy].into_iter().for_each(spoil);
                    }
                    grads
                },
            );
            call.call().unwrap()
        }),
        ("py_func_list", |program, [x, w, out, _], spoils| {
            let call = program
                .py_func_list(move |args| {
                    let value = listed(|args| vec![forward(args[0], args[1])], args);
                    if spoils {
                        args.iter().flatten().for_each(spoil_any);
                    }
                    Ok(value)
                })
                .x(&[x, w])
                .out(&[out])
                .backward_func(move |args| {
                    let back =
                        |a: &[&F]| <[F; 2]>::from(backward_of(a[0], a[1], a[2], a[3])).into();
                    let value = listed(back, args);
                    if spoils {
                        args.iter().flatten().for_each(spoil_any);
                    }
                    Ok(value)
                });
            call.call().unwrap().remove(0)
        }),
        ("a closure of eager ops", |program, [x, w, ..], spoils| {
            let call = program
                .eager(move |x: &F, w: &F| {
                    let y = forward(x, w);
                    if spoils {
                        [x, w].into_iter().for_each(change);
                    }
                    y
                })
                .x([x, w]);
            call.call().unwrap()
        }),
        ("a closure of eager ops without gradients", |program, [x, w, out, d], spoils| {
            let closure = move |d: &F| {
                let y = d * 2.0;
                if spoils {
                    spoil(d);
                }
                y
            };
            let twice = program.eager(closure).x(d).call().unwrap();
            let plain = program.py_func(forward).x([x, w]).out(out).backward_func(backward_of);
            plain.call().unwrap() + twice
        }),
        ("an op", |program, [x, w, ..], spoils| {
            let op = move |x: &F, w: &F| Spoils::apply(x, w, spoils);
            program.py_layer(op).x([x, w]).call().unwrap()
        }),
    ];
    for count in COUNTS {
        for (name, place) in PLACES {
            let with = |spoils| run(count, |program, variables| place(program, variables, spoils));
            let (right, found) = (with(false), with(true));
            assert_eq!(found.fetched, right.fetched, "{name}");
            assert_eq!(found.parameters, [vec![2.0; count]], "{name}");
            assert_eq!(found.fed, data(count), "{name}");
        }
    }
}

/// `x² + w`, which writes to the tensors that its backward gets.
#[py_layer]
impl Spoils {
    type Saved = (Tensor<f64>, Tensor<f64>);
    type Attrs = bool;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        by: bool,
    ) -> Tensor<f64> {
        let y = x.square() + w;
        ctx.save_for_backward((x, &y));
        ctx.set_attrs(by);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, y) = ctx.saved_tensor();
        let (dx, dw) = (dy * x * 2.0, dy * 1.0);
        if *ctx.attrs() {
            [x, y].into_iter().for_each(change);
            // A gradient too, unless it is recorded.
            if dy.stop_gradient() { spoil(dy) } else { change(dy) }
        }
        Grads { x: dx, w: dw }
    }
}

#[test]
fn a_run_that_fails_leaves_what_is_kept_and_fed() {
    let program = Program::new();
    let x = program.data("x", [3], DType::Float64).unwrap();
    let w = program.create_parameter("w", [3], DType::Float64, Init::Constant(2.0)).unwrap();
    let out = program.current_block().create_var("y", DType::Float64, [3]).unwrap();
    let y = program
        .py_func(|x: &F, w: &F| -> Result<F, String> {
            [x, w].into_iter().for_each(spoil);
            Err("on purpose".into())
        })
        .x([&x, &w])
        .out(&out)
        .call()
        .unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    let fed = Tensor::from([1.0, 2.0, 3.0]);
    let given = Tensor::from([4.0, 5.0, 6.0]);
    executor.set_parameter("w", &given);
    let found = executor.run(&program, &[("x", &fed)], &[&y]).unwrap_err();
    assert!(found.to_string().contains("on purpose"), "{found}");
    let kept = executor.parameter("w").unwrap();
    assert_eq!(kept.downcast_ref::<f64>().unwrap().to_vec(), [4.0, 5.0, 6.0]);
    assert_eq!((fed.to_vec(), given.to_vec()), (vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0]));
}

#[test]
fn what_a_function_of_a_program_returned_and_kept_it_may_change_later() {
    for count in COUNTS {
        for eager in [false, true] {
            let program = Program::new();
            let x = program.data("x", [count], DType::Float64).unwrap();
            let kept = Tensor::full([count], 1.0);
            let (given, later) = (kept.clone(), kept.clone());
            let first = move |x: &F| {
                given.copy_from(x).unwrap();
                given.clone()
            };
            let second = move |x: &F| {
                later.fill(-1.0).unwrap();
                x * 1.0
            };
            let out =
                |name| program.current_block().create_var(name, DType::Float64, [count]).unwrap();
            let (y, z) = if eager {
                let (a, b) = (out("a"), out("b"));
                let y = program.eager(first).x(&x).out(&a).call().unwrap();
                (y, program.eager(second).x(&x).out(&b).call().unwrap())
            } else {
                let (a, b) = (out("a"), out("b"));
                let y = program.py_func(first).x(&x).out(&a).call().unwrap();
                (y, program.py_func(second).x(&x).out(&b).call().unwrap())
            };
            let sum = &y + &z;
            let fed = Tensor::from(&data(count)[..]);
            let run = Executor::new().run(&program, &[("x", &fed)], &[&y, &sum]).unwrap();
            let found: Vec<Vec<f64>> =
                run.iter().map(|value| value.downcast_ref::<f64>().unwrap().to_vec()).collect();
            assert_eq!(found[0], data(count), "eager: {eager}");
            assert_eq!(found[1], (&fed * 2.0).to_vec(), "eager: {eager}");
        }
    }
}

#[test]
fn what_a_program_took_from_a_traced_closure_is_its_own() {
    let program = Program::new();
    let x = program.data("x", [3], DType::Float64).unwrap();
    let kept = Tensor::from([1.0, 2.0, 3.0]);
    let inside = kept.clone();
    let y = program.trace(move |x: &F| x * &inside).x(&x).call().unwrap();
    kept.fill(100.0).unwrap();
    let fed = Tensor::from([1.0, 1.0, 1.0]);
    let run = Executor::new().run(&program, &[("x", &fed)], &[&y]).unwrap();
    assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [1.0, 2.0, 3.0]);
}

// Backward.

/// Two branches from one tensor: the user code is on the first.
struct Branches {
    x: Tensor<f64>,
    a: Tensor<f64>,
    b: Tensor<f64>,
    loss: Tensor<f64>,
    seed: Tensor<f64>,
}

impl Branches {
    /// The gradients of `a` and `b` are one tensor, which is the seed.
    fn new(count: usize) -> Self {
        let x = leaf(&data(count));
        let (a, b) = (x.exp(), x.sin());
        let loss = &a + &b;
        let seed = Tensor::from(&data(count)[..]);
        Self { x, a, b, loss, seed }
    }
}

type Register = fn(&Branches);

fn overwrite(grad: &F) -> HookResult<Option<F>> {
    if grad.stop_gradient() {
        spoil(grad)
    } else {
        change(grad)
    }
    Ok(None)
}

const HOOKS: [(&str, Register); 8] = [
    ("none", |_| {}),
    ("a hook on a tensor", |s| {
        let _ = s.a.register_hook(overwrite);
    }),
    ("a hook on the other tensor", |s| {
        let _ = s.b.register_hook(overwrite);
    }),
    ("a hook before an op", |s| {
        let _ = s.loss.graph_node().unwrap().register_before(|grads| {
            grads.iter().flatten().for_each(written);
            Ok(None)
        });
    }),
    ("a hook after an op", |s| {
        let _ = s.loss.graph_node().unwrap().register_after(|inputs, outputs| {
            inputs.iter().chain(outputs).flatten().for_each(written);
            Ok(None)
        });
    }),
    ("a hook after the next op", |s| {
        let _ = s.a.graph_node().unwrap().register_after(|_, outputs| {
            outputs.iter().flatten().for_each(written);
            Ok(None)
        });
    }),
    ("a hook on a leaf", |s| {
        let _ = s.x.register_hook(overwrite);
    }),
    ("a kept gradient", |s| s.a.retain_grads().unwrap()),
];

fn written(grad: &AnyTensor) {
    let AnyTensor::Float64(grad) = grad else { unreachable!() };
    overwrite(grad).unwrap();
}

#[test]
fn hooks_write_into_gradients() {
    // The gradient that a hook returns is passed on only there, so the other tensor's gradient is correct.
    for count in COUNTS {
        for create_graph in [false, true] {
            for (name, register) in HOOKS {
                let setup = Branches::new(count);
                register(&setup);
                let other = Arc::new(Mutex::new(Vec::new()));
                let seen = Arc::clone(&other);
                let watched = if name.contains("other") { &setup.a } else { &setup.b };
                let _ = watched.register_hook(move |grad| {
                    seen.lock().unwrap().push(grad.to_vec());
                    Ok(None)
                });
                let options = BackwardOptions::new().create_graph(create_graph);
                let (loss, seed) = (setup.loss.clone(), setup.seed.clone());
                seed.set_stop_gradient(!create_graph);
                backward(&[loss.into()], &[Some(seed.into())], options).unwrap();
                assert_eq!(setup.seed.to_vec(), data(count), "{name}, recorded: {create_graph}");
                let on_the_way = name.contains("before an op") || name.contains("after an op");
                if !on_the_way {
                    assert_eq!(other.lock().unwrap()[0], data(count), "{name}, {create_graph}");
                }
                assert_eq!(setup.x.to_vec(), data(count));
                setup.x.clear_grad();
            }
        }
    }
}

#[test]
fn a_gradient_that_was_kept_before_is_not_reached() {
    for count in COUNTS {
        let x = leaf(&data(count));
        x.square().sum().backward().unwrap();
        let first = x.grad().unwrap().to_vec();
        let _ = x.register_hook(|grad| {
            spoil(grad);
            Ok(Some(Tensor::zeros_like(grad)))
        });
        x.square().sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), first);
    }
}

/// A tensor that user code returns and writes to later.
#[test]
fn what_a_hook_returned_it_may_change_later() {
    for count in COUNTS {
        let (x, w) = (leaf(&data(count)), leaf(&data(count)));
        let scratch = Tensor::<f64>::zeros([count]);
        for (tensor, factor) in [(&x, 2.0), (&w, 3.0)] {
            let scratch = scratch.clone();
            let _ = tensor.register_hook(move |grad| {
                scratch.copy_from(&(grad * factor)).unwrap();
                Ok(Some(scratch.clone()))
            });
        }
        let (a, b) = (&x * 1.0, &w * 1.0);
        for tensor in [&a, &b] {
            let scratch = scratch.clone();
            let _ = tensor.register_hook(move |grad| {
                scratch.copy_from(&(grad * 5.0)).unwrap();
                Ok(Some(scratch.clone()))
            });
            let scratch = scratch_of(&tensor.clone());
            let _ = tensor.graph_node().unwrap().register_after(move |inputs, _| {
                let Some(AnyTensor::Float64(dx)) = &inputs[0] else { unreachable!() };
                scratch.copy_from(&(dx * 7.0)).unwrap();
                Ok(Some(vec![Some(scratch.clone().into())]))
            });
        }
        (&a + &b).sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), vec![70.0; count]);
        assert_eq!(w.grad().unwrap().to_vec(), vec![105.0; count]);
    }
}

/// One tensor for all tensors of a shape.
fn scratch_of(tensor: &Tensor<f64>) -> Tensor<f64> {
    static ALL: Mutex<Vec<Tensor<f64>>> = Mutex::new(Vec::new());
    let mut all = ALL.lock().unwrap();
    match all.iter().find(|scratch| scratch.shape() == tensor.shape()) {
        Some(scratch) => scratch.clone(),
        None => {
            all.push(Tensor::zeros_like(tensor));
            all[all.len() - 1].clone()
        }
    }
}

/// An op whose gradients are in a buffer that all its calls use.
#[py_layer]
impl Reuses {
    type Attrs = (Scratch, f64);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        scratch: Scratch,
        by: f64,
    ) -> Tensor<f64> {
        ctx.set_attrs((scratch, by));
        x * by
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (Scratch(scratch), by) = ctx.attrs();
        scratch.copy_from(&(dy * *by)).unwrap();
        scratch.clone()
    }
}

/// A tensor that is not recognized as one.
struct Scratch(Tensor<f64>);

#[test]
fn what_a_backward_returned_it_may_change_later() {
    for count in COUNTS {
        let scratch = Tensor::<f64>::zeros([count]);
        let (x, w) = (leaf(&data(count)), leaf(&data(count)));
        let a = Reuses::apply(&x, Scratch(scratch.clone()), 2.0);
        let b = Reuses::apply(&w, Scratch(scratch.clone()), 3.0);
        (&a + &b).sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), vec![2.0; count]);
        assert_eq!(w.grad().unwrap().to_vec(), vec![3.0; count]);
        scratch.fill(9.0).unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), vec![2.0; count]);
        assert_eq!(w.grad().unwrap().to_vec(), vec![3.0; count]);
    }
}

/// Writes to all tensors that a backward gets, including lists.
#[py_layer]
impl WritesInBackward {
    type Saved = (Tensor<f64>, Vec<Tensor<f64>>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        ws: &[&Tensor<f64>],
    ) -> (Tensor<f64>, Vec<Tensor<f64>>) {
        let ys: Vec<_> = ws.iter().map(|w| x * *w).collect();
        ctx.save_for_backward((
            x,
            [ws.iter().map(|w| (*w).clone()).collect(), ys.clone()].concat(),
        ));
        (x.exp(), ys)
    }

    fn backward(ctx: &BackwardContext<Self>, da: &Tensor<f64>, dys: &[Tensor<f64>]) -> Grads {
        let (x, kept) = ctx.saved_tensor();
        let mut dx = da * x.exp();
        let mut dws = Vec::new();
        for (dy, w) in dys.iter().zip(kept) {
            dx += dy * w;
            dws.push(dy * x);
        }
        for grad in dys.iter().chain([da]) {
            if grad.stop_gradient() { spoil(grad) } else { change(grad) }
        }
        change(x);
        kept.iter().for_each(change);
        Grads { x: dx, ws: dws }
    }
}

/// The same with few numbers, recorded in a small node.
#[py_layer]
impl WritesFew {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.exp();
        ctx.save_for_backward((x, &y));
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (x, y) = ctx.saved_tensor();
        assert_eq!((x.stop_gradient(), y.stop_gradient()), (false, false));
        let dx = dy * y;
        if dy.stop_gradient() {
            spoil(dy)
        } else {
            change(dy)
        }
        [x, y].into_iter().for_each(change);
        dx
    }
}

/// One saved tensor, borrowed in place.
#[py_layer]
impl WritesOne {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.exp();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let y = ctx.saved_tensor();
        let dx = dy * y;
        change(y);
        if dy.stop_gradient() {
            spoil(dy)
        } else {
            change(dy)
        }
        dx
    }
}

#[test]
fn a_backward_writes_into_what_it_is_lent() {
    type Run = fn(&Tensor<f64>, &Tensor<f64>) -> Tensor<f64>;
    const OPS: [(&str, Run, Run); 3] = [
        (
            "WritesInBackward",
            |x, w| {
                let (a, ys) = WritesInBackward::apply(x, &[w, w]);
                a + &ys[0] + &ys[1]
            },
            |x, w| x.exp() + x * w + x * w,
        ),
        ("WritesFew", |x, w| WritesFew::apply(x) * w, |x, w| x.exp() * w),
        ("WritesOne", |x, w| WritesOne::apply(x) * w, |x, w| x.exp() * w),
    ];
    for count in COUNTS {
        for (name, op, right) in OPS {
            // With leaves, and with the outputs of ops.
            for through in [false, true] {
                let all = |op: Run, create_graph: bool| {
                    let (x, w) = (leaf(&data(count)), leaf(&data(count)));
                    let inputs =
                        if through { [&x * 1.0, &w * 1.0] } else { [x.clone(), w.clone()] };
                    let y = op(&inputs[0], &inputs[1]);
                    let seed = Tensor::from(&data(count)[..]);
                    let mut found = Vec::new();
                    // A recorded backward that changes an output records that change.
                    for _ in 0..if create_graph { 1 } else { 2 } {
                        let options = GradOptions::new()
                            .seeds(vec![Some(seed.clone())])
                            .retain_graph(true)
                            .create_graph(create_graph);
                        let grads = grad_with(&[&y], &[&x, &w], options).unwrap();
                        let grads: Vec<Tensor<f64>> = grads.into_iter().flatten().collect();
                        found.extend(grads.iter().map(Tensor::to_vec));
                        if create_graph {
                            let sum = grads.iter().fold(Tensor::from(0.0), |s, g| s + g.sum());
                            let second = GradOptions::new().retain_graph(true);
                            match grad_with(&[&sum], &[&x, &w], second) {
                                Ok(second) => {
                                    found.extend(second.into_iter().flatten().map(|g| g.to_vec()))
                                }
                                // This backward itself has changed a tensor after ops saved it.
                                Err(Error::SavedTensorChanged { .. }) => {
                                    found.extend([vec![], vec![]]);
                                }
                                Err(error) => panic!("{error}"),
                            }
                        }
                    }
                    found.extend([&x, &w, &seed, &inputs[0], &inputs[1], &y].map(Tensor::to_vec));
                    found
                };
                for create_graph in [false, true] {
                    let (found, right) = (all(op, create_graph), all(right, create_graph));
                    for (i, (found, right)) in found.iter().zip(&right).enumerate() {
                        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs();
                        assert!(
                            found.is_empty() || found.iter().zip(right).all(near),
                            "{name}, recorded: {create_graph}, through: {through}, {i}: {found:?} {right:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn what_wants_a_gradient_is_not_changed_inside_of_a_backward() {
    type Change = fn(&Tensor<f64>) -> Result<(), Error>;
    const CHANGES: [(&str, Change); 5] = [
        ("fill", |x| x.fill(1.0)),
        ("copy_from", |x| x.copy_from(&Tensor::zeros_like(x))),
        ("add_assign", |x| x.clone().try_add_assign(1.0)),
        ("mul_assign", |x| x.clone().try_mul_assign(2.0)),
        ("set_item", |x| x.clone().set_item(&[0], 9.0)),
    ];
    for (op, change) in CHANGES {
        let w = leaf(&[1.0, 2.0]);
        let (h, parameter) = (&w * 1.0, w.clone());
        let found = Arc::new(Mutex::new(None));
        let error = Arc::clone(&found);
        let _ = h.register_hook(move |_| {
            *error.lock().unwrap() = change(&parameter).err();
            Ok(None)
        });
        h.sum().backward().unwrap();
        let found = found.lock().unwrap().take().unwrap().to_string();
        assert!(found.starts_with(op) && found.contains("no_grad()"), "{found}");
        assert_eq!(w.to_vec(), [1.0, 2.0]);
        // As everywhere else, it may be intended.
        let h = &w * 1.0;
        let parameter = w.clone();
        let _ = h.register_hook(move |_| {
            no_grad().run(|| change(&parameter)).unwrap();
            Ok(None)
        });
        h.sum().backward().unwrap();
        assert_ne!(w.to_vec(), [1.0, 2.0]);
    }
}

#[test]
fn what_packs_and_unpacks_writes_into_what_it_is_given() {
    for count in COUNTS {
        let x = leaf(&data(count));
        let y = {
            let _scope = saved_tensors_hooks(
                |tensor| {
                    let AnyTensor::Float64(tensor) = tensor else { unreachable!() };
                    let packed = tensor * 1.0;
                    spoil(tensor);
                    Ok(packed)
                },
                |packed: &F| {
                    let given = packed * 1.0;
                    let kept = given.clone();
                    AGAIN.set(Some(kept));
                    Ok(given.into())
                },
            );
            (&x * &x).exp() * &x
        };
        assert_eq!(x.to_vec(), data(count));
        y.sum().backward().unwrap();
        AGAIN.take().unwrap().fill(0.0).unwrap();
        let right = leaf(&data(count));
        ((&right * &right).exp() * &right).sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), right.grad().unwrap().to_vec());
    }
}

thread_local! {
    static AGAIN: std::cell::Cell<Option<Tensor<f64>>> = const { std::cell::Cell::new(None) };
}

/// Writes to the tensors that `jvp` gets.
#[py_layer]
impl WritesInJvp {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        let y = x * w;
        ctx.save_for_backward(&y);
        y
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * 1.0, w: dy * 1.0 }
    }

    fn jvp(
        ctx: &JvpContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        dx: &Tensor<f64>,
        dw: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        let mut dy = dx * w;
        if let Some(dw) = dw {
            dy += dw * x;
            if dw.stop_gradient() { spoil(dw) } else { change(dw) }
        }
        if dx.stop_gradient() {
            spoil(dx)
        } else {
            change(dx)
        }
        [x, w, ctx.saved_tensor()].into_iter().for_each(change);
        dy
    }
}

#[test]
fn a_jvp_writes_into_what_it_is_lent() {
    for count in COUNTS {
        for record in [false, true] {
            let [x, w, dx, dw] = [(); 4].map(|()| Tensor::from(&data(count)[..]));
            x.set_stop_gradient(!record);
            // Both inputs; one input and a constant; results of ops.
            let (y, dy) = jvp(
                |t| WritesInJvp::apply(&t[0], &t[1]),
                &[x.clone(), w.clone()],
                &[dx.clone(), dw.clone()],
            )
            .unwrap();
            let (_, one) = jvp(
                |t| WritesInJvp::apply(&t[0], &w),
                std::slice::from_ref(&x),
                std::slice::from_ref(&dx),
            )
            .unwrap();
            let (_, inner) = jvp(
                |t| {
                    let (a, b) = (&t[0] * 1.0, &t[1] * 1.0);
                    let y = WritesInJvp::apply(&a, &b);
                    y + a + b
                },
                &[x.clone(), w.clone()],
                &[dx.clone(), dw.clone()],
            )
            .unwrap();
            let product = (&x * &w).detach();
            assert_eq!(y.to_vec(), product.to_vec());
            assert_eq!(dy.to_vec(), (&dx * &w + &dw * &x).to_vec());
            assert_eq!(one.to_vec(), (&dx * &w).to_vec());
            assert_eq!(inner.to_vec(), (&dx * &w + &dw * &x + &dx + &dw).to_vec());
            for tensor in [x, w, dx, dw] {
                assert_eq!(tensor.to_vec(), data(count));
            }
        }
    }
}

#[test]
fn closures_that_are_differentiated_write_into_what_they_are_given() {
    for count in COUNTS {
        let (x, v) = (Tensor::from(&data(count)[..]), Tensor::from(&data(count)[..]));
        let f = |x: &Tensor<f64>| {
            let y = x.square();
            no_grad().run(|| x.detach().fill(3.0)).unwrap();
            y
        };
        // A tensor that a rule saved has changed, which is an error.
        for found in [
            vjp(|t| f(&t[0]), std::slice::from_ref(&x), &v).map(drop),
            jvp(|t| f(&t[0]), std::slice::from_ref(&x), std::slice::from_ref(&v)).map(drop),
            jacobian(f, &x).map(drop),
            gradcheck(|t| f(&t[0]).sum(), std::slice::from_ref(&x)),
            gradgradcheck(|t| f(&t[0]).sum(), std::slice::from_ref(&x)),
        ] {
            assert!(matches!(found.unwrap_err(), Error::SavedTensorChanged { .. }));
            assert_eq!((x.to_vec(), v.to_vec()), (data(count), data(count)));
        }
    }
}

#[test]
fn a_checkpoint_keeps_what_its_closure_returned() {
    for count in COUNTS {
        let x = leaf(&data(count));
        let kept = Arc::new(Mutex::new(None));
        let (inside, place) = (x.clone(), Arc::clone(&kept));
        let y = checkpoint(move || {
            let y = &inside * 2.0;
            *place.lock().unwrap() = Some(y.clone());
            y
        });
        let returned = kept.lock().unwrap().take().unwrap();
        no_grad().run(|| returned.fill(0.0)).unwrap();
        assert_eq!(y.to_vec(), (&x * 2.0).to_vec());
        y.sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), vec![2.0; count]);
    }
}

#[test]
fn what_an_op_saved_is_shown() {
    for count in COUNTS {
        let x = leaf(&data(count));
        for y in [x.exp(), WritesOne::apply(&x)] {
            let right = y.to_vec();
            for saved in y.graph_node().unwrap().saved_tensors().unwrap().into_iter().flatten() {
                let AnyTensor::Float64(saved) = saved else { unreachable!() };
                assert!(!saved.stop_gradient());
                change(&saved);
            }
            assert_eq!(y.to_vec(), right);
        }
    }
}

// A saved tensor has the `stop_gradient` that the tensor has outside.

thread_local! {
    static SEEN: std::cell::RefCell<Vec<[bool; 6]>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// An input, an input that has `stop_gradient`, one that is declared with it, an output, one that is marked,
/// and an output of integers.
type Kinds = (F, F, F, F, F, Tensor<i64>);

fn note(saved: &Kinds) {
    let (a, b, c, d, e, f) = saved;
    let [a, b, c, d, e] = [a, b, c, d, e].map(Tensor::stop_gradient);
    SEEN.with_borrow_mut(|seen| seen.push([a, b, c, d, e, f.stop_gradient()]));
}

macro_rules! says {
    ($name:ident, ($($args:tt)*)) => {
        #[py_layer($($args)*)]
        impl $name {
            type Saved = Kinds;

            fn forward(
                ctx: &mut ForwardContext<Self>,
                x: &Tensor<f64>,
                given: &Tensor<f64>,
                #[stop_gradient] declared: &Tensor<f64>,
            ) -> (Tensor<f64>, Tensor<f64>, Tensor<i64>) {
                let (y, marked, index) = (x * given * declared, x + 1.0, x.cast::<i64>());
                ctx.save_for_backward((x, given, declared, &y, &marked, &index));
                ctx.mark_non_differentiable(&marked);
                (y, marked, index)
            }

            fn backward(
                ctx: &BackwardContext<Self>,
                dy: &Tensor<f64>,
                _marked: Option<&Tensor<f64>>,
            ) -> Grads {
                let saved = ctx.saved_tensor();
                note(saved);
                let (x, given, declared, ..) = saved;
                Grads { x: dy * given * declared, given: dy * x * declared }
            }

            fn jvp(
                ctx: &JvpContext<Self>,
                x: &Tensor<f64>,
                given: &Tensor<f64>,
                dx: &Tensor<f64>,
                dgiven: Option<&Tensor<f64>>,
            ) -> (Tensor<f64>, Option<Tensor<f64>>) {
                let saved = ctx.saved_tensor();
                note(saved);
                let dy = dx * given * &saved.2;
                (dgiven.map_or(dy.clone(), |dgiven| dy + dgiven * x * &saved.2), None)
            }
        }
    };
}

says!(Says, ());
says!(SaysOnce, (once_differentiable));

#[test]
fn what_was_saved_says_of_gradients_what_the_tensor_says_outside() {
    const OUTSIDE: [bool; 6] = [false, true, true, false, true, true];
    for count in COUNTS {
        for once in [false, true] {
            let apply = |x: &F, given: &F, declared: &F| match once {
                false => Says::apply(x, given, declared),
                true => SaysOnce::apply(x, given, declared),
            };
            let x = leaf(&data(count));
            let [given, declared] = [(); 2].map(|()| Tensor::from(&data(count)[..]));
            for (create_graph, packed) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                let scope =
                    packed.then(|| saved_tensors_hooks(|x| Ok(x.clone()), |x| Ok(x.clone())));
                let (y, marked, index) = apply(&x, &given, &declared);
                drop(scope);
                let outside = [&x, &given, &declared, &y, &marked].map(Tensor::stop_gradient);
                assert_eq!(
                    (outside, index.stop_gradient()),
                    ([false, true, true, false, true], true)
                );
                let saved = y.graph_node().unwrap().saved_tensors().unwrap();
                let shown: Vec<bool> =
                    saved.iter().flatten().map(AnyTensor::stop_gradient).collect();
                assert_eq!(shown, OUTSIDE, "shown, packed: {packed}");
                for _ in 0..2 {
                    let options = GradOptions::new()
                        .seeds(vec![Some(Tensor::ones_like(&y))])
                        .retain_graph(true)
                        .create_graph(create_graph);
                    grad_with(&[&y], &[&x], options).unwrap();
                    let seen = SEEN.take();
                    assert_eq!(seen, [OUTSIDE], "{once} {create_graph} {packed}");
                }
            }
            let f = |t: &[F]| apply(&t[0], &given, &declared).0;
            for record in [false, true] {
                x.set_stop_gradient(!record);
                jvp(f, std::slice::from_ref(&x), std::slice::from_ref(&given)).unwrap();
                assert_eq!(SEEN.take(), [OUTSIDE], "jvp, recorded: {record}");
            }
        }
    }
}
