//! Each solver against the derivatives of its steps in PyTorch (`golden/solvers.py`), against finite differences of
//! both orders, in forward mode and in programs.

use std::path::Path;

use autograd_core::solvers::{FixedPointOptions, OdeOptions, custom_root, fixed_point, odeint};
use autograd_core::static_graph::{Executor, Feed, Fetch, Program, Variable, gradients};
use autograd_core::{
    DType, Error, GradOptions, Result, Tensor, grad, grad_with, gradgradcheck, jvpcheck, linalg,
};

type List<'a> = &'a [Tensor<f64>];

/// A solver as a function of the inputs that have gradients, with their values.
type Solver = (&'static str, fn(List<'_>) -> Result<Tensor<f64>>, Vec<Tensor<f64>>);

fn layer(given: List<'_>) -> Result<Tensor<f64>> {
    let f = |x: &Tensor<f64>, p: List<'_>| Ok((p[0].matmul(x) + &p[1]).tanh());
    fixed_point(f, &Tensor::zeros([3]), given, FixedPointOptions::new().tolerance(1e-15))
}

fn squares(given: List<'_>) -> Result<Tensor<f64>> {
    let f =
        |x: &Tensor<f64>, p: List<'_>| Ok(Tensor::stack(&[x.square().sum(), x.prod()], 0) - &p[0]);
    let newton = |f: &dyn Fn(&Tensor<f64>) -> Result<Tensor<f64>>| {
        let mut x = Tensor::from([2.5, 0.5]);
        for _ in 0..30 {
            let (a, b) = (x.at(&[0]), x.at(&[1]));
            x = &x - linalg::solve(&Tensor::from([[2.0 * a, 2.0 * b], [b, a]]), &f(&x)?)?;
        }
        Ok(x)
    };
    custom_root(f, newton, given)
}

fn predators(given: List<'_>) -> Result<Tensor<f64>> {
    let f = |t: &Tensor<f64>, y: &Tensor<f64>, p: List<'_>| {
        let season = 1.0 + 0.1 * t.sin();
        Ok(y * p[0].narrow(0, 0, 2) * season + y.prod() * p[0].narrow(0, 2, 2))
    };
    let options = OdeOptions::new().rtol(1e-12).atol(1e-13);
    odeint(f, &given[0], &given[1], &given[2..], options)
}

fn solvers() -> [Solver; 3] {
    let w = Tensor::from([[0.3, -0.4, 0.1], [0.2, 0.5, -0.3], [0.0, 0.25, -0.6]]);
    let rates = Tensor::from([0.6, -0.4, -0.5, 0.3]);
    let (start, times) = (Tensor::from([1.0, 0.5]), Tensor::from([0.0, 1.0, 2.5]));
    [
        ("fixed_point", layer, vec![w, Tensor::from([0.5, -0.2, 0.1])]),
        ("custom_root", squares, vec![Tensor::from([5.0, 2.0])]),
        ("odeint", predators, vec![start, times, rates]),
    ]
}

fn weighted(y: &Tensor<f64>) -> Tensor<f64> {
    let weights: Vec<f64> = (0..y.len()).map(|i| [1.0, -0.5, 2.0][i % 3]).collect();
    (y * Tensor::from_vec(y.shape(), weights).unwrap()).sum()
}

/// The solution, its gradients, and those of the sum of their squares.
fn derivatives(of: &Solver) -> Result<Vec<Tensor<f64>>> {
    let inputs: Vec<Tensor<f64>> = of.2.iter().map(Tensor::copy).collect();
    inputs.iter().for_each(|x| x.set_stop_gradient(false));
    let (y, refs) = ((of.1)(&inputs)?, inputs.iter().collect::<Vec<_>>());
    let options = GradOptions::new().create_graph(true);
    let first: Vec<_> =
        grad_with(&[&weighted(&y)], &refs, options)?.into_iter().flatten().collect();
    let norm = first.iter().fold(Tensor::from(0.0), |sum, x| sum + x.square().sum());
    Ok([vec![y], first, grad(&[&norm], &refs)?].concat())
}

