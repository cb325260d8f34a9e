//! Shapes that no machine can hold, in every call that creates or changes one: an error, or a
//! panic that can be caught, but never an abort of the process and never a tensor with a wrong
//! length.

use std::panic::{AssertUnwindSafe, catch_unwind};

use autograd_core::nn::{BatchNorm2d, Conv2d, Embedding, LayerNorm, Linear, init};
use autograd_core::static_graph::{Executor, Program};
use autograd_core::{
    Conv2dOptions, DType, Error, Generator, PoolOptions, Result, Tensor, fuse, try_fuse,
};
use ndarray::{ArrayView, IxDyn};

/// Elements that can be counted but not stored: in bytes they fill a 47-bit address space.
const WIDE: usize = 1 << 47;
const MAX: usize = usize::MAX;

/// A tensor of this shape whose elements are a single number in memory.
fn wide(shape: &[usize]) -> Tensor<f64> {
    Tensor::from(1.0).broadcast_to(shape)
}

/// The message of a call, from an error or a panic.
fn words<T>(call: impl FnOnce() -> Result<T>) -> String {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(_)) => "nothing".into(),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => match panic.downcast_ref::<String>() {
            Some(text) => text.clone(),
            None => panic.downcast_ref::<&str>().map_or_else(String::new, ToString::to_string),
        },
    }
}

/// Calls that must report that memory is insufficient.
struct Calls(Vec<String>);

impl Calls {
    fn refused<T>(&mut self, name: &str, call: impl FnOnce() -> T) {
        self.tried(name, || Ok(call()));
    }

    fn tried<T>(&mut self, name: &str, call: impl FnOnce() -> Result<T>) {
        let words = words(call);
        if !words.contains("is too large for this machine") && !words.contains("out of memory: ") {
            self.0.push(format!("{name}: {words}"));
        }
    }

    /// All calls reported that, and the library is usable.
    #[track_caller]
    fn end(self) {
        assert!(self.0.is_empty(), "no clear error:\n{}", self.0.join("\n"));
        let x = Tensor::from([2.0, 3.0]);
        x.set_stop_gradient(false);
        x.square().sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), [4.0, 6.0]);
    }
}

#[test]
fn constructors() {
    let mut calls = Calls(Vec::new());
    for shape in [&[WIDE][..], &[MAX], &[MAX, MAX], &[0, MAX, 2], &[1 << 32, 1 << 32], &[1 << 60]] {
        calls.refused("zeros", || Tensor::<f64>::zeros(shape));
        calls.refused("ones", || Tensor::<u8>::ones(shape));
        calls.refused("full", || Tensor::full(shape, true));
        calls.refused("rand", || Tensor::<f32>::rand(shape));
        calls.refused("randn", || Tensor::<f64>::randn(shape));
        calls.refused("uniform", || Tensor::<f64>::uniform(shape, 0.0, 2.0));
        calls.refused("normal", || Tensor::<f32>::normal(shape, 0.0, 2.0));
        calls.refused("randint", || Tensor::randint(shape, 0, 3));
        calls.refused("init", || init::normal::<f64>(shape, 0.0, 1.0));
        calls.refused("LayerNorm", || LayerNorm::<f32>::new(shape));
    }
    for n in [WIDE, MAX] {
        calls.refused("arange", || Tensor::<f64>::arange(n));
        calls.refused("linspace", || Tensor::<f64>::linspace(0.0, 1.0, n));
        calls.refused("eye", || Tensor::<f32>::eye(n));
        calls.refused("randperm", || Tensor::randperm(n));
        calls.refused("Generator::randperm", || Generator::new(1).randperm(n));
        calls.refused("one_hot", || Tensor::from([0]).one_hot::<f64>(n));
        calls.refused("Linear", || Linear::<f32>::new(n, n));
        calls.refused("Embedding", || Embedding::<f32>::new(n, 8));
        calls.refused("Conv2d", || Conv2d::<f32>::new(n, 8, 3, Conv2dOptions::new()));
        calls.refused("BatchNorm2d", || BatchNorm2d::<f32>::new(n));
    }
    for shape in [[MAX, 8], [1 << 40, 1 << 40], [0, 1 << 63]] {
        calls.tried("from_vec", || Tensor::from_vec(shape, vec![1.0]));
    }
    calls.refused("zeros_like", || Tensor::<f64>::zeros_like(&wide(&[WIDE])));
    calls.refused("ones_like", || Tensor::<i64>::ones_like(&wide(&[WIDE])));
    let view = ArrayView::from(&[1.0]);
    let view = view.broadcast(IxDyn(&[WIDE])).unwrap();
    calls.refused("from a view", || Tensor::from(view));
    let bytes = ArrayView::from(&[1_u8]);
    let bytes = bytes.broadcast(IxDyn(&[1 << 62])).unwrap();
    calls.refused("from a view of bytes", || Tensor::from(bytes));
    calls.end();
}

