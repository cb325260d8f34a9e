//! What one run does, worked out once: which operators run, which are one pass over memory, which
//! leave a record for their gradients, and where each value is read for the last time.

use std::sync::Mutex;

use super::chain::{Chain, steps};
use super::frame::Memory;
use super::ir::{Graph, Op, OpId, Role, VarId};
use super::kind::Kind;
use super::masks::with_masks;
use super::optim::PART;
use super::slots::{Slots, adds_row};

/// The steps of a run that fetches certain variables.
#[derive(Debug)]
pub(super) struct Plan {
    /// As they were when the plan was made; a program that changes gets new plans.
    pub(super) graph: Graph,
    /// In the order of their running. Steps of one wave do not depend on each other.
    pub(super) steps: Vec<Step>,
    /// Fed variables that are read.
    pub(super) feeds: Vec<VarId>,
    /// Kept variables that are read or moved.
    pub(super) kept: Vec<VarId>,
    /// For each variable, whether a step reads it or it is fetched.
    pub(super) is_read: Vec<bool>,
    /// What optimizers do at the end.
    pub(super) updates: Vec<UpdateStep>,
    /// For each variable, whether it is kept and changed.
    pub(super) written: Vec<bool>,
    pub(super) fetched: Vec<VarId>,
    /// Whether kept variables get new values.
    pub(super) writes: bool,
    /// For each variable, whether gradients flow to it.
    pub(super) wants: Vec<bool>,
    /// Which buffers hold what.
    pub(super) slots: Slots,
    /// These buffers, of runs that are over: as many as there were at once.
    pub(super) memories: Mutex<Vec<Memory>>,
}

/// A parameter's step, when all else is done. Its rule is that of the program when a run starts.
#[derive(Debug)]
pub(super) struct UpdateStep {
    pub(super) op: OpId,
    pub(super) gradient: VarId,
    /// The parameter, and what the rule remembers.
    pub(super) writes: Vec<VarId>,
    /// Where these stand in [`Plan::kept`].
    pub(super) kept: Vec<usize>,
}

/// One operator's turn, or that of a chain of them.
#[derive(Debug)]
pub(super) struct Step {
    /// The operator, or the last of a chain.
    pub(super) op: OpId,
    pub(super) mode: Mode,
    /// What is read.
    pub(super) inputs: Vec<(VarId, Read)>,
    /// What is computed and asked for.
    pub(super) outputs: Vec<VarId>,
    /// Of a step in [`Mode::Chain`].
    pub(super) chain: Option<Box<Chain>>,
    pub(super) wave: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Not read: a gradient that finds it in the record.
    Not,
    Keep,
    /// For the last time: its buffer may be written over.
    Take,
    /// For the last time, and not written over: its slot is free after this step.
    Last,
    /// For the last time before an update at the end, if that is left something to multiply.
    Held,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Computes, and leaves nothing.
    Plain,
    /// Leaves a record for a gradient.
    Recorded,
    /// Leaves what a gradient by a rule reads beside its operands.
    Noted,
    /// The gradients of a row that was added to a matrix, and of the matrix, which is the sum's own.
    Bias,
    /// A gradient by a rule on values; where `deferred`, that of a matrix which only an update
    /// reads is left to it.
    Direct { deferred: bool },
    /// A gradient from its operator's record; `last` if nobody needs that any more, `retain` if
    /// what it walks over is walked again, `recorded` if it leaves a record itself.
    FromRecord { last: bool, retain: bool, recorded: bool },
    /// Functions of each element in one pass over memory; see [`Step::chain`].
    Chain,
}

