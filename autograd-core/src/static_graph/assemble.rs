//! Two runs of a traced closure as one graph.

use std::collections::HashMap;

use super::attr::is_same as is_same_attr;
use super::eager::{Formula, UserFormula};
use super::example::{EXAMPLES, example};
use super::form::{Dims, Form};
use super::ir::{Graph, Lengths, OpDef, Operator, Phase, Place, Role, VarId, wrong};
use super::layer::{Given, LAYER, TracedLayer};
use super::table;
use crate::engine::{BackwardOptions, grad_any};
use crate::error::Result;
use crate::graph::{AnyTensor, Element, Tensor, for_any};
use crate::ops::table::attr::Attr;
use crate::ops::trace::{Call, Layer, Note, collect};

/// What an op of a run reads.
enum Source {
    /// The closure's input, or what an op before computed: by its order.
    Known(usize),
    Constant(AnyTensor),
}

/// A result of a run: the tensor, and the address under which it was noted.
pub(super) type Found = (*const (), AnyTensor);

/// Two runs as one graph, whose first variables are what they were given.
pub(super) struct Assembled {
    pub(super) graph: Graph,
    pub(super) outputs: Vec<VarId>,
    /// What was given and computed, in the order of its coming.
    pub(super) vars: Vec<VarId>,
}

/// The tensors of a run, in the order of their coming.
struct Known {
    places: HashMap<*const (), usize>,
    tensors: Vec<AnyTensor>,
    /// Whether a tensor that was never seen is one that holds the same: what a layer saved, or
    /// gave as a gradient, comes back as a tensor of its own.
    by_value: bool,
}

impl Known {
    fn new(by_value: bool) -> Self {
        Self { places: HashMap::new(), tensors: Vec::new(), by_value }
    }

    fn add(&mut self, tensor: &AnyTensor) {
        self.places.insert(tensor.address(), self.tensors.len());
        self.tensors.push(tensor.clone());
    }

    fn find(&self, tensor: &AnyTensor) -> Source {
        self.at(&(tensor.address(), tensor.clone()))
    }

    fn at(&self, (address, tensor): &Found) -> Source {
        if let Some(&at) = self.places.get(address) {
            return Source::Known(at);
        }
        let same = |known: &AnyTensor| self.by_value && is_same(known, tensor);
        match self.tensors.iter().rposition(same) {
            Some(at) => Source::Known(at),
            None => Source::Constant(tensor.clone()),
        }
    }
}

/// The operators of both runs, as a graph of its own, and what it computes.
pub(super) fn assemble(
    given: &[(Form, [AnyTensor; 2])],
    [first, second]: [&[Note]; 2],
    results: &[[Found; 2]],
    by_value: bool,
    place: &Place,
) -> Result<Assembled> {
    let mut graph = Graph::default();
    let mut known = [Known::new(by_value), Known::new(by_value)];
    // By the order of their coming.
    let mut vars: Vec<VarId> = Vec::new();
    for (position, (form, examples)) in given.iter().enumerate() {
        let name = format!("input_{position}");
        vars.push(graph.declare("trace", &name, form.clone(), Role::Data, false, place)?);
        known[0].add(&examples[0]);
        known[1].add(&examples[1]);
    }
    for (a, b) in first.iter().zip(second) {
        let place = Place::Line(a.caller);
        let (name, refused) = (a.call.name(), |why: String| wrong(a.call.name(), &place, why));
        if a.caller != b.caller || name != b.call.name() || a.inputs.len() != b.inputs.len() {
            let why = format!(
                "is what the closure does on one example, but {} ({}) on another: its control flow \
                 follows numbers or lengths; place it with `eager` to keep that",
                b.call.name(),
                b.caller
            );
            return Err(refused(why));
        }
        let op = match (&a.call, &b.call) {
            (Call::Layer(x), Call::Layer(y)) => {
                Operator::of_user(&LAYER, TracedLayer::of([(a, x), (b, y)], &place)?)
            }
            _ => merge(a, b).map_err(refused)?,
        };
        let mut inputs = Vec::with_capacity(a.inputs.len());
        for (x, y) in a.inputs.iter().zip(&b.inputs) {
            inputs.push(source(
                &mut graph,
                &vars,
                [known[0].find(x), known[1].find(y)],
                &place,
                name,
            )?);
        }
        let outputs = graph.push(op, &inputs, Phase::Forward, &place)?;
        for ((&id, x), y) in outputs.iter().zip(&a.outputs).zip(&b.outputs) {
            let form = &graph.vars[id].form;
            let misfit = [x, y].into_iter().find_map(|t| form.misfit(t.dtype(), t.shape()));
            if let Some(misfit) = misfit {
                return Err(refused(format!(
                    "computes {form} in a program, the closure's {misfit}"
                )));
            }
            vars.push(id);
            known[0].add(x);
            known[1].add(y);
        }
    }
    if let Some(more) = first.get(second.len()).or(second.get(first.len())) {
        let why = "is what the closure does on one example only: its control flow follows numbers \
                   or lengths; place it with `eager` to keep that";
        return Err(wrong(more.call.name(), &Place::Line(more.caller), why));
    }
    let mut outputs = Vec::with_capacity(results.len());
    for [x, y] in results {
        let found = [known[0].at(x), known[1].at(y)];
        outputs.push(source(&mut graph, &vars, found, place, "trace")?);
    }
    graph.verify()?;
    Ok(Assembled { graph, outputs, vars })
}

