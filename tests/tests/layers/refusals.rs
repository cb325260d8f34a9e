//! Derivatives that do not exist give the same error for all shapes and element types of inputs and
//! outputs, from every function that may compute them.

use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Program, gradients};
use autograd_core::{
    BackwardOptions, DType, Error, GradOptions, backward, backward_to, checkpoint, detect_anomaly,
    grad, grad_with, gradgradcheck_any, hvp, jvp, saved_tensors_hooks, vjp,
};
use ndarray::{ArrayD, ArrayViewD};

const ONCE: &str = "its backward is `once_differentiable`: there is no second derivative";
const ONCE_FORWARD: &str = "its backward is `once_differentiable`, so forward mode cannot be had";
const INTERMEDIATE: &str = "a second derivative through it would be wrong";
const OPAQUE: &str = "its backward does not compute with the gradient it gets";

fn f64s(shape: &[usize]) -> AnyTensor {
    let n: usize = shape.iter().product();
    let data: Vec<f64> = (0..n).map(|i| 0.25 + 0.5 * i as f64).collect();
    Tensor::from_vec(shape, data).unwrap().into()
}

fn f32s(shape: &[usize]) -> AnyTensor {
    let AnyTensor::Float64(x) = f64s(shape) else { unreachable!() };
    x.cast::<f32>().into()
}

fn wide(x: &AnyTensor) -> Tensor<f64> {
    match x {
        AnyTensor::Float32(x) => x.cast(),
        AnyTensor::Float64(x) => x.clone(),
        other => panic!("no floats: {other}"),
    }
}

/// The sum of all parts, as one number.
fn total<'a>(parts: impl IntoIterator<Item = &'a AnyTensor>) -> Tensor<f64> {
    parts.into_iter().fold(Tensor::from(0.0), |sum, part| sum + wide(part).sum())
}

fn leaves(inputs: &[AnyTensor]) -> Vec<AnyTensor> {
    let leaf = |x: &AnyTensor| match x {
        AnyTensor::Float32(x) => {
            let x = x.detach();
            x.set_stop_gradient(false);
            x.into()
        }
        AnyTensor::Float64(x) => {
            let x = x.detach();
            x.set_stop_gradient(false);
            x.into()
        }
        other => other.clone(),
    };
    inputs.iter().map(leaf).collect()
}

fn kept(x: &AnyTensor) -> Option<AnyTensor> {
    match x {
        AnyTensor::Float32(x) => x.grad().map(AnyTensor::from),
        AnyTensor::Float64(x) => x.grad().map(AnyTensor::from),
        _ => None,
    }
}

