//! Closures of eager ops traced into programs, op by op, with the closure's results and gradients.

use std::sync::Arc;

use autograd_core::nn::{BatchNorm1d, Module, Sequential};
use autograd_core::prelude::*;
use autograd_core::safetensors::SafeTensors;
use autograd_core::static_graph::{Executor, Feed, Functions, Program, Variable, gradients};
use autograd_core::{
    Conv2dOptions, CrossEntropyOptions, DType, GradOptions, LossReduction, grad_with,
};

#[py_layer]
impl Cube {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, by: f64) -> Tensor<f64> {
        let square = x * x;
        let y = &square * x * by;
        ctx.save_for_backward((x, &y));
        y
    }

    // Not the derivative: a program must use this function, not the derivative of forward.
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (x, y) = ctx.saved_tensor();
        dy * y * 10.0 + x
    }
}

#[py_layer(elementwise)]
impl Bent {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x.sigmoid()
    }
}

fn data(program: &Program, name: &str, shape: &[i64]) -> Variable {
    let x = program.data(name, shape, DType::Float64).unwrap();
    x.set_stop_gradient(false);
    x
}

fn input(shape: [usize; 2]) -> Tensor<f64> {
    let n = shape[0] * shape[1];
    let x = Tensor::from((0..n).map(|i| (i as f64 * 0.7).sin()).collect::<Vec<_>>());
    x.reshape(shape)
}

fn values(run: &[AnyTensor]) -> Vec<Vec<f64>> {
    run.iter().map(|t| t.downcast_ref::<f64>().unwrap().to_vec()).collect()
}

/// Value, gradient and second derivative of the sum, in a program and eagerly.
fn both(
    closure: impl Fn(&Tensor<f64>) -> Tensor<f64> + Clone + Send + Sync + 'static,
    shape: [usize; 2],
) -> (Program, [Vec<Vec<f64>>; 2]) {
    let program = Program::new();
    let x = data(&program, "x", &[-1, shape[1] as i64]);
    let traced = closure.clone();
    let y = program.trace(move |x: &Tensor<f64>| traced(x)).x(&x).call().unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    let fed = input(shape);
    let mut fetch = vec![y.clone(), dx.clone()];
    fetch.extend(gradients(&[&dx], &[&x]).unwrap().remove(0));
    let fetch: Vec<_> =
        fetch.iter().map(|v| v as &dyn autograd_core::static_graph::Fetch).collect();
    let run = Executor::new().run(&program, &[("x", &fed)], &fetch).unwrap();
    fed.set_stop_gradient(false);
    let y = closure(&fed);
    let create = || GradOptions::new().create_graph(true);
    let dx = grad_with(&[&y.sum()], &[&fed], create()).unwrap().remove(0).unwrap();
    let mut eager = vec![y.to_vec(), dx.to_vec()];
    if fetch.len() > 2 {
        let d2x = grad_with(&[&dx.sum()], &[&fed], create()).unwrap().remove(0).unwrap();
        eager.push(d2x.to_vec());
    }
    (program, [values(&run), eager])
}

#[track_caller]
fn assert_close([found, expected]: &[Vec<Vec<f64>>; 2]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a} {b}");
        }
    }
}

#[test]
fn layers_are_traced_as_their_ops() {
    use autograd_core::nn::{AttentionMasks, GroupNorm, Linear, MultiheadAttention, RmsNorm};
    type Closure = Arc<dyn Fn(&Tensor<f64>) -> Tensor<f64> + Send + Sync>;
    let (rms, group) = (RmsNorm::new(4), GroupNorm::new(2, 4));
    let (attention, linear) = (MultiheadAttention::new(4, 2), Linear::new(4, 4));
    let layers: [(&str, Closure); 3] = [
        // Numbers beyond 1, which the layer scales, although the examples are within.
        ("RmsNorm", Arc::new(move |x| rms.forward(&(x * 5.0)).square())),
        ("GroupNorm", Arc::new(move |x| group.forward(x).square())),
        (
            "MultiheadAttention",
            Arc::new(move |x| {
                let x = linear.forward(x).unsqueeze(0);
                attention.forward(&x, &x, &x, AttentionMasks::new()).square()
            }),
        ),
    ];
    for (name, layer) in layers {
        let closure = move |x: &Tensor<f64>| layer(x);
        let (_, [run, eager]) = both(closure, [3, 4]);
        for (run, eager) in run.iter().flatten().zip(eager.iter().flatten()) {
            assert!((run - eager).abs() <= 1e-10 * eager.abs().max(1.0), "{name}: {run} {eager}");
        }
    }
}

