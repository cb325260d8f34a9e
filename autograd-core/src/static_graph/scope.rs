//! What an executor keeps from run to run, by name, and how a run changes it: when all else has
//! succeeded, all at once, where it stands.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use super::frame::Frame;
use super::ir::VarId;
use super::optim::{Gradient, Update};
use super::plan::Plan;
use super::threads;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Tensor, for_any};

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
    values: Vec<AnyTensor>,
}

impl Kept {
    fn get(&self, name: &str) -> Option<&AnyTensor> {
        self.places.get(name).map(|&place| &self.values[place])
    }

    fn insert(&mut self, name: &str, value: AnyTensor) {
        if let Some(&place) = self.places.get(name) {
            self.values[place] = value;
            return;
        }
        self.places.insert(name.to_owned(), self.values.len());
        self.values.push(value);
    }
}

/// One parameter's step: all is there, so that it cannot fail.
struct Move {
    update: Update,
    /// Where the parameter is kept, and what is remembered of it; and they themselves.
    places: Vec<usize>,
    kept: Vec<AnyTensor>,
    gradient: Gradient,
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
        let mut known = plan.places.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != self.id || known.1.len() != plan.kept.len() {
            let place = |id: &VarId| kept.places.get(&plan.graph.vars[*id].name).copied();
            *known = (self.id, plan.kept.iter().map_while(place).collect());
        }
        for (at, &id) in plan.kept.iter().enumerate() {
            let var = &plan.graph.vars[id];
            let Some(value) = known.1.get(at).map(|&place| &kept.values[place]) else {
                let why = "has no value yet; run the startup program first".to_owned();
                return Err(Error::Run { variable: var.name.clone(), why });
            };
            if let Some(misfit) = var.form.misfit(value.dtype(), value.shape()) {
                return Err(Error::Run { variable: var.name.clone(), why: misfit });
            }
            if plan.is_read[id] {
                frame.values[id] = Some(value.clone());
            }
        }
        Ok(())
    }

    /// Ends a run that changes what is kept: no step of it can fail any more. Readers that come
    /// now wait, so they see all of the change or nothing; those that came before hold what they
    /// read, and it is copied for them where it is changed.
    pub(super) fn commit(
        &self,
        plan: &Plan,
        set: Vec<(VarId, AnyTensor)>,
        gradients: Vec<Gradient>,
        threads: usize,
    ) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        for (id, value) in set {
            kept.insert(&plan.graph.vars[id].name, value);
        }
        let mut moves: Vec<Move> = Vec::with_capacity(gradients.len());
        for (step, gradient) in plan.updates.iter().zip(gradients) {
            let name = |id: &VarId| kept.places.get(&plan.graph.vars[*id].name).copied();
            let places: Vec<usize> = step.writes.iter().filter_map(name).collect();
            // Copied here, if at all: what takes memory comes before the first change.
            places.iter().for_each(|&place| own(&mut kept.values[place]));
            moves.push(Move { update: step.update, places, kept: Vec::new(), gradient });
        }
        for Move { places, kept: own, .. } in &mut moves {
            let none = || AnyTensor::from(Tensor::from(false));
            let take = |&place: &usize| std::mem::replace(&mut kept.values[place], none());
            own.extend(places.iter().map(take));
        }
        for (places, values) in threads::each(moves, threads, Move::work, Move::run) {
            for (place, value) in places.into_iter().zip(values) {
                kept.values[place] = value;
            }
        }
    }
}

/// Makes a kept value nobody else's.
fn own(value: &mut AnyTensor) {
    for_any!(value, tensor => drop(tensor.value_mut().make_mut()));
}

impl Move {
    fn work(&self) -> usize {
        self.kept.iter().map(|kept| kept.shape().iter().product::<usize>()).sum::<usize>() * 8
    }

    fn run(mut self) -> (Vec<usize>, Vec<AnyTensor>) {
        self.update.step(&mut self.kept, self.gradient);
        (self.places, self.kept)
    }
}
