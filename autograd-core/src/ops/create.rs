//! Constructors of tensors, and access to their elements.

use std::panic::Location;

use ndarray::{Array, ArrayD, Dimension, IxDyn};
use smallvec::smallvec;

use super::call::{call, call_at};
use super::cast::{cast, number};
use super::gather::check_indices;
use super::table::{
    Attr, Form, Gradient, OpDef, Ran, Type, arithmetic, computed, entries, exactly, for_programs,
    number, one, position,
};
use super::{Binary, Float, Numeric, Scalar, expect, pairs, trace};
use crate::array::shape::element_count;
use crate::array::{DType, IntoShape, Shape, Value};
use crate::error::{Error, Plural, RECEIVER, Result};
use crate::graph::{
    AnyTensor, Element, ElementFunctions, OfElements, Tensor, View, for_any, is_noting, note_read,
};
use crate::random;

entries! {
    FILLS:

    FILL_LIKE = OpDef {
        attrs: &[("value", Type::Number)],
        infer: for_programs(|_, inputs| {
            let [x] = exactly(inputs)?;
            Ok(vec![x.clone()])
        }),
        run: |op, x, _| {
            fn filled<T: Element>(x: &Tensor<T>, value: f64) -> Ran {
                let value = T::unwrap(number(T::DTYPE, value)?);
                let value = value.unwrap_or_else(|| unreachable!("it has this type"));
                computed(T::item(&value).map(|value| Tensor::full(x.shape(), value)))
            }
            for_any!(&one(x)?, x => filled(x, op.number(0)))
        },
        gradient: Gradient::None,
        ..OpDef::new("fill_like")
    };

    /// The coordinates along one axis of a grid with an axis for each input.
    MESHGRID = OpDef {
        attrs: &[("axis", Type::Int)],
        infer: for_programs(|op, lists| {
            let at = position(op.int(0), lists.len())?;
            let lengths = lists.iter().map(|list| match list.dims[..] {
                [n] => Ok(n),
                _ => Err(format!("its lists must have one axis, found {list}")),
            });
            let lengths = lengths.collect::<Result<_, String>>()?;
            Ok(vec![Form::new(arithmetic(Binary::Add, lists[at])?.dtype, lengths)])
        }),
        run: |op, lists, _| {
            let at = position(op.int(0), lists.len())?;
            let shape: Shape = lists.iter().map(AnyTensor::len).collect();
            number!(smallvec![lists[at].clone()], list => coordinates(&list, at, &shape))
        },
        ..OpDef::new("meshgrid")
    };
}

#[track_caller]
fn coordinates<T: Numeric>(list: &Tensor<T>, at: usize, shape: &[usize]) -> Result<Tensor<T>> {
    element_count("meshgrid", shape)?;
    let mut own = Shape::from_elem(1, shape.len());
    own[at] = list.len();
    list.try_reshape(own)?.try_broadcast_to(shape)
}

/// Returns equal elements in the shape of a tensor, which may differ from run to run of a trace.
#[track_caller]
fn like<T: Element, U: Element>(other: &Tensor<U>, element: T) -> Tensor<T> {
    if !is_noting() {
        return Tensor::full(other.shape_owned(), element);
    }
    // Not the op `cast`, which would be noted.
    let value = cast(&Tensor::from(element).into(), DType::Float64, Location::caller());
    let value = f64::unwrap(value).unwrap_or_else(|| unreachable!("it has this type"));
    let value = Attr::Number(expect(f64::item(&value)));
    expect(call(&FILL_LIKE, [value], [other.cast::<T>().untyped()]))
}

fn checked(op: &'static str, shape: Shape) -> Result<Shape> {
    element_count(op, &shape)?;
    Ok(shape)
}

#[track_caller]
fn generated<T: Element>(
    op: &'static str,
    shape: impl IntoShape,
    fill: impl Fn(&mut [T]),
) -> Tensor<T> {
    let mut tensor = T::filled(&expect(checked(op, shape.into_shape())), T::ZERO);
    if let Some(data) = T::elements(&mut tensor) {
        fill(data);
    }
    tensor
}