/// The operator that both runs are: what differs is a length that follows a free axis.
fn merge(a: &Note, b: &Note) -> Result<Operator, String> {
    let (def, attrs, y) = match (&a.call, &b.call) {
        (Call::Formula { name, op }, _) => {
            let outputs = a.outputs.iter().zip(&b.outputs);
            let outputs = outputs.map(|(x, y)| both(x, y)).collect();
            let formula = Formula::new(op.clone());
            return Ok(UserFormula { name, formula, outputs }.operator());
        }
        (Call::Op { def, attrs }, Call::Op { def: same, attrs: other })
            if std::ptr::eq(*def, *same) =>
        {
            (*def, attrs, other)
        }
        _ => return Err("is another op on another example".to_owned()),
    };
    let merged = attrs.iter().zip(y).map(|(x, y)| match (x, y) {
        (x, y) if is_same_attr(x, y) => Ok(x.clone()),
        (Attr::Dims(x), Attr::Dims(y)) => open_lengths(def, attrs, [a, b], [x, y]).map(Attr::Dims),
        _ => Err(FIXED.to_owned()),
    });
    Ok(Operator::new(def, merged.collect::<Result<_, String>>()?))
}

const FIXED: &str = "has other numbers on another example: they follow the inputs' numbers or the lengths of \
                     free axes, which the program would fix; place it with `eager`";

/// Lengths of which those that differ are free, if the operator allows that.
fn open_lengths(
    def: &OpDef,
    attrs: &[Attr],
    notes: [&Note; 2],
    lengths: [&Dims; 2],
) -> Result<Dims, String> {
    let [x, y] = lengths;
    let shapes = notes.map(|note| note.inputs[0].shape());
    let dims = x.iter().zip(y).map(|(x, y)| if x == y { *x } else { None });
    let dims: Dims = dims.collect();
    let is_open = match def.lengths {
        Lengths::Fixed => false,
        Lengths::OneOpen => {
            if x.len() != y.len() || dims.iter().filter(|dim| dim.is_none()).count() > 1 {
                return Err(
                    "has a shape of which two lengths follow free axes; a program can leave \
                            one open"
                        .to_owned(),
                );
            }
            true
        }
        Lengths::OfInput if x.len() != y.len() => {
            return Err("has another rank on another example".to_owned());
        }
        Lengths::OfInput => {
            let lead = x.len() - shapes[0].len().min(x.len());
            let own = |at: usize| at >= lead && x[at] == Some(shapes[0][at - lead]);
            (0..x.len()).all(|at| dims[at].is_some() || own(at))
        }
        Lengths::OfAxis => {
            let Some(Attr::Int(axis)) = attrs.first() else { return Err(FIXED.to_owned()) };
            let whole = |shape: &[usize], end: &Dims| {
                let at = if *axis < 0 { axis + shape.len() as isize } else { *axis };
                end.first().is_some_and(|end| shape.get(at as usize).copied() == *end)
            };
            whole(shapes[0], x) && whole(shapes[1], y)
        }
    };
    if is_open { Ok(dims) } else { Err(FIXED.to_owned()) }
}

