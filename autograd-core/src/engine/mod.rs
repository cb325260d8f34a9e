//! Backward: the order of the walk, the cotangents on their way, what leaves keep at the end.
//!
//! Every edge leads to a node of a lower level, so visiting waiting nodes from high to low visits
//! each once, after all that contribute to it: no count of dependencies, no second walk. What
//! leaves get is held back until the walk is done, so an error or a panic in the middle leaves
//! every `.grad` as it was.

mod after;
mod anomaly;
mod checkpoint;
pub(crate) mod draw;
mod forward;
mod frontier;
mod hooks;
mod parallel;

pub use after::after_backward;
pub use anomaly::{AnomalyScope, detect_anomaly};
pub use checkpoint::{checkpoint, is_recomputing};
pub use draw::Graph;
pub(crate) use forward::{Pushed, has_jvp, push};
pub use hooks::{GraphNode, HookHandle};
pub use parallel::backward_parallel;

use std::collections::{HashSet, VecDeque};
use std::panic::Location;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, Edge, Element, GradMode, Lost, Node, NodeHook, NodeRef, Pull, Sink, Slots, Tensor,
    for_any, is_observed,
};
use crate::ops::Float;
use frontier::{AddressMap, Frontier, Waiting, address};

/// What a backward keeps and records.
#[derive(Clone, Copy, Debug, Default)]
pub struct BackwardOptions {
    retain_graph: bool,
    create_graph: bool,
}

impl BackwardOptions {
    /// Neither retains the graph nor records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keep what ops saved, so that the same graph can be walked again.
    pub fn retain_graph(mut self, retain: bool) -> Self {
        self.retain_graph = retain;
        self
    }

    /// Record the backward itself, so that gradients can be differentiated again. Retains the
    /// graph.
    ///
    /// A leaf then keeps a gradient whose graph leads back to the leaf: call
    /// [`Tensor::clear_grad`] when done, or neither is ever freed. [`grad_with`] has no such cycle.
    pub fn create_graph(mut self, create: bool) -> Self {
        self.create_graph = create;
        self
    }
}

/// The gradients that leaves will get at the end.
#[derive(Default)]
struct Leaves {
    grads: Vec<(AnyTensor, AnyTensor)>,
    positions: AddressMap<usize>,
}

impl Leaves {
    fn add(&mut self, leaf: &AnyTensor, grad: AnyTensor) -> Result<()> {
        let key = leaf.address();
        let last = self.grads.len().wrapping_sub(1);
        let position = match self.grads.last() {
            Some((l, _)) if l.address() == key => Some(last),
            _ => self.positions.get(&key).copied(),
        };
        match position {
            Some(i) => {
                let (_, slot) = &mut self.grads[i];
                let before = std::mem::replace(slot, AnyTensor::Bool(Tensor::default()));
                *slot = sum(before, grad)?;
            }
            None => {
                self.positions.insert(key, self.grads.len());
                self.grads.push((leaf.clone(), grad));
            }
        }
        Ok(())
    }
}

/// Only these gradients are asked for, by `grad`.
struct Targets {
    /// Nodes on a path to a target, and those whose outputs are targets.
    useful: HashSet<*const ()>,
    /// Targets that are outputs of ops: position of the answer by node and output.
    outputs: Vec<(*const (), usize, usize)>,
    /// Targets that are leaves.
    leaves: AddressMap<usize>,
    found: Vec<Option<AnyTensor>>,
    /// Which targets an output was computed from.
    reached: Vec<bool>,
}

struct Pass {
    frontier: Frontier,
    leaves: Leaves,
    /// Tensors on the way that keep their gradient, and those gradients; nobody's in `grad`.
    retained: Option<Vec<(AnyTensor, AnyTensor)>>,
    targets: Option<Targets>,
}

impl Sink for Pass {
    fn wants(&self, edge: &Edge) -> bool {
        match (edge, &self.targets) {
            (Edge::None(_), _) => false,
            (_, None) => true,
            (Edge::Node(node, _), Some(targets)) => targets.useful.contains(&address(node.arc())),
            (Edge::Leaf(leaf), Some(targets)) => targets.leaves.contains_key(&leaf.address()),
        }
    }

