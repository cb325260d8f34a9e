//! `py_func`, programs and the executor.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use autograd_core::static_graph::{
    Adam, Executor, FcOptions, Feed, Init, Program, Sgd, Variable, append_backward,
    default_main_program, gradients, program_guard,
};
use autograd_core::{AnyTensor, DType, Error, Generator, Tensor};
use ndarray::{Array1, Array2, ArrayD, ArrayView1, ArrayView2, ArrayViewD, arr1, arr2};

fn tanh(x: ArrayViewD<f32>) -> ArrayD<f32> {
    x.mapv(f32::tanh)
}

fn tanh_grad(y: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
    &dy * (1.0 - &y * &y)
}

fn numbers(tensor: &AnyTensor) -> Vec<f64> {
    match tensor {
        AnyTensor::Float32(t) => t.cast::<f64>().to_vec(),
        AnyTensor::Float64(t) => t.to_vec(),
        AnyTensor::Int32(t) => t.cast::<f64>().to_vec(),
        AnyTensor::Int64(t) => t.cast::<f64>().to_vec(),
        other => panic!("no numbers: {other:?}"),
    }
}

fn out_like(program: &Program, name: &str, like: &Variable) -> Variable {
    program.current_block().create_var(name, like.dtype(), like.shape()).unwrap()
}

/// `x`, a float64 vector of two elements that wants a gradient, and `y` with the same form.
fn two() -> (Program, Variable, Variable) {
    let program = Program::new();
    let x = program.data("x", [2], DType::Float64).unwrap();
    x.set_stop_gradient(false);
    let out = out_like(&program, "out", &x);
    (program, x, out)
}

fn double(x: ArrayViewD<f64>) -> ArrayD<f64> {
    2.0 * &x
}

fn run_x(program: &Program, fetch: &[&Variable]) -> autograd_core::Result<Vec<Vec<f64>>> {
    let x = arr1(&[1.0, 3.0]);
    let fetch: Vec<&dyn autograd_core::static_graph::Fetch> =
        fetch.iter().map(|&v| v as &dyn autograd_core::static_graph::Fetch).collect();
    let run = Executor::new().run(program, &[("x", &x)], &fetch)?;
    Ok(run.iter().map(numbers).collect())
}

