//! Two runs of a traced closure, merged into one graph.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::eager::{EXAMPLES, example, form_of, noted};
use super::ir::{Eager, Given, Graph, Kind, Lengths, OpDef, Phase, Role, Site, TracedLayer, VarId};
use super::py_func::Function;
use super::table;
use crate::engine::pull_alone;
use crate::error::Result;
use crate::graph::{AnyTensor, GradMode, Slots, for_any};
use crate::ops::table::{Attr, Computed, Dims, is_same, position};
use crate::ops::trace::{Call, Layer, Note, is_equal};

type Pair = [AnyTensor; 2];

pub(super) fn pairs(first: &[AnyTensor], second: &[AnyTensor]) -> Vec<Pair> {
    first.iter().zip(second).map(|(a, b)| [a.clone(), b.clone()]).collect()
}

/// Two runs as one graph, whose first variables are the inputs.
pub(super) struct Assembled {
    pub(super) graph: Graph,
    pub(super) outputs: Vec<VarId>,
    /// The variables of inputs and results, in order.
    vars: Vec<VarId>,
    /// Their tensors in each run, and their positions by address.
    tensors: [Vec<AnyTensor>; 2],
    places: [HashMap<*const (), usize>; 2],
    /// Whether tensors of equal content are one: what a layer saved or returned comes back as a new tensor.
    by_value: bool,
    /// The range of inputs that a layer computed internally, which are no outputs of it.
    intermediate: Range<usize>,
}

pub(super) fn assemble(
    given: &[Pair],
    [first, second]: [&[Note]; 2],
    results: &[Pair],
    backward_of: Option<Range<usize>>,
    site: &Site<'_>,
) -> Result<Assembled> {
    let mut all = Assembled {
        graph: Graph::default(),
        outputs: Vec::with_capacity(results.len()),
        vars: Vec::new(),
        tensors: Default::default(),
        places: Default::default(),
        by_value: backward_of.is_some(),
        intermediate: backward_of.unwrap_or_default(),
    };
    for (position, [a, b]) in given.iter().enumerate() {
        let name = format!("input_{position}");
        let input = all.graph.declare(site, &name, form_of(a, b), Role::Data)?;
        all.add(input, [a, b]);
    }
    for (a, b) in first.iter().zip(second) {
        all.add_op(a, b)?;
    }
    if let Some(more) = first.get(second.len()).or(second.get(first.len())) {
        return site_of(more).refuse(
            "is what the closure does on one example only: its control flow follows numbers \
                   or lengths; place it with `eager` to keep that",
        );
    }
    for [a, b] in results {
        let output = all.read([a, b], site)?;
        all.outputs.push(output);
    }
    Ok(all)
}

impl Assembled {
    fn add(&mut self, var: VarId, pair: [&AnyTensor; 2]) {
        for ((tensors, places), tensor) in self.tensors.iter_mut().zip(&mut self.places).zip(pair) {
            places.insert(tensor.address(), tensors.len());
            tensors.push(tensor.clone());
        }
        self.vars.push(var);
    }

    fn add_op(&mut self, a: &Note, b: &Note) -> Result<()> {
        let site = site_of(a);
        if a.caller != b.caller || site.call != b.call.name() || a.inputs.len() != b.inputs.len() {
            return site.refuse(format!(
                "is what the closure does on one example, but {} ({}) on another: its control flow \
                 follows numbers or lengths; place it with `eager` to keep that",
                b.call.name(),
                b.caller
            ));
        }
        let kind = match (&a.call, &b.call) {
            (Call::Layer(x), Call::Layer(y)) => {
                Kind::Layer(Arc::new(TracedLayer::of([a, b], [x, y], &site)?))
            }
            _ => merge(a, b).map_err(|why| site.wrong(why))?,
        };
        let read = a.inputs.iter().zip(&b.inputs).map(|(x, y)| self.read([x, y], &site));
        let inputs: Vec<VarId> = read.collect::<Result<_>>()?;
        let outputs = self.graph.push(kind, &inputs, Phase::Forward, &site.place)?;
        for ((id, x), y) in outputs.into_iter().zip(&a.outputs).zip(&b.outputs) {
            let form = &self.graph.vars[id].form;
            let misfit = [x, y].into_iter().find_map(|t| form.misfit(t.dtype(), t.shape()));
            if let Some(misfit) = misfit {
                return site
                    .refuse(format!("computes {form} in a program, the closure's {misfit}"));
            }
            self.add(id, [x, y]);
        }
        Ok(())
    }

