//! Methods of variables named as those of tensors: the same call, results and gradients, with the line of the call.

use std::collections::BTreeSet;

use autograd_core::private::names_of_methods;
use autograd_core::static_graph::{Executor, Feed, Fetch, Program, Variable, gradients};
use autograd_core::{
    AnyTensor, Conv2dOptions, DType, Error, GradOptions, Padding, Tensor, grad_with,
};

/// What a method is called on and with: numbers `[n, 3]`, `[3, 3]` and `[2, 3]`, classes `[n]`, positions `[2]` and `[n, 3]`, a mask `[n, 3]`,
/// images `[n, 1, 3, 3]` and their weight.
struct Given<Float, Index, Mask> {
    x: Float,
    y: Float,
    rows: Float,
    pair: Float,
    images: Float,
    weight: Float,
    classes: Index,
    index: Index,
    places: Index,
    mask: Mask,
}

type Variables = Given<Variable, Variable, Variable>;
type Tensors = Given<Tensor<f64>, Tensor<i64>, Tensor<bool>>;
type OfVariables = fn(&Variables) -> Result<Variable, Error>;
type OfTensors = fn(&Tensors) -> AnyTensor;

/// One call, of variables and of tensors: the same tokens, so the same name and arguments. The former returns a
/// `Result`, the latter a tensor.
macro_rules! both {
    ($($name:ident |$of:ident| $receiver:ident ($($arg:expr),*);)*) => {
        [$((
            stringify!($name),
            (|$of| $of.$receiver.$name($($arg),*)) as OfVariables,
            (|$of| $of.$receiver.$name($($arg),*).into()) as OfTensors,
        )),*]
    };
}

/// Methods whose calls differ, and why.
const DIFFERENT: &[(&str, &str)] = &[
    ("cast", "the element type is a type argument of tensors, and a value beside variables"),
    ("dropout", "a program knows whether it trains"),
    (
        "equal greater greater_equal less less_equal not_equal",
        "beside a tensor a number has methods of its own: `eq_scalar`",
    ),
    ("chunk", "the result is a list"),
];

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
        sum |of| x ();
        sum_axes |of| x ([0, 1]);
        mean |of| x ();
        mean_axes |of| x (1);
        prod |of| x ();
        prod_axes |of| x (1);
        max |of| x ();
        max_axes |of| x (1);
        min |of| x ();
        min_axes |of| x (1);
        matmul |of| x (&of.rows);
        softmax |of| x (1);
        log_softmax |of| x (1);
        cross_entropy |of| x (&of.classes);
        permute |of| x (&[1, 0]);
        index_select |of| x (1, &of.index);
        gather |of| x (1, &of.places);
        argmax |of| x (1);
        argmin |of| x (1);
        argsort |of| x (1, true);
        binary_cross_entropy |of| x (&of.y);
        max_pool2d |of| images (2);
        avg_pool2d |of| images (2);
        norm_axes |of| x (1, 3.0);
        index_add |of| x (0, &of.index, &of.pair);
        scatter_add |of| x (1, &of.places, &of.y);
        scatter |of| x (1, &of.places, &of.y);
        diagonal |of| rows (0);
        diag |of| x (0);
        segment_sum |of| x (&of.classes, 3);
        repeat_interleave |of| x (2, 1);
        searchsorted |of| classes (&of.places, false);
        reshape |of| rows ([9]);
        broadcast_to |of| rows ([2, 3, 3]);
        slice_axis |of| x (1, 0, 2, 1);
        where_else |of| mask (&of.x, &of.y);
        masked_fill |of| x (&of.mask, 0.5);
        conv2d |of| images (&of.weight, None, Conv2dOptions::new());
        transpose |of| x ();
        squeeze |of| images (1);
        cumsum |of| x (0);
        cumprod |of| x (-1);
        var_axes |of| x (1, 1);
        std_axes |of| x ([0, 1], 0);
        logsumexp |of| x (1);
        norm |of| x ();
        flip |of| x (0);
        tril |of| x (-1);
        triu |of| x (1);
        leaky_relu |of| x (0.1);
        nan_to_num |of| x (0.1);
        elu |of| x (0.5);
        smooth_l1_loss |of| x (&of.y);
        binary_cross_entropy_with_logits |of| x (&of.y);
        swap_axes |of| x (0, -1);
        unsqueeze |of| x (1);
        pad |of| x (&[[1, 2]], Padding::Reflect);
        repeat |of| x (&[1, 2]);
        roll |of| x (1, 1);
        select |of| x (1, 2);
        clamp |of| x (0.3, 0.7);
        mse_loss |of| x (&of.y);
        l1_loss |of| x (&of.y);
        huber_loss |of| x (&of.y, 0.2);
        kl_div |of| x (&of.y);
    };
    let different = DIFFERENT.iter().flat_map(|(names, _)| names.split(' '));
    let known: BTreeSet<_> = all.iter().map(|(name, ..)| *name).chain(different).collect();
    assert_eq!(
        known,
        names_of_methods().collect(),
        "the methods of variables, and the calls above"
    );
    for (name, of_variables, of_tensors) in all {
        check(name, of_variables, of_tensors);
    }
}

