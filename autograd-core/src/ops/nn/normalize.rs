//! Normalisation of rows: of each, the mean is taken away, and what is left is divided by the standard
//! deviation (Ba et al. 2016).

use std::sync::Arc;

use super::super::call::call_at;
use super::super::reduce::sum_rows;
use super::super::table::attr::{Attr, Type};
use super::super::table::forms::{broadcast, float as float_form, reduced, same_dtype};
use super::super::table::values::{Ran, all, computed};
use super::super::table::{OpDef, Operator, entries};
use super::super::{Caller, Float, joined as added};
use super::rows::{CHUNK, Given, joined, total};
use super::{are_in_range, is_in_range, scale_of, to_write_over};
use crate::array::shape::axes as check_axes;
use crate::array::simd::{Kernel, dispatch};
use crate::array::threads::each_chunks;
use crate::array::{Shape, Value};
use crate::error::Result;
use crate::graph::{
    AnyTensor, Hidden, PushRule, SavedAttr, SavedInput, Tensor, is_grad_enabled, record,
    unrecorded, with_push,
};

/// By what the result is multiplied and what is added then, of the shape of a row.
pub(crate) type Weights<'a, T> = Option<[&'a Tensor<T>; 2]>;

/// The longest row that one thread takes at once; longer ones are normalised op by op.
const LONGEST: usize = CHUNK;
/// Most rows whose gradients of the weights are summed one by one.
const ROWS: usize = 256;
/// Numbers that are summed side by side.
const LANES: usize = 16;

entries! {
    NORMALIZATIONS:

    /// Of `x`, or of `x` and then times a weight, plus a bias.
    NORMALIZE = OpDef {
        attrs: &[("axes", Type::Ints), ("eps", Type::Number)],
        infer: |op, inputs| {
            let (x, weights) = match inputs {
                [x] => (x, None),
                [x, weight, bias] => (x, Some([weight, bias])),
                _ => return Err(format!("takes 1 or 3 inputs, found {}", inputs.len())),
            };
            reduced(&x.dims, op.ints(0), true)?;
            let mut y = float_form(x)?.clone();
            for part in weights.into_iter().flatten() {
                same_dtype(x, part)?;
                y.dims = broadcast(&y.dims, &part.dims)?;
            }
            Ok(vec![y])
        },
        run: |op, values, at| match values.first() {
            Some(AnyTensor::Float32(_)) => typed::<f32>(op, &values, at),
            Some(AnyTensor::Float64(_)) => typed::<f64>(op, &values, at),
            _ => Err("takes float32 or float64".into()),
        },
        ..OpDef::new("normalize")
    };
}

fn typed<T: Float>(op: &Operator, values: &[AnyTensor], at: Caller) -> Ran {
    let (x, weights) = match all::<T>(values)?[..] {
        [x, weight, bias] => (x, Some([weight, bias])),
        ref inputs => (inputs[0], None),
    };
    computed(normalize(x, weights, op.ints(0), op.number(1), at))
}

