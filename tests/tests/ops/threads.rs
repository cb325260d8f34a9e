//! Results do not depend on the number of threads: in-place arithmetic, softmax, convolutions,
//! and steps of optimizers. (`elementwise_forms` tests the same for formulas.)

use autograd_core::nn::{LayerNorm, parameter};
use autograd_core::optim::{
    Adam, AdamW, Optimizer, RmsProp, Rule, Sgd, clip_grad_norm, clip_grad_value,
};
use autograd_core::{Conv2dOptions, Float, Tensor, with_num_threads, with_threads_awake};

/// Numbers around 0, the same in every run.
fn sample<T: Float>(shape: &[usize], seed: usize) -> Tensor<T> {
    let n: usize = shape.iter().product();
    let number = |i: usize| ((i * 7919 + seed) % 1009) as f64 / 252.0 - 2.0;
    Tensor::from_vec(shape, (0..n).map(|i| T::from_f64(number(i))).collect()).unwrap()
}

/// The bits as f64, which represents every f32.
fn bits<T: Float>(x: &Tensor<T>) -> Vec<u64> {
    x.to_vec().into_iter().map(|x| x.into_f64().to_bits()).collect()
}

fn assert_same(what: &str, run: impl Fn() -> Vec<u64>) {
    let one = with_num_threads(1, &run);
    for threads in [2, 3, 5] {
        let found = with_num_threads(threads, || with_threads_awake(&run));
        assert!(found == one, "{what} with {threads} threads");
    }
}

fn temporaries<T: Float>() {
    // Not a multiple of the parts that threads take.
    let n = 200_003;
    let [x, y] = [sample::<T>(&[n], 3), sample::<T>(&[n], 500)];
    let number = T::from_f64(0.7);
    let right = |i: usize| {
        let [x, y] = [&x, &y].map(|t| t.at(&[i]).into_f64());
        ((y - x) * y - x) / (y * y + 1.7)
    };
    let run = || (&y - &x) * &y - &x;
    let run = || run() / (&y * &y + number + T::ONE);
    let z = run();
    for i in (0..n).step_by(997).chain([65_535, 65_536, n - 1]) {
        let (found, right) = (z.at(&[i]).into_f64(), right(i));
        assert!((found - right).abs() < 1e-5, "element {i} is {found}, not {right}");
    }
    assert_same("arithmetic in place", || bits(&run()));
}

#[test]
fn arithmetic_in_place_has_the_same_bits_on_any_number_of_threads() {
    temporaries::<f32>();
    temporaries::<f64>();
}

#[test]
fn products_have_the_same_bits_on_any_number_of_threads() {
    // Small products, several of which a thread takes; then large ones, and a broadcast operand.
    for [left, right] in [
        [&[301, 10, 12][..], &[301, 12, 11]],
        [&[40, 64, 48], &[40, 48, 64]],
        [&[9, 130, 200], &[9, 200, 150]],
        [&[3, 8, 70, 60], &[8, 60, 50]],
        // One product in parts of rows, columns or both.
        [&[700, 260], &[260, 70]],
        [&[70, 530], &[530, 700]],
        [&[301, 260], &[260, 403]],
        [&[7, 400], &[400, 500]],
        [&[1, 310], &[310, 1003]],
        [&[1003, 310], &[310, 1]],
    ] {
        let [x, y] = [sample::<f32>(left, 7), sample::<f32>(right, 401)];
        let run = || {
            x.set_stop_gradient(false);
            y.set_stop_gradient(false);
            let z = x.matmul(&y);
            z.sum().backward().unwrap();
            let gradients = [&x, &y].map(|t| t.grad().unwrap());
            x.clear_grad();
            y.clear_grad();
            [bits(&z), bits(&gradients[0]), bits(&gradients[1])].concat()
        };
        assert_same("products", run);
        if x.ndim() == 2 {
            continue;
        }
        let (last, one) = (x.shape()[0] - 1, x.matmul(&y));
        let alone =
            x.select(0, last).matmul(&if x.ndim() == y.ndim() { y.select(0, last) } else { y });
        assert_eq!(bits(&one.select(0, last)), bits(&alone), "the last of {left:?}");
    }
}

fn softmax_and_losses<T: Float>() {
    for shape in [[3000, 101], [7, 60_000], [40_001, 9]] {
        let run = |f: &dyn Fn(&Tensor<T>) -> Tensor<T>| {
            let x = sample::<T>(&shape, 13);
            x.set_stop_gradient(false);
            let y = f(&x);
            (&y * &sample::<T>(y.shape(), 57)).sum().backward().unwrap();
            [bits(&y), bits(&x.grad().unwrap())].concat()
        };
        for axis in [0, 1] {
            assert_same("softmax", || run(&|x| x.softmax(axis)));
            assert_same("log_softmax", || run(&|x| x.log_softmax(axis)));
        }
        let targets = (0..shape[0]).map(|i| (i * 31 % shape[1]) as i64).collect::<Vec<_>>();
        let targets = Tensor::from(targets);
        assert_same("cross_entropy", || run(&|x| x.cross_entropy(&targets)));
    }
}

