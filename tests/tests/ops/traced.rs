//! Every op with a gradient, traced into a program with the random arguments of `properties`: its results,
//! first and second derivatives, and the program loaded from a file.

use autograd_core::static_graph::{Executor, Feed, Fetch, Functions, Program, Variable, gradients};
use autograd_core::{AnyTensor, DType, Tensor};

use crate::properties::{Arguments, arguments, derivatives, differentiable, first_seed, same};
use crate::random::{Domain, Draw};
use crate::run::{places_are_of_callers, run};

/// In-place ops, which programs do not have.
const WITHOUT: &str = "add_assign sub_assign mul_assign div_assign set_item";

/// Layers whose forward does not consist of ops: only `Program::eager` supports them, and no file.
const EAGER: &[&str] = &[
    "solve",
    "inv",
    "slogdet",
    "cholesky",
    "solve_triangular",
    "cholesky_solve",
    "eigh",
    "qr",
    "svd",
    "lstsq",
    "pinv",
];

/// Runs an op on tensors; returns its results with the weights of `derivatives`.
fn traced(
    program: &Program,
    op: &str,
    given: &Arguments,
    x: &[Variable],
) -> Result<Variable, String> {
    let is_eager = EAGER.contains(&op);
    let (op, variant, index) = (op.to_owned(), given.variant.clone(), given.index.clone());
    let of = move |t: &[&Tensor<f64>]| -> Tensor<f64> {
        let t: Vec<Tensor<f64>> = t.iter().map(|&x| x.clone()).collect();
        match run(&op, &variant, &t, &index) {
            AnyTensor::Float64(y) => y,
            other => panic!("{} of float64", other.dtype()),
        }
    };
    type T = Tensor<f64>;
    macro_rules! placed {
        ($closure:expr, $x:expr) => {
            if is_eager {
                program.eager($closure).x($x).call()
            } else {
                program.trace($closure).x($x).call()
            }
        };
    }
    let done = match x {
        [a] => placed!(move |a: &T| of(&[a]), a),
        [a, b] => placed!(move |a: &T, b: &T| of(&[a, b]), [a, b]),
        [a, b, c] => placed!(move |a: &T, b: &T, c: &T| of(&[a, b, c]), [a, b, c]),
        _ => panic!("{} inputs", x.len()),
    };
    done.map_err(|error| error.to_string())
}

/// The sum of the elements times weights.
fn weighted(program: &Program, x: &Variable) -> Variable {
    program.trace(|x: &Tensor<f64>| crate::properties::weighted(x)).x(x).call().unwrap()
}