fn why<T>(result: autograd_core::Result<T>) -> String {
    match result {
        Ok(_) => panic!("it should have failed"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn contract_program_builds_and_runs() {
    fn debug(_: ArrayViewD<f32>) {}
    let program = Program::new();
    let x = program.data("x", [None, Some(4)], DType::Float32).unwrap();
    let mut hidden = x.clone();
    for i in 0..4 {
        hidden = program.fc(&hidden, 200).unwrap();
        let out = program
            .current_block()
            .create_var(&format!("hidden_{i}"), hidden.dtype(), hidden.shape())
            .unwrap();
        hidden = program
            .py_func(tanh)
            .x([&hidden])
            .out([&out])
            .backward_func(tanh_grad)
            .skip_vars_in_backward_input([&hidden])
            .call()
            .unwrap();
        program.py_func(debug).x([&hidden]).call().unwrap();
    }
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    let run = executor.run(&program, &[("x", &Array2::<f32>::ones([3, 4]))], &[&hidden]).unwrap();
    assert_eq!(run[0].shape(), [3, 200]);
}

#[test]
fn the_documents_net() {
    let program = Program::new();
    let x = program.data("x", [None, Some(4)], DType::Float32).unwrap();
    let y = program.data("y", [10], DType::Int64).unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let mut hidden = x.clone();
    for i in 0..4 {
        hidden = program.fc(&hidden, 200).unwrap();
        let out = out_like(&program, &format!("hidden_{i}"), &hidden);
        hidden = program
            .py_func(tanh)
            .x(&hidden)
            .out(&out)
            .backward_func(tanh_grad)
            .skip_vars_in_backward_input([&hidden])
            .call()
            .unwrap();
        let seen = Arc::clone(&seen);
        let debug = move |x: ArrayViewD<f32>| {
            assert_eq!(x.shape(), [10, 200]);
            seen.fetch_add(1, Ordering::Relaxed);
        };
        program.py_func(debug).x(&hidden).call().unwrap();
    }
    let prediction = program.fc(&hidden, 10).unwrap().softmax(-1).unwrap();
    let loss = program.cross_entropy(&prediction, &y).unwrap();
    let executor = Executor::new();
    Generator::new(1).run(|| executor.run(&program.startup(), &[], &[])).unwrap();
    let input = Array2::from_shape_fn([10, 4], |(i, j)| (i * 4 + j) as f32 / 40.0);
    let classes = Array1::from_shape_fn([10], |i| (i % 9 + 1) as i64);
    let run = executor.run(&program, &[("x", &input), ("y", &classes)], &[&loss]).unwrap();
    assert!((numbers(&run[0])[0] - 10_f64.ln()).abs() < 0.05, "{run:?}");
    assert_eq!(seen.load(Ordering::Relaxed), 4);
}

fn element_wise_add(x: ArrayView2<i32>, y: ArrayView2<i32>) -> Result<Array2<i32>, String> {
    if x.shape() != y.shape() {
        return Err("the shape of inputs must be the same!".into());
    }
    Ok(&x + &y)
}

fn add_program(shape: [i64; 2]) -> (Program, Variable) {
    let program = Program::new();
    let x = program.data("x", [2, -1], DType::Int32).unwrap();
    let y = program.data("y", [2, -1], DType::Int32).unwrap();
    let out = program.current_block().create_var("output", DType::Int32, shape).unwrap();
    let sum = program.py_func(element_wise_add).x([&x, &y]).out([&out]).call().unwrap();
    (program, sum)
}

#[test]
fn int32_addition() {
    let (x, y) = (arr2(&[[6, 1, 4], [4, 8, 4]]), arr2(&[[6, 3, 5], [8, 7, 9]]));
    let feed: [(&str, &dyn Feed); 2] = [("x", &x), ("y", &y)];
    let (program, sum) = add_program([2, 3]);
    let run = Executor::new().run(&program, &feed, &[&sum]).unwrap();
    let sum = run[0].downcast_ref::<i32>().unwrap();
    assert_eq!(sum.to_vec(), [12, 4, 9, 12, 15, 13]);
    // The document declares another shape, which is enforced.
    let (program, sum) = add_program([3, 1]);
    let error = why(Executor::new().run(&program, &feed, &[&sum]));
    assert!(
        error.starts_with("py_func `element_wise_add` (built at tests/tests/programs/py_func.rs:"),
        "{error}"
    );
    assert!(error.ends_with("output 0 must have shape [3, 1], found [2, 3]"), "{error}");
}

#[test]
fn order_of_what_backward_gets() {
    let (program, x, out) = two();
    let backward = |x: ArrayView1<f64>, y: ArrayView1<f64>, dy: ArrayView1<f64>| {
        assert_eq!((x[1], y[1], dy[1]), (3.0, 6.0, 1.0));
        2.0 * &dy
    };
    let y = program.py_func(double).x(&x).out(&out).backward_func(backward).call().unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    assert_eq!(run_x(&program, &[&dx]).unwrap(), [[2.0, 2.0]]);
}

fn digits_like_net(custom: bool) -> (Program, Variable) {
    let program = Program::new();
    let x = program.data("x", [-1, 784], DType::Float32).unwrap();
    let label = program.data("label", [-1], DType::Int64).unwrap();
    let mut hidden = x;
    for i in 0..4 {
        let options = FcOptions::new().name(&format!("fc_{i}")).bias(Init::Constant(1.0));
        hidden = program.fc_with(&hidden, 200, &options).unwrap();
        hidden = if custom {
            let out = out_like(&program, &format!("hidden_{i}"), &hidden);
            program
                .py_func(tanh)
                .x(&hidden)
                .out(&out)
                .backward_func(tanh_grad)
                .skip_vars_in_backward_input([&hidden])
                .call()
                .unwrap()
        } else {
            hidden.tanh().unwrap()
        };
    }
    let options = FcOptions::new().name("last");
    let prediction = program.fc_with(&hidden, 10, &options).unwrap();
    let loss = program.cross_entropy(&prediction, &label).unwrap();
    Sgd::new(1e-3).minimize(&loss).unwrap();
    (program, loss)
}

#[test]
fn training_through_py_func_is_training() {
    let ((custom, loss), (built_in, _)) = (digits_like_net(true), digits_like_net(false));
    let executors = [Executor::new(), Executor::new()];
    Generator::new(1).run(|| executors[0].run(&custom.startup(), &[], &[])).unwrap();
    for parameter in custom.parameters() {
        let value = executors[0].parameter(&parameter.name()).unwrap();
        executors[1].set_parameter(&parameter.name(), &value);
    }
    let x = Array2::from_shape_fn([32, 784], |(i, j)| ((i * 31 + j * 7) % 17) as f32 / 17.0);
    let label = Array1::from_shape_fn([32], |i| (i % 10) as i64);
    let mut losses = [Vec::new(), Vec::new()];
    for _ in 0..5 {
        for (k, program) in [&custom, &built_in].into_iter().enumerate() {
            let feed: [(&str, &dyn Feed); 2] = [("x", &x), ("label", &label)];
            let run = executors[k].run(program, &feed, &[&loss.name()]);
            // The losses of the two nets have the same name.
            losses[k].push(numbers(&run.unwrap()[0])[0]);
        }
    }
    assert!(losses[0][4] < losses[0][0], "{losses:?}");
    let far = losses[0].iter().zip(&losses[1]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(far < 1e-3, "{losses:?}");
}

#[test]
fn neither_input_nor_output() {
    let error = why(Program::new().py_func(|| {}).call());
    assert!(error.ends_with("has neither an input nor an output"), "{error}");
}

#[test]
fn skip_the_input() {
    let (program, x, out) = two();
    let backward = |y: ArrayViewD<f64>, dy: ArrayViewD<f64>| {
        assert_eq!(y[[0]], 2.0);
        2.0 * &dy
    };
    let call = program.py_func(double).x(&x).out(&out).backward_func(backward);
    let y = call.skip_vars_in_backward_input([&x]).call().unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    assert_eq!(run_x(&program, &[&dx]).unwrap(), [[2.0, 2.0]]);
}

#[test]
fn skip_what_is_not_needed() {
    let only_dy = |dy: ArrayViewD<f64>| 2.0 * &dy;
    let (program, x, out) = two();
    let call = program.py_func(double).x(&x).out(&out).backward_func(only_dy);
    let y = call.skip_vars_in_backward_input([&x, &out, &x]).call().unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    assert_eq!(run_x(&program, &[&dx]).unwrap(), [[2.0, 2.0]]);
    // Nothing is skipped by an empty list, and one of two inputs may be skipped.
    let (program, x, out) = two();
    let w = program.data("w", [2], DType::Float64).unwrap();
    let product = |x: ArrayViewD<f64>, w: ArrayViewD<f64>| &x * &w;
    let backward = |w: ArrayViewD<f64>, _y: ArrayViewD<f64>, dy: ArrayViewD<f64>| {
        (&w * &dy, None::<ArrayD<f64>>)
    };
    let call = program.py_func(product).x([&x, &w]).out(&out).backward_func(backward);
    let y = call.skip_vars_in_backward_input([&x]).call().unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    let (one, two) = (arr1(&[1.0, 3.0]), arr1(&[5.0, 7.0]));
    let run = Executor::new().run(&program, &[("x", &one), ("w", &two)], &[&dx]).unwrap();
    assert_eq!(numbers(&run[0]), [5.0, 7.0]);
}

#[test]
fn skip_what_may_not_be_skipped() {
    let (program, x, out) = two();
    let z = program.data("z", [2], DType::Float64).unwrap();
    let backward = |_: ArrayViewD<f64>, _: ArrayViewD<f64>, dy: ArrayViewD<f64>| dy.to_owned();
    let call = program.py_func(double).x(&x).out(&out).backward_func(backward);
    let error = why(call.skip_vars_in_backward_input([&z]).call());
    assert!(error.contains("skips `z`, which is neither an input nor an output"), "{error}");
    // The gradient of the output is also a variable, but of another operator.
    let y = program.py_func(double).x(&x).out(&out).backward_func(backward).call().unwrap();
    gradients(&[&y], &[&x]).unwrap();
    let dy = program.var("out@GRAD").unwrap();
    let other = out_like(&program, "other", &x);
    let call = program.py_func(double).x(&x).out(&other).backward_func(backward);
    let error = why(call.skip_vars_in_backward_input([&dy]).call());
    assert!(error.contains("skips `out@GRAD`"), "{error}");
}

#[test]
fn no_backward() {
    let (program, x, out) = two();
    let y = program.py_func(double).x(&x).out(&out).call().unwrap();
    assert!(!y.stop_gradient());
    assert!(gradients(&[&y], &[&x]).unwrap()[0].is_none());
    let loss = program.mean(&y).unwrap();
    assert!(append_backward(&loss).unwrap().is_empty());
}

fn sum_and_difference(x: ArrayViewD<f64>, y: ArrayViewD<f64>) -> (ArrayD<f64>, ArrayD<f64>) {
    (&x + &y, &x - &y)
}

/// A function of two inputs and outputs, and its backward.
fn two_by_two(backward: bool) -> (Program, [Variable; 2], [Variable; 2]) {
    let program = Program::new();
    let x = program.data("x", [1], DType::Float64).unwrap();
    let y = program.data("y", [1], DType::Float64).unwrap();
    x.set_stop_gradient(false);
    y.set_stop_gradient(false);
    let (o1, o2) = (out_like(&program, "o1", &x), out_like(&program, "o2", &x));
    let call = program.py_func(sum_and_difference).x([&x, &y]).out([&o1, &o2]);
    let all = |x: ArrayViewD<f64>,
               y: ArrayViewD<f64>,
               o1: ArrayViewD<f64>,
               o2: ArrayViewD<f64>,
               d1: ArrayViewD<f64>,
               d2: ArrayViewD<f64>| {
        assert_eq!((x[[0]], y[[0]], o1[[0]], o2[[0]]), (1.0, 1.0, 2.0, 0.0));
        (&d1 + &d2, &d1 - &d2)
    };
    let partly = |d1: ArrayViewD<f64>, d2: Option<ArrayViewD<f64>>| {
        assert!(d2.is_none());
        (d1.to_owned(), d1.to_owned())
    };
    let outs = if backward {
        call.backward_func(all).call().unwrap()
    } else {
        let call = call.backward_func(partly);
        call.skip_vars_in_backward_input([&x, &y, &o1, &o2]).call().unwrap()
    };
    (program, [x, y], outs)
}

fn run_xy(program: &Program, fetch: &[&Variable]) -> Vec<f64> {
    let one = arr1(&[1.0]);
    let fetch: Vec<&dyn autograd_core::static_graph::Fetch> =
        fetch.iter().map(|&v| v as &dyn autograd_core::static_graph::Fetch).collect();
    let run = Executor::new().run(program, &[("x", &one), ("y", &one)], &fetch).unwrap();
    run.iter().map(|t| numbers(t)[0]).collect()
}

#[test]
fn several_inputs_and_outputs() {
    let (program, [x, y], [o1, o2]) = two_by_two(true);
    let loss = 2.0 * &o1 + 3.0 * &o2;
    let grads = gradients(&[&loss], &[&x, &y]).unwrap();
    let [dx, dy] = [grads[0].as_ref().unwrap(), grads[1].as_ref().unwrap()];
    assert_eq!(run_xy(&program, &[dx, dy]), [5.0, -1.0]);
}

#[test]
fn the_gradient_of_an_unused_output_is_none() {
    let (program, [x, _], [o1, _]) = two_by_two(false);
    let dx = gradients(&[&(2.0 * &o1)], &[&x]).unwrap().remove(0).unwrap();
    assert_eq!(run_xy(&program, &[&dx]), [2.0]);
    // Zeros if the parameter is not an `Option`.
    let (program, [x, _], [o1, _]) = two_by_two(true);
    let dx = gradients(&[&(2.0 * &o1)], &[&x]).unwrap().remove(0).unwrap();
    assert_eq!(run_xy(&program, &[&dx]), [2.0]);
}

#[test]
fn a_gradient_for_what_wants_none_is_dropped() {
    let (program, [x, y], [o1, o2]) = two_by_two(true);
    y.set_stop_gradient(true);
    let grads = gradients(&[&(&o1 + &o2)], &[&x, &y]).unwrap();
    assert!(grads[1].is_none());
    assert_eq!(run_xy(&program, &[grads[0].as_ref().unwrap()]), [2.0]);
}

fn error_of_backward(gradient: fn() -> Option<ArrayD<f64>>) -> String {
    let (program, x, out) = two();
    let backward = move |_: ArrayViewD<f64>, _: ArrayViewD<f64>, _: ArrayViewD<f64>| gradient();
    let y = program.py_func(double).x(&x).out(&out).backward_func(backward).call().unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    why(run_x(&program, &[&dx]))
}

#[test]
fn none_for_a_gradient_that_is_needed() {
    let error = error_of_backward(|| None);
    assert!(error.contains("returned no gradient for input 0, which needs one"), "{error}");
}

#[test]
fn another_count_of_values() {
    let (program, x, out) = two();
    let list = |given: &[Option<AnyTensor>]| Ok(vec![given[0].clone(), given[0].clone()]);
    program.py_func_list(list).x(&[&x]).out(&[&out]).name("twice").call().unwrap();
    let error = why(run_x(&program, &[]));
    assert!(error.contains("py_func `twice`"), "{error}");
    assert!(error.ends_with("returned 2 values, 1 is declared"), "{error}");
    let (program, x, out) = two();
    program.py_func_list(|_| Ok(vec![None])).x(&[&x]).out(&[&out]).call().unwrap();
    let error = why(run_x(&program, &[]));
    assert!(error.ends_with("returned nothing for output 0"), "{error}");
}

#[test]
fn and_h29_a_function_is_called_once_in_every_run() {
    let (program, x, out) = two();
    let count = Arc::new(AtomicUsize::new(0));
    let (looks, computes) = (Arc::clone(&count), Arc::clone(&count));
    program
        .py_func(move |_: ArrayViewD<f64>| {
            looks.fetch_add(1, Ordering::Relaxed);
        })
        .x(&x)
        .call()
        .unwrap();
    program
        .py_func(move |x: ArrayViewD<f64>| {
            computes.fetch_add(10, Ordering::Relaxed);
            x.to_owned()
        })
        .x(&x)
        .out(&out)
        .call()
        .unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 0);
    run_x(&program, &[]).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 11);
    run_x(&program, &[&out]).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 22);
}

#[test]
fn another_element_type() {
    // The function's results are known when the program is built.
    let (program, x, _) = two();
    let out = program.current_block().create_var("f32", DType::Float32, [2]).unwrap();
    let error = why(program.py_func(double).x(&x).out(&out).call());
    assert!(error.contains("result 0 is float64, but the variable is float32 (`f32`)"), "{error}");
    // Those of a function of lists are not.
    let list = |given: &[Option<AnyTensor>]| Ok(given.to_vec());
    program.py_func_list(list).x(&[&x]).out(&[&out]).call().unwrap();
    let error = why(run_x(&program, &[]));
    assert!(error.ends_with("must have element type float32, found float64"), "{error}");
}

#[test]
fn a_scalar_may_be_returned() {
    let program = Program::new();
    let x = program.data("x", [2], DType::Float64).unwrap();
    let out = program.current_block().create_var("out", DType::Float64, ()).unwrap();
    let sum = |x: ArrayView1<f64>| ndarray::arr0(x.sum());
    let y = program.py_func(sum).x(&x).out(&out).call().unwrap();
    assert_eq!(run_x(&program, &[&y]).unwrap(), [[4.0]]);
}

#[test]
fn an_output_is_computed_once() {
    let (program, x, out) = two();
    let same = |x: ArrayViewD<f64>| x.to_owned();
    let y = program.py_func(same).x(&x).out(&out).call().unwrap();
    assert_eq!(run_x(&program, &[&y]).unwrap(), [[1.0, 3.0]]);
    let error = why(program.py_func(same).x(&x).out(&out).call());
    assert!(error.contains("the output `out` is computed by py_func"), "{error}");
    let error = why(program.py_func(same).x(&y).out(&y).call());
    assert!(error.contains("`out` is both an input and an output"), "{error}");
    let z = y.sum().unwrap();
    let error = why(program.py_func(|_: ArrayViewD<f64>| arr1(&[0.0])).x(&z).out(&y).call());
    assert!(error.contains("which is a cycle"), "{error}");
    let error = why(program.py_func(same).x(&y).out(&x).call());
    assert!(error.contains("the output `x` is fed"), "{error}");
}

#[test]
fn an_error_or_a_panic_stops_the_run() {
    let (x, y) = (arr2(&[[6, 1, 4], [4, 8, 4]]), arr2(&[[6, 3], [8, 7]]));
    let (program, sum) = add_program([2, -1]);
    let error = Executor::new().run(&program, &[("x", &x), ("y", &y)], &[&sum]);
    assert!(matches!(error, Err(Error::Operator { .. })), "{error:?}");
    assert!(why(error).ends_with("the shape of inputs must be the same!"));

    let error = error_of_backward(|| panic!("no gradient today"));
    assert!(error.ends_with("panicked: no gradient today"), "{error}");
}

#[test]
fn nothing_is_half_written() {
    let program = Program::new();
    let fail = Arc::new(Mutex::new(false));
    let x = program.data("x", [2], DType::Float64).unwrap();
    let w = program.create_parameter("w", [2], DType::Float64, Init::Constant(1.0)).unwrap();
    let v = program.create_parameter("v", [2], DType::Float64, Init::Constant(1.0)).unwrap();
    let loss = (&(&x * &w) * &v).mean().unwrap();
    Adam::new(0.1).minimize(&loss).unwrap();
    let told = Arc::clone(&fail);
    program
        .py_func(move |_: ArrayViewD<f64>| {
            assert!(!*told.lock().unwrap_or_else(|e| e.into_inner()), "told to fail");
        })
        .x(&loss)
        .call()
        .unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    let feed: [(&str, &dyn Feed); 1] = [("x", &arr1(&[1.0, 2.0]))];
    executor.run(&program, &feed, &[]).unwrap();
    let kept = |name: &str| numbers(&executor.parameter(name).unwrap());
    let before = [kept("w"), kept("v"), kept("w@exp_avg"), kept("v@step")];
    *fail.lock().unwrap() = true;
    let error = why(executor.run(&program, &feed, &[]));
    assert!(error.contains("told to fail"), "{error}");
    assert_eq!([kept("w"), kept("v"), kept("w@exp_avg"), kept("v@step")], before);
    *fail.lock().unwrap_or_else(|e| e.into_inner()) = false;
    executor.run(&program, &feed, &[]).unwrap();
    assert_ne!(kept("w"), before[0]);
}

#[test]
fn a_name_stands_once() {
    let (program, _, out) = two();
    let block = program.current_block();
    assert_eq!(block.create_var("out", DType::Float64, [2]).unwrap().name(), out.name());
    let error = why(block.create_var("out", DType::Float64, [5]));
    assert!(
        error.starts_with("create_var (built at tests/tests/programs/py_func.rs:")
            && error.contains(
                "a variable `out` (float64 [2]) was created at tests/tests/programs/py_func.rs:"
            ),
        "{error}"
    );
    assert!(!out.persistable());
    let error = why(program.data("x", [2], DType::Float64));
    assert!(error.contains("a variable `x` (float64 [2]) was created"), "{error}");
}

#[test]
fn training_through_py_func() {
    let program = Program::new();
    let x = program.data("x", [2], DType::Float64).unwrap();
    let w = program.create_parameter("w", [2], DType::Float64, Init::Constant(1.0)).unwrap();
    let h = (&x * &w).sum().unwrap();
    let out = out_like(&program, "out", &h);
    let square = |h: ArrayViewD<f64>| &h * &h;
    let backward = |h: ArrayViewD<f64>, dy: ArrayViewD<f64>| 2.0 * &h * dy;
    let call = program.py_func(square).x(&h).out(&out).backward_func(backward);
    let loss = call.skip_vars_in_backward_input([&out]).call().unwrap();
    let pairs = Sgd::new(0.1).minimize(&loss).unwrap();
    assert_eq!((pairs[0].0.name(), pairs[0].1.name()), ("w".into(), "w@GRAD".into()));
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    let mut losses = Vec::new();
    for _ in 0..3 {
        let run = executor.run(&program, &[("x", &arr1(&[1.0, 2.0]))], &[&loss]).unwrap();
        losses.push(numbers(&run[0])[0]);
    }
    assert_eq!(losses[0], 9.0);
    assert!(losses[1] < 1e-13 && losses[2] < 1e-20, "{losses:?}");
    let w = numbers(&executor.parameter("w").unwrap());
    assert!((w[0] - 0.4).abs() < 1e-7 && (w[1] + 0.2).abs() < 1e-7, "{w:?}");
}

#[test]
fn no_input_wants_a_gradient() {
    let (program, x, out) = two();
    x.set_stop_gradient(true);
    let backward = |_: ArrayViewD<f64>, _: ArrayViewD<f64>, _: ArrayViewD<f64>| -> ArrayD<f64> {
        panic!("never called")
    };
    let y = program.py_func(double).x(&x).out(&out).backward_func(backward).call().unwrap();
    assert!(y.stop_gradient());
    let loss = program.mean(&y).unwrap();
    assert!(append_backward(&loss).unwrap().is_empty());
    assert!(gradients(&[&loss], &[&x]).unwrap()[0].is_none());
    run_x(&program, &[&loss]).unwrap();
}

#[test]
fn gradients_meet() {
    let (program, x, out) = two();
    let sum = |a: ArrayViewD<f64>, b: ArrayViewD<f64>| &a + &b;
    let backward = |dy: ArrayViewD<f64>| (2.0 * &dy, 3.0 * &dy);
    let call = program.py_func(sum).x([&x, &x]).out(&out).backward_func(backward);
    let y = call.skip_vars_in_backward_input([&x, &out]).call().unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    assert_eq!(run_x(&program, &[&dx]).unwrap(), [[5.0, 5.0]]);

    let (program, x, out) = two();
    let other = out_like(&program, "other", &x);
    let twice = |dy: ArrayViewD<f64>| 2.0 * &dy;
    let thrice = |dy: ArrayViewD<f64>| 3.0 * &dy;
    let call = program.py_func(double).x(&x).out(&out).backward_func(twice);
    let a = call.skip_vars_in_backward_input([&x, &out]).call().unwrap();
    let call = program.py_func(double).x(&x).out(&other).backward_func(thrice);
    let b = call.skip_vars_in_backward_input([&x, &other]).call().unwrap();
    let dx = gradients(&[&(&a + &b)], &[&x]).unwrap().remove(0).unwrap();
    assert_eq!(run_x(&program, &[&dx]).unwrap(), [[5.0, 5.0]]);
}

#[test]
fn element_types_of_feeds() {
    let (program, sum) = add_program([2, 3]);
    assert!(sum.stop_gradient());
    let (narrow, wide) = (arr2(&[[1, 2, 3], [4, 5, 6]]), arr2(&[[1_i64, 2, 3], [4, 5, 6]]));
    let error = why(Executor::new().run(&program, &[("x", &narrow), ("y", &wide)], &[&sum]));
    assert_eq!(error, "run: `y` must have element type int32, found int64");
    let error = why(gradients(&[&sum], &[&sum]));
    assert!(error.contains("`output` is int32, which has no gradient"), "{error}");
}

#[test]
fn default_programs() {
    let (main, startup) = (Program::new(), Program::new());
    let before = default_main_program();
    {
        let _guard = program_guard(&main, &startup);
        assert_eq!(default_main_program(), main);
        let x = default_main_program().data("x", [1, 2], DType::Float32).unwrap();
        default_main_program().fc(&x, 3).unwrap();
    }
    assert_eq!(default_main_program(), before);
    assert_eq!(main.parameters().len(), 2);
    assert_eq!(startup.current_block().op_count(), 2);
    assert_eq!(main.startup().current_block().op_count(), 0);
    let x = Tensor::<f32>::ones([1, 2]);
    let error = why(Executor::new().run(&main, &[("x", &x)], &[&"add_0"]));
    assert!(error.contains("has no value yet; run the startup program first"), "{error}");
}

#[test]
fn a_parameter_before_a_py_func_without_backward_is_not_left_untrained() {
    let program = Program::new();
    let x = program.data("x", [-1, 2], DType::Float32).unwrap();
    let w = program.create_parameter("w", [2, 2], DType::Float32, Init::Xavier).unwrap();
    let hidden = x.matmul(&w).unwrap();
    let out = out_like(&program, "out", &hidden);
    let out = program.py_func(tanh).x(&hidden).out(&out).call().unwrap();
    let last = program.create_parameter("last", [2, 1], DType::Float32, Init::Xavier).unwrap();
    let loss = out.matmul(&last).unwrap().mean().unwrap();
    let before = program.to_string();
    let error = why(Sgd::new(0.1).minimize(&loss));
    assert!(error.contains("`w` would not be trained"), "{error}");
    assert!(error.contains("depends on it through py_func `tanh` (built at tests/"), "{error}");
    assert_eq!(program.to_string(), before);
    w.set_stop_gradient(true);
    let trained = Sgd::new(0.1).minimize(&loss).unwrap();
    assert_eq!(trained.iter().map(|(p, _)| p.name()).collect::<Vec<_>>(), ["last"]);
}

/// A program that trains `u`, with a function that `inside` runs in.
fn trained(executor: &Executor, inside: impl Fn() -> String + Send + Sync + 'static) -> Program {
    let program = Program::new();
    let x = program.data("x", [1], DType::Float64).unwrap();
    let u = program.create_parameter("u", [1], DType::Float64, Init::Constant(1.0)).unwrap();
    let call = move |x: ArrayViewD<f64>| match inside() {
        why if why.is_empty() => Ok(x.to_owned()),
        why => Err(why),
    };
    program.py_func(call).x(&x).out(&out_like(&program, "out", &x)).call().unwrap();
    Sgd::new(0.25).minimize(&u.square().unwrap().sum().unwrap()).unwrap();
    executor.run(&program.startup(), &[], &[]).unwrap();
    program
}

#[test]
fn a_function_of_a_training_program_changes_no_parameter_of_its_executor() {
    let (executor, one) = (Executor::new(), arr1(&[1.0]));
    let other = trained(&executor, String::new);
    let inner = executor.clone();
    let training = trained(&executor, move || why(inner.run(&other, &[("x", &arr1(&[1.0]))], &[])));
    let error = why(executor.run(&training, &[("x", &one)], &[]));
    let words = "Executor::run: a program that changes parameters of this executor is running";
    assert!(error.contains(words), "{error}");

    let inner = executor.clone();
    let setting = trained(&executor, move || {
        inner.set_parameter("u", &Tensor::from([7.0]));
        String::new()
    });
    let error = why(executor.run(&setting, &[("x", &one)], &[]));
    assert!(error.contains("panicked: Executor::set_parameter: a program"), "{error}");
    assert_eq!(numbers(&executor.parameter("u").unwrap()), [1.0]);

    // Reads, and runs that change nothing, are welcome, and the executor goes on.
    let inner = executor.clone();
    let reading = trained(&executor, move || {
        let (program, x, out) = two();
        program.py_func(double).x(&x).out(&out).call().unwrap();
        inner.run(&program, &[("x", &arr1(&[1.0, 3.0]))], &[&out]).unwrap();
        if inner.parameter("u").is_some() { String::new() } else { "no parameter".into() }
    });
    executor.run(&reading, &[("x", &one)], &[]).unwrap();
    assert_eq!(numbers(&executor.parameter("u").unwrap()), [0.5]);
    executor.set_parameter("u", &Tensor::from([2.0]));
}

#[test]
fn functions_are_called_what_their_users_call_them() {
    use autograd_core::prelude::*;

    fn plain(x: &Tensor<f64>) -> Tensor<f64> {
        x.tanh()
    }

    fn generic<T: Float>(x: &Tensor<T>) -> Tensor<T> {
        x.tanh()
    }

    struct Op<T>(T);

    impl<T: Float> Op<T> {
        fn forward(x: &Tensor<T>) -> Tensor<T> {
            x.tanh()
        }
    }

    #[py_layer]
    impl Tanh {
        type Saved = Tensor<f64>;

        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            let y = x.tanh();
            ctx.save_for_backward(&y);
            y
        }

        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * (1.0 - ctx.saved_tensor().square())
        }
    }

    struct Of<T>(T);

    // As the macro does it, so that the path has `<impl ..>`.
    const _: () = {
        impl Of<Vec<f64>> {
            fn apply(x: &Tensor<f64>) -> Tensor<f64> {
                x.tanh()
            }
        }
    };

    #[py_layer(elementwise)]
    impl Squash {
        fn forward<L: Lane>(x: Real<L>) -> Real<L> {
            x * x.sigmoid()
        }
    }

    let program = Program::new();
    let x = program.data("x", [-1], DType::Float64).unwrap();
    program.eager(plain).x(&x).call().unwrap();
    program.eager(generic::<f64>).x(&x).call().unwrap();
    program.eager(Op::<f64>::forward).x(&x).call().unwrap();
    program.py_layer(Tanh::apply).x(&x).call().unwrap();
    program.eager(Of::<Vec<f64>>::apply).x(&x).call().unwrap();
    program.py_layer(Squash::apply::<f64>).x(&x).call().unwrap();
    program.eager(|x: &Tensor<f64>| x.tanh()).x(&x).call().unwrap();
    let text = program.to_string();
    let found: Vec<&str> = text.lines().filter_map(|line| line.split(" = ").nth(1)).collect();
    let here = "functions_are_called_what_their_users_call_them";
    let names = ["plain", "generic", "Op", "Tanh", "Of", "Squash", here];
    assert_eq!(found, names.map(|name| format!("{name}(x)")));
}

