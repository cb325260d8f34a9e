//! Each method whose shape the macro follows through a body, with the line that it must agree with. The calls show that
//! tensors agree with the line; a test of the macro reads this file, and shows that a wrong line does not compile.
#![allow(clippy::needless_borrows_for_generic_args, reason = "users write both forms")]

use autograd_core::prelude::*;

macro_rules! walked {
    ($($name:ident: $x:tt, $y:tt -> $output:tt, |$a:ident, $b:ident| $body:expr;)*) => {
        $(
            #[py_layer(no_grad, shapes(x: $x, y: $y -> $output))]
            impl $name {
                fn forward(
                    _: &mut ForwardContext<Self>,
                    $a: &Tensor<f64>,
                    $b: &Tensor<f64>,
                ) -> Tensor<f64> {
                    let _ = $b;
                    $body
                }
            }
        )*

        /// The lengths are b.. = [2], n = 3, m = 4; k = 5 for products.
        #[test]
        fn tensors_agree_with_what_the_walk_knows() {
            $(
                let shape = |axes: &str| {
                    let axes = axes.replace(['[', ']', ' '], "").replace("b..", "2").replace('n', "3");
                    let axes = axes.replace('m', "4").replace('k', "5");
                    axes.split(',').filter_map(|n| n.parse().ok()).collect::<Vec<usize>>()
                };
                let [x, y] = [stringify!($x), stringify!($y)].map(|axes| Tensor::<f64>::full(shape(axes), 0.5));
                assert_eq!($name::apply(&x, &y).shape(), shape(stringify!($output)), "{}", stringify!($name));
            )*
        }
    };
}

