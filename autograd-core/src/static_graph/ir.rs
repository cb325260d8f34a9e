//! The parts of a program: variables and operators. [`Kind::run`] runs an operator, by its entry if it has one.

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::py_func::Function;
use super::updates::Init;
use crate::error::{Error, Result};
use crate::ops::table::{Attr, Form, Ran, Values};
pub(super) use crate::ops::table::{Effect, Gradient, Inferred, Lengths, OpDef, Operator};

pub(super) type VarId = usize;
pub(super) type OpId = usize;

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Op(Operator),
    Eager(Arc<Eager>),
    PyFunc(Arc<PyFuncOp>),
    CustomOp(Arc<TracedCustomOp>),
    Grad(Grad),
    Init(Init, Form),
}

#[derive(Debug)]
pub(super) struct Eager {
    pub(super) function: Function,
    pub(super) outputs: Vec<Form>,
}

#[derive(Debug)]
pub(super) struct PyFuncOp {
    pub(super) function: Function,
    /// For each parameter, the operator's input; `None` for an absent gradient.
    pub(super) args: Vec<Option<usize>>,
    /// For each of the operator's outputs, the position of the returned value.
    pub(super) picks: Vec<usize>,
    pub(super) results: usize,
    pub(super) outputs: Vec<Form>,
    /// The backward function, its backward function, and so on.
    pub(super) backward: Arc<[Function]>,
    /// Parameters and returned values that are not passed to backward.
    pub(super) skipped: Vec<bool>,
    pub(super) is_gradient: bool,
}

/// Both functions of a `#[py_layer]` op of a traced closure, as programs of their own.
#[derive(Debug)]
pub(super) struct TracedCustomOp {
    pub(super) name: Arc<str>,
    pub(super) forward: Graph,
    /// Variables of `forward`: the outputs, then others that backward reads.
    pub(super) results: Vec<VarId>,
    pub(super) backward: Graph,
    /// The meaning of the first variables of `backward`.
    pub(super) given: Vec<BackwardInput>,
    /// Variables of `backward`: the gradient of each input, if there is one.
    pub(super) found: Vec<Option<VarId>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum BackwardInput {
    Input(usize),
    Result(usize),
    Grad(usize),
}

/// The gradients of operator `of`, for its inputs `wants`, from those of its outputs `seeds`.
#[derive(Clone, Debug)]
pub(super) struct Grad {
    pub(super) of: OpId,
    pub(super) name: Arc<str>,
    pub(super) wants: Vec<usize>,
    pub(super) seeds: Vec<usize>,
}

/// The place of the learning rate among the attributes of an update.
pub(super) const RATE: usize = 0;

impl Kind {
    pub(super) fn of(def: &'static OpDef, attrs: impl Into<Vec<Attr>>) -> Self {
        Self::Op(Operator::new(def, attrs.into()))
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Op(op) => op.def.name.to_owned(),
            Self::Eager(eager) => eager.function.name.to_string(),
            Self::PyFunc(func) => func.function.name.to_string(),
            Self::CustomOp(op) => op.name.to_string(),
            Self::Grad(grad) => format!("{}_grad", grad.name),
            Self::Init(..) => "init".to_owned(),
        }
    }

    pub(super) fn attributes(&self) -> String {
        match self {
            Self::Op(op) => op.def.show.map_or_else(String::new, |show| show(op)),
            Self::Init(init, _) => format!("{init:?}"),
            _ => String::new(),
        }
    }

    pub(super) fn infer(&self, inputs: &[&Form]) -> Inferred {
        match self {
            Self::Op(op) => {
                op.def.infer.map_or_else(|| unreachable!("it is kept"), |infer| infer(op, inputs))
            }
            Self::Eager(eager) => Ok(eager.outputs.clone()),
            Self::PyFunc(func) => Ok(func.outputs.clone()),
            Self::CustomOp(op) => Ok(op.outputs()),
            Self::Grad(grad) => Ok(grad.wants.iter().map(|&at| inputs[at].clone()).collect()),
            Self::Init(_, form) => Ok(vec![form.clone()]),
        }
    }

    /// Computes the results. Gradients do not run here: they need more than inputs.
    pub(super) fn run(&self, inputs: Values) -> Ran {
        match self {
            Self::Op(op) => (op.def.run)(op, inputs, Location::caller()),
            Self::Eager(eager) => eager.run(inputs),
            Self::PyFunc(func) => func.run(inputs),
            Self::CustomOp(op) => Ok(op.run(inputs)?),
            Self::Init(init, form) => Ok(Values::from_iter([init.run(form)])),
            Self::Grad(_) => Err("does not run by itself".into()),
        }
    }

    pub(super) fn draws(&self) -> bool {
        matches!(self, Self::Op(op) if op.draws())
    }

