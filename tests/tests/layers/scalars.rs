//! Numbers as operands of tensors: one convention in all methods and in generic ops.

use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Feed, Program};
use autograd_core::{DType, Element, gradcheck};

/// Every float type accepts its own numbers, `f64` and integers.
macro_rules! floats {
    ($($t:ty)*) => {$({
        let x = || Tensor::<$t>::from([-2.0, -0.5, 0.5, 2.0]);
        let one: $t = 1.0;
        let all = |call: &dyn Fn(Number) -> Vec<f64>| {
            let [a, b, c] = [Number::Own, Number::F64, Number::Whole].map(call);
            assert_eq!(a, b);
            assert_eq!(a, c);
            a
        };
        macro_rules! check {
            ($number:ident => $call:expr, $expected:expr) => {
                let found = all(&|kind| {
                    let y = match kind {
                        Number::Own => { let $number = one; $call }
                        Number::F64 => { let $number = 1.0_f64; $call }
                        Number::Whole => { let $number = 1; $call }
                    };
                    y.cast::<f64>().to_vec()
                });
                assert_eq!(found, $expected, "{}", stringify!($call));
            };
        }
        check!(n => x().eq_scalar(n), [0.0, 0.0, 0.0, 0.0]);
        check!(n => x().ne_scalar(n), [1.0, 1.0, 1.0, 1.0]);
        check!(n => x().gt_scalar(n), [0.0, 0.0, 0.0, 1.0]);
        check!(n => x().ge_scalar(n), [0.0, 0.0, 0.0, 1.0]);
        check!(n => x().lt_scalar(n), [1.0, 1.0, 1.0, 0.0]);
        check!(n => x().le_scalar(n), [1.0, 1.0, 1.0, 0.0]);
        check!(n => x().maximum(n), [1.0, 1.0, 1.0, 2.0]);
        check!(n => x().minimum(n), [-2.0, -0.5, 0.5, 1.0]);
        check!(n => x().clamp(-1, n), [-1.0, -0.5, 0.5, 1.0]);
        check!(n => x().pow(n), [-2.0, -0.5, 0.5, 2.0]);
        check!(n => x() + n, [-1.0, 0.5, 1.5, 3.0]);
        check!(n => x() - n, [-3.0, -1.5, -0.5, 1.0]);
        check!(n => x() * n, [-2.0, -0.5, 0.5, 2.0]);
        check!(n => x() / n, [-2.0, -0.5, 0.5, 2.0]);
        check!(n => x().try_add(n).unwrap(), [-1.0, 0.5, 1.5, 3.0]);
        check!(n => x().leaky_relu(n), [-2.0, -0.5, 0.5, 2.0]);
        check!(n => x().relu().elu(n), [0.0, 0.0, 0.5, 2.0]);
        check!(n => x().gt_scalar(0).where_else(n, &x()), [-2.0, -0.5, 1.0, 1.0]);
        check!(n => x().gt_scalar(0).where_else(x(), n), [1.0, 1.0, 0.5, 2.0]);
        check!(n => Tensor::<$t>::full_like(&x(), n), [1.0; 4]);
        check!(n => { let y = x(); y.fill(n).unwrap(); y }, [1.0; 4]);
        check!(n => { let mut y = x(); y.set_item(&[1], n).unwrap(); y }, [-2.0, 1.0, 0.5, 2.0]);
        check!(n => { let mut y = x(); y += n; y }, [-1.0, 0.5, 1.5, 3.0]);
        check!(n => { let mut y = x(); y.try_mul_assign(n).unwrap(); y }, [-2.0, -0.5, 0.5, 2.0]);
    })*};
}

enum Number {
    Own,
    F64,
    Whole,
}

#[test]
fn floats_take_their_own_numbers_and_f64_and_whole_ones() {
    floats! { f32 f64 }
}

