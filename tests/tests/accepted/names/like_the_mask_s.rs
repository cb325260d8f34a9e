// an elementwise op with plain types called as the expansion's parameters for masks usually are
use autograd_core::prelude::*;

#[derive(Clone, Copy)]
pub struct M1(f64);

#[derive(Clone)]
pub struct M2<'a>(pub &'a str);

#[py_layer(elementwise)]
impl Chosen {
    fn forward(x: Real, #[stop_gradient] keep: Mask, factor: M1, name: M2) -> Real {
        let factor = if name.0 == "twice" { 2.0 * factor.0 } else { factor.0 };
        keep.select(x * factor, x)
    }
}

#[test]
fn compiles_and_runs() {
    let (x, keep) = (Tensor::<f64>::from(vec![1.0, 2.0]), Tensor::from(vec![true, false]));
    assert_eq!(Chosen::apply(&x, &keep, M1(3.0), M2("twice")).to_vec(), [6.0, 2.0]);
    let once = Chosen::with().x(&x).keep(&keep).factor(M1(3.0)).name(M2("once"));
    assert_eq!(once.apply().to_vec(), [3.0, 2.0]);
}
