//! The runs of a traced closure, merged into one graph.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::eager::{across, example, form_of, noted};
use super::ir::{
    BackwardInput, Eager, Graph, Kind, Lengths, OpDef, Phase, Role, Site, TracedCustomOp, VarId,
};
use super::py_func::Function;
use super::table;
use crate::engine::pull_alone;
use crate::error::Result;
use crate::graph::{AnyTensor, At, GradMode, Slots, for_any};
use crate::ops::table::{Attr, Computed, Dims, Type, Values, is_same, position};
use crate::ops::trace::{CustomOpCall, Note, NotedCall, is_equal};

/// The runs as one graph, whose first variables are the inputs.
pub(super) struct Assembled {
    pub(super) graph: Graph,
    pub(super) outputs: Vec<VarId>,
    /// The variables of inputs and results, in order.
    vars: Vec<VarId>,
    /// Their tensors in each run, and their positions by address in the first.
    tensors: Vec<Values>,
    places: HashMap<*const (), Vec<usize>>,
    /// The range of inputs that a custom op computed internally, which are no outputs of it.
    intermediate: Range<usize>,
}

/// Merges the notes of each run. `given` and `results` are the inputs and the results, each in all runs. For the
/// backward of a custom op: which inputs are intermediate, and other tensors that hold the values of inputs.
pub(super) fn assemble(
    given: &[Values],
    notes: &[&[Note]],
    results: &[Values],
    (intermediate, copies): (Range<usize>, &[(usize, Values)]),
    site: &Site<'_>,
) -> Result<Assembled> {
    let mut all = Assembled {
        graph: Graph::default(),
        outputs: Vec::with_capacity(results.len()),
        vars: Vec::new(),
        tensors: Vec::new(),
        places: HashMap::new(),
        intermediate,
    };
    for (position, values) in given.iter().enumerate() {
        let name = format!("input_{position}");
        let input = all.graph.declare(site, &name, form_of(values), Role::Data)?;
        all.add(input, values.clone());
    }
    for (input, values) in copies {
        all.add(all.vars[*input], values.clone());
    }
    for at in 0..notes.iter().map(|notes| notes.len()).max().unwrap_or(0) {
        let each: Vec<&Note> = notes.iter().filter_map(|notes| notes.get(at)).collect();
        if each.len() < notes.len() {
            return site_of(each[0]).refuse(
                "is what the closure does on one example only: its control flow follows numbers \
                       or lengths; place it with `eager` to keep that",
            );
        }
        all.add_op(&each)?;
    }
    for values in results {
        let output = all.read(values, site)?;
        all.outputs.push(output);
    }
    Ok(all)
}

impl Assembled {
    fn add(&mut self, var: VarId, values: Values) {
        self.places.entry(values[0].address()).or_default().push(self.tensors.len());
        self.tensors.push(values);
        self.vars.push(var);
    }

    fn add_op(&mut self, notes: &[&Note]) -> Result<()> {
        let first = notes[0];
        let site = site_of(first);
        let differs = |note: &&&Note| {
            note.caller != first.caller
                || note.call.name() != first.call.name()
                || note.inputs.len() != first.inputs.len()
        };
        if let Some(other) = notes.iter().find(differs) {
            return site.refuse(format!(
                "is what the closure does on one example, but {} ({}) on another: its control flow \
                 follows numbers or lengths; place it with `eager` to keep that",
                other.name(),
                other.caller
            ));
        }
        let calls = notes.iter().map(|note| match &note.call {
            NotedCall::CustomOp(call) => Some(&**call),
            _ => None,
        });
        let kind = match calls.collect::<Option<Vec<&CustomOpCall>>>() {
            Some(calls) => Kind::CustomOp(Arc::new(TracedCustomOp::of(notes, &calls, &site)?)),
            None => merge(notes).map_err(|why| site.wrong(why))?,
        };
        let inputs = across(notes.iter().map(|note| &note.inputs[..]));
        let read = inputs.iter().map(|values| self.read(values, &site));
        let inputs: Vec<VarId> = read.collect::<Result<_>>()?;
        let outputs = self.graph.push(kind, &inputs, Phase::Forward, &site.place)?;
        let values = across(notes.iter().map(|note| &note.outputs[..]));
        for (id, values) in outputs.into_iter().zip(values) {
            let form = &self.graph.vars[id].form;
            let misfit = values.iter().find_map(|t| form.misfit(t.dtype(), t.shape()));
            if let Some(misfit) = misfit {
                return site
                    .refuse(format!("computes {form} in a program, the closure's {misfit}"));
            }
            self.add(id, values);
        }
        Ok(())
    }

