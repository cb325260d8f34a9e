//! `Executor`: runs programs, and keeps parameters between runs, by name.

use std::cell::RefCell;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ndarray::{Array, Dimension};
use smallvec::SmallVec;

use super::frame::{Frame, KeptValues};
use super::ir::{Var, VarId};
use super::plan::Plan;
use super::program::{Program, Variable};
use crate::array::threads::with_num_threads;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, GradMode, Tensor};
use crate::ops::expect;

/// Runs programs. It keeps parameters by name, for all programs; clones share them. A run that fails changes no
/// parameter. Each sees them as they were at the start of the run; those that change them take turns.
///
/// ```
/// use autograd_core::static_graph::{Executor, Init, Program};
/// use autograd_core::{DType, Tensor};
///
/// let program = Program::new();
/// let y = program.create_parameter("w", [2], DType::Float64, Init::Constant(1.0))?.exp()?;
/// let executor = Executor::new();
/// executor.run(&program.startup(), &[], &[])?;
/// executor.set_parameter("w", &Tensor::from([0.0, 0.0]));
/// assert_eq!(executor.parameter("w").unwrap().shape(), [2]);
/// let run = executor.with_threads(1).run(&program, &[], &[&y])?;
/// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [1.0, 1.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Executor {
    scope: Arc<Scope>,
    /// The number of threads that an operator may use; 0 for the global setting.
    threads: usize,
}

/// A value that can be fed: a tensor or an ndarray array, of any element type.
///
/// ```
/// use autograd_core::static_graph::{Executor, Feed, Program};
/// use autograd_core::{AnyTensor, DType, Result, Tensor};
///
/// let program = Program::new();
/// let sum = program.data("x", [-1], DType::Float64)?.sum()?;
/// let sum_of = |x: &dyn Feed| -> Result<f64> {
///     Ok(Executor::new().run(&program, &[("x", x)], &[&sum])?[0].norm())
/// };
/// assert_eq!(sum_of(&Tensor::from([1.0, 2.0]))?, 3.0);
/// assert_eq!(sum_of(&AnyTensor::from(Tensor::from([3.0])))?, 3.0);
/// assert_eq!(sum_of(&ndarray::arr1(&[3.0, 4.0]))?, 7.0);
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub trait Feed {
    /// The value as a tensor that no other code changes.
    #[doc(hidden)]
    fn tensor(&self) -> AnyTensor;
}

impl<T: Element> Feed for Tensor<T> {
    fn tensor(&self) -> AnyTensor {
        self.alias().into()
    }
}

impl Feed for AnyTensor {
    fn tensor(&self) -> AnyTensor {
        self.alias()
    }
}

impl<T: Element, D: Dimension> Feed for Array<T, D> {
    fn tensor(&self) -> AnyTensor {
        Tensor::from(self.view()).into()
    }
}

/// A variable that can be fetched, or its name.
///
/// ```
/// use autograd_core::static_graph::{Executor, Fetch, Program};
/// use autograd_core::{DType, Result, Tensor};
///
/// let program = Program::new();
/// let y = program.data("x", [-1], DType::Float64)? * 2.0;
/// let fetched = |what: &dyn Fetch| -> Result<f64> {
///     Ok(Executor::new().run(&program, &[("x", &Tensor::from([3.0]))], &[what])?[0].norm())
/// };
/// assert_eq!((fetched(&y)?, fetched(&y.name())?, fetched(&"x")?), (6.0, 6.0, 3.0));
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub trait Fetch {
    #[doc(hidden)]
    fn asked_for(&self) -> std::result::Result<&Variable, &str>;
}

impl Fetch for Variable {
    fn asked_for(&self) -> std::result::Result<&Variable, &str> {
        Ok(self)
    }
}

impl Fetch for String {
    fn asked_for(&self) -> std::result::Result<&Variable, &str> {
        Err(self)
    }
}

impl Fetch for &str {
    fn asked_for(&self) -> std::result::Result<&Variable, &str> {
        Err(self)
    }
}