/// Each op is one operator in a program, with the eager op's values and derivatives, and can be saved.
#[test]
fn an_op_of_the_table_is_an_operator_of_its_name() {
    type Closure = fn(&Tensor<f64>) -> Tensor<f64>;
    let ops: &[(&str, Closure)] = &[
        ("fill_like", |x| {
            (Tensor::<f64>::ones_like(x) + x - Tensor::<f64>::zeros_like(x)).square()
        }),
        ("index_put", |x| x.slice_assign((.., 1..), x.i((.., 0..2)).square())),
        ("index_put", |x| x.index_put(&Tensor::from([0, 0]), x.i((1..3, ..)).square(), false)),
        ("flip", |x| x.flip(0) * x.square()),
        ("tril", |x| x.tril(-1).square()),
        ("triu", |x| x.triu(1).square()),
        ("cumsum", |x| x.cumsum(0).square()),
        ("logsumexp", |x| x.logsumexp([0, 1]).square()),
        ("norm", |x| x.norm() * x.square()),
        ("norm_axes", |x| x.norm_axes_keep(0, 3.0) * x.square()),
        ("argsort", |x| x.sort(1, true).0.square()),
        ("argsort", |x| x.median_axes_keep(1) * x.topk(2, 0).0.sum_axes(..)),
        ("gather", |x| x.max_with_indices(0).0.square()),
        ("cumprod", |x| x.cumprod(1)),
        ("argmin", |x| x.square() * (x.argmin(1).cast::<f64>() + 1.0).unsqueeze(1)),
        ("index_add", |x| x.index_add(1, &Tensor::from([2, 0]), &x.narrow(1, 1, 2)).square()),
        ("scatter_add", |x| {
            let index = x.argmax(1).unsqueeze(1);
            x.scatter_add(1, &index, &x.narrow(1, 0, 1)).square()
        }),
        ("normalize", |x| x.normalize([1], 1e-3) * x),
        ("leaky_relu", |x| x.leaky_relu(0.1).square()),
        ("elu", |x| x.elu(0.5).square()),
        ("binary_cross_entropy", |x| x.sigmoid().binary_cross_entropy(&(x * 0.5).sigmoid())),
        ("binary_cross_entropy_each", |x| {
            x.sigmoid().binary_cross_entropy_with(&(x * 0.5).sigmoid(), LossReduction::Sum)
        }),
        ("maximum", |x| x.huber_loss(&x.square(), 0.4)),
        ("log_softmax", |x| {
            let (weight, ignored) = (Tensor::from([0.5, 1.0, 2.0]), Tensor::from([1, -1, 2, 0]));
            let options = CrossEntropyOptions::new().weight(&weight).label_smoothing(0.1);
            let options = options.ignore_index(-1).reduction(LossReduction::None);
            x.narrow(0, 0, 1).cross_entropy_with(&ignored.narrow(0, 0, 1), &options)
        }),
        ("matmul", |x| Tensor::einsum("ni,mi->nm", &[x, &x.square()]).sum_axes(1)),
        ("smooth_l1_loss", |x| x.smooth_l1_loss(&x.square())),
        ("binary_cross_entropy_with_logits", |x| x.binary_cross_entropy_with_logits(&x.sigmoid())),
        ("smooth_l1_loss_each", |x| x.smooth_l1_loss_with(&x.square(), LossReduction::None)),
        ("binary_cross_entropy_with_logits_each", |x| {
            x.binary_cross_entropy_with_logits_with(&x.sigmoid(), LossReduction::None)
        }),
        ("var", |x| x.var_axes([1], 1).square()),
        ("std", |x| x.std_axes([0], 0).square()),
        ("linear", |x| {
            let w = Tensor::from([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5]]);
            x.linear(&w, Some(&Tensor::from([0.1, 0.2]))).square()
        }),
        ("permute", |x| x.transpose().contiguous().square()),
        ("reshape", |x| x.reshape([-1, 1]).square()),
    ];
    for &(name, closure) in ops {
        let (program, figures) = both(closure, [4, 3]);
        assert_close(&figures);
        let text = program.to_string();
        assert!(text.contains(&format!("= {name}(")), "{name}: {text}");
        let path = std::env::temp_dir().join(format!("static-op-{name}-{}", std::process::id()));
        let executor = Executor::new();
        program.save(&path, &executor).unwrap();
        let loaded = Program::load(&path, &Functions::new(), &executor).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(loaded.to_string(), text);
    }
}

