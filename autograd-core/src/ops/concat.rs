//! Tensors joined along an axis.

use std::borrow::Borrow;

use super::call::call;
use super::layout::inserted_axes;
use super::table::{
    Attr, Form, Inferred, OpDef, Ran, ShapeOf, Type, Values, all, computed, entries, for_programs,
    position, same_dtype,
};
use super::{Caller, expect, pairs};
use crate::array::shape::{axis as check_axis, element_count};
use crate::array::{Shape, Value};
use crate::error::{Error, Result};
use crate::graph::{Composite, Element, Rule, Tensor, finish, for_any};

entries! {
    CONCATENATIONS:

    CONCAT = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: for_programs(|op, inputs| concatenated(inputs, op.int(0))),
        run: |op, values, at| {
            fn typed<T: Element>(_: &Tensor<T>, of: (&Values, isize), at: Caller) -> Ran {
                computed(concat(&all::<T>(of.0)?, of.1, at))
            }
            let first = values.first().cloned().ok_or_else(no_tensors)?;
            for_any!(&first, x => typed(x, (&values, op.int(0)), at))
        },
        ..OpDef::new("concat")
    };
}

fn concatenated(inputs: &[&Form], axis: isize) -> Inferred {
    let Some((first, rest)) = inputs.split_first() else {
        return Err("takes one input or more, found none".to_owned());
    };
    let at = position(axis, first.dims.len())?;
    let mut out = (*first).clone();
    for form in rest {
        same_dtype(first, form)?;
        let differ = |how: String| {
            let (first, other) = (ShapeOf(&first.dims), ShapeOf(&form.dims));
            Err(format!("shapes {first} and {other} differ {how}"))
        };
        if form.dims.len() != out.dims.len() {
            return differ("in rank".to_owned());
        }
        for (i, (dim, other)) in out.dims.iter_mut().zip(&form.dims).enumerate() {
            *dim = match (*dim, *other) {
                (Some(a), Some(b)) if i == at => Some(a.checked_add(b).ok_or_else(|| {
                    format!("{a} and {b} on axis {axis} are too large for this machine")
                })?),
                (_, _) if i == at => None,
                (Some(a), Some(b)) if a != b => return differ(format!("beside axis {axis}")),
                (a, b) => a.or(b),
            };
        }
    }
    Ok(vec![out])
}

/// A list of tensors of one element type: `&[&a, &b]`, a slice or a `Vec` of tensors or of references.
///
/// ```
/// use autograd_core::Tensor;
///
/// let (a, b) = (Tensor::from([1.0]), Tensor::from([2.0]));
/// assert_eq!(Tensor::concat(&[&b, &a], 0).to_vec(), [2.0, 1.0]);
/// let list = vec![a, b];
/// assert_eq!(Tensor::concat(&list[1..], 0).to_vec(), [2.0]);
/// assert_eq!(Tensor::concat(&list, 0).to_vec(), [1.0, 2.0]);
/// assert_eq!(Tensor::stack(list, 0).shape(), [2, 1]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of tensors of `{T}`",
    label = "write `&[&a, &b]`, or pass a `Vec` or a slice of tensors"
)]
pub trait TensorList<T: Element> {
    #[doc(hidden)]
    fn tensors(&self) -> Vec<&Tensor<T>>;
}

// Not for an array itself: clippy would call the `&` of `&[&a, &b]` needless.
macro_rules! lists {
    ($([$($generics:tt)*] $list:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Element, R: Borrow<Tensor<T>>, $($generics)*> TensorList<T> for $list {
            fn tensors(&self) -> Vec<&Tensor<T>> {
                self.iter().map(Borrow::borrow).collect()
            }
        }
    )*};
}

lists! {
    [] &[R];
    [const N: usize] &[R; N];
    [] &Vec<R>;
    [] Vec<R>;
}

