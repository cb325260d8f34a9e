//! `Program`, `Variable` and `Block`: handles to a program and its parts, and the default programs of a thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::ir::{Graph, Kind, Op, OpDef, Phase, Role, Site, Var, VarId};
use super::plan::Plan;
use super::updates::Init;
use crate::array::{DType, IntoDims};
use crate::error::Result;
use crate::ops::table::{Attr, Dims, Form};

/// A static graph: variables, and the operators that compute them; data until an
/// [`Executor`](super::Executor) runs it. Clones are the same program. See the [module](super).
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::static_graph::{Init, Program};
///
/// let program = Program::new();
/// let x = program.data("x", [-1, 4], DType::Float32)?;
/// let w = program.create_parameter("w", [4, 2], DType::Float32, Init::Xavier)?;
/// assert_eq!(x.matmul(&w)?.shape(), [None, Some(2)]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Program(Arc<Inner>);

#[derive(Default)]
struct Inner {
    graph: Mutex<Graph>,
    startup: OnceLock<Program>,
    /// Plans by fetched variables, for one version of the graph.
    plans: Mutex<(u64, HashMap<Vec<VarId>, Arc<Plan>>)>,
}

impl Program {
    /// Creates an empty program.
    ///
    /// ```
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// assert!(program.current_block().op_count() == 0 && program.parameters().is_empty());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a copy. With `for_test`, it has no backward and no updates, dropout keeps everything, and batch
    /// normalization uses its running statistics. An executor gives parameters of one name the same value.
    ///
    /// ```
    /// use autograd_core::static_graph::{Executor, Program};
    /// use autograd_core::{DType, Tensor};
    ///
    /// let program = Program::new();
    /// let y = program.data("x", [2], DType::Float64)?.dropout(1.0)?;
    /// let test = program.clone_program(true)?;
    /// let (executor, x) = (Executor::new(), Tensor::from([3.0, 4.0]));
    /// let trained = executor.run(&program, &[("x", &x)], &[&y])?;
    /// let tested = executor.run(&test, &[("x", &x)], &[&y.name()])?;
    /// assert_eq!(trained[0].downcast_ref::<f64>().unwrap().to_vec(), [0.0, 0.0]);
    /// assert_eq!(tested[0].downcast_ref::<f64>().unwrap().to_vec(), [3.0, 4.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the copy breaks a rule, which is a bug.
    pub fn clone_program(&self, for_test: bool) -> Result<Program> {
        let mut graph = self.graph().clone();
        if for_test {
            graph = for_testing(&graph)?;
        }
        let copy = Program::default();
        *copy.graph() = graph;
        let _ = copy.0.startup.set(self.startup());
        Ok(copy)
    }

    /// The program that sets the initial values of parameters: run it once, before this one.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Init, Program};
    ///
    /// let program = Program::new();
    /// let w = program.create_parameter("w", [2], DType::Float64, Init::Constant(0.5))?;
    /// let executor = Executor::new();
    /// assert!(executor.run(&program, &[], &[&w]).is_err());
    /// executor.run(&program.startup(), &[], &[])?;
    /// let run = executor.run(&program, &[], &[&w])?;
    /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [0.5, 0.5]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn startup(&self) -> Program {
        self.0.startup.get_or_init(Program::default).clone()
    }

