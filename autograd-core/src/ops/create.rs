//! Making tensors, and getting numbers out of them.

use std::borrow::Cow;

use ndarray::{Array, ArrayD, CowArray, Dimension, IxDyn};

use super::index::check_indices;
use super::{Float, Numeric, Scalar, expect};
use crate::array::shape::element_count;
use crate::array::{IntoShape, Shape, Value};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{Element, Tensor};
use crate::random;

fn checked(op: &'static str, shape: Shape) -> Result<Shape> {
    element_count(op, &shape)?;
    Ok(shape)
}

/// `n` elements in one axis.
#[track_caller]
fn list<T: Element>(op: &'static str, n: usize, elements: impl Iterator<Item = T>) -> Tensor<T> {
    Tensor::new(Value::build(expect(checked(op, [n].into_shape())), |out| out.extend(elements)))
}

pub(super) fn of_vec<T: Element>(shape: Shape, data: Vec<T>) -> Result<Tensor<T>> {
    let shape = checked("from_vec", shape)?;
    let expected = shape.iter().product();
    if data.len() != expected {
        let what = format!("elements for shape {shape:?}");
        return Err(Error::Count { op: "from_vec", what, expected, found: data.len() });
    }
    Ok(Tensor::new(Value::from_vec(shape, data)))
}

pub(super) fn of_slice<T: Element>(shape: Shape, data: &[T]) -> Tensor<T> {
    Tensor::new(Value::from_slice(shape, data))
}

pub(super) fn to_vec<T: Element>(x: &Tensor<T>) -> Vec<T> {
    x.read().to_vec()
}

pub(super) fn to_ndarray<T: Element>(x: &Tensor<T>) -> ArrayD<T> {
    x.read().to_ndarray()
}

pub(super) fn view<T: Element>(x: &Tensor<T>) -> CowArray<'_, T, IxDyn> {
    match x.read() {
        Cow::Borrowed(value) => value.view().into(),
        Cow::Owned(value) => value.to_ndarray().into(),
    }
}

pub(super) fn item<T: Element>(x: &Tensor<T>) -> Result<T> {
    match (x.len(), x.read().first()) {
        (1, Some(element)) => Ok(element),
        _ => Err(Error::Shape {
            op: "item",
            parameter: RECEIVER.into(),
            expected: "of one element".into(),
            found: x.shape().to_vec(),
        }),
    }
}

