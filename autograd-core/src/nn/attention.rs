//! Multi-head attention and its masks.

use std::fmt::Debug;
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::{Dropout, Linear, Module, init};
use crate::array::shape::broadcast;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Composite, Tensor, for_any};
use crate::ops::{Float, expect, options};

/// Multi-head attention (Vaswani et al. 2017), as PyTorch's `MultiheadAttention` with `batch_first=True`. With
/// `q`, `k` and `v` the three parts of the input projection, each divided into heads of width `d`, a head is
///
/// ```text
/// softmax(q kᵀ / sqrt(d)) v
/// ```
///
/// and the heads, concatenated along the last axis, go through `out_proj`.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::{AttentionMasks, MultiheadAttention};
///
/// let attention = MultiheadAttention::<f32>::new(8, 2).dropout(0.1);
/// let x = Tensor::randn([4, 5, 8]);
/// let y = attention.forward(&x, &x, &x, AttentionMasks::new().causal());
/// assert_eq!(y.shape(), [4, 5, 8]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct MultiheadAttention<T: Float = f32> {
    /// `[3 * width, width]`: the stacked projections of queries, keys and values.
    pub in_proj_weight: Tensor<T>,
    /// `[3 * width]`
    pub in_proj_bias: Option<Tensor<T>>,
    /// The output projection, applied to the concatenated heads.
    pub out_proj: Linear<T>,
    #[module(skip)]
    heads: usize,
    dropout: Dropout,
}

impl<T: Float> MultiheadAttention<T> {
    /// Creates a layer for inputs `[n, length, width]`, without dropout. Initial values are PyTorch's:
    /// Glorot's uniform distribution for the input projection, 0 for the biases.
    ///
    /// ```
    /// use autograd_core::nn::MultiheadAttention;
    ///
    /// let attention = MultiheadAttention::<f32>::new(8, 2);
    /// assert_eq!(attention.in_proj_weight.shape(), [24, 8]);
    /// assert_eq!(attention.out_proj.weight.shape(), [8, 8]);
    /// ```
    ///
    /// # Panics
    ///
    /// If `heads` is 0 or does not divide `width`.
    #[track_caller]
    pub fn new(width: usize, heads: usize) -> Self {
        assert!(
            heads > 0 && width.is_multiple_of(heads),
            "MultiheadAttention: a width of {width} cannot be divided into {heads} heads"
        );
        let out_proj = Linear { bias: Some(init::zeros(width)), ..Linear::new(width, width) };
        Self {
            in_proj_weight: init::xavier_uniform([3 * width, width], 1.0),
            in_proj_bias: Some(init::zeros(3 * width)),
            out_proj,
            heads,
            dropout: Dropout::new(0.0),
        }
    }

    /// Adds dropout of the attention weights, in training only.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{AttentionMasks, MultiheadAttention};
    ///
    /// let attention = MultiheadAttention::<f64>::new(4, 1).dropout(1.0);
    /// let x = Tensor::randn([1, 2, 4]);
    /// let (_, weights) = attention.try_forward(&x, &x, &x, AttentionMasks::new())?;
    /// assert_eq!(weights.to_vec(), [0.0; 4]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `p` is not in [0, 1].
    #[track_caller]
    #[must_use]
    pub fn dropout(self, p: f64) -> Self {
        Self { dropout: Dropout::new(p), ..self }
    }

    /// Removes the biases.
    ///
    /// ```
    /// use autograd_core::nn::MultiheadAttention;
    ///
    /// let attention = MultiheadAttention::<f32>::new(8, 2).without_bias();
    /// assert!(attention.in_proj_bias.is_none() && attention.out_proj.bias.is_none());
    /// ```
    #[must_use]
    pub fn without_bias(self) -> Self {
        Self { in_proj_bias: None, out_proj: self.out_proj.without_bias(), ..self }
    }