/// An integer tensor accepts its own numbers.
#[test]
fn integers_take_their_own_numbers() {
    macro_rules! integers {
        ($($t:ty)*) => {$({
            let x = Tensor::<$t>::from([1, 2, 3]);
            assert_eq!(x.ge_scalar(2).to_vec(), [false, true, true]);
            assert_eq!(x.maximum(2).to_vec(), [2, 2, 3]);
            assert_eq!((&x + 2).to_vec(), [3, 4, 5]);
            assert_eq!(Tensor::<$t>::full_like(&x, 7).to_vec(), [7, 7, 7]);
            x.fill(7).unwrap();
            assert_eq!(x.to_vec(), [7, 7, 7]);
        })*};
    }
    integers! { i32 i64 u8 }
    let mask = Tensor::from([true, false]);
    assert_eq!(mask.eq_scalar(false).to_vec(), [false, true]);
    mask.fill(true).unwrap();
    assert!(mask.all());
}

/// Numbers whose types are inferred.
#[test]
fn literals_infer() {
    let x = Tensor::from(vec![1.0, 2.0]);
    assert_eq!(x.ge_scalar(2.0).to_vec(), [false, true]);
    assert_eq!(x.clamp(0.0, 1.5).to_vec(), [1.0, 1.5]);
    assert_eq!(Tensor::from([1, 2]).gt_scalar(1).to_vec(), [false, true]);
    assert_eq!(Tensor::full([2], 2.5).sum().item(), 5.0);
    assert_eq!(x.gt_scalar(1.0).where_else(&x, 0.0).to_vec(), [0.0, 2.0]);
    let filled: Tensor<f32> = Tensor::from([true, false]).where_else(1.0, -1.0);
    assert_eq!(filled.to_vec(), [1.0, -1.0]);
}

/// Code that is generic over the element type passes numbers of that type.
#[test]
fn any_element_type() {
    fn same<T: Element>(x: &Tensor<T>, element: T) -> Vec<bool> {
        let y = Tensor::full(x.shape(), element);
        y.fill(element).unwrap();
        assert_eq!(y.equal(x).to_vec(), x.eq_scalar(element).to_vec());
        x.eq_scalar(element).to_vec()
    }
    assert_eq!(same(&Tensor::from([1_u8, 2]), 2), [false, true]);
    assert_eq!(same(&Tensor::from([true, false]), true), [true, false]);
    assert_eq!(same(&Tensor::from([1.0_f32, 2.0]), 2.0), [false, true]);

    fn through<T: Element, U: Element>(x: &Tensor<T>) -> Tensor<U> {
        x.cast::<bool>().cast::<U>()
    }
    assert_eq!(through::<i32, u8>(&Tensor::from([0, 7])).to_vec(), [0, 1]);
    assert_eq!(through::<f32, f64>(&Tensor::from([0.0, 7.0])).to_vec(), [0.0, 1.0]);
}

/// A threshold: masks, numbers and casts with no bound except `Float`.
#[py_layer]
impl<T: Float> Threshold<T> {
    type Saved = Tensor<T>;
    type Attrs = f64;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>, limit: f64) -> Tensor<T> {
        ctx.save_for_backward(x);
        ctx.set_attrs(limit);
        let mask = x.ge_scalar(limit).cast::<T>();
        mask * (x - limit)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let x = ctx.saved_tensor();
        x.ge_scalar(*ctx.attrs()).where_else(dy, 0.0)
    }
}

/// Huber's loss, with a limit of type `T`.
#[py_layer]
impl<T: Float> Huber<T> {
    type Saved = Tensor<T>;
    type Attrs = T;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>, limit: T) -> Tensor<T> {
        ctx.save_for_backward(x);
        ctx.set_attrs(limit);
        let near = x.abs().lt_scalar(limit);
        near.where_else(x.square() * 0.5, x.abs() * limit - limit * limit * T::from_f64(0.5))
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let limit = *ctx.attrs();
        let inside = ctx.saved_tensor().abs().lt_scalar(limit).cast::<T>();
        let slope = ctx.saved_tensor().clamp(-limit, limit);
        dy * (&inside * &slope + (1.0 - inside) * Tensor::full_like(&slope, limit) * slope.signum())
    }
}

