//! `Module`: anything with parameters, and the walk over them by name.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

use super::state::StateDict;
use crate::error::Result;
use crate::graph::{AnyTensor, Element, Tensor};
use crate::ops::Float;

/// Anything with parameters: a tensor, a layer, a list of them, a struct of your own.
///
/// `#[derive(Module)]` implements it for a struct whose fields are modules; other fields are marked
/// `#[module(skip)]`. Names are paths of field names and positions: `fc1.weight`, `blocks.0.bias`.
/// A tensor is a parameter, which is learned if it wants a gradient, as one from
/// [`parameter`](crate::nn::parameter) does. A tensor that is saved but not learned is a [`Buffer`].
///
/// ```
/// use autograd_core::nn::{Linear, Module};
/// use autograd_core::prelude::*;
///
/// #[derive(Module)]
/// struct Net {
///     fc1: Linear,
///     fc2: Linear,
///     temperature: Tensor,
///     #[module(skip)]
///     classes: usize,
/// }
///
/// let net = Net {
///     fc1: Linear::new(4, 8),
///     fc2: Linear::new(8, 3),
///     temperature: autograd_core::nn::parameter(Tensor::from(1.0)),
///     classes: 3,
/// };
/// let names: Vec<String> = net.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "temperature"]);
/// assert_eq!(net.parameter_count(), 4 * 8 + 8 + net.classes * (8 + 1) + 1);
/// ```
///
/// A clone of a module shares its tensors, and so does [`state_dict`](Module::state_dict). For a copy with
/// parameters of its own, load the state into a new module; for a snapshot, copy each entry:
///
/// ```
/// use autograd_core::nn::{Linear, Module, StateDict};
///
/// let (net, target) = (Linear::<f64>::new(2, 1), Linear::<f64>::new(2, 1));
/// target.load_state_dict(&net.state_dict())?;
/// let best: StateDict = net.state_dict().into_iter().map(|(name, x)| (name, x.copy())).collect();
/// autograd_core::no_grad().run(|| net.weight.fill(0.0))?;
/// assert_eq!(target.weight.to_vec(), best["weight"].downcast_ref::<f64>().unwrap().to_vec());
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no parameters that are known",
    label = "not a module",
    note = "a field that is no module is marked `#[module(skip)]`; a struct of modules becomes one \
            by `#[derive(Module)]`; a tensor of integers or bools is a `Buffer`"
)]
pub trait Module {
    /// Shows each part to the visitor under its name, always the same parts in the same order.
    ///
    /// ```
    /// use autograd_core::nn::{Linear, Module, Visitor};
    ///
    /// struct Pair(Linear, Linear);
    ///
    /// impl Module for Pair {
    ///     fn visit(&self, visitor: &mut Visitor<'_>) {
    ///         visitor.enter("left", &self.0);
    ///         visitor.enter("right", &self.1);
    ///     }
    /// }
    /// # assert_eq!(Pair(Linear::new(2, 1), Linear::new(2, 1)).parameters().len(), 4);
    /// ```
    fn visit(&self, visitor: &mut Visitor<'_>);

    /// Returns the parameters by name in field order, also frozen ones; one in two places is listed twice. Each is
    /// the tensor itself, not a copy.
    ///
    /// ```
    /// use autograd_core::nn::{Linear, Module};
    ///
    /// let net = [Linear::<f32>::new(2, 1), Linear::new(1, 1).without_bias()];
    /// let names: Vec<String> = net.named_parameters().into_iter().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["0.weight", "0.bias", "1.weight"]);
    /// ```
    fn named_parameters(&self) -> Vec<(String, AnyTensor)> {
        let mut found = Vec::new();
        walk(self, &mut |name, part| {
            if let Part::Parameter(tensor) = part {
                found.push((name.to_owned(), tensor));
            }
        });
        found
    }

    /// [`Module::named_parameters`], a parameter in two places only once, under its first name.
    ///
    /// ```
    /// use autograd_core::nn::{Linear, Module};
    ///
    /// let layer = Linear::<f32>::new(2, 1);
    /// let net = (layer.clone(), layer);
    /// assert_eq!((net.named_parameters().len(), net.distinct_parameters().len()), (4, 2));
    /// ```
    fn distinct_parameters(&self) -> Vec<(String, AnyTensor)> {
        let mut seen = BTreeSet::new();
        let mut parameters = self.named_parameters();
        parameters.retain(|(_, tensor)| seen.insert(tensor.address()));
        parameters
    }

    /// Returns the buffers by name in field order; one in two places is listed twice.
    ///
    /// ```
    /// use autograd_core::nn::{BatchNorm1d, Module};
    ///
    /// let names: Vec<_> = BatchNorm1d::<f32>::new(3).named_buffers().into_iter().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["running_mean", "running_var", "num_batches_tracked"]);
    /// ```
    fn named_buffers(&self) -> Vec<(String, AnyTensor)> {
        let mut found = Vec::new();
        walk(self, &mut |name, part| {
            if let Part::Buffer(tensor) = part {
                found.push((name.to_owned(), tensor));
            }
        });
        found
    }

    /// [`Module::named_parameters`] without the names.
    ///
    /// ```
    /// use autograd_core::nn::{Linear, Module};
    ///
    /// let layer = Linear::<f32>::new(3, 2);
    /// let lengths: Vec<usize> = layer.parameters().iter().map(|p| p.len()).collect();
    /// assert_eq!(lengths, [6, 2]);
    /// ```
    fn parameters(&self) -> Vec<AnyTensor> {
        self.named_parameters().into_iter().map(|(_, tensor)| tensor).collect()
    }

    /// Returns the parameters with elements of type `T`, each once, for loops that need no cast.
    ///
    /// ```
    /// use autograd_core::nn::{Linear, Module};
    ///
    /// let net = [Linear::<f32>::new(3, 4), Linear::new(4, 1)];
    /// assert!(net.parameters_of::<f32>().iter().all(|p| p.grad().is_none()));
    /// assert!(net.parameters_of::<f64>().is_empty());
    /// ```
    fn parameters_of<T: Float>(&self) -> Vec<Tensor<T>>
    where
        Self: Sized,
    {
        let all = self.distinct_parameters().into_iter();
        all.filter_map(|(_, tensor)| tensor.downcast()).collect()
    }

    /// Returns the number of elements of all parameters; a tensor in two places counts once.
    ///
    /// ```
    /// use autograd_core::nn::{Linear, Module};
    ///
    /// let layer = Linear::<f32>::new(3, 2);
    /// assert_eq!(layer.parameter_count(), 3 * 2 + 2);
    /// assert_eq!([layer.clone(), layer].parameter_count(), 3 * 2 + 2);
    /// ```
    fn parameter_count(&self) -> usize {
        let len = |(_, tensor): &(_, AnyTensor)| tensor.shape().iter().product::<usize>();
        self.distinct_parameters().iter().map(len).sum()
    }

    /// Returns parameters and buffers by name, for saving. They are the tensors themselves, not copies.
    ///
    /// ```
    /// use autograd_core::nn::{Linear, Module};
    ///
    /// let layer = Linear::<f32>::new(2, 1);
    /// let state = layer.state_dict();
    /// assert_eq!(state.keys().collect::<Vec<_>>(), ["bias", "weight"]);
    /// autograd_core::no_grad().run(|| layer.weight.fill(0.0))?;
    /// assert_eq!(state["weight"].downcast_ref::<f32>().unwrap().to_vec(), [0.0, 0.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If a `visit` of your own shows two tensors under one name.
    fn state_dict(&self) -> StateDict {
        let mut found = StateDict::new();
        walk(self, &mut |name, part| match part {
            Part::Parameter(tensor) | Part::Buffer(tensor) => {
                let twice = found.insert(name.to_owned(), tensor).is_some();
                assert!(!twice, "`visit` shows two tensors under the name `{name}`");
            }
            Part::Mode(_) => {}
        });
        found
    }

    /// Copies values by name into parameters and buffers, all or none. The tensors stay the same, so optimizers
    /// and other handles see the new values. To load a part, complete it first with the model's own state:
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{Linear, Module, StateDict};
    ///
    /// let layer = Linear::<f32>::new(2, 1);
    /// let part = StateDict::from([("bias".into(), Tensor::from(vec![0.5_f32]).into())]);
    /// assert!(layer.load_state_dict(&part).is_err());
    ///
    /// let mut whole = layer.state_dict();
    /// whole.extend(part);
    /// layer.load_state_dict(&whole)?;
    /// assert_eq!(layer.bias.as_ref().unwrap().to_vec(), [0.5]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::StateDict`](crate::Error::StateDict) lists names that are missing or unknown, other shapes or
    /// element types, and tensors with two names that get two values. Nothing is changed then.
    fn load_state_dict(&self, from: &StateDict) -> Result<()> {
        super::state::load(&self.state_dict(), from)
    }

    /// Switches to training, the initial mode: dropout drops, batch normalization uses and collects statistics.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{Dropout, Module};
    ///
    /// let dropout = Dropout::new(1.0);
    /// dropout.eval();
    /// dropout.train();
    /// assert_eq!(dropout.forward(&Tensor::from([2.0, 3.0])).to_vec(), [0.0, 0.0]);
    /// ```
    fn train(&self) {
        set_training(self, true);
    }

    /// Switches to evaluation: dropout passes everything, batch normalization uses collected statistics.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{Dropout, Module};
    ///
    /// let dropout = Dropout::new(1.0);
    /// dropout.eval();
    /// assert_eq!(dropout.forward(&Tensor::from([2.0, 3.0])).to_vec(), [2.0, 3.0]);
    /// ```
    fn eval(&self) {
        set_training(self, false);
    }

    /// Clears the gradients of all parameters.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{Linear, Module};
    ///
    /// let layer = Linear::<f32>::new(2, 1);
    /// layer.forward(&Tensor::ones([1, 2])).sum().backward()?;
    /// layer.clear_grad();
    /// assert!(layer.weight.grad().is_none());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    fn clear_grad(&self) {
        self.parameters().iter().for_each(AnyTensor::clear_grad);
    }
}

