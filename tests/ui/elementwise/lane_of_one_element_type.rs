// a formula is written for every element type
use autograd_core::Real;

fn double(x: Real<f64>) -> Real<f64> {
    x
}

fn main() {
    let _ = double;
}
