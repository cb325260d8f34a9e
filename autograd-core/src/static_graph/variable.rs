//! `Variable` and `Block`: handles to parts of a program.

use std::fmt;
use std::panic::Location;

use super::dims::{IntoDims, read_dims};
use super::ir::{Form, Place, Role, VarId};
use super::program::Program;
use crate::array::DType;
use crate::error::Result;

/// A variable of a [`Program`]: a name, an element type and a shape, no value.
#[derive(Clone)]
pub struct Variable {
    pub(super) program: Program,
    pub(super) id: VarId,
}

/// The operators and variables of a [`Program`]; it has one block.
pub struct Block(pub(super) Program);

impl Block {
    /// A variable that an operator will compute: what a [`py_func`](Program::py_func) is given as
    /// `out`.
    ///
    /// The same name, element type and shape again give the same variable.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there is another variable of this name, or a
    /// length is none.
    #[track_caller]
    pub fn create_var(&self, name: &str, dtype: DType, shape: impl IntoDims) -> Result<Variable> {
        let place = Place::Line(Location::caller());
        let form = Form::new(dtype, read_dims(shape, "create_var", &place)?);
        let mut graph = self.0.graph();
        let same = |id: &VarId| {
            let var = &graph.vars[*id];
            var.form == form && var.role == Role::Computed
        };
        let id = match graph.find(name).filter(same) {
            Some(id) => id,
            None => graph.declare("create_var", name, form, Role::Computed, false, &place)?,
        };
        drop(graph);
        Ok(self.0.variable(id))
    }

    /// The variable of this name.
    pub fn var(&self, name: &str) -> Option<Variable> {
        self.0.var(name)
    }

    /// How many operators there are.
    pub fn op_count(&self) -> usize {
        self.0.graph().ops.len()
    }
}

impl Variable {
    /// Its name, by which it is fed and fetched.
    pub fn name(&self) -> String {
        self.program.graph().vars[self.id].name.clone()
    }

    /// Its element type.
    pub fn dtype(&self) -> DType {
        self.form().dtype
    }

    /// Lengths of its axes; `None` for a free one.
    pub fn shape(&self) -> Vec<Option<usize>> {
        self.form().dims.into_vec()
    }

    /// Number of axes.
    pub fn ndim(&self) -> usize {
        self.form().dims.len()
    }

    pub(super) fn form(&self) -> Form {
        self.program.graph().vars[self.id].form.clone()
    }

    /// The program it belongs to.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether gradients stop here: this was set, no input of its operator wants one, or the
    /// elements are no floats.
    pub fn stop_gradient(&self) -> bool {
        !self.program.graph().wants_gradient()[self.id]
    }

    /// Says whether gradients stop here. [`Program::data`] starts with `true`.
    pub fn set_stop_gradient(&self, stop: bool) {
        let mut graph = self.program.graph();
        graph.version += 1;
        graph.vars[self.id].stop_gradient = stop;
    }

    /// Whether the executor keeps its value from run to run.
    pub fn persistable(&self) -> bool {
        matches!(self.program.graph().vars[self.id].role, Role::Kept { .. })
    }
}

/// `x: float32 [-1, 4]`
impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.form())
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
