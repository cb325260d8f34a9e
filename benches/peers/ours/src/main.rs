//! autograd-core, used as its documentation recommends.

mod formulas;
mod moves;
mod net;
mod ops;
mod pictures;
mod program;

fn main() {
    kit::serve(|row| match row {
        "W1-forward" => ops::chain(false),
        "W1" => ops::chain(true),
        "W1-formula-forward" => formulas::chain(false),
        "W1-formula" => formulas::chain(true),
        "W2" => ops::built_in(),
        _ if row.starts_with("W3-forward-") => ops::tanh(kit::size(row), false),
        _ if row.starts_with("W3-formula-") => formulas::tanh(kit::size(row)),
        _ if row.starts_with("W3-") => ops::tanh(kit::size(row), true),
        "W4-scalars" => ops::scalars(),
        "W4-formula" => formulas::scalars(),
        "W4-tensors" => ops::tensors(),
        "W5-row" => ops::product::<f32>(1, 784, 128),
        _ if row.starts_with("W5-f64-") => ops::square::<f64>(kit::size(row)),
        _ if row.starts_with("W5-") => ops::square::<f32>(kit::size(row)),
        "W6" => net::step(),
        _ if row.starts_with("W7-") => ops::scalar_chain(kit::size(row)),
        "W8" => ops::memory(),
        "from-vec" => ops::from_vec(),
        "from-slice" => ops::from_slice(),
        "W9" => ops::fan_out(),
        "W11-forward" => program::net(false),
        "W11-step" => program::net(true),
        "W11-eager" => program::eager(),
        "W11-add" => program::integers(),
        "gelu" => formulas::gelu(),
        "conv" => pictures::conv(),
        "pool" => pictures::pool(),
        _ => moves::along_rows(row),
    });
}
