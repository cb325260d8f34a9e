//! Gradients of some tensors only: returned, or added to their `.grad`.

use super::accumulate::own;
use super::anomaly;
#[cfg(doc)]
use super::backward::backward;
use super::backward::{Gradients, check_counts, check_distinct, check_recorded, note};
use super::callbacks::Running;
use super::targets::Targets;
use super::traversal::edges_of;
use super::walk::{BackwardOptions, walk};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, GradMode, HookId, Sink, Tensor, for_any};
use crate::ops::{Float, options};

/// Options of [`grad_with`]: what it keeps, records and allows.
///
/// ```
/// use autograd_core::{GradOptions, Tensor, grad_with};
///
/// let (x, unused) = (Tensor::from([1.0, 2.0]), Tensor::from([5.0]));
/// x.set_stop_gradient(false);
/// unused.set_stop_gradient(false);
/// let seeds = vec![Some(Tensor::from([1.0, 10.0]))];
/// let options = GradOptions::new().seeds(seeds).allow_unused(true);
/// let grads = grad_with(&[&x.square()], &[&x, &unused], options)?;
/// assert_eq!(grads[0].as_ref().unwrap().to_vec(), [2.0, 40.0]);
/// assert!(grads[1].is_none());
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub struct GradOptions<T: Element> {
    seeds: Option<Vec<Option<Tensor<T>>>>,
    no_grad_vars: Vec<AnyTensor>,
    allow_unused: bool,
    materialize_grads: bool,
    retain_graph: Option<bool>,
    create_graph: bool,
}

impl<T: Element> Default for GradOptions<T> {
    fn default() -> Self {
        Self {
            seeds: None,
            no_grad_vars: Vec::new(),
            allow_unused: false,
            materialize_grads: false,
            retain_graph: None,
            create_graph: false,
        }
    }
}

impl<T: Element> GradOptions<T> {
    /// Seeds of 1, no unused inputs, nothing retained or recorded.
    ///
    /// ```
    /// use autograd_core::{GradOptions, Tensor, grad_with};
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// let y = x.square();
    /// let dx = grad_with(&[&y], &[&x], GradOptions::new())?.remove(0).unwrap();
    /// assert_eq!((dx.item(), dx.stop_gradient()), (6.0, true));
    /// assert!(y.backward().is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Tensors that no gradient flows through, as if each had been detached where it was used. Their
    /// `stop_gradient` does not change. An input that is among them, or from which the outputs were
    /// computed only through them, is unused.
    ///
    /// ```
    /// use autograd_core::{GradOptions, Tensor, grad_with};
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// let h = x.square();
    /// let y = &h * &x;
    /// let options = GradOptions::new().no_grad_vars([h.clone()]);
    /// let dx = grad_with(&[&y], &[&x], options)?.remove(0).unwrap();
    /// // With `h` a constant, and not 27.
    /// assert_eq!(dx.item(), 9.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn no_grad_vars(mut self, tensors: impl IntoIterator<Item = impl Into<AnyTensor>>) -> Self {
        self.no_grad_vars = tensors.into_iter().map(Into::into).collect();
        self
    }

    options! {
        /// The initial gradient of each output, of its shape; `None` is 1 for an output of one element.
        ///
        /// ```
        /// use autograd_core::{GradOptions, Tensor, grad_with};
        ///
        /// let x = Tensor::from([1.0, 2.0]);
        /// x.set_stop_gradient(false);
        /// let options = GradOptions::new().seeds(vec![Some(Tensor::from([1.0, 10.0]))]);
        /// let dx = grad_with(&[&x.square()], &[&x], options)?.remove(0).unwrap();
        /// assert_eq!(dx.to_vec(), [2.0, 40.0]);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn seeds(seeds: Vec<Option<Tensor<T>>>).into();

        /// Returns `None` for inputs that no output was computed from, instead of an error.
        ///
        /// ```
        /// use autograd_core::{GradOptions, Tensor, grad_with};
        ///
        /// let (x, unused) = (Tensor::from(3.0), Tensor::from([4.0, 5.0]));
        /// x.set_stop_gradient(false);
        /// unused.set_stop_gradient(false);
        /// let y = x.square();
        /// assert!(grad_with(&[&y], &[&unused], GradOptions::new()).is_err());
        /// let grads = grad_with(&[&y], &[&x, &unused], GradOptions::new().allow_unused(true))?;
        /// assert!(grads[0].is_some() && grads[1].is_none());
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn allow_unused(allow: bool);

        /// Returns zeros for inputs that no output was computed from, instead of an error or `None`.
        ///
        /// ```
        /// use autograd_core::{GradOptions, Tensor, grad_with};
        ///
        /// let (x, unused) = (Tensor::from(3.0), Tensor::from([4.0, 5.0]));
        /// x.set_stop_gradient(false);
        /// unused.set_stop_gradient(false);
        /// let y = x.square();
        /// let options = GradOptions::new().materialize_grads(true);
        /// let grads = grad_with(&[&y], &[&x, &unused], options)?;
        /// assert_eq!(grads[1].as_ref().unwrap().to_vec(), [0.0, 0.0]);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn materialize_grads(materialize: bool);

        /// Keeps saved tensors for another walk; as `create_graph` unless set.
        ///
        /// ```
        /// use autograd_core::{GradOptions, Tensor, grad_with};
        ///
        /// let x = Tensor::from(3.0);
        /// x.set_stop_gradient(false);
        /// let y = x.square();
        /// grad_with(&[&y], &[&x], GradOptions::new().retain_graph(true))?;
        /// y.backward()?;
        /// assert_eq!(x.grad().unwrap().item(), 6.0);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn retain_graph(retain: bool).into();

        /// Records the computation of the gradients, so that they can be differentiated again.
        ///
        /// ```
        /// use autograd_core::{GradOptions, Tensor, grad_with};
        ///
        /// let x = Tensor::from(3.0);
        /// x.set_stop_gradient(false);
        /// let options = GradOptions::new().create_graph(true);
        /// let dx = grad_with(&[&x.square()], &[&x], options)?.remove(0).unwrap();
        /// dx.backward()?;
        /// assert_eq!((dx.item(), x.grad().unwrap().item()), (6.0, 2.0));
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn create_graph(create: bool);
    }
}