    fn passes(&mut self, node: &Arc<Node>, grads: &Slots) -> bool {
        self.targets.as_mut().is_none_or(|targets| targets.take(node, grads))
    }

    fn deliver(&mut self, edge: &Edge, grad: AnyTensor) -> Result<()> {
        if !self.wants(edge) {
            return Ok(());
        }
        match edge {
            Edge::None(_) => Ok(()),
            Edge::Node(node, slot) => self.frontier.add(node.arc(), *slot as usize, grad, sum),
            Edge::Leaf(leaf) => self.leaves.add(leaf, grad),
        }
    }
}

/// The sum of two gradients, in the first one's buffer where nobody else holds it.
fn sum(a: AnyTensor, b: AnyTensor) -> Result<AnyTensor> {
    match (a, b) {
        (AnyTensor::Float32(a), AnyTensor::Float32(b)) => Ok((a + b).into()),
        (AnyTensor::Float64(a), AnyTensor::Float64(b)) => Ok((a + b).into()),
        (a, b) => Err(Error::ElementType {
            op: "backward",
            parameter: "a gradient".into(),
            expected: a.dtype(),
            found: b.dtype(),
        }),
    }
}

impl Pass {
    fn new(targets: Option<Targets>) -> Self {
        let retained = targets.is_none().then(Vec::new);
        Self { frontier: Frontier::default(), leaves: Leaves::default(), retained, targets }
    }

    fn walk(&mut self, options: BackwardOptions) -> Result<()> {
        let retain = options.retain_graph || options.create_graph;
        let mut retained = self.retained.take();
        while let Some(waiting) = self.frontier.pop() {
            visit(waiting, retain, options.create_graph, &mut retained, self)?;
        }
        self.retained = retained;
        Ok(())
    }
}

impl Targets {
    /// Notes that an output was computed from this leaf.
    fn reach(&mut self, leaf: &AnyTensor) {
        if let Some(&answer) = self.leaves.get(&leaf.address()) {
            self.reached[answer] = true;
        }
    }

    /// Takes the gradients that are asked for at this node; whether any lies behind it.
    fn take(&mut self, node: &Arc<Node>, grads: &Slots) -> bool {
        for &(target, slot, answer) in &self.outputs {
            if target == address(node) {
                self.found[answer] = grads.get(slot).cloned().flatten();
            }
        }
        node.rule.edges().iter().any(|edge| match edge {
            Edge::None(_) => false,
            Edge::Node(next, _) => self.useful.contains(&address(next.arc())),
            Edge::Leaf(leaf) => self.leaves.contains_key(&leaf.address()),
        })
    }
}

/// One node: hooks, and then its rule, which hands on to the sink.
#[inline]
fn visit<S: Sink>(
    mut waiting: Waiting,
    retain: bool,
    create_graph: bool,
    retained: &mut Option<Vec<(AnyTensor, AnyTensor)>>,
    sink: &mut S,
) -> Result<()> {
    let node = waiting.node;
    let hooks = node.hooks();
    if let Some(hooks) = &hooks {
        hooks::run_before(&node, hooks, &mut waiting.grads, retained)?;
    }
    if !sink.passes(&node, &waiting.grads) {
        return Ok(());
    }
    let mut pull = Pull { node: &node, grads: waiting.grads, retain, create_graph, sink };
    match hooks {
        Some(hooks) if hooks::has_after(&hooks) => pull_watched(pull, &hooks),
        _ if is_observed() => pull_watched(pull, &[]),
        _ => node.rule.pull(&mut pull),
    }
}