/// # Joins
impl<T: Element> Tensor<T> {
    pairs! {
        /// Joins tensors along an axis; their other axes must agree.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let (a, b) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0]));
        /// assert_eq!(Tensor::concat(&[&a, &b], 0).to_vec(), [1.0, 2.0, 3.0]);
        /// assert_eq!(Tensor::concat(vec![a, b], 0).len(), 3);
        /// ```
        #[doc(alias = "cat")]
        #[doc(alias = "concatenate")]
        pub fn concat, try_concat(tensors: impl TensorList<T>, axis: isize) -> Tensor<T>,
            Count | Axis | Shape if "there is no tensor, no such axis, or the other axes differ",
            "Tensor::try_concat(&[Tensor::<f64>::ones([2, 2]), Tensor::ones([1, 3])], 0)" => Shape {
            call(&CONCAT, [Attr::Int(axis)], tensors.tensors().iter().map(|x| x.untyped()))
        }

        /// Joins tensors of one shape along a new axis.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let (a, b) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 4.0]));
        /// assert_eq!(Tensor::stack(&[&a, &b], 0).shape(), [2, 2]);
        /// ```
        pub fn stack(tensors: impl TensorList<T>, axis: isize) -> Tensor<T>,
            Panics if "there is no tensor, no such position for an axis, or the shapes differ" {
            let tensors = tensors.tensors();
            if let Some(first) = tensors.first() {
                expect(inserted_axes("stack", &[axis], first.ndim()));
                if let Some(i) = tensors.iter().position(|t| t.shape() != first.shape()) {
                    let parameter = format!("tensors[{i}]");
                    let expected = format!("of shape {:?}, as the first is", first.shape());
                    expect(Err(Error::shape("stack", parameter, expected, tensors[i].shape())))
                }
            }
            let _composite = Composite::here("stack");
            let raised: Vec<Tensor<T>> = tensors.iter().map(|t| t.unsqueeze(axis)).collect();
            let stacked = Tensor::try_concat(raised, axis);
            expect(stacked.map_err(|error| error.called("stack")))
        }
    }
}

fn no_tensors() -> Error {
    Error::Count { op: "concat", what: "or more tensors".into(), expected: 1, found: 0 }
}

fn concat_shape(shapes: &[&[usize]], axis: isize) -> Result<(Shape, usize)> {
    let first = *shapes.first().ok_or_else(no_tensors)?;
    let position = check_axis("concat", axis, first.len())?;
    let mut shape = Shape::from_slice(first);
    shape[position] = 0;
    for (i, own) in shapes.iter().enumerate() {
        let agrees = own.len() == shape.len()
            && (0..shape.len()).all(|k| k == position || own[k] == first[k]);
        if !agrees {
            let parameter = format!("tensors[{i}]");
            let expected =
                format!("of the first tensor's shape {first:?} except along axis {axis}");
            return Err(Error::shape("concat", parameter, expected, own));
        }
        shape[position] = shape[position].saturating_add(own[position]);
    }
    element_count("concat", &shape)?;
    Ok((shape, position))
}

fn concat<T: Element>(tensors: &[&Tensor<T>], axis: isize, caller: Caller) -> Result<Tensor<T>> {
    let (mut shapes, mut parts) = (Vec::new(), Vec::new());
    for tensor in tensors {
        shapes.push(tensor.shape());
        parts.push(tensor.read().into_owned().into_contiguous());
    }
    let (shape, position) = concat_shape(&shapes, axis)?;
    // 0 if there is nothing to copy: other axes may then have any length.
    let outer: usize = if shape.contains(&0) { 0 } else { shape[..position].iter().product() };
    let value = Value::written(shape, &mut |mut out| {
        for row in 0..outer {
            for part in &parts {
                let data = part.as_slice().unwrap_or(&[]);
                let n = data.len() / outer;
                let (to, rest) = out.split_at_mut(n);
                to.copy_from_slice(&data[row * n..(row + 1) * n]);
                out = rest;
            }
        }
    });
    Ok(finish(CONCAT.name, caller, tensors, value, || {
        let lengths: Vec<usize> = shapes.iter().map(|shape| shape[position]).collect();
        let again = lengths.clone();
        Rule::new([], move |_, dy: Tensor<T>, wants| {
            let (mut start, mut grads) = (0, Vec::new());
            for (&n, &wanted) in lengths.iter().zip(wants) {
                grads.push(wanted.then(|| dy.narrow(axis, start, n)));
                start += n;
            }
            Ok(grads)
        })
        .with_push(move |_, tangents: &[Option<Tensor<T>>], shape| {
            let mut parts = Vec::new();
            for (dx, &n) in tangents.iter().zip(&again) {
                let mut part = Shape::from_slice(shape);
                part[position] = n;
                parts.push(dx.clone().unwrap_or_else(|| Tensor::zeros(part)));
            }
            Tensor::try_concat(parts, axis).map(Some)
        })
    }))
}
