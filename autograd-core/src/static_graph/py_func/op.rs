//! A user's function as an operator; its gradient is another such operator.

use std::sync::Arc;

use super::signature::{Function, Param};
use crate::error::{Plural, Result};
use crate::graph::{AnyTensor, GradMode};
use crate::ops::table::{Computed, Form, Ran, Values};
use crate::static_graph::backward::zeros_like;
use crate::static_graph::ir::{Graph, Kind, Op, PyFuncOp, VarId};

impl PyFuncOp {
    pub(in crate::static_graph) fn run(&self, inputs: Values) -> Ran {
        let args = self.args.iter().map(|arg| arg.map(|input| inputs[input].clone()));
        let mut args: Vec<Option<AnyTensor>> = args.collect();
        drop(inputs);
        // No other operator sees changes that the function makes to its arguments.
        args.iter_mut().flatten().for_each(AnyTensor::unshare);
        let mut returned = GradMode::of(false, || (self.function.call)(&args))?;
        // The function may have kept a handle of a result and change it later.
        returned.iter_mut().flatten().for_each(AnyTensor::unshare);
        Function::require_count(returned.len(), self.results)?;
        let value = |(&pick, form): (&usize, &Form)| {
            let Some(value) = &returned[pick] else {
                return Err(match self.is_gradient {
                    true => format!(
                        "returned no gradient for input {pick}, which needs one; return zeros if \
                         it is zero"
                    ),
                    false => format!("returned nothing for output {pick}"),
                });
            };
            if let Some(misfit) = form.misfit(value.dtype(), value.shape()) {
                return Err(match self.is_gradient {
                    true => format!("the gradient it returned for input {pick} {misfit}"),
                    false => format!("the value it returned for output {pick} {misfit}"),
                });
            }
            Ok(value.clone())
        };
        Ok(self.picks.iter().zip(&self.outputs).map(value).collect::<Computed<Values>>()?)
    }

    pub(in crate::static_graph) fn add_gradients(
        &self,
        graph: &mut Graph,
        op: &Op,
        grads: &[Option<VarId>],
        wants: &[usize],
    ) -> Result<Vec<VarId>> {
        let Some((function, rest)) = self.backward.split_first() else {
            return Err(op.wrong(
                "has no backward, so a second derivative through it is not known; give it with \
                 `second_backward_func`",
            ));
        };
        // Parameters and returned values except those that are skipped: each a variable, or `None`.
        let result = |pick: usize| self.picks.iter().position(|&p| p == pick);
        let given = self.args.iter().map(|arg| arg.map(|input| op.inputs[input]));
        let given = given.chain((0..self.results).map(|at| result(at).map(|at| op.outputs[at])));
        let skipped = self.skipped.iter().copied().chain(std::iter::repeat(false));
        let given = given.zip(skipped).filter(|(_, skipped)| !skipped).map(|(given, _)| given);
        let mut given: Vec<Option<VarId>> = given.collect();
        let takes_none = |position: usize| {
            let signature = function.signature.as_ref();
            signature.is_none_or(|all| all.params.get(position).is_some_and(|of| of.optional))
        };
        for output in (0..self.results).map(result) {
            // An absent gradient is zeros, unless the function takes `None`.
            given.push(match (output.and_then(|at| grads[at]), output) {
                (None, Some(at)) if !takes_none(given.len()) => {
                    Some(zeros_like(graph, op.outputs[at], &op.place)?)
                }
                (grad, _) => grad,
            });
        }
        let inputs: Vec<VarId> = given.iter().flatten().copied().collect();
        let mut places = 0..;
        let args = given.iter().map(|given| given.and_then(|_| places.next()));
        // The positions among the function's parameters of the inputs that want a gradient.
        let arg = |&input: &usize| self.args.iter().position(|&arg| arg == Some(input));
        let of: Vec<VarId> = wants.iter().map(|&input| op.inputs[input]).collect();
        let func = PyFuncOp {
            function: function.clone(),
            args: args.collect(),
            picks: wants.iter().filter_map(arg).collect(),
            results: self.args.len(),
            outputs: of.iter().map(|&var| graph.vars[var].form.clone()).collect(),
            backward: rest.into(),
            skipped: Vec::new(),
            is_gradient: true,
        };
        graph.push_gradients(Kind::PyFunc(Arc::new(func)), &inputs, &of, &op.place)
    }
}

impl Param {
    pub(super) fn misfit(&self, form: &Form) -> Option<String> {
        if self.dtype != form.dtype {
            return Some(format!("is {}, but the variable is {}", self.dtype, form.dtype));
        }
        let rank = self.rank.filter(|&rank| rank != form.dims.len())?;
        let rank = Plural(rank, "axis", "axes");
        Some(format!("has {rank}, but the variable has {}", form.dims.len()))
    }
}
