//! Optimizers in programs: operators that give what the executor keeps new values.

use super::init::Init;
use super::ir::{Graph, Kind, Op, OpId, Phase, Place, Var, VarId, wrong};
use super::program::{Change, Program, Variable};
use super::reverse::parameter_gradients;
use super::rule::Rule;
use crate::error::{Error, Result};
use crate::optim::{Adam, AdamW, RmsProp, Rule as _, Sgd};

macro_rules! minimize {
    ($($rule:ident)*) => {$(
        /// # In programs
        impl $rule {
            /// Appends the backward of a loss of one element of a
            /// [program](crate::static_graph::Program), and an update of each parameter that it was
            /// computed from. Returns the parameters and their gradients.
            ///
            /// # Errors
            ///
            /// As [`append_backward`](crate::static_graph::append_backward); also if the loss depends
            /// on no parameter, a parameter is updated already or an option of the rule is out of range. The program is then as it
            /// was.
            #[track_caller]
            pub fn minimize(&self, loss: &Variable) -> Result<Vec<(Variable, Variable)>> {
                minimize(Rule::$rule(*self), loss, self.check())
            }

            /// Appends an update of each parameter of a
            /// [program](crate::static_graph::Program) by the gradient beside it: what
            /// [`append_backward`](crate::static_graph::append_backward) gave, or what was made of
            /// that.
            ///
            /// ```
            /// use autograd_core::DType;
            #[doc = concat!("use autograd_core::static_graph::{", stringify!($rule), ", Init, Program, append_backward};")]
            ///
            /// let program = Program::new();
            /// let w = program.create_parameter("w", [3], DType::Float64, Init::Constant(1.0))?;
            /// let pairs = append_backward(&w.square()?.sum(&[])?)?;
            /// // Gradients of a norm above 1 are made shorter.
            /// let squares = pairs[0].1.square()?.sum(&[])?;
            /// let norm = squares.sqrt()?.maximum(1.0)?;
            /// let clipped = vec![(pairs[0].0.clone(), pairs[0].1.try_div(&norm)?)];
            #[doc = concat!(stringify!($rule), "::new(0.1).apply_gradients(&clipped)?;")]
            /// # Ok::<(), autograd_core::Error>(())
            /// ```
            ///
            /// # Errors
            ///
            /// [`Error::Program`](crate::Error::Program) if there is no pair, a variable is of
            /// another program or no parameter, a gradient is of another shape or element type than
            /// its parameter, a parameter is updated already, or an option of the rule is out of
            /// range. The program is then as it was.
            #[track_caller]
            pub fn apply_gradients(&self, pairs: &[(Variable, Variable)]) -> Result<()> {
                apply(Rule::$rule(*self), pairs, self.check())
            }
        }
    )*};
}

minimize! { Sgd Adam AdamW RmsProp }

/// # Learning rates
impl Program {
    /// Gives every update of this program another step size; a schedule does so between runs. Runs
    /// that are going on keep theirs. A step size is read when a run starts, so the plans of the
    /// program stay.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Init, Program, Sgd};
    ///
    /// let program = Program::new();
    /// let w = program.create_parameter("w", [1], DType::Float64, Init::Constant(1.0))?;
    /// Sgd::new(0.5).minimize(&w.sum(&[])?)?;
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
    /// [`Error::Program`](crate::Error::Program) if the program has no update, or the step size is
    /// negative or not finite. Nothing is changed then.
    #[track_caller]
    pub fn set_learning_rate(&self, learning_rate: f64) -> Result<()> {
        let place = Place::here();
        let refused = |why: String| Err(wrong("set_learning_rate", &place, why));
        if !(learning_rate >= 0.0 && learning_rate.is_finite()) {
            return refused(format!(
                "`learning_rate` must be 0 or more, and finite, found {learning_rate}"
            ));
        }
        let mut graph = self.graph();
        let rules = graph.ops.iter_mut().filter_map(|op| match &mut op.kind {
            Kind::Update(rule) => Some(rule),
            _ => None,
        });
        if rules.map(|rule| rule.set_rate(learning_rate)).count() == 0 {
            return refused("the program has no update; `minimize` a loss first".to_owned());
        }
        Ok(())
    }

