//! `py_func`: a user's function over arrays as an operator.

mod op;
mod signature;

use std::sync::Arc;

pub(super) use signature::Function;
pub use signature::{Param, PyFunc, PyFuncParam, PyFuncReturn, PyFuncValue, Signature};
pub use signature::{gradient_of_input, same_as_input, same_as_output};

use super::ir::{Kind, Op, Phase, PyFuncOp, Site, VarId};
use super::program::{Program, Variable};
use crate::error::{Plural, Result};
use crate::graph::AnyTensor;
use crate::ops::table::{Computed, Form};

impl Program {
    /// Adds a user's function over arrays as an operator.
    ///
    /// The function takes views of ndarray arrays (or `&Tensor`), one for each input, and returns arrays (or
    /// tensors), one for each output: nothing, one, or a tuple, or a `Result` of that, whose error is the
    /// [`source`](std::error::Error::source) of the run's. It is called once in every run, even if its outputs are not
    /// fetched. Others do not see what it writes to its inputs. It runs with recording off: a gradient inside of it
    /// is computed in [`enable_grad`](crate::enable_grad)`().run(..)`.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Program};
    /// use ndarray::{ArrayD, ArrayViewD, arr1};
    ///
    /// fn square(x: ArrayViewD<f32>) -> ArrayD<f32> {
    ///     &x * &x
    /// }
    ///
    /// fn square_grad(x: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
    ///     2.0 * &x * dy
    /// }
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1], DType::Float32)?;
    /// let out = program.current_block().create_var("y", x.dtype(), x.shape())?;
    /// let y = program
    ///     .py_func(square)
    ///     .x(&x)
    ///     .out(&out)
    ///     .backward_func(square_grad)
    ///     .skip_vars_in_backward_input([&out])
    ///     .call()?;
    /// let fetched = Executor::new().run(&program, &[("x", &arr1(&[1.0_f32, 3.0]))], &[&y])?;
    /// assert_eq!(fetched[0].downcast_ref::<f32>().unwrap().to_vec(), [1.0, 9.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn py_func<F, Marker, const M: usize, const N: usize>(&self, func: F) -> PyFuncCall<M, N>
    where
        F: PyFunc<Marker, M, N>,
    {
        PyFuncCall(Building::new(self, Function::new(func)))
    }

    /// [`Program::py_func`] for a function of lists: each run checks their lengths and element types.
    ///
    /// ```
    /// use autograd_core::static_graph::{Executor, Program};
    /// use autograd_core::{AnyTensor, DType, Tensor};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [2], DType::Float64)?;
    /// let out = program.current_block().create_var("out", x.dtype(), x.shape())?;
    /// let double = |inputs: &[Option<AnyTensor>]| {
    ///     let Some(AnyTensor::Float64(x)) = &inputs[0] else { return Err("no input".to_owned()) };
    ///     Ok(vec![Some((x * 2.0).into())])
    /// };
    /// // The backward function gets no inputs and outputs, only the gradient of the output.
    /// program
    ///     .py_func_list(double)
    ///     .name("double")
    ///     .x(&[&x])
    ///     .out(&[&out])
    ///     .skip_vars_in_backward_input([&x, &out])
    ///     .backward_func(double)
    ///     .call()?;
    /// let run = Executor::new().run(&program, &[("x", &Tensor::from([1.0, 2.0]))], &[&out])?;
    /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [2.0, 4.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn py_func_list<F>(&self, func: F) -> PyFuncListCall
    where
        F: Fn(&[Option<AnyTensor>]) -> Result<Vec<Option<AnyTensor>>, String>
            + Send
            + Sync
            + 'static,
    {
        PyFuncListCall(Building::new(self, Function::of_list(func)))
    }
}

macro_rules! parts {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident $(<$of:lifetime>)? ($arg:ident: $type:ty): $($part:ident).+ = $value:expr;
    )*) => {$(
        $(#[$doc])*
        pub fn $name $(<$of>)? (mut self, $arg: $type) -> Self {
            self.0.$($part).+ = $value;
            self
        }
    )*};
}
pub(super) use parts;

