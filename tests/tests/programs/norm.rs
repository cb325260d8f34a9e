//! Batch normalization in programs: the eager layer's results, derivatives, running statistics.

use autograd_core::nn::{BatchNorm2d, Module};
use autograd_core::prelude::*;
use autograd_core::static_graph::{
    BatchNormOptions, Executor, Feed, Functions, Program, Sgd, Variable, gradients,
};
use autograd_core::{DType, Generator, GradOptions, grad_with};
use ndarray::{ArrayD, ArrayViewD};

const SHAPE: [usize; 4] = [3, 2, 2, 2];

fn pictures(seed: usize) -> Tensor<f64> {
    let n: usize = SHAPE.iter().product();
    let number = |i: usize| ((i + 1) as f64 * (0.7 + seed as f64)).sin() * 2.0 + 0.5;
    Tensor::from((0..n).map(number).collect::<Vec<_>>()).reshape(SHAPE)
}

fn numbers(run: &[AnyTensor]) -> Vec<Vec<f64>> {
    run.iter().map(|t| t.downcast_ref::<f64>().unwrap().to_vec()).collect()
}

#[track_caller]
fn assert_close(found: &[Vec<f64>], expected: &[Vec<f64>], by: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() <= by * b.abs().max(1.0), "{a} {b}");
        }
    }
}

/// `x` and its normalization, with parameters that differ from the initial ones.
fn program() -> (Program, Executor, Variable, Variable) {
    let program = Program::new();
    let x = program.data("x", [-1, 2, 2, 2], DType::Float64).unwrap();
    x.set_stop_gradient(false);
    let options = BatchNormOptions::new().name("bn").momentum(0.3);
    let y = program.batch_norm_with(&x, &options).unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    executor.set_parameter("bn.weight", &Tensor::from(vec![1.5, -0.5]));
    executor.set_parameter("bn.bias", &Tensor::from(vec![0.25, 2.0]));
    (program, executor, x, y)
}

#[test]
fn batch_norm_is_the_eager_layers() {
    let (program, executor, x, y) = program();
    let loss = y.tanh().unwrap().sum().unwrap();
    let test = program.clone_program(true).unwrap();
    let [weight, bias] = ["bn.weight", "bn.bias"].map(|name| program.var(name).unwrap());
    let grads = gradients(&[&loss], &[&x, &weight, &bias]).unwrap();
    let [dx, dw, db] = [0, 1, 2].map(|at| grads[at].as_ref().unwrap());

    let layer = BatchNorm2d::<f64>::new(2).momentum(0.3);
    {
        let _off = no_grad();
        layer.weight.copy_from(&Tensor::from(vec![1.5, -0.5])).unwrap();
        layer.bias.copy_from(&Tensor::from(vec![0.25, 2.0])).unwrap();
    }
    for seed in 0..3 {
        let pictures = pictures(seed);
        let feed: [(&str, &dyn Feed); 1] = [("x", &pictures)];
        let fetch = [&y, dx, dw, db];
        let fetch: Vec<_> =
            fetch.iter().map(|v| *v as &dyn autograd_core::static_graph::Fetch).collect();
        let found = numbers(&executor.run(&program, &feed, &fetch).unwrap());
        layer.train();
        let eager = pictures.detach();
        eager.set_stop_gradient(false);
        let output = layer.forward(&eager);
        let of = [&eager, &layer.weight, &layer.bias];
        let grads = grad_with(&[&output.tanh().sum()], &of, GradOptions::new()).unwrap();
        let mut expected = vec![output.to_vec()];
        expected.extend(grads.iter().map(|grad| grad.as_ref().unwrap().to_vec()));
        assert_close(&found, &expected, 1e-12);
        let kept =
            ["bn.running_mean", "bn.running_var"].map(|name| executor.parameter(name).unwrap());
        let running = [layer.running_mean.to_vec(), layer.running_var.to_vec()];
        assert_close(&numbers(&kept), &running, 1e-12);

        layer.eval();
        let name = y.name();
        let tested = executor.run(&test, &feed, &[&name]).unwrap();
        assert_close(&numbers(&tested), &[layer.forward(&pictures).to_vec()], 1e-12);
        let still =
            ["bn.running_mean", "bn.running_var"].map(|name| executor.parameter(name).unwrap());
        assert_eq!(numbers(&still), numbers(&kept));
    }
}

