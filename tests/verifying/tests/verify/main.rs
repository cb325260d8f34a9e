//! Backwards that are held against finite differences while a program runs: `verify_layers`, and
//! `AUTOGRAD_VERIFY=1` for all of it.

mod expansions;

use std::cell::Cell;
use std::process::Command;
use std::sync::Mutex;

use autograd_core::prelude::*;
use autograd_core::{checkpoint, seed, verify_layers};

fn leaf<T: Float>(shape: &[usize]) -> Tensor<T> {
    let count = shape.iter().product::<usize>();
    let data = (0..count).map(|i| T::from_f64(((i * 7 + 3) % 11) as f64 * 0.3 - 1.4)).collect();
    let x = Tensor::from_vec(shape, data).unwrap();
    x.set_stop_gradient(false);
    x
}

/// The error of a call that must be refused.
fn text_of<O>(result: autograd_core::Result<O>) -> String {
    result.err().expect("the gradient is wrong").to_string()
}

#[py_layer]
impl<T: Float> Product<T> {
    type Saved = (Tensor<T>, Tensor<T>);
    type Attrs = bool;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        a: &Tensor<T>,
        b: &Tensor<T>,
        swap: bool,
    ) -> Tensor<T> {
        ctx.save_for_backward((a, b));
        ctx.set_attrs(swap);
        a * b
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> (Tensor<T>, Tensor<T>) {
        let (a, b) = ctx.saved_tensor();
        if *ctx.attrs() { (dy * a, dy * b) } else { (dy * b, dy * a) }
    }
}

fn swapped<T: Float>(shape: &[usize]) {
    let (a, b) = (leaf::<T>(shape), leaf::<T>(shape).square().detach());
    let _scope = verify_layers();
    assert!(Product::try_apply(&a, &b, false).is_ok());
    let message = text_of(Product::try_apply(&a, &b, true));
    assert!(message.starts_with("Product: `a`, element ["), "{message}");
    // Nothing was recorded, and all can be used.
    assert!(a.grad().is_none());
    Product::apply(&a, &b, false).sum().backward().unwrap();
    assert_eq!(a.grad().unwrap().to_vec(), b.to_vec());
}

#[test]
fn gradients_that_were_swapped_are_reported_by_the_call() {
    for shape in [&[][..], &[3], &[4, 5], &[60, 70]] {
        swapped::<f64>(shape);
        swapped::<f32>(shape);
    }
}

#[py_layer]
impl WrongFormula {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * (1.0 - ctx.saved_tensor())
    }
}

#[test]
fn a_wrong_formula_is_reported_by_the_call() {
    let x = leaf::<f64>(&[2]);
    let _scope = verify_layers();
    let message = text_of(WrongFormula::try_apply(&x));
    assert!(
        message.starts_with("WrongFormula: `x`, element [") && message.contains("by backward and")
    );
}

/// A wave of any size, with a backward that is off by a factor.
#[py_layer]
impl Wave {
    type Saved = Tensor<f64>;
    type Attrs = f64;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        size: f64,
        off: f64,
    ) -> Tensor<f64> {
        ctx.save_for_backward(x);
        ctx.set_attrs(size * off);
        x.sin() * size
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor().cos() * *ctx.attrs()
    }
}

#[test]
fn wrong_gradients_of_any_size_are_reported() {
    let x = leaf::<f64>(&[3]);
    for k in -30..=30 {
        let _scope = verify_layers();
        assert!(Wave::try_apply(&x, 10_f64.powi(k), 1.0).is_ok(), "1e{k}");
    }
    for k in -30..=30 {
        // A scope counts the calls at a line from the beginning.
        let _scope = verify_layers();
        for off in [1.1, 0.0] {
            let message = text_of(Wave::try_apply(&x, 10_f64.powi(k), off));
            assert!(message.contains("the slope is"), "1e{k}: {message}");
        }
    }
}

/// With slopes that are below the rounding of the outputs, where those are near 1.
#[py_layer]
impl Sigmoid {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.sigmoid()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let x = ctx.saved_tensor();
        dy * x.sigmoid() * (-x).sigmoid()
    }
}

#[test]
fn slopes_below_the_rounding_of_outputs_are_let_be() {
    let x = Tensor::from([40.0, -40.0, 0.0, 38.0, 1e-300, 600.0]);
    x.set_stop_gradient(false);
    let _scope = verify_layers();
    Sigmoid::apply(&x);
}

#[test]
#[should_panic(expected = "Product: `b`, element [0]: the slope is")]
fn apply_panics() {
    let (a, b) = (Tensor::from([2.0]), leaf::<f64>(&[1]));
    let _scope = verify_layers();
    Product::apply(&a, &b, true);
}

