//! Derivatives of closures over tensors.
//!
//! Each function calls its closure once, on substitutes for the inputs, so the inputs' `.grad` and
//! `stop_gradient` neither matter nor change. A panic of the closure goes on to the caller.

use std::collections::HashSet;

use crate::engine::{GradOptions, grad_with, reaches, tangent};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Edge, ForwardMode, GradMode, Tensor, is_grad_enabled};
use crate::ops::Float;

/// Returns the value of `f` at `inputs` and, for each input, the product of `cotangent`, of the value's
/// shape, with the derivatives of `f`: zeros for an input that `f` does not use. If ops are recorded, both
/// can be differentiated with respect to all that wants a gradient, also tensors that `f` captured.
///
/// ```
/// use autograd_core::{Tensor, vjp};
///
/// let (x, w) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 4.0]));
/// let (y, grads) = vjp(|t| &t[0] * &t[1], &[x, w], &Tensor::from([1.0, 10.0]))?;
/// assert_eq!(y.to_vec(), [3.0, 8.0]);
/// assert_eq!(grads[0].to_vec(), [3.0, 40.0]);
/// assert_eq!(grads[1].to_vec(), [1.0, 20.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::SeedShape`] if the cotangent has another shape than the value; errors of the backward of `f`.
#[doc(alias = "pullback")]
pub fn vjp<T: Float>(
    f: impl FnOnce(&[Tensor<T>]) -> Tensor<T>,
    inputs: &[Tensor<T>],
    cotangent: &Tensor<T>,
) -> Result<(Tensor<T>, Vec<Tensor<T>>)> {
    let point = Point::new(f, inputs, &[cotangent]);
    if cotangent.shape() != point.y.shape() {
        let (expected, found) = (point.y.shape().to_vec(), cotangent.shape().to_vec());
        let output = "the value of the function".into();
        return Err(Error::SeedShape { op: "vjp", output, expected, found });
    }
    let grads = point.pull(&point.y, cotangent, false, point.record)?;
    let grads = grads.into_iter().zip(&point.inputs).map(|(grad, input)| or_zeros(grad, input));
    let grads = grads.collect();
    Ok((point.value(), grads))
}

/// Returns the value of `f` at `inputs`, and its slope along `tangents`, of the value's shape: forward mode.
///
/// There is one tangent for each input, of its shape. A custom op with a `fn jvp` in its [`macro@crate::py_layer`]
/// block computes its outputs' tangents by it; for another op, or one that another thread calls, a backward
/// through its backward gives them, so that must consist of differentiable ops. Forward mode nests: `f` may
/// call `jvp`, [`grad_with`] or [`vjp`]. See [`vjp`] for further derivatives.
///
/// ```
/// use autograd_core::{Tensor, jvp};
///
/// let (x, dx) = (Tensor::from([1.0, 2.0]), Tensor::from([1.0, 0.5]));
/// let (y, dy) = jvp(|t| t[0].square(), &[x], &[dx])?;
/// assert_eq!(y.to_vec(), [1.0, 4.0]);
/// assert_eq!(dy.to_vec(), [2.0, 2.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Count`] if there is not one tangent for each input, [`Error::Shape`] if one has another
/// shape than its input; also the errors of the backward of `f`.
#[doc(alias = "pushforward")]
pub fn jvp<T: Float>(
    f: impl FnOnce(&[Tensor<T>]) -> Tensor<T>,
    inputs: &[Tensor<T>],
    tangents: &[Tensor<T>],
) -> Result<(Tensor<T>, Tensor<T>)> {
    if tangents.len() != inputs.len() {
        let (expected, found) = (inputs.len(), tangents.len());
        let what = "tangents, one for each input".into();
        return Err(Error::Count { op: "jvp", what, expected, found });
    }
    for (i, (tangent, input)) in tangents.iter().zip(inputs).enumerate() {
        check_shape("jvp", format!("tangents[{i}]"), tangent, input)?;
    }
    let _forward = ForwardMode::start();
    let point = Point::new(f, inputs, &tangents.iter().collect::<Vec<_>>());
    let inputs: Vec<AnyTensor> = point.inputs.iter().map(|x| x.clone().into()).collect();
    let tangents: Vec<_> = tangents.iter().map(|dx| Some(dx.clone().into())).collect();
    let slope = tangent(&point.y.clone().into(), &inputs, &tangents, point.record)?;
    let slope = or_zeros(slope.and_then(T::unwrap), &point.y);
    // The slope may be one of the given tangents.
    let slope = if point.record { slope } else { slope.alias() };
    Ok((point.value(), slope))
}