walked! {
    Abs: [b.., n], [] -> [b.., n], |x, y| x.abs();
    Acos: [b.., n], [] -> [b.., n], |x, y| x.acos();
    Asin: [b.., n], [] -> [b.., n], |x, y| x.asin();
    Atan: [b.., n], [] -> [b.., n], |x, y| x.atan();
    Ceil: [b.., n], [] -> [b.., n], |x, y| x.ceil();
    Clone: [b.., n], [] -> [b.., n], |x, y| x.clone();
    Contiguous: [b.., n], [] -> [b.., n], |x, y| x.contiguous();
    Copy: [b.., n], [] -> [b.., n], |x, y| x.copy();
    Cos: [b.., n], [] -> [b.., n], |x, y| x.cos();
    Cosh: [b.., n], [] -> [b.., n], |x, y| x.cosh();
    Detach: [b.., n], [] -> [b.., n], |x, y| x.detach();
    Digamma: [b.., n], [] -> [b.., n], |x, y| x.digamma();
    Erf: [b.., n], [] -> [b.., n], |x, y| x.erf();
    Erfinv: [b.., n], [] -> [b.., n], |x, y| x.erfinv();
    Exp: [b.., n], [] -> [b.., n], |x, y| x.exp();
    ExpM1: [b.., n], [] -> [b.., n], |x, y| x.exp_m1();
    Floor: [b.., n], [] -> [b.., n], |x, y| x.floor();
    Gelu: [b.., n], [] -> [b.., n], |x, y| x.gelu();
    Lgamma: [b.., n], [] -> [b.., n], |x, y| x.lgamma();
    Ln: [b.., n], [] -> [b.., n], |x, y| x.ln();
    Ln1p: [b.., n], [] -> [b.., n], |x, y| x.ln_1p();
    Log10: [b.., n], [] -> [b.., n], |x, y| x.log10();
    Log2: [b.., n], [] -> [b.., n], |x, y| x.log2();
    Recip: [b.., n], [] -> [b.., n], |x, y| x.recip();
    Relu: [b.., n], [] -> [b.., n], |x, y| x.relu();
    Round: [b.., n], [] -> [b.., n], |x, y| x.round();
    Rsqrt: [b.., n], [] -> [b.., n], |x, y| x.rsqrt();
    Sigmoid: [b.., n], [] -> [b.., n], |x, y| x.sigmoid();
    Signum: [b.., n], [] -> [b.., n], |x, y| x.signum();
    Silu: [b.., n], [] -> [b.., n], |x, y| x.silu();
    Sin: [b.., n], [] -> [b.., n], |x, y| x.sin();
    Sinh: [b.., n], [] -> [b.., n], |x, y| x.sinh();
    Softplus: [b.., n], [] -> [b.., n], |x, y| x.softplus();
    Sqrt: [b.., n], [] -> [b.., n], |x, y| x.sqrt();
    Square: [b.., n], [] -> [b.., n], |x, y| x.square();
    Tan: [b.., n], [] -> [b.., n], |x, y| x.tan();
    Tanh: [b.., n], [] -> [b.., n], |x, y| x.tanh();
    Cumprod: [n, m], [] -> [n, m], |x, y| x.cumprod(-1);
    Cumsum: [n, m], [] -> [n, m], |x, y| x.cumsum(0);
    Elu: [n, m], [] -> [n, m], |x, y| x.elu(1.0);
    Flip: [n, m], [] -> [n, m], |x, y| x.flip(-1);
    LeakyRelu: [n, m], [] -> [n, m], |x, y| x.leaky_relu(0.1);
    LogSoftmax: [n, m], [] -> [n, m], |x, y| x.log_softmax(-1);
    Roll: [n, m], [] -> [n, m], |x, y| x.roll(1, -1);
    Softmax: [n, m], [] -> [n, m], |x, y| x.softmax(-1);
    Tril: [n, m], [] -> [n, m], |x, y| x.tril(0);
    Triu: [n, m], [] -> [n, m], |x, y| x.triu(0);
    Atan2: [n, m], [m] -> [n, m], |x, y| x.atan2(y);
    Copysign: [n, m], [m] -> [n, m], |x, y| x.copysign(y);
    Hypot: [n, m], [m] -> [n, m], |x, y| x.hypot(y);
    Logaddexp: [n, m], [m] -> [n, m], |x, y| x.logaddexp(y);
    Maximum: [n, m], [m] -> [n, m], |x, y| x.maximum(y);
    Minimum: [n, m], [m] -> [n, m], |x, y| x.minimum(y);
    Remainder: [n, m], [m] -> [n, m], |x, y| x.remainder(y);
    Xlogy: [n, m], [m] -> [n, m], |x, y| x.xlogy(y);
    Max: [n, m], [] -> [], |x, y| x.max();
    MaxAxes: [b.., n, m], [] -> [b.., m], |x, y| x.max_axes(&[-2]);
    MaxAxesKeep: [b.., n, m], [] -> [b.., n, 1], |x, y| x.max_axes_keep([-1]);
    Mean: [n, m], [] -> [], |x, y| x.mean();
    MeanAxes: [b.., n, m], [] -> [b.., m], |x, y| x.mean_axes(&[-2]);
    MeanAxesKeep: [b.., n, m], [] -> [b.., n, 1], |x, y| x.mean_axes_keep([-1]);
    Min: [n, m], [] -> [], |x, y| x.min();
    MinAxes: [b.., n, m], [] -> [b.., m], |x, y| x.min_axes(&[-2]);
    MinAxesKeep: [b.., n, m], [] -> [b.., n, 1], |x, y| x.min_axes_keep([-1]);
    Prod: [n, m], [] -> [], |x, y| x.prod();
    ProdAxes: [b.., n, m], [] -> [b.., m], |x, y| x.prod_axes(&[-2]);
    ProdAxesKeep: [b.., n, m], [] -> [b.., n, 1], |x, y| x.prod_axes_keep([-1]);
    Sum: [n, m], [] -> [], |x, y| x.sum();
    SumAxes: [b.., n, m], [] -> [b.., m], |x, y| x.sum_axes(&[-2]);
    SumNoAxes: [b.., n, m], [] -> [], |x, y| x.sum_axes([]);
    SumAxesKeep: [b.., n, m], [] -> [b.., n, 1], |x, y| x.sum_axes_keep([-1]);
    Pow: [n, m], [] -> [n, m], |x, y| x.pow(2.0);
    Clamp: [n, m], [] -> [n, m], |x, y| x.clamp(0.0, 1.0);
    Turned: [b.., n, m], [] -> [b.., m, n], |x, y| x.t();
    Transpose: [n, m], [] -> [m, n], |x, y| x.transpose();
    Squeeze: [n, 1, m], [] -> [n, m], |x, y| x.squeeze(1);
    SqueezeLast: [b.., n, 1], [] -> [b.., n], |x, y| x.squeeze(-1);
    Dim: [n, m], [] -> [m, n], |x, y| Tensor::zeros([x.dim(1), x.dim(0)]);
    Scaled: [n, m], [] -> [n, m], |x, y| x / (x.dim(-1) as f64).sqrt();
    Arrays: [n, m], [] -> [m, n], |x, y| {
        let [a, b] = [x.t(), x.clone()];
        a + b.t()
    };
    Unsqueeze: [n, m], [] -> [n, 1, m], |x, y| x.unsqueeze(1);
    UnsqueezeLast: [b.., n], [] -> [b.., n, 1], |x, y| x.unsqueeze(-1);
    Select: [n, m], [] -> [m], |x, y| x.select(0, 1);
    SelectLast: [b.., n, m], [] -> [b.., n], |x, y| x.select(-1, 0);
    Permute: [n, m, k], [] -> [k, n, m], |x, y| x.permute(&[2, 0, 1]);
    SumTo: [n, m], [m] -> [m], |x, y| x.sum_to(y.shape());
    BroadcastTo: [m], [n, m] -> [n, m], |x, y| x.broadcast_to(y.shape());
    Reshape: [n, m], [m, n] -> [m, n], |x, y| x.reshape(y.shape());
    ReshapeTo: [n, m], [] -> [m, n], |x, y| x.reshape([x.shape()[1], x.shape()[0]]);
    Outer: [n], [m] -> [n, m], |x, y| x.outer(y);
    Matmul: [n, k], [k, m] -> [n, m], |x, y| x.matmul(y);
    MatmulBatch: [b.., n, k], [k, m] -> [b.., n, m], |x, y| x.matmul(y);
    MatmulBatches: [b.., n, k], [b.., k, m] -> [b.., n, m], |x, y| x.matmul(y);
    MatmulRows: [b.., k], [k, m] -> [b.., m], |x, y| x.matmul(y);
    MatmulVector: [n, k], [k] -> [n], |x, y| x.matmul(y);
    VectorMatmul: [k], [k, m] -> [m], |x, y| x.matmul(y);
    Dot: [k], [k] -> [], |x, y| x.matmul(y);
    Operators: [b.., n], [n] -> [b.., n], |x, y| -(x + y) * 2.0 - x / y;
    Zeros: [n, m], [] -> [m, n], |x, y| Tensor::zeros([x.shape()[1], x.shape()[0]]);
    ZerosLike: [n, m], [] -> [n, m], |x, y| Tensor::zeros_like(x);
    Slices: [n, m], [] -> [m], |x, y| {
        let &[_, m] = x.shape() else { unreachable!() };
        Tensor::ones([m])
    };
    Branches: [n, m], [] -> [n, m], |x, y| if x.shape()[0] > 1 { x.abs() } else { x * 2.0 };
    Tuples: [n, m], [] -> [m, n], |x, y| {
        let (a, b) = (x.t(), x);
        a + b.t()
    };
}