impl Plan {
    /// With `waves`, steps that do not depend on each other stand together.
    pub(super) fn new(graph: &Graph, fetched: &[VarId], waves: bool) -> Self {
        let runs = needed(graph, fetched);
        let with_masks = with_masks(graph, &runs);
        let graph = &with_masks;
        let updates = updates(graph);
        let mut modes = modes(graph, &runs);
        defer(graph, &runs, &updates, fetched, &mut modes);
        // What updates read, they read at the end.
        let gradients = updates.iter().map(|step| step.gradient);
        let until_end: Vec<VarId> = fetched.iter().copied().chain(gradients).collect();
        let mut steps = steps(graph, &runs, &modes, &until_end);
        if waves {
            order_by_waves(graph, &mut steps);
        }
        mark_last(graph, &mut steps, &until_end);
        let slots = Slots::new(graph, &steps, fetched, waves);
        let mut written = vec![false; graph.vars.len()];
        let moved = updates.iter().flat_map(|step| &step.writes);
        let set = steps.iter().flat_map(|step| &graph.ops[step.op].writes);
        moved.chain(set).for_each(|&var| written[var] = true);
        let mut is_read = vec![false; graph.vars.len()];
        fetched.iter().for_each(|&var| is_read[var] = true);
        for (var, read) in steps.iter().flat_map(|step| &step.inputs) {
            is_read[*var] |= *read != Read::Not;
        }
        let moved = |id: usize| updates.iter().any(|step| step.writes.contains(&id));
        let is_kept = |id: usize| matches!(graph.vars[id].role, Role::Kept { .. });
        // A startup program fetches what it has just set.
        let is_set = |id: usize| written[id] && !moved(id) && !is_read_before(graph, &steps, id);
        let vars = || 0..graph.vars.len();
        let kept: Vec<VarId> =
            vars().filter(|&id| is_kept(id) && (is_read[id] || moved(id)) && !is_set(id)).collect();
        let mut updates = updates;
        for step in &mut updates {
            let place = |var: &VarId| kept.binary_search(var).ok();
            step.kept = step.writes.iter().filter_map(place).collect();
        }
        Self {
            feeds: vars().filter(|&id| is_read[id] && graph.vars[id].role == Role::Data).collect(),
            kept,
            slots,
            memories: Mutex::default(),
            writes: written.contains(&true),
            is_read,
            updates,
            written,
            wants: graph.wants_gradient(),
            steps,
            fetched: fetched.to_vec(),
            graph: with_masks,
        }
    }
}

impl Step {
    /// All its operators but the head of a chain.
    fn ops(&self) -> impl Iterator<Item = OpId> {
        let chained = self.chain.iter().flat_map(|chain| chain.ops.iter().copied());
        std::iter::once(self.op).chain(chained)
    }

    /// Whether the first input, the second and the further ones are read where they stand: they are
    /// neither written over nor handed to anybody.
    fn only_reads(&self, graph: &Graph) -> [bool; 3] {
        match (&self.mode, &graph.ops[self.op].kind) {
            (Mode::Chain, _) => [!self.chain.as_ref().is_some_and(|chain| chain.over), true, true],
            (Mode::Bias, Kind::Grad { wants, .. }) => [wants.len() == 1; 3],
            (Mode::Plain | Mode::Noted, Kind::Matmul | Kind::CrossEntropy) => [true; 3],
            (Mode::Plain, kind) => [kind.reads_only(); 3],
            (Mode::Direct { .. }, Kind::Grad { of, .. }) => {
                let kind = &graph.ops[*of].kind;
                [matches!(kind, Kind::Matmul | Kind::CrossEntropy); 3]
            }
            _ => [false; 3],
        }
    }
}

/// Whether an operator that sets a kept variable reads what it was.
fn is_read_before(graph: &Graph, steps: &[Step], var: VarId) -> bool {
    let ops = steps.iter().map(|step| &graph.ops[step.op]);
    ops.filter(|op| op.writes.contains(&var)).any(|op| op.inputs.contains(&var))
}

