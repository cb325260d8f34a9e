//! Why a gradient is absent, and how a graph is displayed.

use autograd_core::prelude::*;
use autograd_core::{
    BackwardOptions, Error, GradOptions, GradientStatus, Graph, backward_to, checkpoint, explain,
    grad, grad_with,
};
use support::leaf;

#[track_caller]
fn why(loss: &Tensor<f64>, x: &Tensor<f64>, status: GradientStatus, words: &[&str]) {
    let explanation = explain(loss, x);
    assert_eq!(explanation.status(), status, "{explanation}");
    let text = explanation.to_string();
    for word in words {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
    // The explanation agrees with the gradient.
    let got = grad(&[loss], &[x]).is_ok();
    assert_eq!(got, status == GradientStatus::Flows);
}

#[test]
fn a_gradient_flows() {
    let x = leaf(&[2.0]);
    let line = line!() + 1;
    let y = (&x * 3.0).exp();
    let place = format!("exp at {}:{line}", file!());
    why(&y, &x, GradientStatus::Flows, &["2 ops", &place, "No backward has written it"]);
    let y = (&x * 3.0).exp();
    y.backward().unwrap();
    assert!(explain(&y, &x).to_string().contains("A backward has written it."));
    // Also a backward that failed has freed the graph.
    let (x, y) = (leaf(&[2.0]), leaf(&[3.0]));
    let _hook = y.register_hook(|_| Err("broken".into()));
    let loss = (&x * &y).sum();
    assert!(matches!(loss.backward(), Err(Error::Hook { .. })));
    let text = explain(&loss, &x).to_string();
    assert!(text.contains("A backward has freed this graph (one that failed"), "{text}");
    let text = loss.backward().unwrap_err().to_string();
    assert!(text.contains("compute the output again, or keep the graph"), "{text}");
    let h = &x * 2.0;
    why(&h.square(), &h, GradientStatus::Flows, &["through 1 op", "retain_grads()"]);
    why(&x, &x, GradientStatus::Flows, &["the loss itself"]);
    // Through a recomputed piece, whose inner ops are unknown.
    let inside = x.clone();
    let y = checkpoint(move || inside.exp().sin());
    why(&y, &x, GradientStatus::Flows, &["checkpoint at "]);
}

#[test]
fn the_tensor_asks_for_none() {
    let (x, w) = (Tensor::from([1.0]), leaf(&[2.0]));
    let y = &x * &w;
    why(&y, &x, GradientStatus::StopGradient, &["set_stop_gradient(false)"]);
    let detached = w.detach();
    let y = &detached * &w;
    why(
        &y,
        &detached,
        GradientStatus::StopGradient,
        &["the tensor, or what it was computed from, was\n  `detach()`ed at "],
    );
    let h = &w * 2.0;
    h.set_stop_gradient(true);
    let place = format!("cut off by `set_stop_gradient(true)` at {}:{}:", file!(), line!() - 1);
    why(&(&h * &w), &h, GradientStatus::Cut, &["came from mul at ", &place]);
    // A parameter that was frozen.
    let line = line!() + 1;
    w.set_stop_gradient(true);
    let place = format!("cut off by `set_stop_gradient(true)` at {}:{line}:", file!());
    let other = leaf(&[3.0]);
    why(&(&w * &other), &w, GradientStatus::StopGradient, &[&place]);
    why(&(&w * 2.0), &w, GradientStatus::LossNotRecorded, &[&place]);
    // A parameter that is not frozen any more.
    w.set_stop_gradient(false);
    why(&(&w * 2.0), &w, GradientStatus::Flows, &[]);
    w.set_stop_gradient(true);
    w.set_stop_gradient(true);
    assert_eq!(explain(&w, &w).to_string().matches("cut off").count(), 1);
}

#[test]
fn the_loss_has_none() {
    let x = leaf(&[1.0]);
    let y = no_grad().run(|| &x * 2.0);
    let place = format!(", first by mul at {}:{}:", file!(), line!() - 1);
    why(&y, &x, GradientStatus::LossNotRecorded, &["was\n  computed under the ", &place]);
    let y = Tensor::from([1.0]) * 2.0;
    why(&y, &x, GradientStatus::LossNotRecorded, &["wanted no gradient then", "`to_vec`"]);
    let y = &x * 2.0;
    y.set_stop_gradient(true);
    why(&y, &x, GradientStatus::LossCut, &["the loss came from mul at "]);
    let line = line!() + 1;
    let detached = (&x * 2.0).detach();
    let text = format!("`detach()`ed at {}:{line}:", file!());
    why(&detached, &x, GradientStatus::LossNotRecorded, &[&text]);
    let line = line!() + 1;
    let _off = no_grad();
    let text = explain(&(&x * 2.0), &x).to_string();
    let place = format!("under the `no_grad` at {}:{line}:", file!());
    assert!(text.contains(&place), "{text}");
    // The outer scope is reported again after the inner one has ended.
    no_grad().run(|| ());
    assert!(explain(&(&x * 2.0), &x).to_string().contains(&place));
    enable_grad().run(|| why(&(&x * 2.0), &x, GradientStatus::Flows, &[]));
}

#[test]
fn the_way_is_lost() {
    let (x, w) = (leaf(&[1.0]), leaf(&[2.0]));
    let unreachable = GradientStatus::NotReachable;
    let line = line!() + 1;
    let detached = (&x.detach() * &w).exp();
    let place = format!(": `detach()`ed at {}:{line}:", file!());
    why(&detached, &x, unreachable, &["2 recorded ops", "input 0 of mul at ", &place]);
    // Also for an input at which an op needs no gradient, and for the result of an op.
    let cut = (&x * 2.0).detach();
    why(&(&w * &cut), &x, unreachable, &["input 1 of mul at ", ": `detach()`ed at "]);
    // A tensor that wants no gradient cannot lose one.
    let constant = Tensor::from([1.0]).detach();
    assert!(!explain(&(&w * &constant), &x).to_string().contains("`detach()`ed at"));
    let cast = x.cast::<i64>().cast::<f64>();
    let place = format!(": computed by cast at {}:{}:", file!(), line!() - 1);
    why(&(&w * &cast), &x, unreachable, &["input 1 of mul", &place, "which has no derivative"]);
    // A path through plain data cannot be followed.
    let data = Tensor::from(x.to_vec());
    why(&(&w * &data), &x, unreachable, &["These inputs wanted no gradient", "nobody can follow"]);
    why(&w.exp(), &x, unreachable, &["1 recorded op ", "it was not used at all"]);
    let beside = &x * 2.0;
    why(&(&w + &w), &beside, unreachable, &["mul at ", "which is no part of the loss"]);
    // The gradient was requested too late.
    let late = Tensor::from([1.0]);
    let y = &late * &w;
    late.set_stop_gradient(false);
    why(&y, &late, unreachable, &["input 0 of mul", "came after the use"]);
    let many = (0..30).fold(w.clone(), |h, _| h + &x.detach());
    why(&many, &x, unreachable, &["input 1 of add", ".. and 18 more"]);
}

/// `{name} at {file}:{line}:`.
fn at(name: &str, line: u32) -> String {
    format!("{name} at {}:{line}:", file!())
}

/// The single line of an explanation that says where the gradient was lost.
#[track_caller]
fn cause(lost: &Tensor<f64>, x: &Tensor<f64>) -> String {
    let w = leaf(&[1.0]);
    let explanation = explain(&(&w * lost), x);
    assert_eq!(explanation.status(), GradientStatus::NotReachable);
    let text = explanation.to_string();
    let mut lines = text.lines().filter(|line| line.contains("input 1 of mul at "));
    let line = lines.next().unwrap_or_else(|| panic!("{text}"));
    assert!(lines.next().is_none(), "{text}");
    // The same is reported for the loss itself.
    let itself = explain(lost, x);
    assert_eq!(itself.status(), GradientStatus::LossNotRecorded);
    let causes = line.split_once(": ").map(|(_, text)| text.to_owned()).unwrap_or_default();
    // And by a gradient of it, also beside an output that is recorded.
    for outputs in [&[lost][..], &[&(&w * 2.0), lost]] {
        let error = grad(outputs, &[x]).unwrap_err().to_string();
        let position = outputs.len() - 1;
        let words = format!(
            "output {position} has no graph: it, or what it was computed from, was {causes}"
        );
        assert!(!causes.is_empty() && error.ends_with(&words), "{error}");
    }
    causes
}

#[test]
fn a_gradient_of_what_was_not_recorded() {
    let (x, w) = (leaf(&[1.0]), leaf(&[2.0]));
    let message = |outputs: &[&Tensor<f64>]| grad(outputs, &[&x]).unwrap_err().to_string();
    let line = line!() + 1;
    let error = no_grad().run(|| message(&[&x.square().sum()]));
    let words = format!("computed under the `no_grad` at {}:{line}:", file!());
    assert!(error.starts_with("grad: output 0 has no graph") && error.contains(&words), "{error}");
    // The input came from plain data, so no op is to blame.
    let error = message(&[&Tensor::from(x.to_vec()).sum()]);
    assert!(error.starts_with("grad: no output has a graph: all that they were"), "{error}");
    // Where the library turned recording off.
    let inner = w.clone();
    let hook = w.register_hook(move |_| Ok(grad(&[&inner.square()], &[&inner])?.pop()));
    let error = (&w * 3.0).backward().unwrap_err().to_string();
    assert!(hook.unwrap().remove());
    assert!(error.contains("compute the outputs in `enable_grad().run(|| ..)`"), "{error}");
    // All are recorded, and none of them uses it; and what allows that.
    assert_eq!(
        message(&[&w.sum(), &w.square().sum()]),
        "grad: input 0 was not used to compute the outputs; allow that with `allow_unused`"
    );
    let options = GradOptions::new().allow_unused(true);
    assert!(grad_with(&[&x.detach().sum()], &[&x], options).unwrap()[0].is_none());
    assert!(x.grad().is_none());
}

#[test]
fn a_scope_is_reported_when_it_is_over() {
    let x = leaf(&[1.0]);
    let line = line!() + 1;
    let y = no_grad().run(|| x.clone() * 2.0);
    let text = cause(&y, &x);
    assert!(text.starts_with(&format!("computed under the {}", at("`no_grad`", line))), "{text}");
    assert!(text.contains(&format!(", first by {}", at("mul", line))), "{text}");
    // After several ops, some of them recorded, on another thread, in place and in a view.
    let later = (y.exp() + &Tensor::from([1.0])).reshape([1, 1]).sum_axes([0]);
    assert_eq!(cause(&later, &x), text);
    let there = y.clone();
    let there = std::thread::spawn(move || (there.tanh() * 0.5).flip(0)).join().unwrap();
    assert_eq!(cause(&there, &x), text);
    let mut sum = Tensor::from([0.0]);
    no_grad().run(|| sum += &y);
    assert_eq!(cause(&sum, &x), text);
    let copied = Tensor::from([0.0]);
    copied.copy_from(&y).unwrap();
    assert_eq!(cause(&copied, &x), text);
    // A guard, and an op in its scope that consists of others.
    let guard_line = line!() + 1;
    let guard = no_grad();
    let norm_line = line!() + 1;
    let norm = x.norm().reshape([1]);
    drop(guard);
    let text = cause(&norm, &x);
    assert!(text.contains(&format!(", first by {}", at("norm", norm_line))), "{text}");
    assert!(text.contains(&at("`no_grad`", guard_line)), "{text}");
    // Of the ops of a scope, the first is reported.
    let (w, line) = (leaf(&[3.0]), line!() + 1);
    let net = no_grad().run(|| ((&x * &w).tanh() * &w + &x) * (&w - &x));
    let text = cause(&net, &w);
    assert!(text.contains(&at("`no_grad`", line)) && text.contains(", first by "), "{text}");
    assert_eq!(text.matches(" at ").count(), 2, "{text}");
    // The inner scope is the reason, not the outer one.
    let _outer = no_grad();
    let inner_line = line!() + 1;
    let inner = no_grad().run(|| &x + 1.0);
    let recorded = enable_grad().run(|| &x + 1.0);
    let _on = enable_grad();
    assert!(cause(&inner, &x).contains(&at("`no_grad`", inner_line)));
    assert_eq!(explain(&recorded, &x).status(), GradientStatus::Flows);
}

#[py_layer]
impl Doubles {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let sign = Tensor::from(x.to_vec());
        ctx.mark_non_differentiable(&sign);
        (x * 2.0, sign)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
        _: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        dy * 2.0
    }
}

