//! What one run does, worked out once: which operators run and in which steps, which leave a record for
//! their gradients, and where each value is read for the last time.

use std::collections::{HashMap, HashSet};

use smallvec::smallvec;

use super::form::Form;
use super::ir::{Effect, Graph, Kind, Op, OpId, Role, VarId};
use super::rule::PART;
use super::table;
use super::values::{Need, Needs};

/// A step looks so many steps back for one that it can join, so that a plan takes time in proportion to
/// its length.
const JOIN_WINDOW: usize = 48;

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
    /// For each variable, whether its value is read, by a step or an update, or fetched.
    pub(super) is_read: Vec<bool>,
    /// For each variable, whether a step reads its shape.
    pub(super) shape_read: Vec<bool>,
    /// What optimizers do at the end.
    pub(super) updates: Vec<Update>,
    /// For each variable, whether it is kept and changed.
    pub(super) written: Vec<bool>,
    pub(super) fetched: Vec<VarId>,
    /// For each variable, whether gradients flow to it.
    pub(super) wants: Vec<bool>,
}

/// An optimizer's operator, which runs when all else is done. Its rule is that of the program when a run
/// starts.
#[derive(Debug)]
pub(super) struct Update {
    pub(super) op: OpId,
    pub(super) gradient: VarId,
    /// The parameter, and the optimizer's state.
    pub(super) writes: Vec<VarId>,
}

/// Operators that run one after the other on values of their own: one operator, or functions of each
/// element that read each other's results, which run over parts of their operands.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) turns: Vec<Turn>,
    /// What is read from outside; these are the first of the step's values.
    pub(super) inputs: Vec<(VarId, Read)>,
    /// How many values there are.
    pub(super) values: usize,
    /// What is asked for, and which of the values it is.
    pub(super) outputs: Vec<(VarId, usize)>,
    /// Whether all operators compute each element from one element of each operand.
    pub(super) in_parts: bool,
}

/// One operator of a step.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) op: OpId,
    pub(super) mode: Mode,
    /// For each input of the operator the value that it reads, and whether nobody reads it later.
    pub(super) reads: Vec<Option<(usize, bool)>>,
    /// Which values it computes: its outputs, and then what it writes.
    pub(super) results: Vec<usize>,
}

/// How a step reads a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Its shape and element type.
    Shape,
    Keep,
    /// Its value, for the last time.
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    /// Leaves a record for a gradient.
    Recorded,
    /// A gradient by a rule on values; where `deferred`, that of a matrix which only an update reads is
    /// left to the update.
    Rule {
        deferred: bool,
    },
    /// A gradient from its operator's record; `last` if nobody needs that any more, `retain` if what it
    /// walks over is walked again, `recorded` if it leaves a record itself.
    FromRecord {
        last: bool,
        retain: bool,
        recorded: bool,
    },
}

