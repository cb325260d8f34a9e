//! candle. Its custom op has its backward in one pass, the fastest way that candle has.

mod moves;
mod ops;
mod pictures;
#[cfg(test)]
mod porting;
mod tanh;

use candle_core::DType;
use kit::size;

fn main() {
    kit::serve(|row| match row {
        "W1-forward" | "W1-formula-forward" => ops::chain(false),
        "W1" | "W1-formula" => ops::chain(true),
        "W2" => ops::built_in(),
        _ if row.starts_with("W3-forward-") => ops::tanh(size(row), false),
        _ if row.starts_with("W3-") => ops::tanh(size(row), true),
        "W4-scalars" | "W4-formula" => ops::scalars(),
        "W4-tensors" => ops::tensors(),
        "W5-row" => ops::product(DType::F32, 1, 784, 128),
        _ if row.starts_with("W5-f64-") => {
            ops::product(DType::F64, size(row), size(row), size(row))
        }
        _ if row.starts_with("W5-") => ops::product(DType::F32, size(row), size(row), size(row)),
        "W6" => ops::step(),
        _ if row.starts_with("W7-") => ops::scalar_chain(size(row)),
        "W8" => ops::memory(),
        "W9" => ops::fan_out(),
        "gelu" => ops::gelu(),
        "conv" => pictures::conv(),
        _ => moves::along_rows(row),
    });
}
