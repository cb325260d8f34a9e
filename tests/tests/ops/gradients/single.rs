//! The gradients of `f32` are those of `f64`, rounded.

use autograd_core::{Conv2dOptions, Float, Tensor};

use super::sample;

fn gradient<T: Float>(f: impl Fn(&Tensor<T>) -> Tensor<T>, x: &Tensor<T>) -> Vec<f64> {
    let x = x.contiguous() * 1.0;
    x.set_stop_gradient(false);
    let y = f(&x);
    let seed = Tensor::from_vec(
        y.shape(),
        (0..y.len()).map(|i| T::from_f64((i % 7) as f64 - 2.5)).collect(),
    );
    y.backward_with(&seed.unwrap()).unwrap();
    x.grad().unwrap().to_vec().into_iter().map(T::into_f64).collect()
}

macro_rules! agree {
    ($($name:literal, $shape:expr, |$x:ident| $body:expr;)*) => {$({
        let x = sample(&$shape, 0.2, 0.9);
        let wide = gradient::<f64>(|$x| $body, &x);
        let narrow = gradient::<f32>(|$x| $body, &x.cast());
        let scale = wide.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
        for (i, (a, b)) in narrow.iter().zip(&wide).enumerate() {
            assert!((a - b).abs() < 2e-5 * scale, "{}, element {i}: {a}, in f64 {b}", $name);
        }
    })*};
}

#[test]
fn they_agree() {
    agree! {
        "tanh", [3, 7], |x| x.tanh();
        "sigmoid", [3, 7], |x| x.sigmoid();
        "exp", [40], |x| x.exp();
        "ln", [40], |x| x.ln();
        "sin", [40], |x| x.sin();
        "gelu", [40], |x| x.gelu();
        "rsqrt", [40], |x| x.rsqrt();
        "mul", [3, 7], |x| x * &x.transpose().reshape([3, 7]);
        "div", [3, 7], |x| x / &(x + 1.0);
        "pow", [3, 7], |x| x.pow(x);
        "sum", [30, 70], |x| x.square().sum_axes([0]);
        "mean", [30, 70], |x| x.square().mean();
        "prod", [3, 4], |x| x.prod_axes([1]);
        "max", [3, 7], |x| x.max_axes([0]);
        "softmax", [3, 17], |x| x.softmax(1);
        "log_softmax", [3, 17], |x| x.log_softmax(0);
        "logsumexp", [3, 17], |x| x.logsumexp([1]);
        "cross_entropy", [3, 5], |x| x.cross_entropy(&Tensor::from([1, 4, 0]));
        "matmul", [12, 12], |x| x.matmul(&x.transpose());
        "conv2d", [2, 2, 5, 5], |x| x.conv2d(&x.narrow(2, 0, 2), None, Conv2dOptions::new());
        "max_pool2d", [2, 2, 4, 4], |x| x.max_pool2d(2).square();
        "norm", [12], |x| x.norm();
        "gather", [3, 4], |x| x.gather(1, &Tensor::from([[0, 0], [1, 3], [2, 2]])).square();
    }
}

#[test]
fn casts_pass_the_gradient_on() {
    let x = Tensor::<f32>::from([0.5, 1.5]);
    x.set_stop_gradient(false);
    let y = x.cast::<f64>().square();
    assert_eq!(y.dtype(), autograd_core::DType::Float64);
    y.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [1.0, 3.0]);
    assert!(x.cast::<i64>().cast::<f32>().stop_gradient());
}
