//! Update rules.

use std::array::from_fn;
use std::mem::take;

use crate::array::simd::{Kernel, dispatch};
use crate::array::threads::each_grain_of;
use crate::array::{Shape, Value};
use crate::error::Result;
use crate::graph::{AnyTensor, Tensor};
use crate::ops::Float;
#[cfg(feature = "static-graph")]
use crate::ops::table::attr::Param;

/// An example of an update: the parameter `[1, 2]` after two steps with the gradient `[3, -4]`.
macro_rules! example {
    ($update:literal => $result:literal) => {
        concat!(
            "
```
use autograd_core::nn::parameter;
use autograd_core::optim::{Optimizer, Rule, Step};
use autograd_core::prelude::*;

#[derive(Clone)]
struct Own {
    rate: f64,
}

impl Rule for Own {
    // NAME, rate, set_rate and state are in the example of the trait.
#     const NAME: &'static str = \"Own\";
#     fn rate(&self) -> f64 { self.rate }
#     fn set_rate(&mut self, rate: f64) { self.rate = rate; }
#     fn state(&self) -> &'static [&'static str] { &[\"sum\"] }
    fn update<T: Float>(&self, step: Step<'_, T>) {
        ",
            $update,
            "
    }
}

let p = parameter(Tensor::from([1.0, 2.0]));
p.set_grad(Some(&Tensor::from([3.0, -4.0])))?;
let mut optimizer = Optimizer::new(&p, Own { rate: 0.5 });
optimizer.step()?;
optimizer.step()?;
assert_eq!(p.to_vec(), ",
            $result,
            ");
# Ok::<(), autograd_core::Error>(())
```"
        )
    };
}

/// An update rule for parameters: [`Sgd`](super::Sgd), [`Adam`](super::Adam), [`AdamW`](super::AdamW),
/// [`RmsProp`](super::RmsProp), or a rule of your own. An [`Optimizer`](super::Optimizer) runs all alike:
///
/// ```
/// use autograd_core::nn::parameter;
/// use autograd_core::optim::{Optimizer, Rule, Step};
/// use autograd_core::prelude::*;
///
/// /// Lion (Chen et al. 2023), with 0.9 for both of its decay rates and no weight decay.
/// #[derive(Clone)]
/// struct Lion {
///     rate: f64,
/// }
///
/// impl Rule for Lion {
///     const NAME: &'static str = "Lion";
///
///     fn rate(&self) -> f64 {
///         self.rate
///     }
///
///     fn set_rate(&mut self, rate: f64) {
///         self.rate = rate;
///     }
///
///     fn state(&self) -> &'static [&'static str] {
///         &["exp_avg"]
///     }
///
///     fn update<T: Float>(&self, step: Step<'_, T>) {
///         let [rate, old, new] = [self.rate, 0.9, 0.1].map(T::from_f64);
///         let sign = |x: T| if x == T::ZERO { x } else { x.signum() };
///         step.each(|[p, m], g| [p - rate * sign(old * m + new * g), old * m + new * g]);
///     }
/// }
///
/// let p = parameter(Tensor::from([1.0, 2.0]));
/// let mut lion = Optimizer::new(&p, Lion { rate: 0.5 });
/// (&p * Tensor::from([3.0, -0.1])).sum().backward()?;
/// lion.step()?;
/// assert_eq!(p.to_vec(), [0.5, 2.5]);
/// assert!(lion.state_dict().contains_key("0.exp_avg"));
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// A step is all or nothing: your [`Rule::update`] runs on copies, stored when it has returned for all.
pub trait Rule: Clone {
    /// The name of the rule in errors.
    const NAME: &'static str;

    /// Whether the rule needs the count of steps, which is then part of the saved state.
    const COUNTS: bool = true;

    /// Returns the step size.
    ///
    /// ```
    /// use autograd_core::optim::{Rule, Sgd};
    ///
    /// assert_eq!(Sgd::new(0.1).rate(), 0.1);
    /// ```
    fn rate(&self) -> f64;

    /// Sets the step size.
    ///
    /// ```
    /// use autograd_core::optim::{Adam, Rule};
    ///
    /// let mut rule = Adam::new(0.1).eps(1e-6);
    /// rule.set_rate(0.01);
    /// assert_eq!(rule, Adam::new(0.01).eps(1e-6));
    /// ```
    fn set_rate(&mut self, learning_rate: f64);

