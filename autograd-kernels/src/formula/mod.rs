//! Elementwise formulas: written once over [`Real`], compiled for every lane. [`Number`] gives
//! vector loops, [`Dual`] derivatives, [`Traced`] programs. There are no gradients or tensors here.

mod blocks;
mod compiled;
mod dual;
mod functions;
mod kernels;
mod lane;
mod number;
mod pass;
mod program;
mod real;
mod sums;
pub mod table;
#[cfg(test)]
mod tests;
mod text;
mod trace;
mod trigamma;

pub use compiled::{Compiled, Lanewise};
pub use dual::Dual;
pub use functions::{binaries, binary_functions, functions, named, tensor_functions};
pub use lane::Lane;
pub use number::Number;
pub use pass::{Block, Formula, Operand, Scratch, block_of, pass, run_block};
pub use program::{Binary, Program, SingleStep, Written};
pub use real::{Exponent, Mask, PlainNumber, Real, WholeTensor};
pub use sums::Sums;
pub use text::Library;
pub use trace::{RecordedFormula, Traced, record, record_given, trace};