/// Visits a node and looks at the gradients of its inputs before they go on.
#[cold]
fn pull_watched(pull: Pull<'_>, hooks: &[NodeHook]) -> Result<()> {
    let node = pull.node;
    let edges = node.rule.edges();
    let mut outputs = pull.grads.clone();
    let mut held = Held { edges, grads: vec![None; edges.len()], sink: pull.sink };
    node.rule.pull(&mut Pull { sink: &mut held, ..pull })?;
    let Held { mut grads, sink, .. } = held;
    anomaly::check_gradients(node, &outputs, &grads)?;
    hooks::run_after(node, hooks, &mut grads, &mut outputs)?;
    for (edge, grad) in edges.iter().zip(grads) {
        if let Some(grad) = grad {
            sink.deliver(edge, grad)?;
        }
    }
    Ok(())
}

/// Gradients of a node's inputs that are held back.
struct Held<'a> {
    edges: &'a [Edge],
    grads: Vec<Option<AnyTensor>>,
    sink: &'a mut dyn Sink,
}

impl Sink for Held<'_> {
    fn wants(&self, edge: &Edge) -> bool {
        self.sink.wants(edge)
    }

    fn deliver(&mut self, edge: &Edge, grad: AnyTensor) -> Result<()> {
        // Rules deliver along their own edges, so the place of one is its position.
        let offset = std::ptr::from_ref(edge).addr().wrapping_sub(self.edges.as_ptr().addr());
        let Some(slot) = self.grads.get_mut(offset / size_of::<Edge>()) else {
            return self.sink.deliver(edge, grad);
        };
        *slot = Some(match slot.take() {
            Some(before) => sum(before, grad)?,
            None => grad,
        });
        Ok(())
    }
}

/// Starts gradients at the outputs. An output without a seed has one element and starts with 1.
fn start(
    pass: &mut Pass,
    op: &'static str,
    outputs: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
) -> Result<()> {
    for (output, seed) in outputs.iter().zip(seeds) {
        if output.stop_gradient() {
            continue;
        }
        let seed = match seed {
            Some(seed) if seed.dtype() != output.dtype() => {
                return Err(Error::ElementType {
                    op,
                    parameter: "seed".into(),
                    expected: output.dtype(),
                    found: seed.dtype(),
                });
            }
            Some(seed) if seed.shape() != output.shape() => {
                return Err(Error::SeedShape {
                    op,
                    output: described(output),
                    expected: output.shape().to_vec(),
                    found: seed.shape().to_vec(),
                });
            }
            Some(seed) => seed.clone(),
            None if output.shape().iter().product::<usize>() == 1 => {
                for_any!(output, t => ones_like(t))
            }
            None => {
                let with = match op {
                    "grad" => "`GradOptions::seeds`",
                    _ => "`backward_with`",
                };
                return Err(Error::Shape {
                    op,
                    parameter: described(output),
                    expected: format!("a tensor of one element, or a seed given with {with}"),
                    found: output.shape().to_vec(),
                });
            }
        };
        pass.deliver(&for_any!(output, t => t.edge()), seed)?;
    }
    Ok(())
}

/// A tensor by the op that it came from: `the output of mul (called at src/main.rs:7:13)`.
pub(crate) fn described(output: &AnyTensor) -> String {
    match for_any!(output, t => t.producer()) {
        Some((node, _)) => {
            format!("the output of {} (called at {})", node.rule.name(), node.location)
        }
        None => "the tensor itself, a leaf".into(),
    }
}

fn ones_like<T: Element>(tensor: &Tensor<T>) -> AnyTensor {
    Tensor::<T>::ones_like(tensor).into()
}

fn check_distinct(op: &'static str, name: &str, tensors: &[AnyTensor]) -> Result<()> {
    let mut seen = HashSet::new();
    for (i, tensor) in tensors.iter().enumerate() {
        if !seen.insert(tensor.address()) {
            return Err(Error::Duplicate { op, parameter: format!("{name}[{i}]") });
        }
    }
    Ok(())
}

fn check_counts(op: &'static str, outputs: usize, seeds: usize) -> Result<()> {
    if outputs == 0 {
        let what = "outputs, or more".into();
        return Err(Error::Count { op, what, expected: 1, found: 0 });
    }
    if outputs != seeds {
        let what = "seeds, one for each output".into();
        return Err(Error::Count { op, what, expected: outputs, found: seeds });
    }
    Ok(())
}