    /// The block to which operators are added.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// x.exp()?;
    /// assert_eq!(program.current_block().op_count(), 1);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn current_block(&self) -> Block {
        Block(self.clone())
    }

    /// Adds a variable that is fed in every run. Gradients stop at it unless that is changed.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// assert_eq!(x.shape(), [None, Some(4)]);
    /// assert!(program.data("x", [4], DType::Float32).unwrap_err().to_string().contains("`x`"));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the name is taken, or a length is invalid.
    #[track_caller]
    pub fn data(&self, name: &str, shape: impl IntoDims, dtype: DType) -> Result<Variable> {
        let site = Site::here("data");
        let form = Form::new(dtype, read_dims(shape, &site)?);
        let id = self.graph().declare(&site, name, form, Role::Data)?;
        Ok(self.variable(id))
    }

    /// Returns the variable of this name.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// program.data("x", [-1, 4], DType::Float32)?.exp()?;
    /// assert_eq!(program.var("exp_0").unwrap().shape(), [None, Some(4)]);
    /// assert!(program.var("exp_1").is_none());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn var(&self, name: &str) -> Option<Variable> {
        let id = self.graph().find(name)?;
        Some(self.variable(id))
    }

    /// All parameters, in the order of creation.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Init, Program};
    ///
    /// let program = Program::new();
    /// for name in ["w", "b"] {
    ///     program.create_parameter(name, [2], DType::Float32, Init::Constant(0.0))?;
    /// }
    /// let names: Vec<_> = program.parameters().iter().map(|parameter| parameter.name()).collect();
    /// assert_eq!(names, ["w", "b"]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn parameters(&self) -> Vec<Variable> {
        let graph = self.graph();
        let parameters = graph.vars.iter().enumerate().filter(|(_, var)| var.is_parameter());
        parameters.map(|(id, _)| self.variable(id)).collect()
    }

    pub(super) fn variable(&self, id: VarId) -> Variable {
        Variable { program: self.clone(), id }
    }

    pub(super) fn variables(&self, ids: Vec<VarId>) -> Vec<Variable> {
        ids.into_iter().map(|id| self.variable(id)).collect()
    }

    pub(super) fn graph(&self) -> MutexGuard<'_, Graph> {
        self.0.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is(&self, other: &Program) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn own(&self, site: &Site<'_>, variable: &Variable) -> Result<VarId> {
        if self.is(&variable.program) {
            return Ok(variable.id);
        }
        site.refuse(format!("`{}` is a variable of another program", variable.name()))
    }

    pub(super) fn own_all<'v>(
        &self,
        site: &Site<'_>,
        variables: impl IntoIterator<Item = &'v Variable>,
    ) -> Result<Vec<VarId>> {
        variables.into_iter().map(|variable| self.own(site, variable)).collect()
    }

    #[track_caller]
    pub(super) fn one<const N: usize>(
        &self,
        def: &'static OpDef,
        attrs: [Attr; N],
        inputs: &[&Variable],
    ) -> Result<Variable> {
        let site = Site::here(def.name);
        let inputs = self.own_all(&site, inputs.iter().copied())?;
        let outputs =
            self.graph().push(Kind::of(def, attrs), &inputs, Phase::Forward, &site.place)?;
        Ok(self.variable(outputs[0]))
    }

    /// The plan for a set of fetched variables, made once for each state but for learning rates.
    pub(super) fn plan(&self, fetched: &[VarId]) -> Arc<Plan> {
        let graph = self.graph();
        let mut plans = self.0.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.0 != graph.version {
            *plans = (graph.version, HashMap::new());
        }
        if let Some(plan) = plans.1.get(fetched) {
            return Arc::clone(plan);
        }
        let plan = Arc::new(Plan::new(&graph, fetched));
        plans.1.insert(fetched.to_vec(), Arc::clone(&plan));
        plan
    }
}

fn for_testing(graph: &Graph) -> Result<Graph> {
    let mut copy = Graph::default();
    for var in &graph.vars {
        let backward = var.role == Role::Computed
            && var.producer.is_some_and(|op| graph.ops[op].phase != Phase::Forward);
        // Removed names may be used again; removed variables keep their positions.
        let name = if backward { format!("{}@gone", var.name) } else { var.name.clone() };
        copy.add_var(Var { name, producer: None, ..var.clone() });
    }
    for op in graph.ops.iter().filter(|op| op.phase == Phase::Forward) {
        let mut op = op.clone();
        if let Kind::Op(of) = &mut op.kind
            && of.trains()
        {
            of.stop_training();
            op.writes.clear();
        }
        copy.push_op(op)?;
    }
    Ok(copy)
}

/// Whether two handles are of the same program.
impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.is(other)
    }
}

impl Eq for Program {}

