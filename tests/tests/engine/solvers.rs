//! Fixed points, roots and differential equations: values, gradients of both orders, errors and panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use autograd_core::solvers::{FixedPointOptions, OdeOptions, custom_root, fixed_point, odeint};
use autograd_core::{
    Error, Float, GradOptions, Result, Tensor, grad, gradcheck, gradgradcheck, is_grad_enabled,
    jvp, linalg,
};

type Params<'a, T> = &'a [Tensor<T>];

fn leaf<T: Float>(x: Tensor<T>) -> Tensor<T> {
    x.set_stop_gradient(false);
    x
}

/// The fixed point of `tanh(w x + b)`.
fn layer(w: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
    let f = |x: &Tensor<f64>, p: Params<'_, f64>| Ok((p[0].matmul(x) + &p[1]).tanh());
    let params = [w.clone(), b.clone()];
    fixed_point(f, &Tensor::zeros([3]), &params, FixedPointOptions::new()).unwrap()
}

fn weights() -> [Tensor<f64>; 2] {
    let w = Tensor::from([[0.3, -0.4, 0.1], [0.2, 0.5, -0.3], [0.0, 0.25, -0.6]]);
    [w, Tensor::from([0.5, -0.2, 0.1])]
}

#[test]
fn fixed_points_have_derivatives_of_every_order() -> Result<()> {
    gradcheck(|t| layer(&t[0], &t[1]), &weights())?;
    gradgradcheck(|t| layer(&t[0], &t[1]), &weights())
}

#[test]
fn the_start_does_not_matter_and_has_no_gradient() -> Result<()> {
    let (a, x0) = (leaf(Tensor::from([1.0, 0.5])), leaf(Tensor::from([0.3, 1.0])));
    let cosine = |x: &Tensor<f64>, p: Params<'_, f64>| Ok((&p[0] * x).cos());
    let x = fixed_point(cosine, &x0, from_ref(&a), FixedPointOptions::new())?;
    x.sum().backward()?;
    let sine = (&a.detach() * x.detach()).sin();
    let expected = -x.detach() * &sine / (1.0 + a.detach() * &sine);
    assert!(a.grad().unwrap().allclose(&expected, 1e-11, 0.0));
    assert!(x0.grad().is_none());
    Ok(())
}

/// The root of `a x = b`, by another method than that of the gradient.
fn linear_root<T: Float>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    let solve = || linalg::solve(&a.detach(), &b.detach());
    let residual = |x: &Tensor<T>, p: Params<'_, T>| Ok(p[0].matmul(x) - &p[1]);
    custom_root(residual, |_| solve(), &[a.clone(), b.clone()])
}

#[test]
fn the_gradient_of_a_linear_root_is_that_of_the_linear_system() -> Result<()> {
    for n in [1, 2, 5, 60] {
        autograd_core::seed(n as u64);
        let (a, b) = (Tensor::<f64>::randn([n, n]), Tensor::<f64>::randn([n]));
        let weights = Tensor::<f64>::randn([n]);
        let grads = |run: &dyn Fn(&Tensor<f64>, &Tensor<f64>) -> Result<Tensor<f64>>| {
            let (a, b) = (leaf(a.copy()), leaf(b.copy()));
            let loss = (run(&a, &b)? * &weights).sum();
            let first = autograd_core::grad_with(
                &[&loss],
                &[&a, &b],
                GradOptions::new().create_graph(true),
            )?;
            let first: Vec<_> = first.into_iter().flatten().collect();
            let second = grad(&[&(first[0].square().sum() + first[1].square().sum())], &[&a, &b])?;
            Ok::<_, Error>([first, second].concat())
        };
        let (implicit, direct) = (grads(&linear_root)?, grads(&|a, b| linalg::solve(a, b))?);
        for (implicit, direct) in implicit.iter().zip(&direct) {
            let scale = direct.abs().max().item();
            assert!(implicit.allclose(direct, 1e-9, 1e-9 * scale), "{n}: {implicit} and {direct}");
        }
    }
    Ok(())
}