impl Plan {
    pub(super) fn new(graph: &Graph, fetched: &[VarId]) -> Self {
        let runs = needed(graph, fetched);
        let graph = with_masks(graph, &runs);
        let updates = updates(&graph);
        let mut modes = modes(&graph, &runs);
        defer(&graph, &runs, &updates, fetched, &mut modes);
        let needs = |id: OpId| needs(&graph, &graph.ops[id], modes[id]);
        // What updates read, they read at the end.
        let mut until_end = vec![false; graph.vars.len()];
        let gradients = updates.iter().map(|update| update.gradient);
        fetched.iter().copied().chain(gradients).for_each(|var| until_end[var] = true);
        let groups = groups(&graph, &runs, &modes, &needs);
        let mut steps = steps(&graph, &groups, &modes, &needs, &until_end);
        mark_last(&graph, &mut steps, until_end);
        let mut written = vec![false; graph.vars.len()];
        let updated = updates.iter().flat_map(|update| &update.writes).copied();
        let set = steps.iter().flat_map(|step| &step.turns);
        let set = set.flat_map(|turn| &graph.ops[turn.op].writes).copied();
        updated.clone().chain(set).for_each(|var| written[var] = true);
        let [mut is_read, mut shape_read] = [0; 2].map(|_| vec![false; graph.vars.len()]);
        let at_end = updates.iter().map(|update| update.gradient);
        fetched.iter().copied().chain(at_end).for_each(|var| is_read[var] = true);
        for &(var, read) in steps.iter().flat_map(|step| &step.inputs) {
            match read {
                Read::Shape => shape_read[var] = true,
                Read::Keep | Read::Last => is_read[var] = true,
            }
        }
        let updated: HashSet<VarId> = updated.collect();
        let is_kept = |id: &VarId| {
            // A startup program fetches what it has just set.
            let is_set =
                written[*id] && !updated.contains(id) && !is_read_before(&graph, &steps, *id);
            let is_used = is_read[*id] || shape_read[*id] || updated.contains(id);
            matches!(graph.vars[*id].role, Role::Kept { .. }) && is_used && !is_set
        };
        let is_fed =
            |id: &VarId| (is_read[*id] || shape_read[*id]) && graph.vars[*id].role == Role::Data;
        Self {
            feeds: (0..graph.vars.len()).filter(is_fed).collect(),
            kept: (0..graph.vars.len()).filter(is_kept).collect(),
            is_read,
            shape_read,
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
        let names = |vars: &mut dyn Iterator<Item = VarId>| -> String {
            vars.map(|var| graph.vars[var].name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let steps = self.steps.iter().map(|step| {
            let ops = step.turns.iter().map(|turn| graph.ops[turn.op].kind.name());
            let read = step.inputs.iter().filter(|(_, read)| *read != Read::Shape);
            let read = names(&mut read.map(|(var, _)| *var));
            let line = format!("{}({read})", ops.collect::<Vec<_>>().join(" + "));
            let outputs = step.outputs.iter().map(|(var, _)| *var);
            let mut outputs =
                outputs.filter(|&var| graph.vars[var].role == Role::Computed).peekable();
            match outputs.peek() {
                Some(_) => format!("{} = {line}", names(&mut outputs)),
                None => line,
            }
        });
        let updates = self.updates.iter().map(|update| {
            let op = &graph.ops[update.op];
            let [inputs, writes] =
                [&op.inputs, &op.writes].map(|vars| names(&mut vars.iter().copied()));
            format!("{}({inputs}) -> {writes}", op.kind.name())
        });
        steps.chain(updates).collect()
    }
}

/// Whether an operator that sets a kept variable reads its old value.
fn is_read_before(graph: &Graph, steps: &[Step], var: VarId) -> bool {
    let ops = steps.iter().flat_map(|step| &step.turns).map(|turn| &graph.ops[turn.op]);
    ops.filter(|op| op.writes.contains(&var)).any(|op| op.inputs.contains(&var))
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
        runs[id] = !updates
            && (!op.writes.is_empty()
                || op
                    .kind
                    .op()
                    .and_then(|op| op.user.as_ref())
                    .is_some_and(|user| user.has_effect())
                || op.outputs.iter().any(|&output| wanted[output]));
        if runs[id] || updates {
            op.inputs.iter().for_each(|&input| wanted[input] = true);
        }
    }
    runs
}

fn updates(graph: &Graph) -> Vec<Update> {
    let ops = graph.ops.iter().enumerate().filter(|(_, op)| op.kind.effect() == Effect::Updates);
    ops.map(|(id, op)| Update { op: id, gradient: op.inputs[1], writes: op.writes.clone() })
        .collect()
}

fn modes(graph: &Graph, runs: &[bool]) -> Vec<Mode> {
    let mut modes = vec![Mode::Plain; graph.ops.len()];
    // From last to first: a gradient comes after its operator.
    for (id, op) in graph.ops.iter().enumerate().rev().filter(|(id, _)| runs[*id]) {
        let Kind::Grad(grad) = &op.kind else { continue };
        let of = grad.of;
        let recorded = modes[id] == Mode::Recorded;
        let has_rule = rule_needs(graph, op).is_some();
        if has_rule && !recorded && modes[of] != Mode::Recorded {
            modes[id] = Mode::Rule { deferred: false };
            continue;
        }
        modes[of] = Mode::Recorded;
        modes[id] = Mode::FromRecord { last: false, retain: true, recorded };
    }
    modes
}

/// Finds the gradients of matrices that nothing but an update reads.
fn defer(graph: &Graph, runs: &[bool], updates: &[Update], fetched: &[VarId], modes: &mut [Mode]) {
    let mut readers = vec![0_usize; graph.vars.len()];
    fetched.iter().for_each(|&var| readers[var] += 1);
    for (_, op) in graph
        .ops
        .iter()
        .enumerate()
        .filter(|(id, op)| runs[*id] || (op.kind.effect() == Effect::Updates))
    {
        op.inputs.iter().for_each(|&input| readers[input] += 1);
    }
    for update in updates.iter().filter(|update| readers[update.gradient] == 1) {
        let var = &graph.vars[update.gradient];
        let Some(producer) = var.producer else { continue };
        let Kind::Grad(grad) = &graph.ops[producer].kind else { continue };
        let elements: Option<usize> = var.form.dims.iter().copied().product();
        // A smaller one stays in the first cache as a whole.
        let is_large = elements.is_none_or(|elements| elements > PART);
        let is_right = grad.wants.last() == Some(&1) && graph.ops[grad.of].kind.is(&table::MATMUL);
        if let (true, Mode::Rule { deferred }) = (is_right && is_large, &mut modes[producer]) {
            *deferred = graph.ops[producer].outputs.last() == Some(&update.gradient);
        }
    }
}

/// What a gradient by a rule reads of each of its operator's inputs and outputs; `None` where there is no
/// rule.
fn rule_needs(graph: &Graph, op: &Op) -> Option<Needs> {
    let Kind::Grad(grad) = &op.kind else { return None };
    let forward = &graph.ops[grad.of];
    // Its mask is an output where the gradient reads it.
    if forward.kind.draws() && forward.outputs.len() == 1 {
        return None;
    }
    let inputs: Vec<&Form> = forward.inputs.iter().map(|&var| &graph.vars[var].form).collect();
    let mut needs = forward.kind.reads(&inputs, &grad.wants)?;
    needs.resize(forward.inputs.len() + forward.outputs.len(), Need::No);
    Some(needs)
}

/// What an operator reads, by position.
fn needs(graph: &Graph, op: &Op, mode: Mode) -> Needs {
    let mut needs = match (&op.kind, mode) {
        (Kind::Grad(_), Mode::Rule { .. }) => rule_needs(graph, op).unwrap_or_default(),
        (Kind::Grad(grad), _) => {
            let forward = &graph.ops[grad.of];
            smallvec![Need::No; forward.inputs.len() + forward.outputs.len()]
        }
        (Kind::Op(op), _) if op.def.reads_shape => smallvec![Need::Shape],
        _ => Needs::new(),
    };
    needs.resize(op.inputs.len(), Need::Value);
    needs
}

/// The shape of all results of an operator that can be in a step with others.
fn joined_dims<'g>(graph: &'g Graph, op: &Op, mode: Mode) -> Option<&'g [Option<usize>]> {
    let forward = match (&op.kind, mode) {
        (Kind::Grad(grad), Mode::Rule { deferred: false }) => &graph.ops[grad.of],
        (Kind::Grad(_), _) => return None,
        (_, Mode::Plain) => op,
        _ => return None,
    };
    let dims = |var: VarId| &graph.vars[var].form.dims[..];
    let whole = dims(*forward.outputs.first()?);
    let is_same = forward.outputs.iter().all(|&var| dims(var) == whole);
    (forward.kind.op().is_some_and(|op| op.def.is_elementwise) && is_same).then_some(whole)
}

