//! Layers without parameters: activations, dropout and reshaping.

use super::{Mode, Module};
use crate::graph::Tensor;
use crate::ops::Float;

/// Defines layers: documentation, type with options, and function.
macro_rules! layers {
    ($(
        $(#[$doc:meta])*
        $name:ident $(($($option:ident: $type:ty, $what:literal),+))? = |$x:ident| $y:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Module)]
        pub struct $name $(($(#[doc = $what] #[module(skip)] pub $type),+))?;

        impl $name {
            /// Applies the function to `x`. The shape of the result and the panics are those of the method of
            /// [`Tensor`].
            #[track_caller]
            pub fn forward<T: Float>(&self, $x: &Tensor<T>) -> Tensor<T> {
                $(let Self($($option),+) = *self;)?
                $y
            }
        }
    )*};
}

layers! {
    /// [`Tensor::relu`] as a layer.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Relu;
    ///
    /// assert_eq!(Relu.forward(&Tensor::from([-2.0, 3.0])).to_vec(), [0.0, 3.0]);
    /// ```
    #[doc(alias = "ReLU")]
    Relu = |x| x.relu();
    /// [`Tensor::gelu`] as a layer: by the error function, as PyTorch's.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Gelu;
    ///
    /// assert_eq!(Gelu.forward(&Tensor::from([-30.0, 30.0])).to_vec(), [0.0, 30.0]);
    /// ```
    #[doc(alias = "GELU")]
    Gelu = |x| x.gelu();
    /// [`Tensor::silu`] as a layer.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Silu;
    ///
    /// assert_eq!(Silu.forward(&Tensor::from([0.0, 40.0])).to_vec(), [0.0, 40.0]);
    /// ```
    #[doc(alias = "SiLU")]
    #[doc(alias = "swish")]
    Silu = |x| x.silu();
    /// [`Tensor::sigmoid`] as a layer.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Sigmoid;
    ///
    /// assert_eq!(Sigmoid.forward(&Tensor::from([0.0, 40.0])).to_vec(), [0.5, 1.0]);
    /// ```
    Sigmoid = |x| x.sigmoid();
    /// [`Tensor::tanh`] as a layer.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Tanh;
    ///
    /// assert_eq!(Tanh.forward(&Tensor::from([0.0, 40.0])).to_vec(), [0.0, 1.0]);
    /// ```
    Tanh = |x| x.tanh();
    /// [`Tensor::softplus`] as a layer.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Softplus;
    ///
    /// assert_eq!(Softplus.forward(&Tensor::from([0.0, 40.0])).to_vec(), [2_f64.ln(), 40.0]);
    /// ```
    Softplus = |x| x.softplus();
    /// [`Tensor::leaky_relu`] as a layer; PyTorch's slope is 0.01.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::LeakyRelu;
    ///
    /// assert_eq!(LeakyRelu(0.1).forward(&Tensor::from([-2.0, 3.0])).to_vec(), [-0.2, 3.0]);
    /// ```
    #[doc(alias = "LeakyReLU")]
    LeakyRelu(slope: f64, "The slope below 0.") = |x| x.leaky_relu(T::from_f64(slope));
    /// [`Tensor::elu`] as a layer; PyTorch's alpha is 1.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Elu;
    ///
    /// assert_eq!(Elu(1.0).forward(&Tensor::from([-40.0, 3.0])).to_vec(), [-1.0, 3.0]);
    /// ```
    #[doc(alias = "ELU")]
    Elu(alpha: f64, "The negative of the limit at minus infinity.") = |x| x.elu(T::from_f64(alpha));
    /// [`Tensor::softmax`] as a layer.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Softmax;
    ///
    /// assert_eq!(Softmax(-1).forward(&Tensor::from([[5.0, 5.0]])).to_vec(), [0.5, 0.5]);
    /// ```
    Softmax(axis: isize, "The axis along which the results add up to 1.") = |x| x.softmax(axis);
    /// [`Tensor::log_softmax`] as a layer.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::LogSoftmax;
    ///
    /// assert_eq!(LogSoftmax(-1).forward(&Tensor::from([[0.0, 99.0]])).to_vec(), [-99.0, 0.0]);
    /// ```
    LogSoftmax(axis: isize, "The axis along which the exponentials add up to 1.") =
        |x| x.log_softmax(axis);
    /// Merges all axes after the first: from `[n, a, b, ..]` to `[n, a * b * ..]`. A tensor with
    /// one axis becomes `[n, 1]`, a scalar `[1, 1]`.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Flatten;
    ///
    /// assert_eq!(Flatten.forward(&Tensor::<f32>::zeros([2, 3, 4])).shape(), [2, 12]);
    /// ```
    Flatten = |x| {
        let (n, rest) = x.shape().split_first().map_or((1, 1), |(n, rest)| (*n, rest.iter().product()));
        x.reshape([n, rest])
    };
}

/// In training, zeros each element with probability `p` and scales the rest by `1 / (1 - p)`; in
/// evaluation, the identity (Srivastava et al. 2014). See [`Tensor::dropout`].
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::{Dropout, Module};
///
/// let dropout = Dropout::new(0.5);
/// let x = Tensor::<f32>::ones([1000]);
/// assert!(dropout.forward(&x).to_vec().contains(&0.0));
/// dropout.eval();
/// assert_eq!(dropout.forward(&x).to_vec(), x.to_vec());
/// ```
#[derive(Clone, Debug, Module)]
pub struct Dropout {
    #[module(skip)]
    p: f64,
    mode: Mode,
}

impl Dropout {
    /// Creates a layer that zeros each element with probability `p`.
    ///
    /// # Panics
    ///
    /// If `p` is not in [0, 1].
    #[track_caller]
    pub fn new(p: f64) -> Self {
        assert!((0.0..=1.0).contains(&p), "Dropout: `p` must be a probability, found {p}");
        Self { p, mode: Mode::new() }
    }

    /// Applies dropout to `x`; the shape stays.
    #[track_caller]
    pub fn forward<T: Float>(&self, x: &Tensor<T>) -> Tensor<T> {
        x.dropout(self.p, self.mode.is_training())
    }
}
