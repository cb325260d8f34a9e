//! The gradient checker on functions of every size: slopes from 1e-30 to 1e30, of outputs and of inputs of
//! every size, and functions whose differences are mostly rounding.

use autograd_core::prelude::*;
use autograd_core::{
    AnyTensor, Error, Generator, Result, gradcheck, gradcheck_any, gradgradcheck,
    gradgradcheck_any, jvpcheck,
};

/// `size * sin(frequency * x)`, with rules that are off by factors.
#[derive(Clone, Copy)]
struct Wave {
    size: f64,
    frequency: f64,
    backward: f64,
    second: f64,
    jvp: f64,
}

#[py_layer]
impl<T: Float> Sine<T> {
    type Saved = Tensor<T>;
    type Attrs = Wave;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>, wave: Wave) -> Tensor<T> {
        ctx.save_for_backward(x);
        ctx.set_attrs(wave);
        (x * wave.frequency).sin() * wave.size
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let wave = *ctx.attrs();
        dy * Slope::apply(ctx.saved_tensor(), wave) * wave.backward
    }

    fn jvp(ctx: &JvpContext<Self>, x: &Tensor<T>, dx: &Tensor<T>) -> Tensor<T> {
        let wave = *ctx.attrs();
        dx * (x * wave.frequency).cos() * (wave.size * wave.frequency * wave.jvp)
    }
}

/// The derivative of that.
#[py_layer]
impl<T: Float> Slope<T> {
    type Saved = Tensor<T>;
    type Attrs = Wave;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>, wave: Wave) -> Tensor<T> {
        ctx.save_for_backward(x);
        ctx.set_attrs(wave);
        (x * wave.frequency).cos() * (wave.size * wave.frequency)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let Wave { size, frequency, second, .. } = *ctx.attrs();
        let slope = (ctx.saved_tensor() * frequency).sin() * (size * frequency);
        dy * slope * (-frequency * second)
    }
}

fn wave<T: Float>(t: &[AnyTensor], wave: Wave) -> AnyTensor {
    Sine::apply(t[0].downcast_ref::<T>().unwrap(), wave).into()
}

/// Every check of functions of which the inputs, the outputs or both have the size 10^k.
fn of_every_size<T: Float>(inputs: i32) {
    // The size, the frequency, and whether the second derivative is a number of the type.
    let forms: [(&str, fn(f64) -> (f64, f64), i32); 3] = [
        ("outputs", |by| (by, 1.0), 30),
        ("inputs", |by| (1.0, by), inputs),
        ("both", |by| (by, 1.0 / by), inputs),
    ];
    for (name, form, most) in forms {
        for k in -most..=most {
            let (size, frequency) = form(10_f64.powi(k));
            let x: Vec<_> = [0.7, -1.1, 2.3].map(|x| T::from_f64(x / frequency)).to_vec();
            let x: [AnyTensor; 1] = [Tensor::from(x).into()];
            let right = Wave { size, frequency, backward: 1.0, second: 1.0, jvp: 1.0 };
            let what =
                |order: &str, found: &Result<()>| format!("{name} of 1e{k}, {order}: {found:?}");
            let first = |w| gradcheck_any(|t| wave::<T>(t, w), &x);
            let second = |w| gradgradcheck_any(|t| wave::<T>(t, w), &x);
            for (order, found) in [("first", first(right)), ("second", second(right))] {
                assert!(found.is_ok(), "{}", what(order, &found));
            }
            for by in [0.9, 1.1, 0.0] {
                let found = first(Wave { backward: by, ..right });
                assert!(
                    matches!(found, Err(Error::GradientWrong { .. })),
                    "{}",
                    what("first", &found)
                );
                let found = first(Wave { jvp: by, ..right });
                assert!(matches!(found, Err(Error::JvpWrong { .. })), "{}", what("jvp", &found));
                let found = second(Wave { second: by, ..right });
                assert!(
                    matches!(found, Err(Error::GradientWrong { .. })),
                    "{}",
                    what("second", &found)
                );
            }
        }
    }
}

#[test]
fn wrong_rules_of_any_size_are_found_in_double_precision() {
    of_every_size::<f64>(30);
}

