//! `Layer`: modules that map a tensor to a tensor, and lists of them.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::{
    BatchNorm, Conv, Dropout, Elu, Flatten, Gelu, GroupNorm, LayerNorm, LeakyRelu, Linear,
    LogSoftmax, Module, Relu, RmsNorm, Sigmoid, Silu, Softmax, Softplus, Tanh, Visitor,
};
use crate::error::Result;
use crate::graph::{Composite, Tensor};
use crate::ops::{Float, expect};

/// A module that maps a tensor to another of its element type. A layer of your own has `forward`:
///
/// ```
/// use autograd_core::nn::{Layer, Linear, Module, Sequential};
/// use autograd_core::prelude::*;
///
/// /// `x` plus the output of a layer.
/// #[derive(Module)]
/// struct Residual(Linear);
///
/// impl Layer for Residual {
///     fn forward(&self, x: &Tensor) -> Tensor {
///         x + self.0.forward(x)
///     }
/// }
///
/// let net = Sequential::new().then(Residual(Linear::new(3, 3))).then(Linear::new(3, 1));
/// assert_eq!(net.forward(&Tensor::ones([2, 3])).shape(), [2, 1]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not map a `Tensor<{T}>` to one",
    label = "not a layer of `{T}`",
    note = "a module of yours becomes a layer by `impl Layer<{T}> for ..`, with its `forward`"
)]
pub trait Layer<T: Float = f32>: Module {
    /// Returns the output for the input `x`. The layer says which shapes it takes and returns.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{Layer, Linear, Tanh};
    ///
    /// let layers: [Box<dyn Layer>; 2] = [Box::new(Linear::new(3, 2)), Box::new(Tanh)];
    /// let y = layers.iter().fold(Tensor::ones([5, 3]), |x, layer| layer.forward(&x));
    /// assert_eq!(y.shape(), [5, 2]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the layer cannot take `x`.
    #[track_caller]
    fn forward(&self, x: &Tensor<T>) -> Tensor<T>;

    /// [`Layer::forward`]. The layers of this crate return an error instead of a panic.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{Layer, Linear};
    ///
    /// let layer: &dyn Layer = &Linear::new(3, 2);
    /// assert_eq!(layer.try_forward(&Tensor::ones([5, 3]))?.shape(), [5, 2]);
    /// assert!(layer.try_forward(&Tensor::ones([5, 4])).is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the layer cannot take `x`.
    #[track_caller]
    fn try_forward(&self, x: &Tensor<T>) -> Result<Tensor<T>> {
        Ok(self.forward(x))
    }
}

macro_rules! layers {
    ($($name:ident)*; $($of_axes:ident)*; infallible: $($plain:ident)*;) => {
        $(layers! { [] $name<T>: forward try_forward })*
        $(layers! { [const AXES: usize] $of_axes<T, AXES>: forward try_forward })*
        $(layers! { [] $plain: forward })*
    };
    ([$($axes:tt)*] $layer:ty: $forward:ident $($try_forward:ident)?) => {
        impl<T: Float, $($axes)*> Layer<T> for $layer {
            fn $forward(&self, x: &Tensor<T>) -> Tensor<T> {
                <$layer>::$forward(self, x)
            }

            $(fn $try_forward(&self, x: &Tensor<T>) -> Result<Tensor<T>> {
                <$layer>::$try_forward(self, x)
            })?
        }
    };
}

layers! {
    Linear LayerNorm GroupNorm RmsNorm Sequential;
    BatchNorm Conv;
    infallible: Relu Gelu Silu Sigmoid Tanh Softplus LeakyRelu Elu Softmax LogSoftmax Flatten Dropout;
}

impl<T: Float, L: Layer<T> + ?Sized> Layer<T> for Box<L> {
    fn forward(&self, x: &Tensor<T>) -> Tensor<T> {
        (**self).forward(x)
    }

    fn try_forward(&self, x: &Tensor<T>) -> Result<Tensor<T>> {
        (**self).try_forward(x)
    }
}

/// Layers applied one after the other. Their parameters are named by position, as in PyTorch: `0.weight`.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::{Linear, Module, Relu, Sequential};
///
/// let net = Sequential::<f32>::new()
///     .then(Linear::new(4, 8))
///     .then(Relu)
///     .then(Linear::new(8, 3))
///     .then_fn(|x| x.log_softmax(-1));
/// assert_eq!(net.forward(&Tensor::zeros([5, 4])).shape(), [5, 3]);
/// assert!(net.state_dict().contains_key("2.weight"));
/// ```
pub struct Sequential<T: Float = f32> {
    layers: Vec<Box<dyn Layer<T> + Send + Sync>>,
}

