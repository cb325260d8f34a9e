//! Changes in place: assigning operators such as `+=` are recorded, plain writes are not. All handles share
//! a version counter, by which backward detects that a saved tensor has changed.

use std::ops::{AddAssign, DivAssign, MulAssign, SubAssign};
use std::panic::Location;

use super::trace::is_tracing;
use super::{Binary, Caller, Float, Input, Numeric, Operand, Scalar, expect};
use crate::array::{Shape, Value};
use crate::error::{Error, Result};
use crate::graph::{Edge, Edges, Element, Lost, Rule, Tensor, is_grad_enabled, is_turned_off};

/// An error in a traced closure: the program would not make the change, and the examples would.
fn check_not_traced(op: &'static str) -> Result<()> {
    if !is_tracing() {
        return Ok(());
    }
    let why = "a program cannot change a tensor in place; compute a new tensor, or place the closure with `eager`";
    Err(Error::Unsupported { op, why: why.into() })
}

/// # Changes in place
impl<T: Element> Tensor<T> {
    /// Returns an error if this tensor is a leaf that wants a gradient and recording is on: it would be
    /// unclear which value the gradient belongs to.
    fn check_writable(&self, op: &'static str) -> Result<()> {
        self.check_lent(op)?;
        check_not_traced(op)?;
        if self.would_record() && self.producer().is_none() {
            return Err(Error::Unsupported {
                op,
                why: "a leaf that wants a gradient cannot be changed in place; do it under \
                      `no_grad()`, or change a `copy()`"
                    .into(),
            });
        }
        Ok(())
    }

    fn check_plain_write(&self, op: &'static str) -> Result<()> {
        self.check_lent(op)?;
        check_not_traced(op)?;
        if self.would_record() {
            return Err(Error::Unsupported {
                op,
                why: "this write is not recorded, so the gradient of a tensor that wants one \
                      would be wrong; do it under `no_grad()`"
                    .into(),
            });
        }
        Ok(())
    }

    /// Returns an error in user code that the library calls (a backward, a hook), if this tensor
    /// wants a gradient: it is an op's input or output, and its owner did not ask for a change.
    fn check_lent(&self, op: &'static str) -> Result<()> {
        // The error for an input of a custom op names that input.
        self.check_write(op)?;
        if !self.stop_gradient() && is_turned_off() {
            return Err(Error::Unsupported {
                op,
                why: "a tensor that wants a gradient is not changed in place inside a backward, a \
                      hook or a forward; change a tensor computed from it (`&x * 1.0`), or do it \
                      under `no_grad()` if the change is meant"
                    .into(),
            });
        }
        Ok(())
    }

    /// Replaces the data by that of another tensor of the same shape, for every handle and detached
    /// copy. Not recorded; a backward that saved the old data detects the change.
    ///
    /// ```
    /// use autograd_core::{Tensor, no_grad};
    ///
    /// let w = Tensor::from(vec![1.0, 2.0]);
    /// w.set_stop_gradient(false);
    /// no_grad().run(|| w.copy_from(&(&w * 0.5)))?;
    /// assert_eq!(w.to_vec(), [0.5, 1.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the shapes differ, [`Error::Unsupported`] if this tensor wants a
    /// gradient, except under `no_grad()`.
    #[doc(alias = "copy_")]
    #[doc(alias = "set_value")]
    #[track_caller]
    pub fn copy_from(&self, source: &Tensor<T>) -> Result<()> {
        T::copy_from(self, source, Location::caller())
    }

    /// Sets every element. Not recorded; see [`Tensor::copy_from`].
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// x.fill(3.0)?;
    /// assert_eq!(x.to_vec(), [3.0, 3.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if this tensor wants a gradient, except under `no_grad()`.
    #[doc(alias = "fill_")]
    #[doc(alias = "zero_")]
    pub fn fill(&self, element: impl Scalar<T>) -> Result<()> {
        T::fill(self, element.scalar())
    }
}

pub(super) fn copy_from<T: Element>(
    x: &Tensor<T>,
    source: &Tensor<T>,
    caller: Caller,
) -> Result<()> {
    x.check_plain_write("copy_from")?;
    if source.shape() != x.shape() {
        let expected = format!("of shape {:?}", x.shape());
        return Err(Error::shape("copy_from", "source", expected, source.shape()));
    }
    let new = source.read().contiguous().into_owned();
    x.write("copy_from", |value| match (value.as_mut_slice(), new.as_slice()) {
        (Some(data), Some(new)) => data.copy_from_slice(new),
        _ => *value = new,
    })?;
    if x.stop_gradient() {
        let lost = Lost::without_derivative("copy_from", caller, source);
        x.store_lost(x.lost().and(lost));
    }
    Ok(())
}

pub(super) fn fill<T: Element>(x: &Tensor<T>, element: T) -> Result<()> {
    x.check_plain_write("fill")?;
    x.write("fill", |value| match value.as_mut_slice() {
        Some(data) => data.fill(element),
        None => *value = Value::full(Shape::from_slice(value.shape()), element),
    })
}