    /// Returns the attention-weighted sum of the values for each query, projected: `[n, queries, width]`.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{AttentionMasks, MultiheadAttention};
    ///
    /// let attention = MultiheadAttention::<f32>::new(8, 2);
    /// let (queries, keys) = (Tensor::randn([4, 3, 8]), Tensor::randn([4, 5, 8]));
    /// let y = attention.forward(&queries, &keys, &keys, AttentionMasks::new());
    /// assert_eq!(y.shape(), [4, 3, 8]);
    /// ```
    ///
    /// # Panics
    ///
    /// If [`MultiheadAttention::try_forward`] returns an error.
    #[track_caller]
    pub fn forward(
        &self,
        query: &Tensor<T>,
        key: &Tensor<T>,
        value: &Tensor<T>,
        masks: AttentionMasks<'_>,
    ) -> Tensor<T> {
        expect(self.try_forward(query, key, value, masks)).0
    }

    /// [`MultiheadAttention::forward`], with an error instead of a panic. Also returns the attention
    /// weights of each head, after dropout: `[n, heads, queries, keys]`.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{AttentionMasks, MultiheadAttention};
    ///
    /// let attention = MultiheadAttention::<f32>::new(8, 2);
    /// let (x, other) = (Tensor::randn([4, 5, 8]), Tensor::randn([4, 5, 6]));
    /// let (_, weights) = attention.try_forward(&x, &x, &x, AttentionMasks::new())?;
    /// assert_eq!(weights.shape(), [4, 2, 5, 5]);
    /// assert!(weights.sum_axes(-1).allclose(&Tensor::from(1.0), 1e-5, 0.0));
    /// assert!(attention.try_forward(&x, &x, &other, AttentionMasks::new()).is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if `query` is not `[n, queries, width]`, `key` or `value` is not `[n, keys,
    /// width]`, or a mask has another shape than [`AttentionMasks`] says.
    #[track_caller]
    pub fn try_forward(
        &self,
        query: &Tensor<T>,
        key: &Tensor<T>,
        value: &Tensor<T>,
        masks: AttentionMasks<'_>,
    ) -> Result<(Tensor<T>, Tensor<T>)> {
        const OP: &str = "MultiheadAttention";
        let _composite = Composite::here(OP);
        let width = self.in_proj_weight.shape().last().copied().unwrap_or_default();
        let wrong = |parameter: &str, expected: String, x: &Tensor<T>| {
            Err(Error::shape(OP, parameter, expected, x.shape()))
        };
        let (n, queries) = match *query.shape() {
            [n, queries, found] if found == width => (n, queries),
            _ => return wrong("query", format!("of shape [n, queries, {width}]"), query),
        };
        let keys = match *key.shape() {
            [batch, keys, found] if batch == n && found == width => keys,
            _ => return wrong("key", format!("of shape [{n}, keys, {width}]"), key),
        };
        if value.shape() != key.shape() {
            return wrong("value", format!("of shape {:?}, as `key` is", key.shape()), value);
        }
        let masks = masks.over_heads::<T>(OP, [n, self.heads, queries, keys])?;

        let in_heads = |x: &Tensor<T>, part: usize| -> Result<Tensor<T>> {
            let weight = self.in_proj_weight.narrow(0, part * width, width);
            let bias = self.in_proj_bias.as_ref().map(|bias| bias.narrow(0, part * width, width));
            let x = x.try_linear(&weight, bias.as_ref()).map_err(|error| error.of_layer(OP))?;
            let shape = [n, x.shape()[1], self.heads, width / self.heads];
            Ok(x.try_reshape(shape)?.permute(&[0, 2, 1, 3]))
        };
        let scale = ((width / self.heads) as f64).sqrt().recip();
        let q = in_heads(query, 0)? * scale;
        let (k, v) = (in_heads(key, 1)?, in_heads(value, 2)?);
        let scores = q.try_matmul(&k.swap_axes(-1, -2))?;
        let added = masks.iter().filter_map(|(_, added)| added.as_ref());
        let scores = added.fold(scores, |scores, mask| scores + mask);
        // Not an infinity: a query without a key would have no maximum.
        let hidden = |scores: Tensor<T>, number: T| {
            masks.iter().fold(scores, |scores, (mask, _)| scores.masked_fill(mask, number))
        };
        let weights = hidden(scores, T::min_value()).try_softmax(-1)?;
        let weights = self.dropout.forward(&hidden(weights, T::zero()));
        let heads = weights.try_matmul(&v)?.permute(&[0, 2, 1, 3]);
        let y = self.out_proj.try_forward(&heads.try_reshape([n, queries, width])?)?;
        Ok((y, weights))
    }
}

