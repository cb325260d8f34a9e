//! Closures that depend on the length of a free axis: a program computes what they do at any length, or is refused.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use autograd_core::nn::RmsNorm;
use autograd_core::static_graph::{Executor, Program, gradients};
use autograd_core::{Conv2dOptions, DType, Padding, Tensor};

pub(crate) type Closure = Arc<dyn Fn(&Tensor<f64>) -> Tensor<f64> + Send + Sync>;

/// Lengths at which programs run; few of them are examples.
const LENGTHS: [usize; 12] = [1, 2, 4, 6, 7, 9, 10, 15, 16, 17, 31, 33];

/// Beyond all examples.
const LONG: [usize; 2] = [50, 130];

/// The shapes of an input with three columns.
fn of_three_columns(lengths: &[usize]) -> Vec<[usize; 2]> {
    lengths.iter().map(|&n| [n, 3]).collect()
}

fn input(shape: [usize; 2]) -> Tensor<f64> {
    let numbers = (0..shape[0] * shape[1]).map(|i| (i as f64 * 0.7).sin());
    Tensor::from(numbers.collect::<Vec<_>>()).reshape(shape)
}

/// What a program does instead of the closure.
#[derive(Debug, PartialEq)]
pub(crate) enum Done {
    Refused(String),
    /// At so many shapes both give a result, and the same.
    Equal(usize),
    Differs(String),
}

fn are_close(found: &Tensor<f64>, expected: &Tensor<f64>) -> bool {
    let close = |(a, b): (f64, f64)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() < 1e-12;
    found.shape() == expected.shape()
        && found.to_vec().into_iter().zip(expected.to_vec()).all(close)
}

pub(crate) fn value(closure: &Closure, shape: [usize; 2]) -> Option<Tensor<f64>> {
    catch_unwind(AssertUnwindSafe(|| closure(&input(shape)))).ok()
}

/// Traces the closure, or calls it in each run, for an input whose axes are free where the shapes differ.
pub(crate) fn done(closure: &Closure, traced: bool, shapes: &[[usize; 2]]) -> Done {
    let program = Program::new();
    let is_fixed = |axis: usize| shapes.iter().all(|shape| shape[axis] == shapes[0][axis]);
    let dims = [0, 1].map(|axis| if is_fixed(axis) { shapes[0][axis] as i64 } else { -1 });
    let x = program.data("x", dims, DType::Float64).unwrap();
    x.set_stop_gradient(false);
    let own = Arc::clone(closure);
    let call = move |x: &Tensor<f64>| own(x);
    let built = match traced {
        true => program.trace(call).x(&x).call(),
        false => program.eager(call).x(&x).call(),
    };
    let y = match built {
        Ok(y) => y,
        Err(error) => return Done::Refused(error.to_string()),
    };
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0);
    let (executor, mut equal) = (Executor::new(), 0);
    for &shape in shapes {
        let Some(expected) = value(closure, shape) else { continue };
        let fed = input(shape);
        let fed: [(&str, &dyn autograd_core::static_graph::Feed); 1] = [("x", &fed)];
        let Ok(run) = executor.run(&program, &fed, &[&y]) else { continue };
        let found = run[0].downcast_ref::<f64>().unwrap();
        if !are_close(found, &expected) {
            return Done::Differs(format!("at {shape:?}: {found}\nnot {expected}\n{program}"));
        }
        equal += 1;
        let Some(dx) = &dx else { continue };
        let x = input(shape);
        x.set_stop_gradient(false);
        let y = closure(&x).sum();
        if !y.stop_gradient() {
            y.backward().unwrap();
        }
        let expected = x.grad().unwrap_or_else(|| Tensor::zeros_like(&x));
        let run = executor.run(&program, &fed, &[dx]).unwrap();
        let found = run[0].downcast_ref::<f64>().unwrap();
        if !are_close(found, &expected) {
            return Done::Differs(format!(
                "gradient at {shape:?}: {found}\nnot {expected}\n{program}"
            ));
        }
    }
    Done::Equal(equal)
}