/// Returns the gradients of outputs of one element each with respect to inputs, and does not change
/// `.grad`. Several outputs are summed.
///
/// ```
/// use autograd_core::{Tensor, grad};
///
/// let x = Tensor::from(3.0);
/// x.set_stop_gradient(false);
/// let y = &x * &x;
/// assert_eq!(grad(&[&y], &[&x])?[0].item(), 6.0);
/// assert!(x.grad().is_none());
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Unused`] for an input that no output was computed from, [`Error::Unsupported`] for an input that wants
/// no gradient and for outputs without a graph, with the reason, and those of [`backward()`].
pub fn grad<T: Float, U: Float>(
    outputs: &[&Tensor<T>],
    inputs: &[&Tensor<U>],
) -> Result<Vec<Tensor<U>>> {
    let grads = grad_with(outputs, inputs, GradOptions::new())?;
    let present = |(position, grad): (usize, Option<_>)| grad.ok_or(Error::Unused { position });
    grads.into_iter().enumerate().map(present).collect()
}

/// [`grad`] with options. Each gradient has the shape of its input; `None` is that of an unused one.
///
/// ```
/// use autograd_core::{GradOptions, Tensor, grad_with};
///
/// let x = Tensor::from(3.0);
/// x.set_stop_gradient(false);
/// let y = &x * &x * &x;
/// let create = || GradOptions::new().create_graph(true);
/// let dx = grad_with(&[&y], &[&x], create())?.remove(0).unwrap();
/// let d2x = grad_with(&[&dx], &[&x], create())?.remove(0).unwrap();
/// assert_eq!((dx.item(), d2x.item()), (27.0, 18.0));
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// As [`grad`].
pub fn grad_with<T: Float, U: Float>(
    outputs: &[&Tensor<T>],
    inputs: &[&Tensor<U>],
    options: GradOptions<T>,
) -> Result<Vec<Option<Tensor<U>>>> {
    let seeds = options.seeds.unwrap_or_else(|| vec![None; outputs.len()]);
    let outputs: Vec<AnyTensor> = outputs.iter().map(|&t| t.clone().into()).collect();
    let inputs: Vec<AnyTensor> = inputs.iter().map(|&t| t.clone().into()).collect();
    let seeds: Vec<_> = seeds.into_iter().map(|seed| seed.map(AnyTensor::from)).collect();
    let walk = BackwardOptions {
        retain_graph: options.retain_graph.unwrap_or(options.create_graph),
        create_graph: options.create_graph,
    };
    let all = !options.allow_unused && !options.materialize_grads;
    let found = find("grad", &outputs, &inputs, &options.no_grad_vars, &seeds, walk, all)?;
    let typed = |(position, grad): (usize, Option<AnyTensor>)| match grad {
        None if options.materialize_grads => Ok(U::peek(&inputs[position]).map(Tensor::zeros_like)),
        None if !options.allow_unused => Err(Error::Unused { position }),
        grad => Ok(grad.and_then(U::unwrap)),
    };
    found.into_iter().enumerate().map(typed).collect()
}

pub(crate) fn grad_any(
    outputs: &[AnyTensor],
    inputs: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
    options: BackwardOptions,
) -> Result<Vec<Option<AnyTensor>>> {
    find("grad", outputs, inputs, &[], seeds, options, false)
}

