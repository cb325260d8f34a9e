//! Optimizers in programs: operators that compute new values of kept variables.

use super::backward::parameter_gradients;
use super::ir::{Graph, Kind, Op, OpId, Phase, RATE, Site, Var, VarId};
use super::program::{Change, Program, Variable};
use super::updates::{self, Init, Update};
use crate::error::{Error, Result};
use crate::optim::{Adam, AdamW, RmsProp, Sgd};

macro_rules! minimize {
    ($($rule:ident $entry:ident;)*) => {$(
        /// # In programs
        impl $rule {
            /// Appends the backward of a loss of one element of a [program](crate::static_graph::Program), and
            /// updates of the parameters that it depends on. Returns the parameters and their gradients.
            ///
            /// ```
            /// use autograd_core::DType;
            #[doc = concat!("use autograd_core::static_graph::{", stringify!($rule), ", Init, Program};")]
            ///
            /// let program = Program::new();
            /// let w = program.create_parameter("w", [3], DType::Float64, Init::Constant(1.0))?;
            #[doc = concat!("let pairs = ", stringify!($rule), "::new(0.1).minimize(&w.square()?.sum()?)?;")]
            /// assert_eq!(pairs[0].0.name(), "w");
            /// # Ok::<(), autograd_core::Error>(())
            /// ```
            ///
            /// # Errors
            ///
            /// As [`append_backward`](crate::static_graph::append_backward); also if the loss depends on no
            /// parameter, or on one only through a py_func without backward function, a parameter is already
            /// updated, or an option of the rule is out of range. The program is then unchanged.
            #[track_caller]
            pub fn minimize(&self, loss: &Variable) -> Result<Vec<(Variable, Variable)>> {
                minimize(Update::new(&updates::$entry, self), loss)
            }

            /// Appends an update of each parameter of a [program](crate::static_graph::Program) by its
            /// gradient, as from [`append_backward`](crate::static_graph::append_backward).
            ///
            /// ```
            /// use autograd_core::DType;
            #[doc = concat!("use autograd_core::static_graph::{", stringify!($rule), ", Init, Program, append_backward};")]
            ///
            /// let program = Program::new();
            /// let w = program.create_parameter("w", [3], DType::Float64, Init::Constant(1.0))?;
            /// let pairs = append_backward(&w.square()?.sum()?)?;
            /// // Gradients of a norm above 1 are made shorter.
            /// let squares = pairs[0].1.square()?.sum()?;
            /// let norm = squares.sqrt()?.maximum(1.0)?;
            /// let clipped = vec![(pairs[0].0.clone(), pairs[0].1.try_div(&norm)?)];
            #[doc = concat!(stringify!($rule), "::new(0.1).apply_gradients(&clipped)?;")]
            /// # Ok::<(), autograd_core::Error>(())
            /// ```
            ///
            /// # Errors
            ///
            /// [`Error::Program`](crate::Error::Program) if there is no pair, a variable is of another
            /// program or not a parameter, a gradient does not fit its parameter, a parameter is already
            /// updated, or an option of the rule is out of range. The program is then unchanged.
            #[track_caller]
            pub fn apply_gradients(&self, pairs: &[(Variable, Variable)]) -> Result<()> {
                apply(Update::new(&updates::$entry, self), pairs)
            }
        }
    )*};
}

minimize! { Sgd SGD; Adam ADAM; AdamW ADAMW; RmsProp RMSPROP; }

/// # Learning rates
impl Program {
    /// Sets the step size of every update of this program. A run that has started keeps its step size.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Init, Program, Sgd};
    ///
    /// let program = Program::new();
    /// let w = program.create_parameter("w", [1], DType::Float64, Init::Constant(1.0))?;
    /// Sgd::new(0.5).minimize(&w.sum()?)?;
    /// let executor = Executor::new();
    /// executor.run(&program.startup(), &[], &[])?;
    /// for step in 0..2 {
    ///     program.set_learning_rate(0.5 / (step + 1) as f64)?;
    ///     executor.run(&program, &[], &[])?;
    /// }
    /// let w = executor.parameter("w").unwrap();
    /// assert_eq!(w.downcast_ref::<f64>().unwrap().to_vec(), [0.25]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the program has no update, or the step size is negative
    /// or not finite. The program is then unchanged.
    #[track_caller]
    pub fn set_learning_rate(&self, learning_rate: f64) -> Result<()> {
        let site = Site::here("set_learning_rate");
        if !(learning_rate >= 0.0 && learning_rate.is_finite()) {
            return site.refuse(format!(
                "`learning_rate` must be 0 or more, and finite, found {learning_rate}"
            ));
        }
        let (mut graph, mut found) = (self.graph(), false);
        for op in &mut graph.ops {
            found |= op.kind.set_rate(learning_rate);
        }
        match found {
            true => Ok(()),
            false => site.refuse("the program has no update; `minimize` a loss first"),
        }
    }