/// By the slope along a line, in both programs.
#[test]
fn its_derivatives_are_finite_differences_of_order_one_and_two() {
    for testing in [false, true] {
        let (program, executor, ..) = program();
        let program = match testing {
            true => program.clone_program(true).unwrap(),
            false => program,
        };
        // Running statistics that differ from the initial ones.
        executor.set_parameter("bn.running_mean", &Tensor::from(vec![0.5, -0.25]));
        executor.set_parameter("bn.running_var", &Tensor::from(vec![2.0, 0.5]));
        let inputs = ["x", "bn.weight", "bn.bias"].map(|name| program.var(name).unwrap());
        let y = program.var("bn.out").unwrap();
        let value = (y.tanh().unwrap() * &y).sum().unwrap();
        let all = |grads: Vec<Option<Variable>>| -> Vec<Variable> {
            grads.into_iter().map(|grad| grad.unwrap()).collect()
        };
        let inputs: Vec<&Variable> = inputs.iter().collect();
        let first = all(gradients(&[&value], &inputs).unwrap());
        let slopes = first.iter().map(|grad| grad.square().unwrap().sum().unwrap());
        let slope = slopes.reduce(|a, b| a + b).unwrap();
        let second = all(gradients(&[&slope], &inputs).unwrap());

        let start = [pictures(0), Tensor::from(vec![1.5, -0.5]), Tensor::from(vec![0.25, 2.0])];
        let direction =
            [pictures(5) * 0.3, Tensor::from(vec![0.4, -1.0]), Tensor::from(vec![0.7, 0.2])];
        let stats = ["bn.running_mean", "bn.running_var"].map(|n| executor.parameter(n).unwrap());
        let at = |step: f64, fetch: &[&Variable]| {
            let [x, weight, bias] = [0, 1, 2].map(|i| &start[i] + &direction[i] * step);
            let (kept, value) = (["bn.weight", "bn.bias"], [&weight, &bias]);
            kept.iter().zip(value).for_each(|(name, value)| executor.set_parameter(name, value));
            let fetch: Vec<_> =
                fetch.iter().map(|v| *v as &dyn autograd_core::static_graph::Fetch).collect();
            let run = numbers(&executor.run(&program, &[("x", &x)], &fetch).unwrap());
            let kept = ["bn.running_mean", "bn.running_var"].iter().zip(&stats);
            kept.for_each(|(name, value)| executor.set_parameter(name, value));
            run
        };
        for (of, grads) in [(&value, &first), (&slope, &second)] {
            let grads: Vec<&Variable> = grads.iter().collect();
            let slopes = at(0.0, &grads);
            let along = slopes.iter().zip(&direction).map(|(grad, direction)| {
                grad.iter().zip(direction.to_vec()).map(|(a, b)| a * b).sum::<f64>()
            });
            let along: f64 = along.sum();
            let h = 1e-5;
            let differences = (at(h, &[of])[0][0] - at(-h, &[of])[0][0]) / (2.0 * h);
            assert!(
                (along - differences).abs() < 1e-6 * along.abs().max(1.0),
                "{along} {differences}"
            );
            assert!(along.abs() > 1e-3, "the direction says something: {along}");
        }
    }
}

#[test]
fn a_run_that_fails_leaves_the_running_statistics() {
    let (program, executor, _, y) = program();
    let out = program.current_block().create_var("out", y.dtype(), y.shape()).unwrap();
    let fails = |_: ArrayViewD<f64>| Err::<ArrayD<f64>, _>("on purpose".to_owned());
    program.py_func(fails).x(&y).out(&out).name("fails").call().unwrap();
    let before = executor.parameter("bn.running_mean").unwrap();
    let error = executor.run(&program, &[("x", &pictures(1))], &[&y]).unwrap_err().to_string();
    assert!(
        error.starts_with("py_func `fails` (built at ") && error.ends_with("on purpose"),
        "{error}"
    );
    let after = executor.parameter("bn.running_mean").unwrap();
    assert_eq!(numbers(&[after]), numbers(&[before]));
    let one = Tensor::<f64>::ones([1, 2, 2, 2]).slice_axis(2, 0, 1, 1).slice_axis(3, 0, 1, 1);
    let flat = Program::new();
    let x = flat.data("x", [-1, 2, -1, -1], DType::Float64).unwrap();
    let y = flat.batch_norm_with(&x, &BatchNormOptions::new().name("bn")).unwrap();
    let error = executor.run(&flat, &[("x", &one)], &[&y]).unwrap_err().to_string();
    let why = "needs at least two values per channel for a variance, found 1 in shape [1, 2, 1, 1]";
    assert!(error.starts_with("batch_norm (built at ") && error.ends_with(why), "{error}");
}