/// A variable of a [`Program`]: a name, an element type and a shape, no value.
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::static_graph::Program;
///
/// let program = Program::new();
/// let x = program.data("x", [-1, 4], DType::Float32)?;
/// let y = (&x * 2.0).tanh()?.sum_axes(1)?;
/// assert_eq!(y.to_string(), "sum_0: float32 [-1]");
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Variable {
    pub(super) program: Program,
    pub(super) id: VarId,
}

/// The operators and variables of a [`Program`]; it has one block.
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::static_graph::Program;
///
/// let program = Program::new();
/// let y = program.current_block().create_var("y", DType::Float32, [-1, 4])?;
/// assert_eq!(y.to_string(), "y: float32 [-1, 4]");
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub struct Block(pub(super) Program);

impl Block {
    /// Creates a variable that an operator will compute: the `out` of a [`py_func`](Program::py_func). A
    /// second call with the same name, element type and shape returns the same variable.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let block = program.current_block();
    /// let y = block.create_var("y", DType::Float32, [-1, 4])?;
    /// assert_eq!(y.shape(), [None, Some(4)]);
    /// assert!(block.create_var("y", DType::Float64, [-1, 4]).is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if another variable has this name, or a length is invalid.
    #[track_caller]
    pub fn create_var(&self, name: &str, dtype: DType, shape: impl IntoDims) -> Result<Variable> {
        let site = Site::here("create_var");
        let form = Form::new(dtype, read_dims(shape, &site)?);
        let mut graph = self.0.graph();
        let same = |id: &VarId| {
            let var = &graph.vars[*id];
            var.form == form && var.role == Role::Computed
        };
        let id = match graph.find(name).filter(same) {
            Some(id) => id,
            None => graph.declare(&site, name, form, Role::Computed)?,
        };
        drop(graph);
        Ok(self.0.variable(id))
    }

    /// Returns the variable of this name.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// program.data("x", [-1, 4], DType::Float32)?;
    /// let block = program.current_block();
    /// assert!(block.var("x").is_some() && block.var("y").is_none());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn var(&self, name: &str) -> Option<Variable> {
        self.0.var(name)
    }

    /// The number of operators.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// (x.exp()? * 2.0).sum()?;
    /// assert_eq!(program.current_block().op_count(), 3);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn op_count(&self) -> usize {
        self.0.graph().ops.len()
    }
}

impl Variable {
    /// The name, by which the variable is fed and fetched.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// assert_eq!((x.name(), x.exp()?.name()), ("x".to_owned(), "exp_0".to_owned()));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn name(&self) -> String {
        self.program.graph().vars[self.id].name.clone()
    }

    /// The element type.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// assert_eq!((x.dtype(), x.greater(0.0)?.dtype()), (DType::Float32, DType::Bool));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.form().dtype
    }

    /// The lengths of the axes; `None` for a free axis.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// assert_eq!(x.shape(), [None, Some(4)]);
    /// assert_eq!(x.sum_axes(0)?.shape(), [Some(4)]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn shape(&self) -> Vec<Option<usize>> {
        self.form().dims.into_vec()
    }

    /// The number of axes.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// assert_eq!((x.ndim(), x.sum()?.ndim()), (2, 0));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn ndim(&self) -> usize {
        self.form().dims.len()
    }

    pub(super) fn form(&self) -> Form {
        self.program.graph().vars[self.id].form.clone()
    }

    /// The program of this variable.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// assert_eq!(*x.exp()?.program(), program);
    /// assert_ne!(*x.program(), Program::new());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether gradients stop here: because that was set, no input of the operator wants a gradient, or the
    /// elements are not floats.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Init, Program};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [4], DType::Float32)?;
    /// let w = program.create_parameter("w", [4], DType::Float32, Init::Constant(1.0))?;
    /// assert!(x.exp()?.stop_gradient());
    /// assert!(!(&x * &w).stop_gradient());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn stop_gradient(&self) -> bool {
        !self.program.graph().wants_gradient()[self.id]
    }

    /// Sets whether gradients stop here. [`Program::data`] starts with `true`.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// let y = x.exp()?;
    /// assert!(y.stop_gradient());
    /// x.set_stop_gradient(false);
    /// assert!(!y.stop_gradient());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn set_stop_gradient(&self, stop: bool) {
        let mut graph = self.program.graph();
        graph.version += 1;
        graph.vars[self.id].stop_gradient = stop;
    }

    /// Whether the executor keeps the value between runs.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Init, Program};
    ///
    /// let program = Program::new();
    /// let w = program.create_parameter("w", [4], DType::Float32, Init::Constant(1.0))?;
    /// assert!(w.persistable() && !w.exp()?.persistable());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn persistable(&self) -> bool {
        self.program.graph().vars[self.id].is_kept()
    }
}