#[test]
fn layers_tell_their_own_line() {
    let x = leaf(&[1.0]);
    let line = line!() + 1;
    let (y, _) = no_grad().run(|| Doubles::apply(&x));
    assert!(cause(&y, &x).contains(&format!(", first by {}", at("Doubles", line))));
    let line = line!() + 1;
    let (y, sign) = Doubles::apply(&x);
    assert_eq!(explain(&y, &x).status(), GradientStatus::Flows);
    assert!(cause(&sign, &x).starts_with(&format!("computed by {}", at("Doubles", line))));
    assert!(cause(&sign, &x).ends_with("which has no derivative"));
    // The reason before a custom op is reported after it too.
    let (y, _) = Doubles::apply(&x.detach());
    assert!(cause(&y, &x).starts_with("`detach()`ed at "), "{}", cause(&y, &x));
    let inside = x.detach();
    let y = checkpoint(move || inside.exp());
    assert!(cause(&y, &x).starts_with("`detach()`ed at "));
}

#[test]
fn ops_without_a_derivative_are_reported() {
    let x = leaf(&[1.0]);
    let cases: [(&str, fn(&Tensor<f64>) -> Tensor<f64>); 5] = [
        ("greater", |x| x.greater(&Tensor::from([0.0])).cast()),
        ("gt_scalar", |x| x.gt_scalar(0.0).and(&x.detach().lt_scalar(9.0)).not().cast()),
        ("argmax", |x| x.argmax(0).one_hot(1)),
        ("cast", |x| (x.cast::<i32>() + 1).cast()),
        ("gt_scalar", |x| x.gt_scalar(0.0).where_else(1.0, 0.0)),
    ];
    for (name, f) in cases {
        let text = cause(&f(&x), &x);
        assert!(text.starts_with(&format!("computed by {name} at {}:", file!())), "{text}");
        assert!(text.contains("which has no derivative"), "{text}");
    }
}

