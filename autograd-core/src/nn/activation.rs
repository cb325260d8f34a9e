//! Layers without parameters: activations, dropout and reshaping.

use super::{Mode, Module};
use crate::graph::Tensor;
use crate::ops::Float;

/// Defines layers: documentation, type with options, function, and an example by a call and its result.
macro_rules! layers {
    ($(
        $(#[$doc:meta])*
        $name:ident $(($($option:ident: $type:ty, $what:literal),+))? = |$x:ident| $y:expr, $call:expr => $shown:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Module)]
        pub struct $name $(($(#[doc = $what] #[module(skip)] pub $type),+))?;

        impl $name {
            /// Applies the function to `x`. The shape of the result and the panics are those of the method of
            /// [`Tensor`].
            ///
            /// ```
            /// use autograd_core::Tensor;
            #[doc = concat!("use autograd_core::nn::", stringify!($name), ";")]
            ///
            #[doc = concat!("assert_eq!(", stringify!($call), ", ", stringify!($shown), ");")]
            /// ```
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
    #[doc(alias = "ReLU")]
    Relu = |x| x.relu(), Relu.forward(&Tensor::from([-2.0, 3.0])).to_vec() => [0.0, 3.0];
    /// [`Tensor::gelu`] as a layer: by the error function, as PyTorch's.
    #[doc(alias = "GELU")]
    Gelu = |x| x.gelu(), Gelu.forward(&Tensor::from([-30.0, 30.0])).to_vec() => [0.0, 30.0];
    /// [`Tensor::silu`] as a layer.
    #[doc(alias = "SiLU")]
    #[doc(alias = "swish")]
    Silu = |x| x.silu(), Silu.forward(&Tensor::from([0.0, 40.0])).to_vec() => [0.0, 40.0];
    /// [`Tensor::sigmoid`] as a layer.
    Sigmoid = |x| x.sigmoid(), Sigmoid.forward(&Tensor::from([0.0, 40.0])).to_vec() => [0.5, 1.0];
    /// [`Tensor::tanh`] as a layer.
    Tanh = |x| x.tanh(), Tanh.forward(&Tensor::from([0.0, 40.0])).to_vec() => [0.0, 1.0];
    /// [`Tensor::softplus`] as a layer.
    Softplus = |x| x.softplus(),
        Softplus.forward(&Tensor::from([0.0, 40.0])).to_vec() => [2_f64.ln(), 40.0];
    /// [`Tensor::leaky_relu`] as a layer; PyTorch's slope is 0.01.
    #[doc(alias = "LeakyReLU")]
    LeakyRelu(slope: f64, "The slope below 0.") = |x| x.leaky_relu(T::from_f64(slope)),
        LeakyRelu(0.1).forward(&Tensor::from([-2.0, 3.0])).to_vec() => [-0.2, 3.0];
    /// [`Tensor::elu`] as a layer; PyTorch's alpha is 1.
    #[doc(alias = "ELU")]
    Elu(alpha: f64, "The negative of the limit at minus infinity.") = |x| x.elu(T::from_f64(alpha)),
        Elu(1.0).forward(&Tensor::from([-40.0, 3.0])).to_vec() => [-1.0, 3.0];
    /// [`Tensor::softmax`] as a layer.
    Softmax(axis: isize, "The axis along which the results add up to 1.") = |x| x.softmax(axis),
        Softmax(-1).forward(&Tensor::from([[5.0, 5.0]])).to_vec() => [0.5, 0.5];
    /// [`Tensor::log_softmax`] as a layer.
    LogSoftmax(axis: isize, "The axis along which the exponentials add up to 1.") =
        |x| x.log_softmax(axis),
        LogSoftmax(-1).forward(&Tensor::from([[0.0, 99.0]])).to_vec() => [-99.0, 0.0];
    /// Merges all axes after the first: from `[n, a, b, ..]` to `[n, a * b * ..]`. A tensor with
    /// one axis becomes `[n, 1]`, a scalar `[1, 1]`.
    Flatten = |x| {
        let (n, rest) = x.shape().split_first().map_or((1, 1), |(n, rest)| (*n, rest.iter().product()));
        x.reshape([n, rest])
    }, Flatten.forward(&Tensor::<f32>::zeros([2, 3, 4])).shape() => [2, 12];
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
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Dropout;
    ///
    /// assert_eq!(Dropout::new(1.0).forward(&Tensor::from([1.0, 2.0])).to_vec(), [0.0, 0.0]);
    /// ```
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
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Dropout;
    ///
    /// let y = Dropout::new(0.75).forward(&Tensor::<f64>::ones([1000]));
    /// assert_eq!((y.min().item(), y.max().item()), (0.0, 4.0));
    /// ```
    #[track_caller]
    pub fn forward<T: Float>(&self, x: &Tensor<T>) -> Tensor<T> {
        x.dropout(self.p, self.mode.is_training())
    }
}