#[test]
fn a_root_of_a_system_of_squares_has_derivatives() -> Result<()> {
    // x² + y² = r, x y = s.
    let root = |p: Params<'_, f64>| {
        let f = |x: &Tensor<f64>, p: Params<'_, f64>| {
            Ok(Tensor::stack(&[x.square().sum(), x.prod()], 0) - &p[0])
        };
        let newton = |f: &dyn Fn(&Tensor<f64>) -> Result<Tensor<f64>>| {
            let mut x = Tensor::from([2.0, 0.5]);
            for _ in 0..50 {
                let (a, b) = (x.at(&[0]), x.at(&[1]));
                let j = Tensor::from([[2.0 * a, 2.0 * b], [b, a]]);
                x = &x - linalg::solve(&j, &f(&x)?)?;
            }
            Ok(x)
        };
        custom_root(f, newton, p).unwrap()
    };
    let given = [Tensor::from([5.0, 2.0])];
    assert!(root(&given).allclose(&Tensor::from([2.0, 1.0]), 1e-12, 0.0));
    gradcheck(root, &given)?;
    gradgradcheck(root, &given)
}

#[test]
fn forward_mode_goes_through_solvers() -> Result<()> {
    let [w, b] = weights();
    let tangents = [Tensor::ones([3, 3]), Tensor::from([1.0, 0.0, -1.0])];
    let (x, slope) = jvp(|t| layer(&t[0], &t[1]), &[w.clone(), b.clone()], &tangents)?;
    // (1 - diag(1 - x²) w) dx = (1 - x²) (dw x + db).
    let rate = 1.0 - x.square();
    let system = Tensor::eye(3) - &w * rate.unsqueeze(1);
    let expected = linalg::solve(&system, &(&rate * (tangents[0].matmul(&x) + &tangents[1])))?;
    assert!(slope.allclose(&expected, 1e-10, 0.0), "{slope} and {expected}");

    let k = Tensor::from(0.5);
    let (_, slope) = jvp(
        |t| decay(&Tensor::from(1.0), &Tensor::from([0.0, 2.0]), &t[0]),
        &[k],
        &[Tensor::from(1.0)],
    )?;
    assert!(slope.allclose(&Tensor::from([0.0, -2.0 * (-1.0_f64).exp()]), 1e-7, 1e-9), "{slope}");
    Ok(())
}

#[test]
fn small_gradients_are_as_exact_as_others() -> Result<()> {
    let k = leaf(Tensor::from(0.5));
    (decay(&Tensor::from(1.0), &Tensor::from([0.0, 2.0]), &k).select(0, 1) * 1e-20).backward()?;
    assert!((k.grad().unwrap().item() / 1e-20 + 2.0 * (-1.0_f64).exp()).abs() < 1e-7);
    let [w, b] = weights().map(leaf);
    let grad_of =
        |scale: f64| grad(&[&(layer(&w, &b).sum() * scale)], &[&w]).map(|grads| &grads[0] / scale);
    assert!(grad_of(1e-200)?.allclose(&grad_of(1.0)?, 1e-12, 0.0));
    Ok(())
}

fn exact() -> OdeOptions {
    OdeOptions::new().rtol(1e-11).atol(1e-12)
}

fn decay(y0: &Tensor<f64>, times: &Tensor<f64>, k: &Tensor<f64>) -> Tensor<f64> {
    let f = |_: &Tensor<f64>, y: &Tensor<f64>, p: Params<'_, f64>| Ok(-&p[0] * y);
    odeint(f, y0, times, from_ref(k), exact()).unwrap()
}