#[test]
fn a_gradient_that_was_not_recorded_is_reported() {
    let x = leaf(&[2.0]);
    let dx = grad(&[&x.square()], &[&x]).unwrap().remove(0);
    assert_eq!(cause(&dx.square(), &x), "computed by a backward without `create_graph`");
    x.square().backward().unwrap();
    assert_eq!(cause(&x.grad().unwrap(), &x), "computed by a backward without `create_graph`");
}

#[test]
fn several_reasons_stand_side_by_side() {
    let (x, w) = (leaf(&[1.0]), leaf(&[2.0]));
    let both = &x.detach() + &no_grad().run(|| w.exp());
    let text = cause(&both, &x);
    let (first, second) = text.split_once(", and ").unwrap();
    assert!(first.starts_with("`detach()`ed at ") && second.contains(", first by exp at "));
    // A reason that occurs twice is reported once, and the number of reasons is limited.
    assert_eq!(cause(&(&both * &both), &x), text);
    let mut many = x.detach();
    macro_rules! more {
        ($($i:tt)*) => {$( let _ = $i; many = &many + &x.detach(); )*};
    }
    more!(1 2 3 4 5 6 7 8 9 10);
    let detached = cause(&many, &x).matches("`detach()`ed at").count();
    assert!((1..=8).contains(&detached), "{detached}");
    // A result of a scope that became a leaf.
    let fresh = no_grad().run(|| &x * 0.5);
    fresh.set_stop_gradient(false);
    let text = explain(&fresh.exp(), &x).to_string();
    assert!(
        text.contains("input 0 of exp at ")
            && text.contains(": a leaf now, and before computed under the `no_grad` at ")
    );
}

