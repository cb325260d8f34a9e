//! The contexts: what forward, backward and jvp of a custom op may call.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::apply::Forward;
use super::backward::Lent;
use super::forward_mode::RawJvp;
use super::inputs::contains;
use super::outputs::{Outputs, marked};
use super::saved::IntoSaved;
use super::{CustomOp, Needs};
#[cfg(doc)]
use crate::graph::Tensor;

/// The context of a custom op's forward, which receives it as `ctx: &mut ForwardContext<Self>`. Methods
/// for backward do not compile here.
///
/// ```
/// use autograd_core::prelude::*;
///
/// #[py_layer]
/// impl Cube {
///     type Saved = Tensor<f64>;
///
///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         ctx.save_for_backward(x);
///         x * x * x
///     }
///
///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
///         dy * ctx.saved_tensor().square() * 3.0
///     }
/// }
///
/// let x = Tensor::from(2.0);
/// x.set_stop_gradient(false);
/// Cube::apply(&x).backward()?;
/// assert_eq!(x.grad().unwrap().item(), 12.0);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[doc(alias = "PyLayerContext")]
pub struct ForwardContext<'a, L>(
    // Borrowed, so that the drop at the end of a call is the same for all ops.
    #[doc(hidden)] pub &'a mut Forward<'a>,
    #[doc(hidden)] pub PhantomData<fn() -> L>,
);

// A panic leaves no context call half done.
impl<L> RefUnwindSafe for ForwardContext<'_, L> {}
impl<L> UnwindSafe for BackwardContext<'_, L> {}
impl<L> RefUnwindSafe for BackwardContext<'_, L> {}
impl<L> UnwindSafe for JvpContext<'_, L> {}
impl<L> RefUnwindSafe for JvpContext<'_, L> {}

