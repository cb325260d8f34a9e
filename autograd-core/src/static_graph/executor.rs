//! `Executor`: runs programs, and keeps parameters from run to run, by name. A run changes them when all else
//! has succeeded, all at once, where they stand.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ndarray::{Array, Dimension};
use smallvec::SmallVec;

use super::frame::{Frame, Kept};
use super::ir::{Var, VarId};
use super::plan::Plan;
use super::program::{Program, Variable};
use crate::array::threads::with_num_threads;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, GradMode, Tensor};

/// Runs programs. Parameters belong to the executor, by name, so programs that name the same ones
/// share them; clones of an executor share all.
///
/// A run that fails, also by a panic in user code, changes no parameter. Runs of one program may go
/// on at the same time on several threads: each sees the parameters as they were when it started,
/// and runs that change parameters wait for each other.
#[derive(Clone, Default)]
pub struct Executor {
    scope: Arc<Scope>,
    /// On how many threads an operator may compute; 0 for as many as elsewhere.
    threads: usize,
}

/// What can be fed: a tensor or an ndarray array, of any element type.
pub trait Feed {
    /// As a tensor that nobody else changes.
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

/// What can be fetched: a variable, or its name.
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
    /// Without any parameters yet: run a [startup program](Program::startup) first.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same executor, with the same parameters, whose large operators use up to so many threads,
    /// whatever [`set_num_threads`](crate::set_num_threads) says. The figures are the same.
    pub fn with_threads(&self, threads: usize) -> Self {
        Self { scope: Arc::clone(&self.scope), threads }
    }

    /// Runs a program: `feed` names what its [data](Program::data) variables are this time,
    /// `fetch_list` what is asked for, by variable or name. Operators that nothing fetched depends
    /// on and that have no effect are not run; updates and user functions always are.
    ///
    /// Where an updated parameter is fetched, its new value comes.
    ///
    /// # Errors
    ///
    /// [`Error::Run`] for a feed of an unknown name, a missing one, one of another element type or
    /// shape, an unknown fetch, or a parameter without a value; [`Error::Operator`] where an
    /// operator fails: a user function that returns an error, panics, or returns another count,
    /// element type or shape than declared. Parameters are then as they were.
    pub fn run(
        &self,
        program: &Program,
        feed: &[(&str, &dyn Feed)],
        fetch_list: &[&dyn Fetch],
    ) -> Result<Vec<AnyTensor>> {
        let plan = self.plan(program, fetch_list)?;
        let is_changing = plan.graph.vars.iter().any(Var::is_written);
        let _step = is_changing.then(|| self.scope.step());
        let mut frame = Frame::new(&plan);
        let rules = program.rules(&plan.updates);
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
            // Readers that come now wait, so they see all of the change or nothing.
            frame.commit(&mut self.scope.write(), &rules);
        }
        let new = |&id: &VarId| self.parameter(&plan.graph.vars[id].name);
        let fetched = fetched.into_iter().zip(&plan.fetched);
        Ok(fetched.filter_map(|(value, id)| value.or_else(|| new(id))).collect())
    }

    fn plan(&self, program: &Program, fetch_list: &[&dyn Fetch]) -> Result<Arc<Plan>> {
        let fetched = fetch_list.iter().map(|fetch| asked_for(program, *fetch));
        let fetched: SmallVec<[VarId; 8]> = fetched.collect::<Result<_>>()?;
        program.plan(&fetched)
    }

    /// What a run that fetches this would do, a line a step, in their order: what it computes, the
    /// operator, and what it reads.
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

    /// The value that is kept under a name.
    pub fn parameter(&self, name: &str) -> Option<AnyTensor> {
        self.scope.read().get(name).map(AnyTensor::alias)
    }

    /// Gives a parameter of any program that this executor runs a value.
    pub fn set_parameter(&self, name: &str, value: &dyn Feed) {
        let value = value.tensor();
        let _step = self.scope.step();
        self.scope.write().insert(name.to_owned(), value);
    }
}

/// The variable of a program that is fetched. One of another program stands for its copy: the one of
/// its name that the same line built.
fn asked_for(program: &Program, fetch: &dyn Fetch) -> Result<VarId> {
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

#[derive(Default)]
struct Scope {
    kept: RwLock<Kept>,
    /// Held by a run that changes what is kept, from its reading to its writing.
    step: Mutex<()>,
}

impl Scope {
    /// Makes other runs that change what is kept wait.
    fn step(&self) -> MutexGuard<'_, ()> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, Kept> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Kept> {
        self.kept.write().unwrap_or_else(PoisonError::into_inner)
    }
}