/// Ops with one backward each, in every combination of input and output forms.
macro_rules! ops {
    ($module:ident, ($($args:tt)*), $saved:ty, $save:ident, $grad:ident) => {
        mod $module {
            use super::*;

            /// Two inputs of different shapes.
            #[py_layer($($args)*)]
            impl Shapes {
                type Saved = $saved;
                fn forward(
                    ctx: &mut ForwardContext<Self>,
                    x: &Tensor<f64>,
                    w: &Tensor<f64>,
                ) -> Tensor<f64> {
                    ctx.save_for_backward(&$save(x));
                    x.sum() + w.sum()
                }
                fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
                    let s = ctx.saved_tensor();
                    Grads {
                        x: $grad(dy, s).broadcast_to([2, 5]),
                        w: $grad(dy, s).broadcast_to([3, 2]),
                    }
                }
            }

            /// Inputs of one shape, with few numbers.
            #[py_layer($($args)*)]
            impl Few {
                type Saved = $saved;
                fn forward(
                    ctx: &mut ForwardContext<Self>,
                    x: &Tensor<f64>,
                    w: &Tensor<f64>,
                ) -> Tensor<f64> {
                    ctx.save_for_backward(&$save(x));
                    x + w
                }
                fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
                    let s = ctx.saved_tensor();
                    Grads { x: $grad(dy, s), w: $grad(dy, s) }
                }
            }

            /// Inputs of two element types, and one without gradients.
            #[py_layer($($args)*)]
            impl Types {
                type Saved = $saved;
                fn forward(
                    ctx: &mut ForwardContext<Self>,
                    x: &Tensor<f32>,
                    #[stop_gradient] index: &Tensor<i64>,
                    w: &Tensor<f64>,
                ) -> Tensor<f64> {
                    assert_eq!(index.dtype(), DType::Int64);
                    ctx.save_for_backward(&$save(w));
                    x.cast::<f64>().sum() + w.sum()
                }
                fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
                    let s = ctx.saved_tensor();
                    Grads {
                        x: $grad(dy, s).cast::<f32>().broadcast_to([3]),
                        w: $grad(dy, s).broadcast_to([3]),
                    }
                }
            }

            /// Outputs of different shapes and element types.
            #[py_layer($($args)*)]
            impl Outputs {
                type Saved = $saved;
                fn forward(
                    ctx: &mut ForwardContext<Self>,
                    x: &Tensor<f64>,
                ) -> (Tensor<f64>, Tensor<f32>, Tensor<f64>) {
                    ctx.save_for_backward(&$save(x));
                    (x * 2.0, x.cast::<f32>() * 2.0, x.sum())
                }
                fn backward(
                    ctx: &BackwardContext<Self>,
                    da: &Tensor<f64>,
                    db: &Tensor<f32>,
                    dc: &Tensor<f64>,
                ) -> Tensor<f64> {
                    let s = ctx.saved_tensor();
                    $grad(da, s) * 2.0 + $grad(&db.cast::<f64>(), s) * 2.0 + $grad(dc, s)
                }
            }

            /// Lists, and an option.
            #[py_layer($($args)*)]
            impl Lists {
                type Saved = $saved;
                fn forward(
                    ctx: &mut ForwardContext<Self>,
                    xs: &[&Tensor<f64>],
                    bias: Option<&Tensor<f32>>,
                ) -> (Vec<Tensor<f64>>, Tensor<f32>) {
                    ctx.save_for_backward(&$save(xs[0]));
                    let bias = bias.map_or_else(|| Tensor::from(0.0), |bias| bias.sum());
                    (xs.iter().map(|x| *x * 2.0).collect(), bias)
                }
                fn backward(
                    ctx: &BackwardContext<Self>,
                    dys: &[Tensor<f64>],
                    dbias: &Tensor<f32>,
                ) -> Grads {
                    let s = ctx.saved_tensor();
                    Grads {
                        xs: dys.iter().map(|dy| $grad(dy, s) * 2.0).collect::<Vec<_>>(),
                        bias: $grad(&dbias.cast::<f64>(), s).cast::<f32>().broadcast_to([4]),
                    }
                }
            }

            pub(super) const OPS: [Op; 5] = [
                Op {
                    name: "Shapes",
                    inputs: || vec![f64s(&[2, 5]), f64s(&[3, 2])],
                    run: |x| Shapes::apply(&wide(&x[0]), &wide(&x[1])),
                },
                Op {
                    name: "Few",
                    inputs: || vec![f64s(&[2]), f64s(&[2])],
                    run: |x| Few::apply(&wide(&x[0]), &wide(&x[1])).sum(),
                },
                Op {
                    name: "Types",
                    inputs: || vec![f32s(&[3]), f64s(&[3])],
                    run: |x| {
                        let AnyTensor::Float32(narrow) = &x[0] else { unreachable!() };
                        Types::apply(narrow, &Tensor::from([1_i64]), &wide(&x[1]))
                    },
                },
                Op {
                    name: "Outputs",
                    inputs: || vec![f64s(&[2, 3])],
                    run: |x| {
                        let (a, b, c) = Outputs::apply(&wide(&x[0]));
                        total(&[a.into(), b.into(), c.into()])
                    },
                },
                Op {
                    name: "Lists",
                    inputs: || vec![f64s(&[2]), f64s(&[3, 1]), f32s(&[4])],
                    run: |x| {
                        let AnyTensor::Float32(bias) = &x[2] else { unreachable!() };
                        let (ys, bias) = Lists::apply(&[&wide(&x[0]), &wide(&x[1])], Some(bias));
                        ys.iter().fold(bias.cast::<f64>(), |sum, y| sum + y.sum())
                    },
                },
            ];
        }
    };
}