impl<'a, L> ForwardContext<'a, L> {
    /// Saves tensors for backward, which reads them with
    /// [`saved_tensor`](BackwardContext::saved_tensor). At most once in a forward.
    ///
    /// Takes references in the form that `type Saved` declares: `&y` for a tensor, `(&y, &scale)`
    /// for a tuple, `Some(&t)` or `None` for an option, `&list` for a `Vec`, the struct itself for
    /// a derived one. Saving never leaks memory, not even of an output. If a saved tensor is changed in
    /// place before backward uses it, backward returns an error.
    ///
    /// ```
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer]
    /// impl Product {
    ///     type Saved = (Tensor<f64>, Tensor<f64>);
    ///
    ///     fn forward(
    ///         ctx: &mut ForwardContext<Self>,
    ///         a: &Tensor<f64>,
    ///         b: &Tensor<f64>,
    ///     ) -> Tensor<f64> {
    ///         ctx.save_for_backward((a, b));
    ///         a * b
    ///     }
    ///
    ///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
    ///         let (a, b) = ctx.saved_tensor();
    ///         (dy * b, dy * a)
    ///     }
    /// }
    ///
    /// let (a, b) = (Tensor::from(2.0), Tensor::from(3.0));
    /// a.set_stop_gradient(false);
    /// Product::apply(&a, &b).backward()?;
    /// assert_eq!(a.grad().unwrap().item(), 3.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn save_for_backward<K, V>(&mut self, tensors: V)
    where
        L: CustomOp<K>,
        V: IntoSaved<L::Checked>,
    {
        if let Some(mut pack) = self.0.saving() {
            tensors.pack(&mut pack);
        }
    }

    /// Keeps a value that is not a tensor for backward, which reads it with
    /// [`attrs`](BackwardContext::attrs). At most once in a forward.
    ///
    /// Attributes live as long as the graph, until the last tensor that was computed from an output
    /// of the op is dropped; backward does not free them. If shared state in an attribute (an
    /// `Arc<Mutex<..>>`, say) receives an output of the op, or a tensor computed from one, the
    /// memory is never freed: put the tensor's [`detach`](Tensor::detach) there instead.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer]
    /// impl Scale {
    ///     type Attrs = Arc<f64>;
    ///
    ///     fn forward(
    ///         ctx: &mut ForwardContext<Self>,
    ///         x: &Tensor<f64>,
    ///         by: &Arc<f64>,
    ///     ) -> Tensor<f64> {
    ///         ctx.set_attrs(Arc::clone(by));
    ///         x * **by
    ///     }
    ///
    ///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
    ///         dy * **ctx.attrs()
    ///     }
    /// }
    ///
    /// let (x, by) = (Tensor::from(2.0), Arc::new(3.0));
    /// x.set_stop_gradient(false);
    /// let y = Scale::apply(&x, &by);
    /// y.backward()?;
    /// assert_eq!(Arc::strong_count(&by), 2);
    /// drop(y);
    /// assert_eq!(Arc::strong_count(&by), 1);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn set_attrs<K>(&mut self, attrs: L::Attrs)
    where
        L: CustomOp<K>,
    {
        match &mut self.0.own.attrs {
            Some(_) => self.0.refuse_second("set_attrs"),
            attrs_of_call => *attrs_of_call = Some(attrs.keep()),
        }
    }

    /// Declares that an output which is one of these inputs is a separate tensor. This holds in any case;
    /// the call documents it, and is an error for a tensor that is not an input. At most once in a forward;
    /// takes a tensor, or a tuple, slice or array of tensors.
    ///
    /// ```
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer]
    /// impl Reversal {
    ///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
    ///         ctx.mark_not_inplace(x);
    ///         x.clone()
    ///     }
    ///
    ///     fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
    ///         -dy
    ///     }
    /// }
    ///
    /// let x = Tensor::from(2.0);
    /// x.set_stop_gradient(false);
    /// let y = Reversal::apply(&x);
    /// y.backward()?;
    /// assert_eq!((y.item(), x.grad().unwrap().item()), (2.0, -1.0));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn mark_not_inplace(&mut self, inputs: impl Outputs) {
        if self.0.marked_not_inplace {
            return self.0.refuse_second("mark_not_inplace");
        }
        self.0.marked_not_inplace = true;
        for (position, tensor) in marked(inputs).iter().enumerate() {
            let address = tensor.address();
            if !self.0.inputs.iter().any(|input| contains(*input, address)) {
                let why = format!("tensor {position} is not an input of the op; mark inputs only");
                self.0.refuse("mark_not_inplace", why);
            }
        }
    }

    /// Marks outputs that have no gradient: their `stop_gradient` is true. Backward keeps its parameters
    /// for them and gets zeros (or `None`). At most once in a forward, and for outputs only; takes a
    /// tensor, or a tuple, slice or array of tensors.
    ///
    /// ```
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer]
    /// impl Parts {
    ///     fn forward(
    ///         ctx: &mut ForwardContext<Self>,
    ///         x: &Tensor<f64>,
    ///     ) -> (Tensor<f64>, Tensor<f64>) {
    ///         let whole = x.floor();
    ///         ctx.mark_non_differentiable(&whole);
    ///         let rest = x - &whole;
    ///         (whole, rest)
    ///     }
    ///
    ///     fn backward(
    ///         _ctx: &BackwardContext<Self>,
    ///         _whole: &Tensor<f64>,
    ///         rest: &Tensor<f64>,
    ///     ) -> Tensor<f64> {
    ///         rest * 1.0
    ///     }
    /// }
    ///
    /// let x = Tensor::from(2.5);
    /// x.set_stop_gradient(false);
    /// let (whole, rest) = Parts::apply(&x);
    /// assert!(whole.stop_gradient() && !rest.stop_gradient());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn mark_non_differentiable(&mut self, outputs: impl Outputs) {
        let marks = &mut self.0.own.rare().non_differentiable;
        if marks.is_some() {
            return self.0.refuse_second("mark_non_differentiable");
        }
        *marks = Some(marked(outputs));
    }

    /// Declares whether backward gets zeros (`true`) or `None` (`false`) for an absent gradient. The type
    /// of backward's parameter decides: `&Tensor` gets zeros, `Option<&Tensor>` gets `None`. With
    /// `false` every parameter must be an `Option`. At most once in a forward.
    ///
    /// ```
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer]
    /// impl Multiples {
    ///     fn forward(
    ///         ctx: &mut ForwardContext<Self>,
    ///         x: &Tensor<f64>,
    ///     ) -> (Tensor<f64>, Tensor<f64>) {
    ///         ctx.set_materialize_grads(false);
    ///         (x * 2.0, x * 3.0)
    ///     }
    ///
    ///     fn backward(
    ///         _ctx: &BackwardContext<Self>,
    ///         two: Option<&Tensor<f64>>,
    ///         three: Option<&Tensor<f64>>,
    ///     ) -> Tensor<f64> {
    ///         // Only the first output was used.
    ///         assert!(three.is_none());
    ///         two.expect("the gradient of the first output") * 2.0
    ///     }
    /// }
    ///
    /// let x = Tensor::from(2.5);
    /// x.set_stop_gradient(false);
    /// Multiples::apply(&x).0.backward()?;
    /// assert_eq!(x.grad().unwrap().item(), 2.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn set_materialize_grads(&mut self, materialize: bool) {
        if self.0.materialize_set {
            return self.0.refuse_second("set_materialize_grads");
        }
        self.0.materialize_set = true;
        if let (false, Some(bare)) = (materialize, self.0.rules.info.first_bare()) {
            let why = format!(
                "`false` needs gradient parameters that can be `None`, but `{bare}` is not an \
                 `Option`: write `{bare}: Option<&Tensor<..>>` in backward"
            );
            self.0.refuse("set_materialize_grads", why);
        }
    }

    /// Returns which tensor inputs want a gradient, by name: `ctx.needs_input_grad().x`.
    ///
    /// ```
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer]
    /// impl Product {
    ///     type Saved = (Option<Tensor<f64>>, Option<Tensor<f64>>);
    ///
    ///     fn forward(
    ///         ctx: &mut ForwardContext<Self>,
    ///         a: &Tensor<f64>,
    ///         b: &Tensor<f64>,
    ///     ) -> Tensor<f64> {
    ///         // Only what backward reads is kept.
    ///         let needs = ctx.needs_input_grad();
    ///         ctx.save_for_backward((needs.b.then_some(a), needs.a.then_some(b)));
    ///         a * b
    ///     }
    ///
    ///     fn backward(
    ///         ctx: &BackwardContext<Self>,
    ///         dy: &Tensor<f64>,
    ///     ) -> (Option<Tensor<f64>>, Option<Tensor<f64>>) {
    ///         let (a, b) = ctx.saved_tensor();
    ///         (b.as_ref().map(|b| dy * b), a.as_ref().map(|a| dy * a))
    ///     }
    /// }
    ///
    /// let (a, b) = (Tensor::from(2.0), Tensor::from(3.0));
    /// a.set_stop_gradient(false);
    /// Product::apply(&a, &b).backward()?;
    /// assert_eq!(a.grad().unwrap().item(), 3.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn needs_input_grad<K>(&self) -> L::Needs
    where
        L: CustomOp<K>,
    {
        L::Needs::of(self.0)
    }
}