/// Operators that what is fetched is computed from, that change what is kept, or that are user
/// code which may do more than compute; and all that these need.
fn needed(graph: &Graph, fetched: &[VarId]) -> Vec<bool> {
    let mut wanted = vec![false; graph.vars.len()];
    fetched.iter().for_each(|&var| wanted[var] = true);
    let mut runs = vec![false; graph.ops.len()];
    for (id, op) in graph.ops.iter().enumerate().rev() {
        if let Kind::Update(_) = op.kind {
            // Done at the end of a run, and always.
            op.inputs.iter().for_each(|&input| wanted[input] = true);
            continue;
        }
        runs[id] = !op.writes.is_empty()
            || op.kind.has_effect()
            || op.outputs.iter().any(|&output| wanted[output]);
        if runs[id] {
            op.inputs.iter().for_each(|&input| wanted[input] = true);
        }
    }
    runs
}

fn updates(graph: &Graph) -> Vec<UpdateStep> {
    let ops = graph.ops.iter().enumerate();
    let updates = ops.filter(|(_, op)| matches!(op.kind, Kind::Update(_)));
    let step = |(id, op): (OpId, &Op)| {
        let (gradient, writes) = (op.inputs[1], op.writes.clone());
        UpdateStep { op: id, gradient, writes, kept: Vec::new() }
    };
    updates.map(step).collect()
}

/// Finds the gradients of matrices that nothing but an update reads.
fn defer(
    graph: &Graph,
    runs: &[bool],
    updates: &[UpdateStep],
    fetched: &[VarId],
    modes: &mut [Mode],
) {
    let mut readers = vec![0_usize; graph.vars.len()];
    fetched.iter().for_each(|&var| readers[var] += 1);
    for (id, op) in graph.ops.iter().enumerate() {
        if runs[id] || matches!(op.kind, Kind::Update(_)) {
            op.inputs.iter().for_each(|&input| readers[input] += 1);
        }
    }
    for step in updates.iter().filter(|step| readers[step.gradient] == 1) {
        let Some(producer) = graph.vars[step.gradient].producer else { continue };
        let Kind::Grad { of, wants, .. } = &graph.ops[producer].kind else { continue };
        let dims = graph.vars[step.gradient].form.dims.iter().copied();
        let elements: Option<usize> = dims.product();
        // A smaller one stays in the first cache as a whole.
        let large = elements.is_none_or(|elements| elements > PART);
        let right = wants.last() == Some(&1) && graph.ops[*of].kind.is_matmul() && large;
        if let (true, Mode::Direct { deferred }) = (right, &mut modes[producer]) {
            *deferred = graph.ops[producer].outputs.last() == Some(&step.gradient);
        }
    }
}

fn modes(graph: &Graph, runs: &[bool]) -> Vec<Mode> {
    let mut modes = vec![Mode::Plain; graph.ops.len()];
    // From last to first: a gradient comes after its operator.
    for (id, op) in graph.ops.iter().enumerate().rev().filter(|(id, _)| runs[*id]) {
        let recorded = modes[id] == Mode::Recorded;
        let Kind::Grad { of, wants, .. } = &op.kind else { continue };
        let forward = &graph.ops[*of];
        let is_there = !forward.kind.draws() || forward.outputs.len() > 1;
        let direct = forward.kind.direct().is_some() && is_there;
        if direct && !recorded && modes[*of] != Mode::Recorded {
            modes[id] = match adds_row(graph, &graph.ops[*of]) {
                true if wants.contains(&1) => Mode::Bias,
                _ => Mode::Direct { deferred: false },
            };
            if matches!(graph.ops[*of].kind, Kind::CrossEntropy) {
                modes[*of] = Mode::Noted;
            }
            continue;
        }
        modes[*of] = Mode::Recorded;
        modes[id] = Mode::FromRecord { last: false, retain: true, recorded };
    }
    modes
}

