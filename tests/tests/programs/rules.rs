//! Errors while a program is built: each names operator, variable and line, and the program is
//! unchanged.

use autograd_core::static_graph::{
    Adam, Executor, FcOptions, Init, Program, Sgd, Variable, append_backward, gradients,
    program_guard,
};
use autograd_core::{DType, Result, Tensor};
use ndarray::{ArrayD, ArrayViewD, arr1};

/// The error's text, after a check of the line that it names.
#[track_caller]
fn refused<T>(built: Result<T>, op: &str) -> String {
    let error = built.err().expect("it is refused").to_string();
    let start = format!("{op} (built at tests/tests/programs/rules.rs:");
    assert!(error.starts_with(&start), "{error}");
    error[start.len()..].split_once("): ").expect("a line, then why").1.to_owned()
}

fn data(program: &Program, name: &str, shape: &[i64]) -> Variable {
    let x = program.data(name, shape, DType::Float64).unwrap();
    x.set_stop_gradient(false);
    x
}

fn state(program: &Program) -> [String; 2] {
    [program.to_string(), program.startup().to_string()]
}

#[test]
fn a_refused_minimize_leaves_the_program_as_it_was() {
    let program = Program::new();
    let x = data(&program, "x", &[-1, 3]);
    let loss = program.fc(&x, 2).unwrap().square().unwrap().mean().unwrap();
    let other = program.var("fc_0.weight").unwrap().sum().unwrap();
    Sgd::new(0.1).minimize(&loss).unwrap();
    let before = state(&program);
    let why = refused(Adam::new(0.1).minimize(&other), "minimize");
    assert!(
        why.starts_with("`fc_0.weight`, which the loss `sum_0` depends on, is updated already by")
            && why.contains("sgd (built at tests/tests/"),
        "{why}"
    );
    let why = refused(append_backward(&other), "the gradient of sum");
    assert!(why.starts_with("reads `fc_0.weight` after sgd (built at tests/tests/"), "{why}");
    assert_eq!(state(&program), before);
    // Generated names continue as if nothing had been tried.
    let why = refused(Sgd::new(-1.0).minimize(&loss), "Sgd");
    assert_eq!(why, "`learning_rate` must be 0 or more, and finite, found -1");
    let why = refused(Adam::new(0.1).betas(0.9, 1.0).minimize(&loss), "Adam");
    assert!(why.starts_with("`beta2` must be"), "{why}");
    assert_eq!(state(&program), before);
    assert_eq!(x.tanh().unwrap().name(), "tanh_0");
}

#[test]
fn gradients_that_are_refused_midway_leave_nothing() {
    let program = Program::new();
    let x = data(&program, "x", &[2]);
    let out = program.current_block().create_var("out", DType::Float64, [2]).unwrap();
    let double = |x: ArrayViewD<f64>| 2.0 * &x;
    let twice = |dy: ArrayViewD<f64>| 2.0 * &dy;
    let call = program.py_func(double).x(&x).out(&out).backward_func(twice).name("double");
    let y = call.skip_vars_in_backward_input([&x, &out]).call().unwrap();
    let dx = gradients(&[&y.square().unwrap()], &[&x]).unwrap().remove(0).unwrap();
    // The square of the gradient comes before the op that has no second derivative.
    let slope = dx.square().unwrap().sum().unwrap();
    let before = state(&program);
    for refusal in [gradients(&[&slope], &[&x]).err(), gradients(&[&slope], &[&x]).err()] {
        let why = refusal.expect("it is refused").to_string();
        assert!(why.contains("a second derivative through it is not known"), "{why}");
        assert_eq!(state(&program), before);
    }
    let run = Executor::new().run(&program, &[("x", &arr1(&[1.0, 2.0]))], &[&dx]).unwrap();
    assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [8.0, 16.0]);
}

#[test]
fn a_layer_that_is_refused_leaves_no_parameter() {
    let program = Program::new();
    let x = data(&program, "x", &[-1, 3]);
    program.create_parameter("head.bias", [2], DType::Float64, Init::Constant(0.0)).unwrap();
    let before = state(&program);
    let why = refused(program.fc_with(&x, 2, &FcOptions::new().name("head")), "fc");
    assert!(why.starts_with("a variable `head.bias` (float64 [2]) was created at"), "{why}");
    assert_eq!(state(&program), before);
    // The error comes from the other program, which has no parameter of this name.
    let (main, startup) = (Program::new(), program.startup());
    let _guard = program_guard(&main, &startup);
    let made = main.create_parameter("head.bias", [2], DType::Float64, Init::Constant(0.0));
    let why = refused(made, "create_parameter");
    assert_eq!(why, "the startup program sets a variable `head.bias` already");
    assert_eq!(state(&main)[0], "");
}