#[test]
fn integers_have_none() {
    let (w, index) = (leaf(&[2.0, 3.0]), Tensor::from([1_i64]));
    let y = w.index_select(0, &index);
    let explanation = explain(&y, &index);
    assert_eq!(explanation.status(), GradientStatus::NotFloat);
    assert!(explanation.to_string().contains("int64"), "{explanation}");
}

/// A residual net with two heads.
fn net() -> (Graph, Tensor<f64>) {
    let parameter = |shape: [usize; 2]| {
        let tensor = Tensor::<f64>::ones(shape);
        tensor.set_stop_gradient(false);
        tensor
    };
    let ws: Vec<_> = (0..3).map(|_| parameter([4, 4])).collect();
    let (a, b) = (parameter([4, 1]), parameter([4, 2]));
    let mut h = Tensor::<f64>::ones([2, 4]);
    for w in &ws {
        let inner = h.matmul(w).relu();
        h = &h + inner.matmul(w) * 0.5;
    }
    let value = h.matmul(&a).square().mean();
    let policy = h.matmul(&b).log_softmax(1).mean();
    let penalty = &ws[0] * &ws[0];
    let loss = value - &policy + penalty.sum();
    let mut graph = Graph::of(&[loss.into(), policy.into()]).named(&h, "h").named(&a, "a <value>");
    for (i, w) in ws.iter().enumerate() {
        graph = graph.named(w, &format!("w{i}"));
    }
    (graph, h)
}

