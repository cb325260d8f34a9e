//! Why a gradient is absent.

use std::fmt;

use crate::engine::{last_idle, target, walk_down};
use crate::error::{Error, Result};
use crate::graph::{
    Absent, Destination, Edge, Element, Lost, NodeRef, Tensor, for_any, is_grad_enabled, off_since,
};
use crate::ops::Float;

/// The result of [`explain`]. It is displayed as text.
///
/// ```
/// use autograd_core::{Tensor, explain};
///
/// let x = Tensor::from([1.0]);
/// x.set_stop_gradient(false);
/// let why = explain(&x.detach().sum(), &x);
/// assert!(why.to_string().contains("`detach()`ed at"));
/// ```
#[derive(Clone, Debug)]
pub struct Explanation {
    status: GradientStatus,
    lines: Vec<String>,
}

/// Whether a gradient flows from one tensor to another, and if not, why.
///
/// ```
/// use autograd_core::{GradientStatus, Tensor, explain};
///
/// let x = Tensor::from([1.0, 2.0]);
/// x.set_stop_gradient(false);
/// let loss = x.sum();
/// assert_eq!(explain(&loss, &Tensor::from([1.0])).status(), GradientStatus::StopGradient);
/// assert_eq!(explain(&loss, &Tensor::from([1])).status(), GradientStatus::NotFloat);
/// loss.set_stop_gradient(true);
/// assert_eq!(explain(&loss, &x).status(), GradientStatus::LossCut);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GradientStatus {
    /// A gradient flows.
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
    /// The result in one word.
    ///
    /// ```
    /// use autograd_core::{GradientStatus, Tensor, explain};
    ///
    /// let x = Tensor::from(3.0);
    /// assert_eq!(explain(&x.square(), &x).status(), GradientStatus::LossNotRecorded);
    /// x.set_stop_gradient(false);
    /// assert_eq!(explain(&x.square(), &x).status(), GradientStatus::Flows);
    /// ```
    pub fn status(&self) -> GradientStatus {
        self.status
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

/// Explains whether `loss.backward()` computes a gradient of `x`, and if not, at which ops and lines it ends.
///
/// A tensor outside the graph remembers the lines where the tensors behind it left the graph: `detach()`,
/// `no_grad` (the lines of the scope and of the first op in it), `set_stop_gradient(true)`, an op without a
/// derivative (a comparison, a cast to integers, `argmax`), an output that a custom op marks as
/// non-differentiable, a gradient of a backward without `create_graph`. Ops that are not recorded pass this
/// on, on any thread. Numbers that left tensors cannot be followed: through `to_vec`, `item`, an ndarray or a
/// program of [`static_graph`](crate::static_graph).
///
/// Call it while `loss` is unchanged. The record costs four bytes a tensor, and keeps no other tensor alive.
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
pub fn explain<T: Float, U: Element>(loss: &Tensor<T>, x: &Tensor<U>) -> Explanation {
    if !U::DTYPE.is_float() {
        let lines = vec![
            format!("no gradient: elements of type {} have none.", U::DTYPE),
            "A cast to an integer type, a comparison and an index cut the graph.".into(),
        ];
        return Explanation { status: GradientStatus::NotFloat, lines };
    }
    let same = loss.address() == x.address();
    if loss.stop_gradient() && !same {
        return explain_stopped_loss(loss.origin().map(op_at), loss.lost(), x.stop_gradient());
    }
    if x.stop_gradient() {
        return explain_stopped(x);
    }
    match path(&loss.edge(), &x.edge()) {
        Some(path) => Explanation { status: GradientStatus::Flows, lines: flow_lines(&path, x) },
        None => Explanation { status: GradientStatus::NotReachable, lines: not_reachable(loss, x) },
    }
}

/// # Why there is no gradient
impl<T: Float> Tensor<T> {
    /// Returns [`grad`](Tensor::grad), or an error that explains why there is none, as [`explain`] does.
    ///
    /// A backward that has nothing to do is not an error, so such a mistake is reported here:
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let w = Tensor::from([3.0, 4.0]);
    /// w.set_stop_gradient(false);
    /// let loss = (w.detach() * 2.0).sum();
    /// loss.backward()?;
    /// let error = w.try_grad().unwrap_err().to_string();
    /// assert!(error.contains("the loss, or what it was computed from, was\n  `detach()`ed at "));
    ///
    /// (&w * 2.0).sum().backward()?;
    /// assert_eq!(w.try_grad()?.to_vec(), [2.0, 2.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// This examines the tensor, and whether the last backward of this thread had anything to do. [`explain`]
    /// also examines the graph of a loss, and reports the line where the connection was lost.
    ///
    /// # Errors
    ///
    /// [`Error::NoGradient`] if [`grad`](Tensor::grad) is `None`.
    pub fn try_grad(&self) -> Result<Tensor<T>> {
        self.grad().ok_or_else(|| {
            let shape = self.shape().to_vec();
            Error::NoGradient { op: "try_grad", shape, why: why_absent(self) }
        })
    }
}

#[cold]
fn why_absent<T: Float>(x: &Tensor<T>) -> String {
    if x.stop_gradient() {
        return explain_stopped(x).to_string();
    }
    if let Some(node) = x.origin() {
        return format!("no gradient: {}", not_kept(node));
    }
    match last_idle() {
        Some(last) => {
            let origin = last.origin.map(|(op, at)| format!("{op} at {at}"));
            explain_stopped_loss(origin, last.lost, false).to_string()
        }
        None => "no gradient: it asks for one, but no backward has reached it since it was made or its \
                 gradient was taken away.\nCall `backward()` on a loss that was computed from it. If \
                 that was done, `explain(&loss, &x)` tells where the way from the loss was lost."
            .into(),
    }
}

fn explain_stopped_loss(origin: Option<String>, lost: Lost, x_stopped: bool) -> Explanation {
    let cut = origin.as_ref().map(|op| (op, "Take that away."));
    let lines = cause_lines("loss", cut, lost).unwrap_or_else(|| not_recorded(x_stopped));
    let status =
        if origin.is_some() { GradientStatus::LossCut } else { GradientStatus::LossNotRecorded };
    Explanation { status, lines }
}

fn explain_stopped<U: Element>(x: &Tensor<U>) -> Explanation {
    let origin = x.origin().map(op_at);
    let cut = origin.as_ref().map(|op| (op, "Take that away, and compute the loss after."));
    let lines = cause_lines("tensor", cut, x.lost()).unwrap_or_else(|| vec![ASKS_FOR_NONE.into()]);
    let status = if origin.is_some() { GradientStatus::Cut } else { GradientStatus::StopGradient };
    Explanation { status, lines }
}

/// The causes why a tensor is outside the graph, if any are known; for the result of an op, with a remedy.
fn cause_lines(what: &str, cut: Option<(&String, &str)>, lost: Lost) -> Option<Vec<String>> {
    let causes = lost.causes();
    let was = match cut {
        Some((op, _)) => format!("no gradient: the {what} came from {op}, but it was"),
        None if causes.is_empty() => return None,
        None => format!("no gradient: the {what}, or what it was computed from, was"),
    };
    let causes = causes.iter().map(|cause| format!("  {cause}"));
    let remedy = cut.map(|(_, remedy)| remedy.to_owned());
    Some([was].into_iter().chain(causes).chain(remedy).collect())
}

fn not_kept(node: &NodeRef) -> String {
    format!(
        "backward does not keep it, because the tensor is the result of {}.\n\
         To train it (as after `w = w * 0.1`), start again from its value: `w = w.detach()`, then \
         `w.set_stop_gradient(false)`.\n\
         To see the gradient of a result, call `retain_grads()` on it before backward.",
        op_at(node)
    )
}

fn op_at(node: &NodeRef) -> String {
    format!("{} at {}", node.name(), node.location)
}

const DATA: &str = "or their numbers went through plain data (`to_vec`, `item`, an ndarray), where \
                    nobody can follow them.";

fn not_recorded(x_stopped: bool) -> Vec<String> {
    let mut lines = vec![format!(
        "no gradient: the loss is not the result of a recorded op. All that it was computed from\n\
         wanted no gradient then (stop_gradient is true for new tensors; \
         `set_stop_gradient(false)` comes first),\n{DATA}"
    )];
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

const ASKS_FOR_NONE: &str = "\
no gradient: the tensor asks for none (stop_gradient is true).
Call `set_stop_gradient(false)` on it before anything is computed from it. If it is a result,
all that it was computed from asked for none then, or was plain data in between.";

fn path<'g>(from: &'g Edge, to: &Edge) -> Option<Vec<&'g NodeRef>> {
    let to = target(to)?;
    let is_there = |edge: &Edge| target(edge) == Some(to);
    if is_there(from) {
        return Some(Vec::new());
    }
    let path = walk_down(from, |node| !node.edges().iter().any(is_there));
    Some(path).filter(|path| !path.is_empty())
}

