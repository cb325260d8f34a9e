//! The rows that are measured.

/// A row of the table: the same work by every peer that has it.
pub struct Row {
    /// The name in requests to peers. A size that they read follows the last hyphen.
    pub name: &'static str,
    pub title: &'static str,
    /// The unit of a figure, and the number of operations in a repetition.
    pub unit: Unit,
    pub count: f64,
    /// Whether the row is also measured with two threads.
    pub threads: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Unit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Megabytes,
    /// Growth of memory for each op of the row.
    Bytes,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Megabytes => "MB",
            Self::Bytes => "B",
        }
    }

    /// The number of units in a second, or in a byte.
    pub fn scale(self) -> f64 {
        match self {
            Self::Nanoseconds => 1e9,
            Self::Microseconds => 1e6,
            Self::Milliseconds => 1e3,
            Self::Megabytes => 1e-6,
            Self::Bytes => 1.0,
        }
    }

    pub fn is_memory(self) -> bool {
        matches!(self, Self::Megabytes | Self::Bytes)
    }
}

const fn row(name: &'static str, unit: Unit, count: f64, title: &'static str) -> Row {
    Row { name, title, unit, count, threads: false }
}

const fn threaded(name: &'static str, unit: Unit, count: f64, title: &'static str) -> Row {
    Row { name, title, unit, count, threads: true }
}

use Unit::{Bytes, Megabytes, Microseconds, Milliseconds, Nanoseconds};

pub const ROWS: &[Row] = &[
    row(
        "W1-forward",
        Nanoseconds,
        100.0,
        "custom tanh on [2, 3] f64, chain of 100, forward; an op",
    ),
    row("W1", Nanoseconds, 100.0, "custom tanh on [2, 3] f64, chain of 100, mean, backward; an op"),
    row("W1-formula-forward", Nanoseconds, 100.0, "the same, ours a formula, forward; an op"),
    row("W1-formula", Nanoseconds, 100.0, "the same, ours a formula, mean, backward; an op"),
    row(
        "W2",
        Nanoseconds,
        300.0,
        "tanh(x * a + b) on [2, 3] f32, chain of 100, forward and backward; a primitive op",
    ),
    threaded("W3-forward-1000000", Microseconds, 1.0, "custom tanh on 1,000,000 f32, forward"),
    threaded("W3-1000000", Microseconds, 1.0, "custom tanh on 1,000,000 f32, forward and backward"),
    threaded("W3-10000", Microseconds, 1.0, "custom tanh on 10,000 f32, forward and backward"),
    threaded(
        "W3-formula-1000000",
        Microseconds,
        1.0,
        "custom tanh as a formula, 1,000,000 f32, forward and backward",
    ),
    threaded(
        "W3-formula-10000",
        Microseconds,
        1.0,
        "custom tanh as a formula, 10,000 f32, forward and backward",
    ),
    threaded("gelu", Microseconds, 1.0, "gelu of 1,000,000 f32, ours a formula, theirs built in"),
    threaded(
        "select",
        Microseconds,
        1.0,
        "index_select of the columns of [1000, 1000] f32, forward and backward",
    ),
    threaded("gather", Microseconds, 1.0, "gather along its rows"),
    threaded("flip", Microseconds, 1.0, "flip of its rows"),
    threaded("cumsum", Microseconds, 1.0, "cumsum along its rows"),
    threaded("where", Microseconds, 1.0, "a choice by a mask"),
    threaded("softmax", Microseconds, 1.0, "log_softmax of its rows"),
    threaded("norm", Microseconds, 1.0, "normalisation of its rows"),
    threaded(
        "conv",
        Microseconds,
        1.0,
        "conv2d of 32 pictures [16, 32, 32] f32 with [32, 16, 3, 3], padded, and both gradients",
    ),
    threaded(
        "pool",
        Microseconds,
        1.0,
        "max_pool2d of [32, 32, 32, 32] f32 by 2 x 2, forward and backward",
    ),
    threaded(
        "W4-scalars",
        Milliseconds,
        1.0,
        "((x * a + b).relu() * c).sum(), 4,000,000 f32, scalars a b c, forward and backward",
    ),
    threaded("W4-formula", Milliseconds, 1.0, "the same sum, ours a formula"),
    threaded("W4-tensors", Milliseconds, 1.0, "the same sum, a b c tensors that want gradients"),
    threaded("W5-256", Milliseconds, 1.0, "matmul 256 f32, forward and both gradients"),
    threaded("W5-512", Milliseconds, 1.0, "matmul 512 f32"),
    threaded("W5-1024", Milliseconds, 1.0, "matmul 1024 f32"),
    row("W5-f64-256", Milliseconds, 1.0, "matmul 256 f64"),
    row("W5-f64-512", Milliseconds, 1.0, "matmul 512 f64"),
    row("W5-f64-1024", Milliseconds, 1.0, "matmul 1024 f64"),
    row("W5-row", Microseconds, 1.0, "matmul of a row, 1 x 784 x 128 f32"),
    row("W5-8", Microseconds, 1.0, "matmul 8 f32"),
    threaded(
        "W6",
        Microseconds,
        1.0,
        "training step, 64-256-256-10, batch 128, f32, custom tanh, cross-entropy, SGD",
    ),
    row("W7-10000", Nanoseconds, 1e4, "chain of 10,000 scalar ops, backward, drop; an op"),
    row("W7-100000", Nanoseconds, 1e5, "chain of 100,000"),
    row("W7-1000000", Nanoseconds, 1e6, "chain of 1,000,000"),
    row("W7-10000000", Nanoseconds, 1e7, "chain of 10,000,000"),
    row("W7-bytes-100000", Bytes, 1e5, "memory of a chain of 100,000; an op"),
    row("W8", Megabytes, 1.0, "peak memory, 50 chained custom tanh on 4 MiB, 210 MB are kept"),
    row(
        "from-vec",
        Nanoseconds,
        1.0,
        "a tensor from a new Vec of 10,000 f32, filled for it, as a data loader has it",
    ),
    row("from-slice", Nanoseconds, 1.0, "the same from a slice, which is copied"),
    row("W9", Milliseconds, 1.0, "one leaf used 10,000 times on [6], summed, backward"),
    row("W10-cold", Milliseconds, 1.0, "cold release build of the custom tanh program"),
    row("W10-crates", Bytes, 1.0, "its crates"),
    row("W10-binary", Megabytes, 1.0, "its binary"),
    row("W10-again", Milliseconds, 1.0, "release build after a change of the op"),
    row("W11-forward", Microseconds, 1.0, "static program, four py_func tanh layers, forward"),
    row("W11-step", Microseconds, 1.0, "the same, a training step"),
    row("W11-eager", Microseconds, 1.0, "the same net without a program, a training step"),
    row("W11-add", Microseconds, 1.0, "py_func int32 addition on [2, 3]"),
    row("W12", Milliseconds, 1.0, "process from start to its first gradient"),
    row("copy", Milliseconds, 1.0, "the machine: copy of 64 MiB"),
    row("fma", Milliseconds, 1.0, "the machine: 8,388,608 f32 floating point operations"),
];