/// The context of a custom op's backward, which receives it as `ctx: &BackwardContext<Self>`. Methods
/// for forward do not compile here. Unless the backward is recorded
/// ([`create_graph`](crate::BackwardOptions::create_graph)), its results have no graph; a backward
/// inside of it needs [`enable_grad`](crate::enable_grad). A recorded one must not read numbers of
/// a tensor that wants a gradient (`item`, `to_vec`, `view`): the second derivative would be wrong.
#[doc(alias = "PyLayerContext")]
pub struct BackwardContext<'a, L>(
    #[doc(hidden)] pub &'a Lent<'a>,
    #[doc(hidden)] pub PhantomData<fn() -> L>,
);

impl<'a, L> BackwardContext<'a, L> {
    /// Returns what forward gave to [`save_for_backward`](ForwardContext::save_for_backward), in
    /// the form that `type Saved` declares; destructure a tuple: `let (y, scale) =
    /// ctx.saved_tensor();`. A saved input or output has the same `stop_gradient` here as outside.
    /// A tensor that wants a gradient cannot be changed in place here; compute another tensor from
    /// it.
    ///
    /// ```
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer]
    /// impl Scale {
    ///     type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);
    ///
    ///     fn forward(
    ///         ctx: &mut ForwardContext<Self>,
    ///         x: &Tensor<f64>,
    ///         #[stop_gradient] by: &Tensor<f64>,
    ///     ) -> Tensor<f64> {
    ///         let y = x * by;
    ///         ctx.save_for_backward((x, by, &y));
    ///         y
    ///     }
    ///
    ///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
    ///         let (x, by, y) = ctx.saved_tensor();
    ///         assert!(!x.stop_gradient() && by.stop_gradient() && !y.stop_gradient());
    ///         assert!(y.fill(0.0).is_err());
    ///         dy * by
    ///     }
    /// }
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// x.set_stop_gradient(false);
    /// Scale::apply(&x, &Tensor::from([3.0, 4.0])).sum().backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec(), [3.0, 4.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn saved_tensor<K>(&self) -> &'a L::Saved
    where
        L: CustomOp<K>,
    {
        downcast(self.0.saved)
    }

    /// Returns what forward gave to [`set_attrs`](ForwardContext::set_attrs).
    ///
    /// ```
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer]
    /// impl Power {
    ///     type Saved = Tensor<f64>;
    ///     type Attrs = f64;
    ///
    ///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, n: f64) -> Tensor<f64> {
    ///         ctx.save_for_backward(x);
    ///         ctx.set_attrs(n);
    ///         x.pow(n)
    ///     }
    ///
    ///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
    ///         let n = *ctx.attrs();
    ///         dy * ctx.saved_tensor().pow(n - 1.0) * n
    ///     }
    /// }
    ///
    /// let x = Tensor::from(2.0);
    /// x.set_stop_gradient(false);
    /// Power::apply(&x, 3.0).backward()?;
    /// assert_eq!(x.grad().unwrap().item(), 12.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn attrs<K>(&self) -> &'a L::Attrs
    where
        L: CustomOp<K>,
    {
        downcast(self.0.raw.attrs())
    }

    /// Returns which tensor inputs want a gradient, by name: `ctx.needs_input_grad().x`,
    /// as [`ForwardContext::needs_input_grad`].
    ///
    /// ```
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer]
    /// impl Product {
    ///     type Saved = (Tensor<f64>, Tensor<f64>);
    ///
    ///     fn forward(
    ///         ctx: &mut ForwardContext<Self>,
    ///         a: &Tensor<f64>,
    ///         b: &Tensor<f64>,
    ///     ) -> Tensor<f64> {
    ///         ctx.save_for_backward((a, b));
    ///         a * b
    ///     }
    ///
    ///     fn backward(
    ///         ctx: &BackwardContext<Self>,
    ///         dy: &Tensor<f64>,
    ///     ) -> (Option<Tensor<f64>>, Option<Tensor<f64>>) {
    ///         let ((a, b), needs) = (ctx.saved_tensor(), ctx.needs_input_grad());
    ///         assert!(needs.a && !needs.b);
    ///         (needs.a.then(|| dy * b), needs.b.then(|| dy * a))
    ///     }
    /// }
    ///
    /// let (a, b) = (Tensor::from(2.0), Tensor::from(3.0));
    /// a.set_stop_gradient(false);
    /// Product::apply(&a, &b).backward()?;
    /// assert_eq!(a.grad().unwrap().item(), 3.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn needs_input_grad<K>(&self) -> L::Needs
    where
        L: CustomOp<K>,
    {
        L::Needs::of(self.0.raw.needs())
    }
}

