//! Functions that can be operators: parameters and returned values, by type and in programs.

use std::any::{TypeId, type_name};
use std::error::Error as StdError;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use ndarray::{Array, ArrayView, Dimension};

use crate::array::DType;
use crate::error::{Error, Plural};
use crate::graph::{AnyTensor, Element, Tensor};
use crate::ops::table::Computed;
use crate::ops::trace::{Returned, UserFn};

#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Param {
    pub(in crate::static_graph) dtype: DType,
    pub(in crate::static_graph) rank: Option<usize>,
    pub(in crate::static_graph) optional: bool,
}

#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Signature {
    pub(in crate::static_graph) params: Vec<Param>,
    pub(in crate::static_graph) returns: Vec<Param>,
}

#[derive(Clone)]
pub(in crate::static_graph) struct Function {
    pub(in crate::static_graph) name: Arc<str>,
    /// `None` if the number of parameters is not fixed.
    pub(in crate::static_graph) signature: Option<Signature>,
    pub(in crate::static_graph) call: UserFn,
    /// The type of the function or closure, and its size; `None` for a formula that a trace has found.
    pub(in crate::static_graph) of: Option<(TypeId, usize)>,
}

// A panic in the function is an error of the run, and any state that it leaves is the function's own.
impl UnwindSafe for Function {}
impl RefUnwindSafe for Function {}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Function {
    pub(in crate::static_graph) fn new<F, Marker, const M: usize, const N: usize>(f: F) -> Self
    where
        F: PyFunc<Marker, M, N>,
    {
        let call = move |args: &[Option<AnyTensor>]| f.call(args);
        Self { signature: Some(F::signature()), ..Self::called::<F>(Arc::new(call)) }
    }

    pub(in crate::static_graph) fn of_list<F>(f: F) -> Self
    where
        F: Fn(&[Option<AnyTensor>]) -> Result<Vec<Option<AnyTensor>>, String>
            + Send
            + Sync
            + 'static,
    {
        Self::called::<F>(Arc::new(move |args: &[_]| f(args).map_err(Error::custom)))
    }

    fn called<F: 'static>(call: UserFn) -> Self {
        let of = Some((TypeId::of::<F>(), size_of::<F>()));
        Self { name: name_of(type_name::<F>()).into(), signature: None, call, of }
    }

    /// Requires as many values as are declared: a function that is given to a loaded program may return others.
    pub(in crate::static_graph) fn require_count(found: usize, declared: usize) -> Computed<()> {
        if found == declared {
            return Ok(());
        }
        let are = if declared == 1 { "is" } else { "are" };
        let found = Plural(found, "value", "values");
        Err(format!("returned {found}, {declared} {are} declared"))
    }

    /// Whether loading may replace a function by this one; not for closures of one type that capture values.
    pub(in crate::static_graph) fn is_same(&self, other: &Self) -> bool {
        let same_type = match (self.of, other.of) {
            (Some(own), Some(other)) => own == other && own.1 == 0,
            _ => true,
        };
        same_type || Arc::ptr_eq(&self.call, &other.call)
    }
}

/// `tanh` for `my_crate::tanh<f64>`, `CusTanh` for `my_crate::_::<impl my_crate::CusTanh>::apply`, and
/// `CusTanh::backward` for its other function.
fn name_of(path: &str) -> String {
    let mut depth = 0;
    let between = |c: char| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        c == ':' && depth == 0
    };
    let is_name = |part: &&str| !matches!(*part, "" | "{{closure}}");
    let parts: Vec<&str> = path.split(between).filter(is_name).collect();
    let cut = |part: &'_ str| part.find('<').filter(|&at| at > 0).unwrap_or(part.len());
    let mut names = parts.iter().rev().map(|part| &part[..cut(part)]);
    let name = names.next().unwrap_or(path);
    let owner = match name {
        "apply" | "try_apply" | "forward" | "backward" => names.next(),
        _ => None,
    };
    let Some(owner) = owner else { return name.to_owned() };
    let of_impl = owner.strip_prefix("<impl ").and_then(|of| of.strip_suffix('>'));
    let owner = of_impl.map_or_else(|| owner.to_owned(), name_of);
    if name == "backward" { format!("{owner}::backward") } else { owner }
}

/// A parameter type: a view of an ndarray array, a reference to a tensor, or an `Option` of either.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the function of a py_func cannot take a `{Self}`",
    label = "not a parameter of a py_func",
    note = "a parameter is `ArrayView<T, D>` (`ArrayViewD<T>`, `ArrayView2<T>` ..), `&Tensor<T>`, or an `Option` of either for a gradient that may not come"
)]
pub trait PyFuncParam {
    /// The same type for any lifetime.
    type Item<'a>;
    type Element;
    #[doc(hidden)]
    const PARAM: Param;
    #[doc(hidden)]
    fn take(given: Option<&AnyTensor>) -> Result<Self::Item<'_>, String>;
}

