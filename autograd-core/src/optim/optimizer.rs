//! Parameters, the rule of each, and the state of the rules.

use super::rule::{Erased, Rule, Step};
use crate::array::Value;
use crate::array::shape::copied;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, ElementFunctions, Tensor, for_any};
use crate::nn::{Module, StateDict, state};
use crate::ops::Float;

/// Updates parameters that have a gradient and want one, by a [`Rule`]; see the [module](super).
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::Linear;
/// use autograd_core::optim::{Optimizer, Sgd};
///
/// // The bias has no weight decay.
/// let layer = Linear::<f64>::new(3, 1);
/// let rule = Sgd::new(0.1);
/// let mut sgd = Optimizer::new(&layer, rule.weight_decay(1e-4)).group(|name| name == "bias", rule);
/// let loss = || layer.forward(&Tensor::ones([1, 3])).mse_loss(&Tensor::from([[2.0]]));
/// for _ in 0..100 {
///     loss().backward()?;
///     sgd.step()?;
///     sgd.clear_grad();
/// }
/// assert!(loss().item() < 1e-6);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Optimizer<R: Rule> {
    rules: Vec<R>,
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    name: String,
    group: usize,
    tensor: AnyTensor,
    count: u64,
    state: State,
    /// The new parameter, count and state, stored when all rules have run.
    next: Option<(AnyTensor, u64, State)>,
}