/// Masks that exclude keys from queries, or bias scores. A mask of bools is true where a key is excluded, as in
/// PyTorch. A mask of numbers, which may want a gradient, is added to the scores before the softmax: minus
/// infinity excludes a key. A query without a key gets weights of 0, and so the output projection's bias.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::{AttentionMasks, MultiheadAttention};
///
/// let attention = MultiheadAttention::<f64>::new(4, 1);
/// let x = Tensor::randn([1, 3, 4]);
/// // The third is padding.
/// let padding = Tensor::from([[false, false, true]]);
/// let pairs = Tensor::<bool>::zeros([3, 3]);
/// let masks = AttentionMasks::new().attention(&pairs).padding(&padding).causal();
/// let (_, weights) = attention.try_forward(&x, &x, &x, masks)?;
/// assert_eq!(weights.select(-1, 2).to_vec(), [0.0; 3]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionMasks<'a> {
    causal: bool,
    attention: Option<&'a dyn AttentionMask>,
    padding: Option<&'a dyn AttentionMask>,
}

/// A mask of [`AttentionMasks`]: a tensor of bools or of floats.
///
/// ```
/// use autograd_core::nn::{AttentionMask, AttentionMasks, MultiheadAttention};
/// use autograd_core::{Result, Tensor};
///
/// let (attention, x) = (MultiheadAttention::<f64>::new(4, 1), Tensor::zeros([1, 2, 4]));
/// let weights = |mask: &dyn AttentionMask| -> Result<Vec<f64>> {
///     let masks = AttentionMasks::new().attention(mask);
///     Ok(attention.try_forward(&x, &x, &x, masks)?.1.to_vec())
/// };
/// let excluded = Tensor::from([[false, true], [false, false]]);
/// assert_eq!(weights(&excluded)?, [1.0, 0.0, 0.5, 0.5]);
/// let added = Tensor::from([[0.0, f64::NEG_INFINITY], [0.0, 0.0]]);
/// assert_eq!(weights(&added)?, [1.0, 0.0, 0.5, 0.5]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no mask of attention",
    label = "a mask is a `Tensor<bool>`, true where a key is left out, or a tensor of floats that are added"
)]
pub trait AttentionMask: Debug + Send + Sync + UnwindSafe + RefUnwindSafe {
    #[doc(hidden)]
    fn any(&self) -> AnyTensor;
}

