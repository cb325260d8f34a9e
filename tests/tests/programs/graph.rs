//! Programs beyond py_func: higher derivatives, custom ops in programs, copies, threads, files.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use autograd_core::nn::parameter;
use autograd_core::optim::{Optimizer, Rule};
use autograd_core::prelude::*;
use autograd_core::safetensors::SafeTensors;
use autograd_core::static_graph::{
    Adam, AdamW, Executor, Feed, Fetch, Functions, Init, Program, RmsProp, Sgd, Variable,
    append_backward, gradients,
};
use autograd_core::{DType, Error, GradOptions, Result, grad_with};
use ndarray::{Array2, ArrayD, ArrayViewD, arr1};
use support::programs::{classifier, train};

#[py_layer]
impl Cube {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x * x * x
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor().square() * 3.0
    }
}

fn values(run: &[AnyTensor]) -> Vec<Vec<f64>> {
    run.iter().map(|t| t.downcast_ref::<f64>().unwrap().to_vec()).collect()
}

fn wanting(program: &Program, name: &str, shape: [i64; 2]) -> Variable {
    let x = program.data(name, shape, DType::Float64).unwrap();
    x.set_stop_gradient(false);
    x
}

/// The same function of a matrix, in a program and eagerly.
fn formula(x: &Variable, w: &Variable) -> Result<Variable> {
    let h = x.matmul(w)?.tanh()?;
    let y = (&h * 0.5 - 0.25).try_div(&(h.exp()? + 1.0))?;
    y.softmax(-1)?.square()?.sum()
}

fn eager_formula(x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
    let h = x.matmul(w).tanh();
    let y = (&h * 0.5 - 0.25) / (h.exp() + 1.0);
    y.softmax(-1).square().sum()
}

fn inputs() -> (Tensor<f64>, Tensor<f64>) {
    let number = |i: usize| (i as f64 * 0.7).sin();
    let x = Tensor::from((0..6).map(number).collect::<Vec<_>>()).reshape([2, 3]);
    let w = Tensor::from((0..12).map(number).collect::<Vec<_>>()).reshape([3, 4]);
    (x, w)
}

#[test]
fn derivatives_of_order_one_and_two_are_the_engines() {
    let program = Program::new();
    let (x, w) = (wanting(&program, "x", [-1, 3]), wanting(&program, "w", [3, 4]));
    let y = formula(&x, &w).unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    let slope = dx.square().unwrap().sum().unwrap();
    let second = gradients(&[&slope], &[&x, &w]).unwrap();
    let [ddx, ddw] = [second[0].as_ref().unwrap(), second[1].as_ref().unwrap()];

    let (ex, ew) = inputs();
    let feed: [(&str, &dyn Feed); 2] = [("x", &ex), ("w", &ew)];
    let run = Executor::new().run(&program, &feed, &[&y, &dx, ddx, ddw]).unwrap();
    ex.set_stop_gradient(false);
    ew.set_stop_gradient(false);
    let y = eager_formula(&ex, &ew);
    let create = || GradOptions::new().create_graph(true);
    let dx = grad_with(&[&y], &[&ex], create()).unwrap().remove(0).unwrap();
    let slope = dx.square().sum();
    let second = grad_with(&[&slope], &[&ex, &ew], create()).unwrap();
    let expected = [&y, &dx, second[0].as_ref().unwrap(), second[1].as_ref().unwrap()];
    for (found, expected) in values(&run).iter().zip(expected) {
        for (a, b) in found.iter().zip(expected.to_vec()) {
            assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a} {b}");
        }
    }
}

#[test]
fn layers_and_closures_run_as_they_do_eagerly() {
    let program = Program::new();
    let x = wanting(&program, "x", [-1, 2]);
    let y = program.py_layer(Cube::apply).x(&x).call().unwrap();
    let shift = Tensor::from(2.0);
    let z = program.eager(move |y: &Tensor<f64>| y.tanh() * &shift).x(&y).call().unwrap();
    assert_eq!(z.shape(), [None, Some(2)]);
    let dx = gradients(&[&z], &[&x]).unwrap().remove(0).unwrap();
    let d2x = gradients(&[&dx], &[&x]).unwrap().remove(0).unwrap();
    assert!(program.to_string().contains("= Cube(x)"), "{program}");

    let input = Tensor::from([[0.25, -0.5]]);
    let run = Executor::new().run(&program, &[("x", &input)], &[&z, &dx, &d2x]).unwrap();
    input.set_stop_gradient(false);
    let eager = Cube::apply(&input).tanh() * 2.0;
    let create = || GradOptions::new().create_graph(true).seeds(vec![None]);
    let eager_dx = grad_with(&[&eager.sum()], &[&input], create()).unwrap().remove(0).unwrap();
    let eager_d2x = grad_with(&[&eager_dx.sum()], &[&input], create()).unwrap().remove(0).unwrap();
    assert_eq!(values(&run), [eager.to_vec(), eager_dx.to_vec(), eager_d2x.to_vec()]);
}