/// The context of a custom op's `jvp`, which receives it as `ctx: &JvpContext<Self>`. It reads saved
/// tensors and attributes. To know whether an input has a tangent, declare the tangent as an
/// `Option`.
///
/// ```
/// use autograd_core::prelude::*;
/// use autograd_core::jvp;
///
/// #[py_layer]
/// impl Cube {
///     type Saved = Tensor<f64>;
///
///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         ctx.save_for_backward(x);
///         x * x * x
///     }
///
///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
///         dy * ctx.saved_tensor().square() * 3.0
///     }
///
///     fn jvp(_ctx: &JvpContext<Self>, x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
///         dx * x.square() * 3.0
///     }
/// }
///
/// let (y, dy) = jvp(|t| Cube::apply(&t[0]), &[Tensor::from(2.0)], &[Tensor::from(0.5)])?;
/// assert_eq!((y.item(), dy.item()), (8.0, 6.0));
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub struct JvpContext<'a, L> {
    saved: &'a dyn Any,
    attrs: &'a dyn Any,
    op: PhantomData<fn() -> L>,
}

impl RawJvp<'_> {
    pub fn context<'s, L: CustomOp<K>, K>(&'s self, saved: &'s L::Saved) -> JvpContext<'s, L> {
        JvpContext { saved, attrs: self.called.attrs(), op: PhantomData }
    }
}