/// Layer normalisation: `x` along the axes, times a weight, plus a bias.
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
    let rank = x.ndim() - positions.len();
    let last = positions.iter().enumerate().all(|(i, &position)| position == rank + i);
    let n: usize = positions.iter().map(|&position| x.shape()[position]).product();
    // The parts of a layer are public: others may be broadcast, or do not fit, which an operator tells.
    let row = &x.shape()[rank..];
    let fit = weights.is_none_or(|weights| weights.iter().all(|part| part.shape() == row));
    if !last || !fit || x.is_empty() || n > LONGEST {
        let axes: Vec<isize> = positions.iter().map(|&position| position as isize).collect();
        let Parts { normal, .. } = parts(x, &axes, eps);
        return match weights {
            Some([weight, bias]) => (normal * weight).try_add(bias),
            None => Ok(normal),
        };
    }
    let mut stats = Value::full(Shape::from_slice(&[x.len() / n, 2]), T::ZERO);
    let value = {
        let read = x.read();
        let data = read.contiguous();
        let data = data.as_slice().unwrap_or(&[]);
        let weight = row_of(weights.map(|[weight, _]| weight), T::ONE, n);
        let bias = row_of(weights.map(|[_, bias]| bias), T::ZERO, n);
        let affine = [&weight, &bias].map(|row| row.as_slice().unwrap_or(&[]));
        let eps = T::from_f64(eps);
        Value::written(x.shape_owned(), |out| {
            T::normalize(data, affine, eps, [out, stats.make_mut()]);
        })
    };
    let weight = weights.map(|[weight, _]| SavedInput::at(1, weight));
    let plain = (Hidden(Arc::new(stats)), SavedAttr((positions.len(), eps)));
    let state = with_push::<T, _, _>(Tangent, (SavedInput::at(0, x), weight, plain.0, plain.1));
    Ok(match weights {
        None if x.is_recorded() => record("normalize", caller, [x], value, state, |kept, dy, _| {
            let [dx, ..] = pull(kept, dy);
            Ok([Some(dx)])
        }),
        None => unrecorded("normalize", caller, [x], value),
        Some([weight, bias]) => {
            let inputs = [x, weight, bias];
            if !inputs.iter().any(|input| input.is_recorded()) {
                return Ok(unrecorded("layer_norm", caller, inputs, value));
            }
            record("layer_norm", caller, inputs, value, state, |kept, dy, _| {
                Ok(pull(kept, dy).map(Some))
            })
        }
    })
}

/// The numbers of a row; all are the same where there is no tensor.
fn row_of<T: Float>(tensor: Option<&Tensor<T>>, otherwise: T, n: usize) -> Value<T> {
    match tensor {
        Some(tensor) => tensor.read().contiguous().into_owned(),
        None => Value::full(Shape::from_slice(&[n]), otherwise),
    }
}

/// `x` normalised along axes, and what that was made of; axes stay.
#[cfg_attr(
    not(feature = "nn"),
    allow(dead_code, reason = "batch normalisation reads mean and variance")
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
    // At least the root of `eps`, so that `eps` over the square is in range.
    let unit = scale_of(x, axes, eps.sqrt());
    let scaled = x / &unit;
    let mean = scaled.mean_axes_keep(axes);
    let centered = scaled - &mean;
    let var = centered.square().mean_axes_keep(axes);
    let scale = (&var + (eps.sqrt() / &unit).square()).rsqrt();
    Parts {
        normal: centered * &scale,
        scale: scale / &unit,
        mean: mean * &unit,
        var: var * &unit * &unit,
    }
}

/// Input, weight; mean and scale of each row, how many axes a row has, what was added to the
/// variance.
type State<T> = (SavedInput<T>, Option<SavedInput<T>>, Hidden<Value<T>>, SavedAttr<(usize, f64)>);
type Kept<T> = (Tensor<T>, Option<Tensor<T>>, Arc<Value<T>>, (usize, f64));

/// With the normalised rows `z` and their scales `s`: `dz = (dx - mean(dx) - z mean(z dx)) s`, and for
/// `y = z w + b`, `dy = dz w + z dw + db`.
struct Tangent;

impl<T: Float> PushRule<T, State<T>> for Tangent {
    fn push(
        (x, weight, _, (axes, eps)): Kept<T>,
        tangents: &[Option<Tensor<T>>],
        shape: &[usize],
    ) -> Result<Option<Tensor<T>>> {
        let axes = last_axes(axes);
        let Parts { normal: z, scale, .. } = parts(&x, &axes, eps);
        let [dx, dw, db] = [0, 1, 2].map(|input| tangents.get(input).cloned().flatten());
        let dz = dx.map(|dx| {
            let along = (&z * &dx).mean_axes_keep(&axes);
            let dz = (&dx - dx.mean_axes_keep(&axes) - &z * along) * scale;
            weight.map_or_else(|| dz.clone(), |weight| &dz * weight)
        });
        let dy = added(added(dz, dw.map(|dw| z * dw)), db);
        Ok(dy.map(|dy| if dy.shape() == shape { dy } else { dy.broadcast_to(shape) }))
    }
}