struct Op {
    name: &'static str,
    inputs: fn() -> Vec<AnyTensor>,
    run: fn(&[AnyTensor]) -> Tensor<f64>,
}

/// An input, and a tensor that forward computed.
fn input(x: &Tensor<f64>) -> Tensor<f64> {
    x.clone()
}

fn computed(x: &Tensor<f64>) -> Tensor<f64> {
    x.exp()
}

fn linear(dy: &Tensor<f64>, _: &Tensor<f64>) -> Tensor<f64> {
    dy * 1.0
}

/// Depends on the saved tensor, but not numerically.
fn with_saved(dy: &Tensor<f64>, s: &Tensor<f64>) -> Tensor<f64> {
    dy * (s.sum() * 0.0 + 1.0)
}

fn cut(dy: &Tensor<f64>, _: &Tensor<f64>) -> Tensor<f64> {
    dy.detach() * 1.0
}

/// The path continues through the saved tensor, but not through the gradient.
fn cut_times_saved(dy: &Tensor<f64>, s: &Tensor<f64>) -> Tensor<f64> {
    dy.detach() * (s.sum() * 0.0 + 1.0)
}

ops!(once, (once_differentiable), Tensor<f64>, input, linear);
ops!(intermediate, (), Tensor<f64>, computed, with_saved);
ops!(opaque, (), Tensor<f64>, input, cut);
ops!(opaque_saved, (), Tensor<f64>, input, cut_times_saved);

#[track_caller]
fn refused<R>(done: Result<R, Error>, op: &str, words: &str, by: &str) {
    let Err(error) = done else { panic!("{op} by {by}: not refused") };
    let found = error.to_string();
    assert!(found.starts_with(op) && found.contains(words), "{op} by {by}: {found}");
}

/// A first derivative is correct: the ops are linear.
fn first_order(op: &Op) {
    let x = leaves(&(op.inputs)());
    let y = (op.run)(&x);
    y.backward().unwrap();
    let along = |x: &AnyTensor| (wide(x).detach() * wide(&kept(x).unwrap())).sum().item();
    let slope: f64 = x.iter().map(along).sum();
    assert!((slope - y.item()).abs() < 1e-5, "{}: {slope} for {y}", op.name);
}

/// A function that computes a second derivative. Returns the error of the first or the second backward.
type Ask = fn(&Op, &[AnyTensor]) -> Result<(), Error>;

fn recorded() -> BackwardOptions {
    BackwardOptions::new().create_graph(true)
}

/// Takes the gradients of the leaves.
fn taken(leaves: &[AnyTensor]) -> Vec<AnyTensor> {
    let grads = leaves.iter().filter_map(kept).collect();
    leaves.iter().for_each(|x| match x {
        AnyTensor::Float32(x) => x.clear_grad(),
        AnyTensor::Float64(x) => x.clear_grad(),
        _ => {}
    });
    grads
}

