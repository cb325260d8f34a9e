//! Which operators become one pass: each joins those whose results it reads, where nothing that
//! stands between them has read these or is read by it, or one that reads the same.

use super::super::ir::{Dims, Graph, Op, OpId, VarId};
use super::super::kind::Kind;
use super::super::plan::{Mode, Read, Step, is_ordered, reads};
use super::super::slots::adds_row;
use super::lower::Parts;
use super::{Chain, Head, surely_same};
use crate::array::DType;

/// So many steps back a chain is looked for, so that a plan takes time in proportion to its length.
const WINDOW: usize = 48;
/// So many operators a chain has at most: their blocks should stay in the caches.
const MOST: usize = 48;

/// A step that is not closed yet.
enum Part {
    Step(Step),
    Chain(Open),
}

/// A chain that further operators may join.
struct Open {
    head: Option<Head>,
    ops: Vec<OpId>,
    /// Lengths of the axes of all that it computes but for gradients that are added up.
    dims: Dims,
}

/// The steps of a plan, from the operators that run, their modes, and what is asked for at the end.
pub(in super::super) fn steps(
    graph: &Graph,
    runs: &[bool],
    modes: &[Mode],
    fetched: &[VarId],
) -> Vec<Step> {
    let running = || (0..graph.ops.len()).filter(|&id| runs[id]);
    let mut uses = vec![0_usize; graph.vars.len()];
    fetched.iter().for_each(|&var| uses[var] += 1);
    for id in running() {
        for var in all_reads(graph, id, &modes[id]) {
            uses[var] += 1;
        }
    }
    let mut joining =
        Joining { graph, modes, uses, parts: Vec::new(), home: vec![None; graph.vars.len()] };
    running().for_each(|id| joining.add(id));
    let Joining { parts, .. } = joining;
    let parts: Vec<Part> = parts.into_iter().flatten().collect();
    let mut asked = vec![false; graph.vars.len()];
    fetched.iter().for_each(|&var| asked[var] = true);
    for part in &parts {
        part.reads(graph, modes).into_iter().for_each(|var| asked[var] = true);
    }
    parts.into_iter().map(|part| part.close(graph, modes, &asked)).collect()
}

/// What an operator reads where it stands by itself.
fn all_reads(graph: &Graph, id: OpId, mode: &Mode) -> Vec<VarId> {
    let read = reads(graph, &graph.ops[id], mode).into_iter();
    read.filter(|(_, read)| *read != Read::Not).map(|(var, _)| var).collect()
}

struct Joining<'a> {
    graph: &'a Graph,
    modes: &'a [Mode],
    uses: Vec<usize>,
    /// In an order in which they can run; none where one became a part of a later one.
    parts: Vec<Option<Part>>,
    /// The part that computes a variable.
    home: Vec<Option<usize>>,
}

