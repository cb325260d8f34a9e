//! Normalization along axes to mean 0 and variance 1 (Ba et al. 2016).

use std::panic::Location;

use super::super::call::call_at;
use super::super::shape::signed;
use super::super::table::{
    Attr, OpDef, Type, broadcast, entries, float, for_programs, reduced, same_dtype,
};
use super::super::{Binary, Caller, Float, HasMean, Input, pairs};
use super::kernels::{RowPull, normalize as normalize_rows, pull_rows};
use super::{are_in_range, floats, in_range, scale_of};
use crate::array::shape::{axes as check_axes, count};
use crate::array::{IntoAxes, Shape, Value};
use crate::error::Result;
use crate::fuse;
use crate::graph::{Element, GradMode, Rule, Saved, SavedReader, Tensor, finish, is_grad_enabled};

/// The maximum length of rows that are normalized in one pass each.
const LONGEST_ROW: usize = 16 * 1024;

/// The weight and the bias of the result, in the shape of a row.
pub(crate) type Weights<'a, T> = Option<[&'a Tensor<T>; 2]>;

entries! {
    NORMALIZATIONS:

    /// Inputs: `x`, or `x` with a weight and a bias.
    NORMALIZE = OpDef {
        attrs: &[("axes", Type::Ints), ("eps", Type::Number)],
        infer: for_programs(|op, inputs| {
            let (x, weights) = match inputs {
                [x] => (x, None),
                [x, weight, bias] => (x, Some([weight, bias])),
                _ => return Err(format!("takes 1 or 3 inputs, found {}", inputs.len())),
            };
            reduced(&x.dims, op.ints(0), true)?;
            let mut y = float(x)?.clone();
            for part in weights.into_iter().flatten() {
                same_dtype(x, part)?;
                y.dims = broadcast(&y.dims, &part.dims)?;
            }
            Ok(vec![y])
        }),
        run: |op, values, at| floats!(values, |x| {
            let weights = x.get(1).zip(x.get(2)).map(|(&weight, &bias)| [weight, bias]);
            normalize(x[0], weights, op.ints(0), op.number(1), at)
        }),
        ..OpDef::new("normalize")
    };
}

pub(crate) fn layer_norm<T: Float>(
    x: &Tensor<T>,
    weights: Weights<'_, T>,
    axes: &[isize],
    eps: f64,
    caller: Caller,
) -> Result<Tensor<T>> {
    let inputs = std::iter::once(x).chain(weights.into_iter().flatten());
    let attrs = [Attr::Ints(axes.to_vec()), Attr::Number(eps)];
    call_at(&NORMALIZE, attrs, inputs.map(Tensor::untyped), caller)
}

fn normalize<T: Float>(
    x: &Tensor<T>,
    weights: Weights<'_, T>,
    axes: &[isize],
    eps: f64,
    caller: Caller,
) -> Result<Tensor<T>> {
    let positions = check_axes("normalize", axes, x.ndim())?;
    let (axes, row) = (signed(&positions), row_length(x.shape(), &positions));
    let (value, scale) = match row.map(|n| normalized_rows(x, n, eps)) {
        Some((value, scales)) if has_no_nan(&scales) => (value, Tensor::from_value(scales)),
        rows => GradMode::of(false, || {
            let Parts { mut normal, mut scale, .. } = parts(x, &axes, eps);
            if let Some((value, scales)) = rows {
                let scales = Tensor::from_value(scales).reshape(scale.shape());
                let lost = scales.is_nan();
                normal = lost.where_else(normal, Tensor::from_value(value));
                scale = lost.where_else(scale, scales);
            }
            // Adding 0 removes the sign of a zero.
            let value = (normal + 0.0).read().contiguous().into_owned();
            (value, scale)
        }),
    };
    let normal = finish(NORMALIZE.name, caller, &[x], value.clone(), || {
        let saved = [Saved::input(0, x), Saved::plain((Tensor::from_value(value), scale))];
        let again = axes.clone();
        Rule::new(saved, move |saved, dy: Tensor<T>, _| {
            Ok([Some(pull(saved, (&axes, row, eps), &dy)?)])
        })
        // The derivative is symmetric, so it is its own transpose.
        .with_push(move |saved, tangents: &[Option<Tensor<T>>], _| {
            tangents[0].as_ref().map(|dx| pull(saved, (&again, row, eps), dx)).transpose()
        })
    });
    let Some([weight, bias]) = weights else { return Ok(normal) };
    let scaled = T::binary(Binary::Mul, Input::Own(normal), Input::Ref(weight), caller)?;
    T::binary(Binary::Add, Input::Own(scaled), Input::Ref(bias), caller)
}

/// Returns the number of elements along the axes if these are the last ones, and as many fit a cache.
fn row_length(shape: &[usize], positions: &[usize]) -> Option<usize> {
    let first = shape.len() - positions.len();
    let n = count(&shape[first..]);
    let last = positions.iter().copied().eq(first..shape.len());
    (last && (1..=LONGEST_ROW).contains(&n)).then_some(n)
}