#[test]
fn the_gradient_of_a_py_func_is_a_py_func() {
    let square = |x: ArrayViewD<f64>| &x * &x;
    let backward = |x: ArrayViewD<f64>, dy: ArrayViewD<f64>| 2.0 * &x * dy;
    let build = |second: bool| {
        let program = Program::new();
        let x = wanting(&program, "x", [1, 2]);
        let out = program.current_block().create_var("out", DType::Float64, [1, 2]).unwrap();
        let mut call = program.py_func(square).x(&x).out(&out).backward_func(backward);
        if second {
            // The arguments of backward, its result, and the gradient of that.
            call = call.second_backward_func(
                |x: ArrayViewD<f64>,
                 dy: ArrayViewD<f64>,
                 _: ArrayViewD<f64>,
                 d: ArrayViewD<f64>| { (2.0 * &dy * &d, 2.0 * &x * &d) },
            );
        }
        let y = call.skip_vars_in_backward_input([&out]).call().unwrap();
        let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
        (program, x, dx)
    };
    let (program, x, dx) = build(true);
    let d2x = gradients(&[&dx], &[&x]).unwrap().remove(0).unwrap();
    let input = Tensor::from([[3.0, 5.0]]);
    let run = Executor::new().run(&program, &[("x", &input)], &[&dx, &d2x]).unwrap();
    assert_eq!(values(&run), [[6.0, 10.0], [2.0, 2.0]]);
    let (_, x, dx) = build(false);
    let error = gradients(&[&dx], &[&x]).unwrap_err().to_string();
    assert!(error.contains("give it with `second_backward_func`"), "{error}");
}

#[test]
fn what_nobody_asks_for_is_not_run() {
    let program = Program::new();
    let x = program.data("x", [2], DType::Float64).unwrap();
    let never = program.data("never", [2], DType::Float64).unwrap();
    let dead = never.exp().unwrap();
    let y = x.square().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&count);
    let eager = move |x: &Tensor<f64>| {
        counting.fetch_add(1, Ordering::Relaxed);
        x.exp()
    };
    program.eager(eager).x(&dead).call().unwrap();
    let called = count.load(Ordering::Relaxed);
    let run = Executor::new().run(&program, &[("x", &arr1(&[2.0, 3.0]))], &[&y]).unwrap();
    assert_eq!(values(&run), [[4.0, 9.0]]);
    assert_eq!(count.load(Ordering::Relaxed), called);
}

#[test]
fn what_an_eager_closure_writes_no_other_operator_reads() {
    let program = Program::new();
    let x = wanting(&program, "x", [-1, 2]);
    let mask = program.data("mask", [-1, 2], DType::Float64).unwrap();
    let masked = |x: &Tensor<f64>, mask: &Tensor<f64>| -> Result<Tensor<f64>> {
        let y = x * mask.copy();
        mask.fill(9.0)?;
        Ok(y)
    };
    let y = program.eager(masked).x([&x, &mask]).call().unwrap();
    let after = &mask + 1.0;
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    let (input, ones) = (Tensor::from([[2.0, 3.0]]), Tensor::from([[1.0, 0.0]]));
    let feed: [(&str, &dyn Feed); 2] = [("x", &input), ("mask", &ones)];
    let run = Executor::new().run(&program, &feed, &[&y, &after, &dx, &mask]).unwrap();
    assert_eq!(values(&run), [[2.0, 0.0], [2.0, 1.0], [1.0, 0.0], [1.0, 0.0]]);
    assert_eq!(ones.to_vec(), [1.0, 0.0]);
}