/// Whether numbers agree, relative to the largest.
fn agree(found: &[f64], expected: &[f64], tolerance: f64) -> bool {
    let size = expected.iter().fold(1.0, |size: f64, x| size.max(x.abs()));
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance * size;
    found.len() == expected.len() && found.iter().zip(expected).all(close)
}

#[test]
fn solutions_and_derivatives_are_those_of_the_steps_in_pytorch() -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/solvers.txt");
    let figures = std::fs::read_to_string(path).unwrap();
    let mut lines = figures.lines();
    for of in solvers() {
        for found in derivatives(&of)? {
            let mut words = lines.next().unwrap().split(' ');
            assert_eq!(words.next(), Some(of.0));
            let what = words.next().unwrap();
            let expected: Vec<f64> = words.map(|x| x.parse().unwrap()).collect();
            assert!(agree(&found.to_vec(), &expected, 1e-9), "{} {what}: {found}", of.0);
        }
    }
    assert_eq!(lines.next(), None);
    Ok(())
}

#[test]
fn derivatives_are_those_of_finite_differences() -> Result<()> {
    for (name, solver, inputs) in solvers() {
        let run = |given: List<'_>| solver(given).unwrap();
        let checked = jvpcheck(run, &inputs).and_then(|_| gradgradcheck(run, &inputs));
        checked.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    Ok(())
}

/// Traces a solver, or places it with its output.
fn placed(
    program: &Program,
    of: &Solver,
    x: &[Variable],
    out: Option<&Variable>,
) -> Result<Variable, Error> {
    type T = Tensor<f64>;
    let solver = of.1;
    macro_rules! call {
        (|$($name:ident),*| $x:expr) => {{
            let run = move |$($name: &T),*| solver(&[$($name),*].map(T::clone)).unwrap();
            match out {
                Some(out) => program.eager(run).x($x).out(out).call(),
                None => program.trace(run).x($x).call(),
            }
        }};
    }
    match x {
        [a] => call!(|a| a),
        [a, b] => call!(|a, b| [a, b]),
        [a, b, c] => call!(|a, b, c| [a, b, c]),
        _ => panic!("{} inputs", x.len()),
    }
}

#[test]
fn a_program_calls_solvers_eagerly_and_refuses_to_trace_them() -> Result<()> {
    for of in solvers() {
        let program = Program::new();
        let names: Vec<String> = (0..of.2.len()).map(|i| format!("x{i}")).collect();
        let x = names.iter().zip(&of.2).map(|(name, x)| {
            let x = program.data(name, x.shape(), DType::Float64)?;
            x.set_stop_gradient(false);
            Ok(x)
        });
        let x = x.collect::<Result<Vec<Variable>>>()?;
        let refused = placed(&program, &of, &x, None).unwrap_err().to_string();
        let here = refused.starts_with("trace (built at tests/tests/engine/solver_figures.rs:");
        assert!(here && refused.contains("place the closure with `eager`"), "{refused}");
        let y = program.current_block().create_var("y", DType::Float64, (of.1)(&of.2)?.shape())?;
        y.set_stop_gradient(false);
        let y = placed(&program, &of, &x, Some(&y))?;
        let loss = program.trace(|y: &Tensor<f64>| weighted(y)).x(&y).call()?;
        let grads = gradients(&[&loss], &x.iter().collect::<Vec<_>>())?;
        let fetch = std::iter::once(&y).chain(grads.iter().flatten());
        let fetch: Vec<&dyn Fetch> = fetch.map(|v| v as &dyn Fetch).collect();
        let feed = names.iter().zip(&of.2).map(|(name, x)| (&name[..], x as &dyn Feed));
        let found = Executor::new().run(&program, &feed.collect::<Vec<_>>(), &fetch)?;
        assert_eq!(found.len(), 1 + x.len(), "{}", of.0);
        for (found, eager) in found.iter().zip(derivatives(&of)?) {
            let found = found.downcast_ref::<f64>().unwrap().to_vec();
            assert!(agree(&found, &eager.to_vec(), 1e-12), "{}: {found:?}, {eager}", of.0);
        }
    }
    Ok(())
}