#[test]
fn decays_have_the_derivatives_of_the_exponential_function() -> Result<()> {
    for list in [[0.0, 0.5, 2.0], [1.0, 0.5, -1.0], [3.0, 3.001, 3.002]] {
        let given =
            [leaf(Tensor::from([1.5, -0.5])), leaf(Tensor::from(list)), leaf(Tensor::from(0.7))];
        let weights = Tensor::from([[0.3, 0.1], [1.0, -2.0], [0.5, 1.5]]);
        let closed = |y0: &Tensor<f64>, times: &Tensor<f64>, k: &Tensor<f64>| {
            let passed = (times - times.narrow(0, 0, 1)).unsqueeze(1);
            y0 * (-k * passed).exp()
        };
        let grads = |y: Tensor<f64>| {
            let inputs: Vec<_> = given.iter().collect();
            let options = || GradOptions::new().create_graph(true);
            let first = autograd_core::grad_with(&[&(y * &weights).sum()], &inputs, options())?;
            let first: Vec<_> = first.into_iter().flatten().collect();
            let norm = first.iter().fold(Tensor::from(0.0), |sum, x| sum + x.square().sum());
            Ok::<_, Error>([first, grad(&[&norm], &inputs)?].concat())
        };
        let (y, expected) =
            (decay(&given[0], &given[1], &given[2]), closed(&given[0], &given[1], &given[2]));
        assert!(y.allclose(&expected, 1e-9, 1e-9));
        for (found, expected) in grads(y)?.iter().zip(&grads(expected)?) {
            assert!(found.allclose(expected, 1e-7, 1e-7), "{list:?}: {found} and {expected}");
        }
    }
    Ok(())
}

#[test]
fn equations_that_depend_on_time_have_gradients_of_times() -> Result<()> {
    // y' = t p y, so y = y0 exp(p (t² - t0²) / 2).
    let run = |t: Params<'_, f64>| {
        let f = |t: &Tensor<f64>, y: &Tensor<f64>, p: Params<'_, f64>| Ok(t * &p[0] * y);
        odeint(f, &t[0], &t[1], &t[2..], exact()).unwrap()
    };
    let given = [Tensor::from([[1.0], [2.0]]), Tensor::from([0.5, 1.0, 1.75]), Tensor::from(0.4)];
    let passed = (given[1].square() - 0.25) * 0.5 * 0.4;
    assert!(run(&given).allclose(&(passed.exp().reshape([3, 1, 1]) * &given[0]), 1e-9, 0.0));
    gradcheck(run, &given)?;
    gradgradcheck(run, &given)
}

#[test]
fn predators_and_prey_have_gradients() -> Result<()> {
    let run = |t: Params<'_, f64>| {
        let f = |_: &Tensor<f64>, y: &Tensor<f64>, p: Params<'_, f64>| {
            let (rates, met) = (&p[0], y.prod());
            Ok(y * rates.narrow(0, 0, 2) + met * rates.narrow(0, 2, 2))
        };
        odeint(f, &t[0], &Tensor::from([0.0, 1.0, 4.0]), &t[1..], exact()).unwrap()
    };
    gradcheck(run, &[Tensor::from([10.0, 5.0]), Tensor::from([1.1, -0.4, -0.1, 0.1])])
}

#[test]
fn f32_has_its_own_tolerances() -> Result<()> {
    let k = leaf(Tensor::<f32>::from(0.5));
    let f = |_: &Tensor<f32>, y: &Tensor<f32>, p: Params<'_, f32>| Ok(-&p[0] * y);
    let y =
        odeint(f, &Tensor::from(1.0), &Tensor::from([0.0, 2.0]), from_ref(&k), OdeOptions::new())?;
    y.select(0, 1).backward()?;
    assert!((k.grad().unwrap().item() + 2.0 * (-1.0_f32).exp()).abs() < 1e-3);
    autograd_core::seed(1);
    let (a, b) =
        (Tensor::<f32>::randn([20, 20]) + Tensor::eye(20) * 4.0, Tensor::<f32>::randn([20]));
    let grads = |run: &dyn Fn(&Tensor<f32>, &Tensor<f32>) -> Result<Tensor<f32>>| {
        let (a, b) = (leaf(a.copy()), leaf(b.copy()));
        grad(&[&run(&a, &b)?.sum()], &[&a, &b])
    };
    let (implicit, direct) = (grads(&linear_root)?, grads(&|a, b| linalg::solve(a, b))?);
    assert!(implicit.iter().zip(&direct).all(|(x, y)| x.allclose(y, 1e-4, 1e-5)));
    Ok(())
}