/// One variable or an array of them, as inputs of a function that takes `N`; see [`Program::py_func`].
///
/// ```
/// use autograd_core::static_graph::{Executor, Program};
/// use autograd_core::{DType, Tensor};
///
/// let program = Program::new();
/// let x = program.data("x", [1], DType::Float64)?;
/// let block = program.current_block();
/// let double = block.create_var("double", DType::Float64, [1])?;
/// let product = block.create_var("product", DType::Float64, [1])?;
/// program.py_func(|x: &Tensor<f64>| x * 2.0).x(&x).out(&double).call()?;
/// let multiply = |a: &Tensor<f64>, b: &Tensor<f64>| a * b;
/// program.py_func(multiply).x([&x, &double]).out(&product).call()?;
/// let run = Executor::new().run(&program, &[("x", &Tensor::from([3.0]))], &[&product])?;
/// assert_eq!(run[0].norm(), 18.0);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the function needs another number of variables here: {N}",
    label = "expected {N}, found `{Self}`",
    note = "give one for each parameter, or for each returned value: `&a` for one, `[&a, &b]` for two"
)]
pub trait Variables<const N: usize> {
    #[doc(hidden)]
    fn list(self) -> Vec<Variable>;
}

#[diagnostic::do_not_recommend]
impl<const N: usize> Variables<N> for [&Variable; N] {
    fn list(self) -> Vec<Variable> {
        self.into_iter().cloned().collect()
    }
}

#[diagnostic::do_not_recommend]
impl Variables<1> for &Variable {
    fn list(self) -> Vec<Variable> {
        vec![self.clone()]
    }
}

/// The result of a call with `N` outputs: `()`, a variable, or an array of them.
#[doc(hidden)]
pub struct Arity<const N: usize>;

#[doc(hidden)]
pub trait Outcome {
    type Variables;
    fn of(list: Vec<Variable>) -> Self::Variables;
}

macro_rules! outcomes {
    ($($count:literal $variables:ty: $list:pat => $value:expr;)*) => {$(
        impl Outcome for Arity<$count> {
            type Variables = $variables;
            fn of(list: Vec<Variable>) -> $variables {
                let Ok($list) = <[Variable; $count]>::try_from(list) else {
                    unreachable!("as many as there are outputs")
                };
                $value
            }
        }
    )*};
}

outcomes! {
    0 (): [] => ();
    1 Variable: [one] => one;
    2 [Variable; 2]: all => all;
    3 [Variable; 3]: all => all;
    4 [Variable; 4]: all => all;
    5 [Variable; 5]: all => all;
    6 [Variable; 6]: all => all;
    7 [Variable; 7]: all => all;
    8 [Variable; 8]: all => all;
}

/// A [`py_func`](Program::py_func) that is being built: `M` inputs, `N` outputs. An example is there.
#[must_use = "nothing is added to the program before `call()`"]
pub struct PyFuncCall<const M: usize, const N: usize>(Building);

impl<const M: usize, const N: usize> PyFuncCall<M, N> {
    parts! {
        /// The function's inputs, of any shapes: `&x`, or `[&x, &w]`.
        ///
        /// ```
        /// use autograd_core::DType;
        /// use autograd_core::static_graph::{Executor, Program};
        /// use ndarray::{ArrayD, ArrayViewD, arr1};
        ///
        /// fn hypot(a: ArrayViewD<f64>, b: ArrayViewD<f64>) -> ArrayD<f64> {
        ///     (&a * &a + &b * &b).sqrt()
        /// }
        ///
        /// let program = Program::new();
        /// let a = program.data("a", [1], DType::Float64)?;
        /// let b = program.data("b", [1], DType::Float64)?;
        /// let out = program.current_block().create_var("out", DType::Float64, [1])?;
        /// program.py_func(hypot).x([&a, &b]).out(&out).call()?;
        /// let feed = (arr1(&[3.0]), arr1(&[4.0]));
        /// let run = Executor::new().run(&program, &[("a", &feed.0), ("b", &feed.1)], &[&out])?;
        /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [5.0]);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn x(variables: impl Variables<M>): inputs = Some(variables.list());