/// As ops name them.
fn last_axes(count: usize) -> Vec<isize> {
    (1..=count as isize).map(|axis| -axis).collect()
}

/// With the normalised rows `z` and their scales `s`, for `y = z w + b`: `db = dy` and `dw = dy z`,
/// summed over the rows, and with `g = dy w`, `dx = (g - mean(g) - z mean(g z)) s`.
fn pull<T: Float>((x, weight, stats, (axes, eps)): Kept<T>, dy: Tensor<T>) -> [Tensor<T>; 3] {
    let row = Shape::from_slice(&x.shape()[x.ndim() - axes..]);
    if is_grad_enabled() {
        let axes = last_axes(axes);
        let Parts { normal: z, scale, .. } = parts(&x, &axes, eps);
        let g = weight.map_or_else(|| dy.clone(), |weight| &dy * weight);
        let along = (&g * &z).mean_axes_keep(&axes);
        let dx = (&g - g.mean_axes_keep(&axes) - &z * along) * scale;
        return [dx, (&dy * z).sum_to(&row), dy.sum_to(&row)];
    }
    let n = row.iter().product();
    let (mut dx, from) = to_write_over(dy);
    let sums = {
        let read = x.read();
        let data = read.contiguous();
        let weight = row_of(weight.as_ref(), T::ONE, n);
        let [data, stats, weight] =
            [&*data, &stats, &weight].map(|value| value.as_slice().unwrap_or(&[]));
        T::normalize_pull(dx.make_mut(), from.as_ref(), [data, stats, weight])
    };
    let sums = sums.as_slice().unwrap_or(&[]);
    let part = |part: &[T]| Tensor::new(Value::from_slice(row.clone(), part));
    [Tensor::new(dx), part(&sums[..n]), part(&sums[n..])]
}

/// Rows that are a part of the work.
fn at_once(n: usize) -> usize {
    (CHUNK / n).clamp(1, ROWS)
}

struct Normalize<'a, T> {
    x: &'a [T],
    affine: [&'a [T]; 2],
    eps: T,
    out: &'a mut [T],
    stats: &'a mut [T],
}

impl<T: Float> Kernel for Normalize<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { x, affine: [weight, bias], eps, out, stats } = self;
        let n = weight.len();
        let count = T::from_f64(n as f64);
        let rows = x.chunks_exact(n).zip(out.chunks_exact_mut(n));
        for ((x, out), stats) in rows.zip(stats.as_chunks_mut::<2>().0) {
            let mean = total(x) / count;
            let square = |x: T| (x - mean) * (x - mean);
            let variance = joined(x, T::ZERO, square, T::plus) / count + eps;
            if !is_in_range(variance) {
                *stats = scaled_row(x, [weight, bias], eps, out);
                continue;
            }
            let scale = T::ONE / num_traits::Float::sqrt(variance);
            *stats = [mean, scale];
            for ((out, &x), (&w, &b)) in out.iter_mut().zip(x).zip(weight.iter().zip(bias)) {
                *out = (x - mean) * scale * w + b;
            }
        }
    }
}

/// A row whose squares are out of range, or no numbers, divided by its largest magnitude first.
#[cold]
#[inline(never)]
fn scaled_row<T: Float>(x: &[T], [weight, bias]: [&[T]; 2], eps: T, out: &mut [T]) -> [T; 2] {
    let root = num_traits::Float::sqrt(eps);
    let larger = |a: T, &b: &T| if b.magnitude() > a { b.magnitude() } else { a };
    let unit = x.iter().fold(root, larger);
    let count = T::from_f64(x.len() as f64);
    let mean = x.iter().fold(T::ZERO, |sum, &x| sum + x / unit) / count;
    let square = |x: T| (x / unit - mean) * (x / unit - mean);
    let variance = x.iter().fold(T::ZERO, |sum, &x| sum + square(x)) / count;
    let scale = T::ONE / num_traits::Float::sqrt(variance + eps / unit / unit);
    for ((out, &x), (&w, &b)) in out.iter_mut().zip(x).zip(weight.iter().zip(bias)) {
        *out = (x / unit - mean) * scale * w + b;
    }
    [mean * unit, scale / unit]
}