/// Each function of a block or a module has a name of its own, so the program can be saved and loaded.
#[test]
fn a_block_and_a_module_with_both_functions_go_to_a_file_and_back() {
    use autograd_core::static_graph::{Functions, py_func};

    #[py_func]
    impl Double {
        fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
            2.0 * &x
        }

        fn backward(dy: ArrayViewD<f64>) -> ArrayD<f64> {
            2.0 * &dy
        }
    }

    #[py_func]
    impl<T: autograd_core::Float> Squared<T> {
        fn forward(x: &Tensor<T>) -> Tensor<T> {
            x.square()
        }

        fn backward(x: &Tensor<T>, dy: &Tensor<T>) -> Tensor<T> {
            dy * x * 2.0
        }
    }

    mod triple {
        use ndarray::{ArrayD, ArrayViewD};

        pub(super) fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
            3.0 * &x
        }

        pub(super) fn backward(dy: ArrayViewD<f64>) -> ArrayD<f64> {
            3.0 * &dy
        }
    }

    let (program, x, out) = two();
    let y = Double::call(&x, &out).unwrap();
    let y = Squared::<f64>::call(&y, &out_like(&program, "squared", &x)).unwrap();
    let y = program
        .py_func(triple::forward)
        .x(&y)
        .out(&out_like(&program, "tripled", &x))
        .backward_func(triple::backward)
        .skip_vars_in_backward_input([&y, &out_like(&program, "tripled", &x)])
        .call()
        .unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    let text = program.to_string();
    for name in ["Double", "Squared<f64>", "triple"] {
        let function = format!("py_func `{name}`");
        let backward = format!("py_func `{name}::backward`");
        assert!(text.contains(&function) && text.contains(&backward), "{text}");
    }

    let path = std::env::temp_dir().join(format!("blocks-{}", std::process::id()));
    program.save(&path, &Executor::new()).unwrap();
    let functions = Functions::new()
        .with_block::<Double>()
        .with_block::<Squared<f64>>()
        .with("triple", triple::forward)
        .with("triple::backward", triple::backward);
    let loaded = Program::load(&path, &functions, &Executor::new()).unwrap();
    assert_eq!(loaded.to_string(), text);
    let [y, dx] = [y, dx].map(|variable| loaded.var(&variable.name()).unwrap());
    assert_eq!(run_x(&loaded, &[&y, &dx]).unwrap(), [vec![12.0, 108.0], vec![24.0, 72.0]]);
    let twice = functions.with_block::<Double>();
    let error = why(Program::load(&path, &twice, &Executor::new()).map(drop));
    std::fs::remove_file(&path).unwrap();
    assert!(error.contains("`Double`"), "{error}");
}