/// # Constructors
///
/// A shape is `[2, 3]`, a slice, a `Vec`, one length, or `()` for a scalar. All panic with a clear
/// message if the shape is too large for the address space.
impl<T: Element> Tensor<T> {
    /// Zeros (`false` for `bool`).
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::<i64>::zeros([2, 2]).to_vec(), [0, 0, 0, 0]);
    /// ```
    #[track_caller]
    pub fn zeros(shape: impl IntoShape) -> Tensor<T> {
        T::filled(&expect(checked("zeros", shape.into_shape())), T::ZERO)
    }

    /// Ones (`true` for `bool`).
    #[track_caller]
    pub fn ones(shape: impl IntoShape) -> Tensor<T> {
        T::filled(&expect(checked("ones", shape.into_shape())), T::ONE)
    }

    /// Every element the same. It gives the tensor its type; [`Tensor::full_like`] takes a number of any.
    #[track_caller]
    pub fn full(shape: impl IntoShape, element: T) -> Tensor<T> {
        T::filled(&expect(checked("full", shape.into_shape())), element)
    }

    /// Zeros of the shape of another tensor.
    pub fn zeros_like<U: Element>(other: &Tensor<U>) -> Tensor<T> {
        Self::full(other.shape_owned(), T::ZERO)
    }

    /// Ones of the shape of another tensor.
    pub fn ones_like<U: Element>(other: &Tensor<U>) -> Tensor<T> {
        Self::full(other.shape_owned(), T::ONE)
    }

    /// Every element the same number, in the shape of another tensor.
    ///
    /// ```
    /// use autograd_core::{Float, Tensor};
    ///
    /// fn halves<T: Float>(x: &Tensor<T>) -> Tensor<T> {
    ///     Tensor::full_like(x, 0.5)
    /// }
    /// assert_eq!(halves(&Tensor::<f32>::zeros([2])).to_vec(), [0.5, 0.5]);
    /// ```
    pub fn full_like<U: Element>(other: &Tensor<U>, element: impl Scalar<T>) -> Tensor<T> {
        Self::full(other.shape_owned(), element.scalar())
    }

    /// From elements in row-major order.
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

    /// The elements in row-major order.
    pub fn to_vec(&self) -> Vec<T> {
        T::to_vec(self)
    }

    /// A copy as an ndarray array.
    pub fn to_ndarray(&self) -> ArrayD<T> {
        T::to_ndarray(self)
    }

    /// The elements as an ndarray array, to read. Nothing is copied unless this tensor has been
    /// changed in place; then it is a copy of what it is now.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from(vec![1.0, 2.0, 3.0, 4.0]).reshape([2, 2]);
    /// assert_eq!(x.view()[[1, 0]], 3.0);
    /// assert_eq!(x.view().sum_axis(ndarray::Axis(0)), ndarray::arr1(&[4.0, 6.0]).into_dyn());
    /// ```
    pub fn view(&self) -> CowArray<'_, T, IxDyn> {
        T::view(self)
    }

    /// The only element of a tensor that has one.
    ///
    /// # Panics
    ///
    /// If there is not exactly one element; see [`Tensor::try_item`].
    #[track_caller]
    pub fn item(&self) -> T {
        expect(self.try_item())
    }

    /// [`Tensor::item`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if there is not exactly one element.
    pub fn try_item(&self) -> Result<T> {
        T::item(self)
    }

    /// The element at a position.
    ///
    /// # Panics
    ///
    /// If there is not one index for each axis, or one is outside its axis.
    #[track_caller]
    pub fn at(&self, index: &[usize]) -> T {
        let value = self.read();
        match value.view().get(IxDyn(index)) {
            Some(&element) => element,
            None => panic!("at: index {index:?} is outside a tensor of shape {:?}", self.shape()),
        }
    }
}

/// # Random numbers and ranges
///
/// Numbers come from the process-wide generator that [`seed`](crate::seed) sets.
impl<T: Float> Tensor<T> {
    /// Normal with mean 0 and standard deviation 1.
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

    /// Uniform in [0, 1).
    #[track_caller]
    pub fn rand(shape: impl IntoShape) -> Tensor<T> {
        Self::uniform(shape, 0.0, 1.0)
    }

    /// Normal with a mean and a standard deviation.
    #[track_caller]
    pub fn normal(shape: impl IntoShape, mean: f64, std: f64) -> Tensor<T> {
        let (mean, std) = (T::from_f64(mean), T::from_f64(std));
        Self::generate("normal", shape, |out| random::fill_normal(out, mean, std))
    }

    /// Uniform in [low, high).
    #[track_caller]
    pub fn uniform(shape: impl IntoShape, low: f64, high: f64) -> Tensor<T> {
        let (low, high) = (T::from_f64(low), T::from_f64(high));
        Self::generate("uniform", shape, |out| random::fill_uniform(out, low, high))
    }

    #[track_caller]
    fn generate(op: &'static str, shape: impl IntoShape, fill: impl Fn(&mut [T])) -> Tensor<T> {
        let mut tensor = T::filled(&expect(checked(op, shape.into_shape())), T::ZERO);
        if let Some(data) = T::elements(&mut tensor) {
            fill(data);
        }
        tensor
    }

    /// `n` numbers from `start` to `end`, both included, at equal distances.
    #[track_caller]
    pub fn linspace(start: f64, end: f64, n: usize) -> Tensor<T> {
        let step = if n > 1 { (end - start) / (n - 1) as f64 } else { 0.0 };
        let numbers =
            (0..n).map(|i| if i + 1 == n && n > 1 { end } else { start + step * i as f64 });
        list("linspace", n, numbers.map(T::from_f64))
    }
}