/// The most ops on a path, or ends of paths, that are listed.
const MAX_LISTED: usize = 12;

/// One line for each place, and the number of places left out.
fn listed(places: &[String]) -> impl Iterator<Item = String> {
    let more = places.len().saturating_sub(MAX_LISTED);
    let more = (more > 0).then(|| format!("  .. and {more} more"));
    places.iter().take(MAX_LISTED).map(|place| format!("  {place}")).chain(more)
}

fn flow_lines<U: Element>(path: &[&NodeRef], x: &Tensor<U>) -> Vec<String> {
    let mut lines = match path.len() {
        0 => vec!["a gradient flows: the tensor is the loss itself.".into()],
        1 => vec!["a gradient flows, through 1 op:".into()],
        n => vec![format!("a gradient flows, on the shortest way through {n} ops:")],
    };
    lines.extend(listed(&path.iter().map(|node| op_at(node)).collect::<Vec<_>>()));
    lines.push(match (x.origin(), U::grad(x)) {
        (_, Some(_)) => "A backward has written it.".into(),
        (Some(node), None) => not_kept(node),
        (None, None) if path.iter().any(|node| node.is_freed()) => {
            "A backward has freed this graph (one that failed frees it too), so no other one can write it: \
             compute the loss again."
                .into()
        }
        (None, None) => "No backward has written it yet.".into(),
    });
    lines
}