#[track_caller]
fn list<T: Element>(op: &'static str, n: usize, elements: impl Iterator<Item = T>) -> Tensor<T> {
    collected(expect(checked(op, [n].into_shape())), elements)
}

/// Of as many elements as the shape has.
fn collected<T: Element>(shape: Shape, mut elements: impl Iterator<Item = T>) -> Tensor<T> {
    Tensor::from_value(Value::written(shape, &mut |out| {
        out.iter_mut().zip(&mut elements).for_each(|(to, element)| *to = element);
    }))
}

pub(super) fn of_vec<T: Element>(shape: Shape, data: Vec<T>) -> Result<Tensor<T>> {
    let shape = checked("from_vec", shape)?;
    let expected = shape.iter().product();
    if data.len() != expected {
        let what = format!("elements for shape {shape:?}");
        return Err(Error::Count { op: "from_vec", what, expected, found: data.len() });
    }
    Ok(Tensor::from_value(Value::from_vec(shape, data)))
}

pub(super) fn of_slice<T: Element>(shape: Shape, data: &[T]) -> Tensor<T> {
    Tensor::from_value(Value::from_slice(shape, data))
}

pub(super) fn to_vec<T: Element>(x: &Tensor<T>) -> Vec<T> {
    x.read().to_vec()
}

pub(super) fn to_ndarray<T: Element>(x: &Tensor<T>) -> ArrayD<T> {
    x.read().to_ndarray()
}

pub(super) fn item<T: Element>(x: &Tensor<T>) -> Result<T> {
    match (x.len(), x.read().first()) {
        (1, Some(element)) => Ok(element),
        _ => Err(Error::shape("item", RECEIVER, "of one element", x.shape())),
    }
}

