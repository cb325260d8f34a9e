//! The static graph: a [`Program`] is built first, as data, and an [`Executor`] runs it.
//!
//! ```
//! use autograd_core::DType;
//! use autograd_core::static_graph::{Executor, Program, Sgd};
//! use ndarray::{Array2, array};
//!
//! let program = Program::new();
//! let x = program.data("x", [None, Some(4)], DType::Float32)?;
//! let y = program.data("y", [-1], DType::Int64)?;
//! let hidden = program.fc(&x, 8)?.tanh()?;
//! let loss = program.fc(&hidden, 3)?.cross_entropy(&y)?;
//! Sgd::new(0.1).minimize(&loss)?;
//!
//! let executor = Executor::new();
//! executor.run(&program.startup(), &[], &[])?;
//! let (input, classes) = (Array2::<f32>::ones([2, 4]), array![0_i64, 2]);
//! let mut losses = Vec::new();
//! for _ in 0..2 {
//!     let run = executor.run(&program, &[("x", &input), ("y", &classes)], &[&loss])?;
//!     losses.push(run[0].downcast_ref::<f32>().unwrap().item());
//! }
//! assert!(losses[1] < losses[0]);
//! # Ok::<(), autograd_core::Error>(())
//! ```
//!
//! # What is checked when
//!
//! Building a program checks names, element types, shapes (except free axes), cycles, and functions; each
//! error names the operator, the variable and the line. A run checks feeds and results of functions.

mod add;
mod arithmetic;
mod assemble;
mod backward;
mod draw;
mod eager;
mod executor;
#[cfg_attr(
    not(feature = "safetensors"),
    allow(
        dead_code,
        unreachable_pub,
        reason = "programs are read and written as text by their files"
    )
)]
mod file;
mod frame;
mod ir;
mod layers;
mod methods;
mod optim;
mod plan;
mod program;
mod py_func;
mod table;
mod trace;
mod updates;

pub use crate::array::IntoDims;
pub use crate::optim::{Adam, AdamW, RmsProp, Sgd};
pub use arithmetic::IntoOperand;
pub use backward::{append_backward, gradients, gradients_with};
pub use eager::EagerCall;
pub use executor::{Executor, Feed, Fetch};
#[cfg(feature = "safetensors")]
#[cfg_attr(docsrs, doc(cfg(feature = "safetensors")))]
pub use file::Functions;
pub use layers::{BatchNormOptions, FcOptions};
pub use program::{
    Block, Program, ProgramGuard, Variable, default_main_program, default_startup_program,
    program_guard,
};
pub use py_func::{
    Arity, BlockCall, Outcome, Param, PyFunc, PyFuncBlock, PyFuncCall, PyFuncListCall, PyFuncParam,
    PyFuncReturn, PyFuncValue, Signature, Variables,
};
pub use trace::TraceCall;
pub use updates::Init;

/// Defines an operator of programs by an impl block over arrays: [`Program::py_func`] with names.
///
/// `forward` takes views of arrays (or `&Tensor`), one for each input, and returns arrays (or tensors), one
/// for each output: nothing, one, or a tuple, or a `Result` of that. `backward` receives its parameters **by
/// name**: any of the inputs; any of the outputs, which are called `y`, or `y0`, `y1` .. if there are
/// several; and the gradient of each output, `dy` (or `dy0`, `dy1` ..), which may be an `Option`, with `None`
/// for an absent gradient. Inputs and outputs may be left out. It returns one gradient for each input.
/// Without `backward` there is no gradient. `#[py_func(sum, difference)]` gives the outputs other names;
/// their gradients are then `dsum` and `ddifference`.
///
/// The macro defines a struct with a function `call`, whose parameters are the inputs and then the
/// outputs, variables from [`Block::create_var`]. A block for several element types is generic,
/// `impl<T: Float> Tanh<T>`, and called as `Tanh::<f32>::call`; `#[py_func(crate = path)]` names
/// the library's path if that is not `autograd_core`. To load a program that has the operator, the block is
/// given as `Functions::new().with_block::<Tanh>()`; texts and files call its functions `Tanh` and
/// `Tanh::backward`, those of a generic block `Tanh<f32>` and `Tanh<f32>::backward`.
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::static_graph::{Executor, Program, gradients, py_func};
/// use ndarray::{ArrayD, ArrayViewD, arr1};
///
/// #[py_func]
/// impl Tanh {
///     fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
///         x.mapv(f64::tanh)
///     }
///
///     // `x` is not needed, so it is not asked for.
///     fn backward(y: ArrayViewD<f64>, dy: ArrayViewD<f64>) -> ArrayD<f64> {
///         &dy * (1.0 - &y * &y)
///     }
/// }
///
/// let program = Program::new();
/// let x = program.data("x", [-1], DType::Float64)?;
/// x.set_stop_gradient(false);
/// let y = program.current_block().create_var("y", x.dtype(), x.shape())?;
/// let y = Tanh::call(&x, &y)?;
/// let dx = gradients(&[&y], &[&x])?.remove(0).unwrap();
/// let run = Executor::new().run(&program, &[("x", &arr1(&[0.0_f64]))], &[&y, &dx])?;
/// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [0.0]);
/// assert_eq!(run[1].downcast_ref::<f64>().unwrap().to_vec(), [1.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # What the compiler rejects
///
/// A parameter of `backward` with another name, out of order, or missing although it is a gradient; a number
/// of gradients other than that of inputs; a gradient or value whose element type is not that of its input or
/// output; a name that an input and an output share; `self`, `async`, generics of a function.
pub use autograd_macros::py_func;

pub(crate) mod private {
    pub use super::methods::names_of_methods;
    pub use super::program::{Program, Variable};
    pub use super::py_func::{
        BlockCall, PyFuncBlock, PyFuncParam, PyFuncValue, gradient_of_input, name_of_block,
        same_as_input, same_as_output,
    };
    pub use super::table::names_of_ops;
}
