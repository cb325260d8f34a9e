// plain parameters of a formula that borrow for the whole program
#![deny(warnings)]
use autograd_core::prelude::*;

static TABLE: [f64; 2] = [2.0, 3.0];

#[py_layer(elementwise)]
impl Weighted {
    fn forward(
        x: Real,
        #[default(&TABLE)] table: &'static [f64],
        #[default("last")] which: &'static str,
        #[default(&())] _unit: &'static (),
    ) -> Real {
        x * table[usize::from(which == "last")]
    }

    fn backward(table: &'static [f64], which: &'static str, dy: Real) -> Real {
        dy * table[usize::from(which == "last")]
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![1.0]);
    assert_eq!(Weighted::apply(&x, &TABLE, "first", &()).to_vec(), [2.0]);
    assert_eq!(Weighted::with().x(&x).apply().to_vec(), [3.0]);
}