        /// The outputs, from [`Block::create_var`](super::Block::create_var): `&y`, or `[&y, &z]`.
        ///
        /// ```
        /// use autograd_core::DType;
        /// use autograd_core::static_graph::{Executor, Program};
        /// use ndarray::{ArrayD, ArrayViewD, arr1};
        ///
        /// fn parts(x: ArrayViewD<f64>) -> (ArrayD<f64>, ArrayD<f64>) {
        ///     (x.trunc(), x.fract())
        /// }
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [1], DType::Float64)?;
        /// let block = program.current_block();
        /// let whole = block.create_var("whole", DType::Float64, [1])?;
        /// let rest = block.create_var("rest", DType::Float64, [1])?;
        /// program.py_func(parts).x(&x).out([&whole, &rest]).call()?;
        /// let run = Executor::new().run(&program, &[("x", &arr1(&[2.25]))], &[&whole, &rest])?;
        /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [2.0]);
        /// assert_eq!(run[1].downcast_ref::<f64>().unwrap().to_vec(), [0.25]);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn out(variables: impl Variables<N>): outputs = Some(variables.list());

        /// Inputs and outputs that are not passed to the backward function.
        ///
        /// ```
        /// use autograd_core::DType;
        /// use autograd_core::static_graph::Program;
        /// use ndarray::{ArrayD, ArrayViewD};
        ///
        /// fn exp(x: ArrayViewD<f64>) -> ArrayD<f64> {
        ///     x.exp()
        /// }
        /// fn exp_grad(y: ArrayViewD<f64>, dy: ArrayViewD<f64>) -> ArrayD<f64> {
        ///     &y * &dy
        /// }
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [-1], DType::Float64)?;
        /// let y = program.current_block().create_var("y", x.dtype(), x.shape())?;
        /// let call = || program.py_func(exp).x(&x).out(&y).backward_func(exp_grad);
        /// let error = call().call().unwrap_err().to_string();
        /// assert!(error.contains("takes 2 values, but is given 3: x, y, y@GRAD"));
        /// call().skip_vars_in_backward_input([&x]).call()?;
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn skip_vars_in_backward_input<'v>(variables: impl IntoIterator<Item = &'v Variable>):
            skipped = variables.into_iter().cloned().collect();

        /// The name that texts, errors and files show; by default the function's own.
        ///
        /// ```
        /// use autograd_core::DType;
        /// use autograd_core::static_graph::Program;
        /// use ndarray::{ArrayD, ArrayViewD};
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [-1], DType::Float64)?;
        /// let y = program.current_block().create_var("y", x.dtype(), x.shape())?;
        /// let double = |x: ArrayViewD<f64>| -> ArrayD<f64> { 2.0 * &x };
        /// program.py_func(double).name("double").x(&x).out(&y).call()?;
        /// assert!(program.to_string().ends_with("y: float64 [-1] = py_func `double`(x)\n"));
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn name(name: &str): function.name = name.into();
    }

    /// The function that computes the inputs' gradients. Its arguments are the inputs, the outputs and the
    /// outputs' gradients, in this order, without those that are skipped; it returns one gradient for each
    /// input, or `None` if the input wants none. An absent gradient, as that of an integer output, is `None` if
    /// the parameter is an `Option`, otherwise zeros.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Program, gradients};
    /// use ndarray::{ArrayD, ArrayViewD, arr1};
    ///
    /// fn square(x: ArrayViewD<f64>) -> ArrayD<f64> {
    ///     &x * &x
    /// }
    ///
    /// fn square_grad(
    ///     x: ArrayViewD<f64>,
    ///     _y: ArrayViewD<f64>,
    ///     dy: ArrayViewD<f64>,
    /// ) -> ArrayD<f64> {
    ///     2.0 * &x * &dy
    /// }
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1], DType::Float64)?;
    /// x.set_stop_gradient(false);
    /// let y = program.current_block().create_var("y", x.dtype(), x.shape())?;
    /// program.py_func(square).x(&x).out(&y).backward_func(square_grad).call()?;
    /// let dx = gradients(&[&y], &[&x])?.remove(0).unwrap();
    /// let run = Executor::new().run(&program, &[("x", &arr1(&[1.0, 3.0]))], &[&dx])?;
    /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [2.0, 6.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn backward_func<F, Marker, const P: usize, const R: usize>(mut self, func: F) -> Self
    where
        F: PyFunc<Marker, P, R>,
    {
        self.0.backward = vec![Function::new(func)];
        self
    }

    /// The backward function of the backward function. Its arguments are those of the backward function, its
    /// results, and their gradients; it returns one gradient for each argument of the backward function.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Program, gradients};
    /// use ndarray::{ArrayD, ArrayViewD, arr1};
    ///
    /// fn square(x: ArrayViewD<f64>) -> ArrayD<f64> {
    ///     &x * &x
    /// }
    /// fn square_grad(x: ArrayViewD<f64>, dy: ArrayViewD<f64>) -> ArrayD<f64> {
    ///     2.0 * &x * dy
    /// }
    /// // Of the arguments `x` and `dy` of `square_grad`, by the gradient `ddx` of its result.
    /// fn square_grad_grad(
    ///     x: ArrayViewD<f64>,
    ///     dy: ArrayViewD<f64>,
    ///     _dx: ArrayViewD<f64>,
    ///     ddx: ArrayViewD<f64>,
    /// ) -> (ArrayD<f64>, ArrayD<f64>) {
    ///     (2.0 * &dy * &ddx, 2.0 * &x * &ddx)
    /// }
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1], DType::Float64)?;
    /// x.set_stop_gradient(false);
    /// let y = program.current_block().create_var("y", x.dtype(), x.shape())?;
    /// let y = program
    ///     .py_func(square)
    ///     .name("square")
    ///     .x(&x)
    ///     .out(&y)
    ///     .skip_vars_in_backward_input([&y])
    ///     .backward_func(square_grad)
    ///     .second_backward_func(square_grad_grad)
    ///     .call()?;
    /// let dx = gradients(&[&y], &[&x])?.remove(0).unwrap();
    /// let d2x = gradients(&[&dx], &[&x])?.remove(0).unwrap();
    /// let run = Executor::new().run(&program, &[("x", &arr1(&[3.0]))], &[&d2x])?;
    /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [2.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn second_backward_func<F, Marker, const P: usize, const R: usize>(
        mut self,
        func: F,
    ) -> Self
    where
        F: PyFunc<Marker, P, R>,
    {
        self.0.backward.push(Function::new(func));
        self
    }

    /// Adds the operator to the program and returns the variables given as `out`.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    /// use ndarray::{ArrayD, ArrayViewD};
    ///
    /// fn square(x: ArrayViewD<f64>) -> ArrayD<f64> {
    ///     &x * &x
    /// }
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1], DType::Float64)?;
    /// let y = program.current_block().create_var("y", x.dtype(), x.shape())?;
    /// let error = program.py_func(square).out(&y).call().unwrap_err();
    /// assert!(error.to_string().contains("takes 1 input, but none is given"));
    /// assert_eq!(program.py_func(square).x(&x).out(&y).call()?.name(), "y");
    /// assert!(program.py_func(square).x(&x).out(&y).call().is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `x` or `out` is missing; there is neither an input nor an
    /// output; a variable is of another program, does not fit the function's parameter, or is computed
    /// already; a skipped variable is neither an input nor an output; or the backward function does not fit.
    #[track_caller]
    pub fn call(self) -> Result<<Arity<N> as Outcome>::Variables>
    where
        Arity<N>: Outcome,
    {
        Ok(Arity::<N>::of(self.0.finish([M, N])?))
    }
}

