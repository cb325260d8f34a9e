//! What a program is made of: variables, operators, and the rules that hold between them. Data
//! only: nothing here runs.

use std::collections::{HashMap, HashSet};
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
        let outputs: Vec<VarId> =
            forms.into_iter().map(|form| self.add_computed(&stem, false, form, place)).collect();
        let op = Op {
            kind,
            inputs: inputs.to_vec(),
            outputs: outputs.clone(),
            writes: Vec::new(),
            phase,
            place: place.clone(),
        };
        self.push_op(op)?;
        Ok(outputs)
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
            place: place.clone(),
        })
    }

    /// Adds an operator whose outputs are there, if it keeps the rules.
    pub(super) fn push_op(&mut self, op: Op) -> Result<OpId> {
        let id = self.ops.len();
        self.check(&op, id, &self.written())?;
        self.version += 1;
        for &output in &op.outputs {
            self.vars[output].producer = Some(id);
        }
        self.ops.push(op);
        Ok(id)
    }

    /// Kept variables that are written, with who does it.
    fn written(&self) -> HashMap<VarId, OpId> {
        let writers = self.ops.iter().enumerate();
        writers.flat_map(|(id, op)| op.writes.iter().map(move |&var| (var, id))).collect()
    }

    /// Proves the whole program, after every transformation.
    pub(super) fn verify(&self) -> Result<()> {
        let mut written = HashMap::new();
        let mut produced = HashSet::new();
        for (id, op) in self.ops.iter().enumerate() {
            self.check(op, id, &written)?;
            for &input in &op.inputs {
                let var = &self.vars[input];
                if var.role == Role::Computed && !produced.contains(&input) {
                    return Err(op.wrong(format!("reads `{}` before it is computed", var.name)));
                }
            }
            produced.extend(op.outputs.iter().copied());
            written.extend(op.writes.iter().map(|&var| (var, id)));
        }
        Ok(())
    }

    /// The rules for one operator at position `id`.
    fn check(&self, op: &Op, id: OpId, written: &HashMap<VarId, OpId>) -> Result<()> {
        let name = |id: VarId| &self.vars[id].name;
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
            if let Some(writer) = written.get(&input).filter(|_| op.phase != Phase::Update) {
                return Err(op.wrong(format!(
                    "reads `{}` after {} (built at {}) has updated it; build what reads it before",
                    var.name, self.ops[*writer].kind, self.ops[*writer].place
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
        for &write in &op.writes {
            if !matches!(self.vars[write].role, Role::Kept { .. }) {
                return Err(op.wrong(format!("writes `{}`, which is not kept", name(write))));
            }
            if let Some(writer) = written.get(&write) {
                return Err(op.wrong(format!(
                    "updates `{}`, which {} (built at {}) updates already",
                    name(write),
                    self.ops[*writer].kind,
                    self.ops[*writer].place
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
