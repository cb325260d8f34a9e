//! Why a gradient is absent.

use std::collections::HashMap;
use std::fmt;

use crate::array::DType;
use crate::engine::walk_down;
use crate::graph::{Edge, Element, NodeRef, Tensor, is_grad_enabled, off_since};
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

/// Says whether `loss.backward()` computes a gradient of `x`, and if not, why: as far as the
/// recorded graph knows, with the ops and lines where the way may have been lost.
///
/// It changes nothing and runs nothing. Ask before the backward or after it, but while `loss` is as
/// it was.
///
/// ```
/// use autograd_core::{GradientStatus, Tensor, explain};
///
/// let (x, w) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 4.0]));
/// x.set_stop_gradient(false);
/// w.set_stop_gradient(false);
/// let loss = (&x.detach() * &w).sum();
///
/// assert_eq!(explain(&loss, &w).status(), GradientStatus::Flows);
/// let why = explain(&loss, &x);
/// assert_eq!(why.status(), GradientStatus::NotReachable);
/// assert!(why.to_string().contains("input 0 of mul"));
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
            Some(node) => explained(
                GradientStatus::LossCut,
                vec![
                    format!("no gradient: the loss came from {}, but it was cut off", called(node)),
                    "by `set_stop_gradient(true)` on it; take that away.".into(),
                ],
            ),
            None => explained(
                GradientStatus::LossNotRecorded,
                match loss.detached() {
                    Some(place) => {
                        vec![format!("no gradient: the loss was `detach()`ed at {place}.")]
                    }
                    None => not_recorded(x.stop_gradient()),
                },
            ),
        };
    }
    if x.stop_gradient() {
        if let Some(place) = x.detached() {
            let line = format!("no gradient: the tensor was `detach()`ed at {place}.");
            return explained(GradientStatus::StopGradient, vec![line]);
        }
        return match x.origin() {
            Some(node) => explained(
                GradientStatus::Cut,
                vec![
                format!("no gradient: the tensor came from {}, but it was cut off", called(node)),
                "by `set_stop_gradient(true)` on it; take that away, and compute the loss after."
                    .into(),
            ],
            ),
            None => explained(
                GradientStatus::StopGradient,
                vec![
                "no gradient: the tensor asks for none (stop_gradient is true).".into(),
                "Call `set_stop_gradient(false)` on it before anything is computed from it. If it \
                 is a result,"
                    .into(),
                "it was computed under `no_grad`, from `detach()`ed or cast tensors, or from ones \
                 that ask for none."
                    .into(),
            ],
            ),
        };
    }
    match way(&loss.edge(), &x.edge()) {
        Some(way) => explained(GradientStatus::Flows, flows(&way, x)),
        None => explained(GradientStatus::NotReachable, not_reachable(loss, x)),
    }
}

fn called(node: &NodeRef) -> String {
    format!("{} at {}", node.rule.name(), node.location)
}

fn not_recorded(x_stopped: bool) -> Vec<String> {
    let mut lines = vec![
        "no gradient: the loss is not the result of a recorded op. Either".into(),
        "- it was computed under `no_grad` or inside a layer's forward, or".into(),
        "- all that it was computed from had stop_gradient = true then (new tensors have), was \
         `detach()`ed, or came from ops without a gradient (comparisons, casts to integers)."
            .into(),
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

fn same(a: &Edge, b: &Edge) -> bool {
    match (a, b) {
        (Edge::Leaf(a), Edge::Leaf(b)) => a.address() == b.address(),
        (Edge::Node(a, i), Edge::Node(b, j)) => std::sync::Arc::ptr_eq(a.arc(), b.arc()) && i == j,
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
    let address = |node: &NodeRef| std::sync::Arc::as_ptr(node.arc()).cast();
    walk_down(from, |node, above| {
        came_from.entry(address(node)).or_insert_with(|| above.cloned());
        if found.is_none() && node.rule.edges().iter().any(|edge| same(edge, to)) {
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

fn not_reachable<T: Float, U: Element>(loss: &Tensor<T>, x: &Tensor<U>) -> Vec<String> {
    let (mut ends, mut leaves, mut ops) = (Vec::new(), 0, 0);
    walk_down(&loss.edge(), |node, _| {
        ops += 1;
        for (i, edge) in node.rule.edges().iter().enumerate() {
            match edge {
                Edge::None(None) => ends.push(format!("input {i} of {}", called(node))),
                Edge::None(Some(place)) => {
                    ends.push(format!("input {i} of {}, `detach()`ed at {place}", called(node)));
                }
                Edge::Leaf(_) => leaves += 1,
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
    if ends.is_empty() {
        lines.push("All their inputs want gradients, so it was not used at all.".into());
    } else {
        lines.push(
            "Either it was not used, or the way ends at one of these inputs, which wanted no \
             gradient when the op was called:"
                .into(),
        );
        lines.extend(listed(&ends));
        lines.push(
            "There look for `detach()`, `no_grad`, a cast to integers or a comparison, and for a \
             `set_stop_gradient(false)` that came after the use."
                .into(),
        );
    }
    if leaves == 0 {
        lines.push("No leaf at all gets a gradient from this loss.".into());
    }
    lines
}