#[test]
fn generic_ops_mix_masks_and_numbers() {
    fn run<T: Float>() {
        let x = Tensor::<f64>::from([-2.0, 0.25, 0.75, 3.0]).cast::<T>();
        x.set_stop_gradient(false);
        let y = Threshold::apply(&x, 0.5);
        assert_eq!(y.cast::<f64>().to_vec(), [0.0, 0.0, 0.25, 2.5]);
        y.sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().cast::<f64>().to_vec(), [0.0, 0.0, 1.0, 1.0]);
        x.clear_grad();
        let y = Huber::apply(&x, T::from_f64(0.5));
        assert_eq!(y.cast::<f64>().to_vec(), [0.875, 0.03125, 0.25, 1.375]);
        y.sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().cast::<f64>().to_vec(), [-0.5, 0.25, 0.5, 0.5]);
    }
    run::<f32>();
    run::<f64>();
    let x = Tensor::<f64>::from([-2.0, 0.25, 0.75, 3.0]);
    gradcheck(|x| Huber::apply(&x[0], 0.5), &[x]).unwrap();
}

/// Variables of a program accept numbers as tensors do.
#[test]
fn numbers_beside_variables() {
    let program = Program::new();
    let x = program.data("x", [-1], DType::Float32).unwrap();
    let n = program.data("n", [-1], DType::Int64).unwrap();
    let hits = x.greater_equal(0.5).unwrap().cast(DType::Float32).unwrap();
    let chosen = x.less(0).unwrap().where_else(0.0, &x).unwrap();
    let both = 1 - (&hits * 2 + chosen * 0.5_f32);
    let even = n.equal(2).unwrap().cast(DType::Int64).unwrap();
    let fed: [(&str, &dyn Feed); 2] =
        [("x", &Tensor::from([-1.0_f32, 0.5, 2.0])), ("n", &Tensor::from([1_i64, 2, 3]))];
    let found = Executor::new().run(&program, &fed, &[&both, &even, &(&n * 3.0)]).unwrap();
    assert_eq!(found[0].downcast_ref::<f32>().unwrap().to_vec(), [1.0, -1.25, -2.0]);
    assert_eq!(found[1].downcast_ref::<i64>().unwrap().to_vec(), [0, 1, 0]);
    assert_eq!(found[2].downcast_ref::<i64>().unwrap().to_vec(), [3, 6, 9]);

    let wrong = [
        n.equal(0.5).unwrap_err(),
        n.try_mul(0.5).unwrap_err(),
        n.maximum(1e30).unwrap_err(),
        n.cast(DType::UInt8).unwrap().try_add(256).unwrap_err(),
        n.equal(1).unwrap().where_else(1.0, 0.0).unwrap_err(),
    ];
    let words: Vec<String> = wrong.iter().map(text_of).collect();
    assert_eq!(
        words,
        [
            "equal: int64 cannot hold the number 0.5",
            "mul: int64 cannot hold the number 0.5; given `n`: int64 [-1]",
            "maximum: int64 cannot hold the number 1e30; given `n`: int64 [-1]",
            "add: uint8 cannot hold the number 256.0; given `cast_2`: uint8 [-1]",
            "where_else: `on` and `off` are both numbers; make one a variable, which has a type",
        ]
    );
}

/// The message without the location.
fn text_of(error: &autograd_core::Error) -> String {
    match error {
        autograd_core::Error::Program { op, why, .. } => format!("{op}: {why}"),
        other => panic!("{other}"),
    }
}

/// A traced closure keeps a number that `f64` cannot represent.
#[test]
fn large_whole_numbers_in_a_trace() {
    let odd = (1_i64 << 60) + 1;
    let program = Program::new();
    let n = program.data("n", [-1], DType::Int64).unwrap();
    let traced = program.trace(move |n: &Tensor<i64>| n - odd).x(&n).call().unwrap();
    let fed = Tensor::from([odd, odd + 2]);
    let found = Executor::new().run(&program, &[("n", &fed)], &[&traced]).unwrap();
    assert_eq!(found[0].downcast_ref::<i64>().unwrap().to_vec(), [0, 2]);
}