#[test]
fn wrong_rules_of_any_size_are_found_in_single_precision() {
    of_every_size::<f32>(15);
}

#[test]
fn errors_give_the_gradient_of_an_element() {
    let off = Wave { size: 1e-20, frequency: 1e6, backward: 1.1, second: 1.0, jvp: 1.0 };
    let error = gradcheck(|t| Sine::apply(&t[0], off), &[Tensor::from(0.0)]).unwrap_err();
    let Error::GradientWrong { backward, differences, .. } = error else { panic!("{error}") };
    // Times a random number of the output.
    assert!((1e-16..1.1e-14).contains(&backward.abs()), "{backward}");
    assert!((backward / differences - 1.1).abs() < 1e-4, "{backward} {differences}");
}

type Of = fn(&Tensor<f64>) -> Tensor<f64>;

fn passes(name: &str, f: Of, x: &Tensor<f64>) {
    let all = [x.clone()];
    let found = jvpcheck(|t| f(&t[0]), &all).and_then(|()| gradgradcheck(|t| f(&t[0]), &all));
    assert!(found.is_ok(), "{name} at {:?}: {found:?}", x.to_vec());
}

/// Outputs that are constant up to rounding, and sums that cancel.
#[test]
fn gradients_that_are_only_rounding_raise_no_alarm() {
    let functions: [(&str, Of); 8] = [
        ("a constant", |x| x.detach().square()),
        ("zero times", |x| x * 0.0),
        ("a difference", |x| (x - x).sum()),
        ("a centred sum", |x| (x - x.mean()).sum()),
        ("a normalized sum", |x| {
            ((x - x.mean()) / ((x - x.mean()).square().mean() + 1e-5).sqrt()).sum()
        }),
        ("a softmax", |x| x.softmax(0).sum()),
        ("a log-softmax", |x| x.log_softmax(0).exp().sum() - 1.0),
        ("a circle", |x| x.sin().square() + x.cos().square()),
    ];
    for seed in 0..12 {
        let mut generator = Generator::new(seed);
        let x = generator.run(|| Tensor::<f64>::randn([3 + seed as usize % 7]));
        for (name, f) in &functions[1..] {
            for size in [1.0, 1e-3, 1e4] {
                passes(name, *f, &(&x * size).detach());
            }
        }
        let constant = x.detach();
        gradcheck(|_| constant.square(), &[x]).unwrap();
    }
}

/// The same in single precision, of the first order.
#[test]
fn gradients_of_single_precision_that_are_only_rounding_raise_no_alarm() {
    let functions: [(&str, fn(&Tensor) -> Tensor); 4] = [
        ("a centred sum", |x| (x - x.mean()).sum()),
        ("a normalized sum", |x| {
            ((x - x.mean()) / ((x - x.mean()).square().mean() + 1e-5).sqrt()).sum()
        }),
        ("a softmax", |x| x.softmax(0).sum()),
        ("a circle", |x| x.sin().square() + x.cos().square()),
    ];
    for seed in 0..12 {
        let x = Generator::new(seed).run(|| Tensor::<f32>::randn([3 + seed as usize % 7]));
        for (name, f) in functions {
            let f = |t: &[AnyTensor]| f(t[0].downcast_ref().unwrap()).into();
            let found = gradcheck_any(f, &[x.clone().into()]);
            assert!(found.is_ok(), "{name} at {:?}: {found:?}", x.to_vec());
        }
    }
}