fn not_reachable<T: Float, U: Element>(loss: &Tensor<T>, x: &Tensor<U>) -> Vec<String> {
    let (mut reasons, mut ends, mut leaves, mut ops) = (Vec::new(), Vec::new(), 0, 0);
    walk_down(&loss.edge(), |node| {
        ops += 1;
        for (i, edge) in node.edges().iter().enumerate() {
            let input = format!("input {i} of {}", op_at(node));
            match edge.to() {
                Destination::None(Absent { lost, .. }) => match lost.text() {
                    Some(causes) => reasons.push(format!("{input}: {causes}")),
                    None => ends.push(input),
                },
                Destination::Leaf(leaf) => {
                    leaves += 1;
                    if let Some(causes) = for_any!(leaf, t => t.lost()).text() {
                        reasons.push(format!("{input}: a leaf now, and before {causes}"));
                    }
                }
                Destination::Node(..) => {}
            }
        }
        true
    });
    let of = crate::error::Plural(ops, "recorded op", "recorded ops");
    let mut lines = vec![format!("no gradient: none of the {of} behind the loss leads to it.")];
    if let (Some(node), Some(root)) = (x.origin(), loss.origin())
        && node.level >= root.level
    {
        lines.push(format!("It came from {}, which is no part of the loss.", op_at(node)));
    }
    if reasons.is_empty() && ends.is_empty() {
        lines.push("All their inputs want gradients, so it was not used at all.".into());
    }
    if !reasons.is_empty() {
        lines.push(
            "Ways to tensors that want a gradient end here: each input, or what it was computed \
             from, was"
                .into(),
        );
        lines.extend(listed(&reasons));
    }
    if !ends.is_empty() {
        let which = if reasons.is_empty() { "These" } else { "Other" };
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
