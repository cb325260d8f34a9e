//! The plan of a run, computed once: the operators that run, those that are recorded, last reads.

use super::ir::{Graph, Kind, Op, OpId, Role, VarId};

#[derive(Debug)]
pub(super) struct Plan {
    /// The program when the plan was made; a program that changes gets new plans.
    pub(super) graph: Graph,
    pub(super) steps: Vec<PlanStep>,
    pub(super) feeds: Vec<VarId>,
    /// Kept variables that are read or updated.
    pub(super) kept: Vec<VarId>,
    /// For each variable, whether it is read, by a step or an update, or fetched.
    pub(super) is_read: Vec<bool>,
    /// Operators of optimizers, which run after all steps, with the program's rules at the start of the run.
    pub(super) updates: Vec<OpId>,
    pub(super) fetched: Vec<VarId>,
    /// For each variable: whether a gradient along it is wanted.
    pub(super) wants: Vec<bool>,
}

#[derive(Debug)]
pub(super) struct PlanStep {
    pub(super) op: OpId,
    /// The variables that the step reads, and whether that is their last read.
    pub(super) reads: Vec<(VarId, bool)>,
    pub(super) recorded: bool,
    /// For a gradient: whether no later step needs the record that it reads.
    pub(super) takes_record: bool,
    /// For a gradient: whether the graph that it walks is walked again.
    pub(super) retain: bool,
}

impl Plan {
    pub(super) fn new(graph: &Graph, fetched: &[VarId]) -> Self {
        let graph = graph.clone();
        let updates: Vec<OpId> =
            (0..graph.ops.len()).filter(|&id| graph.ops[id].kind.is_update()).collect();
        let mut is_read = vec![false; graph.vars.len()];
        // Updates read their gradients at the end.
        let gradients = updates.iter().map(|&id| graph.ops[id].gradient());
        fetched.iter().copied().chain(gradients).for_each(|var| is_read[var] = true);
        let steps = steps(&graph, &needed(&graph, fetched), is_read.clone());
        steps.iter().flat_map(|step| &step.reads).for_each(|(var, _)| is_read[*var] = true);
        let all = 0..graph.vars.len();
        let is_fed = |&id: &VarId| is_read[id] && graph.vars[id].role == Role::Data;
        let is_kept = |&id: &VarId| {
            let var = &graph.vars[id];
            var.is_kept()
                && match var.producer.map(|writer| &graph.ops[writer].kind) {
                    // A startup program fetches the value that it has just set.
                    Some(Kind::Init(..)) => false,
                    writer => is_read[id] || writer.is_some_and(Kind::is_update),
                }
        };
        Self {
            feeds: all.clone().filter(is_fed).collect(),
            kept: all.filter(is_kept).collect(),
            is_read,
            updates,
            wants: graph.wants_gradient(),
            steps,
            fetched: fetched.to_vec(),
            graph,
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let graph = &self.graph;
        let steps = self.steps.iter().map(|step| {
            let op = &graph.ops[step.op];
            let mut reads: Vec<VarId> = Vec::new();
            for &(var, _) in &step.reads {
                reads.extend((!reads.contains(&var)).then_some(var));
            }
            let line = format!("{}({})", op.kind.name(), graph.names(&reads));
            let outputs = op.outputs.iter().copied().filter(|&var| self.is_read[var]);
            let outputs = graph.names(&outputs.collect::<Vec<_>>());
            if outputs.is_empty() { line } else { format!("{outputs} = {line}") }
        });
        let updates = self.updates.iter().map(|&id| {
            let Op { kind, inputs, writes, .. } = &graph.ops[id];
            format!("{}({}) -> {}", kind.name(), graph.names(inputs), graph.names(writes))
        });
        steps.chain(updates).collect()
    }
}

/// The operators that compute fetched or kept variables, user functions, and all that these need.
fn needed(graph: &Graph, fetched: &[VarId]) -> Vec<bool> {
    let always = |op: &&Op| {
        !op.writes.is_empty() || matches!(&op.kind, Kind::PyFunc(func) if !func.is_gradient)
    };
    let read = graph.ops.iter().filter(always).flat_map(|op| &op.inputs);
    let wanted = graph.ancestors_of(&fetched.iter().chain(read).copied().collect::<Vec<_>>());
    let runs = |op: &Op| {
        let computes = op.outputs.iter().any(|&output| wanted[output]);
        !op.kind.is_update() && (always(&op) || computes)
    };
    graph.ops.iter().map(runs).collect()
}

/// The steps of a run; `done` are variables that are read after them.
fn steps(graph: &Graph, runs: &[bool], mut done: Vec<bool>) -> Vec<PlanStep> {
    let [mut recorded, mut shared, mut used] = [0; 3].map(|_| vec![false; graph.ops.len()]);
    // From last to first: a gradient comes after its operator.
    let ids = || (0..graph.ops.len()).rev().filter(|&id| runs[id]);
    for id in ids() {
        if let Kind::Grad(grad) = &graph.ops[id].kind {
            recorded[grad.of] = true;
            // The graph of a recorded gradient extends that of its operator.
            if recorded[id] {
                (shared[grad.of], shared[id]) = (true, true);
            }
        }
    }
    let step = |id: OpId| {
        let inputs = &graph.ops[id].inputs;
        let (given, takes_record, retain) = match &graph.ops[id].kind {
            // The other inputs are in the record.
            Kind::Grad(grad) => {
                let last = !std::mem::replace(&mut used[grad.of], true);
                (&inputs[inputs.len() - grad.seeds.len()..], last, !last || shared[grad.of])
            }
            _ => (&inputs[..], false, false),
        };
        let mut reads: Vec<(VarId, bool)> = given.iter().map(|&var| (var, false)).collect();
        for (var, last) in reads.iter_mut().rev() {
            *last = !std::mem::replace(&mut done[*var], true);
        }
        PlanStep { op: id, reads, recorded: recorded[id], takes_record, retain }
    };
    let mut steps: Vec<PlanStep> = ids().map(step).collect();
    steps.reverse();
    steps
}