impl<T: Float> Sequential<T> {
    /// Creates a list without layers: the identity.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Sequential;
    ///
    /// assert_eq!(Sequential::new().forward(&Tensor::from([-1.0, 2.0])).to_vec(), [-1.0, 2.0]);
    /// ```
    pub fn new() -> Self {
        Self { layers: Vec::new() }
    }

    /// Adds a layer at the end.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{Linear, Sequential};
    ///
    /// let net = Sequential::new().then(Linear::<f32>::new(4, 8)).then(Linear::new(8, 3));
    /// assert_eq!(net.forward(&Tensor::zeros([5, 4])).shape(), [5, 3]);
    /// ```
    #[doc(alias = "add")]
    #[must_use]
    pub fn then(mut self, layer: impl Layer<T> + Send + Sync + 'static) -> Self {
        self.layers.push(Box::new(layer));
        self
    }

    /// Adds a function at the end, which has no parameters but counts as a position. It takes and returns any shape.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Sequential;
    ///
    /// let net = Sequential::<f64>::new().then_fn(|x| x * 2.0).then_fn(|x| x + 1.0);
    /// assert_eq!(net.forward(&Tensor::from([3.0])).to_vec(), [7.0]);
    /// ```
    #[doc(alias = "add_fn")]
    #[must_use]
    pub fn then_fn(self, f: impl Fn(&Tensor<T>) -> Tensor<T> + Send + Sync + 'static) -> Self {
        self.then(Function(f))
    }

    /// The number of layers.
    ///
    /// ```
    /// use autograd_core::nn::{Relu, Sequential};
    ///
    /// assert_eq!(Sequential::<f32>::new().then(Relu).then_fn(|x| x * 2.0).len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether there are no layers.
    ///
    /// ```
    /// use autograd_core::nn::{Relu, Sequential};
    ///
    /// let net = Sequential::<f32>::new();
    /// assert!(net.is_empty() && !net.then(Relu).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Applies each layer to the output of the one before, and returns the last output, in its shape.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{Relu, Sequential};
    ///
    /// let net = Sequential::<f64>::new().then(Relu).then_fn(|x| x + 1.0);
    /// assert_eq!(net.forward(&Tensor::from([-2.0, 3.0])).to_vec(), [1.0, 4.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If a layer cannot take its input; see [`Sequential::try_forward`].
    #[track_caller]
    pub fn forward(&self, x: &Tensor<T>) -> Tensor<T> {
        expect(self.try_forward(x))
    }

    /// [`Sequential::forward`], with an error instead of a panic for the layers of this crate.
    ///
    /// ```
    /// use autograd_core::nn::{Linear, Relu, Sequential};
    /// use autograd_core::{Error, Tensor};
    ///
    /// let net = Sequential::<f32>::new().then(Relu).then(Linear::new(4, 2));
    /// assert_eq!(net.try_forward(&Tensor::ones([1, 4]))?.shape(), [1, 2]);
    /// let result = net.try_forward(&Tensor::ones([1, 3]));
    /// assert!(matches!(result, Err(Error::Shape { .. })));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the first layer that cannot take its input.
    #[track_caller]
    pub fn try_forward(&self, x: &Tensor<T>) -> Result<Tensor<T>> {
        let _composite = Composite::here("Sequential");
        let y = self.layers.iter().try_fold(x.clone(), |x, layer| layer.try_forward(&x))?;
        Ok(y.apart_from(x))
    }
}

/// Layers are modules, whose tensors stay usable after a panic.
impl<T: Float> UnwindSafe for Sequential<T> {}
impl<T: Float> RefUnwindSafe for Sequential<T> {}

impl<T: Float> Default for Sequential<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Float> fmt::Debug for Sequential<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequential").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T: Float> Module for Sequential<T> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        for (i, layer) in self.layers.iter().enumerate() {
            visitor.enter(&i.to_string(), layer);
        }
    }
}

struct Function<F>(F);

impl<F> Module for Function<F> {
    fn visit(&self, _: &mut Visitor<'_>) {}
}

impl<T: Float, F: Fn(&Tensor<T>) -> Tensor<T>> Layer<T> for Function<F> {
    fn forward(&self, x: &Tensor<T>) -> Tensor<T> {
        (self.0)(x)
    }
}
