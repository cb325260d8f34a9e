//! Without an autograd library: `ndarray`, the code that a user would write by hand; `limit`, the limit of
//! the machine; `prototype`, the minimum of a define-by-run engine.

mod fma;
mod limit;
mod matrix;
mod net;
mod plain;
mod prototype;
mod simd;

use kit::{Work, size};
use limit::Passes;

fn main() {
    let which = std::env::args().nth(1).expect("ndarray, limit or prototype");
    kit::serve(|row| match which.as_str() {
        "ndarray" => plain(row),
        "limit" => limit(row),
        _ => prototype(row),
    });
}

fn plain(row: &str) -> Option<Work> {
    match row {
        "W1-forward" | "W1-formula-forward" => plain::chain(false),
        "W1" | "W1-formula" => plain::chain(true),
        _ if row.starts_with("W3-forward-") => plain::tanh(size(row), false),
        _ if row.starts_with("W3-") => plain::tanh(size(row), true),
        "W4-scalars" | "W4-formula" => plain::scalars(),
        "W4-tensors" => plain::tensors(),
        "W5-row" => plain::product::<f32>(1, 784, 128),
        _ if row.starts_with("W5-f64-") => plain::product::<f64>(size(row), size(row), size(row)),
        _ if row.starts_with("W5-") => plain::product::<f32>(size(row), size(row), size(row)),
        "W6" => net::step(net::by_ndarray),
        _ => None,
    }
}

fn limit(row: &str) -> Option<Work> {
    match row {
        _ if row.starts_with("W3-forward-") => limit::tanh(size(row), Passes::Forward),
        _ if row.starts_with("W3-formula-") => limit::tanh(size(row), Passes::Two),
        _ if row.starts_with("W3-") => limit::tanh(size(row), Passes::Three),
        "W4-scalars" | "W4-formula" => limit::scalars(),
        "W4-tensors" => limit::tensors(),
        "W5-row" => matrix::product::<f32>(1, 784, 128),
        _ if row.starts_with("W5-f64-") => matrix::product::<f64>(size(row), size(row), size(row)),
        _ if row.starts_with("W5-") => matrix::product::<f32>(size(row), size(row), size(row)),
        "W6" => net::step(net::by_gemm),
        "copy" => limit::copy(),
        "fma" => fma::peak(),
        _ => None,
    }
}

fn prototype(row: &str) -> Option<Work> {
    match row {
        "W1-forward" | "W1-formula-forward" => prototype::chain(false),
        "W1" | "W1-formula" => prototype::chain(true),
        _ if row.starts_with("W7-") => prototype::scalar_chain(size(row)),
        _ => None,
    }
}