#[test]
fn one_program_runs_many_times_at_once() {
    let program = Program::new();
    let x = program.data("x", [-1], DType::Float64).unwrap();
    let w = program.create_parameter("w", [1], DType::Float64, Init::Constant(0.0)).unwrap();
    let y = (&x * &w).sum().unwrap();
    let step = Program::new();
    let x = step.data("x", [-1], DType::Float64).unwrap();
    let w = step.create_parameter("w", [1], DType::Float64, Init::Constant(0.0)).unwrap();
    Sgd::new(1.0).minimize(&(&x * &w).sum().unwrap()).unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    executor.run(&step, &[("x", &arr1(&[-1.0]))], &[]).unwrap();
                    let run = executor.run(&program, &[("x", &arr1(&[1.0, 1.0]))], &[&y]).unwrap();
                    let sum = values(&run)[0][0];
                    assert!(sum % 2.0 == 0.0 && sum > 0.0, "{sum}");
                }
            });
        }
    });
    // No step was lost.
    let kept = executor.parameter("w").unwrap();
    assert_eq!(kept.downcast_ref::<f64>().unwrap().item(), 100.0);
}

#[test]
fn runs_at_once_have_buffers_of_their_own() {
    let program = Program::new();
    let x = program.data("x", [-1, 32], DType::Float32).unwrap();
    let first = program.fc(&x, 32).unwrap().tanh().unwrap();
    let middle = program.fc(&first, 32).unwrap().tanh().unwrap();
    let last = program.fc(&(middle * 0.5), 32).unwrap().tanh().unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    let run = |rows: usize| -> Vec<Vec<f32>> {
        let of = |(i, j)| ((i * 31 + j * 17) % 13) as f32 * 0.1 - 0.6;
        let x = Array2::from_shape_fn((rows, 32), of);
        let fetched = executor.run(&program, &[("x", &x)], &[&first, &last]).unwrap();
        fetched.iter().map(|t| t.downcast_ref::<f32>().unwrap().to_vec()).collect()
    };
    let sizes = [1, 8, 40, 64];
    let alone: Vec<_> = sizes.into_iter().map(run).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (alone, run) = (&alone, &run);
            scope.spawn(move || {
                for round in 0..40 {
                    let size = (thread + round) % sizes.len();
                    assert_eq!(run(sizes[size]), alone[size], "{} rows", sizes[size]);
                }
            });
        }
    });
    // Fetched values do not change while later runs write to the buffers.
    let x = Array2::<f32>::ones((40, 32));
    let kept = executor.run(&program, &[("x", &x)], &[&first, &last]).unwrap();
    let before: Vec<_> = kept.iter().map(|t| t.downcast_ref::<f32>().unwrap().to_vec()).collect();
    (0..3).for_each(|_| assert_eq!(run(40), alone[2]));
    let after: Vec<_> = kept.iter().map(|t| t.downcast_ref::<f32>().unwrap().to_vec()).collect();
    assert_eq!(before, after);
}

#[test]
fn a_trained_program_goes_on_from_its_file() {
    fn tanh(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.mapv(f32::tanh)
    }
    fn tanh_grad(y: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
        &dy * (1.0 - &y * &y)
    }
    let program = Program::new();
    let x = program.data("x", [-1, 64], DType::Float32).unwrap();
    let label = program.data("label", [-1], DType::Int64).unwrap();
    let hidden = program.fc(&x, 16).unwrap();
    let out = program.current_block().create_var("h", hidden.dtype(), hidden.shape()).unwrap();
    let call = program.py_func(tanh).x(&hidden).out(&out).backward_func(tanh_grad);
    let hidden = call.skip_vars_in_backward_input([&hidden]).call().unwrap();
    let loss = program.fc(&(hidden * 2.0), 10).unwrap().cross_entropy(&label).unwrap();
    Adam::new(1e-2).minimize(&loss).unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    train(&executor, &program, &loss);

    let path = std::env::temp_dir().join(format!("static-graph-{}", std::process::id()));
    program.save(&path, &executor).unwrap();
    let functions = Functions::new().with("tanh", tanh).with("tanh_grad", tanh_grad);
    let again = Executor::new();
    let loaded = Program::load(&path, &functions, &again).unwrap();
    let missing = Program::load(&path, &Functions::new(), &Executor::new()).unwrap_err();
    assert!(missing.to_string().ends_with("these functions were not given: tanh, tanh_grad"));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(loaded.to_string(), program.to_string());
    let on = train(&executor, &program, &loss);
    assert_eq!(train(&again, &loaded, &loaded.var(&loss.name()).unwrap()), on);
}

