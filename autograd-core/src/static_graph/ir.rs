//! What a program is made of: variables and operators. Data only: nothing here runs.

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::attr::Attr;
use super::form::Form;
use super::py_func::Function;
use super::rule::{Init, Rule};
use super::values::{Computed, Values};
use crate::error::{Error, Result};
pub(super) use crate::ops::table::{Effect, Gradient, Inferred, Lengths, OpDef, Operator};

/// Position of a variable in its program.
pub(super) type VarId = usize;
/// Position of an operator in its program.
pub(super) type OpId = usize;

/// What an operator computes.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Op(Operator),
    Eager(Arc<Eager>),
    PyFunc(Arc<Foreign>),
    Layer(Arc<TracedLayer>),
    Grad(Grad),
    /// The first value of a kept variable.
    Init(Init, Form),
    /// A step of an optimizer, when all else of a run is done. Inputs are the parameter, its gradient and
    /// what the rule remembers; all but the gradient are written.
    Update(Rule),
}

/// Eager code in a program.
#[derive(Debug)]
pub(super) struct Eager {
    pub(super) function: Function,
    pub(super) outputs: Vec<Form>,
}

/// A user's function over arrays in a program.
#[derive(Debug)]
pub(super) struct Foreign {
    pub(super) function: Function,
    /// For each parameter the operator's input, or none: a gradient that did not come.
    pub(super) args: Vec<Option<usize>>,
    /// For each of the operator's outputs, which of the returned values it is.
    pub(super) picks: Vec<usize>,
    /// How many values are returned.
    pub(super) results: usize,
    pub(super) outputs: Vec<Form>,
    /// Its backward function, that one's, and so on.
    pub(super) backward: Arc<[Function]>,
    /// Parameters and returned values that backward is not given.
    pub(super) skipped: Vec<bool>,
    pub(super) is_gradient: bool,
}

/// Both functions of a `#[py_layer]` op of a traced closure, as programs of their own.
#[derive(Debug)]
pub(super) struct TracedLayer {
    pub(super) name: Arc<str>,
    pub(super) forward: Graph,
    /// Variables of `forward`: the outputs, and then what backward reads of the rest.
    pub(super) results: Vec<VarId>,
    pub(super) backward: Graph,
    /// What the first variables of `backward` are.
    pub(super) given: Vec<Given>,
    /// Of `backward`, the gradient of each input that has one.
    pub(super) found: Vec<Option<VarId>>,
}

/// What a layer's backward reads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Given {
    Input(usize),
    Result(usize),
    /// The gradient of an output.
    Grad(usize),
}

/// The gradients of operator `of`: of its inputs `wants`, given those of its outputs `seeds`.
#[derive(Clone, Debug)]
pub(super) struct Grad {
    pub(super) of: OpId,
    pub(super) name: Arc<str>,
    pub(super) wants: Vec<usize>,
    pub(super) seeds: Vec<usize>,
}

impl Kind {
    /// An entry of the table with its attributes.
    pub(super) fn of(def: &'static OpDef, attrs: impl Into<Vec<Attr>>) -> Self {
        Self::Op(Operator::new(def, attrs.into()))
    }

