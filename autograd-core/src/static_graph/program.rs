//! `Program`: the handle to a program, and what it is asked.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::dims::{IntoDims, read_dims};
use super::guard::guarded_startup;
use super::ir::{Form, Graph, Phase, Place, Role, Var, VarId, wrong};
use super::kind::{Init, Kind};
use super::plan::Plan;
use super::variable::{Block, Variable};
use crate::array::DType;
use crate::error::Result;

/// A static graph: variables, and the operators that compute them. Data until an
/// [`Executor`](super::Executor) runs it.
///
/// A `Program` is a handle: clones are the same program. See the [module](super) for an example.
#[derive(Clone, Default)]
pub struct Program(Arc<Inner>);

#[derive(Default)]
struct Inner {
    graph: Mutex<Graph>,
    startup: OnceLock<Program>,
    /// Plans by what is fetched, without waves and with them, for one version of the graph.
    plans: Mutex<(u64, HashMap<Vec<VarId>, [Option<Arc<Plan>>; 2]>)>,
}

impl Program {
    /// An empty program.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another handle to a copy of this program: what is added to one is not in the other.
    ///
    /// With `for_test`, the copy has no backward and no updates, dropout keeps everything, and batch
    /// normalisation takes its running statistics.
    /// Parameters keep their names, so an executor gives both programs the same ones.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the copy breaks a rule, which is a bug.
    pub fn clone_program(&self, for_test: bool) -> Result<Program> {
        let mut graph = self.graph().clone();
        if for_test {
            graph = for_testing(&graph)?;
        }
        graph.verify()?;
        let copy = Program::default();
        *copy.graph() = graph;
        let _ = copy.0.startup.set(self.startup());
        Ok(copy)
    }

    /// The program that gives the parameters their first values: run it once, before this one.
    pub fn startup(&self) -> Program {
        self.0.startup.get_or_init(Program::default).clone()
    }

    /// Where parameters get their first values: as a guard of this thread says, or else its own.
    pub(super) fn own_startup(&self) -> Program {
        guarded_startup(self).unwrap_or_else(|| self.startup())
    }

    /// The block that operators are added to.
    pub fn current_block(&self) -> Block {
        Block(self.clone())
    }

    /// A variable that is fed in every run. Gradients stop at it unless that is changed.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there is a variable of this name, or a length
    /// is none.
    #[track_caller]
    pub fn data(&self, name: &str, shape: impl IntoDims, dtype: DType) -> Result<Variable> {
        let place = Place::Line(Location::caller());
        let form = Form::new(dtype, read_dims(shape, "data", &place)?);
        let id = self.graph().declare("data", name, form, Role::Data, true, &place)?;
        Ok(self.variable(id))
    }

    /// A parameter, kept by the executor, which the [startup program](Program::startup) sets.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there is a variable of this name, a length is
    /// free, or the element type is no float.
    #[track_caller]
    pub fn create_parameter(
        &self,
        name: &str,
        shape: impl IntoDims,
        dtype: DType,
        init: Init,
    ) -> Result<Variable> {
        let place = Place::Line(Location::caller());
        let form = Form::new(dtype, read_dims(shape, "create_parameter", &place)?);
        let keep = "create_parameter";
        let id = self.change(|change| change.keep(keep, name, form, true, init, &place))?;
        Ok(self.variable(id))
    }

    /// The variable of this name.
    pub fn var(&self, name: &str) -> Option<Variable> {
        let id = self.graph().find(name)?;
        Some(self.variable(id))
    }

    /// All parameters, in the order of their making.
    pub fn parameters(&self) -> Vec<Variable> {
        let graph = self.graph();
        let vars = graph.vars.iter().enumerate();
        let parameters = vars.filter(|(_, var)| var.role == Role::Kept { parameter: true });
        parameters.map(|(id, _)| self.variable(id)).collect()
    }

    pub(super) fn variable(&self, id: VarId) -> Variable {
        Variable { program: self.clone(), id }
    }

    pub(super) fn graph(&self) -> MutexGuard<'_, Graph> {
        self.0.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is(&self, other: &Program) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The position of a variable, if it is one of this program.
    pub(super) fn own(&self, call: &str, variable: &Variable, place: &Place) -> Result<VarId> {
        if self.is(&variable.program) {
            return Ok(variable.id);
        }
        let why = format!("`{}` is a variable of another program", variable.name());
        Err(wrong(call, place, why))
    }

    /// Adds an operator of this program's variables.
    pub(super) fn operator(
        &self,
        kind: Kind,
        inputs: &[&Variable],
        place: &Place,
    ) -> Result<Vec<Variable>> {
        let call = kind.to_string();
        let inputs: Result<Vec<VarId>> =
            inputs.iter().map(|variable| self.own(&call, variable, place)).collect();
        let outputs = self.graph().push(kind, &inputs?, Phase::Forward, place)?;
        Ok(outputs.into_iter().map(|id| self.variable(id)).collect())
    }

    /// The only output of an operator.
    pub(super) fn one(
        &self,
        kind: Kind,
        inputs: &[&Variable],
        location: &'static Location<'static>,
    ) -> Result<Variable> {
        let mut outputs = self.operator(kind, inputs, &Place::Line(location))?;
        Ok(outputs.swap_remove(0))
    }

    /// The plan for a set of fetched variables, made once for each state of the program, whatever
    /// its learning rates are; with `waves` for threads.
    pub(super) fn plan(&self, fetched: &[VarId], waves: bool) -> Result<Arc<Plan>> {
        let graph = self.graph();
        let mut plans = self.0.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.0 != graph.version {
            *plans = (graph.version, HashMap::new());
        }
        let known = plans.1.get(fetched).and_then(|plans| plans[usize::from(waves)].as_ref());
        if let Some(plan) = known {
            return Ok(Arc::clone(plan));
        }
        graph.verify()?;
        let plan = Arc::new(Plan::new(&graph, fetched, waves));
        let known = plans.1.entry(fetched.to_vec()).or_default();
        known[usize::from(waves)] = Some(Arc::clone(&plan));
        Ok(plan)
    }
}

/// A copy without backward and updates.
fn for_testing(graph: &Graph) -> Result<Graph> {
    let mut copy = Graph::default();
    for var in &graph.vars {
        let backward = var.producer.is_some_and(|op| graph.ops[op].phase != Phase::Forward);
        let kept = Var { producer: None, writer: None, ..var.clone() };
        // Names of what is gone may be used again; places stay, so that positions hold.
        let name = if backward { format!("{}@gone", var.name) } else { var.name.clone() };
        copy.add_var(Var { name, ..kept });
    }
    for op in graph.ops.iter().filter(|op| op.phase == Phase::Forward) {
        let mut op = op.clone();
        if let Kind::Dropout { training, .. } | Kind::BatchNorm { training, .. } = &mut op.kind {
            *training = false;
            op.writes.clear();
        }
        copy.push_op(op)?;
    }
    Ok(copy)
}

/// The same program, not an equal one.
impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.is(other)
    }
}

impl Eq for Program {}
