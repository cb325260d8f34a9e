//! What one run does, worked out once: which operators run, which are one pass over memory, which
//! leave a record for their gradients, and where each value is read for the last time.

use super::ir::{Graph, Op, OpId, Role, VarId};
use super::kind::Kind;

/// The steps of a run that fetches certain variables.
#[derive(Debug)]
pub(super) struct Plan {
    /// As they were when the plan was made; a program that changes gets new plans.
    pub(super) graph: Graph,
    /// In the order of their running. Steps of one wave do not depend on each other.
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

/// One operator's turn, or that of a chain of them.
#[derive(Debug)]
pub(super) struct Step {
    /// The operator, or the last of a chain.
    pub(super) op: OpId,
    pub(super) mode: Mode,
    /// What is read.
    pub(super) inputs: Vec<(VarId, Read)>,
    pub(super) wave: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Not read: a gradient that finds it in the record.
    Not,
    Keep,
    /// For the last time: its buffer may be written over.
    Take,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Computes, and leaves nothing.
    Plain,
    /// Leaves a record for a gradient.
    Recorded,
    /// A gradient by a rule on values.
    Direct,
    /// A gradient from its operator's record; `last` if nobody needs that any more, `retain` if
    /// what it walks over is walked again, `recorded` if it leaves a record itself.
    FromRecord { last: bool, retain: bool, recorded: bool },
    /// Functions of each element in one pass. The step's first input goes through all of them.
    Chain(Vec<Link>),
}

/// An operator of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) op: OpId,
    /// The step's input that it reads beside what comes through the chain.
    pub(super) other: Option<usize>,
    /// Whether what comes through the chain stands on the right.
    pub(super) swapped: bool,
}