/// Operators that make one step.
#[derive(Default)]
struct Group<'g> {
    ops: Vec<OpId>,
    /// The shape of what they compute, where others can join.
    dims: Option<&'g [Option<usize>]>,
    reads: HashSet<VarId>,
    computes: HashSet<VarId>,
    is_ordered: bool,
}

/// Groups in an order in which they can run; one that moved left an empty one behind.
struct Groups<'g> {
    all: Vec<Group<'g>>,
    /// The group that computes a variable.
    home: HashMap<VarId, usize>,
}

impl<'g> Groups<'g> {
    /// A group that an operator can join: it computes or reads the same variables, and all else that the
    /// operator reads is there before, or the group can wait for it.
    fn find(&mut self, new: &Group<'g>) -> Option<usize> {
        new.dims?;
        let earliest = new.reads.iter().filter_map(|var| self.home.get(var)).max().copied();
        let last_ordered = || self.all.iter().rposition(|group| group.is_ordered);
        let earliest = earliest.max(new.is_ordered.then(last_ordered).flatten()).unwrap_or(0);
        let related = |group: &Group<'g>| {
            let knows = |var| group.computes.contains(var) || group.reads.contains(var);
            group.dims == new.dims && new.reads.iter().any(knows)
        };
        let window = self.all.len().saturating_sub(JOIN_WINDOW)..self.all.len();
        let found: Vec<usize> = window.filter(|&at| related(&self.all[at])).collect();
        if let Some(&at) = found.iter().find(|&&at| at >= earliest) {
            return Some(at);
        }
        let at = found.into_iter().find(|&at| self.can_wait(at))?;
        Some(self.move_to_end(at))
    }

    /// Whether no later group needs this one.
    fn can_wait(&self, at: usize) -> bool {
        let group = &self.all[at];
        self.all[at + 1..].iter().all(|later| {
            group.computes.is_disjoint(&later.reads) && !(group.is_ordered && later.is_ordered)
        })
    }

    fn move_to_end(&mut self, at: usize) -> usize {
        let group = std::mem::take(&mut self.all[at]);
        self.home.extend(group.computes.iter().map(|&var| (var, self.all.len())));
        self.all.push(group);
        self.all.len() - 1
    }
}