const ASK: [(&str, Ask); 8] = [
    ("backward", |op, x| {
        (op.run)(x).backward_options(recorded())?;
        let second = total(&taken(x));
        let found = second.backward();
        assert!(x.iter().all(|x| kept(x).is_none()), "{}: written in spite of an error", op.name);
        found
    }),
    ("backward of one gradient", |op, x| {
        (op.run)(x).backward_options(recorded())?;
        let last = taken(x).pop().unwrap();
        total(&[last]).backward()
    }),
    ("backward_to", |op, x| {
        let seeds = [None];
        backward_to(&[(op.run)(x).into()], &seeds, x, recorded())?;
        let first = taken(x);
        backward_to(&[total(&first).into()], &seeds, &x[..1], BackwardOptions::new())
    }),
    ("grad", |op, x| {
        // With respect to inputs of one element type.
        let of = |x: &AnyTensor| x.downcast_ref::<f64>().cloned();
        let floats: Vec<Tensor<f64>> = x.iter().filter_map(of).collect();
        let floats: Vec<&Tensor<f64>> = floats.iter().collect();
        let create = GradOptions::new().create_graph(true);
        let first = grad_with(&[&(op.run)(x)], &floats, create)?;
        let first: Vec<AnyTensor> = first.into_iter().flatten().map(AnyTensor::from).collect();
        grad(&[&total(&first)], &floats).map(drop)
    }),
    ("gradgradcheck", |op, x| gradgradcheck_any(|x| (op.run)(x).into(), x)),
    ("backward that is watched", |op, x| {
        let _scope = detect_anomaly();
        let y = (op.run)(x);
        let _ = y.graph_node().unwrap().register_after(|_, _| Ok(None));
        y.backward_options(recorded())?;
        total(&taken(x)).backward()
    }),
    ("backward in a checkpoint", |op, x| {
        let (run, inside) = (op.run, x.to_vec());
        checkpoint(move || run(&inside)).backward_options(recorded())?;
        let first = taken(x);
        total(&first).backward()
    }),
    ("backward where saved tensors are packed", |op, x| {
        let _scope = saved_tensors_hooks(|x| Ok(x.clone()), |x| Ok(x.clone()));
        (op.run)(x).backward_options(recorded())?;
        let first = taken(x);
        total(&first).backward()
    }),
];

#[test]
fn a_second_derivative_of_what_is_differentiable_once() {
    for op in &once::OPS {
        first_order(op);
        for (by, ask) in ASK {
            refused(ask(op, &leaves(&(op.inputs)())), op.name, ONCE, by);
        }
    }
}

#[test]
fn a_second_derivative_over_a_saved_intermediate() {
    for op in &intermediate::OPS {
        first_order(op);
        for (by, ask) in ASK {
            let found = ask(op, &leaves(&(op.inputs)())).unwrap_err();
            assert!(
                matches!(found, Error::SavedIntermediate { .. }),
                "{} by {by}: {found}",
                op.name
            );
            refused(Err::<(), _>(found), op.name, INTERMEDIATE, by);
        }
    }
}

/// The op with `f64` inputs, which forward mode needs: others are cast.
fn cast(op: &Op) -> (Vec<Tensor<f64>>, impl Fn(&[Tensor<f64>]) -> Tensor<f64>) {
    let like = (op.inputs)();
    let point = like.iter().map(wide).collect();
    let run = op.run;
    let f = move |x: &[Tensor<f64>]| {
        let inputs: Vec<AnyTensor> = x
            .iter()
            .zip(&like)
            .map(|(x, like)| match like {
                AnyTensor::Float32(_) => x.cast::<f32>().into(),
                _ => x.clone().into(),
            })
            .collect();
        run(&inputs)
    };
    (point, f)
}

#[test]
fn forward_mode_through_what_cannot_be_transposed() {
    let tables = [(&once::OPS, ONCE_FORWARD), (&opaque::OPS, OPAQUE), (&opaque_saved::OPS, OPAQUE)];
    for (ops, words) in tables {
        for op in ops {
            let (point, f) = cast(op);
            refused(jvp(&f, &point, &point), op.name, words, "jvp");
            // Along one input, and inside a checkpoint.
            let last = point.len() - 1;
            let (rest, one) = point.split_at(last);
            let g = |x: &[Tensor<f64>]| f(&[rest, x].concat());
            refused(jvp(g, one, one), op.name, words, "jvp along one input");
            let (point, f) = cast(op);
            let inside = |x: &[Tensor<f64>]| {
                let (x, f) = (x.to_vec(), cast(op).1);
                checkpoint(move || f(&x))
            };
            refused(jvp(inside, &point, &point), op.name, words, "jvp in a checkpoint");
            // Recorded on another thread, where shapes are unknown.
            let thread = |x: &[Tensor<f64>]| {
                let (x, f) = (x.to_vec(), cast(op).1);
                std::thread::scope(|scope| scope.spawn(move || f(&x)).join().unwrap())
            };
            let found = jvp(thread, &point, &point);
            match words {
                ONCE_FORWARD => refused(found, op.name, "its backward is `once_", "a thread"),
                _ => refused(found, "jvp", "does not compute", "a thread"),
            }
            // Recorded, inside another derivative.
            let mut inner = Ok(());
            let along = |x: &[Tensor<f64>]| {
                let slope = jvp(&f, x, &point).map(|(_, slope)| slope);
                slope.unwrap_or_else(|error| {
                    inner = Err(error);
                    Tensor::from(0.0)
                })
            };
            vjp(along, &point, &Tensor::from(1.0)).unwrap();
            refused(inner, op.name, words, "jvp in vjp");
        }
    }
}