fn tensor<T: Element>(given: Option<&AnyTensor>) -> Result<&Tensor<T>, String> {
    let Some(given) = given else {
        return Err("a value is missing that is no `Option`".to_owned());
    };
    given.downcast_ref().ok_or_else(|| {
        format!("a value must have element type {}, found {}", T::DTYPE, given.dtype())
    })
}

#[diagnostic::do_not_recommend]
impl<T: Element, D: Dimension> PyFuncParam for ArrayView<'_, T, D> {
    type Item<'a> = ArrayView<'a, T, D>;
    type Element = T;
    const PARAM: Param = Param { dtype: T::DTYPE, rank: D::NDIM, optional: false };

    fn take(given: Option<&AnyTensor>) -> Result<ArrayView<'_, T, D>, String> {
        let Some(value) = tensor::<T>(given)?.fixed() else {
            return Err("a value was changed in place while the program ran".to_owned());
        };
        let found = value.shape();
        value.view().into_dimensionality().map_err(|_| {
            let axes = Plural(D::NDIM.unwrap_or(0), "axis", "axes");
            format!("a value must have {axes}, found shape {found:?}")
        })
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> PyFuncParam for &Tensor<T> {
    type Item<'a> = &'a Tensor<T>;
    type Element = T;
    const PARAM: Param = Param { dtype: T::DTYPE, rank: None, optional: false };

    fn take(given: Option<&AnyTensor>) -> Result<&Tensor<T>, String> {
        tensor(given)
    }
}

#[diagnostic::do_not_recommend]
impl<P: PyFuncParam> PyFuncParam for Option<P> {
    type Item<'a> = Option<P::Item<'a>>;
    type Element = P::Element;
    const PARAM: Param = Param { optional: true, ..P::PARAM };

    fn take(given: Option<&AnyTensor>) -> Result<Option<P::Item<'_>>, String> {
        given.map(|given| P::take(Some(given))).transpose()
    }
}

/// A value that a function returns.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the function of a py_func cannot return a `{Self}`",
    label = "not an array or a tensor",
    note = "a returned value is `Array<T, D>` (`ArrayD<T>`, `Array2<T>` ..), `Tensor<T>`, or an `Option` of either for a gradient that there may not be"
)]
pub trait PyFuncValue {
    type Element;
    #[doc(hidden)]
    const PARAM: Param;
    #[doc(hidden)]
    fn give(self) -> Option<AnyTensor>;
}

#[diagnostic::do_not_recommend]
impl<T: Element, D: Dimension> PyFuncValue for Array<T, D> {
    type Element = T;
    const PARAM: Param = Param { dtype: T::DTYPE, rank: D::NDIM, optional: false };

    fn give(self) -> Option<AnyTensor> {
        Some(Tensor::from(self).into())
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> PyFuncValue for Tensor<T> {
    type Element = T;
    const PARAM: Param = Param { dtype: T::DTYPE, rank: None, optional: false };

    fn give(self) -> Option<AnyTensor> {
        Some(self.into())
    }
}

#[diagnostic::do_not_recommend]
impl<V: PyFuncValue> PyFuncValue for Option<V> {
    type Element = V::Element;
    const PARAM: Param = Param { optional: true, ..V::PARAM };

    fn give(self) -> Option<AnyTensor> {
        self.and_then(V::give)
    }
}

/// The return type of a function: nothing, a value, a tuple of values, or a `Result` of these.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the function of a py_func cannot return a `{Self}`",
    label = "not arrays or tensors alone",
    note = "it returns nothing, an `Array<T, D>` or a `Tensor<T>`, a tuple of them, or a `Result` of any of it; the error is a `std::error::Error` that is `Send` and `Sync`, a box of one, or a text"
)]
pub trait PyFuncReturn<const N: usize> {
    #[doc(hidden)]
    fn params() -> Vec<Param>;
    #[doc(hidden)]
    fn give(self) -> Returned;
}

#[diagnostic::do_not_recommend]
impl<V: PyFuncValue> PyFuncReturn<1> for V {
    fn params() -> Vec<Param> {
        vec![V::PARAM]
    }
    fn give(self) -> Returned {
        Ok(vec![PyFuncValue::give(self)])
    }
}

macro_rules! returns_several {
    ($($count:literal ($($value:ident)*);)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($value: PyFuncValue),*> PyFuncReturn<$count> for ($($value,)*) {
            fn params() -> Vec<Param> {
                vec![$($value::PARAM),*]
            }
            #[allow(non_snake_case, reason = "the names of the types serve the values too")]
            fn give(self) -> Returned {
                let ($($value,)*) = self;
                Ok(vec![$($value.give()),*])
            }
        }
    )*};
}

returns_several! {
    0 ();
    2 (A B);
    3 (A B C);
    4 (A B C D);
    5 (A B C D E);
    6 (A B C D E F);
    7 (A B C D E F G);
    8 (A B C D E F G H);
}