/// An operator that [`py_func`](macro@super::py_func) defines, as the functions of a program to load.
///
/// ```
/// # #[cfg(feature = "safetensors")]
/// # {
/// use autograd_core::static_graph::{Functions, PyFuncBlock, py_func};
/// use ndarray::{ArrayD, ArrayViewD};
///
/// #[py_func]
/// impl Triple {
///     fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
///         3.0 * &x
///     }
/// }
///
/// fn functions_of<B: PyFuncBlock>() -> Functions {
///     Functions::new().with_block::<B>()
/// }
///
/// assert!(format!("{:?}", functions_of::<Triple>()).contains("Triple"));
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operator that `#[py_func]` defines",
    note = "a function or a `#[py_layer]` op is given with its name: `.with(\"Square\", Square::apply)`"
)]
pub trait PyFuncBlock {
    #[doc(hidden)]
    fn build(program: &Program) -> BlockCall;
}

/// A call of a block's operator, without its variables.
#[doc(hidden)]
pub struct BlockCall(Building);

impl BlockCall {
    pub fn of<const M: usize, const N: usize>(PyFuncCall(mut call): PyFuncCall<M, N>) -> Self {
        let name = format!("{}::backward", call.function.name);
        call.backward.iter_mut().for_each(|backward| backward.name = name.as_str().into());
        Self(call)
    }

    /// `M` and `N` are those of [`BlockCall::of`].
    pub fn with_counts<const M: usize, const N: usize>(self) -> PyFuncCall<M, N> {
        PyFuncCall(self.0)
    }