    /// Returns the names under which the state of each element, initially 0, is kept and saved.
    ///
    /// ```
    /// use autograd_core::optim::{Adam, Rule, Sgd};
    ///
    /// assert_eq!(Adam::new(0.1).state(), ["exp_avg", "exp_avg_sq"]);
    /// assert!(Sgd::new(0.1).state().is_empty());
    /// ```
    fn state(&self) -> &'static [&'static str] {
        &[]
    }

    /// Checks the options, before each step.
    ///
    /// ```
    /// use autograd_core::optim::{Rule, Sgd};
    ///
    /// assert!(Sgd::new(0.1).check().is_ok());
    /// let words = "Sgd: `learning_rate` must be 0 or more, and finite, found -0.1";
    /// assert_eq!(Sgd::new(-0.1).check().unwrap_err().to_string(), words);
    /// ```
    ///
    /// # Errors
    ///
    /// If an option is out of range. The step returns the error, and nothing is changed.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Updates one parameter and its state.
    #[doc = example!(
        "let rate = T::from_f64(self.rate);
        step.each(|[p, sum], g| [p - rate * g.signum(), sum + g]);" => "[0.0, 3.0]"
    )]
    fn update<T: Float>(&self, step: Step<'_, T>);

    /// Returns the rule without its type.
    #[doc(hidden)]
    fn erased(&self) -> Erased<'_> {
        Erased::new(self, false)
    }
}

/// One parameter in one step: its elements, its gradient's and its state's, in the same order. [`Rule`] has an
/// example.
#[derive(Debug)]
pub struct Step<'a, T: Float> {
    shape: &'a [usize],
    parameter: &'a mut [T],
    gradient: &'a [T],
    state: Vec<&'a mut [T]>,
    count: u64,
    fresh: bool,
}

impl<'a, T: Float> Step<'a, T> {
    /// Runs an update of tensors in place: the parameter, and the state in its order.
    pub(crate) fn run(
        parameter: &mut Value<T>,
        state: impl IntoIterator<Item = &'a mut AnyTensor>,
        gradient: &Tensor<T>,
        (count, fresh): (u64, bool),
        update: &dyn Fn(Step<'_, T>),
    ) {
        let shape = gradient.shape();
        let gradient = gradient.read();
        let gradient = gradient.contiguous();
        let state = state.into_iter().filter_map(T::peek_mut);
        update(Step {
            shape,
            parameter: parameter.make_mut(),
            gradient: gradient.as_slice().unwrap_or(&[]),
            state: state.map(|own| own.value_mut().make_mut()).collect(),
            count,
            fresh,
        });
    }

    /// Returns the shape of the parameter, whose elements are in row-major order. Within [`Lazy`] it is that of
    /// the slices that are updated.
    #[doc = example!(
        "let rate = T::from_f64(self.rate / step.shape()[0] as f64);
        step.each(|[p, sum], g| [p - rate * g, sum + g]);" => "[-0.5, 4.0]"
    )]
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// Returns the number of this step, from 1; again from 1 if the rule was changed to one with other state.
    /// Steps without a gradient are not counted.
    #[doc = example!(
        "let rate = T::from_f64(self.rate / step.count() as f64);
        step.each(|[p, sum], g| [p - rate * g, sum + g]);" => "[-1.25, 5.0]"
    )]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether the state was created for this step, so that it is still 0: in the first step, and
    /// after a change to a rule with other state. Never for a rule without state.
    #[doc = example!(
        "let rate = T::from_f64(if step.has_new_state() { 0.0 } else { self.rate });
        step.each(|[p, sum], g| [p - rate * g, sum + g]);" => "[-0.5, 4.0]"
    )]
    pub fn has_new_state(&self) -> bool {
        self.fresh
    }

    /// Replaces each element of the parameter and of its state, in the order of [`Rule::state`], by the
    /// result of `f` for them and the gradient's element.
    #[doc = example!(
        "let rate = T::from_f64(self.rate);
        step.each(|[p, sum], g| [p - rate * (sum + g), sum + g]);" => "[-3.5, 8.0]"
    )]
    ///
    /// # Panics
    ///
    /// If `N` is not one more than there are names in [`Rule::state`].
    #[track_caller]
    pub fn each<const N: usize>(self, f: impl Fn([T; N], T) -> [T; N] + Copy + Sync) {
        let gradient = self.gradient;
        each_grain_of(self.written(), &|start, written| {
            let gradient = &gradient[start..][..written[0].len()];
            dispatch(EachElement { written, gradient, step: f });
        });
    }

    #[track_caller]
    fn written<const N: usize>(self) -> [&'a mut [T]; N] {
        let found = self.state.len() + 1;
        assert!(
            N == found,
            "Step::each: the function takes {N} elements, but there are {found}: the parameter's \
             and those that `Rule::state` names"
        );
        let mut slices = std::iter::once(self.parameter).chain(self.state);
        from_fn(|_| slices.next().unwrap_or_default())
    }

    /// Returns parameter, gradient and state, for updates that [`Step::each`] cannot express.
    #[doc = example!(
        "let (p, g, _) = step.into_slices();
        let largest = g.iter().fold(T::ZERO, |largest, g| largest.max(g.abs()));
        let rate = T::from_f64(self.rate) / largest;
        p.iter_mut().zip(g).for_each(|(p, &g)| *p = *p - rate * g);" => "[0.25, 3.0]"
    )]
    pub fn into_slices(self) -> (&'a mut [T], &'a [T], Vec<&'a mut [T]>) {
        (self.parameter, self.gradient, self.state)
    }
}