/// # Constructors
///
/// A shape is `[2, 3]`, a slice, a `Vec`, one length, or `()` for a scalar. All constructors panic
/// with a clear message if the shape is too large for the address space.
impl<T: Element> Tensor<T> {
    /// Creates a tensor of zeros (`false` for `bool`).
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::<i64>::zeros([2, 2]).to_vec(), [0, 0, 0, 0]);
    /// ```
    #[doc(alias = "new_zeros")]
    #[track_caller]
    pub fn zeros(shape: impl IntoShape) -> Tensor<T> {
        T::filled(&expect(checked("zeros", shape.into_shape())), T::ZERO)
    }

    /// Creates a tensor of ones (`true` for `bool`).
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::<f64>::ones([2, 3]);
    /// assert_eq!(x.sum().item(), 6.0);
    /// ```
    #[track_caller]
    pub fn ones(shape: impl IntoShape) -> Tensor<T> {
        T::filled(&expect(checked("ones", shape.into_shape())), T::ONE)
    }

    /// Creates equal elements, which determine the tensor's type; [`Tensor::full_like`] takes any number.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::full([2], 0.5_f64);
    /// assert_eq!(x.to_vec(), [0.5, 0.5]);
    /// ```
    #[track_caller]
    pub fn full(shape: impl IntoShape, element: T) -> Tensor<T> {
        T::filled(&expect(checked("full", shape.into_shape())), element)
    }

    /// Creates zeros in the shape of another tensor.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// let zeros: Tensor<f64> = Tensor::zeros_like(&x);
    /// assert_eq!(zeros.to_vec(), [0.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn zeros_like<U: Element>(other: &Tensor<U>) -> Tensor<T> {
        like(other, T::ZERO)
    }

    /// Creates ones in the shape of another tensor.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// let ones: Tensor<f64> = Tensor::ones_like(&x);
    /// assert_eq!(ones.to_vec(), [1.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn ones_like<U: Element>(other: &Tensor<U>) -> Tensor<T> {
        like(other, T::ONE)
    }

    /// Creates equal elements in the shape of another tensor.
    ///
    /// ```
    /// use autograd_core::{Float, Tensor};
    ///
    /// fn halves<T: Float>(x: &Tensor<T>) -> Tensor<T> {
    ///     Tensor::full_like(x, 0.5)
    /// }
    /// assert_eq!(halves(&Tensor::<f32>::zeros([2])).to_vec(), [0.5, 0.5]);
    /// ```
    #[track_caller]
    pub fn full_like<U: Element>(other: &Tensor<U>, element: impl Scalar<T>) -> Tensor<T> {
        like(other, element.scalar())
    }

    /// Creates a tensor from elements in row-major order.
    ///
    /// # Errors
    ///
    /// [`Error::Count`] if there are more or fewer elements than the shape has,
    /// [`Error::TooLarge`] if the shape is too large for the address space.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from_vec([2, 2], vec![1, 2, 3, 4])?;
    /// assert_eq!(x.shape(), [2, 2]);
    /// assert!(Tensor::from_vec([3], vec![1, 2]).is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn from_vec(shape: impl IntoShape, data: Vec<T>) -> Result<Tensor<T>> {
        T::of_vec(shape.into_shape(), data)
    }

    /// Returns the elements in row-major order.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.t().to_vec(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// ```
    #[doc(alias = "tolist")]
    #[doc(alias = "to_data")]
    #[track_caller]
    pub fn to_vec(&self) -> Vec<T> {
        self.is_read("to_vec");
        T::to_vec(self)
    }

    /// Returns a copy of the elements as an ndarray array.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([[1.0, 2.0]]);
    /// assert_eq!(x.to_ndarray()[[0, 1]], 2.0);
    /// ```
    #[doc(alias = "numpy")]
    #[track_caller]
    pub fn to_ndarray(&self) -> ArrayD<T> {
        self.is_read("to_ndarray");
        T::to_ndarray(self)
    }

    /// Returns the elements as an ndarray array for reading, without a copy. It keeps its elements: a change
    /// of this tensor in place makes a new buffer as long as the view lives. Crates for ndarray accept
    /// `x.view().view()`, and `Tensor::from` accepts their arrays. The elements of a tensor that was changed in
    /// place are copied, once for each change, if the tensor is strided or another one uses their buffer.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(vec![1.0, 2.0, 3.0, 4.0]).reshape([2, 2]);
    /// assert_eq!(x.view()[[1, 0]], 3.0);
    /// assert_eq!(x.view().sum_axis(ndarray::Axis(0)), ndarray::arr1(&[4.0, 6.0]).into_dyn());
    /// ```
    #[track_caller]
    pub fn view(&self) -> View<'_, T> {
        self.is_read("view");
        T::view(self)
    }

    /// Reports a read to a recorded backward, and to a trace, which refuses it if it depends on its inputs.
    #[inline]
    #[track_caller]
    pub(crate) fn is_read(&self, name: &'static str) {
        if self.would_record() {
            note_read(name, Location::caller());
        }
        if is_noting() {
            trace::refuse_read(&self.untyped(), name, Location::caller());
        }
    }

    pairs! {
        /// Returns the only element of a tensor of one element.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::from([2.5]).item(), 2.5);
        /// ```
        #[doc(alias = "to_scalar")]
        #[doc(alias = "into_scalar")]
        pub fn item, try_item(&self) -> T,
            Shape if "there is not exactly one element",
            "Tensor::from([1.0, 2.0]).try_item()" => Shape {
            self.is_read("item");
            T::item(self)
        }

        /// Returns the element at a position.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::from([[1.0, 2.0], [3.0, 4.0]]).at(&[1, 0]), 3.0);
        /// ```
        pub fn at(&self, index: &[usize]) -> T,
            Panics if "there is not one index for each axis, or one is outside its axis" {
            self.is_read("at");
            let value = self.read();
            match value.view().get(IxDyn(index)) {
                Some(&element) => element,
                None if index.len() != self.ndim() => {
                    let takes = Plural(self.ndim(), "index", "indices");
                    panic!("at: a tensor of shape {:?} takes {takes}, found {index:?}", self.shape())
                }
                None => panic!("at: index {index:?} is outside a tensor of shape {:?}", self.shape()),
            }
        }
    }
}

