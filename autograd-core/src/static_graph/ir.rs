//! What a program is made of: variables, operators, and what an operator of the table is. Data only:
//! nothing here runs.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::attr::{Param, Type, shown};
use super::form::Form;
use super::values::{Computed, Needs, Pull, Values};
use crate::error::{Error, Result};
use crate::graph::AnyTensor;
use crate::ops::trace::{Attr, Dims};

/// Position of a variable in its program.
pub(super) type VarId = usize;
/// Position of an operator in its program.
pub(super) type OpId = usize;

/// The forms of what an operator computes, or why there are none.
pub(super) type Inferred = std::result::Result<Vec<Form>, String>;

/// An operator's entry in the table: all that is known of it.
#[derive(Clone, Copy)]
pub(super) struct OpDef {
    /// As texts and errors show it.
    pub(super) name: &'static str,
    /// Where operators of several families share a name; files write it before the name.
    pub(super) family: &'static str,
    /// Which of its family it is.
    pub(super) index: usize,
    pub(super) attrs: &'static [Param],
    /// Its attributes, as the program's text shows them; empty where there are none.
    pub(super) show: fn(&Operator) -> String,
    /// The forms of what it computes from inputs of these forms.
    pub(super) infer: fn(&Operator, &[&Form]) -> Inferred,
    /// Computes the outputs by eager ops, which are recorded where recording is on.
    pub(super) run: fn(&Operator, Values) -> Computed<Values>,
    pub(super) gradient: Gradient,
    /// Whether it computes each element of its results from one element of each input, as that is
    /// broadcast to them.
    pub(super) is_elementwise: bool,
    /// Whether it reads no more of its input than the shape.
    pub(super) reads_shape: bool,
    pub(super) effect: Effect,
    pub(super) lengths: Lengths,
}

/// Which lengths among its attributes may follow free axes of the input, where an operator is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lengths {
    Fixed,
    /// One, which is what is left of the elements.
    OneOpen,
    /// Those of the input's axes, the last of which are the last here.
    OfInput,
    /// That of the axis which the first attribute names.
    OfAxis,
}

/// What a run of an operator does beside computing its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    /// In training it draws random numbers, of which its gradient needs to know.
    Draws,
    /// In training it gives kept variables new values.
    Collects,
    /// It computes nothing but first values of kept variables.
    Sets,
    /// It computes nothing but new values of kept variables, when all else of a run is done.
    Updates,
    /// It runs code of the user.
    UserCode,
}

/// Where an operator's gradients come from.
#[derive(Clone, Copy)]
pub(super) enum Gradient {
    /// It has none.
    None,
    /// From what the eager engine records when the operator runs.
    Recorded,
    /// From an eager rule, which reads values and needs no record. `reads` is given the forms of the
    /// inputs and which gradients are wanted; it is `None` where there is no rule.
    Rule {
        reads: fn(&Operator, &[&Form], &[usize]) -> Option<Needs>,
        pull: fn(&Operator, Pull<'_>) -> Computed<Values>,
    },
    /// From operators that are added to the program: given the operator, the gradients of its outputs,
    /// and which gradients are wanted.
    Operators(fn(&mut Graph, OpId, &[Option<VarId>], &[usize]) -> Result<Vec<VarId>>),
}

impl OpDef {
    /// Without attributes, inference and a way to run: an entry has what it says beside.
    pub(super) const fn new(name: &'static str) -> Self {
        Self {
            name,
            family: "",
            index: 0,
            attrs: &[],
            show: Operator::show_all,
            infer: |_, _| Err("its form does not follow from its inputs".to_owned()),
            run: |_, _| Err("does not run by itself".to_owned()),
            gradient: Gradient::Recorded,
            is_elementwise: false,
            reads_shape: false,
            effect: Effect::Nothing,
            lengths: Lengths::Fixed,
        }
    }
}

/// What an operator of a user's code has beside its attributes.
pub(super) trait UserOp: Any + fmt::Debug + Send + Sync {
    /// The operator's name.
    fn name(&self) -> &str;
    /// As errors show it.
    fn shown(&self) -> String {
        self.name().to_owned()
    }
    /// Whether gradients flow through it.
    fn has_gradient(&self) -> bool {
        true
    }
    /// Whether it may do more than compute, so that it runs in every run.
    fn has_effect(&self) -> bool {
        false
    }
}

/// An operator of the table with its attributes.
#[derive(Clone)]
pub(super) struct Operator {
    pub(super) def: &'static OpDef,
    pub(super) attrs: Vec<Attr>,
    pub(super) user: Option<Arc<dyn UserOp>>,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name(), self.attrs)
    }
}