/// The variable that both runs read at one place.
fn source(
    graph: &mut Graph,
    vars: &[VarId],
    found: [Source; 2],
    place: &Place,
    op: &str,
) -> Result<VarId> {
    match found {
        [Source::Known(a), Source::Known(b)] if a == b => Ok(vars[a]),
        [Source::Constant(a), Source::Constant(b)] if is_same(&a, &b) => {
            let constant = Operator::new(&table::CONSTANT, vec![Attr::Tensor(a.alias())]);
            Ok(graph.push(constant, &[], Phase::Forward, place)?[0])
        }
        [Source::Constant(a), _] | [_, Source::Constant(a)] => {
            let made = for_any!(&a, a => a.origin().map(|node| (node.name(), node.location)));
            let made = made.map_or(String::new(), |(name, line)| format!(", by {name} ({line})"));
            let why = format!(
                "reads a tensor of shape {:?} that the closure makes anew each time{made}: from \
                 numbers or lengths of its inputs by an op that programs do not have, from random \
                 numbers, or through `to_vec`, `item` and the like; place it with `eager`",
                a.shape()
            );
            Err(wrong(op, place, why))
        }
        _ => {
            Err(wrong(op, place, "reads another tensor on another example; place it with `eager`"))
        }
    }
}

/// Whether two tensors hold the same, bit for bit where they are finite.
pub(super) fn is_same(a: &AnyTensor, b: &AnyTensor) -> bool {
    fn same<T: Element>(a: &Tensor<T>, b: &AnyTensor) -> bool {
        b.downcast_ref::<T>().is_some_and(|b| {
            // Only NaN is unlike itself.
            let pairs = a.to_vec().into_iter().zip(b.to_vec());
            #[allow(clippy::eq_op, reason = "it tells NaN from numbers")]
            let same = |(x, y): (T, T)| x == y || (x != x && y != y);
            a.shape() == b.shape() && pairs.into_iter().all(same)
        })
    }
    for_any!(a, a => same(a, b))
}

impl TracedLayer {
    /// From the same call in two runs.
    fn of(calls: [(&Note, &Layer); 2], place: &Place) -> Result<Self> {
        let [(a, x), (b, y)] = calls;
        let refused = |why: String| wrong(x.name, place, why);
        let forms = |a: &[AnyTensor], b: &[AnyTensor]| -> Vec<(Form, [AnyTensor; 2])> {
            a.iter().zip(b).map(|(a, b)| (both(a, b), [a.clone(), b.clone()])).collect()
        };
        let inputs = forms(&a.inputs, &b.inputs);
        let outputs = a.outputs.iter().zip(&b.outputs);
        let returned = x.returned.iter().zip(&y.returned);
        let results: Vec<[Found; 2]> = outputs
            .zip(returned)
            .map(|((a, b), (&at, &bt))| [(at, a.clone()), (bt, b.clone())])
            .collect();
        let forward = assemble(&inputs, [&x.forward, &y.forward], &results, false, place)?;

        let [first, second] =
            [Pulled::of(a, 0).map_err(refused)?, Pulled::of(b, 1).map_err(refused)?];
        // Backward may read all that forward was given, computed and returned.
        let computed = |note: &Note, layer: &Layer| -> Vec<AnyTensor> {
            layer
                .forward
                .iter()
                .flat_map(|note| note.outputs.clone())
                .chain(note.outputs.clone())
                .collect()
        };
        let (saved_a, saved_b) = (computed(a, x), computed(b, y));
        let mut given = inputs.clone();
        given.extend(forms(&saved_a, &saved_b));
        given.extend(forms(&first.seeds, &second.seeds));
        let pairs = first.grads.iter().zip(&second.grads);
        let results: Vec<[Found; 2]> = pairs
            .filter_map(|pair| match pair {
                (Some(a), Some(b)) => Some([(a.address(), a.clone()), (b.address(), b.clone())]),
                _ => None,
            })
            .collect();
        let backward = assemble(&given, [&first.notes, &second.notes], &results, true, place)?;
        Ok(Self::join(x.name, &inputs, forward, backward, [saved_a.len(), a.outputs.len()], &first))
    }