#[test]
fn what_is_no_program_to_save_or_to_load_is_said_with_its_line_or_its_file() {
    let program = Program::new();
    program.create_parameter("w", [2], DType::Float32, Init::Constant(1.0)).unwrap();
    let line = line!() - 1;
    let path = std::env::temp_dir().join(format!("no-program-{}", std::process::id()));
    let startup = program.startup().save(&path, &Executor::new()).unwrap_err().to_string();
    assert!(
        startup.starts_with(&format!("save (built at {}:{line}:", file!()))
            && startup.ends_with(
                "): it sets `w`: a startup program is not saved; save the program that it starts"
            ),
        "{startup}"
    );
    assert!(!path.exists());
    let mut file = SafeTensors::new();
    file.insert("w".to_owned(), Tensor::<f32>::ones([2]));
    file.save(&path).unwrap();
    let loaded = Program::load(&path, &Functions::new(), &Executor::new()).unwrap_err();
    assert_eq!(loaded.to_string(), format!("load: {}: it holds no program", path.display()));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_variable_of_another_program_is_not_taken_for_one_of_the_same_name() {
    let one = Program::new();
    let x = one.data("x", [2], DType::Float64).unwrap();
    let y = &x * 2.0;
    let other = Program::new();
    let theirs = other.data("x", [2], DType::Float64).unwrap();
    let sum = &theirs * 3.0;
    assert_eq!(sum.name(), y.name());
    let fed = Tensor::<f64>::ones([2]);
    let run = |program: &Program, fetch: &dyn Fetch| {
        let fetched = Executor::new().run(program, &[("x", &fed)], &[fetch])?;
        Ok::<_, Error>(fetched[0].downcast_ref::<f64>().unwrap().to_vec())
    };
    let wrong = run(&other, &y).unwrap_err().to_string();
    assert!(wrong.contains("is of another program (built at"), "{wrong}");
    // A copy's variables are fetched by those of the original, and all variables by name.
    assert_eq!(run(&one.clone_program(true).unwrap(), &y).unwrap(), [2.0, 2.0]);
    assert_eq!(run(&other, &y.name()).unwrap(), [3.0, 3.0]);
    let gone = one.data("z", [2], DType::Float64).unwrap();
    let missing = run(&other, &gone).unwrap_err().to_string();
    assert!(missing.contains("no variable of this name; it is of another program"), "{missing}");
}

#[test]
fn programs_are_drawn() {
    let (program, _) = classifier();
    let (dot, svg) = (program.to_dot(), program.to_svg());
    assert!(dot.contains("left.weight") && dot.contains("adam") && dot.contains("cross_entropy"));
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
}

#[test]
fn variables_of_another_program_and_shapes_that_do_not_fit() {
    let (one, other) = (Program::new(), Program::new());
    let a = one.data("a", [-1, 3], DType::Float32).unwrap();
    let b = other.data("b", [-1, 3], DType::Float32).unwrap();
    let error = a.try_add(&b).unwrap_err().to_string();
    assert!(error.starts_with("add (built at tests/tests/programs/graph.rs:"), "{error}");
    assert!(error.ends_with("`b` is a variable of another program"), "{error}");
    let c = one.data("c", [4, 5], DType::Float32).unwrap();
    let error = a.matmul(&c).unwrap_err().to_string();
    assert!(error.contains("the inner lengths differ: 3 and 4; given `a`: float32 [-1, 3]"));
    let d = one.data("d", [3], DType::Float64).unwrap();
    let error = a.try_mul(&d).unwrap_err().to_string();
    assert!(error.contains("its element types differ: float32 and float64"), "{error}");
    assert!(a.reshape([-1, -1]).is_err() && a.softmax(2).is_err() && a.permute(&[0, 0]).is_err());
}

/// Three steps of a rule on a layer's parameters, in a program and by the eager optimiser.
fn steps<R: Rule>(
    rule: R,
    minimize: impl Fn(&R, &Variable) -> Result<Vec<(Variable, Variable)>>,
) -> [Vec<f64>; 2] {
    let program = Program::new();
    let x = program.data("x", [-1, 3], DType::Float64).unwrap();
    let w = program.create_parameter("w", [3, 5], DType::Float64, Init::Constant(0.0)).unwrap();
    let b = program.create_parameter("b", [5], DType::Float64, Init::Constant(0.5)).unwrap();
    let loss = (x.matmul(&w).unwrap() + &b).tanh().unwrap().square().unwrap().mean().unwrap();
    minimize(&rule, &loss).unwrap();
    let (fed, _) = inputs();
    let start = Tensor::from((0..15).map(|i| (i as f64).cos()).collect::<Vec<_>>()).reshape([3, 5]);
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    executor.set_parameter("w", &start);

    let w = parameter(Tensor::from(start.to_vec()).reshape([3, 5]));
    let b = parameter(Tensor::full([5], 0.5));
    let mut eager = Optimizer::new(&vec![w.clone(), b.clone()], rule);
    for _ in 0..3 {
        executor.run(&program, &[("x", &fed)], &[]).unwrap();
        eager.clear_grad();
        (fed.matmul(&w) + &b).tanh().square().mean().backward().unwrap();
        eager.step().unwrap();
    }
    let kept = ["w", "b"].map(|name| executor.parameter(name).unwrap());
    [values(&kept).concat(), [w.to_vec(), b.to_vec()].concat()]
}

#[test]
fn optimizers_are_those_of_eager_mode() {
    let sgd = Sgd::new(0.1).weight_decay(0.01);
    for rule in [sgd, sgd.momentum(0.9).nesterov(true), sgd.momentum(0.5).dampening(0.25)] {
        let [found, expected] = steps(rule, |rule, loss| rule.minimize(loss));
        assert_eq!(found, expected, "{rule:?}");
    }
    let [found, expected] = steps(Adam::new(0.1).weight_decay(0.01), Adam::minimize);
    assert_eq!(found, expected);
    let [found, expected] = steps(AdamW::new(0.1), AdamW::minimize);
    assert_eq!(found, expected);
    let rms = RmsProp::new(0.1).weight_decay(0.01);
    for rule in [rms, rms.momentum(0.9), rms.centered(true), rms.momentum(0.5).centered(true)] {
        let [found, expected] = steps(rule, |rule, loss| rule.minimize(loss));
        assert_eq!(found, expected, "{rule:?}");
    }
}

#[test]
fn chains_of_functions_have_the_figures_of_one_after_the_other() {
    for shape in [[2_i64, 3], [37, 129]] {
        let program = Program::new();
        let x = program.data("x", [-1, shape[1]], DType::Float64).unwrap();
        x.set_stop_gradient(false);
        let h = x.sigmoid().unwrap() * 2.0 - 0.5;
        let y = 3.0 - h.tanh().unwrap().neg().unwrap().exp().unwrap() / 4.0;
        let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
        let n = (shape[0] * shape[1]) as usize;
        let fed = Tensor::from((0..n).map(|i| (i as f64).sin()).collect::<Vec<_>>());
        let fed = fed.reshape(shape.map(|n| n as usize));
        let run = Executor::new().run(&program, &[("x", &fed)], &[&y, &dx]).unwrap();
        fed.set_stop_gradient(false);
        let eager = 3.0 - (-(fed.sigmoid() * 2.0 - 0.5).tanh()).exp() / 4.0;
        eager.sum().backward().unwrap();
        assert_eq!(values(&run), [eager.to_vec(), fed.grad().unwrap().to_vec()]);
    }
}

#[py_layer(elementwise)]
impl Squash {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x / (x.abs() + 1.0)
    }
}