impl Tensor<i64> {
    /// Uniform integers in [low, high), from the process-wide generator.
    ///
    /// # Panics
    ///
    /// If `low >= high`.
    #[track_caller]
    pub fn randint(shape: impl IntoShape, low: i64, high: i64) -> Tensor<i64> {
        assert!(low < high, "randint: `low` must be below `high`, found {low} and {high}");
        let mut tensor = i64::filled(&expect(checked("randint", shape.into_shape())), 0);
        if let Some(data) = i64::elements(&mut tensor) {
            random::fill_randint(data, low, high);
        }
        tensor
    }

    /// The numbers 0 .. n in a random order, from the process-wide generator.
    #[track_caller]
    pub fn randperm(n: usize) -> Tensor<i64> {
        let mut value = Value::build(expect(checked("randperm", [n].into_shape())), |out| {
            out.extend(0..n as i64)
        });
        if let Some(data) = value.as_mut_slice() {
            random::shuffle(data);
        }
        Tensor::new(value)
    }
}

impl<T: Numeric> Tensor<T> {
    /// `0, 1, .. n - 1`.
    ///
    /// # Panics
    ///
    /// If the element type is one of integers and cannot hold `n - 1`.
    #[track_caller]
    pub fn arange(n: usize) -> Tensor<T> {
        expect(T::end("arange", n));
        list("arange", n, (0..n).map(T::count))
    }

    /// The identity matrix of `n` rows.
    #[track_caller]
    pub fn eye(n: usize) -> Tensor<T> {
        let mut value = Value::full(expect(checked("eye", [n, n].into_shape())), T::ZERO);
        if let Some(data) = value.as_mut_slice() {
            data.iter_mut().step_by(n + 1).for_each(|x| *x = T::ONE);
        }
        Tensor::new(value)
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

/// Takes the array's buffer where it is row-major, else copies it.
impl<T: Element, D: Dimension> From<Array<T, D>> for Tensor<T> {
    #[track_caller]
    fn from(array: Array<T, D>) -> Self {
        let shape = expect(checked("from", array.shape().into_shape()));
        let data = if array.is_standard_layout() {
            let n = array.len();
            let (mut data, offset) = array.into_raw_vec_and_offset();
            if offset.unwrap_or(0) > 0 {
                data.drain(..offset.unwrap_or(0));
            }
            data.truncate(n);
            data
        } else {
            array.iter().copied().collect()
        };
        expect(T::of_vec(shape, data))
    }
}

/// Copies what is seen, in any order of axes.
impl<T: Element, D: Dimension> From<ndarray::ArrayView<'_, T, D>> for Tensor<T> {
    #[track_caller]
    fn from(view: ndarray::ArrayView<'_, T, D>) -> Self {
        let shape = expect(checked("from", view.shape().into_shape()));
        Tensor::new(Value::build(shape, |out| out.extend(view.iter().copied())))
    }
}

impl<T: Element> Default for Tensor<T> {
    /// The scalar 0 (or `false`).
    fn default() -> Self {
        T::ZERO.into()
    }
}

impl Tensor<i64> {
    /// A new last axis of length `classes`: 1 at the place that each element names, else 0.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let y: Tensor<f32> = Tensor::from([2, 0]).one_hot(3);
    /// assert_eq!(y.to_vec(), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If an element lies outside `0..classes`; see [`Tensor::try_one_hot`].
    #[track_caller]
    pub fn one_hot<T: Numeric>(&self, classes: usize) -> Tensor<T> {
        expect(self.try_one_hot(classes))
    }

    /// [`Tensor::one_hot`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if an element lies outside `0..classes`, [`Error::TooLarge`].
    pub fn try_one_hot<T: Numeric>(&self, classes: usize) -> Result<Tensor<T>> {
        check_indices("one_hot", RECEIVER, &self.read(), classes)?;
        let mut shape = self.shape_owned();
        shape.push(classes);
        element_count("one_hot", &shape)?;
        let mut value = Value::full(shape, T::ZERO);
        if let Some(data) = value.as_mut_slice() {
            for (row, class) in self.to_vec().into_iter().enumerate() {
                data[row * classes + class as usize] = T::ONE;
            }
        }
        Ok(Tensor::new(value).and_lost(self))
    }
}