#[test]
fn order_norms_and_losses_are_methods_of_variables() {
    let program = Program::new();
    let x = data(&program, "x", &[-1, 3]);
    let sorted = x.gather(1, &x.argsort(-1, true).unwrap()).unwrap();
    let norms = x.norm_axes([0, 1], 3.0).unwrap();
    let share = x.sigmoid().unwrap();
    let loss = share.binary_cross_entropy(&x.square().unwrap()).unwrap();
    let sums = x.sum_axes(..).unwrap();
    let fed = input([4, 3]);
    let run = Executor::new().run(&program, &[("x", &fed)], &[&sorted, &norms, &loss, &sums]);
    let expected = [
        fed.sort(1, true).0.to_vec(),
        fed.norm_axes(.., 3.0).to_vec(),
        fed.sigmoid().binary_cross_entropy(&fed.square()).to_vec(),
        fed.sum().to_vec(),
    ];
    assert_eq!(values(&run.unwrap()), expected);
    let error = x.norm_axes(0, f64::NAN).unwrap_err().to_string();
    assert!(error.contains("`p` must be a number, found NaN"), "{error}");
}

#[test]
fn ops_are_operators_one_by_one() {
    let w = Tensor::from([[0.5, -1.0], [2.0, 0.25], [1.0, 1.0]]);
    let (program, figures) = both(
        move |x| {
            let h = (x.matmul(&w) * 0.5 - 1.0).tanh();
            let h = h.reshape([h.shape()[0] * 2]).reshape([h.shape()[0], 2]).transpose();
            let h = Tensor::concat(&[&h, &h.exp()], 0).slice_axis(0, 1, 4, 2);
            let off = h.gt_scalar(0.5).where_else(&h, &(&h * 0.1)).softmax(-1);
            (off.copy().square().sum_axes([0]) + h.max_axes([0])).sqrt()
        },
        [4, 3],
    );
    assert_close(&figures);
    assert_eq!(figures[0][0], figures[1][0], "the same kernels give the same figures");
    let text = program.to_string();
    for line in [
        "matmul_0: float64 [-1, 2] = matmul(x, constant_0)",
        "tanh_0: float64 [-1, 2] = tanh(sub_0)",
        "greater_0: bool [2, -1] = greater(",
        "= slice(concat_0) {axis=0, 1..4, step=2}",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let dot = program.to_dot();
    assert!(dot.contains("programs/trace.rs:") && dot.contains("where"), "{dot}");
}

#[test]
fn a_layer_is_one_operator_with_its_own_backward() {
    let (program, figures) = both(|x| Cube::apply(&(x * 2.0), 0.5).tanh(), [2, 3]);
    assert_close(&figures);
    let text = program.to_string();
    assert!(text.contains(" = Cube(mul_0)"), "{text}");
}

#[test]
fn an_elementwise_op_is_one_operator() {
    let (program, figures) = both(|x| Bent::apply(&(x + 1.0)) * 2.0, [3, 2]);
    assert_close(&figures);
    assert!(program.to_string().contains(" = Bent(add_0)"), "{program}");
}

#[test]
fn what_is_one_pass_elsewhere_is_made_of_operators_here() {
    let target = Tensor::from([[0.5, -1.0, 3.0]]);
    let (program, figures) = both(
        move |x| {
            let x = x.split(3, 1)[0].leaky_relu(0.1) * 3.0 + x.elu(0.5);
            let loss = x.narrow(0, 0, 1).smooth_l1_loss(&target);
            x.normalize([1], 1e-3) * loss
        },
        [4, 3],
    );
    assert_close(&figures);
    // Operators that a file can contain.
    let path = std::env::temp_dir().join(format!("passes-{}.safetensors", std::process::id()));
    program.save(&path, &Executor::new()).unwrap();
    let again = Program::load(&path, &Functions::new(), &Executor::new()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(again.to_string(), program.to_string());
}

#[test]
fn pictures_and_tables() {
    let kernel = Tensor::from((0..18).map(|i| i as f64 * 0.1 - 0.5).collect::<Vec<_>>());
    let kernel = kernel.reshape([2, 1, 3, 3]);
    let (_, figures) = both(
        move |x| {
            let pictures = x.reshape([x.shape()[0], 1, 6, 6]);
            let maps = pictures.conv2d(&kernel, None, Conv2dOptions::default().padding(1));
            let pooled = maps.max_pool2d(2) + maps.avg_pool2d(2);
            pooled.reshape([x.shape()[0], 18]).tanh()
        },
        [3, 36],
    );
    assert_close(&figures);

    let program = Program::new();
    let (x, words) =
        (data(&program, "x", &[5, 3]), program.data("words", [-1], DType::Int64).unwrap());
    let closure = |x: &Tensor<f64>, words: &Tensor<i64>| x.index_select(0, words).tanh();
    let y = program.trace(closure).x([&x, &words]).call().unwrap();
    assert_eq!(y.shape(), [None, Some(3)]);
    let (table, chosen) = (input([5, 3]), Tensor::from(vec![4_i64, 0]));
    let feed: [(&str, &dyn Feed); 2] = [("x", &table), ("words", &chosen)];
    let run = Executor::new().run(&program, &feed, &[&y]).unwrap();
    assert_eq!(values(&run)[0], closure(&table, &chosen).to_vec());
}

#[track_caller]
fn refused(
    closure: impl Fn(&Tensor<f64>) -> Tensor<f64> + Send + Sync + 'static,
    op: &str,
) -> String {
    let program = Program::new();
    let x = data(&program, "x", &[-1, 3]);
    x.tanh().unwrap();
    let before = program.to_string();
    let call = move |x: &Tensor<f64>| closure(x);
    let error = program.trace(call).x(&x).call().unwrap_err().to_string();
    assert_eq!(program.to_string(), before);
    let start = format!("{op} (built at tests/tests/programs/trace.rs:");
    assert!(error.starts_with(&start), "{error}");
    error
}

#[test]
fn what_a_trace_cannot_hold_is_refused_by_line() {
    // These closures run on examples only.
    let error = refused(|x| x * x.len() as f64, "mul");
    assert!(error.contains("follow the inputs' numbers or the lengths"), "{error}");
    let error = refused(|x| x + Tensor::<f64>::randn([3]), "add");
    assert!(error.contains("random"), "{error}");
    let error = refused(|x| (0..x.shape()[0]).fold(x.clone(), |y, _| y.sin()), "sin");
    assert!(error.contains("control flow"), "{error}");
    let error = refused(|_| panic!("no example is good enough"), "trace");
    assert!(error.contains("no example is good enough"), "{error}");
}

#[test]
fn a_traced_closure_reads_no_numbers_that_follow_its_inputs() {
    type Closure = fn(&Tensor<f64>) -> Tensor<f64>;
    let read: [(&str, Closure); 12] = [
        ("item", |x| if x.mean().item() > 0.0 { x * 2.0 } else { x * 3.0 }),
        ("item", |x| if x.detach().max().item() > 1.0 { x.tanh() } else { x.exp() }),
        ("item", |x| if (x * 9.0).cast::<i64>().max().item() > 9 { x.tanh() } else { x.exp() }),
        ("item", |x| no_grad().run(|| x.sum()).item() * x),
        ("at", |x| x * x.at(&[0])),
        ("to_vec", |x| x * x.to_vec().iter().filter(|&&x| x > 1.0).count() as f64),
        ("view", |x| if x.view().iter().any(|x| x.is_nan()) { x.tanh() } else { x.exp() }),
        ("any", |x| if x.lt_scalar(0.0).any() { x.tanh() } else { x.exp() }),
        ("all", |x| if x.gt_scalar(0.0).all() { x.ln() } else { x.exp() }),
        ("allclose", |x| if x.allclose(&x.exp(), 0.1, 0.1) { x.tanh() } else { x.exp() }),
        (
            "allclose",
            |x| if Tensor::ones_like(x).allclose(x, 0.1, 0.1) { x.tanh() } else { x.exp() },
        ),
        ("assert_close", |x| {
            autograd_core::assert_close!(x, x.exp().ln());
            x.tanh()
        }),
    ];
    for (name, closure) in read {
        let error = refused(closure, "trace");
        let start = format!("the closure, on an example: {name} (tests/tests/programs/trace.rs:");
        assert!(error.contains(&start) && error.contains("reads numbers that follow"), "{error}");
    }
    // Values that depend on no input may be read, and all values may be printed.
    let (program, scale) = (Program::new(), Tensor::from([2.0, 3.0]));
    let x = program.data("x", [2], DType::Float64).unwrap();
    let closure = move |x: &Tensor<f64>| {
        let _text = format!("{x}");
        let most = scale.max().item();
        x * most * Tensor::<f64>::ones([2]).to_vec()[0]
    };
    let y = program.trace(closure).x(&x).call().unwrap();
    let fed = Tensor::from([-1.0, 1.0]);
    let run = Executor::new().run(&program, &[("x", &fed)], &[&y]).unwrap();
    assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [-3.0, 3.0]);
}

#[test]
fn an_error_about_a_matrix_op_names_the_call() {
    use autograd_core::linalg;
    type Closure = fn(&Tensor<f64>) -> Tensor<f64>;
    let ops: [(&str, Closure); 11] = [
        ("solve", |x| linalg::solve(&x.matmul(&x.t()), x).unwrap()),
        ("inv", |x| linalg::inv(&x.t().matmul(x)).unwrap()),
        ("slogdet", |x| linalg::slogdet(&x.t().matmul(x)).unwrap().1),
        ("cholesky", |x| linalg::cholesky(&x.t().matmul(x)).unwrap()),
        ("solve_triangular", |x| linalg::solve_triangular(&x.matmul(&x.t()), x, true).unwrap()),
        ("cholesky_solve", |x| linalg::cholesky_solve(&x.matmul(&x.t()), x).unwrap()),
        ("eigh", |x| linalg::eigh(&x.t().matmul(x)).unwrap().0),
        ("qr", |x| linalg::qr(x).unwrap().1),
        ("svd", |x| linalg::svd(x).unwrap().1),
        ("lstsq", |x| linalg::lstsq(&x.matmul(&x.t()), x).unwrap()),
        ("pinv", |x| linalg::pinv(x, None).unwrap()),
    ];
    for (name, closure) in ops {
        let error = refused(closure, "trace");
        let start = format!("the closure, on an example: {name} (tests/tests/programs/trace.rs:");
        assert!(error.contains(&start) && error.contains("`eager`"), "{error}");
    }
}

#[test]
fn an_op_that_reads_numbers_is_refused_at_the_call() {
    type Closure = fn(&Tensor<f64>) -> Tensor<f64>;
    let ops: [(&str, Closure); 6] = [
        ("masked_select", |x| x.masked_select(&x.gt_scalar(0.5))),
        ("nonzero", |x| x.gt_scalar(0.5).nonzero().cast()),
        ("i", |x| x.i(&x.gt_scalar(0.5))),
        ("slice_assign", |x| x.slice_assign(&x.gt_scalar(0.5), Tensor::from([1.0, 2.0]))),
        ("multinomial", |x| x.multinomial(1, true).cast()),
        ("bernoulli", |x| x.clamp(0.0, 1.0).bernoulli()),
    ];
    for (name, closure) in ops {
        let error = refused(closure, "trace");
        let start = format!("the closure, on an example: {name} (tests/tests/programs/trace.rs:");
        assert!(error.contains(&start), "{error}");
    }
}

#[py_layer]
impl Clip {
    type Saved = Tensor<f64>;
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.clamp(-1.5, 1.5)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let x = ctx.saved_tensor();
        if x.abs().max().item() <= 1.5 {
            return dy.clone();
        }
        dy * x.abs().le_scalar(1.5).cast::<f64>()
    }
}