    /// Whether the operator computes new values of kept variables besides its outputs.
    pub(super) fn collects(&self) -> bool {
        matches!(self, Self::Op(op) if op.def.effect == Effect::Collects && op.trains())
    }

    /// Sets the step size of an update, and returns whether this is one.
    pub(super) fn set_rate(&mut self, learning_rate: f64) -> bool {
        let is_update = self.is_update();
        let Self::Op(op) = self else { return false };
        if is_update {
            op.attrs[RATE] = Attr::Number(learning_rate);
        }
        is_update
    }

    pub(super) fn is_update(&self) -> bool {
        matches!(self, Self::Op(op) if op.def.effect == Effect::Updates)
    }

    /// Whether the operator computes new values of kept variables only.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Self::Init(..)) || self.is_update()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PyFunc(func) => write!(f, "py_func `{}`", func.function.name),
            Self::Grad(grad) => write!(f, "the gradient of {}", grad.name),
            kind => f.write_str(&kind.name()),
        }
    }
}

/// The line that built a part of a program, as texts and files show it.
pub(super) type Place = Arc<str>;

/// The method that a user calls, and the line of the call.
pub(super) struct Site<'c> {
    pub(super) call: &'c str,
    pub(super) place: Place,
}

impl<'c> Site<'c> {
    #[track_caller]
    pub(super) fn here(call: &'c str) -> Self {
        Self { call, place: Location::caller().to_string().into() }
    }

    pub(super) fn wrong(&self, why: impl Into<String>) -> Error {
        let (op, location) = (self.call.to_owned(), self.place.to_string());
        Error::Program { op, why: why.into(), location }
    }

    pub(super) fn refuse<R>(&self, why: impl Into<String>) -> Result<R> {
        Err(self.wrong(why))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Fed in every run.
    Data,
    /// Kept by the executor between runs; a parameter is trained.
    Kept {
        parameter: bool,
    },
    Computed,
}

pub(super) type Named<T> = [(&'static str, T)];

pub(super) const ROLES: &Named<Role> = &[
    ("data", Role::Data),
    ("parameter", Role::Kept { parameter: true }),
    ("state", Role::Kept { parameter: false }),
    ("computed", Role::Computed),
];

pub(super) const PHASES: &Named<Phase> =
    &[("forward", Phase::Forward), ("backward", Phase::Backward), ("update", Phase::Update)];

pub(super) fn name_of<T: Copy + PartialEq>(all: &Named<T>, value: T) -> &'static str {
    all.iter().find(|(_, of)| *of == value).map_or("", |(name, _)| name)
}

#[derive(Clone, Debug)]
pub(super) struct Var {
    pub(super) name: String,
    pub(super) form: Form,
    pub(super) role: Role,
    /// The setting of the user; see [`Graph::wants_gradient`].
    pub(super) stop_gradient: bool,
    /// The operator that computes the variable or, for a kept one, its new value.
    pub(super) producer: Option<OpId>,
    pub(super) place: Place,
}

impl Var {
    /// Creates a variable at which gradients stop, unless it is computed or a parameter.
    pub(super) fn new(name: String, form: Form, role: Role, place: &Place) -> Self {
        let stop_gradient = matches!(role, Role::Data | Role::Kept { parameter: false });
        Self { name, form, role, stop_gradient, producer: None, place: place.clone() }
    }

    pub(super) fn is_kept(&self) -> bool {
        matches!(self.role, Role::Kept { .. })
    }

    pub(super) fn is_written(&self) -> bool {
        self.is_kept() && self.producer.is_some()
    }

    pub(super) fn is_parameter(&self) -> bool {
        self.role == Role::Kept { parameter: true }
    }
}

/// `x: float32 [-1, 4]`
impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.form)
    }
}

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
    /// Kept variables that get a new value if the run succeeds.
    pub(super) writes: Vec<VarId>,
    pub(super) phase: Phase,
    pub(super) place: Place,
}

impl Op {
    pub(super) fn new(
        kind: Kind,
        inputs: &[VarId],
        outputs: &[VarId],
        phase: Phase,
        place: &Place,
    ) -> Self {
        let (inputs, outputs, place) = (inputs.to_vec(), outputs.to_vec(), place.clone());
        Self { kind, inputs, outputs, writes: Vec::new(), phase, place }
    }

    /// All variables that the operator computes.
    pub(super) fn results(&self) -> impl Iterator<Item = VarId> {
        self.outputs.iter().chain(&self.writes).copied()
    }

    pub(super) fn gradient(&self) -> VarId {
        self.inputs[1]
    }

    pub(super) fn wrong(&self, why: impl Into<String>) -> Error {
        Site { call: &self.kind.to_string(), place: self.place.clone() }.wrong(why)
    }
}

