//! The rules that hold in every program: an operator is added if it keeps them, and a whole program
//! is proved after every transformation.

use std::collections::HashSet;

use super::form::Form;
use super::ir::{Effect, Graph, Kind, Op, OpId, Phase, Place, Role, VarId, wrong};
use crate::error::{Error, Result};

impl Graph {
    /// Adds an operator and generates its outputs.
    pub(super) fn push(
        &mut self,
        kind: impl Into<Kind>,
        inputs: &[VarId],
        phase: Phase,
        place: &Place,
    ) -> Result<Vec<VarId>> {
        let kind = kind.into();
        let forms = self.infer(&kind, inputs, place)?;
        let stem = kind.name();
        self.attempt(|graph| {
            let add = |form| graph.add_computed(&stem, false, form, place);
            let outputs: Vec<VarId> = forms.into_iter().map(add).collect();
            graph.push_op(Op::new(kind, inputs.to_vec(), &outputs, phase, place))?;
            Ok(outputs)
        })
    }

    /// Adds the operators of another graph. `own` has a place for each variable there: what it is here, where
    /// that is known before.
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

    /// The forms of the outputs, or why there are none.
    pub(super) fn infer(&self, kind: &Kind, inputs: &[VarId], place: &Place) -> Result<Vec<Form>> {
        let forms: Vec<&Form> = inputs.iter().map(|&id| &self.vars[id].form).collect();
        kind.infer(&forms).map_err(|why| {
            let given: Vec<String> = inputs
                .iter()
                .map(|&id| format!("`{}`: {}", self.vars[id].name, self.vars[id].form))
                .collect();
            let given = if given.is_empty() {
                String::new()
            } else {
                format!("; given {}", given.join(", "))
            };
            wrong(&kind.to_string(), place, format!("{why}{given}"))
        })
    }

    /// Adds an operator whose outputs are there, if it keeps the rules.
    pub(super) fn push_op(&mut self, op: Op) -> Result<OpId> {
        let id = self.ops.len();
        self.check(&op, id)?;
        self.version += 1;
        for &output in &op.outputs {
            self.vars[output].producer = Some(id);
        }
        for &write in &op.writes {
            self.vars[write].writer = Some(id);
        }
        self.ops.push(op);
        Ok(id)
    }

    /// Proves the whole program, after every transformation.
    pub(super) fn verify(&self) -> Result<()> {
        let mut produced = HashSet::new();
        for (id, op) in self.ops.iter().enumerate() {
            self.check(op, id)?;
            for &input in &op.inputs {
                let var = &self.vars[input];
                if var.role == Role::Computed && !produced.contains(&input) {
                    return Err(op.wrong(format!("reads `{}` before it is computed", var.name)));
                }
            }
            produced.extend(op.outputs.iter().copied());
        }
        Ok(())
    }