#[test]
fn a_generic_block_is_saved_at_each_element_type() {
    use autograd_core::Float;
    use autograd_core::static_graph::{Functions, py_func};

    #[py_func]
    impl<T: Float> Squared<T> {
        fn forward(x: &Tensor<T>) -> Tensor<T> {
            x.square()
        }

        fn backward(x: &Tensor<T>, dy: &Tensor<T>) -> Tensor<T> {
            dy * x * 2.0
        }
    }

    let program = Program::new();
    let mut all = Vec::new();
    let mut square = |dtype: DType, name: &str| {
        let x = program.data(name, [2], dtype).unwrap();
        x.set_stop_gradient(false);
        let out = out_like(&program, &format!("{name}_squared"), &x);
        let y = match dtype {
            DType::Float32 => Squared::<f32>::call(&x, &out).unwrap(),
            _ => Squared::<f64>::call(&x, &out).unwrap(),
        };
        all.extend([gradients(&[&y], &[&x]).unwrap().remove(0).unwrap(), y]);
    };
    square(DType::Float32, "a");
    square(DType::Float64, "b");

    let path = std::env::temp_dir().join(format!("generic-{}", std::process::id()));
    program.save(&path, &Executor::new()).unwrap();
    let functions = Functions::new().with_block::<Squared<f32>>().with_block::<Squared<f64>>();
    let loaded = Program::load(&path, &functions, &Executor::new()).unwrap();
    let missing = Functions::new().with_block::<Squared<f32>>();
    let error = why(Program::load(&path, &missing, &Executor::new()).map(drop));
    std::fs::remove_file(&path).unwrap();
    assert!(error.contains("Squared<f64>, Squared<f64>::backward"), "{error}");
    assert_eq!(loaded.to_string(), program.to_string());

    let found: Vec<_> = all.iter().map(|of| loaded.var(&of.name()).unwrap()).collect();
    let found: Vec<&dyn autograd_core::static_graph::Fetch> =
        found.iter().map(|of| of as _).collect();
    let feed: &[(&str, &dyn Feed)] = &[("a", &arr1(&[1.0_f32, 3.0])), ("b", &arr1(&[2.0, 4.0]))];
    let run = Executor::new().run(&loaded, feed, &found).unwrap();
    let run: Vec<_> = run.iter().map(numbers).collect();
    assert_eq!(run, [[2.0, 6.0], [1.0, 9.0], [4.0, 8.0], [4.0, 16.0]]);
}
