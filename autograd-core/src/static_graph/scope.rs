//! What an executor keeps from run to run, by name, and how a run changes it: when all else has
//! succeeded, all at once, where it stands.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use super::frame::Frame;
use super::rule::Rule;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, for_any};

#[derive(Default)]
pub(super) struct Scope {
    kept: RwLock<HashMap<String, AnyTensor>>,
    /// Held by a run that changes what is kept, from its reading to its writing.
    step: Mutex<()>,
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
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        kept.insert(name.to_owned(), value);
    }

    /// Puts what is kept where the run reads it.
    pub(super) fn lend(&self, frame: &mut Frame<'_>) -> Result<()> {
        let plan = frame.plan;
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        for &id in &plan.kept {
            let var = &plan.graph.vars[id];
            let wrong = |why: String| Err(Error::Run { variable: var.name.clone(), why });
            let Some(value) = kept.get(&var.name) else {
                return wrong("has no value yet; run the startup program first".to_owned());
            };
            if let Some(misfit) = var.form.misfit(value.dtype(), value.shape()) {
                return wrong(misfit);
            }
            if plan.is_read[id] || plan.shape_read[id] {
                frame.lend(id, value.clone());
            }
        }
        Ok(())
    }

    /// Ends a run that changes what is kept: no step of it can fail any more. Readers that come
    /// now wait, so they see all of the change or nothing; those that came before hold what they
    /// read, and it is copied for them where it is changed.
    pub(super) fn commit(&self, frame: &mut Frame<'_>, rules: &[Rule]) {
        let plan = frame.plan;
        // What the run holds of it goes, so that it can be changed where it is.
        frame.give_back();
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        for (id, value) in frame.take_set() {
            kept.insert(plan.graph.vars[id].name.clone(), value);
        }
        let name = |id: &usize| &plan.graph.vars[*id].name;
        for id in plan.updates.iter().flat_map(|update| &update.writes) {
            // Copied here, if at all: what takes memory comes before the first change.
            if let Some(value) = kept.get_mut(name(id)) {
                for_any!(value, tensor => drop(tensor.value_mut().make_mut()));
            }
        }
        for (update, rule) in plan.updates.iter().zip(rules) {
            let Some(gradient) = frame.gradient(update) else { continue };
            let own = update.writes.iter().filter_map(|id| kept.remove_entry(name(id)));
            let (names, mut own): (Vec<String>, Vec<AnyTensor>) = own.unzip();
            rule.step(&mut own, gradient);
            kept.extend(names.into_iter().zip(own));
        }
    }
}