#[test]
fn a_traced_backward_reads_no_numbers_that_follow_its_inputs() {
    let error = refused(|x| Clip::apply(x), "Clip");
    assert!(error.contains("its backward, on an example: item (tests/tests/"), "{error}");
}

#[test]
fn a_traced_program_goes_to_a_file_and_back() {
    let program = Program::new();
    let x = data(&program, "x", &[-1, 3]);
    let w = input([3, 2]);
    let closure = move |x: &Tensor<f64>| Bent::apply(&Cube::apply(x, 2.0).matmul(&w));
    let y = program.trace(closure).x(&x).call().unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    let path = std::env::temp_dir().join(format!("static-trace-{}", std::process::id()));
    let executor = Executor::new();
    program.save(&path, &executor).unwrap();
    // The layer's ops are in the file; the formula is bound by its name.
    let functions = Functions::new().with("Bent", |x: &Tensor<f64>| Bent::apply(x));
    let loaded = Program::load(&path, &functions, &executor).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(loaded.to_string(), program.to_string());
    let fed = input([4, 3]);
    let before = executor.run(&program, &[("x", &fed)], &[&y, &dx]).unwrap();
    let after = executor.run(&loaded, &[("x", &fed)], &[&y.name(), &dx.name()]).unwrap();
    assert_eq!(values(&before), values(&after));
}