/// Backward from several outputs at once.
///
/// `seeds[i]` is the gradient that output `i` starts with, of its shape and element type; `None`
/// is 1 for an output of one element. Outputs that want no gradient are passed over.
///
/// ```
/// use autograd_core::{BackwardOptions, Tensor, backward};
///
/// let x = Tensor::from(2.0);
/// x.set_stop_gradient(false);
/// let y = &x * &x;
/// let z = &y * &y * &y;
/// let seeds = [Some(Tensor::from(10.0).into()), Some(Tensor::from(1.0).into())];
/// backward(&[y.into(), z.into()], &seeds, BackwardOptions::new())?;
/// assert_eq!(x.grad().unwrap().item(), 232.0);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Count`] for no outputs or another number of seeds, [`Error::Duplicate`] for the same
/// output twice, [`Error::SeedShape`] and [`Error::ElementType`] for a seed that does not fit, and
/// all that a walk can give: a freed graph, a changed saved tensor, a wrong gradient or an error
/// from user code. No gradient is written then.
pub fn backward(
    outputs: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
    options: BackwardOptions,
) -> Result<()> {
    check_counts("backward", outputs.len(), seeds.len())?;
    check_distinct("backward", "outputs", outputs)?;
    anomaly::check()?;
    let running = after::Running::start();
    {
        let _mode = GradMode::set(options.create_graph);
        let mut pass = Pass::new(None);
        start(&mut pass, "backward", outputs, seeds)?;
        pass.walk(options)?;
        commit(pass.leaves.grads, pass.retained.unwrap_or_default())?;
    }
    running.finish()
}