#[test]
fn second_derivatives_by_products_with_vectors() {
    for op in &once::OPS {
        let (point, f) = cast(op);
        let of_first = |x: &Tensor<f64>| f(&[std::slice::from_ref(x), &point[1..]].concat());
        refused(hvp(of_first, &point[0], &point[0]), op.name, ONCE, "hvp");
    }
}

/// Outputs of different shapes and element types, differentiable once, with a rule for tangents.
#[py_layer(once_differentiable)]
impl Forwards {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f32>,
    ) -> (Tensor<f64>, Vec<Tensor<f64>>, Tensor<f32>) {
        (x * 2.0, vec![x.sum(), x.reshape([6])], w * 3.0)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        da: &Tensor<f64>,
        db: &[Tensor<f64>],
        dc: &Tensor<f32>,
    ) -> Grads {
        Grads { x: da * 2.0 + &db[0] + db[1].reshape([2, 3]), w: dc * 3.0 }
    }

    fn jvp(
        _ctx: &JvpContext<Self>,
        _x: &Tensor<f64>,
        _w: &Tensor<f32>,
        dx: &Tensor<f64>,
        dw: &Tensor<f32>,
    ) -> (Tensor<f64>, Vec<Tensor<f64>>, Tensor<f32>) {
        (dx * 2.0, vec![dx.sum(), dx.reshape([6])], dw * 3.0)
    }
}

#[test]
fn a_derivative_of_a_tangent_of_what_is_differentiable_once() {
    let f = |t: &[Tensor<f64>]| {
        let (a, b, c) = Forwards::apply(&t[0], &t[1].cast());
        a.sum() + &b[0] + b[1].sum() + c.cast::<f64>().sum()
    };
    let point = [wide(&f64s(&[2, 3])), wide(&f64s(&[4]))];
    let (_, slope) = jvp(f, &point, &point).unwrap();
    assert!(slope.stop_gradient());
    for wants in [[true, true], [true, false], [false, true]] {
        let point = point.each_ref().map(Tensor::detach);
        point.iter().zip(wants).for_each(|(x, wants)| x.set_stop_gradient(!wants));
        let (_, slope) = jvp(f, &point, &point).unwrap();
        refused(slope.backward(), "Forwards", ONCE, "backward of a tangent");
        assert!(point.iter().all(|x| x.grad().is_none()));
    }
    let nested = |t: &[Tensor<f64>]| jvp(f, t, &point).unwrap().1;
    refused(jvp(nested, &point, &point), "Forwards", ONCE, "jvp of jvp");
    let cotangent = Tensor::from(1.0);
    refused(vjp(nested, &point, &cotangent), "Forwards", ONCE, "vjp of jvp");
}

/// No backward at all.
#[py_layer(no_grad)]
impl Without {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        #[stop_gradient] index: &Tensor<i64>,
        x: &Tensor<f32>,
        ws: &[&Tensor<f64>],
    ) -> (Tensor<f32>, Tensor<i64>, Tensor<f64>) {
        (x * 2.0, index + 1, ws[0] * 2.0)
    }
}