#[test]
fn without_a_scope_nothing_is_verified() {
    let (a, b) = (leaf::<f64>(&[3]), leaf(&[3]).exp());
    drop(verify_layers());
    Product::apply(&a, &b, true);
    let _scope = verify_layers();
    // Nor where there is no gradient that could be wrong.
    Product::apply(&a.detach(), &b.detach(), true);
    no_grad().run(|| Product::apply(&a, &b, true));
}

#[py_layer]
impl Weighted {
    type Saved = (Vec<Tensor<f64>>, Option<Tensor<f64>>);
    type Attrs = (Vec<f64>, f64);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        xs: &[Tensor<f64>],
        #[stop_gradient] rows: &Tensor<i64>,
        bias: Option<&Tensor<f64>>,
        pair: [&Tensor<f64>; 2],
        weights: Vec<f64>,
        wrong: f64,
    ) -> Result<(Tensor<f64>, usize), String> {
        ctx.save_for_backward((xs, bias));
        let sum = xs.iter().zip(&weights).map(|(x, w)| x.square() * *w).reduce(|a, b| a + b);
        ctx.set_attrs((weights, wrong));
        let mut sum = sum.ok_or("no inputs")? + pair[0] - pair[1];
        if let Some(bias) = bias {
            sum += bias;
        }
        Ok((sum, rows.len()))
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let ((xs, bias), (weights, wrong)) = (ctx.saved_tensor(), ctx.attrs());
        let factors = [2.0, 2.0 * wrong];
        let terms = xs.iter().zip(weights).zip(factors);
        Grads {
            xs: terms.map(|((x, w), factor)| dy * x * *w * factor).collect::<Vec<_>>(),
            bias: bias.as_ref().map(|_| dy.clone()),
            pair: [dy.clone(), -dy],
        }
    }
}

#[test]
fn every_form_of_input_is_moved() {
    let xs = [leaf::<f64>(&[2, 3]), leaf::<f64>(&[2, 3]) + 0.1];
    let (rows, bias, pair) =
        (Tensor::from([1_i64, 0]), leaf(&[2, 3]), [leaf(&[2, 3]), leaf(&[2, 3])]);
    let call = |bias: Option<&Tensor<f64>>, wrong: f64| {
        let pair = [&pair[0], &pair[1]];
        Weighted::try_apply(&xs, &rows, bias, pair, vec![1.0, -0.5], wrong)
    };
    let _scope = verify_layers();
    for bias in [Some(&bias), None] {
        assert_eq!(call(bias, 1.0).unwrap().unwrap().1, 2);
        let message = text_of(call(bias, 1.01));
        assert!(message.starts_with("Weighted: `xs[1]`, element ["), "{message}");
    }
    // What forward refuses is told by forward.
    let refused = Weighted::try_apply(&[], &rows, Some(&bias), [&bias, &bias], vec![], 1.0);
    assert_eq!(refused.unwrap().err().unwrap(), "no inputs");
}

/// Has a kink at 0 and a jump in its slope at 1, and is not defined below -2.
#[py_layer]
impl<T: Float> Kinks<T> {
    type Saved = Tensor<T>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        assert!(x.min().item() >= T::from_f64(-2.0), "below -2");
        ctx.save_for_backward(x);
        x.relu() + (x - 1.0).relu() * 5.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let x = ctx.saved_tensor();
        dy * (x.step() + (x - 1.0).step() * 5.0)
    }
}

fn kinks<T: Float>() {
    let _scope = verify_layers();
    for n in 0..400 {
        // Nearer and nearer to the kinks, and at them.
        let near = 0.7_f64.powi(n % 60) * if n % 2 == 0 { 1.0 } else { -1.0 };
        let data = [near, 1.0 + near, 0.0, 1.0, -2.0, 0.5].map(T::from_f64);
        let x = Tensor::from_vec([6], data.to_vec()).unwrap();
        x.set_stop_gradient(false);
        Kinks::apply(&x);
    }
    seed(4);
    for _ in 0..20 {
        let x = Tensor::<T>::uniform([80, 90], -2.0, 2.0);
        x.set_stop_gradient(false);
        Kinks::apply(&x);
    }
}

/// All threads draw from one generator, so the tests that draw take turns.
static GENERATOR: Mutex<()> = Mutex::new(());

#[test]
fn kinks_and_edges_of_the_domain_are_let_be() {
    let _alone = GENERATOR.lock();
    kinks::<f64>();
    kinks::<f32>();
}

