//! A tensor's methods for its gradient, for backward, and for leaving the graph.

use std::panic::Location;

#[cfg(doc)]
use super::backward::backward;
use super::backward::backward_of;
use super::walk::BackwardOptions;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, Tensor, for_any, for_float, no_grad};
use crate::ops::Float;

/// # Gradients
impl<T: Float> Tensor<T> {
    /// Sets whether gradients stop at this tensor. `false` on a new tensor asks for its gradient;
    /// `true` on the result of an op cuts the graph there, for later computations from it:
    /// [`explain`](crate::explain()) reports the line of that call.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let w = Tensor::from(3.0);
    /// w.set_stop_gradient(false);
    /// w.square().backward()?;
    /// assert_eq!(w.grad().unwrap().item(), 6.0);
    /// // Frozen: what is computed from it now is not recorded.
    /// w.set_stop_gradient(true);
    /// assert!(w.square().stop_gradient());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[doc(alias = "requires_grad_")]
    #[track_caller]
    pub fn set_stop_gradient(&self, stop: bool) {
        T::handle(self).store_stop_gradient(stop, Location::caller());
    }

    /// Computes the gradients of this tensor of one element and adds them to `.grad` of every leaf
    /// that it was computed from. Frees what the ops saved, also
    /// if it fails: compute the output again then. A tensor that wants no gradient is
    /// skipped without an error; [`try_grad`](Tensor::try_grad) reports why.
    ///
    /// Backwards may run at the same time on threads that share leaves: nothing is lost, but the
    /// last bit of the sums depends on timing, except with
    /// [`backward_parallel`](crate::backward_parallel()) or an
    /// [`OrderedBackward`](crate::OrderedBackward). Two backwards through the same graph need
    /// `retain_graph`: without it the later one is [`Error::GraphFreed`]; of two at the very same
    /// moment both may succeed, each with all gradients.
    ///
    /// ```
    /// use autograd_core::{Error, Tensor, backward_parallel};
    ///
    /// let w = Tensor::from([0.5, -0.25]);
    /// w.set_stop_gradient(false);
    /// let loss = |i: usize| Ok::<_, Error>((&w * (i as f64)).sin().sum());
    ///
    /// // All gradients are there, their sum in one order or another.
    /// std::thread::scope(|threads| {
    ///     for i in 0..4 {
    ///         threads.spawn(move || loss(i)?.backward());
    ///     }
    /// });
    /// let sum = w.grad().unwrap();
    ///
    /// // The same sum in the order 0, 1, 2, 3, whatever the number of threads.
    /// w.clear_grad();
    /// backward_parallel(4, 2, loss)?;
    /// let ordered = w.grad().unwrap();
    /// assert!((ordered - sum).abs().max().item() < 1e-12);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::SeedMissing`] if the tensor has not one element (see [`Tensor::backward_with`]); for the
    /// rest see [`backward()`]. No gradient is written then, and all tensors stay usable.
    pub fn backward(&self) -> Result<()> {
        backward_of(T::handle(self), None, BackwardOptions::new())
    }

    /// [`Tensor::backward`] with a given initial gradient, of this tensor's shape.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(vec![1.0, 2.0]);
    /// x.set_stop_gradient(false);
    /// (&x * 2.0).backward_with(&Tensor::from(vec![1.0, 10.0]))?;
    /// assert_eq!(x.grad().unwrap().to_vec(), [2.0, 20.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::SeedShape`] if the seed has another shape; for the rest see [`backward()`].
    pub fn backward_with(&self, seed: &Tensor<T>) -> Result<()> {
        let (tensor, seed) = (T::handle(self), T::handle(seed));
        backward_of(tensor, Some(seed), BackwardOptions::new())
    }

    /// [`Tensor::backward`] with options: retain the graph, record the backward.
    ///
    /// ```
    /// use autograd_core::{BackwardOptions, Tensor};
    ///
    /// let x = Tensor::from(2.0);
    /// x.set_stop_gradient(false);
    /// let y = x.square();
    /// y.backward_options(BackwardOptions::new().retain_graph(true))?;
    /// y.backward()?;
    /// assert_eq!(x.grad().unwrap().item(), 4.0 + 4.0);
    /// // What the ops saved is gone now.
    /// assert!(y.backward().is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Tensor::backward`].
    #[doc(alias = "retain_graph")]
    #[doc(alias = "create_graph")]
    pub fn backward_options(&self, options: BackwardOptions) -> Result<()> {
        backward_of(T::handle(self), None, options)
    }