/// A rule that leaves slices of axis 0 whose gradient is 0 as they are, with their state: the usual update of
/// an embedding's table, of which a step uses few rows. Momentum and decay of other rows stop meanwhile.
/// Parameters of one axis are updated as a whole. A step of Adam on a table of 1,000,000 rows of 16 `f32`, of
/// which 1,000 have a gradient, takes a third of the time (Intel Xeon, one thread): the gradient is read.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::parameter;
/// use autograd_core::optim::{Adam, Lazy, Optimizer};
///
/// let table = parameter(Tensor::from([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]));
/// let mut adam = Optimizer::new(&table, Lazy(Adam::new(0.5)));
/// table.index_select(0, &Tensor::from([2])).sum().backward()?;
/// adam.step()?;
/// assert_eq!(table.to_vec()[..4], [1.0, 1.0, 2.0, 2.0]);
/// assert!((2.49..2.51).contains(&table.at(&[2, 0])));
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lazy<R>(pub R);

impl<R: Rule> Rule for Lazy<R> {
    const NAME: &'static str = R::NAME;
    const COUNTS: bool = R::COUNTS;

    fn rate(&self) -> f64 {
        self.0.rate()
    }

    fn set_rate(&mut self, learning_rate: f64) {
        self.0.set_rate(learning_rate);
    }

    fn state(&self) -> &'static [&'static str] {
        self.0.state()
    }

    fn check(&self) -> Result<()> {
        self.0.check()
    }

    fn update<T: Float>(&self, mut step: Step<'_, T>) {
        let Some((&rows, [_, ..])) = step.shape.split_first() else { return self.0.update(step) };
        let width = step.gradient.len() / rows.max(1);
        // A loop that may end at each element is not vectorized.
        let is_used = |row: &[T]| row.iter().fold(false, |used, g| used | (*g != T::ZERO));
        let used: Vec<bool> = step.gradient.chunks_exact(width.max(1)).map(is_used).collect();
        let mut shape = Shape::from_slice(step.shape);
        let mut start = 0;
        // Neighbours with the same answer together.
        for group in used.chunk_by(|a, b| a == b) {
            let part = start * width..(start + group.len()) * width;
            start += group.len();
            if group[0] {
                shape[0] = group.len();
                self.0.update(Step {
                    shape: &shape,
                    parameter: &mut step.parameter[part.clone()],
                    gradient: &step.gradient[part.clone()],
                    state: step.state.iter_mut().map(|own| &mut own[part.clone()]).collect(),
                    ..step
                });
            }
        }
    }

    fn erased(&self) -> Erased<'_> {
        Erased::new(self, self.0.erased().in_place)
    }
}

struct EachElement<'a, T, F, const N: usize> {
    written: [&'a mut [T]; N],
    gradient: &'a [T],
    step: F,
}

impl<T: Float, F: Fn([T; N], T) -> [T; N], const N: usize> Kernel for EachElement<'_, T, F, N> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { mut written, gradient, step } = self;
        // Tells the compiler that all have one length.
        for slice in &mut written {
            *slice = &mut take(slice)[..gradient.len()];
        }
        #[allow(clippy::needless_range_loop, reason = "an index names a place in several arrays")]
        for (i, &g) in gradient.iter().enumerate() {
            let mut elements = [g; N];
            for n in 0..N {
                elements[n] = written[n][i];
            }
            elements = step(elements, g);
            for n in 0..N {
                written[n][i] = elements[n];
            }
        }
    }
}

/// A rule without its type: each rule's update is compiled where its type is known, the rest once.
#[doc(hidden)]
pub struct Erased<'a> {
    pub(crate) name: &'static str,
    pub(crate) counts: bool,
    pub(crate) state: &'static [&'static str],
    /// Whether it runs on the locked parameters themselves. It then does not panic and calls no user code.
    pub(super) in_place: bool,
    pub(crate) update_f32: Box<dyn Fn(Step<'_, f32>) + 'a>,
    pub(crate) update_f64: Box<dyn Fn(Step<'_, f64>) + 'a>,
}

impl<'a> Erased<'a> {
    pub(super) fn new<R: Rule>(rule: &'a R, in_place: bool) -> Self {
        Self {
            name: R::NAME,
            counts: R::COUNTS,
            state: rule.state(),
            in_place,
            update_f32: Box::new(|step| rule.update(step)),
            update_f64: Box::new(|step| rule.update(step)),
        }
    }
}

impl std::fmt::Debug for Erased<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// What programs know of the rules of this crate.
#[cfg(feature = "static-graph")]
pub(crate) trait Listed: Rule {
    const OPTIONS: &'static [Param];
    /// Returns the options in this order; a flag is 0 or 1.
    fn options(&self) -> Vec<f64>;
    /// Creates the rule with these options, in the same order.
    fn with_options(options: &[f64]) -> Option<Self>;
    /// Whether a program keeps the count of steps: for the rule, or to know the first.
    fn counts(&self) -> bool {
        Self::COUNTS
    }
}