fn hold(op: &str, given: &Arguments, draw: &mut Draw) -> Result<(), String> {
    let inputs: Vec<Tensor<f64>> =
        given.inputs.iter().map(|(shape, domain)| draw.tensor(shape, *domain, 1)).collect();
    let program = Program::new();
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let data = |(name, x): (&String, &Tensor<f64>)| {
        let x = program.data(name, x.shape(), DType::Float64).unwrap();
        x.set_stop_gradient(false);
        x
    };
    let x: Vec<Variable> = names.iter().zip(&inputs).map(data).collect();
    let x_refs: Vec<&Variable> = x.iter().collect();
    let y = traced(&program, op, given, &x)?;
    let mut sums = vec![weighted(&program, &y)];
    // `None` for an input on which nothing depends.
    let mut fetched = vec![Some(y)];
    for _ in 0..2 {
        let targets: Vec<&Variable> = sums.iter().collect();
        let grads = match targets.is_empty() {
            true => vec![None; x.len()],
            false => gradients(&targets, &x_refs).map_err(|error| error.to_string())?,
        };
        sums = grads.iter().flatten().map(|grad| weighted(&program, grad)).collect();
        fetched.extend(grads);
    }
    let feed: Vec<(&str, &dyn Feed)> =
        names.iter().zip(&inputs).map(|(name, x)| (&name[..], x as &dyn Feed)).collect();
    let fetch: Vec<String> = fetched.iter().flatten().map(Variable::name).collect();
    let fetch: Vec<&dyn Fetch> = fetch.iter().map(|name| name as &dyn Fetch).collect();
    let executor = Executor::new();
    let run = |program: &Program| -> Result<Vec<Vec<f64>>, String> {
        let run = executor.run(program, &feed, &fetch).map_err(|error| error.to_string())?;
        Ok(run.iter().map(|x| x.downcast_ref::<f64>().unwrap().to_vec()).collect())
    };
    places_are_of_callers(op, &program.to_dot());
    let found = run(&program)?;
    let mut rest = found.iter().cloned();
    let found_or_zeros: Vec<Vec<f64>> = (0..)
        .zip(&fetched)
        .map(|(i, variable): (usize, _)| match variable {
            Some(_) => rest.next().unwrap(),
            None => vec![0.0; inputs[(i - 1) % inputs.len()].len()],
        })
        .collect();
    let eager = derivatives(op, given, &inputs);
    same("in a program, and eagerly", &found_or_zeros, &eager, 1e-12)?;

    if EAGER.contains(&op) {
        return Ok(());
    }
    let path = std::env::temp_dir().join(format!("traced-{op}-{}", std::process::id()));
    program.save(&path, &executor).map_err(|error| error.to_string())?;
    let loaded = Program::load(&path, &Functions::new(), &executor);
    std::fs::remove_file(&path).unwrap();
    let loaded = loaded.map_err(|error| error.to_string())?;
    if loaded.to_string() != program.to_string() {
        return Err(format!("from a file:\n{loaded}\nbut it was\n{program}"));
    }
    same("from a file, and before", &run(&loaded)?, &found, 0.0)
}

#[test]
fn every_op_is_traced_with_its_derivatives() {
    let mut ops = differentiable();
    for op in WITHOUT.split(' ') {
        assert!(ops.remove(op), "`{op}` is no op with a gradient");
    }
    let cases = std::env::var("PROPERTY_CASES").map_or(6, |n| n.parse().unwrap());
    let mut wrong = Vec::new();
    for op in &ops {
        for seed in (0..cases).map(|i| first_seed(op) + i) {
            let mut draw = Draw::new(seed);
            let given = arguments(op, "float64", &mut draw).unwrap();
            let attempt = || hold(op, &given, &mut draw);
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt));
            let why = match done {
                Ok(Ok(())) => continue,
                Ok(Err(why)) => why,
                Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_default(),
            };
            let shapes: Vec<_> = given.inputs.iter().map(|(shape, _)| shape).collect();
            wrong.push(format!("{op} {} (seed {seed}) on {shapes:?}: {why}", given.variant));
        }
    }
    assert!(wrong.is_empty(), "{} cases are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Ops that are refused under the name of another operator, at their line. The masks follow the lengths.
const REFUSED_AS: &[(&str, &str)] = &[("masked_fill", "where"), ("masked_select", "index_select")];

/// With free axes only, an op computes the same as eagerly, at several lengths, or is refused under its own name.
/// Returns whether it is computed.
fn hold_with_free_axes(op: &str, given: &Arguments, draw: &mut Draw) -> Result<bool, String> {
    let program = Program::new();
    let names: Vec<String> = (0..given.inputs.len()).map(|i| format!("x{i}")).collect();
    let data = |(name, (shape, _)): (&String, &(Vec<usize>, Domain))| {
        program.data(name, vec![-1; shape.len()], DType::Float64).unwrap()
    };
    let x: Vec<Variable> = names.iter().zip(&given.inputs).map(data).collect();
    let y = match traced(&program, op, given, &x) {
        Ok(y) => y,
        // Its arguments fit no example, or not all.
        Err(why) if why.contains("the closure, on an example: ") => return Ok(false),
        Err(why) => {
            let name = REFUSED_AS.iter().find(|of| of.0 == op).map_or(op, |of| of.1);
            return match why.starts_with(&format!("{name} (built at ")) {
                true => Ok(false),
                false => Err(why),
            };
        }
    };
    let mut computed = false;
    for more in [0, 1, 2, 5, 9] {
        let longer = |n: &usize| if *n < 2 { *n } else { n + more };
        let inputs = given.inputs.iter().map(|(shape, domain)| {
            draw.tensor(&shape.iter().map(longer).collect::<Vec<_>>(), *domain, 1)
        });
        let inputs: Vec<Tensor<f64>> = inputs.collect();
        let eager = || run(op, &given.variant, &inputs, &given.index);
        let Ok(eager) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(eager)) else {
            continue;
        };
        let feed: Vec<(&str, &dyn Feed)> =
            names.iter().zip(&inputs).map(|(name, x)| (&name[..], x as &dyn Feed)).collect();
        let Ok(found) = Executor::new().run(&program, &feed, &[&y]) else { continue };
        let numbers = |x: &AnyTensor| x.downcast_ref::<f64>().unwrap().to_vec();
        let (found, eager) = (&found[0], &eager);
        if found.shape() != eager.shape() {
            return Err(format!("of shape {:?}, eagerly {:?}", found.shape(), eager.shape()));
        }
        same("with free axes, and eagerly", &[numbers(found)], &[numbers(eager)], 1e-12)?;
        computed = true;
    }
    Ok(computed)
}