/// Only a program updates parameters, no layer in it, whatever a file says.
#[test]
fn a_layer_of_a_file_updates_nothing() {
    let program = Program::new();
    let x = data(&program, "x", &[-1, 3]);
    program.trace(|x: &Tensor<f64>| Cube::apply(x, 2.0)).x(&x).call().unwrap();
    let path = std::env::temp_dir().join(format!("static-update-{}", std::process::id()));
    program.save(&path, &Executor::new()).unwrap();
    let mut file = SafeTensors::load(&path).unwrap();
    let (name, text) = file.metadata.pop_first().unwrap();
    let (forward, backward) = text.split_once(r"\n;autograd-core").unwrap();
    let update = [
        r"\nvar\tw\tfloat64\t3\tparameter\tflow\there:1:1",
        r"\nop\tsgd\s0.5\s0.0\s0.0\s0.0\s0.0\t4,4\t\t4\tupdate\there:1:1",
    ];
    let text = format!(r"{forward}{}\n;autograd-core{backward}", update.concat());
    file.metadata.insert(name, text);
    file.save(&path).unwrap();
    let error = Program::load(&path, &Functions::new(), &Executor::new()).unwrap_err().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(error.contains("the parts of the op `Cube` do not fit"), "{error}");
}

#[py_layer]
impl Refusing {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Result<Tensor<f64>, String> {
        Err(format!("nothing for {}", x.exp().sum()))
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.clone()
    }
}

