//! What one run does, worked out once: which operators run, which leave a record for their gradients, and
//! where each value is read for the last time.

use super::ir::{Effect, Graph, Kind, OpId, Role, VarId};

/// The steps of a run that fetches certain variables.
#[derive(Debug)]
pub(super) struct Plan {
    /// As they were when the plan was made; a program that changes gets new plans.
    pub(super) graph: Graph,
    /// In the order of their running.
    pub(super) steps: Vec<Step>,
    /// Fed variables that are read.
    pub(super) feeds: Vec<VarId>,
    /// Kept variables that are read or updated.
    pub(super) kept: Vec<VarId>,
    /// For each variable, whether it is read, by a step or an update, or fetched.
    pub(super) is_read: Vec<bool>,
    /// Operators of optimizers, which run when all else is done. Their rules are those of the program when
    /// a run starts.
    pub(super) updates: Vec<OpId>,
    /// For each variable, whether it is kept and changed.
    pub(super) written: Vec<bool>,
    pub(super) fetched: Vec<VarId>,
    /// For each variable, whether gradients flow to it.
    pub(super) wants: Vec<bool>,
}

/// An operator that runs.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) op: OpId,
    pub(super) mode: Mode,
    /// What it is given, and whether that is read for the last time.
    pub(super) reads: Vec<(VarId, bool)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    /// Leaves a record for a gradient.
    Recorded,
    /// A gradient, from its operator's record; `last` if no later step needs that, `retain` if what it
    /// walks over is walked again, `recorded` if it leaves a record itself.
    Gradient {
        last: bool,
        retain: bool,
        recorded: bool,
    },
}

impl Plan {
    pub(super) fn new(graph: &Graph, fetched: &[VarId]) -> Self {
        let graph = graph.clone();
        let is_update = |id: &OpId| graph.ops[*id].kind.effect() == Effect::Updates;
        let updates: Vec<OpId> = (0..graph.ops.len()).filter(is_update).collect();
        let mut is_read = vec![false; graph.vars.len()];
        // What updates read, they read at the end.
        let gradients = updates.iter().map(|&id| graph.ops[id].gradient());
        fetched.iter().copied().chain(gradients).for_each(|var| is_read[var] = true);
        let mut steps = steps(&graph, &needed(&graph, fetched));
        mark_last(&graph, &mut steps, is_read.clone());
        steps.iter().flat_map(|step| &step.reads).for_each(|(var, _)| is_read[*var] = true);
        let [mut updated, mut written] = [0; 2].map(|_| vec![false; graph.vars.len()]);
        let moved = updates.iter().flat_map(|&id| &graph.ops[id].writes);
        moved.for_each(|var| updated[*var] = true);
        let mut set_first = vec![false; graph.vars.len()];
        for op in steps.iter().map(|step| &graph.ops[step.op]) {
            for &var in &op.writes {
                written[var] = true;
                // A startup program fetches what it has just set.
                set_first[var] = !updated[var] && !op.inputs.contains(&var);
            }
        }
        written.iter_mut().zip(&updated).for_each(|(written, updated)| *written |= updated);
        let all = 0..graph.vars.len();
        let is_fed = |id: &VarId| is_read[*id] && graph.vars[*id].role == Role::Data;
        let is_kept = |id: &VarId| {
            matches!(graph.vars[*id].role, Role::Kept { .. })
                && (is_read[*id] || updated[*id])
                && !set_first[*id]
        };
        Self {
            feeds: all.clone().filter(is_fed).collect(),
            kept: all.filter(is_kept).collect(),
            is_read,
            updates,
            written,
            wants: graph.wants_gradient(),
            steps,
            fetched: fetched.to_vec(),
            graph,
        }
    }