/// # Random numbers and ranges
///
/// Numbers are drawn from the process-wide generator that [`seed`](crate::seed) sets. All panic if the shape is too
/// large for the address space.
impl<T: Float> Tensor<T> {
    /// Creates normally distributed numbers with mean 0 and standard deviation 1, by the polar method
    /// (Marsaglia and Bray 1964).
    ///
    /// ```standalone_crate
    /// use autograd_core::Tensor;
    ///
    /// autograd_core::seed(2023);
    /// assert_eq!(Tensor::<f64>::randn([2, 3]).at(&[0, 0]), 0.06132208266916202);
    /// ```
    #[track_caller]
    pub fn randn(shape: impl IntoShape) -> Tensor<T> {
        Self::normal(shape, 0.0, 1.0)
    }

    /// Creates uniformly distributed numbers in [0, 1).
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::<f64>::rand([2, 3]);
    /// assert!(x.ge_scalar(0.0).all() && x.lt_scalar(1.0).all());
    /// ```
    #[track_caller]
    pub fn rand(shape: impl IntoShape) -> Tensor<T> {
        Self::uniform(shape, 0.0, 1.0)
    }

    pairs! {
        /// Creates normally distributed numbers with the given mean and standard deviation.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::<f64>::normal([2, 3], 5.0, 0.1);
        /// assert_eq!(x.shape(), [2, 3]);
        /// ```
        pub fn normal(shape: impl IntoShape, mean: f64, std: f64) -> Tensor<T>,
            Panics if "`std` is below 0, or either is NaN or infinite" {
            if !T::from_f64(mean).is_finite() {
                expect(Err(Error::value("normal", "mean", "a finite number", mean)))
            }
            if !(T::ZERO..T::infinity()).contains(&T::from_f64(std)) {
                expect(Err(Error::value("normal", "std", "0 or more, and finite", std)))
            }
            let (mean, std) = (T::from_f64(mean), T::from_f64(std));
            generated("normal", shape, |out| T::normal(out, mean, std))
        }

        /// Creates uniformly distributed numbers in [low, high).
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::<f64>::uniform([2, 3], -1.0, 1.0);
        /// assert!(x.ge_scalar(-1.0).all() && x.lt_scalar(1.0).all());
        /// ```
        pub fn uniform(shape: impl IntoShape, low: f64, high: f64) -> Tensor<T>,
            Panics if "`low > high`, or `high - low` is NaN or infinite in the element type" {
            if !(T::ZERO..T::infinity()).contains(&(T::from_f64(high) - T::from_f64(low))) {
                let expected = format!("at most `high`, {high}, at a finite distance");
                expect(Err(Error::value("uniform", "low", expected, low)))
            }
            let (low, high) = (T::from_f64(low), T::from_f64(high));
            generated("uniform", shape, |out| T::uniform(out, low, high))
        }
    }

    /// Creates uniformly distributed numbers in [0, 1), in the shape of another tensor.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// let y: Tensor<f64> = Tensor::rand_like(&x);
    /// assert_eq!(y.shape(), [2]);
    /// ```
    #[track_caller]
    pub fn rand_like<U: Element>(other: &Tensor<U>) -> Tensor<T> {
        Self::rand(other.shape_owned())
    }

    /// As [`Tensor::randn`], in the shape of another tensor.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// let y: Tensor<f64> = Tensor::randn_like(&x);
    /// assert_eq!(y.shape(), [2]);
    /// ```
    #[track_caller]
    pub fn randn_like<U: Element>(other: &Tensor<U>) -> Tensor<T> {
        Self::randn(other.shape_owned())
    }