    /// Finds what is these tensors in all runs.
    fn find(&self, values: &[AnyTensor]) -> Option<usize> {
        let places = self.places.get(&values[0].address())?;
        let is_same = |(known, value): (&AnyTensor, &AnyTensor)| known.is_same(value);
        let found = |&at: &usize| self.tensors[at].iter().zip(values).all(is_same);
        places.iter().copied().rev().find(found)
    }

    fn read(&mut self, values: &[AnyTensor], site: &Site<'_>) -> Result<VarId> {
        if let Some(at) = self.find(values) {
            let var = self.vars[at];
            if var == at && self.intermediate.contains(&at) && values[0].dtype().is_float() {
                let kind = Kind::of(&table::INTERMEDIATE, []);
                self.vars[at] = self.graph.push(kind, &[var], Phase::Forward, &site.place)?[0];
            }
            return Ok(self.vars[at]);
        }
        let known = |run: usize| self.tensors.iter().any(|known| known[run].is_same(&values[run]));
        let unknown = (0..values.len()).find(|&run| !known(run));
        let Some(unknown) = unknown.map(|run| &values[run]) else {
            return site.refuse("reads another tensor on another example; place it with `eager`");
        };
        if !(0..values.len()).any(known) && values.iter().all(|value| is_equal(value, unknown)) {
            let constant = Kind::of(&table::CONSTANT, [Attr::Tensor(unknown.alias())]);
            return Ok(self.graph.push(constant, &[], Phase::Forward, &site.place)?[0]);
        }
        let made = for_any!(unknown, a => a.origin().map(|node| (node.name(), node.location)));
        let made = made.map_or(String::new(), |(name, line)| format!(", by {name} ({line})"));
        site.refuse(format!(
            "reads a tensor of shape {:?} that the closure makes anew each time{made}: from lengths of free axes, \
             for which there are `full_like` and the like, from random numbers, or from its inputs by what programs \
             do not have, as `detach`, `checkpoint` and changes in place are; place it with `eager`",
            unknown.shape()
        ))
    }
}

fn site_of(note: &Note) -> Site<'_> {
    Site { call: note.name(), place: note.caller.to_string().into() }
}

/// Merges an op of all runs into an operator; only lengths and positions that follow a free axis may differ.
fn merge(notes: &[&Note]) -> Computed<Kind> {
    let (def, attrs) = match &notes[0].call {
        NotedCall::Formula { name, run } => {
            let call = Arc::clone(run);
            let function = Function { name: (*name).into(), signature: None, call, of: None };
            let outputs = across(notes.iter().map(|note| &note.outputs[..]));
            let outputs = outputs.iter().map(|values| form_of(values)).collect();
            return Ok(Kind::Eager(Arc::new(Eager { function, outputs })));
        }
        NotedCall::Op { def, attrs } => (*def, attrs),
        NotedCall::CustomOp(_) => return Err(ANOTHER_OP.to_owned()),
    };
    let each = notes.iter().map(|note| match &note.call {
        NotedCall::Op { def: own, attrs } if std::ptr::eq(*own, def) => Some(&attrs[..]),
        _ => None,
    });
    let each = each.collect::<Option<Vec<&[Attr]>>>().ok_or(ANOTHER_OP)?;
    let shapes: Vec<&[usize]> = notes.iter().map(|note| note.inputs[0].shape()).collect();
    let values_at = |at: usize| -> Vec<&Attr> { each.iter().map(|attrs| &attrs[at]).collect() };
    let merged = (0..attrs.len()).map(|at| {
        let values = values_at(at);
        if def.attrs[at].1 == Type::Kept {
            return kept_axes(&shapes, &values_at(at - 1));
        }
        if values.iter().all(|value| is_same(value, values[0])) {
            return Ok(values[0].clone());
        }
        match def.attrs[at].1 {
            Type::Position => from_end(attrs, &shapes, &values),
            Type::Dims => open_lengths(def, &shapes, &values),
            _ => Err(FIXED.to_owned()),
        }
    });
    Ok(Kind::of(def, merged.collect::<Computed<Vec<_>>>()?))
}

const ANOTHER_OP: &str = "is another op on another example";

const FIXED: &str = "has other numbers on another example: they follow the inputs' numbers or the lengths of \
                     free axes, which the program would fix; place it with `eager`";