    /// How a run that starts now changes parameters: the rules of a plan's updates.
    pub(super) fn rules(&self, updates: &[OpId]) -> Vec<Rule> {
        if updates.is_empty() {
            return Vec::new();
        }
        let graph = self.graph();
        let rule = |&id: &OpId| match graph.ops[id].kind {
            Kind::Update(rule) => Some(rule),
            _ => None,
        };
        updates.iter().filter_map(rule).collect()
    }
}

#[track_caller]
fn minimize(rule: Rule, loss: &Variable, checked: Result<()>) -> Result<Vec<(Variable, Variable)>> {
    const CALL: &str = "minimize";
    let (place, program) = (Place::here(), loss.program());
    checked.map_err(|error| with_place(error, &place))?;
    let pairs = program.change(CALL, &place, |change| {
        let name = change.graph.vars[loss.id].name.clone();
        if let Some((parameter, op)) = updated(change.graph, loss.id) {
            let parameter = &change.graph.vars[parameter].name;
            let why = format!(
                "`{parameter}`, which the loss `{name}` depends on, is updated already by {} (built at {})",
                op.kind, op.place
            );
            return Err(wrong(CALL, &place, why));
        }
        let pairs = parameter_gradients(change.graph, loss.id, &place)?;
        if pairs.is_empty() {
            let why = format!(
                "the loss `{name}` depends on no parameter that wants a gradient, so nothing would be \
                 trained"
            );
            return Err(wrong(CALL, &place, why));
        }
        pairs.iter().try_for_each(|&pair| append_update(change, rule, pair, &place))?;
        Ok(pairs)
    })?;
    let variables = |(parameter, grad)| (program.variable(parameter), program.variable(grad));
    Ok(pairs.into_iter().map(variables).collect())
}

/// A parameter that a variable is computed from, and the operator that updates it already.
fn updated(graph: &Graph, var: VarId) -> Option<(VarId, &Op)> {
    let reached = graph.behind(&[var]);
    let update = |op: &&Op| op.kind.is_update() && reached[op.writes[0]];
    graph.ops.iter().find(update).map(|op| (op.writes[0], op))
}

#[track_caller]
fn apply(rule: Rule, pairs: &[(Variable, Variable)], checked: Result<()>) -> Result<()> {
    const CALL: &str = "apply_gradients";
    let place = Place::here();
    checked.map_err(|error| with_place(error, &place))?;
    let Some((first, _)) = pairs.first() else {
        return Err(wrong(CALL, &place, "there is no parameter with a gradient"));
    };
    let program = first.program();
    let own = |variable| program.own(CALL, variable, &place);
    let ids = pairs.iter().map(|(parameter, grad)| Ok((own(parameter)?, own(grad)?)));
    let ids: Vec<(VarId, VarId)> = ids.collect::<Result<_>>()?;
    program.change(CALL, &place, |change| {
        ids.into_iter().try_for_each(|pair| {
            let var = &change.graph.vars[pair.0];
            if !var.is_parameter() {
                return Err(wrong(CALL, &place, format!("`{}` is no parameter", var.name)));
            }
            append_update(change, rule, pair, &place)
        })
    })
}

/// An option that is out of range, reported with the line of the call.
fn with_place(error: Error, place: &Place) -> Error {
    match error {
        Error::Value { op, parameter, expected, found } => {
            wrong(op, place, format!("`{parameter}` must be {expected}, found {found}"))
        }
        error => error,
    }
}

fn append_update(
    change: &mut Change<'_>,
    rule: Rule,
    (parameter, grad): (VarId, VarId),
    place: &Place,
) -> Result<()> {
    let Var { name, form, .. } = change.graph.vars[parameter].clone();
    let mut inputs = vec![parameter, grad];
    for (what, form) in rule.state(&form) {
        let name = change.graph.fresh_name(&format!("{name}@{what}"), true);
        inputs.push(change.keep(&name, form, false, Init::Constant(0.0))?);
    }
    let mut op = Op::new(Kind::Update(rule), &inputs, &[], Phase::Update, place);
    inputs.remove(1);
    op.writes = inputs;
    change.graph.push_op(op)
}