type State = Vec<(&'static str, AnyTensor)>;

impl<R: Rule> Optimizer<R> {
    /// Creates an optimizer of the parameters that a module has now, all with one rule. A tensor in two places
    /// is updated once a step, under its first name. [`parameter`](crate::nn::parameter)s take half the memory
    /// of plain tensors.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_core::optim::{Optimizer, Sgd};
    ///
    /// let p = parameter(Tensor::from(1.0));
    /// let mut sgd = Optimizer::new(&[p.clone(), p.clone()], Sgd::new(0.25));
    /// p.square().backward()?;
    /// sgd.step()?;
    /// assert_eq!(p.item(), 1.0 - 0.25 * 2.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn new(module: &(impl Module + ?Sized), rule: R) -> Self {
        let slot = |(name, tensor)| Slot {
            name,
            group: 0,
            tensor,
            count: 0,
            state: State::new(),
            next: None,
        };
        let slots = module.distinct_parameters().into_iter().map(slot).collect();
        Self { rules: vec![rule], slots }
    }

    /// Moves the parameters whose names `belongs` selects, of any group, into a new one with its own rule.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_core::optim::{Optimizer, Sgd};
    ///
    /// let p = [1.0, 1.0].map(|x| parameter(Tensor::from(x)));
    /// let mut sgd = Optimizer::new(&p, Sgd::new(0.5)).group(|name| name == "1", Sgd::new(0.25));
    /// (&p[0] + &p[1]).backward()?;
    /// sgd.step()?;
    /// assert_eq!((p[0].item(), p[1].item()), (0.5, 0.75));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[must_use]
    pub fn group(mut self, belongs: impl Fn(&str) -> bool, rule: R) -> Self {
        for slot in self.slots.iter_mut().filter(|slot| belongs(&slot.name)) {
            slot.group = self.rules.len();
        }
        self.rules.push(rule);
        self
    }

    /// Returns the rules: the one given to [`Optimizer::new`], then those of the groups in their order.
    ///
    /// ```
    /// use autograd_core::nn::Linear;
    /// use autograd_core::optim::{Optimizer, Sgd};
    ///
    /// let layer = Linear::<f32>::new(3, 2);
    /// let sgd = Optimizer::new(&layer, Sgd::new(0.1)).group(|name| name == "bias", Sgd::new(0.2));
    /// assert_eq!(sgd.rules(), [Sgd::new(0.1), Sgd::new(0.2)]);
    /// ```
    pub fn rules(&self) -> &[R] {
        &self.rules
    }

    /// Returns the rules for changes.
    ///
    /// ```
    /// use autograd_core::nn::Linear;
    /// use autograd_core::optim::{Optimizer, Sgd};
    ///
    /// let mut sgd = Optimizer::new(&Linear::<f32>::new(3, 2), Sgd::new(0.1));
    /// sgd.rules_mut()[0] = Sgd::new(0.1).momentum(0.9);
    /// assert_eq!(sgd.rules(), [Sgd::new(0.1).momentum(0.9)]);
    /// ```
    pub fn rules_mut(&mut self) -> &mut [R] {
        &mut self.rules
    }

    /// Sets the step size of all groups.
    ///
    /// ```
    /// use autograd_core::nn::Linear;
    /// use autograd_core::optim::{Optimizer, Sgd};
    ///
    /// let layer = Linear::<f32>::new(3, 2);
    /// let mut sgd = Optimizer::new(&layer, Sgd::new(0.1))
    ///     .group(|name| name == "bias", Sgd::new(0.2));
    /// sgd.set_learning_rate(0.01);
    /// assert_eq!(sgd.rules(), [Sgd::new(0.01), Sgd::new(0.01)]);
    /// ```
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.rules.iter_mut().for_each(|rule| rule.set_rate(learning_rate));
    }

    /// Updates each parameter that has a gradient, in place. Not recorded; the gradients stay.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_core::optim::{Optimizer, Sgd};
    ///
    /// let p = parameter(Tensor::from(3.0));
    /// p.square().backward()?;
    /// Optimizer::new(&p, Sgd::new(0.25)).step()?;
    /// assert_eq!(p.item(), 3.0 - 0.25 * 6.0);
    /// assert_eq!(p.grad().unwrap().item(), 6.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if an option of a rule is out of range ([`Rule::check`]), [`Error::Unsupported`] if
    /// a parameter is an op's result, or none wants a gradient. Nothing is changed then.
    ///
    /// # Panics
    ///
    /// If a rule of yours panics. Nothing is changed then.
    pub fn step(&mut self) -> Result<()> {
        self.rules.iter().try_for_each(R::check)?;
        step(&mut self.slots, &erased(&self.rules))
    }

    /// Clears the gradients of all parameters.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_core::optim::{Optimizer, Sgd};
    ///
    /// let p = parameter(Tensor::from(3.0));
    /// p.square().backward()?;
    /// Optimizer::new(&p, Sgd::new(0.25)).clear_grad();
    /// assert!(p.grad().is_none());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[doc(alias = "zero_grad")]
    pub fn clear_grad(&self) {
        self.slots.iter().for_each(|slot| slot.tensor.clear_grad());
    }

    /// Returns the state of the rules, by the names of the parameters: `fc1.weight.exp_avg`. A
    /// parameter that was never updated, or whose rule was changed to one with other state since, has only
    /// `step`, which is 0; a rule without state, such as plain SGD, has nothing. The options of the rules are not
    /// included. The module `safetensors` shows a training that is resumed exactly.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_core::optim::{Adam, Optimizer};
    ///
    /// let p = parameter(Tensor::from(3.0));
    /// let mut adam = Optimizer::new(&p, Adam::new(0.25));
    /// assert_eq!(adam.state_dict().keys().collect::<Vec<_>>(), ["0.step"]);
    /// p.square().backward()?;
    /// adam.step()?;
    /// let names = ["0.exp_avg", "0.exp_avg_sq", "0.step"];
    /// assert_eq!(adam.state_dict().keys().collect::<Vec<_>>(), names);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn state_dict(&self) -> StateDict {
        save(&self.slots, &erased(&self.rules))
    }

    /// Restores the state that [`Optimizer::state_dict`] returned, all or nothing.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_core::optim::{Optimizer, Sgd};
    ///
    /// let (p, rule) = (parameter(Tensor::from(1.0)), Sgd::new(0.25).momentum(0.5));
    /// p.set_grad(Some(&Tensor::from(2.0)))?;
    /// let mut sgd = Optimizer::new(&p, rule);
    /// sgd.step()?;
    /// let mut resumed = Optimizer::new(&p, rule);
    /// resumed.load_state_dict(&sgd.state_dict())?;
    /// resumed.step()?;
    /// assert_eq!(p.item(), 1.0 - 0.25 * 2.0 - 0.25 * (0.5 * 2.0 + 2.0));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::StateDict`] lists names of no parameter, parts that a parameter's state lacks (all of them, if the
    /// tensors are those under a misspelt prefix), and other shapes or element types; [`Error::Value`] if a count of
    /// steps is negative. Nothing is changed then.
    pub fn load_state_dict(&mut self, from: &StateDict) -> Result<()> {
        load(&mut self.slots, &erased(&self.rules), from)
    }
}