    fn find(&self, run: usize, tensor: &AnyTensor) -> Option<usize> {
        let by_address = self.places[run].get(&tensor.address()).copied();
        let same = |known: &AnyTensor| self.by_value && is_equal(known, tensor);
        by_address.or_else(|| self.tensors[run].iter().rposition(same))
    }

    fn read(&mut self, [a, b]: [&AnyTensor; 2], site: &Site<'_>) -> Result<VarId> {
        let unknown = match [self.find(0, a), self.find(1, b)] {
            [Some(x), Some(y)] if x == y => {
                let var = self.vars[x];
                if var == x && self.intermediate.contains(&x) && a.dtype().is_float() {
                    let kind = Kind::of(&table::INTERMEDIATE, []);
                    self.vars[x] = self.graph.push(kind, &[var], Phase::Forward, &site.place)?[0];
                }
                return Ok(self.vars[x]);
            }
            [None, None] if is_equal(a, b) => {
                let constant = Kind::of(&table::CONSTANT, [Attr::Tensor(a.alias())]);
                return Ok(self.graph.push(constant, &[], Phase::Forward, &site.place)?[0]);
            }
            [Some(_), Some(_)] => {
                return site
                    .refuse("reads another tensor on another example; place it with `eager`");
            }
            [None, _] => a,
            [_, None] => b,
        };
        let made = for_any!(unknown, a => a.origin().map(|node| (node.name(), node.location)));
        let made = made.map_or(String::new(), |(name, line)| format!(", by {name} ({line})"));
        site.refuse(format!(
            "reads a tensor of shape {:?} that the closure makes anew each time{made}: from random \
             numbers, or from its inputs by what programs do not have, as `detach`, `checkpoint` and changes in \
             place are; place it with `eager`",
            unknown.shape()
        ))
    }
}

fn site_of(note: &Note) -> Site<'_> {
    Site { call: note.call.name(), place: note.caller.to_string().into() }
}

/// Merges an op of both runs into an operator; only lengths that depend on a free axis may differ.
fn merge(a: &Note, b: &Note) -> Computed<Kind> {
    match (&a.call, &b.call) {
        (Call::Formula { name, run }, _) => {
            let call = Arc::clone(run);
            let function = Function { name: (*name).into(), signature: None, call, of: None };
            let outputs = a.outputs.iter().zip(&b.outputs).map(|(x, y)| form_of(x, y)).collect();
            Ok(Kind::Eager(Arc::new(Eager { function, outputs })))
        }
        (Call::Op { def, attrs }, Call::Op { def: same, attrs: other })
            if std::ptr::eq(*def, *same) =>
        {
            let merged = attrs.iter().zip(other).map(|(x, y)| match (x, y) {
                (x, y) if is_same(x, y) => Ok(x.clone()),
                (Attr::Dims(x), Attr::Dims(y)) => {
                    let shapes = [a, b].map(|note| note.inputs[0].shape());
                    open_lengths(def, attrs, shapes, [x, y]).map(Attr::Dims)
                }
                _ => Err(FIXED.to_owned()),
            });
            Ok(Kind::of(def, merged.collect::<Computed<Vec<_>>>()?))
        }
        _ => Err("is another op on another example".to_owned()),
    }
}

const FIXED: &str = "has other numbers on another example: they follow the inputs' numbers or the lengths of \
                     free axes, which the program would fix; place it with `eager`";

/// The lengths of an attribute, free where they differ. `a` and `b` are shapes of the first input.
fn open_lengths(
    def: &OpDef,
    attrs: &[Attr],
    [a, b]: [&[usize]; 2],
    [x, y]: [&Dims; 2],
) -> Computed<Dims> {
    let dims = x.iter().zip(y).map(|(x, y)| if x == y { *x } else { None });
    let dims: Dims = dims.collect();
    let is_open = match (def.lengths, attrs.first()) {
        (Lengths::OneOpen, _)
            if x.len() != y.len() || dims.iter().flatten().count() + 1 < dims.len() =>
        {
            let why =
                "has a shape of which two lengths follow free axes; a program can leave one open";
            return Err(why.to_owned());
        }
        (Lengths::OneOpen, _) => true,
        (Lengths::OfInput, _) if x.len() != y.len() => {
            return Err("has another rank on another example".to_owned());
        }
        (Lengths::OfInput, _) => {
            let lead = x.len() - a.len().min(x.len());
            let own = |at: usize| at >= lead && x[at] == Some(a[at - lead]);
            (0..x.len()).all(|at| dims[at].is_some() || own(at))
        }
        (Lengths::OfAxis, Some(Attr::Int(axis))) => {
            let whole = |shape: &[usize], end: &Dims| {
                position(*axis, shape.len()).is_ok_and(|at| end.first() == Some(&Some(shape[at])))
            };
            whole(a, x) && whole(b, y)
        }
        _ => false,
    };
    if is_open { Ok(dims) } else { Err(FIXED.to_owned()) }
}