/// [`backward()`] that adds to `.grad` of these inputs only, leaves or outputs of ops: no other
/// tensor's changes, and only ops on the way to them run. An input that no output was computed
/// from gets nothing.
///
/// ```
/// use autograd_core::{BackwardOptions, Tensor, backward_to};
///
/// let (x, y) = (Tensor::from(2.0), Tensor::from(5.0));
/// x.set_stop_gradient(false);
/// y.set_stop_gradient(false);
/// let loss = &x * &y;
/// backward_to(&[loss.into()], &[None], &[x.clone().into()], BackwardOptions::new())?;
/// assert_eq!(x.grad().unwrap().item(), 5.0);
/// assert!(y.grad().is_none());
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Count`] for no inputs, [`Error::Duplicate`] for the same input twice; for the rest see
/// [`backward()`].
pub fn backward_to(
    outputs: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
    inputs: &[AnyTensor],
    options: BackwardOptions,
) -> Result<()> {
    let running = after::Running::start();
    {
        let found = find("backward_to", outputs, inputs, seeds, options, false)?;
        let _mode = GradMode::set(options.create_graph);
        let mut all = inputs.iter().zip(found).filter_map(|(x, grad)| Some((x.clone(), grad?)));
        let (leaves, others) = all.by_ref().partition(|(x, _)| for_any!(x, t => t.is_leaf()));
        commit(leaves, others)?;
    }
    running.finish()
}

/// Gives every leaf its gradient, and every tensor on the way that keeps one; all of them, or none
/// if a hook fails.
fn commit(
    leaves: Vec<(AnyTensor, AnyTensor)>,
    retained: Vec<(AnyTensor, AnyTensor)>,
) -> Result<()> {
    let mut done = retained;
    done.reserve_exact(leaves.len());
    for (leaf, grad) in leaves {
        let grad = hooks::run_leaf_hooks(&leaf, grad)?;
        done.push((leaf, grad));
    }
    for (leaf, grad) in done {
        match (leaf, grad) {
            (AnyTensor::Float32(leaf), AnyTensor::Float32(grad)) => accumulate(&leaf, grad),
            (AnyTensor::Float64(leaf), AnyTensor::Float64(grad)) => accumulate(&leaf, grad),
            _ => unreachable!("a gradient has its leaf's element type"),
        }
    }
    Ok(())
}

/// A gradient to keep; see [`Tensor::owned`].
fn own(grad: AnyTensor) -> AnyTensor {
    match grad {
        AnyTensor::Float32(grad) => grad.owned().into(),
        AnyTensor::Float64(grad) => grad.owned().into(),
        other => other,
    }
}

fn accumulate<T: Float>(tensor: &Tensor<T>, grad: Tensor<T>) {
    tensor.update_grad(|before| match before {
        Some(before) => before + grad,
        None => grad.owned(),
    });
}

/// What [`grad_with`] keeps, records and allows.
pub struct GradOptions<T: Element> {
    seeds: Option<Vec<Option<Tensor<T>>>>,
    allow_unused: bool,
    materialize: bool,
    retain_graph: Option<bool>,
    create_graph: bool,
}

impl<T: Element> Default for GradOptions<T> {
    fn default() -> Self {
        Self {
            seeds: None,
            allow_unused: false,
            materialize: false,
            retain_graph: None,
            create_graph: false,
        }
    }
}

impl<T: Element> GradOptions<T> {
    /// Seeds of 1, no unused inputs, nothing retained or recorded.
    pub fn new() -> Self {
        Self::default()
    }

    /// What each output's gradient starts with.
    pub fn seeds(mut self, seeds: Vec<Option<Tensor<T>>>) -> Self {
        self.seeds = Some(seeds);
        self
    }

    /// Give `None` for inputs that no output was computed from, instead of an error.
    pub fn allow_unused(mut self, allow: bool) -> Self {
        self.allow_unused = allow;
        self
    }

    /// Give zeros for inputs that no output was computed from, instead of an error or `None`.
    pub fn materialize_grads(mut self, materialize: bool) -> Self {
        self.materialize = materialize;
        self
    }

    /// Keep what ops saved for another walk; as `create_graph` unless set.
    pub fn retain_graph(mut self, retain: bool) -> Self {
        self.retain_graph = Some(retain);
        self
    }

    /// Record the gradients' computation, so that they can be differentiated again.
    pub fn create_graph(mut self, create: bool) -> Self {
        self.create_graph = create;
        self
    }
}

/// The gradients of outputs of one element each with respect to inputs, leaving `.grad` alone.
/// Several outputs are summed.
///
/// ```
/// use autograd_core::{Tensor, grad};
///
/// let x = Tensor::from(3.0);
/// x.set_stop_gradient(false);
/// let y = &x * &x;
/// assert_eq!(grad(&[&y], &[&x])?[0].item(), 6.0);
/// assert!(x.grad().is_none());
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Unused`] for an input that no output was computed from; for the rest see
/// [`backward()`].
pub fn grad<T: Float, U: Float>(
    outputs: &[&Tensor<T>],
    inputs: &[&Tensor<U>],
) -> Result<Vec<Tensor<U>>> {
    let grads = grad_with(outputs, inputs, GradOptions::new())?;
    let present = |(position, grad): (usize, Option<_>)| grad.ok_or(Error::Unused { position });
    grads.into_iter().enumerate().map(present).collect()
}

/// [`grad`] with options.
///
/// ```
/// use autograd_core::{GradOptions, Tensor, grad_with};
///
/// let x = Tensor::from(3.0);
/// x.set_stop_gradient(false);
/// let y = &x * &x * &x;
/// let create = || GradOptions::new().create_graph(true);
/// let dx = grad_with(&[&y], &[&x], create())?.remove(0).unwrap();
/// let d2x = grad_with(&[&dx], &[&x], create())?.remove(0).unwrap();
/// assert_eq!((dx.item(), d2x.item()), (27.0, 18.0));
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// As [`grad`].
pub fn grad_with<T: Float, U: Float>(
    outputs: &[&Tensor<T>],
    inputs: &[&Tensor<U>],
    options: GradOptions<T>,
) -> Result<Vec<Option<Tensor<U>>>> {
    let seeds = options.seeds.unwrap_or_else(|| vec![None; outputs.len()]);
    let outputs: Vec<AnyTensor> = outputs.iter().map(|&t| t.clone().into()).collect();
    let inputs: Vec<AnyTensor> = inputs.iter().map(|&t| t.clone().into()).collect();
    let seeds: Vec<_> = seeds.into_iter().map(|seed| seed.map(AnyTensor::from)).collect();
    let walk = BackwardOptions {
        retain_graph: options.retain_graph.unwrap_or(options.create_graph),
        create_graph: options.create_graph,
    };
    let all = !options.allow_unused && !options.materialize;
    let found = find("grad", &outputs, &inputs, &seeds, walk, all)?;
    let _mode = GradMode::set(options.create_graph);
    let mut grads = Vec::with_capacity(found.len());
    for (position, grad) in found.into_iter().enumerate() {
        match grad.map(own) {
            None if options.materialize => {
                grads.push(U::peek(&inputs[position]).map(Tensor::zeros_like));
            }
            None if !options.allow_unused => return Err(Error::Unused { position }),
            grad => grads.push(grad.and_then(U::unwrap)),
        }
    }
    Ok(grads)
}

