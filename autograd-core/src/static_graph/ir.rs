//! What a program is made of: variables and operators. Data only: nothing here runs.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::form::Form;
use super::values::{Computed, Values};
use crate::error::{Error, Result};
pub(super) use crate::ops::table::{Effect, Gradient, Inferred, Lengths, OpDef, Operator, UserOp};

/// Position of a variable in its program.
pub(super) type VarId = usize;
/// Position of an operator in its program.
pub(super) type OpId = usize;

/// What an operator computes.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Op(Operator),
    Grad(Grad),
}

/// The gradients of operator `of`: of its inputs `wants`, given those of its outputs `seeds`.
#[derive(Clone, Debug)]
pub(super) struct Grad {
    pub(super) of: OpId,
    /// That operator's.
    pub(super) name: Arc<str>,
    pub(super) wants: Vec<usize>,
    pub(super) seeds: Vec<usize>,
    pub(super) forms: Vec<Form>,
}

impl From<Operator> for Kind {
    fn from(op: Operator) -> Self {
        Self::Op(op)
    }
}

impl Kind {
    pub(super) fn op(&self) -> Option<&Operator> {
        match self {
            Self::Op(op) => Some(op),
            Self::Grad(_) => None,
        }
    }

    /// What a run of it does beside computing its outputs.
    pub(super) fn effect(&self) -> Effect {
        self.op().map_or(Effect::Nothing, |op| op.def.effect)
    }

    /// The operator's name, from which those of its outputs are made.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Op(op) => op.name().to_owned(),
            Self::Grad(grad) => format!("{}_grad", grad.name),
        }
    }

    pub(super) fn infer(&self, inputs: &[&Form]) -> Inferred {
        match self {
            Self::Op(op) => (op.def.infer)(op, inputs),
            Self::Grad(grad) => Ok(grad.forms.clone()),
        }
    }

    /// Computes the outputs. Gradients are not computed here, for they need what the operator left
    /// behind.
    pub(super) fn run(&self, inputs: Values) -> Computed<Values> {
        match self {
            Self::Op(op) => (op.def.run)(op, inputs, Location::caller()).map_err(String::from),
            Self::Grad(_) => Err("does not run by itself".to_owned()),
        }
    }

    pub(super) fn draws(&self) -> bool {
        self.op().is_some_and(Operator::draws)
    }

    /// Whether it computes new values of what is kept beside its outputs.
    pub(super) fn collects(&self) -> bool {
        self.effect() == Effect::Collects && self.op().is_some_and(Operator::trains)
    }

    /// Whether all that it computes are new values of what is kept.
    pub(super) fn writes(&self) -> bool {
        matches!(self.effect(), Effect::Sets | Effect::Updates)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Op(Operator { user: Some(user), .. }) => f.write_str(&user.shown()),
            Self::Op(op) => f.write_str(op.name()),
            Self::Grad(grad) => write!(f, "the gradient of {}", grad.name),
        }
    }
}

/// The line that built a part of a program.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Line(&'static Location<'static>),
    /// As a file says.
    Loaded(Arc<str>),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "{line}"),
            Self::Loaded(line) => f.write_str(line),
        }
    }
}

/// Where a variable's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// From the feed of a run.
    Data,
    /// Kept by the executor from run to run; trained where it is a parameter.
    Kept { parameter: bool },
    /// From the operator that produces it.
    Computed,
}

/// A value by its name in texts and files.
pub(super) type Named<T> = [(&'static str, T)];

pub(super) const ROLES: &Named<Role> = &[
    ("data", Role::Data),
    ("parameter", Role::Kept { parameter: true }),
    ("state", Role::Kept { parameter: false }),
    ("computed", Role::Computed),
];

pub(super) const PHASES: &Named<Phase> =
    &[("forward", Phase::Forward), ("backward", Phase::Backward), ("update", Phase::Update)];

/// What texts and files call a value.
pub(super) fn name_of<T: Copy + PartialEq>(all: &Named<T>, value: T) -> &'static str {
    all.iter().find(|(_, of)| *of == value).map_or("", |(name, _)| name)
}

#[derive(Clone, Debug)]
pub(super) struct Var {
    pub(super) name: String,
    pub(super) form: Form,
    pub(super) role: Role,
    /// As it was set; see [`Graph::wants_gradient`].
    pub(super) stop_gradient: bool,
    pub(super) producer: Option<OpId>,
    /// The operator that gives a kept variable its new value.
    pub(super) writer: Option<OpId>,
    pub(super) place: Place,
}

impl Var {
    pub(super) fn new(
        name: String,
        form: Form,
        role: Role,
        stop_gradient: bool,
        place: Place,
    ) -> Self {
        Self { name, form, role, stop_gradient, producer: None, writer: None, place }
    }
}

/// What an operator belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Forward,
    Backward,
    Update,
}

#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) kind: Kind,
    pub(super) inputs: Vec<VarId>,
    pub(super) outputs: Vec<VarId>,
    /// Kept variables that get a new value when the run has succeeded.
    pub(super) writes: Vec<VarId>,
    pub(super) phase: Phase,
    pub(super) place: Place,
}

impl Op {
    /// Without new values of kept variables.
    pub(super) fn new(
        kind: impl Into<Kind>,
        inputs: Vec<VarId>,
        outputs: &[VarId],
        phase: Phase,
        place: &Place,
    ) -> Self {
        let (kind, outputs, place) = (kind.into(), outputs.to_vec(), place.clone());
        Self { kind, inputs, outputs, writes: Vec::new(), phase, place }
    }