#[py_layer(elementwise)]
impl Gate {
    fn forward<L: Lane>(a: Real<L>, b: Real<L>) -> Real<L> {
        a * b.sigmoid()
    }
}

#[py_layer(elementwise)]
impl Scale {
    fn forward<L: Lane>(x: Real<L>, by: f64) -> Real<L> {
        x * by
    }
}

#[test]
fn elementwise_ops_in_chains_have_the_figures_of_eager_mode() {
    let program = Program::new();
    let x = program.data("x", [-1, 129], DType::Float64).unwrap();
    let b = program.data("b", [129], DType::Float64).unwrap();
    x.set_stop_gradient(false);
    let h = (&x * 1.5).try_add(&b).unwrap();
    let h = program.py_layer(Squash::apply::<f64>).x(&h).call().unwrap().exp().unwrap();
    let gate = program.py_layer(Gate::apply::<f64>).x([&h, &x]).call().unwrap();
    let gate2 = program.py_layer(Gate::apply::<f64>).x([&x, &gate]).call().unwrap();
    let of_row = program.py_layer(Gate::apply::<f64>).x([&gate2, &b]).call().unwrap();
    let scaled = |x: &Tensor<f64>| Scale::apply(x, 0.5);
    let y = program.py_layer(scaled).x(&of_row).call().unwrap().neg().unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    let d2x = gradients(&[&dx.square().unwrap()], &[&x]).unwrap().remove(0).unwrap();
    let text = program.to_string();
    assert!(text.contains("Squash_0: float64 [-1, 129] = Squash("), "{text}");
    let path = std::env::temp_dir().join(format!("static-formulas-{}", std::process::id()));
    program.save(&path, &Executor::new()).unwrap();
    let functions =
        Functions::new().with("Squash", Squash::apply::<f64>).with("Gate", Gate::apply::<f64>);
    let functions =
        functions.with("elementwise_ops_in_chains_have_the_figures_of_eager_mode", scaled);
    let loaded = Program::load(&path, &functions, &Executor::new()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(loaded.to_string(), text);
    for rows in [2, 37] {
        let fed = Tensor::from((0..rows * 129).map(|i| (i as f64).sin()).collect::<Vec<_>>());
        let (fed, row) = (fed.reshape([rows, 129]), Tensor::<f64>::linspace(-1.0, 1.0, 129));
        let feed: [(&str, &dyn Feed); 2] = [("x", &fed), ("b", &row)];
        let [y, dx, d2x] = [&y, &dx, &d2x].map(Variable::name);
        let run = Executor::new().run(&program, &feed, &[&y, &dx, &d2x]).unwrap();
        let again = Executor::new().run(&loaded, &feed, &[&y, &dx, &d2x]).unwrap();
        let alone = Executor::new().run(&program, &feed, &[&y]).unwrap();
        let fed = fed.detach();
        fed.set_stop_gradient(false);
        let h = Squash::apply(&(&fed * 1.5 + &row)).exp();
        let gate = Gate::apply(&Gate::apply(&fed, &Gate::apply(&h, &fed)), &row);
        let eager = -scaled(&gate);
        let create = || GradOptions::new().create_graph(true);
        let dx = grad_with(&[&eager.sum()], &[&fed], create()).unwrap().remove(0).unwrap();
        let d2x = grad_with(&[&dx.square().sum()], &[&fed], create()).unwrap().remove(0).unwrap();
        let [found, again] = [&run, &again].map(|run| values(run));
        assert_eq!(found[0], eager.to_vec());
        assert_eq!(values(&alone)[0], eager.to_vec());
        assert_eq!(found, again);
        for (found, expected) in found[1..].iter().zip([dx, d2x]) {
            for (a, b) in found.iter().zip(expected.to_vec()) {
                assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a} {b}");
            }
        }
    }
}

