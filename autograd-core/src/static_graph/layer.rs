//! A `#[py_layer]` op of a traced closure: forward as one operator, and backward as operators that
//! are put in where gradients are asked for.

use std::sync::Arc;

use super::ir::{Dims, Form, Graph, OpId, Phase, Place, VarId, wrong};
use super::kind::Kind;
use super::run::Values;
use super::trace::{Assembled, EXAMPLES, Found, assemble, example};
use crate::engine::{BackwardOptions, grad_any};
use crate::error::Result;
use crate::graph::AnyTensor;
use crate::ops::trace::{Layer, Note, collect};

/// Both functions of a layer as programs of their own.
#[derive(Clone, Debug)]
pub(super) struct TracedLayer {
    pub(super) name: Arc<str>,
    pub(super) forward: Graph,
    /// Variables of `forward`: the outputs, and then what backward reads of the rest.
    pub(super) results: Vec<VarId>,
    pub(super) backward: Graph,
    /// What the first variables of `backward` are.
    pub(super) given: Vec<Given>,
    /// Of `backward`, the gradient of each input that has one.
    pub(super) found: Vec<Option<VarId>>,
}

/// What a layer's backward reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Input(usize),
    Result(usize),
    /// The gradient of an output.
    Grad(usize),
}

impl TracedLayer {
    /// From the same call in two runs.
    pub(super) fn of(calls: [(&Note, &Layer); 2], place: &Place) -> Result<Self> {
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

    /// Whether the parts, as a file has them, are those of one layer of so many inputs.
    pub(super) fn check(&self, inputs: usize) -> Result<(), String> {
        let fits = self.results.iter().all(|&var| var < self.forward.vars.len())
            && self.given.len() <= self.backward.vars.len()
            && self.given.iter().all(|given| match *given {
                Given::Input(at) => at < inputs,
                Given::Result(at) | Given::Grad(at) => at < self.results.len(),
            })
            && self.found.len() == inputs
            && self.found.iter().flatten().all(|&var| var < self.backward.vars.len())
            && inputs <= self.forward.vars.len();
        if fits {
            Ok(())
        } else {
            Err(format!("the parts of the layer `{}` do not fit", self.name))
        }
    }

    pub(super) fn outputs(&self) -> Vec<Form> {
        self.results.iter().map(|&var| self.forward.vars[var].form.clone()).collect()
    }

    pub(super) fn run(&self, inputs: Values) -> Result<Values, String> {
        let mut values: Vec<Option<AnyTensor>> = inputs.into_iter().map(Some).collect();
        values.resize(self.forward.vars.len(), None);
        let missing = || "a value is missing".to_owned();
        for op in &self.forward.ops {
            let given: Option<Values> =
                op.inputs.iter().map(|&input| values[input].clone()).collect();
            let computed = op.kind.run(given.ok_or_else(missing)?);
            let computed = computed.map_err(|why| format!("{} ({}): {why}", op.kind, op.place))?;
            op.outputs.iter().zip(computed).for_each(|(&id, value)| values[id] = Some(value));
        }
        let results: Option<Values> = self.results.iter().map(|&var| values[var].clone()).collect();
        results.ok_or_else(missing)
    }

    /// Puts backward's operators in: the gradients of the operator's inputs `wants`.
    pub(super) fn gradient(
        &self,
        graph: &mut Graph,
        id: OpId,
        grads: &[Option<VarId>],
        wants: &[usize],
    ) -> Result<Vec<VarId>> {
        let op = graph.ops[id].clone();
        let fill = |graph: &mut Graph, like: VarId| -> Result<VarId> {
            Ok(graph.push(Kind::FillLike(0.0), &[like], Phase::Backward, &op.place)?[0])
        };
        let mut own: Vec<Option<VarId>> = vec![None; self.backward.vars.len()];
        for (at, given) in self.given.iter().enumerate() {
            own[at] = match *given {
                Given::Input(input) => Some(op.inputs[input]),
                Given::Result(result) => op.outputs.get(result).copied(),
                Given::Grad(output) => Some(match grads[output] {
                    Some(grad) => grad,
                    None => fill(graph, op.outputs[output])?,
                }),
            };
        }
        for part in &self.backward.ops {
            let inputs: Option<Vec<VarId>> = part.inputs.iter().map(|&input| own[input]).collect();
            let inputs = inputs.ok_or_else(|| op.wrong("its backward reads what is not kept"))?;
            let made = graph.push(part.kind.clone(), &inputs, Phase::Backward, &part.place)?;
            part.outputs.iter().zip(made).for_each(|(&before, id)| own[before] = Some(id));
        }
        let mut found = Vec::with_capacity(wants.len());
        for &input in wants {
            found.push(match self.found[input].and_then(|var| own[var]) {
                Some(grad) => grad,
                None => fill(graph, op.inputs[input])?,
            });
        }
        Ok(found)
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
