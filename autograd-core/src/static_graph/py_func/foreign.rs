//! A user's function as an operator: what it is given, what it must return, and its gradient,
//! which is another user's function as an operator.

use std::sync::Arc;

use super::signature::{Function, Param, Signature};
use crate::error::Result;
use crate::graph::{AnyTensor, GradMode, for_any};
use crate::static_graph::form::Form;
use crate::static_graph::ir::{
    Effect, Gradient, Graph, Op, OpDef, OpId, Operator, Phase, UserOp, VarId,
};
use crate::static_graph::reverse::fill_like;
use crate::static_graph::values::Values;

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
    pub(in crate::static_graph) is_gradient: bool,
}

/// A user's function over arrays, or its backward function.
pub(in crate::static_graph) static PY_FUNC: OpDef = OpDef {
    infer: |op, _| Ok(op.user::<Foreign>().outputs.clone()),
    run: |op, values, _| Ok(op.user::<Foreign>().run(values)?),
    gradient: Gradient::Operators(|graph, of, grads, wants| {
        Foreign::gradient(Graph::of(graph), of, grads, wants)
    }),
    effect: Effect::UserCode,
    ..OpDef::new("py_func")
};

impl UserOp for Foreign {
    fn name(&self) -> &str {
        &self.function.name
    }

    fn shown(&self) -> String {
        format!("py_func `{}`", self.function.name)
    }

    fn has_gradient(&self) -> bool {
        !self.backward.is_empty() || self.is_gradient
    }

    fn has_effect(&self) -> bool {
        !self.is_gradient
    }
}

impl Foreign {
    /// Calls the function on its own handles of the inputs.
    fn run(&self, inputs: Values) -> std::result::Result<Values, String> {
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
            let what = || match self.is_gradient {
                true => format!("the gradient it returned for input {pick}"),
                false => format!("the value it returned for output {pick}"),
            };
            let Some(value) = returned[pick].as_ref() else {
                return Err(match self.is_gradient {
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

    /// Adds the operator that computes gradients of an operator for its inputs `wants`. `grads` are the
    /// gradients of its outputs, where there are any.
    fn gradient(
        graph: &mut Graph,
        id: OpId,
        grads: &[Option<VarId>],
        wants: &[usize],
    ) -> Result<Vec<VarId>> {
        let op = graph.ops[id].clone();
        let own = op.kind.op().map(Operator::user::<Self>);
        let Some((this, (function, rest))) =
            own.and_then(|own| Some((own, own.backward.split_first()?)))
        else {
            return Err(op.wrong(
                "has no backward, so a second derivative through it is not known; give it with \
                 `second_backward_func`",
            ));
        };
        // Parameters, returned values, gradients of these: each a variable, or none.
        let result = |pick: usize| this.picks.iter().position(|&p| p == pick);
        let mut given: Vec<Option<VarId>> =
            this.args.iter().map(|arg| arg.map(|input| op.inputs[input])).collect();
        given.extend((0..this.results).map(|pick| result(pick).map(|at| op.outputs[at])));
        let mut kept: Vec<Option<VarId>> = given
            .iter()
            .zip(this.skipped.iter().chain(std::iter::repeat(&false)))
            .filter(|(_, skipped)| !**skipped)
            .map(|(given, _)| *given)
            .collect();
        let first = kept.len();
        kept.extend((0..this.results).map(|pick| result(pick).and_then(|at| grads[at])));
        let mut inputs = Vec::new();
        let mut args = Vec::with_capacity(kept.len());
        for (position, var) in kept.iter().enumerate() {
            let optional = function.signature.is_optional(position);
            // A gradient that did not come has the shape of its output.
            let output = position.checked_sub(first).and_then(result).map(|at| op.outputs[at]);
            let var = match (*var, output) {
                (None, Some(like)) if !optional => {
                    Some(graph.push(fill_like(0.0), &[like], Phase::Backward, &op.place)?[0])
                }
                (var, _) => var,
            };
            args.push(var.map(|_| inputs.len()));
            inputs.extend(var);
        }
        // Positions among the function's parameters of the inputs that want a gradient.
        let picks: Vec<usize> = wants
            .iter()
            .filter_map(|&input| this.args.iter().position(|&arg| arg == Some(input)))
            .collect();
        let outputs: Vec<Form> =
            wants.iter().map(|&input| graph.vars[op.inputs[input]].form.clone()).collect();
        let foreign = Foreign {
            function: function.clone(),
            args,
            picks,
            results: this.args.len(),
            outputs,
            backward: rest.into(),
            skipped: Vec::new(),
            is_gradient: true,
        };
        let of = wants.iter().map(|&input| op.inputs[input]);
        let outputs = graph.add_gradients(of, &op.place);
        let foreign = Operator::of_user(&PY_FUNC, foreign);
        graph.push_op(Op::new(foreign, inputs, &outputs, Phase::Backward, &op.place))?;
        Ok(outputs)
    }
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