#[test]
fn every_op_with_free_axes_is_computed_or_refused_under_its_own_name() {
    let mut ops = differentiable();
    for op in WITHOUT.split(' ').chain(EAGER.iter().copied()) {
        ops.remove(op);
    }
    let cases = std::env::var("PROPERTY_CASES").map_or(6, |n| n.parse().unwrap());
    let (mut wrong, mut computed) = (Vec::new(), 0);
    for op in &ops {
        let mut is_computed = false;
        for seed in (0..cases).map(|i| first_seed(op) + i) {
            let mut draw = Draw::new(seed);
            let given = arguments(op, "float64", &mut draw).unwrap();
            match hold_with_free_axes(op, &given, &mut draw) {
                Ok(equal) => is_computed |= equal,
                Err(why) => wrong.push(format!("{op} {} (seed {seed}): {why}", given.variant)),
            }
        }
        computed += usize::from(is_computed);
    }
    assert!(wrong.is_empty(), "{} cases are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(computed > ops.len() / 3, "only {computed} of {} ops are computed", ops.len());
}

/// Ops with results that have no gradient, on numbers and on positions.
const INTEGERS: &[(&str, fn(&Tensor<f64>, &Tensor<i64>) -> Tensor<i64>)] = &[
    ("argmax", |x, _| x.argmax(1)),
    ("argmin", |x, _| x.argmin(-1)),
    ("argsort", |x, _| x.argsort(0, true)),
    ("searchsorted", |_, i| Tensor::from([0_i64, 1, 3]).searchsorted(i, true)),
    ("one_hot", |_, i| i.one_hot(4)),
    ("bincount", |_, i| i.bincount(4)),
    ("unique", |_, i| i.unique().2),
];

/// Those that read the elements for the length of their result.
const READING: &str = "bincount unique";

#[test]
fn ops_without_a_gradient_are_traced_or_refused_under_their_own_names() {
    let x = Tensor::from([[0.5, -1.0, 2.0], [3.0, 3.5, -0.5]]);
    let index = Tensor::from([3_i64, 0, 1, 1]);
    for &(op, of) in INTEGERS {
        let program = Program::new();
        let given = program.data("x", [-1, 3], DType::Float64).unwrap();
        let positions = program.data("index", [-1], DType::Int64).unwrap();
        let traced = program.trace(of).x([&given, &positions]).call();
        if READING.split(' ').any(|name| name == op) {
            let why = traced.unwrap_err().to_string();
            assert!(why.contains(&format!("{op} (tests/tests/ops/traced.rs:")), "{why}");
            continue;
        }
        let feed: [(&str, &dyn Feed); 2] = [("x", &x), ("index", &index)];
        let found = Executor::new().run(&program, &feed, &[&traced.unwrap()]).unwrap();
        let (found, eager) = (found[0].downcast_ref::<i64>().unwrap(), of(&x, &index));
        assert_eq!((found.shape(), found.to_vec()), (eager.shape(), eager.to_vec()), "{op}");
    }
}