/// A position that is at the same distance from the end of the axis, the first attribute, in all examples.
fn from_end(attrs: &[Attr], shapes: &[&[usize]], values: &[&Attr]) -> Computed<Attr> {
    let distance = |(shape, value): (&&[usize], &&Attr)| match (&attrs[0], value) {
        (&Attr::Int(axis), &&Attr::Int(at)) => {
            let n = shape[position(axis, shape.len()).ok()?];
            Some(at - n as isize - 1)
        }
        _ => None,
    };
    let distances: Option<Vec<isize>> = shapes.iter().zip(values).map(distance).collect();
    match distances.as_deref() {
        Some([first, rest @ ..]) if rest.iter().all(|other| other == first) => {
            Ok(Attr::Int(*first))
        }
        _ => Err(FIXED.to_owned()),
    }
}

fn dims_of<'a>(values: &[&'a Attr]) -> Computed<Vec<&'a Dims>> {
    let lists = values.iter().map(|value| match value {
        Attr::Dims(dims) => Some(dims),
        _ => None,
    });
    lists.collect::<Option<Vec<&Dims>>>().ok_or_else(|| FIXED.to_owned())
}

/// The axes of the first input, in order, that have the free lengths of a shape in all examples.
fn kept_axes(shapes: &[&[usize]], values: &[&Attr]) -> Computed<Attr> {
    let lists = dims_of(values)?;
    let is_free = |&at: &usize| {
        lists[0][at].is_none() || lists.iter().any(|of| of.get(at) != lists[0].get(at))
    };
    let mut rest = 0..shapes[0].len();
    let axes = (0..lists[0].len()).filter(is_free).map(|at| {
        let has_length = |&axis: &usize| {
            let mut each = lists.iter().zip(shapes);
            each.all(|(list, shape)| list.get(at) == shape.get(axis).map(|&n| Some(n)).as_ref())
        };
        let Some(found) = rest.clone().find(has_length) else { return -1 };
        rest.start = found + 1;
        found as isize
    });
    let axes: Vec<isize> = axes.collect();
    match axes.iter().filter(|&&axis| axis < 0).count() {
        0 | 1 if axes.len() > 1 => Ok(Attr::Ints(axes)),
        0 | 1 => Ok(Attr::NONE_KEPT),
        _ => Err("has a shape of which two lengths are computed from free axes; a program finds one from the \
                  number of elements, and others only if they are lengths of the input's axes: place it with \
                  `eager`"
            .to_owned()),
    }
}

/// The lengths of an attribute, free where they differ. `shapes` are those of the first input.
fn open_lengths(def: &OpDef, shapes: &[&[usize]], values: &[&Attr]) -> Computed<Attr> {
    let lists = dims_of(values)?;
    let rank = lists[0].len();
    let is_ragged = lists.iter().any(|list| list.len() != rank);
    let length = |at: usize| lists[0][at].filter(|_| lists.iter().all(|of| of[at] == lists[0][at]));
    let free = |at: &usize| !is_ragged && length(*at).is_none();
    match def.lengths {
        Lengths::Fixed => return Err(FIXED.to_owned()),
        _ if is_ragged => return Err("has another rank on another example".to_owned()),
        Lengths::OfReshape => {}
        Lengths::OfInput => {
            let own = |at: usize| {
                let mut each = lists.iter().zip(shapes);
                each.all(|(list, shape)| {
                    let at_input = (at + shape.len()).checked_sub(rank);
                    at_input.is_some_and(|axis| list[at] == Some(shape[axis]))
                })
            };
            if !(0..rank).filter(free).all(own) {
                return Err(FIXED.to_owned());
            }
        }
    }
    Ok(Attr::Dims((0..rank).map(length).collect()))
}