pub(crate) fn grad_any(
    outputs: &[AnyTensor],
    inputs: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
    options: BackwardOptions,
) -> Result<Vec<Option<AnyTensor>>> {
    let found = find("grad", outputs, inputs, seeds, options, false)?;
    // Two inputs may have got the same tensor, which may be a seed or saved too.
    let _mode = GradMode::set(options.create_graph);
    Ok(found.into_iter().map(|grad| grad.map(own)).collect())
}

/// Walks on the ways to the inputs only; the gradients that came to them. With `all`, an input that
/// cannot be reached is an error before the walk.
fn find(
    op: &'static str,
    outputs: &[AnyTensor],
    inputs: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
    options: BackwardOptions,
    all: bool,
) -> Result<Vec<Option<AnyTensor>>> {
    check_counts(op, outputs.len(), seeds.len())?;
    if inputs.is_empty() {
        let what = "inputs, or more".into();
        return Err(Error::Count { op, what, expected: 1, found: 0 });
    }
    check_distinct(op, "outputs", outputs)?;
    check_distinct(op, "inputs", inputs)?;
    anomaly::check()?;
    let _mode = GradMode::set(options.create_graph);
    let targets = find_targets(outputs, inputs);
    if let (true, Some(position)) = (all, targets.reached.iter().position(|reached| !reached)) {
        return Err(Error::Unused { position });
    }
    let mut pass = Pass::new(Some(targets));
    start(&mut pass, op, outputs, seeds)?;
    pass.walk(options)?;
    let Pass { leaves, targets: Some(mut targets), .. } = pass else {
        unreachable!("this pass has targets");
    };
    for (leaf, grad) in leaves.grads {
        if let Some(&answer) = targets.leaves.get(&leaf.address()) {
            targets.found[answer] = Some(grad);
        }
    }
    Ok(targets.found)
}

/// Shows the nodes behind an edge, the nearest first, each once and with the one that led to it,
/// as long as `go_on` says so.
pub(crate) fn walk_down(from: &Edge, mut go_on: impl FnMut(&NodeRef, Option<&NodeRef>) -> bool) {
    let Edge::Node(first, _) = from else { return };
    let mut seen = HashSet::from([address(first.arc())]);
    let mut waiting = VecDeque::from([(first.clone(), None)]);
    while let Some((node, above)) = waiting.pop_front() {
        if !go_on(&node, above.as_ref()) {
            return;
        }
        for edge in node.rule.edges() {
            if let Edge::Node(below, _) = edge
                && seen.insert(address(below.arc()))
            {
                waiting.push_back((below.clone(), Some(node.clone())));
            }
        }
    }
}