    fn join(
        name: &str,
        inputs: &[(Form, [AnyTensor; 2])],
        forward: Assembled,
        backward: Assembled,
        [saved, outputs]: [usize; 2],
        pulled: &Pulled,
    ) -> Self {
        let mut results = forward.outputs.clone();
        let computed = &forward.vars[inputs.len()..];
        let mut read = vec![false; backward.graph.vars.len()];
        backward.graph.ops.iter().flat_map(|op| &op.inputs).for_each(|&input| read[input] = true);
        backward.outputs.iter().for_each(|&output| read[output] = true);
        let mut given = Vec::with_capacity(backward.graph.vars.len());
        for at in 0..inputs.len() + saved + pulled.seeds.len() {
            given.push(if at < inputs.len() {
                Given::Input(at)
            } else if let Some(seed) = at.checked_sub(inputs.len() + saved) {
                Given::Grad(pulled.places[seed])
            } else {
                // After what forward computed stand the outputs.
                let at = at - inputs.len();
                let var = computed.get(at).copied();
                let var = var.unwrap_or_else(|| forward.outputs[at + outputs - saved]);
                let known = results.iter().position(|&result| result == var);
                let used = read[given.len()];
                Given::Result(known.unwrap_or_else(|| {
                    if used {
                        results.push(var);
                    }
                    results.len() - 1
                }))
            });
        }
        let mut left = backward.outputs.into_iter();
        let found = pulled.grads.iter().map(|grad| grad.as_ref().and_then(|_| left.next()));
        Self {
            name: name.into(),
            forward: forward.graph,
            results,
            found: found.collect(),
            backward: backward.graph,
            given,
        }
    }
}

/// The form of two tensors: an axis on which they differ is free.
fn both(a: &AnyTensor, b: &AnyTensor) -> Form {
    let dims: Dims = a.shape().iter().zip(b.shape()).map(|(a, b)| (a == b).then_some(*a)).collect();
    Form::new(a.dtype(), dims)
}

/// A layer's backward, called on examples.
struct Pulled {
    /// The gradients it was given, and of which outputs they are.
    seeds: Vec<AnyTensor>,
    places: Vec<usize>,
    notes: Vec<Note>,
    /// For each input, what it gave.
    grads: Vec<Option<AnyTensor>>,
}

impl Pulled {
    fn of(note: &Note, which: usize) -> Result<Self, String> {
        let places: Vec<usize> =
            (0..note.outputs.len()).filter(|&at| !note.outputs[at].stop_gradient()).collect();
        let seeds: Vec<AnyTensor> = places
            .iter()
            .map(|&at| {
                let output = &note.outputs[at];
                let dims = output.shape().iter().map(|&n| Some(n)).collect();
                let (free, start) = EXAMPLES[which];
                // Other numbers for each.
                example(&Form::new(output.dtype(), dims), (free, start + 3 * (at + 1)))
            })
            .collect();
        let wanted = |at: &usize| !note.inputs[*at].stop_gradient();
        let wants: Vec<usize> = (0..note.inputs.len()).filter(wanted).collect();
        let outputs: Vec<AnyTensor> = places.iter().map(|&at| note.outputs[at].clone()).collect();
        let inputs: Vec<AnyTensor> = wants.iter().map(|&at| note.inputs[at].clone()).collect();
        let given: Vec<Option<AnyTensor>> = seeds.iter().cloned().map(Some).collect();
        let options = BackwardOptions::new().retain_graph(true);
        let (found, notes) = collect(|| grad_any(&outputs, &inputs, &given, options));
        let mut grads = vec![None; note.inputs.len()];
        let found = found.map_err(|error| format!("its backward, on an example: {error}"))?;
        wants.into_iter().zip(found).for_each(|(at, grad)| grads[at] = grad);
        Ok(Self { seeds, places, notes, grads })
    }
}