    /// Of an optimizer's operator, the gradient that it reads.
    pub(super) fn gradient(&self) -> VarId {
        self.inputs[1]
    }

    /// An error in words of this operator.
    pub(super) fn wrong(&self, why: impl Into<String>) -> Error {
        wrong(&self.kind.to_string(), &self.place, why)
    }
}

pub(super) fn wrong(op: &str, place: &Place, why: impl Into<String>) -> Error {
    Error::Program { op: op.to_owned(), why: why.into(), location: place.to_string() }
}

/// A program as data: variables, and operators in an order in which they can run.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub(super) vars: Vec<Var>,
    pub(super) ops: Vec<Op>,
    names: HashMap<String, VarId>,
    /// How many names were generated from each stem.
    generated: HashMap<String, usize>,
    /// What these counts were, for the attempts that go on: see [`Graph::attempt`].
    journal: Vec<(String, usize)>,
    attempts: usize,
    /// Counts changes, so that plans made for an older state are known.
    pub(super) version: u64,
}

impl Graph {
    /// What the table of ops knows as anything.
    pub(super) fn of(graph: &mut dyn Any) -> &mut Self {
        graph.downcast_mut().unwrap_or_else(|| unreachable!("gradients are added to programs"))
    }

    pub(super) fn find(&self, name: &str) -> Option<VarId> {
        self.names.get(name).copied()
    }

    /// Adds a variable under a name that must be free.
    pub(super) fn declare(
        &mut self,
        call: &str,
        name: &str,
        form: Form,
        role: Role,
        stop_gradient: bool,
        place: &Place,
    ) -> Result<VarId> {
        if name.is_empty() {
            return Err(wrong(call, place, "a variable needs a name"));
        }
        if let Some(before) = self.find(name).map(|id| &self.vars[id]) {
            let why = format!(
                "a variable `{name}` ({}) was created at {} already",
                before.form, before.place
            );
            return Err(wrong(call, place, why));
        }
        Ok(self.add_var(Var::new(name.to_owned(), form, role, stop_gradient, place.clone())))
    }

    /// Adds a variable whose name is free.
    pub(super) fn add_var(&mut self, var: Var) -> VarId {
        self.version += 1;
        let id = self.vars.len();
        self.names.insert(var.name.clone(), id);
        self.vars.push(var);
        id
    }

    /// `stem_0`, `stem_1` .. or, for a gradient, the stem itself where it is free.
    pub(super) fn fresh_name(&mut self, stem: &str, plain: bool) -> String {
        if plain && !self.names.contains_key(stem) {
            return stem.to_owned();
        }
        let count = self.generated.entry(stem.to_owned()).or_default();
        if self.attempts > 0 {
            self.journal.push((stem.to_owned(), *count));
        }
        loop {
            let name = format!("{stem}_{count}");
            *count += 1;
            if !self.names.contains_key(&name) {
                return name;
            }
        }
    }

    /// A variable that an operator will compute, with a generated name.
    pub(super) fn add_computed(
        &mut self,
        stem: &str,
        plain: bool,
        form: Form,
        place: &Place,
    ) -> VarId {
        let name = self.fresh_name(stem, plain);
        self.add_var(Var::new(name, form, Role::Computed, false, place.clone()))
    }

    /// A variable for the gradient of each of these.
    pub(super) fn add_gradients(
        &mut self,
        of: impl IntoIterator<Item = VarId>,
        place: &Place,
    ) -> Vec<VarId> {
        let add = |id: VarId| {
            let (stem, form) = (format!("{}@GRAD", self.vars[id].name), self.vars[id].form.clone());
            self.add_computed(&stem, true, form, place)
        };
        of.into_iter().map(add).collect()
    }

    /// Builds a part of the program: all of it, or, where it is refused, nothing.
    pub(super) fn attempt<R>(&mut self, build: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let (vars, ops, version) = (self.vars.len(), self.ops.len(), self.version);
        let noted = self.journal.len();
        self.attempts += 1;
        let built = build(self);
        self.attempts -= 1;
        if built.is_err() {
            for op in self.ops.drain(ops..) {
                for &output in op.outputs.iter().filter(|output| **output < vars) {
                    self.vars[output].producer = None;
                }
                for &write in op.writes.iter().filter(|write| **write < vars) {
                    self.vars[write].writer = None;
                }
            }
            for var in self.vars.drain(vars..) {
                self.names.remove(&var.name);
            }
            for (stem, count) in self.journal.drain(noted..).rev() {
                self.generated.insert(stem, count);
            }
            self.version = version;
        }
        if self.attempts == 0 {
            self.journal.clear();
        }
        built
    }

    /// For each variable, whether gradients flow to it: it is of a float type, they do not stop
    /// there, and, where it is computed, they flow to something it is computed from.
    pub(super) fn wants_gradient(&self) -> Vec<bool> {
        let open = |var: &Var| var.form.dtype.is_float() && !var.stop_gradient;
        let mut wants: Vec<bool> =
            self.vars.iter().map(|var| var.role != Role::Computed && open(var)).collect();
        for op in &self.ops {
            let any = op.inputs.iter().any(|&input| wants[input]);
            for &output in &op.outputs {
                wants[output] = any && open(&self.vars[output]);
            }
        }
        wants
    }
}