fn erased<R: Rule>(rules: &[R]) -> Vec<Erased<'_>> {
    rules.iter().map(R::erased).collect()
}

fn step(slots: &mut [Slot], rules: &[Erased<'_>]) -> Result<()> {
    if let (Some(slot), true) =
        (slots.first(), slots.iter().all(|slot| slot.tensor.stop_gradient()))
    {
        let (op, name) = (rules[slot.group].name, &slot.name);
        let why = format!(
            "no parameter wants a gradient (stop_gradient is true, as that of `{name}`), so no step can change one; \
             create parameters with `nn::parameter`, or call `set_stop_gradient(false)`"
        );
        return Err(Error::Unsupported { op, why });
    }
    slots.iter().try_for_each(|slot| slot.check(rules[slot.group].name))?;
    slots.iter_mut().try_for_each(|slot| slot.run(&rules[slot.group]))?;
    slots.iter_mut().try_for_each(|slot| slot.commit(rules[slot.group].name))
}

fn save(slots: &[Slot], rules: &[Erased<'_>]) -> StateDict {
    let mut found = StateDict::new();
    slots.iter().for_each(|slot| slot.save(&rules[slot.group], &mut found));
    found
}

fn load(slots: &mut [Slot], rules: &[Erased<'_>], from: &StateDict) -> Result<()> {
    let mut needed = StateDict::new();
    for slot in &*slots {
        let (mut updated, rule) = (StateDict::new(), &rules[slot.group]);
        slot.expected(rule).save(rule, &mut updated);
        let step = step_of(&slot.name);
        let is_new = count(from, &step) == Some(0)
            && !updated.keys().any(|name| *name != step && from.contains_key(name));
        needed.extend(if is_new && !updated.is_empty() {
            [(step, Tensor::from(0_i64).into())].into()
        } else {
            updated
        });
    }
    state::check(&needed, from)?;
    for slot in slots.iter().filter(|slot| rules[slot.group].counts) {
        let name = step_of(&slot.name);
        if let Some(found @ ..0) = count(from, &name) {
            let found = format!("{found} in `{name}`");
            return Err(Error::value("load_state_dict", "step", "0 or more", found));
        }
    }
    slots.iter_mut().for_each(|slot| slot.load(&rules[slot.group], from));
    Ok(())
}

fn step_of(name: &str) -> String {
    format!("{name}.step")
}

fn count(from: &StateDict, name: &str) -> Option<i64> {
    from.get(name).and_then(<i64 as ElementFunctions>::peek).map(Tensor::item)
}

impl Slot {
    fn check(&self, op: &'static str) -> Result<()> {
        let name = &self.name;
        if !for_any!(&self.tensor, tensor => tensor.is_leaf()) {
            let why = format!("parameter `{name}` was computed by an op; only a leaf can be moved");
            return Err(Error::Unsupported { op, why });
        }
        for_any!(&self.tensor, tensor => tensor.check_write(op))
    }

    fn run(&mut self, rule: &Erased<'_>) -> Result<()> {
        match self.tensor.clone() {
            AnyTensor::Float32(tensor) => self.typed(&tensor, rule, &rule.update_f32),
            AnyTensor::Float64(tensor) => self.typed(&tensor, rule, &rule.update_f64),
            _ => unreachable!("parameters are tensors of floats"),
        }
    }

    fn typed<T: Float>(
        &mut self,
        tensor: &Tensor<T>,
        rule: &Erased<'_>,
        run: &dyn Fn(Step<'_, T>),
    ) -> Result<()> {
        self.next = None;
        let gradient = tensor.grad().filter(|_| !tensor.stop_gradient());
        let Some(gradient) = gradient else { return Ok(()) };
        let names = rule.state;
        let zero = || Tensor::from_value(Value::full(copied(tensor.shape()), T::ZERO)).into();
        let (fresh, count) = (self.is_new(rule), self.steps(rule) + 1);
        let mut state: State = match (fresh, rule.in_place) {
            (true, _) => names.iter().map(|&name| (name, zero())).collect(),
            (false, true) => std::mem::take(&mut self.state),
            (false, false) => self.state.iter().map(|(name, own)| (*name, own.alias())).collect(),
        };
        let mut update = |value: &mut Value<T>| {
            let own = state.iter_mut().map(|(_, own)| own);
            Step::run(value, own, &gradient, (count, fresh), run);
        };
        if !rule.in_place {
            let mut value = tensor.read().into_owned();
            update(&mut value);
            self.next = Some((Tensor::from_value(value).into(), count, state));
            return Ok(());
        }
        let written = tensor.write(rule.name, update);
        (self.count, self.state) = (count, state);
        written
    }

    /// Stores the updated copies. A user's rule has returned for every parameter before the first changes.
    fn commit(&mut self, op: &'static str) -> Result<()> {
        let Some((next, count, state)) = self.next.take() else { return Ok(()) };
        (self.count, self.state) = (count, state);
        for_any!(&self.tensor, tensor => tensor.write(op, |value| {
            if let Some(next) = next.downcast() {
                *value = next.read().into_owned();
            }
        }))
    }

    fn save(&self, rule: &Erased<'_>, to: &mut StateDict) {
        let is_new = self.is_new(rule);
        for (what, value) in self.state.iter().filter(|_| !is_new) {
            to.insert(format!("{}.{what}", self.name), value.alias());
        }
        if rule.counts || (is_new && !rule.state.is_empty()) {
            to.insert(step_of(&self.name), Tensor::from(self.steps(rule) as i64).into());
        }
    }

    /// Whether a step creates the state: before the first one, and after a change to a rule with other state.
    fn is_new(&self, rule: &Erased<'_>) -> bool {
        !self.state.iter().map(|(name, _)| name).eq(rule.state)
    }

    /// The number of steps that made the state.
    fn steps(&self, rule: &Erased<'_>) -> u64 {
        if self.is_new(rule) { 0 } else { self.count }
    }

    /// Returns the slot as it would be after a step, except for the numbers.
    fn expected(&self, rule: &Erased<'_>) -> Self {
        let state = rule.state.iter().map(|&what| (what, self.tensor.alias())).collect();
        let (name, tensor) = (self.name.clone(), self.tensor.clone());
        Self { name, group: self.group, tensor, count: 1, state, next: None }
    }

    fn load(&mut self, rule: &Erased<'_>, from: &StateDict) {
        let own = |tensor: &AnyTensor| for_any!(tensor, tensor => Tensor::from_value(tensor.read().contiguous().into_owned()).into());
        let found =
            |&what: &&'static str| Some((what, own(from.get(&format!("{}.{what}", self.name))?)));
        let state: Option<State> = rule.state.iter().map(found).collect();
        let count = count(from, &step_of(&self.name)).filter(|_| rule.counts);
        (self.count, self.state) = (count.unwrap_or(0) as u64, state.unwrap_or_default());
    }
}
