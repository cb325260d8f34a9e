//! Why a gradient is absent.

use std::collections::HashMap;
use std::fmt;

use crate::array::DType;
use crate::engine::walk_down;
use crate::graph::{
    Absent, Edge, Element, Lost, NodeRef, Tensor, for_any, is_grad_enabled, off_since,
};
use crate::ops::Float;

/// What [`explain`] found; shown as text for people.
#[derive(Clone, Debug)]
pub struct Explanation {
    status: GradientStatus,
    lines: Vec<String>,
}

/// Whether a gradient gets from one tensor to another, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GradientStatus {
    /// It does.
    Flows,
    /// The tensor's elements are integers or bools, which have no gradient.
    NotFloat,
    /// The loss was computed by recorded ops, but `set_stop_gradient(true)` cut it off.
    LossCut,
    /// The loss is not the result of any recorded op.
    LossNotRecorded,
    /// The tensor was computed by recorded ops, but `set_stop_gradient(true)` cut it off.
    Cut,
    /// The tensor asks for no gradient: `stop_gradient` is true.
    StopGradient,
    /// No recorded op leads from the tensor to the loss.
    NotReachable,
}

impl Explanation {
    /// The answer in one word.
    pub fn status(&self) -> GradientStatus {
        self.status
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

/// Says whether `loss.backward()` computes a gradient of `x`, and if not, why: with the ops and
/// lines where the way was lost.
///
/// A tensor outside the graph remembers the lines at which what it was computed from left it:
/// `detach()`, `no_grad` (the scope's line and that of the first op in it), `set_stop_gradient(true)`, an op without a
/// derivative (a comparison, a cast to integers, `argmax`), an output that a layer marks as
/// non-differentiable, a gradient of a backward without `create_graph`. Ops that are not recorded
/// hand that on, so it does not matter how many lie in between, on which thread they ran, or
/// whether the scope is still open. What nobody can know is where numbers went that left tensors:
/// through `to_vec`, `item`, an ndarray or a program of [`static_graph`](crate::static_graph).
///
/// It changes nothing and runs nothing. Ask before the backward or after it, but while `loss` is as
/// it was. To remember costs a tensor four bytes, and keeps no other tensor alive.
///
/// ```
/// use autograd_core::{GradientStatus, Tensor, explain, no_grad};
///
/// let (x, w) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 4.0]));
/// x.set_stop_gradient(false);
/// w.set_stop_gradient(false);
/// let line = line!() + 1;
/// let scale = no_grad().run(|| &w * 2.0).exp();
/// let loss = (&x * &scale).sum();
///
/// assert_eq!(explain(&loss, &x).status(), GradientStatus::Flows);
/// let why = explain(&loss, &w);
/// assert_eq!(why.status(), GradientStatus::NotReachable);
/// let place = format!("{}:{line}:", file!());
/// assert!(why.to_string().contains(&format!("under the `no_grad` at {place}")));
/// assert!(why.to_string().contains(&format!("first by mul at {place}")));
/// ```
///
/// A loss that is not recorded at all is told in the same words:
///
/// ```
/// use autograd_core::{GradientStatus, Tensor, explain};
///
/// let x = Tensor::from([1.0, 2.0]);
/// x.set_stop_gradient(false);
/// let hits = x.gt_scalar(1.5).cast::<f32>().mean();
/// let why = explain(&hits, &x);
/// assert_eq!(why.status(), GradientStatus::LossNotRecorded);
/// assert!(why.to_string().contains("computed by gt_scalar at "), "{why}");
/// ```
pub fn explain<T: Float, U: Element>(loss: &Tensor<T>, x: &Tensor<U>) -> Explanation {
    let explained = |status, lines| Explanation { status, lines };
    if !matches!(U::DTYPE, DType::Float32 | DType::Float64) {
        let lines = vec![
            format!("no gradient: elements of type {} have none.", U::DTYPE),
            "A cast to an integer type, a comparison and an index cut the graph.".into(),
        ];
        return explained(GradientStatus::NotFloat, lines);
    }
    let same = loss.address() == x.address();
    if loss.stop_gradient() && !same {
        return match loss.origin() {
            Some(node) => {
                let came = format!("no gradient: the loss came from {}, but it was", called(node));
                let mut lines = vec![came];
                lines.extend(loss.lost().causes().iter().map(|cause| format!("  {cause}")));
                lines.push("Take that away.".into());
                explained(GradientStatus::LossCut, lines)
            }
            None => {
                let lines = lost("loss", loss.lost());
                let lines = lines.unwrap_or_else(|| not_recorded(x.stop_gradient()));
                explained(GradientStatus::LossNotRecorded, lines)
            }
        };
    }
    if x.stop_gradient() {
        if let Some(node) = x.origin() {
            let came = format!("no gradient: the tensor came from {}, but it was", called(node));
            let mut lines = vec![came];
            lines.extend(x.lost().causes().iter().map(|cause| format!("  {cause}")));
            lines.push("Take that away, and compute the loss after.".into());
            return explained(GradientStatus::Cut, lines);
        }
        let lines = lost("tensor", x.lost()).unwrap_or_else(asks_for_none);
        return explained(GradientStatus::StopGradient, lines);
    }
    match way(&loss.edge(), &x.edge()) {
        Some(way) => explained(GradientStatus::Flows, flows(&way, x)),
        None => explained(GradientStatus::NotReachable, not_reachable(loss, x)),
    }
}

fn called(node: &NodeRef) -> String {
    format!("{} at {}", node.name(), node.location)
}

/// What is remembered of the way out of the graph, if anything is.
fn lost(what: &str, lost: Lost) -> Option<Vec<String>> {
    match &lost.causes()[..] {
        [] => None,
        causes => {
            let was = format!("no gradient: the {what}, or what it was computed from, was");
            Some([was].into_iter().chain(causes.iter().map(|cause| format!("  {cause}"))).collect())
        }
    }
}

/// What nobody can follow.
const DATA: &str = "or their numbers went through plain data (`to_vec`, `item`, an ndarray), where \
                    nobody can follow them.";

fn not_recorded(x_stopped: bool) -> Vec<String> {
    let mut lines = vec![
        "no gradient: the loss is not the result of a recorded op. All that it was computed from"
            .into(),
        "wanted no gradient then (stop_gradient is true for new tensors; \
         `set_stop_gradient(false)` comes first),"
            .into(),
        DATA.into(),
    ];
    if x_stopped {
        lines.push("The tensor itself has stop_gradient = true.".into());
    }
    if !is_grad_enabled() {
        lines.push(match off_since() {
            Some(place) => format!("Recording is off on this thread, by the `no_grad` at {place}."),
            None => "Recording is off on this thread now.".into(),
        });
    }
    lines
}

fn asks_for_none() -> Vec<String> {
    vec![
        "no gradient: the tensor asks for none (stop_gradient is true).".into(),
        "Call `set_stop_gradient(false)` on it before anything is computed from it. If it is a \
         result,"
            .into(),
        "all that it was computed from asked for none then, or was plain data in between.".into(),
    ]
}

fn same(a: &Edge, b: &Edge) -> bool {
    match (a, b) {
        (Edge::Leaf(a), Edge::Leaf(b)) => a.address() == b.address(),
        (Edge::Node(a, i), Edge::Node(b, j)) => a.address() == b.address() && i == j,
        _ => false,
    }
}

/// The ops on the shortest way from the loss down to a tensor.
fn way(from: &Edge, to: &Edge) -> Option<Vec<NodeRef>> {
    if same(from, to) {
        return Some(Vec::new());
    }
    let mut came_from: HashMap<*const (), Option<NodeRef>> = HashMap::new();
    let mut found = None;
    let address = |node: &NodeRef| node.address();
    walk_down(from, |node, above| {
        came_from.entry(address(node)).or_insert_with(|| above.cloned());
        if found.is_none() && node.edges().iter().any(|edge| same(edge, to)) {
            found = Some(node.clone());
        }
        found.is_none()
    });
    let mut way = Vec::new();
    while let Some(node) = found {
        found = came_from.get(&address(&node)).cloned().flatten();
        way.push(node);
    }
    Some(way).filter(|way| !way.is_empty())
}

/// How many of the ops on the way, or of the places where it ends, are listed.
const LISTED: usize = 12;

/// Lines for places, and how many more there are.
fn listed(places: &[String]) -> impl Iterator<Item = String> {
    let more = places.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("  .. and {more} more"));
    places.iter().take(LISTED).map(|place| format!("  {place}")).chain(more)
}

fn flows<U: Element>(way: &[NodeRef], x: &Tensor<U>) -> Vec<String> {
    let mut lines = match way.len() {
        0 => vec!["a gradient flows: the tensor is the loss itself.".into()],
        1 => vec!["a gradient flows, through 1 op:".into()],
        n => vec![format!("a gradient flows, on the shortest way through {n} ops:")],
    };
    lines.extend(listed(&way.iter().map(called).collect::<Vec<_>>()));
    match (x.is_leaf(), x.grad_slot()) {
        (true, None) => lines.push("No backward has written it yet.".into()),
        (false, None) => lines.push(
            "Backward does not keep it, because the tensor is the result of an op; call \
             `retain_grads()` on it before."
                .into(),
        ),
        (_, Some(_)) => lines.push("A backward has written it.".into()),
    }
    lines
}

/// In one line, if anything is remembered.
fn causes(lost: Lost) -> Option<String> {
    let causes: Vec<String> = lost.causes().iter().map(ToString::to_string).collect();
    (!causes.is_empty()).then(|| causes.join(", and "))
}

fn not_reachable<T: Float, U: Element>(loss: &Tensor<T>, x: &Tensor<U>) -> Vec<String> {
    let (mut told, mut ends, mut leaves, mut ops) = (Vec::new(), Vec::new(), 0, 0);
    walk_down(&loss.edge(), |node, _| {
        ops += 1;
        for (i, edge) in node.edges().iter().enumerate() {
            let input = format!("input {i} of {}", called(node));
            match edge {
                Edge::None(Absent { lost, .. }) => match causes(*lost) {
                    Some(causes) => told.push(format!("{input}: {causes}")),
                    None => ends.push(input),
                },
                Edge::Leaf(leaf) => {
                    leaves += 1;
                    if let Some(causes) = causes(for_any!(leaf, t => t.lost())) {
                        told.push(format!("{input}: a leaf now, and before {causes}"));
                    }
                }
                Edge::Node(..) => {}
            }
        }
        true
    });
    let of = crate::error::Plural(ops, "recorded op", "recorded ops");
    let mut lines = vec![format!("no gradient: none of the {of} behind the loss leads to it.")];
    if let (Some(node), Some(root)) = (x.origin(), loss.origin())
        && node.level >= root.level
    {
        lines.push(format!("It came from {}, which is no part of the loss.", called(node)));
    }
    if told.is_empty() && ends.is_empty() {
        lines.push("All their inputs want gradients, so it was not used at all.".into());
    }
    if !told.is_empty() {
        lines.push(
            "Ways to tensors that want a gradient end here: each input, or what it was computed \
             from, was"
                .into(),
        );
        lines.extend(listed(&told));
    }
    if !ends.is_empty() {
        let which = if told.is_empty() { "These" } else { "Other" };
        lines.push(format!("{which} inputs wanted no gradient when the op was called:"));
        lines.extend(listed(&ends));
        lines.push(
            "They were new tensors then, for which `set_stop_gradient(false)` came after the use \
             or not at all,"
                .into(),
        );
        lines.push(DATA.into());
    }
    if leaves == 0 {
        lines.push("No leaf at all gets a gradient from this loss.".into());
    }
    lines
}