/// The ops of a forward before it failed are not in the trace; later ops are.
#[test]
fn a_layer_that_fails_leaves_nothing_in_the_trace() {
    let (program, figures) = both(
        |x| match Refusing::apply(&(x * 2.0)) {
            Ok(y) => y,
            Err(_) => x.square() * 3.0,
        },
        [2, 3],
    );
    assert_close(&figures);
    let text = program.to_string();
    assert!(!text.contains("exp"), "{text}");
    assert!(text.contains("square"), "{text}");
}

#[py_layer]
impl Gate {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((a, b));
        a * b
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (a, b) = ctx.saved_tensor();
        Grads { a: dy * b, b: dy * a }
    }
}

#[test]
fn the_gradient_of_a_layer_is_its_own_where_one_input_comes_from_another() {
    let closures: [fn(&Tensor<f64>) -> Tensor<f64>; 8] = [
        |x| Gate::apply(&x.relu(), x),
        |x| Gate::apply(&(x + 1.0), x),
        |x| Gate::apply(x, &-x),
        |x| Gate::apply(x, x),
        |x| Gate::apply(x, &x.exp()),
        |x| Gate::apply(&Gate::apply(x, &Tensor::ones_like(x)), x),
        |x| Gate::apply(&x.reshape([-1]), &x.reshape([-1])),
        |x| Gate::apply(&Gate::apply(x, x), &Gate::apply(x, &x.sin())),
    ];
    for closure in closures {
        let (_, pair) = both(closure, [2, 3]);
        assert_close(&pair);
    }
}

#[py_layer]
impl Shifted {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let e = x.exp();
        ctx.save_for_backward(&e);
        (e + 1.0).ln()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let e = ctx.saved_tensor();
        dy * e / (e + 1.0)
    }
}

#[py_layer(once_differentiable)]
impl Once {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.square()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor() * 2.0
    }
}

/// Ops of two inputs whose gradients, or saved tensors, have the same numbers on some inputs.
#[py_layer]
impl Times {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, k: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, k));
        x * k
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, k) = ctx.saved_tensor();
        let dx = dy * k;
        Grads { k: dy * x, x: dx }
    }
}

#[py_layer]
impl Limited {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, k: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x + k
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let x = ctx.saved_tensor();
        Grads { x: dy * x.clamp(-2.0, 2.0), k: dy * x.relu() }
    }
}

#[py_layer]
impl Signs {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        k: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>) {
        let (positive, absolute, limited) = (x.relu(), x.abs(), k.clamp(-2.0, 2.0));
        ctx.save_for_backward((&absolute, &absolute, &limited));
        (positive + &limited, absolute)
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dpositive: &Tensor<f64>,
        dabsolute: &Tensor<f64>,
    ) -> Grads {
        let (absolute, again, limited) = ctx.saved_tensor();
        Grads { x: dpositive * absolute + again, k: dabsolute * limited }
    }
}

#[py_layer]
impl Passed {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, k: &Tensor<f64>) -> Tensor<f64> {
        x + k
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy.clone(), dy.clone())
    }
}