impl<'a, L> JvpContext<'a, L> {
    /// Returns what forward saved; see [`BackwardContext::saved_tensor`].
    ///
    /// ```
    /// use autograd_core::jvp;
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer]
    /// impl Exp {
    ///     type Saved = Tensor<f64>;
    ///
    ///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
    ///         let y = x.exp();
    ///         ctx.save_for_backward(&y);
    ///         y
    ///     }
    ///
    ///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
    ///         dy * ctx.saved_tensor()
    ///     }
    ///
    ///     fn jvp(ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
    ///         dx * ctx.saved_tensor()
    ///     }
    /// }
    ///
    /// let (y, dy) = jvp(|t| Exp::apply(&t[0]), &[Tensor::from(0.0)], &[Tensor::from(3.0)])?;
    /// assert_eq!((y.item(), dy.item()), (1.0, 3.0));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn saved_tensor<K>(&self) -> &'a L::Saved
    where
        L: CustomOp<K>,
    {
        downcast(self.saved)
    }

    /// Returns what forward gave to [`set_attrs`](ForwardContext::set_attrs).
    ///
    /// ```
    /// use autograd_core::jvp;
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer]
    /// impl Scale {
    ///     type Attrs = f64;
    ///
    ///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, by: f64) -> Tensor<f64> {
    ///         ctx.set_attrs(by);
    ///         x * by
    ///     }
    ///
    ///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
    ///         dy * *ctx.attrs()
    ///     }
    ///
    ///     fn jvp(ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
    ///         dx * *ctx.attrs()
    ///     }
    /// }
    ///
    /// let (y, dy) = jvp(|t| Scale::apply(&t[0], 3.0), &[Tensor::from(2.0)], &[Tensor::from(0.5)])?;
    /// assert_eq!((y.item(), dy.item()), (6.0, 1.5));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn attrs<K>(&self) -> &'a L::Attrs
    where
        L: CustomOp<K>,
    {
        downcast(self.attrs)
    }
}

/// Cannot fail: the context was made for this op, and an op has one implementation.
fn downcast<T: 'static>(any: &dyn Any) -> &T {
    any.downcast_ref().unwrap_or_else(|| unreachable!("what forward kept has the declared type"))
}

/// A type that an op may declare as `type Attrs`, for [`ForwardContext::set_attrs`]: any that is `Send + Sync +
/// 'static`, since tensors go to other threads.
///
/// ```
/// use autograd_core::prelude::*;
///
/// #[py_layer]
/// impl Flat {
///     type Attrs = Vec<usize>;
///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         ctx.set_attrs(x.shape().to_vec());
///         x.flatten()
///     }
///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
///         dy.reshape(ctx.attrs())
///     }
/// }
///
/// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
/// x.set_stop_gradient(false);
/// Flat::apply(&x).square().sum().backward()?;
/// assert_eq!(x.grad().unwrap().select(0, 1).to_vec(), [6.0, 8.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be kept in `type Attrs`: it cannot go to another thread, or it borrows",
    label = "must be `Send + Sync + 'static`",
    note = "tensors go to other threads, and what their ops keep goes with them: write `Arc` for `Rc`, `Mutex` for `RefCell`, and keep values instead of references"
)]
pub trait Attrs: Sized + 'static {
    // The bounds are on the impl, as those of a trait would be reported one by one.
    #[doc(hidden)]
    fn keep(self) -> Box<dyn Any + Send + Sync>;
}

