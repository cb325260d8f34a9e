//! Why a gradient is absent, and how a graph is shown.

use autograd_core::prelude::*;
use autograd_core::{GradientStatus, Graph, checkpoint, explain, grad};

fn leaf(data: &[f64]) -> Tensor<f64> {
    let x = Tensor::from(data);
    x.set_stop_gradient(false);
    x
}

#[track_caller]
fn why(loss: &Tensor<f64>, x: &Tensor<f64>, status: GradientStatus, words: &[&str]) {
    let explanation = explain(loss, x);
    assert_eq!(explanation.status(), status, "{explanation}");
    let text = explanation.to_string();
    for word in words {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
    // What it says is what is so.
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
    let h = &x * 2.0;
    why(&h.square(), &h, GradientStatus::Flows, &["through 1 op", "retain_grads()"]);
    why(&x, &x, GradientStatus::Flows, &["the loss itself"]);
    // Through a piece that is recomputed, whose inside is not known.
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
    why(&y, &detached, GradientStatus::StopGradient, &["the tensor was `detach()`ed at "]);
    let h = &w * 2.0;
    h.set_stop_gradient(true);
    why(&(&h * &w), &h, GradientStatus::Cut, &["came from mul at ", "cut off"]);
}

#[test]
fn the_loss_has_none() {
    let x = leaf(&[1.0]);
    let y = no_grad().run(|| &x * 2.0);
    why(&y, &x, GradientStatus::LossNotRecorded, &["`no_grad`", "`detach()`ed"]);
    let y = &x * 2.0;
    y.set_stop_gradient(true);
    why(&y, &x, GradientStatus::LossCut, &["the loss came from mul at "]);
    let line = line!() + 1;
    let detached = (&x * 2.0).detach();
    let told = format!("the loss was `detach()`ed at {}:{line}:", file!());
    why(&detached, &x, GradientStatus::LossNotRecorded, &[&told]);
    let line = line!() + 1;
    let _off = no_grad();
    let text = explain(&(&x * 2.0), &x).to_string();
    let place = format!("by the `no_grad` at {}:{line}:", file!());
    assert!(text.contains(&place), "{text}");
    // The scope around it is told again when the inner one has ended.
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
    let place = format!(", `detach()`ed at {}:{line}:", file!());
    why(&detached, &x, unreachable, &["2 recorded ops", "input 0 of mul at ", &place]);
    // Also behind an op that says it takes no gradient there, and of the result of an op.
    let cut = (&x * 2.0).detach();
    why(&(&w * &cut), &x, unreachable, &["input 1 of mul at ", ", `detach()`ed at "]);
    // A tensor that wants no gradient loses none.
    let constant = Tensor::from([1.0]).detach();
    assert!(!explain(&(&w * &constant), &x).to_string().contains("`detach()`ed at"));
    let quiet = no_grad().run(|| &x * 5.0);
    why(&(&w + &quiet), &x, unreachable, &["input 1 of add at "]);
    let cast = x.cast::<i64>().cast::<f64>();
    why(&(&w * &cast), &x, unreachable, &["input 1 of mul", "a cast to integers"]);
    why(&w.exp(), &x, unreachable, &["1 recorded op ", "it was not used at all"]);
    let beside = &x * 2.0;
    why(&(&w + &w), &beside, unreachable, &["mul at ", "which is no part of the loss"]);
    // Asked for too late.
    let late = Tensor::from([1.0]);
    let y = &late * &w;
    late.set_stop_gradient(false);
    why(&y, &late, unreachable, &["input 0 of mul", "that came after the use"]);
    let many = (0..30).fold(w.clone(), |h, _| h + &x.detach());
    why(&many, &x, unreachable, &["input 1 of add", ".. and 18 more"]);
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
    // A long one, on a small stack; the drawing shows its end.
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
