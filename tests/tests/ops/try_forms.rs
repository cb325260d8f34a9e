//! Methods that return an error never panic instead.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use autograd_core::nn::{Conv2d, Embedding, GroupNorm, LayerNorm, Linear, RmsNorm};
use autograd_core::{
    Conv2dOptions, CrossEntropyOptions, Ellipsis, LossReduction, NewAxis, Padding, PoolOptions,
    Result, Step, Tensor,
};

use crate::run::REDUCTIONS;

const AXES: [isize; 6] = [isize::MIN, -3, -1, 0, 1, isize::MAX];
const COUNTS: [usize; 5] = [0, 1, 2, 7, usize::MAX];

struct Tries(Vec<String>);

impl Tries {
    fn run<R: Debug>(&mut self, what: &str, call: impl FnOnce() -> Result<R>) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
            let words = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            self.0.push(format!("{what}: {words}"));
        }
    }
}

fn tensors() -> Vec<Tensor<f64>> {
    let shapes: [&[usize]; 9] =
        [&[], &[0], &[1], &[3], &[2, 3], &[3, 0], &[0, 3], &[1, 2, 1], &[1, 2, 3, 4]];
    let numbers = [1e308, f64::NAN, f64::INFINITY, -0.0, 5e-324];
    let of = |shape: &[usize]| {
        let n: usize = shape.iter().product();
        let odd = (0..n).map(|i| numbers[i % numbers.len()]).collect();
        let positive = (0..n).map(|i| [1e308, 1e-308, 5e-324][i % 3]).collect();
        [odd, positive].map(|data: Vec<f64>| Tensor::from_vec(shape, data).unwrap())
    };
    shapes.into_iter().flat_map(of).collect()
}

fn indices() -> Vec<Tensor<i64>> {
    let lists: [&[i64]; 4] = [&[], &[0, 0], &[-1, i64::MAX, i64::MIN], &[1]];
    let mut all: Vec<Tensor<i64>> = lists.into_iter().map(Tensor::from).collect();
    all.extend([Tensor::from(0), Tensor::zeros([1, 2]), Tensor::zeros([0, 3])]);
    all
}

fn of_one(tries: &mut Tries, x: &Tensor<f64>) {
    for axis in AXES {
        tries.run("softmax", || x.try_softmax(axis));
        tries.run("log_softmax", || x.try_log_softmax(axis));
        tries.run("logsumexp", || x.try_logsumexp([axis, 0]));
        tries.run("normalize", || x.try_normalize([axis], 0.0));
        tries.run("squeeze", || x.try_squeeze(axis));
        tries.run("argmax", || x.try_argmax(axis));
        tries.run("argmin", || x.try_argmin(axis));
        tries.run("cumsum", || x.try_cumsum(axis));
        tries.run("permute", || x.try_permute(&[axis, 0]));
        tries.run("sum", || x.try_sum([axis], false));
        tries.run("max", || x.try_max([axis, 0], true));
        tries.run("min", || x.try_min([axis], true));
        tries.run("prod", || x.try_prod([axis], true));
        tries.run("mean", || x.try_mean([axis], true));
        tries.run("concat", || Tensor::try_concat(&[x, x], axis));
        tries.run("concat of none", || Tensor::try_concat(Vec::<Tensor<f64>>::new(), axis));
        tries.run("i", || x.try_i(axis));
        tries.run("i of a range", || x.try_i((axis.., NewAxis, Ellipsis, ..=axis)));
        tries.run("diagonal", || x.try_diagonal(axis));
        tries.run("diag", || x.try_diag(axis));
        tries.run("reshape", || x.try_reshape([axis, -1]));
        tries.run("broadcast_to", || x.try_broadcast_to([axis, 3]));
        for n in COUNTS {
            tries.run("repeat_interleave", || x.try_repeat_interleave(n, axis));
            tries.run("split", || x.try_split(n, axis));
            tries.run("split_with_sizes", || x.try_split_with_sizes(&[n, 1], axis));
            tries.run("slice_axis", || x.try_slice_axis(axis, n, n, n));
            tries.run("i of steps", || x.try_i(Step(axis.., n)));
        }
    }
    for n in COUNTS {
        tries.run("multinomial", || x.try_multinomial(n, true));
        tries.run("multinomial", || x.try_multinomial(n, false));
        tries.run("sum_to", || x.try_sum_to(&[n, 3]));
        tries.run("reshape", || x.try_reshape([n, n]));
        tries.run("broadcast_to", || x.try_broadcast_to([n, n, 2, 3]));
        for padding in
            [Padding::Constant(f64::NAN), Padding::Reflect, Padding::Replicate, Padding::Circular]
        {
            tries.run("pad", || x.try_pad(&[[n, 1]], padding));
            tries.run("pad", || x.try_pad(&[[1, n], [n, n]], padding));
        }
        // Longer windows than the memory.
        let pool = PoolOptions::new(n.min(99)).stride(n).padding(n);
        tries.run("max_pool2d", || x.try_max_pool2d(pool));
        tries.run("avg_pool2d", || x.try_avg_pool2d(pool));
    }
    for p in [-1.0, f64::NAN, f64::INFINITY, 1.0] {
        tries.run("dropout", || x.try_dropout(p, true));
    }
    tries.run("trace", || x.try_trace());
    tries.run("item", || x.try_item());
    tries.run("Linear", || Linear::new(3, 2).try_forward(x));
    tries.run("Conv2d", || Conv2d::new(2, 2, 3, Conv2dOptions::new()).try_forward(x));
    tries.run("LayerNorm", || LayerNorm::new(3).try_forward(x));
    tries.run("RmsNorm", || RmsNorm::new(3).eps(0.0).try_forward(x));
    tries.run("GroupNorm", || GroupNorm::new(1, 2).try_forward(x));
}