    #[cfg_attr(
        not(feature = "safetensors"),
        allow(dead_code, reason = "programs are loaded by it")
    )]
    pub(super) fn functions(self) -> impl Iterator<Item = Function> {
        std::iter::once(self.0.function).chain(self.0.backward)
    }
}

/// `Tanh<f32>`: the type's name, without the modules.
pub fn name_of_block<B>() -> String {
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    let parts = std::any::type_name::<B>().split_inclusive(|c| !is_path(c));
    parts.map(|part| part.rsplit("::").next().unwrap_or_default()).collect()
}

/// A [`py_func_list`](Program::py_func_list) that is being built. An example is there.
#[must_use = "nothing is added to the program before `call()`"]
pub struct PyFuncListCall(Building);

impl PyFuncListCall {
    parts! {
        /// The inputs, in the order of the list that the function gets.
        ///
        /// ```
        /// use autograd_core::static_graph::{Executor, Program};
        /// use autograd_core::{AnyTensor, DType, Tensor};
        ///
        /// let program = Program::new();
        /// let a = program.data("a", [1], DType::Float64)?;
        /// let b = program.data("b", [1], DType::Float64)?;
        /// let last = program.current_block().create_var("last", DType::Float64, [1])?;
        /// let pick = |list: &[Option<AnyTensor>]| Ok(vec![list.last().unwrap().clone()]);
        /// program.py_func_list(pick).x(&[&a, &b]).out(&[&last]).call()?;
        /// let (one, two) = (Tensor::from([1.0]), Tensor::from([2.0]));
        /// let run = Executor::new().run(&program, &[("a", &one), ("b", &two)], &[&last])?;
        /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [2.0]);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn x(variables: &[&Variable]): inputs = Some(variables.iter().copied().cloned().collect());

        /// The outputs, in the order of the list that the function returns.
        ///
        /// ```
        /// use autograd_core::static_graph::{Executor, Program};
        /// use autograd_core::{AnyTensor, DType, Tensor};
        ///
        /// let program = Program::new();
        /// let block = program.current_block();
        /// let x = program.data("x", [1], DType::Float64)?;
        /// let y = block.create_var("y", DType::Float64, [1])?;
        /// let z = block.create_var("z", DType::Float64, [1])?;
        /// let twice = |list: &[Option<AnyTensor>]| Ok([list, list].concat());
        /// program.py_func_list(twice).x(&[&x]).out(&[&y, &z]).call()?;
        /// let run = Executor::new().run(&program, &[("x", &Tensor::from([3.0]))], &[&y, &z])?;
        /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [3.0]);
        /// assert_eq!(run[1].downcast_ref::<f64>().unwrap().to_vec(), [3.0]);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn out(variables: &[&Variable]): outputs = Some(variables.iter().copied().cloned().collect());

        /// As [`PyFuncCall::skip_vars_in_backward_input`].
        ///
        /// ```
        /// use autograd_core::static_graph::{Executor, Program, gradients};
        /// use autograd_core::{AnyTensor, DType, Tensor};
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [1], DType::Float64)?;
        /// x.set_stop_gradient(false);
        /// let y = program.current_block().create_var("y", x.dtype(), x.shape())?;
        /// let same = |list: &[Option<AnyTensor>]| Ok(list.to_vec());
        /// // It gets `dy` alone; without this line, `x` and `y` too.
        /// let backward = |list: &[Option<AnyTensor>]| match list {
        ///     [Some(AnyTensor::Float64(dy))] => Ok(vec![Some(dy.clone().into())]),
        ///     _ => Err(format!("{} tensors", list.len())),
        /// };
        /// let call = program.py_func_list(same).x(&[&x]).out(&[&y]).backward_func(backward);
        /// call.skip_vars_in_backward_input([&x, &y]).call()?;
        /// let dx = gradients(&[&y], &[&x])?.remove(0).unwrap();
        /// let run = Executor::new().run(&program, &[("x", &Tensor::from([3.0]))], &[&dx])?;
        /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [1.0]);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn skip_vars_in_backward_input<'v>(variables: impl IntoIterator<Item = &'v Variable>):
            skipped = variables.into_iter().cloned().collect();

        /// As [`PyFuncCall::name`].
        ///
        /// ```
        /// use autograd_core::static_graph::Program;
        /// use autograd_core::{AnyTensor, DType};
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [1], DType::Float64)?;
        /// let y = program.current_block().create_var("y", x.dtype(), x.shape())?;
        /// let same = |list: &[Option<AnyTensor>]| Ok(list.to_vec());
        /// program.py_func_list(same).name("identity").x(&[&x]).out(&[&y]).call()?;
        /// assert!(program.to_string().ends_with("y: float64 [1] = py_func `identity`(x)\n"));
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn name(name: &str): function.name = name.into();
    }

    /// As [`PyFuncCall::backward_func`], for a function of a list.
    ///
    /// ```
    /// use autograd_core::static_graph::{Executor, Program, gradients};
    /// use autograd_core::{AnyTensor, DType, Tensor};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [1], DType::Float64)?;
    /// x.set_stop_gradient(false);
    /// let y = program.current_block().create_var("y", x.dtype(), x.shape())?;
    /// let same = |list: &[Option<AnyTensor>]| Ok(list.to_vec());
    /// // Of `x`, `y` and `dy`, the last is the gradient.
    /// let backward = |list: &[Option<AnyTensor>]| Ok(vec![list[2].clone()]);
    /// program.py_func_list(same).x(&[&x]).out(&[&y]).backward_func(backward).call()?;
    /// let dx = gradients(&[&(&y * 5.0)], &[&x])?.remove(0).unwrap();
    /// let run = Executor::new().run(&program, &[("x", &Tensor::from([3.0]))], &[&dx])?;
    /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [5.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn backward_func<F>(mut self, func: F) -> Self
    where
        F: Fn(&[Option<AnyTensor>]) -> Result<Vec<Option<AnyTensor>>, String>
            + Send
            + Sync
            + 'static,
    {
        self.0.backward = vec![Function::of_list(func)];
        self
    }

    /// Adds the operator to the program and returns its outputs.
    ///
    /// ```
    /// use autograd_core::static_graph::Program;
    /// use autograd_core::{AnyTensor, DType};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [1], DType::Float64)?;
    /// let y = program.current_block().create_var("y", x.dtype(), x.shape())?;
    /// let same = |list: &[Option<AnyTensor>]| Ok(list.to_vec());
    /// let outputs = program.py_func_list(same).x(&[&x]).out(&[&y]).call()?;
    /// assert_eq!(outputs[0].name(), "y");
    /// assert!(program.py_func_list(same).call().is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`PyFuncCall::call`].
    #[track_caller]
    pub fn call(self) -> Result<Vec<Variable>> {
        self.0.finish([0, 0])
    }
}