#[test]
fn what_it_cannot_take_is_refused() {
    let program = Program::new();
    let refused = |shape: &[i64], dtype, options: &BatchNormOptions| {
        let name = format!("x{}", program.to_string().lines().count());
        let x = program.data(&name, shape, dtype).unwrap();
        let before = [program.to_string(), program.startup().to_string()];
        let error = program.batch_norm_with(&x, options).unwrap_err().to_string();
        assert_eq!([program.to_string(), program.startup().to_string()], before);
        assert!(error.starts_with("batch_norm (built at tests/tests/programs/norm.rs:"), "{error}");
        error.split_once("): ").unwrap().1.to_owned()
    };
    let plain = BatchNormOptions::new();
    let float = DType::Float64;
    assert_eq!(
        refused(&[-1, -1], float, &plain),
        "takes [n, channels, ..] with a known number of channels, found float64 [-1, -1]; given `x0`"
    );
    assert!(refused(&[3], float, &plain).starts_with("takes [n, channels, ..]"));
    assert!(refused(&[-1, 2], DType::Int64, &plain).starts_with("takes float32 or float64"));
    let momentum = plain.clone().momentum(1.5);
    assert_eq!(refused(&[-1, 2], float, &momentum), "`momentum` must be in [0, 1], found 1.5");
    let eps = plain.clone().eps(0.0);
    assert_eq!(refused(&[-1, 2], float, &eps), "`eps` must be above 0, and finite, found 0");
    // A forward operator reads the statistics from the start of the run.
    let x = program.data("x", [-1, 2], float).unwrap();
    program.batch_norm_with(&x, &plain.name("bn")).unwrap();
    let mean = program.var("bn.running_mean").unwrap();
    let error = mean.square().unwrap_err().to_string();
    assert!(error.contains("reads `bn.running_mean` after batch_norm (built at"), "{error}");
}

#[test]
fn it_trains_and_goes_to_a_file_and_back() {
    let program = Program::new();
    let x = program.data("x", [-1, 3], DType::Float32).unwrap();
    let label = program.data("label", [-1], DType::Int64).unwrap();
    let hidden = program.batch_norm(&program.fc(&x, 8).unwrap()).unwrap().relu().unwrap();
    let loss = program.fc(&hidden, 2).unwrap().cross_entropy(&label).unwrap();
    let test = program.clone_program(true).unwrap();
    Sgd::new(0.5).minimize(&loss).unwrap();
    let executor = Executor::new();
    Generator::new(1).run(|| executor.run(&program.startup(), &[], &[])).unwrap();
    let input = Tensor::<f32>::linspace(-1.0, 1.0, 24).reshape([8, 3]);
    let classes = Tensor::from((0..8).map(|i| i64::from(i > 3)).collect::<Vec<_>>());
    let feed: [(&str, &dyn Feed); 2] = [("x", &input), ("label", &classes)];
    let run = |executor: &Executor, program: &Program, name: &str| {
        let run = executor.run(program, &feed, &[&name]).unwrap();
        run[0].downcast_ref::<f32>().unwrap().item()
    };
    let losses: Vec<f32> = (0..60).map(|_| run(&executor, &program, &loss.name())).collect();
    assert!(losses[59] < 0.2 * losses[0], "{losses:?}");
    let tested = run(&executor, &test, &loss.name());
    assert!(tested < 0.5, "{tested}");

    let path = std::env::temp_dir().join(format!("static-norm-{}", std::process::id()));
    program.save(&path, &executor).unwrap();
    let again = Executor::new();
    let loaded = Program::load(&path, &Functions::new(), &again).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(loaded.to_string(), program.to_string());
    assert!(loaded.to_string().contains("-> batch_norm_0.running_mean, batch_norm_0.running_var"));
    for _ in 0..2 {
        let name = loss.name();
        assert_eq!(run(&again, &loaded, &name), run(&executor, &program, &name));
    }
    assert_eq!(
        run(&again, &loaded.clone_program(true).unwrap(), &loss.name()),
        run(&executor, &test, &loss.name())
    );
}
