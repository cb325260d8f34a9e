//! What an executor keeps from run to run, by name, and how a run changes it: when all else has
//! succeeded, all at once, where it stands.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use smallvec::SmallVec;

use super::frame::Frame;
use super::ir::VarId;
use super::optim::{Gradient, Update};
use super::plan::UpdateStep;
use super::threads;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, for_any};

pub(super) struct Scope {
    /// No other scope of the process has it.
    id: u64,
    kept: RwLock<Kept>,
    /// Held by a run that changes what is kept, from its reading to its writing.
    step: Mutex<()>,
}

impl Default for Scope {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { id, kept: RwLock::default(), step: Mutex::default() }
    }
}

#[derive(Default)]
struct Kept {
    places: HashMap<String, usize>,
    /// `None` while a step changes it.
    values: Vec<Option<AnyTensor>>,
}

impl Kept {
    fn get(&self, name: &str) -> Option<&AnyTensor> {
        self.places.get(name).and_then(|&place| self.values[place].as_ref())
    }

    fn insert(&mut self, name: &str, value: AnyTensor) {
        if let Some(&place) = self.places.get(name) {
            self.values[place] = Some(value);
            return;
        }
        self.places.insert(name.to_owned(), self.values.len());
        self.values.push(Some(value));
    }
}

/// One parameter's step: all is there, so that it cannot fail.
struct Move<'f> {
    update: Update,
    /// Where the parameter is kept, and what is remembered of it; and they themselves.
    places: SmallVec<[usize; 4]>,
    kept: SmallVec<[AnyTensor; 4]>,
    gradient: Gradient<'f>,
}

impl Scope {
    /// Makes other runs that change what is kept wait.
    pub(super) fn step(&self) -> MutexGuard<'_, ()> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, name: &str) -> Option<AnyTensor> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).get(name).map(AnyTensor::alias)
    }

    pub(super) fn set(&self, name: &str, value: AnyTensor) {
        let _step = self.step();
        self.kept.write().unwrap_or_else(PoisonError::into_inner).insert(name, value);
    }

    /// Puts what is kept where the run reads it.
    pub(super) fn lend(&self, frame: &mut Frame<'_>) -> Result<()> {
        let plan = frame.plan;
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        // A place is for ever, so it is looked up once.
        let known = &mut frame.memory.places;
        if known.0 != self.id || known.1.len() != plan.kept.len() {
            let place = |id: &VarId| kept.places.get(&plan.graph.vars[*id].name).copied();
            *known = (self.id, plan.kept.iter().map_while(place).collect());
        }
        for (at, &id) in plan.kept.iter().enumerate() {
            let var = &plan.graph.vars[id];
            let Some(value) =
                frame.memory.places.1.get(at).and_then(|&place| kept.values[place].as_ref())
            else {
                let why = "has no value yet; run the startup program first".to_owned();
                return Err(Error::Run { variable: var.name.clone(), why });
            };
            if let Some(misfit) = var.form.misfit(value.dtype(), value.shape()) {
                return Err(Error::Run { variable: var.name.clone(), why: misfit });
            }
            if plan.is_read[id] {
                frame.lend(id, value.clone());
            }
        }
        Ok(())
    }

    /// Ends a run that changes what is kept: no step of it can fail any more. Readers that come
    /// now wait, so they see all of the change or nothing; those that came before hold what they
    /// read, and it is copied for them where it is changed.
    pub(super) fn commit(&self, frame: &mut Frame<'_>, threads: usize) {
        let plan = frame.plan;
        // What the run holds of it goes, so that it can be changed where it is.
        frame.give_back();
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        for (id, value) in frame.take_set() {
            kept.insert(&plan.graph.vars[id].name, value);
        }
        let known = &frame.memory.places.1;
        for &place in plan.updates.iter().flat_map(|step| &step.kept).map(|&at| &known[at]) {
            // Copied here, if at all: what takes memory comes before the first change.
            kept.values[place].iter_mut().for_each(own);
        }
        let prepare = |kept: &mut Kept, (step, &update): (&UpdateStep, &Update)| {
            let places: SmallVec<[usize; 4]> = step.kept.iter().map(|&at| known[at]).collect();
            let own = places.iter().filter_map(|&place| kept.values[place].take()).collect();
            let gradient = frame.gradient(step)?;
            Some(Move { update, places, kept: own, gradient })
        };
        let put = |kept: &mut Kept, (places, values): Moved| {
            for (place, value) in places.into_iter().zip(values) {
                kept.values[place] = Some(value);
            }
        };
        let steps = plan.updates.iter().zip(&frame.memory.rules);
        if threads < 2 {
            for step in steps {
                if let Some(moved) = prepare(&mut kept, step).map(Move::run) {
                    put(&mut kept, moved);
                }
            }
            return;
        }
        let moves = steps.filter_map(|step| prepare(&mut kept, step)).collect();
        for moved in threads::each(moves, threads, Move::work, Move::run) {
            put(&mut kept, moved);
        }
    }
}

/// Makes a kept value nobody else's.
fn own(value: &mut AnyTensor) {
    for_any!(value, tensor => drop(tensor.value_mut().make_mut()));
}

/// What was changed, and where it is kept.
type Moved = (SmallVec<[usize; 4]>, SmallVec<[AnyTensor; 4]>);

impl Move<'_> {
    fn work(&self) -> usize {
        self.kept.iter().map(|kept| kept.shape().iter().product::<usize>()).sum::<usize>() * 8
    }

    fn run(mut self) -> Moved {
        self.update.step(&mut self.kept, self.gradient);
        (self.places, self.kept)
    }
}