/// Whether an edge that `found` holds for can be reached along this one.
pub(crate) fn reaches(from: &Edge, found: impl Fn(&Edge) -> bool) -> bool {
    let mut seen = HashSet::new();
    let mut waiting = vec![from.clone()];
    while let Some(edge) = waiting.pop() {
        if found(&edge) {
            return true;
        }
        if let Edge::Node(node, _) = &edge
            && seen.insert(address(node.arc()))
        {
            waiting.extend(node.rule.edges().iter().cloned());
        }
    }
    false
}

/// Which nodes lie between outputs and inputs.
fn find_targets(outputs: &[AnyTensor], inputs: &[AnyTensor]) -> Targets {
    let mut targets = Targets {
        useful: HashSet::new(),
        outputs: Vec::new(),
        leaves: AddressMap::default(),
        found: vec![None; inputs.len()],
        reached: vec![false; inputs.len()],
    };
    for (answer, input) in inputs.iter().enumerate() {
        match for_any!(input, t => t.edge()) {
            Edge::None(_) => {}
            Edge::Node(node, slot) => {
                let key = address(node.arc());
                targets.outputs.push((key, slot as usize, answer));
                targets.useful.insert(key);
            }
            Edge::Leaf(leaf) => {
                targets.leaves.insert(leaf.address(), answer);
            }
        }
    }
    // Depth first with its own stack; a node is left once all its edges have been.
    let mut seen = HashSet::new();
    let mut path: Vec<(Arc<Node>, usize)> = Vec::new();
    for output in outputs {
        match for_any!(output, t => t.edge()) {
            Edge::Node(node, _) if seen.insert(address(node.arc())) => {
                path.push((Arc::clone(node.arc()), 0));
            }
            Edge::Leaf(leaf) => targets.reach(&leaf),
            _ => {}
        }
        while let Some((node, next)) = path.last_mut() {
            let key = address(node);
            let Some(edge) = node.rule.edges().get(*next) else {
                let done = targets.useful.contains(&key);
                path.pop();
                if let (true, Some((above, _))) = (done, path.last()) {
                    targets.useful.insert(address(above));
                }
                continue;
            };
            *next += 1;
            match edge {
                Edge::None(_) => {}
                Edge::Leaf(leaf) => {
                    if targets.leaves.contains_key(&leaf.address()) {
                        targets.reach(leaf);
                        targets.useful.insert(key);
                    }
                }
                Edge::Node(below, _) => {
                    let below = Arc::clone(below.arc());
                    if seen.insert(address(&below)) {
                        path.push((below, 0));
                    } else if targets.useful.contains(&address(&below)) {
                        targets.useful.insert(key);
                    }
                }
            }
        }
    }
    for &(node, _, answer) in &targets.outputs {
        targets.reached[answer] = seen.contains(&node);
    }
    targets
}

/// # Gradients
impl<T: Float> Tensor<T> {
    /// Says whether gradients stop at this tensor. `false` on a new tensor asks for its gradient;
    /// `true` on the result of an op cuts the graph there for what is computed from it later.
    ///
    /// [`explain`](crate::explain()) tells the line of a call that cut.
    #[doc(alias = "requires_grad_")]
    #[track_caller]
    pub fn set_stop_gradient(&self, stop: bool) {
        self.store_stop_gradient(stop, Location::caller());
    }