#[test]
fn a_list_of_params_may_be_empty() -> Result<()> {
    let cosine = |x: &Tensor<f64>, _: Params<'_, f64>| Ok(x.cos());
    let x = fixed_point(cosine, &leaf(Tensor::from(1.0)), &[], FixedPointOptions::new())?;
    assert!((x.cos().item() - x.item()).abs() < 1e-11);
    let (y0, times) = (leaf(Tensor::from(1.0)), Tensor::from([0.0, 1.0]));
    let y = odeint(|_, y, _| Ok(y * 2.0), &y0, &times, &[], OdeOptions::new())?;
    y.select(0, 1).backward()?;
    assert!((y0.grad().unwrap().item() - 2.0_f64.exp()).abs() < 1e-6);
    Ok(())
}

#[test]
fn empty_tensors_are_solved() -> Result<()> {
    let none = leaf(Tensor::<f64>::zeros([0]));
    let f = |x: &Tensor<f64>, p: Params<'_, f64>| Ok(x * &p[0]);
    let x = fixed_point(f, &Tensor::zeros([0]), from_ref(&none), FixedPointOptions::new())?;
    let y = odeint(
        move |_, y, p| f(y, p),
        &x,
        &Tensor::from([0.0, 1.0]),
        from_ref(&none),
        OdeOptions::new(),
    )?;
    assert_eq!(y.shape(), [2, 0]);
    y.sum().backward()?;
    assert_eq!(none.grad().unwrap().shape(), [0]);
    let one = decay(&Tensor::from(3.0), &Tensor::from([1.0]), &Tensor::from(1.0));
    assert_eq!(one.to_vec(), [3.0]);
    Ok(())
}

