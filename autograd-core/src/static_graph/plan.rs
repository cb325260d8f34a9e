//! What one run does, worked out once: which operators run, which leave a record for their
//! gradients, and where each value is read for the last time.

use super::ir::{Graph, Op, OpId, Role, VarId};
use super::kind::Kind;

/// The steps of a run that fetches certain variables.
#[derive(Debug)]
pub(super) struct Plan {
    /// As they were when the plan was made; a program that changes gets new plans.
    pub(super) graph: Graph,
    pub(super) steps: Vec<Step>,
    /// Fed variables that are read.
    pub(super) feeds: Vec<VarId>,
    /// Kept variables that are read.
    pub(super) reads: Vec<VarId>,
    pub(super) fetched: Vec<VarId>,
    /// Whether kept variables get new values.
    pub(super) writes: bool,
    /// For each variable, whether gradients flow to it.
    pub(super) wants: Vec<bool>,
}

/// One operator's turn.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) op: OpId,
    pub(super) mode: Mode,
    /// The operator's inputs: whether each is read at all, and whether for the last time.
    pub(super) inputs: Vec<Read>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Not read: a gradient that finds it in the record.
    Not,
    Keep,
    /// For the last time: its buffer may be written over.
    Take,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Computes, and leaves nothing.
    Plain,
    /// Leaves a record for a gradient.
    Recorded,
    /// A gradient by a rule on values.
    Direct,
    /// A gradient from its operator's record; `last` if nobody needs that any more, `recorded` if
    /// it leaves a record itself.
    FromRecord { last: bool, recorded: bool },
}

impl Plan {
    pub(super) fn new(graph: &Graph, fetched: &[VarId]) -> Self {
        let runs = needed(graph, fetched);
        let modes = modes(graph, &runs);
        let mut steps: Vec<Step> = Vec::new();
        for (id, op) in graph.ops.iter().enumerate().filter(|(id, _)| runs[*id]) {
            let mode = modes[id];
            let inputs = reads(graph, op, mode);
            steps.push(Step { op: id, mode, inputs });
        }
        mark_last(graph, &mut steps, fetched);
        let is_read = |id: &VarId| {
            let mut reading = steps.iter().flat_map(|step| {
                let inputs = graph.ops[step.op].inputs.iter().zip(&step.inputs);
                inputs.filter(|(_, read)| **read != Read::Not).map(|(input, _)| *input)
            });
            reading.any(|input| input == *id) || fetched.contains(id)
        };
        let with = |wanted: fn(Role) -> bool| -> Vec<VarId> {
            let vars = graph.vars.iter().enumerate().filter(|(_, var)| wanted(var.role));
            vars.map(|(id, _)| id).filter(is_read).collect()
        };
        Self {
            feeds: with(|role| role == Role::Data),
            reads: with(|role| matches!(role, Role::Kept { .. })),
            writes: steps.iter().any(|step| !graph.ops[step.op].writes.is_empty()),
            wants: graph.wants_gradient(),
            graph: graph.clone(),
            steps,
            fetched: fetched.to_vec(),
        }
    }
}

/// Operators that what is fetched is computed from, that change what is kept, or that are user
/// code which may do more than compute; and all that these need.
fn needed(graph: &Graph, fetched: &[VarId]) -> Vec<bool> {
    let mut wanted = vec![false; graph.vars.len()];
    fetched.iter().for_each(|&var| wanted[var] = true);
    let mut runs = vec![false; graph.ops.len()];
    for (id, op) in graph.ops.iter().enumerate().rev() {
        runs[id] = !op.writes.is_empty()
            || op.kind.has_effect()
            || op.outputs.iter().any(|&output| wanted[output]);
        if runs[id] {
            op.inputs.iter().for_each(|&input| wanted[input] = true);
        }
    }
    runs
}

fn modes(graph: &Graph, runs: &[bool]) -> Vec<Mode> {
    let mut modes = vec![Mode::Plain; graph.ops.len()];
    let mut record_is_used = vec![false; graph.ops.len()];
    // From last to first: a gradient comes after its operator.
    for (id, op) in graph.ops.iter().enumerate().rev().filter(|(id, _)| runs[*id]) {
        let recorded = modes[id] == Mode::Recorded;
        let Kind::Grad { of, .. } = &op.kind else { continue };
        if graph.ops[*of].kind.direct().is_some() && !recorded && modes[*of] != Mode::Recorded {
            modes[id] = Mode::Direct;
            continue;
        }
        modes[*of] = Mode::Recorded;
        modes[id] = Mode::FromRecord { last: !record_is_used[*of], recorded };
        record_is_used[*of] = true;
    }
    modes
}

fn reads(graph: &Graph, op: &Op, mode: Mode) -> Vec<Read> {
    let Kind::Grad { of, .. } = &op.kind else { return vec![Read::Keep; op.inputs.len()] };
    let forward = &graph.ops[*of];
    let (inputs, outputs) = (forward.inputs.len(), forward.outputs.len());
    let needs = if mode == Mode::Direct { forward.kind.direct() } else { None };
    (0..op.inputs.len())
        .map(|position| match (position, needs) {
            (position, _) if position >= inputs + outputs => Read::Keep,
            (position, Some(needs)) if position < inputs && needs.inputs[position] => Read::Keep,
            (position, Some(needs)) if position >= inputs && needs.output => Read::Keep,
            _ => Read::Not,
        })
        .collect()
}

/// Says where each value that no fetch asks for is read for the last time.
fn mark_last(graph: &Graph, steps: &mut [Step], fetched: &[VarId]) {
    let mut done = vec![false; graph.vars.len()];
    fetched.iter().for_each(|&var| done[var] = true);
    for step in steps.iter_mut().rev() {
        let inputs = graph.ops[step.op].inputs.iter().zip(&mut step.inputs).rev();
        for (&input, read) in inputs.filter(|(_, read)| **read != Read::Not) {
            if !std::mem::replace(&mut done[input], true) {
                *read = Read::Take;
            }
        }
    }
}