impl Executor {
    /// Creates an executor without parameters: run a [startup program](Program::startup) first.
    ///
    /// ```
    /// use autograd_core::static_graph::Executor;
    ///
    /// assert!(Executor::new().parameter("w").is_none());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns this executor, with the same parameters, but with at most `threads` threads, whatever
    /// [`set_num_threads`](crate::set_num_threads) says. The results are the same.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Init, Program};
    ///
    /// let program = Program::new();
    /// let w = program.create_parameter("w", [2], DType::Float64, Init::Constant(1.5))?;
    /// let executor = Executor::new();
    /// executor.run(&program.startup(), &[], &[])?;
    /// let run = executor.with_threads(1).run(&program, &[], &[&(&w * 2.0)])?;
    /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [3.0, 3.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn with_threads(&self, threads: usize) -> Self {
        Self { scope: Arc::clone(&self.scope), threads }
    }

    /// Runs a program. `feed` gives a value for each [data](Program::data) variable, by name; `fetch_list`
    /// lists the variables to return, themselves or by name; an updated parameter has its new value.
    /// Operators that none of them depends on do not run; updates and user functions always run.
    ///
    /// ```
    /// use autograd_core::static_graph::{Executor, Program};
    /// use autograd_core::{DType, Tensor};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1], DType::Float64)?;
    /// let sum = x.sum()?;
    /// let (executor, fed) = (Executor::new(), Tensor::from([1.0, 2.0, 4.0]));
    /// let run = executor.run(&program, &[("x", &fed)], &[&sum, &"x"])?;
    /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().item(), 7.0);
    /// assert_eq!(run[1].downcast_ref::<f64>().unwrap().to_vec(), fed.to_vec());
    /// assert!(executor.run(&program, &[], &[&sum]).unwrap_err().to_string().contains("`x`"));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Run`] for a feed that is unknown, missing or of another element type or shape, an unknown
    /// fetch, or a parameter without a value; [`Error::Operator`] if an operator fails, or a user function
    /// panics, returns an error (the [`source`](std::error::Error::source)) or other values than declared;
    /// [`Error::Unsupported`] if a user function runs a program and both change parameters.
    pub fn run(
        &self,
        program: &Program,
        feed: &[(&str, &dyn Feed)],
        fetch_list: &[&dyn Fetch],
    ) -> Result<Vec<AnyTensor>> {
        let plan = self.plan(program, fetch_list)?;
        let is_changing = plan.graph.vars.iter().any(Var::is_written);
        let _step = match is_changing {
            true => Some(self.scope.step("Executor::run")?),
            false => None,
        };
        let mut frame = Frame::new(&plan);
        let rates = program.rates(&plan.updates);
        frame.feed(feed.iter().map(|(name, value)| (*name, value.tensor())))?;
        frame.take(&self.scope.read())?;
        let mut run = || GradMode::of(false, || frame.run());
        match self.threads {
            0 => run()?,
            threads => with_num_threads(threads, run)?,
        }
        frame.check_gradients()?;
        let fetched = frame.fetch()?;
        if is_changing {
            // New readers wait here, so they see all of the change or none of it.
            frame.commit(&mut self.scope.write(), &rates);
        }
        let new = |&id: &VarId| self.parameter(&plan.graph.vars[id].name);
        let fetched = fetched.into_iter().zip(&plan.fetched);
        Ok(fetched.filter_map(|(value, id)| value.or_else(|| new(id))).collect())
    }

    fn plan(&self, program: &Program, fetch_list: &[&dyn Fetch]) -> Result<Arc<Plan>> {
        let fetched = fetch_list.iter().map(|fetch| resolve_fetch(program, *fetch));
        let fetched: SmallVec<[VarId; 8]> = fetched.collect::<Result<_>>()?;
        Ok(program.plan(&fetched))
    }