#[test]
fn a_learning_rate_follows_a_schedule() {
    let program = Program::new();
    let w = program.create_parameter("w", [2], DType::Float64, Init::Constant(1.0)).unwrap();
    let error = program.set_learning_rate(0.1).unwrap_err().to_string();
    assert!(
        error.starts_with("set_learning_rate (built at tests/tests/programs/graph.rs:"),
        "{error}"
    );
    assert!(error.ends_with("the program has no update; `minimize` a loss first"), "{error}");
    Sgd::new(1.0).minimize(&w.sum().unwrap()).unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    let step = || executor.run(&program, &[], &[&w]).unwrap();
    assert_eq!(values(&step()), [[0.0, 0.0]]);
    program.set_learning_rate(0.25).unwrap();
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        let error = program.set_learning_rate(wrong).unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("must be 0 or more, and finite, found {wrong}")),
            "{error}"
        );
    }
    assert_eq!(values(&step()), [[-0.25, -0.25]]);
    assert!(program.to_string().contains("{learning_rate=0.25}"), "{program}");
}

#[test]
fn a_schedule_has_the_figures_of_eager_mode() {
    let program = Program::new();
    let x = program.data("x", [-1, 3], DType::Float64).unwrap();
    let w = program.create_parameter("w", [3, 5], DType::Float64, Init::Constant(0.25)).unwrap();
    let loss = x.matmul(&w).unwrap().tanh().unwrap().square().unwrap().mean().unwrap();
    let adam = Adam::new(1.0);
    adam.minimize(&loss).unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    let (fed, _) = inputs();
    let w = parameter(Tensor::full([3, 5], 0.25));
    let mut eager = Optimizer::new(&w, adam);
    for step in 0..5 {
        let rate = 0.1 / f64::from(step + 1);
        program.set_learning_rate(rate).unwrap();
        executor.run(&program, &[("x", &fed)], &[]).unwrap();
        eager.set_learning_rate(rate);
        eager.clear_grad();
        fed.matmul(&w).tanh().square().mean().backward().unwrap();
        eager.step().unwrap();
        assert_eq!(values(&[executor.parameter("w").unwrap()]), [w.to_vec()]);
    }
}