/// Returns all derivatives `∂f[out..] / ∂x[in..]` at `x`, in shape `[out.., in..]`: `out` is that of `f(x)`,
/// `in` that of `x`. Needs one backward for each element of `f(x)`. See [`vjp`] for further derivatives.
///
/// ```
/// use autograd_core::{Tensor, jacobian};
///
/// let a = Tensor::from_vec([2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let j = jacobian(|x| a.matmul(x), &Tensor::from([0.5, 0.5, 0.5]))?;
/// assert_eq!(j.shape(), [2, 3]);
/// assert_eq!(j.to_vec(), a.to_vec());
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// The errors of the backward of `f`.
pub fn jacobian<T: Float>(
    f: impl FnOnce(&Tensor<T>) -> Tensor<T>,
    x: &Tensor<T>,
) -> Result<Tensor<T>> {
    let point = Point::new(|inputs| f(&inputs[0]), std::slice::from_ref(x), &[]);
    point.rows(&point.y)
}

/// Returns the second derivatives `∂²f / ∂x[i..] ∂x[j..]` of `f`, which returns one element, at `x`, in shape
/// `[in.., in..]`, `in` that of `x`. Needs one backward for each element of `x`. See [`vjp`] for further
/// derivatives.
///
/// ```
/// use autograd_core::{Tensor, hessian};
///
/// let h = hessian(|x| (x.select(0, 0) * x.select(0, 1)).square(), &Tensor::from([1.0, 2.0]))?;
/// assert_eq!(h.to_vec(), [8.0, 8.0, 8.0, 2.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if `f` does not return exactly one element; also the errors of the backward of `f`.
pub fn hessian<T: Float>(
    f: impl FnOnce(&Tensor<T>) -> Tensor<T>,
    x: &Tensor<T>,
) -> Result<Tensor<T>> {
    let point = Point::new(|inputs| f(&inputs[0]), std::slice::from_ref(x), &[]);
    point.rows(&point.gradient("hessian")?)
}

/// Returns the product `h v` of the second derivatives `h` of `f`, which returns one element, at `x`, with `v`,
/// both of the shape of `x`. Needs two backwards. See [`vjp`] for further derivatives.
///
/// ```
/// use autograd_core::{Tensor, hvp};
///
/// let (x, v) = (Tensor::from([1.0, 2.0]), Tensor::from([1.0, -1.0]));
/// assert_eq!(hvp(|x| (x.square() * x).sum(), &x, &v)?.to_vec(), [6.0, -12.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Shape`] if `v` has another shape than `x` or `f` does not return exactly one element; also the
/// errors of the backward of `f`.
pub fn hvp<T: Float>(
    f: impl FnOnce(&Tensor<T>) -> Tensor<T>,
    x: &Tensor<T>,
    v: &Tensor<T>,
) -> Result<Tensor<T>> {
    check_shape("hvp", "v", v, x)?;
    let point = Point::new(|inputs| f(&inputs[0]), std::slice::from_ref(x), &[v]);
    let gradient = point.gradient("hvp")?;
    let product = point.pull(&gradient, v, false, point.record)?.pop().flatten();
    Ok(or_zeros(product, x))
}