/// `x: float32 [-1, 4]`
impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.program.graph().vars[self.id].fmt(f)
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

thread_local! {
    static DEFAULT: Program = Program::new();
    static GUARDED: RefCell<Vec<(Program, Program)>> = const { RefCell::new(Vec::new()) };
}

/// The main program of the innermost [`program_guard`] of this thread, or else the thread's own program.
///
/// ```
/// use autograd_core::static_graph::{default_main_program, default_startup_program};
///
/// assert_eq!(default_main_program().startup(), default_startup_program());
/// ```
pub fn default_main_program() -> Program {
    let guarded = GUARDED.with_borrow(|guarded| guarded.last().map(|(main, _)| main.clone()));
    guarded.unwrap_or_else(|| DEFAULT.with(Program::clone))
}

/// The startup program that belongs to [`default_main_program`].
///
/// ```
/// use autograd_core::static_graph::{Program, default_startup_program, program_guard};
///
/// let (main, startup) = (Program::new(), Program::new());
/// let guard = program_guard(&main, &startup);
/// assert_eq!(default_startup_program(), startup);
/// drop(guard);
/// assert_ne!(default_startup_program(), startup);
/// ```
pub fn default_startup_program() -> Program {
    let guarded = GUARDED.with_borrow(|guarded| guarded.last().map(|(_, startup)| startup.clone()));
    guarded.unwrap_or_else(|| default_main_program().startup())
}

/// Replaces the default programs of its thread while it lives. Created by [`program_guard`].
///
/// ```
/// use autograd_core::static_graph::{Program, ProgramGuard, default_main_program, program_guard};
///
/// fn on_new_programs() -> ProgramGuard {
///     program_guard(&Program::new(), &Program::new())
/// }
///
/// let before = default_main_program();
/// let guard = on_new_programs();
/// assert_ne!(default_main_program(), before);
/// drop(guard);
/// assert_eq!(default_main_program(), before);
/// ```
#[must_use = "the default programs are others only while the guard lives"]
pub struct ProgramGuard(std::marker::PhantomData<*const ()>);

/// Makes these the default programs of this thread until the guard is dropped; guards nest.
///
/// ```
/// use autograd_core::static_graph::{Program, default_main_program, program_guard};
///
/// let (main, startup) = (Program::new(), Program::new());
/// let guard = program_guard(&main, &startup);
/// assert_eq!(default_main_program(), main);
/// drop(guard);
/// assert_ne!(default_main_program(), main);
/// ```
pub fn program_guard(main: &Program, startup: &Program) -> ProgramGuard {
    GUARDED.with_borrow_mut(|guarded| guarded.push((main.clone(), startup.clone())));
    ProgramGuard(std::marker::PhantomData)
}

impl Drop for ProgramGuard {
    fn drop(&mut self) {
        GUARDED.with_borrow_mut(|guarded| drop(guarded.pop()));
    }
}

