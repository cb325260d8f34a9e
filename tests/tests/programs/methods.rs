//! Methods of variables named as those of tensors: the same results and gradients, with the line of the call.

use autograd_core::static_graph::{Executor, Feed, Program, Variable, gradients};
use autograd_core::{DType, Error, GradOptions, Padding, Tensor, grad_with};

type OfVariables = fn(&Variable, &Variable) -> Result<Variable, Error>;
type OfTensors = fn(&Tensor<f64>, &Tensor<f64>) -> Tensor<f64>;

/// One call, of variables and of tensors.
macro_rules! both {
    ($($name:ident |$x:ident, $y:ident| ($($arg:expr),*);)*) => {
        [$((
            stringify!($name),
            (|$x, $y| { let _ = $y; $x.$name($($arg),*) }) as OfVariables,
            (|$x, $y| { let _ = $y; $x.$name($($arg),*) }) as OfTensors,
        )),*]
    };
}

fn data(program: &Program, name: &str) -> Variable {
    let x = program.data(name, [-1, 3], DType::Float64).unwrap();
    x.set_stop_gradient(false);
    x
}

fn input(seed: f64) -> Tensor<f64> {
    let n = (0..12).map(|i| (f64::from(i) * 0.7 + seed).sin() * 0.4 + 0.5);
    Tensor::from(n.collect::<Vec<_>>()).reshape([4, 3])
}

#[test]
fn methods_of_variables_are_those_of_tensors() {
    let all = both! {
        cumsum |x, y| (0);
        cumprod |x, y| (-1);
        var_axes |x, y| (1, 1);
        std_axes |x, y| ([0, 1], 0);
        logsumexp |x, y| (1);
        norm |x, y| ();
        flip |x, y| (0);
        tril |x, y| (-1);
        triu |x, y| (1);
        leaky_relu |x, y| (0.1);
        nan_to_num |x, y| (0.1);
        elu |x, y| (0.5);
        smooth_l1_loss |x, y| (y);
        binary_cross_entropy_with_logits |x, y| (y);
        swap_axes |x, y| (0, -1);
        unsqueeze |x, y| (1);
        pad |x, y| (&[[1, 2]], Padding::Reflect);
        repeat |x, y| (&[1, 2]);
        roll |x, y| (1, 1);
        select |x, y| (1, 2);
        clamp |x, y| (0.3, 0.7);
        mse_loss |x, y| (y);
        l1_loss |x, y| (y);
        huber_loss |x, y| (y, 0.2);
        kl_div |x, y| (y);
    };
    for (name, of_variables, of_tensors) in all {
        let program = Program::new();
        let (x, y) = (data(&program, "x"), data(&program, "y"));
        let line = program.to_string();
        let z = of_variables(&x, &y).unwrap();
        let places = program.to_dot();
        assert!(places.contains("tests/programs/methods.rs"), "{name}: {places}");
        assert!(!places.contains("autograd-core/src"), "{name}: {places}");
        assert_ne!(program.to_string(), line);
        let dx = gradients(&[&z], &[&x]).unwrap().remove(0).unwrap();
        let (a, b) = (input(0.0), input(1.0));
        let feed: [(&str, &dyn Feed); 2] = [("x", &a), ("y", &b)];
        let run = Executor::new().run(&program, &feed, &[&z, &dx]).unwrap();
        a.set_stop_gradient(false);
        let z = of_tensors(&a, &b);
        let dx = grad_with(&[&z.sum()], &[&a], GradOptions::new()).unwrap().remove(0).unwrap();
        for (found, right) in run.iter().zip([z, dx]) {
            let found = found.downcast_ref::<f64>().unwrap();
            assert_eq!(found.shape(), right.shape(), "{name}");
            assert!(found.allclose(&right, 1e-12, 1e-12), "{name}: {found} {right}");
        }
    }
}

#[test]
fn others_are_built_of_these() {
    let program = Program::new();
    let x = data(&program, "x");
    let index = program.data("index", [2], DType::Int64).unwrap();
    let rows = x.slice_axis(0, 0, 2, 1).unwrap();
    let found = [
        x.argmin(1).unwrap(),
        x.index_add(0, &index, &rows).unwrap(),
        x.unsqueeze(-1).unwrap().squeeze(2).unwrap(),
        x.masked_fill(&x.greater(0.5).unwrap(), 7.0).unwrap(),
        x.chunk(2, 1).unwrap().remove(1),
        program.einsum("ni,mi->nm", &[&x, &x]).unwrap(),
    ];
    let (a, picked) = (input(0.0), Tensor::from([1_i64, 1]));
    let feed: [(&str, &dyn Feed); 2] = [("x", &a), ("index", &picked)];
    let fetch: Vec<_> =
        found.iter().map(|v| v as &dyn autograd_core::static_graph::Fetch).collect();
    let run = Executor::new().run(&program, &feed, &fetch).unwrap();
    assert_eq!(run[0].downcast_ref::<i64>().unwrap().to_vec(), a.argmin(1).to_vec());
    let right = [
        a.index_add(0, &picked, &a.narrow(0, 0, 2)),
        a.clone(),
        a.masked_fill(&a.gt_scalar(0.5), 7.0),
        a.chunk(2, 1).remove(1),
        Tensor::einsum("ni,mi->nm", &[&a, &a]),
    ];
    for (found, right) in run[1..].iter().zip(right) {
        assert_eq!(found.downcast_ref::<f64>().unwrap().to_vec(), right.to_vec());
    }
}

#[test]
fn what_does_not_fit_is_refused_at_the_call() {
    let program = Program::new();
    let (x, y) = (data(&program, "x"), program.data("y", [2], DType::Float64).unwrap());
    let whole = program.data("n", [2], DType::Int64).unwrap();
    let before = program.to_string();
    for (error, op, why) in [
        (x.roll(1, 2), "roll", "axis 2 does not exist (the tensor has 2 axes)"),
        (x.cumprod(5), "cumprod", "axis 5 does not exist"),
        (
            x.pad(&[[1, 1]; 3], Padding::Reflect),
            "pad",
            "expected 2 pairs in `widths`, or fewer, found 3",
        ),
        (x.clamp(1.0, 0.0), "clamp", "`low` must not be above `high`, found 1.0 and 0.0"),
        (y.huber_loss(&y, -1.0), "huber_loss", "`delta` must be a finite number above 0, found -1"),
        (whole.roll(1, 0), "roll", "does not compute with int64"),
        (program.einsum("ij->k", &[&x]), "einsum", "with the result's `k` on the left"),
    ] {
        let error = error.unwrap_err().to_string();
        let start = format!("{op} (built at tests/tests/programs/methods.rs:");
        assert!(error.starts_with(&start) && error.contains(why), "{error}");
    }
    assert_eq!(program.to_string(), before);
}