    pairs! {
        /// Creates `n` equally spaced numbers from `start` to `end`, both included, in the shape `[n]`. One number is
        /// `start`; with `n` 0 the tensor is empty.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::<f64>::linspace(0.0, 1.0, 3).to_vec(), [0.0, 0.5, 1.0]);
        /// assert_eq!(Tensor::<f64>::linspace(0.0, 1.0, 1).to_vec(), [0.0]);
        /// ```
        pub fn linspace(start: f64, end: f64, n: usize) -> Tensor<T>,
            Panics if "`end - start` is NaN or infinite" {
            if !(end - start).is_finite() {
                let expected = format!("at a finite distance from `start`, {start}");
                expect(Err(Error::value("linspace", "end", expected, end)))
            }
            let step = if n > 1 { (end - start) / (n - 1) as f64 } else { 0.0 };
            let numbers =
                (0..n).map(|i| if i + 1 == n && n > 1 { end } else { start + step * i as f64 });
            list("linspace", n, numbers.map(T::from_f64))
        }
    }
}

impl Tensor<i64> {
    pairs! {
        /// Creates uniformly distributed integers in [low, high), of this shape, from the process-wide generator.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::randint([2, 3], 0, 10);
        /// assert!(x.ge_scalar(0).all() && x.lt_scalar(10).all());
        /// ```
        pub fn randint(shape: impl IntoShape, low: i64, high: i64) -> Tensor<i64>,
            Panics if "`low >= high`" {
            assert!(low < high, "randint: `low` must be below `high`, found {low} and {high}");
            generated("randint", shape, |out| random::fill_randint(out, low, high))
        }
    }

    /// Creates a random permutation of the numbers 0 .. n, `[n]`, from the process-wide generator.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let order = Tensor::randperm(4);
    /// assert_eq!(order.sum().item(), 6);
    /// ```
    #[track_caller]
    pub fn randperm(n: usize) -> Tensor<i64> {
        generated("randperm", n, |out| {
            (0..).zip(&mut *out).for_each(|(i, at)| *at = i);
            random::shuffle(out);
        })
    }
}