pub(super) struct Building {
    pub(super) program: Program,
    pub(super) function: Function,
    pub(super) inputs: Option<Vec<Variable>>,
    pub(super) outputs: Option<Vec<Variable>>,
    backward: Vec<Function>,
    skipped: Vec<Variable>,
}

impl Building {
    pub(super) fn new(program: &Program, function: Function) -> Self {
        Self {
            program: program.clone(),
            function,
            inputs: None,
            outputs: None,
            backward: Vec::new(),
            skipped: Vec::new(),
        }
    }

    pub(super) fn given(&self, takes: usize, site: &Site<'_>) -> Result<(Vec<VarId>, Vec<Form>)> {
        let inputs = self.inputs.as_deref().unwrap_or_default();
        if inputs.len() != takes {
            let takes = Plural(takes, "input", "inputs");
            return site.refuse(format!("takes {takes}, given with `x`"));
        }
        let own = self.program.own_all(site, inputs)?;
        let forms: Vec<Form> = inputs.iter().map(Variable::form).collect();
        let params = self.function.signature.iter().flat_map(|signature| &signature.params);
        for ((param, form), variable) in params.zip(&forms).zip(inputs) {
            if param.dtype != form.dtype {
                let (takes, name) = (param.dtype, variable.name());
                return site.refuse(format!("takes {takes}, but `{name}` is {}", form.dtype));
            }
        }
        Ok((own, forms))
    }