/// Returns `x` with each row of `n` elements normalized, and the scales: NaN if a row's squares are out of range.
fn normalized_rows<T: Float>(x: &Tensor<T>, n: usize, eps: f64) -> (Value<T>, Value<T>) {
    let mut scales = Value::any(Shape::from_slice(&[x.len() / n]));
    let value = x.row_major(x.shape_owned(), |x, out| {
        normalize_rows(x, n, T::from_f64(eps), [out, scales.make_mut()]);
    });
    (value, scales)
}

fn has_no_nan<T: Float>(scales: &Value<T>) -> bool {
    scales.as_slice().is_some_and(|scales| scales.iter().all(|scale| !scale.is_nan()))
}

/// `x` normalized along axes, and intermediate results, whose axes stay with length 1.
#[cfg_attr(
    not(feature = "nn"),
    allow(dead_code, reason = "batch normalization reads mean and variance")
)]
pub(super) struct Parts<T: Float> {
    /// `(x - mean) * scale`.
    pub(super) normal: Tensor<T>,
    /// `1 / sqrt(var + eps)`.
    pub(super) scale: Tensor<T>,
    pub(super) mean: Tensor<T>,
    pub(super) var: Tensor<T>,
}

pub(super) fn parts<T: Float>(x: &Tensor<T>, axes: &[isize], eps: f64) -> Parts<T> {
    let mean = x.mean_axes_keep(axes);
    let centered = x - &mean;
    let var = centered.square().mean_axes_keep(axes);
    let shifted = &var + eps;
    if are_in_range(&shifted) || x.is_empty() {
        let scale = shifted.rsqrt();
        return Parts { normal: centered * &scale, scale, mean, var };
    }
    // A row in range keeps its unit, so that its result does not depend on other rows. The others' is at least the
    // root of `eps`, so that `eps` divided by the squared unit is in range.
    let usable = in_range(&shifted);
    let unit = usable.where_else(T::ONE, scale_of(x, axes, eps.sqrt()));
    let least = usable.where_else(T::from_f64(eps), (eps.sqrt() / &unit).square());
    // Of equal elements `var` is 0, and `least` can underflow to 0. The scale is that of a `var` of 0 at most.
    let most = (&unit / eps.sqrt()).minimum(if eps > 0.0 { T::max_value() } else { T::infinity() });
    let most = usable.where_else(T::infinity(), most);
    let scaled = x / &unit;
    let mean = scaled.mean_axes_keep(axes);
    let centered = scaled - &mean;
    let var = centered.square().mean_axes_keep(axes);
    let scale = fuse!(|var, least, most| (var + least).rsqrt().min(most));
    Parts {
        normal: centered * &scale,
        scale: scale / &unit,
        mean: mean * &unit,
        var: var * &unit * &unit,
    }
}

/// `dx = (dy - mean(dy) - z mean(z dy)) s` with the result `z` and the scales `s`.
fn pull<T: Float>(
    saved: &mut SavedReader<'_>,
    (axes, row, eps): (&[isize], Option<usize>, f64),
    dy: &Tensor<T>,
) -> Result<Tensor<T>> {
    let (x, done) = (saved.tensor()?, saved.plain::<(Tensor<T>, Tensor<T>)>());
    let (z, s) = match (is_grad_enabled(), row) {
        (true, _) => {
            let Parts { normal, scale, .. } = parts(&x, axes, eps);
            (normal, scale)
        }
        (false, None) => (done.0.clone(), done.1.clone()),
        (false, Some(n)) => {
            let (z, s) = (done.0.read(), done.1.read());
            let (z, s) = (z.contiguous(), s.contiguous());
            let (z, s) = (z.as_slice().unwrap_or(&[]), s.as_slice().unwrap_or(&[]));
            return Ok(Tensor::from_value(dy.row_major(x.shape_owned(), |dy, dx| {
                pull_rows(dx, [dy, z], n, RowPull::Normalize(s));
            })));
        }
    };
    let (mean, along) = (dy.mean_axes_keep(axes), (&z * dy).mean_axes_keep(axes));
    Ok(fuse!(|dy, mean, z, along, s| (dy - mean - z * along) * s))
}

/// # Normalization
impl<T: Element> Tensor<T> {
    pairs! {
        /// Returns `(x - mean) / sqrt(var + eps)` in the shape of `x`, with the mean and the variance of each group
        /// of elements along `axes`: layer normalization (Ba, Kiros and Hinton 2016) along the last axes, batch
        /// normalization (Ioffe and Szegedy 2015) along all but the channels, without scale and shift. Squares do
        /// not overflow. Equal elements give 0; if `eps` is 0, they give NaN where their mean is exact.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 3.0], [10.0, 30.0]]);
        /// assert_eq!(x.normalize(&[1], 0.0).to_vec(), [-1.0, 1.0, -1.0, 1.0]);
        /// ```
        #[doc(alias = "layer_norm")]
        #[doc(alias = "batch_norm")]
        pub fn normalize, try_normalize(&self, axes: impl IntoAxes, eps: f64) -> Tensor<T>, Axis if
            "an axis does not exist or is given twice",
            "Tensor::from([1.0, 2.0]).try_normalize(1, 0.0)" => Axis
            where T: HasMean
        {
            layer_norm(self, None, axes.as_axes(), eps, Location::caller())
        }
    }
}