#[test]
fn a_summary() {
    let (graph, _) = net();
    assert_eq!(
        graph.summary(),
        "\
25 ops from 5 leaves, at most 20 ops one after the other
       8  matmul
       4  add
       4  mul
       3  relu
       2  mean
       1  log_softmax
       1  square
       1  sub
       1  sum
    leaf w0: float64 [4, 4], used 4 times
    leaf w1: float64 [4, 4], used 2 times
    leaf w2: float64 [4, 4], used 2 times
    leaf a <value>: float64 [4, 1], used 1 time
    leaf: float64 [4, 2], used 1 time
"
    );
}

#[test]
fn dot_has_every_item_and_line() {
    let (graph, _) = net();
    let dot = graph.to_dot();
    let count = |what: &str| dot.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count("label="), graph.op_count() + 5);
    assert_eq!(count(" -> "), 37);
    assert!(dot.contains("label=\"h = add\\nexplain.rs:"));
    assert!(dot.starts_with("digraph {\n") && dot.ends_with("}\n"));
}

#[test]
fn a_drawing_is_well_formed() {
    let (graph, _) = net();
    let svg = graph.to_svg();
    let count = |what: &str| svg.matches(what).count();
    assert_eq!(count("<g "), graph.op_count() + 5);
    assert_eq!((count("<g "), count("<text ")), (count("</g>"), count("</text>")));
    assert!(svg.contains("a &lt;value&gt;") && !svg.contains("<value>"));
    assert!(svg.contains("×2"), "a square by hand uses its leaf twice");
    assert!(!svg.contains("NaN") && !svg.contains("inf\""));
    if let Some(path) = std::env::var_os("GRAPH_SVG") {
        std::fs::write(path, svg).unwrap();
    }
}

