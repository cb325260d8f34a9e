//! Parameters, the rule of each, and what the rules remember.

use super::adam::{Adam, AdamW};
use super::kernels::Kernels;
use super::rule::{Moved, OfRules, Optimizer, Parameter, Rule, Slot, Step};
use super::sgd::Sgd;
use crate::array::Value;
use crate::array::shape::copied;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, Tensor};
use crate::nn::{Module, StateDict, distinct_parameters, state};
use crate::ops::{Float, instantiate};

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
    /// [`Error::Value`] if an option of a rule is out of range, [`Error::Unsupported`] if a
    /// parameter is the result of a recorded op. Nothing is changed then.
    pub fn step(&mut self) -> Result<()> {
        R::step(self)
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
        R::save(self)
    }

    /// Puts back what [`Optimizer::state_dict`] gave, all or nothing.
    ///
    /// # Errors
    ///
    /// [`Error::StateDict`] if there is something that no parameter has, or something missing of a
    /// parameter that has the rest, or of another shape or element type: every one of them is
    /// named. [`Error::Value`] if a count of steps is negative. Nothing is changed then.
    pub fn load_state_dict(&mut self, from: &StateDict) -> Result<()> {
        R::load(self, from)
    }
}

instantiate! {
    impl OfRules for Sgd Adam AdamW; {
        fn step(optimizer: &mut Optimizer<Self>) -> Result<()> = step;
        fn save(optimizer: &Optimizer<Self>) -> StateDict = save;
        fn load(optimizer: &mut Optimizer<Self>, from: &StateDict) -> Result<()> = load;
    }
}

fn step<R: Rule>(optimizer: &mut Optimizer<R>) -> Result<()> {
    optimizer.rules.iter().try_for_each(R::check)?;
    for slot in &optimizer.slots {
        if !for_each_float!(&slot.parameter, moved => moved.tensor.is_leaf()) {
            let why = format!(
                "parameter `{}` was computed by an op; only a leaf can be moved",
                slot.name
            );
            return Err(Error::Unsupported { op: R::NAME, why });
        }
        for_each_float!(&slot.parameter, moved => moved.tensor.check_write(R::NAME))?;
    }
    for slot in &mut optimizer.slots {
        let rule = &optimizer.rules[slot.group];
        for_each_float!(&mut slot.parameter, moved => moved.step(rule))?;
    }
    Ok(())
}

fn save<R: Rule>(optimizer: &Optimizer<R>) -> StateDict {
    let mut found = StateDict::new();
    for slot in &optimizer.slots {
        for_each_float!(&slot.parameter, moved => moved.save(&optimizer.rules[slot.group], &slot.name, &mut found));
    }
    found
}

fn load<R: Rule>(optimizer: &mut Optimizer<R>, from: &StateDict) -> Result<()> {
    let mut needed = StateDict::new();
    for slot in &optimizer.slots {
        let mut own = StateDict::new();
        for_each_float!(&slot.parameter, moved => moved.expect(&optimizer.rules[slot.group], &slot.name, &mut own));
        if own.keys().any(|name| from.contains_key(name)) {
            needed.extend(own);
        }
    }
    state::check(&needed, from)?;
    for (name, count) in counts(from) {
        let found = count.item();
        if found < 0 && name.ends_with(STEP) && R::COUNTS {
            let expected = "0 or more".into();
            let found = format!("{found} in `{name}`");
            return Err(Error::Value { op: "load_state_dict", parameter: "step", expected, found });
        }
    }
    for slot in &mut optimizer.slots {
        let rule = &optimizer.rules[slot.group];
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

impl<T: Kernels> Moved<T> {
    fn new(tensor: Tensor<T>) -> Self {
        Self { tensor, count: 0, state: Vec::new() }
    }

    fn step<R: Rule>(&mut self, rule: &R) -> Result<()> {
        let Some(gradient) = self.tensor.grad().filter(|_| !self.tensor.stop_gradient()) else {
            return Ok(());
        };
        let gradient = gradient.read();
        let gradient = gradient.contiguous();
        let remembered = rule.state().len();
        let fresh = self.state.len() != remembered;
        if fresh {
            let zeros = || Value::full(copied(self.tensor.shape()), T::ZERO);
            self.state = (0..remembered).map(|_| zeros()).collect();
        }
        self.count += 1;
        self.tensor.write(R::NAME, |value| {
            rule.update(Step {
                parameter: value.make_mut(),
                gradient: gradient.as_slice().unwrap_or(&[]),
                state: self.state.iter_mut().map(Value::make_mut).collect(),
                count: self.count,
                fresh,
            });
        })
    }

    fn save<R: Rule>(&self, rule: &R, name: &str, to: &mut StateDict) {
        if self.state.is_empty() {
            return;
        }
        for (what, value) in rule.state().iter().zip(&self.state) {
            to.insert(format!("{name}.{what}"), Tensor::new(value.clone()).into());
        }
        if R::COUNTS {
            to.insert(format!("{name}{STEP}"), Tensor::from(self.count as i64).into());
        }
    }

    /// Tensors of the names, types and shapes that [`Self::save`] gives.
    fn expect<R: Rule>(&self, rule: &R, name: &str, to: &mut StateDict) {
        let broadcast = Value::scalar(T::ZERO).broadcast_to(self.tensor.shape());
        let moved = Self {
            tensor: self.tensor.clone(),
            count: 0,
            state: vec![broadcast; rule.state().len()],
        };
        moved.save(rule, name, to);
    }

    /// Takes what is there of what [`Self::save`] gives; it is all or nothing.
    fn load<R: Rule>(&mut self, rule: &R, name: &str, from: &StateDict) {
        let found = |what: &&str| {
            let tensor: &Tensor<T> = from.get(&format!("{name}.{what}"))?.downcast_ref()?;
            Some(tensor.read().contiguous().into_owned())
        };
        let state: Option<Vec<_>> = rule.state().iter().map(found).collect();
        let count = from.get(&format!("{name}{STEP}")).and_then(<i64 as Element>::peek);
        self.count = count.filter(|_| R::COUNTS).map_or(0, |count| count.item() as u64);
        self.state = state.unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::parameter;
    use crate::optim::Adam;

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
