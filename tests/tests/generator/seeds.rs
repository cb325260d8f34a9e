//! The programs of Paddle's pages on `PyLayer`, `PyLayerContext` and `py_func`, in order, with the
//! numbers that Paddle prints.

use std::sync::atomic::{AtomicUsize, Ordering};

use autograd_core::prelude::*;
use support::ops::Tanh;
use support::{TANH_GRADIENT, wanting};

use crate::seeded;

fn assert_close<T: Float>(found: &Tensor<T>, expected: &[f64], tolerance: f64) {
    let found: Vec<f64> = found.to_vec().into_iter().map(T::into_f64).collect();
    let close = |a: f64, b: f64| (a - b).abs() <= tolerance * b.abs().max(1.0);
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().zip(expected).all(|(&a, &b)| close(a, b)), "{found:?} != {expected:?}");
}

#[test]
fn the_printed_gradient_digit_for_digit() {
    let _turn = seeded(2023);
    let data = wanting(Tensor::<f64>::randn([2, 3]));
    Tanh::apply(&data).mean().backward().unwrap();
    let grad = data.grad().unwrap();
    assert_close(&grad, &TANH_GRADIENT, 1e-15);
    let printed = "\
Tensor(shape=[2, 3], dtype=float64, stop_gradient=true,
[[0.16604150, 0.05858341, 0.14051214],
 [0.15677770, 0.01564609, 0.02991660]])";
    assert_eq!(grad.to_string(), printed);
}

#[py_layer]
impl<T: Float> TanhWith<T> {
    type Saved = Tensor<T>;
    type Attrs = fn(&Tensor<T>) -> Tensor<T>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<T>,
        func1: fn(&Tensor<T>) -> Tensor<T>,
        #[default(Tensor::square)] func2: fn(&Tensor<T>) -> Tensor<T>,
    ) -> Tensor<T> {
        ctx.set_attrs(func2);
        let y = func1(x);
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let y = ctx.saved_tensor();
        let func2 = ctx.attrs();
        dy * (1.0 - func2(y))
    }
}

#[test]
fn functions_as_arguments_and_attributes() {
    let _turn = seeded(2023);
    let data = wanting(Tensor::<f64>::randn([2, 3]));
    let z = TanhWith::apply(&data, Tensor::tanh, Tensor::square);
    assert!(!z.stop_gradient() && !z.is_leaf());
    z.mean().backward().unwrap();
    assert_close(&data.grad().unwrap(), &TANH_GRADIENT, 1e-15);
}

#[test]
fn the_default_and_the_order_of_names() {
    let _turn = seeded(2023);
    let data = wanting(Tensor::<f64>::randn([2, 3]));
    for z in [
        TanhWith::with().x(&data).func1(Tensor::tanh).apply(),
        TanhWith::with().func1(Tensor::tanh).x(&data).apply(),
        TanhWith::with().func2(Tensor::square).func1(Tensor::tanh).x(&data).apply(),
    ] {
        data.clear_grad();
        z.mean().backward().unwrap();
        assert_close(&data.grad().unwrap(), &TANH_GRADIENT, 1e-15);
    }
    // Another function than the default: `1 - |y|` is not the derivative, but it was requested.
    data.clear_grad();
    let z = TanhWith::with().x(&data).func1(Tensor::tanh).func2(Tensor::abs).apply();
    z.sum().backward().unwrap();
    let expected: Vec<f64> = data.to_vec().iter().map(|x| 1.0 - x.tanh().abs()).collect();
    assert_close(&data.grad().unwrap(), &expected, 1e-15);
}

#[test]
fn in_single_precision() {
    let _turn = seeded(2023);
    let data = wanting(Tensor::<f32>::randn([2, 3]));
    TanhWith::with().x(&data).func1(Tensor::tanh).apply().mean().backward().unwrap();
    // Paddle's f32 tanh is an approximation; the printed numbers differ in their last digit.
    let paddle = [0.16604151, 0.05858340, 0.14051215, 0.15677771, 0.01564610, 0.02991660];
    assert_close(&data.grad().unwrap(), &paddle, 2e-8);
}

// A forward without a tensor among its outputs does not compile: `ui/outputs/shape_only.rs`.

#[py_layer]
impl AddWithShape {
    fn forward(_ctx: &mut ForwardContext<Self>, x1: &Tensor, x2: &Tensor) -> (Tensor, Vec<usize>) {
        let y = x1 + x2;
        let shape = y.shape().to_vec();
        (y, shape)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor) -> (Tensor, Tensor) {
        (dy.clone(), dy.clone())
    }
}

#[test]
fn an_output_that_is_no_tensor_and_one_tensor_twice() {
    let data = wanting(Tensor::<f32>::ones([2, 3]));
    let (z, y_shape) = AddWithShape::apply(&data, &data);
    z.mean().backward().unwrap();
    assert_eq!(y_shape, [2, 3]);
    assert_eq!(data.grad().unwrap().to_vec(), [2.0 / 6.0; 6]);
    assert!(data.grad().unwrap().to_string().contains("0.33333334, 0.33333334"));
}

#[py_layer(allow(none_gradient))]
impl AddToConstant {
    fn forward(_ctx: &mut ForwardContext<Self>, x1: &Tensor, x2: &Tensor) -> Tensor {
        x1 + x2
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor) -> (Tensor, Option<Tensor>) {
        BACKWARDS.fetch_add(1, Ordering::Relaxed);
        (dy.clone(), None)
    }
}