#[diagnostic::do_not_recommend]
impl<A: Send + Sync + 'static> Attrs for A {
    fn keep(self) -> Box<dyn Any + Send + Sync> {
        Box::new(self)
    }
}

/// Never implemented: the bound of forward's methods in backward's context.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this belongs to `forward`: the context of `backward` only reads",
    label = "not in `backward`",
    note = "call it on `ctx: &mut ForwardContext<Self>` in `forward`; here `ctx.saved_tensor()`, `ctx.attrs()` and `ctx.needs_input_grad()` can be called"
)]
pub trait InForward<V> {}

/// Never implemented: the bound of the other functions' methods in `jvp`'s context.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this does not belong to `jvp`: its context only reads",
    label = "not in `jvp`",
    note = "here `ctx.saved_tensor()` and `ctx.attrs()` can be called; what is saved, set and marked is so in `forward`, and whether an input has a tangent is shown by a parameter `Option<&Tensor<T>>`"
)]
pub trait NotInJvp<V> {}

/// Never implemented: the bound of backward's methods in forward's context.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this belongs to `backward`: in `forward` there is nothing saved yet",
    label = "not in `forward`",
    note = "call it on `ctx: &BackwardContext<Self>` in `backward`"
)]
pub trait InBackward<V> {}

#[doc(hidden)]
#[allow(clippy::unused_self, reason = "they exist for their bounds only")]
impl<'a, L> BackwardContext<'a, L> {
    pub fn save_for_backward<V>(&self, _: V)
    where
        Self: InForward<V>,
    {
    }
    pub fn set_attrs<V>(&self, _: V)
    where
        Self: InForward<V>,
    {
    }
    pub fn mark_not_inplace<V>(&self, _: V)
    where
        Self: InForward<V>,
    {
    }
    pub fn mark_non_differentiable<V>(&self, _: V)
    where
        Self: InForward<V>,
    {
    }
    pub fn set_materialize_grads<V>(&self, _: V)
    where
        Self: InForward<V>,
    {
    }
}

#[doc(hidden)]
#[allow(clippy::unused_self, reason = "they exist for their bounds only")]
impl<'a, L> JvpContext<'a, L> {
    pub fn save_for_backward<V>(&self, _: V)
    where
        Self: NotInJvp<V>,
    {
    }
    pub fn set_attrs<V>(&self, _: V)
    where
        Self: NotInJvp<V>,
    {
    }
    pub fn mark_not_inplace<V>(&self, _: V)
    where
        Self: NotInJvp<V>,
    {
    }
    pub fn mark_non_differentiable<V>(&self, _: V)
    where
        Self: NotInJvp<V>,
    {
    }
    pub fn set_materialize_grads<V>(&self, _: V)
    where
        Self: NotInJvp<V>,
    {
    }
    pub fn needs_input_grad<K>(&self) -> L::Needs
    where
        L: CustomOp<K>,
        Self: NotInJvp<K>,
    {
        unreachable!("no type meets the bound")
    }
}

#[doc(hidden)]
impl<L> ForwardContext<'_, L> {
    pub fn saved_tensor<K>(&self) -> L::Saved
    where
        L: CustomOp<K>,
        Self: InBackward<K>,
    {
        unreachable!("no type meets the bound")
    }
    pub fn attrs<K>(&self) -> L::Attrs
    where
        L: CustomOp<K>,
        Self: InBackward<K>,
    {
        unreachable!("no type meets the bound")
    }
}