/// Slopes below the rounding of an output, elements of many sizes, and oscillation.
#[test]
fn right_rules_raise_no_alarm_where_differences_are_poor() {
    let functions: [(&str, Of, &[f64]); 16] = [
        ("sigmoid", Tensor::sigmoid, &[40.0, -40.0, 0.0, 800.0]),
        ("tanh", Tensor::tanh, &[20.0, -1e-9, 18.0, 400.0]),
        ("one and a little", |x| x * 1e-20 + 1.0, &[0.5, 2.0]),
        ("much and a little", |x| x.square() * 1e-10 + 1e10, &[0.5, -3.0]),
        (
            "large beside small",
            |x| Tensor::concat(&[&(x * 1e-20 + 1.0), &(x * 1e-25)], 0),
            &[1.0, 2.0],
        ),
        ("exp", Tensor::exp, &[-700.0, 1.0, 30.0]),
        ("ln", Tensor::ln, &[1e-3, 1e3, 1e-30, 1.0, 1e30]),
        ("sqrt", Tensor::sqrt, &[1e-30, 1e-9, 4.0, 1e20]),
        ("reciprocal", |x| 1.0 / x, &[1e-20, 3.0, 1e20]),
        ("cube", |x| x.pow(3), &[0.0, 1e-9, -2.0]),
        ("fifth power", |x| x.pow(5), &[0.0, 0.0]),
        ("square", Tensor::square, &[0.0, 1e-30, 1e30]),
        ("oscillation", |x| (x * 1e6).sin(), &[0.5, 1.0, -2.0]),
        ("softplus", Tensor::softplus, &[-40.0, 40.0, 0.0]),
        ("hidden by a sum", |x| x + 1e7 - 1e7, &[0.5, 1e-3]),
        ("subnormal", |x| x * 2.0, &[1e-310, 0.0]),
    ];
    for (name, f, x) in functions {
        passes(name, f, &Tensor::from(x.to_vec()));
    }
}

#[test]
fn a_change_that_rounding_inside_of_a_function_hides_is_no_error() {
    type Function = fn(&Tensor<f64>, f64) -> Tensor<f64>;
    let functions: [Function; 2] = [|x, by| (x * by).exp() - 1.0, |x, by| (x * by + 1.0).ln()];
    let x = [Tensor::from([0.3, -0.6, 2.0])];
    for (i, f) in functions.into_iter().enumerate() {
        for k in 0..15 {
            let by = 10_f64.powi(-k);
            let found = gradcheck(|t| f(&t[0], by), &x);
            assert!(found.is_ok(), "function {i} at 1e-{k}: {found:?}");
        }
    }
}