    /// Adds a function of so many parameters and returned values, if those numbers are fixed.
    #[track_caller]
    fn finish(self, [takes, returns]: [usize; 2]) -> Result<Vec<Variable>> {
        let call = format!("py_func `{}`", self.function.name);
        let site = Site::here(&call);
        let wrong = |why: String| site.wrong(why);
        if takes > 0 && self.inputs.is_none() {
            return Err(wrong(format!(
                "takes {}, but none is given; give what it takes with `x`",
                Plural(takes, "input", "inputs")
            )));
        }
        if returns > 0 && self.outputs.is_none() {
            return Err(wrong(format!(
                "returns {}, but no `out` is declared; make what it returns with `create_var`, and \
                 give it with `out`",
                Plural(returns, "value", "values")
            )));
        }
        let inputs = self.inputs.unwrap_or_default();
        let outputs = self.outputs.unwrap_or_default();
        if inputs.is_empty() && outputs.is_empty() {
            return Err(wrong("has neither an input nor an output".to_owned()));
        }
        let own = |variables: &[Variable]| self.program.own_all(&site, variables);
        let (input_ids, output_ids) = (own(&inputs)?, own(&outputs)?);
        let named = |variables: &[Variable]| -> Vec<Named> {
            variables.iter().map(|variable| (variable.name(), variable.form())).collect()
        };
        let (inputs, output_forms) = (named(&inputs), named(&outputs));
        if let Some(Signature { params, returns }) = &self.function.signature {
            fit(params, "the function's parameter", &inputs, |_| true).map_err(wrong)?;
            fit(returns, "the function's result", &output_forms, |_| true).map_err(wrong)?;
        }
        let mut skipped = vec![false; inputs.len() + output_forms.len()];
        if let Some(backward) = self.backward.first() {
            let ids = [&input_ids[..], &output_ids].concat();
            for (id, variable) in own(&self.skipped)?.iter().zip(&self.skipped) {
                if !ids.contains(id) {
                    return Err(wrong(format!(
                        "skips `{}`, which is neither an input nor an output (gradients cannot be \
                         skipped)",
                        variable.name()
                    )));
                }
                ids.iter().zip(&mut skipped).for_each(|(own, skipped)| *skipped |= own == id);
            }
            check_backward(backward, &inputs, &output_forms, &skipped).map_err(wrong)?;
        }
        let func = PyFuncOp {
            function: self.function,
            args: (0..inputs.len()).map(Some).collect(),
            picks: (0..outputs.len()).collect(),
            results: outputs.len(),
            outputs: output_forms.into_iter().map(|(_, form)| form).collect(),
            backward: self.backward.into(),
            skipped,
            is_gradient: false,
        };
        let kind = Kind::PyFunc(Arc::new(func));
        let op = Op::new(kind, &input_ids, &output_ids, Phase::Forward, &site.place);
        self.program.graph().push_op(op)?;
        Ok(outputs)
    }
}

type Named = (String, Form);

/// Checks that variables fit a function's parameters or returned values, as far as `applies`.
fn fit(
    params: &[Param],
    what: &str,
    given: &[Named],
    applies: impl Fn(&Form) -> bool,
) -> Computed<()> {
    for (at, (param, (name, form))) in params.iter().zip(given).enumerate() {
        if let Some(misfit) = param.misfit(form).filter(|_| applies(form)) {
            return Err(format!("{what} {at} {misfit} (`{name}`)"));
        }
    }
    Ok(())
}

fn check_backward(
    backward: &Function,
    inputs: &[Named],
    outputs: &[Named],
    skipped: &[bool],
) -> Computed<()> {
    let Some(Signature { params, returns }) = &backward.signature else { return Ok(()) };
    let of = format!("its backward function `{}`", backward.name);
    let given = inputs.iter().chain(outputs).zip(skipped).filter(|(_, skipped)| !**skipped);
    let gradients = outputs.iter().map(|(name, form)| (format!("{name}@GRAD"), form.clone()));
    let given: Vec<Named> = given.map(|(given, _)| given.clone()).chain(gradients).collect();
    if params.len() != given.len() {
        let names: Vec<&str> = given.iter().map(|(name, _)| name.as_str()).collect();
        let takes = Plural(params.len(), "value", "values");
        let names = names.join(", ");
        return Err(format!("{of} takes {takes}, but is given {}: {names}", given.len()));
    }
    if returns.len() != inputs.len() {
        return Err(format!(
            "{of} returns {}, but there {} {}",
            Plural(returns.len(), "gradient", "gradients"),
            if inputs.len() == 1 { "is" } else { "are" },
            Plural(inputs.len(), "input", "inputs")
        ));
    }
    fit(params, &format!("{of}: parameter"), &given, |_| true)?;
    // A gradient returned for an integer input is dropped.
    fit(returns, &format!("{of}: gradient"), inputs, |form| form.dtype.is_float())
}