#[test]
fn errors_name_the_function_and_the_parameter() {
    let one = || Tensor::from(1.0);
    let point = |f: fn(&Tensor<f64>) -> Tensor<f64>| {
        let f = move |x: &Tensor<f64>, _: Params<'_, f64>| Ok(f(x));
        let options = FixedPointOptions::new().max_steps(20);
        fixed_point(f, &one(), &[], options).unwrap_err().to_string()
    };
    let root = |x: Tensor<f64>, f: fn(&Tensor<f64>) -> Tensor<f64>| {
        custom_root(move |x, _| Ok(f(x)), |_| Ok(x), &[]).unwrap_err().to_string()
    };
    let ode = |times: Tensor<f64>,
               options: OdeOptions,
               f: fn(&Tensor<f64>, &Tensor<f64>) -> Tensor<f64>| {
        let f = move |t: &Tensor<f64>, y: &Tensor<f64>, _: Params<'_, f64>| Ok(f(t, y));
        odeint(f, &one(), &times, &[], options).unwrap_err().to_string()
    };
    let (both, new) = (|| Tensor::from([0.0, 2.0]), OdeOptions::new);
    let captured = leaf(one());
    let by = captured.clone();
    let captures =
        fixed_point(move |x, _| Ok(x * 0.5 * &by), &one(), &[], FixedPointOptions::new());
    let by = captured.clone();
    let root_captures = custom_root(move |x, _| Ok(x - &by), |_| Ok(one()), &[]);
    let by = captured.clone();
    let ode_captures = odeint(move |_, y, _| Ok(y * &by), &one(), &both(), &[], new());
    let own = odeint(|_, _, _| Err(Error::custom("no table")), &one(), &both(), &[], new());
    let cases = [
        (point(|x| x * -1.0), "fixed_point: `x` still changes by more than a tolerance of 1.8"),
        (point(|x| x * f64::NAN), "fixed_point: `f` returns a NaN or an infinity in step 1"),
        (
            point(|x| x.reshape([1])),
            "fixed_point: what `f` returns must be of shape [], found shape [1]",
        ),
        (
            captures.unwrap_err().to_string(),
            "fixed_point: `f` captures a tensor that wants a gradient",
        ),
        (
            root(Tensor::from(f64::NAN), Tensor::clone),
            "custom_root: the root that `solve` found has a NaN",
        ),
        (
            root(one(), |x| x.reshape([1])),
            "custom_root: what `f` returns must be of shape [], found shape [1]",
        ),
        (
            root_captures.unwrap_err().to_string(),
            "custom_root: `f` captures a tensor that wants a gradient",
        ),
        (
            ode(one(), new(), |_, y| y.clone()),
            "odeint: `times` must be a list of at least one time, found shape []",
        ),
        (
            ode(Tensor::from([0.0, 1.0, 1.0]), new(), |_, y| y.clone()),
            "odeint: `times` must be finite numbers that",
        ),
        (
            ode(both(), new().rtol(0.0), |_, y| y.clone()),
            "odeint: `rtol` must be positive and finite, found 0",
        ),
        (
            ode(both(), new(), |_, y| y.reshape([1])),
            "odeint: what `f` returns must be of shape [], found shape [1]",
        ),
        (
            ode(both(), new().max_steps(3), |_, y| y.clone()),
            "odeint: `max_steps`, 3, is too small: they end at t = ",
        ),
        // 1 / (1 - t) ends at 1.
        (ode(both(), new(), |_, y| y.square()), "odeint: the step from t = "),
        (
            ode(both(), new(), |_, y| y * f64::NAN),
            "odeint: the step from t = 0 is too small, 0e0, for an error within",
        ),
        (
            ode_captures.unwrap_err().to_string(),
            "odeint: `f` captures a tensor that wants a gradient",
        ),
        (own.unwrap_err().to_string(), "no table"),
    ];
    for (found, expected) in cases {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}

#[test]
fn a_singular_derivative_is_an_error_of_backward() -> Result<()> {
    let a = leaf(Tensor::from([1.0, 1.0]));
    let f = |x: &Tensor<f64>, p: Params<'_, f64>| Ok((x.sum() - &p[0]) * Tensor::from([1.0, 2.0]));
    let x = custom_root(f, |_| Ok(Tensor::from([0.5, 0.5])), from_ref(&a))?;
    let error = x.select(0, 0).backward().unwrap_err().to_string();
    assert!(
        error.contains("custom_root: the linear system of the gradient has a relative residual"),
        "{error}"
    );
    assert!(a.grad().is_none());
    Ok(())
}

#[test]
fn panics_and_errors_of_a_closure_leave_tensors_usable() -> Result<()> {
    let fails = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&fails);
    let a = leaf(Tensor::from(0.5));
    let f = move |x: &Tensor<f64>, p: Params<'_, f64>| {
        assert!(!seen.load(Ordering::Relaxed), "asked to fail");
        Ok(x * &p[0] + 1.0)
    };
    let g = f.clone();
    let point =
        || fixed_point(f.clone(), &Tensor::from(0.0), from_ref(&a), FixedPointOptions::new());
    let ode = || {
        let g = g.clone();
        let times = Tensor::from([0.0, 1.0]);
        odeint(move |_, y, p| g(y, p), &Tensor::from(1.0), &times, from_ref(&a), OdeOptions::new())
    };
    for run in [&point as &dyn Fn() -> Result<Tensor<f64>>, &ode] {
        let y = run()?.sum();
        fails.store(true, Ordering::Relaxed);
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        assert!(is_grad_enabled());
        assert!(catch_unwind(AssertUnwindSafe(|| y.backward())).is_err());
        assert!(is_grad_enabled() && a.grad().is_none());
        fails.store(false, Ordering::Relaxed);
        run()?.sum().backward()?;
        assert!(a.grad().is_some());
        a.clear_grad();
    }
    Ok(())
}