/// # Ranges, grids and identities
///
/// All panic if the result is too large for the address space.
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Creates the numbers `0, 1, .. n - 1`.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::<i64>::arange(3).to_vec(), [0, 1, 2]);
        /// ```
        pub fn arange(n: usize) -> Tensor<T>,
            Panics if "the element type is an integer type and cannot hold `n - 1`" {
            let most = T::DTYPE.range().map_or(i128::MAX, |[_, most]| most.into());
            if n as i128 > most.saturating_add(1) {
                let expected = format!("at most {}, as {} holds 0 to {most}", most + 1, T::DTYPE);
                expect(Err(Error::value("arange", "n", expected, n)))
            }
            list("arange", n, (0..n).map(T::count))
        }

        /// Creates the numbers `start, start + step, ..` before `end`. Floats are computed in `f64`, each
        /// from `start`, as in NumPy and PyTorch.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::arange_step(1, 8, 3).to_vec(), [1, 4, 7]);
        /// assert_eq!(Tensor::<f32>::arange_step(1.0, 0.0, -0.25).to_vec(), [1.0, 0.75, 0.5, 0.25]);
        /// ```
        #[doc(alias = "range")]
        pub fn arange_step(start: T, end: T, step: T) -> Tensor<T>,
            Panics if "`step` is 0, leads away from `end`, or is NaN or infinite, as `end - start` may not be either" {
            let op = "arange_step";
            let wrong = |found: String| -> Result<()> {
                let expected = "a finite step other than 0 that leads from `start` to `end`";
                Err(Error::value(op, "step", expected, found))
            };
            if T::DTYPE.is_float() {
                let of = |x: T| Tensor::from(x).cast::<f64>().item();
                let [first, last, by] = [start, end, step].map(of);
                let n = ((last - first) / by).ceil();
                let finite = by.is_finite() && (last - first).is_finite();
                if !finite || by == 0.0 || !(0.0..u64::MAX as f64).contains(&n) {
                    expect(wrong(format!("{by} from {first} to {last}")));
                }
                let numbers = (0..n as usize).map(|i| T::nearest(first + by * i as f64));
                return list(op, n as usize, numbers);
            }
            let of = |x: T| i128::from(Tensor::from(x).cast::<i64>().item());
            let [first, last, by] = [start, end, step].map(of);
            if by == 0 || (last - first) * by < 0 {
                expect(wrong(format!("{by} from {first} to {last}")));
            }
            let n = (last - first).unsigned_abs().div_ceil(by.unsigned_abs());
            let n = usize::try_from(n).unwrap_or(usize::MAX);
            // Every number is between `start` and `end`, so it fits the element type.
            list(op, n, (0..n).map(|i| (first + by * i as i128) as i64)).cast()
        }

        /// Creates the coordinates of a grid with an axis for each list, in order (`indexing="ij"`).
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let grid = Tensor::meshgrid(&[&Tensor::from([1, 2]), &Tensor::from([3, 4, 5])]);
        /// assert_eq!(grid[0].to_vec(), [1, 1, 1, 2, 2, 2]);
        /// assert_eq!(grid[1].to_vec(), [3, 4, 5, 3, 4, 5]);
        /// ```
        pub fn meshgrid(lists: &[&Tensor<T>]) -> Vec<Tensor<T>>,
            Panics if "a list does not have exactly one axis, or the grid is too large" {
            let op = "meshgrid";
            for (i, list) in lists.iter().enumerate() {
                if list.ndim() != 1 {
                    let parameter = format!("lists[{i}]");
                    expect(Err(Error::shape(op, parameter, "of one axis", list.shape())))
                }
            }
            let caller = Location::caller();
            let along = |axis: usize| {
                let lists = lists.iter().map(|list| list.untyped());
                expect(call_at(&MESHGRID, [Attr::Int(axis as isize)], lists, caller))
            };
            (0..lists.len()).map(along).collect()
        }
    }

    /// Creates the identity matrix of `n` rows.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::<f64>::eye(2).to_vec(), [1.0, 0.0, 0.0, 1.0]);
    /// ```
    #[doc(alias = "identity")]
    #[track_caller]
    pub fn eye(n: usize) -> Tensor<T> {
        let ones = |out: &mut [T]| out.iter_mut().step_by(n + 1).for_each(|x| *x = T::ONE);
        generated("eye", [n, n], ones)
    }
}

impl<T: Element> From<T> for Tensor<T> {
    fn from(element: T) -> Self {
        T::filled(&[], element)
    }
}

impl<T: Element> From<Vec<T>> for Tensor<T> {
    fn from(data: Vec<T>) -> Self {
        expect(T::of_vec(data.len().into_shape(), data))
    }
}

impl<T: Element> From<&[T]> for Tensor<T> {
    fn from(data: &[T]) -> Self {
        T::of_slice(data.len().into_shape(), data)
    }
}

impl<T: Element, const N: usize> From<[T; N]> for Tensor<T> {
    fn from(data: [T; N]) -> Self {
        Self::from(&data[..])
    }
}

impl<T: Element, const N: usize, const M: usize> From<[[T; M]; N]> for Tensor<T> {
    fn from(data: [[T; M]; N]) -> Self {
        T::of_slice([N, M].into_shape(), data.as_flattened())
    }
}

/// Stacks rows of one shape along a new first axis; without rows the shape is `[0]`.
#[track_caller]
fn of_rows<T: Element>(rows: Vec<Tensor<T>>) -> Tensor<T> {
    let of_row = rows.first().map(Tensor::shape_owned).unwrap_or_default();
    if let Some(at) = rows.iter().position(|row| row.shape() != &of_row[..]) {
        let parameter = format!("rows[{at}]");
        let expected = format!("of shape {:?}, as the first is", &of_row[..]);
        expect(Err(Error::shape("from", parameter, expected, rows[at].shape())))
    }
    let mut shape = of_row;
    shape.insert(0, rows.len());
    let shape = expect(checked("from", shape));
    Tensor::from_value(Value::written(shape, &mut |mut out| {
        for row in &rows {
            let (to, rest) = out.split_at_mut(row.len());
            to.copy_from_slice(row.read().contiguous().as_slice().unwrap_or(&[]));
            out = rest;
        }
    }))
}