    /// A line for each step, and one for each update.
    pub(super) fn lines(&self) -> Vec<String> {
        let graph = &self.graph;
        let names = |vars: &[VarId]| -> String {
            vars.iter().map(|&var| graph.vars[var].name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let steps = self.steps.iter().map(|step| {
            let op = &graph.ops[step.op];
            let mut read: Vec<VarId> = Vec::new();
            for &(var, _) in &step.reads {
                if !read.contains(&var) {
                    read.push(var);
                }
            }
            let line = format!("{}({})", op.kind.name(), names(&read));
            let outputs = op.outputs.iter().copied().filter(|&var| self.is_read[var]);
            let outputs: Vec<VarId> = outputs.collect();
            if outputs.is_empty() { line } else { format!("{} = {line}", names(&outputs)) }
        });
        let updates = self.updates.iter().map(|&id| {
            let op = &graph.ops[id];
            format!("{}({}) -> {}", op.kind.name(), names(&op.inputs), names(&op.writes))
        });
        steps.chain(updates).collect()
    }
}

/// Operators that what is fetched is computed from, that change what is kept, or that are user
/// code which may do more than compute; and all that these need.
fn needed(graph: &Graph, fetched: &[VarId]) -> Vec<bool> {
    let mut wanted = vec![false; graph.vars.len()];
    fetched.iter().for_each(|&var| wanted[var] = true);
    let mut runs = vec![false; graph.ops.len()];
    for (id, op) in graph.ops.iter().enumerate().rev() {
        // Done at the end of a run, and always.
        let updates = op.kind.effect() == Effect::Updates;
        let user = op.kind.op().and_then(|op| op.user.as_ref());
        runs[id] = !updates
            && (!op.writes.is_empty()
                || user.is_some_and(|user| user.has_effect())
                || op.outputs.iter().any(|&output| wanted[output]));
        if runs[id] || updates {
            op.inputs.iter().for_each(|&input| wanted[input] = true);
        }
    }
    runs
}

fn steps(graph: &Graph, runs: &[bool]) -> Vec<Step> {
    let mut modes = vec![Mode::Plain; graph.ops.len()];
    // From last to first: a gradient comes after its operator.
    for id in (0..graph.ops.len()).rev().filter(|&id| runs[id]) {
        if let Kind::Grad(grad) = &graph.ops[id].kind {
            let recorded = modes[id] == Mode::Recorded;
            modes[id] = Mode::Gradient { last: false, retain: true, recorded };
            modes[grad.of] = Mode::Recorded;
        }
    }
    let step = |id: OpId| {
        let inputs = &graph.ops[id].inputs;
        let given = match &graph.ops[id].kind {
            // The rest is in the record.
            Kind::Grad(grad) => &inputs[inputs.len() - grad.seeds.len()..],
            Kind::Op(_) => inputs,
        };
        Step { op: id, mode: modes[id], reads: given.iter().map(|&var| (var, false)).collect() }
    };
    (0..graph.ops.len()).filter(|&id| runs[id]).map(step).collect()
}

/// Marks where each value is read for the last time, but for those of `done`, and each record.
fn mark_last(graph: &Graph, steps: &mut [Step], mut done: Vec<bool>) {
    // A recorded gradient's graph goes on through that of its operator.
    let mut shared = vec![false; graph.ops.len()];
    for step in steps.iter() {
        if let (Mode::Gradient { recorded: true, .. }, Kind::Grad(grad)) =
            (step.mode, &graph.ops[step.op].kind)
        {
            (shared[grad.of], shared[step.op]) = (true, true);
        }
    }
    let mut used = vec![false; graph.ops.len()];
    for step in steps.iter_mut().rev() {
        for (var, last) in step.reads.iter_mut().rev() {
            *last = !std::mem::replace(&mut done[*var], true);
        }
        if let (Mode::Gradient { last, retain, .. }, Kind::Grad(grad)) =
            (&mut step.mode, &graph.ops[step.op].kind)
        {
            *last = !std::mem::replace(&mut used[grad.of], true);
            *retain = !*last || shared[grad.of];
        }
    }
}
