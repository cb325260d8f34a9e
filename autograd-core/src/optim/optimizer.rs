//! Parameters, the rule of each, and what the rules remember.

use smallvec::SmallVec;

use super::rule::{Erased, Moved, Optimizer, Parameter, Rule, Slot, Step, Update};
use crate::array::Value;
use crate::array::shape::copied;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, Tensor};
use crate::nn::{Module, StateDict, distinct_parameters, state};
use crate::ops::Float;

impl<T: Float> std::fmt::Debug for Moved<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Moved").field("tensor", &self.tensor).finish_non_exhaustive()
    }
}

macro_rules! for_each_float {
    ($parameter:expr, $moved:ident => $body:expr) => {
        match $parameter {
            Parameter::Float32($moved) => $body,
            Parameter::Float64($moved) => $body,
        }
    };
}

impl<R: Rule> Optimizer<R> {
    /// For the parameters that a module has now, all by one rule. A tensor that stands in two
    /// places of the module is moved once a step, under its first name. Parameters that
    /// [`parameter`](crate::nn::parameter) made take half the memory of plain tensors, once they are moved.
    pub fn new(module: &(impl Module + ?Sized), rule: R) -> Self {
        let slot = |(name, tensor)| {
            let parameter = match tensor {
                AnyTensor::Float32(tensor) => Parameter::Float32(Moved::new(tensor)),
                AnyTensor::Float64(tensor) => Parameter::Float64(Moved::new(tensor)),
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
        for slot in &self.slots {
            for_each_float!(&slot.parameter, moved => moved.tensor.clear_grad());
        }
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
    for slot in &*slots {
        let op = rules[slot.group].rule.name();
        if !for_each_float!(&slot.parameter, moved => moved.tensor.is_leaf()) {
            let why = format!(
                "parameter `{}` was computed by an op; only a leaf can be moved",
                slot.name
            );
            return Err(Error::Unsupported { op, why });
        }
        for_each_float!(&slot.parameter, moved => moved.tensor.check_write(op))?;
    }
    // A rule of a user has returned for every parameter before the first one changes.
    if !rules.iter().all(|by| by.in_place) {
        for slot in slots.iter_mut() {
            for_each_float!(&mut slot.parameter, moved => moved.prepare(rules[slot.group]));
        }
    }
    for slot in slots {
        for_each_float!(&mut slot.parameter, moved => moved.step(rules[slot.group]))?;
    }
    Ok(())
}

fn save(slots: &[Slot], rules: &[Erased<'_>]) -> StateDict {
    let mut found = StateDict::new();
    for slot in slots {
        let rule = rules[slot.group].rule;
        for_each_float!(&slot.parameter, moved => moved.save(rule, &slot.name, &mut found));
    }
    found
}

fn load(slots: &mut [Slot], rules: &[Erased<'_>], from: &StateDict) -> Result<()> {
    let mut needed = StateDict::new();
    for slot in &*slots {
        let (mut own, rule) = (StateDict::new(), rules[slot.group].rule);
        for_each_float!(&slot.parameter, moved => moved.expect(rule, &slot.name, &mut own));
        if own.keys().any(|name| from.contains_key(name)) {
            needed.extend(own);
        }
    }
    state::check(&needed, from)?;
    let counted = rules.iter().any(|by| by.rule.counts());
    for (name, count) in counts(from) {
        let found = count.item();
        if found < 0 && name.ends_with(STEP) && counted {
            let expected = "0 or more".into();
            let found = format!("{found} in `{name}`");
            return Err(Error::Value { op: "load_state_dict", parameter: "step", expected, found });
        }
    }
    for slot in slots {
        let rule = rules[slot.group].rule;
        for_each_float!(&mut slot.parameter, moved => moved.load(rule, &slot.name, from));
    }
    Ok(())
}

const STEP: &str = ".step";

fn counts(from: &StateDict) -> impl Iterator<Item = (&String, &Tensor<i64>)> {
    let scalar = |tensor: &AnyTensor| tensor.shape().is_empty();
    let scalars = from.iter().filter(move |(_, tensor)| scalar(tensor));
    scalars.filter_map(|(name, tensor)| Some((name, tensor.downcast_ref()?)))
}

/// The element types that parameters have.
pub(super) trait Moves: Float {
    fn update(rule: &dyn Update, step: Step<'_, Self>);
}

impl Moves for f32 {
    fn update(rule: &dyn Update, step: Step<'_, f32>) {
        rule.update_f32(step);
    }
}

impl Moves for f64 {
    fn update(rule: &dyn Update, step: Step<'_, f64>) {
        rule.update_f64(step);
    }
}

/// Calls a rule for a parameter that has these elements, and this state.
fn run<T: Moves>(
    rule: &dyn Update,
    value: &mut Value<T>,
    gradient: &Value<T>,
    state: &mut [Value<T>],
    (count, fresh): (u64, bool),
) {
    T::update(
        rule,
        Step {
            parameter: value.make_mut(),
            gradient: gradient.contiguous().as_slice().unwrap_or(&[]),
            state: state.iter_mut().map(Value::make_mut).collect(),
            count,
            fresh,
        },
    );
}

impl<T: Moves> Moved<T> {
    fn new(tensor: Tensor<T>) -> Self {
        Self { tensor, count: 0, names: &[], state: Vec::new(), next: None }
    }

    /// The gradient, if the parameter is to be moved.
    fn gradient(&self) -> Option<Tensor<T>> {
        self.tensor.grad().filter(|_| !self.tensor.stop_gradient())
    }

    fn zeros(&self, count: usize) -> Vec<Value<T>> {
        (0..count).map(|_| Value::full(copied(self.tensor.shape()), T::ZERO)).collect()
    }

    /// Runs a rule of a user, on copies.
    fn prepare(&mut self, by: Erased<'_>) {
        self.next = None;
        if by.in_place {
            return;
        }
        let Some(gradient) = self.gradient() else { return };
        let names = by.rule.remembered();
        let fresh = self.names != names;
        let mut state = if fresh { self.zeros(names.len()) } else { self.state.clone() };
        let mut value = self.tensor.read().into_owned();
        run(by.rule, &mut value, &gradient.read(), &mut state, (self.count + 1, fresh));
        self.next = Some((value, state));
    }

    fn step(&mut self, by: Erased<'_>) -> Result<()> {
        if !by.in_place {
            let Some((next, state)) = self.next.take() else { return Ok(()) };
            self.count += 1;
            (self.names, self.state) = (by.rule.remembered(), state);
            return self.tensor.write(by.rule.name(), |value| *value = next);
        }
        let Some(gradient) = self.gradient() else { return Ok(()) };
        let names = by.rule.remembered();
        let fresh = self.names != names;
        if fresh {
            (self.names, self.state) = (names, self.zeros(names.len()));
        }
        self.count += 1;
        let (state, count) = (&mut self.state, self.count);
        self.tensor.write(by.rule.name(), |value| {
            run(by.rule, value, &gradient.read(), state, (count, fresh));
        })
    }

    fn save(&self, rule: &dyn Update, name: &str, to: &mut StateDict) {
        if self.state.is_empty() {
            return;
        }
        for (what, value) in self.names.iter().zip(&self.state) {
            to.insert(format!("{name}.{what}"), Tensor::new(value.clone()).into());
        }
        if rule.counts() {
            to.insert(format!("{name}{STEP}"), Tensor::from(self.count as i64).into());
        }
    }

    /// Tensors of the names, types and shapes that [`Self::save`] gives.
    fn expect(&self, rule: &dyn Update, name: &str, to: &mut StateDict) {
        let broadcast = Value::scalar(T::ZERO).broadcast_to(self.tensor.shape());
        let moved = Self {
            tensor: self.tensor.clone(),
            count: 0,
            names: rule.remembered(),
            state: vec![broadcast; rule.remembered().len()],
            next: None,
        };
        moved.save(rule, name, to);
    }

    /// Takes what is there of what [`Self::save`] gives; it is all or nothing.
    fn load(&mut self, rule: &dyn Update, name: &str, from: &StateDict) {
        let found = |what: &&str| {
            let tensor: &Tensor<T> = from.get(&format!("{name}.{what}"))?.downcast_ref()?;
            Some(tensor.read().contiguous().into_owned())
        };
        let state: Option<Vec<_>> = rule.remembered().iter().map(found).collect();
        let count = from.get(&format!("{name}{STEP}")).and_then(<i64 as Element>::peek);
        self.count = count.filter(|_| rule.counts()).map_or(0, |count| count.item() as u64);
        self.names = if state.is_some() { rule.remembered() } else { &[] };
        self.state = state.unwrap_or_default();
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