    /// The gradient kept here, of this tensor's shape, if any; else [`Tensor::try_grad`] returns an error with
    /// the reason.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// x.set_stop_gradient(false);
    /// assert!(x.grad().is_none());
    /// x.square().sum().backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec(), [2.0, 4.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn grad(&self) -> Option<Tensor<T>> {
        T::grad(self)
    }

    /// Sets the gradient, of this tensor's shape, or removes it. No backward changes the one given.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(2.0);
    /// x.set_stop_gradient(false);
    /// x.set_grad(Some(&Tensor::from(10.0)))?;
    /// x.square().backward()?;
    /// assert_eq!(x.grad().unwrap().item(), 10.0 + 4.0);
    /// x.clear_grad();
    /// assert!(x.grad().is_none());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the shape differs, [`Error::Unsupported`] on the output of an op.
    pub fn set_grad(&self, grad: Option<&Tensor<T>>) -> Result<()> {
        if !self.is_leaf() {
            let why = "only a leaf keeps a gradient that is set from outside".into();
            return Err(Error::Unsupported { op: "set_grad", why });
        }
        if let Some(grad) = grad
            && grad.shape() != self.shape()
        {
            let expected = format!("of shape {:?}", self.shape());
            return Err(Error::shape("set_grad", "grad", expected, grad.shape()));
        }
        self.replace_grad(grad.map(Tensor::alias));
        Ok(())
    }

    /// Removes the gradient, so that the next backward does not add to it.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// x.square().backward()?;
    /// x.clear_grad();
    /// x.square().backward()?;
    /// assert_eq!(x.grad().unwrap().item(), 6.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[doc(alias = "zero_grad")]
    #[doc(alias = "clear_gradient")]
    pub fn clear_grad(&self) {
        self.replace_grad(None);
    }
}

/// # Outside the graph
impl<T: Element> Tensor<T> {
    /// Returns a separate tensor with the same data, outside the graph. Both see changes in place.
    /// [`explain`](crate::explain()) reports the line of this call if a gradient ends here.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// // The second factor is a constant.
    /// (&x * x.detach()).backward()?;
    /// assert_eq!(x.grad().unwrap().item(), 3.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[track_caller]
    pub fn detach(&self) -> Tensor<T> {
        T::detach(self, Location::caller())
    }
}

/// # Gradients of tensors of any type
///
/// For loops over [`parameters`](crate::nn::Module::parameters).
///
/// ```
/// use autograd_core::nn::{Linear, Module};
/// use autograd_core::prelude::*;
///
/// let model = Linear::<f32>::new(3, 2);
/// model.forward(&Tensor::ones([1, 3])).sum().backward()?;
/// for (name, parameter) in model.named_parameters() {
///     let norm = parameter.grad().map_or(0.0, |grad| grad.norm());
///     println!("{name} {:?}: {:.3}", parameter.shape(), norm / (parameter.len() as f64).sqrt());
///     parameter.clear_grad();
/// }
/// assert!(model.weight.grad().is_none());
/// # Ok::<(), autograd_core::Error>(())
/// ```
impl AnyTensor {
    /// As [`Tensor::grad`]; tensors of integers and bools have none.
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// x.square().backward()?;
    /// let grad = AnyTensor::from(x).grad().unwrap();
    /// assert_eq!(grad.downcast::<f64>().unwrap().item(), 6.0);
    /// assert!(AnyTensor::from(Tensor::from(3_i64)).grad().is_none());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn grad(&self) -> Option<AnyTensor> {
        for_float!(self, t => t.grad().map(AnyTensor::from), _ => None)
    }

    /// As [`Tensor::clear_grad`].
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// x.square().backward()?;
    /// AnyTensor::from(x.clone()).clear_grad();
    /// assert!(x.grad().is_none());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn clear_grad(&self) {
        for_float!(self, t => t.clear_grad(), _ => {});
    }

    /// `sqrt(sum(x²))` over all elements, as [`Tensor::norm`], of the elements as floats.
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor};
    ///
    /// assert_eq!(AnyTensor::from(Tensor::from([3_i32, 4])).norm(), 5.0);
    /// ```
    pub fn norm(&self) -> f64 {
        let _off = no_grad();
        for_float!(self, t => t.norm().item().into_f64(), _ => for_any!(self, t => t.cast::<f64>().norm().item()))
    }
}