#[test]
fn softmax_and_losses_have_the_same_bits_on_any_number_of_threads() {
    softmax_and_losses::<f32>();
    softmax_and_losses::<f64>();
}

fn rows_and_columns<T: Float>() {
    for shape in [[3000, 101], [7, 9_000], [40_000, 3]] {
        let [x, weight, bias] =
            [sample::<T>(&shape, 13), sample(&shape[1..], 5), sample(&shape[1..], 7)];
        let column = sample::<T>(&[shape[0], 1], 11);
        let run = |f: &dyn Fn(&[&Tensor<T>; 4]) -> Tensor<T>| {
            let inputs = [&x, &weight, &bias, &column].map(Tensor::detach);
            inputs.iter().for_each(|input| input.set_stop_gradient(false));
            let y = f(&inputs.each_ref());
            y.backward_with(&sample::<T>(y.shape(), 57)).unwrap();
            let grads = inputs.iter().filter_map(Tensor::grad).map(|grad| bits(&grad));
            grads.fold(bits(&y), |all, grad| [all, grad].concat())
        };
        let norm = |[x, weight, bias, _]: &[&Tensor<T>; 4]| {
            let mut norm = LayerNorm::new(&shape[1..]);
            (norm.weight, norm.bias) = ((*weight).clone(), (*bias).clone());
            norm.forward(x)
        };
        assert_same("layer_norm", || run(&norm));
        assert_same("normalize", || run(&|[x, ..]| x.normalize([1], 1e-3)));
        assert_same("product with a row", || run(&|[x, row, ..]| *x * *row));
        assert_same("product with a column", || run(&|[x, .., column]| *x * *column));
        for axis in [0, 1] {
            let best = || [x.argmax(axis), x.argmin(axis)].map(|at| at.to_vec()).concat();
            assert_same("argmax", || best().into_iter().map(|at| at as u64).collect());
        }
    }
    let long = Tensor::<i64>::arange(300_007) * 7919;
    assert_same("integers", || vec![long.sum().item() as u64, long.max().item() as u64]);
}

#[test]
fn rows_and_columns_have_the_same_bits_on_any_number_of_threads() {
    rows_and_columns::<f32>();
    rows_and_columns::<f64>();
}

#[test]
fn convolutions_and_their_gradients_have_the_same_bits_on_any_number_of_threads() {
    let options = Conv2dOptions::new();
    for (x, w, options) in [
        ([32, 8, 20, 20], [16, 8, 3, 3], options.padding(1)),
        ([32, 6, 33, 33], [12, 3, 3, 3], options.stride(2).groups(2)),
        ([1, 32, 40, 40], [64, 32, 3, 3], options),
        ([3, 64, 9, 9], [64, 64, 1, 1], options),
    ] {
        assert_same("a convolution", || {
            let [x, w] = [sample::<f64>(&x, 11).tanh(), sample::<f64>(&w, 37).tanh()];
            let inputs = [&x, &w].map(Tensor::detach);
            inputs.iter().for_each(|input| input.set_stop_gradient(false));
            let y = inputs[0].conv2d(&inputs[1], None, options);
            y.backward_with(&sample::<f64>(y.shape(), 57).tanh()).unwrap();
            inputs.iter().fold(bits(&y), |all, x| [all, bits(&x.grad().unwrap())].concat())
        });
    }
}

fn steps<T: Float>(what: &str, rule: impl Rule) {
    assert_same(what, || {
        let p = parameter(sample::<T>(&[300_007], 1));
        let mut optimizer = Optimizer::new(&p, rule.clone());
        for step in 0..3 {
            p.set_grad(Some(&sample::<T>(&[300_007], 100 + step))).unwrap();
            clip_grad_norm(&p, 50.0).unwrap();
            clip_grad_value(&p, 0.9).unwrap();
            optimizer.step().unwrap();
        }
        bits(&p)
    });
}

#[test]
fn optimisers_have_the_same_bits_on_any_number_of_threads() {
    fn all<T: Float>() {
        steps::<T>("sgd", Sgd::new(0.1));
        steps::<T>("sgd with momentum", Sgd::new(0.1).momentum(0.9).nesterov(true));
        steps::<T>("adam", Adam::new(0.01).weight_decay(0.1));
        steps::<T>("adamw", AdamW::new(0.01));
        steps::<T>("rmsprop", RmsProp::new(0.01).momentum(0.5).centered(true));
    }
    all::<f32>();
    all::<f64>();
}