#[test]
fn gradients_with_equal_numbers_on_an_example_stay_apart() {
    type Of = fn(&Tensor<f64>, &Tensor<f64>) -> Tensor<f64>;
    let closures: [(&str, Of); 6] = [
        ("Times", |x, k| Times::apply(x, k)),
        ("Times of Times", |x, k| Times::apply(&Times::apply(x, k), k)),
        ("Times of one", |x, _| Times::apply(x, x)),
        ("Limited", |x, k| Limited::apply(x, k)),
        ("Signs", |x, k| {
            let (a, b) = Signs::apply(x, k);
            a.square() + b
        }),
        ("Passed", |x, k| Passed::apply(x, k) * x),
    ];
    let (x, k) = (Tensor::from([-3.0, 0.5, 4.0]), Tensor::from([5.0, -7.0, 1.5]));
    for t in [&x, &k] {
        t.set_stop_gradient(false);
    }
    for (name, closure) in closures {
        let program = Program::new();
        let inputs = [data(&program, "x", &[3]), data(&program, "k", &[3])];
        let y = program.trace(closure).x([&inputs[0], &inputs[1]]).call().unwrap();
        let found = gradients(&[&y], &[&inputs[0], &inputs[1]]).unwrap();
        let fetch: Vec<_> = found.iter().flatten().map(|v| v as _).collect();
        let run = Executor::new().run(&program, &[("x", &x), ("k", &k)], &fetch).unwrap();
        let expected =
            grad_with(&[&closure(&x, &k).sum()], &[&x, &k], GradOptions::new().allow_unused(true));
        let expected: Vec<_> = expected.unwrap().iter().flatten().map(Tensor::to_vec).collect();
        assert_eq!(values(&run), expected, "{name}");
    }
}

#[py_layer(shapes(x: [n], k: [n] -> [n]))]
impl Sum {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, k: &Tensor<f64>) -> Tensor<f64> {
        x + k
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy.clone(), dy.clone())
    }
}

#[test]
fn lengths_that_a_trace_took_for_equal_are_equal_in_a_run() {
    type Of = fn(&Tensor<f64>, &Tensor<f64>) -> Tensor<f64>;
    let closures: [(&str, Of); 8] = [
        ("x * k", |x, k| x * k),
        ("sum_to", |x, k| (x * k).sum_to(x.shape())),
        ("broadcast_to", |x, k| x.broadcast_to(k.shape())),
        ("reshape", |x, k| k.reshape([x.dim(0) as isize])),
        ("mse_loss", |x, k| x.mse_loss(k)),
        ("a line", |x, k| Sum::apply(x, k)),
        ("no broadcasting", |x, k| Times::apply(x, k)),
        ("each its own", |x, k| x.sum() * k),
    ];
    for (name, closure) in closures {
        let program = Program::new();
        let inputs = [data(&program, "x", &[-1]), data(&program, "k", &[-1])];
        let y = program.trace(closure).x([&inputs[0], &inputs[1]]).call().unwrap();
        let mut fetch = vec![y.clone()];
        fetch.extend(gradients(&[&y], &[&inputs[0], &inputs[1]]).unwrap().into_iter().flatten());
        let fetch: Vec<_> = fetch.iter().map(|v| v as _).collect();
        for (m, n) in [(1, 1), (5, 5), (1, 5), (5, 1), (2, 5)] {
            let (x, k) = (Tensor::<f64>::arange(m) + 1.0, Tensor::<f64>::arange(n) + 2.0);
            let run = Executor::new().run(&program, &[("x", &x), ("k", &k)], &fetch);
            let run = run.map(|run| values(&run)).map_err(|error| error.to_string());
            if m != n && name != "each its own" {
                let error = run.unwrap_err();
                assert!(error.contains("same_lengths") && error.contains("axis 0"), "{error}");
                continue;
            }
            for t in [&x, &k] {
                t.set_stop_gradient(false);
            }
            let y = closure(&x, &k);
            let mut eager = vec![y.to_vec()];
            let options = GradOptions::new().allow_unused(true);
            let grads = grad_with(&[&y.sum()], &[&x, &k], options).unwrap();
            eager.extend(grads.iter().flatten().map(Tensor::to_vec));
            assert_eq!(run.unwrap(), eager, "{name}");
        }
    }
}

#[test]
fn equal_lengths_of_one_input_are_compared_and_go_to_a_file() {
    let program = Program::new();
    let [x, t] = [data(&program, "x", &[-1, -1]), data(&program, "t", &[-1])];
    let closure = |x: &Tensor<f64>, t: &Tensor<f64>| x.try_matmul(x).map(|x| x.sum_axes(0) + t);
    let y = program.trace(closure).x([&x, &t]).call().unwrap();
    let text = program.to_string();
    assert!(text.contains("same_lengths(x, x, t) {axes=[0, 1, 0, 0]}"), "{text}");
    let path = std::env::temp_dir().join(format!("same-lengths-{}", std::process::id()));
    program.save(&path, &Executor::new()).unwrap();
    let loaded = Program::load(&path, &Functions::new(), &Executor::new()).unwrap();
    std::fs::remove_file(path).unwrap();
    let name = y.name();
    for program in [program, loaded] {
        let run = |x: [usize; 2], t: usize| {
            let (x, t) = (Tensor::<f64>::ones(x), Tensor::<f64>::ones([t]));
            Executor::new().run(&program, &[("x", &x), ("t", &t)], &[&name.as_str()])
        };
        assert_eq!(values(&run([3, 3], 3).unwrap()), [[10.0; 3]]);
        assert!(run([3, 2], 3).is_err() && run([3, 3], 1).is_err() && run([1, 1], 3).is_err());
    }
}