fn walk<M: Module + ?Sized>(module: &M, found: &mut dyn FnMut(&str, Part<'_>)) {
    module.visit(&mut Visitor { path: String::new(), found });
}

fn set_training<M: Module + ?Sized>(module: &M, training: bool) {
    walk(module, &mut |_, part| {
        if let Part::Mode(mode) = part {
            mode.0.store(training, Ordering::Relaxed);
        }
    });
}

enum Part<'a> {
    Parameter(AnyTensor),
    Buffer(AnyTensor),
    Mode(&'a Mode),
}

/// A walk through a module by name; see [`Module::visit`].
pub struct Visitor<'a> {
    path: String,
    found: &'a mut dyn FnMut(&str, Part<'_>),
}

impl Visitor<'_> {
    /// Visits a part under a name, which is appended to those of the modules around it, after a dot.
    ///
    /// ```
    /// use autograd_core::nn::{Linear, Module, Visitor};
    ///
    /// struct Stack(Vec<Linear>);
    ///
    /// impl Module for Stack {
    ///     fn visit(&self, visitor: &mut Visitor<'_>) {
    ///         for (i, layer) in self.0.iter().enumerate() {
    ///             visitor.enter(&format!("layer{i}"), layer);
    ///         }
    ///     }
    /// }
    ///
    /// let net = Stack(vec![Linear::new(2, 1), Linear::new(1, 1)]);
    /// assert!(net.state_dict().contains_key("layer1.weight"));
    /// ```
    pub fn enter<M: Module + ?Sized>(&mut self, name: &str, part: &M) {
        let before = self.path.len();
        if before > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        part.visit(self);
        self.path.truncate(before);
    }

    fn report(&mut self, part: Part<'_>) {
        // A tensor that is visited by itself has its name in a list of one.
        let path = if self.path.is_empty() { "0" } else { &self.path };
        (self.found)(path, part);
    }
}

