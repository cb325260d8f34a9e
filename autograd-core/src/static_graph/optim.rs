//! Optimizers in programs: operators that give what the executor keeps new values.

use std::panic::Location;

use super::ir::{Effect, Graph, Kind, Op, OpId, Operator, Phase, Place, Role, VarId, wrong};
use super::program::{Change, Program, Variable};
use super::reverse::parameter_gradients;
use super::rule::{Rule, STEP, step_form};
use super::table::{self, Init};
use crate::error::{Error, Result};
use crate::optim::{Adam, AdamW, RmsProp, Rule as _, Sgd};

macro_rules! minimize {
    ($($rule:ident $update:ident;)*) => {$(
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
                minimize(Rule::$update(*self), loss, self.check(), Location::caller())
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
                apply(Rule::$update(*self), pairs, self.check(), Location::caller())
            }
        }
    )*};
}

minimize! {
    Sgd Sgd;
    Adam Adam;
    AdamW AdamW;
    RmsProp RmsProp;
}

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
        let place = Place::Line(Location::caller());
        let refused = |why: String| Err(wrong("set_learning_rate", &place, why));
        if !(learning_rate >= 0.0 && learning_rate.is_finite()) {
            return refused(format!(
                "`learning_rate` must be 0 or more, and finite, found {learning_rate}"
            ));
        }
        let mut graph = self.graph();
        let mut updates = 0;
        for op in &mut graph.ops {
            if op.kind.effect() == Effect::Updates
                && let Kind::Op(op) = &mut op.kind
                && let Some(mut rule) = Rule::of(op)
            {
                rule.set_rate(learning_rate);
                op.attrs = rule.attrs();
                updates += 1;
            }
        }
        if updates == 0 {
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
        updates.iter().filter_map(|&id| Rule::of(graph.ops[id].kind.op()?)).collect()
    }
}

fn minimize(
    rule: Rule,
    loss: &Variable,
    checked: Result<()>,
    location: &'static Location<'static>,
) -> Result<Vec<(Variable, Variable)>> {
    let (place, program) = (Place::Line(location), loss.program());
    checked.map_err(|error| with_place(error, &place))?;
    let pairs = program.change(|change| {
        if let Some((parameter, op)) = updated(change.graph, loss.id) {
            let why = format!(
                "`{}`, which the loss `{}` depends on, is updated already by {} (built at {})",
                change.graph.vars[parameter].name,
                change.graph.vars[loss.id].name,
                op.kind,
                op.place
            );
            return Err(wrong("minimize", &place, why));
        }
        let pairs = parameter_gradients(change.graph, loss.id, &place)?;
        if pairs.is_empty() {
            let why = format!(
                "the loss `{}` depends on no parameter that wants a gradient, so nothing would be \
                 trained",
                change.graph.vars[loss.id].name
            );
            return Err(wrong("minimize", &place, why));
        }
        for &(parameter, grad) in &pairs {
            append_update(change, rule, parameter, grad, &place)?;
        }
        Ok(pairs)
    })?;
    let variables = |(parameter, grad)| (program.variable(parameter), program.variable(grad));
    Ok(pairs.into_iter().map(variables).collect())
}

/// A parameter that a variable is computed from, and the operator that updates it already.
fn updated(graph: &Graph, var: VarId) -> Option<(VarId, &Op)> {
    let mut reached = vec![false; graph.vars.len()];
    reached[var] = true;
    for op in graph.ops.iter().rev() {
        if op.outputs.iter().any(|&output| reached[output]) {
            op.inputs.iter().for_each(|&input| reached[input] = true);
        }
    }
    let update = |op: &&Op| op.kind.effect() == Effect::Updates && reached[op.writes[0]];
    graph.ops.iter().find(update).map(|op| (op.writes[0], op))
}

fn apply(
    rule: Rule,
    pairs: &[(Variable, Variable)],
    checked: Result<()>,
    location: &'static Location<'static>,
) -> Result<()> {
    const CALL: &str = "apply_gradients";
    let place = Place::Line(location);
    checked.map_err(|error| with_place(error, &place))?;
    let Some((first, _)) = pairs.first() else {
        return Err(wrong(CALL, &place, "there is no parameter with a gradient"));
    };
    let program = first.program();
    let own = |variable| program.own(CALL, variable, &place);
    let ids = pairs.iter().map(|(parameter, grad)| Ok((own(parameter)?, own(grad)?)));
    let ids: Vec<(VarId, VarId)> = ids.collect::<Result<_>>()?;
    program.change(|change| {
        for (parameter, grad) in ids {
            let var = &change.graph.vars[parameter];
            if var.role != (Role::Kept { parameter: true }) {
                return Err(wrong(CALL, &place, format!("`{}` is no parameter", var.name)));
            }
            append_update(change, rule, parameter, grad, &place)?;
        }
        Ok(())
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
    parameter: VarId,
    grad: VarId,
    place: &Place,
) -> Result<()> {
    let form = change.graph.vars[parameter].form.clone();
    let name = change.graph.vars[parameter].name.clone();
    let mut kept = vec![parameter];
    for what in rule.state() {
        let form = if what == STEP { step_form() } else { form.clone() };
        let name = change.graph.fresh_name(&format!("{name}@{what}"), true);
        kept.push(change.keep("minimize", &name, form, false, Init::Constant(0.0), place)?);
    }
    let mut inputs = vec![parameter, grad];
    inputs.extend(&kept[1..]);
    let op = Operator::new(table::update(rule), rule.attrs());
    let op = Op::new(op, inputs, &[], Phase::Update, place);
    change.graph.push_op(Op { writes: kept, ..op }).map(drop)
}
