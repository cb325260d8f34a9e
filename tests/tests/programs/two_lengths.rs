//! Closures on a matrix of which both lengths are free: a program computes what they do at any lengths, or is refused
//! under the name of the op that cannot.

use std::sync::Arc;

use autograd_core::nn::{AttentionMasks, MultiheadAttention};
use autograd_core::{Ellipsis, Generator, NewAxis, Padding, Step, Tensor};
use support::leaf;

use crate::lengths::{Closure, Done, done, value};

/// Shapes at which programs run; none of them is an example, and some have equal lengths.
pub(crate) const SHAPES: [[usize; 2]; 10] =
    [[1, 1], [1, 4], [6, 1], [2, 7], [4, 4], [7, 6], [9, 9], [10, 33], [50, 3], [17, 130]];

type Of = fn(&Tensor<f64>) -> Tensor<f64>;

fn numbers(shape: &[usize]) -> Tensor<f64> {
    Tensor::<f64>::arange(shape.iter().product()).reshape(shape).sin()
}

#[test]
#[allow(clippy::reversed_empty_ranges, reason = "negative positions count from the end")]
fn a_program_computes_at_any_two_lengths_what_the_closure_does() {
    let closures: &[(&str, Of)] = &[
        ("slice_assign number", |x| x.slice_assign((.., 0), 2.0) * x),
        ("slice_assign numbers", |x| x.slice_assign((1..-1, ..-1), 2.0) * x),
        ("slice_assign last", |x| x.slice_assign(-1, 0.5) * x),
        ("slice_assign element", |x| x.slice_assign((0, -1), 0.5) * x),
        ("slice_assign part", |x| x.slice_assign(..-1, x.i(1..).square()) * x),
        ("slice_assign one", |x| x.slice_assign((.., -1), x.sum()) * x),
        ("slice_assign step", |x| x.slice_assign((Step(.., 2), NewAxis), 3.0) * x),
        ("index_put number", |x| x.index_put((.., 0), 2.0, false) * x),
        ("index_put add", |x| x.index_put((Ellipsis, -1), 2.0, true) * x),
        ("index_put list", |x| x.index_put(&Tensor::from([0, -1]), 3.0, true) * x),
        ("index_put lists", |x| {
            x.index_put((&Tensor::from([0, -1]), &Tensor::from([-1, 0])), x.sum(), true) * x
        }),
        ("index_put mask", |x| x.index_put(&x.gt_scalar(0.5), 3.0, false) * x),
        ("slice_assign mask", |x| x.slice_assign(&x.gt_scalar(0.5), x.sum()) * x),
        ("slice_assign row mask", |x| x.slice_assign(&x.i((.., 0)).gt_scalar(0.5), 2.0) * x),
        ("index_put column mask", |x| {
            x.index_put((.., &x.i(0).gt_scalar(0.5)), x.mean(), true) * x
        }),
        ("i list", |x| x.i(&Tensor::from([-1, 0])).square()),
        ("i lists", |x| x.i((&Tensor::from([0, -1]), &Tensor::from([-1, 0]))).square()),
        ("i argsort", |x| x.i(&x.i((.., 0)).argsort(0, true)).square()),
        ("i argsort from the end", |x| x.i((&(-1 - x.i((.., 0)).argsort(0, true)), -1)).square()),
        ("index_put argsort", |x| x.index_put((.., &x.i(0).argsort(0, true)), x, true) * x),
        ("i column list", |x| x.i((.., &Tensor::from([-1, 0]))).square()),
        ("i NewAxis", |x| x.i((.., NewAxis, Step(.., 2))).square()),
        ("i ranges", |x| x.i((..-1, 1..)).square()),
        ("masked_fill", |x| x.masked_fill(&x.gt_scalar(0.5), 0.0).square()),
        ("where_", |x| Tensor::where_(&x.gt_scalar(0.5), x.square(), 0.0)),
        ("pad constant", |x| x.pad(&[[1, 2], [0, 3]], Padding::Constant(1.5)).square()),
        ("pad reflect", |x| x.pad(&[[3, 1], [2, 1]], Padding::Reflect).square()),
        ("pad circular", |x| x.pad(&[[1, 0], [2, 1]], Padding::Circular).square()),
        ("full_like", |x| Tensor::<f64>::full_like(x, 0.5) * x),
        ("zeros_like", |x| Tensor::<f64>::zeros_like(x) + x),
        ("einsum ij,kj", |x| Tensor::einsum("ij,kj->ik", &[x, x])),
        ("einsum ij,ij", |x| Tensor::einsum("ij,ij->i", &[x, x])),
        ("einsum ij->ji", |x| Tensor::einsum("ij->ji", &[x]).square()),
        ("einsum ij,ij->ij", |x| Tensor::einsum("ij,ij->ij", &[x, x])),
        ("einsum i,j", |x| Tensor::einsum("i,j->ij", &[&x.i((.., 0)), &x.i(0)])),
        ("einsum ij,ik", |x| Tensor::einsum("ij,ik->ijk", &[x, x])),
        ("outer", |x| x.i((.., 0)).outer(&x.i(0))),
        ("broadcast_to new", |x| x.broadcast_to([2, -1, -1]).square()),
        ("broadcast_to column", |x| x.i((.., 0)).unsqueeze(1).broadcast_to([-1, 4]).square()),
        ("repeat", |x| x.repeat(&[3, 2]).square()),
        ("repeat new", |x| x.repeat(&[2, 1, 2]).square()),
        ("repeat once", |x| x.repeat(&[1, 3]).square()),
        ("flatten", |x| x.flatten().square()),
        ("unsqueeze", |x| x.unsqueeze(0).square()),
        ("unsqueeze 1", |x| x.unsqueeze(1).square()),
        ("unsqueeze_axes", |x| x.unsqueeze_axes(&[0, 2, -1]).square()),
        ("squeeze", |x| x.unsqueeze_axes(&[1, -1]).square().squeeze(1)),
        ("squeeze_axes", |x| x.unsqueeze_axes(&[1, -1]).square().squeeze_axes(&[1, -1])),
        ("reshape", |x| x.reshape([x.shape()[0], 1, x.shape()[1]]).square()),
        ("reshape -1", |x| x.reshape([Some(1), Some(x.shape()[0]), None]).square()),
        ("reshape heads", |x| {
            let x = x.repeat(&[1, 6]);
            let [n, m] = [x.shape()[0], x.shape()[1]];
            x.reshape([n, m / 6, 2, 3]).permute(&[0, 2, 1, 3]).square()
        }),
        ("reshape last", |x| {
            let x = x.unsqueeze(1).repeat(&[1, 6, 1]);
            x.reshape([x.shape()[0], 2, 3, x.shape()[2]]).square()
        }),
        ("stack", |x| Tensor::stack(&[x, &x.flip(0)], 1).square()),
        ("stack last", |x| Tensor::stack(&[x, &x.flip(0)], -1).square()),
        ("concat", |x| Tensor::concat(&[x, &x.i(1..)], 0).square()),
        ("concat columns", |x| Tensor::concat(&[x, &x.i((.., ..-1))], 1).square()),
        ("split", |x| Tensor::concat(&[x, x], 1).split(2, 1)[1].square()),
        ("split_with_sizes", |x| x.split_with_sizes(&[1, x.shape()[1] - 1], 1)[1].square()),
        ("split_with_sizes 0", |x| x.split_with_sizes(&[x.shape()[0] - 1, 1], 0)[1].square()),
        ("meshgrid", |x| {
            let grid = Tensor::meshgrid(&[&x.i((.., 0)), &x.i(0)]);
            &grid[0] * &grid[1]
        }),
        ("narrow", |x| x.narrow(1, 0, x.shape()[1] - 1).square()),
        ("select", |x| x.select(1, x.shape()[1] - 1).square()),
        ("roll", |x| x.roll(-3, 1).square()),
        ("unfold", |x| x.unfold(1, 2, 1).square()),
        ("unfold rows", |x| x.unfold(0, 2, 2).square()),
        ("tril", |x| x.tril(0).square()),
        ("triu", |x| x.triu(-1).square()),
        ("transpose", |x| x.transpose().square()),
        ("permute", |x| x.permute(&[1, 0]).square()),
        ("flip", |x| x.flip(1) * x),
        ("sort", |x| x.sort(1, true).0.square()),
        ("topk", |x| x.topk(1, 1).0.square()),
        ("max_with_indices", |x| x.max_with_indices(1).0.square()),
        ("median", |x| x.median() * x),
        ("median_axes", |x| x.median_axes(1).square()),
        ("median_axes_keep", |x| x.median_axes_keep(0) * x),
        ("cumsum", |x| x.cumsum(1).square()),
        ("cumprod", |x| x.cumprod(1)),
        ("sum_axes", |x| x.sum_axes([0, 1]) * x),
        ("mean_axes_keep", |x| x.mean_axes_keep(1) * x),
        ("prod_axes", |x| x.prod_axes(0) * x),
        ("max_axes_keep", |x| x.max_axes_keep([0, 1]) * x),
        ("min_axes", |x| x.min_axes(0) * x),
        ("logsumexp", |x| x.logsumexp([0, 1]) * x),
        ("logsumexp_keep", |x| x.logsumexp_keep(1) * x),
        ("var", |x| x.var_axes_keep(1, 0) * x),
        ("std", |x| x.std_axes_keep([0, 1], 0) * x),
        ("norm", |x| x.norm() * x),
        ("norm_axes_keep", |x| x.norm_axes_keep(1, 3.0) * x),
        ("normalize", |x| x.normalize([1], 1e-3).square()),
        ("softmax", |x| x.softmax(0).square()),
        ("log_softmax", |x| x.log_softmax(1).square()),
        ("sum_to", |x| x.unsqueeze(0).repeat(&[2, 1, 1]).sum_to(x.shape()).square()),
        ("sum_to row", |x| x.sum_to(&[1, x.shape()[1]]) * x),
        ("sum_to itself", |x| x.sum_to(x.shape()).square()),
        ("copy", |x| x.copy().square()),
        ("contiguous", |x| x.t().contiguous().square()),
        ("cast", |x| x.cast::<f32>().cast::<f64>().square()),
        ("gather", |x| x.gather(1, &x.argsort(1, true)).square()),
        ("scatter_add", |x| x.scatter_add(0, &x.argsort(0, true), x) * x),
        ("index_select", |x| x.index_select(1, &x.i(0).argsort(0, true)).square()),
        ("index_add", |x| x.index_add(1, &x.i(0).argsort(0, true), x) * x),
        ("matmul", |x| x.matmul(&x.t())),
        ("matmul batch", |x| {
            let x = x.unsqueeze(0);
            x.matmul(&x.transpose()).softmax(-1).matmul(&x)
        }),
        ("linear", |x| x.unsqueeze(-1).linear(&numbers(&[4, 1]), Some(&numbers(&[4])))),
        ("attention", |x| {
            let x = x.unsqueeze(-1) * numbers(&[4]);
            let layer = Generator::new(3).run(|| MultiheadAttention::<f64>::new(4, 2));
            layer.forward(&x, &x, &x, AttentionMasks::new())
        }),
        ("argmax", |x| x.square() * x.argmax(0).cast::<f64>()),
        ("argmin", |x| x.argmin(1).cast::<f64>().unsqueeze(1) * x),
        ("comparison", |x| x * x.greater(&x.flip(0)).and(&x.le_scalar(0.5)).not().cast::<f64>()),
        ("any_axes", |x| x.square() * x.gt_scalar(0.5).any_axes(0).cast::<f64>()),
        ("all_axes_keep", |x| x.square() * x.gt_scalar(0.5).all_axes_keep(1).cast::<f64>()),
        ("is_nan", |x| x.is_nan().where_else(0.0, x).square()),
        ("one_hot", |x| x.gt_scalar(0.5).cast::<i64>().one_hot::<f64>(2) * x.unsqueeze(-1)),
        ("mse_loss", |x| x.mse_loss(&x.flip(0))),
        ("l1_loss", |x| x.l1_loss(&x.flip(0))),
        ("cross_entropy", |x| x.cross_entropy(&x.flip(0).argmax(1))),
        ("nll_loss", |x| x.log_softmax(1).nll_loss(&x.flip(0).argmax(1))),
        ("kl_div", |x| x.log_softmax(1).kl_div(&x.flip(0).softmax(1))),
        ("bce", |x| x.sigmoid().binary_cross_entropy(&x.flip(0).sigmoid())),
    ];
    let mut wrong = Vec::new();
    for (name, closure) in closures {
        let closure: Closure = Arc::new(closure);
        let possible = SHAPES.iter().filter(|&&shape| value(&closure, shape).is_some()).count();
        let done = done(&closure, true, &SHAPES);
        if done != Done::Equal(possible) || possible < 5 {
            wrong.push(format!("{name}: {done:?}, of {possible}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a program cannot compute is refused under the name of the op that the closure calls, and runs by `eager`.
#[test]
fn what_a_program_cannot_compute_from_two_lengths_is_refused() {
    let closures: &[(&str, &str, Of)] = &[
        ("broadcast_to", "place it with `eager`", |x| x.i(0).broadcast_to(x.shape()) * x),
        ("reshape", "place it with `eager`", |x| {
            x.repeat(&[2, 3]).reshape([x.shape()[0] * 3, x.shape()[1], 2]).square()
        }),
        ("chunk", "place it with `eager`", |x| x.chunk(2, 1).remove(0).square()),
        ("narrow", "place it with `eager`", |x| x.narrow(0, 0, x.shape()[0].min(x.shape()[1]))),
        ("einsum", "place it with `eager`", |x| Tensor::einsum("ii->i", &[&x.matmul(&x.t())])),
        ("einsum", "two lengths are computed from free axes", |x| {
            Tensor::einsum("bi,ci,i->bc", &[x, x, &x.i(0)])
        }),
        ("select", "place it with `eager`", |x| x.select(0, x.shape()[0] / 2)),
        ("split_with_sizes", "place it with `eager`", |x| {
            let n = x.shape()[0];
            x.split_with_sizes(&[n / 2, n - n / 2], 0).remove(1)
        }),
        ("repeat", "place it with `eager`", |x| x.repeat(&[1, x.shape()[0]]).square()),
        ("roll", "place it with `eager`", |x| x.roll(x.shape()[1] as isize / 2, 1).square()),
        ("max_pool2d", "only the first axis can be free", |x| {
            x.unsqueeze_axes(&[0, 1]).max_pool2d([1, 1]).square()
        }),
        ("avg_pool2d", "only the first axis can be free", |x| {
            x.unsqueeze_axes(&[0, 1]).avg_pool2d([2, 1]).square()
        }),
    ];
    for (op, why, closure) in closures {
        let closure: Closure = Arc::new(closure);
        let Done::Refused(error) = done(&closure, true, &SHAPES) else {
            panic!("{op}: not refused")
        };
        let start = format!("{op} (built at tests/tests/programs/two_lengths.rs:");
        assert!(error.starts_with(&start) && error.contains(why), "{op}: {error}");
        assert!(matches!(done(&closure, false, &SHAPES), Done::Equal(5..)), "{op}");
    }
}

/// The ops of a backward that a closure runs have the place of the op that it starts from.
#[test]
fn a_backward_inside_of_a_closure_is_refused_at_the_user_s_line() {
    let closures: &[(&str, Of)] = &[
        ("backward", |x| {
            let y = x.tanh();
            y.sum().backward().unwrap();
            y
        }),
        ("backward", |x| {
            let w = leaf(&[2.0]);
            (x * &w).sum().backward().unwrap();
            w.grad().unwrap()
        }),
        ("grad", |x| autograd_core::grad(&[&x.tanh().sum()], &[x]).unwrap().remove(0)),
    ];
    for (op, closure) in closures {
        let Done::Refused(error) = done(&(Arc::new(closure) as Closure), true, &SHAPES) else {
            panic!("{op}: not refused")
        };
        let start = format!("{op} (built at tests/tests/programs/two_lengths.rs:");
        assert!(error.starts_with(&start), "{op}: {error}");
    }
}
