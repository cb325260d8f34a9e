// an elementwise op with a plain type called as the expansion's own parameters usually are
use autograd_core::prelude::*;

#[derive(Clone, Copy)]
pub enum L {
    One,
    Two,
}

#[py_layer(elementwise)]
impl Normed {
    fn forward(x: Real, #[default(L::Two)] norm: L) -> Real {
        match norm {
            L::One => x.abs(),
            L::Two => x * x,
        }
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![-3.0]);
    assert_eq!(Normed::apply(&x, L::One).to_vec(), [3.0]);
    assert_eq!(Normed::with().x(&x).apply().to_vec(), [9.0]);
}