impl AttentionMask for Tensor<bool> {
    fn any(&self) -> AnyTensor {
        self.clone().into()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Float> AttentionMask for Tensor<T> {
    fn any(&self) -> AnyTensor {
        self.clone().into()
    }
}

/// What a mask excludes from scores and, if it is one of floats, what it adds to them.
type OfScores<T> = (Tensor<bool>, Option<Tensor<T>>);

fn of_scores<T: Float>(mask: &AnyTensor, shape: &[usize]) -> OfScores<T> {
    if let AnyTensor::Bool(mask) = mask {
        return (mask.reshape(shape), None);
    }
    let added = for_any!(mask, mask => mask.cast::<T>()).reshape(shape);
    // A query without a key gets weights of 0 then, not NaN.
    (added.eq_scalar(T::neg_infinity()), Some(added))
}

impl<'a> AttentionMasks<'a> {
    /// Creates empty masks: every query attends to all keys.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{AttentionMasks, MultiheadAttention};
    ///
    /// // Without masks, the weights of equal keys are equal.
    /// let (attention, x) = (MultiheadAttention::<f64>::new(4, 1), Tensor::zeros([1, 2, 4]));
    /// let (_, weights) = attention.try_forward(&x, &x, &x, AttentionMasks::new())?;
    /// assert_eq!(weights.to_vec(), [0.5, 0.5, 0.5, 0.5]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Restricts a query to the keys up to its own position, both counted from the start.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{AttentionMasks, MultiheadAttention};
    ///
    /// let (attention, x) = (MultiheadAttention::<f64>::new(4, 1), Tensor::zeros([1, 2, 4]));
    /// let (_, weights) = attention.try_forward(&x, &x, &x, AttentionMasks::new().causal())?;
    /// assert_eq!(weights.to_vec(), [1.0, 0.0, 0.5, 0.5]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[doc(alias = "is_causal")]
    #[must_use]
    pub fn causal(self) -> Self {
        Self { causal: true, ..self }
    }

    options! {
        /// Sets a mask of pairs of a query and a key: `[queries, keys]`, `[heads, queries, keys]` or `[n,
        /// heads, queries, keys]`, with 1 for any leading axis. (PyTorch has `[n * heads, queries, keys]`.)
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::nn::{AttentionMasks, MultiheadAttention};
        ///
        /// let (attention, x) = (MultiheadAttention::<f64>::new(4, 1), Tensor::zeros([1, 2, 4]));
        /// let others = Tensor::from([[false, true], [true, false]]);
        /// let masks = AttentionMasks::new().attention(&others);
        /// let (_, weights) = attention.try_forward(&x, &x, &x, masks)?;
        /// assert_eq!(weights.to_vec(), [1.0, 0.0, 0.0, 1.0]);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        #[doc(alias = "attn_mask")]
        pub fn attention(mask: &'a dyn AttentionMask).into();

        /// Sets a mask of the keys of each sample, `[n, keys]`.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::nn::{AttentionMasks, MultiheadAttention};
        ///
        /// let (attention, x) = (MultiheadAttention::<f64>::new(4, 1), Tensor::zeros([1, 2, 4]));
        /// let padding = Tensor::from([[false, true]]);
        /// let masks = AttentionMasks::new().padding(&padding);
        /// let (_, weights) = attention.try_forward(&x, &x, &x, masks)?;
        /// assert_eq!(weights.to_vec(), [1.0, 0.0, 1.0, 0.0]);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        #[doc(alias = "key_padding_mask")]
        pub fn padding(mask: &'a dyn AttentionMask).into();
    }

    fn over_heads<T: Float>(
        self,
        op: &'static str,
        scores @ [n, heads, queries, keys]: [usize; 4],
    ) -> Result<Vec<OfScores<T>>> {
        let mut masks = Vec::new();
        if self.causal {
            let later = Tensor::<f32>::ones([queries, keys]).triu(1).gt_scalar(0.0);
            masks.push((later, None));
        }
        if let Some(mask) = self.attention.map(AttentionMask::any) {
            let shape = mask.shape();
            let is_for_pairs = matches!(shape, [.., q, k] if [*q, *k] == [queries, keys]);
            let fits = broadcast(op, shape, &scores).is_ok_and(|all| all[..] == scores);
            if !is_for_pairs || !fits {
                let expected = format!(
                    "broadcastable to [{n}, {heads}, {queries}, {keys}], with the last two axes whole"
                );
                return Err(Error::shape(op, "attention", expected, shape));
            }
            masks.push(of_scores(&mask, shape));
        }
        if let Some(mask) = self.padding.map(AttentionMask::any) {
            if mask.shape() != [n, keys] {
                let expected = format!("of shape [{n}, {keys}]");
                return Err(Error::shape(op, "padding", expected, mask.shape()));
            }
            masks.push(of_scores(&mask, &[n, 1, 1, keys]));
        }
        Ok(masks)
    }
}