    /// The rules for one operator at position `id`.
    pub(super) fn check(&self, op: &Op, id: OpId) -> Result<()> {
        let name = |id: VarId| &self.vars[id].name;
        let written = |var: VarId| self.vars[var].writer.filter(|&writer| writer < id);
        for &input in &op.inputs {
            let var = &self.vars[input];
            let missing = match var.role {
                Role::Computed => var.producer.is_none_or(|producer| producer >= id),
                Role::Data | Role::Kept { .. } => false,
            };
            if missing && op.outputs.contains(&input) {
                return Err(op.wrong(format!("`{}` is both an input and an output", var.name)));
            }
            if missing {
                return Err(op.wrong(format!(
                    "reads `{}` (created at {}), which no operator before it computes",
                    var.name, var.place
                )));
            }
            // A backward reads what its operator read, the value before.
            let changed = |&writer: &OpId| match op.phase {
                Phase::Forward => true,
                Phase::Backward => self.ops[writer].phase == Phase::Update,
                Phase::Update => false,
            };
            if let Some(writer) = written(input).filter(changed) {
                return Err(op.wrong(format!(
                    "reads `{}` after {} (built at {}) has updated it; build what reads it before",
                    var.name, self.ops[writer].kind, self.ops[writer].place
                )));
            }
        }
        let mut own = HashSet::new();
        for &output in &op.outputs {
            let var = &self.vars[output];
            if op.inputs.contains(&output) {
                return Err(op.wrong(format!(
                    "`{}` is both an input and an output, which is a cycle; create a variable for \
                     the output",
                    var.name
                )));
            }
            if !own.insert(output) {
                return Err(op.wrong(format!("the output `{}` stands twice", var.name)));
            }
            match (var.role, var.producer) {
                (Role::Data, _) => {
                    return Err(op.wrong(format!("the output `{}` is fed", var.name)));
                }
                (Role::Kept { .. }, _) => {
                    return Err(op.wrong(format!(
                        "the output `{}` is a parameter, which only an optimizer changes",
                        var.name
                    )));
                }
                (Role::Computed, Some(producer)) if producer != id => {
                    return Err(op.wrong(self.taken(op, output, producer)));
                }
                (Role::Computed, _) => {}
            }
        }
        // Others than an optimizer compute outputs, and an optimizer nothing else.
        let (misplaced, what) = match op.kind.writes() {
            true => (op.outputs.first(), "computes"),
            false if op.kind.collects() => (None, "writes"),
            false => (op.writes.first(), "writes"),
        };
        if let Some(&misplaced) = misplaced {
            return Err(op.wrong(format!("{what} `{}`, which it cannot", name(misplaced))));
        }
        if op.kind.effect() == Effect::Updates {
            let mut kept = op.inputs.iter().enumerate().filter(|(at, _)| *at != 1);
            let distinct: HashSet<&VarId> = op.writes.iter().collect();
            let moved = op.writes.iter().all(|write| kept.next().is_some_and(|(_, k)| k == write));
            if !moved || distinct.len() != op.writes.len() {
                return Err(op.wrong("must write what it reads, each once, and not the gradient"));
            }
        }
        if op.kind.collects() && !op.inputs.ends_with(&op.writes) {
            return Err(op.wrong("must write the running statistics that it reads"));
        }
        for &write in &op.writes {
            if !matches!(self.vars[write].role, Role::Kept { .. }) {
                return Err(op.wrong(format!("writes `{}`, which is not kept", name(write))));
            }
            if let Some(writer) = written(write) {
                return Err(op.wrong(format!(
                    "updates `{}`, which {} (built at {}) updates already",
                    name(write),
                    self.ops[writer].kind,
                    self.ops[writer].place
                )));
            }
        }
        let inferred = self.infer(&op.kind, &op.inputs, &op.place)?;
        let results: Vec<VarId> = op.outputs.iter().chain(&op.writes).copied().collect();
        if inferred.len() != results.len() {
            return Err(op.wrong(format!(
                "computes {} values for {} outputs",
                inferred.len(),
                results.len()
            )));
        }
        for (form, &result) in inferred.iter().zip(&results) {
            let declared = &self.vars[result].form;
            if !form.agrees(declared) {
                return Err(op.wrong(format!(
                    "computes {form}, but its output `{}` is {declared}",
                    name(result)
                )));
            }
        }
        Ok(())
    }

    /// Why an output that is computed elsewhere cannot be computed by `op` too.
    fn taken(&self, op: &Op, output: VarId, producer: OpId) -> String {
        let other = &self.ops[producer];
        let name = &self.vars[output].name;
        if self.behind(&op.inputs).contains(&output) {
            return format!(
                "the output `{name}` is what its own inputs are computed from, which is a cycle; \
                 create another variable"
            );
        }
        format!(
            "the output `{name}` is computed by {} (built at {}) already; create another variable",
            other.kind, other.place
        )
    }

    /// All variables that these are computed from, themselves included.
    pub(super) fn behind(&self, vars: &[VarId]) -> HashSet<VarId> {
        let mut seen: HashSet<VarId> = vars.iter().copied().collect();
        let mut waiting: Vec<VarId> = vars.to_vec();
        while let Some(var) = waiting.pop() {
            if let Some(producer) = self.vars[var].producer {
                for &input in &self.ops[producer].inputs {
                    if seen.insert(input) {
                        waiting.push(input);
                    }
                }
            }
        }
        seen
    }
}