#[test]
fn ops_on_more_than_can_be_held() {
    let mut calls = Calls(Vec::new());
    let x = wide(&[WIDE]);
    let rows = wide(&[2, WIDE]);
    let index = Tensor::<i64>::zeros([1]).broadcast_to([WIDE]);
    calls.refused("to_vec", || x.to_vec());
    calls.refused("to_ndarray", || x.to_ndarray());
    calls.refused("Display", || x.to_string());
    calls.refused("contiguous", || x.contiguous());
    calls.refused("reshape", || x.reshape([2, WIDE / 2]));
    calls.refused("flip", || x.flip(0));
    calls.refused("dropout", || x.dropout(0.5, true));
    calls.refused("cast", || x.cast::<f32>());
    calls.refused("gt", || x.gt_scalar(0.0));
    calls.refused("is_nan", || x.is_nan());
    calls.refused("sum of the other", || rows.sum_axes([0]));
    calls.refused("var", || rows.var_axes([1], 1));
    calls.refused("argmax", || rows.argmax(1));
    calls.refused("cumsum", || x.cumsum(0));
    calls.refused("softmax", || rows.softmax(1));
    calls.refused("log_softmax", || rows.log_softmax(1));
    calls.refused("logsumexp", || rows.logsumexp([1]));
    calls.refused("concat", || Tensor::concat(&[&x, &x], 0));
    calls.refused("stack", || Tensor::stack(&[&x, &x], 0));
    calls.refused("split", || x.split(WIDE, 0));
    calls.refused("split of nothing", || Tensor::<f64>::zeros([0]).split(MAX, 0));
    calls.refused("tril", || wide(&[1 << 30, 1 << 29]).tril(0));
    calls.refused("matmul", || wide(&[2, WIDE]).matmul(&wide(&[WIDE, 2]).contiguous()));
    calls.refused("index_select", || Tensor::from([1.0]).index_select(0, &index));
    calls.refused("gather", || Tensor::from([1.0]).gather(0, &index));
    calls.refused("where_else", || x.gt_scalar(0.0).where_else(&x, &x));
    calls.refused("layer norm", || rows.normalize([1], 1e-5));
    calls.end();
}

#[test]
fn one_number_shown_as_many_is_computed_once() {
    let x = wide(&[WIDE]);
    let half = x.clamp(0.0, 0.5);
    let fused = fuse([&x], |[x]| x.exp());
    let results = [&x + &x, &x + 1.0, x.exp(), fused, x.pow(&x), half];
    let expected = [2.0, 2.0, std::f64::consts::E, std::f64::consts::E, 1.0, 0.5];
    for (result, expected) in results.into_iter().zip(expected) {
        assert_eq!(result.shape(), [WIDE]);
        let mean = result.sum().item() / WIDE as f64;
        assert!((mean - expected).abs() < 1e-12, "{mean} {expected}");
    }
    let rows = wide(&[2, WIDE]);
    assert_eq!(rows.sum_axes([1]).to_vec(), [WIDE as f64; 2]);
    for ones in [rows.mean_axes([1]), rows.prod_axes([1]), rows.min_axes([1])] {
        assert_eq!(ones.to_vec(), [1.0; 2]);
    }
    assert_eq!(x.max().item(), 1.0);
    assert_eq!(x.norm().item(), (WIDE as f64).sqrt());
    assert_eq!(x.mse_loss(&x).item(), 0.0);
}