impl Joining<'_> {
    fn add(&mut self, id: OpId) {
        let (graph, mode) = (self.graph, &self.modes[id]);
        let op = &graph.ops[id];
        let Some(dims) = dims(graph, op, mode) else {
            let inputs = reads(graph, op, mode);
            let step = Step {
                op: id,
                mode: mode.clone(),
                inputs,
                outputs: op.outputs.clone(),
                chain: None,
                wave: 0,
            };
            return self.put(Part::Step(step));
        };
        let reads = chain_reads(graph, op, mode);
        let mut near: Vec<usize> = reads.iter().filter_map(|&var| self.home[var]).collect();
        near.sort_unstable_by(|a, b| b.cmp(a));
        near.dedup();
        let fits: Vec<usize> =
            near.iter().copied().filter(|&at| self.fits(at, dims, &reads, id)).collect();
        // The latest first: an earlier one may be read by it.
        let mut joined: Vec<usize> = Vec::new();
        let mut size = 1;
        for &at in &fits {
            let more = self.parts[at].as_ref().map_or(0, Part::size);
            let heads = joined.iter().chain([&at]).filter(|&&at| self.has_head(at)).count();
            if heads < 2 && size + more <= MOST && !self.is_read_after(at, &joined) {
                joined.push(at);
                size += more;
            }
        }
        if joined.is_empty() {
            // One of these, where all that the operator reads is there already; or else one that
            // reads the same.
            let last = near.first().map_or(0, |&last| last + 1);
            let siblings = (last..self.parts.len()).rev().take(WINDOW);
            let siblings = siblings.filter(|&at| self.shares(at, dims, &reads));
            let places = fits.iter().copied().filter(|&at| at + 1 >= last).chain(siblings);
            let ordered = is_ordered(graph, id);
            let mut places = places.filter(|&at| !ordered || !self.is_ordered_after(at, &[]));
            let is_open = |at: &usize| match &self.parts[*at] {
                Some(Part::Chain(open)) => open.ops.len() < MOST,
                _ => false,
            };
            if let Some(at) = places.find(is_open)
                && let Some(Part::Chain(open)) = &mut self.parts[at]
            {
                open.ops.push(id);
                op.outputs.iter().for_each(|&var| self.home[var] = Some(at));
                return;
            }
        }
        let mut open = Open { head: None, ops: Vec::new(), dims: dims.clone() };
        for at in joined {
            match self.parts[at].take() {
                Some(Part::Chain(other)) => {
                    open.head = open.head.or(other.head);
                    open.ops.extend(other.ops);
                }
                Some(Part::Step(step)) => open.head = Some(Head { matmul: step.op, row: None }),
                None => {}
            }
        }
        match &mut open.head {
            Some(head) if open.ops.is_empty() && adds_to(graph, op, head) => head.row = Some(id),
            _ => open.ops.push(id),
        }
        // As they were built: what reads comes after what is read.
        open.ops.sort_unstable();
        self.put(Part::Chain(open));
    }

    fn put(&mut self, part: Part) {
        let at = self.parts.len();
        part.computes(self.graph).into_iter().for_each(|var| self.home[var] = Some(at));
        self.parts.push(Some(part));
    }

    /// Whether an operator that reads these can be a part of a chain.
    fn fits(&self, at: usize, dims: &Dims, reads: &[VarId], id: OpId) -> bool {
        let mine = || reads.iter().filter(|&&var| self.home[var] == Some(at));
        let whole = mine().all(|&var| self.graph.vars[var].form.dims == *dims);
        let near = at + WINDOW > self.parts.len();
        near && whole
            && match &self.parts[at] {
                Some(Part::Chain(open)) => open.dims == *dims,
                // A product that only this operator reads.
                Some(Part::Step(step)) => {
                    let op = &self.graph.ops[step.op];
                    let plain = step.mode == Mode::Plain && op.kind.is_matmul();
                    let floats = self.graph.vars[op.outputs[0]].form.dtype.is_float();
                    let mode = &self.modes[id];
                    plain && floats && *mode == Mode::Plain && self.uses[op.outputs[0]] == 1
                }
                None => false,
            }
    }

    /// Whether a chain of this shape reads something of that too.
    fn shares(&self, at: usize, dims: &Dims, reads: &[VarId]) -> bool {
        let Some(Part::Chain(open)) = &self.parts[at] else { return false };
        let whole = reads.iter().filter(|&&var| self.graph.vars[var].form.dims == *dims);
        let theirs = open.reads(self.graph, self.modes);
        open.dims == *dims && whole.into_iter().any(|var| theirs.contains(var))
    }

    fn has_head(&self, at: usize) -> bool {
        match &self.parts[at] {
            Some(Part::Chain(open)) => open.head.is_some(),
            Some(Part::Step(_)) => true,
            None => false,
        }
    }

    /// Whether a later part than this one must run after it, but for those `among` which it is.
    fn is_read_after(&self, at: usize, among: &[usize]) -> bool {
        if self.parts[at].as_ref().is_some_and(|part| part.is_ordered(self.graph))
            && self.is_ordered_after(at, among)
        {
            return true;
        }
        let later = (at + 1..self.parts.len()).filter(|later| !among.contains(later));
        later.filter_map(|later| self.parts[later].as_ref()).any(|part| {
            let reads = part.reads(self.graph, self.modes);
            reads.iter().any(|&var| self.home[var] == Some(at))
        })
    }
}

impl Joining<'_> {
    /// Whether it can be seen from outside when one of the later parts runs, but for these.
    fn is_ordered_after(&self, at: usize, but: &[usize]) -> bool {
        let later = (at + 1..self.parts.len()).filter(|later| !but.contains(later));
        later.filter_map(|later| self.parts[later].as_ref()).any(|part| part.is_ordered(self.graph))
    }
}

impl Part {
    /// Whether it can be seen from outside when it runs.
    fn is_ordered(&self, graph: &Graph) -> bool {
        match self {
            Self::Step(step) => is_ordered(graph, step.op),
            Self::Chain(open) => open.ops.iter().any(|&op| is_ordered(graph, op)),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Step(_) => 1,
            Self::Chain(open) => open.ops.len(),
        }
    }

    fn computes(&self, graph: &Graph) -> Vec<VarId> {
        match self {
            Self::Step(step) => step.outputs.clone(),
            Self::Chain(open) => open.computes(graph),
        }
    }

    /// What it reads that others compute.
    fn reads(&self, graph: &Graph, modes: &[Mode]) -> Vec<VarId> {
        match self {
            Self::Step(step) => {
                let read = step.inputs.iter().filter(|(_, read)| *read != Read::Not);
                read.map(|(var, _)| *var).collect()
            }
            // It may be closed as an operator by itself.
            Self::Chain(Open { head: None, ops, .. }) if ops.len() == 1 => {
                all_reads(graph, ops[0], &modes[ops[0]])
            }
            Self::Chain(open) => open.reads(graph, modes),
        }
    }

