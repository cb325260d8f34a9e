//! What a program is made of: variables, operators, and the rules that hold between them. Data
//! only: nothing here runs.

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use super::kind::Kind;
use crate::array::DType;
use crate::error::{Error, Result};

/// Lengths of the axes; `None` for a free one, whose length is known when the program runs.
pub(super) type Dims = SmallVec<[Option<usize>; 4]>;

/// Position of a variable in its program.
pub(super) type VarId = usize;
/// Position of an operator in its program.
pub(super) type OpId = usize;

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

/// Element type and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) dtype: DType,
    pub(super) dims: Dims,
}

impl Form {
    pub(super) fn new(dtype: DType, dims: Dims) -> Self {
        Self { dtype, dims }
    }

    /// Why a tensor of this type and shape is none of this form.
    pub(super) fn misfit(&self, dtype: DType, shape: &[usize]) -> Option<String> {
        if dtype != self.dtype {
            return Some(format!("must have element type {}, found {dtype}", self.dtype));
        }
        let fits = shape.len() == self.dims.len()
            && shape.iter().zip(&self.dims).all(|(&n, dim)| dim.is_none_or(|dim| dim == n));
        (!fits).then(|| format!("must have shape {}, found {shape:?}", ShapeOf(&self.dims)))
    }

    /// Whether a tensor could be of both forms.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        self.dtype == other.dtype
            && self.dims.len() == other.dims.len()
            && self.dims.iter().zip(&other.dims).all(|pair| match pair {
                (Some(a), Some(b)) => a == b,
                _ => true,
            })
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dtype, ShapeOf(&self.dims))
    }
}

/// `[-1, 4]`: a free axis as the documents write it.
pub(super) struct ShapeOf<'a>(pub(super) &'a [Option<usize>]);

impl fmt::Display for ShapeOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, dim) in self.0.iter().enumerate() {
            let gap = if i > 0 { ", " } else { "" };
            match dim {
                Some(n) => write!(f, "{gap}{n}")?,
                None => write!(f, "{gap}-1")?,
            }
        }
        f.write_str("]")
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

    /// Adds an operator and generates its outputs.
    pub(super) fn push(
        &mut self,
        kind: Kind,
        inputs: &[VarId],
        phase: Phase,
        place: &Place,
    ) -> Result<Vec<VarId>> {
        let forms = self.infer(&kind, inputs, place)?;
        let stem = kind.stem();
        self.attempt(|graph| {
            let add = |form| graph.add_computed(&stem, false, form, place);
            let outputs: Vec<VarId> = forms.into_iter().map(add).collect();
            let (inputs, writes, place) = (inputs.to_vec(), Vec::new(), place.clone());
            let op = Op { kind, inputs, outputs: outputs.clone(), writes, phase, place };
            graph.push_op(op)?;
            Ok(outputs)
        })
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

    pub(super) fn add_computed(
        &mut self,
        stem: &str,
        plain: bool,
        form: Form,
        place: &Place,
    ) -> VarId {
        let name = self.fresh_name(stem, plain);
        self.add_var(Var {
            name,
            form,
            role: Role::Computed,
            stop_gradient: false,
            producer: None,
            writer: None,
            place: place.clone(),
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