/// Rounding inside of a function, which the size of its results does not show, is no error of its rule.
#[test]
fn what_cancels_inside_of_a_function_raises_no_alarm() {
    let functions: [(&str, Of); 10] = [
        ("1 - cos", |x| 1.0 - (x * 3e-5).cos()),
        ("1 - cos of less", |x| 1.0 - (x * 1e-6).cos()),
        ("1 - 1", |x| (x * 1e-8 + 1.0) - 1.0),
        ("sqrt - 1", |x| (x * 1e-10 + 1.0).sqrt() - 1.0),
        ("1e8 - 1e8", |x| (x + 1e8) - 1e8),
        ("1e12 - 1e12", |x| (x + 1e12) - 1e12),
        ("log of exp", |x| ((x * 1e-7).exp() + 1e3).log() - 1e3_f64.ln()),
        ("sigmoid - 1", |x| (x + 30.0).sigmoid() - 1.0),
        ("softmax - max", |x| (x * 1e-6).softmax(0) - (x * 1e-6).softmax(0).max()),
        ("tanh - 1", |x| (x + 15.0).tanh() - 1.0),
    ];
    let mut wrong = Vec::new();
    for seed in 0..25 {
        let x = Generator::new(seed).run(|| Tensor::<f64>::randn([4]));
        for (name, f) in functions {
            if let Err(error) = gradcheck(|t| f(&t[0]), std::slice::from_ref(&x)) {
                wrong.push(format!("{name} at {:?}: {error}", x.to_vec()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_cancels_in_single_precision_raises_no_alarm() {
    let functions: [(&str, fn(&Tensor) -> Tensor); 8] = [
        ("1 - cos", |x| 1.0 - (x * 0.03).cos()),
        ("1 - cos of less", |x| 1.0 - (x * 3e-4).cos()),
        ("1 - 1", |x| (x * 1e-3 + 1.0) - 1.0),
        ("sqrt - 1", |x| (x * 1e-4 + 1.0).sqrt() - 1.0),
        ("1e4 - 1e4", |x| (x + 1e4) - 1e4),
        ("log of exp", |x| ((x * 1e-2).exp() + 1e3).log() - 6.9),
        ("sigmoid - 1", |x| (x + 12.0).sigmoid() - 1.0),
        ("softmax - max", |x| (x * 1e-3).softmax(0) - (x * 1e-3).softmax(0).max()),
    ];
    let mut wrong = Vec::new();
    for seed in 0..25 {
        let x = Generator::new(seed).run(|| Tensor::<f32>::randn([4]));
        for (name, f) in functions {
            let f = |t: &[AnyTensor]| f(t[0].downcast_ref().unwrap()).into();
            if let Err(error) = gradcheck_any(f, &[x.clone().into()]) {
                wrong.push(format!("{name} at {:?}: {error}", x.to_vec()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rounding of such functions excuses no error that is larger.
#[test]
fn a_wrong_rule_is_found_where_the_function_cancels() {
    let right = Wave { size: 1.0, frequency: 1.0, backward: 1.0, second: 1.0, jvp: 1.0 };
    let functions: [(&str, fn(&Tensor<f64>, Wave) -> Tensor<f64>, f64); 4] = [
        ("1e3 - 1e3", |x, wave| (Sine::apply(x, wave) + 1e3) - 1e3, 1.001),
        ("1e6 - 1e6", |x, wave| (Sine::apply(x, wave) + 1e6) - 1e6, 1.05),
        ("1 - cos", |x, wave| 1.0 - Sine::apply(x, wave).cos(), 1.001),
        ("1 - 1", |x, wave| (Sine::apply(x, wave) * 1e-5 + 1.0) - 1.0, 1.01),
    ];
    for seed in 0..10 {
        let x = Generator::new(seed).run(|| Tensor::<f64>::randn([4]));
        for (name, f, by) in functions {
            for by in [by, 2.0 - by, 0.0, -1.0] {
                let wave = Wave { backward: by, jvp: by, ..right };
                let found = gradcheck(|t| f(&t[0], wave), std::slice::from_ref(&x));
                let is_found = matches!(found, Err(Error::GradientWrong { .. }));
                assert!(is_found, "{name} off by {by} at {:?}: {found:?}", x.to_vec());
            }
        }
    }
}

/// An error of a small output, or of a small element of an output, is found beside large ones.
#[test]
fn a_wrong_rule_of_a_small_output_is_found_beside_large_ones() {
    for (size, beside) in [(1e-6, 1.0), (1e-3, 1.0), (1.0, 1e8), (1e-12, 1e-4), (1e-9, 1.0)] {
        let right = Wave { size, frequency: 1.0, backward: 1.0, second: 1.0, jvp: 1.0 };
        let f = |wave: Wave, shift: f64| {
            move |t: &[Tensor<f64>]| {
                let small = Sine::apply(&t[0], wave) + shift * size;
                Tensor::concat(&[&(t[0].sin() * beside), &small], 0)
            }
        };
        let x = [Tensor::from([0.7, -1.1, 2.3])];
        for shift in [0.0, 1e3] {
            gradgradcheck(f(right, shift), &x).unwrap();
            jvpcheck(f(right, shift), &x).unwrap();
            for by in [0.99, 1.01, 0.0, -1.0] {
                let name = format!("{size} beside {beside}, shifted by {shift}, off by {by}");
                let found = gradcheck(f(Wave { backward: by, ..right }, shift), &x);
                assert!(matches!(found, Err(Error::GradientWrong { .. })), "{name}: {found:?}");
                let found = jvpcheck(f(Wave { jvp: by, ..right }, shift), &x);
                assert!(matches!(found, Err(Error::JvpWrong { .. })), "jvp, {name}: {found:?}");
            }
        }
    }
}

/// A check of outputs of several sizes evaluates the function as often as a check of one, but for their gradients.
#[test]
fn groups_of_outputs_share_the_evaluations() {
    let calls = std::cell::Cell::new(0);
    let count = |sizes: &[f64]| {
        calls.set(0);
        let f = |t: &[Tensor<f64>]| {
            calls.set(calls.get() + 1);
            let parts: Vec<Tensor<f64>> = sizes.iter().map(|size| t[0].sin() * *size).collect();
            Tensor::concat(&parts, 0)
        };
        gradcheck(f, &[Tensor::from([0.7, -1.1, 2.3])]).unwrap();
        calls.get()
    };
    let (alone, several) = (count(&[1.0]), count(&[1.0, 1e-3, 1e-6]));
    assert!(several <= alone + 8, "{alone} calls for one size, {several} for three");
}