/// What an operator reads where it stands by itself, by position.
pub(super) fn reads(graph: &Graph, op: &Op, mode: &Mode) -> Vec<(VarId, Read)> {
    let Kind::Grad { of, .. } = &op.kind else {
        return op.inputs.iter().map(|&input| (input, Read::Keep)).collect();
    };
    let forward = &graph.ops[*of];
    let (inputs, outputs) = (forward.inputs.len(), forward.outputs.len());
    let needs = match mode {
        Mode::Direct { .. } => forward.kind.direct(),
        _ => None,
    };
    let read = |position: usize| match needs {
        _ if position >= inputs + outputs => Read::Keep,
        _ if *mode == Mode::Bias => Read::Not,
        Some(ref needs) if position < inputs && needs.inputs[position] => Read::Keep,
        Some(ref needs) if position >= inputs && needs.outputs[position - inputs] => Read::Keep,
        _ => Read::Not,
    };
    op.inputs.iter().enumerate().map(|(position, &input)| (input, read(position))).collect()
}

/// Puts steps that do not depend on each other together. Those whose order can be seen from
/// outside, user code and random numbers, keep it.
fn order_by_waves(graph: &Graph, steps: &mut [Step]) {
    let mut ready = vec![0; graph.vars.len()];
    let mut done = vec![0; graph.ops.len()];
    let mut ordered = 0;
    for step in steps.iter_mut() {
        let op = &graph.ops[step.op];
        let inputs = step.inputs.iter().map(|(input, _)| ready[*input]);
        let record = match &op.kind {
            Kind::Grad { of, .. } => done[*of],
            _ => 0,
        };
        step.wave = inputs.max().unwrap_or(0).max(record);
        if step.ops().any(|op| is_ordered(graph, op)) {
            step.wave = step.wave.max(ordered);
            ordered = step.wave + 1;
        }
        done[step.op] = step.wave + 1;
        step.outputs.iter().for_each(|&output| ready[output] = step.wave + 1);
    }
    steps.sort_by_key(|step| step.wave);
}

/// Whether it can be seen from outside when an operator runs.
pub(super) fn is_ordered(graph: &Graph, op: OpId) -> bool {
    match &graph.ops[op].kind {
        Kind::PyFunc(_) | Kind::Eager(_) | Kind::Init { .. } => true,
        Kind::Grad { of, .. } => !graph.ops[*of].kind.draws() && is_ordered(graph, *of),
        kind => kind.draws(),
    }
}

/// Says where each value that no fetch asks for is read for the last time, and each record.
fn mark_last(graph: &Graph, steps: &mut [Step], fetched: &[VarId]) {
    let mut done = vec![false; graph.vars.len()];
    fetched.iter().for_each(|&var| done[var] = true);
    // A recorded gradient's graph goes on through that of its operator.
    let mut shared = vec![false; graph.ops.len()];
    for step in steps.iter() {
        if let (Mode::FromRecord { recorded: true, .. }, Kind::Grad { of, .. }) =
            (&step.mode, &graph.ops[step.op].kind)
        {
            (shared[*of], shared[step.op]) = (true, true);
        }
    }
    // What an update multiplies at the end.
    let mut held = vec![false; graph.vars.len()];
    for step in steps.iter().filter(|step| step.mode == Mode::Direct { deferred: true }) {
        let operands = step.inputs.first().into_iter().chain(step.inputs.last());
        operands.for_each(|(var, _)| held[*var] = true);
    }
    let mut used = vec![false; graph.ops.len()];
    for step in steps.iter_mut().rev() {
        let deferred = step.mode == Mode::Direct { deferred: true };
        let only_read = step.only_reads(graph);
        let last = step.inputs.len().saturating_sub(1);
        for (at, (input, read)) in step.inputs.iter_mut().enumerate().rev() {
            if *read == Read::Not || std::mem::replace(&mut done[*input], true) {
                continue;
            }
            *read = match held[*input] {
                true if deferred && (at == 0 || at == last) => Read::Held,
                true => Read::Keep,
                false if only_read[at.min(2)] => Read::Last,
                false => Read::Take,
            };
        }
        if let (Mode::FromRecord { last, retain, .. }, Kind::Grad { of, .. }) =
            (&mut step.mode, &graph.ops[step.op].kind)
        {
            *last = !std::mem::replace(&mut used[*of], true);
            *retain = !*last || shared[*of];
        }
    }
}
