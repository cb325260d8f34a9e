//! A `#[py_layer]` op of a traced closure: forward as one operator, and backward as operators that
//! are put in where gradients are asked for.

use super::backward::zeros_like;
use super::form::Form;
use super::ir::{Given, Graph, Op, Phase, TracedLayer, VarId};
use super::values::{Computed, Values};
use crate::error::Result;
use crate::graph::AnyTensor;

impl TracedLayer {
    /// Whether the parts, as a file has them, are those of one layer of so many inputs.
    pub(super) fn check(&self, inputs: usize) -> Computed<()> {
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

    pub(super) fn run(&self, inputs: Values) -> Computed<Values> {
        compute(&self.forward, inputs, &self.results)
    }

    /// Puts backward's operators in.
    pub(super) fn add_gradients(
        &self,
        graph: &mut Graph,
        op: &Op,
        grads: &[Option<VarId>],
        wants: &[usize],
    ) -> Result<Vec<VarId>> {
        let mut own: Vec<Option<VarId>> = vec![None; self.backward.vars.len()];
        for (own, given) in own.iter_mut().zip(&self.given) {
            *own = match *given {
                Given::Input(input) => Some(op.inputs[input]),
                Given::Result(result) => op.outputs.get(result).copied(),
                Given::Grad(output) if grads[output].is_some() => grads[output],
                Given::Grad(output) => Some(zeros_like(graph, op.outputs[output], &op.place)?),
            };
        }
        let missing = || op.wrong("its backward reads what is not kept");
        graph.push_copy(&self.backward, &mut own, Phase::Backward, missing)?;
        let grad = |&input: &usize| match self.found[input].and_then(|var| own[var]) {
            Some(grad) => Ok(grad),
            None => zeros_like(graph, op.inputs[input], &op.place),
        };
        wants.iter().map(grad).collect()
    }
}

/// Runs a graph by itself, whose first variables are its inputs.
pub(super) fn compute(graph: &Graph, inputs: Values, results: &[VarId]) -> Computed<Values> {
    let mut values: Vec<Option<AnyTensor>> = inputs.into_iter().map(Some).collect();
    values.resize(graph.vars.len(), None);
    let read = |values: &[Option<AnyTensor>], vars: &[VarId]| -> Computed<Values> {
        let found: Option<Values> = vars.iter().map(|&var| values[var].clone()).collect();
        found.ok_or_else(|| "a value is missing".to_owned())
    };
    for op in &graph.ops {
        let computed = op.kind.run(read(&values, &op.inputs)?);
        let computed = computed.map_err(|why| format!("{} ({}): {why}", op.kind, op.place))?;
        op.outputs.iter().zip(computed).for_each(|(&id, value)| values[id] = Some(value));
    }
    read(&values, results)
}
