//! A user's function as an operator: what it is given, what it must return, and its gradient,
//! which is another user's function as an operator.

use std::sync::Arc;

use super::signature::{Function, Param, Signature};
use crate::error::Result;
use crate::graph::{AnyTensor, GradMode, for_any};
use crate::static_graph::ir::{Form, Graph, Op, OpId, Phase, VarId};
use crate::static_graph::kind::Kind;
use crate::static_graph::run::Values;

/// A user's function in a program.
#[derive(Clone, Debug)]
pub(in crate::static_graph) struct Foreign {
    pub(in crate::static_graph) function: Function,
    /// For each parameter the operator's input, or none: a gradient that did not come.
    pub(in crate::static_graph) args: Vec<Option<usize>>,
    /// For each of the operator's outputs, which of the returned values it is.
    pub(in crate::static_graph) picks: Vec<usize>,
    /// How many values are returned.
    pub(in crate::static_graph) results: usize,
    pub(in crate::static_graph) outputs: Vec<Form>,
    /// Its backward function, that one's, and so on.
    pub(in crate::static_graph) backward: Arc<[Function]>,
    /// Parameters and returned values that backward is not given.
    pub(in crate::static_graph) skipped: Vec<bool>,
    pub(in crate::static_graph) gradient: bool,
}

impl Foreign {
    pub(in crate::static_graph) fn name(&self) -> &str {
        &self.function.name
    }

    pub(in crate::static_graph) fn outputs(&self) -> &[Form] {
        &self.outputs
    }

    /// Whether it is the gradient of another one.
    pub(in crate::static_graph) fn is_gradient(&self) -> bool {
        self.gradient
    }

    pub(in crate::static_graph) fn has_backward(&self) -> bool {
        !self.backward.is_empty()
    }

    /// Which inputs backward reads, and which outputs.
    pub(in crate::static_graph) fn run(
        &self,
        inputs: Values,
    ) -> std::result::Result<Values, String> {
        // What the function writes, no other operator reads.
        let args: Vec<_> =
            self.args.iter().map(|arg| arg.map(|input| inputs[input].alias())).collect();
        drop(inputs);
        let returned = GradMode::of(false, || (self.function.call)(&args))?;
        if returned.len() != self.results {
            return Err(format!(
                "returned {} values, {} {} declared",
                returned.len(),
                self.results,
                if self.results == 1 { "is" } else { "are" }
            ));
        }
        let mut picked = Values::new();
        for (&pick, form) in self.picks.iter().zip(&self.outputs) {
            let what = || match self.gradient {
                true => format!("the gradient it returned for input {pick}"),
                false => format!("the value it returned for output {pick}"),
            };
            let Some(value) = returned[pick].as_ref() else {
                return Err(match self.gradient {
                    true => format!(
                        "returned no gradient for input {pick}, which needs one; return zeros if \
                         it is zero"
                    ),
                    false => format!("returned nothing for output {pick}"),
                });
            };
            if let Some(misfit) = form.misfit(value.dtype(), value.shape()) {
                return Err(format!("{} {misfit}", what()));
            }
            // What the function kept a handle of may be changed later.
            picked.push(for_any!(value, t => AnyTensor::from(t.alias())));
        }
        Ok(picked)
    }

    /// Adds the operator that computes gradients of `op`, which is this one, for its inputs
    /// `wants`. `grads` are the gradients of its outputs, where there are any.
    pub(in crate::static_graph) fn gradient(
        &self,
        graph: &mut Graph,
        id: OpId,
        grads: &[Option<VarId>],
        wants: &[usize],
    ) -> Result<Vec<VarId>> {
        let op = graph.ops[id].clone();
        let Some((function, rest)) = self.backward.split_first() else {
            return Err(op.wrong(
                "has no backward, so a second derivative through it is not known; give it with \
                 `second_backward_func`",
            ));
        };
        // Parameters, returned values, gradients of these: each a variable, or none.
        let result = |pick: usize| self.picks.iter().position(|&p| p == pick);
        let mut given: Vec<Option<VarId>> =
            self.args.iter().map(|arg| arg.map(|input| op.inputs[input])).collect();
        given.extend((0..self.results).map(|pick| result(pick).map(|at| op.outputs[at])));
        let mut kept: Vec<Option<VarId>> = given
            .iter()
            .zip(self.skipped.iter().chain(std::iter::repeat(&false)))
            .filter(|(_, skipped)| !**skipped)
            .map(|(given, _)| *given)
            .collect();
        kept.extend((0..self.results).map(|pick| result(pick).and_then(|at| grads[at])));
        let like: Vec<Option<VarId>> =
            kept_like(&kept, self.results, |pick| result(pick).map(|at| op.outputs[at]));
        let mut inputs = Vec::new();
        let mut args = Vec::with_capacity(kept.len());
        for (position, var) in kept.iter().enumerate() {
            let optional = function.signature.is_optional(position);
            let var = match (*var, like[position]) {
                (None, Some(like)) if !optional => {
                    Some(graph.push(Kind::FillLike(0.0), &[like], Phase::Backward, &op.place)?[0])
                }
                (var, _) => var,
            };
            args.push(var.map(|_| inputs.len()));
            inputs.extend(var);
        }
        // Positions among the function's parameters of the inputs that want a gradient.
        let picks: Vec<usize> = wants
            .iter()
            .filter_map(|&input| self.args.iter().position(|&arg| arg == Some(input)))
            .collect();
        let outputs: Vec<Form> =
            wants.iter().map(|&input| graph.vars[op.inputs[input]].form.clone()).collect();
        let foreign = Foreign {
            function: function.clone(),
            args,
            picks,
            results: self.args.len(),
            outputs,
            backward: rest.into(),
            skipped: Vec::new(),
            gradient: true,
        };
        let names: Vec<(String, Form)> = wants
            .iter()
            .map(|&input| {
                let var = &graph.vars[op.inputs[input]];
                (format!("{}@GRAD", var.name), var.form.clone())
            })
            .collect();
        let outputs: Vec<VarId> = names
            .into_iter()
            .map(|(name, form)| graph.add_computed(&name, true, form, &op.place))
            .collect();
        graph.push_op(Op {
            kind: Kind::PyFunc(Arc::new(foreign)),
            inputs,
            outputs: outputs.clone(),
            writes: Vec::new(),
            phase: Phase::Backward,
            place: op.place,
        })?;
        Ok(outputs)
    }
}

/// For each value that is given, the variable whose shape it has where it is missing.
fn kept_like(
    kept: &[Option<VarId>],
    results: usize,
    output: impl Fn(usize) -> Option<VarId>,
) -> Vec<Option<VarId>> {
    let first = kept.len() - results;
    (0..kept.len()).map(|at| at.checked_sub(first).and_then(&output)).collect()
}

impl Signature {
    fn is_optional(&self, position: usize) -> bool {
        let Some(params) = &self.params else { return true };
        params.get(position).is_some_and(|param| param.optional)
    }
}

impl Param {
    /// Why a variable of this form cannot be this parameter, or returned value.
    pub(super) fn misfit(&self, form: &Form) -> Option<String> {
        if self.dtype != form.dtype {
            return Some(format!("is {}, but the variable is {}", self.dtype, form.dtype));
        }
        let rank = self.rank.filter(|&rank| rank != form.dims.len())?;
        Some(format!("has {rank} axes, but the variable has {}", form.dims.len()))
    }
}
