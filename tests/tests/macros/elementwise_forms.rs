//! `#[py_layer(elementwise)]`: gradients by name, comparison in each call, the tensors that a
//! derived backward saves, forward mode of every form, `fuse!`, and threads.

use autograd_core::prelude::*;
use autograd_core::{
    Error, fuse, grad_with, gradcheck, gradgradcheck, jvp, jvpcheck, with_num_threads,
};

/// Numbers between `low` and `high`, the same in every run.
fn sample(shape: &[usize], low: f64, high: f64) -> Tensor<f64> {
    let n: usize = shape.iter().product();
    let unit = |i: usize| ((i * 7919 + 13) % 1009) as f64 / 1009.0;
    Tensor::from_vec(shape, (0..n).map(|i| low + (high - low) * unit(i)).collect()).unwrap()
}

#[py_layer(elementwise, verify)]
impl Gate {
    fn forward<L: Lane>(x: Real<L>, #[stop_gradient] open: Mask<L>, w: Real<L>) -> Real<L> {
        open.select(x * w.exp(), x)
    }

    fn backward<L: Lane>(dy: Real<L>, x: Real<L>, w: Real<L>, open: Mask<L>) -> Grads {
        let e = open.select(w.exp(), 1.0);
        Grads { w: open.select(dy * x * e, 0.0), x: dy * e }
    }
}

#[test]
fn gradients_by_name() {
    let (x, w) = (sample(&[3, 4], -1.0, 1.0), sample(&[4], -0.5, 0.5));
    let open = Tensor::from(vec![true, false, true, true]);
    let f = |t: &[Tensor<f64>]| Gate::apply(&t[0], &open, &t[1]);
    gradcheck(f, &[x.clone(), w.clone()]).unwrap();
    gradgradcheck(f, &[x.clone(), w.clone()]).unwrap();
    jvpcheck(f, &[x, w]).unwrap();
}

/// Correct except for numbers above 100, which the generated test does not try.
#[py_layer(elementwise, verify)]
impl WrongFar {
    fn forward<L: Lane>(x: Real<L>, slope: f64) -> Real<L> {
        slope * x * x
    }

    fn backward<L: Lane>(x: Real<L>, dy: Real<L>, slope: f64) -> Real<L> {
        x.gt(100.0).select(dy, 2.0 * slope * x * dy)
    }
}

#[test]
fn a_call_is_compared_where_that_is_asked_for() {
    let near = Tensor::from(vec![0.5, -1.0, 1.5]);
    assert_eq!(WrongFar::try_apply(&near, 2.0).unwrap().to_vec(), [0.5, 2.0, 4.5]);
    let far = Tensor::from(vec![0.5, 300.0]);
    let result = WrongFar::try_apply(&far, 2.0);
    if cfg!(debug_assertions) {
        let error = result.unwrap_err();
        let Error::BackwardDiffers { op, input, point, .. } = &error else { panic!("{error}") };
        assert_eq!((*op, *input), ("WrongFar", "x"));
        assert!(point.starts_with("x = 300,"), "{point}");
    } else {
        assert!(result.is_ok());
    }
}

/// Its derivative in `b` and `x` does not depend on `b`.
#[py_layer(elementwise)]
impl Linear {
    fn forward<L: Lane>(x: Real<L>, w: Real<L>, b: Real<L>) -> Real<L> {
        x * w + b
    }
}

#[test]
fn a_derived_backward_keeps_what_it_depends_on() {
    // A saved tensor could not be changed in place before backward.
    for n in [4, 300] {
        let [x, w, b] = [0.1, 0.2, 0.3].map(|low| sample(&[n], low, 1.0));
        for t in [&x, &w, &b] {
            t.set_stop_gradient(false);
        }
        let bias = &b * 1.0;
        let y = Linear::apply(&x, &w, &bias);
        bias.detach().fill(0.0).unwrap();
        y.sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), w.to_vec());
        assert_eq!(w.grad().unwrap().to_vec(), x.to_vec());
        assert_eq!(b.grad().unwrap().to_vec(), vec![1.0; n]);
        let weight = &w * 1.0;
        let y = Linear::apply(&x, &weight, &b);
        weight.detach().fill(0.0).unwrap();
        let error = y.sum().backward().unwrap_err();
        assert!(matches!(error, Error::SavedTensorChanged { op: "Linear", .. }), "{error}");
    }
    // Gradients that are reduced, differentiated again.
    let [x, w] = [0.1, 0.2].map(|low| sample(&[5, 2], low, 1.0));
    let b = sample(&[2], -1.0, 1.0);
    let f = |t: &[Tensor<f64>]| Linear::apply(&t[0], &t[1], &t[2]);
    gradcheck(f, &[x.clone(), w.clone(), b.clone()]).unwrap();
    gradgradcheck(f, &[x.clone(), w.clone(), b.clone()]).unwrap();
    jvpcheck(f, &[x, w, b]).unwrap();
}