impl Plan {
    /// With `waves`, steps that do not depend on each other stand together.
    pub(super) fn new(graph: &Graph, fetched: &[VarId], waves: bool) -> Self {
        let runs = needed(graph, fetched);
        let modes = modes(graph, &runs);
        let mut steps = steps(graph, &runs, &modes, fetched);
        if waves {
            order_by_waves(graph, &mut steps);
        }
        mark_last(graph, &mut steps, fetched);
        let mut is_read = vec![false; graph.vars.len()];
        fetched.iter().for_each(|&var| is_read[var] = true);
        for (var, read) in steps.iter().flat_map(|step| &step.inputs) {
            is_read[*var] |= *read != Read::Not;
        }
        let with = |wanted: fn(Role) -> bool| -> Vec<VarId> {
            let vars = graph.vars.iter().enumerate();
            let found = vars.filter(|(id, var)| is_read[*id] && wanted(var.role));
            found.map(|(id, _)| id).collect()
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
    // From last to first: a gradient comes after its operator.
    for (id, op) in graph.ops.iter().enumerate().rev().filter(|(id, _)| runs[*id]) {
        let recorded = modes[id] == Mode::Recorded;
        let Kind::Grad { of, .. } = &op.kind else { continue };
        if graph.ops[*of].kind.direct().is_some() && !recorded && modes[*of] != Mode::Recorded {
            modes[id] = Mode::Direct;
            continue;
        }
        modes[*of] = Mode::Recorded;
        modes[id] = Mode::FromRecord { last: false, retain: true, recorded };
    }
    modes
}

fn steps(graph: &Graph, runs: &[bool], modes: &[Mode], fetched: &[VarId]) -> Vec<Step> {
    let running = || graph.ops.iter().enumerate().filter(|(id, _)| runs[*id]);
    let mut uses = vec![0_usize; graph.vars.len()];
    fetched.iter().for_each(|&var| uses[var] += 1);
    for (id, op) in running() {
        for (input, read) in reads(graph, op, &modes[id]) {
            uses[input] += usize::from(read != Read::Not);
        }
    }
    let mut steps: Vec<Option<Step>> = Vec::new();
    // The step that computes a variable, where a chain may go on from it.
    let mut open: Vec<Option<usize>> = vec![None; graph.vars.len()];
    for (id, op) in running() {
        let mode = modes[id].clone();
        let mut step = Step { op: id, inputs: reads(graph, op, &mode), mode, wave: 0 };
        if step.mode == Mode::Plain && op.kind.chains() {
            let goes_on = |input: VarId| uses[input] == 1 && open[input].is_some();
            if let Some(main) = main_input(graph, op, goes_on) {
                let chain = open[op.inputs[main]].filter(|_| goes_on(op.inputs[main]));
                step = match chain.and_then(|at| steps[at].take()) {
                    Some(before) => extend(before, op, id, main),
                    None => extend(start(op, main), op, id, main),
                };
                open[op.outputs[0]] = Some(steps.len());
            }
        }
        steps.push(Some(step));
    }
    let mut steps: Vec<Step> = steps.into_iter().flatten().collect();
    for step in &mut steps {
        // One operator is no chain.
        if let Mode::Chain(links) = &step.mode
            && links.len() == 1
        {
            step.mode = Mode::Plain;
            step.inputs = reads(graph, &graph.ops[step.op], &Mode::Plain);
        }
    }
    steps
}

/// The input that goes through a chain: one of the output's shape, rather one that is in a chain.
fn main_input(graph: &Graph, op: &Op, goes_on: impl Fn(VarId) -> bool) -> Option<usize> {
    let form = &graph.vars[op.outputs[0]].form;
    let candidates = || (0..op.inputs.len()).filter(|&at| graph.vars[op.inputs[at]].form == *form);
    candidates().find(|&at| goes_on(op.inputs[at])).or_else(|| candidates().next())
}

/// A chain of nothing yet.
fn start(op: &Op, main: usize) -> Step {
    let inputs = vec![(op.inputs[main], Read::Keep)];
    Step { op: 0, mode: Mode::Chain(Vec::new()), inputs, wave: 0 }
}

/// A chain that goes on with an operator.
fn extend(chain: Step, op: &Op, id: OpId, main: usize) -> Step {
    let Step { mode, mut inputs, wave, .. } = chain;
    let mut links = if let Mode::Chain(links) = mode { links } else { Vec::new() };
    let other = (op.inputs.len() > 1).then(|| {
        inputs.push((op.inputs[1 - main], Read::Keep));
        inputs.len() - 1
    });
    links.push(Link { op: id, other, swapped: main == 1 });
    Step { op: id, mode: Mode::Chain(links), inputs, wave }
}

fn reads(graph: &Graph, op: &Op, mode: &Mode) -> Vec<(VarId, Read)> {
    let Kind::Grad { of, .. } = &op.kind else {
        return op.inputs.iter().map(|&input| (input, Read::Keep)).collect();
    };
    let forward = &graph.ops[*of];
    let (inputs, outputs) = (forward.inputs.len(), forward.outputs.len());
    let needs = if *mode == Mode::Direct { forward.kind.direct() } else { None };
    let read = |position: usize| match needs {
        _ if position >= inputs + outputs => Read::Keep,
        Some(needs) if position < inputs && needs.inputs[position] => Read::Keep,
        Some(needs) if position >= inputs && needs.output => Read::Keep,
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
        if is_ordered(graph, op) {
            step.wave = step.wave.max(ordered);
            ordered = step.wave + 1;
        }
        done[step.op] = step.wave + 1;
        op.outputs.iter().for_each(|&output| ready[output] = step.wave + 1);
    }
    steps.sort_by_key(|step| step.wave);
}

fn is_ordered(graph: &Graph, op: &Op) -> bool {
    match &op.kind {
        Kind::PyFunc(_) | Kind::Eager(_) | Kind::Init { .. } => true,
        Kind::Dropout { training, .. } => *training,
        Kind::Grad { of, .. } => is_ordered(graph, &graph.ops[*of]),
        _ => false,
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
    let mut used = vec![false; graph.ops.len()];
    for step in steps.iter_mut().rev() {
        for (input, read) in step.inputs.iter_mut().rev().filter(|(_, read)| *read != Read::Not) {
            if !std::mem::replace(&mut done[*input], true) {
                *read = Read::Take;
            }
        }
        if let (Mode::FromRecord { last, retain, .. }, Kind::Grad { of, .. }) =
            (&mut step.mode, &graph.ops[step.op].kind)
        {
            *last = !std::mem::replace(&mut used[*of], true);
            *retain = !*last || shared[*of];
        }
    }
}