impl fmt::Debug for Visitor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visitor").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Creates a parameter with this value: a leaf that wants a gradient, independent of `tensor`. An optimizer
/// writes over its only buffer; a plain tensor that is changed keeps its first buffer too.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::parameter;
///
/// let w = parameter(Tensor::<f32>::randn([3, 2]) * 0.1);
/// assert!(!w.stop_gradient());
/// ```
pub fn parameter<T: Float>(tensor: Tensor<T>) -> Tensor<T> {
    let parameter = T::own(&tensor);
    parameter.set_stop_gradient(false);
    parameter
}

/// A tensor that is saved with its module, but not learned, as running statistics: its [`Tensor`] by `Deref`.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::{Buffer, Module};
///
/// #[derive(Module)]
/// struct Centre {
///     mean: Buffer<f64>,
/// }
///
/// let centre = Centre { mean: Buffer::new(Tensor::from(vec![1.0, 2.0])) };
/// assert_eq!(centre.mean.shape(), [2]);
/// assert!(centre.parameters().is_empty());
/// assert_eq!(centre.state_dict().len(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Buffer<T: Element = f32>(Tensor<T>);

impl<T: Element> Buffer<T> {
    /// Creates a buffer with a copy of this tensor's value, in its shape.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Buffer;
    ///
    /// let mean = Tensor::from([1.0, 2.0]);
    /// let buffer = Buffer::new(mean.clone());
    /// mean.fill(0.0)?;
    /// assert_eq!(buffer.to_vec(), [1.0, 2.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn new(tensor: Tensor<T>) -> Self {
        Self(T::own(&tensor))
    }
}