#[diagnostic::do_not_recommend]
impl<R, E, const N: usize> PyFuncReturn<N> for Result<R, E>
where
    R: PyFuncReturn<N>,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    fn params() -> Vec<Param> {
        R::params()
    }
    fn give(self) -> Returned {
        self.map_err(Error::custom)?.give()
    }
}

/// A function of `M` inputs and `N` outputs that can be an operator: see
/// [`Program::py_func`](crate::static_graph::Program::py_func).
///
/// ```
/// use autograd_core::static_graph::{Executor, Program};
/// use autograd_core::{DType, Tensor};
///
/// fn root(x: &Tensor<f64>) -> Result<Tensor<f64>, String> {
///     if x.min().item() < 0.0 { Err(format!("negative: {x}")) } else { Ok(x.sqrt()) }
/// }
///
/// let program = Program::new();
/// let x = program.data("x", [1], DType::Float64)?;
/// let y = program.current_block().create_var("y", DType::Float64, [1])?;
/// program.py_func(root).x(&x).out(&y).call()?;
/// let run = |x: f64| Executor::new().run(&program, &[("x", &Tensor::from([x]))], &[&y]);
/// assert_eq!(run(9.0)?[0].norm(), 3.0);
/// assert!(run(-9.0).unwrap_err().to_string().contains("negative"));
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "this is no function that a program can call",
    label = "`{Self}` is not a function of `&Tensor<T>` or array views",
    note = "it takes up to 12 of `&Tensor<T>`, as a traced closure does, `ArrayView<T, D>` and `Option`s of them, and returns nothing, a `Tensor<T>`, an `Array<T, D>`, a tuple of them, or a `Result` of any of it; the error is a `std::error::Error` that is `Send` and `Sync`, a box of one, or a text",
    note = "it is kept by the program and may run on any thread: `Send + Sync + 'static`; write `move` and `Arc<Mutex<..>>` for state that it changes",
    note = "a closure says the types of its parameters: `|x: &Tensor<f32>| ..`"
)]
pub trait PyFunc<Marker, const M: usize, const N: usize>: Send + Sync + 'static {
    #[doc(hidden)]
    fn signature() -> Signature;
    #[doc(hidden)]
    fn call(&self, args: &[Option<AnyTensor>]) -> Returned;
}

macro_rules! functions {
    ($($count:literal ($($param:ident)*);)*) => {$(
        impl<F, R, const N: usize, $($param: PyFuncParam),*>
            PyFunc<(($(PhantomData<$param>,)*), R), $count, N> for F
        where
            F: Fn($($param),*) -> R + for<'a> Fn($($param::Item<'a>),*) -> R + Send + Sync + 'static,
            R: PyFuncReturn<N>,
        {
            fn signature() -> Signature {
                Signature { params: vec![$($param::PARAM),*], returns: R::params() }
            }

            #[allow(non_snake_case, reason = "the names of the types serve the values too")]
            fn call(&self, args: &[Option<AnyTensor>]) -> Returned {
                // By the arguments' own types: `Self` is called for any lifetime.
                #[allow(clippy::too_many_arguments, reason = "as many as the user's function has")]
                fn call<$($param,)* R>(f: impl Fn($($param),*) -> R, $($param: $param),*) -> R {
                    f($($param),*)
                }
                let [$($param),*] = args else {
                    let takes = Plural($count, "value", "values");
                    return Err(Error::custom(format!("takes {takes}, was given {}", args.len())));
                };
                call(self, $(<$param>::take($param.as_ref()).map_err(Error::custom)?),*).give()
            }
        }
    )*};
}

functions! {
    0 ();
    1 (A);
    2 (A B);
    3 (A B C);
    4 (A B C D);
    5 (A B C D E);
    6 (A B C D E G);
    7 (A B C D E G H);
    8 (A B C D E G H I);
    9 (A B C D E G H I J);
    10 (A B C D E G H I J K);
    11 (A B C D E G H I J K L);
    12 (A B C D E G H I J K L O);
}

/// Whether a parameter or result of backward has the element type of the part of forward with the same name.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`backward` has elements of type `{Self}` where `forward` has `{T}`",
    label = "holds `{Self}`, expected `{T}`",
    note = "a value keeps its element type, and a gradient has that of what it is a gradient of"
)]
pub trait SameElement<T> {}

#[diagnostic::do_not_recommend]
impl<T: Element> SameElement<T> for T {}

/// Proves the element type of an input that backward takes.
pub fn same_as_input<A: PyFuncParam + ?Sized, B: PyFuncParam + ?Sized>()
where
    A::Element: SameElement<B::Element>,
{
}

/// Proves the element type of an output, or of its gradient, that backward takes.
pub fn same_as_output<A: PyFuncParam + ?Sized, B: PyFuncValue + ?Sized>()
where
    A::Element: SameElement<B::Element>,
{
}

/// Proves the element type of a gradient that backward returns.
pub fn gradient_of_input<A: PyFuncValue + ?Sized, B: PyFuncParam + ?Sized>()
where
    A::Element: SameElement<B::Element>,
{
}