    /// The operator's name, from which those of its outputs are made.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Op(op) => op.def.name.to_owned(),
            Self::Eager(eager) => eager.function.name.to_string(),
            Self::PyFunc(foreign) => foreign.function.name.to_string(),
            Self::Layer(layer) => layer.name.to_string(),
            Self::Grad(grad) => format!("{}_grad", grad.name),
            Self::Init(..) => "init".to_owned(),
            Self::Update(rule) => rule.name().to_owned(),
        }
    }

    /// Its attributes, as the program's text shows them.
    pub(super) fn attributes(&self) -> String {
        match self {
            Self::Op(op) => (op.def.show)(op),
            Self::Init(init, _) => format!("{init:?}"),
            Self::Update(rule) => rule.shown(),
            _ => String::new(),
        }
    }

    pub(super) fn infer(&self, inputs: &[&Form]) -> Inferred {
        match self {
            Self::Op(op) => (op.def.infer)(op, inputs),
            Self::Eager(eager) => Ok(eager.outputs.clone()),
            Self::PyFunc(foreign) => Ok(foreign.outputs.clone()),
            Self::Layer(layer) => Ok(layer.outputs()),
            Self::Grad(grad) => Ok(grad.wants.iter().map(|&at| inputs[at].clone()).collect()),
            Self::Init(_, form) => Ok(vec![form.clone()]),
            Self::Update(rule) => rule.infer(inputs),
        }
    }

    /// Computes the outputs. Gradients are not computed here, for they need what the operator left
    /// behind.
    pub(super) fn run(&self, inputs: Values) -> Computed<Values> {
        match self {
            Self::Op(op) => (op.def.run)(op, inputs, Location::caller()).map_err(String::from),
            Self::Eager(eager) => eager.run(inputs),
            Self::PyFunc(foreign) => foreign.run(inputs),
            Self::Layer(layer) => layer.run(inputs),
            Self::Init(init, form) => Ok(Values::from_iter([init.run(form)])),
            Self::Grad(_) | Self::Update(_) => Err("does not run by itself".to_owned()),
        }
    }

    pub(super) fn draws(&self) -> bool {
        matches!(self, Self::Op(op) if op.draws())
    }

    /// Whether it computes new values of what is kept beside its outputs.
    pub(super) fn collects(&self) -> bool {
        matches!(self, Self::Op(op) if op.def.effect == Effect::Collects && op.trains())
    }

    pub(super) fn is_update(&self) -> bool {
        matches!(self, Self::Update(_))
    }

    /// Whether all that it computes are new values of what is kept.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Self::Init(..) | Self::Update(_))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PyFunc(foreign) => write!(f, "py_func `{}`", foreign.function.name),
            Self::Grad(grad) => write!(f, "the gradient of {}", grad.name),
            kind => f.write_str(&kind.name()),
        }
    }
}

/// The line that built a part of a program, also as a file says.
pub(super) type Place = Arc<str>;

/// What a user calls, and where.
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
    /// The operator that computes it or, of a kept one, that gives it its new value.
    pub(super) producer: Option<OpId>,
    pub(super) place: Place,
}

impl Var {
    /// Gradients stop at what is neither computed nor a parameter.
    pub(super) fn new(name: String, form: Form, role: Role, place: &Place) -> Self {
        let stop_gradient = matches!(role, Role::Data | Role::Kept { parameter: false });
        Self { name, form, role, stop_gradient, producer: None, place: place.clone() }
    }

    pub(super) fn is_kept(&self) -> bool {
        matches!(self.role, Role::Kept { .. })
    }

    /// Whether runs give it new values.
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

    /// All that it computes.
    pub(super) fn results(&self) -> impl Iterator<Item = VarId> {
        self.outputs.iter().chain(&self.writes).copied()
    }

    /// Of an optimizer's operator, the gradient that it reads.
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
    /// How many names were generated from each stem.
    generated: HashMap<String, usize>,
    /// Counts changes, so that plans made for an older state are known.
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

    /// Adds a variable under a name that must be free.
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
        loop {
            let name = format!("{stem}_{count}");
            *count += 1;
            if !self.names.contains_key(&name) {
                return name;
            }
        }
    }

    /// Builds a part of the program: all of it, or, where it is refused, nothing.
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

    /// For each variable, whether one of these is computed from it, themselves included.
    pub(super) fn behind(&self, vars: &[VarId]) -> Vec<bool> {
        let mut reached = vec![false; self.vars.len()];
        vars.iter().for_each(|&var| reached[var] = true);
        for op in self.ops.iter().rev() {
            if op.outputs.iter().any(|&output| reached[output]) {
                op.inputs.iter().for_each(|&input| reached[input] = true);
            }
        }
        reached
    }

    /// Marks what is computed from marked variables, as far as it is open.
    pub(super) fn spread(&self, mut marks: Vec<bool>, open: impl Fn(VarId) -> bool) -> Vec<bool> {
        for op in &self.ops {
            if op.inputs.iter().any(|&input| marks[input]) {
                op.outputs.iter().for_each(|&output| marks[output] |= open(output));
            }
        }
        marks
    }

    /// For each variable, whether gradients flow to it: it is of a float type, they do not stop
    /// there, and, where it is computed, they flow to something it is computed from.
    pub(super) fn wants_gradient(&self) -> Vec<bool> {
        let open = |var: &Var| var.form.dtype.is_float() && !var.stop_gradient;
        let given = self.vars.iter().map(|var| var.role != Role::Computed && open(var));
        self.spread(given.collect(), |id| open(&self.vars[id]))
    }
}

/// A program as text: its variables that come from outside, and a line an operator.
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