static BACKWARDS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn no_gradient_where_none_is_wanted() {
    let data1 = wanting(Tensor::<f32>::ones([2, 3]));
    let data2 = Tensor::<f32>::ones([2, 3]);
    AddToConstant::apply(&data1, &data2).mean().backward().unwrap();
    assert_eq!(BACKWARDS.load(Ordering::Relaxed), 1);
    assert_eq!(data1.grad().unwrap().to_vec(), [1.0 / 6.0; 6]);
    assert!(data2.grad().is_none());

    // No gradient is wanted, so backward does not run.
    let data1 = Tensor::<f32>::ones([2, 3]);
    let z = AddToConstant::apply(&data1, &data2);
    assert!(z.stop_gradient() && z.is_leaf());
    z.mean().backward().unwrap();
    assert_eq!(BACKWARDS.load(Ordering::Relaxed), 1);
    assert!(data1.grad().is_none() && data2.grad().is_none());
}

#[py_layer]
impl TwiceAndThrice {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let a = x + x;
        let b = x + x + x;
        ctx.mark_non_differentiable(&a);
        (a, b)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        grad_a: &Tensor<f64>,
        grad_b: &Tensor<f64>,
    ) -> Tensor<f64> {
        assert_eq!((grad_a.shape(), grad_a.to_vec()), (&[1][..], vec![0.0]));
        assert_eq!((grad_b.shape(), grad_b.to_vec()), (&[1][..], vec![1.0]));
        grad_b.clone()
    }
}

#[test]
fn a_marked_output_gets_zeros() {
    let x = wanting(Tensor::<f64>::ones([1]));
    let (a, b) = TwiceAndThrice::apply(&x);
    assert_eq!((a.to_vec(), b.to_vec()), (vec![2.0], vec![3.0]));
    assert!(a.stop_gradient() && !b.stop_gradient());
    b.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [1.0]);
}

#[py_layer]
impl Materialized {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (x + x + x, x + x)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        grad: &Tensor<f64>,
        grad2: &Tensor<f64>,
    ) -> Tensor<f64> {
        assert_eq!((grad2.shape(), grad2.to_vec()), (&[1][..], vec![0.0]));
        grad.clone()
    }
}

#[py_layer]
impl NotMaterialized {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        ctx.set_materialize_grads(false);
        (x + x + x, x + x)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        grad: Option<&Tensor<f64>>,
        grad2: Option<&Tensor<f64>>,
    ) -> Option<Tensor<f64>> {
        assert!(grad2.is_none());
        grad.cloned()
    }
}

#[test]
fn a_missing_gradient_is_zeros_or_none() {
    let x = wanting(Tensor::<f64>::ones([1]));
    Materialized::apply(&x).0.backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [1.0]);

    let x2 = wanting(Tensor::<f64>::ones([1]));
    NotMaterialized::apply(&x2).0.backward().unwrap();
    assert_eq!(x2.grad().unwrap().to_vec(), [1.0]);
}

#[py_layer]
impl Exp {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.mark_not_inplace(x);
        x.clone()
    }

    fn backward(_ctx: &BackwardContext<Self>, grad_output: &Tensor<f64>) -> Tensor<f64> {
        grad_output.exp()
    }
}

#[test]
fn an_input_returned_is_a_new_tensor() {
    let x = wanting(Tensor::<f64>::full([1, 1], 0.25));
    for step in 1..=2 {
        let mut a = x.clone();
        for _ in 0..2 {
            a = Exp::apply(&x);
        }
        assert_eq!(a.to_vec(), [0.25]);
        assert!(!a.is_leaf() && x.is_leaf());
        a.backward().unwrap();
        // Backward walked only from the last of the two.
        let expected = f64::from(step) * std::f64::consts::E;
        assert_close(&x.grad().unwrap(), &[expected], 1e-15);
    }
}

/// The text without its first line.
fn printed<T: Element>(tensor: &Tensor<T>) -> String {
    let text = tensor.to_string();
    let (_, data) = text.split_once('\n').unwrap();
    data.strip_suffix(')').unwrap().to_owned()
}

#[test]
fn items_and_their_columns() {
    assert_eq!(printed(&Tensor::from([1.0, 2.0])), "[1., 2.]");
    assert_eq!(printed(&Tensor::from([1.0, -2.5])), "[ 1.        , -2.50000000]");
    assert_eq!(
        printed(&Tensor::from([100.5, 2.25, -3.125])),
        "[100.50000000,  2.25000000 , -3.12500000 ]"
    );
    assert_eq!(printed(&Tensor::from([1e-10, 1.0, 1e5])), "[0.00000000, 1.        , 100000.   ]");
    assert_eq!(printed(&Tensor::from([f64::NAN, f64::INFINITY, -1.0])), "[ nan, inf., -1. ]");
    assert_eq!(printed(&Tensor::from([[1, -20], [300, 4]])), "[[ 1 , -20],\n [300,  4 ]]");
    assert_eq!(printed(&Tensor::from([true, false])), "[True , False]");
}

#[test]
fn shapes_and_long_tensors() {
    assert_eq!(printed(&Tensor::from(2.5)), "2.50000000");
    assert_eq!(printed(&Tensor::<f64>::zeros([2, 0])), "[[],\n []]");
    assert_eq!(
        printed(&Tensor::<i64>::arange(8).reshape([2, 2, 2])),
        "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]]",
    );
    assert_eq!(printed(&Tensor::<i64>::arange(2000)), "[0   , 1   , 2   , ..., 1997, 1998, 1999]");
    let wrapped = printed(&Tensor::<i64>::arange(100));
    assert!(wrapped.lines().count() > 1 && wrapped.lines().all(|line| line.len() <= 80));
}