    /// The step sizes of updates as they are now.
    pub(super) fn rates(&self, updates: &[OpId]) -> Vec<f64> {
        let graph = self.graph();
        let rate = |&id: &OpId| match &graph.ops[id].kind {
            Kind::Op(op) => op.number(RATE),
            _ => unreachable!("an update is an entry of the table"),
        };
        updates.iter().map(rate).collect()
    }
}

#[track_caller]
fn minimize(rule: Result<Update>, loss: &Variable) -> Result<Vec<(Variable, Variable)>> {
    let (site, program) = (Site::here("minimize"), loss.program());
    let rule = checked(rule, &site)?;
    let pairs = program.change(&site, |change| {
        let (graph, reached) = (&change.graph, change.graph.ancestors_of(&[loss.id]));
        let name = graph.vars[loss.id].name.clone();
        let update = |op: &&Op| op.kind.is_update() && reached[op.writes[0]];
        if let Some(op) = graph.ops.iter().find(update) {
            let parameter = &graph.vars[op.writes[0]].name;
            return site.refuse(format!(
                "`{parameter}`, which the loss `{name}` depends on, is updated already by {} (built at {})",
                op.kind, op.place
            ));
        }
        let pairs = parameter_gradients(change.graph, loss.id, &site.place)?;
        if let Some((parameter, op)) = stopped(change.graph, loss.id, &pairs) {
            return site.refuse(format!(
                "`{parameter}` would not be trained: the loss `{name}` depends on it through {} (built at {}), \
                 which has no backward_func; give it one, or set `stop_gradient` of `{parameter}`",
                op.kind, op.place
            ));
        }
        if pairs.is_empty() {
            return site.refuse(format!(
                "the loss `{name}` depends on no parameter that wants a gradient, so nothing would be \
                 trained; what a traced closure captures is a constant, no parameter"
            ));
        }
        pairs.iter().try_for_each(|&pair| append_update(change, &rule, pair))?;
        Ok(pairs)
    })?;
    let variables = |(parameter, grad)| (program.variable(parameter), program.variable(grad));
    Ok(pairs.into_iter().map(variables).collect())
}

/// A parameter without a gradient, and the py_func without a backward function between it and the loss.
fn stopped<'g>(
    graph: &'g Graph,
    loss: VarId,
    pairs: &[(VarId, VarId)],
) -> Option<(&'g str, &'g Op)> {
    let is_left = |id: &VarId| {
        let var = &graph.vars[*id];
        var.is_parameter() && !var.stop_gradient && pairs.iter().all(|(found, _)| found != id)
    };
    let (reached, wants) = (graph.ancestors_of(&[loss]), graph.wants_gradient());
    (0..graph.vars.len()).filter(|id| reached[*id]).filter(is_left).find_map(|parameter| {
        let mut marks = vec![false; graph.vars.len()];
        marks[parameter] = true;
        let follows = graph.spread(marks, |id| wants[id]);
        let stops = |op: &&Op| match &op.kind {
            Kind::PyFunc(func) => {
                func.backward.is_empty()
                    && !func.is_gradient
                    && op.inputs.iter().any(|&input| follows[input])
                    && op.outputs.iter().any(|&output| reached[output])
            }
            _ => false,
        };
        Some((&graph.vars[parameter].name[..], graph.ops.iter().find(stops)?))
    })
}

#[track_caller]
fn apply(rule: Result<Update>, pairs: &[(Variable, Variable)]) -> Result<()> {
    let site = Site::here("apply_gradients");
    let rule = checked(rule, &site)?;
    let Some((first, _)) = pairs.first() else {
        return site.refuse("there is no parameter with a gradient");
    };
    let program = first.program();
    let own = |variable| program.own(&site, variable);
    let ids = pairs.iter().map(|(parameter, grad)| Ok((own(parameter)?, own(grad)?)));
    let ids: Vec<(VarId, VarId)> = ids.collect::<Result<_>>()?;
    program.change(&site, |change| {
        ids.into_iter().try_for_each(|pair| {
            let var = &change.graph.vars[pair.0];
            if !var.is_parameter() {
                return site.refuse(format!("`{}` is no parameter", var.name));
            }
            append_update(change, &rule, pair)
        })
    })
}

fn checked(rule: Result<Update>, site: &Site<'_>) -> Result<Update> {
    rule.map_err(|error| match error {
        Error::Value { op, parameter, expected, found } => {
            Site { call: op, place: site.place.clone() }
                .wrong(format!("`{parameter}` must be {expected}, found {found}"))
        }
        error => error,
    })
}

fn append_update(
    change: &mut Change<'_>,
    rule: &Update,
    (parameter, grad): (VarId, VarId),
) -> Result<()> {
    let Var { name, form, .. } = change.graph.vars[parameter].clone();
    let mut inputs = vec![parameter, grad];
    for (what, form) in rule.state(&form) {
        let name = change.graph.fresh_name(&format!("{name}@{what}"), true);
        inputs.push(change.keep(&name, form, false, Init::Constant(0.0))?);
    }
    let kind = Kind::Op(rule.op.clone());
    let mut op = Op::new(kind, &inputs, &[], Phase::Update, &change.site.place);
    inputs.remove(1);
    op.writes = inputs;
    change.graph.push_op(op)
}