#[test]
fn an_op_without_backward() {
    let index = Tensor::from([1_i64, 2, 3]);
    let inputs = || (Tensor::from([1.0_f32, 2.0]), Tensor::<f64>::ones([2, 2]));
    let (x, w) = inputs();
    Without::apply(&index, &x, &[&w]);
    w.set_stop_gradient(false);
    let found = Without::try_apply(&index, &x, &[&w]);
    refused(found, "Without", "the input `ws` wants a gradient", "apply");
    let (x, w) = inputs();
    x.set_stop_gradient(false);
    let found = Without::try_apply(&index, &x, &[&w]);
    refused(found, "Without", "the input `x` wants a gradient", "apply");
}

#[test]
fn a_graph_that_is_gone() {
    for op in &once::OPS {
        let x = leaves(&(op.inputs)());
        let y = (op.run)(&x);
        backward(&[y.clone().into()], &[None], BackwardOptions::new()).unwrap();
        let found = backward(&[y.into()], &[None], BackwardOptions::new()).unwrap_err();
        assert!(matches!(found, Error::GraphFreed { .. }), "{}: {found}", op.name);
    }
}

#[test]
fn a_checkpoint_that_does_another_thing() {
    use std::sync::atomic::{AtomicBool, Ordering};
    // A result of another shape, and other tensors, of other shapes and element types.
    let x = leaves(&[f64s(&[2, 3]), f32s(&[4])]);
    for (another, words) in
        [(0, "shape [2, 3] first and [3, 2]"), (1, "used a tensor when it was run again")]
    {
        let (inside, first) = (x.clone(), AtomicBool::new(true));
        let y = checkpoint(move || {
            let AnyTensor::Float64(a) = &inside[0] else { unreachable!() };
            match (first.swap(false, Ordering::Relaxed), another) {
                (true, _) => a * 2.0,
                (false, 0) => a.reshape([3, 2]),
                (false, _) => a * wide(&inside[1]).sum(),
            }
        });
        refused(y.sum().backward(), "checkpoint", words, "backward");
        assert!(x.iter().all(|x| kept(x).is_none()));
    }
}

#[test]
fn a_second_derivative_of_a_py_func_that_has_none() {
    fn squares_grad(
        x: ArrayViewD<f64>,
        w: ArrayViewD<f32>,
        da: ArrayViewD<f64>,
        db: ArrayViewD<f32>,
    ) -> (ArrayD<f64>, ArrayD<f32>) {
        (&x * &da * 2.0, &w * &db * 2.0)
    }
    let program = Program::new();
    let x = program.data("x", [2, 3], DType::Float64).unwrap();
    let w = program.data("w", [4], DType::Float32).unwrap();
    x.set_stop_gradient(false);
    w.set_stop_gradient(false);
    let block = program.current_block();
    let a = block.create_var("a", DType::Float64, [2, 3]).unwrap();
    let b = block.create_var("b", DType::Float32, [4]).unwrap();
    let [a, b] = program
        .py_func(|x: ArrayViewD<f64>, w: ArrayViewD<f32>| (&x * &x, &w * &w))
        .x([&x, &w])
        .out([&a, &b])
        .backward_func(squares_grad)
        .skip_vars_in_backward_input([&a, &b])
        .call()
        .unwrap();
    let first = gradients(&[&a, &b], &[&x, &w]).unwrap();
    let first: Vec<_> = first.into_iter().flatten().collect();
    let feed = [f64s(&[2, 3]), f32s(&[4])];
    let fetched = Executor::new()
        .run(&program, &[("x", &feed[0]), ("w", &feed[1])], &[&first[0], &first[1]])
        .unwrap();
    assert_eq!((fetched[0].shape(), fetched[1].shape()), (&[2, 3][..], &[4][..]));
    for of in [[&first[0]], [&first[1]]] {
        let found = gradients(&of, &[&x, &w]);
        refused(
            found,
            "py_func `squares_grad`",
            "a second derivative through it is not known",
            "gradients",
        );
    }
}
