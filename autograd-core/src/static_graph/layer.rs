//! A `#[py_layer]` op of a traced closure: forward as one operator, and backward as operators that
//! are put in where gradients are asked for.

use std::sync::Arc;

use super::form::Form;
use super::ir::{Gradient, Graph, OpDef, OpId, Operator, Phase, UserOp, VarId};
use super::reverse::fill_like;
use super::values::{Computed, Values};
use crate::error::Result;
use crate::graph::AnyTensor;

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

/// A `#[py_layer]` op that was traced.
pub(super) static LAYER: OpDef = OpDef {
    infer: |op, _| Ok(op.user::<TracedLayer>().outputs()),
    run: |op, values, _| Ok(op.user::<TracedLayer>().run(values)?),
    gradient: Gradient::Operators(|graph, of, grads, wants| {
        TracedLayer::gradient(Graph::of(graph), of, grads, wants)
    }),
    ..OpDef::new("layer")
};

impl UserOp for TracedLayer {
    fn name(&self) -> &str {
        &self.name
    }
}

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

    fn outputs(&self) -> Vec<Form> {
        self.results.iter().map(|&var| self.forward.vars[var].form.clone()).collect()
    }

    fn run(&self, inputs: Values) -> Computed<Values> {
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
    fn gradient(
        graph: &mut Graph,
        id: OpId,
        grads: &[Option<VarId>],
        wants: &[usize],
    ) -> Result<Vec<VarId>> {
        let op = graph.ops[id].clone();
        let Some(this) = op.kind.op().map(Operator::user::<Self>) else {
            return Err(op.wrong("is no layer"));
        };
        let fill = |graph: &mut Graph, like: VarId| -> Result<VarId> {
            Ok(graph.push(fill_like(0.0), &[like], Phase::Backward, &op.place)?[0])
        };
        let mut own: Vec<Option<VarId>> = vec![None; this.backward.vars.len()];
        for (at, given) in this.given.iter().enumerate() {
            own[at] = match *given {
                Given::Input(input) => Some(op.inputs[input]),
                Given::Result(result) => op.outputs.get(result).copied(),
                Given::Grad(output) => Some(match grads[output] {
                    Some(grad) => grad,
                    None => fill(graph, op.outputs[output])?,
                }),
            };
        }
        let missing = || op.wrong("its backward reads what is not kept");
        graph.push_copy(&this.backward, &mut own, Phase::Backward, missing)?;
        let mut found = Vec::with_capacity(wants.len());
        for &input in wants {
            found.push(match this.found[input].and_then(|var| own[var]) {
                Some(grad) => grad,
                None => fill(graph, op.inputs[input])?,
            });
        }
        Ok(found)
    }
}