#[py_layer]
impl Drops {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let kept = (Tensor::rand(x.shape()) - 0.5).step() * 2.0;
        ctx.save_for_backward(&kept);
        x * &kept
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

#[test]
fn random_numbers_are_those_of_the_run() {
    let _alone = GENERATOR.lock();
    let x = leaf::<f64>(&[40]);
    let run = || {
        seed(11);
        let y = Drops::apply(&x);
        (y.to_vec(), Tensor::<f64>::rand([3]).to_vec())
    };
    let before = run();
    let _scope = verify_layers();
    assert_eq!(run(), before);
}

thread_local! {
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

#[py_layer]
impl Counts {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        RUNS.set(RUNS.get() + 1);
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[test]
fn the_first_second_and_fourth_call_at_a_line_are_verified() {
    let x = leaf::<f64>(&[2]);
    let _scope = verify_layers();
    let mut verified = Vec::new();
    for call in 1..=20 {
        RUNS.set(0);
        Counts::apply(&x);
        if RUNS.get() > 1 {
            verified.push(call);
        }
    }
    assert_eq!(verified, [1, 2, 4, 8, 16]);
    RUNS.set(0);
    let inside = x.clone();
    checkpoint(move || Counts::apply(&inside));
    assert_eq!(RUNS.get(), 1, "a checkpoint's calls are its own");
    RUNS.set(0);
    Counts::apply(&leaf(&[300, 300]));
    assert_eq!(RUNS.get(), 1, "large inputs are let be");
}

/// Rounds, and lets gradients through as if it did not.
#[py_layer(surrogate)]
impl Rounds {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.round()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 1.0
    }
}

#[py_layer]
impl Applies {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        f: impl Fn(&Tensor<f64>) -> Tensor<f64>,
    ) -> Tensor<f64> {
        f(x)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 3.0
    }
}

#[test]
fn what_is_meant_and_what_cannot_be_run_again_is_let_be() {
    let x = leaf::<f64>(&[5]);
    let _scope = verify_layers();
    Rounds::apply(&x).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [1.0; 5]);
    Applies::apply(&x, |x| x * 2.0);
}

#[test]
fn the_environment_asks_for_a_whole_program() {
    const NAME: &str = "the_environment_asks_for_a_whole_program";
    let (a, b) = (leaf::<f64>(&[3]), leaf::<f64>(&[3]).exp());
    let run = || Product::try_apply(&a, &b, true);
    if std::env::var_os("AUTOGRAD_VERIFY").is_some() {
        assert!(text_of(run()).contains("the slope is"));
        assert!(std::thread::scope(|scope| scope.spawn(|| run().is_err()).join().unwrap()));
        return;
    }
    assert!(run().is_ok());
    let program = std::env::current_exe().unwrap();
    let again = Command::new(program).args(["--exact", NAME]).env("AUTOGRAD_VERIFY", "1").output();
    let again = again.unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
}

#[test]
fn solvers_pass() {
    use autograd_core::solvers::{FixedPointOptions, OdeOptions, fixed_point, odeint};

    let a = leaf::<f64>(&[3]);
    let (scope, times) = (verify_layers(), Tensor::from([0.0, 1.0]));
    let f = |x: &Tensor<f64>, p: &[Tensor<f64>]| Ok((x * 0.5).cos() * &p[0]);
    let x = fixed_point(f, &a, std::slice::from_ref(&a), FixedPointOptions::new()).unwrap();
    let y = odeint(move |_, y, p| f(y, p), &x, &times, std::slice::from_ref(&a), OdeOptions::new())
        .unwrap();
    y.sum().backward().unwrap();
    drop(scope);
}

#[test]
fn the_layers_of_linalg_pass() {
    use autograd_core::linalg::{cholesky, eigh, inv, lstsq, pinv, qr, slogdet, solve, svd};

    let a = leaf::<f64>(&[3, 3]);
    let (scope, positive) = (verify_layers(), a.matmul(&a.transpose()) + Tensor::eye(3));
    let b = leaf::<f64>(&[3]);
    let x = solve(&positive, &b).unwrap().sum() + inv(&positive).unwrap().sum();
    let y = x + slogdet(&positive).unwrap().1 + cholesky(&positive).unwrap().sum();
    let y = y + lstsq(&positive, &b).unwrap().sum() + pinv(&positive, None).unwrap().sum();
    let y = y + qr(&positive).unwrap().1.sum() + svd(&positive).unwrap().1.sum();
    let y = y + eigh(&positive).unwrap().0.max();
    y.backward().unwrap();
    drop(scope);
}