#[test]
fn a_second_derivative_that_eager_mode_refuses_is_refused_in_a_program() {
    let closures: [(fn(&Tensor<f64>) -> Tensor<f64>, &str); 2] = [
        (|x| Shifted::apply(x), "saves a tensor that is neither an input nor an output"),
        (|x| Once::apply(x), "`once_differentiable`"),
    ];
    for (closure, why) in closures {
        let program = Program::new();
        let x = data(&program, "x", &[-1, 2]);
        let y = program.trace(move |x: &Tensor<f64>| closure(x)).x(&x).call().unwrap();
        let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
        let fed = input([3, 2]);
        let run = Executor::new().run(&program, &[("x", &fed)], &[&dx]).unwrap();
        fed.set_stop_gradient(false);
        let y = closure(&fed).sum();
        let eager = grad_with(&[&y], &[&fed], GradOptions::new()).unwrap().remove(0).unwrap();
        assert_close(&[values(&run), vec![eager.to_vec()]]);
        let error = gradients(&[&dx], &[&x]).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        // A file keeps this property.
        let path = std::env::temp_dir().join(format!("static-once-{}", std::process::id()));
        program.save(&path, &Executor::new()).unwrap();
        let loaded = Program::load(&path, &Functions::new(), &Executor::new()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (dx, x) = (loaded.var(&dx.name()).unwrap(), loaded.var("x").unwrap());
        let error = gradients(&[&dx], &[&x]).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_closure_that_stops_or_changes_gradients_is_refused() {
    let stopped = |x: &Tensor<f64>| {
        let s = no_grad().run(|| x.square());
        x * s
    };
    let cut = |x: &Tensor<f64>| {
        let s = x.square();
        s.set_stop_gradient(true);
        x * s
    };
    let hooked = |x: &Tensor<f64>| {
        let s = x.square();
        let _ = s.register_hook(|grad| Ok(Some(grad * 2.0))).unwrap();
        x * s
    };
    for error in [refused(stopped, "trace"), refused(cut, "trace"), refused(hooked, "trace")] {
        assert!(error.contains("gradients are not the closure's"), "{error}");
    }
}

#[test]
fn a_traced_closure_changes_nothing_in_place() {
    let state = Tensor::from([1.0, 2.0, 3.0]);
    let own = || state.clone();
    let (copied, filled, added) = (own(), own(), own());
    let writes: [(&str, Box<dyn Fn(&Tensor<f64>) -> Tensor<f64> + Send + Sync>); 4] = [
        (
            "copy_from",
            Box::new(move |x| copied.copy_from(&x.sum_axes(0)).map(|()| x.exp()).unwrap()),
        ),
        ("fill", Box::new(move |x| filled.fill(0.0).map(|()| x.exp()).unwrap())),
        (
            "add_assign",
            Box::new(move |x| {
                let mut count = added.clone();
                count += 1.0;
                x * count
            }),
        ),
        (
            "set_item",
            Box::new(|x| {
                let mut y = x.tanh();
                y.set_item(&[0, 0], 1.0).unwrap();
                y
            }),
        ),
    ];
    for (name, closure) in writes {
        let error = refused(closure, "trace");
        assert!(
            error.contains(name) && error.contains("cannot change a tensor in place"),
            "{error}"
        );
    }
    assert_eq!(state.to_vec(), [1.0, 2.0, 3.0]);

    let net = Arc::new(Sequential::new().then(BatchNorm1d::<f64>::new(3)));
    let traced = Arc::clone(&net);
    let error = refused(move |x| traced.forward(x), "trace");
    assert!(error.contains("BatchNorm1d: in training it changes its running averages"), "{error}");
    assert_eq!(
        net.state_dict()["0.running_mean"].downcast_ref::<f64>().unwrap().to_vec(),
        [0.0; 3]
    );
    net.eval();
    let (_, figures) = both(move |x| net.forward(x).tanh(), [4, 3]);
    assert_close(&figures);
}