/// Closures that a program computes at each length at which the closure does itself.
#[test]
#[allow(clippy::reversed_empty_ranges, reason = "negative positions count from the end")]
fn a_position_or_a_count_that_follows_the_length_is_computed_in_each_run() {
    let closures: &[(&str, fn(&Tensor<f64>) -> Tensor<f64>)] = &[
        ("unfold 4, 4", |x| x.unfold(0, 4, 4).square()),
        ("unfold 2, 3", |x| x.unfold(0, 2, 3).square()),
        ("roll 210", |x| x.roll(210, 0).square()),
        ("roll -3", |x| x.roll(-3, 0).square()),
        ("roll 1", |x| x.roll(1, 0) * x),
        ("i -1", |x| x.i(-1).square()),
        ("i ..-1", |x| x.i(..-1).square()),
        ("i -3..-1", |x| x.i(-3..-1).square()),
        ("i 2..", |x| x.i(2..).square()),
        ("i 0..8", |x| x.i(0..8).square()),
        ("i list", |x| x.i(&Tensor::from([-1, 0, -2])).square()),
        ("i list and number", |x| x.i((-1, &Tensor::from([0, -1]))).square()),
        ("select last", |x| x.select(0, x.shape()[0] - 1).square()),
        ("narrow 1, n - 2", |x| x.narrow(0, 1, x.shape()[0] - 2).square()),
        ("differences", |x| (x.i(1..) - x.i(..-1)).square()),
        ("slice_assign number", |x| x.slice_assign(1..-1, 2.0) * x),
        ("slice_assign last", |x| x.slice_assign(-1, 0.5) * x),
        ("slice_assign part", |x| x.slice_assign(..-1, x.i(1..).square()) * x),
        ("index_put number", |x| x.index_put((.., 1), 2.0, false) * x),
        ("index_put list", |x| x.index_put(&Tensor::from([0, -1]), 3.0, true) * x),
        ("pad constant", |x| x.pad(&[[1, 2], [0, 0]], Padding::Constant(1.5)).square()),
        ("pad reflect", |x| x.pad(&[[3, 1], [0, 1]], Padding::Reflect).square()),
        ("pad replicate", |x| x.pad(&[[3, 1], [0, 0]], Padding::Replicate).square()),
        ("pad circular", |x| x.pad(&[[3, 5], [0, 0]], Padding::Circular).square()),
        ("pad nothing", |x| x.pad(&[[0, 0]], Padding::Circular).square()),
        ("median", |x| x.median() * x),
        ("median_axes", |x| x.median_axes(0) * x),
        ("median_axes_keep", |x| x.median_axes_keep([0]) * x),
        ("full_like", |x| Tensor::<f64>::full_like(x, 0.5) * x),
        ("full_like nan", |x| Tensor::<f64>::full_like(x, -f64::INFINITY).maximum(x)),
        ("flip", |x| x.flip(0) * x),
        ("tril", |x| x.matmul(&x.t()).tril(0)),
        ("sort", |x| x.sort(0, true).0.square()),
        ("topk", |x| x.topk(2, 0).0.square()),
        ("cumsum", |x| x.cumsum(0).square()),
        ("var", |x| x.var_axes(0, 1) * x),
        ("softmax", |x| x.softmax(0).square()),
        ("mean", |x| x.mean_axes_keep(0) * x),
        ("normalize", |x| x.normalize([1], 1e-3).square()),
        ("repeat", |x| x.repeat(&[3, 2]).square()),
        ("stack", |x| Tensor::stack(&[x, &x.flip(0)], 0).square()),
        ("concat", |x| Tensor::concat(&[x, &x.i(1..)], 0).square()),
        ("split", |x| x.split(3, 1)[1].square()),
        ("rest", |x| x.split_with_sizes(&[2, x.shape()[0] - 2], 0)[1].square()),
        ("max_with_indices", |x| x.max_with_indices(0).0.square()),
        ("reshape", |x| x.reshape([x.len() / 3, 1, 3]).square()),
        ("argmax", |x| x.square() * x.argmax(0).cast::<f64>()),
        ("gather", |x| x.gather(0, &x.argsort(0, true)).square()),
        ("scatter_add", |x| x.scatter_add(0, &x.argsort(0, true), x) * x),
        ("index_add", |x| x.index_add(0, &x.i((.., 0)).argsort(0, true), x) * x),
        ("one_hot", |x| x.argmax(1).one_hot::<f64>(3) * x),
        ("masked_fill", |x| x.masked_fill(&x.gt_scalar(0.5), 0.0).square()),
        ("where_else", |x| x.gt_scalar(0.5).where_else(x.square(), 0.0)),
        ("outer", |x| x.i((.., 0)).outer(&x.i((.., 1)))),
        ("einsum", |x| Tensor::einsum("ij,kj->ik", &[x, x])),
        ("einsum of three", |x| Tensor::einsum("bi,ci,bc->i", &[x, x, &x.matmul(&x.t())])),
        ("einsum sum", |x| Tensor::einsum("ij,i->j", &[x, &x.i((.., 2))])),
        ("norm", |x| x.norm() * x),
        ("norm_axes", |x| x.norm_axes(0, 3.0) * x),
        ("std", |x| x.std_axes(0, 0) * x),
        ("logsumexp", |x| x.logsumexp(0) * x),
        ("cumprod", |x| x.cumprod(0)),
        ("sum_to", |x| x.sum_to(&[3]) * x),
        ("any_axes", |x| x.square() * x.gt_scalar(0.5).any_axes(0).cast::<f64>()),
        ("mse_loss", |x| x.mse_loss(&x.flip(0))),
        ("huber_loss", |x| x.huber_loss(&x.flip(0), 0.3)),
        ("kl_div", |x| x.log_softmax(1).kl_div(&x.flip(0).softmax(1))),
        ("cross_entropy", |x| x.cross_entropy(&x.flip(0).argmax(1))),
        ("nll_loss", |x| x.log_softmax(1).nll_loss(&x.flip(0).argmax(1))),
        ("binary_cross_entropy", |x| x.sigmoid().binary_cross_entropy(&x.flip(0).sigmoid())),
        ("conv2d", |x| {
            let kernel = Tensor::from([0.5, -1.0]).reshape([1, 1, 1, 2]);
            let image = x.reshape([x.shape()[0], 1, 1, 3]);
            image.conv2d(&kernel, None, Conv2dOptions::default()).square()
        }),
        ("max_pool2d", |x| x.reshape([x.shape()[0], 1, 1, 3]).max_pool2d([1, 2]).square()),
        ("avg_pool2d", |x| x.reshape([x.shape()[0], 1, 1, 3]).avg_pool2d([1, 2]).square()),
        ("RmsNorm", |x| RmsNorm::new(3).forward(x).square()),
        ("attention", |x| {
            let x = x.unsqueeze(0);
            x.matmul(&x.transpose()).softmax(-1).matmul(&x)
        }),
    ];
    let mut wrong = Vec::new();
    let shapes = of_three_columns(&[&LENGTHS[..], &LONG].concat());
    for (name, closure) in closures {
        let closure: Closure = Arc::new(closure);
        let possible = shapes.iter().filter(|&&shape| value(&closure, shape).is_some()).count();
        for traced in [true, false] {
            let done = done(&closure, traced, &shapes);
            if done != Done::Equal(possible) {
                wrong.push(format!("{name} (traced: {traced}): {done:?}, of {possible}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What depends on a length otherwise is refused, and computed by `Program::eager`.
#[test]
fn what_a_program_cannot_compute_from_a_length_is_refused() {
    let closures: &[(&str, &str, fn(&Tensor<f64>) -> Tensor<f64>)] = &[
        ("narrow", "lengths of free axes", |x| x.narrow(0, 0, x.shape()[0] / 4)),
        ("narrow", "lengths of free axes", |x| x.narrow(0, 0, x.shape()[0] / 2)),
        ("mul", "lengths of free axes", |x| x * (x.shape()[0] / 4) as f64),
        ("cos", "control flow", |x| if x.shape()[0] > 8 { x.sin() } else { x.cos() }),
        ("mul", "lengths of free axes", |x| x * x.shape()[0].next_power_of_two() as f64),
        ("roll", "lengths of free axes", |x| x.roll(x.shape()[0] as isize / 2, 0)),
        ("mul", "`full_like`", |x| x * Tensor::full([x.shape()[0], 1], 0.5)),
        ("mul", "random", |x| x * Tensor::<f64>::rand([x.shape()[0], 1])),
    ];
    let shapes = of_three_columns(&LENGTHS);
    for (op, why, closure) in closures {
        let closure: Closure = Arc::new(closure);
        let Done::Refused(error) = done(&closure, true, &shapes) else {
            panic!("{op}: not refused")
        };
        let start = "(built at tests/tests/programs/lengths.rs:";
        assert!(error.contains(start) && error.contains(why), "{op}: {error}");
        if *why != "random" {
            assert!(matches!(done(&closure, false, &shapes), Done::Equal(7..)), "{op}");
        }
    }
}

/// Two inputs, with lengths of their own if the closure accepts that.
#[test]
fn each_free_axis_has_its_own_length() {
    type OfTwo = fn(&Tensor<f64>, &Tensor<f64>) -> Tensor<f64>;
    let closures: &[(&[i64], &[i64], Option<&[usize]>, OfTwo)] = &[
        // The axes that are free in the result, or nothing if it is refused.
        (&[-1, 3], &[-1, 3], Some(&[0]), |x, y| x * y),
        (&[-1, 3], &[-1, 3], Some(&[0]), |x, y| Tensor::concat(&[x, y], 0)),
        (&[-1, -1], &[-1, -1], Some(&[0, 1]), |x, y| x * y),
        (&[-1, -1], &[-1, -1], Some(&[0, 1]), |x, y| x.matmul(y)),
        (&[-1, 3], &[3, -1], Some(&[0, 1]), |x, y| x.matmul(y)),
        (&[-1, -1, 2], &[-1, -1, 1], Some(&[0, 1]), |x, y| x * y),
        (&[-1, -1], &[-1], Some(&[0, 1]), |x, y| x + y),
        (&[-1, -1], &[-1], Some(&[0]), |x, y| x.sum_axes(1) + y),
        (&[-1], &[-1], None, |x, y| x.narrow(0, 0, y.len())),
        (&[-1], &[-1], None, |x, y| x * y.len() as f64),
        (&[-1, -1], &[-1], None, |x, _| x * x.shape()[1] as f64),
        (&[-1], &[-1], None, |x, y| if x.shape() == y.shape() { x.sin() } else { x.cos() }),
    ];
    for (at, &(a, b, free, closure)) in closures.iter().enumerate() {
        let program = Program::new();
        let x = program.data("x", a, DType::Float64).unwrap();
        let y = program.data("y", b, DType::Float64).unwrap();
        let closure = move |x: &Tensor<f64>, y: &Tensor<f64>| closure(x, y);
        let built = program.trace(closure).x([&x, &y]).call();
        let Some(free) = free else {
            assert!(built.is_err(), "{at}: not refused");
            continue;
        };
        let z = built.unwrap_or_else(|error| panic!("{at}: {error}"));
        let found: Vec<usize> = (0..z.ndim()).filter(|&axis| z.shape()[axis].is_none()).collect();
        assert_eq!(found, free, "{at}");
    }
}

/// A function of a length.
#[derive(Clone, Copy)]
enum Of {
    Same,
    Fixed(usize),
    Less(usize),
    More(usize),
    Divided(usize),
    Times(usize),
    Rest(usize),
    AtMost(usize),
    AtLeast(usize),
    PowerOfTwo,
    Log,
    Root,
}

impl Of {
    fn draw(draw: &mut Draw) -> Self {
        let k = 1 + draw.below(5);
        match draw.below(12) {
            0 => Self::Same,
            1 => Self::Fixed(k),
            2 => Self::Less(k),
            3 => Self::More(k),
            4 => Self::Divided(k),
            5 => Self::Times(k),
            6 => Self::Rest(k),
            7 => Self::AtMost(k),
            8 => Self::AtLeast(k),
            9 => Self::PowerOfTwo,
            10 => Self::Log,
            _ => Self::Root,
        }
    }

    fn of(self, n: usize) -> usize {
        match self {
            Self::Same => n,
            Self::Fixed(k) => k,
            Self::Less(k) => n.saturating_sub(k),
            Self::More(k) => n + k,
            Self::Divided(k) => n / k,
            Self::Times(k) => n * k,
            Self::Rest(k) => n % k,
            Self::AtMost(k) => n.min(k),
            Self::AtLeast(k) => n.max(k),
            Self::PowerOfTwo => n.next_power_of_two(),
            Self::Log => n.max(1).ilog2() as usize,
            Self::Root => n.isqrt(),
        }
    }
}

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => write!(f, "n"),
            Self::Fixed(k) => write!(f, "{k}"),
            Self::Less(k) => write!(f, "n - {k}"),
            Self::More(k) => write!(f, "n + {k}"),
            Self::Divided(k) => write!(f, "n / {k}"),
            Self::Times(k) => write!(f, "n * {k}"),
            Self::Rest(k) => write!(f, "n % {k}"),
            Self::AtMost(k) => write!(f, "n.min({k})"),
            Self::AtLeast(k) => write!(f, "n.max({k})"),
            Self::PowerOfTwo => write!(f, "n.next_power_of_two()"),
            Self::Log => write!(f, "n.ilog2()"),
            Self::Root => write!(f, "n.isqrt()"),
        }
    }
}

/// xorshift
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

/// A step of a closure on a matrix, whose result has as many columns. The lengths follow one of the first `free` axes.
fn step(draw: &mut Draw, free: usize) -> (String, Closure) {
    let (a, b, k) = (Of::draw(draw), Of::draw(draw), draw.below(7));
    let axis = draw.below(free);
    let n = move |x: &Tensor<f64>| x.shape()[axis];
    macro_rules! steps {
        ($($at:literal $name:expr, |$x:ident| $step:expr;)*) => {
            match draw.below([$($at),*].len()) {
                $($at => ($name, Arc::new(move |$x: &Tensor<f64>| -> Tensor<f64> { $step })),)*
                _ => unreachable!("one of the steps"),
            }
        };
    }
    steps! {
        0 format!("narrow(0, {a}, {b})"), |x| x.narrow(0, a.of(n(x)), b.of(n(x)));
        1 format!("narrow(0, {k}, {a})"), |x| x.narrow(0, k, a.of(n(x)));
        2 format!("narrow(0, {a} - {k}, {k})"), |x| x.narrow(0, a.of(n(x)) - k, k);
        3 format!("roll({a}, 0)"), |x| x.roll(a.of(n(x)) as isize, 0);
        4 format!("roll(-{k}, 0)"), |x| x.roll(-(k as isize), 0);
        5 format!("unfold(0, {k}, {b}).sum_axes(-1)"), |x| x.unfold(0, k, b.of(n(x))).sum_axes(-1);
        6 format!("unfold(0, 3, {k}).sum_axes(-1)"), |x| x.unfold(0, 3, k).sum_axes(-1);
        7 format!("* ({a}) as f64"), |x| x * a.of(n(x)) as f64;
        8 format!("if {a} > {k} {{ sin }} else {{ cos }}"), |x| {
            if a.of(n(x)) > k { x.sin() } else { x.cos() }
        };
        9 format!("reshape([{a}, -1, columns]).sum_axes(1)"), |x| {
            x.reshape([Some(a.of(n(x))), None, Some(x.shape()[1])]).sum_axes(1)
        };
        10 format!("slice_assign({a}..{b}, 2.0)"), |x| x.slice_assign(a.of(n(x))..b.of(n(x)), 2.0);
        11 format!("slice_assign(-{k}, 2.0)"), |x| x.slice_assign(-(k as i64), 2.0);
        12 format!("i(-{k}..)"), |x| x.i(-(k as i64)..);
        13 format!("i({a}..-{k})"), |x| x.i(a.of(n(x)) as i64..-(k as i64));
        14 format!("pad([[{a}, {k}], [0, 0]])"), |x| {
            x.pad(&[[a.of(n(x)), k], [0, 0]], Padding::Constant(0.5))
        };
        15 format!("pad([[{k}, 1], [0, 0]], Circular)"), |x| {
            x.pad(&[[k, 1], [0, 0]], Padding::Circular)
        };
        16 format!("* full([{a}, 1])"), |x| x * Tensor::full([a.of(n(x)), 1], 0.5);
        17 format!("* full_like"), |x| x * Tensor::<f64>::full_like(x, 0.5);
        18 format!("for 0..{a} {{ sin }}"), |x| (0..a.of(n(x))).fold(x.clone(), |x, _| x.sin());
        19 format!("split({k}, 0)[0]"), |x| x.split(k, 0).swap_remove(0);
        20 format!("chunk({k}, 0).last"), |x| x.chunk(k, 0).pop().unwrap();
        21 format!("repeat([{a}, 1])"), |x| x.repeat(&[a.of(n(x)), 1]);
        22 format!("topk({a}, 0)"), |x| x.topk(a.of(n(x)), 0).0;
        23 format!("- median_axes_keep"), |x| x - x.median_axes_keep(0);
        24 format!("concat(i(..{k}))"), |x| Tensor::concat(&[x, &x.i(..k)], 0);
        25 format!("tril({a})"), |x| x.tril(a.of(n(x)) as isize);
        26 format!("index_put([0, -1], {k}, true)"), |x| {
            x.index_put(&Tensor::from([0, -1]), k as f64, true)
        };
        27 format!("slice_axis(0, 0, n, {a})"), |x| x.slice_axis(0, 0, n(x), a.of(n(x)));
        28 format!("- i({k})"), |x| x - x.i(k);
        29 format!("softmax(0)"), |x| x.softmax(0);
    }
}

/// Three of four closures are refused, as a program has no expressions of lengths; the others are right.
#[test]
fn a_random_closure_over_lengths_is_computed_as_eagerly_or_refused() {
    random_closures(1, &of_three_columns(&LENGTHS));
}

#[test]
fn a_random_closure_over_two_lengths_is_computed_as_eagerly_or_refused() {
    random_closures(2, &super::two_lengths::SHAPES);
}

fn random_closures(free: usize, shapes: &[[usize; 2]]) {
    let cases = std::env::var("PROPERTY_CASES").map_or(300, |n| n.parse().unwrap());
    let (mut wrong, mut equal) = (Vec::new(), 0);
    for seed in 0..cases {
        let mut draw =
            Draw(0x9E37_79B9_7F4A_7C15 ^ u64::wrapping_mul(seed + 1, 0x2545_F491_4F6C_DD1D));
        let steps: Vec<(String, Closure)> =
            (0..1 + draw.below(2)).map(|_| step(&mut draw, free)).collect();
        let names: Vec<&str> = steps.iter().map(|(name, _)| &name[..]).collect();
        let names = format!("{} on {free} free axes", names.join(", then "));
        let closure: Closure =
            Arc::new(move |x| steps.iter().fold(x.clone(), |x, (_, step)| step(&x)));
        for traced in [true, false] {
            match done(&closure, traced, shapes) {
                Done::Differs(why) => wrong.push(format!("{names} (traced: {traced}): {why}")),
                Done::Equal(at) => equal += usize::from(traced && at > 0),
                Done::Refused(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(equal > cases as usize / 5, "only {equal} of {cases} closures could be traced");
}