/// The operators that run, in steps: an operator on each element joins others.
fn groups<'g>(
    graph: &'g Graph,
    runs: &[bool],
    modes: &[Mode],
    needs: &impl Fn(OpId) -> Needs,
) -> Vec<Group<'g>> {
    let mut groups = Groups { all: Vec::new(), home: HashMap::new() };
    for id in (0..graph.ops.len()).filter(|&id| runs[id]) {
        let op = &graph.ops[id];
        let reads = op.inputs.iter().zip(needs(id)).filter(|(_, need)| *need != Need::No);
        let new = Group {
            ops: vec![id],
            dims: joined_dims(graph, op, modes[id]),
            reads: reads.map(|(&var, _)| var).collect(),
            computes: op.outputs.iter().copied().collect(),
            is_ordered: is_ordered(graph, id),
        };
        let at = groups.find(&new).unwrap_or(groups.all.len());
        groups.home.extend(new.computes.iter().map(|&var| (var, at)));
        match groups.all.get_mut(at) {
            Some(group) => {
                group.ops.extend(new.ops);
                group.reads.extend(new.reads);
                group.computes.extend(new.computes);
                group.is_ordered |= new.is_ordered;
            }
            None => groups.all.push(new),
        }
    }
    groups.all.into_iter().filter(|group| !group.ops.is_empty()).collect()
}

fn steps(
    graph: &Graph,
    groups: &[Group<'_>],
    modes: &[Mode],
    needs: &impl Fn(OpId) -> Needs,
    until_end: &[bool],
) -> Vec<Step> {
    // What other steps than the one that computes it ask for.
    let mut asked = until_end.to_vec();
    for group in groups {
        let own = &group.computes;
        for &id in &group.ops {
            let read = graph.ops[id].inputs.iter().zip(needs(id));
            let read = read.filter(|(var, need)| *need != Need::No && !own.contains(var));
            read.for_each(|(&var, _)| asked[var] = true);
        }
    }
    let step = |group: &Group<'_>| {
        let own = &group.computes;
        let mut step = Step::default();
        let mut places: HashMap<VarId, usize> = HashMap::new();
        for &id in &group.ops {
            for (&var, need) in graph.ops[id].inputs.iter().zip(needs(id)) {
                let read = match need {
                    Need::No => continue,
                    _ if own.contains(&var) => continue,
                    Need::Shape => Read::Shape,
                    Need::Value => Read::Keep,
                };
                match places.get(&var) {
                    Some(&at) if read == Read::Keep => step.inputs[at].1 = read,
                    Some(_) => {}
                    None => {
                        places.insert(var, step.inputs.len());
                        step.inputs.push((var, read));
                    }
                }
            }
        }
        step.values = step.inputs.len();
        for &id in &group.ops {
            let op = &graph.ops[id];
            let read = |(var, need): (&VarId, Need)| match need {
                Need::No => None,
                _ => Some((places[var], false)),
            };
            let reads = op.inputs.iter().zip(needs(id)).map(read).collect();
            let results: Vec<VarId> = op.outputs.iter().chain(&op.writes).copied().collect();
            let first = step.values;
            for &var in &results {
                if asked[var] || op.writes.contains(&var) {
                    step.outputs.push((var, step.values));
                }
                places.insert(var, step.values);
                step.values += 1;
            }
            let results = (first..step.values).collect();
            step.turns.push(Turn { op: id, mode: modes[id], reads, results });
        }
        step.in_parts =
            step.turns.len() > 1 && step.turns.iter().all(|turn| !graph.ops[turn.op].kind.draws());
        step
    };
    groups.iter().map(step).collect()
}