fn assign<T: Numeric, R: Operand<T>>(
    x: &mut Tensor<T>,
    op: Binary,
    name: &'static str,
    right: R,
    caller: Caller,
) -> Result<()> {
    x.check_writable(name)?;
    // A rule that saves this operand needs the old value.
    let before = if x.would_record() { x.snapshot() } else { x.alias() };
    let result = right.operate(op, Input::Own(before), caller)?;
    T::replace(x, name, result)
}

pub(super) fn replace<T: Element>(
    x: &mut Tensor<T>,
    name: &'static str,
    result: Tensor<T>,
) -> Result<()> {
    if result.shape() != x.shape() {
        let expected = format!("of a shape that broadcasts to {:?}", x.shape());
        return Err(Error::shape(name, "the right operand", expected, result.shape()));
    }
    let (producer, lost) = (result.producer().cloned(), result.lost());
    let new = match result.take() {
        Ok(value) => value,
        Err(result) => result.read().into_owned(),
    };
    x.write(name, |value| *value = new.into_contiguous())?;
    if x.stop_gradient() {
        x.store_lost(x.lost().and(lost));
    }
    if producer.is_some() {
        *x = x.share(producer);
    }
    Ok(())
}

macro_rules! assigning_operators {
    ($($trait:ident $method:ident $op:ident $name:literal $try_name:ident $symbol:literal;)*) => {
        $(
            /// Changes the data in place, for all handles of this tensor. The change is recorded:
            /// gradients flow through this handle as if the result were a new tensor.
            impl<T: Numeric, R: Operand<T>> $trait<R> for Tensor<T> {
                #[track_caller]
                fn $method(&mut self, right: R) {
                    expect(assign(self, Binary::$op, $name, right, Location::caller()))
                }
            }
        )*

        /// # Operators in place that return errors
        impl<T: Numeric> Tensor<T> {
            $(
                #[doc = concat!("`self ", $symbol, " right`, with an error instead of a panic.")]
                ///
                /// ```
                /// use autograd_core::Tensor;
                ///
                /// let (mut x, mut y) = (Tensor::from([6.0, 8.0]), Tensor::from([6.0, 8.0]));
                #[doc = concat!("x.", stringify!($try_name), "(2.0)?;")]
                #[doc = concat!("y ", $symbol, " 2.0;")]
                /// assert_eq!(x.to_vec(), y.to_vec());
                /// # Ok::<(), autograd_core::Error>(())
                /// ```
                ///
                /// # Errors
                ///
                /// [`Error::Unsupported`] on a leaf that wants a gradient while ops are recorded,
                /// [`Error::Broadcast`] or [`Error::Shape`] if the right operand does not
                /// broadcast to this tensor's shape.
                #[track_caller]
                pub fn $try_name(&mut self, right: impl Operand<T>) -> Result<()> {
                    assign(self, Binary::$op, $name, right, Location::caller())
                }
            )*
        }
    };
}

assigning_operators! {
    AddAssign add_assign Add "add_assign" try_add_assign "+=";
    SubAssign sub_assign Sub "sub_assign" try_sub_assign "-=";
    MulAssign mul_assign Mul "mul_assign" try_mul_assign "*=";
    DivAssign div_assign Div "div_assign" try_div_assign "/=";
}

/// # Changes of an element
impl<T: Float> Tensor<T> {
    /// Sets one element in place. The change is recorded: no gradient flows to the old element.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(vec![1.0, 2.0]);
    /// x.set_stop_gradient(false);
    /// let mut h = &x * 1.0;
    /// h.set_item(&[0], 5.0)?;
    /// (&h * &h).sum().backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec(), [0.0, 4.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if there is not one index for each axis, or an index is outside its axis,
    /// [`Error::Unsupported`] on a leaf that wants a gradient while ops are recorded.
    #[track_caller]
    pub fn set_item(&mut self, index: &[usize], element: impl Scalar<T>) -> Result<()> {
        let element = element.scalar();
        self.check_writable("set_item")?;
        let inside =
            index.len() == self.ndim() && index.iter().zip(self.shape()).all(|(i, n)| i < n);
        if !inside {
            let expected = format!("a position in a tensor of shape {:?}", self.shape());
            return Err(Error::shape("set_item", "index", expected, index));
        }
        let strides = crate::array::shape::row_major(self.shape());
        let at: usize = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        let edge = self.edge();
        self.write("set_item", |value| value.make_mut()[at] = element)?;
        if is_grad_enabled() && !matches!(edge, Edge::None(_)) {
            let rule = Rule::new([], move |_, dy: Tensor<T>, _| {
                let keep = (0..dy.len()).map(|i| i != at).collect();
                let keep = Tensor::from_vec(dy.shape_owned(), keep)?;
                Ok([Some(keep.where_else(&dy, Tensor::from_value(Value::scalar(T::ZERO))))])
            });
            let node = rule.record("set_item", Location::caller(), Edges::One(edge));
            *self = self.share(Some((node, 0)));
        }
        Ok(())
    }
}
