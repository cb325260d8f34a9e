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
//! Names, element types and shapes (as far as axes are not free), cycles, variables of another
//! program and what py_func's functions take and return are checked when the program is built; each
//! error names the operator, the variable and the line that built it. Feeds and what user functions
//! return are checked when it runs. A run that fails changes no parameter.

mod backward;
mod eager;
mod executor;
mod ir;
mod kind;
mod layers;
mod optim;
mod plan;
mod program;
mod py_func;
mod run;
mod text;

pub use backward::{append_backward, gradients, gradients_with};
pub use eager::EagerCall;
pub use executor::{Executor, Feed, Fetch};
pub use kind::Init;
pub use layers::{FcOptions, IntoOperand};
pub use optim::{Adam, Sgd};
pub use program::{
    Block, IntoDims, Program, ProgramGuard, Variable, default_main_program,
    default_startup_program, program_guard,
};
pub use py_func::{
    Arity, Outcome, Param, PyFunc, PyFuncCall, PyFuncListCall, PyFuncParam, PyFuncReturn,
    PyFuncValue, Signature, Variables,
};