impl<T: Element> Deref for Buffer<T> {
    type Target = Tensor<T>;

    fn deref(&self) -> &Tensor<T> {
        &self.0
    }
}

/// The training mode of a module, as a field of it: set by [`Module::train`] and [`Module::eval`].
///
/// ```
/// use autograd_core::nn::{Mode, Module};
/// use autograd_core::prelude::*;
///
/// /// Adds noise, in training only.
/// #[derive(Module)]
/// struct Noise(Mode);
///
/// impl Noise {
///     fn forward(&self, x: &Tensor) -> Tensor {
///         if self.0.is_training() { x + Tensor::randn_like(x) * 0.1 } else { x.clone() }
///     }
/// }
///
/// let (noise, x) = (Noise(Mode::new()), Tensor::ones([3]));
/// noise.eval();
/// assert_eq!(noise.forward(&x).to_vec(), [1.0, 1.0, 1.0]);
/// ```
#[derive(Debug)]
pub struct Mode(AtomicBool);

impl Mode {
    /// Creates a mode that is in training.
    ///
    /// ```
    /// use autograd_core::nn::Mode;
    ///
    /// assert!(Mode::new().is_training());
    /// ```
    pub fn new() -> Self {
        Self(AtomicBool::new(true))
    }

    /// Whether the module is in training.
    ///
    /// ```
    /// use autograd_core::nn::{Mode, Module};
    ///
    /// let mode = Mode::new();
    /// mode.eval();
    /// assert!(!mode.is_training());
    /// ```
    pub fn is_training(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Mode {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for Mode {
    fn clone(&self) -> Self {
        Self(AtomicBool::new(self.is_training()))
    }
}

// A tensor of integers is reported to be no module, not to lack arithmetic.
#[diagnostic::do_not_recommend]
impl<T: Float> Module for Tensor<T> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.report(Part::Parameter(self.clone().into()));
    }
}

/// A parameter if the elements are floats, else a buffer: a list from [`Module::parameters`] is a module.
impl Module for AnyTensor {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        let tensor = self.clone();
        visitor.report(match self.dtype().is_float() {
            true => Part::Parameter(tensor),
            false => Part::Buffer(tensor),
        });
    }
}

impl<T: Element> Module for Buffer<T> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.report(Part::Buffer(self.0.clone().into()));
    }
}

impl Module for Mode {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.report(Part::Mode(self));
    }
}

impl<M: Module> Module for [M] {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        for (i, part) in self.iter().enumerate() {
            visitor.enter(&i.to_string(), part);
        }
    }
}

impl<M: Module> Module for Option<M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        if let Some(module) = self {
            module.visit(visitor);
        }
    }
}

impl<M: Module, const N: usize> Module for [M; N] {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.as_slice().visit(visitor);
    }
}

impl<M: Module> Module for Vec<M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.as_slice().visit(visitor);
    }
}

macro_rules! through {
    ($($pointer:ty)*) => {$(
        impl<M: Module + ?Sized> Module for $pointer {
            fn visit(&self, visitor: &mut Visitor<'_>) {
                (**self).visit(visitor);
            }
        }
    )*};
}

through! { &M Box<M> std::rc::Rc<M> std::sync::Arc<M> }

macro_rules! tuples {
    ($(($($module:ident $position:tt)+))*) => {$(
        impl<$($module: Module),+> Module for ($($module,)+) {
            fn visit(&self, visitor: &mut Visitor<'_>) {
                $(visitor.enter(stringify!($position), &self.$position);)+
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0 B 1)
    (A 0 B 1 C 2)
    (A 0 B 1 C 2 D 3)
    (A 0 B 1 C 2 D 3 E 4)
    (A 0 B 1 C 2 D 3 E 4 F 5)
}
