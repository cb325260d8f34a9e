//! Parameters, the rule of each, and what the rules remember.

use std::fmt::{Debug, Formatter};
use std::panic::{RefUnwindSafe, UnwindSafe};

use smallvec::SmallVec;

use super::rule::{Erased, Rule, Step, Update};
use crate::array::Value;
use crate::array::shape::copied;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, Tensor};
use crate::nn::{Module, StateDict, distinct_parameters, state};
use crate::ops::Float;

/// Updates parameters from their gradients by a [`Rule`]; see the [module](super).
///
/// Parameters without a gradient are skipped, as are those that are frozen
/// (`stop_gradient`), whatever gradient they still have.
#[derive(Debug)]
pub struct Optimizer<R: Rule> {
    rules: Vec<R>,
    slots: Vec<Slot>,
}

/// A parameter and its place.
#[derive(Debug)]
struct Slot {
    name: String,
    group: usize,
    parameter: Box<dyn Parameter>,
}

impl<R: Rule> Optimizer<R> {
    /// For the parameters that a module has now, all by one rule. A tensor that stands in two
    /// places of the module is moved once a step, under its first name. Parameters that
    /// [`parameter`](crate::nn::parameter) made take half the memory of plain tensors, once they are moved.
    pub fn new(module: &(impl Module + ?Sized), rule: R) -> Self {
        let slot = |(name, tensor)| {
            let parameter: Box<dyn Parameter> = match tensor {
                AnyTensor::Float32(tensor) => Moved::of(tensor, |rule, step| rule.update_f32(step)),
                AnyTensor::Float64(tensor) => Moved::of(tensor, |rule, step| rule.update_f64(step)),
                _ => unreachable!("parameters are tensors of floats"),
            };
            Slot { name, group: 0, parameter }
        };
        let slots = distinct_parameters(module).into_iter().map(slot).collect();
        Self { rules: vec![rule], slots }
    }

    /// Puts the parameters whose names `belongs` picks, also out of earlier groups, in a group of
    /// their own, with its own rule.
    #[must_use]
    pub fn group(mut self, belongs: impl Fn(&str) -> bool, rule: R) -> Self {
        for slot in self.slots.iter_mut().filter(|slot| belongs(&slot.name)) {
            slot.group = self.rules.len();
        }
        self.rules.push(rule);
        self
    }

    /// The rules: the one given to [`Optimizer::new`], then those of the groups in their order.
    pub fn rules(&self) -> &[R] {
        &self.rules
    }

    /// The rules, to change them.
    pub fn rules_mut(&mut self) -> &mut [R] {
        &mut self.rules
    }

    /// Sets the step size of all groups.
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.rules.iter_mut().for_each(|rule| rule.set_rate(learning_rate));
    }

    /// Moves each parameter that has a gradient, in place. Not recorded; the gradients stay.
    ///
    /// # Errors
    ///
    /// What [`Rule::check`] says: [`Error::Value`] if an option of a rule is out of range.
    /// [`Error::Unsupported`] if a parameter is the result of a recorded op. Nothing is changed then.
    ///
    /// # Panics
    ///
    /// If a rule of yours does. Nothing is changed then.
    pub fn step(&mut self) -> Result<()> {
        step(&mut self.slots, &erased(&self.rules))
    }

    /// Takes the gradients of all parameters away.
    #[doc(alias = "zero_grad")]
    pub fn clear_grad(&self) {
        self.slots.iter().for_each(|slot| slot.parameter.clear_grad());
    }

    /// What the rules remember, by the names of the parameters: `fc1.weight.exp_avg`. Of a
    /// parameter that was never moved there is nothing. The options of the rules are not in it.
    pub fn state_dict(&self) -> StateDict {
        save(&self.slots, &erased(&self.rules))
    }

    /// Puts back what [`Optimizer::state_dict`] gave, all or nothing.
    ///
    /// # Errors
    ///
    /// [`Error::StateDict`] if there is something that no parameter has, or something missing of a
    /// parameter that has the rest, or of another shape or element type: every one of them is
    /// named. [`Error::Value`] if a count of steps is negative. Nothing is changed then.
    pub fn load_state_dict(&mut self, from: &StateDict) -> Result<()> {
        load(&mut self.slots, &erased(&self.rules), from)
    }
}

fn erased<R: Rule>(rules: &[R]) -> SmallVec<[Erased<'_>; 2]> {
    rules.iter().map(R::erased).collect()
}