struct Point<T: Float> {
    /// The substitutes for the inputs that the closure was called on.
    inputs: Vec<Tensor<T>>,
    y: Tensor<T>,
    /// Whether the results can be differentiated outside of this call.
    record: bool,
}

impl<T: Float> Point<T> {
    /// `others` are the tensors that later computations use.
    fn new(
        f: impl FnOnce(&[Tensor<T>]) -> Tensor<T>,
        inputs: &[Tensor<T>],
        others: &[&Tensor<T>],
    ) -> Self {
        let stand_in = |input: &Tensor<T>| {
            if input.would_record() {
                return input.reshape(input.shape_owned());
            }
            let leaf = input.alias();
            leaf.set_stop_gradient(false);
            leaf
        };
        let inputs: Vec<_> = inputs.iter().map(stand_in).collect();
        let y = GradMode::of(true, || f(&inputs));
        let own: HashSet<_> = inputs.iter().map(Tensor::address).collect();
        let foreign =
            |edge: &Edge| matches!(edge, Edge::Leaf(leaf) if !own.contains(&leaf.address()));
        let record = is_grad_enabled()
            && (others.iter().any(|other| !other.stop_gradient()) || reaches(&y.edge(), foreign));
        Self { inputs, y, record }
    }

    /// The closure's value; part of a graph only if that leads out of this call.
    fn value(&self) -> Tensor<T> {
        if self.record { self.y.clone() } else { self.y.alias() }
    }

    fn pull(
        &self,
        y: &Tensor<T>,
        cotangent: &Tensor<T>,
        retain: bool,
        record: bool,
    ) -> Result<Vec<Option<Tensor<T>>>> {
        if self.inputs.is_empty() {
            return Ok(Vec::new());
        }
        let options = GradOptions::new()
            .seeds(vec![Some(cotangent.clone())])
            .allow_unused(true)
            .retain_graph(retain || record)
            .create_graph(record);
        grad_with(&[y], &self.inputs.iter().collect::<Vec<_>>(), options)
    }

    fn gradient(&self, op: &'static str) -> Result<Tensor<T>> {
        if self.y.len() != 1 {
            let parameter = "what the closure returns";
            return Err(Error::shape(op, parameter, "of one element", self.y.shape()));
        }
        let gradient = self.pull(&self.y, &Tensor::ones_like(&self.y), true, true)?.pop();
        Ok(or_zeros(gradient.flatten(), &self.inputs[0]))
    }

    fn rows(&self, y: &Tensor<T>) -> Result<Tensor<T>> {
        let x = &self.inputs[0];
        let shape: Vec<usize> = y.shape().iter().chain(x.shape()).copied().collect();
        let mut rows = Vec::with_capacity(y.len());
        for element in 0..y.len() {
            let mut seed = vec![T::ZERO; y.len()];
            seed[element] = T::ONE;
            let seed = Tensor::from_vec(y.shape_owned(), seed)?;
            let last = element + 1 == y.len();
            let row = self.pull(y, &seed, !last, self.record)?.pop().flatten();
            rows.push(or_zeros(row, x));
        }
        if rows.is_empty() {
            return Ok(Tensor::zeros(shape));
        }
        GradMode::of(self.record, || {
            Ok(Tensor::stack(rows.iter().collect::<Vec<_>>(), 0).reshape(shape))
        })
    }
}

fn or_zeros<T: Float>(grad: Option<Tensor<T>>, like: &Tensor<T>) -> Tensor<T> {
    grad.unwrap_or_else(|| Tensor::zeros_like(like))
}

fn check_shape<T: Float>(
    op: &'static str,
    parameter: impl Into<String>,
    found: &Tensor<T>,
    like: &Tensor<T>,
) -> Result<()> {
    if found.shape() == like.shape() {
        return Ok(());
    }
    let expected = format!("of its input's shape {:?}", like.shape());
    Err(Error::shape(op, parameter, expected, found.shape()))
}