/// The variables that are not computed, and then one line for each operator.
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::static_graph::Program;
///
/// let program = Program::new();
/// let x = program.data("x", [-1, 4], DType::Float32)?;
/// x.tanh()?.mean()?;
/// let text = "\
/// data x: float32 [-1, 4]
/// tanh_0: float32 [-1, 4] = tanh(x)
/// mean_0: float32 [] = mean(tanh_0)
/// ";
/// assert_eq!(program.to_string(), text);
/// # Ok::<(), autograd_core::Error>(())
/// ```
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.graph().fmt(f)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(super) struct Change<'g> {
    pub(super) graph: &'g mut Graph,
    pub(super) site: &'g Site<'g>,
    /// The program that sets initial values; `None` if that is this program itself.
    startup: Option<&'g mut Graph>,
}

impl Program {
    /// Adds a parameter, which the executor keeps and the [startup program](Program::startup) sets.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Init, Program};
    ///
    /// let program = Program::new();
    /// let w = program.create_parameter("w", [2], DType::Float64, Init::Constant(0.5))?;
    /// let executor = Executor::new();
    /// executor.run(&program.startup(), &[], &[])?;
    /// let run = executor.run(&program, &[], &[&w.sum()?])?;
    /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().item(), 1.0);
    /// assert!(program.create_parameter("n", [2], DType::Int64, Init::Constant(0.0)).is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the name is taken, a length is free, or the element type
    /// is not a float.
    #[track_caller]
    pub fn create_parameter(
        &self,
        name: &str,
        shape: impl IntoDims,
        dtype: DType,
        init: Init,
    ) -> Result<Variable> {
        let site = Site::here("create_parameter");
        let form = Form::new(dtype, read_dims(shape, &site)?);
        self.change(&site, |change| change.keep(name, form, true, init))
            .map(|parameter| self.variable(parameter))
    }

    /// Changes the program; if `build` or the startup program fails, both are unchanged.
    pub(super) fn change<R>(
        &self,
        site: &Site<'_>,
        build: impl FnOnce(&mut Change<'_>) -> Result<R>,
    ) -> Result<R> {
        let of_guard = |(main, startup): &(Self, Self)| main.is(self).then(|| startup.clone());
        let guarded = GUARDED.with_borrow(|guarded| guarded.iter().rev().find_map(of_guard));
        let startup = guarded.unwrap_or_else(|| self.startup());
        let build = |startup: Option<&mut Graph>| {
            self.graph().attempt(|graph| build(&mut Change { graph, site, startup }))
        };
        match startup.is(self) {
            true => build(None),
            false => startup.graph().attempt(|startup| build(Some(startup))),
        }
    }
}

impl Change<'_> {
    pub(super) fn add<const N: usize>(
        &mut self,
        def: &'static OpDef,
        attrs: [Attr; N],
        inputs: &[VarId],
    ) -> Result<VarId> {
        Ok(self.graph.push(Kind::of(def, attrs), inputs, Phase::Forward, &self.site.place)?[0])
    }

    pub(super) fn keep(
        &mut self,
        name: &str,
        form: Form,
        parameter: bool,
        init: Init,
    ) -> Result<VarId> {
        if form.dims.contains(&None) {
            return self.site.refuse(format!("`{name}` has a free axis: {form}"));
        }
        if parameter && !form.dtype.is_float() {
            return self.site.refuse(format!("`{name}` must be of a float type: {form}"));
        }
        let role = Role::Kept { parameter };
        let id = self.graph.declare(self.site, name, form.clone(), role)?;
        let Some(startup) = &mut self.startup else {
            return self.site.refuse(format!("`{name}` needs another program as startup program"));
        };
        if startup.find(name).is_some() {
            let why = format!("the startup program sets a variable `{name}` already");
            return self.site.refuse(why);
        }
        let place = &self.site.place;
        let set = startup.add_var(Var::new(name.to_owned(), form.clone(), role, place));
        let op = Op::new(Kind::Init(init, form), &[], &[], Phase::Forward, place);
        startup.push_op(Op { writes: vec![set], ..op })?;
        Ok(id)
    }
}

pub(super) fn read_dims(dims: impl IntoDims, site: &Site<'_>) -> Result<Dims> {
    dims.into_dims().map_err(|n| site.wrong(format!("{n} is no length; -1 is a free axis")))
}
