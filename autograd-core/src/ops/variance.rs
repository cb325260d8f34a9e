//! Variances and standard deviations along axes.

use super::call::call;
use super::nn::{are_in_range, scale_of};
use super::shape::signed;
use super::table::{Attr, OpDef, Operator, Type, entries, float, float_reduced, for_programs};
use super::{Caller, Float, HasMean, expect, pairs};
use crate::array::IntoAxes;
use crate::array::shape::axes as check_axes;
use crate::error::Result;
use crate::fuse;
use crate::graph::{Element, GradMode, Rule, Saved, Tensor, finish};

entries! {
    VARIANCES:

    VAR = OpDef {
        run: |op, x, at| float!(x, x => var(op, &x, at)),
        ..variance_op("var")
    };

    STD = OpDef {
        run: |op, x, at| float!(x, x => deviation(op, &x, at)),
        ..variance_op("std")
    };
}

const fn variance_op(name: &'static str) -> OpDef {
    let attrs = &[("axes", Type::Ints), ("correction", Type::Int)];
    OpDef { attrs, infer: for_programs(float_reduced), ..OpDef::new(name) }
}

/// The axes of a variance, with `n` elements along them.
struct Spread {
    axes: Vec<isize>,
    n: usize,
    /// 0 if no degree of freedom is left: 0 / 0, as for the mean of no elements.
    freedom: f64,
}

impl Spread {
    fn new(name: &'static str, shape: &[usize], op: &Operator) -> Result<Self> {
        let positions = check_axes(name, op.ints(0), shape.len())?;
        let n: usize = positions.iter().map(|&position| shape[position]).product();
        Ok(Self {
            axes: signed(&positions),
            n,
            freedom: n.saturating_sub(op.int(1) as usize) as f64,
        })
    }

    /// Returns the variance as `spread * scale²`, with the axes removed; no scale if the squares are in range.
    fn of<T: Float>(&self, x: &Tensor<T>) -> (Tensor<T>, Option<Tensor<T>>) {
        let Self { axes, n, freedom } = self;
        let centered = x - x.mean_axes_keep(axes);
        let squares = centered.square().sum_axes(axes);
        if are_in_range(&squares) || *n == 0 {
            return (squares / *freedom, None);
        }
        // Also divided by the root of `n`, so that the square of the scale is at most the variance. It is never
        // subnormal, so it does not underflow.
        let least = T::min_positive_value().into_f64() * (*n as f64).sqrt();
        let scale = scale_of(&centered, axes, least) / (*n as f64).sqrt();
        let spread = (centered / &scale).square().sum_axes(axes) / *freedom;
        (spread, Some(scale.reshape(squares.shape())))
    }
}

fn var<T: Float>(op: &Operator, x: &Tensor<T>, caller: Caller) -> Result<Tensor<T>> {
    let spread = Spread::new(VAR.name, x.shape(), op)?;
    let value = GradMode::of(false, || match spread.of(x) {
        (var, None) => var,
        (var, Some(scale)) => var * &scale * scale,
    });
    // The gradient has no squares, so it needs no scale.
    Ok(finish(VAR.name, caller, &[x], value.read().into_owned(), || {
        Rule::new([Saved::input(0, x)], move |saved, dy: Tensor<T>, _| {
            let x = saved.tensor::<T>()?;
            let mean = x.mean_axes_keep(&spread.axes);
            let dy = dy.reshape(mean.shape()) * (2.0 / spread.freedom);
            Ok([Some(fuse!(|x, mean, dy| (x - mean) * dy))])
        })
    }))
}

fn deviation<T: Float>(op: &Operator, x: &Tensor<T>, caller: Caller) -> Result<Tensor<T>> {
    let spread = Spread::new(STD.name, x.shape(), op)?;
    let value = GradMode::of(false, || match spread.of(x) {
        (var, None) => var.sqrt(),
        (var, Some(scale)) => var.sqrt() * scale,
    });
    let value = value.read().into_owned();
    Ok(finish(STD.name, caller, &[x], value.clone(), || {
        let saved = [Saved::input(0, x), Saved::output_value(value)];
        Rule::new(saved, move |saved, dy: Tensor<T>, _| {
            let (x, y) = (saved.tensor::<T>()?, saved.tensor::<T>()?);
            let mean = x.mean_axes_keep(&spread.axes);
            let y = y.reshape(mean.shape());
            let dy = dy.reshape(mean.shape()) / spread.freedom;
            // At 0 there is no derivative: the gradient is 0, with a derivative of NaN.
            Ok([Some(fuse!(|x, mean, y, dy| {
                let apart = x - mean;
                dy * y.eq(0.0).select(apart.abs().sqrt(), apart / y)
            }))])
        })
    }))
}

/// # Variances
impl<T: Element> Tensor<T> {
    pairs! {
        /// Returns the variance `sum((x - mean)²) / (n - correction)` along `axes`, which are removed; of all `n`
        /// elements if none is given. `correction` is 1 for a sample, 0 for a whole population, as PyTorch's.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from(vec![1.0, 2.0, 3.0, 4.0]);
        /// assert_eq!(x.var_axes(&[], 0).item(), 1.25);
        /// ```
        pub fn var_axes(&self, axes: impl IntoAxes, correction: usize) -> Tensor<T>,
            Panics if "an axis does not exist or is given twice" where T: HasMean {
            let attrs = [Attr::Ints(axes.as_axes().to_vec()), Attr::Int(correction as isize)];
            expect(call(&VAR, attrs, [self.untyped()]))
        }

        /// Returns `sqrt(var)`, the root of [`Tensor::var_axes`], without overflow. At 0 the gradient is 0, and a
        /// second derivative is NaN.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 3.0]]);
        /// assert_eq!(x.std_axes(1, 0).to_vec(), [1.0]);
        /// ```
        pub fn std_axes(&self, axes: impl IntoAxes, correction: usize) -> Tensor<T>,
            Panics if "an axis does not exist or is given twice" where T: HasMean {
            let attrs = [Attr::Ints(axes.as_axes().to_vec()), Attr::Int(correction as isize)];
            expect(call(&STD, attrs, [self.untyped()]))
        }
    }
}