impl TracedCustomOp {
    fn of(notes: &[&Note], calls: &[&CustomOpCall], site: &Site<'_>) -> Result<Self> {
        let inputs = across(notes.iter().map(|note| &note.inputs[..]));
        let returned = across(calls.iter().map(|call| &call.returned[..]));
        let own: Vec<&[Note]> = calls.iter().map(|call| &call.forward[..]).collect();
        let forward = assemble(&inputs, &own, &returned, (0..0, &[]), site)?;

        let each = notes.iter().zip(calls).enumerate();
        let pulled = each.map(|(run, (note, call))| CustomOpGrads::of(note, call, run));
        let pulled: Computed<Vec<CustomOpGrads>> = pulled.collect();
        let pulled = pulled.map_err(|why| site.wrong(why))?;
        let computed = calls.iter().map(|call| -> Values {
            call.forward.iter().flat_map(|note| note.outputs.clone()).collect()
        });
        let computed: Vec<Values> = computed.collect();
        let computed = across(computed.iter().map(|run| &run[..]));
        let intermediate = inputs.len()..inputs.len() + computed.len();
        let outputs = across(notes.iter().map(|note| &note.outputs[..]));
        let seeds = across(pulled.iter().map(|run| &run.seeds[..]));
        let grads: Vec<Option<Values>> = (0..inputs.len())
            .map(|input| pulled.iter().map(|run| run.grads[input].clone()).collect())
            .collect();
        let results: Vec<Values> = grads.iter().flatten().cloned().collect();
        let own: Vec<&[Note]> = pulled.iter().map(|run| &run.notes[..]).collect();
        let given = [&inputs[..], &computed, &outputs, &seeds].concat();
        let copy = |(at, &(output, _)): (usize, &(usize, AnyTensor))| {
            let values = pulled.iter().map(|run| Some(run.saved.get(at)?.1.clone()));
            Some((intermediate.end + output, values.collect::<Option<Values>>()?))
        };
        let copies: Vec<(usize, Values)> =
            pulled[0].saved.iter().enumerate().filter_map(copy).collect();
        let mut backward = assemble(&given, &own, &results, (intermediate, &copies), site)?;
        if calls[0].once_differentiable {
            for output in &mut backward.outputs {
                let kind = Kind::of(&table::ONCE, []);
                *output = backward.graph.push(kind, &[*output], Phase::Forward, &site.place)?[0];
            }
        }

        let read = backward.graph.ops.iter().flat_map(|op| &op.inputs);
        let read: HashSet<&VarId> = read.chain(&backward.outputs).collect();
        let mut results = forward.outputs.clone();
        let known = [&forward.vars[..], &forward.outputs].concat();
        let mut result = |at: usize, var: VarId| {
            let known = results.iter().position(|&result| result == var);
            known.unwrap_or_else(|| {
                results.extend(read.contains(&at).then_some(var));
                results.len() - 1
            })
        };
        let given = known.iter().enumerate().map(|(at, &var)| match at < inputs.len() {
            true => BackwardInput::Input(at),
            false => BackwardInput::Result(result(at, var)),
        });
        let mut given: Vec<BackwardInput> = given.collect();
        given.extend(pulled[0].places.iter().copied().map(BackwardInput::Grad));
        let mut left = backward.outputs.into_iter();
        let found = grads.iter().map(|grad| grad.as_ref().and_then(|_| left.next())).collect();
        let (name, forward, backward) = (calls[0].name.into(), forward.graph, backward.graph);
        Ok(Self { name, forward, results, backward, given, found })
    }
}

struct CustomOpGrads {
    seeds: Vec<AnyTensor>,
    places: Vec<usize>,
    /// The saved values of outputs, each with the position of its output.
    saved: Vec<(usize, AnyTensor)>,
    notes: Vec<Note>,
    grads: Vec<Option<AnyTensor>>,
}

impl CustomOpGrads {
    fn of(note: &Note, call: &CustomOpCall, run: usize) -> Computed<Self> {
        let (mut seeds, mut places, mut given) = (Vec::new(), Vec::new(), Slots::new());
        let mut slots = Vec::new();
        let mut layers_node = None;
        for (at, output) in note.outputs.iter().enumerate() {
            let Some((node, slot)) = for_any!(output, t => t.producer()) else { continue };
            let seed = example(output.dtype(), output.shape(), run + 3 * (at + 1));
            slots.push((*slot, at));
            let slot = *slot as usize;
            given.resize(given.len().max(slot + 1), None);
            given[slot] = Some(seed.clone());
            seeds.push(seed);
            places.push(at);
            layers_node = Some(node);
        }
        let mut grads = vec![None; note.inputs.len()];
        let Some(node) = layers_node else {
            return Ok(Self { seeds, places, saved: Vec::new(), notes: Vec::new(), grads });
        };
        let saved = At { node, create_graph: false }.saved_outputs();
        let saved = saved.map_err(|error| error.to_string())?.into_iter();
        let place = |(slot, value)| {
            let (_, at) = slots.iter().find(|(of, _)| *of == u32::from(slot))?;
            Some((*at, value))
        };
        let saved = saved.filter_map(place).collect();
        // Only this op's backward runs: one input may be computed from another.
        // Backward may read all tensors that forward was given, computed and returned.
        let computed = call.forward.iter().flat_map(|note| note.outputs.clone());
        let known = [&note.inputs[..], &note.outputs, &seeds].concat();
        let pull = || pull_alone(node, given, false, &|_| true);
        let pull = || GradMode::of(false, pull).map_err(|error| error.to_string());
        let (found, notes) = noted(known.into_iter().chain(computed).collect(), pull)
            .map_err(|why| format!("its backward, on an example: {why}"))?;
        let edges = grads.iter_mut().zip(&call.differentiable).filter(|(_, has_edge)| **has_edge);
        edges.zip(found).for_each(|((place, _), grad)| *place = grad);
        Ok(Self { seeds, places, saved, notes, grads })
    }
}