/// Each row of `x` normalised, times the first row of `affine`, plus the second, in `out`; its mean
/// and its scale in `stats`.
pub(super) fn rows<T: Float>(x: &[T], affine: [&[T]; 2], eps: T, [out, stats]: [&mut [T]; 2]) {
    let n = affine[0].len();
    let rows = at_once(n);
    each_chunks([out, stats], [rows * n, rows * 2], &|chunk, [out, stats]| {
        let x = &x[chunk * rows * n..][..out.len()];
        dispatch(Normalize { x, affine, eps, out, stats });
    });
}

struct NormalizePull<'a, T> {
    dy: &'a mut [T],
    x: &'a [T],
    stats: &'a [T],
    weight: &'a [T],
    sums: &'a mut [T],
}

impl<T: Float> Kernel for NormalizePull<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { dy, x, stats, weight, sums } = self;
        let n = weight.len();
        let count = T::from_f64(n as f64);
        sums.fill(T::ZERO);
        let (of_weight, of_bias) = sums.split_at_mut(n);
        let rows = dy.chunks_exact_mut(n).zip(x.chunks_exact(n));
        for ((dy, x), &[mean, scale]) in rows.zip(stats.as_chunks::<2>().0) {
            let [mut along, mut across] = [[T::ZERO; LANES]; 2];
            let (dys, xs) = (dy.as_chunks::<LANES>(), x.as_chunks::<LANES>());
            let weights = weight.as_chunks::<LANES>();
            for ((dy, x), w) in dys.0.iter().zip(xs.0).zip(weights.0) {
                for i in 0..LANES {
                    let g = dy[i] * w[i];
                    along[i] = along[i] + g;
                    across[i] = across[i] + g * ((x[i] - mean) * scale);
                }
            }
            for (i, ((&dy, &x), &w)) in dys.1.iter().zip(xs.1).zip(weights.1).enumerate() {
                let g = dy * w;
                along[i] = along[i] + g;
                across[i] = across[i] + g * ((x - mean) * scale);
            }
            let [along, across] = [along, across].map(|lanes| total(&lanes) / count);
            let sums = of_weight.iter_mut().zip(of_bias.iter_mut());
            for (((dy, &x), &w), (dw, db)) in dy.iter_mut().zip(x).zip(weight).zip(sums) {
                let z = (x - mean) * scale;
                *dw = *dw + *dy * z;
                *db = *db + *dy;
                *dy = (*dy * w - along - z * across) * scale;
            }
        }
    }
}

/// From the gradients of the results, in their place or [`Given`], those of the rows; and those of weight
/// and bias, one after the other.
pub(super) fn pull_rows<T: Float>(
    dy: &mut [T],
    from: Option<&Value<T>>,
    [x, stats, weight]: [&[T]; 3],
) -> Value<T> {
    let n = weight.len();
    let rows = at_once(n);
    let chunks = x.len().div_ceil(rows * n);
    let sums = Value::written(Shape::from_slice(&[chunks, 2 * n]), |sums| {
        each_chunks([dy, sums], [rows * n, 2 * n], &|chunk, [dy, sums]| {
            let at = chunk * rows * n;
            Given::new(from, at).put(dy);
            let x = &x[at..][..dy.len()];
            let stats = &stats[chunk * rows * 2..];
            dispatch(NormalizePull { dy, x, stats, weight, sums });
        });
    });
    match chunks {
        1 => sums,
        _ => sum_rows(&sums, Value::scalar(T::ZERO))
            .unwrap_or_else(|| unreachable!("it is a matrix of several rows and columns")),
    }
}