    fn close(self, graph: &Graph, modes: &[Mode], asked: &[bool]) -> Step {
        let open = match self {
            Self::Step(step) => return step,
            Self::Chain(open) => open,
        };
        let inputs = open.reads(graph, modes);
        let outputs: Vec<VarId> =
            open.computes(graph).into_iter().filter(|&var| asked[var]).collect();
        // What it may be written over.
        let over = open.head.is_none()
            && inputs.first().is_some_and(|&var| graph.vars[var].form.dims == open.dims);
        let Open { head, ops, dims } = open;
        let last = ops.last().copied().or(head.and_then(|head| head.row));
        let op = last.or(head.map(|head| head.matmul)).unwrap_or_default();
        let alone = head.is_none() && ops.len() == 1;
        let (inputs_of, outputs_of) = (&inputs, &outputs);
        let parts =
            Parts { graph, head, ops, dims: &dims, inputs: inputs_of, outputs: outputs_of, over };
        let chain = Chain::new(parts);
        if alone && !chain.pays() {
            // One operator in one loop is no chain.
            let (of, mode) = (&graph.ops[op], modes[op].clone());
            let inputs = reads(graph, of, &mode);
            return Step { op, mode, inputs, outputs: of.outputs.clone(), chain: None, wave: 0 };
        }
        let inputs = inputs.into_iter().map(|var| (var, Read::Keep)).collect();
        Step { op, mode: Mode::Chain, inputs, outputs, chain: Some(Box::new(chain)), wave: 0 }
    }
}

impl Open {
    /// All that it computes and others may ask for.
    fn computes(&self, graph: &Graph) -> Vec<VarId> {
        let head = self.head.map(|head| graph.ops[head.row.unwrap_or(head.matmul)].outputs[0]);
        let ops = self.ops.iter().flat_map(|&op| &graph.ops[op].outputs);
        head.into_iter().chain(ops.copied()).collect()
    }

    /// What it reads of others, each once: what may be written over comes first, but for a head.
    fn reads(&self, graph: &Graph, modes: &[Mode]) -> Vec<VarId> {
        let mut own = self.computes(graph);
        let mut found: Vec<VarId> = Vec::new();
        if let Some(head) = self.head {
            let product = &graph.ops[head.matmul];
            found.extend(&product.inputs);
            found.extend(head.row.map(|row| graph.ops[row].inputs[1]));
            own.extend(&product.outputs);
        }
        let head = found.len();
        for &id in &self.ops {
            for var in chain_reads(graph, &graph.ops[id], &modes[id]) {
                if !own.contains(&var) && !found[head..].contains(&var) {
                    found.push(var);
                }
            }
        }
        found
    }
}

/// Whether an operator adds a row to the product of a head.
fn adds_to(graph: &Graph, op: &Op, head: &Head) -> bool {
    adds_row(graph, op) && graph.ops[head.matmul].outputs[0] == op.inputs[0]
}

/// The shape of all that a chain with this operator computes, if there can be one.
fn dims<'g>(graph: &'g Graph, op: &Op, mode: &Mode) -> Option<&'g Dims> {
    let forward = match (&op.kind, mode) {
        (Kind::Grad { of, .. }, Mode::Direct { deferred: false } | Mode::Bias) => &graph.ops[*of],
        (Kind::Grad { .. }, _) => return None,
        (_, Mode::Plain) => op,
        _ => return None,
    };
    let dims = |var: VarId| &graph.vars[var].form.dims;
    let whole = dims(*forward.outputs.first()?);
    let same = forward.outputs.iter().all(|&var| dims(var) == whole);
    (forward.kind.chains() && same).then_some(whole)
}

/// What an operator of a chain reads: the gradient that goes through it first, and operands that the
/// rule itself does not need only where they say to what shape it is to be added up.
fn chain_reads(graph: &Graph, op: &Op, mode: &Mode) -> Vec<VarId> {
    let Kind::Grad { of, wants, .. } = &op.kind else { return op.inputs.clone() };
    let forward = &graph.ops[*of];
    let dims = &graph.vars[forward.outputs[0]].form.dims;
    let (n, m) = (forward.inputs.len(), forward.outputs.len());
    let mut found = op.inputs[n + m..].to_vec();
    // What a row is added to has the shape of the sum.
    if *mode == Mode::Bias || adds_row(graph, forward) {
        return found;
    }
    let is_mask = |var: &VarId| graph.vars[*var].form.dtype == DType::Bool;
    let masks: Vec<bool> = forward.inputs.iter().map(is_mask).collect();
    let needs = forward.kind.chain_needs(wants, &masks);
    for (at, &input) in forward.inputs.iter().enumerate() {
        let own = &graph.vars[input].form.dims;
        let known = surely_same(own, dims) || (n > 1 && !own.contains(&None));
        let asked = n > 1 && wants.contains(&at) && !known;
        if needs.inputs[at] || asked {
            found.push(input);
        }
    }
    let outputs = forward.outputs.iter().zip(&needs.outputs);
    found.extend(outputs.filter(|(_, needed)| **needed).map(|(output, _)| *output));
    found
}