#[test]
fn a_parameter_can_be_the_gradient_of_another_and_of_itself() {
    let program = Program::new();
    let parameter = |name, value| {
        program.create_parameter(name, [2], DType::Float64, Init::Constant(value)).unwrap()
    };
    let (v, w) = (parameter("v", 2.0), parameter("w", 5.0));
    Sgd::new(0.5).apply_gradients(&[(v.clone(), v.clone()), (w, v)]).unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    executor.run(&program, &[], &[]).unwrap();
    let value = |name| executor.parameter(name).unwrap().downcast::<f64>().unwrap().to_vec();
    assert_eq!((value("v"), value("w")), (vec![1.0; 2], vec![4.0; 2]));
}

#[test]
fn gradients_that_were_changed_move_parameters() {
    let program = Program::new();
    let w = program.create_parameter("w", [2], DType::Float64, Init::Constant(3.0)).unwrap();
    let x = program.data("x", [2], DType::Float64).unwrap();
    let pairs = append_backward(&w.square().unwrap().sum().unwrap()).unwrap();
    let before = [program.to_string(), program.startup().to_string()];
    let refused = |pairs: &[(Variable, Variable)]| {
        let error = Adam::new(0.1).apply_gradients(pairs).unwrap_err().to_string();
        assert_eq!([program.to_string(), program.startup().to_string()], before);
        let (start, why) = error.split_once("): ").unwrap();
        assert!(start.contains(" (built at tests/tests/programs/graph.rs:"), "{error}");
        why.to_owned()
    };
    assert_eq!(refused(&[]), "there is no parameter with a gradient");
    assert_eq!(refused(&[(x.clone(), pairs[0].1.clone())]), "`x` is no parameter");
    let sum = pairs[0].1.sum().unwrap();
    let before = [program.to_string(), program.startup().to_string()];
    let error = Sgd::new(0.1).apply_gradients(&[(w.clone(), sum)]).unwrap_err().to_string();
    assert!(error.contains("the gradient is float64 [], the parameter float64 [2]"), "{error}");
    let other = Program::new().data("x", [2], DType::Float64).unwrap();
    let error = Sgd::new(0.1).apply_gradients(&[(w.clone(), other)]).unwrap_err().to_string();
    assert!(error.ends_with("`x` is a variable of another program"), "{error}");
    assert_eq!([program.to_string(), program.startup().to_string()], before);

    let (w, grad) = &pairs[0];
    Sgd::new(0.5).apply_gradients(&[(w.clone(), grad.minimum(1.0).unwrap())]).unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    assert_eq!(values(&executor.run(&program, &[], &[w]).unwrap()), [[2.5, 2.5]]);
}

#[test]
fn an_update_reads_a_gradient_of_which_steps_read_the_shape_alone() {
    let program = Program::new();
    let w = program.create_parameter("w", [3], DType::Float64, Init::Constant(2.0)).unwrap();
    let pairs = append_backward(&w.square().unwrap().sum().unwrap()).unwrap();
    // The second gradient starts with ones, in the shape of the first.
    let second = gradients(&[&pairs[0].1], &[&w]).unwrap().remove(0).unwrap();
    Sgd::new(0.25).apply_gradients(&pairs).unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    let run = executor.run(&program, &[], &[&second]).unwrap();
    assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [2.0; 3]);
    let w = executor.parameter("w").unwrap();
    assert_eq!(w.downcast_ref::<f64>().unwrap().to_vec(), [1.0; 3]);
}