fn step(slots: &mut [Slot], rules: &[Erased<'_>]) -> Result<()> {
    rules.iter().try_for_each(|by| by.rule.verify())?;
    slots.iter().try_for_each(|slot| slot.parameter.check(rules[slot.group].rule, &slot.name))?;
    slots.iter_mut().try_for_each(|slot| slot.parameter.run(rules[slot.group]))?;
    slots.iter_mut().try_for_each(|slot| slot.parameter.commit(rules[slot.group].rule))
}

fn save(slots: &[Slot], rules: &[Erased<'_>]) -> StateDict {
    let mut found = StateDict::new();
    slots
        .iter()
        .for_each(|slot| slot.parameter.save(rules[slot.group].rule, &slot.name, &mut found));
    found
}

fn load(slots: &mut [Slot], rules: &[Erased<'_>], from: &StateDict) -> Result<()> {
    let mut needed = StateDict::new();
    for slot in &*slots {
        let (mut own, rule) = (StateDict::new(), rules[slot.group].rule);
        slot.parameter.expect(rule, &slot.name, &mut own);
        if own.keys().any(|name| from.contains_key(name)) {
            needed.extend(own);
        }
    }
    state::check(&needed, from)?;
    for slot in slots.iter().filter(|slot| rules[slot.group].rule.counts()) {
        let name = step_of(&slot.name);
        if let Some(found @ ..0) = count(from, &name) {
            let found = format!("{found} in `{name}`");
            return Err(Error::value("load_state_dict", "step", "0 or more", found));
        }
    }
    slots.iter_mut().for_each(|slot| slot.parameter.load(rules[slot.group].rule, &slot.name, from));
    Ok(())
}

/// What the count of a parameter's steps is saved as.
fn step_of(name: &str) -> String {
    format!("{name}.step")
}

fn count(from: &StateDict, name: &str) -> Option<i64> {
    from.get(name).and_then(<i64 as Element>::peek).map(Tensor::item)
}

/// What an optimizer does with a parameter, whatever its elements are.
trait Parameter: Debug + Send + Sync + UnwindSafe + RefUnwindSafe {
    fn clear_grad(&self);
    /// An error if it cannot be moved.
    fn check(&self, rule: &dyn Update, name: &str) -> Result<()>;
    /// Runs a rule if there is a gradient: in place, or on copies.
    fn run(&mut self, by: Erased<'_>) -> Result<()>;
    /// Puts in what the rule made of copies: that of a user has returned for every parameter before the
    /// first one changes.
    fn commit(&mut self, rule: &dyn Update) -> Result<()>;
    fn save(&self, rule: &dyn Update, name: &str, to: &mut StateDict);
    /// Tensors of the names, types and shapes that [`Self::save`] gives.
    fn expect(&self, rule: &dyn Update, name: &str, to: &mut StateDict);
    /// Takes what is there of what [`Self::save`] gives; it is all or nothing.
    fn load(&mut self, rule: &dyn Update, name: &str, from: &StateDict);
}

/// What a rule remembers of each element, by its names.
type State<T> = Vec<(&'static str, Value<T>)>;

/// A parameter and its state.
struct Moved<T: Float> {
    tensor: Tensor<T>,
    update: fn(&dyn Update, Step<'_, T>),
    count: u64,
    state: State<T>,
    /// What the parameter and the state become when all rules have run.
    next: Option<(Value<T>, State<T>)>,
}

/// A rule that panics has only changed copies.
impl<T: Float> UnwindSafe for Moved<T> {}
impl<T: Float> RefUnwindSafe for Moved<T> {}

impl<T: Float> Debug for Moved<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Moved").field("tensor", &self.tensor).finish_non_exhaustive()
    }
}

impl<T: Float> Moved<T> {
    fn of(tensor: Tensor<T>, update: fn(&dyn Update, Step<'_, T>)) -> Box<Self> {
        Box::new(Self { tensor, update, count: 0, state: Vec::new(), next: None })
    }
}

impl<T: Float> Parameter for Moved<T> {
    fn clear_grad(&self) {
        self.tensor.clear_grad();
    }

    fn check(&self, rule: &dyn Update, name: &str) -> Result<()> {
        let op = rule.name();
        if !self.tensor.is_leaf() {
            let why = format!("parameter `{name}` was computed by an op; only a leaf can be moved");
            return Err(Error::Unsupported { op, why });
        }
        self.tensor.check_write(op)
    }

    fn run(&mut self, by: Erased<'_>) -> Result<()> {
        self.next = None;
        let gradient = self.tensor.grad().filter(|_| !self.tensor.stop_gradient());
        let Some(gradient) = gradient else { return Ok(()) };
        let (names, zero) =
            (by.rule.remembered(), || Value::full(copied(self.tensor.shape()), T::ZERO));
        let fresh = !self.state.iter().map(|(name, _)| name).eq(names);
        let mut state = match (fresh, by.in_place) {
            (true, _) => names.iter().map(|&name| (name, zero())).collect(),
            (false, true) => std::mem::take(&mut self.state),
            (false, false) => self.state.clone(),
        };
        let count = self.count + 1;
        let mut update = |value: &mut Value<T>| {
            let gradient = gradient.read();
            let gradient = gradient.contiguous();
            let step = Step {
                parameter: value.make_mut(),
                gradient: gradient.as_slice().unwrap_or(&[]),
                state: state.iter_mut().map(|(_, value)| value.make_mut()).collect(),
                count,
                fresh,
            };
            (self.update)(by.rule, step);
        };
        if !by.in_place {
            let mut value = self.tensor.read().into_owned();
            update(&mut value);
            self.next = Some((value, state));
            return Ok(());
        }
        let written = self.tensor.write(by.rule.name(), update);
        (self.count, self.state) = (count, state);
        written
    }

    fn commit(&mut self, rule: &dyn Update) -> Result<()> {
        let Some((next, state)) = self.next.take() else { return Ok(()) };
        (self.count, self.state) = (self.count + 1, state);
        self.tensor.write(rule.name(), |value| *value = next)
    }

    fn save(&self, rule: &dyn Update, name: &str, to: &mut StateDict) {
        for (what, value) in &self.state {
            to.insert(format!("{name}.{what}"), Tensor::new(value.clone()).into());
        }
        if rule.counts() && (self.count > 0 || !self.state.is_empty()) {
            to.insert(step_of(name), Tensor::from(self.count as i64).into());
        }
    }

    fn expect(&self, rule: &dyn Update, name: &str, to: &mut StateDict) {
        let zeros = Value::scalar(T::ZERO).broadcast_to(self.tensor.shape());
        let state = rule.remembered().iter().map(|&what| (what, zeros.clone())).collect();
        let (tensor, update) = (self.tensor.clone(), self.update);
        Self { tensor, update, count: 1, state, next: None }.save(rule, name, to);
    }

    fn load(&mut self, rule: &dyn Update, name: &str, from: &StateDict) {
        let found = |&what: &&'static str| {
            let tensor: &Tensor<T> = from.get(&format!("{name}.{what}"))?.downcast_ref()?;
            Some((what, tensor.read().contiguous().into_owned()))
        };
        let state: Option<State<T>> = rule.remembered().iter().map(found).collect();
        let count = count(from, &step_of(name)).filter(|_| rule.counts());
        (self.count, self.state) = (count.unwrap_or(0) as u64, state.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::parameter;
    use crate::optim::{Adam, RmsProp};

    #[test]
    fn state_of_other_names_starts_anew_when_the_rule_is_changed() {
        let step = |optimizer: &mut Optimizer<RmsProp>, p: &Tensor<f64>| {
            p.clear_grad();
            p.square().sum().backward().unwrap();
            optimizer.step().unwrap();
        };
        let of_first = RmsProp::new(0.1).momentum(0.9);
        let of_second = RmsProp::new(0.1).centered(true);
        let p = parameter(Tensor::from([1.0]));
        let mut changed = Optimizer::new(&p, of_first);
        step(&mut changed, &p);
        changed.rules_mut()[0] = of_second;
        let other = parameter(p.copy().detach());
        let mut new = Optimizer::new(&other, of_second);
        step(&mut changed, &p);
        step(&mut new, &other);
        assert_eq!(p.to_vec(), other.to_vec());
    }

    #[test]
    fn a_step_writes_where_the_numbers_are() {
        let p = parameter(Tensor::<f32>::zeros([1000]));
        let place = || p.read().as_slice().map(<[f32]>::as_ptr);
        let before = place();
        let mut adam = Optimizer::new(&p, Adam::new(0.1));
        for _ in 0..3 {
            p.clear_grad();
            assert!((&p + 1.0).square().sum().backward().is_ok() && adam.step().is_ok());
        }
        assert!(p.to_vec().iter().all(|&x| x < -0.2));
        assert_eq!(place(), before);
    }
}