fn of_two(tries: &mut Tries, x: &Tensor<f64>, y: &Tensor<f64>) {
    tries.run("add", || x.try_add(y));
    tries.run("matmul", || x.try_matmul(y));
    tries.run("searchsorted", || x.try_searchsorted(y, true));
    tries.run("outer", || x.try_outer(y));
    tries.run("linear", || x.try_linear(y, Some(x)));
    tries.run("where_else", || x.less(x).try_where_else(x, y));
    tries.run("mse_loss", || x.try_mse_loss(y));
    tries.run("mse_loss_with", || x.try_mse_loss_with(y, LossReduction::BatchMean));
    tries.run("huber_loss", || x.try_huber_loss(y, -1.0));
    tries.run("kl_div", || x.try_kl_div(y));
    tries.run("binary_cross_entropy", || x.try_binary_cross_entropy(y));
    tries.run("binary_cross_entropy_with_logits", || x.try_binary_cross_entropy_with_logits(y));
    tries.run("conv2d", || x.try_conv2d(y, None, Conv2dOptions::new()));
    tries.run("index_put", || x.try_index_put(.., y, true));
    for equation in ["ij,jk->ik", "ij,ij", "...,...", "ii,i->", "i,", "a,b->ab", ""] {
        tries.run("einsum", || Tensor::try_einsum(equation, &[x, y]));
    }
}

fn of_index(tries: &mut Tries, x: &Tensor<f64>, index: &Tensor<i64>) {
    for axis in AXES {
        tries.run("index_select", || x.try_index_select(axis, index));
        tries.run("index_add", || x.try_index_add(axis, index, x));
        tries.run("gather", || x.try_gather(axis, index));
        tries.run("scatter_add", || x.try_scatter_add(axis, index, x));
        tries.run("scatter", || x.try_scatter(axis, index, x));
        tries.run("repeat_interleave_with_counts", || {
            x.try_repeat_interleave_with_counts(index, axis)
        });
        for how in REDUCTIONS {
            tries.run("index_reduce", || x.try_index_reduce(axis, index, x, how));
        }
    }
    for n in COUNTS {
        tries.run("segment_sum", || x.try_segment_sum(index, n));
    }
    tries.run("i", || x.try_i((index, index)));
    tries.run("index_put", || x.try_index_put(index, 1.0, false));
    tries.run("cross_entropy", || x.try_cross_entropy(index));
    tries.run("nll_loss", || x.try_nll_loss(index));
    let options = CrossEntropyOptions::new().weight(x).label_smoothing(0.1).ignore_index(0);
    tries.run("cross_entropy_with", || x.try_cross_entropy_with(index, &options));
    tries.run("nll_loss_with", || x.try_nll_loss_with(index, &options));
    tries.run("Embedding", || Embedding::<f64>::new(2, 3).try_forward(index));
}

#[test]
fn a_method_that_returns_errors_does_not_panic() {
    let mut tries = Tries(Vec::new());
    let (tensors, indices) = (tensors(), indices());
    for x in &tensors {
        of_one(&mut tries, x);
        tensors.iter().for_each(|y| of_two(&mut tries, x, y));
        indices.iter().for_each(|index| of_index(&mut tries, x, index));
    }
    for index in &indices {
        for n in COUNTS {
            tries.run("one_hot", || index.try_one_hot::<f32>(n));
        }
    }
    tries.0.sort();
    tries.0.dedup();
    assert!(tries.0.is_empty(), "{}", tries.0.join("\n"));
}