impl TracedLayer {
    fn of([a, b]: [&Note; 2], [x, y]: [&Layer; 2], site: &Site<'_>) -> Result<Self> {
        let inputs = pairs(&a.inputs, &b.inputs);
        let returned = pairs(&x.returned, &y.returned);
        let notes = [&x.forward[..], &y.forward];
        let forward = assemble(&inputs, notes, &returned, None, site)?;

        let pulled =
            |note, layer, which| LayerGrads::of(note, layer, which).map_err(|why| site.wrong(why));
        let (first, second) = (pulled(a, x, 0)?, pulled(b, y, 1)?);
        let computed = |layer: &Layer| -> Vec<AnyTensor> {
            layer.forward.iter().flat_map(|note| note.outputs.clone()).collect()
        };
        let computed = pairs(&computed(x), &computed(y));
        let intermediate = inputs.len()..inputs.len() + computed.len();
        let (outputs, seeds) = (pairs(&a.outputs, &b.outputs), pairs(&first.seeds, &second.seeds));
        let grads: Vec<Option<Pair>> =
            first.grads.into_iter().zip(second.grads).map(|(a, b)| Some([a?, b?])).collect();
        let results: Vec<Pair> = grads.iter().flatten().cloned().collect();
        let notes = [&first.notes[..], &second.notes];
        let given = [&inputs[..], &computed, &outputs, &seeds].concat();
        let mut backward = assemble(&given, notes, &results, Some(intermediate), site)?;
        if x.once_differentiable {
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
            true => Given::Input(at),
            false => Given::Result(result(at, var)),
        });
        let mut given: Vec<Given> = given.collect();
        given.extend(first.places.into_iter().map(Given::Grad));
        let mut left = backward.outputs.into_iter();
        let found = grads.iter().map(|grad| grad.as_ref().and_then(|_| left.next())).collect();
        let (name, forward, backward) = (x.name.into(), forward.graph, backward.graph);
        Ok(Self { name, forward, results, backward, given, found })
    }
}

struct LayerGrads {
    seeds: Vec<AnyTensor>,
    places: Vec<usize>,
    notes: Vec<Note>,
    grads: Vec<Option<AnyTensor>>,
}

impl LayerGrads {
    fn of(note: &Note, layer: &Layer, which: usize) -> Computed<Self> {
        let (mut seeds, mut places, mut given) = (Vec::new(), Vec::new(), Slots::new());
        let mut layers_node = None;
        for (at, output) in note.outputs.iter().enumerate() {
            let Some((node, slot)) = for_any!(output, t => t.producer()) else { continue };
            let (free, start) = EXAMPLES[which];
            let seed = example(&form_of(output, output), (free, start + 3 * (at + 1)));
            let slot = *slot as usize;
            given.resize(given.len().max(slot + 1), None);
            given[slot] = Some(seed.clone());
            seeds.push(seed);
            places.push(at);
            layers_node = Some(node);
        }
        let mut grads = vec![None; note.inputs.len()];
        let Some(node) = layers_node else {
            return Ok(Self { seeds, places, notes: Vec::new(), grads });
        };
        // Only this layer's backward runs: one input may be computed from another.
        // Backward may read all tensors that forward was given, computed and returned.
        let computed = layer.forward.iter().flat_map(|note| note.outputs.clone());
        let known = [&note.inputs[..], &note.outputs, &seeds].concat();
        let pull = || pull_alone(node, given, false, &|_| true);
        let run = || GradMode::of(false, pull).map_err(|error| error.to_string());
        let (found, notes) = noted(known.into_iter().chain(computed).collect(), run)
            .map_err(|why| format!("its backward, on an example: {why}"))?;
        let edges = grads.iter_mut().zip(&layer.differentiable).filter(|(_, has_edge)| **has_edge);
        edges.zip(found).for_each(|((place, _), grad)| *place = grad);
        Ok(Self { seeds, places, notes, grads })
    }
}