#[test]
fn results_larger_than_their_operands() {
    let mut calls = Calls(Vec::new());
    let (column, row) = (wide(&[1 << 40, 1]), wide(&[1, 1 << 40]));
    calls.tried("add", || column.try_add(&row));
    calls.tried("mul", || column.try_mul(&row));
    calls.tried("eq", || Ok(column.equal(&row)));
    calls.tried("where_else", || Tensor::from([true]).try_where_else(&column, &row));
    calls.tried("outer", || wide(&[1 << 40]).try_outer(&wide(&[1 << 40])));
    calls.tried("fuse", || try_fuse([&column, &row], |[x, y]| x * y));
    calls.tried("broadcast_to", || column.try_broadcast_to([1_usize << 40, 1 << 40]));
    let nothing = [Tensor::<f64>::zeros([1 << 40, 0]), Tensor::zeros([0, 1 << 40])];
    calls.tried("matmul", || nothing[0].try_matmul(&nothing[1]));
    calls.tried("a stack of products", || {
        wide(&[1 << 40, 1, 1, 1]).try_matmul(&wide(&[1 << 40, 1, 1]))
    });
    calls.tried("sum", || Ok(Tensor::<f64>::zeros([WIDE, 0]).sum_axes([1])));
    calls.tried("index_select", || {
        wide(&[1, 1 << 50]).try_index_select(0, &Tensor::zeros([1 << 12]))
    });
    let long = wide(&[(1 << 60) - 1]);
    calls.tried("concat", || Tensor::try_concat(&[&long; 20], 0));
    calls.tried("concat of nothing", || {
        let nothing = Tensor::<f64>::zeros([(1 << 60) - 1, 0]);
        Tensor::try_concat(&[&nothing; 20], 0)
    });
    calls.tried("one_hot", || Tensor::from([0, 1]).try_one_hot::<f32>(1 << 59));
    let byte = Tensor::<u8>::zeros([1]);
    for n in [1 << 60, 1 << 62, MAX] {
        calls.tried("bytes", || byte.try_broadcast_to([n]));
    }
    calls.refused("bytes as numbers", || byte.broadcast_to([1_usize << 59]).cast::<f64>());
    let picture = Tensor::<f32>::zeros([1, 1, 4, 4]);
    let kernel = Tensor::<f32>::zeros([1, 1, 1, 1]);
    for padding in [1 << 31, 1 << 40, MAX / 2, MAX] {
        let options = Conv2dOptions::new().padding(padding);
        calls.tried("conv2d", || picture.try_conv2d(&kernel, None, options));
        let options = PoolOptions::new(MAX).padding(padding);
        let text = words(|| picture.try_max_pool2d(options));
        assert!(text.starts_with("max_pool2d: "), "{text}");
        let text = words(|| picture.try_avg_pool2d(options));
        assert!(text.starts_with("avg_pool2d: "), "{text}");
    }
    calls.end();
}

/// Very long axes beside one of length 0: no elements, and nothing to do.
#[test]
fn long_axes_without_elements() {
    let x = Tensor::<f64>::zeros([WIDE, 0]);
    x.set_stop_gradient(false);
    let index = Tensor::<i64>::zeros([0]);
    assert_eq!((&x + 1.0).exp().shape(), [WIDE, 0]);
    assert_eq!(x.cumsum(1).shape(), [WIDE, 0]);
    assert_eq!(x.cumsum(0).shape(), [WIDE, 0]);
    assert_eq!(x.softmax(1).shape(), [WIDE, 0]);
    assert_eq!(x.index_select(1, &index).shape(), [WIDE, 0]);
    assert_eq!(x.index_select(0, &Tensor::from([3])).shape(), [1, 0]);
    assert_eq!(Tensor::concat(&[&x, &x], 1).shape(), [WIDE, 0]);
    assert_eq!(x.transpose().flip(0).contiguous().shape(), [0, WIDE]);
    assert!(x.to_vec().is_empty());
    assert_eq!(x.sum().item(), 0.0);
    (x.cumsum(1) * 2.0).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().shape(), [WIDE, 0]);
    assert!(x.to_string().len() < 1000);
}

#[test]
fn programs() {
    let program = Program::new();
    let x = program.data("x", [-1, 4], DType::Float32).unwrap();
    let tall = program.data("tall", [1_i64 << 62, 1 << 62], DType::Float32).unwrap();
    let wide = program.data("wide", [1_i64 << 62, 1 << 62], DType::Float32).unwrap();
    for text in [
        words(|| tall.reshape([-1, 1_i64 << 62, 1 << 62])),
        words(|| tall.reshape([4])),
        words(|| x.reshape([1_i64 << 62, 1 << 62])),
        words(|| program.concat(&[&tall, &tall, &tall, &wide, &wide], 0)),
    ] {
        assert!(text.contains("too large"), "{text}");
    }
    // Insufficient memory is reported on allocation: here by the startup program.
    let program = Program::new();
    let x = program.data("x", [-1, 1_i64 << 40], DType::Float32).unwrap();
    program.fc(&x, 1 << 40).unwrap();
    let error = Executor::new().run(&program.startup(), &[], &[]).unwrap_err();
    assert!(matches!(error, Error::Operator { .. }), "{error}");
    assert!(error.to_string().contains("too large for this machine"), "{error}");
    let program = Program::new();
    let x = program.data("x", [-1, 1_i64 << 24], DType::Float32).unwrap();
    program.fc(&x, 1 << 24).unwrap();
    let error = Executor::new().run(&program.startup(), &[], &[]).unwrap_err();
    assert!(error.to_string().contains("out of memory"), "{error}");
}
