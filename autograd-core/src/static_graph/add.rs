//! The rules of programs: every operator is checked before it is added.

use std::collections::HashSet;

use super::ir::{Graph, Kind, Op, OpId, Phase, Place, Role, Var, VarId};
use crate::error::{Error, Plural, Result};
use crate::ops::table::{Computed, Form};

impl Graph {
    pub(super) fn push(
        &mut self,
        kind: Kind,
        inputs: &[VarId],
        phase: Phase,
        place: &Place,
    ) -> Result<Vec<VarId>> {
        let op = Op::new(kind, inputs, &[], phase, place);
        let forms = self.check_inputs(&op).map_err(|why| op.wrong(why))?;
        let stem = op.kind.name();
        let add = |form| {
            let name = self.fresh_name(&stem, false);
            self.add_var(Var::new(name, form, Role::Computed, place))
        };
        let outputs: Vec<VarId> = forms.into_iter().map(add).collect();
        self.add_op(Op { outputs: outputs.clone(), ..op });
        Ok(outputs)
    }

    pub(super) fn push_gradients(
        &mut self,
        kind: Kind,
        inputs: &[VarId],
        of: &[VarId],
        place: &Place,
    ) -> Result<Vec<VarId>> {
        let add = |&id: &VarId| {
            let Var { name, form, .. } = self.vars[id].clone();
            let name = self.fresh_name(&format!("{name}@GRAD"), true);
            self.add_var(Var::new(name, form, Role::Computed, place))
        };
        let outputs: Vec<VarId> = of.iter().map(add).collect();
        self.push_op(Op::new(kind, inputs, &outputs, Phase::Backward, place))?;
        Ok(outputs)
    }

    pub(super) fn push_op(&mut self, op: Op) -> Result<()> {
        self.check(&op).map_err(|why| op.wrong(why))?;
        self.add_op(op);
        Ok(())
    }

    /// Adds the operators of another graph. `own` maps its variables to those of this graph; at
    /// the start it has the inputs.
    pub(super) fn push_copy(
        &mut self,
        other: &Graph,
        own: &mut [Option<VarId>],
        phase: Phase,
        missing: impl Fn() -> Error,
    ) -> Result<()> {
        for op in &other.ops {
            let inputs: Option<Vec<VarId>> = op.inputs.iter().map(|&input| own[input]).collect();
            let made =
                self.push(op.kind.clone(), &inputs.ok_or_else(&missing)?, phase, &op.place)?;
            op.outputs.iter().zip(made).for_each(|(&before, id)| own[before] = Some(id));
        }
        Ok(())
    }

    fn add_op(&mut self, op: Op) {
        self.version += 1;
        let id = self.ops.len();
        op.results().for_each(|result| self.vars[result].producer = Some(id));
        self.ops.push(op);
    }

    fn check(&self, op: &Op) -> Computed<()> {
        let forms = self.check_inputs(op)?;
        self.check_outputs(op)?;
        self.check_writes(op)?;
        let results = op.outputs.len() + op.writes.len();
        if forms.len() != results {
            let (values, outputs) =
                (Plural(forms.len(), "value", "values"), Plural(results, "output", "outputs"));
            return Err(format!("computes {values} for {outputs}"));
        }
        for (form, id) in forms.iter().zip(op.results()) {
            let Var { name, form: declared, .. } = &self.vars[id];
            if !form.agrees(declared) {
                return Err(format!("computes {form}, but its output `{name}` is {declared}"));
            }
        }
        Ok(())
    }

    /// Checks that all inputs exist and have not been updated. Returns the forms of the results.
    fn check_inputs(&self, op: &Op) -> Computed<Vec<Form>> {
        for &input in &op.inputs {
            let var = &self.vars[input];
            match (var.role, var.producer) {
                (Role::Computed, None) if op.outputs.contains(&input) => {
                    return Err(format!("`{}` is both an input and an output", var.name));
                }
                (Role::Computed, None) => {
                    return Err(format!(
                        "reads `{}` (created at {}), which no operator before it computes",
                        var.name, var.place
                    ));
                }
                (Role::Kept { .. }, Some(writer)) if self.must_not_read(writer, op.phase) => {
                    return Err(format!(
                        "reads `{}` after {} has updated it; build what reads it before",
                        var.name,
                        self.built(writer)
                    ));
                }
                _ => {}
            }
        }
        let vars = op.inputs.iter().map(|&id| &self.vars[id]);
        let forms: Vec<&Form> = vars.clone().map(|var| &var.form).collect();
        op.kind.infer(&forms).map_err(|why| {
            let given: Vec<String> =
                vars.map(|var| format!("`{}`: {}", var.name, var.form)).collect();
            let given = given.join(", ");
            if given.is_empty() { why } else { format!("{why}; given {given}") }
        })
    }

    fn must_not_read(&self, writer: OpId, phase: Phase) -> bool {
        match phase {
            Phase::Forward => true,
            // A gradient reads the value that its operator read, before the write.
            Phase::Backward => self.ops[writer].phase == Phase::Update,
            Phase::Update => false,
        }
    }

    fn built(&self, id: OpId) -> String {
        format!("{} (built at {})", self.ops[id].kind, self.ops[id].place)
    }

    fn check_outputs(&self, op: &Op) -> Computed<()> {
        let mut own = HashSet::new();
        for &output in &op.outputs {
            let Var { name, role, producer, .. } = &self.vars[output];
            if op.inputs.contains(&output) {
                return Err(format!(
                    "`{name}` is both an input and an output, which is a cycle; create a variable for the \
                     output"
                ));
            }
            let why = match (role, *producer) {
                _ if !own.insert(output) => "is given twice".to_owned(),
                (Role::Data, _) => "is fed".to_owned(),
                (Role::Kept { .. }, _) => {
                    "is a parameter, which only an optimizer changes".to_owned()
                }
                (Role::Computed, None) => continue,
                (Role::Computed, Some(_)) if self.ancestors_of(&op.inputs)[output] => {
                    "is what its own inputs are computed from, which is a cycle; create another \
                     variable"
                        .to_owned()
                }
                (Role::Computed, Some(other)) => {
                    let other = self.built(other);
                    format!("is computed by {other} already; create another variable")
                }
            };
            return Err(format!("the output `{name}` {why}"));
        }
        Ok(())
    }

    fn check_writes(&self, op: &Op) -> Computed<()> {
        let misplaced = match op.kind.writes() {
            true => op.outputs.first().map(|var| ("computes", var)),
            false if op.kind.collects() => None,
            false => op.writes.first().map(|var| ("writes", var)),
        };
        if let Some((what, &var)) = misplaced {
            return Err(format!("{what} `{}`, which it cannot", self.vars[var].name));
        }
        if op.kind.is_update() {
            let kept = op.inputs.iter().enumerate().filter(|(at, _)| *at != 1);
            let distinct: HashSet<&VarId> = op.writes.iter().collect();
            if !kept.map(|(_, kept)| kept).eq(&op.writes) || distinct.len() != op.writes.len() {
                return Err("must write what it reads, each once, and not the gradient".to_owned());
            }
        }
        if op.kind.collects() && !op.inputs.ends_with(&op.writes) {
            return Err("must write the running statistics that it reads".to_owned());
        }
        for var in op.writes.iter().map(|&write| &self.vars[write]) {
            if !var.is_kept() {
                return Err(format!("writes `{}`, which is not kept", var.name));
            }
            if let Some(writer) = var.producer {
                let (name, writer) = (&var.name, self.built(writer));
                return Err(format!("updates `{name}`, which {writer} updates already"));
            }
        }
        Ok(())
    }
}