macro_rules! nested {
    ($([$($n:ident)*] $rows:ty;)*) => {$(
        /// Panics if the rows differ in shape.
        impl<T: Element $(, const $n: usize)*> From<$rows> for Tensor<T> {
            #[track_caller]
            fn from(rows: $rows) -> Self {
                of_rows(rows.into_iter().map(Tensor::from).collect())
            }
        }
    )*};
}

nested! {
    [N M K] [[[T; K]; M]; N];
    [N M K L] [[[[T; L]; K]; M]; N];
    [] Vec<Vec<T>>;
    [] Vec<Vec<Vec<T>>>;
    [N] Vec<[T; N]>;
    [N M] Vec<[[T; N]; M]>;
}

/// The sum of tensors, with broadcasting; the scalar 0 if there are none.
impl<T: Numeric> std::iter::Sum for Tensor<T> {
    #[track_caller]
    fn sum<I: Iterator<Item = Self>>(mut tensors: I) -> Self {
        match (tensors.next(), tensors.next()) {
            (None, _) => Self::default(),
            (Some(only), None) => only.copy(),
            (Some(first), Some(second)) => tensors.fold(first + second, |sum, x| sum + x),
        }
    }
}

/// The sum of tensors, with broadcasting; the scalar 0 if there are none.
impl<'a, T: Numeric> std::iter::Sum<&'a Tensor<T>> for Tensor<T> {
    #[track_caller]
    fn sum<I: Iterator<Item = &'a Tensor<T>>>(tensors: I) -> Self {
        tensors.cloned().sum()
    }
}

/// Takes over the array's buffer if it is row-major; otherwise copies it.
impl<T: Element, D: Dimension> From<Array<T, D>> for Tensor<T> {
    #[track_caller]
    fn from(array: Array<T, D>) -> Self {
        if !array.is_standard_layout() {
            return array.view().into();
        }
        let (shape, n) = (expect(checked("from", array.shape().into_shape())), array.len());
        let (mut data, offset) = array.into_raw_vec_and_offset();
        data.drain(..offset.unwrap_or(0));
        data.truncate(n);
        expect(T::of_vec(shape, data))
    }
}

/// Copies the elements of the view, in any order of axes.
impl<T: Element, D: Dimension> From<ndarray::ArrayView<'_, T, D>> for Tensor<T> {
    #[track_caller]
    fn from(view: ndarray::ArrayView<'_, T, D>) -> Self {
        let shape = expect(checked("from", view.shape().into_shape()));
        collected(shape, view.iter().copied())
    }
}

impl<T: Element> Default for Tensor<T> {
    /// The scalar 0 (or `false`).
    fn default() -> Self {
        T::ZERO.into()
    }
}

impl Tensor<i64> {
    pairs! {
        /// Adds a last axis of length `classes`: 1 at the index given by each element, 0 elsewhere.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let y: Tensor<f32> = Tensor::from([2, 0]).one_hot(3);
        /// assert_eq!(y.to_vec(), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
        /// ```
        pub fn one_hot, try_one_hot<T: Numeric>(&self, classes: usize) -> Tensor<T>,
            Index | TooLarge if "an element lies outside `0..classes`, or the result is too large",
            "Tensor::from([2, 3]).try_one_hot::<f32>(3)" => Index {
            check_indices("one_hot", RECEIVER, &self.read(), classes)?;
            let mut shape = self.shape_owned();
            shape.push(classes);
            element_count("one_hot", &shape)?;
            Ok(self.unsqueeze(-1).try_equal(&Tensor::arange(classes))?.cast())
        }
    }
}