#[test]
fn a_fused_expression_keeps_its_result_where_that_serves() {
    for n in [4, 300] {
        let x = sample(&[n], -1.0, 1.0);
        x.set_stop_gradient(false);
        let copy = &x * 1.0;
        let y = fuse!(|copy| copy.tanh());
        copy.detach().fill(0.0).unwrap();
        y.sum().backward().unwrap();
        let expected = 1.0 - x.tanh().square();
        assert_eq!(x.grad().unwrap().to_vec(), expected.to_vec());
    }
}

#[test]
fn an_expression_that_is_known_is_one_with_the_same_numbers() {
    let x = sample(&[20], 0.5, 1.0);
    for _ in 0..3 {
        for factor in [2.0, 3.0] {
            let y = fuse!(|x| factor * x);
            assert_eq!(y.to_vec(), (factor * &x).to_vec());
        }
    }
}

#[py_layer(elementwise)]
impl Polar {
    fn forward<L: Lane>(r: Real<L>, angle: Real<L>) -> (Real<L>, Real<L>) {
        (r * angle.cos(), r * angle.sin())
    }
}

#[py_layer(elementwise, reduce = mean(-1))]
impl MeanSquare {
    fn forward<L: Lane>(x: Real<L>, target: Real<L>, scale: f64) -> Real<L> {
        scale * (x - target) * (x - target)
    }

    fn backward<L: Lane>(x: Real<L>, target: Real<L>, scale: f64, dy: Real<L>) -> Grads {
        let x = 2.0 * scale * (x - target) * dy;
        Grads { x, target: -x }
    }
}

#[test]
fn forward_mode_of_every_form() {
    let (r, angle) = (sample(&[3, 5], 0.5, 2.0), sample(&[5], -1.0, 1.0));
    let polar = |t: &[Tensor<f64>]| {
        let (x, y) = Polar::apply(&t[0], &t[1]);
        x * 2.0 + y
    };
    jvpcheck(polar, &[r.clone(), angle.clone()]).unwrap();
    let mean = |t: &[Tensor<f64>]| MeanSquare::apply(&t[0], &t[1], 0.7);
    jvpcheck(mean, &[r.clone(), angle.clone()]).unwrap();
    gradcheck(mean, &[r.clone(), angle]).unwrap();
    // Only one input has a tangent; and the slope of the slope.
    let moved = |x: &Tensor<f64>| {
        let fixed = sample(&[5], -1.0, 1.0);
        let slope = |r: &[Tensor<f64>]| Polar::apply(&r[0], &fixed).0;
        jvp(slope, std::slice::from_ref(x), &[x.square()]).unwrap().1
    };
    let expected = r.square() * sample(&[5], -1.0, 1.0).cos();
    for (a, b) in moved(&r).to_vec().iter().zip(expected.to_vec()) {
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }
}

#[py_layer(elementwise)]
impl Wave {
    fn forward<L: Lane>(x: Real<L>, w: Real<L>) -> Real<L> {
        (x * w).sin() * x.exp()
    }
}

#[test]
fn figures_do_not_depend_on_threads() {
    let run = |threads| {
        with_num_threads(threads, || {
            let (x, w) = (sample(&[300, 1000], -2.0, 2.0), sample(&[1000], 0.5, 3.0));
            // An angle beyond the range of vector code.
            let x = &x + &Tensor::from(vec![1e-9]).clone();
            x.set_stop_gradient(false);
            w.set_stop_gradient(false);
            let y = Wave::apply(&x, &w) + x.tanh() * fuse!(|x, w| x * w - 0.5);
            let loss = (y.square().sum() + y.sum_axes([0]).square().mean()) * 1e-3;
            let options = autograd_core::GradOptions::new().create_graph(true);
            let grads = grad_with(&[&loss], &[&x, &w], options).unwrap();
            let [dx, dw] = [0, 1].map(|i| grads[i].clone().unwrap());
            (loss.item(), dx.to_vec(), dw.to_vec())
        })
    };
    let one = run(1);
    for threads in [2, 5] {
        assert!(run(threads) == one, "with {threads} threads");
    }
}

#[test]
fn a_panic_in_a_formula_on_a_thread_is_the_callers() {
    #[py_layer(elementwise)]
    impl Panics {
        fn forward<L: Lane>(x: Real<L>, power: i32) -> Real<L> {
            assert!(power < 3, "a power of {power}");
            x.powi(power)
        }
    }
    let x = Tensor::from(vec![0.5_f32; 1_000_000]);
    with_num_threads(4, || {
        let call = std::panic::AssertUnwindSafe(|| Panics::apply(&x, 7));
        let outcome = std::panic::catch_unwind(call);
        assert!(outcome.is_err());
        assert_eq!(Panics::apply(&x, 2).at(&[999_999]), 0.25);
    });
}