/// [`backward()`] that adds to `.grad` of these inputs only, leaves or outputs of ops; only ops on paths to
/// them run. An input that no output was computed from gets no gradient. Seeds have the shapes of the outputs.
///
/// ```
/// use autograd_core::{BackwardOptions, Tensor, backward_to};
///
/// let (x, y) = (Tensor::from(2.0), Tensor::from(5.0));
/// x.set_stop_gradient(false);
/// y.set_stop_gradient(false);
/// let loss = &x * &y;
/// backward_to(&[loss.into()], &[None], &[x.clone().into()], BackwardOptions::new())?;
/// assert_eq!(x.grad().unwrap().item(), 5.0);
/// assert!(y.grad().is_none());
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Count`] for no inputs, [`Error::Duplicate`] for the same input twice; for the rest see
/// [`backward()`].
pub fn backward_to(
    outputs: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
    inputs: &[AnyTensor],
    options: BackwardOptions,
) -> Result<()> {
    let running = Running::start();
    {
        let until = HookId::next_id();
        let found = find("backward_to", outputs, inputs, &[], seeds, options, false)?;
        note(outputs);
        let _mode = GradMode::set(options.create_graph);
        let mut grads = Gradients::default();
        for (x, grad) in inputs.iter().zip(found) {
            match grad {
                Some(grad) if for_any!(x, t => t.is_leaf()) => grads.add(x, grad)?,
                Some(grad) => grads.retained.push((x.clone(), own(grad))),
                None => {}
            }
        }
        grads.commit(until)?;
    }
    running.finish()
}

/// Walks only on paths to the inputs. With `all`, an input that cannot be reached is an error before that.
fn find(
    op: &'static str,
    outputs: &[AnyTensor],
    inputs: &[AnyTensor],
    no_grad_vars: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
    options: BackwardOptions,
    all: bool,
) -> Result<Vec<Option<AnyTensor>>> {
    check_counts(op, outputs.len(), seeds.len())?;
    if inputs.is_empty() {
        let what = "or more inputs".into();
        return Err(Error::Count { op, what, expected: 1, found: 0 });
    }
    check_distinct(op, "outputs", outputs)?;
    check_distinct(op, "inputs", inputs)?;
    anomaly::check()?;
    if all {
        check_recorded(op, outputs)?;
    }
    let _mode = GradMode::set(options.create_graph);
    let (from, to) = (edges_of(outputs), edges_of(inputs));
    let mut targets = Targets::find(&from, &to, no_grad_vars, |_| true);
    if let (true, Some(position)) = (all, to.iter().position(|edge| !targets.reaches(edge))) {
        if inputs[position].stop_gradient() {
            let why = format!(
                "input {position} wants no gradient (stop_gradient is true); call \
                 `set_stop_gradient(false)` on it before the outputs are computed"
            );
            return Err(Error::Unsupported { op, why });
        }
        return Err(match why_not_recorded(outputs) {
            Some(why) => Error::Unsupported { op, why },
            None => Error::Unused { position },
        });
    }
    let sink: &mut dyn for<'g> Sink<'g> = &mut targets;
    walk(op, outputs, seeds, HookId::next_id(), options, sink)?;
    Ok(targets.into_found())
}

/// Why outputs have no graph: of the first whose causes are known, or of all.
#[cold]
fn why_not_recorded(outputs: &[AnyTensor]) -> Option<String> {
    let stopped = || outputs.iter().enumerate().filter(|(_, output)| output.stop_gradient());
    let known = stopped().find_map(|(position, output)| {
        let causes = for_any!(output, t => t.lost()).text()?;
        Some(format!(
            "output {position} has no graph: it, or what it was computed from, was {causes}"
        ))
    });
    known.or_else(|| {
        let none = "no output has a graph: all that they were computed from wanted no gradient then \
                    (`set_stop_gradient(false)` comes first), or their numbers went through plain data";
        (stopped().count() == outputs.len()).then(|| none.to_owned())
    })
}

#[cfg(feature = "static-graph")]
pub(crate) fn grad_along(
    from: &[crate::graph::Edge],
    seeds: impl IntoIterator<Item = AnyTensor>,
    to: &[crate::graph::Edge],
    options: BackwardOptions,
) -> Result<Vec<Option<AnyTensor>>> {
    anomaly::check()?;
    let _mode = GradMode::set(options.create_graph);
    let mut targets = Targets::find(from, to, &[], |_| true);
    let sink: &mut dyn Sink<'_> = &mut targets;
    let starts = from.iter().zip(seeds).map(Ok);
    super::walk::walk_along(starts, HookId::next_id(), options, sink)?;
    Ok(targets.into_found())
}