/// Whether it can be seen from outside when an operator runs.
fn is_ordered(graph: &Graph, op: OpId) -> bool {
    match &graph.ops[op].kind {
        Kind::Grad(grad) => !graph.ops[grad.of].kind.draws() && is_ordered(graph, grad.of),
        kind => kind.draws() || matches!(kind.effect(), Effect::UserCode | Effect::Sets),
    }
}

/// Says where each value that nobody asks for later is read for the last time, and each record.
fn mark_last(graph: &Graph, steps: &mut [Step], mut done: Vec<bool>) {
    // A recorded gradient's graph goes on through that of its operator.
    let mut shared = vec![false; graph.ops.len()];
    for turn in steps.iter().flat_map(|step| &step.turns) {
        if let (Mode::FromRecord { recorded: true, .. }, Kind::Grad(grad)) =
            (turn.mode, &graph.ops[turn.op].kind)
        {
            (shared[grad.of], shared[turn.op]) = (true, true);
        }
    }
    let mut used = vec![false; graph.ops.len()];
    for step in steps.iter_mut().rev() {
        for (input, read) in step.inputs.iter_mut().filter(|(_, read)| *read == Read::Keep) {
            if !std::mem::replace(&mut done[*input], true) {
                *read = Read::Last;
            }
        }
        let mut held = vec![false; step.values];
        step.inputs.iter().enumerate().for_each(|(at, (_, read))| held[at] = *read != Read::Last);
        step.outputs.iter().for_each(|(_, at)| held[*at] = true);
        for turn in step.turns.iter_mut().rev() {
            for (at, last) in turn.reads.iter_mut().rev().flatten() {
                *last = !std::mem::replace(&mut held[*at], true);
            }
            if let (Mode::FromRecord { last, retain, .. }, Kind::Grad(grad)) =
                (&mut turn.mode, &graph.ops[turn.op].kind)
            {
                *last = !std::mem::replace(&mut used[grad.of], true);
                *retain = !*last || shared[grad.of];
            }
        }
    }
}

/// A graph in which every dropout whose gradient runs, and is not differentiated itself, has its mask
/// as a second output, which the gradient reads.
pub(super) fn with_masks(graph: &Graph, runs: &[bool]) -> Graph {
    let mut graph = graph.clone();
    for id in (0..graph.ops.len()).filter(|&id| runs[id]) {
        if !graph.ops[id].kind.draws() {
            continue;
        }
        let gradients = gradients_of(&graph, runs, id);
        let twice = |&gradient: &OpId| !gradients_of(&graph, runs, gradient).is_empty();
        if gradients.is_empty() || gradients.iter().any(twice) {
            continue;
        }
        let (output, place) = (graph.ops[id].outputs[0], graph.ops[id].place.clone());
        let (stem, form) =
            (format!("{}@MASK", graph.vars[output].name), graph.vars[output].form.clone());
        let mask = graph.add_computed(&stem, true, form, &place);
        graph.vars[mask].stop_gradient = true;
        graph.vars[mask].producer = Some(id);
        graph.ops[id].outputs.push(mask);
        for gradient in gradients {
            // After the input and the output.
            graph.ops[gradient].inputs.insert(2, mask);
        }
    }
    graph
}

fn gradients_of(graph: &Graph, runs: &[bool], id: OpId) -> Vec<OpId> {
    let is_of = |op: &OpId| matches!(&graph.ops[*op].kind, Kind::Grad(grad) if grad.of == id);
    (id + 1..graph.ops.len()).filter(|&op| runs[op]).filter(is_of).collect()
}