    /// Returns the steps of a run with this fetch list, a line for each: results, operator, inputs.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Program, gradients};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// x.set_stop_gradient(false);
    /// let y = x.tanh()? * 2.0;
    /// let dx = gradients(&[&y], &[&x])?.remove(0).unwrap();
    /// let steps = Executor::new().steps(&program, &[&y, &dx])?;
    /// let gradient = ["mul_0@GRAD = fill_like(mul_0)", "tanh_0@GRAD = mul_grad(mul_0@GRAD)"];
    /// assert_eq!(steps[..2], ["tanh_0 = tanh(x)", "mul_0 = mul(tanh_0)"]);
    /// assert_eq!(steps[2..4], gradient);
    /// assert_eq!(steps[4], "x@GRAD = tanh_grad(tanh_0@GRAD)");
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Run`] for an unknown fetch.
    pub fn steps(&self, program: &Program, fetch_list: &[&dyn Fetch]) -> Result<Vec<String>> {
        Ok(self.plan(program, fetch_list)?.lines())
    }

    /// Returns the kept value of this name; `None` before a run has set it.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Init, Program};
    ///
    /// let program = Program::new();
    /// let w = program.create_parameter("w", [2], DType::Float64, Init::Constant(1.5))?;
    /// let executor = Executor::new();
    /// assert!(executor.parameter("w").is_none());
    /// executor.run(&program.startup(), &[], &[])?;
    /// let w = executor.parameter("w").unwrap();
    /// assert_eq!(w.downcast::<f64>().unwrap().to_vec(), [1.5, 1.5]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn parameter(&self, name: &str) -> Option<AnyTensor> {
        self.scope.read().get(name).map(AnyTensor::alias)
    }

    /// Sets the value of a parameter, for all programs that this executor runs.
    ///
    /// ```
    /// use autograd_core::static_graph::{Executor, Init, Program};
    /// use autograd_core::{DType, Tensor};
    ///
    /// let program = Program::new();
    /// let w = program.create_parameter("w", [2], DType::Float64, Init::Constant(1.5))?;
    /// let executor = Executor::new();
    /// executor.set_parameter("w", &Tensor::from([3.0, 4.0]));
    /// let run = executor.run(&program, &[], &[&w.norm()?])?;
    /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().item(), 5.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// In a user function of a program that changes parameters of this executor.
    #[track_caller]
    pub fn set_parameter(&self, name: &str, value: &dyn Feed) {
        let value = value.tensor();
        let _step = expect(self.scope.step("Executor::set_parameter"));
        self.scope.write().insert(name.to_owned(), value);
    }
}

/// The variable to fetch. A variable of another program, built by the same line of code, is replaced by the
/// variable of this program with its name.
fn resolve_fetch(program: &Program, fetch: &dyn Fetch) -> Result<VarId> {
    let (name, theirs) = match fetch.asked_for() {
        Ok(variable) if variable.program.is(program) => return Ok(variable.id),
        Ok(variable) => {
            let place = variable.program.graph().vars[variable.id].place.clone();
            (variable.name(), Some(place))
        }
        Err(name) => (name.to_owned(), None),
    };
    let wrong = |why: String| Err(Error::Run { variable: name.clone(), why });
    let graph = program.graph();
    let Some(id) = graph.find(&name) else {
        let of = theirs.map(|place| format!("; it is of another program (built at {place})"));
        let of = of.unwrap_or_default();
        return wrong(format!("is fetched, but the program has no variable of this name{of}"));
    };
    let ours = &graph.vars[id].place;
    match theirs {
        Some(theirs) if theirs != *ours => wrong(format!(
            "is fetched, but it is of another program (built at {theirs}); this program's variable \
             of the same name is another one (built at {ours})"
        )),
        _ => Ok(id),
    }
}

thread_local! {
    static CHANGING: RefCell<Vec<*const Scope>> = const { RefCell::new(Vec::new()) };
}

struct ChangeGuard<'a>(#[allow(dead_code, reason = "held until the drop")] MutexGuard<'a, ()>);

impl Drop for ChangeGuard<'_> {
    fn drop(&mut self) {
        CHANGING.with_borrow_mut(Vec::pop);
    }
}

#[derive(Default)]
struct Scope {
    kept: RwLock<KeptValues>,
    /// Held by a run that changes kept values, from its reads to its writes.
    step: Mutex<()>,
}

impl Scope {
    /// Blocks other runs that change kept values; an error inside such a run of this thread.
    fn step(&self, op: &'static str) -> Result<ChangeGuard<'_>> {
        let scope = ptr::from_ref(self);
        if CHANGING.with_borrow(|scopes| scopes.contains(&scope)) {
            let why = "a program that changes parameters of this executor is running, and calls this from one of its \
                       functions; use another executor there"
                .to_owned();
            return Err(Error::Unsupported { op, why });
        }
        let lock = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        CHANGING.with_borrow_mut(|scopes| scopes.push(scope));
        Ok(ChangeGuard(lock))
    }

    fn read(&self) -> RwLockReadGuard<'_, KeptValues> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, KeptValues> {
        self.kept.write().unwrap_or_else(PoisonError::into_inner)
    }
}