#[test]
fn names_and_forms() {
    let program = Program::new();
    let x = data(&program, "x", &[-1, 3]);
    let why = refused(program.data("x", [1], DType::Float32), "data");
    assert!(why.starts_with("a variable `x` (float64 [-1, 3]) was created at tests/"), "{why}");
    let why = refused(program.data("y", [-2], DType::Float32), "data");
    assert_eq!(why, "-2 is no length; -1 is a free axis");
    assert_eq!(refused(program.data("", [1], DType::Float32), "data"), "a variable needs a name");
    let why = refused(
        program.create_parameter("w", [None, Some(2)], DType::Float32, Init::Xavier),
        "create_parameter",
    );
    assert_eq!(why, "`w` has a free axis: float32 [-1, 2]");
    let why = refused(
        program.create_parameter("w", [2], DType::Int64, Init::Constant(0.0)),
        "create_parameter",
    );
    assert_eq!(why, "`w` must be of a float type: int64 [2]");
    let free = program.data("free", [-1, -1], DType::Float64).unwrap();
    let why = refused(program.fc(&free, 2), "fc");
    assert_eq!(why, "`free` must be [n, ..] with only n free, it is float64 [-1, -1]");
    let flag = program.data("flag", [3], DType::Bool).unwrap();
    let why = refused(x.try_add(&flag), "add");
    assert!(why.ends_with("given `x`: float64 [-1, 3], `flag`: bool [3]"), "{why}");
    assert_eq!(
        refused(flag.tanh(), "tanh").split(';').next(),
        Some("takes float32 or float64, found bool")
    );
    let why = refused(flag.reshape([2, -1]), "reshape");
    assert!(why.starts_with("`shape` must be lengths whose product divides 3, "), "{why}");
    let why = refused(append_backward(&x), "append_backward");
    assert_eq!(why, "the loss `x` must have one element, it is float64 [-1, 3]");
    let count = program.data("count", [1], DType::Int64).unwrap();
    let why = refused(append_backward(&count), "append_backward");
    assert_eq!(why, "`count` is int64, which has no gradient");
}

#[test]
fn outputs_are_computed_once_and_before_they_are_read() {
    let program = Program::new();
    let x = data(&program, "x", &[3]);
    let block = program.current_block();
    let never = block.create_var("never", DType::Float64, [3]).unwrap();
    let why = refused(never.tanh(), "tanh");
    assert!(why.starts_with("reads `never` (created at tests/tests/programs/rules.rs:"), "{why}");
    assert!(why.ends_with("which no operator before it computes"), "{why}");
    let same = |x: ArrayViewD<f64>| -> ArrayD<f64> { x.to_owned() };
    let call =
        |from: &Variable, to: &Variable| program.py_func(same).name("same").x(from).out(to).call();
    let y = block.create_var("y", DType::Float64, [3]).unwrap();
    let y = call(&x, &y).unwrap();
    let z = y.tanh().unwrap();
    // The output is also an input of the input: a cycle.
    let why = refused(call(&z, &y), "py_func `same`");
    assert!(
        why.contains("`y` is what its own inputs are computed from, which is a cycle"),
        "{why}"
    );
    let why = refused(call(&x, &y), "py_func `same`");
    assert!(why.starts_with("the output `y` is computed by py_func `same` (built at"), "{why}");
    let why = refused(call(&x, &x), "py_func `same`");
    assert!(why.contains("`x` is both an input and an output, which is a cycle"), "{why}");
    let fed = program.data("fed", [3], DType::Float64).unwrap();
    assert_eq!(refused(call(&x, &fed), "py_func `same`"), "the output `fed` is fed");
    let w = program.create_parameter("w", [3], DType::Float64, Init::Constant(0.0)).unwrap();
    let why = refused(call(&x, &w), "py_func `same`");
    assert_eq!(why, "the output `w` is a parameter, which only an optimizer changes");
    let why = refused(program.py_func(same).name("same").x(&x).call(), "py_func `same`");
    assert!(why.starts_with("returns 1 value, but no `out` is declared"), "{why}");
}

#[test]
fn what_reads_a_parameter_is_built_before_its_update() {
    let program = Program::new();
    let w = program.create_parameter("w", [3], DType::Float64, Init::Constant(1.0)).unwrap();
    Sgd::new(0.1).minimize(&w.sum().unwrap()).unwrap();
    let why = refused(w.tanh(), "tanh");
    assert!(
        why.starts_with("reads `w` after sgd (built at tests/tests/programs/rules.rs:"),
        "{why}"
    );
    assert!(why.ends_with("has updated it; build what reads it before"), "{why}");
}

#[test]
fn a_long_program_is_built_in_time_that_grows_with_its_length() {
    // If each operator checked all before it, this would take minutes.
    let program = Program::new();
    let mut x = program.create_parameter("w", [2], DType::Float64, Init::Constant(1.0)).unwrap();
    for _ in 0..40_000 {
        x = x.neg().unwrap();
    }
    Sgd::new(0.5).minimize(&x.sum().unwrap()).unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    executor.run(&program, &[], &[]).unwrap();
    let w: Vec<f64> = executor.parameter("w").unwrap().downcast::<f64>().unwrap().to_vec();
    assert_eq!(w, [0.5, 0.5]);
    assert_eq!(Tensor::from(w).sum().item(), 1.0);
}

#[test]
fn what_layers_cannot_take_is_reported_of_what_was_given() {
    let program = Program::new();
    let x = data(&program, "x", &[-1, 3]);
    let ids = program.data("ids", [-1], DType::Int64).unwrap();
    let column = program.data("column", [-1, 1], DType::Int64).unwrap();
    let before = state(&program);
    assert_eq!(refused(program.fc(&x, 0), "fc"), "`size` must be 1 or more, found 0");
    let why = refused(program.fc(&column, 2), "fc");
    assert_eq!(why, "`column` must be of a float type, it is int64 [-1, 1]");
    let why = refused(program.embedding(&x, 5, 2, DType::Float64), "embedding");
    assert_eq!(why, "`x` must be ids of type int64, it is float64 [-1, 3]");
    let why = refused(program.accuracy(&x, &column), "accuracy");
    let given = "given `x: float64 [-1, 3]`, `column: int64 [-1, 1]`";
    assert_eq!(why, format!("takes logits [n, classes] and n classes; {given}"));
    assert_eq!(state(&program), before);
    let accuracy = program.accuracy(&x, &ids).unwrap();
    assert!(append_backward(&accuracy).unwrap().is_empty());
    let why = refused(Sgd::new(0.1).minimize(&x.mean().unwrap()), "minimize");
    let expected = "depends on no parameter that wants a gradient, so nothing would be trained";
    assert!(why.contains(expected), "{why}");
}