#[test]
fn graphs_of_every_size() {
    let none = Graph::of(&[]);
    assert_eq!(none.summary(), "0 ops from 0 leaves, at most 0 ops one after the other\n");
    assert!(none.to_svg().ends_with("</svg>\n") && none.to_dot().ends_with("}\n"));
    assert_eq!(Graph::of(&[Tensor::from([1.0]).into()]).op_count(), 0);
    let one = Graph::of(&[leaf(&[1.0]).into()]);
    assert!(one.to_svg().contains("float64 [1]") && one.op_count() == 0);
    // A long graph, on a small stack; the drawing shows its end.
    let long = || {
        let x = leaf(&[1.0]);
        let y = (0..100_000).fold(x.clone(), |h, _| h * 1.0 + &x);
        let graph = Graph::of(&[y.clone().into()]);
        assert_eq!(graph.op_count(), 200_000);
        assert!(graph.to_svg().contains("199751 ops and leaves further up are left out"));
        assert_eq!(graph.to_dot().lines().count(), 3 + 200_001 + 300_000);
        assert_eq!(explain(&y, &x).status(), GradientStatus::Flows);
        assert_eq!(explain(&y, &leaf(&[1.0])).status(), GradientStatus::NotReachable);
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(long).unwrap().join().unwrap();
}

/// A tensor without a gradient, a function that computes a loss from it, and the expected words.
type Absent = (&'static str, fn() -> (Tensor<f64>, Tensor<f64>), &'static [&'static str]);

const ABSENT: [Absent; 9] = [
    (
        "asks for none",
        || (Tensor::from([1.0]), leaf(&[2.0]).sum()),
        &["no gradient: the tensor asks for none", "Call `set_stop_gradient(false)` on it"],
    ),
    (
        "asks for none, and neither does another one",
        || {
            let x = Tensor::from([1.0]);
            (x.clone(), x.sum())
        },
        &["no gradient: the tensor asks for none"],
    ),
    (
        "was detached",
        || {
            let x = leaf(&[1.0]).detach();
            (x.clone(), x.sum())
        },
        &["the tensor, or what it was computed from, was\n  `detach()`ed at "],
    ),
    (
        "is cut off",
        || {
            let h = leaf(&[1.0]).exp();
            h.set_stop_gradient(true);
            (h.clone(), h.sum())
        },
        &["the tensor came from exp at ", "cut off by `set_stop_gradient(true)` at "],
    ),
    (
        "is a result",
        || {
            let h = leaf(&[1.0]).exp();
            (h.clone(), h.sum())
        },
        &["no gradient: backward does not keep it", "result of exp at ", "`retain_grads()`"],
    ),
    (
        "a loss under no_grad",
        || {
            let x = leaf(&[1.0]);
            let loss = no_grad().run(|| x.sum());
            (x, loss)
        },
        &["the loss, or what it was computed from, was", "under the `no_grad` at ", "by sum at "],
    ),
    (
        "a loss that is cut off",
        || {
            let x = leaf(&[1.0]);
            let loss = x.sum();
            loss.set_stop_gradient(true);
            (x, loss)
        },
        &[
            "the loss came from sum at ",
            "cut off by `set_stop_gradient(true)` at ",
            "Take that away.",
        ],
    ),
    (
        "a loss of plain data",
        || (leaf(&[1.0]), Tensor::from([leaf(&[1.0]).sum().item()])),
        &["the loss is not the result of a recorded op", "went through plain data"],
    ),
    (
        "a loss of something else",
        || (leaf(&[1.0]), leaf(&[2.0]).sum()),
        &["it asks for one, but no backward has reached it", "`explain(&loss, &x)`"],
    ),
];

#[test]
fn try_grad_says_why_there_is_none() {
    for (name, make, words) in ABSENT {
        for to in [false, true] {
            let (x, loss) = make();
            if to {
                let outputs = [loss.clone().into()];
                backward_to(&outputs, &[None], &[x.clone().into()], BackwardOptions::new())
                    .unwrap();
                if name == "is a result" {
                    // On request, the gradient is kept.
                    assert_eq!(x.try_grad().unwrap().to_vec(), [1.0]);
                    continue;
                }
            } else {
                loss.backward().unwrap();
            }
            assert!(x.grad().is_none(), "{name}");
            let error = x.try_grad().unwrap_err();
            assert!(
                matches!(&error, Error::NoGradient { op: "try_grad", shape, .. } if shape[..] == [1]),
                "{name}: {error}"
            );
            let text = error.to_string();
            assert!(
                text.starts_with("try_grad: the tensor of shape [1] has no gradient: "),
                "{text}"
            );
            assert!(words.iter().all(|words| text.contains(words)), "{name}: {text}");
            // The same as `explain` reports, unless that knows more.
            let why = explain(&loss, &x);
            let same = text.ends_with(&why.to_string());
            let more = ["is a result", "a loss of something else"].contains(&name);
            let first = name.starts_with("asks") || name.starts_with("was") || name == "is cut off";
            assert!(same || more || first, "{name}: {text}\n{why}");
        }
    }
}

#[test]
fn try_grad_says_how_a_scaled_parameter_is_trained() {
    let w = leaf(&[1.0]);
    let (w, line) = (w * 0.1, line!());
    w.sum().backward().unwrap();
    let error = w.try_grad().unwrap_err().to_string();
    assert!(error.contains(&format!("the result of mul at {}:{line}:", file!())), "{error}");
    let (detach, retain) = (error.find("`w = w.detach()`"), error.find("`retain_grads()`"));
    assert!(detach.is_some() && detach < retain, "{error}");
    let w = w.detach();
    w.set_stop_gradient(false);
    w.sum().backward().unwrap();
    assert_eq!(w.try_grad().unwrap().to_vec(), [1.0]);
}

#[test]
fn try_grad_is_grad_where_there_is_one() {
    let x = leaf(&[1.0, 2.0]);
    // Before any backward, and after one that did not reach the tensor.
    assert!(x.try_grad().unwrap_err().to_string().contains("no backward has reached it"));
    x.detach().sum().backward().unwrap();
    assert!(x.try_grad().unwrap_err().to_string().contains("`detach()`ed at "));
    x.square().sum().backward().unwrap();
    assert_eq!(x.try_grad().unwrap().to_vec(), x.grad().unwrap().to_vec());
    x.clear_grad();
    let text = x.try_grad().unwrap_err().to_string();
    assert!(text.contains("its gradient was taken away"), "{text}");
    x.set_grad(Some(&Tensor::from([3.0, 4.0]))).unwrap();
    assert_eq!(x.try_grad().unwrap().to_vec(), [3.0, 4.0]);
    let narrow = Tensor::from([1.0_f32]);
    narrow.set_stop_gradient(false);
    let h = narrow.exp();
    h.retain_grads().unwrap();
    h.sum().backward().unwrap();
    assert_eq!((h.try_grad().unwrap().item(), narrow.try_grad().unwrap().shape().len()), (1.0, 1));
}