/// A program as data: variables, and operators in an order in which they can run.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub(super) vars: Vec<Var>,
    pub(super) ops: Vec<Op>,
    names: HashMap<String, VarId>,
    generated: HashMap<String, usize>,
    /// Counts changes, to detect outdated plans.
    pub(super) version: u64,
}

impl Graph {
    pub(super) fn find(&self, name: &str) -> Option<VarId> {
        self.names.get(name).copied()
    }

    pub(super) fn names(&self, vars: &[VarId]) -> String {
        let names: Vec<&str> = vars.iter().map(|&var| self.vars[var].name.as_str()).collect();
        names.join(", ")
    }

    pub(super) fn declare(
        &mut self,
        site: &Site<'_>,
        name: &str,
        form: Form,
        role: Role,
    ) -> Result<VarId> {
        if name.is_empty() {
            return site.refuse("a variable needs a name");
        }
        if let Some(before) = self.find(name).map(|id| &self.vars[id]) {
            let Var { form, place, .. } = before;
            return Err(
                site.wrong(format!("a variable `{name}` ({form}) was created at {place} already"))
            );
        }
        Ok(self.add_var(Var::new(name.to_owned(), form, role, &site.place)))
    }

    pub(super) fn add_var(&mut self, var: Var) -> VarId {
        self.version += 1;
        let id = self.vars.len();
        self.names.insert(var.name.clone(), id);
        self.vars.push(var);
        id
    }

    /// Generates `stem_0`, `stem_1` ..; or the stem itself if it is free and `plain`, as for gradients.
    pub(super) fn fresh_name(&mut self, stem: &str, plain: bool) -> String {
        if plain && !self.names.contains_key(stem) {
            return stem.to_owned();
        }
        let count = self.generated.entry(stem.to_owned()).or_default();
        loop {
            let name = format!("{stem}_{count}");
            *count += 1;
            if !self.names.contains_key(&name) {
                return name;
            }
        }
    }

    /// Runs `build`; if it fails, the program is as before.
    pub(super) fn attempt<R>(&mut self, build: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let (vars, ops, version) = (self.vars.len(), self.ops.len(), self.version);
        let generated = self.generated.clone();
        let built = build(self);
        if built.is_err() {
            for result in self.ops.drain(ops..).flat_map(|op| op.results().collect::<Vec<_>>()) {
                self.vars[result].producer = None;
            }
            for var in self.vars.drain(vars..) {
                self.names.remove(&var.name);
            }
            (self.generated, self.version) = (generated, version);
        }
        built
    }

    /// For each variable, whether one of `vars` is it or depends on it.
    pub(super) fn ancestors_of(&self, vars: &[VarId]) -> Vec<bool> {
        let mut reached = vec![false; self.vars.len()];
        vars.iter().for_each(|&var| reached[var] = true);
        for op in self.ops.iter().rev() {
            if op.outputs.iter().any(|&output| reached[output]) {
                op.inputs.iter().for_each(|&input| reached[input] = true);
            }
        }
        reached
    }

    /// Marks the open variables that depend on marked ones.
    pub(super) fn spread(&self, mut marks: Vec<bool>, open: impl Fn(VarId) -> bool) -> Vec<bool> {
        for op in &self.ops {
            if op.inputs.iter().any(|&input| marks[input]) {
                op.outputs.iter().for_each(|&output| marks[output] |= open(output));
            }
        }
        marks
    }

    /// For each variable, whether gradients flow to it: it is an open float and, if computed, depends on one.
    pub(super) fn wants_gradient(&self) -> Vec<bool> {
        let open = |var: &Var| var.form.dtype.is_float() && !var.stop_gradient;
        let given = self.vars.iter().map(|var| var.role != Role::Computed && open(var));
        self.spread(given.collect(), |id| open(&self.vars[id]))
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for var in self.vars.iter().filter(|var| var.role != Role::Computed) {
            writeln!(f, "{} {var}", name_of(ROLES, var.role))?;
        }
        let mut phase = Phase::Forward;
        for op in &self.ops {
            if op.phase != phase {
                phase = op.phase;
                writeln!(f, "# {}", name_of(PHASES, phase))?;
            }
            // `tanh_0: float32 [-1, 8] = tanh(fc_0.out)`
            let outputs = op.outputs.iter().map(|&id| self.vars[id].to_string());
            let outputs: Vec<String> = outputs.collect();
            if !outputs.is_empty() {
                write!(f, "{} = ", outputs.join(", "))?;
            }
            write!(f, "{}({})", op.kind, self.names(&op.inputs))?;
            let attributes = op.kind.attributes();
            if !attributes.is_empty() {
                write!(f, " {{{attributes}}}")?;
            }
            if !op.writes.is_empty() {
                write!(f, " -> {}", self.names(&op.writes))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