impl Operator {
    pub(super) fn new(def: &'static OpDef, attrs: Vec<Attr>) -> Self {
        debug_assert_eq!(def.attrs.len(), attrs.len(), "{}", def.name);
        Self { def, attrs, user: None }
    }

    pub(super) fn of_user(def: &'static OpDef, user: impl UserOp) -> Self {
        Self { def, attrs: Vec::new(), user: Some(Arc::new(user)) }
    }

    pub(super) fn name(&self) -> &str {
        self.user.as_ref().map_or(self.def.name, |user| user.name())
    }

    pub(super) fn is(&self, def: &'static OpDef) -> bool {
        std::ptr::eq(self.def, def)
    }

    /// What the user's code is.
    pub(super) fn user<T: UserOp>(&self) -> &T {
        let user: Option<&dyn Any> = self.user.as_ref().map(|user| &**user as &dyn Any);
        match user.and_then(<dyn Any>::downcast_ref) {
            Some(user) => user,
            None => unreachable!("`{}` was made with another kind of code", self.def.name),
        }
    }

    fn show_all(&self) -> String {
        let attrs = self.def.attrs.iter().zip(&self.attrs);
        let texts = attrs.map(|(param, attr)| shown(*param, attr)).filter(|text| !text.is_empty());
        texts.collect::<Vec<_>>().join(", ")
    }

    /// Whether it has an attribute by which a copy for testing differs, and that is set.
    pub(super) fn trains(&self) -> bool {
        let mut attrs = self.def.attrs.iter().zip(&self.attrs);
        attrs.any(|((_, kind), attr)| *kind == Type::Training && matches!(attr, Attr::Flag(true)))
    }

    /// The same in a copy for testing.
    pub(super) fn stop_training(&mut self) {
        let attrs = self.def.attrs.iter().zip(&mut self.attrs);
        attrs.filter(|((_, kind), _)| *kind == Type::Training).for_each(|(_, attr)| {
            *attr = Attr::Flag(false);
        });
    }

    /// Whether it draws random numbers of which its gradient needs to know.
    pub(super) fn draws(&self) -> bool {
        let all = matches!(self.attrs.first(), Some(Attr::Number(p)) if *p == 0.0);
        self.def.effect == Effect::Draws && self.trains() && !all
    }
}

/// Attributes by position, as the operator's entry says what they are.
macro_rules! attributes {
    ($($method:ident -> $t:ty, $pattern:pat => $value:expr;)*) => {
        impl Operator {
            $(pub(super) fn $method(&self, at: usize) -> $t {
                match &self.attrs[at] {
                    $pattern => $value,
                    other => unreachable!("attribute {at} of {} is {other:?}", self.def.name),
                }
            })*
        }
    };
}

attributes! {
    number -> f64, Attr::Number(x) => *x;
    numbers -> &[f64], Attr::Numbers(all) => all;
    flag -> bool, Attr::Flag(flag) => *flag;
    int -> isize, Attr::Int(n) => *n;
    ints -> &[isize], Attr::Ints(all) => all;
    dims -> &Dims, Attr::Dims(dims) => dims;
    pairs -> &[[usize; 2]], Attr::Pairs(pairs) => pairs;
    dtype -> crate::array::DType, Attr::Type(dtype) => *dtype;
    tensor -> &AnyTensor, Attr::Tensor(tensor) => tensor;
}

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

    pub(super) fn is(&self, def: &'static OpDef) -> bool {
        self.op().is_some_and(|op| op.is(def))
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
            Self::Op(op) => (op.def.run)(op, inputs),
            Self::Grad(_) => Err("does not run by itself".to_owned()),
        }
    }

    /// What its gradients read, where a rule computes them.
    pub(super) fn reads(&self, inputs: &[&Form], wants: &[usize]) -> Option<Needs> {
        let op = self.op()?;
        match op.def.gradient {
            Gradient::Rule { reads, .. } => reads(op, inputs, wants),
            _ => None,
        }
    }

    /// Its gradients by a rule.
    pub(super) fn pull(&self, pull: Pull<'_>) -> Computed<Values> {
        match self.op().map(|op| (op, op.def.gradient)) {
            Some((op, Gradient::Rule { pull: rule, .. })) => rule(op, pull),
            _ => Err("has no rule of this kind".to_owned()),
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