    /// Computes the gradients of this tensor of one element and adds them to `.grad` of every leaf
    /// it was computed from. Frees what the ops saved.
    ///
    /// A tensor that wants no gradient is passed over: nothing is computed.
    ///
    /// Backwards may run at the same time on threads that share leaves, and nothing is lost. Each
    /// adds its gradients when it is done, so the order of those sums, and with it their last bit,
    /// is that of the clock. Where the same bits are wanted each time, let
    /// [`backward_parallel`](crate::backward_parallel()) run them: it adds in the order of its items.
    ///
    /// ```
    /// use autograd_core::{Error, Tensor, backward_parallel};
    ///
    /// let w = Tensor::from([0.5, -0.25]);
    /// w.set_stop_gradient(false);
    /// let loss = |i: usize| Ok::<_, Error>((&w * (i as f64)).sin().sum());
    ///
    /// // All gradients are there, their sum in one order or another.
    /// std::thread::scope(|threads| {
    ///     for i in 0..4 {
    ///         threads.spawn(move || loss(i)?.backward());
    ///     }
    /// });
    /// let sum = w.grad().unwrap();
    ///
    /// // The same sum in the order 0, 1, 2, 3, whatever the number of threads.
    /// w.clear_grad();
    /// backward_parallel(4, 2, loss)?;
    /// let ordered = w.grad().unwrap();
    /// assert!((ordered - sum).abs().max().item() < 1e-12);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if there is more than one element (see [`Tensor::backward_with`]); for the
    /// rest see [`backward()`]. No gradient is written then, and all tensors stay usable.
    pub fn backward(&self) -> Result<()> {
        self.backward_options(BackwardOptions::new())
    }

    /// [`Tensor::backward`] that starts with a given gradient, of this tensor's shape.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(vec![1.0, 2.0]);
    /// x.set_stop_gradient(false);
    /// (&x * 2.0).backward_with(&Tensor::from(vec![1.0, 10.0]))?;
    /// assert_eq!(x.grad().unwrap().to_vec(), [2.0, 20.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::SeedShape`] if the seed has another shape; for the rest see [`backward()`].
    pub fn backward_with(&self, seed: &Tensor<T>) -> Result<()> {
        let seeds = [Some(seed.clone().into())];
        backward(&[self.clone().into()], &seeds, BackwardOptions::new())
    }

    /// [`Tensor::backward`] with options: retain the graph, record the backward.
    ///
    /// # Errors
    ///
    /// As [`Tensor::backward`].
    pub fn backward_options(&self, options: BackwardOptions) -> Result<()> {
        backward(&[self.clone().into()], &[None], options)
    }

    /// The gradient kept here, if any backward reached this tensor.
    pub fn grad(&self) -> Option<Tensor<T>> {
        self.grad_slot()
    }

    /// Puts a gradient of this tensor's shape in place, or takes the one there away. Later
    /// backwards add to it; the tensor given here is not changed by that.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the shape differs, [`Error::Unsupported`] on the output of an op.
    pub fn set_grad(&self, grad: Option<&Tensor<T>>) -> Result<()> {
        if !self.is_leaf() {
            let why = "only a leaf keeps a gradient that is set from outside".into();
            return Err(Error::Unsupported { op: "set_grad", why });
        }
        if let Some(grad) = grad
            && grad.shape() != self.shape()
        {
            return Err(Error::Shape {
                op: "set_grad",
                parameter: "grad".into(),
                expected: format!("of shape {:?}", self.shape()),
                found: grad.shape().to_vec(),
            });
        }
        self.replace_grad(grad.map(Tensor::alias));
        Ok(())
    }

    /// Takes the gradient away.
    #[doc(alias = "zero_grad")]
    #[doc(alias = "clear_gradient")]
    pub fn clear_grad(&self) {
        self.replace_grad(None);
    }

    /// A gradient to keep: not shared with any other handle, and where the backward is recorded
    /// still connected with what it was computed from.
    fn owned(self) -> Tensor<T> {
        if self.is_recorded() {
            return match self.producer() {
                Some(_) => self.snapshot(),
                // A seed that wants a gradient itself.
                None => self.reshape(self.shape_owned()),
            };
        }
        match self.try_into_value() {
            Ok(value) => Tensor::new(value),
            Err(shared) => shared.alias(),
        }
        .with_lost(Lost::of_gradient())
    }
}

impl<T: Element> Tensor<T> {
    /// The same data as a tensor of its own, outside the graph. Changes in place are seen by both.
    ///
    /// [`explain`](crate::explain()) tells the line of this call where a gradient ends here.
    #[track_caller]
    pub fn detach(&self) -> Tensor<T> {
        self.detached_at(Location::caller())
    }
}