fn check(name: &str, of_variables: OfVariables, of_tensors: OfTensors) {
    let program = Program::new();
    let float = |name: &str, shape: &[i64]| {
        let x = program.data(name, shape, DType::Float64).unwrap();
        x.set_stop_gradient(false);
        x
    };
    let int = |name: &str, shape: &[i64]| program.data(name, shape, DType::Int64).unwrap();
    let variables = Given {
        x: float("x", &[-1, 3]),
        y: float("y", &[-1, 3]),
        rows: float("rows", &[3, 3]),
        pair: float("pair", &[2, 3]),
        images: float("images", &[-1, 1, 3, 3]),
        weight: float("weight", &[1, 1, 2, 2]),
        classes: int("classes", &[-1]),
        index: int("index", &[2]),
        places: int("places", &[-1, 3]),
        mask: program.data("mask", [-1, 3], DType::Bool).unwrap(),
    };
    let line = program.to_string();
    let z = of_variables(&variables).unwrap_or_else(|error| panic!("{name}: {error}"));
    let places = program.to_dot();
    assert!(places.contains("tests/programs/methods.rs"), "{name}: {places}");
    assert!(!places.contains("autograd-core/src"), "{name}: {places}");
    assert_ne!(program.to_string(), line);
    let tensors = Given {
        x: input(0.0),
        y: input(1.0),
        rows: input(2.0).narrow(0, 0, 3),
        pair: input(6.0).narrow(0, 0, 2),
        images: Tensor::concat(&[input(3.0), input(4.0), input(5.0)], 0).reshape([4, 1, 3, 3]),
        weight: Tensor::from([[[[0.5, -1.0], [2.0, 0.25]]]]),
        classes: Tensor::from([0_i64, 1, 2, 2]),
        index: Tensor::from([1_i64, 1]),
        places: Tensor::from([[0_i64, 2, 1], [1, 1, 1], [2, 0, 1], [0, 0, 2]]),
        mask: input(0.0).gt_scalar(0.5),
    };
    let feed: [(&str, &dyn Feed); 10] = [
        ("x", &tensors.x),
        ("y", &tensors.y),
        ("rows", &tensors.rows),
        ("pair", &tensors.pair),
        ("images", &tensors.images),
        ("weight", &tensors.weight),
        ("classes", &tensors.classes),
        ("index", &tensors.index),
        ("places", &tensors.places),
        ("mask", &tensors.mask),
    ];
    let inputs = [&variables.x, &variables.rows, &variables.images];
    let slopes = if z.dtype() == DType::Float64 {
        gradients(&[&z], &inputs).unwrap()
    } else {
        vec![None; 3]
    };
    let fetch: Vec<_> = std::iter::once(&z).chain(slopes.iter().flatten()).collect();
    let fetch: Vec<_> = fetch.into_iter().map(|v| v as &dyn Fetch).collect();
    let run = Executor::new().run(&program, &feed, &fetch).unwrap();
    let inputs = [&tensors.x, &tensors.rows, &tensors.images];
    inputs.into_iter().for_each(|x| x.set_stop_gradient(false));
    let right = of_tensors(&tensors);
    let mut expected = vec![right.clone()];
    if let Some(z) = right.downcast_ref::<f64>() {
        let options = GradOptions::new().allow_unused(true);
        let found = grad_with(&[&z.sum()], &inputs, options).unwrap();
        expected.extend(found.into_iter().flatten().map(AnyTensor::from));
    }
    assert_eq!(run.len(), expected.len(), "{name}");
    for (found, right) in run.iter().zip(&expected) {
        assert_eq!((found.dtype(), found.shape()), (right.dtype(), right.shape()), "{name}");
        match found.downcast_ref::<f64>() {
            Some(found) => {
                let right = right.downcast_ref::<f64>().unwrap();
                assert!(found.allclose(right, 1e-12, 1e-12), "{name}: {found} {right}");
            }
            None => assert_eq!(found.to_string(), right.to_string(), "{name}"),
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
    let fetch: Vec<_> = found.iter().map(|v| v as &dyn Fetch).collect();
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
